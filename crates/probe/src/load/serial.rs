//! The loads `serial:PORT` and `serial-pty`: writing to a serial port without pause, as the load of
//! Stückjürgen's measurements of 2004.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use wakescope_core::units::SpanNs;
use wakescope_sys::poll::{wait_readable, wait_writable};
use wakescope_sys::process::set_nonblocking;
use wakescope_sys::serial;

use super::crew::{Crew, work_together};
use super::desk::{Desk, fault};
use super::kinds::Job;
use crate::line::{LineError, Port};

/// Written at a time: many times what a port has room for (16 bytes), so that it is never idle, and
/// less than its driver queues.
const CHUNK: [u8; 256] = [b'U'; 256];

/// So many bytes a port may take at once (a page, `UART_XMIT_SIZE` in include/linux/serial_core.h), and then
/// none until nearly all of them are sent: at 9,600 baud that is 4 s.
pub(super) const AT_ONCE: u64 = 4096;

/// How long to wait for room, or for something to read, before looking whether to stop.
const LOOK: SpanNs = SpanNs(100_000_000);

/// Where devices lie.
const DEV: &str = "/dev/";

/// A serial port by the kernel's name of it, such as `ttyS0` or `ttyUSB1`, or a pseudo-terminal,
/// `pts/3`. Not by another path: that may hold names and numbers that are nobody's business, and
/// lead to files that are no terminals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortName(String);

impl PortName {
    fn path(&self) -> PathBuf {
        Path::new(DEV).join(&self.0)
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text that names no port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoPort;

impl FromStr for PortName {
    type Err = NoPort;

    /// Reads `ttyS0` and `/dev/ttyS0`.
    fn from_str(text: &str) -> Result<Self, NoPort> {
        let name = text.strip_prefix(DEV).unwrap_or(text);
        let is_number = |text: &str| {
            !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit())
        };
        let is_known = match (name.strip_prefix("pts/"), name.strip_prefix("tty")) {
            (Some(number), _) => is_number(number),
            // Without letters it would be a console with a keyboard.
            (_, Some(rest)) => {
                let driver = rest.trim_end_matches(|c: char| c.is_ascii_digit());
                let is_driver = (1..=12).contains(&driver.len())
                    && driver.bytes().all(|b| b.is_ascii_alphabetic());
                is_driver && is_number(&rest[driver.len()..])
            }
            _ => false,
        };
        if is_known { Ok(Self(name.into())) } else { Err(NoPort) }
    }
}

/// Writes to the port until the desk says stop. Its settings are put back then.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let name: PortName =
        job.argument().parse().map_err(|NoPort| "this is no serial port".to_owned())?;
    let path = name.path();
    let port = take(&path, desk)?;
    desk.ready();
    while !desk.stopping() {
        let written = write_some(&port.file).map_err(|e| fault("write to", &path, &e))?;
        desk.done(written);
    }
    Ok(())
}

/// Takes the port for this load alone. It keeps its speed.
fn take(path: &Path, desk: &Desk) -> Result<Port, String> {
    Port::open_at_its_speed(path).map_err(|e| {
        desk.advise(match &e {
            LineError::Open(_, e) if e.kind() == io::ErrorKind::PermissionDenied => {
                "run as root, or as a member of the group that owns the port (dialout)"
            }
            LineError::Busy(_) => "end what uses it (fuser -v shows that), or name another port",
            LineError::Console(_) => "name another port: the kernel's messages would be lost",
            _ => "name a port that has a driver, or write to a pseudo-terminal: serial-pty",
        });
        e.to_string()
    })
}

/// Whether a load with this argument would write to the terminal that the calling process was started in. The
/// process of the load is in a session of its own, and cannot know.
pub(super) fn is_own_terminal(argument: &str) -> bool {
    let name: Option<PortName> = argument.parse().ok();
    let port = name.and_then(|name| serial::open(&name.path()).ok());
    port.is_some_and(|port| serial::is_own_terminal(&port))
}

