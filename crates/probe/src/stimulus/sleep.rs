//! The ways in which a thread can sleep until a point of time: one per stimulus on a grid.

use std::io;
use std::sync::atomic::AtomicU32;

use wakescope_core::units::MonoNs;
use wakescope_sys::empty_epoll::EmptyEpoll;
use wakescope_sys::posix_timer::PosixTimer;
use wakescope_sys::timer_file::TimerFile;
use wakescope_sys::{clock, futex};

/// A way to sleep until a point of time.
pub trait Sleep {
    /// Whether a tracer recognises the kernel's timer by the task that it wakes, and its expiry as the
    /// point of time. Otherwise it must be announced when the wakeup is due.
    const RECOGNISED: bool = false;
    /// Prepares a sleep until `expiry`, if that takes a call of its own.
    #[inline]
    fn arm(&mut self, expiry: MonoNs) -> io::Result<()> {
        let _ = expiry;
        Ok(())
    }
    /// Sleeps until `expiry`, for which it is armed, and returns the time read first thing after.
    /// `Interrupted` broke the sleep off; it can be gone on with.
    fn until(&mut self, expiry: MonoNs) -> io::Result<MonoNs>;
}

/// An absolute `clock_nanosleep`.
pub struct Nanosleep;

impl Sleep for Nanosleep {
    const RECOGNISED: bool = true;

    #[inline]
    fn until(&mut self, expiry: MonoNs) -> io::Result<MonoNs> {
        clock::sleep_until(expiry)?;
        Ok(clock::now())
    }
}

/// A blocking read of a timer that is a file, set anew for each point: a periodic one would drift from
/// a grid whose points are no whole nanoseconds apart, and cannot have points left out.
impl Sleep for TimerFile {
    #[inline]
    fn arm(&mut self, expiry: MonoNs) -> io::Result<()> {
        TimerFile::arm(self, expiry)
    }

    #[inline]
    fn until(&mut self, _: MonoNs) -> io::Result<MonoNs> {
        self.wait()?;
        Ok(clock::now())
    }
}

/// A POSIX timer whose signal is waited for.
pub struct SignalWait(pub PosixTimer);

impl Sleep for SignalWait {
    #[inline]
    fn arm(&mut self, expiry: MonoNs) -> io::Result<()> {
        self.0.arm(expiry)
    }

    #[inline]
    fn until(&mut self, _: MonoNs) -> io::Result<MonoNs> {
        self.0.fetch()?;
        Ok(clock::now())
    }
}

/// A POSIX timer whose signal a handler takes, which reads the clock.
pub struct SignalHandler(pub PosixTimer);

impl Sleep for SignalHandler {
    #[inline]
    fn arm(&mut self, expiry: MonoNs) -> io::Result<()> {
        self.0.arm(expiry)
    }

    #[inline]
    fn until(&mut self, _: MonoNs) -> io::Result<MonoNs> {
        self.0.wait_handled()
    }
}

/// The absolute time-out of a wait for a futex that nobody wakes.
#[derive(Default)]
pub struct FutexTimeout(AtomicU32);

impl Sleep for FutexTimeout {
    #[inline]
    fn until(&mut self, expiry: MonoNs) -> io::Result<MonoNs> {
        futex::sleep_until(&self.0, expiry)?;
        Ok(clock::now())
    }
}

/// The time-out of a wait for files that never are ready. It is relative, as event loops have it.
impl Sleep for EmptyEpoll {
    #[inline]
    fn until(&mut self, expiry: MonoNs) -> io::Result<MonoNs> {
        self.sleep(expiry.since(clock::now()))?;
        Ok(clock::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::units::SpanNs;

    /// Sleeps three times until a point of time, and once until one that has passed.
    fn check(name: &str, mut sleep: impl Sleep) {
        for ahead in [1_000_000, 1_000_000, 0, 1_000_000] {
            let before = clock::now();
            let expiry = before.after(SpanNs(ahead));
            sleep.arm(expiry).unwrap();
            let woken = sleep.until(expiry).unwrap();
            assert!(woken >= expiry && woken <= clock::now(), "{name}: {woken:?} of {expiry:?}");
        }
    }

    #[test]
    fn each_way_to_sleep_ends_in_time_and_not_before() {
        check("clock_nanosleep", Nanosleep);
        check("timerfd", TimerFile::new().unwrap());
        check("sigwaitinfo", SignalWait(PosixTimer::new().unwrap()));
        check("handler", SignalHandler(PosixTimer::with_handler().unwrap()));
        check("futex", FutexTimeout::default());
        let epoll = EmptyEpoll::new().unwrap();
        if epoll.sleep(SpanNs(0)).is_ok() {
            check("epoll_pwait2", epoll);
        }
    }
}
