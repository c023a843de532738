//! A distribution: a histogram together with what a histogram cannot hold exactly.

use serde::{Deserialize, Serialize};

use crate::histogram::{Bucket, Histogram};
use crate::percentile::Percentile;
use crate::stated::{Quantile, Stated};

/// A bucket that is no wider than this part of its upper edge tells a percentile: 6.25 %.
const NARROW: u64 = 16;

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
    /// What another program's file states beside the histogram; `None` where wakescope measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<Stated>,
}

impl Distribution {
    /// That of `samples`, nanoseconds, whose times are not known.
    pub fn of(samples: impl IntoIterator<Item = u64>) -> Self {
        let samples: Vec<u64> = samples.into_iter().collect();
        Self {
            count: samples.len() as u64,
            min_ns: samples.iter().min().copied(),
            max_ns: samples.iter().max().copied(),
            sum_ns: samples.iter().fold(0, |sum, ns| sum.saturating_add(*ns)),
            histogram: Histogram::of(samples),
            ..Self::default()
        }
    }

    /// The distributions of all parts as one, as if each were merged with those before it. Halves are
    /// merged with each other, so that many parts do not each pass through the buckets of all.
    pub fn of_all<T>(parts: &[T], of: impl Fn(&T) -> &Self + Copy) -> Self {
        match parts {
            [] => Self::default(),
            [one] => Self::default().merged(of(one)),
            _ => {
                let (left, right) = parts.split_at(parts.len() / 2);
                Self::of_all(left, of).merged(&Self::of_all(right, of))
            }
        }
    }

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
            stated: match (self.count, other.count) {
                (_, 0) => self.stated.clone(),
                (0, _) => other.stated.clone(),
                _ => Stated::of_both(self.stated.as_ref(), other.stated.as_ref()),
            },
        }
    }

    /// The value at `percentile`, never above the maximum. Where wakescope measured, it is at most
    /// 0.2 % above the exact one and never below. `None` if there are too few samples to say, or if
    /// another program's file tells only a bound: [`Self::quantile`] has that.
    pub fn percentile(&self, percentile: Percentile) -> Option<u64> {
        self.quantile(percentile).and_then(Quantile::known)
    }

    /// What is known of the value at `percentile`; `None` if there are too few samples to say.
    ///
    /// A file's own figure comes first. Then the histogram's, which is at most 0.2 % above the
    /// exact value where wakescope measured. In a bucket of another program's file that is wider than
    /// 6.25 % of its upper edge, it is a bound. So is a figure of a file whose steps are that wide.
    pub fn quantile(&self, percentile: Percentile) -> Option<Quantile> {
        let known = match self.stated_at(percentile) {
            Some((value, range)) => self.is_narrow(range).then_some(value),
            None => self.quantile_at(percentile.rank(self.count))?.known(),
        };
        let (_, high) = self.range(percentile)?;
        Some(known.map_or(Quantile::AtMost(high), Quantile::Known))
    }

    /// What the histogram tells of the sample of this rank from below, counted from 1.
    pub(crate) fn quantile_at(&self, rank: u64) -> Option<Quantile> {
        let range = self.range_at(rank)?;
        Some(match self.is_narrow(range) {
            true => Quantile::Known(range.1.min(self.max_ns?)),
            false => Quantile::AtMost(range.1),
        })
    }

    /// Whether a value in this range is known well enough to be shown as one. Only where wakescope measured
    /// is it always.
    pub fn is_narrow(&self, (low, high): (u64, u64)) -> bool {
        self.stated.is_none() || high - low <= high / NARROW
    }

    /// Samples of which another program's file tells less than its own step: the least and the largest
    /// value that they can have, and how many they are.
    pub fn only_bounded(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let step_ns = self.step_ns();
        self.inclusive_ranges()
            .filter(move |&(low, high, _)| high - low >= step_ns && !self.is_narrow((low, high)))
    }

    /// The step between two values, in ns: 1 where wakescope measured.
    fn step_ns(&self) -> u64 {
        self.stated.as_ref().map_or(1, |stated| stated.resolution_ns.max(1))
    }

    /// The least and the largest value in ns that the true maximum can have: twice the same where
    /// wakescope measured. Programs cut values off, round them, or round them up to a step, so it may lie
    /// almost a step above or below what a file states, but within the last bucket.
    pub fn max_range(&self) -> Option<(u64, u64)> {
        let (max_ns, last) = (self.max_ns?, self.histogram.buckets().last()?);
        let (low, high) = self.within_a_step(max_ns);
        let low = if self.has_edges_as_extremes() { 0 } else { low };
        Some((low.max(self.least_in(last)).min(max_ns), high.min(last.upper - 1).max(max_ns)))
    }

    /// The same of the true minimum, which lies within the first bucket.
    pub fn min_range(&self) -> Option<(u64, u64)> {
        let (min_ns, first) = (self.min_ns?, self.histogram.buckets().first()?);
        let (low, high) = self.range_of(first)?;
        let high = match self.has_edges_as_extremes() {
            true => high,
            false => high.min(self.within_a_step(min_ns).1),
        };
        Some((low.min(min_ns), high.max(min_ns)))
    }

    /// The maximum in ns, a bound where it is the edge of a bucket that is too wide for a value:
    /// [`Self::max_range`] has how far it can be below that. `None` without samples.
    pub fn maximum(&self) -> Option<Quantile> {
        let (range, max_ns) = (self.max_range()?, self.max_ns?);
        let is_known = !self.has_edges_as_extremes() || self.is_narrow(range);
        Some(if is_known { Quantile::Known(max_ns) } else { Quantile::AtMost(max_ns) })
    }

    /// The maximum in ns; `None` without samples, and where only a bound of it is known.
    pub fn known_maximum(&self) -> Option<u64> {
        self.maximum()?.known()
    }

    /// The values that a file can state as `value_ns`.
    fn within_a_step(&self, value_ns: u64) -> (u64, u64) {
        let beside = self.step_ns() - 1;
        (value_ns.saturating_sub(beside), value_ns.saturating_add(beside))
    }

    fn has_edges_as_extremes(&self) -> bool {
        self.stated.as_ref().is_some_and(|stated| stated.extremes_are_edges)
    }

    /// The figure that a file states for `percentile`, and the least and the largest value that it can
    /// stand for: those within a step that the histogram does not contradict. Some programs state the middle
    /// or the end of a bucket of their own, which is 0.4 % wide in schbench.
    fn stated_at(&self, percentile: Percentile) -> Option<(u64, (u64, u64))> {
        let value_ns = *self.stated.as_ref()?.percentiles.get(&percentile)?;
        let beside = value_ns / 256;
        let (least, most) = self.within_a_step(value_ns);
        let (least, most) =
            (least.min(value_ns - beside), most.max(value_ns.saturating_add(beside)));
        let (low, high) = self.range_near(percentile)?;
        Some((value_ns, (least.max(low).min(value_ns), most.min(high).max(value_ns))))
    }

    /// Where the samples can lie: the buckets, none of which reaches below the minimum or above the
    /// maximum, each as far as it is known.
    pub fn ranges(&self) -> impl Iterator<Item = Bucket> {
        self.inclusive_ranges().map(|(low, high, count)| Bucket {
            lower: low,
            upper: high.saturating_add(1),
            count,
        })
    }

    /// Of each bucket the least and the largest value that its samples can have, and how many they are.
    fn inclusive_ranges(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.histogram.buckets().iter().filter_map(|bucket| {
            let (low, high) = self.range_of(bucket)?;
            Some((low, high, bucket.count))
        })
    }

    /// The least and the largest value in ns that the sample at `percentile` can have; `None` if
    /// there are too few samples to say.
    pub fn range(&self, percentile: Percentile) -> Option<(u64, u64)> {
        percentile.is_carried_by(self.count).then_some(())?;
        match self.stated_at(percentile) {
            Some((_, range)) => Some(range),
            None => self.range_at(percentile.rank(self.count)),
        }
    }

    /// The same for the sample of this rank from below, counted from 1.
    pub fn range_at(&self, rank: u64) -> Option<(u64, u64)> {
        let mut seen = 0_u64;
        let bucket = self.histogram.buckets().iter().find(|bucket| {
            seen = seen.saturating_add(bucket.count);
            seen >= rank
        })?;
        self.range_of(bucket)
    }

    /// The least and the largest value that samples in `bucket` can have.
    fn range_of(&self, bucket: &Bucket) -> Option<(u64, u64)> {
        let high = (bucket.upper - 1).min(self.max_range()?.1);
        let least = match self.min_ns {
            Some(min_ns) if !self.has_edges_as_extremes() => self.within_a_step(min_ns).0,
            _ => 0,
        };
        Some((self.least_in(bucket).max(least).min(high), high))
    }

    /// The least value that `bucket` can hold, by its own lower end.
    fn least_in(&self, bucket: &Bucket) -> u64 {
        match &self.stated {
            Some(stated) if stated.rows_are_rounded => {
                bucket.lower.saturating_sub(self.step_ns().saturating_mul(3) / 2 - 1)
            }
            _ => bucket.lower,
        }
    }

    /// What a program can have meant by `percentile`: programs round a rank up, down, or off.
    pub fn range_near(&self, percentile: Percentile) -> Option<(u64, u64)> {
        let rank = percentile.rank(self.count).min(self.count);
        let low = self.range_at(rank.saturating_sub(1).max(1))?.0;
        let high = self.range_at(rank.saturating_add(1).min(self.count))?.1;
        Some((low, high))
    }

    /// The first stated percentile that the histogram contradicts, in words.
    fn fault_of_stated(&self) -> Option<String> {
        self.stated.as_ref()?.percentiles.iter().find_map(|(&percentile, &value)| {
            let (low, high) = self.range_near(percentile)?;
            (value < low || value > high).then(|| {
                format!(
                    "{percentile} is stated as {value} ns, but lies from {low} ns to {high} ns by the histogram"
                )
            })
        })
    }

    /// The mean, rounded down to the nanosecond. `None` without samples, and where their sum saturated.
    pub fn mean_ns(&self) -> Option<u64> {
        Some(self.sum_ns).filter(|&sum| sum < u64::MAX)?.checked_div(self.count)
    }

    /// Why its sum cannot be that of its samples, if it cannot. It is no fault of a snapshot that was
    /// taken while samples were written. Sums of other programs' files come from rounded means, and
    /// from means of the ends or the middles of buckets: these may be off by a step, and by the width of
    /// a narrow bucket.
    pub(crate) fn fault_of_sum(&self) -> Option<String> {
        let (mut least, mut most) = (0_u128, 0_u128);
        let (min, max) = (self.min_ns.unwrap_or(0), self.max_ns.unwrap_or(u64::MAX));
        for bucket in self.histogram.buckets() {
            let count = u128::from(bucket.count);
            least = least.saturating_add(count.saturating_mul(bucket.lower.max(min).into()));
            most = most.saturating_add(count.saturating_mul((bucket.upper - 1).min(max).into()));
        }
        if let Some(stated) = &self.stated {
            let steps = u128::from(self.count).saturating_mul(stated.resolution_ns.into());
            let narrow = u128::from(NARROW);
            least = least.saturating_sub(least / narrow).saturating_sub(steps);
            most = most.saturating_add(most / narrow).saturating_add(steps);
        }
        // A sum saturates.
        let [least, most] = [least, most].map(|sum| u64::try_from(sum).unwrap_or(u64::MAX));
        (!(least..=most).contains(&self.sum_ns)).then(|| {
            format!(
                "sum_ns is {}, but the samples of the histogram add up to {least} to {most} ns",
                self.sum_ns
            )
        })
    }

    /// What is wrong with this distribution, if anything.
    pub fn fault(&self) -> Option<String> {
        let held = match self.histogram.checked_count() {
            Ok(held) => held,
            Err(fault) => return Some(format!("histogram: {fault}")),
        };
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
            (Some(min), Some(max)) if min > max => {
                Some(format!("min_ns {min} is above max_ns {max}"))
            }
            (Some(_), Some(_)) => self.fault_of_stated(),
            _ => Some("there are samples, but no minimum or maximum".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Bucket;
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
                stated: None,
            })
        })
    }

    #[test]
    fn percentiles_never_exceed_the_maximum() {
        let d = of(&[(1_000_000, 1); 300]);
        assert_eq!(d.percentile("p99".parse().unwrap()), Some(1_000_000));
    }

    /// 1,000 samples: 900 from 3 to 4 µs, 100 from 4 µs to 5 ms.
    fn coarse(stated: &[(&str, u64)]) -> Distribution {
        let bucket = |lower, upper, count| Bucket { lower, upper, count };
        let percentiles = stated.iter().map(|&(p, ns)| (p.parse().unwrap(), ns)).collect();
        Distribution {
            count: 1_000,
            min_ns: Some(3_000),
            max_ns: Some(5_000_000),
            histogram: Histogram::from_buckets(vec![
                bucket(3_000, 4_000, 900),
                bucket(4_000, 5_001_000, 100),
            ])
            .unwrap(),
            stated: Some(Stated { percentiles, resolution_ns: 1_000, ..Stated::default() }),
            ..Default::default()
        }
    }

    #[track_caller]
    fn check(d: &Distribution, percentile: &str, want: Option<Quantile>) {
        let p = percentile.parse().unwrap();
        assert_eq!(d.quantile(p), want, "{percentile}");
        assert_eq!(d.percentile(p), want.and_then(Quantile::known), "{percentile}");
    }

    #[test]
    fn a_bound_is_no_percentile() {
        let d = coarse(&[]);
        // A step of 1 µs is much of 3 µs, and as narrow as the file's rows can be.
        check(&d, "p50", Some(Quantile::AtMost(3_999)));
        check(&d, "p99", Some(Quantile::AtMost(5_000_999)));
        check(&d, "p99.99", None);
        assert_eq!(d.only_bounded().collect::<Vec<_>>(), [(4_000, 5_000_999, 100)]);
        // Without the word of a file, the histogram's buckets are narrow by construction.
        let own = Distribution { stated: None, ..d };
        check(&own, "p99", Some(Quantile::Known(5_000_000)));
        assert_eq!(own.only_bounded().count(), 0);
    }

    #[test]
    fn a_stated_percentile_comes_first() {
        let d = coarse(&[("p50", 3_505), ("p99", 4_100)]);
        assert_eq!(d.fault(), None);
        // Neither is known to the step, but the histogram knows more of p50.
        check(&d, "p50", Some(Quantile::AtMost(3_999)));
        check(&d, "p99", Some(Quantile::AtMost(5_099)));
        let mut d = coarse(&[("p50", 3_505), ("p99", 40_100)]);
        check(&d, "p99", Some(Quantile::Known(40_100)));
        d.stated.as_mut().unwrap().resolution_ns = 10;
        check(&d, "p50", Some(Quantile::Known(3_505)));
        let fault = coarse(&[("p50", 4_505)]).fault().unwrap();
        assert!(fault.contains("p50 is stated as 4505 ns, but lies from 3000 ns to 3999 ns"));
    }

    #[test]
    fn of_several_parts_no_percentile_is_stated() {
        let d = coarse(&[("p99", 40_100)]);
        check(&d.merged(&d), "p99", Some(Quantile::AtMost(5_000_999)));
        check(&d.merged(&Distribution::default()), "p99", Some(Quantile::Known(40_100)));
        check(&Distribution::default().merged(&d), "p99", Some(Quantile::Known(40_100)));
    }

    #[test]
    fn a_maximum_is_known_to_a_step_of_its_file() {
        let of = |(lower, upper), max_ns, resolution_ns, extremes_are_edges| {
            let histogram = Histogram::from_buckets(vec![Bucket { lower, upper, count: 9 }]);
            let stated = Stated { resolution_ns, extremes_are_edges, ..Stated::default() };
            let (min_ns, max_ns) = (Some(lower), Some(max_ns));
            let histogram = histogram.unwrap();
            let d = Distribution { count: 9, min_ns, max_ns, histogram, ..Distribution::default() };
            assert_eq!(d.max_range(), Some((max_ns.unwrap(), max_ns.unwrap())), "our own");
            Distribution { stated: Some(stated), ..d }.max_range().unwrap()
        };
        // Cut off: of a row, and beyond the histogram.
        assert_eq!(of((2_000, 3_000), 2_000, 1_000, false), (2_000, 2_999));
        assert_eq!(of((400_000, 900_000), 700_000, 1_000, false), (699_001, 700_999));
        // Rounded up to the end of a row that begins above 4 µs.
        assert_eq!(of((4_001, 5_001), 5_000, 1_000, false), (4_001, 5_000));
        assert_eq!(of((4_001, 6_001), 6_000, 1_000, true), (4_001, 6_000));
        assert_eq!(of((5, 9), 7, 1, false), (7, 7));
        assert_eq!(Distribution::default().max_range(), None);
    }

    #[test]
    fn extremes_that_no_samples_have_are_found() {
        let histogram = Histogram::of([21_670, 21_690]);
        assert_eq!(histogram.buckets().len(), 1, "{histogram:?}");
        let fault = |min_ns, max_ns| {
            let histogram = histogram.clone();
            Distribution { count: 2, min_ns, max_ns, histogram, ..Default::default() }.fault()
        };
        for (min_ns, max_ns, want) in [
            (Some(21_670), Some(21_690), None),
            (Some(21_690), Some(21_690), None),
            (Some(21_690), Some(21_670), Some("min_ns 21690 is above max_ns 21670")),
            (Some(1), Some(21_690), Some("min_ns 1 lies outside the first bucket")),
            (Some(21_670), Some(30_000), Some("max_ns 30000 lies outside the last bucket")),
            (None, Some(21_690), Some("there are samples, but no minimum or maximum")),
        ] {
            assert_eq!(fault(min_ns, max_ns).as_deref(), want);
        }
    }

    #[test]
    fn a_sum_that_no_samples_have_is_found() {
        let d = Distribution::of([5_000, 7_000]);
        assert_eq!(d.fault_of_sum(), None);
        let wrong = |sum_ns| Distribution { sum_ns, ..d.clone() }.fault_of_sum();
        // The buckets are 8 ns wide.
        let fault = wrong(12_100).unwrap();
        assert!(fault.contains("sum_ns is 12100, but the samples"), "{fault}");
        assert!(wrong(11_900).is_some() && wrong(u64::MAX).is_some() && wrong(0).is_some());
        let huge = Distribution::of([u64::MAX - 1, u64::MAX - 1]);
        assert_eq!((huge.sum_ns, huge.fault_of_sum()), (u64::MAX, None));
        assert_eq!((d.mean_ns(), huge.mean_ns()), (Some(6_000), None));
        let none = Distribution::default();
        assert_eq!(none.fault_of_sum(), None);
        assert!(Distribution { sum_ns: 1, ..none }.fault_of_sum().is_some());
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let d = coarse(&[("p99.9", 4_100)]);
        let json = serde_json::to_string(&d).unwrap();
        assert!(
            json.contains("{\"percentiles\":{\"p99.9\":4100},\"resolution_ns\":1000}"),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Distribution>(&json).unwrap(), d);
    }

    proptest! {
        /// A file states true samples in steps: cut off, rounded, or rounded up.
        #[test]
        fn a_range_holds_the_true_figure(
            samples in prop::collection::vec(0_u64..60_000, 20..60),
            rounding in 0_usize..3,
        ) {
            let step = 1_000;
            // A row holds what is rounded to it.
            let row_of = |ns: u64| match rounding {
                0 => ns / step * step,
                1 => (ns + step / 2) / step * step,
                _ => ns.div_ceil(step) * step,
            };
            let begin = |row: u64| row.saturating_sub([0, step / 2, step - 1][rounding]);
            let mut rows = std::collections::BTreeMap::new();
            for &ns in &samples {
                *rows.entry(row_of(ns)).or_default() += 1;
            }
            let buckets = rows.iter().map(|(&row, &count)| Bucket {
                lower: begin(row),
                upper: begin(row + step),
                count,
            });
            let d = Distribution {
                count: samples.len() as u64,
                min_ns: rows.keys().next().copied(),
                max_ns: rows.keys().last().copied(),
                histogram: Histogram::from_buckets(buckets.collect()).unwrap(),
                stated: Some(Stated { resolution_ns: step, ..Stated::default() }),
                ..Distribution::default()
            };
            prop_assert_eq!(d.fault(), None);
            let holds = |(low, high): (u64, u64), ns: u64| low <= ns && ns <= high;
            let mut samples = samples;
            samples.sort_unstable();
            let (min, max) = (samples[0], *samples.last().unwrap());
            prop_assert!(holds(d.min_range().unwrap(), min), "{:?} {}", d.min_range(), min);
            prop_assert!(holds(d.max_range().unwrap(), max), "{:?} {}", d.max_range(), max);
            for (rank, &ns) in (1..).zip(&samples) {
                let range = d.range_at(rank).unwrap();
                prop_assert!(holds(range, ns) && range.1 - range.0 < step, "{range:?} {ns}");
                let is_known = matches!(d.quantile_at(rank), Some(Quantile::Known(_)));
                prop_assert!(!is_known || range.1 - range.0 <= ns / 15, "{range:?} {ns}");
            }
        }

        /// Each row holds the samples up to the value that it is named by, which is rounded.
        #[test]
        fn a_range_of_rounded_rows_holds_the_true_figure(
            mut samples in prop::collection::vec(0_u64..20_000, 1..60),
            is_end in prop::collection::vec(any::<bool>(), 60),
            step in prop::sample::select(vec![1_u64, 10, 1_000]),
        ) {
            samples.sort_unstable();
            let last = samples.len() - 1;
            // The first row is that of the minimum. Rows that are named alike are one.
            let mut rows = std::collections::BTreeMap::new();
            for (at, &ns) in samples.iter().enumerate() {
                let is_end = is_end[at] || ns == samples[0];
                if at == last || (is_end && samples[at + 1] > ns) {
                    rows.insert((ns + step / 2) / step * step, at as u64 + 1);
                }
            }
            let (mut lower, mut held) = (0, 0);
            let mut buckets = Vec::new();
            for (&row, &up_to) in &rows {
                buckets.push(Bucket { lower, upper: row + step, count: up_to - held });
                (lower, held) = (row + step, up_to);
            }
            let stated =
                Stated { resolution_ns: step, rows_are_rounded: true, ..Stated::default() };
            let d = Distribution {
                count: samples.len() as u64,
                min_ns: rows.keys().next().copied(),
                max_ns: rows.keys().last().copied(),
                histogram: Histogram::from_buckets(buckets).unwrap(),
                stated: Some(stated),
                ..Distribution::default()
            };
            prop_assert_eq!(d.fault(), None);
            let holds = |(low, high): (u64, u64), ns: u64| low <= ns && ns <= high;
            prop_assert!(holds(d.max_range().unwrap(), samples[last]), "{:?}", d.max_range());
            for (rank, &ns) in (1..).zip(&samples) {
                let range = d.range_at(rank).unwrap();
                prop_assert!(holds(range, ns), "{range:?} {ns}");
            }
        }

        #[test]
        fn merging_keeps_what_is_exact(samples in prop::collection::vec((0_u64..1 << 40, any::<u64>()), 0..60)) {
            let d = of(&samples);
            prop_assert_eq!(d.fault(), None);
            prop_assert_eq!(d.count, samples.len() as u64);
            prop_assert_eq!(d.min_ns, samples.iter().map(|s| s.0).min());
            let largest = samples.iter().copied().max_by_key(|&(v, at)| (v, std::cmp::Reverse(at)));
            prop_assert_eq!(d.max_ns.zip(d.max_at_ns), largest);
            prop_assert_eq!(d.sum_ns, samples.iter().map(|s| s.0).sum::<u64>());
            prop_assert_eq!(d.fault_of_sum(), None);
        }
    }
}
