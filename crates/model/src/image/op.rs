//! Operations.

use super::{CountId, EventId, LengthId, LockId, SourceId, StackId, VariableId};

/// How deep loops can be nested.
pub(crate) const LOOPS: usize = 4;

/// What tasks and handlers execute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// One after another. The last one ends a handler, or jumps to where a task begins anew.
    pub ops: Vec<Op>,
    /// For each of them, in which functions it is.
    pub stacks: Vec<StackId>,
}

/// An operation. Those that take time are the first five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// User mode for so long.
    User(LengthId),
    /// Kernel mode for so long.
    Compute(LengthId),
    /// A page is not there: so long in the kernel.
    PageFault(LengthId),
    /// Sleeps for so long, until this source reports it.
    Sleep(LengthId, SourceId),
    /// A probe sleeps until the next point of its grid.
    SleepOnGrid,

    /// The probe's response.
    Respond,
    /// Goes on at this operation.
    Jump(u32),
    /// A loop begins, at this depth.
    Loop {
        /// Which of the frame's counters it uses.
        depth: u8,
        /// How often.
        count: CountId,
        /// The operation after its end.
        end: u32,
    },
    /// The loop of this depth goes on at `begin`, or ends.
    EndLoop {
        /// Which counter.
        depth: u8,
        /// The first operation in it.
        begin: u32,
    },
    /// Takes a spin lock, or spins.
    Acquire(LockId),
    /// Gives a spin lock back.
    Release(LockId),
    /// Takes a lock, or sleeps until its owner gives it.
    MutexLock(LockId),
    /// The same with a spin lock of RT, which may be taken where a task must not sleep otherwise.
    RtLock(LockId),
    /// Gives it to the most urgent that waits.
    MutexUnlock(LockId),
    /// The preempt count grows by one.
    PreemptDisable,
    /// It falls by one. Where it is 0, that is a preemption point of full preemption.
    PreemptEnable,
    /// The same without that point.
    PreemptEnableNoResched,
    /// Interrupts off, or more deeply so.
    IrqSave,
    /// As before that.
    IrqRestore,
    /// Softirqs off, or more deeply so.
    BhDisable,
    /// As before that; runs what was raised meanwhile.
    BhEnable,
    /// A read-side section of RCU.
    RcuReadLock,
    /// Its end.
    RcuReadUnlock,
    /// Calls the scheduler if somebody is to run.
    ReschedulePoint,
    /// Counts an iteration; goes on behind it only in each `every`th, and only if somebody is to run; else at `end`.
    BreakPoint {
        /// Which loop's iterations are counted.
        depth: u8,
        /// How many iterations there are between two looks.
        every: u32,
        /// The operation after the lock is taken again.
        end: u32,
    },
    /// The lock is about to be dropped for somebody to run.
    Broken(LockId),
    /// The loop of this depth begins anew.
    RestartLoop {
        /// Which counter.
        depth: u8,
        /// How often.
        count: CountId,
        /// The first operation in it.
        begin: u32,
    },
    /// From now on the event wakes this task.
    PrepareToWait(EventId),
    /// Goes on at this operation if the event was announced.
    IfAnnounced(EventId, u32),
    /// Takes the announcement back, and no longer waits.
    FinishWait(EventId),
    /// Announces an event, and wakes who waits for it.
    Wake(EventId),
    /// Calls the scheduler.
    Schedule,
    /// Wakes the tasks whose sleep until this source has ended.
    WakeSleepers(SourceId),
    /// Takes the next timer that has expired on this CPU, or goes on at this operation.
    NextTimer(u32),
    /// Wakes the task whose timer that is.
    WakeTimer,
    /// Begins the tick if it is due, or goes on at this operation.
    BeginTick(u32),
    /// The tick's effect: accounts for the time of who runs.
    EndTick,
    /// Takes the next budget whose period has ended, or goes on at this operation.
    NextPeriod(u32),
    /// Lets those run again whose budget that is.
    EndPeriod,
    /// A softirq of this number is to run.
    RaiseSoftirq(u8),
    /// Runs the softirqs that were raised, on top of the softirq thread: not on RT.
    RunSoftirqs,
    /// This CPU's variable is half-changed from now on.
    BeginChange(VariableId),
    /// It is whole again.
    EndChange(VariableId),
    /// A unit of work is done.
    Work,
    /// Begins the softirq of this number if it was raised, or goes on at this operation: on RT, where a
    /// task executes it as its own code.
    TakeSoftirq(u8, u32),
    /// Its end.
    EndSoftirq(u8),
    /// Goes on at this operation if more were raised; else the task that has enabled softirqs goes on.
    EndSoftirqs(u32),
    /// A handler ends.
    End,
}
