//! The balance of late wakeups: how many there were, how many of them are explained, and how late
//! the others were.
//!
//! A probe records every wakeup, the tracer counts those that it followed, and the explained ones
//! are among these. All three count by the same scale, so bucket by bucket the smaller set cannot
//! exceed the larger one, and what remains is known as exactly as the scale is: 0.2 %.

use std::collections::BTreeMap;

use super::rank::Part;
use crate::group::Key;
use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::{Histogram, bucket_of, edges_of};

/// Numbers of wakeups by buckets of the histograms' scale.
type Counts = BTreeMap<usize, u64>;

/// What is known of the wakeups of a run before they are balanced.
pub(super) struct Books<'a> {
    /// All wakeups: those that the probes recorded, or, where there are none, those that the tracer
    /// followed.
    pub all: &'a Distribution,
    /// The wakeups that the tracer followed.
    pub followed: &'a Distribution,
    /// Late wakeups that are explained, by buckets.
    pub explained: Counts,
    /// Wakeups at least so late are late ones, nanoseconds.
    pub above_ns: u64,
    /// Records that were lost of wakeups that are certainly late; `None` if that is not known of
    /// each.
    pub lost: Option<u64>,
    /// How late the latest wakeups were that the probes listed, each with whether its blame is known;
    /// empty without probes.
    pub listed: &'a [(u64, bool)],
}

/// The late wakeups of a run, balanced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Balance {
    /// Late wakeups.
    pub late: u64,
    /// Of these, explained.
    pub explained: u64,
    /// Of these, not followed by the tracer.
    pub late_not_followed: u64,
    /// Wakeups that the tracer did not follow, late or not.
    pub not_followed: u64,
    /// Wakeups that the tracer followed but no probe recorded, and explained ones that it did not
    /// follow. A correct run has at most one for each probe, which stopped before it recorded its last
    /// wakeup.
    pub excess: u64,
    /// The late wakeups that are not explained: how many, and how late each was, nanoseconds.
    unexplained: Vec<(u64, u64)>,
}

impl Balance {
    pub(crate) fn of(books: &Books) -> Self {
        let followed = counts(&books.followed.histogram);
        let all = clipped(counts(&books.all.histogram), books.followed);
        let mut balance = Self {
            not_followed: surplus(&all, &followed),
            excess: surplus(&followed, &all).saturating_add(surplus(&books.explained, &followed)),
            ..Self::default()
        };
        let first = bucket_of(books.above_ns);
        for (&bucket, &there) in all.range(first..) {
            let explained = books.explained.get(&bucket).copied().unwrap_or(0);
            let not_followed = there.saturating_sub(followed.get(&bucket).copied().unwrap_or(0));
            let late = match edges_of(bucket).0 < books.above_ns {
                true => books.late_within(bucket, there, explained, not_followed, &followed),
                false => there,
            };
            let unexplained = late.saturating_sub(explained);
            balance.late = balance.late.saturating_add(late.max(explained));
            balance.late_not_followed += not_followed.min(unexplained);
            balance.unexplained.extend(books.lateness_of(bucket, unexplained));
        }
        balance.explained = books.explained.values().fold(0, |sum, n| sum.saturating_add(*n));
        balance.late = balance.late.max(balance.explained);
        balance
    }

    /// How late the wakeups without an explanation were together, nanoseconds: to 0.2 %.
    pub(crate) fn unexplained_ns(&self) -> u64 {
        let each = self.unexplained.iter().map(|&(count, ns)| count.saturating_mul(ns));
        each.fold(0, u64::saturating_add)
    }

    /// The wakeups without an explanation, to be ranked: all of their lateness is unexplained.
    pub(crate) fn parts<'s, K: Key + 's>(&'s self) -> impl Iterator<Item = Part<'s, K>> {
        self.unexplained.iter().map(|&(count, ns)| Part::new(count, ns, []))
    }
}

impl Books<'_> {
    /// How many of the wakeups in the bucket that the threshold lies in are late. Where the probes'
    /// list goes down to the threshold, it tells. Else those are late that are explained or whose
    /// record was lost, and, lest anything look better than it is, those that were not followed.
    fn late_within(
        &self,
        bucket: usize,
        there: u64,
        explained: u64,
        not_followed: u64,
        followed: &Counts,
    ) -> u64 {
        let is_late = |ns: u64| ns >= self.above_ns;
        let goes_down = self.listed.iter().any(|&(ns, _)| !is_late(ns))
            || self.listed.len() as u64 == self.all.count;
        if goes_down && !self.listed.is_empty() {
            let here = |&&(ns, _): &&(u64, bool)| is_late(ns) && bucket_of(ns) == bucket;
            return self.listed.iter().filter(here).count() as u64;
        }
        let lost_later: u64 = followed
            .range(bucket + 1..)
            .map(|(later, n)| n.saturating_sub(self.explained.get(later).copied().unwrap_or(0)))
            .sum();
        let lost = self.lost.map_or(0, |lost| lost.saturating_sub(lost_later));
        let followed_here = there.saturating_sub(not_followed);
        explained.saturating_add(lost).min(followed_here).max(explained) + not_followed
    }

