//! What the first process of a machine does that has nobody else: mount, load modules, restart.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::checked;

/// Mounts a new file system of `kind` at the folder `target`, with `options` as its kind knows
/// them.
pub fn mount(kind: &str, target: &str, options: &str) -> io::Result<()> {
    mount_from(kind, kind, target, options)
}

/// The same of a file system that is on `source`.
pub fn mount_from(source: &str, kind: &str, target: &str, options: &str) -> io::Result<()> {
    let [source, kind, target, options] = [source, kind, target, options].map(CString::new);
    let (source, kind, target, options) = (source?, kind?, target?, options?);
    // SAFETY: all are live for the call and end in NUL.
    let rc = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast())
    };
    checked(rc).map(drop)
}

/// Loads the kernel module in `file`. Fails with `EEXIST` if it is there already.
pub fn load_module(file: &File, parameters: &str) -> io::Result<()> {
    let parameters = CString::new(parameters)?;
    // SAFETY: the descriptor and the text are live for the call.
    let rc = unsafe {
        libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0_usize)
    };
    checked(rc).map(drop)
}

/// Restarts the machine at once. Returns only if that is refused.
pub fn restart() -> io::Error {
    // SAFETY: takes no pointer. What is not written yet is lost, and the caller wants that.
    unsafe { libc::reboot(libc::RB_AUTOBOOT) };
    io::Error::last_os_error()
}

/// Lets a serial line pass every byte as it is.
pub fn set_raw(line: &File) -> io::Result<()> {
    // SAFETY: `termios` is integers, for which zero is a value.
    let mut settings: libc::termios = unsafe { mem::zeroed() };
    // SAFETY: `settings` is live and writable in all calls.
    unsafe {
        checked(libc::tcgetattr(line.as_raw_fd(), &raw mut settings))?;
        libc::cfmakeraw(&raw mut settings);
        checked(libc::tcsetattr(line.as_raw_fd(), libc::TCSANOW, &raw const settings))?;
    }
    Ok(())
}

/// Waits until all that was written to a serial line has left it.
pub fn drain(line: &File) -> io::Result<()> {
    // SAFETY: takes no pointer.
    checked(unsafe { libc::tcdrain(line.as_raw_fd()) }).map(drop)
}

/// The text of the kernel's log, as far back as it is kept.
pub fn kernel_log() -> io::Result<Vec<u8>> {
    const READ_ALL: libc::c_int = 3;
    const SIZE: libc::c_int = 10;
    // SAFETY: asks for the size only, which takes no buffer.
    let size = checked(unsafe { libc::klogctl(SIZE, ptr::null_mut(), 0) })?;
    let mut text = vec![0_u8; usize::try_from(size).unwrap_or(0)];
    // SAFETY: `text` is live and writable for `size` bytes.
    let read = checked(unsafe { libc::klogctl(READ_ALL, text.as_mut_ptr().cast(), size) })?;
    text.truncate(usize::try_from(read).unwrap_or(0));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // What works is seen in the lab: here it would change the machine.

    #[test]
    fn refusals_are_told() {
        assert!(mount("none of it", "/does/not/exist", "").is_err());
        assert!(mount("tmp\0fs", "/", "").is_err());
        let file = File::open("/proc/self/exe").unwrap();
        assert!(set_raw(&file).is_err() && drain(&file).is_err(), "no serial line");
        assert!(load_module(&file, "").is_err(), "no module");
    }
}
