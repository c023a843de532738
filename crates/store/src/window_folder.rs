//! The folder of a watch: a file for each hour and each start, whose lines are windows, and no more of them
//! than there is to be room for.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wakescope_sys::file::FileLock;
use wakescope_sys::folder::{About, Folder, Kind};
use wakescope_sys::trust::{Refused, is_trusted_owner, others_may_write};

use crate::contents::Contents;
use crate::growing::Appended;
use crate::output::lock_file;
use crate::run_folder::{FILE_MODE, Place, RunFolderError};

/// Held by the watch that writes to the folder.
pub(crate) const LOCK: &str = "lock";
/// What the name of a file of windows ends with, behind the second of its first one.
const ENDING: &str = ".jsonl";
/// The most files that begin in one second.
const MOST_PER_SECOND: u32 = 1_000;

/// A folder to which windows are written by one process. Each begins a file of its own: so a line that is
/// cut, because its writer was killed, is the last of its file.
#[derive(Debug)]
pub struct WindowFolder {
    folder: Folder,
    /// The most bytes that all files of windows may have.
    keep: u64,
    current: Option<Current>,
    lock: FileLock,
}

/// The file that is being written.
#[derive(Debug)]
struct Current {
    name: OsString,
    /// The hour in which its windows began, as in `2026-11-21T01`.
    hour: String,
    file: Appended,
}

