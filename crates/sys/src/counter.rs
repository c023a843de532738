//! Hardware counters.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// `struct perf_event_attr` as of its first version (Linux 2.6.31), which every later kernel
/// accepts.
#[repr(C)]
#[derive(Default)]
struct EventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const _: () = assert!(size_of::<EventAttr>() == 64);

/// Opens a counter of the instructions that the calling thread executes in user space: proof that
/// there is a hardware unit that counts, and that this user may use it.
pub fn instructions() -> io::Result<File> {
    const HARDWARE: u32 = 0;
    const INSTRUCTIONS: u64 = 1;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    let attr = EventAttr {
        kind: HARDWARE,
        size: 64,
        config: INSTRUCTIONS,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..EventAttr::default()
    };
    // SAFETY: `attr` is live, of the size it states, and only read; the other arguments are
    // integers: this thread, any CPU, no group, close on exec.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attr, 0, -1, -1, CLOSE_ON_EXEC)
    };
    match i32::try_from(fd) {
        // SAFETY: the call gave a descriptor that nobody else has.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_opens_or_the_reason_is_known() {
        // No hardware unit (ENOENT, EOPNOTSUPP, ENODEV), not allowed (EACCES, EPERM), no support
        // (ENOSYS): but never a complaint about the arguments.
        if let Err(e) = instructions() {
            assert!(
                !matches!(e.raw_os_error(), Some(libc::EINVAL | libc::E2BIG | libc::EFAULT)),
                "{e}"
            );
        }
    }
}
