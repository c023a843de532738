//! What came of attributing recorded episodes anew.

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::culprit::{Blamed, Culprit, Phase};

/// The episodes of a run that were attributed anew, and the answers that changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Anew {
    /// Late wakeups that were attributed anew. The others stand as recorded.
    pub episodes: u64,
    /// Of these, with another answer than the recorded one.
    pub changed: u64,
    /// Wakeups with another answer that are late only net of steal, so that they are not among `episodes`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changed_net_of_steal: u64,
    /// Lines of the file that could not be used.
    #[serde(default)]
    pub damaged_lines: u64,
    /// By how much recorded shares of these episodes exceed the recorded ranking, nanoseconds: 0 unless
    /// file and record contradict each other.
    #[serde(default)]
    pub excess_ns: u64,
    /// The changes, the most frequent first.
    #[serde(default)]
    pub changes: Vec<Change>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Episodes of which time was blamed on something else than before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What lost the most time.
    pub before: Answer,
    /// What got the most; the same as `before` if only what is known of it changed.
    pub after: Answer,
    /// How many episodes.
    pub episodes: u64,
    /// How much time moved in all of them, nanoseconds.
    pub ns: u64,
}

/// What time was blamed on, as the causes of late wakeups are grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Answer {
    /// What.
    pub cause: Cause,
    /// Who.
    #[serde(default)]
    pub culprit: Culprit,
    /// Which part of the way to the task, if it was that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Of remote wakeups without a waker: the CPU whose timer it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_cpu: Option<u32>,
}

impl Answer {
    /// What it blames.
    pub fn blamed(&self) -> Blamed<'_> {
        let Self { cause, culprit, phase, from_cpu } = self;
        Blamed { cause: *cause, culprit, phase: *phase, from_cpu: *from_cpu, others: false }
    }
}
