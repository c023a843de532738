//! Late wakeups by what remains of their lateness without stolen time.

use serde::{Deserialize, Serialize};

use super::record::CauseRow;
use crate::run::Episode;

/// The wakeups that are late even without the time that the hypervisor stole, and why. What was stolen is
/// what the CPU's clock of stolen time says, and nothing that was concluded from events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetOfSteal {
    /// Wakeups at least so late without stolen time are late ones, nanoseconds.
    pub above_ns: u64,
    /// How that was asked for: `p99.9`, `50us`; `all` where there are too few wakeups for a percentile. A
    /// percentile is one of the lateness without stolen time.
    pub above: String,
    /// Late wakeups, followed or not. Of those that were not followed it is not known how much was
    /// stolen: all of their lateness counts.
    pub late: u64,
    /// Of these, with an explanation.
    pub explained: u64,
    /// Of these, not followed.
    pub late_not_followed: u64,
    /// Lateness of those without an explanation, together, nanoseconds: to 0.2 %.
    pub unexplained_ns: u64,
    /// What made them late, the largest share first. The shares are of their lateness without stolen
    /// time.
    #[serde(default)]
    pub causes: Vec<CauseRow>,
    /// The latest of those that were explained, the latest without stolen time first. Each has all its
    /// lateness and blame, and how much of it was stolen.
    #[serde(default)]
    pub worst: Vec<Episode>,
}
