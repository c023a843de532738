//! Directories that loads work in, and the removal of those that dead loads left.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;

use wakescope_sys::clock::{self, Clock};
use wakescope_sys::file::{effective_user, try_lock};
use wakescope_sys::folder::{Folder, Kind};
use wakescope_sys::way::open_folder;

/// Of a directory that nobody else may look into.
const MODE: u32 = 0o700;

/// What such a directory's mode has not. (It may have more than `MODE`, from the one above it.)
const OTHERS: u32 = 0o077;

/// The file by which a directory is known to be a load's: whoever may rename directories can give
/// the name of one to another.
const MARKER: &str = "wakescope-load";

/// How many descriptors are set aside to remove a directory with: one for each of the levels that `find`
/// makes, and some more.
const RESERVED: usize = 8;

/// The directory beside the marker that a load works in.
const FILES: &str = "files";

/// A directory of this load's own, with all in it removed when this is dropped.
///
/// It is locked for as long as the process lives, however that ends. So a directory that can be
/// locked is one that nobody uses, or one that is just being made: whoever makes one locks it and
/// then looks whether it is still there.
///
/// It is held open, and a load enters it: whoever may rename in the directory above does not decide
/// where files are made and removed.
#[derive(Debug)]
pub(super) struct Scratch {
    parent: Folder,
    name: String,
    folder: Folder,
    files: Folder,
    /// Let go of when the directory is removed, which opens what is in it: a load for which there are
    /// too few descriptors must not begin, rather than leave its files.
    reserved: Vec<File>,
}

impl Scratch {
    /// Makes a directory in `dir`, whose path leads through no link of another user.
    pub(super) fn create(dir: &Path) -> io::Result<Self> {
        // Nothing rests on the name being hard to guess: a name that is taken, by whatever, is not
        // followed but another one is tried.
        let mut number = clock::read(Clock::MonotonicRaw);
        for _ in 0..100 {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let name = format!("{}{}-{number:016x}", prefix(), std::process::id());
            if let Some(scratch) = Self::create_as(dir, name)? {
                return Ok(scratch);
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "all candidate names exist"))
    }

    /// `None` if the name is taken, or is that of something else before it could be locked.
    fn create_as(dir: &Path, name: String) -> io::Result<Option<Self>> {
        let parent = open_folder(dir)?;
        let reserved = (0..RESERVED).map(|_| parent.as_file().try_clone());
        let reserved = reserved.collect::<io::Result<Vec<File>>>()?;
        match parent.make(OsStr::new(&name), MODE) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            other => other?,
        }
        match Self::fill(&parent, &name) {
            Ok(Some((folder, files))) => Ok(Some(Self { parent, name, folder, files, reserved })),
            Ok(None) => Ok(None),
            Err(e) => {
                // Only an empty one can be removed so, which is what was just made.
                let _ = parent.remove_folder(OsStr::new(&name));
                Err(e)
            }
        }
    }

    /// Opens the directory that was just made, and makes in it what is to be there. `None` if it is
    /// another one by now.
    fn fill(parent: &Folder, name: &str) -> io::Result<Option<(Folder, Folder)>> {
        let folder = match open_own(parent, name) {
            Ok(Some(folder)) => folder,
            Err(e) if !is_something_else(&e) => return Err(e),
            _ => return Ok(None),
        };
        // A file system that knows no locks (some network ones) still serves, but what is left
        // there is not cleared away: nobody could tell that it is.
        let locked = try_lock(folder.as_file()).unwrap_or(true);
        // Another one that was given this name has something in it already.
        if !locked || folder.about()?.names == 0 || !folder.names()?.is_empty() {
            return Ok(None);
        }
        folder.create(OsStr::new(MARKER), 0o600)?;
        let files = folder.make(OsStr::new(FILES), MODE);
        match files.and_then(|()| folder.subfolder(OsStr::new(FILES))) {
            Ok(files) => Ok(Some((folder, files))),
            Err(e) => {
                // Without opening anything: there may be no descriptor left.
                let _ = folder.remove_folder(OsStr::new(FILES));
                let _ = folder.remove_file(OsStr::new(MARKER));
                Err(e)
            }
        }
    }

    /// Makes it the current directory of this process.
    pub(super) fn enter(&self) -> io::Result<()> {
        self.files.enter()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.reserved.clear();
        // What cannot be removed now is tried again at the next start, unless its marker is missing: others may
        // have removed a part.
        let _ = empty(&self.folder)
            .and_then(|()| remove_emptied(&self.parent, &self.name, &self.folder));
    }
}

