//! What happens in a simulated kernel, as it happens.

use crate::image::{CpuId, EventId, FunctionId, LockId, SourceId, StackId, TaskId};

/// Something that has just happened on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// An interrupt was raised: it waits until the CPU takes it.
    Raised(SourceId),
    /// The CPU takes an interrupt: it leaves idle if it was, and enters the handler.
    Taken(SourceId),
    /// The first line of the handler.
    HandlerBegin(SourceId),
    /// The handler has ended.
    HandlerEnd(SourceId),
    /// The interrupt has ended: the CPU goes on where it was, or to softirqs, or to the scheduler.
    Returned(SourceId),
    /// A timer's function that wakes this task begins.
    TimerBegin(TaskId),
    /// It has ended.
    TimerEnd(TaskId),
    /// The function of the tick's timer begins.
    TickBegin,
    /// It has ended.
    TickEnd,
    /// A softirq of this number begins, on top of what was interrupted or in its thread.
    SoftirqBegin(u8),
    /// It has ended.
    SoftirqEnd(u8),
    /// What the CPU runs, runs in this function now, called by these.
    At(StackId),
    /// What the CPU runs is in user mode from now on.
    User,
    /// What the CPU runs is in the kernel from now on.
    Kernel,
    /// Interrupts go off, in no interrupt handler.
    IrqsOff,
    /// Interrupts go on.
    IrqsOn,
    /// The preempt count has changed to this, in the layout of the kernel: 8 bits of preemption, 8 of
    /// softirqs, 4 of hard interrupts, 4 of NMIs.
    PreemptCount(u32),
    /// The CPU spins for a lock that another CPU holds.
    SpinBegin(LockId),
    /// It has got it.
    SpinEnd(LockId),
    /// A task was made ready and put on the run queue of a CPU, by this one.
    Woken {
        /// Who.
        task: TaskId,
        /// Where it waits.
        on: CpuId,
    },
    /// `need_resched` is set for this CPU.
    NeedResched,
    /// The same, to be honoured at the tick or in user mode at the latest.
    NeedReschedLazy,
    /// The scheduler is entered.
    SchedEntry,
    /// The CPU changes from one task to another; `None` is idle.
    Switch {
        /// Who ran.
        from: Option<TaskId>,
        /// Whether that task could still run: it was preempted.
        preempted: bool,
        /// Who runs now.
        to: Option<TaskId>,
    },
    /// The scheduler has ended.
    SchedExit,
    /// The probe's own code runs: its response.
    Response(TaskId),
    /// A page of the task is not there.
    PageFault(TaskId),
    /// A unit of a load's work was done by this task.
    Work(TaskId),
    /// An event was announced.
    Announced(EventId),
    /// A task was lent the priority of another that waits for its lock.
    Boosted(TaskId),
    /// A lock was broken: dropped, so that somebody can run.
    LockBroken(LockId),
    /// A function is no part of what the kernel shows, but the truth: where a stack begins.
    Marker(FunctionId),
}
