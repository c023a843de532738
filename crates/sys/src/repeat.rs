//! One long read that needs little memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Reads into `bytes` up to 1,024 times in one system call, each time over what was read before.
/// Returns how many bytes were read in all.
pub fn read_over(file: &File, bytes: &mut [u8], times: usize) -> io::Result<usize> {
    let part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let parts = vec![part; times.min(1024)];
    let count = libc::c_int::try_from(parts.len()).unwrap_or(1024);
    // SAFETY: `parts` is live and holds `count` entries, all of them `bytes`, which is borrowed
    // exclusively for the call. That the kernel writes there more than once is no matter: any byte
    // is a value of u8.
    let read = unsafe { libc::readv(file.as_raw_fd(), parts.as_ptr(), count) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_memory_is_read_over() {
        let zero = File::open("/dev/zero").unwrap();
        let mut bytes = [1; 100];
        assert_eq!(read_over(&zero, &mut bytes, 30).unwrap(), 3000);
        assert_eq!(bytes, [0; 100]);
        assert_eq!(read_over(&zero, &mut bytes, 2000).unwrap(), 102_400);
    }
}
