//! What a record tells of the course of a wakeup.

use serde::{Deserialize, Serialize};

use super::task::NamedTask;

/// A step of an episode's timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// From when the wakeup was due, nanoseconds.
    pub at_ns: u64,
    /// How deep: 0 for the wakeup's own interrupt, scheduling and response, 1 for everything else that
    /// the CPU was at, and one more for each interrupt and softirq that this was in.
    #[serde(default)]
    pub depth: u32,
    /// What happened.
    pub event: StepEvent,
}

/// What a step is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StepEvent {
    /// The task's timer expires.
    TimerExpiry {
        /// The CPU of the timer, if it is not the one that the task waited for.
        #[serde(default)]
        cpu: Option<u32>,
        /// What the CPU was at that the task waited for.
        #[serde(default)]
        interrupted: Option<Interrupted>,
    },
    /// The wakeup is due, and the task has not gone to sleep yet.
    NotAsleep {
        /// Who.
        task: NamedTask,
        /// What the CPU was at.
        #[serde(default)]
        interrupted: Option<Interrupted>,
    },
    /// The task is made ready to run.
    MadeReady {
        /// By whom; `None` if that is not known.
        #[serde(default)]
        by: Option<NamedTask>,
        /// The CPU of the waker, if it is not the one that the task waited for.
        #[serde(default)]
        cpu: Option<u32>,
        /// Whether an interrupt did it, that came while `by` ran.
        #[serde(default)]
        in_interrupt: bool,
        /// What the CPU was at that the task waited for.
        #[serde(default)]
        interrupted: Option<Interrupted>,
    },
    /// A hard interrupt begins; at depth 0 the one that wakes the task.
    Interrupt {
        /// What it is called; `None` if its entry, which alone has the name, was not seen.
        name: Option<String>,
    },
    /// It ends.
    InterruptExit {
        /// What it is called, the same.
        name: Option<String>,
    },
    /// A function of a timer begins.
    Timer {
        /// The function.
        name: String,
        /// For how many timers in a row.
        count: u32,
    },
    /// A softirq begins.
    Softirq {
        /// The kernel's name of it, or its number.
        name: String,
    },
    /// It ends.
    SoftirqExit {
        /// The same.
        name: String,
    },
    /// A handler of an NMI ends.
    Nmi {
        /// The handler.
        name: String,
        /// How long it took, nanoseconds.
        ns: u64,
    },
    /// The tracer ends, which had the CPU.
    Tracer {
        /// For how long, nanoseconds.
        ns: u64,
    },
    /// The CPU is switched to another task; at depth 0 to the one that was to wake.
    Switch {
        /// Who ran; `None` if that is not known.
        #[serde(default)]
        from: Option<NamedTask>,
        /// Who runs now.
        to: NamedTask,
    },
    /// The task is moved to the run queue of another CPU while it waits.
    Moved {
        /// The CPU that it waits for now.
        cpu: u32,
        /// Who runs there.
        to: NamedTask,
    },
    /// The scheduler is entered.
    SchedEntry,
    /// The CPU waits for a lock that is held elsewhere.
    LockWait,
    /// It has got that lock.
    LockAcquired,
    /// The task that was to wake runs on.
    Runs {
        /// Who.
        task: NamedTask,
        /// Its page faults since the switch to it.
        page_faults: u64,
    },
    /// Events between this step and the last were lost.
    Missing {
        /// How many.
        count: u64,
    },
    /// Steps that the record leaves out here.
    LeftOut {
        /// How many.
        count: u64,
    },
    /// What this version does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// What a CPU was at when a wakeup was due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupted {
    /// In which mode it was.
    pub mode: StepMode,
    /// The task that ran; the idle task has no name of its own.
    pub task: NamedTask,
    /// The idle state that it was in; `None` if it ran, or that is not known.
    #[serde(default)]
    pub idle_state: Option<String>,
    /// The softirq that it was in, by the kernel's name or its number.
    #[serde(default)]
    pub softirq: Option<String>,
}

/// The mode of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepMode {
    /// A program's own code.
    User,
    /// The kernel, for a task.
    Kernel,
    /// Idle.
    #[default]
    #[serde(other)]
    Idle,
}

impl Step {
    /// How many steps this one stands for: itself, or those that the record has left out here.
    pub fn stands_for(&self) -> u64 {
        match self.event {
            StepEvent::LeftOut { count } => count,
            _ => 1,
        }
    }
}
