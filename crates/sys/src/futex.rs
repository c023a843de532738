//! Futexes: words that threads of this process sleep on.

use std::io;
use std::sync::atomic::AtomicU32;

use wakescope_core::units::SpanNs;

use crate::checked;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Another thread woke this one, or, as the kernel may, nobody did.
    Woken,
    /// The word had another value already: the thread did not sleep.
    Changed,
    /// A signal handler ran.
    Interrupted,
}

/// Sleeps on `word` as long as it has the value `expected`, until another thread wakes it.
#[inline]
pub fn wait(word: &AtomicU32, expected: u32) -> Waited {
    // SAFETY: `word` is live for the call, aligned, and only read; there is no timeout.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            std::ptr::null::<libc::timespec>(),
        )
    };
    if rc == 0 {
        return Waited::Woken;
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EINTR) => Waited::Interrupted,
        // EAGAIN. No other error is possible for such a word.
        _ => Waited::Changed,
    }
}

/// Sleeps on `word` as [`wait`] does, but for `most` at most. Returns also when a signal handler ran.
pub fn wait_at_most(word: &AtomicU32, expected: u32, most: SpanNs) {
    // u64 nanoseconds are less than 2^35 seconds, and the rest is below 10^9: both fit.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    let most = libc::timespec {
        tv_sec: (most.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (most.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `word` and `most` are live for the call, aligned, and only read.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const most,
        )
    };
}

/// Wakes one thread that sleeps on `word`; whether there was one.
#[inline]
pub fn wake_one(word: &AtomicU32) -> io::Result<bool> {
    // SAFETY: `word` is live for the call and aligned; the kernel only compares its address.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
    checked(libc::c_int::try_from(rc).unwrap_or(-1)).map(|woken| woken > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{ThreadHandle, allow_interrupts};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_word_that_has_changed_is_told_from_a_sleep() {
        let word = Arc::new(AtomicU32::new(7));
        assert_eq!(wait(&word, 6), Waited::Changed);
        assert!(!wake_one(&word).unwrap(), "nobody sleeps");
        let sleeper = {
            let word = Arc::clone(&word);
            std::thread::spawn(move || {
                let ended = wait(&word, 7);
                // Whoever was not asleep when the word changed did not sleep.
                (ended, word.load(Ordering::Acquire))
            })
        };
        while !wake_one(&word).unwrap() {
            std::thread::yield_now();
        }
        assert_eq!(sleeper.join().unwrap(), (Waited::Woken, 7));
    }

    #[test]
    fn a_wait_can_end_by_itself() {
        wait_at_most(&AtomicU32::new(7), 7, SpanNs(1));
        // The word differs: no sleep, or this would take an hour.
        wait_at_most(&AtomicU32::new(7), 6, SpanNs(3_600_000_000_000));
    }

    #[test]
    fn a_signal_ends_a_wait() {
        allow_interrupts().unwrap();
        let thread = std::thread::spawn(|| wait(&AtomicU32::new(0), 0));
        assert_eq!(ThreadHandle::new(thread).end().unwrap(), Waited::Interrupted);
    }
}
