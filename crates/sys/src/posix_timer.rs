//! Timers that send a signal to the thread that made them (`timer_create`).

use std::cell::Cell;
use std::marker::PhantomData;
use std::{io, mem, ptr};

use wakescope_core::units::MonoNs;

use crate::sched::this_thread;
use crate::{checked, clock};

thread_local! {
    /// When the handler ran last in this thread; 0 if it has not since that was read. There is
    /// nothing to initialise or to drop: a handler may use it at any moment.
    static HANDLED_AT: Cell<u64> = const { Cell::new(0) };
}

/// A timer of `CLOCK_MONOTONIC` that sends a signal to the thread that made it. The signal is blocked
/// in that thread but while it waits, so none is lost between two waits.
#[derive(Debug)]
pub struct PosixTimer {
    id: libc::timer_t,
    signal: libc::c_int,
    /// The signal alone.
    set: libc::sigset_t,
    /// The thread's mask without it.
    open: libc::sigset_t,
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

/// The kernel says of a user who may have no more pending signals, as one may be for each timer, that it should be
/// tried again. So it does where no thread can be started.
fn limited(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(
            io::ErrorKind::QuotaExceeded,
            "this user's limit of pending signals is reached",
        ),
        _ => error,
    }
}

impl PosixTimer {
    /// A timer that is not armed, whose signal no handler fetches.
    pub fn new() -> io::Result<Self> {
        Self::with_signal(libc::SIGRTMIN() + 1)
    }

    /// One whose signal a handler takes.
    pub fn with_handler() -> io::Result<Self> {
        extern "C" fn handle(_: libc::c_int) {
            HANDLED_AT.set(clock::now().0);
        }
        let signal = libc::SIGRTMIN() + 2;
        // SAFETY: `sigaction` is plain data for which zero is a value: no flags, an empty mask. The
        // handler reads a clock and writes a word of its thread, which is safe at any moment.
        checked(unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(signal, &raw const action, ptr::null_mut())
        })?;
        Self::with_signal(signal)
    }

    fn with_signal(signal: libc::c_int) -> io::Result<Self> {
        // SAFETY: `sigset_t` is plain data that is initialised before any use: the first set by
        // `sigemptyset`, the second as the thread's mask. The numbers are signals.
        let (set, open) = unsafe {
            let (mut set, mut open): (libc::sigset_t, libc::sigset_t) =
                (mem::zeroed(), mem::zeroed());
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, signal);
            let rc = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut open);
            if rc != 0 {
                return Err(io::Error::from_raw_os_error(rc));
            }
            libc::sigdelset(&raw mut open, signal);
            (set, open)
        };
        // SAFETY: `sigevent` is plain data for which zero is a value, and the thread that asks is
        // there; `id` is live and written before it is used.
        let id = unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = this_thread().0;
            let mut id: libc::timer_t = mem::zeroed();
            checked(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut id))
                .map_err(limited)?;
            id
        };
        Ok(Self { id, signal, set, open, _thread: PhantomData })
    }

    /// Lets it expire once, at `expiry`.
    #[inline]
    pub fn arm(&self, expiry: MonoNs) -> io::Result<()> {
        let time = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: clock::timespec(expiry.0),
        };
        // SAFETY: the timer is this value's; `time` is live and only read; the old setting is not
        // asked for.
        checked(unsafe {
            libc::timer_settime(self.id, libc::TIMER_ABSTIME, &raw const time, ptr::null_mut())
        })
        .map(drop)
    }

    /// Sleeps until the signal has come, and takes it (`sigwaitinfo`). Returns early, with
    /// `Interrupted`, when the handler of another signal ran.
    #[inline]
    pub fn fetch(&self) -> io::Result<()> {
        // SAFETY: the set is live; nothing is asked for about the sender.
        checked(unsafe { libc::sigwaitinfo(&raw const self.set, ptr::null_mut()) }).map(drop)
    }

    /// Sleeps until the signal's handler has run (`sigsuspend`), and returns the time that the handler
    /// read first thing. Returns early, with `Interrupted`, when the handler of another signal ran.
    #[inline]
    pub fn wait_handled(&self) -> io::Result<MonoNs> {
        // SAFETY: the mask is live. It never returns but after a handler, with EINTR.
        unsafe { libc::sigsuspend(&raw const self.open) };
        match HANDLED_AT.take() {
            0 => Err(io::ErrorKind::Interrupted.into()),
            at => Ok(MonoNs(at)),
        }
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is this value's. A signal of it that waits is taken here, before another
        // timer of this thread could take it for its own.
        unsafe {
            libc::timer_delete(self.id);
            let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            while libc::sigtimedwait(&raw const self.set, ptr::null_mut(), &raw const now)
                == self.signal
            {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{ThreadHandle, allow_interrupts};
    use wakescope_core::units::SpanNs;

    const MS: SpanNs = SpanNs(1_000_000);

    #[test]
    fn a_signal_comes_when_it_is_due_also_if_nobody_waits_yet() {
        let (fetched, handled) = (PosixTimer::new().unwrap(), PosixTimer::with_handler().unwrap());
        for _ in 0..3 {
            let expiry = clock::now().after(MS);
            fetched.arm(expiry).unwrap();
            handled.arm(expiry).unwrap();
            fetched.fetch().unwrap();
            assert!(clock::now() >= expiry);
            let at = handled.wait_handled().unwrap();
            assert!(at >= expiry && at <= clock::now());
        }
        // One that came unseen is no signal of the next timer.
        let expiry = clock::now().after(MS);
        handled.arm(expiry).unwrap();
        fetched.arm(expiry).unwrap();
        clock::sleep_until(expiry.after(MS)).unwrap();
        drop((fetched, handled));
        let handled = PosixTimer::with_handler().unwrap();
        let expiry = clock::now().after(MS);
        handled.arm(expiry).unwrap();
        assert!(handled.wait_handled().unwrap() >= expiry);
    }

    #[test]
    fn another_signal_ends_both_waits() {
        allow_interrupts().unwrap();
        for handler in [false, true] {
            let thread = std::thread::spawn(move || {
                let timer = if handler { PosixTimer::with_handler() } else { PosixTimer::new() };
                let timer = timer.unwrap();
                let ended = if handler { timer.wait_handled().map(drop) } else { timer.fetch() };
                ended.unwrap_err().kind()
            });
            assert_eq!(ThreadHandle::new(thread).end().unwrap(), io::ErrorKind::Interrupted);
        }
    }
}
