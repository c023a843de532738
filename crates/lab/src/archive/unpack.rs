//! Takes packages apart. Of what a package holds only regular files are made, in folders of the lab's
//! own; a signature says who made a package, not that it does no harm.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use wakescope_store::copy_new;
use wakescope_sys::folder::{self, Folder};

use super::tar::{Entry, Kind, Reader, TarError};

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// Folders in folders; a kernel's modules have ten.
const MOST_DEPTH: usize = 40;

/// What remains behind the end of an archive: tar fills up its last record, of 10 KiB by default.
const MOST_BEHIND: u64 = 1 << 20;

/// How much packages that are taken apart together may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// Six times as much as any kernel of Debian's, or the emulator with all that it needs.
pub(super) const LIMITS: Limits = Limits { entries: 200_000, bytes: 4 << 30 };

/// Why a package is not taken apart.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnpackError {
    /// It is no archive, or only a part of one.
    #[error(transparent)]
    Tar(#[from] TarError),
    /// No honest package holds this entry.
    #[error("{} {why}", .name.display())]
    Entry { name: PathBuf, why: &'static str },
    /// It has more entries, or more bytes, than [`LIMITS`] allow.
    #[error("it holds more than {most} {what}")]
    Limit { what: &'static str, most: u64 },
    /// This file cannot be written.
    #[error("cannot write {}: {1}", .0.display())]
    Write(PathBuf, io::Error),
}

/// Packages that are taken apart into one folder.
pub(super) struct Unpacker {
    root: Folder,
    path: PathBuf,
    /// Which files are needed.
    wanted: fn(&Path) -> bool,
    limits: Limits,
    /// Where symbolic links lie, and what they name. None is made.
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Unpacker {
    /// Packages of which the files that are `wanted` are put into the folder at `path`, which must hold
    /// nothing but what others of these have put there.
    pub(super) fn new(path: &Path, wanted: fn(&Path) -> bool, limits: Limits) -> io::Result<Self> {
        let root = Folder::open(path)?;
        Ok(Self { root, path: path.into(), wanted, limits, links: BTreeMap::new() })
    }

    /// Reads a package's files from `source`.
    pub(super) fn add(&mut self, source: impl Read) -> Result<(), UnpackError> {
        let mut source = source;
        let mut reader = Reader::new(&mut source);
        while let Some(entry) = reader.next()? {
            self.count(&entry)?;
            let name = Path::new(OsStr::from_bytes(&entry.name));
            let wrong = |why| UnpackError::Entry { name: name.into(), why };
            let place = inside(name).ok_or_else(|| wrong("leads out of the package"))?;
            if place.components().count() > MOST_DEPTH {
                return Err(wrong("lies too deep"));
            }
            if !(self.wanted)(&place) {
                continue;
            }
            match entry.kind {
                // Folders are made for what is in them.
                Kind::Folder | Kind::Other => {}
                Kind::Link => {
                    let target = PathBuf::from(OsStr::from_bytes(&entry.target));
                    self.links.insert(place, target);
                }
                Kind::File => {
                    let mut file = self.create(&place, entry.mode)?;
                    let written = reader.copy(&mut file);
                    written.map_err(|e| self.fault(&place, e))?;
                }
                Kind::HardLink => {
                    let target = inside(Path::new(OsStr::from_bytes(&entry.target)));
                    let target = target.and_then(|target| self.open(&target));
                    let mut target =
                        target.ok_or_else(|| wrong("is a link to what is not there"))?;
                    let failed = |e| UnpackError::Write(place.clone(), e);
                    let found = target.metadata().map_err(failed)?;
                    // A copy takes as much room again, of which the archive says nothing.
                    self.count_bytes(found.len())?;
                    let mut file = self.create(&place, found.permissions().mode())?;
                    io::copy(&mut target, &mut file).map_err(failed)?;
                }
            }
        }
        let behind = io::copy(&mut source.take(MOST_BEHIND), &mut io::sink());
        behind.map(drop).map_err(|e| UnpackError::Tar(e.into()))
    }

    /// Puts a second name of the file that it leads to in the place of each link, where that is a
    /// file of these packages.
    pub(super) fn finish(self) -> Result<(), UnpackError> {
        for (place, target) in &self.links {
            let Some(file) = self.resolve(place, target).filter(|path| self.open(path).is_some())
            else {
                continue;
            };
            // Of a folder or file that is there already, and below another link, nothing is made.
            let is_free = self.path.join(place).symlink_metadata().is_err();
            if !is_free || self.is_below_link(place) {
                continue;
            }
            self.folder_of(place)?;
            let (from, to) = (self.path.join(file), self.path.join(place));
            fs::hard_link(&from, &to)
                .or_else(|_| copy_new(&from, &to))
                .map_err(|e| UnpackError::Write(place.clone(), e))?;
        }
        Ok(())
    }

    fn count(&mut self, entry: &Entry) -> Result<(), UnpackError> {
        let too_many = || UnpackError::Limit { what: "files", most: LIMITS.entries };
        self.limits.entries = self.limits.entries.checked_sub(1).ok_or_else(too_many)?;
        self.count_bytes(entry.size)
    }

    fn count_bytes(&mut self, bytes: u64) -> Result<(), UnpackError> {
        let too_many = || UnpackError::Limit { what: "bytes", most: LIMITS.bytes };
        self.limits.bytes = self.limits.bytes.checked_sub(bytes).ok_or_else(too_many)?;
        Ok(())
    }

    /// Makes a file, for its owner to write only, in place of one of an earlier entry.
    fn create(&self, place: &Path, mode: u32) -> Result<File, UnpackError> {
        let failed = |e| UnpackError::Write(place.into(), e);
        if self.is_below_link(place) {
            let why = "lies below a symbolic link";
            return Err(UnpackError::Entry { name: place.into(), why });
        }
        let name = place.file_name().unwrap_or_default();
        let folder = self.folder_of(place)?;
        match folder.remove_file(name) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            _ => {}
        }
        // The emulator is started by a user who must be able to read it. Neither umask nor package
        // decide: there are no secrets in a package, nor may it hand out rights.
        let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
        let file = folder.create(name, mode).map_err(failed)?;
        file.set_permissions(Permissions::from_mode(mode)).map_err(failed)?;
        Ok(file)
    }

    /// The folder that `place` is to lie in, which is made if need be.
    fn folder_of(&self, place: &Path) -> Result<Folder, UnpackError> {
        let mut path = PathBuf::new();
        let mut folder = self.root.pass(OsStr::new("."));
        for name in place.parent().into_iter().flat_map(Path::iter) {
            path.push(name);
            folder = folder.and_then(|folder| {
                match folder.make(name, 0o755) {
                    Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                    Err(_) => {}
                    Ok(()) => {
                        let made = folder.subfolder(name)?;
                        made.as_file().set_permissions(Permissions::from_mode(0o755))?;
                    }
                }
                folder.pass(name)
            });
        }
        folder.map_err(|e| UnpackError::Write(path, e))
    }

    /// Opens a regular file of an earlier entry.
    fn open(&self, place: &Path) -> Option<File> {
        let mut folder = self.root.pass(OsStr::new(".")).ok()?;
        for name in place.parent()?.iter() {
            folder = folder.pass(name).ok()?;
        }
        let name = place.file_name()?;
        let found = folder.about_file(name).ok()?;
        (found.kind == folder::Kind::File).then(|| folder.open_to_read(name).ok())?
    }

    fn is_below_link(&self, place: &Path) -> bool {
        place.ancestors().skip(1).any(|above| self.links.contains_key(above))
    }

    /// What a link leads to, as in a system whose root these packages are.
    fn resolve(&self, place: &Path, target: &Path) -> Option<PathBuf> {
        let mut at = place.parent()?.to_path_buf();
        let mut remaining: Vec<Component<'_>> = target.components().rev().collect();
        let mut links = 0;
        while let Some(part) = remaining.pop() {
            match part {
                Component::RootDir | Component::Prefix(_) => at = PathBuf::new(),
                Component::CurDir => {}
                Component::ParentDir => drop(at.pop()),
                Component::Normal(name) => at.push(name),
            }
            if let Some(next) = self.links.get(&at) {
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                at.pop();
                remaining.extend(next.components().rev());
            }
        }
        Some(at)
    }

    /// Reading and writing are one call: which of them failed shows in the kind.
    fn fault(&self, place: &Path, e: io::Error) -> UnpackError {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => UnpackError::Tar(e.into()),
            _ => UnpackError::Write(self.path.join(place), e),
        }
    }
}

/// The path within the package that an entry's name stands for; `None` if it leads out of it.
fn inside(name: &Path) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => place.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests;
