//! Whether late wakeups come alone or in bursts.
//!
//! The measure is the extremal index: 1 if they come alone, 1/5 if they come five at a time. So many
//! samples are worth `index` times as many independent ones, as far as their maximum is concerned
//! (Leadbetter, Z. Wahrsch. 65, 1983).

use std::fmt;

use crate::distribution::Distribution;
use crate::maxima::Maxima;

/// Fewer blocks say nothing.
const FEWEST_BLOCKS: usize = 20;

/// More say it no better, and a burst should lie within one.
const MOST_BLOCKS: usize = 128;

/// With fewer samples in a block, its maximum is not from the tail.
const FEWEST_IN_BLOCK: f64 = 20.0;

/// How late wakeups come in bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// The extremal index: above 0, at most 1.
    pub index: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
    /// The blocks of the run whose maxima it was estimated from.
    pub blocks: usize,
}

/// Why that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBursts {
    /// The course of the maxima is not in the record.
    NoCourse,
    /// There are too few slots, or too few samples in them.
    TooShort,
    /// The histogram has so few buckets up there that the order of the maxima is lost in them.
    TooCoarse,
}

impl fmt::Display for NoBursts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoCourse => "the record does not say when the largest samples were taken",
            Self::TooShort => "the run is too short to tell",
            Self::TooCoarse => "the buckets of large samples are too wide to tell",
        })
    }
}

/// Estimates the extremal index from the maxima of blocks of the run.
///
/// Were samples independent, a block's maximum would have so many of all other blocks' samples above
/// it as there are blocks, in the mean. If late ones keep together, blocks have smaller maxima, and
/// there are more (Northrop, Extremes 18, 2015; Berghaus and Bücher, Ann. Statist. 46, 2018). Those
/// above are counted in the histogram; within a bucket the order is not known, and the mean of all
/// orders is taken.
pub(super) fn of(
    all: &Distribution,
    course: Option<&Maxima>,
    duration_ns: u64,
) -> Result<Bursts, NoBursts> {
    let blocks = Blocks::of(course.ok_or(NoBursts::NoCourse)?, all.count, duration_ns)
        .ok_or(NoBursts::TooShort)?;
    let count = all.count as f64;
    let number = blocks.max_ns.len() as f64;
    let (mut above, mut unsure) = (0.0, 0.0);
    for &max_ns in &blocks.max_ns {
        let (later, beside) = ranks(all, max_ns);
        // So many of the bucket are the block's own, at least itself.
        let own = (beside / number).max(1.0);
        above += later + (beside - own).max(0.0) / (own + 1.0);
        unsure += (beside - 1.0).max(0.0);
    }
    if unsure > above {
        return Err(NoBursts::TooCoarse);
    }
    let mean = above * blocks.samples / (count - blocks.samples) / number;
    // A block of b samples cannot tell an index below 1/b.
    let index = (1.0 / mean).clamp(1.0 / blocks.samples, 1.0);
    let spread = (1.96 / number.sqrt()).exp();
    Ok(Bursts {
        index,
        interval: (index / spread, (index * spread).min(1.0)),
        blocks: blocks.max_ns.len(),
    })
}

/// Samples in later buckets than that of `value`, and in its own.
fn ranks(all: &Distribution, value: u64) -> (f64, f64) {
    let buckets = all.histogram.buckets();
    let after = buckets.partition_point(|b| b.lower <= value);
    let later: u64 = buckets[after..].iter().map(|b| b.count).sum();
    let own = buckets[..after].last().filter(|b| value < b.upper).map_or(0, |b| b.count);
    (later as f64, own as f64)
}

/// The run in parts of equal length.
pub(super) struct Blocks {
    /// The largest lateness of each.
    pub(super) max_ns: Vec<u64>,
    /// Samples in each, in the mean.
    samples: f64,
}

impl Blocks {
    /// Puts slots together until blocks have samples enough. The last one is left out unless it is
    /// whole. `None` if there are too few.
    pub(super) fn of(course: &Maxima, count: u64, duration_ns: u64) -> Option<Self> {
        let slot_share = course.slot_ns as f64 / duration_ns.max(1) as f64;
        let mut slots = course.max_ns.len().div_ceil(MOST_BLOCKS).max(1);
        while count as f64 * slot_share * (slots as f64) < FEWEST_IN_BLOCK {
            slots *= 2;
            if slots > course.max_ns.len() {
                return None;
            }
        }
        let whole = |i: &usize| {
            let ends = (*i as u64 + 1).saturating_mul(slots as u64).saturating_mul(course.slot_ns);
            ends <= duration_ns
        };
        let max_ns: Vec<u64> = (course.max_ns.chunks(slots).enumerate())
            .filter(|(i, chunk)| chunk.len() == slots && whole(i))
            .filter_map(|(_, chunk)| chunk.iter().flatten().max().copied())
            .collect();
        let samples = count as f64 * slot_share * slots as f64;
        (max_ns.len() >= FEWEST_BLOCKS).then_some(Self { max_ns, samples })
    }

    /// Their logarithms.
    pub(super) fn logs(&self) -> Vec<f64> {
        self.max_ns.iter().map(|&max| (max.max(1) as f64).ln()).collect()
    }
}
