//! Memory barriers on the CPUs where other threads of this process run.

use std::io;

use crate::checked;

/// Commands of membarrier(2), from `linux/membarrier.h`.
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// Tells the kernel that this process will use [`interrupt_others`]. Fails with `ENOSYS` or
/// `EINVAL` where the kernel has no such barriers (before Linux 4.14, or built without them).
pub fn register() -> io::Result<()> {
    membarrier(REGISTER_PRIVATE_EXPEDITED)
}

/// Waits until each CPU that runs another thread of this process has executed a memory barrier. The
/// kernel sends each of them a function call interrupt for that. Fails with `EPERM` before
/// [`register`].
pub fn interrupt_others() -> io::Result<()> {
    membarrier(PRIVATE_EXPEDITED)
}

fn membarrier(command: libc::c_int) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let rc = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    checked(rc).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_registered_may_use_barriers() {
        register().unwrap();
        interrupt_others().unwrap();
        assert!(membarrier(1 << 30).is_err(), "there is no such command");
    }
}
