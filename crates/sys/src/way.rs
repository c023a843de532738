//! The way to a file or folder, walked name by name along open folders, so that nobody can exchange
//! what was looked at.
//!
//! [`open_folder`] and [`open_parent`] go to the end of a path. [`Way`] is for those who make what is missing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::folder::{About, Folder, Kind};
use crate::trust::{Refused, check_exclusive, check_names, exclusive_owners};

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// What nobody else may be able to exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Each folder on the way: what is at its end is executed or believed.
    Folders,
    /// Each link on the way. Another user's folders are passed: something is made anew in them, and
    /// their owner can take it away in any case.
    Links,
}

/// Why a way is not gone on.
#[derive(Debug, thiserror::Error)]
pub enum WayError {
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

/// Where a walk stops.
#[derive(Debug)]
pub enum Stop {
    /// The path leads to the folder that the walk is in.
    End,
    /// There is nothing of this name.
    Missing(OsString),
    /// This is neither a folder nor a link.
    Other(OsString, About),
}

/// A path that is being walked.
#[derive(Debug)]
pub struct Way {
    asked: Asked,
    /// The folder that the walk is in.
    folder: Folder,
    /// Where that is, with as few links as are known.
    at: PathBuf,
    /// Names that remain, the next one last.
    remaining: Vec<OsString>,
    links: u32,
}

/// Opens the folder at `path`, in which files are to be made; an empty path is the current folder. No link
/// leads there that another user made or could exchange.
///
/// # Errors
/// `PermissionDenied` with [`Refused`] in it for such a link; what the kernel says otherwise.
pub fn open_folder(path: &Path) -> io::Result<Folder> {
    let folder = go_to(path).map_err(|e| of_path(path, e))?;
    to_list(&folder, path)
}

/// Opens the folder that the file at `path` lies in, or is to lie in, as [`open_folder`] does; that of a bare
/// name is the current folder.
///
/// # Errors
/// Those of [`open_folder`]. They are about `path`, which may lead through the link.
pub fn open_parent(path: &Path) -> io::Result<Folder> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let folder = go_to(parent).map_err(|e| of_path(path, e))?;
    to_list(&folder, parent)
}

/// The folder at the end of a path, opened to be passed.
fn go_to(path: &Path) -> Result<Folder, WayError> {
    let mut way = Way::new(path, Asked::Links)?;
    match way.go_on()? {
        Stop::End => Ok(way.folder),
        Stop::Missing(name) | Stop::Other(name, _) => {
            Err(way.failed(&name, way.why_no_folder(&name)))
        }
    }
}

/// The same folder, opened so that its names can be listed.
///
/// # Errors
/// If this user may not; and if the kernel reaches another folder at `path`. Links of /proc to folders
/// of other processes do not lead to where their text says.
pub fn to_list(folder: &Folder, path: &Path) -> io::Result<Folder> {
    let folder = folder.subfolder(OsStr::new("."))?;
    match Folder::open_to_pass(path)?.about()?.identity == folder.about()?.identity {
        true => Ok(folder),
        false => Err(Refused::Elsewhere.into()),
    }
}

/// Of an error on the way to `path`, what is said of `path` itself.
pub fn of_path(path: &Path, e: WayError) -> io::Error {
    match e {
        WayError::Refused { path: at, why: Refused::ForeignLink(owner) } if at != path => {
            Refused::ForeignWay(owner).into()
        }
        WayError::Refused { why, .. } => why.into(),
        WayError::Io { source, .. } => source,
    }
}

