//! Clocks and the absolute sleep.

use std::io;

use wakescope_core::units::{MonoNs, SpanNs};

pub(crate) const NS_PER_S: u64 = 1_000_000_000;

/// A clock of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Does not run while the machine sleeps; its rate follows NTP.
    Monotonic,
    /// As `Monotonic`, untouched by NTP.
    MonotonicRaw,
    /// As `Monotonic`, but runs while the machine sleeps.
    Boottime,
    /// Wall-clock time since 1970; it may jump.
    Realtime,
    /// CPU time that the calling thread has used.
    ThreadCpu,
    /// CPU time that all threads of this process have used.
    ProcessCpu,
}

impl Clock {
    fn id(self) -> libc::clockid_t {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            Self::Boottime => libc::CLOCK_BOOTTIME,
            Self::Realtime => libc::CLOCK_REALTIME,
            Self::ThreadCpu => libc::CLOCK_THREAD_CPUTIME_ID,
            Self::ProcessCpu => libc::CLOCK_PROCESS_CPUTIME_ID,
        }
    }
}

/// What `clock` reads, in nanoseconds.
#[inline]
pub fn read(clock: Clock) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is live and writable for the call. The clocks named exist on every kernel
    // that Rust's std runs on, so the call cannot fail.
    unsafe { libc::clock_gettime(clock.id(), &raw mut time) };
    nanoseconds(time)
}

/// The point in time that it is.
#[inline]
pub fn now() -> MonoNs {
    MonoNs(read(Clock::Monotonic))
}

/// The resolution of `CLOCK_MONOTONIC`: 1 ns where timers are of high resolution.
pub fn resolution() -> SpanNs {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `read`.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut time) };
    SpanNs(nanoseconds(time))
}

#[inline]
#[allow(clippy::cast_sign_loss)] // Neither field is negative but for a wall clock before 1970.
pub(crate) fn nanoseconds(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

/// Sleeps until `wakeup`. Returns early, with `Interrupted`, when a signal handler ran.
#[inline]
pub fn sleep_until(wakeup: MonoNs) -> io::Result<()> {
    absolute_sleep(&timespec(wakeup.0))
}

/// So many nanoseconds, as the C library counts them.
#[inline]
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        // Where that has 32 bits, it ends in 2^31 s.
        tv_sec: libc::time_t::try_from(ns / NS_PER_S).unwrap_or(libc::time_t::MAX),
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // Below 10^9.
        tv_nsec: (ns % NS_PER_S) as libc::c_long,
    }
}

/// The system call itself. The C library's wrapper is a cancellation point, which costs more
/// instructions than the rest of the measuring loop's arithmetic (48 with glibc 2.36).
#[cfg(target_pointer_width = "64")]
#[inline]
fn absolute_sleep(time: &libc::timespec) -> io::Result<()> {
    // SAFETY: `time` is live for the call; an absolute sleep writes no remainder.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_clock_nanosleep,
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            std::ptr::from_ref(time),
            std::ptr::null_mut::<libc::timespec>(),
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Where the C library chooses between calls with 32 and 64 bits of time, it shall.
#[cfg(not(target_pointer_width = "64"))]
fn absolute_sleep(time: &libc::timespec) -> io::Result<()> {
    // SAFETY: as above.
    let rc = unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            std::ptr::from_ref(time),
            std::ptr::null_mut(),
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(rc)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance_and_sleeps_end_in_time() {
        let target = now().after(SpanNs(2_000_000));
        sleep_until(target).unwrap();
        assert!(now() >= target, "woke before the time");
        assert!(read(Clock::Boottime) >= target.0);
        assert!(read(Clock::MonotonicRaw) > 0 && read(Clock::Realtime) > 0);
        assert!(resolution().0 > 0);
    }
}
