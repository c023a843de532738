//! Files: locks that die with their holder, exchange of names, room on the disk.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::checked;

/// Takes the lock on `file` if nobody has it. It is dropped when the file is closed by all
/// that have inherited it, so also when its holder is killed.
pub fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: the descriptor is open for as long as `file` lives.
    match checked(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(e) => Err(e),
    }
}

/// The lock on a file, which is given back when this is dropped. A program that another thread is just starting
/// has the file open as well until it is executed: a lock that only closing ends would be held for so long.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// The lock on `file`, which nobody has taken yet.
    pub fn on(file: File) -> Self {
        Self(file)
    }

    /// Takes the lock if nobody has it, as [`try_lock`].
    pub fn try_take(&self) -> io::Result<bool> {
        try_lock(&self.0)
    }

    /// The file that the lock is on.
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open. Of a lock that was not taken, nothing ends: others have theirs on a file
        // that they have opened themselves.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// Opens the directory at `path`, to look at it or lock it. Fails if it is a symbolic link.
pub fn open_directory(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// The file that this process has open under `number`, once more: both share position and flags.
pub fn duplicate(number: RawFd) -> io::Result<File> {
    // SAFETY: an integer; a number that is not open is refused.
    let fd = checked(unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the call gave a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// A copy of all of `file` in memory, which nobody can change any more and everybody can read who has
/// it: neither its folder nor its mode matters.
pub fn sealed_copy(file: &mut impl io::Read) -> io::Result<File> {
    let mut copy = file_in_memory()?;
    io::copy(file, &mut copy)?;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;
    // SAFETY: integers only.
    checked(unsafe { libc::fcntl(copy.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(copy)
}

/// An empty file in memory, which has no name and is gone when it is closed.
pub fn file_in_memory() -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string, used in /proc only.
    let fd = checked(unsafe { libc::memfd_create(c"wakescope".as_ptr(), flags) })?;
    // SAFETY: the call gave a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// Makes a FIFO that only this user may use.
pub fn make_fifo(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the string is live and ends in NUL.
    checked(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }).map(drop)
}

/// Exchanges the names of two files: at no moment is either name without a file.
pub fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    let (a, b) = (c_path(a)?, c_path(b)?);
    // SAFETY: both strings are live and end in NUL.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            a.as_ptr(),
            libc::AT_FDCWD,
            b.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    checked(rc).map(drop)
}

/// Room on the file system that holds `path`.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes that this user may still write.
    pub bytes: u64,
    /// Files that may still be created; `u64::MAX` where there is no such limit.
    pub files: u64,
    /// Whether the files are held in memory (tmpfs, ramfs).
    pub in_memory: bool,
}

/// How much room there is where `path` lies.
pub fn room(path: &Path) -> io::Result<Room> {
    let path = c_path(path)?;
    // SAFETY: the string is live and ends in NUL, and the callee writes to what it is given.
    room_by(|stat| unsafe { libc::statfs(path.as_ptr(), stat) })
}

/// How much room there is where `file` lies.
pub fn room_beside(file: &File) -> io::Result<Room> {
    // SAFETY: the descriptor is open for as long as `file` lives, and the callee writes to what it is given.
    room_by(|stat| unsafe { libc::fstatfs(file.as_raw_fd(), stat) })
}

fn room_by(ask: impl FnOnce(*mut libc::statfs) -> libc::c_int) -> io::Result<Room> {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    // SAFETY: `statfs` is plain integers, for which zero is a value.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    checked(ask(&raw mut stat))?;
    let block = u64::try_from(stat.f_bsize).unwrap_or(0);
    // The field is i64 or u32, depending on the target.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    let kind = stat.f_type as i64;
    let in_memory = kind == TMPFS || kind == RAMFS;
    // ramfs states no size at all: nothing but memory limits it.
    let unlimited = stat.f_blocks == 0;
    Ok(Room {
        bytes: if unlimited { u64::MAX } else { stat.f_bavail.saturating_mul(block) },
        files: if stat.f_files == 0 { u64::MAX } else { stat.f_ffree },
        in_memory,
    })
}

/// Keeps room on the disk for the first `bytes` of `file`, whose length stays as it is.
///
/// # Errors
/// If there is not so much room, or the file system cannot keep any (NFS).
pub fn keep_room(file: &File, bytes: u64) -> io::Result<()> {
    allocate(file, libc::FALLOC_FL_KEEP_SIZE, 0, bytes)
}

/// Gives back the room that is kept behind the end of `file`.
///
/// # Errors
/// If the file cannot be changed.
pub fn give_room_back(file: &File) -> io::Result<()> {
    let length = file.metadata()?.len();
    // To set the length, even to what it is, makes ext4, XFS and Btrfs free what is behind it.
    file.set_len(length)?;
    // tmpfs does not, but makes a hole there; where that cannot be made, the above has done.
    let rest = (i64::MAX as u64).saturating_sub(length);
    let _ = allocate(file, libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE, length, rest);
    Ok(())
}

fn allocate(file: &File, mode: libc::c_int, offset: u64, bytes: u64) -> io::Result<()> {
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let offset = libc::off_t::try_from(offset).map_err(too_large)?;
    let bytes = libc::off_t::try_from(bytes).map_err(too_large)?;
    // SAFETY: integers only, and the descriptor is open for as long as `file` lives.
    checked(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, bytes) }).map(drop)
}

/// The names of the extended attributes of `file` (xattr(7)); its ACL is one of them.
///
/// # Errors
/// What the kernel says, as where a system call filter lets nobody ask.
pub fn attributes(file: &File) -> io::Result<Vec<OsString>> {
    // As long as the kernel lets a list be (XATTR_LIST_MAX).
    let mut names = vec![0_u8; 65_536];
    // SAFETY: the descriptor is open for as long as `file` lives, and the buffer has this length.
    let length =
        unsafe { libc::flistxattr(file.as_raw_fd(), names.as_mut_ptr().cast(), names.len()) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let names = names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsStr::from_bytes(name).to_owned()).collect())
}

