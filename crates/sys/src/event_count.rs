//! Counts of events that are files (`eventfd`).

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::checked;

/// A count of 0. A write of eight bytes adds to it; a read waits until it is not 0, gives it and makes
/// it 0.
pub fn event_count() -> io::Result<File> {
    // SAFETY: numbers only.
    let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn events_are_counted_until_they_are_read() {
        let mut count = event_count().unwrap();
        count.write_all(&2_u64.to_ne_bytes()).unwrap();
        count.write_all(&3_u64.to_ne_bytes()).unwrap();
        let mut read = [0; 8];
        count.read_exact(&mut read).unwrap();
        assert_eq!(u64::from_ne_bytes(read), 5);
    }
}
