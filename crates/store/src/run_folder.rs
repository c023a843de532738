//! The folder of a run, written so that whatever happens, a readable record is in it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wakescope_sys::file::try_lock;
use wakescope_sys::folder::{About, Folder, Kind, Rename};
use wakescope_sys::trust::{Refused, check_folder, is_trusted_owner};
use wakescope_sys::way::{Asked, Stop, Way, of_path, to_list};

use crate::contents::Contents;
use crate::growing::GrowingFile;
use crate::roomy::RoomyFile;

/// The record's name in its folder.
pub const RECORD: &str = "run.json";
/// Every sample, where they were asked for.
pub const SAMPLES: &str = "samples.csv";
/// What was seen of late wakeups, where they were explained.
pub const EPISODES: &str = "episodes.jsonl";
/// A version of that which is to replace it; there for a moment only.
pub const EPISODES_FRESH: &str = "episodes.jsonl.new";
/// The next version of the record in the making; only there while the run lasts. Whoever has made it
/// has the folder.
const NEXT: &str = "run.json.next";
/// A version that is to replace the record by its name; there for a moment only.
const FRESH: &str = "run.json.new";

/// What every record begins with.
const MARKER: &str = "\"wakescope.run/";
/// So many bytes of a record have that in them.
const HEAD_BYTES: u64 = 64;

/// Of files with what was measured on a machine, which is nobody's business by default.
pub(crate) const FILE_MODE: u32 = 0o600;
/// Of folders: below a folder that others may write to, it would not be one's own.
const FOLDER_MODE: u32 = 0o755;

/// Why a run's folder could not be written.
#[derive(Debug)]
pub enum RunFolderError {
    /// There is a run in it.
    HoldsRun(PathBuf),
    /// It has folders with runs in it, which nobody would be shown any more who asks for all that are in it.
    HoldsRuns(PathBuf),
    /// It has the windows of a watch, which nobody would be shown any more.
    HoldsWatch(PathBuf),
    /// Another run is being written to it, or one that was killed has left this file; or another watch is.
    InUse(PathBuf),
    /// The folder could not be made or may not be used.
    Folder(PathBuf, io::Error),
    /// This file could not be written.
    File(PathBuf, io::Error),
    /// So many runs began in one second that there is no name left.
    TooMany(u32),
}

/// A run's record, and what else is in its folder, while it is written.
///
/// Each version of the record is first written whole to a second file, then the two files exchange
/// names: at every moment, `run.json` is a whole record. Both files are overwritten in place rather
/// than made anew, because replacing a file by rename makes ext4 write its data out at once
/// (`auto_da_alloc`), and a measurement should not cause disk writes every second for days. Each keeps room on
/// the disk for a version that is twice as long, so that nothing that fills it takes the run's end away.
///
/// All files are made by this process in a folder that stays open, so that neither links nor a
/// folder that was put in its place lead elsewhere.
#[derive(Debug)]
pub struct RunFiles {
    place: Place,
    record: RoomyFile,
    next: RoomyFile,
    /// Whether the file system can exchange names; if not, the record is replaced.
    exchanges: bool,
}

/// A folder for several runs, each of which is to have a folder of its own in it. It is named after the time, below
/// `runs/`. When it is dropped and nothing is in it, it is removed.
#[derive(Debug)]
pub struct SeriesFolder(Place);

