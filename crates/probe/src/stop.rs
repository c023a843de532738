//! The request that ends probes before all was measured.

use std::sync::atomic::{AtomicU64, Ordering};

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

/// No request was made.
const NEVER: u64 = u64::MAX;

/// When a run ends before all was measured. What was due by then is part of the run however late it comes:
/// the stall in which somebody stops a run is often the one that matters.
#[derive(Debug)]
pub struct Stop(AtomicU64);

impl Default for Stop {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

impl Stop {
    /// Ends the run at `at`. The earliest request counts.
    pub fn at(&self, at: MonoNs) {
        self.0.fetch_min(at.0, Ordering::Relaxed);
    }

    /// When the run ends; `None` if nobody has asked for it.
    #[inline]
    pub fn time(&self) -> Option<MonoNs> {
        Some(MonoNs(self.0.load(Ordering::Relaxed))).filter(|time| time.0 != NEVER)
    }

    /// Whether the run is to end.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.time().is_some()
    }

    /// Whether the run ends before `time`, so that what is due then is no part of it.
    #[inline]
    pub fn is_before(&self, time: MonoNs) -> bool {
        self.0.load(Ordering::Relaxed) < time.0
    }

    /// The present, if the end of the run broke off a wait for what was `due` by then: that is as late as this.
    pub(crate) fn overtaken(&self, due: MonoNs) -> Option<MonoNs> {
        Some(clock::now()).filter(|&now| now >= due && !self.is_before(due))
    }

    /// `time`, or the end of the run if that is earlier.
    #[inline]
    pub fn cut(&self, time: MonoNs) -> MonoNs {
        time.min(MonoNs(self.0.load(Ordering::Relaxed)))
    }

    /// How many of `missed` points are part of the run, which come every `period` after `due`.
    #[inline]
    pub(crate) fn cut_missed(&self, missed: u64, due: MonoNs, period: SpanNs) -> u64 {
        match self.time() {
            Some(time) => missed.min(time.since(due).0 / period.0.max(1)),
            None => missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_the_end_broke_off_is_as_late_as_the_present() {
        let before = clock::now();
        let far = before.after(SpanNs(3_600_000_000_000));
        for (at, due, is_late) in [
            (before, before, true),
            (before, MonoNs(9), true),
            (MonoNs(8), MonoNs(9), false),
            (far, far, false),
        ] {
            let stop = Stop::default();
            stop.at(at);
            let late = stop.overtaken(due);
            assert_eq!(late.is_some_and(|now| now >= before), is_late, "{at:?} {due:?}: {late:?}");
        }
    }

    #[test]
    fn what_is_due_by_the_end_is_part_of_the_run() {
        let stop = Stop::default();
        let missed = |stop: &Stop| stop.cut_missed(7, MonoNs(1_000), SpanNs(100));
        assert!(!stop.is_set() && !stop.is_before(MonoNs(u64::MAX)));
        assert_eq!((stop.time(), stop.cut(MonoNs(9)), missed(&stop)), (None, MonoNs(9), 7));
        for (at, before_1000, cut, count) in [
            (2_000, false, 1_500, 7),
            (1_350, false, 1_350, 3),
            (1_000, false, 1_000, 0),
            (999, true, 999, 0),
        ] {
            // Each is earlier than those before.
            stop.at(MonoNs(at));
            stop.at(MonoNs(5_000));
            assert_eq!((stop.is_set(), stop.time()), (true, Some(MonoNs(at))));
            assert_eq!(stop.is_before(MonoNs(1_000)), before_1000, "{at}");
            assert_eq!((stop.cut(MonoNs(1_500)), missed(&stop)), (MonoNs(cut), count), "{at}");
        }
    }
}
