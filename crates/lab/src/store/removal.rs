//! Removing folders of the store, and nothing that only has such a name.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use wakescope_store::{is_trusted_owner, write_new};
use wakescope_sys::folder::{Folder, Kind};

use super::cell::RECIPE;
use super::recipe::FORMAT;

/// The file by which a folder is known to be one that the store has made. It is empty.
pub(crate) const MARKER: &str = "wakescope-cell";

/// What a recipe begins with, in so many bytes.
const HEAD_BYTES: u64 = 100;

/// Marks the folder at `path`, which was just made.
pub(super) fn mark(path: &Path) -> io::Result<()> {
    write_new(&path.join(MARKER), b"")
}

/// Removes a folder that the store has made; `true` if there is none of that name any more. What
/// was not made by the store stays, and so does what a link leads to.
pub(super) fn remove_own(path: &Path) -> io::Result<bool> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    let parent = match Folder::open(parent) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    match parent.about_file(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e),
        Ok(found) if found.kind != Kind::Folder => return Ok(false),
        Ok(_) => {}
    }
    let folder = parent.subfolder(name)?;
    if !is_own(&folder)? {
        return Ok(false);
    }
    folder.empty()?;
    parent.remove_folder(name).map(|()| true)
}

/// The same where it has to go, for something else is to have its name.
pub(super) fn make_way(path: &Path) -> io::Result<()> {
    if remove_own(path)? {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kind = fs::symlink_metadata(path)?.file_type();
    let why = if kind.is_dir() {
        format!("{name}: wakescope did not create this folder ({MARKER} is missing); move it away")
    } else {
        let is = if kind.is_symlink() { "a symbolic link" } else { "a file" };
        format!("{name} is {is}, which wakescope did not create; move it away")
    };
    Err(io::Error::other(why))
}

/// Whether the folder at `path` is one that the store has made, not a link to one.
pub(super) fn is_own_at(path: &Path) -> bool {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let own = || is_own(&Folder::open(parent)?.subfolder(name)?);
    own().unwrap_or(false)
}

/// By its marker, or by a recipe as the store writes it. One that is empty was just made, and holds
/// nothing that could be lost.
fn is_own(folder: &Folder) -> io::Result<bool> {
    if !is_trusted_owner(folder.about()?.owner) {
        return Ok(false);
    }
    let is_file = |name| folder.about_file(name).is_ok_and(|found| found.kind == Kind::File);
    let (marker, recipe) = (OsStr::new(MARKER), OsStr::new(RECIPE));
    if is_file(marker) || folder.names()?.is_empty() {
        return Ok(true);
    }
    if !is_file(recipe) {
        return Ok(false);
    }
    let mut head = Vec::new();
    folder.open_to_read(recipe)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(String::from_utf8_lossy(&head).contains(FORMAT))
}