/// Why a window was not written.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// It alone is larger than all that is to be kept, bytes.
    #[error("a window takes {bytes} bytes, and {keep} are to be kept")]
    TooLarge {
        /// What it takes.
        bytes: u64,
        /// What may be kept.
        keep: u64,
    },
    /// It could not be written now. Later it may.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl WindowFolder {
    /// The folder at `path`, made with all above it that is missing, for files of at most `keep` bytes
    /// together.
    ///
    /// # Errors
    /// If others could exchange files in it, another watch writes to it, or it is the folder of a run or of runs.
    pub fn open(path: &Path, keep: u64) -> Result<Self, RunFolderError> {
        let place = Place::make(path)?;
        match Contents::of(path).map_err(|e| RunFolderError::Folder(path.into(), e))? {
            Contents::Run => return Err(RunFolderError::HoldsRun(path.into())),
            Contents::Runs => return Err(RunFolderError::HoldsRuns(path.into())),
            Contents::Watch | Contents::Other => {}
        }
        let name = path.join(LOCK);
        let lock = lock_file(&place.folder, OsStr::new(LOCK))
            .map(FileLock::on)
            .map_err(|e| RunFolderError::File(name.clone(), e))?;
        // File systems without locks do without.
        if let Ok(false) = lock.try_take() {
            return Err(RunFolderError::InUse(name));
        }
        Ok(Self { folder: place.folder, keep, current: None, lock })
    }

    /// Adds the line of a window that began at `started` (RFC 3339, UTC), and waits until the disk has it. The
    /// oldest files go to make room for it; how many.
    ///
    /// # Errors
    /// If it cannot be written. Then none of it is. The error is `NotFound` if the folder or its lock was
    /// removed: another watch may write to it then.
    pub fn append(&mut self, started: &str, line: &[u8]) -> Result<u32, AppendError> {
        let hour = started.get(..13).unwrap_or(started);
        self.current.take_if(|current| current.hour != hour);
        let removed = self.make_room(started, line.len() as u64)?;
        let current = match &mut self.current {
            Some(current) => current,
            none => none.insert(Current::create(&self.folder, started, hour)?),
        };
        let written = current.file.append_synced(line);
        // A line that is cut must be the last of its file.
        self.current.take_if(|current| current.file.is_torn());
        written?;
        Ok(removed)
    }

    /// Fails unless the lock is still the one that is held: `rm folder/*` takes it too.
    fn check_lock(&self) -> io::Result<()> {
        let there = self.folder.about_file(OsStr::new(LOCK))?;
        match there.identity == About::of(&self.lock.file().metadata()?).identity {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Removes the oldest files until so many more bytes are within what is to be kept. Files of a time after the
    /// window that `started` go first, because the clock was ahead when they began: otherwise they would stay, and
    /// take the place of all that is newer. The file that is being written goes last.
    fn make_room(&mut self, started: &str, bytes: u64) -> Result<u32, AppendError> {
        if bytes > self.keep {
            return Err(AppendError::TooLarge { bytes, keep: self.keep });
        }
        self.check_lock()?;
        let names = self.folder.names()?;
        // Nobody could read what is written to a file that was removed.
        self.current.take_if(|current| !names.contains(&current.name));
        let names = names.into_iter().filter(|name| file_time(name).is_some());
        let folder = self.folder.about()?;
        let mut files: Vec<(OsString, u64)> = names
            .filter_map(|name| {
                // Another may be gone meanwhile.
                let found = self.folder.about_file(&name).ok()?;
                check_window(&found, &folder).is_ok().then_some((name, found.length))
            })
            .collect();
        let now = stem_of(started);
        let current = self.current.as_ref().map(|current| &current.name);
        files.sort_by_cached_key(|(name, _)| {
            let time = file_time(name).map(|(time, number)| (time.to_owned(), number));
            let is_ahead = time.as_ref().is_some_and(|(time, _)| *time > now);
            (Some(name) == current, !is_ahead, time)
        });
        let mut used: u64 = files.iter().map(|file| file.1).sum();
        let mut removed = 0;
        for (name, length) in files {
            if used.saturating_add(bytes) <= self.keep {
                break;
            }
            match self.folder.remove_file(&name) {
                // Somebody else did.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                gone => gone?,
            }
            self.current.take_if(|current| current.name == name);
            used -= length;
            removed += 1;
        }
        Ok(removed)
    }
}

impl Current {
    fn create(folder: &Folder, started: &str, hour: &str) -> io::Result<Self> {
        let stem = stem_of(started);
        for number in 1..=MOST_PER_SECOND {
            let name: OsString = match number {
                1 => format!("{stem}{ENDING}").into(),
                _ => format!("{stem}-{number}{ENDING}").into(),
            };
            match folder.create(&name, FILE_MODE) {
                Ok(file) => {
                    match folder.sync() {
                        // Some file systems write names out by themselves.
                        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {}
                        synced => synced?,
                    }
                    let (hour, file) = (hour.into(), Appended::new(file));
                    return Ok(Self { name, hour, file });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::other(format!("{MOST_PER_SECOND} files of one second are there")))
    }
}

/// What has the name of a file of windows in a folder, the oldest first.
#[derive(Debug, Default)]
pub struct WindowFiles {
    /// The files of windows.
    pub files: Vec<PathBuf>,
    /// What is no file of windows, or one that another user can have put there, and why it is not believed.
    pub refused: Vec<(PathBuf, Refused)>,
}

impl WindowFiles {
    /// Whether there is neither.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.refused.is_empty()
    }
}

/// The files of windows in the folder at `path`. None if it is no folder of a watch.
///
/// # Errors
/// If the folder cannot be read.
pub fn window_files(path: &Path) -> io::Result<WindowFiles> {
    let folder = About::of(&fs::metadata(path)?);
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        if file_time(&name).is_none() {
            continue;
        }
        match entry.metadata() {
            Ok(about) => found.push((name, check_window(&About::of(&about), &folder))),
            // The watch has removed it meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    found.sort_by(|a, b| file_time(&a.0).cmp(&file_time(&b.0)));
    let mut all = WindowFiles::default();
    for (name, checked) in found {
        match checked {
            Ok(()) => all.files.push(path.join(name)),
            Err(why) => all.refused.push((path.join(name), why)),
        }
    }
    Ok(all)
}

/// Fails unless nobody but root, this user and the owner of the folder can have put the file into it. In a sticky
/// folder, any user can give such a name to a file of their own, and to one of others by a hard link.
fn check_window(found: &About, folder: &About) -> Result<(), Refused> {
    match found.kind {
        Kind::File if !is_trusted_owner(found.owner) && found.owner != folder.owner => {
            Err(Refused::ForeignFile(found.owner))
        }
        Kind::File if found.names > 1 && others_may_write(folder) => Err(Refused::HardLink),
        Kind::File => Ok(()),
        other => Err(Refused::Kind(other)),
    }
}

/// What the name of a file begins with whose first window began at `started`.
fn stem_of(started: &str) -> String {
    started.trim_end_matches('Z').replace(':', "-")
}

/// The second of the first window of the file with this name, as text, and which of that second it is;
/// `None` for other files.
pub(crate) fn file_time(name: &OsStr) -> Option<(&str, u32)> {
    const SHAPE: &[u8] = b"0000-00-00T00-00-00";
    let stem = name.to_str()?.strip_suffix(ENDING)?;
    let (time, number) = stem.split_at_checked(SHAPE.len())?;
    let fits = |(&byte, &shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        shape => byte == shape,
    };
    let number = match number {
        "" => 1,
        number => number.strip_prefix('-')?.parse().ok()?,
    };
    time.as_bytes().iter().zip(SHAPE).all(fits).then_some((time, number))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use wakescope_sys::file::effective_user;
    use wakescope_testing::{Disk, Folder};

    use super::*;

    #[track_caller]
    fn assert_files(path: &Path, want: &[(&str, &str)]) {
        let files = window_files(path).unwrap().files;
        let found = files.iter().map(|file| {
            let name = file.file_name().unwrap().to_str().unwrap();
            (name, fs::read_to_string(file).unwrap())
        });
        let found: Vec<_> = found.collect();
        let found: Vec<_> = found.iter().map(|(name, text)| (*name, text.as_str())).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn each_hour_and_each_start_has_a_file() {
        let path = Folder::new("hours");
        let mut watch = WindowFolder::open(&path.join("a/b"), 1_000).unwrap();
        watch.append("2026-11-21T01:00:07Z", b"1\n").unwrap();
        watch.append("2026-11-21T01:59:59Z", b"2\n").unwrap();
        watch.append("2026-11-21T02:00:01Z", b"3\n").unwrap();
        assert!(matches!(
            WindowFolder::open(&path.join("a/b"), 1_000),
            Err(RunFolderError::InUse(_))
        ));
        drop(watch);
        let mut again = WindowFolder::open(&path.join("a/b"), 1_000).unwrap();
        again.append("2026-11-21T02:00:01Z", b"4\n").unwrap();
        let names = ["2026-11-21T01-00-07", "2026-11-21T02-00-01", "2026-11-21T02-00-01-2"];
        let [first, second, third] = names.map(|name| format!("{name}.jsonl"));
        assert_files(&path.join("a/b"), &[(&first, "1\n2\n"), (&second, "3\n"), (&third, "4\n")]);
    }

    #[test]
    fn the_oldest_files_go_and_no_others() {
        let path = Folder::new("keep");
        fs::write(path.join("notes.jsonl"), "of the user").unwrap();
        symlink("notes.jsonl", path.join("2026-11-20T00-00-00.jsonl")).unwrap();
        let mut watch = WindowFolder::open(&path, 20).unwrap();
        let mut append =
            |hour: u32, line: &[u8]| watch.append(&format!("2026-11-21T{hour:02}:00:00Z"), line);
        assert_eq!(append(1, b"12345678\n").unwrap(), 0);
        assert_eq!(append(2, b"12345678\n").unwrap(), 0);
        assert_eq!(append(3, b"1234567890123\n").unwrap(), 2);
        // Also the file that is being written.
        assert_eq!(append(3, b"1234567\n").unwrap(), 1);
        assert!(matches!(
            append(3, &[b'1'; 21]),
            Err(AppendError::TooLarge { bytes: 21, keep: 20 })
        ));
        assert_files(&path, &[("2026-11-21T03-00-00.jsonl", "1234567\n")]);
        assert_eq!(fs::read_to_string(path.join("notes.jsonl")).unwrap(), "of the user");
    }

    #[test]
    fn files_of_a_clock_that_was_ahead_go_before_those_that_are_newer() {
        let path = Folder::new("ahead");
        let mut watch = WindowFolder::open(&path, 20).unwrap();
        let line = b"12345678\n";
        for (started, removed) in [
            ("2026-11-21T01:00:00Z", 0),
            ("2036-11-21T01:00:00Z", 0),
            // The clock is right again.
            ("2026-11-21T02:30:00Z", 1),
            // It is set back by less than an hour, and the file that is being written is not the first to go.
            ("2026-11-21T02:10:00Z", 1),
        ] {
            assert_eq!(watch.append(started, line).unwrap(), removed, "{started}");
        }
        assert_files(&path, &[("2026-11-21T02-30-00.jsonl", "12345678\n12345678\n")]);
    }

    #[test]
    fn a_file_that_another_user_can_have_put_there_is_no_window() {
        const OTHER: u32 = 65_533;
        let own = effective_user();
        let about = |kind, owner, names, mode| {
            let (group, length, identity) = (owner, 0, (0, 0));
            About { kind, owner, group, mode, names, length, identity }
        };
        let file = |owner, names| about(Kind::File, owner, names, 0o600);
        let folder = |owner, mode| about(Kind::Folder, owner, 2, mode);
        let is_foreign = Err(Refused::ForeignFile(OTHER));
        for (found, folder, want) in [
            (file(own, 1), folder(own, 0o755), Ok(())),
            (file(0, 1), folder(own, 0o1777), Ok(())),
            (file(OTHER, 1), folder(own, 0o755), is_foreign),
            (file(OTHER, 1), folder(own, 0o1777), is_foreign),
            // A watch of another user, as that user has stored it.
            (file(OTHER, 1), folder(OTHER, 0o755), Ok(())),
            (file(own, 2), folder(own, 0o1777), Err(Refused::HardLink)),
            // As a copy has that is made of links.
            (file(own, 2), folder(own, 0o755), Ok(())),
            (about(Kind::Link, own, 1, 0o777), folder(own, 0o755), Err(Refused::Kind(Kind::Link))),
            (about(Kind::Fifo, own, 1, 0o600), folder(own, 0o755), Err(Refused::Kind(Kind::Fifo))),
        ] {
            assert_eq!(check_window(&found, &folder), want, "{found:?} {folder:?}");
        }
    }

    #[test]
    fn files_of_other_users_are_neither_counted_nor_removed() {
        if effective_user() != 0 {
            let name = "files_of_other_users_are_neither_counted_nor_removed";
            return wakescope_testing::skip(name, "only root can give files away");
        }
        let path = Folder::new("foreign");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).unwrap();
        let foreign = path.join("2026-11-20T00-00-00.jsonl");
        File::create(&foreign).unwrap().set_len(1 << 40).unwrap();
        chown(&foreign, Some(65_533), None).unwrap();
        // As any user can make it of a file of root, where the kernel lets them.
        let linked = path.join("2026-11-20T00-00-01.jsonl");
        File::create(path.join("large")).unwrap().set_len(1 << 40).unwrap();
        fs::hard_link(path.join("large"), &linked).unwrap();
        let mut watch = WindowFolder::open(&path, 20).unwrap();
        for (hour, removed) in [(1, 0), (2, 0), (3, 1)] {
            let started = format!("2026-11-21T{hour:02}:00:00Z");
            assert_eq!(watch.append(&started, b"12345678\n").unwrap(), removed);
        }
        assert_eq!(fs::metadata(&foreign).unwrap().len(), 1 << 40);
        let all = window_files(&path).unwrap();
        assert_eq!(
            all.files,
            [2, 3].map(|hour| path.join(format!("2026-11-21T0{hour}-00-00.jsonl")))
        );
        assert_eq!(
            all.refused,
            [(foreign, Refused::ForeignFile(65_533)), (linked, Refused::HardLink)]
        );
    }

    #[test]
    fn a_window_for_which_there_is_no_room_leaves_nothing() {
        let path = Folder::new("full");
        let name = "a_window_for_which_there_is_no_room_leaves_nothing";
        let Some(_disk) = Disk::mount(&path, "size=64k", name) else { return };
        let mut watch = WindowFolder::open(&path.join("w"), 1_000_000).unwrap();
        watch.append("2026-11-21T01:00:00Z", &[b'1'; 30_000]).unwrap();
        watch.append("2026-11-21T01:10:00Z", &[b'2'; 60_000]).unwrap_err();
        watch.append("2026-11-21T01:10:00Z", b"3\n").unwrap();
        let file = fs::read(path.join("w/2026-11-21T01-00-00.jsonl")).unwrap();
        assert_eq!((file.len(), &file[29_999..]), (30_002, &b"13\n"[..]));
    }

    #[test]
    fn nothing_is_written_to_a_file_or_folder_that_was_removed() {
        let path = Folder::new("removed");
        let mut watch = WindowFolder::open(&path.join("w"), 1_000).unwrap();
        let [first, second] = ["2026-11-21T01-00-00.jsonl", "2026-11-21T01-10-00.jsonl"];
        watch.append("2026-11-21T01:00:00Z", b"1\n").unwrap();
        fs::remove_file(path.join("w").join(first)).unwrap();
        watch.append("2026-11-21T01:10:00Z", b"2\n").unwrap();
        watch.append("2026-11-21T01:20:00Z", b"3\n").unwrap();
        assert_files(&path.join("w"), &[(second, "2\n3\n")]);
        fs::remove_dir_all(path.join("w")).unwrap();
        let error = watch.append("2026-11-21T01:30:00Z", b"4\n").unwrap_err();
        assert!(matches!(error, AppendError::Io(e) if e.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn nothing_is_written_beside_another_watch_once_the_lock_was_removed() {
        let path = Folder::new("unlocked");
        let mut first = WindowFolder::open(&path, 1_000).unwrap();
        first.append("2026-11-21T01:00:00Z", b"1\n").unwrap();
        fs::remove_file(path.join(LOCK)).unwrap();
        let mut is_refused = || {
            let error = first.append("2026-11-21T01:10:00Z", b"2\n").unwrap_err();
            matches!(error, AppendError::Io(e) if e.kind() == io::ErrorKind::NotFound)
        };
        assert!(is_refused());
        let _second = WindowFolder::open(&path, 1_000).unwrap();
        assert!(is_refused());
        assert_files(&path, &[("2026-11-21T01-00-00.jsonl", "1\n")]);
    }

    #[test]
    fn behind_a_window_that_could_not_be_written_or_removed_another_file_begins() {
        let path = Folder::new("torn");
        let mut watch = WindowFolder::open(&path, 1_000).unwrap();
        let started = "2026-11-21T01:00:00Z";
        // The one takes nothing; the other takes all, and cannot say when the disk has it.
        for device in ["/dev/full", "/dev/null"] {
            watch.append(started, b"1\n").unwrap();
            let device = File::options().write(true).open(device).unwrap();
            watch.current.as_mut().unwrap().file = Appended::new(device);
            watch.append(started, b"2\n").unwrap_err();
        }
        watch.append(started, b"3\n").unwrap();
        let names = ["", "-2", "-3"].map(|number| format!("2026-11-21T01-00-00{number}.jsonl"));
        let files: Vec<_> = names.iter().map(String::as_str).zip(["1\n", "1\n", "3\n"]).collect();
        assert_files(&path, &files);
    }

    #[test]
    fn a_folder_that_is_not_safe_or_holds_a_run_is_refused() {
        let path = Folder::new("refused");
        fs::write(path.join("run.json"), "{}").unwrap();
        assert!(matches!(WindowFolder::open(&path, 9), Err(RunFolderError::HoldsRun(_))));
        fs::create_dir(path.join("a")).unwrap();
        fs::rename(path.join("run.json"), path.join("a/run.json")).unwrap();
        assert!(matches!(WindowFolder::open(&path, 9), Err(RunFolderError::HoldsRuns(_))));
        fs::remove_dir_all(path.join("a")).unwrap();
        symlink("elsewhere", path.join(LOCK)).unwrap();
        assert!(matches!(WindowFolder::open(&path, 9), Err(RunFolderError::File(..))));
        assert!(!path.join("elsewhere").exists());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(WindowFolder::open(&path, 9), Err(RunFolderError::Folder(..))));
    }

    #[test]
    fn files_are_known_by_their_names() {
        for (name, want) in [
            ("2026-11-21T01-00-07.jsonl", Some(("2026-11-21T01-00-07", 1))),
            ("2026-11-21T01-00-07-12.jsonl", Some(("2026-11-21T01-00-07", 12))),
            ("2026-11-21T01-00-07-.jsonl", None),
            ("2026-11-21T01-00-07", None),
            ("2026-11-21T01:00:07.jsonl", None),
            ("2026-11-21T01-00-0é.jsonl", None),
            ("episodes.jsonl", None),
        ] {
            assert_eq!(file_time(OsStr::new(name)), want, "{name}");
        }
    }
}
