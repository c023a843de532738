//! Landlock: what a process may open from now on, whoever it is (Linux 5.13).

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::checked;

/// A right to files. Numbers of include/uapi/linux/landlock.h.
pub const EXECUTE: u64 = 1 << 0;
/// To write into files.
pub const WRITE_FILE: u64 = 1 << 1;
/// To read files.
pub const READ_FILE: u64 = 1 << 2;
/// To list folders.
pub const READ_FOLDER: u64 = 1 << 3;
/// To make and remove files, folders and links of any kind.
pub const CHANGE_FOLDER: u64 = 0b1_1111_1111 << 4;
/// To move files into other folders; from version 2 on.
pub const REFER: u64 = 1 << 13;
/// To cut files; from version 3 on.
pub const TRUNCATE: u64 = 1 << 14;

/// To listen and to connect by TCP; from version 4 on.
pub const TCP: u64 = 0b11;

/// To reach abstract Unix sockets and signal processes outside; from version 6 on.
pub const REACH_OUT: u64 = 0b11;

/// What is forbidden unless a rule allows it. In the layout of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// Rights to files.
    pub files: u64,
    /// Rights to the network.
    pub network: u64,
    /// Rights to reach what runs outside.
    pub scope: u64,
}

/// Rules that a process can be put under.
#[derive(Debug)]
pub struct Rules(OwnedFd);

/// The version of Landlock here; an error where there is none.
pub fn version() -> io::Result<u32> {
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<Forbidden>();
    // SAFETY: with this flag the kernel reads no memory.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

impl Rules {
    /// Rules that allow nothing of what is `forbidden`. Fails where the kernel knows less.
    pub fn new(forbidden: &Forbidden) -> io::Result<Self> {
        // An older kernel takes the longer form only if what it does not know is zero.
        let size = mem::size_of::<Forbidden>();
        let attributes: *const Forbidden = forbidden;
        // SAFETY: the structure is live and has this size.
        let fd =
            unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attributes, size, 0_u32) };
        let fd = libc::c_int::try_from(fd).ok().filter(|&fd| fd >= 0);
        let fd = fd.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the call gave a descriptor that nobody else has.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Allows rights to `file`; if it is a folder, to all below it.
    pub fn allow(&self, file: &File, rights: u64) -> io::Result<()> {
        const PATH_BENEATH: libc::c_uint = 1;
        /// In the layout of the kernel.
        #[repr(C, packed)]
        struct Beneath {
            allowed: u64,
            parent: i32,
        }
        let rule = Beneath { allowed: rights, parent: file.as_raw_fd() };
        let rule: *const Beneath = &raw const rule;
        let fd = self.0.as_raw_fd();
        // SAFETY: both descriptors are open, and the structure is live.
        let rc =
            unsafe { libc::syscall(libc::SYS_landlock_add_rule, fd, PATH_BENEATH, rule, 0_u32) };
        checked(rc).map(drop)
    }
}

impl AsRawFd for Rules {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
