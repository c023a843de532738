//! Where something is in its code.

use crate::image::{CodeId, Image, Op, SourceId, StackId};

use crate::image::op::LOOPS;

/// What runs on a CPU: a task, or what interrupted it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Which of these.
    pub kind: FrameKind,
    /// How far it has come.
    pub stage: Stage,
    /// What it executes.
    pub code: CodeId,
    /// The next operation.
    pub pc: u32,
    /// What was left of an operation when an interrupt came, nanoseconds.
    pub left: Option<u64>,
    /// How often loops are still to run, by their depth.
    pub loops: [u32; LOOPS],
    /// Iterations since the last look at a preemption point of each loop.
    pub since_look: [u32; LOOPS],
    /// How often it has disabled interrupts.
    pub irq_depth: u32,
    /// The preempt count when it began.
    pub count_before: u32,
    /// Whether it is about to sleep, or has slept.
    pub sleeps: bool,
    /// Whether it waits for a spin lock.
    pub spins: bool,
    /// Whether its slice is over, so that the next of its priority is to run.
    pub rotates: bool,
    /// The task whose timer has expired.
    pub expired: Option<crate::image::TaskId>,
    /// The budget whose period has ended.
    pub period: Option<crate::image::BudgetId>,
}

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// The task itself.
    Task,
    /// An interrupt, or what else takes the CPU by force.
    Interrupt(SourceId),
    /// Softirqs.
    Softirq {
        /// Which.
        number: u8,
        /// The round in which it runs.
        round: Round,
        /// What they run on top of.
        after: After,
    },
    /// The scheduler.
    Scheduler {
        /// Whether it was called for another task to run, and not by the task that runs.
        preempts: bool,
    },
}

/// Softirqs that run one after the other: all that were raised when the round began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Round {
    /// Those that have not begun yet, a bit for each.
    pub left: u16,
    /// How many rounds in a row it is, from 1.
    pub count: u8,
}

/// What softirqs run on top of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum After {
    /// A hard interrupt that has ended.
    Interrupt,
    /// A task that enabled them again.
    BhEnable,
    /// Their own thread.
    Thread,
}

/// Stages of interrupts and of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The CPU leaves its idle state.
    LeavingIdle,
    /// On the way to the handler; the scheduler chooses.
    Entry,
    /// Its code; the scheduler has switched, and looks whether it is needed again.
    Code,
    /// On the way back; the scheduler switches.
    Exit,
}

impl Frame {
    pub(super) fn new(kind: FrameKind, code: CodeId) -> Self {
        let stage = match kind {
            FrameKind::Task | FrameKind::Softirq { .. } => Stage::Code,
            FrameKind::Interrupt(_) | FrameKind::Scheduler { .. } => Stage::Entry,
        };
        Self {
            kind,
            stage,
            code,
            pc: 0,
            left: None,
            loops: [0; LOOPS],
            since_look: [0; LOOPS],
            irq_depth: 0,
            count_before: 0,
            sleeps: false,
            spins: false,
            rotates: false,
            expired: None,
            period: None,
        }
    }

    /// The operation that it is at; `None` where it is at none of its code.
    pub fn op(&self, image: &Image) -> Option<Op> {
        let is_in_code = self.stage == Stage::Code && !self.is_scheduler();
        is_in_code.then(|| image.codes[self.code.index()].ops[self.pc as usize])
    }

    /// The functions that it is in.
    pub fn stack(&self, image: &Image) -> StackId {
        if self.is_scheduler() {
            return StackId(0);
        }
        image.codes[self.code.index()].stacks[self.pc as usize]
    }

    fn is_scheduler(&self) -> bool {
        matches!(self.kind, FrameKind::Scheduler { .. })
    }
}
