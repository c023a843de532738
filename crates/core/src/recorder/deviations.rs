//! Deviations of the interval, counted at little cost.

use std::sync::atomic::{AtomicU64, Ordering};

use Ordering::Relaxed;

use super::tally::{Counts, Extremes, Tally, add};
use crate::distribution::Distribution;
use crate::histogram::{Histogram, bucket_of};
use crate::interval_deviation::IntervalDeviation;

/// Deviations below this, either way, are counted to the nanosecond: nearly all of them. That takes 8
/// instructions, where a tally of each sign takes 48.
const NEAR_NS: usize = 1 << 14;

/// Counts of deviations.
pub(super) struct Deviations {
    /// One for each nanosecond from `-NEAR_NS` on. Their extremes and sum follow from them.
    near: Box<[AtomicU64; 2 * NEAR_NS]>,
    longer: Tally,
    shorter: Tally,
}

/// What is known of deviations that are not near, beside their counts.
#[derive(Clone, Copy)]
pub(super) struct FarExtremes {
    longer: Extremes,
    shorter: Extremes,
}

impl Deviations {
    pub(super) fn new() -> Self {
        let near: Box<[AtomicU64]> = (0..2 * NEAR_NS).map(|_| AtomicU64::new(0)).collect();
        let near = near.try_into().unwrap_or_else(|_| unreachable!("the length is the array's"));
        Self { near, longer: Tally::new(), shorter: Tally::new() }
    }

    /// Counts a near deviation; false if it is none.
    #[inline]
    pub(super) fn count_near(&self, deviation_ns: i64) -> bool {
        // Others become too large, also where a machine's words have 32 bits.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = (deviation_ns as u64).wrapping_add(NEAR_NS as u64);
        let cell = usize::try_from(at).ok().and_then(|at| self.near.get(at));
        cell.inspect(|cell| add(cell, 1)).is_some()
    }

    #[cold]
    pub(super) fn count_far(&self, due_ns: u64, deviation_ns: i64) {
        let tally = if deviation_ns < 0 { &self.shorter } else { &self.longer };
        tally.count(deviation_ns.unsigned_abs(), due_ns);
    }

    pub(super) fn reset(&self) {
        for cell in self.near.iter() {
            cell.store(0, Relaxed);
        }
        self.longer.reset();
        self.shorter.reset();
    }

    pub(super) fn extremes(&self) -> FarExtremes {
        FarExtremes { longer: self.longer.extremes(), shorter: self.shorter.extremes() }
    }

    pub(super) fn counts(&self, extremes: &FarExtremes) -> [Counts; 2] {
        [self.longer.counts(&extremes.longer), self.shorter.counts(&extremes.shorter)]
    }

    /// All of them, with what was read of those that are not near.
    pub(super) fn copy(&self, extremes: &FarExtremes, far: &[Counts; 2]) -> IntervalDeviation {
        let [longer, shorter] = far;
        let (negative, positive) = self.near.split_at(NEAR_NS);
        // The smallest are in the middle, and nothing is shorter by 0.
        let negative = (1..).zip(negative.iter().rev());
        IntervalDeviation {
            longer: near((0..).zip(positive)).merged(&longer.distribution(&extremes.longer)),
            shorter: near(negative).merged(&shorter.distribution(&extremes.shorter)),
        }
    }
}

/// The distribution of values, in ascending order, of which each has a cell with its count. Each cell
/// is read once, because its count may grow meanwhile, and none is copied.
fn near<'a>(cells: impl Iterator<Item = (u64, &'a AtomicU64)>) -> Distribution {
    let mut all = Distribution::default();
    let mut buckets: Vec<(usize, u64)> = Vec::new();
    for (value, cell) in cells {
        let count = cell.load(Relaxed);
        if count == 0 {
            continue;
        }
        all.min_ns.get_or_insert(value);
        all.max_ns = Some(value);
        all.count += count;
        all.sum_ns += value * count;
        let bucket = bucket_of(value);
        match buckets.last_mut() {
            Some((last, sum)) if *last == bucket => *sum += count,
            _ => buckets.push((bucket, count)),
        }
    }
    all.histogram = Histogram::from_scale(buckets);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval_deviation::tests::of;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn deviations_are_counted_exactly_however_large(
            near in prop::collection::vec(-20_000_i64..20_000, 0..200),
            far in prop::collection::vec(any::<i32>().prop_map(i64::from), 0..50),
        ) {
            let deviations = Deviations::new();
            let mut all = near;
            all.extend(far);
            all.extend([-16_384, 16_383, 0, -1]);
            for &deviation in &all {
                if !deviations.count_near(deviation) {
                    prop_assert!(!(-16_384..16_384).contains(&deviation));
                    deviations.count_far(7, deviation);
                }
            }
            let extremes = deviations.extremes();
            let mut got = deviations.copy(&extremes, &deviations.counts(&extremes));
            prop_assert_eq!(got.fault(), None);
            let mut want = of(&all);
            for d in [&mut got.longer, &mut got.shorter, &mut want.longer, &mut want.shorter] {
                d.max_at_ns = None;
            }
            prop_assert_eq!(got, want);
            deviations.reset();
            let extremes = deviations.extremes();
            prop_assert_eq!(deviations.copy(&extremes, &deviations.counts(&extremes)).count(), 0);
        }
    }
}
