//! One call that looks at many files.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::checked;

/// Files to look at in one system call; the same file may be in it any number of times.
pub struct PollSet {
    entries: Vec<libc::pollfd>,
    file: OwnedFd,
}

impl PollSet {
    /// `count` times `file`.
    pub fn of(file: OwnedFd, count: usize) -> Self {
        let mut set = Self { entries: Vec::new(), file };
        set.resize(count);
        set
    }

    /// Takes it `count` times from now on.
    pub fn resize(&mut self, count: usize) {
        let entry = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
        self.entries.resize(count, entry);
    }

    /// Looks at all of them once, and does not wait. The kernel refuses more than this process may
    /// have open files: see [`crate::process::raise_open_files`].
    pub fn look(&mut self) -> io::Result<()> {
        let count = libc::nfds_t::try_from(self.entries.len()).unwrap_or(libc::nfds_t::MAX);
        // SAFETY: the entries are live and writable, and there are so many.
        checked(unsafe { libc::poll(self.entries.as_mut_ptr(), count, 0) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_looked_at_as_may_be_open() {
        let (reader, _writer) = crate::pipe::pipe().unwrap();
        let limit = crate::process::raise_open_files().unwrap();
        let mut set = PollSet::of(reader.into(), 100);
        set.look().unwrap();
        let too_many = usize::try_from(limit + 1).unwrap();
        if too_many < 1 << 24 {
            set.resize(too_many);
            assert!(set.look().is_err());
        }
    }
}
