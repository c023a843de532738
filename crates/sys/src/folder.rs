//! Folders held open: what lies in one is reached by its name, whatever becomes of the path.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::checked;

/// An open folder. Names given to it are single names, not paths, and links by these names are
/// never followed.
#[derive(Debug)]
pub struct Folder(File);

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

/// What the kernel knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What it is.
    pub kind: Kind,
    /// Its owner's number.
    pub owner: u32,
    /// Its group's number.
    pub group: u32,
    /// Its permissions, with the sticky bit.
    pub mode: u32,
    /// How many names it has.
    pub names: u64,
    /// How long it is, bytes.
    pub length: u64,
    /// By what it is known from every other file: the file system's number and its own.
    pub identity: (u64, u64),
}

/// What a new name is to do with a file that has it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// Replace it.
    Over,
    /// Fail. Not every file system can do this.
    New,
    /// Exchange names with it. Not every file system can do this.
    Exchange,
}

impl About {
    /// What is known of an open file.
    pub fn of(found: &Metadata) -> Self {
        Self {
            kind: kind_of(found.mode()),
            owner: found.uid(),
            group: found.gid(),
            mode: found.mode() & 0o7777,
            names: found.nlink(),
            length: found.size(),
            identity: (found.dev(), found.ino()),
        }
    }
}

fn kind_of(mode: u32) -> Kind {
    match mode & libc::S_IFMT {
        libc::S_IFDIR => Kind::Folder,
        libc::S_IFLNK => Kind::Link,
        libc::S_IFIFO => Kind::Fifo,
        libc::S_IFSOCK => Kind::Socket,
        libc::S_IFCHR => Kind::CharacterDevice,
        libc::S_IFBLK => Kind::BlockDevice,
        _ => Kind::File,
    }
}

