//! Serial lines and pseudoterminals: their settings, and who may use them.

use std::ffi::{CStr, OsStr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::checked;

/// The error of the system that calls on a line get, besides the end of the file, once its other end is closed
/// or its device is gone.
pub const ENDED: i32 = libc::EIO;

/// Opens a line to read and write. The call waits for no carrier, reads and writes do not block, and the
/// line does not become the terminal of this process. A link is refused.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// A new pseudoterminal: the end that answers, the line, and the name of the line.
pub fn open_pair() -> io::Result<(File, File, PathBuf)> {
    // SAFETY: takes flags only.
    let fd = checked(unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY) })?;
    // SAFETY: the call gave a descriptor that nobody else has.
    let answering = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: the descriptor is open; both calls take nothing else.
    unsafe {
        checked(libc::grantpt(fd))?;
        checked(libc::unlockpt(fd))?;
    }
    let mut name = [0_u8; 128];
    // SAFETY: `name` is live and writable for its whole length.
    let rc = unsafe { libc::ptsname_r(fd, name.as_mut_ptr().cast(), name.len()) };
    if rc != 0 {
        return Err(io::Error::from_raw_os_error(rc));
    }
    let name = CStr::from_bytes_until_nul(&name).map_err(|_| io::ErrorKind::InvalidData)?;
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    let line = open(&path)?;
    set_close_on_exec(&answering)?;
    Ok((answering, line, path))
}

