//! Timers that are files.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use wakescope_core::units::{MonoNs, SpanNs};

use crate::{checked, clock};

/// A timer of `CLOCK_MONOTONIC` (`timerfd`).
#[derive(Debug)]
pub struct TimerFile(OwnedFd);

impl TimerFile {
    /// A timer that is not armed.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes two numbers.
        let fd =
            checked(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) })?;
        // SAFETY: the descriptor is new, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Lets it expire once, at `expiry`.
    pub fn arm(&self, expiry: MonoNs) -> io::Result<()> {
        let time = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: clock::timespec(expiry.0),
        };
        let flags = libc::TFD_TIMER_ABSTIME;
        // SAFETY: `time` is live and only read; the old setting is not asked for.
        checked(unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), flags, &raw const time, std::ptr::null_mut())
        })
        .map(drop)
    }

    /// Sleeps until it expires, by a blocking read. Returns early, with `Interrupted`, when a signal
    /// handler ran.
    #[inline]
    pub fn wait(&self) -> io::Result<()> {
        let mut expiries = [0_u8; 8];
        // SAFETY: `expiries` is live and writable for as many bytes.
        let rc =
            unsafe { libc::read(self.0.as_raw_fd(), expiries.as_mut_ptr().cast(), expiries.len()) };
        checked(rc).map(drop)
    }

    /// When it will expire; `None` if it is not armed, or has expired.
    pub fn due(&self) -> io::Result<Option<MonoNs>> {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut left = libc::itimerspec { it_interval: zero, it_value: zero };
        let now = clock::now();
        // SAFETY: `left` is live, and the kernel writes no more than that.
        checked(unsafe { libc::timerfd_gettime(self.0.as_raw_fd(), &raw mut left) })?;
        let left = clock::nanoseconds(left.it_value);
        Ok((left > 0).then(|| now.after(SpanNs(left))))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::poll::wait_readable;

    #[test]
    fn a_timer_expires_when_it_is_due() {
        let timer = TimerFile::new().unwrap();
        let due = clock::now().after(SpanNs(1_000_000));
        assert_eq!(timer.due().unwrap(), None);
        timer.arm(due).unwrap();
        timer.wait().unwrap();
        assert!(clock::now() >= due);
        let due = clock::now().after(SpanNs(1_000_000));
        timer.arm(due).unwrap();
        let file = File::from(timer.0);
        assert!(wait_readable(&file, SpanNs(60_000_000_000)).unwrap());
        assert!(clock::now() >= due);
    }
}
