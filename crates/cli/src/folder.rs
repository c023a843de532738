//! The folder of a run, written so that whatever happens, a readable record is in it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use wakescope_probe::session::{SampleSink, SavedSample, Unsaved};
use wakescope_sys::file::{exchange, try_lock};
use wakescope_sys::machine::open_without_waiting;

use crate::Failure;
use crate::samples::SampleFile;

/// The record's name in its folder.
pub(crate) const RECORD: &str = "run.json";
/// The next version of the record in the making; only there while the run lasts.
const NEXT: &str = "run.json.next";
/// Every sample, where they were asked for.
const SAMPLES: &str = "samples.csv";

/// A run's folder while the run is written.
///
/// The record is rewritten a little more than once a second. Each version is first written whole to
/// a second file, then the two files exchange names: at every moment, `run.json` is a whole record.
/// Both files are overwritten in place rather than made anew, because replacing a file by rename
/// makes ext4 write its data out at once (`auto_da_alloc`), and a measurement should not cause disk
/// writes every second for days.
pub(crate) struct RunFolder {
    place: Place,
    record: File,
    next: File,
    samples: Option<SampleFile>,
    /// Whether the file system can exchange names; if not, the record is replaced.
    exchanges: bool,
}

impl SampleSink for RunFolder {
    fn add(&mut self, sample: SavedSample) {
        if let Some(samples) = &mut self.samples {
            samples.add(sample);
        }
    }

    fn close(&mut self) -> Unsaved {
        self.samples.take().map(SampleFile::close).unwrap_or_default()
    }
}

impl RunFolder {
    /// Makes the folder that the user named, or one named after the time below `runs/`, with
    /// `record` in it.
    pub(crate) fn create(
        named: Option<&Path>,
        time: &str,
        save_samples: bool,
        record: &[u8],
    ) -> Result<Self, Failure> {
        let place = match named {
            Some(path) => Place::named(path)?,
            None => Place::below_runs(time)?,
        };
        let files = Self::files(&place.path, save_samples, record);
        let (record, next, samples) = files.inspect_err(|_| place.discard())?;
        Ok(Self { place, record, next, samples, exchanges: true })
    }

    /// The files of a run that begins: the record, its spare, and samples if they are saved.
    fn files(
        path: &Path,
        save_samples: bool,
        record: &[u8],
    ) -> Result<(File, File, Option<SampleFile>), Failure> {
        let fault = |name: &str, e: io::Error| cannot_write(&path.join(name), &e);
        let open = |name: &str| open_locked(&path.join(name)).map_err(|e| fault(name, e));
        replace(path, record).map_err(|e| fault(RECORD, e))?;
        let (record, next) = (open(RECORD)?, open(NEXT)?);
        if !save_samples {
            return Ok((record, next, None));
        }
        let samples = SampleFile::create(&path.join(SAMPLES)).map_err(|e| fault(SAMPLES, e))?;
        Ok((record, next, Some(samples)))
    }

    /// Puts a new version of the record in place of the last one. If that fails, the last one
    /// stays, whole.
    pub(crate) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.next.write_all_at(record, 0)?;
        self.next.set_len(record.len() as u64)?;
        let (record, next) = (self.place.path.join(RECORD), self.place.path.join(NEXT));
        if self.exchanges {
            match exchange(&next, &record) {
                Ok(()) => {
                    std::mem::swap(&mut self.record, &mut self.next);
                    return Ok(());
                }
                // Not every file system can (NFS and FAT cannot).
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                    ) =>
                {
                    self.exchanges = false;
                }
                Err(e) => return Err(e),
            }
        }
        fs::rename(&next, &record)?;
        let fresh = open_locked(&next)?;
        self.record = std::mem::replace(&mut self.next, fresh);
        Ok(())
    }

    /// Removes what has been written and made: the run did not begin.
    pub(crate) fn discard(self) {
        self.place.discard();
    }

    /// Writes the final record and removes what was needed only to get there.
    pub(crate) fn finish(mut self, record: &[u8]) -> Result<PathBuf, Failure> {
        let written = self.write(record).and_then(|()| self.record.sync_all());
        // The spare file goes in any case: that frees the room for the record if there was none.
        let _ = fs::remove_file(self.place.path.join(NEXT));
        if let Err(first) = written {
            replace(&self.place.path, record).map_err(|_| {
                cannot_write(&self.place.path.join(RECORD), &first)
                    .because("the folder holds an earlier state of the run, of about a second before its end")
                    .try_this("make room and measure again, or name another folder: --out DIR")
            })?;
        }
        Ok(self.place.path)
    }
}

/// The plain way, with no file to spare: a new file takes the record's place.
fn replace(folder: &Path, record: &[u8]) -> io::Result<()> {
    let next = folder.join(NEXT);
    let written = fs::write(&next, record).and_then(|()| fs::rename(&next, folder.join(RECORD)));
    if written.is_err() {
        let _ = fs::remove_file(&next);
    }
    written
}

fn open_locked(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    // The lock tells others that the run goes on. File systems without locks do without.
    let _ = try_lock(&file);
    Ok(file)
}

/// Where a run is written.
struct Place {
    path: PathBuf,
    /// Folders that were not there before, the innermost first.
    made: Vec<PathBuf>,
}

