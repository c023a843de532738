//! A signal that one thread sends to another, which waits for it.

use std::{io, mem, ptr};

use crate::checked;
use crate::sched::{ThreadId, this_thread};

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

/// Fails where signals cannot be sent to threads: a filter of system calls can refuse that. Sends none.
pub fn check() -> io::Result<()> {
    deliver(std::process::id(), this_thread(), 0)
}

fn deliver(process: u32, thread: ThreadId, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: sends a signal to one thread, if it is one of that process.
    let rc = unsafe { libc::syscall(libc::SYS_tgkill, process, thread.number(), signal) };
    checked(rc).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::allow_interrupts;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Has the kernel refuse the calling thread one system call.
    fn refuse(call: libc::c_long) {
        const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let call = u32::try_from(call).unwrap();
        // Loads the number of the call, which comes first in its data, and compares it.
        let step = |code, jt, jf, k| {
            let code = u16::try_from(code).unwrap();
            libc::sock_filter { code, jt, jf, k }
        };
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, REFUSED),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let filter = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
        // SAFETY: integer options, and a filter that is live for the call, which copies it.
        unsafe {
            checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)).unwrap();
            let mode = libc::SECCOMP_MODE_FILTER;
            checked(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter)).unwrap();
        }
    }

    #[test]
    fn a_filter_that_refuses_signals_is_noticed() {
        std::thread::spawn(|| {
            check().unwrap();
            refuse(libc::SYS_tgkill);
            assert_eq!(check().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        })
        .join()
        .unwrap();
    }

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