/// Removes what loads left in `dir` that were killed together with their keeper, or by a loss of
/// power. Touches only directories with a load's name and marker that belong to this user, that
/// nobody else may enter, and that no live load has locked. A `dir` to which a link of another user leads
/// is left alone. Returns how many it removed.
pub fn clean_up_leftovers(dir: &Path) -> usize {
    let Ok(parent) = open_folder(dir) else { return 0 };
    let names = parent.names().unwrap_or_default();
    let named = names.iter().filter_map(|name| name.to_str()).filter(|name| is_own_form(name));
    named.filter(|name| remove_leftover(&parent, name).unwrap_or(false)).count()
}

fn remove_leftover(parent: &Folder, name: &str) -> io::Result<bool> {
    let Some(folder) = open_own(parent, name)? else { return Ok(false) };
    if !try_lock(folder.as_file())? {
        return Ok(false);
    }
    // Removal goes on to hold the lock, so that two that clean up at once are not in each other's
    // way.
    if folder.about_file(OsStr::new(MARKER)).is_ok_and(|found| found.kind == Kind::File) {
        empty(&folder)?;
    }
    remove_emptied(parent, name, &folder)
}

/// Removes from a load's directory what the load made in it and nothing else.
fn empty(folder: &Folder) -> io::Result<()> {
    let (marker, files) = (OsStr::new(MARKER), OsStr::new(FILES));
    // Others may be about to remove them, too.
    if let Some(made) = unless_missing(folder.subfolder(files))? {
        unless_missing(made.empty())?;
        unless_missing(folder.remove_folder(files))?;
    }
    unless_missing(folder.remove_file(marker)).map(drop)
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Removes the directory `name`, which is open as `folder`, if it is empty.
fn remove_emptied(parent: &Folder, name: &str, folder: &Folder) -> io::Result<bool> {
    // The directory that was locked must be the one that the name still stands for: it may have
    // been renamed, and the name be another's by now. Of that, only an empty one could be removed.
    if parent.about_file(OsStr::new(name))?.identity != folder.about()?.identity {
        return Ok(false);
    }
    parent.remove_folder(OsStr::new(name))?;
    Ok(true)
}

/// Opens a directory of this user's that nobody else may enter; `None` if it is none.
fn open_own(parent: &Folder, name: &str) -> io::Result<Option<Folder>> {
    let folder = parent.subfolder(OsStr::new(name))?;
    let found = folder.about()?;
    let own = found.owner == effective_user() && found.mode & OTHERS == 0;
    Ok(own.then_some(folder))
}

/// Whether a directory could not be opened because there is none of that name.
fn is_something_else(e: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    // With O_DIRECTORY, the kernel tells a link as ENOTDIR.
    matches!(e.kind(), NotFound | NotADirectory)
}

/// Whether a name looks like those that this file gives.
fn is_own_form(name: &str) -> bool {
    let rest = name.strip_prefix(&prefix()).and_then(|rest| rest.split_once('-'));
    rest.is_some_and(|(pid, number)| {
        !pid.is_empty()
            && pid.bytes().all(|b| b.is_ascii_digit())
            && number.len() == 16
            && number.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// The head of every name: a user's leftovers are that user's to clear away.
fn prefix() -> String {
    format!("wakescope-load-{}-", effective_user())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use wakescope_testing::Folder;

    use super::*;

    /// A name as this file gives them.
    fn own_name(number: u64) -> String {
        format!("{}{number}-{number:016x}", prefix())
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn leftover(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        fs::create_dir_all(path.join("files/a")).unwrap();
        mode(&path, MODE);
        fs::write(path.join("files/a/b"), "x").unwrap();
        fs::write(path.join(MARKER), "").unwrap();
        path
    }

    #[test]
    fn a_directory_in_use_is_left_alone_and_goes_with_its_user() {
        let dir = Folder::new("in-use");
        let scratch = Scratch::create(&dir).unwrap();
        let path = dir.join(&scratch.name);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(is_own_form(name), "{name}");
        fs::write(path.join("files/file"), "x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(clean_up_leftovers(&dir), 0);
        assert!(path.join("files/file").exists());
        drop(scratch);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_of_which_others_removed_a_part_goes_with_its_user() {
        for removed in [
            &[MARKER][..],
            &["files/file"],
            &["files/file", "files"],
            &["files/file", "files", MARKER],
        ] {
            let dir = Folder::new("part");
            let scratch = Scratch::create(&dir).unwrap();
            let path = dir.join(&scratch.name);
            fs::write(path.join("files/file"), "x").unwrap();
            for name in removed {
                let path = path.join(name);
                fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
            }
            drop(scratch);
            assert!(!path.exists(), "{removed:?}");
        }
    }

    #[test]
    fn leftovers_go_and_nothing_else() {
        let dir = Folder::new("leftovers");
        leftover(&dir, &own_name(1));
        leftover(&dir, &own_name(2));
        fs::create_dir(dir.join(own_name(3))).unwrap();
        mode(&dir.join(own_name(3)), MODE);
        let open_to_all = leftover(&dir, &own_name(4));
        mode(&open_to_all, 0o755);
        let file = dir.join(own_name(5));
        fs::write(&file, "x").unwrap();
        let target = leftover(&dir, "somebody's");
        let link = dir.join(own_name(6));
        symlink(&target, &link).unwrap();
        // One of this user's that somebody has given such a name.
        let renamed = leftover(&dir, &own_name(7));
        fs::remove_file(renamed.join(MARKER)).unwrap();
        let other_user = leftover(&dir, "wakescope-load-4294967294-6-0000000000000006");
        let other_form = leftover(&dir, &format!("{}photos", prefix()));
        // What was put beside the load's own files stays, and so does the directory.
        let added = leftover(&dir, &own_name(8));
        fs::write(added.join("added"), "x").unwrap();
        assert_eq!(clean_up_leftovers(&dir), 3);
        assert_eq!(clean_up_leftovers(&dir), 0);
        for kept in [
            file,
            link,
            open_to_all.join("files/a/b"),
            target.join("files/a/b"),
            renamed.join("files/a/b"),
            other_user.join("files/a/b"),
            other_form.join("files/a/b"),
            added.join("added"),
        ] {
            assert!(fs::symlink_metadata(&kept).is_ok(), "{} is gone", kept.display());
        }
    }

    #[test]
    fn a_link_inside_a_leftover_is_not_followed() {
        let dir = Folder::new("inside");
        let target = dir.join("somebody's");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("treasure"), "x").unwrap();
        symlink(&target, leftover(&dir, &own_name(1)).join("files/link")).unwrap();
        let files = leftover(&dir, &own_name(2)).join("files");
        fs::remove_dir_all(&files).unwrap();
        symlink(&target, &files).unwrap();
        assert_eq!(clean_up_leftovers(&dir), 1);
        assert!(target.join("treasure").exists());
    }

    #[test]
    fn what_takes_a_directorys_name_is_not_touched() {
        let dir = Folder::new("taken");
        let scratch = Scratch::create(&dir).unwrap();
        let (path, away) = (dir.join(&scratch.name), dir.join("away"));
        fs::write(path.join("files/file"), "x").unwrap();
        fs::rename(&path, &away).unwrap();
        fs::create_dir_all(path.join("files")).unwrap();
        fs::write(path.join("files/treasure"), "x").unwrap();
        fs::write(path.join(MARKER), "").unwrap();
        drop(scratch);
        assert!(path.join("files/treasure").exists());
        assert_eq!(fs::read_dir(away).unwrap().count(), 0, "its own files are left");
    }

    #[test]
    fn no_directory_is_no_leftover() {
        assert_eq!(clean_up_leftovers(Path::new("/does/not/exist")), 0);
        assert!(Scratch::create(Path::new("/does/not/exist")).is_err());
    }
}
