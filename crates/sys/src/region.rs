//! Memory that this process has mapped.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// Mapped memory, unmapped when it is dropped. It begins at a page.
#[derive(Debug)]
pub(crate) struct Region {
    start: NonNull<u8>,
    length: usize,
}

impl Region {
    /// So many bytes of zeros, more than 0, for reading and writing. Only if it is `shared` have processes that are
    /// forked the same memory.
    pub(crate) fn of_zeros(length: usize, shared: bool) -> io::Result<Self> {
        let kind = if shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        Self::map(length, libc::PROT_READ | libc::PROT_WRITE, kind | libc::MAP_ANONYMOUS, -1)
    }

    /// The first bytes of `file`, so many, more than 0, with the access and of the kind that mmap(2) takes.
    pub(crate) fn of_file(
        file: BorrowedFd<'_>,
        length: usize,
        access: libc::c_int,
        kind: libc::c_int,
    ) -> io::Result<Self> {
        Self::map(length, access, kind, file.as_raw_fd())
    }

    fn map(
        length: usize,
        access: libc::c_int,
        kind: libc::c_int,
        fd: libc::c_int,
    ) -> io::Result<Self> {
        // SAFETY: the kernel chooses the place, and nothing is there yet.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, kind, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, length })
    }

    /// Where it begins. It is valid for as long as this value lives.
    #[inline]
    pub(crate) fn start<T>(&self) -> NonNull<T> {
        self.start.cast()
    }

    /// How long it is, bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made. Whoever has this value lets nobody keep a byte of it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
