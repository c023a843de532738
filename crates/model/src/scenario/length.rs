//! How long something takes.

use wakescope_core::random::Random;

use super::draw::{between, exponential, power};

/// A length of time, fixed or drawn at random, nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// Always the same.
    Fixed(u64),
    /// Each from the first to the second as likely as the others.
    Uniform(u64, u64),
    /// Exponentially distributed with this mean.
    Exponential(u64),
    /// A Pareto distribution: longer than `x` with the probability (`least` / `x`)^`shape`, cut at `most`.
    Pareto {
        /// The least.
        least: u64,
        /// The larger, the fewer are long.
        shape: f64,
        /// The most.
        most: u64,
    },
    /// One of several, with these weights.
    Mixture(Vec<(f64, Length)>),
    /// One of these buckets by its count, then each length within as likely as the others.
    Histogram(Vec<Bucket>),
}

/// Lengths of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The least, nanoseconds.
    pub lower: u64,
    /// The first that is longer than all of them.
    pub upper: u64,
    /// How often such a length was seen.
    pub count: u64,
}

impl Default for Length {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl Length {
    /// A length, nanoseconds.
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self {
            &Self::Fixed(ns) => ns,
            &Self::Uniform(least, most) => between(least, most.saturating_add(1), random),
            &Self::Exponential(mean) => rounded(mean as f64 * exponential(random)),
            &Self::Pareto { least, shape, most } => {
                rounded(least as f64 * power(exponential(random) / shape)).min(most)
            }
            Self::Mixture(parts) => {
                let all: f64 = parts.iter().map(|(weight, _)| weight).sum();
                let mut left = random.uniform() * all;
                let mut drawn = parts.last();
                for part in parts {
                    left -= part.0;
                    if left < 0.0 {
                        drawn = Some(part);
                        break;
                    }
                }
                drawn.map_or(0, |(_, length)| length.draw(random))
            }
            Self::Histogram(buckets) => {
                let all: u64 = buckets.iter().map(|bucket| bucket.count).sum();
                let mut left = between(0, all, random);
                for bucket in buckets {
                    if left < bucket.count {
                        return between(bucket.lower, bucket.upper, random);
                    }
                    left -= bucket.count;
                }
                0
            }
        }
    }
}

/// The nearest number of nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn rounded(ns: f64) -> u64 {
    // From below 0 and from what is no number, `as` makes 0, and from what is too large the most.
    (ns + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 100_000;

    struct Drawn {
        least: u64,
        most: u64,
        mean: f64,
        /// The share of those below 10,000.
        below: f64,
    }

    fn drawn(length: &Length) -> Drawn {
        let mut random = Random::new(1);
        let mut drawn = Drawn { least: u64::MAX, most: 0, mean: 0.0, below: 0.0 };
        for _ in 0..DRAWS {
            let ns = length.draw(&mut random);
            drawn.least = drawn.least.min(ns);
            drawn.most = drawn.most.max(ns);
            drawn.mean += ns as f64 / f64::from(DRAWS);
            drawn.below += f64::from(u8::from(ns < 10_000)) / f64::from(DRAWS);
        }
        drawn
    }

    /// `error` is about five standard deviations of the mean, a share of it.
    #[track_caller]
    fn check(length: &Length, range: (u64, u64), mean: f64, error: f64, below: f64) {
        let Drawn { least, most, mean: found, below: share } = drawn(length);
        assert!(range.0 <= least && most <= range.1, "{length:?}: {least} to {most}");
        assert!((found - mean).abs() <= mean * error, "{length:?}: mean {found}, not {mean}");
        // Five standard deviations of a share of one half.
        assert!((share - below).abs() <= 0.008, "{length:?}: {share} below 10,000, not {below}");
    }

    #[test]
    fn distributions_have_their_means_and_bounds() {
        check(&Length::Fixed(7), (7, 7), 7.0, 1e-9, 1.0);
        // (5,000 + 15,000) / 2; a standard deviation is 10,000 / sqrt(12).
        check(&Length::Uniform(5_000, 15_000), (5_000, 15_000), 10_000.0, 0.005, 0.5);
        // 1 - e^-1 are below the mean; the longest of 10^5 is about 11.5 means.
        check(&Length::Exponential(10_000), (0, 250_000), 10_000.0, 0.016, 0.632_12);
        // shape 3: mean 3/2 of the least, 1 - (6/10)^3 below 10,000; what is cut matters little.
        let pareto = |shape, most| Length::Pareto { least: 6_000, shape, most };
        check(&pareto(3.0, 1_000_000), (6_000, 1_000_000), 9_000.0, 0.016, 0.784);
        // shape 1, cut at 60,000: 6,000 (1 + ln 10) by the integral of the survival.
        check(&pareto(1.0, 60_000), (6_000, 60_000), 19_815.5, 0.02, 0.4);
        // A quarter is 1,000, the rest 9,000 to 11,000: 0.25 * 1,000 + 0.75 * 10,000.
        let mixture = Length::Mixture(vec![
            (1.0, Length::Fixed(1_000)),
            (3.0, Length::Uniform(9_000, 11_000)),
        ]);
        check(&mixture, (1_000, 11_000), 7_750.0, 0.01, 0.625);
        // Three of four in 0 to 4,000, which have the mean 1,999.5; one in 20,000 to 20,001.
        let bucket = |lower, upper, count| Bucket { lower, upper, count };
        let histogram = Length::Histogram(vec![bucket(0, 4_000, 3), bucket(20_000, 20_001, 1)]);
        check(&histogram, (0, 20_000), 6_499.6, 0.02, 0.75);
    }

    #[test]
    fn every_value_of_a_small_range_is_drawn_equally_often() {
        let mut random = Random::new(2);
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            counts[usize::try_from(Length::Uniform(0, 3).draw(&mut random)).unwrap()] += 1;
        }
        // 10,000 each; the standard deviation is 87.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 450), "{counts:?}");
    }

    #[test]
    fn the_edges_of_numbers_are_drawn_without_a_panic() {
        let pareto = |shape| Length::Pareto { least: u64::MAX, shape, most: u64::MAX };
        let mut random = Random::new(3);
        for length in [
            Length::Uniform(u64::MAX, u64::MAX),
            Length::Uniform(0, u64::MAX),
            Length::Uniform(5, 4),
            Length::Exponential(u64::MAX),
            pareto(1e-300),
            pareto(f64::NAN),
            Length::Mixture(Vec::new()),
            Length::Mixture(vec![(f64::NAN, Length::Fixed(1))]),
            Length::Histogram(Vec::new()),
        ] {
            for _ in 0..100 {
                length.draw(&mut random);
            }
        }
        assert_eq!(Length::default().draw(&mut random), 0);
    }

    #[test]
    fn a_seed_repeats_all_lengths() {
        let length = Length::Mixture(vec![
            (1.0, Length::Exponential(1_000)),
            (1.0, Length::Pareto { least: 10, shape: 1.5, most: 1_000_000 }),
        ]);
        let draw = || {
            let mut random = Random::new(4);
            [(); 5].map(|()| length.draw(&mut random))
        };
        assert_eq!(draw(), draw());
    }
}
