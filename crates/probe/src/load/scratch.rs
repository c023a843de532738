//! Directories that loads work in, and the removal of those that dead loads left.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use wakescope_sys::clock::{self, Clock};
use wakescope_sys::file::{effective_user, open_directory, try_lock};

/// Of a directory that nobody else may look into.
const MODE: u32 = 0o700;

/// What such a directory's mode has not. (It may have more than `MODE`, from the one above it.)
const OTHERS: u32 = 0o077;

/// A directory of this load's own, with all in it removed when this is dropped.
///
/// It is locked for as long as the process lives, however that ends. So a directory that can be
/// locked is one that nobody uses, or one that is just being made: whoever makes one locks it and
/// then looks whether it is still there.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes a directory in `dir`.
    pub(super) fn create(dir: &Path) -> io::Result<Self> {
        // Nothing rests on the name being hard to guess: a name that is taken, by whatever, is not
        // followed but another one is tried.
        let mut number = clock::read(Clock::MonotonicRaw);
        for _ in 0..100 {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let name = format!("{}{}-{number:016x}", prefix(), std::process::id());
            if let Some(scratch) = Self::create_as(dir.join(name))? {
                return Ok(scratch);
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for it is taken"))
    }

    /// `None` if the name is taken, or was cleared away before it could be locked.
    fn create_as(path: PathBuf) -> io::Result<Option<Self>> {
        match DirBuilder::new().mode(MODE).create(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            other => other?,
        }
        let lock = match open_own(&path) {
            Ok(Some(lock)) => lock,
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => return Ok(None),
        };
        // A file system that knows no locks (some network ones) still serves, but what is left
        // there is not cleared away: nobody could tell that it is.
        let locked = try_lock(&lock).unwrap_or(true);
        if !locked || lock.metadata()?.nlink() == 0 {
            return Ok(None);
        }
        Ok(Some(Self { path, _lock: lock }))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is tried again at the next start.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what loads left in `dir` that were killed together with their keeper, or by a loss of
/// power. Touches only directories with a load's name that belong to this user, that nobody else
/// may enter, and that no live load has locked. Returns how many it removed.
pub fn clean_up_leftovers(dir: &Path) -> usize {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let ours = prefix();
    let named = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&ours)));
    named.filter(|entry| remove_leftover(&entry.path()).unwrap_or(false)).count()
}

fn remove_leftover(path: &Path) -> io::Result<bool> {
    let Some(lock) = open_own(path)? else { return Ok(false) };
    let found = lock.metadata()?;
    if found.mode() & OTHERS != 0 || !try_lock(&lock)? {
        return Ok(false);
    }
    // The directory that was locked must be the one that the name still stands for: it may have
    // been removed, and even be another's by now.
    let named = fs::symlink_metadata(path)?;
    if (named.dev(), named.ino()) != (found.dev(), found.ino()) {
        return Ok(false);
    }
    // Removal does not follow links either. It goes on to hold the lock, so that two that clean up
    // at once are not in each other's way.
    fs::remove_dir_all(path)?;
    Ok(true)
}

/// Opens a directory of this user's; `None` if it is another's.
fn open_own(path: &Path) -> io::Result<Option<File>> {
    let file = open_directory(path)?;
    let own = file.metadata()?.uid() == effective_user();
    Ok(own.then_some(file))
}

/// The head of every name: a user's leftovers are that user's to clear away.
fn prefix() -> String {
    format!("wakescope-load-{}-", effective_user())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// An empty directory of the test's own.
    fn place(test: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("scratch-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        dir
    }

    fn leftover(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(format!("{}{name}", prefix()));
        DirBuilder::new().mode(MODE).create(&path).unwrap();
        fs::create_dir(path.join("a")).unwrap();
        fs::write(path.join("a/b"), "x").unwrap();
        path
    }

    #[test]
    fn a_directory_in_use_is_left_alone_and_goes_with_its_user() {
        let dir = place("in-use");
        let scratch = Scratch::create(&dir).unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, MODE);
        assert_eq!(clean_up_leftovers(&dir), 0);
        assert!(path.join("file").exists());
        drop(scratch);
        assert!(!path.exists());
        fs::remove_dir(dir).unwrap();
    }

    #[test]
    fn leftovers_go_and_nothing_else() {
        let dir = place("leftovers");
        leftover(&dir, "1-1");
        leftover(&dir, "2-2");
        let open_to_all = leftover(&dir, "3-3");
        fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o755)).unwrap();
        let file = dir.join(format!("{}4-4", prefix()));
        fs::write(&file, "x").unwrap();
        let target = dir.join("somebody's");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("treasure"), "x").unwrap();
        let link = dir.join(format!("{}5-5", prefix()));
        symlink(&target, &link).unwrap();
        let other_user = dir.join("wakescope-load-4294967294-6-6");
        DirBuilder::new().mode(MODE).create(&other_user).unwrap();
        assert_eq!(clean_up_leftovers(&dir), 2);
        assert_eq!(clean_up_leftovers(&dir), 0);
        for path in [open_to_all, file, target.join("treasure"), link, other_user] {
            assert!(fs::symlink_metadata(&path).is_ok(), "{} is gone", path.display());
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_link_inside_a_leftover_is_not_followed() {
        let dir = place("inside");
        let target = dir.join("somebody's");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("treasure"), "x").unwrap();
        symlink(&target, leftover(&dir, "1-1").join("link")).unwrap();
        assert_eq!(clean_up_leftovers(&dir), 1);
        assert!(target.join("treasure").exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn no_directory_is_no_leftover() {
        assert_eq!(clean_up_leftovers(Path::new("/does/not/exist")), 0);
        assert!(Scratch::create(Path::new("/does/not/exist")).is_err());
    }
}
