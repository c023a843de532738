//! Pipes of a wanted size.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::checked;

/// A pipe: its end to read from and its end to write to. Programs that are started do not inherit it.
pub fn pipe() -> io::Result<(File, File)> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` is live and writable.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the call gave two descriptors that nobody else has.
    let [read, write] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    Ok((read.into(), write.into()))
}

/// Sets how many bytes `pipe` holds, and returns how many it really does: the kernel rounds up.
/// Without privileges the limit is /proc/sys/fs/pipe-max-size, by default 1 MiB.
pub fn set_size(pipe: &File, bytes: usize) -> io::Result<usize> {
    let bytes = libc::c_int::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the descriptor is open for as long as `pipe` lives; the argument is an integer.
    let size = checked(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) })?;
    Ok(usize::try_from(size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_pipe_carries_bytes_and_has_a_size() {
        let (mut read, mut write) = pipe().unwrap();
        assert!(set_size(&write, 8192).unwrap() >= 8192);
        write.write_all(b"through").unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }
}
