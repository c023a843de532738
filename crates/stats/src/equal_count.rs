//! Maxima of different numbers of samples, made comparable.
//!
//! The more samples, the larger the largest. So a run of many is asked what the largest of fewer
//! would have been.

use wakescope_core::distribution::Distribution;

/// The largest of fewer samples says little.
pub const LEAST: u64 = 100;

/// Over how many samples maxima of runs are compared that have so many on each side: as many as the shortest
/// run has, of those that have more than half as many as the median run of their side, or of another side
/// with shorter ones. 0 if all have fewer than [`LEAST`].
///
/// A run that was stopped early would make the maxima of all others those of a few samples, in which what is
/// rare does not show. So it has no maximum of this count. Of the others, more than half of the draws have their
/// maximum.
pub(crate) fn equal_count(sides: [&[u64]; 2]) -> u64 {
    let median = |side: &[u64]| {
        let mut sorted = side.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    };
    let usual = sides.into_iter().filter_map(median).min().unwrap_or(0);
    let least = (usual / 2 + 1).max(LEAST);
    sides.into_iter().flatten().copied().filter(|&count| count >= least).min().unwrap_or(0)
}

/// Up to this many factors are multiplied one by one.
const FACTORS: u64 = 4_096;

/// The geometric mean of the largest of `count` samples that are drawn from `d` without putting back: the
/// maximum itself if that is all of them. At most 0.2 % above the exact value, as percentiles.
///
/// Comparisons take means of logarithms, so a longer run counts neither for more nor for less on average than
/// one of `count` samples. Its median would not do: of two thirds of its samples it is the maximum of all.
/// How many of the largest samples such a draw leaves out is hypergeometric; nothing is drawn.
/// `None` if there are not so many samples, `count` is 0, or only a bound is known.
pub(crate) fn mean_maximum(d: &Distribution, count: u64) -> Option<u64> {
    let (least, most) = mean_maximum_range(d, count)?;
    if !d.is_narrow((least, most)) {
        return None;
    }
    if count == d.count { d.max_ns } else { d.max_ns.map(|max_ns| most.min(max_ns)) }
}

/// The least and the largest value in ns that [`mean_maximum`] can have. `None` if there are not so many
/// samples, or `count` is 0.
pub(crate) fn mean_maximum_range(d: &Distribution, count: u64) -> Option<(u64, u64)> {
    let max_range = d.max_range()?;
    if count == d.count || !(1..=d.count).contains(&count) {
        return (count == d.count).then_some(max_range);
    }
    let mut draws =
        Draws { all: d.count, count, above: 0, left: 1.0, logs: [0.0; 2], has: [false; 2] };
    draws.add(1, max_range);
    // The last bucket holds the maximum, too.
    let mut added = 1;
    for bucket in d.ranges().collect::<Vec<_>>().into_iter().rev() {
        draws.add(bucket.count.saturating_sub(added), (bucket.lower, bucket.upper - 1));
        added = 0;
        if draws.left < NEGLIGIBLE {
            break;
        }
    }
    Some(draws.means())
}

/// Draws that are left out of a mean: so few that it is right to a billionth.
const NEGLIGIBLE: f64 = 1e-10;

/// The maxima of draws of `count` samples from `all`, from the largest sample down.
struct Draws {
    all: u64,
    count: u64,
    /// Samples that were added, and the share of draws that have none of them.
    above: u64,
    left: f64,
    /// Sums of the logarithms of the least and of the largest value, each with its share of draws.
    logs: [f64; 2],
    /// Whether a value above 0 ns was among them.
    has: [bool; 2],
}

