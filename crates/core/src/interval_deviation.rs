//! How the time from one wakeup to the next deviates from the interval: what realfeel measured.

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// Deviations of the time between two wakeups in a row from the interval. A wakeup that is late makes
/// one interval longer and the next one shorter, and a lateness that is always the same makes no
/// difference at all: this is no latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalDeviation {
    /// Times that were as long as the interval or longer: by how much.
    pub longer: Distribution,
    /// Times that were shorter: by how much.
    pub shorter: Distribution,
}

/// Its figures, for programs that do not want to add up histograms. All in ns, and signed: what is
/// negative was shorter than the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviationFigures {
    /// Pairs of wakeups.
    pub count: u64,
    /// The exact minimum.
    pub min_ns: i64,
    /// The exact maximum.
    pub max_ns: i64,
    /// The mean.
    pub mean_ns: f64,
    /// The standard deviation, from the middles of the histograms' buckets, which are 0.2 % wide.
    pub standard_deviation_ns: f64,
}

impl IntervalDeviation {
    /// Those of both.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        Self {
            longer: self.longer.merged(&other.longer),
            shorter: self.shorter.merged(&other.shorter),
        }
    }

    /// Pairs of wakeups in a row.
    pub fn count(&self) -> u64 {
        self.longer.count.saturating_add(self.shorter.count)
    }

    /// Its figures; `None` if there are no two wakeups in a row.
    pub fn figures(&self) -> Option<DeviationFigures> {
        let count = self.count();
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let longer = |ns: Option<u64>| ns.map(signed);
        let shorter = |ns: Option<u64>| ns.map(|ns| -signed(ns));
        let min_ns = shorter(self.shorter.max_ns).or(longer(self.longer.min_ns))?;
        let max_ns = longer(self.longer.max_ns).or(shorter(self.shorter.min_ns))?;
        let mean_ns = (self.longer.sum_ns as f64 - self.shorter.sum_ns as f64) / count as f64;
        let squares = squares(&self.longer, mean_ns) + squares(&self.shorter, -mean_ns);
        let standard_deviation_ns = (squares / count as f64).sqrt();
        Some(DeviationFigures { count, min_ns, max_ns, mean_ns, standard_deviation_ns })
    }

    /// What is wrong with it, if anything.
    pub fn fault(&self) -> Option<String> {
        let of = |what, d: &Distribution| d.fault().map(|fault| format!("{what}: {fault}"));
        let of_zero = || {
            let no_shorter = self.shorter.min_ns == Some(0);
            no_shorter.then(|| "shorter: a deviation of 0 is not shorter".into())
        };
        of("longer", &self.longer).or_else(|| of("shorter", &self.shorter)).or_else(of_zero)
    }
}

/// The sum of the squared distances from `mean_ns`.
fn squares(d: &Distribution, mean_ns: f64) -> f64 {
    let (min, max) = (d.min_ns.unwrap_or(0), d.max_ns.unwrap_or(0));
    let buckets = d.histogram.buckets().iter().map(|bucket| {
        let (first, last) = (bucket.lower.max(min), (bucket.upper - 1).min(max));
        let middle = (first as f64 + last as f64) / 2.0;
        (middle - mean_ns).powi(2) * bucket.count as f64
    });
    buckets.sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution(values: &[u64]) -> Distribution {
        Distribution {
            max_at_ns: (!values.is_empty()).then_some(0),
            ..Distribution::of(values.iter().copied())
        }
    }

    pub(crate) fn of(values: &[i64]) -> IntervalDeviation {
        let (shorter, longer): (Vec<i64>, Vec<i64>) = values.iter().partition(|&&v| v < 0);
        let sizes = |values: Vec<i64>| values.iter().map(|v| v.unsigned_abs()).collect::<Vec<_>>();
        IntervalDeviation {
            longer: distribution(&sizes(longer)),
            shorter: distribution(&sizes(shorter)),
        }
    }

    proptest! {
        #[test]
        fn figures_are_those_of_the_values(
            values in prop::collection::vec(-40_000_000_i64..40_000_000, 1..200),
            split in 0_usize..200,
        ) {
            let split = split.min(values.len());
            let all = of(&values[..split]).merged(&of(&values[split..]));
            prop_assert_eq!(all.fault(), None);
            let got = all.figures().unwrap();
            let n = values.len() as f64;
            let mean = values.iter().sum::<i64>() as f64 / n;
            let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert_eq!(got.count, values.len() as u64);
            prop_assert_eq!(Some(got.min_ns), values.iter().min().copied());
            prop_assert_eq!(Some(got.max_ns), values.iter().max().copied());
            prop_assert!((got.mean_ns - mean).abs() < 1e-3, "{got:?} {mean}");
            let (sd, want) = (got.standard_deviation_ns, variance.sqrt());
            // Each value is known to 0.1 %, either way.
            let most = values.iter().map(|v| v.unsigned_abs()).max().unwrap() as f64;
            prop_assert!((sd - want).abs() <= most / 1_000.0 + 1.0, "{sd} {want}");
        }
    }

    #[test]
    fn no_intervals_are_no_numbers_and_nothing_is_shorter_by_nothing() {
        assert_eq!(of(&[]).figures(), None);
        let mut wrong = of(&[3, -2]);
        assert_eq!(wrong.fault(), None);
        wrong.shorter = distribution(&[0, 2]);
        assert!(wrong.fault().unwrap().contains("not shorter"));
    }
}
