//! What late wakeups are ranked by.

use wakescope_core::explain::{Answer, Blamed, Cause, Culprit, Phase};

/// What the causes of late wakeups are grouped by. Of a task the name, policy and priority count, and
/// not its pid: a program that forks is one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Group {
    pub(crate) cause: Cause,
    pub(crate) others: bool,
    pub(crate) phase: Option<Phase>,
    pub(crate) from_cpu: Option<u32>,
    pub(crate) culprit: Culprit,
}

impl Group {
    /// The group of what was blamed. Nobody is to blame for what nobody knows.
    pub(crate) fn of(blamed: Blamed) -> Self {
        let Blamed { cause, culprit, phase, from_cpu, others } = blamed;
        match cause {
            Cause::Unexplained => Self::default(),
            _ => Self { cause, others, phase, from_cpu, culprit: culprit.without_pid() },
        }
    }

    /// As a record tells it.
    pub(crate) fn answer(&self) -> Answer {
        let Self { cause, others: _, phase, from_cpu, culprit } = self.clone();
        Answer { cause, culprit, phase, from_cpu }
    }

    /// All those of a cause that have no group of their own.
    pub(crate) fn others(cause: Cause) -> Self {
        Self { cause, others: true, ..Self::default() }
    }
}
