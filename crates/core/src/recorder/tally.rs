//! Counts that one thread writes and others read.

use std::sync::atomic::{AtomicU64, Ordering};

use Ordering::Relaxed;

use crate::distribution::Distribution;
use crate::histogram::{Histogram, SCALE_BUCKETS, bucket_of, edges_of};

/// Adds without a locked instruction: there is one writer. At one count per nanosecond it would
/// take 584 years to wrap around.
#[inline]
pub(super) fn add(cell: &AtomicU64, amount: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// The same of a sum of values, which does get there: the expiries that a thread of 1 ms swallows while it is
/// stopped for 1.7 hours add up to 2^64 ns.
#[inline]
fn add_to_sum(cell: &AtomicU64, amount: u64) {
    cell.store(cell.load(Relaxed).saturating_add(amount), Relaxed);
}

/// Counts on the scale, with exact extremes.
pub(super) struct Tally {
    counts: Box<[AtomicU64; SCALE_BUCKETS]>,
    min: AtomicU64,
    max: AtomicU64,
    max_at: AtomicU64,
    sum: AtomicU64,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            counts: zeroes(),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            max_at: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    pub(super) fn reset(&self) {
        for cell in self.counts.iter() {
            cell.store(0, Relaxed);
        }
        self.min.store(u64::MAX, Relaxed);
        for cell in [&self.max, &self.max_at, &self.sum] {
            cell.store(0, Relaxed);
        }
    }

    #[inline]
    pub(super) fn count(&self, value: u64, due_ns: u64) {
        add(&self.counts[bucket_of(value)], 1);
        add_to_sum(&self.sum, value);
        self.extend(value, value, due_ns);
    }

    /// Counts the expiries that a wakeup `late_ns` late for `due_ns` swallowed: due `step_ns`,
    /// 2 × `step_ns`, … later, and each that much less late. Where a bucket is wider than a step
    /// it takes all of its expiries at once, so the cost grows with the logarithm of the stall.
    #[cold]
    pub(super) fn count_steps(&self, late_ns: u64, due_ns: u64, steps: u64, step_ns: u64) {
        let value = |step: u64| late_ns.saturating_sub(step * step_ns);
        let mut step = 1;
        while step <= steps {
            let bucket = bucket_of(value(step));
            let (lower, _) = edges_of(bucket);
            // The last step whose value is still at or above the bucket's lower edge.
            let last = ((late_ns - lower) / step_ns).clamp(step, steps);
            add(&self.counts[bucket], last - step + 1);
            step = last + 1;
        }
        let sum = u128::from(late_ns) * u128::from(steps)
            - u128::from(step_ns) * (u128::from(steps) * (u128::from(steps) + 1) / 2);
        add_to_sum(&self.sum, u64::try_from(sum).unwrap_or(u64::MAX));
        self.extend(value(steps), value(1), due_ns.saturating_add(step_ns));
    }

    #[inline]
    fn extend(&self, min: u64, max: u64, max_at: u64) {
        if min < self.min.load(Relaxed) {
            // The first sample comes by here, and leaves its time even if it is 0 ns late.
            if self.min.load(Relaxed) == u64::MAX {
                self.max_at.store(max_at, Relaxed);
            }
            self.min.store(min, Relaxed);
        }
        if max > self.max.load(Relaxed) {
            self.max.store(max, Relaxed);
            self.max_at.store(max_at, Relaxed);
        }
    }

    pub(super) fn extremes(&self) -> Extremes {
        Extremes {
            min: self.min.load(Relaxed),
            max: self.max.load(Relaxed),
            max_at: self.max_at.load(Relaxed),
            sum: self.sum.load(Relaxed),
        }
    }

    pub(super) fn counts(&self, extremes: &Extremes) -> Counts {
        // Without samples, the minimum lies above the maximum, and no bucket between them.
        let first = bucket_of(extremes.min);
        let used = self.counts.get(first..=bucket_of(extremes.max)).unwrap_or_default();
        Counts { first, counts: used.iter().map(|c| c.load(Relaxed)).collect() }
    }
}

/// On the heap from the start: on a stack, the array would be too large for a small one.
fn zeroes() -> Box<[AtomicU64; SCALE_BUCKETS]> {
    let cells: Box<[AtomicU64]> = (0..SCALE_BUCKETS).map(|_| AtomicU64::new(0)).collect();
    cells.try_into().unwrap_or_else(|_| unreachable!("the length is the array's"))
}

/// What is known exactly of some samples.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    min: u64,
    max: u64,
    max_at: u64,
    sum: u64,
}

impl Extremes {
    /// Those of both. Of two equal maxima the earlier one is kept.
    pub(super) fn with(&self, other: &Self) -> Self {
        let latest = |e: &Self| (e.max, std::cmp::Reverse(e.max_at));
        let larger = if latest(other) > latest(self) { other } else { self };
        Self {
            min: self.min.min(other.min),
            max: larger.max,
            max_at: larger.max_at,
            sum: self.sum.saturating_add(other.sum),
        }
    }
}

/// Counts of the buckets from `first` on.
pub(super) struct Counts {
    first: usize,
    counts: Vec<u64>,
}

impl Counts {
    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) fn with(&self, other: &Self) -> Self {
        let end = |c: &Self| c.first + c.counts.len();
        let first = self.first.min(other.first);
        let mut counts = vec![0; end(self).max(end(other)) - first];
        for part in [self, other] {
            for (sum, count) in counts[part.first - first..].iter_mut().zip(&part.counts) {
                *sum += count;
            }
        }
        Self { first, counts }
    }

    pub(super) fn distribution(&self, extremes: &Extremes) -> Distribution {
        let first = self.first;
        let counts = self.counts.iter().enumerate().map(|(i, &n)| (first + i, n));
        let histogram = Histogram::from_scale(counts);
        let count = histogram.count();
        let seen = |value| (count > 0).then_some(value);
        Distribution {
            count,
            min_ns: seen(extremes.min),
            max_ns: seen(extremes.max),
            max_at_ns: seen(extremes.max_at),
            sum_ns: extremes.sum,
            histogram,
            stated: None,
        }
    }
}