    /// How late `count` wakeups in a bucket were that are not explained: to the nanosecond if the
    /// probes listed them, otherwise as late as they can have been.
    fn lateness_of(&self, bucket: usize, count: u64) -> Vec<(u64, u64)> {
        let listed = self
            .listed
            .iter()
            .filter(|&&(ns, is_known)| !is_known && bucket_of(ns) == bucket && ns >= self.above_ns);
        let most = usize::try_from(count).unwrap_or(usize::MAX);
        let mut each: Vec<(u64, u64)> = listed.take(most).map(|&(ns, _)| (1, ns)).collect();
        let others = count - each.len() as u64;
        if others > 0 {
            let latest = (edges_of(bucket).1 - 1).min(self.all.max_ns.unwrap_or(u64::MAX));
            each.push((others, latest));
        }
        each
    }
}

/// All wakeups by their lateness without stolen time: those that were `followed`, of which it is `net`,
/// and with all their lateness those of `all` that were not, of which nobody knows what was stolen.
pub(super) fn net_of_all(
    all: &Distribution,
    followed: &Distribution,
    net: &Distribution,
) -> Distribution {
    let counted = counts(&followed.histogram);
    let mut others = clipped(counts(&all.histogram), followed);
    for (bucket, count) in &mut others {
        *count = count.saturating_sub(counted.get(bucket).copied().unwrap_or(0));
    }
    others.retain(|_, count| *count > 0);
    let histogram = Histogram::from_scale(others);
    let latest = histogram.buckets().last().map(|bucket| bucket.upper - 1);
    let others = Distribution {
        count: histogram.count(),
        max_ns: latest.map(|ns| all.max_ns.map_or(ns, |max_ns| ns.min(max_ns))),
        histogram,
        ..Distribution::default()
    };
    net.merged(&others)
}

fn counts(histogram: &Histogram) -> Counts {
    let mut counts = Counts::new();
    for bucket in histogram.buckets() {
        *counts.entry(bucket_of(bucket.lower)).or_default() += bucket.count;
    }
    counts
}

/// The counts on the tracer's scale, which ends at 18 min: its last bucket holds all that is longer.
fn clipped(mut counts: Counts, followed: &Distribution) -> Counts {
    let last = followed.histogram.buckets().last();
    if let Some(last) = last.filter(|last| followed.max_ns >= Some(last.upper)) {
        let last = bucket_of(last.lower);
        let beyond: u64 = counts.split_off(&last).values().sum();
        counts.insert(last, beyond);
    }
    counts
}

