//! A signal that one thread sends to another, which waits for it.

use std::{io, mem, ptr};

use crate::checked;
use crate::sched::ThreadId;

/// The signal. Only one of it is ever pending, as of every signal that is not a real-time one.
const WAKE: libc::c_int = libc::SIGUSR2;

/// The signal as a set, blocked in the thread that made this.
#[derive(Clone, Copy, Debug)]
pub struct WakeSignal {
    set: libc::sigset_t,
}

impl WakeSignal {
    /// Blocks the signal in the calling thread, which may wait for it from now on.
    pub fn block() -> io::Result<Self> {
        // SAFETY: `sigset_t` is plain data that `sigemptyset` initialises before any use.
        let mut set: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: `set` is live and writable; the number is a signal; the old mask is not asked for.
        let rc = unsafe {
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, WAKE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut())
        };
        if rc == 0 { Ok(Self { set }) } else { Err(io::Error::from_raw_os_error(rc)) }
    }

    /// Waits for the signal and takes it.
    #[inline]
    pub fn wait(&self) -> io::Result<()> {
        // SAFETY: the set is live; nothing is asked about the sender.
        checked(unsafe { libc::sigwaitinfo(&raw const self.set, ptr::null_mut()) }).map(drop)
    }
}

/// Sends the signal to `thread` of `process`.
#[inline]
pub fn send(process: u32, thread: ThreadId) -> io::Result<()> {
    deliver(process, thread, WAKE)
}

/// Breaks the sleep of `thread` of `process`, as [`crate::signal::ThreadHandle::interrupt`] does.
pub fn interrupt(process: u32, thread: ThreadId) -> io::Result<()> {
    deliver(process, thread, crate::signal::NUDGE)
}

fn deliver(process: u32, thread: ThreadId, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: sends a signal to one thread, if it is one of that process.
    let rc = unsafe { libc::syscall(libc::SYS_tgkill, process, thread.number(), signal) };
    checked(libc::c_int::try_from(rc).unwrap_or(-1)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::this_thread;
    use crate::signal::allow_interrupts;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_signal_reaches_the_thread_that_waits_for_it() {
        allow_interrupts().unwrap();
        std::thread::spawn(|| {
            let signal = WakeSignal::block().unwrap();
            send(std::process::id(), this_thread()).unwrap();
            signal.wait().unwrap();
            // Others end the wait as well, and are told apart.
            let (process, thread) = (std::process::id(), this_thread());
            let done = AtomicBool::new(false);
            let ended = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        interrupt(process, thread).unwrap();
                        std::thread::yield_now();
                    }
                });
                let ended = signal.wait();
                done.store(true, Ordering::Relaxed);
                ended
            });
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::Interrupted);
        })
        .join()
        .unwrap();
        // It was sent to one thread of one process only.
        assert!(send(1, this_thread()).is_err());
    }
}
