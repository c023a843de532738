//! Tasks, and how they are scheduled.

use serde::{Deserialize, Serialize};

/// The kernel's priorities below this are real-time ones.
const FIRST_FAIR_PRIO: i32 = 100;

/// What tracers say of the stopper of a CPU (`migration/N`), in place of its priority. That is the same as that of the
/// most urgent `SCHED_FIFO` task, but nothing comes before a stopper.
const STOPPER_PRIO: i32 = -2;

/// That of a task with a deadline, or one that such a task has lent it.
const DEADLINE_PRIO: i32 = -1;

/// That of an ordinary task with a nice value of 0.
const ORDINARY_PRIO: i32 = 120;

/// A task as the scheduler sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The kernel's id of the thread; 0 is the idle task.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// How it is scheduled.
    pub policy: Policy,
    /// The kernel's priority: less is more urgent, 0 to 99 are real-time, −1 a deadline, −2 the stopper of a CPU.
    pub prio: i32,
}

/// A task as a record names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NamedTask {
    /// Its name; may be empty.
    pub comm: String,
    /// The kernel's id of the thread, 0 for the idle task; `None` where it stands for all of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How it is scheduled.
    #[serde(default)]
    pub policy: Policy,
    /// Of `SCHED_FIFO` and `SCHED_RR` the priority as one sets it: 99 is the most urgent. Other policies
    /// have none.
    #[serde(default)]
    pub priority: Option<i32>,
}

/// A scheduling policy. In records by its name, or its number if it has none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "PolicyName", from = "PolicyName")]
pub enum Policy {
    /// `SCHED_OTHER`
    #[default]
    Other,
    /// `SCHED_FIFO`
    Fifo,
    /// `SCHED_RR`
    RoundRobin,
    /// `SCHED_BATCH`
    Batch,
    /// `SCHED_IDLE`
    Idle,
    /// `SCHED_DEADLINE`
    Deadline,
    /// `SCHED_EXT`
    Ext,
    /// One that this version does not know.
    Unknown(u32),
}

/// A policy in a record.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PolicyName {
    Known(KnownPolicy),
    Number(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KnownPolicy {
    Other,
    Fifo,
    Rr,
    Batch,
    Idle,
    Deadline,
    Ext,
}

impl From<Policy> for PolicyName {
    fn from(policy: Policy) -> Self {
        Self::Known(match policy {
            Policy::Other => KnownPolicy::Other,
            Policy::Fifo => KnownPolicy::Fifo,
            Policy::RoundRobin => KnownPolicy::Rr,
            Policy::Batch => KnownPolicy::Batch,
            Policy::Idle => KnownPolicy::Idle,
            Policy::Deadline => KnownPolicy::Deadline,
            Policy::Ext => KnownPolicy::Ext,
            Policy::Unknown(number) => return Self::Number(number),
        })
    }
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Known(KnownPolicy::Other) => Self::Other,
            PolicyName::Known(KnownPolicy::Fifo) => Self::Fifo,
            PolicyName::Known(KnownPolicy::Rr) => Self::RoundRobin,
            PolicyName::Known(KnownPolicy::Batch) => Self::Batch,
            PolicyName::Known(KnownPolicy::Idle) => Self::Idle,
            PolicyName::Known(KnownPolicy::Deadline) => Self::Deadline,
            PolicyName::Known(KnownPolicy::Ext) => Self::Ext,
            PolicyName::Number(number) => Self::Unknown(number),
        }
    }
}

impl Policy {
    /// Whether it is a real-time one: its tasks run before all ordinary ones.
    pub fn is_realtime(self) -> bool {
        matches!(self, Self::Fifo | Self::RoundRobin | Self::Deadline)
    }
}

impl Task {
    /// As a record names it.
    pub fn named(&self) -> NamedTask {
        let has_priority = matches!(self.policy, Policy::Fifo | Policy::RoundRobin);
        let prio = if self.prio == STOPPER_PRIO { 0 } else { self.prio };
        NamedTask {
            comm: self.comm.clone(),
            pid: Some(self.pid),
            policy: self.policy,
            // The kernel counts them the other way round, so that less is more urgent.
            priority: has_priority.then(|| (FIRST_FAIR_PRIO - 1).saturating_sub(prio)),
        }
    }

