//! Real-time clocks (rtc(4)) and their periodic interrupt.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use wakescope_core::units::SpanNs;

use crate::poll::wait_readable;
use crate::{checked, ioctl};

/// An open real-time clock, which nobody else can open meanwhile. Its rate is put back when it is
/// dropped; the kernel ends its interrupts when it is closed, however that happens.
#[derive(Debug)]
pub struct Rtc {
    file: File,
    /// The rate that it had.
    rate_before: libc::c_ulong,
}

/// What a read of the clock tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts {
    /// Interrupts since the read before, of all kinds.
    pub count: u64,
    /// Whether periodic ones are among them.
    pub periodic: bool,
    /// Whether there is one of an alarm.
    pub alarm: bool,
    /// Whether there is one of an update of the clock's seconds.
    pub update: bool,
}

// linux/rtc.h. Their size is that of a long.
const RTC_PIE_ON: libc::c_ulong = ioctl(0, b'p', 0x05, 0);
const RTC_PIE_OFF: libc::c_ulong = ioctl(0, b'p', 0x06, 0);
const RTC_IRQP_READ: libc::c_ulong = ioctl(2, b'p', 0x0b, size_of::<libc::c_ulong>());
const RTC_IRQP_SET: libc::c_ulong = ioctl(1, b'p', 0x0c, size_of::<libc::c_ulong>());

impl Rtc {
    /// Takes over a device that is open for reading.
    pub fn new(file: File) -> io::Result<Self> {
        let mut rate_before: libc::c_ulong = 0;
        let fd = file.as_raw_fd();
        // SAFETY: the request writes a long, and `rate_before` is live.
        checked(unsafe { libc::ioctl(fd, RTC_IRQP_READ as _, &raw mut rate_before) })?;
        Ok(Self { file, rate_before })
    }

    /// Sets how many periodic interrupts come per second. `PermissionDenied` above what
    /// /sys/class/rtc/*/max_user_freq allows to users.
    pub fn set_rate(&self, hz: u32) -> io::Result<()> {
        self.request(RTC_IRQP_SET, libc::c_ulong::from(hz))
    }

    /// Starts periodic interrupts: the first comes a period after the call.
    pub fn start(&self) -> io::Result<()> {
        self.request(RTC_PIE_ON, 0)
    }

    /// Ends periodic interrupts. None comes after the call.
    pub fn stop(&self) -> io::Result<()> {
        self.request(RTC_PIE_OFF, 0)
    }

    fn request(&self, request: libc::c_ulong, value: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the requests of this type take a number or nothing.
        checked(unsafe { libc::ioctl(self.file.as_raw_fd(), request as _, value) }).map(drop)
    }

    /// Waits for an interrupt. Returns early, with `Interrupted`, when a signal handler ran.
    #[inline]
    pub fn wait(&self) -> io::Result<Interrupts> {
        let mut data: libc::c_ulong = 0;
        // SAFETY: `data` is live and writable for as many bytes.
        let rc = unsafe {
            libc::read(self.file.as_raw_fd(), (&raw mut data).cast(), size_of::<libc::c_ulong>())
        };
        checked(rc).map(|_| Interrupts::of(data))
    }

    /// Forgets interrupts that nobody has waited for.
    pub fn forget(&self) -> io::Result<()> {
        if wait_readable(&self.file, SpanNs(0))? {
            self.wait()?;
        }
        Ok(())
    }
}

impl Interrupts {
    #[allow(clippy::useless_conversion)] // A long has 32 bits on some machines.
    fn of(data: libc::c_ulong) -> Self {
        let data = u64::from(data);
        Self {
            count: data >> 8,
            periodic: data & 0x40 != 0,
            alarm: data & 0x20 != 0,
            update: data & 0x10 != 0,
        }
    }
}

impl Drop for Rtc {
    fn drop(&mut self) {
        let _ = self.stop();
        let _ = self.request(RTC_IRQP_SET, self.rate_before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_flags_are_those_of_the_kernels_header() {
        // As `printf` shows the macros of linux/rtc.h on x86-64.
        if size_of::<libc::c_ulong>() == 8 {
            assert_eq!([RTC_PIE_ON, RTC_PIE_OFF], [0x7005, 0x7006]);
            assert_eq!([RTC_IRQP_READ, RTC_IRQP_SET], [0x8008_700b, 0x4008_700c]);
        }
        let periodic = Interrupts { count: 3, periodic: true, alarm: false, update: false };
        assert_eq!(Interrupts::of(0x3c0), periodic);
        assert_eq!(Interrupts::of(0x2e0), Interrupts { count: 2, alarm: true, ..periodic });
        let update = Interrupts { count: 1, periodic: false, alarm: false, update: true };
        assert_eq!(Interrupts::of(0x190), update);
    }

    #[test]
    fn what_is_no_clock_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(Rtc::new(file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
