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
    Exponential(f64),
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
            &Self::Exponential(mean) => rounded(mean * exponential(random)),
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