impl Place {
    /// The folder that the user named.
    fn named(path: &Path) -> Result<Self, Failure> {
        if path.join(RECORD).exists() || path.join(SAMPLES).exists() {
            return Err(Failure::new(format!("{} holds a run already", path.display()))
                .try_this("name another folder: --out DIR"));
        }
        Self::make(path)
    }

    /// A folder named after the time; a number is added if two runs begin in one second.
    fn below_runs(time: &str) -> Result<Self, Failure> {
        const MOST_PER_SECOND: u32 = 1_000;
        let runs = Path::new("runs");
        let mut parent = Self::make(runs)?;
        clean_up(runs);
        let name = time.replace(':', "-").trim_end_matches('Z').to_string();
        for number in 1..=MOST_PER_SECOND {
            let path = match number {
                1 => runs.join(&name),
                _ => runs.join(format!("{name}-{number}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => {
                    parent.made.insert(0, path.clone());
                    return Ok(Self { path, made: parent.made });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                // Another run that made `runs` did not begin, and took it away again.
                Err(e) if e.kind() == io::ErrorKind::NotFound => parent = Self::make(runs)?,
                Err(e) => {
                    parent.discard();
                    return Err(cannot_create(&path, &e));
                }
            }
        }
        Err(Failure::new(format!("{MOST_PER_SECOND} runs begin at {name}"))
            .try_this("name one: --out DIR"))
    }

    fn make(path: &Path) -> Result<Self, Failure> {
        let missing = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let place = Self { path: path.into(), made: missing.map(PathBuf::from).collect() };
        fs::create_dir_all(path).map_err(|e| {
            place.discard();
            cannot_create(path, &e)
        })?;
        Ok(place)
    }

    /// Removes what a run that did not begin has written and made.
    fn discard(&self) {
        for name in [RECORD, NEXT, SAMPLES] {
            let _ = fs::remove_file(self.path.join(name));
        }
        // One that meanwhile holds something else stays.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes the spare files that killed runs below `runs` left. Their records stay.
///
/// A run that begins locks its record before it makes the spare file, so one that is free belongs
/// to nobody only if the record is there and free too.
fn clean_up(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    for entry in entries.flatten() {
        let is_free = |name: &str| {
            let file = open_without_waiting(&entry.path().join(name));
            file.is_ok_and(|file| try_lock(&file).unwrap_or(false))
        };
        if is_free(RECORD) && is_free(NEXT) {
            let _ = fs::remove_file(entry.path().join(NEXT));
        }
    }
}

fn cannot_create(path: &Path, e: &io::Error) -> Failure {
    Failure::new(format!("cannot create the run's folder {}: {e}", path.display()))
        .try_this("name a folder that you may write to: --out DIR")
}

fn cannot_write(path: &Path, e: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {e}", path.display()))
        .try_this("name a folder on a file system with room: --out DIR")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder for one test, removed when it ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("wakescope-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn read(folder: &Path) -> String {
        fs::read_to_string(folder.join(RECORD)).unwrap()
    }

    #[test]
    fn each_version_replaces_the_last_whole() {
        for exchanges in [true, false] {
            let place = Scratch::new("versions");
            let mut folder = RunFolder::create(Some(&place.0), "", false, b"first").unwrap();
            folder.exchanges = exchanges;
            for version in ["a longer second", "3rd", "the fourth one"] {
                folder.write(version.as_bytes()).unwrap();
                assert_eq!(read(&place.0), version);
            }
            folder.finish(b"end").unwrap();
            assert_eq!(read(&place.0), "end");
            assert_eq!(
                fs::read_dir(&place.0).unwrap().count(),
                1,
                "nothing but the record is left"
            );
        }
    }

    #[test]
    fn a_run_is_not_overwritten() {
        let place = Scratch::new("overwrite");
        RunFolder::create(Some(&place.0), "", false, b"x").unwrap().finish(b"x").unwrap();
        let failure = RunFolder::create(Some(&place.0), "", false, b"y").err().unwrap();
        assert!(failure.to_string().contains("holds a run already"), "{failure}");
    }

    #[test]
    fn a_run_that_does_not_begin_leaves_nothing_that_it_made() {
        let place = Scratch::new("discard");
        fs::create_dir(&place.0).unwrap();
        for out in ["", "a", "a/b/c"] {
            let out = place.0.join(out);
            RunFolder::create(Some(&out), "", true, b"x").unwrap().discard();
            assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0, "{}", out.display());
        }
    }

    #[test]
    fn spare_files_of_the_dead_are_removed_and_of_the_living_kept() {
        let place = Scratch::new("spare");
        let alive = RunFolder::create(Some(&place.0.join("alive")), "", false, b"x").unwrap();
        fs::create_dir_all(place.0.join("dead")).unwrap();
        fs::write(place.0.join("dead").join(NEXT), "half").unwrap();
        clean_up(&place.0);
        assert!(place.0.join("dead").join(NEXT).exists(), "this may be a run that begins");
        fs::write(place.0.join("dead").join(RECORD), "whole").unwrap();
        clean_up(&place.0);
        assert!(alive.place.path.join(NEXT).exists());
        assert!(!place.0.join("dead").join(NEXT).exists());
    }
}