impl Draws {
    /// Adds the next samples below those before, which lie from `least` to `most` ns.
    fn add(&mut self, samples: u64, (least, most): (u64, u64)) {
        self.above = self.above.saturating_add(samples).min(self.all);
        let left = chance_to_leave_out(self.above, self.all, self.count);
        for (end, ns) in [least, most].into_iter().enumerate() {
            self.logs[end] += (self.left - left) * (ns.max(1) as f64).ln();
            self.has[end] |= ns > 0;
        }
        self.left = left;
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
    fn means(&self) -> (u64, u64) {
        let mean = |end: usize| match self.has[end] {
            true => (self.logs[end] / (1.0 - self.left)).exp().round() as u64,
            false => 0,
        };
        (mean(0), mean(1))
    }
}

/// How likely it is that none of `largest` samples is among `count` drawn from `all`.
fn chance_to_leave_out(largest: u64, all: u64, count: u64) -> f64 {
    // The same whether the one or the other is drawn.
    let (few, many) = (largest.min(count), largest.max(count));
    if few > all - many {
        return 0.0;
    }
    let factor = |i: f64| 1.0 - many as f64 / (all as f64 - i);
    if few > FACTORS {
        // Both are large, so each is a small part of all near one half: the factor in the middle
        // stands for all, which is right to a millionth.
        return (few as f64 * factor((few - 1) as f64 / 2.0).ln()).exp();
    }
    (0..few).map(|i| factor(i as f64)).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::histogram::{Bucket, Histogram};
    use wakescope_core::random::Random;

    fn of(samples: &[u64]) -> Distribution {
        Distribution {
            count: samples.len() as u64,
            min_ns: samples.iter().min().copied(),
            max_ns: samples.iter().max().copied(),
            histogram: Histogram::of(samples.iter().copied()),
            ..Default::default()
        }
    }

    #[test]
    fn by_hand() {
        let scaled = of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|ms| ms * 1_000_000));
        let mean = |weights: &[(f64, f64)]| {
            weights.iter().map(|(weight, value)| weight * value.ln()).sum::<f64>().exp()
        };
        for (count, want) in [
            (0, None),
            // 10! is the product of all.
            (1, Some(3_628_800_f64.powf(0.1))),
            // C(9, 8) / C(10, 9) of the draws leave out the largest.
            (9, Some(mean(&[(0.9, 10.0), (0.1, 9.0)]))),
            (8, Some(mean(&[(8.0 / 10.0, 10.0), (16.0 / 90.0, 9.0), (2.0 / 90.0, 8.0)]))),
            (10, Some(10.0)),
            (11, None),
        ] {
            let got = mean_maximum(&scaled, count).map(|ns| ns as f64 / 1e6);
            let is_near = got.zip(want).is_none_or(|(got, want)| (got / want - 1.0).abs() < 0.003);
            assert!(got.is_some() == want.is_some() && is_near, "{count}: {got:?} {want:?}");
        }
        assert_eq!(mean_maximum(&of(&[]), 1), None);
        assert_eq!(mean_maximum(&of(&[0, 0, 0]), 2), Some(0));
    }

    #[test]
    fn runs_that_are_far_shorter_than_usual_do_not_shorten_all() {
        for (new, old, want) in [
            (&[2_500; 6][..], &[2_500; 6][..], 2_500),
            // One was stopped; one nearly at once; and two of four.
            (&[2_500; 6], &[2_500, 2_500, 2_500, 1_250], 2_500),
            (&[2_500, 2_501], &[3, 2_502], 2_500),
            (&[2_500; 4], &[2_500, 50, 700, 2_600], 2_500),
            (&[2_500; 6], &[2_500, 2_500, 2_500, 1_251], 1_251),
            // A side that is shorter throughout, or for the most part.
            (&[16_000; 5], &[4_000; 4], 4_000),
            (&[16_000; 5], &[4_000, 3_000, 4_000, 1_999], 3_000),
            (&[2_500; 6], &[2_500, 2_500, 400, 300, 300], 300),
            (&[2_500; 6], &[2_500, 2_500, 40, 30, 30], 2_500),
            (&[100_000; 6], &[99; 6], 100_000),
            (&[99; 6], &[50; 6], 0),
            (&[100; 6], &[], 100),
            (&[], &[], 0),
        ] {
            assert_eq!(equal_count([new, old]), want, "{new:?} {old:?}");
            assert_eq!(equal_count([old, new]), want, "the other way round: {new:?} {old:?}");
        }
    }

    /// The median of draws was the maximum of all 7,600 samples, and of alike runs of 4,000 and 7,600 samples,
    /// 30 a side, `compare` called the longer ones worse in 27 of 60 cases.
    #[test]
    fn longer_runs_are_not_larger() {
        let mut random = Random::new(11);
        let mut mean_of_logs = |count: usize| -> f64 {
            let logs = (0..400).map(|_| {
                let d = of(&(0..count).map(|_| pareto(&mut random)).collect::<Vec<_>>());
                (mean_maximum(&d, 400).unwrap() as f64).ln()
            });
            logs.sum::<f64>() / 400.0
        };
        let shortest = mean_of_logs(400);
        for longer in [404, 500, 760, 1_600, 8_000] {
            // The mean of 400 maxima of such a tail has a standard deviation of 0.064.
            let apart = mean_of_logs(longer) - shortest;
            assert!(apart.abs() < 0.25, "{longer}: {apart}");
        }
    }

    /// A latency with a heavy tail: ten times as large ones are a tenth as frequent.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn pareto(random: &mut Random) -> u64 {
        (1_000.0 / (1.0 - random.uniform())) as u64
    }

    #[test]
    fn it_is_what_draws_give() {
        let mut random = Random::new(7);
        let mut samples: Vec<u64> = (1..=1_000).collect();
        for count in [3, 30, 300, 900] {
            let maxima: Vec<u64> = (0..4_001)
                .map(|_| {
                    random.draw(&mut samples, count);
                    samples[..count].iter().max().copied().unwrap()
                })
                .collect();
            let log = |ns: &u64| (*ns as f64).ln();
            let drawn = maxima.iter().map(log).sum::<f64>() / maxima.len() as f64;
            let exact = mean_maximum(&of(&samples), count as u64).unwrap();
            // The logarithm of the largest of three varies by a third, the mean of 4,001 by half a percent.
            assert!((drawn - log(&exact)).abs() < 0.03, "{count}: {exact} {drawn}");
        }
    }

    #[test]
    fn many_factors_in_one_are_as_many_one_by_one() {
        let one_by_one = |few: u64, many: u64, all: u64| -> f64 {
            (0..few).map(|i| 1.0 - many as f64 / (all - i) as f64).product()
        };
        for (few, many, all) in [(5_000, 5_000, 36_000_000), (5_000, 70_000, 500_000_000)] {
            let (got, want) = (chance_to_leave_out(few, all, many), one_by_one(few, many, all));
            assert!((got - want).abs() < 1e-6 * want, "{got} for {want}");
        }
    }

    #[test]
    fn the_largest_numbers_are_no_trouble() {
        let bucket = Bucket { lower: 5, upper: 6, count: u64::MAX };
        let histogram = Histogram::from_buckets(vec![bucket]).unwrap();
        let d = Distribution { count: u64::MAX, max_ns: Some(5), histogram, ..of(&[]) };
        assert_eq!(mean_maximum(&d, 4_000), Some(5));
    }
}
