//! How often each cause made a wakeup late.

use super::count::poisson_interval;
use super::whole_ns;
use crate::explain::{Blamed, Cause, Culprit, Phase};
use crate::run::Run;

/// The most causes that are told of.
const MOST: usize = 3;

/// How often a cause made a wakeup late.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseRate {
    /// What.
    pub cause: Cause,
    /// Who.
    pub culprit: Culprit,
    /// Which part of the way to the task, if it was that.
    pub phase: Option<Phase>,
    /// Of remote wakeups without a waker: the CPU whose timer it was.
    pub from_cpu: Option<u32>,
    /// Whether it stands for several culprits.
    pub others: bool,
    /// In how many late wakeups it has a share.
    pub episodes: u64,
    /// The time between two of them, in the mean.
    pub every_ns: u64,
    /// At 95 %, that mean is no less and no more, if they come independently.
    pub interval_ns: (u64, u64),
    /// Its largest share, nanoseconds.
    pub worst_ns: u64,
}

impl CauseRate {
    /// What it blames.
    pub fn blamed(&self) -> Blamed<'_> {
        let Self { cause, culprit, phase, from_cpu, others, .. } = self;
        let (cause, phase, from_cpu, others) = (*cause, *phase, *from_cpu, *others);
        Blamed { cause, culprit, phase, from_cpu, others }
    }
}

/// The causes with the largest shares of the time, but for what nobody knows.
pub(super) fn of(run: &Run) -> Vec<CauseRate> {
    let known = run.causes.iter().filter(|row| row.cause != Cause::Unexplained && row.episodes > 0);
    let one_in = run.explanation.as_ref().and_then(|e| e.one_in).unwrap_or(1).max(1);
    let rate = |row: &crate::explain::CauseRow| {
        let (low, high) = interval(row.episodes, one_in);
        let every = |events: f64| whole_ns(run.duration_ns as f64 / events);
        CauseRate {
            cause: row.cause,
            culprit: row.culprit.clone(),
            phase: row.phase,
            from_cpu: row.from_cpu,
            others: row.others,
            episodes: row.episodes,
            every_ns: every(row.episodes as f64),
            interval_ns: (every(high), every(low)),
            worst_ns: row.worst_ns,
        }
    };
    known.take(MOST).map(rate).collect()
}

/// The 95 % interval of the mean number of events. Some of the `counted` ones were counted one by one. Of the
/// others, one in `one_in` was, and stands for as many. A record does not say how many of each there are, so each
/// end assumes the case that says least.
fn interval(counted: u64, one_in: u64) -> (f64, f64) {
    let weight = one_in as f64;
    let (_, high) = poisson_interval(counted.div_ceil(one_in));
    let low = match counted / one_in {
        // None of them stands for others: it would count more than all of them.
        0 => poisson_interval(counted).0,
        sampled => poisson_interval(sampled).0 * weight,
    };
    (low, high * weight)
}
