//! The bound that follows from counting: how often something later than the maximum may still happen.

use super::bursts::{self, Bursts, NoBursts};
use super::count::share_upper;
use super::whole_ns;
use crate::distribution::Distribution;
use crate::maxima::Maxima;

/// That one sample in less than two is later is no bound. Four samples do not exclude 53 %.
const LARGEST_SHARE: f64 = 0.5;

/// What a run does not exclude, at 95 %. This is the one place where it is computed, so that a share
/// and a time never disagree, and bursts are counted in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// How late wakeups come in bursts, or why that is not known. Then samples are taken for
    /// independent.
    pub bursts: Result<Bursts, NoBursts>,
    /// How many independent samples the samples are worth: at most as many.
    pub effective: f64,
    /// At most this share of samples is later than the maximum.
    pub share: f64,
    /// So often one is, at the rate of the run: ns. `None` if it is not known how long was measured.
    pub every_ns: Option<u64>,
}

impl Bound {
    /// The bound of samples that were taken within `duration_ns`, 0 if that is not known. `course` are
    /// the largest of them over time. `None` if there are too few samples to say anything.
    pub fn of(all: &Distribution, course: Option<&Maxima>, duration_ns: u64) -> Option<Self> {
        let share_of = |samples| Some(share_upper(0, samples)).filter(|&it| it <= LARGEST_SHARE);
        share_of(all.count as f64)?;
        let bursts = bursts::of(all, course, duration_ns);
        let effective = (all.count as f64 * index(&bursts)).max(1.0);
        let share = share_of(effective)?;
        let every_ns =
            (duration_ns > 0).then(|| whole_ns(duration_ns as f64 / all.count as f64 / share));
        Some(Self { bursts, effective, share, every_ns })
    }

    /// The extremal index that it rests on: 1 where that is not known.
    pub fn index(&self) -> f64 {
        index(&self.bursts)
    }
}

fn index(bursts: &Result<Bursts, NoBursts>) -> f64 {
    bursts.as_ref().map_or(1.0, |bursts| bursts.index)
}