/// Writes to a pseudo-terminal, with a thread in the place of the device, until the desk says stop.
pub(super) fn run_pty(job: &Job<'_>) -> Result<(), String> {
    let (device, terminal, path) =
        serial::open_pair().map_err(|e| format!("cannot make a pair of pseudo-terminals: {e}"))?;
    set_nonblocking(&device).map_err(|e| format!("cannot use a pseudo-terminal: {e}"))?;
    let terminal = Port::take(terminal, path, None).map_err(|e| e.to_string())?;
    let ends = vec![End::Terminal(terminal), End::Device(device)];
    work_together("load-serial-pty", ends, job.desk, |end, crew| {
        crew.ready();
        let done = match end {
            End::Terminal(terminal) => write_all(&terminal, crew),
            End::Device(device) => read_all(&device, crew),
        };
        // What breaks because the other end has stopped is no fault.
        done.or_else(|e| if crew.stopping() { Ok(()) } else { Err(e) })
            .map_err(|e| format!("a pseudo-terminal broke: {e}"))
    })
    .map(drop)
}

enum End {
    Terminal(Port),
    Device(File),
}

fn write_all(terminal: &Port, crew: &Crew<'_>) -> io::Result<()> {
    while !crew.stopping() {
        crew.done(write_some(&terminal.file)?);
    }
    Ok(())
}

fn read_all(mut device: &File, crew: &Crew<'_>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while !crew.stopping() {
        match device.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                wait_readable(device, LOOK)?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes what there is room for, and waits a little if there is none. How many bytes were taken.
fn write_some(mut port: &File) -> io::Result<u64> {
    match port.write(&CHUNK) {
        // Whatever a driver means by it, it must not become a busy loop that asks no question.
        Ok(0) => wait_writable(port, LOOK).map(|_| 0),
        Ok(length) => Ok(length as u64),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => wait_writable(port, LOOK).map(|_| 0),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;
    use wakescope_sys::serial::Settings;

    /// Two loads on one port left it raw: the second took the settings of the first for those from before.
    #[test]
    fn a_port_has_one_user_and_is_as_before_afterwards() {
        let (_answering, kept, path) = serial::open_pair().unwrap();
        let desk = test_desk();
        let first = take(&path, &desk).unwrap();
        let refused = take(&path, &desk).err();
        assert_eq!(refused, Some(format!("another program uses the line {}", path.display())));
        // Nor is it taken by a sender of round trips.
        assert!(matches!(Port::open(&path, 9_600).err(), Some(LineError::Busy(_))));
        assert!(Settings::of(&kept).unwrap().is_raw());
        drop(first);
        assert!(!Settings::of(&kept).unwrap().is_raw());
    }

    #[test]
    fn ports_are_named_as_the_kernel_does() {
        for (text, want) in [
            ("ttyS0", Some("ttyS0")),
            ("/dev/ttyS1", Some("ttyS1")),
            ("/dev/ttyUSB12", Some("ttyUSB12")),
            ("ttyAMA0", Some("ttyAMA0")),
            ("ttymxc3", Some("ttymxc3")),
            ("/dev/pts/3", Some("pts/3")),
            // A console with a keyboard, and whatever is no serial port.
            ("tty1", None),
            ("tty", None),
            ("ttyS", None),
            ("ttyS1x", None),
            ("ttyprintk", None),
            ("console", None),
            ("sda1", None),
            ("/dev/serial/by-id/usb-secret-port0", None),
            ("../ttyS0", None),
            ("/dev//ttyS0", None),
            ("/tmp/ttyS0", None),
            ("pts/", None),
            ("pts/../sda1", None),
            ("pts/ptmx", None),
            ("ttyS123456", None),
            ("ttyabcdefghijklm0", None),
            ("ttyS\u{0661}", None),
            ("", None),
        ] {
            let got = text.parse::<PortName>().ok().map(|port| port.to_string());
            assert_eq!(got.as_deref(), want, "{text:?}");
        }
        assert_eq!("ttyS0".parse::<PortName>().unwrap().path(), Path::new("/dev/ttyS0"));
    }
}
