//! What the kernel says about itself, and files that must not be waited for.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use wakescope_core::units::SpanNs;

use crate::checked;

/// The machine's name for its own architecture, as `uname -m` prints it.
pub fn architecture() -> io::Result<String> {
    // SAFETY: `utsname` is arrays of characters, for which zero is a value.
    let mut names: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: `names` is live and writable.
    checked(unsafe { libc::uname(&raw mut names) })?;
    // SAFETY: the kernel ends each name with NUL inside its array, and `names` outlives the borrow.
    let machine = unsafe { CStr::from_ptr(names.machine.as_ptr()) };
    Ok(machine.to_string_lossy().into_owned())
}

/// This host's name; empty if it has none.
pub fn host_name() -> String {
    let name = fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    String::from_utf8_lossy(&name).trim().to_owned()
}

/// How long a tick is: what the clocks that advance by ticks have as their resolution.
pub fn tick() -> SpanNs {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live and writable. The clock exists since Linux 2.6.32.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    SpanNs(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Opens `path` for reading so that neither opening nor reading waits: not for a writer of a FIFO,
/// and not for the next message of the kernel's log.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// Whether `cause` means that there is nothing of that name. A device node whose driver is gone
/// counts as nothing.
pub fn is_absent(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ENXIO))
}

/// Whether `cause` is a refusal on principle (`EPERM`), as kernel lockdown gives it to root too,
/// and not one that a file's mode explains (`EACCES`).
pub fn is_refused_on_principle(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(libc::EPERM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_name_and_a_tick() {
        assert!(!architecture().unwrap().is_empty());
        // CONFIG_HZ is 24 to 1,200.
        assert!((SpanNs(800_000)..SpanNs(50_000_000)).contains(&tick()), "{}", tick());
    }

    #[test]
    fn opening_does_not_wait_and_absence_is_told() {
        assert!(open_without_waiting(Path::new("/proc/version")).is_ok());
        assert!(is_absent(&open_without_waiting(Path::new("/proc/none/of/it")).unwrap_err()));
        assert!(!is_refused_on_principle(&io::ErrorKind::NotFound.into()));
    }
}
