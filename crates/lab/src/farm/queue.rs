//! Which job is next.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a job that another lab works on is left alone before it is looked at again.
const PATIENCE: Duration = Duration::from_millis(100);

/// Jobs to be done, by their place in the list.
#[derive(Debug)]
pub(crate) struct Queue {
    jobs: Mutex<Jobs>,
    closed: Condvar,
}

#[derive(Debug)]
struct Jobs {
    fresh: VecDeque<usize>,
    /// Others work on them.
    postponed: VecDeque<usize>,
    open: bool,
}

impl Queue {
    pub(crate) fn new(count: usize) -> Self {
        let jobs = Jobs { fresh: (0..count).collect(), postponed: VecDeque::new(), open: true };
        Self { jobs: Mutex::new(jobs), closed: Condvar::new() }
    }

    /// The next job; `None` when there is none, or no more shall be begun. When only such are left
    /// that others work on, it waits a little before it gives one of them.
    pub(crate) fn next(&self) -> Option<usize> {
        let mut jobs = self.lock();
        if jobs.open && jobs.fresh.is_empty() && !jobs.postponed.is_empty() {
            let waited = self.closed.wait_timeout_while(jobs, PATIENCE, |jobs| jobs.open);
            jobs = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !jobs.open {
            return None;
        }
        jobs.fresh.pop_front().or_else(|| jobs.postponed.pop_front())
    }

    /// Puts `job` back: somebody else works on it.
    pub(crate) fn postpone(&self, job: usize) {
        self.lock().postponed.push_back(job);
    }

    /// Gives out no more.
    pub(crate) fn close(&self) {
        self.lock().open = false;
        self.closed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        // Nothing is left half done in it.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_in_order_and_postponed_ones_last() {
        let queue = Queue::new(4);
        assert_eq!(queue.next(), Some(0));
        queue.postpone(0);
        let rest: Vec<usize> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(rest, [1, 2, 3, 0]);
    }

    #[test]
    fn a_closed_queue_gives_nothing() {
        let queue = Queue::new(4);
        queue.close();
        assert_eq!(queue.next(), None);
    }
}
