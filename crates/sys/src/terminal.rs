//! The terminal of a user: its size, who it belongs to just now, and waiting for keys.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use wakescope_core::units::SpanNs;

use crate::checked;

const NS_PER_S: u64 = 1_000_000_000;

/// Columns and lines; 0 where they are not known.
pub fn size(terminal: &impl AsFd) -> io::Result<(u16, u16)> {
    let fd = terminal.as_fd().as_raw_fd();
    // SAFETY: `winsize` is plain integers, for which zero is a value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `winsize`, and `size` is one.
    checked(unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) })?;
    Ok((size.ws_col, size.ws_row))
}

/// Whether this process is in the group that may read keys, and not a job in the background.
pub fn is_in_foreground(terminal: &File) -> bool {
    // SAFETY: both take a descriptor or nothing.
    unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) == libc::getpgrp() }
}

/// What a file is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// That it has something to read, or was closed at its other end.
    Read,
    /// That it takes something.
    Write,
    /// The same as either.
    Both,
}

/// Waits until one of `files` is ready, for `patience` at most. Which of them are: none if that time passed.
pub fn wait_any<const N: usize>(
    files: [(BorrowedFd<'_>, Ready); N],
    patience: SpanNs,
) -> io::Result<[bool; N]> {
    let mut entries = files.map(|(file, ready)| {
        let events = match ready {
            Ready::Read => libc::POLLIN,
            Ready::Write => libc::POLLOUT,
            Ready::Both => libc::POLLIN | libc::POLLOUT,
        };
        libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 }
    });
    // The rest is below 10^9, which fits; no wait takes 2^31 seconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    let time = libc::timespec {
        tv_sec: (patience.0 / NS_PER_S).min(i32::MAX as u64) as libc::time_t,
        tv_nsec: (patience.0 % NS_PER_S) as libc::c_long,
    };
    // SAFETY: N live entries, a live time, and no signal mask.
    checked(unsafe {
        libc::ppoll(entries.as_mut_ptr(), N as libc::nfds_t, &raw const time, std::ptr::null())
    })?;
    Ok(entries.map(|entry| entry.revents != 0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::serial::open_pair;

    #[test]
    fn what_is_ready_is_known() {
        let (mut answering, line, _) = open_pair().unwrap();
        let wait = |patience| wait_any([(line.as_fd(), Ready::Read)], SpanNs(patience)).unwrap();
        assert_eq!(wait(1_000), [false]);
        let both = [(line.as_fd(), Ready::Read), (line.as_fd(), Ready::Write)];
        assert_eq!(wait_any(both, SpanNs(60 * NS_PER_S)).unwrap(), [false, true]);
        // A terminal gives a line when it ends.
        answering.write_all(b"x\n").unwrap();
        assert_eq!(wait(60 * NS_PER_S), [true]);
    }

    #[test]
    fn a_terminal_has_a_size_and_a_group_in_the_foreground() {
        let (_answering, line, _) = open_pair().unwrap();
        assert_eq!(size(&line).unwrap(), (0, 0));
        assert!(!is_in_foreground(&line), "it is the terminal of nobody");
        assert!(size(&File::open("/dev/null").unwrap()).is_err());
    }
}
