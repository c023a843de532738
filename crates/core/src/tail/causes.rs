//! How often each cause made a wakeup late.

use super::count::poisson_interval;
use super::whole_ns;
use crate::explain::Cause;
use crate::run::Run;

/// The most causes that are told of.
const MOST: usize = 3;

/// How often a cause made a wakeup late.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseRate {
    /// What.
    pub cause: Cause,
    /// Who; may be empty.
    pub culprit: String,
    /// In how many late wakeups it has a share.
    pub episodes: u64,
    /// The time between two of them, in the mean.
    pub every_ns: u64,
    /// At 95 %, that mean is no less and no more, if they come independently.
    pub interval_ns: (u64, u64),
    /// Its largest share, nanoseconds.
    pub worst_ns: u64,
}

/// The causes with the largest shares of the time, but for what nobody knows.
pub(super) fn of(run: &Run) -> Vec<CauseRate> {
    let known = run.causes.iter().filter(|row| row.cause != Cause::Unexplained && row.episodes > 0);
    let rate = |row: &crate::explain::CauseRow| {
        let (low, high) = poisson_interval(row.episodes);
        let every = |events: f64| whole_ns(run.duration_ns as f64 / events);
        CauseRate {
            cause: row.cause,
            culprit: row.culprit.clone(),
            episodes: row.episodes,
            every_ns: every(row.episodes as f64),
            interval_ns: (every(high), every(low)),
            worst_ns: row.worst_ns,
        }
    };
    known.take(MOST).map(rate).collect()
}
