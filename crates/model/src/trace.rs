//! What happens in a simulated kernel, as it happens.

use crate::image::{BudgetId, CpuId, LockId, SourceId, TaskId};

/// Something that has just happened on a CPU. It takes no time itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// An interrupt arrived: it waits until the CPU takes it.
    Raised(SourceId),
    /// The CPU takes an interrupt.
    Taken(SourceId),
    /// The first line of its handler.
    HandlerBegin(SourceId),
    /// The handler has ended.
    HandlerEnd(SourceId),
    /// The interrupt has ended: the CPU goes on where it was, to softirqs, or to the scheduler.
    Returned(SourceId),
    /// The function of a timer that wakes this task begins.
    TimerBegin(TaskId),
    /// It has ended.
    TimerEnd(TaskId),
    /// The function of the tick's timer begins.
    TickBegin,
    /// It has ended.
    TickEnd,
    /// The function of the timer begins with which a budget's period ends.
    PeriodBegin(BudgetId),
    /// It has ended.
    PeriodEnd,
    /// Who has this budget has used it up on this CPU, and does not run there.
    Throttled(BudgetId),
    /// They may run there again.
    Unthrottled(BudgetId),
    /// A softirq of this number begins.
    SoftirqBegin(u8),
    /// It has ended.
    SoftirqEnd(u8),
    /// Interrupts go off, in no handler.
    IrqsOff,
    /// They go on.
    IrqsOn,
    /// A lock was taken, or handed to who waited for it.
    LockTaken {
        /// Which.
        lock: LockId,
        /// Who holds it now.
        by: LockUser,
    },
    /// Somebody waits for a lock, spinning or asleep, until it is handed over.
    LockAwaited {
        /// Which.
        lock: LockId,
        /// Who waits.
        by: LockUser,
    },
    /// A lock was given back.
    LockReleased(LockId),
    /// The CPU spins for a lock that another CPU holds.
    SpinBegin(LockId),
    /// It has got it.
    SpinEnd(LockId),
    /// A task was made ready, by what runs on this CPU.
    Woken {
        /// Who.
        task: TaskId,
        /// On whose run queue it waits.
        on: CpuId,
    },
    /// A task that waits on another CPU's run queue is taken to this one, which is idle.
    Pulled(TaskId),
    /// `need_resched` is set for this CPU.
    NeedResched {
        /// Whether it need not be honoured before the tick or the return to user mode.
        lazy: bool,
    },
    /// The scheduler is entered.
    SchedEntry,
    /// The CPU changes from one task to another; `None` is idle.
    Switch {
        /// Who ran.
        from: Option<TaskId>,
        /// Whether that task could run on.
        preempted: bool,
        /// Who runs now.
        to: Option<TaskId>,
    },
    /// The scheduler has ended.
    SchedExit,
    /// The probe's own code runs: its response.
    Response(TaskId),
    /// A page of the task was not there; it is now.
    PageFault(TaskId),
    /// A unit of a load's work was done.
    Work(TaskId),
    /// The task owns a lock that this other task waits for, and is lent its priority.
    Boosted {
        /// The owner.
        owner: TaskId,
        /// Who waits.
        waiter: TaskId,
    },
    /// The task gives back a priority that it was lent, and has until now.
    Deboosted(TaskId),
    /// The lock is about to be dropped so that somebody can run.
    LockBroken(LockId),
}

/// Who holds a lock, or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockUser {
    /// A task.
    Task(TaskId),
    /// The handler of an interrupt.
    Interrupt(SourceId),
    /// A softirq of this number.
    Softirq(u8),
}
