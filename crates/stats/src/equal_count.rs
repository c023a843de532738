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
/// rare does not show. So it has no maximum of this count. The others lose nothing by one that counts: the
/// median maximum of more than half of the samples of a run is its maximum.
pub fn equal_count(sides: [&[u64]; 2]) -> u64 {
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

/// The median of the largest of `count` samples that are drawn from `d` without putting back: the
/// maximum itself if that is all of them. At most 0.2 % above the exact value, as percentiles.
///
/// How many of the largest samples such a draw leaves out is hypergeometric; nothing is drawn.
/// `None` if there are not so many samples, `count` is 0, or only a bound is known.
pub fn median_maximum(d: &Distribution, count: u64) -> Option<u64> {
    match left_out(d, count)? {
        0 => d.max_ns.filter(|_| d.max_range().is_some_and(|range| d.is_narrow(range))),
        left_out => d.quantile_at(d.count - left_out)?.known(),
    }
}

/// The least and the largest value in ns that [`median_maximum`] can have. `None` if there are not so many
/// samples, or `count` is 0.
pub fn median_maximum_range(d: &Distribution, count: u64) -> Option<(u64, u64)> {
    match left_out(d, count)? {
        0 => d.max_range(),
        left_out => d.range_at(d.count - left_out),
    }
}

/// How many of the largest samples a draw of `count` usually leaves out; `None` if `d` has not so many
/// samples, or `count` is 0.
fn left_out(d: &Distribution, count: u64) -> Option<u64> {
    (1..=d.count).contains(&count).then(|| usually_left_out(d.count, count))
}

/// The largest value that the sample of this rank from the top (1 is the maximum) can have had.
pub fn from_the_top(d: &Distribution, rank: u64) -> Option<u64> {
    let mut seen = 0_u64;
    let bucket = d.histogram.buckets().iter().rev().find(|bucket| {
        seen = seen.saturating_add(bucket.count);
        seen >= rank
    })?;
    match rank {
        0 => None,
        1 => Some(d.max_range()?.1),
        _ => Some((bucket.upper - 1).min(d.max_range()?.1)),
    }
}

/// How many of the largest of `all` samples a draw of `count` leaves out with probability one half
/// or more.
fn usually_left_out(all: u64, count: u64) -> u64 {
    let (mut yes, mut no) = (0, all - count + 1);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if chance_to_leave_out(middle, all, count) >= 0.5 { yes = middle } else { no = middle }
    }
    yes
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
        let d = of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        for (count, want) in [
            (0, None),
            // The median of one sample of ten, the lower one.
            (1, Some(5)),
            // C(7, 2) / C(10, 2) is 21/45, C(8, 2) / C(10, 2) is 28/45.
            (2, Some(8)),
            // C(9, 5) / C(10, 5) is exactly one half.
            (5, Some(9)),
            (6, Some(10)),
            (10, Some(10)),
            (11, None),
        ] {
            assert_eq!(median_maximum(&d, count), want, "{count}");
        }
        assert_eq!(median_maximum(&of(&[]), 1), None);
        assert_eq!((from_the_top(&d, 0), from_the_top(&d, 11)), (None, None));
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

    #[test]
    fn more_than_half_of_the_samples_have_the_maximum_of_all() {
        for all in (200..2_000).chain([1 << 40, (1 << 40) + 1]) {
            assert_eq!(usually_left_out(all, all / 2 + 1), 0, "{all}");
        }
    }

    #[test]
    fn it_is_what_draws_give() {
        let mut random = Random::new(7);
        let mut samples: Vec<u64> = (1..=1_000).collect();
        for count in [3, 30, 300, 900] {
            let mut maxima: Vec<u64> = (0..4_001)
                .map(|_| {
                    random.draw(&mut samples, count);
                    samples[..count].iter().max().copied().unwrap()
                })
                .collect();
            maxima.sort_unstable();
            let exact = median_maximum(&of(&samples), count as u64).unwrap();
            // With 4,001 draws, ranks are uncertain by a few percent.
            assert!((maxima[1_850]..=maxima[2_150]).contains(&exact), "{count}: {exact}");
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
        assert_eq!(usually_left_out(u64::MAX, u64::MAX), 0);
        let bucket = Bucket { lower: 5, upper: 6, count: u64::MAX };
        let histogram = Histogram::from_buckets(vec![bucket]).unwrap();
        let d = Distribution { count: u64::MAX, max_ns: Some(5), histogram, ..of(&[]) };
        assert_eq!(median_maximum(&d, 4_000), Some(5));
        assert!(usually_left_out(u64::MAX, 1).abs_diff(u64::MAX / 2) < 1 << 12);
        let got = usually_left_out(10_000_000_000, 10_000);
        assert!(got.abs_diff(693_123) < 5, "{got}: that is 10^6 ln 2, nearly");
    }
}