/// The value of the extended attribute `name` of `file`.
///
/// # Errors
/// What the kernel says, as where `file` has no such attribute.
pub fn attribute(file: &File, name: &OsStr) -> io::Result<Vec<u8>> {
    let name = c_path(Path::new(name))?;
    // As large as the kernel lets a value be (XATTR_SIZE_MAX).
    let mut value = vec![0_u8; 65_536];
    // SAFETY: the descriptor is open for as long as `file` lives, the name ends in NUL, and the buffer has this
    // length.
    let length = unsafe {
        let to = value.as_mut_ptr().cast();
        libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), to, value.len())
    };
    value.truncate(usize::try_from(length).map_err(|_| io::Error::last_os_error())?);
    Ok(value)
}

pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The user that this process acts as.
pub fn effective_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    #[test]
    fn kept_room_is_on_the_disk_and_can_be_given_back() {
        use std::os::unix::fs::MetadataExt;
        let folder = Folder::new("room");
        let path = folder.write("file", "four");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let found = || file.metadata().map(|m| (m.len(), m.blocks() * 512)).unwrap();
        let before = found();
        match keep_room(&file, 100_000) {
            Ok(()) => {
                assert!(found().0 == 4 && found().1 >= 100_000, "{:?}", found());
                give_room_back(&file).unwrap();
                file.sync_all().unwrap();
                let after = found();
                assert!(after.0 == 4 && after.1 <= before.1.max(8_192), "{before:?} {after:?}");
            }
            Err(why) => {
                let name = "kept_room_is_on_the_disk_and_can_be_given_back";
                wakescope_testing::skip(name, &why.to_string());
            }
        }
    }

    #[test]
    fn a_lock_is_exclusive_and_given_back_whoever_has_the_file_open_as_well() {
        let folder = Folder::new("lock");
        let path = folder.join("file");
        let [first, second, third] = [(); 3].map(|()| FileLock::on(File::create(&path).unwrap()));
        assert!(first.try_take().unwrap());
        assert!(!second.try_take().unwrap());
        // A lock that was not taken takes none from others.
        drop(third);
        assert!(!second.try_take().unwrap());
        // As a program has it that is being started.
        let _inherited = first.file().try_clone().unwrap();
        drop(first);
        assert!(second.try_take().unwrap());
    }

    #[test]
    fn a_sealed_copy_can_be_read_and_not_be_changed() {
        use std::io::{Read, Write};
        let mut copy = sealed_copy(&mut File::open("/proc/self/cmdline").unwrap()).unwrap();
        assert!(copy.write_all(b"x").is_err() && copy.set_len(0).is_err());
        let path = format!("/proc/self/fd/{}", copy.as_raw_fd());
        let mut read = Vec::new();
        File::open(path).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, std::fs::read("/proc/self/cmdline").unwrap());
    }

    #[test]
    fn room_is_stated() {
        assert!(room(Path::new("/")).unwrap().files > 0);
        assert!(room(Path::new("/does/not/exist")).is_err());
    }
}
