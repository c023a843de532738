//! Which folders, files and links other users control.

use std::io;
use std::path::Path;

use crate::file::effective_user;
use crate::folder::{About, Folder, Kind};

/// Why nothing is made, written or believed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The folder belongs to this other user.
    #[error("the folder belongs to user {0}, who could replace files in it")]
    ForeignFolder(u32),
    /// Others may write to the folder, whose mode this is.
    #[error("other users may write to the folder (mode {0:04o})")]
    OpenFolder(u32),
    /// The file belongs to this other user.
    #[error("the file belongs to user {0}")]
    ForeignFile(u32),
    /// Others may write to the file, whose mode this is.
    #[error("other users may write to the file (mode {0:04o})")]
    OpenFile(u32),
    /// The link belongs to this other user, or lies where others may exchange it.
    #[error("it is a symbolic link that user {0} controls")]
    ForeignLink(u32),
    /// Such a link lies on the way to it.
    #[error("its path leads through a symbolic link that user {0} controls")]
    ForeignWay(u32),
    /// The kernel follows a link of /proc to another folder than its text names.
    #[error("its path leads through a link of /proc, or changes meanwhile")]
    Elsewhere,
    /// The file has other names, and lies where others may have given it this one.
    #[error("the file has other hard links, and its folder is not safe")]
    HardLink,
    /// The file holds a run, and has the name of its record or several names.
    #[error("it is the record of a run")]
    Record,
    /// The file is what a run stores beside its record, or holds windows of a watch.
    #[error("it holds what a run or a watch has measured")]
    Measured,
    /// This is no file.
    #[error("it is {}, not a regular file", article(*.0))]
    Kind(Kind),
    /// This is no folder.
    #[error("it is {}, not a folder", article(*.0))]
    NoFolder(Kind),
    /// Something has the name of a file that is to be made.
    #[error("{} of that name already exists", article(*.0))]
    Taken(Kind),
    /// Links lead to links without an end.
    #[error("too many symbolic links")]
    Links,
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        let kind = match refused {
            Refused::Taken(_) | Refused::Record | Refused::Measured => io::ErrorKind::AlreadyExists,
            _ => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, refused)
    }
}

fn article(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "a file",
        Kind::Folder => "a folder",
        Kind::Link => "a symbolic link",
        Kind::Fifo => "a FIFO",
        Kind::Socket => "a socket",
        Kind::CharacterDevice => "a character device",
        Kind::BlockDevice => "a block device",
    }
}

/// Whether files of this user are safe: root could do anything anyway.
pub fn is_trusted_owner(owner: u32) -> bool {
    owner == 0 || owner == effective_user()
}

/// Fails unless nobody but root, this user and the user who called `sudo` can exchange or remove
/// files in `folder`. That is enough where files are made anew.
///
/// # Errors
/// `PermissionDenied` with [`Refused`] in it; what the kernel says if the folder cannot be looked at.
pub fn check_folder(folder: &Folder) -> io::Result<()> {
    let owners = [Some(0), Some(effective_user()), sudo_caller()];
    let owners: Vec<u32> = owners.into_iter().flatten().collect();
    judge(&folder.about()?, &owners).map_err(io::Error::from)
}

/// Fails unless nobody but root and this user can exchange or remove files in `folder`.
///
/// # Errors
/// `PermissionDenied` with [`Refused`] in it; what the kernel says if the folder cannot be looked at.
pub fn check_exclusive(folder: &Folder) -> io::Result<()> {
    judge(&folder.about()?, &exclusive_owners()?).map_err(io::Error::from)
}

/// Fails if another user can have given a file or link that is not theirs its name in `folder`. A hard link does
/// that, also in a folder with the sticky bit, unless `fs.protected_hardlinks` forbids it.
///
/// # Errors
/// `PermissionDenied` with [`Refused::HardLink`] in it; what the kernel says if the folder cannot be looked at.
pub fn check_names(found: &About, folder: &Folder) -> io::Result<()> {
    if found.names == 1 {
        return Ok(());
    }
    let folder = folder.about()?;
    let is_safe = judge(&folder, &exclusive_owners()?).is_ok() && !others_may_write(&folder);
    if is_safe { Ok(()) } else { Err(Refused::HardLink.into()) }
}

/// Users who could do anything anyway: root, this user, and the owner of `/`, who controls all that this
/// process sees. In a user namespace that does not have root of the host, that is everybody whom it does
/// not have.
pub(crate) fn exclusive_owners() -> io::Result<[u32; 3]> {
    let owner_of_all = Folder::open_to_pass(Path::new("/"))?.about()?.owner;
    Ok([0, effective_user(), owner_of_all])
}

/// The user who called this process by `sudo`, if it runs as root.
///
/// Their folders are where they want the result, and measuring as root often follows measuring as a
/// user. Exchanging files in them does no harm: files are made anew there and stay open. Their links
/// and files are as foreign as any, because `sudo` may allow them this one command only.
fn sudo_caller() -> Option<u32> {
    let caller = std::env::var("SUDO_UID").ok()?.parse().ok()?;
    (effective_user() == 0).then_some(caller)
}

/// Fails unless nobody but these users can exchange or remove files in `folder`: in one with the sticky
/// bit, others can exchange only their own.
fn judge(folder: &About, owners: &[u32]) -> Result<(), Refused> {
    const STICKY: u32 = 0o1000;
    if !owners.contains(&folder.owner) {
        return Err(Refused::ForeignFolder(folder.owner));
    }
    if others_may_write(folder) && folder.mode & STICKY == 0 {
        return Err(Refused::OpenFolder(folder.mode));
    }
    Ok(())
}

/// Whether the mode lets anybody write but the owner and root.
pub fn others_may_write(found: &About) -> bool {
    const OTHERS: u32 = 0o002;
    const GROUP: u32 = 0o020;
    // Many systems give each user a group of the same number, and let it write by default.
    let own_group = found.group == 0 || found.group == found.owner;
    let open = if own_group { OTHERS } else { OTHERS | GROUP };
    found.mode & open != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(owner: u32, group: u32, mode: u32, want: Result<(), Refused>) {
        let (names, length, identity) = (2, 0, (0, 0));
        let folder = About { kind: Kind::Folder, owner, group, mode, names, length, identity };
        assert_eq!(judge(&folder, &[0, 1000, 1002]), want, "{folder:?}");
    }

    #[test]
    fn a_folder_is_safe_where_others_cannot_exchange_files() {
        for owner in [0, 1000, 1002] {
            check(owner, 7, 0o755, Ok(()));
            check(owner, 7, 0o700, Ok(()));
            check(owner, 7, 0o1777, Ok(()));
            check(owner, owner, 0o775, Ok(()));
            check(owner, 7, 0o775, Err(Refused::OpenFolder(0o775)));
            check(owner, 7, 0o777, Err(Refused::OpenFolder(0o777)));
            check(owner, owner, 0o777, Err(Refused::OpenFolder(0o777)));
        }
        for mode in [0o700, 0o755, 0o777, 0o1777] {
            check(1001, 1000, mode, Err(Refused::ForeignFolder(1001)));
        }
    }
}