impl Way {
    /// Begins at `/`, or with a relative path in the current folder.
    ///
    /// # Errors
    /// If that cannot be opened.
    pub fn new(path: &Path, asked: Asked) -> Result<Self, WayError> {
        let start = Path::new(if path.is_absolute() { "/" } else { "" });
        let folder = Folder::open_to_pass(start).map_err(not_opened(start))?;
        let mut way = Self { asked, folder, at: start.into(), remaining: Vec::new(), links: 0 };
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

    /// Goes on through folders and links.
    ///
    /// # Errors
    /// If another user could exchange what is not to be exchanged, or something cannot be looked at.
    pub fn go_on(&mut self) -> Result<Stop, WayError> {
        while let Some(name) = self.remaining.pop() {
            if self.asked == Asked::Folders {
                check_exclusive(&self.folder).map_err(|e| not_safe(&self.at, e))?;
            }
            let found = match self.folder.about_file(&name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Stop::Missing(name)),
                other => other.map_err(|e| self.failed(&name, e))?,
            };
            match found.kind {
                Kind::Folder => {
                    let next = self.folder.pass(&name).map_err(|e| self.failed(&name, e))?;
                    self.enter(next, &name);
                }
                Kind::Link => self.follow(&name, &found)?,
                _ => return Ok(Stop::Other(name, found)),
            }
        }
        Ok(Stop::End)
    }

    /// Looks at this name once more: something has been made of it.
    pub fn again(&mut self, name: OsString) {
        self.remaining.push(name);
    }

    /// Goes on in a folder that has this name in the current one, which is returned.
    pub fn enter(&mut self, folder: Folder, name: &OsStr) -> Folder {
        self.at = self.path_of(name);
        std::mem::replace(&mut self.folder, folder)
    }

    /// The path of what has this name in the current folder.
    pub fn path_of(&self, name: &OsStr) -> PathBuf {
        match name == ".." && self.at.is_absolute() {
            true => self.at.parent().unwrap_or(Path::new("/")).to_path_buf(),
            false => self.at.join(name),
        }
    }

    /// The folder that the walk is in.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The same, for good.
    pub fn into_folder(self) -> Folder {
        self.folder
    }

    /// The path of the current folder.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Whether no name remains.
    pub fn is_at_end(&self) -> bool {
        self.remaining.is_empty()
    }

    /// That something could not be done with what has this name in the current folder.
    pub fn failed(&self, name: &OsStr, source: io::Error) -> WayError {
        WayError::Io { path: self.path_of(name), source }
    }

    /// Why the kernel does not let anybody go on to this name.
    pub fn why_no_folder(&self, name: &OsStr) -> io::Error {
        // If it does so by now, another process has made the folder meanwhile.
        self.folder.pass(name).err().unwrap_or(io::ErrorKind::NotFound.into())
    }

    fn follow(&mut self, name: &OsStr, link: &About) -> Result<(), WayError> {
        let at = self.path_of(name);
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(WayError::Refused { path: at, why: Refused::Links });
        }
        let target = read_link(&self.folder, name, link).map_err(|e| not_safe(&at, e))?;
        if target.is_absolute() {
            let root = Path::new("/");
            self.folder = Folder::open_to_pass(root).map_err(not_opened(root))?;
            self.at = root.into();
        }
        self.push(&target);
        Ok(())
    }
}

/// Where a link in `folder` leads, if neither another user made it nor could exchange it. The user who
/// called `sudo` is another user here.
///
/// # Errors
/// `PermissionDenied` with [`Refused`] in it otherwise.
pub fn read_link(folder: &Folder, name: &OsStr, link: &About) -> io::Result<PathBuf> {
    if !exclusive_owners()?.contains(&link.owner) {
        return Err(Refused::ForeignLink(link.owner).into());
    }
    if check_exclusive(folder).is_err() {
        return Err(Refused::ForeignLink(folder.about()?.owner).into());
    }
    check_names(link, folder)?;
    folder.read_link(name)
}

/// That what is at `path` could not be opened or looked at.
pub fn not_opened(path: &Path) -> impl Fn(io::Error) -> WayError + use<'_> {
    move |source| WayError::Io { path: path.into(), source }
}

/// An error of the rules of what is safe, or of the kernel.
fn not_safe(path: &Path, e: io::Error) -> WayError {
    match e.get_ref().and_then(|inner| inner.downcast_ref::<Refused>()) {
        Some(&why) => WayError::Refused { path: path.into(), why },
        None => WayError::Io { path: path.into(), source: e },
    }
}

#[cfg(test)]
mod tests;
