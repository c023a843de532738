//! Raw samples, counted as they come, in memory that does not grow with them.

use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::{bucket_of, edges_of};

use super::counts::Counts;

/// Samples of one thread, in whole units. Memory is that of the largest value, at most 230 KB.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    counts: Vec<u64>,
    pub(super) count: u64,
    min: u64,
    pub(super) max: u64,
    sum: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { counts: Vec::new(), count: 0, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Tally {
    /// Counts a sample. Whether it is the largest so far.
    #[inline]
    pub(super) fn add(&mut self, value: u64) -> bool {
        let bucket = bucket_of(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = self.min.min(value);
        let larger = value > self.max || self.count == 1;
        self.max = self.max.max(value);
        larger
    }

    /// The distribution in ns. A sample of a unit may be anything up to the next.
    pub(super) fn finish(&self, unit_ns: u64) -> Result<Distribution, String> {
        let ns = |value: u64| super::counts::in_ns(value, unit_ns);
        let mut counts = Counts::default();
        for (index, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (lower, upper) = edges_of(index);
            counts.push(ns(lower)?, ns(upper)?, count)?;
        }
        if self.count == 0 {
            return Ok(Distribution::default());
        }
        counts.finish(ns(self.min)?, ns(self.max)?, self.sum.saturating_mul(unit_ns))
    }
}
