//! Waits that were counted together.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::histogram::{Bucket, Histogram};
use crate::percentile::Percentile;
use crate::watch::packed;
use crate::watch::scale::{BUCKETS, edges_of};

/// Waits that were counted together. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// How many: the sum of the histogram's counts.
    pub count: u64,
    /// Their exact sum.
    pub sum_ns: u64,
    /// The longest, as far as [`Waits::longest`] knows it; `None` if there are none.
    pub max_ns: Option<u64>,
    /// Whether that is exact. Otherwise the longest wait ended just when the window did, and this is the end
    /// of its bucket, or the begin of the last one, which has no end. The total of a watch has it exactly; a
    /// sum of windows does not.
    pub max_is_exact: bool,
    /// The shortest; `None` if there are none.
    pub min_ns: Option<u64>,
    /// Whether that is exact, as [`Waits::max_is_exact`] is. Otherwise it is the begin of its bucket.
    pub min_is_exact: bool,
    /// Where they lie: 16 buckets an octave.
    #[serde(deserialize_with = "packed::histogram")]
    pub histogram: Histogram,
}

/// What is known of the length of a wait, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It took exactly this.
    Exactly(u64),
    /// It took no more: this is the end of its bucket.
    AtMost(u64),
    /// It took no less: its bucket has no end.
    AtLeast(u64),
}

impl Known {
    /// The length that is shown, in ns.
    pub fn ns(self) -> u64 {
        match self {
            Self::Exactly(ns) | Self::AtMost(ns) | Self::AtLeast(ns) => ns,
        }
    }
}

impl Waits {
    /// What is known of the longest wait; `None` if there are none.
    pub fn longest(&self) -> Option<Known> {
        let max_ns = self.max_ns?;
        let is_open = self.histogram.buckets().last().is_some_and(|last| last.upper == u64::MAX);
        Some(match (self.max_is_exact, is_open) {
            (true, _) => Known::Exactly(max_ns),
            (false, false) => Known::AtMost(max_ns),
            (false, true) => Known::AtLeast(max_ns),
        })
    }

    /// What the longest took at most, ns; `None` if there are none. Where its bucket has no end, that is what the
    /// others leave of the sum, if each is as short as its bucket allows; the largest number if the sum is not
    /// that of these waits.
    pub(crate) fn longest_at_most(&self) -> Option<u64> {
        Some(match self.longest()? {
            Known::Exactly(ns) | Known::AtMost(ns) => ns,
            Known::AtLeast(ns) => {
                let buckets = self.histogram.buckets();
                let least = buckets.iter().map(|b| u128::from(b.lower) * u128::from(b.count));
                let others = least.sum::<u128>() - u128::from(buckets.last()?.lower);
                let left = u64::try_from(u128::from(self.sum_ns).saturating_sub(others)).ok();
                left.filter(|&left| left >= ns).unwrap_or(u64::MAX)
            }
        })
    }

    /// Both together.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.add(other);
        both
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        // One that is only known to be so long may be the longest of all, whatever the others are.
        let is_unbounded = |waits: &Self| matches!(waits.longest(), Some(Known::AtLeast(_)));
        let is_unbounded = is_unbounded(self) || is_unbounded(other);
        (self.max_ns, self.max_is_exact) = further(
            (self.max_ns, self.max_is_exact),
            (other.max_ns, other.max_is_exact),
            self.max_ns.cmp(&other.max_ns),
        );
        self.max_is_exact &= !is_unbounded;
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

    /// The largest value that the wait at `percentile` can have had: never below its true value, and at most
    /// 1/16 above it where the scale has buckets of that width (`scale`, from 128 ns to 17 s). In the bucket
    /// without an end, if it is not known how long the longest one there was, the least value. `None` if there
    /// are too few waits to say.
    pub fn percentile(&self, percentile: Percentile) -> Option<Known> {
        let upper = self.histogram.percentile(percentile)?;
        let last = self.histogram.buckets().last()?;
        Some(match self.longest()? {
            Known::AtLeast(_) if upper >= last.lower => Known::AtLeast(last.lower),
            longest => Known::AtMost(upper.min(longest.ns())),
        })
    }

