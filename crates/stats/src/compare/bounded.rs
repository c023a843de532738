//! Figures of which some runs have only bounds: those of imported files, whose values are in steps, and
//! whose largest samples may lie beyond the histogram.
//!
//! Exactly the worst runs have no more than that, so without them the rest would pass for all. The
//! difference of the means, and by permutation the p-value of either direction and both ends of the
//! interval, grow with every new value and fall with every old one. So the two extremes that the bounds
//! allow hold all that lies between them: a verdict is one for every value within the bounds.
//!
//! The variance of a side does not grow with its values. So where Welch's test is needed, it takes the
//! largest variances and the fewest degrees of freedom that the bounds allow.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::effect::{geometric_mean, mean};
use super::measured::Measured;
use super::ratio_within;
use crate::unpaired::{Apart, Asked, Welch, allow_for};
use wakescope_core::distribution::Distribution;

/// What the bounds of some runs leave open in a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bounded {
    /// New and old runs of which their files tell only bounds.
    pub runs: [usize; 2],
    /// The least and the largest ratio of the geometric means that they allow, and that lengths of runs do.
    pub ratio: [f64; 2],
    /// The least and the largest geometric mean over the new runs, in nanoseconds.
    pub new_ns: [f64; 2],
    /// The same over the old runs.
    pub old_ns: [f64; 2],
    /// How many times as long new runs are as old ones, where it is a figure of the tail, which may be as many times
    /// as large for that alone; `None` if they are as long, to a tenth.
    #[serde(default)]
    pub length_ratio: Option<f64>,
}

impl Bounded {
    /// `at least 1.04 ×`, `at most 0.85 ×`, or where it can be either, `0.89 to 3.90 ×`.
    pub(super) fn ratio_in_words(&self) -> String {
        ratio_within(self.ratio)
    }
}

/// The logarithms of a figure of the runs of a side: the least and the largest that each can have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    pub(crate) least: Vec<f64>,
    pub(crate) most: Vec<f64>,
    /// Of how many runs the range is too wide to be shown as one value.
    pub(crate) bounded: usize,
    /// Whether the least, and the largest values, are all 0 ns, which has no logarithm.
    are_zero: [bool; 2],
    /// The logarithms of how long the runs are: their samples, or of watches the time that they cover.
    pub(crate) lengths: Vec<f64>,
    /// By how much the values of all runs together may be too large because these are longer than those of the other
    /// side: a logarithm, 0 if they are not.
    pub(crate) longer: f64,
}

/// Sides whose lengths differ by no more than a tenth count as equally long: bursts then make less of a difference
/// than the usual margin.
const LEAST_LONGER: f64 = 1.1;

/// By how much the tails of runs with these logarithms of lengths may be above those of the others, because they are
/// longer: the logarithm of how many times as long they are, 0 if they are not.
///
/// Late wakeups come in bursts, and a share of a long run's samples holds more of them than a short run has. In a
/// tail where latencies ten times as large are a tenth as frequent, the largest of twice as many bursts is twice as
/// large.
fn longer(of: &[f64], others: &[f64]) -> f64 {
    let longer = mean(of) - mean(others);
    if longer > LEAST_LONGER.ln() { longer } else { 0.0 }
}

impl Ranges {
    /// Those of the runs that have the figure, from its range in ns. A range that is no wider than the share
    /// `resolution` counts as its upper end: that much is allowed for elsewhere.
    pub(crate) fn of(
        side: &[&Measured],
        range: &dyn Fn(&Measured) -> Option<(u64, u64)>,
        resolution: f64,
    ) -> Self {
        Self::of_distributions(
            side.iter().filter_map(|m| Some((m.length, m.expiries, range(m)?))),
            resolution,
        )
    }

