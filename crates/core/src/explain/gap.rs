//! Why time is unexplained.

use serde::{Deserialize, Serialize};

/// What kept a stretch of time from being explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// Events were lost, or are out of order.
    LostEvents,
    /// Events contradict each other: one lacks its counterpart, or the wrong task runs.
    Contradiction,
    /// No event shows what the CPU did.
    NotSeen,
    /// The task had not set its timer when that was due.
    TimerNotSet,
    /// The interrupt came late, and no event shows what kept it out.
    LateInterrupt,
    /// It took longer than usual, and no event shows why.
    Slow,
    /// The CPU was not given up when it had to be, and no event shows why.
    NotLeft,
    /// The scheduler chose another task, or none, and no event shows why.
    OtherChosen,
}

impl Gap {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::LostEvents,
        Self::Contradiction,
        Self::NotSeen,
        Self::TimerNotSet,
        Self::LateInterrupt,
        Self::Slow,
        Self::NotLeft,
        Self::OtherChosen,
    ];
}
