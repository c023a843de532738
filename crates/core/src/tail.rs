//! How long is long enough? What a run's maximum proves, and what lies beyond it.
//!
//! Three answers, of falling certainty. The *bound* follows from counting alone. How much the count
//! is worth depends on whether late wakeups come in *bursts*, which is estimated. What the maximum
//! would be of a longer run is an *extrapolation*; it is made only where the run passes tests of all
//! that it rests on.
//!
//! docs/tail.md has the reasons and how each part was checked.

use crate::distribution::period_not_excluded_ns;
use crate::maxima::Maxima;
use crate::run::Run;

mod bursts;
mod causes;
mod count;
mod extrapolation;
mod pareto;
mod series;

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
    /// The largest lateness.
    pub max_ns: u64,
    /// How long was measured.
    pub duration_ns: u64,
    /// How late wakeups come in bursts, or why that is not known.
    pub bursts: Result<Bursts, NoBursts>,
    /// How many independent samples these are worth: at most `count`.
    pub effective: f64,
    /// At 95 %, at most this share of samples is later than the maximum.
    pub share_not_excluded: f64,
    /// At 95 %, a burst above the maximum (or a single one) in each such time is not excluded.
    pub every_ns: u64,
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
        let max_ns = all.max_ns?;
        let every_ns = period_not_excluded_ns(all.count, run.duration_ns)?;
        let course = course(run);
        let bursts = bursts::of(&all, course.as_ref(), run.duration_ns);
        let index = bursts.as_ref().map_or(1.0, |bursts| bursts.index);
        let effective = (all.count as f64 * index).max(1.0);
        let extrapolation =
            extrapolation::of(&all, course.as_ref(), run.duration_ns, bursts.as_ref());
        Some(Self {
            count: all.count,
            max_ns,
            duration_ns: run.duration_ns,
            bursts,
            effective,
            share_not_excluded: share_upper(0, effective),
            every_ns,
            causes: causes::of(run),
            extrapolation,
            of_causes: extrapolation::of_causes(run),
        })
    }
}

/// The course of the maxima of all CPUs together; `None` if it is not known of one of them.
fn course(run: &Run) -> Option<Maxima> {
    let mut threads = run.threads.iter().filter(|t| t.expiries.count > 0);
    let first = threads.next()?.maxima.clone()?;
    threads.try_fold(first, |sum, thread| Some(sum.merged(thread.maxima.as_ref()?)))
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
