//! Signals, without handlers: blocked everywhere, fetched where it suits.

use std::fs::File;
use std::marker::PhantomData;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem, ptr};

use wakescope_core::units::SpanNs;

use crate::clock;

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`.
    Terminate,
    /// The terminal went away.
    Hangup,
}

impl Signal {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Hangup => "SIGHUP",
        }
    }
}

/// Signals that end a run, blocked in this thread and every thread it starts from now on.
/// They wait until [`EndSignals::wait`] fetches them.
///
/// Those that this process was started to ignore, as `nohup` and shells do for jobs in the
/// background, stay ignored.
///
/// Dropped, once there is nothing more to put back, those that were not blocked before end this process
/// again: a reader that takes nothing of the output cannot hold up Ctrl-C. Those that came until then do not.
#[derive(Debug)]
pub struct EndSignals {
    set: libc::sigset_t,
    /// Those of them that were not blocked before.
    own: libc::sigset_t,
    /// Each thread has a mask of its own.
    _of_this_thread: PhantomData<*const ()>,
}

/// The signals that end a run.
const END: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The signal that breaks a thread's sleep; see [`ThreadHandle::interrupt`].
pub(crate) const NUDGE: libc::c_int = libc::SIGUSR1;

impl EndSignals {
    /// Blocks the signals that end a run.
    pub fn block() -> io::Result<Self> {
        // SAFETY: `sigset_t` is plain data that `sigemptyset` initialises before any use.
        let [mut set, mut own, mut before]: [libc::sigset_t; 3] = unsafe { mem::zeroed() };
        // SAFETY: all three are live and writable; the numbers are signals.
        let rc = unsafe {
            libc::sigemptyset(&raw mut set);
            libc::sigemptyset(&raw mut own);
            libc::sigemptyset(&raw mut before);
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut before);
            for signal in END {
                // A signal that is blocked waits to be fetched even if it is ignored.
                if !is_ignored(signal) {
                    libc::sigaddset(&raw mut set, signal);
                    if libc::sigismember(&raw const before, signal) == 0 {
                        libc::sigaddset(&raw mut own, signal);
                    }
                }
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut())
        };
        match rc {
            0 => Ok(Self { set, own, _of_this_thread: PhantomData }),
            rc => Err(io::Error::from_raw_os_error(rc)),
        }
    }

    /// Blocks them for as long as this thread lives.
    pub fn block_for_good() -> io::Result<()> {
        Self::block().map(mem::forget)
    }

    /// Waits for one of the signals, for `patience` at most.
    pub fn wait(&self, patience: SpanNs) -> Option<Signal> {
        self.fetch(patience).ok()
    }

    /// The same. The error tells why there is none: `WouldBlock` after that time, and `Interrupted` where this
    /// thread was stopped meanwhile, because no handler of a signal runs in it.
    pub fn fetch(&self, patience: SpanNs) -> io::Result<Signal> {
        let time = clock::timespec(patience.0);
        // One of these that somebody sends to this process is no stop.
        let mut set = self.set;
        // SAFETY: `set` and `time` are live; no information about the sender is asked for.
        let signal = unsafe {
            libc::sigaddset(&raw mut set, NUDGE);
            libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const time)
        };
        match signal {
            NUDGE => Err(io::ErrorKind::WouldBlock.into()),
            libc::SIGINT => Ok(Signal::Interrupt),
            libc::SIGTERM => Ok(Signal::Terminate),
            libc::SIGHUP => Ok(Signal::Hangup),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A file that can be read while one of the signals waits to be fetched.
    pub fn file(&self) -> io::Result<File> {
        signal_file(&self.set)
    }
}

impl Drop for EndSignals {
    fn drop(&mut self) {
        let no_time = clock::timespec(0);
        // SAFETY: the set and the time are live; neither the sender nor the old mask is asked for.
        unsafe {
            while libc::sigtimedwait(&raw const self.own, ptr::null_mut(), &raw const no_time) > 0 {
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const self.own, ptr::null_mut());
        }
    }
}

/// Blocks the signals that say that a terminal has another size, and that this process goes on after it was
/// stopped. A file from which they are read, without waiting.
pub fn redraw_signals() -> io::Result<File> {
    // SAFETY: `sigset_t` is plain data that `sigemptyset` initialises before any use.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is live and writable; the numbers are signals; the old mask is not asked for.
    let rc = unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGWINCH);
        libc::sigaddset(&raw mut set, libc::SIGCONT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut())
    };
    if rc == 0 { signal_file(&set) } else { Err(io::Error::from_raw_os_error(rc)) }
}

fn signal_file(set: &libc::sigset_t) -> io::Result<File> {
    // SAFETY: the set is live, and a new descriptor is asked for.
    let fd = unsafe { libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    let fd = crate::checked(fd)?;
    // SAFETY: the call gave a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// Lets signals that end a run end this process, and all that it starts, as by default: also those
/// that it was started to ignore. For tests, which may run in the background.
pub fn end_by_default() {
    for signal in END {
        // SAFETY: no handler of this process is involved, and the numbers are signals.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Whether this process ignores a signal.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: `sigaction` is plain data for which zero is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: `action` is live and writable; nothing is changed.
    let rc = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    rc == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Whether [`fail_beyond_file_size`] has changed what programs that are started inherit.
static FILE_SIZE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Makes writes beyond the limit of file sizes (`ulimit -f`) fail with `FileTooLarge` instead of
/// ending the process (SIGXFSZ). Programs that are started are ended as before.
pub fn fail_beyond_file_size() {
    if !is_ignored(libc::SIGXFSZ) {
        FILE_SIZE_IGNORED.store(true, Ordering::Relaxed);
        // SAFETY: no handler of this process is involved, and the number is a signal.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}

/// Whether a program that is started is to have SIGXFSZ as by default.
pub(crate) fn resets_file_size() -> bool {
    FILE_SIZE_IGNORED.load(Ordering::Relaxed)
}

/// Makes [`ThreadHandle::interrupt`] break sleeps instead of ending the process.
pub fn allow_interrupts() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: `sigaction` is plain data for which zero is a value: no flags, an empty mask. The
    // handler does nothing, which is safe at any moment; without SA_RESTART, sleeps return.
    let rc = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(NUDGE, &raw const action, ptr::null_mut())
    };
    crate::checked(rc).map(drop)
}

/// A running thread that can be woken from its sleep.
#[derive(Debug)]
pub struct ThreadHandle<T> {
    thread: std::thread::JoinHandle<T>,
}

impl<T> ThreadHandle<T> {
    /// Takes over a thread.
    pub fn new(thread: std::thread::JoinHandle<T>) -> Self {
        Self { thread }
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Breaks the thread's sleep, if it sleeps; it should have been told to end beforehand.
    pub fn interrupt(&self) {
        use std::os::unix::thread::JoinHandleExt;
        // SAFETY: the thread has not been joined, for that consumes `self`; so its handle is valid
        // even if it has ended. The signal has a handler (`allow_interrupts`).
        unsafe { libc::pthread_kill(self.thread.as_pthread_t(), NUDGE) };
    }

    /// Waits for the thread's result, interrupting its sleep again and again: it may have been
    /// about to sleep when it was interrupted last.
    pub fn end(self) -> std::thread::Result<T> {
        while !self.is_finished() {
            self.interrupt();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.thread.join()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::clock;
    use crate::poll::wait_readable;

    #[test]
    fn a_sleeping_thread_is_interrupted() {
        allow_interrupts().unwrap();
        let thread = std::thread::spawn(|| {
            clock::sleep_until(clock::now().after(SpanNs(3_600_000_000_000))).unwrap_err().kind()
        });
        assert_eq!(ThreadHandle::new(thread).end().unwrap(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_new_size_of_the_terminal_is_read() {
        std::thread::spawn(|| {
            let mut file = redraw_signals().unwrap();
            // SAFETY: sends a signal that this thread has blocked to this thread only.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGWINCH) };
            assert!(wait_readable(&file, SpanNs(1_000_000_000)).unwrap());
            assert!(file.read(&mut [0; 128]).unwrap() > 0);
            assert_eq!(file.read(&mut [0; 128]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_nudge_from_outside_is_no_stop() {
        allow_interrupts().unwrap();
        std::thread::spawn(|| {
            let signals = EndSignals::block().unwrap();
            let own = libc::c_long::from(crate::sched::this_thread().number());
            let sender = std::thread::spawn(move || {
                for _ in 0..20 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    // SAFETY: the thread waits for this one, and the signal has a handler.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), own, NUDGE) };
                }
            });
            while !sender.is_finished() {
                let why = signals.fetch(SpanNs(1_000_000_000)).unwrap_err();
                assert_eq!(why.kind(), io::ErrorKind::WouldBlock);
            }
            sender.join().unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn blocked_signals_are_fetched() {
        std::thread::spawn(|| {
            let signals = EndSignals::block().unwrap();
            assert_eq!(signals.wait(SpanNs(1_000)), None);
            // SAFETY: sends a signal that this thread has blocked to this thread only.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) };
            let file = signals.file().unwrap();
            assert!(wait_readable(&file, SpanNs(1_000_000_000)).unwrap());
            assert_eq!(signals.wait(SpanNs(1_000_000_000)), Some(Signal::Terminate));
            assert!(!wait_readable(&file, SpanNs(1_000)).unwrap());
            // A second one leaves to the first what has come.
            drop(EndSignals::block().unwrap());
            assert_eq!(signals.wait(SpanNs(0)), None);
            // SAFETY: as above.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) };
            drop(EndSignals::block().unwrap());
            assert_eq!(signals.wait(SpanNs(1_000_000_000)), Some(Signal::Terminate));
            // One that comes before they are dropped does not end this process.
            // SAFETY: as above.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) };
            drop(signals);
            assert!(!END.into_iter().any(is_blocked));
        })
        .join()
        .unwrap();
    }

    fn is_blocked(signal: libc::c_int) -> bool {
        // SAFETY: the set is plain data and live, and the mask is only read.
        unsafe {
            let mut mask: libc::sigset_t = mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut mask);
            libc::sigismember(&raw const mask, signal) == 1
        }
    }
}
