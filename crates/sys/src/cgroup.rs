//! Cgroups by their numbers.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::checked;

/// `FILEID_KERNFS` of include/linux/exportfs.h, 5.5: the handle of a file is its 64-bit number.
const BY_NUMBER: libc::c_int = 0xfe;

/// `struct file_handle` with room for such a number.
#[repr(C)]
struct Handle {
    bytes: libc::c_uint,
    kind: libc::c_int,
    number: [u8; 8],
}

/// Opens the folder of the cgroup with this ID, below `mount`, a folder of that file system. What it gives
/// can be asked for its name, and nothing be read from it. Needs `CAP_DAC_READ_SEARCH`.
pub fn open_by_id(mount: BorrowedFd<'_>, id: u64) -> io::Result<File> {
    let size = u32::try_from(size_of::<u64>()).unwrap_or(8);
    let mut handle = Handle { bytes: size, kind: BY_NUMBER, number: id.to_ne_bytes() };
    // SAFETY: `handle` is live, and says how many bytes follow its head; the kernel reads these.
    let fd = checked(unsafe {
        libc::open_by_handle_at(
            mount.as_raw_fd(),
            (&raw mut handle).cast(),
            libc::O_PATH | libc::O_CLOEXEC,
        )
    })?;
    // SAFETY: the call gave a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn where_there_are_no_cgroups_none_is_opened() {
        let folder = File::open("/proc").unwrap();
        assert!(open_by_id(folder.as_fd(), 1).is_err());
    }
}