impl SeriesFolder {
    /// Makes it.
    ///
    /// # Errors
    /// If `runs` cannot be made or is not safe to write to, or if too many began in this second.
    pub fn create(time: &str) -> Result<Self, RunFolderError> {
        Place::below_runs(time).map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl Drop for SeriesFolder {
    fn drop(&mut self) {
        self.0.discard();
    }
}

/// Fails if no run could be written to one of the folders at `paths`, as far as that can be known before there is
/// one: it holds a run, or cannot be made. Changes nothing.
///
/// What is made for a moment, to see that something can be, has a name that no other process uses. The folder
/// itself would be in the way of others that are to write below it as well. It is made once for all that are to
/// lie in one folder: some file systems take milliseconds.
pub(crate) fn check_run_folders(
    paths: impl IntoIterator<Item = PathBuf>,
) -> Result<(), RunFolderError> {
    let mut tried = BTreeSet::new();
    for path in paths {
        let fault = |e| RunFolderError::Folder(path.clone(), e);
        let mut way = Way::new(&path, Asked::Links).map_err(|e| fault(of_path(&path, e)))?;
        let stop = way.go_on().map_err(|e| fault(of_path(&path, e)))?;
        if !matches!(stop, Stop::Missing(_)) {
            Place::at(&path)?.refuse_used()?;
        }
        let folder = way.folder();
        if tried.insert(folder.about().map_err(fault)?.identity) {
            check_writable(folder).map_err(fault)?;
        }
    }
    Ok(())
}

/// Fails if nothing can be made in `folder`.
fn check_writable(folder: &Folder) -> io::Result<()> {
    let own = OsString::from(format!(".wakescope-{}", std::process::id()));
    match folder.make(&own, FOLDER_MODE) {
        // One that was killed just here had the same number.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => folder.remove_folder(&own),
    }
}

impl RunFiles {
    /// Makes the folder that the user named, or one named after the time below `runs/`, with
    /// `record` in it.
    pub fn create(named: Option<&Path>, time: &str, record: &[u8]) -> Result<Self, RunFolderError> {
        let mut place = match named {
            Some(path) => Place::at(path)?,
            None => Place::below_runs(time)?,
        };
        match Self::first_files(&mut place, record) {
            Ok((record, next)) => Ok(Self { place, record, next, exchanges: true }),
            Err(e) => {
                place.discard();
                Err(e)
            }
        }
    }

    /// The record and its spare. If several runs are started in one folder, the run that creates the
    /// spare gets the folder.
    fn first_files(
        place: &mut Place,
        record: &[u8],
    ) -> Result<(RoomyFile, RoomyFile), RunFolderError> {
        let fault = |name: &str, e| RunFolderError::File(place.path.join(name), e);
        let next = match place.folder.create(name(NEXT), FILE_MODE) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                place.refuse_used()?;
                return Err(fault(NEXT, e));
            }
            other => other.map_err(|e| fault(NEXT, e))?,
        };
        place.written.push(NEXT);
        lock(&next);
        // Looked at once more by whoever has the spare: a run may have ended here meanwhile.
        place.refuse_taken()?;
        let fault = |name: &str, e| RunFolderError::File(place.path.join(name), e);
        let first = place.replace(record, Rename::New).map_err(|e| fault(RECORD, e))?;
        place.written.insert(0, RECORD);
        let mut files = (RoomyFile::new(first, record.len()), RoomyFile::new(next, 0));
        files.0.keep_room(room_after(record));
        files.1.keep_room(room_after(record));
        Ok(files)
    }

    /// Makes a further file in the folder.
    pub fn add(&mut self, file: &'static str) -> Result<File, RunFolderError> {
        let made = self.place.folder.create(name(file), FILE_MODE);
        let made = made.map_err(|e| RunFolderError::File(self.place.path.join(file), e))?;
        self.place.written.insert(0, file);
        Ok(made)
    }

    /// Makes a further file in the folder that grows while the run lasts. `fresh` is the name that its
    /// next version has for a moment.
    pub fn add_growing(
        &mut self,
        file: &'static str,
        fresh: &'static str,
    ) -> Result<GrowingFile, RunFolderError> {
        let made = self.add(file)?;
        let folder = self.place.folder.try_clone();
        let folder = folder.map_err(|e| RunFolderError::File(self.place.path.join(file), e))?;
        Ok(GrowingFile::new(folder, made, file, fresh))
    }

    /// Puts a new version of the record in place of the last one. If that fails, the last one
    /// stays, whole.
    pub fn write(&mut self, record: &[u8]) -> io::Result<()> {
        if self.exchanges {
            self.next.overwrite(record)?;
            match self.place.folder.rename(name(NEXT), name(RECORD), Rename::Exchange) {
                Ok(()) => {
                    std::mem::swap(&mut self.record, &mut self.next);
                    self.record.keep_room(room_after(record));
                    self.next.keep_room(room_after(record));
                    return Ok(());
                }
                // Not every file system can (NFS and FAT cannot).
                Err(e) if is_unsupported(&e) => self.exchanges = false,
                Err(e) => return Err(e),
            }
        }
        let file = self.place.replace(record, Rename::Over)?;
        self.record = RoomyFile::new(file, record.len());
        Ok(())
    }

    /// Removes what has been written and made: the run did not begin.
    pub fn discard(self) {
        self.place.discard();
    }

    /// Writes the final record, removes what was needed only to get there, and returns where it is.
    /// On an error the version that was written last may be all that is there.
    pub fn finish(mut self, record: &[u8]) -> Result<PathBuf, RunFolderError> {
        let written = self.write(record).and_then(|()| self.record.finish());
        // The spare file goes in any case: that frees the room for the record if there was none.
        let _ = self.place.folder.remove_file(name(NEXT));
        if let Err(first) = written {
            if self.place.replace(record, Rename::Over).is_err() {
                return Err(RunFolderError::File(self.place.path.join(RECORD), first));
            }
        }
        Ok(self.place.present_path())
    }
}

