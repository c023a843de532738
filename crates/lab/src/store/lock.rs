//! The right to work on a cell, which ends with its holder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wakescope_store::open_lock;
use wakescope_sys::file::FileLock;

/// What a lock's file is called after the cell.
pub(crate) const LOCK: &str = "lock";

/// A lock on a name in a folder, held against other threads and processes until it is dropped or
/// its process ends, however that happens.
#[derive(Debug)]
pub(crate) struct NameLock {
    path: PathBuf,
    _lock: FileLock,
}

impl NameLock {
    /// Takes the lock on `name`; `None` if somebody has it.
    pub(crate) fn take(folder: &Path, name: &str) -> io::Result<Option<Self>> {
        let path = folder.join(format!("{name}.{LOCK}"));
        loop {
            let file = open_lock(&path)?;
            match Self::of_file(file, &path)? {
                Attempt::Taken(lock) => return Ok(Some(lock)),
                Attempt::Busy => return Ok(None),
                Attempt::Stale => {}
            }
        }
    }

    /// Takes the lock on `file`, which was opened at `path`.
    fn of_file(file: File, path: &Path) -> io::Result<Attempt> {
        let lock = FileLock::on(file);
        if !lock.try_take()? {
            return Ok(Attempt::Busy);
        }
        if !is_at(lock.file(), path)? {
            return Ok(Attempt::Stale);
        }
        Ok(Attempt::Taken(Self { path: path.into(), _lock: lock }))
    }
}

/// What came of trying to take a lock.
#[derive(Debug)]
enum Attempt {
    Taken(NameLock),
    Busy,
    /// Its last holder removed the file between opening and locking: the lock is on a file that
    /// nobody else will find.
    Stale,
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // Before the lock ends: afterwards the file may be another's.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (held.dev(), held.ino())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    #[test]
    fn a_name_is_locked_once_and_no_file_stays() {
        let folder = Folder::new("name-lock");
        let first = NameLock::take(folder.path(), "a").unwrap().unwrap();
        assert!(NameLock::take(folder.path(), "a").unwrap().is_none());
        assert!(NameLock::take(folder.path(), "b").unwrap().is_some());
        drop(first);
        assert!(NameLock::take(folder.path(), "a").unwrap().is_some());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Each removes the file that others are about to open.
    #[test]
    fn who_finds_a_lock_while_it_ends_takes_it_or_finds_it_busy() {
        let folder = Folder::new("name-lock-shared");
        let take = || {
            let attempts = (0..5_000).map(|_| NameLock::take(folder.path(), "a").unwrap());
            attempts.flatten().count()
        };
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(taken > 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_on_a_removed_file_is_none() {
        let folder = Folder::new("name-lock-removed");
        let path = folder.path().join("a.lock");
        let first = NameLock::take(folder.path(), "a").unwrap().unwrap();
        let slow = || File::options().write(true).open(&path).unwrap();
        let (second, third) = (slow(), slow());
        assert!(matches!(NameLock::of_file(slow(), &path).unwrap(), Attempt::Busy));
        drop(first);
        assert!(matches!(NameLock::of_file(second, &path).unwrap(), Attempt::Stale));
        let _new = NameLock::take(folder.path(), "a").unwrap().unwrap();
        assert!(matches!(NameLock::of_file(third, &path).unwrap(), Attempt::Stale));
        assert!(path.exists(), "a lock that is none removed that of another");
    }
}
