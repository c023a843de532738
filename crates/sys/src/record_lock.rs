//! Locks on ranges of a file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::{mem, ops::Range};

use crate::checked;

/// A position in a file.
pub type Offset = libc::off_t;

/// Locks `range` for writing. The lock belongs to this open file and ends with it (Linux 3.15).
pub fn lock(file: &File, range: Range<Offset>) -> io::Result<()> {
    let mut request = request(libc::F_WRLCK, range);
    // SAFETY: the descriptor is open for as long as `file` lives, `request` for the call.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut request) }).map(drop)
}

/// Unlocks `range`; what is locked around it becomes two locks.
pub fn unlock(file: &File, range: Range<Offset>) -> io::Result<()> {
    let mut request = request(libc::F_UNLCK, range);
    // SAFETY: as in `lock`.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut request) }).map(drop)
}

/// Whether this process could lock `range` for writing, in its own name and not in that of an open
/// file. The kernel compares it with every lock on the file until one stands in the way.
pub fn could_lock(file: &File, range: Range<Offset>) -> io::Result<bool> {
    let mut request = request(libc::F_WRLCK, range);
    // SAFETY: the descriptor is open for as long as `file` lives; `request` is live and writable.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut request) })?;
    Ok(i32::from(request.l_type) == libc::F_UNLCK)
}

fn request(kind: libc::c_int, range: Range<Offset>) -> libc::flock {
    // SAFETY: `flock` is plain integers, for which zero is a value. For an open file's locks the
    // process id must be 0.
    let mut request: libc::flock = unsafe { mem::zeroed() };
    // The kinds are 0 to 2, and SEEK_SET is 0.
    request.l_type = libc::c_short::try_from(kind).unwrap_or(0);
    request.l_whence = 0;
    request.l_start = range.start;
    request.l_len = range.end - range.start;
    request
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::file_in_memory;

    #[test]
    fn a_lock_can_be_split() {
        let file = file_in_memory().unwrap();
        lock(&file, 0..3).unwrap();
        unlock(&file, 1..2).unwrap();
        let free: Vec<_> = (0..4).map(|n| could_lock(&file, n..n + 1).unwrap()).collect();
        assert_eq!(free, [false, true, false, true]);
    }
}
