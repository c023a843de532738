//! How long is long enough? What a run's maximum proves, and what lies beyond it.
//!
//! Three answers, of falling certainty. The *bound* follows from counting alone. How much the count
//! is worth depends on whether late wakeups come in *bursts*, which is estimated. What the maximum
//! would be of a longer run is an *extrapolation*; it is made only where the run passes tests of all
//! that it rests on.
//!
//! docs/tail.md has the reasons and how each part was checked.

use crate::run::Run;

pub(crate) mod bound;
mod bursts;
mod causes;
mod count;
mod extrapolation;
mod pareto;
mod series;

pub use bound::Bound;
pub use bursts::{Bursts, NoBursts};
pub use causes::CauseRate;
pub use count::{poisson_interval, poisson_upper, share_upper, time_needed_ns};
pub use extrapolation::{Extrapolation, Obstacle, OfCause, TIMES_AS_LONG};
pub use pareto::{Fit, Pareto};

/// What can be said about wakeups later than the latest one of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Samples: expiries, of all CPUs.
    pub count: u64,
    /// The largest lateness; where another program's file tells it only to a step, the largest that it can
    /// have been.
    pub max_ns: u64,
    /// How long was measured.
    pub duration_ns: u64,
    /// What is not excluded.
    pub bound: Bound,
    /// How often each cause made a wakeup late, the largest first; empty if that is not known.
    pub causes: Vec<CauseRate>,
    /// What a longer run would show, or what stands against saying that.
    pub extrapolation: Result<Extrapolation, Vec<Obstacle>>,
    /// The same for single causes of which enough of the latest wakeups are known.
    pub of_causes: Vec<OfCause>,
}

impl Tail {
    /// What `run` says about later wakeups than its latest; `None` if it has too few samples to say
    /// anything.
    pub fn of(run: &Run) -> Option<Self> {
        let all = run.expiries();
        let (_, max_ns) = all.max_range()?;
        let course = run.course();
        let bound = Bound::of(&all, course.as_ref(), run.duration_ns)?;
        let extrapolation =
            extrapolation::of(&all, course.as_ref(), run.duration_ns, bound.bursts.as_ref());
        Some(Self {
            count: all.count,
            max_ns,
            duration_ns: run.duration_ns,
            bound,
            causes: causes::of(run),
            extrapolation,
            of_causes: extrapolation::of_causes(run),
        })
    }

    /// How long one must measure without anything later than the maximum to claim at 95 % that there
    /// is less than one in each `every_ns`: longer where late wakeups come in bursts.
    pub fn time_needed_ns(&self, every_ns: u64) -> u64 {
        whole_ns(time_needed_ns(every_ns, 0) as f64 / self.bound.index())
    }
}

/// A time that was computed, in whole ns.
fn whole_ns(ns: f64) -> u64 {
    // `as` saturates, and makes 0 of what is no number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = ns.round() as u64;
    whole
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
