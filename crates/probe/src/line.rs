//! A serial line of this machine, taken for one use and given back as it was.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use wakescope_core::line::{AnsweredBy, Attachment, Line, transmission};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::poll::{wait_readable, wait_writable};
use wakescope_sys::serial::{self, Settings};
use wakescope_sys::time_namespace::Shifted;
use wakescope_sys::{clock, file};

/// Why a line cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Its device cannot be opened.
    #[error("cannot open the line {0}: {1}")]
    Open(PathBuf, io::Error),
    /// It is something else.
    #[error("{0} is no serial line")]
    NotALine(PathBuf),
    /// The user's own terminal.
    #[error("{0} is the terminal that this command was started in")]
    OwnTerminal(PathBuf),
    /// The kernel writes its messages to it.
    #[error("{0} is the kernel's console")]
    Console(PathBuf),
    /// Another program has it.
    #[error("another program uses the line {0}")]
    Busy(PathBuf),
    /// The speed is none that lines have.
    #[error("the line {0} cannot send {1} bits per second")]
    Speed(PathBuf, u32),
    /// Its settings cannot be changed.
    #[error("cannot set up the line {0}: {1}")]
    Settings(PathBuf, io::Error),
    /// Bytes would be sent faster than it takes them: the interval, and what a byte takes.
    #[error("an interval of {1} is too short for the line {0}: a byte takes {2}")]
    Interval(PathBuf, SpanNs, SpanNs),
    /// Nothing answered.
    #[error("nothing answers on the line {0}")]
    NoAnswer(PathBuf),
    /// What came was no answer.
    #[error("the bytes that come over the line {0} are no answers to those sent")]
    OtherBytes(PathBuf),
    /// The stamps of its edges are of another clock than this process reads.
    #[error(transparent)]
    Shifted(#[from] Shifted),
    /// Its chip is none, or has not both lines.
    #[error("{0} is no GPIO chip with the lines {1} and {2}")]
    NotAChip(PathBuf, u32, u32),
    /// Something has one of its lines, which calls itself so.
    #[error("line {1} of {0} is in use{name}", name = if .2.is_empty() { String::new() } else { format!(" by {}", .2) })]
    GpioBusy(PathBuf, u32, String),
    /// One of its lines cannot be taken.
    #[error("cannot take line {1} of {0}: {2}")]
    Gpio(PathBuf, u32, io::Error),
    /// It was closed, or failed.
    #[error("the line {0} failed: {1}")]
    Failed(PathBuf, io::Error),
}

/// A line that this process has for itself. When it is dropped, its settings are those of before.
pub struct Port {
    /// The line.
    pub file: File,
    /// The path of its device, without links.
    pub path: PathBuf,
    /// How it is attached, its speed, and what holds bytes back at this end.
    pub line: Line,
    before: Settings,
    is_exclusive: bool,
    /// Where answers come in, if not on the same device.
    answers_on: Option<Box<Self>>,
}

/// How long whoever sends waits for the first answers.
pub(crate) const PATIENCE: SpanNs = SpanNs(2_000_000_000);

/// First bytes that are sent, one after the other: only who answers all of them the same way is taken for
/// one that answers.
const GREETING: [u8; 4] = [0x01, 0x55, 0xF0, 0x3C];

impl Port {
    /// Takes the line at `path` and sets it up for bytes as they are, at `baud` bits per second.
    pub fn open(path: &Path, baud: u32) -> Result<Self, LineError> {
        Self::open_at(path, Some(baud))
    }

    /// The same at the speed that it has.
    pub(crate) fn open_at_its_speed(path: &Path) -> Result<Self, LineError> {
        Self::open_at(path, None)
    }

