//! The terminal of a user: its size, and who it belongs to just now.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::checked;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::open_pair;

    #[test]
    fn a_terminal_has_a_size_and_a_group_in_the_foreground() {
        let (_answering, line, _) = open_pair().unwrap();
        assert_eq!(size(&line).unwrap(), (0, 0));
        assert!(!is_in_foreground(&line), "it is the terminal of nobody");
        assert!(size(&File::open("/dev/null").unwrap()).is_err());
    }
}
