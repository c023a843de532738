//! What is known of the late wakeups of a simulated run beside what a tracer saw of them.

use serde::{Deserialize, Serialize};

use super::{Blamed, Cause, Culprit, Phase};

/// How right the explanations of a simulated run are. Each late wakeup is counted by its largest share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// Late wakeups that were compared.
    pub wakeups: u64,
    /// Late wakeups that were explained and not compared: their truth took more room than there was.
    #[serde(default)]
    pub uncompared: u64,
    /// Of these: the right cause and culprit.
    pub right: u64,
    /// The right cause, and another function of the right section.
    pub other_function: u64,
    /// A wrong cause or culprit, given as a bound.
    pub wrong_bound: u64,
    /// A wrong cause or culprit, said to be seen.
    pub wrong: u64,
    /// Unexplained.
    pub unexplained: u64,
    /// What truly took the time of those that were compared, the largest first. The shares add up to
    /// their lateness.
    pub causes: Vec<TrueCause>,
}

/// A cause of a simulated run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrueCause {
    /// What it truly was.
    pub cause: Cause,
    /// How long in all late wakeups that were compared, nanoseconds.
    pub ns: u64,
    /// How much of that was explained rightly, nanoseconds.
    pub right_ns: u64,
}

/// What a part of a simulated wakeup truly was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrueShare {
    /// What it truly was.
    pub cause: Cause,
    /// How long, nanoseconds.
    pub ns: u64,
    /// Who it truly was; nobody where nobody has a name, or where several small parts are one.
    #[serde(default)]
    pub culprit: Culprit,
    /// Which part of the way to the task, if it was that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
}

impl TrueShare {
    /// The same as a thing to blame.
    pub fn blamed(&self) -> Blamed<'_> {
        let Self { cause, culprit, phase, .. } = self;
        Blamed { cause: *cause, culprit, phase: *phase, from_cpu: None, others: false }
    }
}