fn set_close_on_exec(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` lives; the argument is a flag.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

/// The major and minor number of the device.
pub fn device_number(line: &File) -> io::Result<(u32, u32)> {
    line.metadata().map(|about| numbers(about.rdev()))
}

/// The major and minor number in one that has both.
pub fn numbers(device: u64) -> (u32, u32) {
    (libc::major(device), libc::minor(device))
}

/// The settings of a line, with any speed: in those of tcgetattr(3), one without a name has no number.
#[derive(Clone)]
pub struct Settings(kernel::Termios);

#[cfg(not(any(target_arch = "powerpc", target_arch = "powerpc64")))]
mod kernel {
    pub(super) type Termios = libc::termios2;

    pub(super) fn get(fd: libc::c_int, settings: &mut Termios) -> libc::c_int {
        // SAFETY: the settings are live and writable.
        unsafe { libc::ioctl(fd, libc::TCGETS2, &raw mut *settings) }
    }

    pub(super) fn set(fd: libc::c_int, settings: &Termios) -> libc::c_int {
        // SAFETY: the settings are live, and only read.
        unsafe { libc::ioctl(fd, libc::TCSETS2, &raw const *settings) }
    }
}

/// There the usual settings have any speed.
#[cfg(any(target_arch = "powerpc", target_arch = "powerpc64"))]
mod kernel {
    pub(super) type Termios = libc::termios;

    pub(super) fn get(fd: libc::c_int, settings: &mut Termios) -> libc::c_int {
        // SAFETY: the settings are live and writable.
        unsafe { libc::tcgetattr(fd, &raw mut *settings) }
    }

    pub(super) fn set(fd: libc::c_int, settings: &Termios) -> libc::c_int {
        // SAFETY: the settings are live, and only read.
        unsafe { libc::tcsetattr(fd, libc::TCSANOW, &raw const *settings) }
    }
}

impl Settings {
    /// Those in force; an error where `line` is no terminal device.
    pub fn of(line: &File) -> io::Result<Self> {
        // SAFETY: the settings are plain integers, for which zero is a value.
        let mut settings: kernel::Termios = unsafe { std::mem::zeroed() };
        checked(kernel::get(line.as_raw_fd(), &mut settings))?;
        Ok(Self(settings))
    }

    /// These for bytes as they are: 8 bits, no parity, one stop bit, no echo, no flow control, no
    /// signals, no modem lines, and reads that return with the first byte.
    #[must_use]
    pub fn raw(&self) -> Self {
        let mut settings = self.0;
        // As cfmakeraw(3) does, which knows other settings than the kernel; and no flow control.
        settings.c_iflag &= !(libc::IGNBRK | libc::BRKINT | libc::PARMRK | libc::ISTRIP);
        settings.c_iflag &= !(libc::INLCR | libc::IGNCR | libc::ICRNL);
        settings.c_iflag &= !(libc::IXON | libc::IXOFF | libc::IXANY);
        settings.c_oflag &= !libc::OPOST;
        settings.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ICANON);
        settings.c_lflag &= !(libc::ISIG | libc::IEXTEN);
        settings.c_cflag &= !(libc::CSIZE | libc::PARENB | libc::CSTOPB | libc::CRTSCTS);
        settings.c_cflag |= libc::CS8 | libc::CREAD | libc::CLOCAL;
        settings.c_cc[libc::VMIN] = 1;
        settings.c_cc[libc::VTIME] = 0;
        Self(settings)
    }

    /// These for a program that reads key by key: no echo, no lines, and no key but Ctrl-C that does more
    /// than to be read.
    #[must_use]
    pub fn key_by_key(&self) -> Self {
        let mut settings = self.0;
        settings.c_lflag &= !(libc::ICANON | libc::ECHO);
        settings.c_iflag &= !libc::IXON;
        for key in [libc::VQUIT, libc::VSUSP, libc::VLNEXT, libc::VDISCARD] {
            settings.c_cc[key] = libc::_POSIX_VDISABLE;
        }
        settings.c_cc[libc::VMIN] = 1;
        settings.c_cc[libc::VTIME] = 0;
        Self(settings)
    }

    /// Whether these are as [`key_by_key`](Self::key_by_key) makes them.
    pub fn is_key_by_key(&self) -> bool {
        self.0.c_lflag & (libc::ICANON | libc::ECHO) == 0 && self.0.c_lflag & libc::ISIG != 0
    }

    /// These at another speed, in bits per second; `None` if there is no name for that speed.
    pub fn at(&self, baud: u32) -> Option<Self> {
        let (_, code) = SPEEDS.iter().find(|(known, _)| *known == baud)?;
        let mut settings = self.0;
        // Of receiving no speed is named, so it is that of sending.
        let receiving = libc::CBAUD << RECEIVING_SHIFT;
        settings.c_cflag = (settings.c_cflag & !libc::CBAUD & !receiving) | *code;
        Some(Self(settings))
    }

    /// The speed of sending in bits per second; `None` if it has no name.
    pub fn baud(&self) -> Option<u32> {
        let code = self.0.c_cflag & libc::CBAUD;
        SPEEDS.iter().find(|(_, known)| *known == code).map(|(baud, _)| *baud)
    }

    /// Whether a line with these settings echoes, edits or translates nothing.
    pub fn is_raw(&self) -> bool {
        let Self(settings) = self;
        settings.c_lflag & (libc::ICANON | libc::ECHO) == 0 && settings.c_oflag & libc::OPOST == 0
    }

    /// Puts these in force at once. The kernel reports success if any of them could be.
    pub fn apply(&self, line: &File) -> io::Result<()> {
        checked(kernel::set(line.as_raw_fd(), &self.0)).map(drop)
    }
}

/// Has a serial port receive what it sends, without a wire, or not any more (tty_ioctl(4)). Not every driver
/// can do that.
pub fn set_loopback(line: &File, on: bool) -> io::Result<()> {
    /// Of include/uapi/asm-generic/termios.h.
    const TIOCM_LOOP: libc::c_int = 0x8000;
    let request = if on { libc::TIOCMBIS } else { libc::TIOCMBIC };
    let bits = TIOCM_LOOP;
    // SAFETY: the call reads an integer, which is live.
    checked(unsafe { libc::ioctl(line.as_raw_fd(), request, &raw const bits) }).map(drop)
}

/// By how many bits the speed of receiving lies above that of sending (`IBSHIFT`).
const RECEIVING_SHIFT: u32 = 16;

/// The speeds that have names on every system, in bits per second.
const SPEEDS: [(u32, libc::speed_t); 18] = [
    (1_200, libc::B1200),
    (2_400, libc::B2400),
    (4_800, libc::B4800),
    (9_600, libc::B9600),
    (19_200, libc::B19200),
    (38_400, libc::B38400),
    (57_600, libc::B57600),
    (115_200, libc::B115200),
    (230_400, libc::B230400),
    (460_800, libc::B460800),
    (500_000, libc::B500000),
    (921_600, libc::B921600),
    (1_000_000, libc::B1000000),
    (1_500_000, libc::B1500000),
    (2_000_000, libc::B2000000),
    (3_000_000, libc::B3000000),
    (3_500_000, libc::B3500000),
    (4_000_000, libc::B4000000),
];

/// The speeds that [`Settings::at`] knows, in bits per second.
pub fn speeds() -> impl Iterator<Item = u32> {
    SPEEDS.iter().map(|(baud, _)| *baud)
}

/// Whether this is the terminal that this process was started in.
pub fn is_own_terminal(line: &File) -> bool {
    // SAFETY: takes a descriptor only. It fails for every terminal but that of the caller's session.
    unsafe { libc::tcgetsid(line.as_raw_fd()) != -1 }
}

/// Lets no other program open the line from now on (but one with `CAP_SYS_ADMIN`), or allows it again.
/// It ends with the last descriptor of the line.
pub fn set_exclusive(line: &File, exclusive: bool) -> io::Result<()> {
    let request = if exclusive { libc::TIOCEXCL } else { libc::TIOCNXCL };
    // SAFETY: neither request has an argument.
    checked(unsafe { libc::ioctl(line.as_raw_fd(), request) }).map(drop)
}

/// Whether a program keeps all others from opening the line.
pub fn is_exclusive(line: &File) -> io::Result<bool> {
    let mut exclusive: libc::c_int = 0;
    // SAFETY: the kernel writes one integer, and `exclusive` is one.
    checked(unsafe { libc::ioctl(line.as_raw_fd(), libc::TIOCGEXCL, &raw mut exclusive) })?;
    Ok(exclusive != 0)
}

/// Discards bytes that were received and not read, and those that were written and not sent.
pub fn discard(line: &File) -> io::Result<()> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::tcflush(line.as_raw_fd(), libc::TCIOFLUSH) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::wait_readable;
    use std::io::{Read, Write};
    use wakescope_core::units::SpanNs;

    #[test]
    fn a_raw_line_carries_bytes_as_they_are_and_is_restored() {
        let (mut answering, mut line, path) = open_pair().unwrap();
        assert!(path.starts_with("/dev/pts"), "{path:?}");
        let before = Settings::of(&line).unwrap();
        assert!(!before.is_raw(), "a new pseudoterminal echoes");
        before.raw().apply(&line).unwrap();
        assert!(Settings::of(&line).unwrap().is_raw());
        let bytes = [0_u8, 3, 4, 10, 13, 17, 19, 26, 28, 127, 255];
        line.write_all(&bytes).unwrap();
        let mut got = [0_u8; 11];
        answering.read_exact(&mut got).unwrap();
        assert_eq!(got, bytes);
        assert!(!wait_readable(&line, SpanNs(1_000)).unwrap(), "nothing was echoed");
        answering.write_all(&bytes).unwrap();
        assert!(wait_readable(&line, SpanNs(60_000_000_000)).unwrap());
        before.apply(&line).unwrap();
        assert!(!Settings::of(&line).unwrap().is_raw());
    }

    #[test]
    fn keys_are_read_one_by_one_and_are_not_shown() {
        let (mut answering, mut line, _) = open_pair().unwrap();
        Settings::of(&line).unwrap().key_by_key().apply(&line).unwrap();
        // Ctrl-S, Ctrl-Z and Ctrl-\ are keys as others are.
        answering.write_all(b"q\x13\x1a\x1c").unwrap();
        let mut got = [0; 4];
        assert!(wait_readable(&line, SpanNs(60_000_000_000)).unwrap());
        line.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"q\x13\x1a\x1c");
        // What is written is still translated for a terminal, and nothing else was written.
        line.write_all(b"\n").unwrap();
        let mut got = [0; 2];
        answering.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"\r\n");
    }

    #[test]
    fn speeds_have_names_and_are_read_back() {
        let (_answering, line, _) = open_pair().unwrap();
        let settings = Settings::of(&line).unwrap();
        for baud in speeds() {
            assert_eq!(settings.at(baud).unwrap().baud(), Some(baud));
        }
        assert!(settings.at(115_201).is_none());
    }

    #[test]
    fn speeds_without_names_are_put_back() {
        let (_answering, line, _) = open_pair().unwrap();
        let mut custom = Settings::of(&line).unwrap();
        custom.0.c_cflag &= !(libc::CBAUD | libc::CBAUD << RECEIVING_SHIFT);
        custom.0.c_cflag |= libc::BOTHER | libc::BOTHER << RECEIVING_SHIFT;
        (custom.0.c_ospeed, custom.0.c_ispeed) = (31_250, 75);
        custom.apply(&line).unwrap();
        let speeds = || Settings::of(&line).map(|now| (now.0.c_ospeed, now.0.c_ispeed)).unwrap();
        assert_eq!(speeds(), (31_250, 75));
        let before = Settings::of(&line).unwrap();
        assert_eq!(before.baud(), None);
        before.raw().at(9_600).unwrap().apply(&line).unwrap();
        assert_eq!(speeds(), (9_600, 9_600));
        before.apply(&line).unwrap();
        assert_eq!(speeds(), (31_250, 75));
    }

    #[test]
    fn a_file_is_no_line_and_a_line_can_be_kept_from_others() {
        assert!(Settings::of(&File::open("/dev/null").unwrap()).is_err());
        let (_answering, line, _) = open_pair().unwrap();
        assert!(!is_own_terminal(&line));
        assert!(!is_exclusive(&line).unwrap());
        set_exclusive(&line, true).unwrap();
        assert!(is_exclusive(&line).unwrap());
        set_exclusive(&line, false).unwrap();
        assert!(!is_exclusive(&line).unwrap());
    }

    #[test]
    fn a_line_that_is_closed_at_its_other_end_can_be_read_to_its_end() {
        let (answering, mut line, _) = open_pair().unwrap();
        drop(answering);
        assert!(wait_readable(&line, SpanNs(60_000_000_000)).unwrap());
        assert!(matches!(line.read(&mut [0; 4]), Ok(0) | Err(_)));
    }
}
