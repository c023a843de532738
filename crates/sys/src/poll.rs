//! Waiting for files.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use wakescope_core::units::SpanNs;

use crate::{checked, clock};

/// What a file is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// That it has something to read, or was closed at its other end.
    Read,
    /// That it takes something, or its reader is gone.
    Write,
    /// The same as either.
    Both,
}

/// Waits until one of `files` is ready, for `patience` at most. Which of them are: none if that time passed.
/// Returns early, with `Interrupted`, when a signal handler ran.
#[inline]
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
    let time = clock::timespec(patience.0);
    // SAFETY: N live entries, a live time, and no signal mask.
    checked(unsafe {
        libc::ppoll(entries.as_mut_ptr(), N as libc::nfds_t, &raw const time, std::ptr::null())
    })?;
    Ok(entries.map(|entry| entry.revents != 0))
}

/// Waits until `file` can be read or was closed at its other end, for `patience` at most; false if that time
/// passed, or a signal ended the wait.
#[inline]
pub fn wait_readable(file: &File, patience: SpanNs) -> io::Result<bool> {
    wait_for(file, Ready::Read, patience)
}

/// The same until it can be written, or its reader is gone.
#[inline]
pub fn wait_writable(file: &File, patience: SpanNs) -> io::Result<bool> {
    wait_for(file, Ready::Write, patience)
}

#[inline]
fn wait_for(file: &File, ready: Ready, patience: SpanNs) -> io::Result<bool> {
    match wait_any([(file.as_fd(), ready)], patience) {
        Ok([is_ready]) => Ok(is_ready),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::serial::open_pair;

    #[test]
    fn what_is_ready_is_known() {
        let (mut answering, line, _) = open_pair().unwrap();
        let long = SpanNs(60_000_000_000);
        let wait = |patience| wait_any([(line.as_fd(), Ready::Read)], patience).unwrap();
        assert_eq!(wait(SpanNs(1_000)), [false]);
        let both = [(line.as_fd(), Ready::Read), (line.as_fd(), Ready::Write)];
        assert_eq!(wait_any(both, long).unwrap(), [false, true]);
        // A terminal gives a line when it ends.
        answering.write_all(b"x\n").unwrap();
        assert_eq!(wait(long), [true]);
    }
}
