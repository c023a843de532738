//! Threads that do the work of one load together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use wakescope_core::units::counted;
use wakescope_sys::sched::affinity;

use super::desk::Desk;

/// Enough for any load: what they work on lies in the heap.
const STACK: usize = 256 << 10;

/// What the threads of a load share.
pub(super) struct Crew<'a> {
    desk: &'a Desk,
    /// How many are not set up yet.
    awaited: AtomicUsize,
    failed: AtomicBool,
}

impl Crew<'_> {
    /// To be called by each thread once, when it is set up. With the last, the load is ready.
    pub(super) fn ready(&self) {
        if self.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.desk.ready();
        }
    }

    /// Counts work that was done.
    pub(super) fn done(&self, units: u64) {
        self.desk.done(units);
    }

    /// Whether work should stop: the desk says so, or another thread has failed.
    pub(super) fn stopping(&self) -> bool {
        self.desk.stopping() || self.failed.load(Ordering::Relaxed)
    }
}

/// The CPUs that a load may use.
pub(super) fn allowed_cpus() -> Result<Vec<u32>, String> {
    affinity().map_err(|e| format!("cannot find out the allowed CPUs: {e}"))
}

/// Has each of `members` worked on in a thread of its own, called `name` (15 bytes at most), until
/// the desk says stop or one of them fails, and returns what the work of each gave, or the first of
/// their faults. `work` must look whether it should stop at least every few hundred milliseconds,
/// whatever the others do.
pub(super) fn work_together<T: Send, R: Send>(
    name: &str,
    members: Vec<T>,
    desk: &Desk,
    work: impl Fn(T, &Crew<'_>) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let count = members.len();
    let crew = Crew { desk, awaited: AtomicUsize::new(count), failed: AtomicBool::new(false) };
    let (crew, work) = (&crew, &work);
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(count);
        for member in members {
            let toil = move || {
                let done = work(member, crew);
                crew.failed.fetch_or(done.is_err(), Ordering::Relaxed);
                done
            };
            let builder = thread::Builder::new().name(name.into()).stack_size(STACK);
            threads.push(builder.spawn_scoped(scope, toil).map_err(|e| {
                crew.failed.store(true, Ordering::Relaxed);
                let what = format!("cannot start {}", counted(count as u64, "thread"));
                desk.not_started(&what, &e)
            })?);
        }
        let ends = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread of the load panicked".into()))
        });
        // All of them are waited for, whichever failed.
        ends.collect::<Vec<_>>().into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn all_work_until_the_desk_says_stop() {
        let desk = test_desk();
        let work = |member: u64, crew: &Crew<'_>| {
            crew.ready();
            crew.done(member);
            while !crew.stopping() {
                // The last to count ends all.
                if desk.work() == 1 + 2 + 4 {
                    desk.stop();
                }
                thread::yield_now();
            }
            Ok(member * 10)
        };
        assert_eq!(work_together("test", vec![1, 2, 4], &desk, work).unwrap(), [10, 20, 40]);
        assert_eq!(desk.work(), 7);
    }

    #[test]
    fn one_that_fails_ends_all() {
        let desk = test_desk();
        let work = |member: u64, crew: &Crew<'_>| {
            while member != 2 && !crew.stopping() {
                thread::yield_now();
            }
            if member == 2 { Err("cannot go on".to_owned()) } else { Ok(()) }
        };
        let fault = work_together("test", vec![1, 2, 3], &desk, work).unwrap_err();
        assert_eq!(fault, "cannot go on");
    }
}
