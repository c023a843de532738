//! The futex operations of a condition variable whose mutex inherits priorities.
//!
//! C libraries do without them: glibc since 2.25, and musl, wake who waits for a condition, who then
//! takes the mutex by itself. These hand over the mutex before they wake.

use std::io;
use std::sync::atomic::AtomicU32;

use wakescope_core::units::MonoNs;

use crate::checked;
use crate::clock;
use crate::futex::{Scope, Waited};

/// Sleeps on `condition` as long as it has the value `expected`, until it is signalled, or until
/// `deadline`, which counts as an interruption. Signal handlers run meanwhile, and do not end it: the
/// kernel restarts this operation after each. Whoever was [`Waited::Woken`] holds `mutex` then; nobody
/// else does.
#[inline]
pub fn wait(
    condition: &AtomicU32,
    expected: u32,
    mutex: &AtomicU32,
    deadline: MonoNs,
    scope: Scope,
) -> Waited {
    let deadline = clock::timespec(deadline.0);
    // SAFETY: both words are live for the call and aligned, the time is live and only read.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            condition.as_ptr(),
            libc::FUTEX_WAIT_REQUEUE_PI | scope.flag(),
            expected,
            &raw const deadline,
            mutex.as_ptr(),
            0,
        )
    };
    Waited::of(rc)
}

/// Signals `condition`, which still has the value `expected`: takes the mutex for one who waits, and
/// wakes them, or, if somebody holds it, lets them wait for it. Fails with `WouldBlock` if the value
/// has changed.
#[inline]
pub fn signal(
    condition: &AtomicU32,
    expected: u32,
    mutex: &AtomicU32,
    scope: Scope,
) -> io::Result<()> {
    const WAKES: libc::c_int = 1;
    const REQUEUES: usize = 0;
    // SAFETY: both words are live for the call and aligned. In place of a timeout the operation takes
    // a number.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            condition.as_ptr(),
            libc::FUTEX_CMP_REQUEUE_PI | scope.flag(),
            WAKES,
            REQUEUES,
            mutex.as_ptr(),
            expected,
        )
    };
    checked(rc).map(drop)
}

/// Takes a mutex that somebody else has, lending them this thread's priority until then.
pub fn lock(mutex: &AtomicU32, scope: Scope) -> io::Result<()> {
    // SAFETY: the word is live for the call and aligned; there is no timeout.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            mutex.as_ptr(),
            libc::FUTEX_LOCK_PI | scope.flag(),
            0,
            std::ptr::null::<libc::timespec>(),
        )
    };
    checked(rc).map(drop)
}

/// Gives a mutex that this thread holds to the first who waits for it.
pub fn unlock(mutex: &AtomicU32, scope: Scope) -> io::Result<()> {
    // SAFETY: the word is live for the call and aligned.
    let rc = unsafe {
        libc::syscall(libc::SYS_futex, mutex.as_ptr(), libc::FUTEX_UNLOCK_PI | scope.flag())
    };
    checked(rc).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::this_thread;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    #[test]
    fn who_is_woken_holds_the_mutex() {
        for scope in [Scope::Private, Scope::Shared] {
            let words = Arc::new([const { AtomicU32::new(0) }; 2]);
            let sleeper = {
                let words = Arc::clone(&words);
                std::thread::spawn(move || {
                    let [condition, mutex] = &*words;
                    let ended = wait(condition, 0, mutex, MonoNs(u64::MAX), scope);
                    let holder = mutex.load(Ordering::Acquire) & libc::FUTEX_TID_MASK;
                    unlock(mutex, scope).unwrap();
                    (ended, holder == this_thread().number())
                })
            };
            let [condition, mutex] = &*words;
            assert!(signal(condition, 1, mutex, scope).is_err(), "another value");
            while !sleeper.is_finished() {
                // Whoever does not sleep yet is not signalled.
                signal(condition, 0, mutex, scope).unwrap();
                std::thread::yield_now();
            }
            assert_eq!(sleeper.join().unwrap(), (Waited::Woken, true));
            let ended = |expected| wait(condition, expected, mutex, MonoNs(1), scope);
            assert_eq!((ended(1), ended(0)), (Waited::Changed, Waited::Interrupted));
            // Nobody holds it now.
            lock(mutex, scope).unwrap();
            unlock(mutex, scope).unwrap();
        }
    }
}