    fn open_at(path: &Path, baud: Option<u32>) -> Result<Self, LineError> {
        let failed = |e| LineError::Open(path.to_owned(), e);
        let path = fs::canonicalize(path).map_err(failed)?;
        let about = fs::metadata(&path).map_err(failed)?;
        // Opening alone has effects on some devices, such as a watchdog.
        if is_other(serial::numbers(about.rdev())) || !about.file_type().is_char_device() {
            return Err(LineError::NotALine(path));
        }
        let file = serial::open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::ResourceBusy => LineError::Busy(path.clone()),
            _ => LineError::Open(path.clone(), e),
        })?;
        Self::take(file, path, baud)
    }

    /// Takes the line that goes out on `path`, and on which answers come in on the device `answers_on`. Both
    /// receive what they send: see [`Attachment::Loopback`].
    pub(crate) fn open_loopback(
        path: &Path,
        answers_on: &Path,
        baud: u32,
    ) -> Result<Self, LineError> {
        let mut port = Self::open(path, baud)?;
        let answers = Self::open(answers_on, baud)?;
        port.line = Line {
            attachment: Attachment::Loopback,
            receive_trigger_bytes: answers.line.receive_trigger_bytes,
            ..Line::default()
        };
        port.answers_on = Some(Box::new(answers));
        Ok(port)
    }

    /// What answers are read from.
    pub(crate) fn answers(&self) -> &File {
        self.answers_on.as_ref().map_or(&self.file, |port| &port.file)
    }

    /// Makes a pseudoterminal and takes its answering end, whose other end is the line at `path`.
    pub fn pair() -> Result<(Self, File), LineError> {
        let failed = |e| LineError::Open("/dev/ptmx".into(), e);
        let (answering, line, path) = serial::open_pair().map_err(failed)?;
        let before = Settings::of(&line).map_err(failed)?;
        before.raw().apply(&line).map_err(failed)?;
        let kind = Line { attachment: Attachment::Pseudoterminal, ..Line::default() };
        // The line is kept open, so that answering does not end when a sender closes it.
        let port = Self {
            file: answering,
            path,
            line: kind,
            before,
            is_exclusive: false,
            answers_on: None,
        };
        Ok((port, line))
    }

    /// The same for one that is open.
    pub(crate) fn take(file: File, path: PathBuf, baud: Option<u32>) -> Result<Self, LineError> {
        let Ok(before) = Settings::of(&file) else { return Err(LineError::NotALine(path)) };
        if serial::is_own_terminal(&file) {
            return Err(LineError::OwnTerminal(path));
        }
        let number = serial::device_number(&file).unwrap_or_default();
        let device = Device::numbered(number);
        if device.text("console").is_some_and(|text| text.starts_with('Y')) {
            return Err(LineError::Console(path));
        }
        // Root can open a line that another program has for itself.
        let is_taken = serial::is_exclusive(&file).unwrap_or(false);
        if is_taken || !file::try_lock(&file).unwrap_or(false) {
            return Err(LineError::Busy(path));
        }
        let attachment = device.attachment(number.0);
        let is_real = attachment != Attachment::Pseudoterminal;
        let port = Self {
            line: device.line(attachment, baud.or_else(|| before.baud())),
            // A pseudoterminal that its other end keeps open would stay exclusive beyond `kill -9`.
            is_exclusive: is_real && serial::set_exclusive(&file, true).is_ok(),
            file,
            path,
            before,
            answers_on: None,
        };
        port.set_up(baud.filter(|_| is_real))?;
        Ok(port)
    }

    fn set_up(&self, baud: Option<u32>) -> Result<(), LineError> {
        let failed = |e| LineError::Settings(self.path.clone(), e);
        let mut wanted = self.before.raw();
        if let Some(baud) = baud {
            let slow = || LineError::Speed(self.path.clone(), baud);
            wanted = wanted.at(baud).ok_or_else(slow)?;
        }
        wanted.apply(&self.file).map_err(failed)?;
        // The call succeeds if any of the settings could be made.
        let got = Settings::of(&self.file).map_err(failed)?;
        match baud {
            Some(baud) if got.baud() != Some(baud) => {
                Err(LineError::Speed(self.path.clone(), baud))
            }
            _ if !got.is_raw() => Err(failed(io::Error::other("the driver refuses raw bytes"))),
            _ => serial::discard(&self.file).map_err(failed),
        }
    }

    /// Finds out what answers at the other end. It takes two seconds at most.
    pub(crate) fn greet(&mut self) -> Result<(), LineError> {
        let deadline = clock::now().after(PATIENCE);
        let mut known = None;
        let mut others = 0_u32;
        for byte in GREETING {
            self.send_until(byte, deadline).map_err(|e| self.failed(e))?;
            known = Some(loop {
                let Some(came) = self.byte_until(deadline).map_err(|e| self.failed(e))? else {
                    return Err(match others {
                        0 => LineError::NoAnswer(self.path.clone()),
                        _ => LineError::OtherBytes(self.path.clone()),
                    });
                };
                let by = [AnsweredBy::Responder, AnsweredBy::Echo]
                    .into_iter()
                    .find(|by| by.answer(byte) == came && known.is_none_or(|known| known == *by));
                match by {
                    Some(by) => break by,
                    // What an earlier sender left on its way comes first.
                    None => others += 1,
                }
            });
        }
        self.line.answered_by = known.unwrap_or_default();
        Ok(())
    }

    /// Sends a byte once the line takes one; fails if it takes none until `deadline`.
    fn send_until(&mut self, byte: u8, deadline: MonoNs) -> io::Result<()> {
        loop {
            match self.file.write(&[byte]) {
                Ok(1) => return Ok(()),
                Err(e) if !is_passing(&e) => return Err(e),
                _ => {}
            }
            let left = deadline.since(clock::now());
            if left.0 == 0 {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it takes no bytes"));
            }
            wait_writable(&self.file, left)?;
        }
    }

    /// The next byte that comes until `deadline`; `None` if none does.
    fn byte_until(&mut self, deadline: MonoNs) -> io::Result<Option<u8>> {
        loop {
            let left = deadline.since(clock::now());
            if left.0 == 0 {
                return Ok(None);
            }
            let mut came = [0];
            let mut from = self.answers();
            match wait_readable(from, left).and_then(|_| from.read(&mut came)) {
                Ok(0) => return Err(closed()),
                Ok(_) => return Ok(Some(came[0])),
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn failed(&self, e: io::Error) -> LineError {
        LineError::Failed(self.path.clone(), closed_or(e))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // What cannot be sent any more would make closing wait. That fails only where the line is gone.
        let _ = serial::discard(&self.file);
        let _ = self.before.apply(&self.file);
        if self.is_exclusive {
            let _ = serial::set_exclusive(&self.file, false);
        }
    }
}

/// The error of a line that has ended, which reads as the end of a file.
pub(crate) fn closed() -> io::Error {
    let text = "its other end was closed, or its device is gone";
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}

/// The same of a call that failed.
pub(crate) fn closed_or(e: io::Error) -> io::Error {
    if e.raw_os_error() == Some(serial::ENDED) { closed() } else { e }
}

/// Whether a call that failed so will succeed later.
pub(crate) fn is_passing(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The folder of a device in /sys.
struct Device(PathBuf);

/// Major numbers of the lines of pseudoterminals (Documentation/admin-guide/devices.txt).
const PSEUDOTERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

/// Whether a device is known to be no line: one of another kind, or a terminal of this machine's screen.
fn is_other(number: (u32, u32)) -> bool {
    // Of lines of pseudoterminals nothing is known there.
    let class = fs::read_link(Device::numbered(number).0.join("subsystem"));
    class.is_ok_and(|class| !class.ends_with("tty")) || matches!(number, (4, 0..=63) | (5, _))
}

impl Device {
    fn numbered((major, minor): (u32, u32)) -> Self {
        Self(format!("/sys/dev/char/{major}:{minor}").into())
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.text(name)?.trim().parse().ok()
    }

    fn attachment(&self, major: u32) -> Attachment {
        if PSEUDOTERMINALS.contains(&major) {
            return Attachment::Pseudoterminal;
        }
        // `usb-serial` of adapters, `usb` of modems, which need no adapter.
        let bus = fs::read_link(self.0.join("device/subsystem")).unwrap_or_default();
        let is_usb =
            bus.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with("usb"));
        if is_usb { Attachment::Usb } else { Attachment::Uart }
    }

    fn line(&self, attachment: Attachment, baud: Option<u32>) -> Line {
        if attachment == Attachment::Pseudoterminal {
            return Line { attachment, ..Line::default() };
        }
        Line {
            attachment,
            baud,
            transmission_ns: baud.map_or(0, |baud| transmission(baud).0),
            latency_timer_ms: self.number("device/latency_timer"),
            receive_trigger_bytes: self.number("rx_trig_bytes"),
            ..Line::default()
        }
    }
}

#[cfg(test)]
mod tests;
