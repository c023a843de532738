//! What an explained run's record holds.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::bound::Bound;
use super::measured::Measured;
use crate::distribution::Distribution;

/// What kept a task from running.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The hypervisor ran something else.
    Steal,
    /// A non-maskable interrupt.
    Nmi,
    /// A hard interrupt: the handler of the timer itself, or another.
    Irq,
    /// A softirq.
    Softirq,
    /// Kernel code that had interrupts off.
    IrqOff,
    /// Kernel code that had preemption off.
    PreemptOff,
    /// Kernel code that full preemption would have left.
    NoPreemptionPoint,
    /// A task of higher priority.
    HigherPriorityTask,
    /// A task of equal or lower priority.
    EqualOrLowerTask,
    /// The task's own time was used up: RT throttling, a quota.
    Throttled,
    /// The CPU slept.
    IdleExit,
    /// The way from a waker on another CPU.
    RemoteWakeup,
    /// The scheduler, and the way back to the task.
    Scheduler,
    /// The task's own page was not there.
    PageFault,
    /// The tracer, which takes stacks and hands wakeups over.
    Tracer,
    /// Nobody knows.
    #[default]
    #[serde(other)]
    Unexplained,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Steal,
        Self::Nmi,
        Self::Irq,
        Self::Softirq,
        Self::IrqOff,
        Self::PreemptOff,
        Self::NoPreemptionPoint,
        Self::HigherPriorityTask,
        Self::EqualOrLowerTask,
        Self::Throttled,
        Self::IdleExit,
        Self::RemoteWakeup,
        Self::Scheduler,
        Self::PageFault,
        Self::Tracer,
        Self::Unexplained,
    ];

    /// As in records: `no_preemption_point`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steal => "steal",
            Self::Nmi => "nmi",
            Self::Irq => "irq",
            Self::Softirq => "softirq",
            Self::IrqOff => "irq_off",
            Self::PreemptOff => "preempt_off",
            Self::NoPreemptionPoint => "no_preemption_point",
            Self::HigherPriorityTask => "higher_priority_task",
            Self::EqualOrLowerTask => "equal_or_lower_task",
            Self::Throttled => "throttled",
            Self::IdleExit => "idle_exit",
            Self::RemoteWakeup => "remote_wakeup",
            Self::Scheduler => "scheduler",
            Self::PageFault => "page_fault",
            Self::Tracer => "tracer",
            Self::Unexplained => "unexplained",
        }
    }

    /// In a sentence: `no preemption point`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Steal => "stolen by the hypervisor",
            Self::Nmi => "NMI",
            Self::Irq => "interrupt",
            Self::Softirq => "softirq",
            Self::IrqOff => "interrupts off",
            Self::PreemptOff => "preemption off",
            Self::NoPreemptionPoint => "no preemption point",
            Self::HigherPriorityTask => "higher-priority task",
            Self::EqualOrLowerTask => "equal- or lower-priority task",
            Self::Throttled => "throttled",
            Self::IdleExit => "exit from idle",
            Self::RemoteWakeup => "remote wakeup",
            Self::Scheduler => "scheduler",
            Self::PageFault => "page fault",
            Self::Tracer => "tracing",
            Self::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a share is known.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Its beginning and end were seen.
    Edge,
    /// A stack was taken inside it, or just as it ended.
    Stack,
    /// It is what is left between two points that were seen: no more than that.
    #[default]
    #[serde(other)]
    Bound,
}

/// One named share of a wakeup's lateness. All shares of an episode add up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What it was.
    pub cause: Cause,
    /// How long, nanoseconds.
    pub ns: u64,
    /// Who: a function, an interrupt, a softirq, a task; may be empty.
    #[serde(default)]
    pub culprit: String,
    /// In what the culprit was: `exit_mmap in rm[412]`; may be empty.
    #[serde(default)]
    pub within: String,
    /// How it is known.
    pub evidence: Evidence,
    /// The culprit's kernel stack, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// For each entry of that stack its lines of source. Empty if nobody looked for them; an entry
    /// whose lines are not known has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Vec<SourceLine>>,
    /// The kernel stack where the culprit gave up the CPU in the end, innermost first, if `stack` was
    /// taken before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up_at: Vec<String>,
    /// The lines of source of that, as in `lines`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up_lines: Vec<Vec<SourceLine>>,
    /// The culprit's own stack, of its program, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_stack: Vec<String>,
}

/// A line of source. An entry of a stack stands for several where functions were put into one
/// another: then the first is that of the innermost, and the last that of the function which the
/// stack names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// The function; may be empty.
    #[serde(default)]
    pub function: String,
    /// The file, from the root of the sources where that is known; may be empty.
    pub file: String,
    /// Counted from 1; 0 if it is not known.
    pub line: u32,
}

/// The four components of a wakeup, nanoseconds. They add up to the wakeup latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Components {
    /// From the expiry to the entry of the interrupt.
    pub irq_latency_ns: u64,
    /// From there to the handler's return.
    pub handler_duration_ns: u64,
    /// From there until the scheduler was entered; until the response where that is not seen.
    pub sched_latency_ns: u64,
    /// From there to the response; `None` where the kernel does not show the scheduler's entry.
    pub sched_duration_ns: Option<u64>,
}

impl Components {
    /// Their sum, which is the wakeup latency.
    pub fn total_ns(&self) -> u64 {
        self.checked_total_ns().unwrap_or(u64::MAX)
    }

