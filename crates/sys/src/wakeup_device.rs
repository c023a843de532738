//! The device of the project's kernel module (kmod/wakescope.h), which wakes its reader by a timer.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use wakescope_core::units::{MonoNs, SpanNs};

use crate::{checked, ioctl};

/// What of the module's interface this program knows.
pub const VERSION: u32 = 1;

/// The shortest period of its timers.
pub const PERIOD_MIN: SpanNs = SpanNs(50_000);

/// An open file of the device, which has a timer of its own. The kernel stops that when it is closed,
/// however that happens.
#[derive(Debug)]
pub struct WakeupDevice {
    file: File,
}

/// What a read of the device tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// When the timer was due, for the first expiry that no read has returned.
    pub due: MonoNs,
    /// When the timer's function ran for it, which wakes the reader.
    pub function: MonoNs,
    /// When the reader ran, still in the kernel.
    pub awake: MonoNs,
    /// Expiries that no read has returned, this one included.
    pub expiries: u64,
}

/// `struct wakescope_grid`.
#[repr(C)]
struct Grid {
    first_ns: u64,
    period_ns: u64,
}

/// `struct wakescope_wakeup`.
#[repr(C)]
#[derive(Default)]
struct Raw {
    due_ns: u64,
    function_ns: u64,
    awake_ns: u64,
    expiries: u64,
    timer_cpu: u32,
    slept: u32,
}

const TYPE: u8 = 0xbc;
const GET_VERSION: libc::c_ulong = ioctl(2, TYPE, 0, size_of::<u32>());
const START: libc::c_ulong = ioctl(1, TYPE, 1, size_of::<Grid>());

impl WakeupDevice {
    /// Takes over a device that is open for reading. Fails with `ENOTTY` on any other file.
    pub fn new(file: File) -> io::Result<Self> {
        let device = Self { file };
        device.version().map(|_| device)
    }

    /// The version of the module's interface.
    pub fn version(&self) -> io::Result<u32> {
        let mut version = 0_u32;
        // SAFETY: the request writes 32 bits, and `version` is live.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), GET_VERSION as _, &raw mut version) })?;
        Ok(version)
    }

    /// Starts the timer on this CPU, in place of the one before: it expires at `first`, and from there
    /// every `period`.
    pub fn start(&self, first: MonoNs, period: SpanNs) -> io::Result<()> {
        let grid = Grid { first_ns: first.0, period_ns: period.0 };
        // SAFETY: the request reads a structure of this size, and `grid` is live.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), START as _, &raw const grid) })
            .map(drop)
    }

    /// Waits for an expiry. Returns early, with `Interrupted`, when a signal handler ran.
    #[inline]
    pub fn wait(&self) -> io::Result<Stamps> {
        let mut raw = Raw::default();
        // SAFETY: `raw` is live, writable for as many bytes, and any bytes are a value of it.
        let rc =
            unsafe { libc::read(self.file.as_raw_fd(), (&raw mut raw).cast(), size_of::<Raw>()) };
        checked(rc)?;
        Ok(Stamps {
            due: MonoNs(raw.due_ns),
            function: MonoNs(raw.function_ns),
            awake: MonoNs(raw.awake_ns),
            expiries: raw.expiries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_is_that_of_the_modules_header() {
        let header = include_str!("../../../kmod/wakescope.h");
        for line in [
            format!("#define WAKESCOPE_VERSION {VERSION}"),
            format!("#define WAKESCOPE_PERIOD_MIN_NS {}ULL", PERIOD_MIN.0),
            format!("#define WAKESCOPE_IOC_TYPE 0x{TYPE:X}"),
            "#define WAKESCOPE_IOC_VERSION _IOR(WAKESCOPE_IOC_TYPE, 0, __u32)".into(),
            "#define WAKESCOPE_IOC_START _IOW(WAKESCOPE_IOC_TYPE, 1, struct wakescope_grid)".into(),
        ] {
            assert!(header.lines().any(|there| there == line), "{line}");
        }
        let fields = |text: &str| {
            let body = header.split(&format!("{text} {{\n")).nth(1).unwrap();
            let body = body.split("};").next().unwrap();
            body.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_string()
        };
        assert_eq!(fields("struct wakescope_grid"), "__u64 first_ns; __u64 period_ns;");
        assert_eq!(
            fields("struct wakescope_wakeup"),
            "__u64 due_ns; __u64 function_ns; __u64 awake_ns; __u64 expiries; __u32 timer_cpu; \
             __u32 slept;"
        );
        // As `printf` shows the macros of the header on x86-64.
        assert_eq!([GET_VERSION, START], [0x8004_bc00, 0x4010_bc01]);
    }

    #[test]
    fn what_is_no_such_device_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(WakeupDevice::new(file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