/// By how much `larger` exceeds `smaller`, over the buckets in which it does.
fn surplus(larger: &Counts, smaller: &Counts) -> u64 {
    let of =
        |(bucket, n): (&usize, &u64)| n.saturating_sub(smaller.get(bucket).copied().unwrap_or(0));
    larger.iter().map(of).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Group;
    use proptest::prelude::*;

    fn distribution(samples: &[u64]) -> Distribution {
        Distribution {
            count: samples.len() as u64,
            max_ns: samples.iter().max().copied(),
            histogram: Histogram::of(samples.iter().copied()),
            ..Distribution::default()
        }
    }

    /// Wakeups of which the probes listed so many of the latest.
    #[derive(Clone, Debug, Default)]
    struct Case {
        all: Vec<u64>,
        followed: Vec<u64>,
        explained: Vec<u64>,
        lost: Option<u64>,
        listed: usize,
    }

    fn case(all: &[u64], followed: &[u64], explained: &[u64]) -> Case {
        let [all, followed, explained] = [all, followed, explained].map(<[u64]>::to_vec);
        Case { all, followed, explained, ..Case::default() }
    }

    fn balance(case: &Case, above_ns: u64) -> Balance {
        let mut listed: Vec<(u64, bool)> =
            case.all.iter().map(|&ns| (ns, case.explained.contains(&ns))).collect();
        listed.sort_unstable_by(|a, b| b.cmp(a));
        listed.truncate(case.listed);
        Balance::of(&Books {
            all: &distribution(&case.all),
            followed: &distribution(&case.followed),
            explained: counts(&Histogram::of(case.explained.iter().copied())),
            above_ns,
            lost: case.lost,
            listed: &listed,
        })
    }

    /// Checks late, explained, late and not followed, not followed, and the unexplained time.
    #[track_caller]
    fn check(case: &Case, above_ns: u64, want: [u64; 5]) {
        let b = balance(case, above_ns);
        let got = [b.late, b.explained, b.late_not_followed, b.not_followed, b.unexplained_ns()];
        assert_eq!((got, b.excess), (want, 0), "{b:?}");
    }

    #[test]
    fn late_wakeups_that_were_not_followed_are_unexplained() {
        let probed = case(&[900, 800, 700, 600, 20, 10], &[900, 700, 10], &[900]);
        let probed = Case { lost: Some(1), ..probed };
        // 900 is explained, the record of 700 was lost, 800 and 600 were not followed.
        check(&probed, 500, [4, 1, 2, 3, 800 + 700 + 600]);
        check(&probed, 750, [2, 1, 1, 3, 800]);
        // Without probes all were followed.
        let others = Case { all: probed.followed.clone(), ..probed };
        check(&others, 500, [2, 1, 0, 0, 700]);
    }

    #[test]
    fn beyond_the_exact_scale_lateness_is_known_to_a_fifth_of_a_percent() {
        let none = case(&[500_123, 400_321, 10], &[10], &[]);
        check(&Case { listed: 2, ..none.clone() }, 1_000, [2, 0, 2, 2, 900_444]);
        let rough = balance(&none, 1_000).unexplained_ns();
        assert!(rough.abs_diff(900_444) <= 900_444 / 512, "{rough}");
    }

    #[test]
    fn in_the_bucket_of_the_threshold_what_is_unknown_is_late() {
        // A bucket from 1,000,448 to 1,001,472 ns, with the threshold in it.
        let (early, late) = (1_000_500, 1_001_400);
        let check = |followed: &[u64], explained: &[u64], lost, listed, want| {
            let of = case(&[late, early, 10], followed, explained);
            check(&Case { lost: Some(lost), listed, ..of }, 1_001_000, want);
        };
        check(&[late, early, 10], &[late], 0, 0, [1, 1, 0, 0, 0]);
        check(&[late, early, 10], &[], 1, 0, [1, 0, 0, 0, late]);
        check(&[late, 10], &[late], 0, 0, [2, 1, 1, 1, late]);
        // The probes' list tells that the other one was in time.
        check(&[late, 10], &[late], 0, 2, [1, 1, 0, 1, 0]);
        check(&[early, 10], &[], 0, 2, [1, 0, 1, 1, late]);
    }

    #[test]
    fn what_is_longer_than_the_tracers_scale_is_in_its_last_bucket() {
        let (top, longer) = ((1 << 40) - 1, 1 << 43);
        let mut followed = distribution(&[top, top, 10]);
        followed.max_ns = Some(longer);
        let got = Balance::of(&Books {
            all: &distribution(&[longer, longer, 10]),
            followed: &followed,
            explained: Counts::new(),
            above_ns: 1_000,
            lost: None,
            listed: &[(longer, false), (longer, false), (10, false)],
        });
        assert_eq!((got.late, got.not_followed, got.excess), (2, 0, 0), "{got:?}");
    }

    #[test]
    fn what_cannot_be_is_counted() {
        let excess = |all: &[u64], followed: &[u64], explained: &[u64]| {
            balance(&case(all, followed, explained), 500).excess
        };
        assert_eq!(excess(&[10], &[10, 900, 20], &[]), 2);
        assert_eq!(excess(&[900], &[], &[900]), 1);
        assert_eq!(excess(&[900], &[800], &[]), 1);
    }

    proptest! {
        /// Each wakeup is followed or not, and explained or not; the books must give that back.
        #[test]
        fn all_late_wakeups_are_accounted_for(
            wakeups in prop::collection::vec((1_u64..5_000_000, 0_u8..3), 0..60),
            above in 1_u64..5_000_000,
            listed in 0_usize..80,
        ) {
            // An edge of the scale, as a percentile is.
            let above_ns = edges_of(bucket_of(above)).0;
            let of = |least: u8| {
                let some = wakeups.iter().filter(|w| w.1 >= least).map(|w| w.0);
                some.collect::<Vec<u64>>()
            };
            let (all, followed) = (of(0), of(1));
            let explained: Vec<u64> = of(2).into_iter().filter(|&ns| ns >= above_ns).collect();
            let got = balance(&Case { listed, ..case(&all, &followed, &explained) }, above_ns);
            let late = |least: u8| {
                let some = wakeups.iter().filter(|w| w.0 >= above_ns && w.1 >= least);
                some.map(|w| w.0).collect::<Vec<u64>>()
            };
            let count = |least| late(least).len() as u64;
            prop_assert_eq!((got.late, got.explained), (count(0), count(2)));
            prop_assert_eq!(got.late_not_followed, count(0) - count(1));
            prop_assert_eq!(got.excess, 0);
            let unexplained: u64 = late(0).iter().sum::<u64>() - late(2).iter().sum::<u64>();
            let off = got.unexplained_ns().abs_diff(unexplained);
            prop_assert!(off <= late(0).iter().sum::<u64>() / 256, "{off} ns of {unexplained}");
            let parts: u64 = crate::rank(got.parts::<Group>()).iter().map(|r| r.total_ns).sum();
            prop_assert_eq!(parts, got.unexplained_ns());
        }
    }
}
