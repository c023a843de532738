//! Futexes: words that threads sleep on.

use std::io;
use std::sync::atomic::AtomicU32;

use wakescope_core::units::{MonoNs, SpanNs};

use crate::checked;
use crate::clock::NS_PER_S;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Another thread woke this one, or, as the kernel may, nobody did.
    Woken,
    /// The word had another value already: the thread did not sleep.
    Changed,
    /// A signal handler ran, or the time was up.
    Interrupted,
}

impl Waited {
    /// What a call tells for which 0 is success.
    #[inline]
    pub(crate) fn of(rc: libc::c_long) -> Self {
        if rc == 0 {
            return Self::Woken;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR | libc::ETIMEDOUT) => Self::Interrupted,
            // EAGAIN. No other error is possible for such a word.
            _ => Self::Changed,
        }
    }
}

/// Whose threads sleep on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of this process only.
    Private,
    /// Those of all processes that share the memory.
    Shared,
}

impl Scope {
    #[inline]
    pub(crate) fn flag(self) -> libc::c_int {
        match self {
            Self::Private => libc::FUTEX_PRIVATE_FLAG,
            Self::Shared => 0,
        }
    }
}

/// Sleeps on `word` as long as it has the value `expected`, until another thread wakes it.
#[inline]
pub fn wait(word: &AtomicU32, expected: u32, scope: Scope) -> Waited {
    // SAFETY: `word` is live for the call, aligned, and only read; there is no timeout.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | scope.flag(),
            expected,
            std::ptr::null::<libc::timespec>(),
        )
    };
    Waited::of(rc)
}

/// Sleeps on `word` as [`wait`] does, but for `most` at most. Returns also when a signal handler ran.
pub fn wait_at_most(word: &AtomicU32, expected: u32, most: SpanNs) {
    let most = time_of(most.0);
    // SAFETY: `word` and `most` are live for the call, aligned, and only read.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            most.as_ptr(),
        )
    };
}

/// Sleeps on `word`, which nobody changes from 0, until `expiry`. Returns early, with `Interrupted`,
/// when a signal handler ran, another thread woke it, or, as the kernel may, nobody did.
#[inline]
pub fn sleep_until(word: &AtomicU32, expiry: MonoNs) -> io::Result<()> {
    let time = time_of(expiry.0);
    // SAFETY: `word` and `time` are live for the call, aligned, and only read. A wait with a mask,
    // unlike one without, takes a point of CLOCK_MONOTONIC.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            0,
            time.as_ptr(),
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    if rc == 0 {
        return Err(io::ErrorKind::Interrupted.into());
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::ETIMEDOUT) => Ok(()),
        e => Err(e),
    }
}

/// Seconds and nanoseconds as the system call of this number takes them: two words of the machine,
/// whatever the C library's `timespec` is. They hold what 68 years of uptime take.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn time_of(ns: u64) -> [libc::c_long; 2] {
    [(ns / NS_PER_S) as libc::c_long, (ns % NS_PER_S) as libc::c_long]
}

/// Wakes one thread that sleeps on `word`; whether there was one.
#[inline]
pub fn wake_one(word: &AtomicU32, scope: Scope) -> io::Result<bool> {
    // SAFETY: `word` is live for the call and aligned; the kernel only compares its address.
    let rc = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | scope.flag(), 1)
    };
    checked(rc).map(|woken| woken > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::signal::{ThreadHandle, allow_interrupts};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use wakescope_core::units::SpanNs;

    #[test]
    fn a_word_that_has_changed_is_told_from_a_sleep() {
        let word = Arc::new(AtomicU32::new(7));
        assert_eq!(wait(&word, 6, Scope::Private), Waited::Changed);
        assert!(!wake_one(&word, Scope::Private).unwrap(), "nobody sleeps");
        let sleeper = {
            let word = Arc::clone(&word);
            std::thread::spawn(move || {
                let ended = wait(&word, 7, Scope::Private);
                // Whoever was not asleep when the word changed did not sleep.
                (ended, word.load(Ordering::Acquire))
            })
        };
        while !wake_one(&word, Scope::Private).unwrap() {
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
    fn a_wait_can_have_an_end() {
        let word = AtomicU32::new(0);
        let expiry = clock::now().after(SpanNs(2_000_000));
        sleep_until(&word, expiry).unwrap();
        assert!(clock::now() >= expiry);
        assert_eq!(
            sleep_until(&AtomicU32::new(1), expiry).unwrap_err().raw_os_error(),
            Some(libc::EAGAIN)
        );
    }

    #[test]
    fn a_signal_ends_a_wait() {
        allow_interrupts().unwrap();
        let thread = std::thread::spawn(|| wait(&AtomicU32::new(0), 0, Scope::Private));
        assert_eq!(ThreadHandle::new(thread).end().unwrap(), Waited::Interrupted);
    }
}