/// The room that both files keep once `record` is written, bytes: what others fill the disk with later can
/// take no version that is at most twice as long.
fn room_after(record: &[u8]) -> usize {
    record.len().saturating_mul(2)
}

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

fn is_unsupported(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// The lock tells others that the run goes on. File systems without locks do without.
fn lock(file: &File) {
    let _ = try_lock(file);
}

/// Where a run is written.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    pub(crate) folder: Folder,
    /// Folders that were not there before, the innermost first, each with the one that it is in.
    made: Vec<(Folder, OsString)>,
    /// Files that this run has made; the spare is the last to go.
    written: Vec<&'static str>,
}

impl Place {
    /// The path that leads to the folder: another one if somebody has renamed it meanwhile.
    fn present_path(self) -> PathBuf {
        let own = self.folder.about().map(|about| about.identity).ok();
        let leads_here = |path: &Path| {
            let found = fs::metadata(path).map(|found| About::of(&found).identity);
            own.is_some() && found.ok() == own
        };
        let present = self.folder.present_path().ok().filter(|path| leads_here(path));
        match present {
            Some(present) if !leads_here(&self.path) => present,
            _ => self.path,
        }
    }

    /// The folder that the user named.
    fn at(path: &Path) -> Result<Self, RunFolderError> {
        let place = Self::make(path)?;
        match place.refuse_taken() {
            Ok(()) => Ok(place),
            Err(e) => {
                place.discard();
                Err(e)
            }
        }
    }

    /// A folder named after the time; a number is added if two runs begin in one second.
    fn below_runs(time: &str) -> Result<Self, RunFolderError> {
        const MOST_PER_SECOND: u32 = 1_000;
        let runs = Path::new("runs");
        let mut parent = Self::make(runs)?;
        clean_up(&parent.folder);
        let stem = time.replace(':', "-").trim_end_matches('Z').to_string();
        for number in 1..=MOST_PER_SECOND {
            let own = match number {
                1 => stem.clone(),
                _ => format!("{stem}-{number}"),
            };
            let path = runs.join(&own);
            match make_new(&parent.folder, name(&own)) {
                Ok(folder) => {
                    let Self { folder: runs, mut made, .. } = parent;
                    made.insert(0, (runs, own.into()));
                    return Ok(Self { path, folder, made, written: Vec::new() });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                // Another run that made `runs` did not begin, and took it away again.
                Err(e) if e.kind() == io::ErrorKind::NotFound => parent = Self::make(runs)?,
                Err(e) => {
                    parent.discard();
                    return Err(RunFolderError::Folder(path, e));
                }
            }
        }
        Err(RunFolderError::TooMany(MOST_PER_SECOND))
    }

    /// The folder at `path`, made with all above it that is missing. One that is there must be safe.
    pub(crate) fn make(path: &Path) -> Result<Self, RunFolderError> {
        let mut made = Vec::new();
        match Self::descend(path, &mut made) {
            Ok(folder) => Ok(Self { path: path.into(), folder, made, written: Vec::new() }),
            Err(e) => {
                remove_made(&made);
                Err(RunFolderError::Folder(path.into(), e))
            }
        }
    }

    fn descend(path: &Path, made: &mut Vec<(Folder, OsString)>) -> io::Result<Folder> {
        let mut way = Way::new(path, Asked::Links).map_err(|e| of_path(path, e))?;
        loop {
            match way.go_on().map_err(|e| of_path(path, e))? {
                Stop::End => break,
                Stop::Missing(part) => match make_new(way.folder(), &part) {
                    Ok(next) => made.insert(0, (way.enter(next, &part), part)),
                    // Another run that is to be written there was faster.
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => way.again(part),
                    Err(e) => return Err(e),
                },
                Stop::Other(part, _) => return Err(way.why_no_folder(&part)),
            }
        }
        let folder = to_list(way.folder(), path)?;
        check_folder(&folder)?;
        Ok(folder)
    }

    /// Fails if there is a run, a watch or runs in the folder, or what has a name that a run's file is to get.
    fn refuse_taken(&self) -> Result<(), RunFolderError> {
        for file in [RECORD, SAMPLES, EPISODES, FRESH, EPISODES_FRESH] {
            match self.folder.about_file(name(file)).map(|found| found.kind) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Ok(Kind::File) if ![FRESH, EPISODES_FRESH].contains(&file) => {
                    return Err(RunFolderError::HoldsRun(self.path.clone()));
                }
                Ok(kind) => {
                    let why = Refused::Taken(kind).into();
                    return Err(RunFolderError::File(self.path.join(file), why));
                }
                Err(e) => return Err(RunFolderError::File(self.path.join(file), e)),
            }
        }
        let path = || self.path.clone();
        match Contents::of(&self.path).map_err(|e| RunFolderError::Folder(path(), e))? {
            // Meanwhile.
            Contents::Run => Err(RunFolderError::HoldsRun(path())),
            Contents::Watch => Err(RunFolderError::HoldsWatch(path())),
            Contents::Runs => Err(RunFolderError::HoldsRuns(path())),
            Contents::Other => Ok(()),
        }
    }

