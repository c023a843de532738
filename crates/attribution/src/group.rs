//! What late wakeups are ranked by.

use std::hash::Hash;

use wakescope_core::explain::{
    Answer, Blamed, By, Cause, Culprit, NamedTask, Phase, Share, Subject,
};

/// What the causes of late wakeups are grouped by. Of a task the name, policy and priority count, and
/// not its pid: a program that forks is one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
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

/// What shares are grouped by, so that groups can be ranked.
pub trait Key: Clone + Ord + Hash {
    /// The group of what nobody knows.
    fn unexplained() -> Self;
    /// Whether it is that.
    fn is_unexplained(&self) -> bool;
    /// The group that this one is part of if it gets no row of its own.
    fn others(&self) -> Self;
}

impl Key for Group {
    fn unexplained() -> Self {
        Self::default()
    }

    fn is_unexplained(&self) -> bool {
        self.cause == Cause::Unexplained
    }

    fn others(&self) -> Self {
        Self::others(self.cause)
    }
}

impl Key for Subject {
    fn unexplained() -> Self {
        Self::Cause { cause: Cause::Unexplained }
    }

    fn is_unexplained(&self) -> bool {
        *self == Self::unexplained()
    }

    fn others(&self) -> Self {
        Self::Others
    }
}

/// The subject of a share: the thread, task, function or module that had its time, as `by` asks. If none of
/// that kind is known, the cause stands in.
pub(crate) fn subject(share: &Share, by: By) -> Subject {
    let of_cause = Subject::Cause { cause: share.cause };
    if share.cause == Cause::Unexplained {
        return of_cause;
    }
    let task = match &share.culprit {
        // A task that was throttled did not run.
        Culprit::Task(task) if share.cause != Cause::Throttled => Some(task),
        _ => share.within.task.as_ref(),
    };
    let found = match (by, &share.culprit) {
        (By::Pid, _) => task.cloned().map(Subject::Task),
        (By::Task, _) => task.map(|task| Subject::Task(NamedTask { pid: None, ..task.clone() })),
        (By::Function, Culprit::Function(function)) => Some(Subject::Function(function.clone())),
        (By::Module, Culprit::Function(function)) => {
            Some(Subject::Module { name: function.module.clone() })
        }
        (By::Function | By::Module, _) => None,
    };
    found.unwrap_or(of_cause)
}