    /// The same; `None` if it is 2^64 or more.
    pub(crate) fn checked_total_ns(&self) -> Option<u64> {
        let first = [self.irq_latency_ns, self.handler_duration_ns, self.sched_latency_ns];
        first.iter().try_fold(self.sched_duration_ns.unwrap_or(0), |sum, &ns| sum.checked_add(ns))
    }

    /// So many times each part.
    #[must_use]
    pub(crate) fn times(&self, count: u64) -> Self {
        let times = |ns: u64| ns.saturating_mul(count);
        Self {
            irq_latency_ns: times(self.irq_latency_ns),
            handler_duration_ns: times(self.handler_duration_ns),
            sched_latency_ns: times(self.sched_latency_ns),
            sched_duration_ns: self.sched_duration_ns.map(times),
        }
    }

    /// Both, part by part.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let both = (self.sched_duration_ns, other.sched_duration_ns);
        Self {
            irq_latency_ns: self.irq_latency_ns.saturating_add(other.irq_latency_ns),
            handler_duration_ns: self.handler_duration_ns.saturating_add(other.handler_duration_ns),
            sched_latency_ns: self.sched_latency_ns.saturating_add(other.sched_latency_ns),
            sched_duration_ns: match both {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            },
        }
    }
}

/// The components of all wakeups, one value per wakeup each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComponentTable {
    /// See [`Components::irq_latency_ns`].
    pub irq_latency: Distribution,
    /// See [`Components::handler_duration_ns`].
    pub handler_duration: Distribution,
    /// See [`Components::sched_latency_ns`].
    pub sched_latency: Distribution,
    /// See [`Components::sched_duration_ns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_duration: Option<Distribution>,
}

impl ComponentTable {
    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let all = [
            ("irq_latency", Some(&self.irq_latency)),
            ("handler_duration", Some(&self.handler_duration)),
            ("sched_latency", Some(&self.sched_latency)),
            ("sched_duration", self.sched_duration.as_ref()),
        ];
        let told = |(name, part): (&str, Option<&Distribution>)| {
            Some(format!("components.{name}: {}", part?.fault()?))
        };
        all.into_iter().find_map(told)
    }
}

/// One cause of late wakeups, over all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CauseRow {
    /// What.
    pub cause: Cause,
    /// Who; may be empty.
    pub culprit: String,
    /// In how many late wakeups it has a share.
    pub episodes: u64,
    /// Its shares together, nanoseconds.
    pub total_ns: u64,
    /// Its largest share, nanoseconds.
    pub worst_ns: u64,
    /// Of the lateness of all late wakeups, 0 to 1. All rows together make 1.
    pub share: f64,
}

/// A line of an episode's timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// From when the wakeup was due, nanoseconds.
    pub at_ns: u64,
    /// How deep: 0 for the wakeup itself, 1 within an interrupt or another task, and so on.
    #[serde(default)]
    pub depth: u32,
    /// What happened, in words.
    pub what: String,
}

/// How a run was explained: with what, how completely, and of how many wakeups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Wakeups at least so late are late ones, nanoseconds.
    pub above_ns: u64,
    /// How that was asked for: `p99.9`, `50us`.
    pub above: String,
    /// Wakeups that were followed from stimulus to response.
    pub wakeups: u64,
    /// Wakeups that were not, though the probe has them.
    pub not_followed: u64,
    /// Late wakeups, followed or not.
    pub late: u64,
    /// Of these, with an explanation: of the others the record was lost, or they were not followed.
    pub explained: u64,
    /// Late wakeups that the probe has, and that were not followed: they are unexplained.
    #[serde(default)]
    pub late_not_followed: u64,
    /// Lateness of all late wakeups that have no explanation, together, nanoseconds: to 0.2 %.
    #[serde(default)]
    pub unexplained_ns: u64,
    /// Of those beyond the worst, one in so many was taken for the causes, where it stands for as
    /// many; `None` if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_in: Option<u64>,
    /// The components of these, added up over all of them; `None` in records that do not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_components: Option<Components>,
    /// Records that the tracer sent.
    pub records: u64,
    /// Records that it could not send.
    pub lost_records: u64,
    /// What is used, in words: `sched_switch`, …
    pub seen_with: Vec<String>,
    /// What this kernel does not show, and what is therefore unseen.
    pub not_seen: Vec<String>,
    /// The id of the kernel's build, in hexadecimal digits: the same as its image has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Functions of stacks that are in modules of the kernel, each with its module's name. An empty
    /// name is one of several: modules, or a module and the kernel itself, that each have such a
    /// function in stacks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub modules: BTreeMap<String, String>,
    /// The ids of these modules' builds by their names, in hexadecimal digits: the same as their
    /// files have. Of those that are known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub module_build_ids: BTreeMap<String, String>,
    /// Longest sections, where seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Sections>,
    /// The bound that follows from what was seen, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// The longest sections that held off an interrupt or a switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    /// Whether their edges were seen; otherwise they are what late wakeups show, which is a lower
    /// estimate.
    pub exact: bool,
    /// The longest with interrupts off.
    pub irq_off: Option<Share>,
    /// The longest with preemption off, or without a preemption point.
    pub preempt_off: Option<Share>,
    /// All that were seen with both edges; `None` where none were, or nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}
