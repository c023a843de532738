//! Folders and files that are executed or believed: nobody but root and this user may have put them
//! there, or be able to change them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use wakescope_sys::file::effective_user;
use wakescope_sys::folder::{About, Folder, Kind};
use wakescope_sys::trust::{Refused, others_may_write};
use wakescope_sys::way::{Asked, Stop, Way, WayError, not_opened};

/// Folders in folders; a kernel's modules have ten.
const MOST_DEPTH: u32 = 40;

/// For folders whose content is executed or believed, whatever the umask says.
const FOLDER_MODE: u32 = 0o755;

/// Opens the folder at `path`, which must be absolute. Every folder on the way to it, and what its
/// links lead through, is opened and looked at, so that afterwards nobody else can put another folder
/// in its place. `None` if there is none; what there is of the way to it is safe then.
///
/// The user who called `sudo` is somebody else here: what is below may run as root.
pub fn open_own_folder(path: &Path) -> Result<Option<Folder>, WayError> {
    own_folder(path, false)
}

/// Makes the folder at `path`, with all above it that is missing, unless it is there. The same is
/// asked of it as by [`open_own_folder`].
pub fn make_own_folder(path: &Path) -> Result<(), WayError> {
    let made = own_folder(path, true)?;
    made.map(drop).ok_or_else(|| not_opened(path)(io::ErrorKind::NotFound.into()))
}

fn own_folder(path: &Path, make: bool) -> Result<Option<Folder>, WayError> {
    match walk(path, make)? {
        Some((Found::Folder(folder), at)) => {
            check(&folder.about().map_err(not_opened(&at))?, &at)?;
            Ok(Some(folder))
        }
        Some((Found::Other(kind), at)) => refused(&at, Refused::NoFolder(kind)),
        None => Ok(None),
    }
}

/// Fails unless all that lies at `path` is this user's own or root's and writable by nobody else:
/// a file; or a folder with all in it, but for names that `skip` picks, which nobody must use. What
/// links lead to is looked at, too. A `path` that leads nowhere is fine.
pub fn check_own(path: &Path, skip: &dyn Fn(&OsStr) -> bool) -> Result<(), WayError> {
    Tree { skip, seen: BTreeSet::new() }.check_path(path, 0)
}

/// Fails unless only root and this user can change what is at `path`.
fn check(found: &About, path: &Path) -> Result<(), WayError> {
    match judge(found, effective_user()) {
        Ok(()) => Ok(()),
        Err(why) => refused(path, why),
    }
}

fn judge(found: &About, user: u32) -> Result<(), Refused> {
    let is_folder = found.kind == Kind::Folder;
    if !is_folder && found.kind != Kind::File {
        return Err(Refused::Kind(found.kind));
    }
    match (found.owner == 0 || found.owner == user, others_may_write(found)) {
        (true, false) => Ok(()),
        (false, _) if is_folder => Err(Refused::ForeignFolder(found.owner)),
        (false, _) => Err(Refused::ForeignFile(found.owner)),
        (true, true) if is_folder => Err(Refused::OpenFolder(found.mode)),
        (true, true) => Err(Refused::OpenFile(found.mode)),
    }
}

fn refused<T>(path: &Path, why: Refused) -> Result<T, WayError> {
    Err(WayError::Refused { path: path.into(), why })
}

/// What a path leads to.
enum Found {
    Folder(Folder),
    Other(Kind),
}

/// Goes to the end of a path, which must be absolute; `make` makes folders that are missing. `None` if
/// something is missing.
fn walk(path: &Path, make: bool) -> Result<Option<(Found, PathBuf)>, WayError> {
    if !path.is_absolute() {
        return Err(not_opened(path)(io::ErrorKind::InvalidInput.into()));
    }
    let mut way = Way::new(path, Asked::Folders)?;
    loop {
        match way.go_on()? {
            Stop::End => {
                let at = way.path().to_path_buf();
                return Ok(Some((Found::Folder(way.into_folder()), at)));
            }
            Stop::Missing(name) if make => {
                match way.folder().make(&name, FOLDER_MODE) {
                    // Another lab that begins now has made it. It is checked like any other.
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                    other => other.map_err(|e| way.failed(&name, e))?,
                }
                way.again(name);
            }
            Stop::Missing(_) => return Ok(None),
            Stop::Other(name, found) if way.is_at_end() => {
                let at = way.path_of(&name);
                check(&found, &at)?;
                return Ok(Some((Found::Other(found.kind), at)));
            }
            Stop::Other(name, found) => {
                return refused(&way.path_of(&name), Refused::NoFolder(found.kind));
            }
        }
    }
}

/// All that lies at a path.
struct Tree<'a> {
    skip: &'a dyn Fn(&OsStr) -> bool,
    /// Folders that were looked at, for links can lead in circles.
    seen: BTreeSet<(u64, u64)>,
}

impl Tree<'_> {
    fn check_path(&mut self, path: &Path, depth: u32) -> Result<(), WayError> {
        match walk(path, false)? {
            Some((Found::Folder(folder), at)) => self.check_folder(&folder, &at, depth),
            Some((Found::Other(_), _)) | None => Ok(()),
        }
    }

    fn check_folder(&mut self, folder: &Folder, at: &Path, depth: u32) -> Result<(), WayError> {
        let found = folder.about().map_err(not_opened(at))?;
        check(&found, at)?;
        if !self.seen.insert(found.identity) {
            return Ok(());
        }
        if depth == MOST_DEPTH {
            return Err(not_opened(at)(io::Error::other("it lies too deep")));
        }
        for name in folder.names().map_err(not_opened(at))? {
            if (self.skip)(&name) {
                continue;
            }
            let path = at.join(&name);
            let found = match folder.about_file(&name) {
                // Another process has just removed it.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(not_opened(&path))?,
            };
            match found.kind {
                Kind::Folder => match folder.pass(&name) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    other => {
                        let inner = other.map_err(not_opened(&path))?;
                        self.check_folder(&inner, &path, depth + 1)?;
                    }
                },
                Kind::Link => self.check_path(&path, depth + 1)?,
                _ => check(&found, &path)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
