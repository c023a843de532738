//! Rules that every kernel has to keep.

use thiserror::Error;

use crate::image::{LockId, TaskId, VariableId};

/// What was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Violation {
    /// `schedule` where the preempt count is not 0, or interrupts are off.
    #[error("the scheduler was called in atomic context (preempt count {count:#x})")]
    AtomicSchedule {
        /// The preempt count.
        count: u32,
    },
    /// A lock that sleeps was asked for where the preempt count is not 0, or interrupts are off: also one that is
    /// free (`might_sleep` of kernels with `CONFIG_DEBUG_ATOMIC_SLEEP`).
    #[error("a lock that sleeps was taken in atomic context (preempt count {count:#x})")]
    AtomicSleep {
        /// The preempt count.
        count: u32,
    },
    /// A task gave up the CPU in a read-side section of RCU.
    #[error("a task slept in a read-side section of RCU")]
    SleepInRcu,
    /// More was enabled than disabled.
    #[error("preemption, softirqs or interrupts were enabled more often than disabled")]
    Underflow,
    /// More was disabled than the preempt count can count.
    #[error("preemption or softirqs were disabled more often than the preempt count has room for")]
    Overflow,
    /// A task came to user mode, or a handler to its end, with something still disabled.
    #[error("preemption, softirqs or interrupts were still disabled at the end")]
    Unbalanced,
    /// A CPU or task waits for what it holds itself.
    #[error("deadlock: a task took a lock again that it holds")]
    SelfDeadlock(LockId),
    /// A task gave back a lock that it does not hold.
    #[error("a task gave back a lock that it does not hold")]
    NotHolder(LockId),
    /// A variable of a CPU was seen half-changed.
    #[error("a variable of the CPU was seen half-changed")]
    HalfChanged(VariableId),
    /// Nothing can ever happen again, but tasks wait.
    #[error("deadlock: tasks wait for each other")]
    Deadlock,
    /// A wakeup came, and its task sleeps.
    #[error("a wakeup was lost: the task sleeps on")]
    LostWakeup(TaskId),
    /// A CPU runs on although somebody more urgent is to run, and no rule will stop it.
    #[error("need_resched was lost: a less urgent task runs on")]
    LostNeedResched(TaskId),
    /// A task runs again and again, and there is a schedule in which it never gets any work done.
    #[error("livelock: a task runs for ever and gets no work done")]
    Livelock(TaskId),
    /// Steps go on, and time does not.
    #[error("an endless loop in which no time passes")]
    EndlessLoop,
}
