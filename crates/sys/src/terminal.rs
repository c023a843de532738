//! Terminals: serial ports, and pairs of pseudo-terminals.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::checked;

/// How terminals are opened: without becoming the one that controls this process, and so that
/// neither opening, which may wait for a carrier, nor a write blocks.
const FLAGS: libc::c_int = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;

/// Opens the terminal at `path` to read and write. Neither this nor a write blocks.
pub fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).custom_flags(FLAGS).open(path)
}

/// A new pair of pseudo-terminals: first the end that stands for the device (master), then the
/// terminal. Both are opened as by [`open`]. Needs `/dev/ptmx`, a mounted devpts and Linux 4.13.
pub fn open_pair() -> io::Result<(File, File)> {
    let device = open(Path::new("/dev/ptmx"))?;
    let unlocked: libc::c_int = 0;
    // SAFETY: the descriptor is open, and `unlocked` is live and only read.
    checked(unsafe {
        libc::ioctl(device.as_raw_fd(), libc::TIOCSPTLCK as _, &raw const unlocked)
    })?;
    // By the open device, so that no path can lead to another terminal.
    // SAFETY: takes flags only.
    let fd = checked(unsafe {
        libc::ioctl(device.as_raw_fd(), libc::TIOCGPTPEER as _, libc::O_RDWR | FLAGS)
    })?;
    // SAFETY: the descriptor is new, and nobody else has it.
    let terminal = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok((device, terminal))
}

/// A terminal that passes every byte as it is and waits neither for a carrier nor for the other
/// side's permission to send. Its speed stays. When this is dropped, what was not sent yet is
/// discarded, so that closing does not wait for it, and the settings from before are put back.
#[derive(Debug)]
pub struct RawTerminal {
    file: File,
    before: libc::termios,
}

impl RawTerminal {
    /// Changes the settings of `file`. Fails with `ENOTTY` if it is no terminal.
    pub fn new(file: File) -> io::Result<Self> {
        // SAFETY: `termios` is integers, for which zero is a value.
        let mut before: libc::termios = unsafe { mem::zeroed() };
        // SAFETY: `before` and `raw` are live and writable in all calls.
        unsafe {
            checked(libc::tcgetattr(file.as_raw_fd(), &raw mut before))?;
            let mut raw = before;
            libc::cfmakeraw(&raw mut raw);
            raw.c_iflag &= !(libc::IXOFF | libc::IXANY);
            raw.c_cflag &= !libc::CRTSCTS;
            raw.c_cflag |= libc::CLOCAL;
            checked(libc::tcsetattr(file.as_raw_fd(), libc::TCSANOW, &raw const raw))?;
        }
        Ok(Self { file, before })
    }

    /// The terminal, to read and write.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that has gone has no settings left.
        // SAFETY: the descriptor is open, and `before` is live and only read.
        unsafe {
            libc::tcflush(self.file.as_raw_fd(), libc::TCOFLUSH);
            libc::tcsetattr(self.file.as_raw_fd(), libc::TCSANOW, &raw const self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::process::{set_blocking, wait_readable};
    use wakescope_core::units::SpanNs;

    fn settings(file: &File) -> [libc::tcflag_t; 4] {
        // SAFETY: `termios` is integers, for which zero is a value, and it is live and writable.
        unsafe {
            let mut found: libc::termios = mem::zeroed();
            assert_eq!(libc::tcgetattr(file.as_raw_fd(), &raw mut found), 0);
            [found.c_iflag, found.c_oflag, found.c_cflag, found.c_lflag]
        }
    }

    #[test]
    fn bytes_pass_as_they_are_and_the_settings_come_back() {
        let (mut device, terminal) = open_pair().unwrap();
        let before = settings(&terminal);
        assert_ne!(before[1] & libc::OPOST, 0, "a new one turns \\n into \\r\\n");
        let raw = RawTerminal::new(terminal.try_clone().unwrap()).unwrap();
        assert_ne!(settings(&terminal), before);
        raw.file().write_all(b"a\nb").unwrap();
        set_blocking(&device).unwrap();
        assert!(wait_readable(&device, SpanNs(60_000_000_000)).unwrap());
        let mut got = [0; 3];
        device.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"a\nb");
        drop(raw);
        assert_eq!(settings(&terminal), before);
    }

    #[test]
    fn a_write_that_nobody_reads_does_not_block() {
        let (_device, terminal) = open_pair().unwrap();
        let raw = RawTerminal::new(terminal).unwrap();
        let refused = loop {
            match raw.file().write(&[b'U'; 256]) {
                Ok(_) => {}
                Err(e) => break e,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn only_a_terminal_is_one() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(RawTerminal::new(file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert!(open(Path::new("/does/not/exist")).is_err());
    }
}
