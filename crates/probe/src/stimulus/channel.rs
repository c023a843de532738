//! The ways in which one thread wakes another: one file each.

use std::io::{self, ErrorKind};

use wakescope_core::plan::{Between, Stimulus};

use super::waker::exchange::Exchange;
use crate::trial::in_own_thread;

mod condvar;
mod eventfd;
pub(super) mod futex;
mod kill;
mod mqueue;
mod pipe;
mod semaphore;
mod socketpair;
mod stream;
pub(crate) mod sysv_semaphore;
mod tcp;
mod udp;

/// A way in which a waker wakes a sleeper. Neither side allocates, locks a lock of this process or
/// prints.
pub trait Channel: Send + Sync + Sized + 'static {
    /// Whether a wakeup waits for a sleeper that does not sleep yet, who then cannot tell it from one
    /// that ended its sleep.
    const KEEPS_WAKEUPS: bool;

    /// Opens it for the calling thread, which is the sleeper.
    fn open(exchange: &Exchange) -> io::Result<Self>;

    /// Sleeps until woken. The clock is read first thing after it.
    fn sleep(&self, exchange: &Exchange) -> Slept;

    /// What remains to be done by a sleeper who was woken.
    #[inline]
    fn after_wakeup(&self, _: &Exchange) {}

    /// For the waker, before it interrupts a sleeper that it has no more wakeups for: lets that end a
    /// sleep that the kernel resumes after a signal handler.
    #[inline]
    fn before_interrupt(&self, _: &Exchange) {}

    /// Wakes the sleeper, whose state is set already. Never waits: fails with `WouldBlock` where there
    /// is no room.
    fn wake(&self, exchange: &Exchange) -> io::Result<()>;
}

/// How a sleep ended.
#[derive(Debug)]
pub enum Slept {
    /// The sleeper was woken.
    Woken,
    /// It was not asleep yet when it was woken, as is known for certain.
    WasWokenBefore,
    /// A signal handler ran, or it is time to look whether more is to come.
    Interrupted,
    /// The channel is broken.
    Failed(io::Error),
}

impl Slept {
    /// How a sleep ended that is a call.
    #[inline]
    fn in_call(ended: io::Result<()>) -> Self {
        match ended {
            Ok(()) => Self::Woken,
            Err(e) if e.kind() == ErrorKind::Interrupted => Self::Interrupted,
            Err(e) => Self::Failed(e),
        }
    }

    /// How a sleep ended that is a call which reads; nothing is read where the other side is gone.
    #[inline]
    fn in_read(ended: io::Result<usize>) -> Self {
        Self::in_call(ended.and_then(all_of_it))
    }
}

/// A byte, or eight, are read and written as a whole or not at all.
#[inline]
fn all_of_it(length: usize) -> io::Result<()> {
    if length > 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(0)) }
}

/// What is done with a channel, whichever it is.
pub(crate) trait ForChannel {
    /// What comes of it.
    type Output;
    /// Does it.
    fn with<C: Channel>(self) -> Self::Output;
}

/// Does `what` with the channel of `stimulus`; `None` if it is not by a waker.
pub(crate) fn for_channel<F: ForChannel>(stimulus: Stimulus, what: F) -> Option<F::Output> {
    Some(match stimulus {
        Stimulus::Futex => what.with::<futex::Futex>(),
        Stimulus::Pipe => what.with::<pipe::Pipe>(),
        Stimulus::Eventfd => what.with::<eventfd::Eventfd>(),
        Stimulus::Socketpair => what.with::<socketpair::Socketpair>(),
        Stimulus::Udp => what.with::<udp::Udp>(),
        Stimulus::Tcp => what.with::<tcp::Tcp>(),
        Stimulus::Mqueue => what.with::<mqueue::Mqueue>(),
        Stimulus::Semaphore => what.with::<semaphore::Semaphore>(),
        Stimulus::SysvSemaphore => what.with::<sysv_semaphore::SysvSemaphore>(),
        Stimulus::Kill => what.with::<kill::Kill>(),
        Stimulus::Condvar => what.with::<condvar::Condvar>(),
        _ => return None,
    })
}

/// Whether `count` channels of `stimulus` can be open at once here, as many as there are probes; yes if it
/// needs none.
pub(crate) fn check(stimulus: Stimulus, between: Between, count: usize) -> io::Result<()> {
    struct Open(Between, usize);
    impl ForChannel for Open {
        type Output = io::Result<()>;
        fn with<C: Channel>(self) -> io::Result<()> {
            let Self(between, count) = self;
            let open = |_| {
                let exchange = Exchange::of_this_thread(between)?;
                C::open(&exchange).map(|channel| (channel, exchange))
            };
            (0..count).map(open).collect::<io::Result<Vec<_>>>().map(drop)
        }
    }
    if !stimulus.needs_waker() {
        return Ok(());
    }
    // Nobody else has the signal mask and the number of that thread.
    in_own_thread(move || for_channel(stimulus, Open(between, count)).unwrap_or(Ok(())))
}

#[cfg(test)]
mod tests;
