//! Percentiles of different numbers of samples, made comparable.
//!
//! A percentile of a run is one of its samples, so its rank is a whole number. The 99.9th percentile of 4,000
//! samples is the fifth largest, that of 20,000 the 21st: a smaller share. In a heavy tail, the first is 9 %
//! less on average. So a longer run is asked at the rank, which may lie between two samples, that has the same
//! share of its samples beyond it as the percentile of the shortest run.

use crate::equal_count::equal_count;
use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;

/// The share of samples beyond a percentile: that beyond the sample of a rank among so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    percentile: Percentile,
    /// Counted from the top: 1 is the maximum.
    rank: u64,
    count: u64,
}

impl Share {
    /// The share at which `percentile` is compared over runs that have so many samples on each side: that of
    /// the run whose length maxima are compared over ([`equal_count`]), or if all are shorter than these, of the
    /// shortest one. Only runs that carry the percentile count; `None` if there are none.
    pub(crate) fn of(percentile: Percentile, sides: [&[u64]; 2]) -> Option<Self> {
        let carried = |side: &[u64]| -> Vec<u64> {
            side.iter().copied().filter(|&count| percentile.is_carried_by(count)).collect()
        };
        let [new, old] = sides.map(carried);
        let shortest = new.iter().chain(&old).copied().min()?;
        let count = equal_count([&new, &old]).max(shortest);
        Some(Self { percentile, rank: count - percentile.rank(count) + 1, count })
    }

    /// The rank from the top that has this share beyond it among `count` samples, in whole ranks and a part
    /// of one.
    ///
    /// The logarithm of the sample of rank r of n in a heavy tail is on average that of the value with a share
    /// of (r - 1/2) / n beyond it, to 1 % from the third on. Other tails have less to even out.
    fn rank_among(self, count: u64) -> (u64, f64) {
        let twice = |number: u64| 2 * u128::from(number);
        let halves = u128::from(count).saturating_mul(twice(self.rank) - 1);
        let (halves, whole) = (halves.saturating_add(self.count.into()), twice(self.count));
        let rank = u64::try_from(halves / whole).unwrap_or(count).clamp(1, count.max(1));
        (rank, (halves % whole) as f64 / whole as f64)
    }

    /// The least and the largest value in ns that a run has at this share; `None` if its samples do not carry
    /// the percentile. A percentile that a file of another program states itself is taken as it is.
    pub(crate) fn range(self, d: &Distribution) -> Option<(u64, u64)> {
        let range = d.range(self.percentile)?;
        if d.stated.as_ref().is_some_and(|it| it.percentiles.contains_key(&self.percentile)) {
            return Some(range);
        }
        let (rank, part) = self.rank_among(d.count);
        let (least, most) = d.range_at(d.count - rank + 1)?;
        let (next_least, next_most) = d.range_at((d.count - rank).max(1))?;
        Some((between(least, next_least, part), between(most, next_most, part)))
    }
}

