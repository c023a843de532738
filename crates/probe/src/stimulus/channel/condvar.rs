//! A condition variable whose mutex inherits priorities: the sleeper waits for the condition, and has
//! the mutex when it wakes.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use wakescope_core::units::SpanNs;
use wakescope_sys::futex::{Scope, Waited};
use wakescope_sys::{clock, condition};

use super::{Channel, Slept};
use crate::stimulus::waker::exchange::{Exchange, State};

/// No signal handler ends the wait by itself, so the sleeper looks after so long whether it is to end.
const LOOK: SpanNs = SpanNs(50_000_000);

pub(super) struct Condvar {
    sleeper: u32,
    look: SpanNs,
}

/// The mutex: 0, or the number of the thread that has it and the kernel's marks.
struct Mutex<'a> {
    word: &'a AtomicU32,
    scope: Scope,
}

impl Mutex<'_> {
    #[inline]
    fn lock(&self, thread: u32) -> io::Result<()> {
        match self.word.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => condition::lock(self.word, self.scope),
        }
    }

    #[inline]
    fn unlock(&self, thread: u32) -> io::Result<()> {
        match self.word.compare_exchange(thread, 0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => condition::unlock(self.word, self.scope),
        }
    }
}

/// The word that changes with each signal, and the mutex.
#[inline]
fn words(exchange: &Exchange) -> (&AtomicU32, Mutex<'_>) {
    let [condition, mutex] = exchange.of_channel();
    (condition, Mutex { word: mutex, scope: exchange.scope() })
}

impl Channel for Condvar {
    /// The kernel compares the word before it lets the thread sleep.
    const KEEPS_WAKEUPS: bool = false;

    fn open(exchange: &Exchange) -> io::Result<Self> {
        let (condition, mutex) = words(exchange);
        // With a value that it has not, the operation does nothing, but only where there is one.
        let other = condition.load(Ordering::Relaxed).wrapping_add(1);
        match condition::signal(condition, other, mutex.word, mutex.scope) {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => Ok(Self { sleeper: exchange.probe().1.number(), look: LOOK }),
        }
    }

    #[inline]
    fn sleep(&self, exchange: &Exchange) -> Slept {
        let (condition, mutex) = words(exchange);
        if let Err(e) = mutex.lock(self.sleeper) {
            return Slept::Failed(e);
        }
        let seen = condition.load(Ordering::Acquire);
        let waits = exchange.state() == State::Waiting;
        if let Err(e) = mutex.unlock(self.sleeper) {
            return Slept::Failed(e);
        }
        if !waits {
            return Slept::WasWokenBefore;
        }
        let deadline = clock::now().after(self.look);
        match condition::wait(condition, seen, mutex.word, deadline, mutex.scope) {
            Waited::Woken => Slept::Woken,
            // Not by a wakeup: that sets the state first.
            Waited::Changed if exchange.state() == State::Waiting => Slept::Interrupted,
            Waited::Changed => Slept::WasWokenBefore,
            Waited::Interrupted => Slept::Interrupted,
        }
    }

    #[inline]
    fn after_wakeup(&self, exchange: &Exchange) {
        // It is this thread's: the waker took it for the one that it woke.
        let _ = words(exchange).1.unlock(self.sleeper);
    }

    /// The kernel compares the condition again when it resumes the sleep.
    fn before_interrupt(&self, exchange: &Exchange) {
        words(exchange).0.fetch_add(1, Ordering::Release);
    }

    /// Changes the condition with the mutex held, and signals it when the mutex is free.
    #[inline]
    fn wake(&self, exchange: &Exchange) -> io::Result<()> {
        let (condition, mutex) = words(exchange);
        let waker = exchange.waker();
        mutex.lock(waker)?;
        let next = condition.load(Ordering::Relaxed).wrapping_add(1);
        condition.store(next, Ordering::Release);
        mutex.unlock(waker)?;
        condition::signal(condition, next, mutex.word, mutex.scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus;
    use wakescope_core::plan::Between;
    use wakescope_sys::signal::allow_interrupts;

    /// A probe that learned of the end of its warm-up only when it looked began its measurement 45 ms
    /// late, and its waker left out as many calls.
    #[test]
    fn the_end_of_a_grid_ends_the_wait_of_one_who_does_not_look() {
        allow_interrupts().unwrap();
        for between in [Between::Threads, Between::Processes] {
            let exchange = Exchange::of_this_thread(between).unwrap();
            let hour = SpanNs(3_600_000_000_000);
            let channel = Condvar { look: hour, ..Condvar::open(&exchange).unwrap() };
            exchange.begin();
            exchange.offer();
            std::thread::scope(|scope| {
                let waker = scope.spawn(|| exchange.end(|| channel.before_interrupt(&exchange)));
                let ended = loop {
                    match channel.sleep(&exchange) {
                        Slept::Interrupted => {
                            if let Some(ended) = exchange.ended_in_sleep() {
                                break ended;
                            }
                        }
                        other => panic!("{other:?}"),
                    }
                };
                assert_eq!(ended, stimulus::Waited::Done);
                waker.join().unwrap();
            });
        }
    }
}
