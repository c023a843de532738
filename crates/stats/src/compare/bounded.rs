//! Figures of which some runs have only bounds: percentiles beyond the histogram of an imported file.
//!
//! Exactly the worst runs have no more than that, so without them the rest would pass for all. The
//! difference of the means, the p-value of either direction and both ends of the interval grow with
//! every new value and fall with every old one. So the two extremes that the bounds allow hold all that
//! lies between them: a verdict is one for every value within the bounds.

use serde::{Deserialize, Serialize};

use super::effect::geometric_mean;
use super::measured::Measured;
use super::times;
use crate::permutation::Apart;

/// What the bounds of some runs leave open in a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bounded {
    /// New and old runs of which only bounds are known.
    pub runs: [usize; 2],
    /// The least and the largest ratio of the geometric means that they allow.
    pub ratio: [f64; 2],
    /// The least and the largest geometric mean over the new runs, in nanoseconds.
    pub new_ns: [f64; 2],
    /// The same over the old runs.
    pub old_ns: [f64; 2],
}

impl Bounded {
    /// `at least 1.04 ×`, `at most 0.85 ×`, or where it can be either, `0.89 to 3.90 ×`.
    pub(super) fn ratio_in_words(&self) -> String {
        match self.ratio {
            [least, _] if least > 1.0 => format!("at least {}", times(least)),
            [_, most] if most < 1.0 => format!("at most {}", times(most)),
            [least, most] => format!("{} to {}", super::words::factor(least), times(most)),
        }
    }
}

/// The logarithms of a figure of the runs of a side: the least and the largest that each can have.
pub(super) struct Ranges {
    pub(super) least: Vec<f64>,
    pub(super) most: Vec<f64>,
}

impl Ranges {
    /// Those of the runs that have the figure, from its range in ns.
    pub(super) fn of(side: &[&Measured], range: &dyn Fn(&Measured) -> Option<(u64, u64)>) -> Self {
        // A wakeup is never on time to the nanosecond; where a record says so, what it means is that it
        // was not later than the clock can tell.
        let log = |ns: u64| (ns.max(1) as f64).ln();
        let ranges = side.iter().filter_map(|m| range(m));
        let (least, most) = ranges.map(|(least, most)| (log(least), log(most))).unzip();
        Self { least, most }
    }

    fn is_bounded(&self) -> impl Iterator<Item = bool> {
        self.least.iter().zip(&self.most).map(|(least, most)| least < most)
    }

    /// Of how many runs only bounds are known.
    pub(super) fn bounded(&self) -> usize {
        self.is_bounded().filter(|&bounded| bounded).count()
    }

    /// The values at a part of the way from the least to the largest ones.
    fn at(&self, part: f64) -> Vec<f64> {
        let both = self.least.iter().zip(&self.most);
        both.map(|(least, most)| least + part * (most - least)).collect()
    }
}

/// A test of all values that the ranges allow, with the values that are closest to no difference, from
/// the tests of both extremes: the least of `new` against the largest of `old`, and the other way round.
pub(super) fn between(
    [new, old]: [&Ranges; 2],
    lowest: Apart,
    highest: &Apart,
) -> ([Vec<f64>; 2], Apart, Bounded) {
    let (least, most) = (lowest.difference, highest.difference);
    // From the lowest extreme to the highest one.
    let (part, p_value) = match (least, most) {
        _ if least > 0.0 => (0.0, lowest.p_value),
        _ if most < 0.0 => (1.0, highest.p_value),
        _ => (-least / (most - least).max(f64::MIN_POSITIVE), 1.0),
    };
    let apart = Apart {
        difference: least + part * (most - least),
        p_value,
        p_above_bar: lowest.p_above_bar,
        interval: (lowest.interval.0, highest.interval.1),
        ..lowest
    };
    let means = |side: &Ranges| [geometric_mean(&side.least), geometric_mean(&side.most)];
    let bounded = Bounded {
        runs: [new.bounded(), old.bounded()],
        ratio: [least.exp(), most.exp()],
        new_ns: means(new),
        old_ns: means(old),
    };
    ([new.at(part), old.at(1.0 - part)], apart, bounded)
}

#[cfg(test)]
mod tests;
