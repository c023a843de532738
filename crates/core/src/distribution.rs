//! A distribution: a histogram together with what a histogram cannot hold exactly.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::percentile::Percentile;

/// Wakeup latencies of one kind. All times in nanoseconds; without samples there is no minimum
/// and no maximum (`None`), rather than a number that looks like one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples; always the sum of the histogram's counts.
    pub count: u64,
    /// The exact minimum.
    pub min_ns: Option<u64>,
    /// The exact maximum.
    pub max_ns: Option<u64>,
    /// When the sample of the maximum was due, from the start of the run.
    pub max_at_ns: Option<u64>,
    /// The exact sum (saturating at 2^64 - 1).
    pub sum_ns: u64,
    /// Where the samples lie.
    pub histogram: Histogram,
}

impl Distribution {
    /// Both distributions as one. Of two equal maxima the earlier one is kept.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let larger = match (self.max_ns, other.max_ns) {
            (a, b) if a > b => self,
            (a, b) if a < b => other,
            _ if other.max_at_ns.is_some_and(|at| self.max_at_ns.is_none_or(|mine| at < mine)) => {
                other
            }
            _ => self,
        };
        Self {
            count: self.count.saturating_add(other.count),
            min_ns: [self.min_ns, other.min_ns].into_iter().flatten().min(),
            max_ns: larger.max_ns,
            max_at_ns: larger.max_at_ns,
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
            histogram: self.histogram.merged(&other.histogram),
        }
    }

    /// The value at `percentile`: at most 0.2 % above the exact one, never below it and never
    /// above the maximum. `None` if there are too few samples to say.
    pub fn percentile(&self, percentile: Percentile) -> Option<u64> {
        let value = self.histogram.percentile_of(percentile, self.count)?;
        Some(value.min(self.max_ns?))
    }

    /// The mean, rounded down to the nanosecond.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }

    /// What is wrong with this distribution, if anything.
    pub fn fault(&self) -> Option<String> {
        if let Some(fault) = self.histogram.fault() {
            return Some(format!("histogram: {fault}"));
        }
        let held = self.histogram.count();
        if held != self.count {
            return Some(format!("count is {} but the histogram holds {held}", self.count));
        }
        let (first, last) =
            match (self.histogram.buckets().first(), self.histogram.buckets().last()) {
                (Some(first), Some(last)) => (first, last),
                _ => {
                    let empty = self.min_ns.is_none() && self.max_ns.is_none();
                    return (!empty)
                        .then(|| "there are no samples, but a minimum or maximum".into());
                }
            };
        match (self.min_ns, self.max_ns) {
            (Some(min), _) if min < first.lower || min >= first.upper => {
                Some(format!("min_ns {min} lies outside the first bucket"))
            }
            // The last bucket of the scale ends at u64::MAX and holds it too.
            (_, Some(max)) if max < last.lower || (max >= last.upper && last.upper < u64::MAX) => {
                Some(format!("max_ns {max} lies outside the last bucket"))
            }
            (Some(_), Some(_)) => None,
            _ => Some("there are samples, but no minimum or maximum".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The distribution of `(value, due at)` pairs, computed without the recorder.
    fn of(samples: &[(u64, u64)]) -> Distribution {
        samples.iter().fold(Distribution::default(), |sum, &(value, at)| {
            sum.merged(&Distribution {
                count: 1,
                min_ns: Some(value),
                max_ns: Some(value),
                max_at_ns: Some(at),
                sum_ns: value,
                histogram: Histogram::of([value]),
            })
        })
    }

    #[test]
    fn percentiles_never_exceed_the_maximum() {
        let d = of(&[(1_000_000, 1); 300]);
        assert_eq!(d.percentile("p99".parse().unwrap()), Some(1_000_000));
    }

    proptest! {
        #[test]
        fn merging_keeps_what_is_exact(samples in prop::collection::vec((0_u64..1 << 40, any::<u64>()), 0..60)) {
            let d = of(&samples);
            prop_assert_eq!(d.fault(), None);
            prop_assert_eq!(d.count, samples.len() as u64);
            prop_assert_eq!(d.min_ns, samples.iter().map(|s| s.0).min());
            let largest = samples.iter().copied().max_by_key(|&(v, at)| (v, std::cmp::Reverse(at)));
            prop_assert_eq!(d.max_ns.zip(d.max_at_ns), largest);
            prop_assert_eq!(d.sum_ns, samples.iter().map(|s| s.0).sum::<u64>());
        }
    }
}
