//! What keeps a task from running, and how that is known.

use std::fmt;

use serde::{Deserialize, Serialize};

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