    /// The same of distributions, each with the logarithm of how long its run is, and the range of its figure in ns.
    pub(super) fn of_distributions<'a>(
        values: impl Iterator<Item = (f64, &'a Distribution, (u64, u64))>,
        resolution: f64,
    ) -> Self {
        // A wakeup is never on time to the nanosecond; where a record says so, what it means is that it
        // was not later than the clock can tell.
        let log = |ns: u64| (ns.max(1) as f64).ln();
        let mut ranges = Self { are_zero: [true; 2], ..Self::default() };
        for (length, d, (least, most)) in values {
            let is_covered = most as f64 <= least as f64 * (1.0 + resolution);
            let least = if is_covered { most } else { least };
            ranges.least.push(log(least));
            ranges.most.push(log(most));
            ranges.bounded += usize::from(!d.is_narrow((least, most)));
            ranges.lengths.push(length);
            ranges.are_zero[0] &= least == 0;
            ranges.are_zero[1] &= most == 0;
        }
        ranges
    }

    /// The same of figures of the tails of both sides, which allow for the lengths of their runs.
    pub(crate) fn at_equal_length([new, old]: [Self; 2]) -> [Self; 2] {
        let [by_new, by_old] =
            [longer(&new.lengths, &old.lengths), longer(&old.lengths, &new.lengths)];
        [Self { longer: by_new, ..new }, Self { longer: by_old, ..old }]
    }

    /// The values of a part of the runs; of how many only bounds are known is not counted again.
    pub(crate) fn part(&self, runs: Range<usize>) -> Self {
        let of = |logs: &[f64]| logs[runs.clone()].to_vec();
        Self {
            least: of(&self.least),
            most: of(&self.most),
            lengths: of(&self.lengths),
            ..Self::default()
        }
    }

    /// The least values, as they may be in runs as short as those of the other side.
    pub(crate) fn lowest(&self) -> Vec<f64> {
        self.least.iter().map(|log| log - self.longer).collect()
    }

    /// Whether the figures are too uncertain to be shown as one value.
    pub(super) fn are_wide(&self) -> bool {
        self.bounded > 0 || self.longer > 0.0
    }

    /// Whether each value that a run has is known exactly.
    fn are_exact(&self) -> bool {
        self.least == self.most
    }

    /// Whether each is known exactly, and would be the same of shorter runs.
    pub(crate) fn are_certain(&self) -> bool {
        self.are_exact() && self.longer == 0.0
    }

    /// The values that the runs have, at a part of the way from the least to the largest ones.
    pub(crate) fn at(&self, part: f64) -> Vec<f64> {
        let both = self.least.iter().zip(&self.most);
        both.map(|(least, most)| least + part * (most - least)).collect()
    }

    /// The geometric mean in ns of the values at a part of the way.
    fn mean_ns(&self, part: f64) -> f64 {
        let [none, all] = self.are_zero;
        let is_zero = all || (none && part == 0.0);
        if is_zero && !self.least.is_empty() { 0.0 } else { geometric_mean(&self.at(part)) }
    }
}

/// What a test of all values says that the ranges of both sides allow.
pub(super) struct Between {
    /// The logarithms that the new and the old runs have where they are closest to no difference.
    pub(super) values: [Vec<f64>; 2],
    /// Their geometric means in ns.
    pub(super) means_ns: [f64; 2],
    /// What holds for all values.
    pub(super) apart: Apart,
    /// What the ranges leave open.
    pub(super) bounded: Bounded,
}

/// A test of all values that the ranges allow, from the tests of both extremes: the least of `new` against
/// the largest of `old`, and the other way round.
pub(super) fn between(
    [new, old]: [&Ranges; 2],
    lowest: Apart,
    highest: Apart,
    asked: &Asked,
) -> Between {
    let [lowest, highest] = match new.are_exact() && old.are_exact() {
        true => [lowest, highest],
        false => {
            let welch = Welch::within([new, old].map(|side| (&*side.least, &*side.most)));
            [lowest, highest].map(|apart| allow_for(welch, apart, asked))
        }
    };
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
    let means = |side: &Ranges| [side.mean_ns(0.0), side.mean_ns(1.0)];
    let bounded = Bounded {
        runs: [new.bounded, old.bounded],
        ratio: [least.exp(), most.exp()],
        new_ns: means(new),
        old_ns: means(old),
        length_ratio: Some(new.longer - old.longer).filter(|&by| by != 0.0).map(f64::exp),
    };
    Between {
        values: [new.at(part), old.at(1.0 - part)],
        means_ns: [new.mean_ns(part), old.mean_ns(1.0 - part)],
        apart,
        bounded,
    }
}

#[cfg(test)]
mod tests;