/// The value at a part of the way from one to the next, by their logarithms.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
fn between(from: u64, to: u64, part: f64) -> u64 {
    if from == to || part == 0.0 {
        return from;
    }
    let [from, to] = [from, to].map(|ns| (ns.max(1) as f64).ln());
    (from + part * (to - from)).exp().round() as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::iter;

    use super::*;
    use proptest::prelude::*;
    use wakescope_core::histogram::{Bucket, Histogram};
    use wakescope_core::random::Random;
    use wakescope_core::stated::Stated;
    use wakescope_core::watch::scale::{BUCKETS, edges_of};

    fn percentile(text: &str) -> Percentile {
        text.parse().unwrap()
    }

    impl Share {
        /// The value in ns that a run has at this share, if it is known.
        fn value(self, d: &Distribution) -> Option<u64> {
            self.range(d).filter(|&range| d.is_narrow(range)).map(|(_, most)| most)
        }
    }

    /// The share of the percentile of `shortest` samples.
    fn share(text: &str, shortest: u64) -> Share {
        Share::of(percentile(text), [&[shortest], &[]]).unwrap()
    }

    #[test]
    fn a_rank_has_the_share_of_the_shortest_run_beyond_it() {
        for (text, shortest, count, want) in [
            ("p99.9", 4_000, 4_000, (5, 0.0)),
            // 20,000 × 4.5 / 4,000 + 0.5
            ("p99.9", 4_000, 20_000, (23, 0.0)),
            ("p99.9", 4_000, 4_500, (5, 0.5625)),
            // One sample more, and the rank itself is another one.
            ("p99.9", 9_999, 10_000, (10, 0.00095)),
            ("p50", 5, 5, (3, 0.0)),
            ("p50", 5, 8, (4, 0.5)),
            ("p99.9", u64::MAX, u64::MAX, (18_446_744_073_709_552, 0.0)),
            ("p50", u64::MAX, u64::MAX, (1 << 63, 0.0)),
            ("p50", u64::MAX - 1, u64::MAX, (1 << 63, 0.5)),
        ] {
            let (rank, part) = share(text, shortest).rank_among(count);
            assert!(rank == want.0 && (part - want.1).abs() < 1e-6, "{count}: {rank} {part}");
        }
    }

    #[test]
    fn the_shortest_run_of_usual_length_has_the_share() {
        let count = |text: &str, sides: [&[u64]; 2]| {
            Share::of(percentile(text), sides).map(|share| share.count)
        };
        assert_eq!(count("p99.9", [&[6_000; 4], &[6_000, 6_000, 2_500, 6_001]]), Some(6_000));
        assert_eq!(count("p99.9", [&[6_000; 4], &[1_999, 2_600, 2_700]]), Some(2_600));
        assert_eq!(count("p50", [&[9, 8], &[3, 7]]), Some(7), "too few for any maximum");
        assert_eq!(count("p99.9", [&[1_999], &[]]), None);
    }

    /// So many latencies with a heavy tail: ten times as large ones are a tenth as frequent. Only the largest
    /// of them are drawn, from the largest on; the others are 1 µs.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn pareto(count: u64, random: &mut Random) -> Distribution {
        const DRAWN: u64 = 60;
        let mut above = 1.0;
        let largest = (0..DRAWN).map(|drawn| {
            above *= (1.0 - random.uniform()).powf(1.0 / (count - drawn) as f64);
            (1_000.0 / (1.0 - above)) as u64
        });
        let others = usize::try_from(count - DRAWN).unwrap();
        Distribution::of(largest.chain(iter::repeat_n(1_000, others)))
    }

    /// By their own p99.9, runs of 2,999 samples have a mean logarithm 0.4 above that of 2,000, runs of 8,000 of 0.16.
    #[test]
    fn longer_runs_are_not_later() {
        let mut random = Random::new(3);
        let shortest = 2_000;
        let share = share("p99.9", shortest);
        let mut mean_of_logs = |count: u64| -> f64 {
            let logs =
                (0..2_000).map(|_| (share.value(&pareto(count, &mut random)).unwrap() as f64).ln());
            logs.sum::<f64>() / 2_000.0
        };
        let of_shortest = mean_of_logs(shortest);
        for longer in [2_300, 2_999, 8_000] {
            // The mean of 2,000 such figures has a standard deviation of 0.014.
            let apart = mean_of_logs(longer) - of_shortest;
            assert!(apart.abs() < 0.07, "{longer}: {apart}");
        }
    }

    #[test]
    fn what_a_file_states_is_taken_as_it_is() {
        let mut d = Distribution::of((0..8_000).map(|i| 1_000 + i * i));
        let own = d.range(percentile("p99.9"));
        assert_ne!(share("p99.9", 2_000).range(&d), own);
        let percentiles = BTreeMap::from([(percentile("p99.9"), own.unwrap().1)]);
        d.stated = Some(Stated { percentiles, resolution_ns: 1, ..Stated::default() });
        assert_eq!(share("p99.9", 2_000).range(&d), d.range(percentile("p99.9")));
    }

    #[test]
    fn zero_and_the_largest_numbers_are_no_trouble() {
        assert_eq!(share("p50", 5).value(&Distribution::of([0; 8])), Some(0));
        let d = Distribution::of([0, 0, 0, 0, u64::MAX, u64::MAX, u64::MAX, u64::MAX]);
        // Half of the way from 1 to 2^64, by logarithms.
        assert_eq!(share("p50", 5).value(&d).map(|ns| ns >> 20), Some(1 << 12));
    }

    proptest! {
        /// Of a run of the length that has the share, nothing changes, and between two samples that are known
        /// so is what lies between them.
        #[test]
        fn between_known_samples_the_value_is_known(
            at in prop::collection::vec(0..BUCKETS - 1, 2..9),
            shortest in 4_u64..9,
        ) {
            let mut counts = BTreeMap::<usize, u64>::new();
            at.iter().for_each(|&at| *counts.entry(at).or_default() += 4);
            let buckets = counts.iter().map(|(&at, &count)| {
                let (lower, upper) = edges_of(at);
                Bucket { lower, upper, count }
            });
            let d = Distribution {
                count: counts.values().sum(),
                min_ns: Some(edges_of(*counts.keys().next().unwrap()).0),
                max_ns: Some(edges_of(*counts.keys().last().unwrap()).1 - 1),
                histogram: Histogram::from_buckets(buckets.collect()).unwrap(),
                stated: Some(Stated { resolution_ns: 1, ..Stated::default() }),
                ..Distribution::default()
            };
            let p50 = percentile("p50");
            prop_assert_eq!(share("p50", d.count).value(&d), d.percentile(p50));
            let share = share("p50", shortest);
            let (rank, _) = share.rank_among(d.count);
            let ranks = [d.count - rank + 1, (d.count - rank).max(1)];
            let known = ranks.map(|rank| d.is_narrow(d.range_at(rank).unwrap()));
            prop_assert!(known.contains(&false) || share.value(&d).is_some(), "{:?}", share.range(&d));
        }
    }
}
