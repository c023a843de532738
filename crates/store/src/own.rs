//! Folders and files that are executed or believed: nobody but root and this user may have put them
//! there, or be able to change them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use wakescope_sys::file::effective_user;
use wakescope_sys::folder::{About, Folder, Kind};

use crate::trust::{Refused, others_may_write};

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// Folders in folders; a kernel's modules have ten.
const MOST_DEPTH: u32 = 40;

/// For folders whose content is executed or believed, whatever the umask says.
const FOLDER_MODE: u32 = 0o755;

/// Why a folder or file is not used.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// Another user controls it.
    #[error("cannot trust {}: {why}", .path.display())]
    Refused {
        /// The folder or file; it may lie above the one that was asked for.
        path: PathBuf,
        /// How the other user controls it.
        why: Refused,
    },
    /// It could not be looked at.
    #[error("cannot open {}: {source}", .path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Opens the folder at `path`, which must be absolute. Every folder on the way to it, and what its
/// links lead through, is opened and looked at, so that afterwards nobody else can put another folder
/// in its place. `None` if there is none; what there is of the way to it is safe then.
///
/// The user who called `sudo` is somebody else here: what is below may run as root.
pub fn open_own_folder(path: &Path) -> Result<Option<Folder>, OwnError> {
    match Way::new(path)?.walk(false)? {
        Some((Found::Folder(folder), at)) => {
            check(&folder.about().map_err(not_opened(&at))?, &at)?;
            Ok(Some(folder))
        }
        Some((Found::Other(kind), at)) => refused(&at, Refused::NoFolder(kind)),
        None => Ok(None),
    }
}

/// Makes the folder at `path`, with all above it that is missing, unless it is there. The same is
/// asked of it as by [`open_own_folder`].
pub fn make_own_folder(path: &Path) -> Result<(), OwnError> {
    match Way::new(path)?.walk(true)? {
        Some((Found::Folder(folder), at)) => check(&folder.about().map_err(not_opened(&at))?, &at),
        Some((Found::Other(kind), at)) => refused(&at, Refused::NoFolder(kind)),
        None => Err(not_opened(path)(io::ErrorKind::NotFound.into())),
    }
}

/// Fails unless all that lies at `path` is this user's own or root's and writable by nobody else:
/// a file; or a folder with all in it, but for names that `skip` picks, which nobody must use. What
/// links lead to is looked at, too. A `path` that leads nowhere is fine.
pub fn check_own(path: &Path, skip: &dyn Fn(&OsStr) -> bool) -> Result<(), OwnError> {
    Tree { skip, seen: BTreeSet::new() }.check_path(path, 0)
}

/// Fails unless only root and this user can change what is at `path`.
fn check(found: &About, path: &Path) -> Result<(), OwnError> {
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

/// Fails unless others can neither exchange this user's and root's files in a folder on the way, nor
/// the folder itself: in one with the sticky bit they can exchange only their own.
fn judge_above(found: &About, user: u32, owner_of_all: u32) -> Result<(), Refused> {
    const STICKY: u32 = 0o1000;
    if ![0, user, owner_of_all].contains(&found.owner) {
        return Err(Refused::ForeignFolder(found.owner));
    }
    if others_may_write(found) && found.mode & STICKY == 0 {
        return Err(Refused::OpenFolder(found.mode));
    }
    Ok(())
}

fn refused<T>(path: &Path, why: Refused) -> Result<T, OwnError> {
    Err(OwnError::Refused { path: path.into(), why })
}

fn not_opened(path: &Path) -> impl Fn(io::Error) -> OwnError + use<'_> {
    move |source| OwnError::Io { path: path.into(), source }
}

/// What a path leads to.
enum Found {
    Folder(Folder),
    Other(Kind),
}

/// A path that is walked from `/`, name by name, along open folders.
struct Way {
    folder: Folder,
    at: PathBuf,
    /// Names that remain, the next one last.
    remaining: Vec<OsString>,
    links: u32,
    /// Who owns `/` controls all that this process sees. In a user namespace that does not have root
    /// of the host, that is everybody whom it does not have.
    owner_of_all: u32,
}

impl Way {
    fn new(path: &Path) -> Result<Self, OwnError> {
        let root = Path::new("/");
        let open = || {
            let folder = Folder::open(root)?;
            let owner_of_all = folder.about()?.owner;
            Ok(Self { folder, at: root.into(), remaining: Vec::new(), links: 0, owner_of_all })
        };
        if !path.is_absolute() {
            return Err(not_opened(path)(io::ErrorKind::InvalidInput.into()));
        }
        let mut way = open().map_err(not_opened(root))?;
        way.push(path);
        Ok(way)
    }

    /// Puts the names of `path` before those that remain.
    fn push(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.remaining.push(name.into()),
                Component::ParentDir => self.remaining.push("..".into()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    /// Goes to the end; `make` makes folders that are missing. `None` if something is missing.
    fn walk(mut self, make: bool) -> Result<Option<(Found, PathBuf)>, OwnError> {
        self.check_folder()?;
        while let Some(name) = self.remaining.pop() {
            let next = if name == ".." {
                self.at.parent().unwrap_or(Path::new("/")).to_path_buf()
            } else {
                self.at.join(&name)
            };
            let failed = |e| not_opened(&next)(e);
            let found = match self.folder.about_file(&name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && make => {
                    match self.folder.make(&name, FOLDER_MODE) {
                        // Another lab that begins now has made it. It is checked like any other.
                        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                        other => other.map_err(failed)?,
                    }
                    self.folder.about_file(&name).map_err(failed)?
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
                other => other.map_err(failed)?,
            };
            match found.kind {
                Kind::Folder => {
                    self.folder = self.folder.pass(&name).map_err(failed)?;
                    self.at = next;
                    if !self.remaining.is_empty() {
                        self.check_folder()?;
                    }
                }
                Kind::Link => self.follow(&name, &found, &next)?,
                kind if self.remaining.is_empty() => {
                    check(&found, &next)?;
                    return Ok(Some((Found::Other(kind), next)));
                }
                kind => return refused(&next, Refused::NoFolder(kind)),
            }
        }
        Ok(Some((Found::Folder(self.folder), self.at)))
    }

    fn follow(&mut self, name: &OsStr, link: &About, at: &Path) -> Result<(), OwnError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return refused(at, Refused::Links);
        }
        if ![0, effective_user(), self.owner_of_all].contains(&link.owner) {
            return refused(at, Refused::ForeignLink(link.owner));
        }
        let target = self.folder.read_link(name).map_err(not_opened(at))?;
        if target.is_absolute() {
            self.folder = Folder::open(Path::new("/")).map_err(not_opened(Path::new("/")))?;
            self.at = "/".into();
        }
        self.push(&target);
        Ok(())
    }

    fn check_folder(&self) -> Result<(), OwnError> {
        let found = self.folder.about().map_err(not_opened(&self.at))?;
        match judge_above(&found, effective_user(), self.owner_of_all) {
            Ok(()) => Ok(()),
            Err(why) => refused(&self.at, why),
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
    fn check_path(&mut self, path: &Path, depth: u32) -> Result<(), OwnError> {
        match Way::new(path)?.walk(false)? {
            Some((Found::Folder(folder), at)) => self.check_folder(&folder, &at, depth),
            Some((Found::Other(_), _)) | None => Ok(()),
        }
    }

    fn check_folder(&mut self, folder: &Folder, at: &Path, depth: u32) -> Result<(), OwnError> {
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
