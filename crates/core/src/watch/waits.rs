//! Waits that were counted together.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::histogram::{Bucket, Histogram};
use crate::percentile::Percentile;
use crate::watch::packed;

/// Waits that were counted together. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// How many: the sum of the histogram's counts.
    pub count: u64,
    /// Their exact sum.
    pub sum_ns: u64,
    /// The longest; `None` if there are none.
    pub max_ns: Option<u64>,
    /// Whether that is exact. Otherwise it is the end of its bucket: the longest wait ended just when the
    /// window did. The total of a watch has it exactly; a sum of windows does not.
    pub max_is_exact: bool,
    /// The shortest; `None` if there are none.
    pub min_ns: Option<u64>,
    /// Whether that is exact, as [`Waits::max_is_exact`] is. Otherwise it is the begin of its bucket.
    pub min_is_exact: bool,
    /// Where they lie: 16 buckets an octave.
    #[serde(deserialize_with = "packed::histogram")]
    pub histogram: Histogram,
}

impl Waits {
    /// Both together.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.add(other);
        both
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        (self.max_ns, self.max_is_exact) = further(
            (self.max_ns, self.max_is_exact),
            (other.max_ns, other.max_is_exact),
            self.max_ns.cmp(&other.max_ns),
        );
        let nearer = match (self.min_ns, other.min_ns) {
            (Some(own), Some(others)) => others.cmp(&own),
            (own, others) => own.cmp(&others),
        };
        (self.min_ns, self.min_is_exact) =
            further((self.min_ns, self.min_is_exact), (other.min_ns, other.min_is_exact), nearer);
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.histogram.add(&other.histogram);
    }

    /// The largest value that the wait at `percentile` can have had, ns: never below its true value, and at
    /// most 1/16 above it where the scale has buckets of that width (`scale`, from 128 ns to 17 s). `None` if
    /// there are too few waits to say.
    pub fn percentile(&self, percentile: Percentile) -> Option<u64> {
        let upper = self.histogram.percentile(percentile)?;
        Some(self.max_ns.map_or(upper, |max| upper.min(max)))
    }

    /// What is wrong with these, if anything.
    pub fn fault(&self) -> Option<String> {
        if let Some(fault) = self.histogram.fault() {
            return Some(format!("histogram: {fault}"));
        }
        let held = self.histogram.count();
        if held != self.count {
            return Some(format!("count is {} but the histogram holds {held}", self.count));
        }
        let buckets = self.histogram.buckets();
        if !lies_in(self.max_ns, buckets.last()) {
            return Some("max_ns lies outside the last bucket".into());
        }
        if !lies_in(self.min_ns, buckets.first()) {
            return Some("min_ns lies outside the first bucket".into());
        }
        let is_above = self.min_ns > self.max_ns;
        is_above.then(|| "min_ns is above max_ns".into())
    }
}

/// One of two extremes, with whether it is exact: the first if it is the further one.
fn further(
    one: (Option<u64>, bool),
    other: (Option<u64>, bool),
    order: Ordering,
) -> (Option<u64>, bool) {
    match order {
        Ordering::Greater => one,
        Ordering::Less => other,
        // Equal to an exact one, one that is not adds no doubt.
        Ordering::Equal => (one.0, one.1 || other.1),
    }
}

fn lies_in(ns: Option<u64>, bucket: Option<&Bucket>) -> bool {
    match (ns, bucket) {
        (None, None) => true,
        (Some(ns), Some(&Bucket { lower, upper, .. })) => {
            ns >= lower && (ns < upper || upper == u64::MAX)
        }
        _ => false,
    }
}

#[cfg(test)]
impl Waits {
    /// Waits of these lengths.
    pub(crate) fn exactly(of: &[u64]) -> Self {
        Self {
            count: of.len() as u64,
            sum_ns: of.iter().sum(),
            max_ns: of.iter().max().copied(),
            max_is_exact: true,
            min_ns: of.iter().min().copied(),
            min_is_exact: true,
            histogram: Histogram::of(of.iter().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, of which the longest and the shortest are known by their buckets only.
    fn roughly(of: &[u64]) -> Waits {
        Waits { max_is_exact: false, min_is_exact: false, ..Waits::exactly(of) }
    }

    #[test]
    fn what_is_merged_adds_up() {
        let all = Waits::exactly(&[1, 900]).merged(&roughly(&[7]));
        assert_eq!(all, Waits::exactly(&[1, 7, 900]));
        assert_eq!(all.fault(), None);
        assert!(!Waits::exactly(&[1]).merged(&roughly(&[900])).max_is_exact);
        assert!(roughly(&[900]).merged(&Waits::exactly(&[900])).max_is_exact);
        assert!(!Waits::exactly(&[900]).merged(&roughly(&[1])).min_is_exact);
        assert!(roughly(&[900]).merged(&Waits::exactly(&[1])).min_is_exact);
        assert!(roughly(&[1]).merged(&Waits::exactly(&[1])).min_is_exact);
        let none = Waits::default();
        assert_eq!(none.merged(&all), all);
    }

    #[test]
    fn faults_are_found() {
        let good = Waits::exactly(&[1, 900]);
        for (waits, want) in [
            (Waits { count: 3, ..good.clone() }, "holds 2"),
            (Waits { max_ns: None, ..good.clone() }, "outside"),
            (Waits { max_ns: Some(5_000), ..good.clone() }, "max_ns lies outside"),
            (Waits { min_ns: Some(5_000), ..good.clone() }, "min_ns lies outside"),
            (Waits { min_ns: Some(70_001), ..Waits::exactly(&[70_000]) }, "above"),
        ] {
            assert!(waits.fault().is_some_and(|fault| fault.contains(want)), "{waits:?}");
        }
    }
}