impl Folder {
    /// Opens the folder at `path`, which may be a link to one.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, 0)
    }

    /// The same, also of a folder that this user may not list: to go on to what is in it.
    pub fn open_to_pass(path: &Path) -> io::Result<Self> {
        Self::open_with(path, libc::O_PATH)
    }

    fn open_with(path: &Path, flags: libc::c_int) -> io::Result<Self> {
        // Of an empty path, as the parent of a bare name is, the current folder is meant.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | flags).open(path).map(Self)
    }

    /// The same folder once more, for another owner.
    ///
    /// # Errors
    /// If this process has too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits until the disk has the names in it.
    ///
    /// # Errors
    /// If the disk fails; `InvalidInput` if the file system cannot say.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Opens a folder in this one.
    pub fn subfolder(&self, name: &OsStr) -> io::Result<Self> {
        self.open_at(name, libc::O_RDONLY | libc::O_DIRECTORY, 0).map(Self)
    }

    /// Opens a folder in this one, also one that this user may not list: to go on to what is in it.
    pub fn pass(&self, name: &OsStr) -> io::Result<Self> {
        self.open_at(name, libc::O_PATH | libc::O_DIRECTORY, 0).map(Self)
    }

    /// Makes a folder in this one.
    pub fn make(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let name = c_name(name)?;
        // SAFETY: the descriptor is open for as long as `self` lives; the name ends in NUL.
        checked(unsafe { libc::mkdirat(self.fd(), name.as_ptr(), mode) }).map(drop)
    }

    /// Makes a file of this name, to be written. Fails if there is anything of this name.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        self.open_at(name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, mode)
    }

    /// Opens a file to write into it, without waiting for a reader of a FIFO.
    pub fn open_to_write(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOCTTY, 0)
    }

    /// Opens a file to read, without waiting for a writer of a FIFO.
    pub fn open_to_read(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY, 0)
    }

    fn open_at(&self, name: &OsStr, flags: libc::c_int, mode: u32) -> io::Result<File> {
        let name = c_name(name)?;
        let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the descriptor is open for as long as `self` lives; the name ends in NUL.
        let fd = checked(unsafe { libc::openat(self.fd(), name.as_ptr(), flags, mode) })?;
        // SAFETY: the call gave a descriptor that nobody else has.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
    }

    /// What is known of this folder.
    pub fn about(&self) -> io::Result<About> {
        self.0.metadata().map(|found| About::of(&found))
    }

    /// What is known of the file of this name; of a link, not of what it leads to.
    pub fn about_file(&self, name: &OsStr) -> io::Result<About> {
        let name = c_name(name)?;
        // SAFETY: `stat` is plain integers, for which zero is a value.
        let mut found: libc::stat = unsafe { std::mem::zeroed() };
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: the descriptor is open, the name ends in NUL, and `found` is live and writable.
        checked(unsafe { libc::fstatat(self.fd(), name.as_ptr(), &raw mut found, flags) })?;
        // The widths of these fields depend on the target.
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
        Ok(About {
            kind: kind_of(found.st_mode),
            owner: found.st_uid,
            group: found.st_gid,
            mode: found.st_mode & 0o7777,
            names: found.st_nlink as u64,
            length: u64::try_from(found.st_size).unwrap_or(0),
            identity: (found.st_dev as u64, found.st_ino as u64),
        })
    }

    /// Its path at present, as the kernel knows it.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn present_path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.fd()))
    }

    /// Where a link leads.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let name = c_name(name)?;
        let mut target = vec![0_u8; 4096];
        // SAFETY: the descriptor is open, the name ends in NUL, and the buffer has this length.
        let length = unsafe {
            libc::readlinkat(self.fd(), name.as_ptr(), target.as_mut_ptr().cast(), target.len())
        };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        target.truncate(length);
        Ok(OsString::from_vec(target).into())
    }

    /// Gives a file of this folder another name in it.
    pub fn rename(&self, from: &OsStr, to: &OsStr, how: Rename) -> io::Result<()> {
        let (from, to) = (c_name(from)?, c_name(to)?);
        let flags = match how {
            Rename::Over => 0,
            Rename::New => libc::RENAME_NOREPLACE,
            Rename::Exchange => libc::RENAME_EXCHANGE,
        };
        let fd = self.fd();
        // SAFETY: the descriptor is open, and both names are live and end in NUL.
        let rc = unsafe {
            libc::syscall(libc::SYS_renameat2, fd, from.as_ptr(), fd, to.as_ptr(), flags)
        };
        checked(rc).map(drop)
    }

    /// Removes the name of what is no folder.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, 0)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        self.unlink(name, libc::AT_REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
        let name = c_name(name)?;
        // SAFETY: the descriptor is open for as long as `self` lives; the name ends in NUL.
        checked(unsafe { libc::unlinkat(self.fd(), name.as_ptr(), flags) }).map(drop)
    }

    /// Removes all that is in this folder: whatever is a link is removed as such. Others may remove some of it
    /// meanwhile.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the folder itself was removed, and whatever else keeps it from being emptied.
    pub fn empty(&self) -> io::Result<()> {
        for name in self.names()? {
            match self.remove(&name) {
                // Somebody else was faster.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Removes a file, or a folder with all that is in it.
    fn remove(&self, name: &OsStr) -> io::Result<()> {
        match self.remove_file(name) {
            Err(e) if e.raw_os_error() == Some(libc::EISDIR) => {}
            other => return other,
        }
        match self.subfolder(name)?.empty() {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => self.remove_folder(name),
        }
    }

    /// All names in this folder, in the order in which the file system gives them.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        // A description of its own: reading moves the position in it.
        let own = self.open_at(OsStr::new("."), libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        let fd = own.into_raw_fd();
        // SAFETY: the descriptor is open and nobody else's; on success the stream owns it.
        let stream = unsafe { libc::fdopendir(fd) };
        if stream.is_null() {
            let cause = io::Error::last_os_error();
            // SAFETY: it was not taken over, so it is still this function's.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
            return Err(cause);
        }
        let names = read_names(stream);
        // SAFETY: the stream is open, and not used any more.
        unsafe { libc::closedir(stream) };
        names
    }

    /// Makes this folder the one that relative paths of this process begin at.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open for as long as `self` lives.
        checked(unsafe { libc::fchdir(self.fd()) }).map(drop)
    }

    /// The folder as a file, to lock it or to force it onto the disk.
    pub fn as_file(&self) -> &File {
        &self.0
    }

    fn fd(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}

fn read_names(stream: *mut libc::DIR) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    loop {
        // SAFETY: each thread has an `errno`, which is an integer. An end and an error differ by it
        // only.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: the stream is open and used by this thread only.
        let entry = unsafe { libc::readdir(stream) };
        if entry.is_null() {
            let cause = io::Error::last_os_error();
            return if cause.raw_os_error() == Some(0) { Ok(names) } else { Err(cause) };
        }
        // SAFETY: the entry is valid until the next call; its name ends in NUL.
        let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) }.to_bytes();
        if ![b".".as_slice(), b".."].contains(&name) {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
}

/// A single name. `..` is one, as it is for the kernel.
fn c_name(name: &OsStr) -> io::Result<CString> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.contains(&b'/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    CString::new(bytes).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of the test's own, and where it is.
    fn place(test: &str) -> (Folder, wakescope_testing::Folder) {
        let path = wakescope_testing::Folder::new(test);
        (Folder::open(&path).unwrap(), path)
    }

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn links_are_seen_and_never_followed() {
        let (folder, path) = place("links");
        fs::write(path.join("treasure"), "x").unwrap();
        symlink("treasure", path.join("link")).unwrap();
        symlink("nowhere", path.join("dangling")).unwrap();
        symlink(".", path.join("here")).unwrap();
        assert_eq!(folder.about_file(name("link")).unwrap().kind, Kind::Link);
        assert_eq!(folder.read_link(name("link")).unwrap(), Path::new("treasure"));
        for link in ["link", "dangling"] {
            let taken = folder.create(name(link), 0o600).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists, "{link}");
            assert!(folder.open_to_write(name(link)).is_err(), "{link}");
            assert!(folder.open_to_read(name(link)).is_err(), "{link}");
        }
        assert!(folder.subfolder(name("here")).is_err());
        assert!(!path.join("nowhere").exists());
    }

    #[test]
    fn a_folder_that_is_passed_leads_to_what_is_in_it() {
        let (folder, path) = place("pass");
        fs::create_dir_all(path.join("a/b")).unwrap();
        symlink("a", path.join("link")).unwrap();
        let passed = folder.pass(name("a")).unwrap();
        assert_eq!(passed.about().unwrap().kind, Kind::Folder);
        assert_eq!(passed.names().unwrap(), ["b"]);
        passed.pass(name("b")).unwrap().make(name("c"), 0o700).unwrap();
        assert!(path.join("a/b/c").is_dir());
        assert!(folder.pass(name("link")).is_err());
    }

    #[test]
    fn a_folder_that_was_moved_is_still_reached() {
        let (folder, path) = place("moved");
        folder.make(name("old"), 0o700).unwrap();
        let inner = folder.subfolder(name("old")).unwrap();
        folder.rename(name("old"), name("new"), Rename::New).unwrap();
        inner.create(name("file"), 0o600).unwrap();
        assert!(path.join("new/file").exists());
    }

    #[test]
    fn only_what_is_inside_is_emptied() {
        let (folder, path) = place("empty");
        fs::create_dir_all(path.join("in/a/b")).unwrap();
        fs::write(path.join("in/a/b/file"), "x").unwrap();
        fs::write(path.join("treasure"), "x").unwrap();
        symlink("../treasure", path.join("in/link")).unwrap();
        symlink("../..", path.join("in/a/up")).unwrap();
        folder.subfolder(name("in")).unwrap().empty().unwrap();
        assert_eq!(fs::read_dir(path.join("in")).unwrap().count(), 0);
        folder.remove_folder(name("in")).unwrap();
        assert_eq!(folder.names().unwrap(), ["treasure"]);
        assert_eq!(folder.names().unwrap(), ["treasure"], "it can be read only once");
    }

    #[test]
    fn two_may_empty_a_folder_at_once() {
        for _ in 0..20 {
            let (folder, path) = place("at-once");
            for i in 0..30 {
                let inner = path.join(format!("in/{i}/a"));
                fs::create_dir_all(&inner).unwrap();
                fs::write(inner.join("file"), "x").unwrap();
            }
            let empty = || folder.subfolder(name("in")).unwrap().empty();
            let [one, other] = std::thread::scope(|scope| {
                [scope.spawn(empty), scope.spawn(empty)].map(|thread| thread.join().unwrap())
            });
            one.and(other).unwrap();
            assert_eq!(fs::read_dir(path.join("in")).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_new_name_takes_no_other_files_place() {
        let (folder, path) = place("rename");
        for (file, text) in [("a", "of a"), ("b", "of b")] {
            fs::write(path.join(file), text).unwrap();
        }
        let taken = folder.rename(name("a"), name("b"), Rename::New).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        folder.rename(name("a"), name("b"), Rename::Exchange).unwrap();
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "of b");
        folder.rename(name("a"), name("b"), Rename::Over).unwrap();
        assert_eq!(fs::read_to_string(path.join("b")).unwrap(), "of b");
    }

    #[test]
    fn a_path_is_no_name() {
        let (folder, _path) = place("names");
        for wrong in ["", "a/b", "/", "a\0b"] {
            let refused = folder.create(name(wrong), 0o600).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{wrong:?}");
        }
    }
}