    /// Fails if a run is being written to the folder, or was when it was killed.
    fn refuse_used(&self) -> Result<(), RunFolderError> {
        let next = || self.path.join(NEXT);
        match self.folder.about_file(name(NEXT)).map(|found| found.kind) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(RunFolderError::File(next(), e)),
            Ok(Kind::File) => Err(RunFolderError::InUse(next())),
            Ok(kind) => Err(RunFolderError::File(next(), Refused::Taken(kind).into())),
        }
    }

    /// Gives the record's name to a new file, which is returned.
    fn replace(&self, record: &[u8], how: Rename) -> io::Result<File> {
        if how == Rename::Over {
            // Left by an attempt that failed. Only whoever has the folder makes one.
            let _ = self.folder.remove_file(name(FRESH));
        }
        let mut fresh = self.folder.create(name(FRESH), FILE_MODE)?;
        lock(&fresh);
        let written = fresh.write_all(record).and_then(|()| {
            match self.folder.rename(name(FRESH), name(RECORD), how) {
                // There is none: that was looked at, and others keep out.
                Err(e) if how == Rename::New && is_unsupported(&e) => {
                    self.folder.rename(name(FRESH), name(RECORD), Rename::Over)
                }
                other => other,
            }
        });
        if written.is_err() {
            let _ = self.folder.remove_file(name(FRESH));
        }
        written.map(|()| fresh)
    }

    /// Removes what a run that did not begin has written and made.
    fn discard(&self) {
        for file in &self.written {
            let _ = self.folder.remove_file(name(file));
        }
        remove_made(&self.made);
    }
}

/// A folder that meanwhile holds something else stays.
fn remove_made(made: &[(Folder, OsString)]) {
    for (parent, own) in made {
        let _ = parent.remove_folder(own);
    }
}

/// Makes a folder in `parent`. Fails if there is one, or if another was put in its place.
fn make_new(parent: &Folder, own: &OsStr) -> io::Result<Folder> {
    parent.make(own, FOLDER_MODE)?;
    let opened = parent.subfolder(own);
    if opened.is_err() {
        // Nobody else would remove it. One that holds something by now stays.
        let _ = parent.remove_folder(own);
    }
    let folder = opened?;
    check_folder(&folder)?;
    Ok(folder)
}

/// Removes the spare files that killed runs below `runs` left. Their records stay.
///
/// A run that begins makes its spare file first and locks its record before that gets its name, so
/// a spare file that is free belongs to nobody only if the record is there and free too.
fn clean_up(runs: &Folder) {
    for own in runs.names().unwrap_or_default() {
        // No link is opened so, and nobody else can exchange files in what is safe.
        let Ok(run) = runs.subfolder(&own) else { continue };
        if check_folder(&run).is_ok() && is_dead(&run) {
            let _ = run.remove_file(name(NEXT));
            let _ = run.remove_file(name(FRESH));
            let _ = run.remove_file(name(EPISODES_FRESH));
        }
    }
}

/// Whether a run was written here that nobody writes any more.
fn is_dead(run: &Folder) -> bool {
    let free = |file: &str| {
        let found = run.about_file(name(file)).ok()?;
        // What is no file is not opened: that alone may have an effect.
        if found.kind != Kind::File || !is_trusted_owner(found.owner) {
            return None;
        }
        let file = run.open_to_read(name(file)).ok()?;
        try_lock(&file).ok()?.then_some(file)
    };
    let Some(record) = free(RECORD) else { return false };
    // Locked until the end of this function, as the record is.
    let Some(_next) = free(NEXT) else { return false };
    begins_as_record(record).unwrap_or(false)
}

/// Whether a file begins as the record of a run does.
pub(crate) fn begins_as_record(file: File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(String::from_utf8_lossy(&head).contains(MARKER))
}

#[cfg(test)]
mod tests;
