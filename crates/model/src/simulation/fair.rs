//! The fair class: who has run least, weighted by its nice value, is next.

use crate::scenario::TaskPolicy;

/// The slice of `SCHED_RR`.
pub(super) const RR_SLICE_NS: u64 = 100_000_000;

/// What a task has run, as the fair class counts it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fair {
    /// What the last one had that was switched to: those that slept long begin near it.
    last: u64,
}

impl Fair {
    /// How long a task may run before another is to run, as EEVDF's base slice.
    pub(super) const SLICE_NS: u64 = 3_000_000;

    /// A woken task preempts one that has had so much more.
    const GRANULARITY_NS: u64 = 1_000_000;

    /// What `ran` nanoseconds count: less for a task of higher weight. A nice value is a factor of 1.25.
    pub(super) fn charged(policy: TaskPolicy, ran: u64) -> u64 {
        let TaskPolicy::Other(nice) = policy else { return 0 };
        if nice == 0 {
            return ran;
        }
        let charged = ran as f64 * 1.25_f64.powi(i32::from(nice));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        {
            charged as u64
        }
    }

    /// Where a task begins that has had so much: not so far behind that it would run alone for long.
    pub(super) fn begins_at(&mut self, vruntime: u64) -> u64 {
        let begins = vruntime.max(self.last.saturating_sub(Self::SLICE_NS));
        self.last = self.last.max(begins);
        begins
    }

    pub(super) fn preempts(self, running: u64, woken: u64) -> bool {
        let woken = woken.max(self.last.saturating_sub(Self::SLICE_NS));
        running > woken + Self::GRANULARITY_NS
    }
}
