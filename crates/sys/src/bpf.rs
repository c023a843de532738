//! Running a BPF program that is attached to nothing.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `BPF_PROG_TEST_RUN` of include/uapi/linux/bpf.h, which takes raw tracepoints since 5.10.
const RUN: libc::c_int = 10;

/// What that takes.
#[repr(C)]
#[derive(Default)]
struct RunAttr {
    program: u32,
    returned: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    pad: u32,
}

/// Runs a program for raw tracepoints once, on this CPU, with `arguments`. What it returned.
pub fn run_once(program: BorrowedFd<'_>, arguments: &[u64]) -> io::Result<u32> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let mut attr = RunAttr {
        program: u32::try_from(program.as_raw_fd()).map_err(invalid)?,
        context_size_in: u32::try_from(size_of_val(arguments)).map_err(invalid)?,
        context_in: arguments.as_ptr() as u64,
        ..RunAttr::default()
    };
    // SAFETY: `attr` is live and of the size that is stated. Of `arguments`, which outlive the call,
    // the kernel reads as many bytes as they have; it writes to `attr` only.
    let rc = unsafe { libc::syscall(libc::SYS_bpf, RUN, &raw mut attr, size_of::<RunAttr>()) };
    if rc == 0 { Ok(attr.returned) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_no_program_is_refused_as_that() {
        let file = File::open("/proc/self/status").unwrap();
        let why = run_once(file.as_fd(), &[0]).unwrap_err().raw_os_error();
        // Not for what the call looks like: that would be EFAULT or E2BIG.
        let expected = [libc::EINVAL, libc::EPERM, libc::EACCES, libc::ENOSYS];
        assert!(expected.map(Some).contains(&why), "{why:?}");
    }
}