    /// Whether it is what a CPU runs that has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.pid == 0
    }

    /// Whether anything is said of it. The idle task has no 0 for want of anything else.
    pub fn is_known(&self) -> bool {
        !self.is_idle() || !self.comm.is_empty()
    }

    /// Whether ordinary tasks come after it, by its policy or because it was lent a priority.
    pub fn is_urgent(&self) -> bool {
        self.policy.is_realtime() || self.prio < FIRST_FAIR_PRIO
    }

    /// The same without a priority that it was lent.
    #[must_use]
    pub(crate) fn as_ordinary(&self) -> Self {
        Self { prio: self.prio.max(ORDINARY_PRIO), ..self.clone() }
    }

    /// Whether the scheduler would not run `other` while this one can run. Ordinary tasks share the CPU,
    /// whatever their nice values are.
    ///
    /// Of two with deadlines neither: see [`Self::deadlines_decide`].
    pub fn comes_before(&self, other: &Self) -> bool {
        self.prio < other.prio && self.prio < FIRST_FAIR_PRIO && !self.is_idle()
    }

    /// Whether both have deadlines. The earlier one comes first, and tracers see neither.
    pub fn deadlines_decide(&self, other: &Self) -> bool {
        [self.prio, other.prio] == [DEADLINE_PRIO; 2]
    }
}

impl NamedTask {
    /// Whether it is what a CPU runs that has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.pid == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: Policy, prio: i32, want: &str) {
        let task = Task { pid: 7, comm: "x".into(), policy, prio };
        let json = serde_json::to_string(&task.named()).unwrap();
        let want = format!(r#"{{"comm":"x","pid":7,{want}}}"#);
        assert_eq!(json, want);
        assert_eq!(serde_json::from_str::<NamedTask>(&json).unwrap(), task.named());
    }

    #[test]
    fn ordinary_tasks_come_before_none() {
        let task = |policy, prio| Task { pid: 7, comm: "x".into(), policy, prio };
        let (nice, other) = (task(Policy::Other, 130), task(Policy::Other, 100));
        let (fifo, lent) = (task(Policy::Fifo, 98), task(Policy::Other, 4));
        let (first, deadline) = (task(Policy::Fifo, 0), task(Policy::Deadline, -1));
        let stopper = task(Policy::Fifo, STOPPER_PRIO);
        for (one, two, want) in [
            (&other, &nice, false),
            (&fifo, &other, true),
            (&lent, &fifo, true),
            (&fifo, &lent, false),
            (&fifo, &fifo, false),
            (&stopper, &first, true),
            (&stopper, &deadline, true),
            (&deadline, &stopper, false),
        ] {
            assert_eq!(one.comes_before(two), want, "{one:?} {two:?}");
        }
    }

    #[test]
    fn deadlines_decide_between_two_that_have_them() {
        let task = |policy, prio| Task { pid: 7, comm: "x".into(), policy, prio };
        let (deadline, lent) = (task(Policy::Deadline, -1), task(Policy::Other, -1));
        for (other, want) in [
            (&deadline, true),
            (&lent, true),
            (&task(Policy::Fifo, 0), false),
            (&task(Policy::Fifo, STOPPER_PRIO), false),
            (&task(Policy::Other, 120), false),
        ] {
            assert_eq!(deadline.deadlines_decide(other), want, "{other:?}");
            assert_eq!(other.deadlines_decide(&deadline), want, "{other:?}");
        }
        assert!(!lent.comes_before(&deadline) && !deadline.comes_before(&lent));
    }

    #[test]
    fn records_have_the_priority_that_one_sets() {
        check(Policy::Fifo, 4, r#""policy":"fifo","priority":95"#);
        check(Policy::RoundRobin, 98, r#""policy":"rr","priority":1"#);
        // As ps(1) shows that of a stopper.
        check(Policy::Fifo, STOPPER_PRIO, r#""policy":"fifo","priority":99"#);
        check(Policy::Deadline, -1, r#""policy":"deadline","priority":null"#);
        check(Policy::Other, 120, r#""policy":"other","priority":null"#);
        check(Policy::Batch, 120, r#""policy":"batch","priority":null"#);
        check(Policy::Idle, 120, r#""policy":"idle","priority":null"#);
        check(Policy::Ext, 120, r#""policy":"ext","priority":null"#);
        check(Policy::Unknown(9), 120, r#""policy":9,"priority":null"#);
        check(Policy::Fifo, i32::MIN, r#""policy":"fifo","priority":2147483647"#);
        // One that was lent a priority has none of its own.
        check(Policy::Other, 4, r#""policy":"other","priority":null"#);
    }
}