    /// Why the sum cannot be that of the waits in the histogram, if it cannot. At either end of a window so many
    /// waits can be `in_flight`: a program adds a wait to the sum first, and a reader may come before it is in
    /// its bucket. Then the sum of one window has it, and the histogram of the next.
    pub(crate) fn sum_fault(&self, in_flight: u64) -> Option<String> {
        // One that is longer than any bucket, and ends at this very moment, is not allowed for.
        let (longest_in_flight, _) = edges_of(BUCKETS - 1);
        let buckets = self.histogram.buckets();
        let mut left = in_flight;
        let least = buckets.iter().rev().map(|bucket| {
            let beyond = bucket.count.saturating_sub(left);
            left = left.saturating_sub(bucket.count);
            u128::from(bucket.lower) * u128::from(beyond)
        });
        let least: u128 = least.sum();
        let max = match self.longest() {
            Some(Known::Exactly(ns) | Known::AtMost(ns)) => ns,
            Some(Known::AtLeast(_)) | None => u64::MAX,
        };
        let most = buckets
            .iter()
            .map(|bucket| u128::from((bucket.upper - 1).min(max)) * u128::from(bucket.count));
        let in_flight = if buckets.is_empty() { 0 } else { in_flight };
        let most = most.sum::<u128>() + u128::from(longest_in_flight) * u128::from(in_flight);
        let sum = u128::from(self.sum_ns);
        if sum > most {
            return Some(format!("sum_ns is {sum}, and these waits took {most} ns at most"));
        }
        // A sum that has no more room stays as it is.
        let is_below = sum < least.min(u64::MAX.into());
        is_below.then(|| format!("sum_ns is {sum}, and these waits took {least} ns at least"))
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
    use wakescope_testing::assert_told;

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
    fn one_beyond_the_scale_may_be_the_longest_of_all() {
        let beyond = |ns, max_is_exact| {
            let bucket = Bucket { lower: 17_179_869_184, upper: u64::MAX, count: 1 };
            let histogram = Histogram::from_buckets(vec![bucket]).unwrap();
            Waits { histogram, max_is_exact, ..Waits::exactly(&[ns]) }
        };
        let unread = beyond(17_179_869_184, false);
        let read = beyond(18_000_000_000, true);
        let short = Waits::exactly(&[900]);
        for (one, other, want) in [
            (&unread, &unread, Known::AtLeast(17_179_869_184)),
            (&unread, &short, Known::AtLeast(17_179_869_184)),
            (&unread, &read, Known::AtLeast(18_000_000_000)),
            (&read, &short, Known::Exactly(18_000_000_000)),
            (&read, &roughly(&[900]), Known::Exactly(18_000_000_000)),
            (&roughly(&[900]), &short, Known::Exactly(900)),
            (&roughly(&[901]), &short, Known::AtMost(901)),
        ] {
            assert_eq!(one.merged(other).longest(), Some(want), "{one:?} {other:?}");
            assert_eq!(other.merged(one).longest(), Some(want), "{other:?} {one:?}");
        }
        assert_eq!(Waits::default().longest(), None);
    }

    #[test]
    fn one_without_an_end_took_no_more_than_the_others_leave_of_the_sum() {
        let beyond = |count, sum_ns| {
            let bucket = Bucket { lower: 17_179_869_184, upper: u64::MAX, count };
            let histogram = Histogram::from_buckets(vec![bucket]).unwrap();
            let max_ns = Some(17_179_869_184);
            Waits { count, sum_ns, max_ns, histogram, ..Waits::default() }
        };
        let (short, read) = (Waits::exactly(&[900, 900]), Waits::exactly(&[900]));
        let hour = 3_600_000_000_000;
        for (waits, want) in [
            (beyond(1, hour), hour),
            (beyond(2, hour), hour - 17_179_869_184),
            // A bucket of the fine scale begins at 900 ns.
            (beyond(1, hour).merged(&short), hour),
            // The sum is that of another window.
            (beyond(1, 900), u64::MAX),
            (read, 900),
            (roughly(&[901]), 901),
        ] {
            assert_eq!(waits.longest_at_most(), Some(want), "{waits:?}");
        }
        assert_eq!(Waits::default().longest_at_most(), None);
    }

    #[test]
    fn a_sum_that_cannot_be_is_found() {
        let histogram = |edges: &[(u64, u64)]| {
            let buckets = edges.iter().map(|&(lower, upper)| Bucket { lower, upper, count: 1 });
            Histogram::from_buckets(buckets.collect()).unwrap()
        };
        let of = Waits::exactly(&[200, 1_000, 9_000]);
        let waits =
            Waits { histogram: histogram(&[(200, 208), (992, 1_024), (8_704, 9_216)]), ..of };
        for (sum_ns, in_flight, want) in [
            (10_200, 0, None),
            // From the begins of their buckets to the ends, of which the last is the maximum.
            (9_896, 0, None),
            (9_895, 0, Some("9896 ns at least")),
            (10_230, 0, None),
            (10_231, 0, Some("10230 ns at most")),
            // The longest one, or the two longest, were in the sum of the window before.
            (1_192, 1, None),
            (1_191, 1, Some("1192 ns at least")),
            (200, 2, None),
            (199, 2, Some("200 ns at least")),
            (0, 3, None),
            // One more is in this sum.
            (10_231, 1, None),
            (17_179_869_184 + 10_231, 1, Some("at most")),
            (u64::MAX, 1, Some("at most")),
        ] {
            let fault = Waits { sum_ns, ..waits.clone() }.sum_fault(in_flight);
            assert_told(fault, want);
        }
        assert!(Waits { sum_ns: 1, ..Waits::default() }.sum_fault(2).is_some());
        // Nobody knows how long one was that has no maximum of its own beyond the scale.
        let beyond = histogram(&[(17_179_869_184, u64::MAX)]);
        let beyond = Waits { histogram: beyond, ..roughly(&[17_179_869_184]) };
        assert_eq!(Waits { sum_ns: 1 << 60, ..beyond }.sum_fault(0), None);
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
