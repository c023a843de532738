//! What `explain` blamed first for late wakeups, against what the emulator saw.

use serde::{Deserialize, Serialize};

use super::explained::Spread;
use crate::explain::{Answer, Cause};

/// The latest wakeups of a cell that explained them, compared by the largest share of what held them up: without
/// handler, scheduler and tracer, which are in each wakeup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstBlame {
    /// Wakeups that were compared.
    pub wakeups: u64,
    /// Wakeups beside these of which both say that nothing held them up: less than one in a hundred of the lateness.
    #[serde(default)]
    pub held_by_nothing: u64,
    /// Of these, blamed on the same cause first.
    pub same_cause: u64,
    /// Of those with the same cause, on the same culprit; of sections, on a function that the emulator saw at
    /// one of their ends or calling that.
    pub same_culprit: u64,
    /// By how much all that explain blamed on that cause is longer than all that the emulator saw of it, of those
    /// with the same cause, ns; below zero if shorter.
    pub longer_ns: Option<Spread>,
    /// The same by the cause that explain blamed first, the most frequent one first.
    #[serde(default)]
    pub causes: Vec<BlamedOnCause>,
    /// Those with another cause or culprit.
    pub others: Vec<OtherBlame>,
}

/// Wakeups that explain blamed on one cause first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlamedOnCause {
    /// The cause.
    pub cause: Cause,
    /// How many wakeups.
    pub wakeups: u64,
    /// Of these, those of which the emulator saw most of the same cause.
    pub same_cause: u64,
    /// Of those with the same cause, with the same culprit.
    pub same_culprit: u64,
    /// By how much all that explain blamed on it is longer, of those with the same cause, ns; below zero if shorter.
    pub longer_ns: Option<Spread>,
}

/// A wakeup that was blamed on something else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherBlame {
    /// When it was due, since the start of the run, ns.
    pub expiry_ns: u64,
    /// How late it was, ns.
    pub wakeup_latency_ns: u64,
    /// What explain blamed first.
    pub said: Answer,
    /// How long that was, ns.
    pub said_ns: u64,
    /// What the emulator saw most of.
    pub seen: Answer,
    /// How long that was, ns.
    pub seen_ns: u64,
}
