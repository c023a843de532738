//! A scenario compiled for a preemption model: operations that the kernel executes one by one.

mod compile;
pub(crate) mod op;
mod paths;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::rules::Rules;
use crate::scenario::{Arrivals, Count, InterruptKind, Length, Scenario, TaskPolicy};

pub use op::{Code, Op};

/// Defines numbers of things that an image lists.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u16);

        impl $name {
            /// The place in the image's list.
            pub fn index(self) -> usize {
                usize::from(self.0)
            }

            /// The number of the thing at `index`.
            ///
            /// # Panics
            ///
            /// If there are more than 2^16 such things, which a scenario's limits exclude.
            pub fn at(index: usize) -> Self {
                Self(u16::try_from(index).expect("scenarios have less than 2^16 of anything"))
            }
        }
    )*};
}

ids! {
    /// A CPU.
    CpuId,
    /// A task of [`Image::tasks`].
    TaskId,
    /// What takes a CPU: one of [`Image::sources`].
    SourceId,
    /// A lock of [`Image::locks`].
    LockId,
    /// A function of [`Image::functions`].
    FunctionId,
    /// A chain of calls of [`Image::stacks`].
    StackId,
    /// An event of [`Image::events`].
    EventId,
    /// A variable of [`Image::variables`], one for each CPU.
    VariableId,
    /// A budget of CPU time, of [`Image::budgets`].
    BudgetId,
    /// A length of [`Image::lengths`].
    LengthId,
    /// A count of [`Image::counts`].
    CountId,
    /// Operations of [`Image::codes`].
    CodeId,
}

/// The timer's interrupt, of each CPU.
pub const LOCAL_TIMER: SourceId = SourceId(0);
/// The interrupt that one CPU sends to another for it to call the scheduler.
pub const RESCHEDULE: SourceId = SourceId(1);

/// How many softirqs a kernel has.
pub const SOFTIRQS: usize = 10;

/// A scenario under one preemption model.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// The model.
    pub rules: Rules,
    /// How many CPUs there are.
    pub cpus: u16,
    /// From one tick to the next, nanoseconds; 0 for none.
    pub tick_ns: u64,
    /// Idle states, the lightest first.
    pub idle_states: Vec<crate::scenario::IdleState>,
    /// What the kernel's own steps take.
    pub costs: Costs,
    /// All operations.
    pub codes: Vec<Code>,
    /// All budgets of CPU time.
    pub budgets: Vec<Budget>,
    /// That of real-time tasks, if they have one.
    pub rt_budget: Option<BudgetId>,
    /// All tasks: those of the scenario first, then the threads of the kernel.
    pub tasks: Vec<TaskImage>,
    /// What takes CPUs: the timer, the interrupt between CPUs, and those of the scenario.
    pub sources: Vec<Source>,
    /// What runs for each softirq, if anything does.
    pub softirqs: [Option<CodeId>; SOFTIRQS],
    /// For each CPU, what its thread of softirqs waits for.
    pub softirq_work: Vec<EventId>,
    /// What runs them all on RT, as a task's own code.
    pub softirqs_of_tasks: Option<CodeId>,
    /// For each CPU the lock that `local_bh_disable` takes; empty where it takes none.
    pub bh_locks: Vec<LockId>,
    /// Names of locks.
    pub locks: Vec<String>,
    /// Names of functions.
    pub functions: Vec<String>,
    /// Functions that call each other, the outermost first. The first chain is empty.
    pub stacks: Vec<Vec<FunctionId>>,
    /// Names of events.
    pub events: Vec<String>,
    /// Names of variables that each CPU has.
    pub variables: Vec<String>,
    /// All lengths.
    pub lengths: Vec<Length>,
    /// All counts.
    pub counts: Vec<Count>,
}

/// Lengths of the kernel's own steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Costs {
    pub interrupt_entry: LengthId,
    pub interrupt_exit: LengthId,
    pub schedule: LengthId,
    pub switch: LengthId,
    pub ipi: LengthId,
}

/// How long tasks may run in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How long, nanoseconds.
    pub runtime_ns: u64,
    /// The period, nanoseconds.
    pub period_ns: u64,
    /// Whose.
    pub of: BudgetOf,
}

/// Whose budget it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetOf {
    /// The real-time tasks of each CPU, apart.
    RealTime {
        /// Whether they are stopped only for ordinary tasks that want the CPU.
        fair_server: bool,
    },
    /// The ordinary tasks of a group, on all CPUs together.
    Group,
}

/// A task, as a simulation starts it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskImage {
    /// Its name.
    pub name: String,
    /// How it is scheduled.
    pub policy: TaskPolicy,
    /// Where it runs; `None` for any CPU.
    pub cpu: Option<CpuId>,
    /// The budget of its group.
    pub budget: Option<BudgetId>,
    /// What it executes, again and again.
    pub code: CodeId,
    /// From one expiry of its timer to the next, picoseconds; `None` if it is no probe.
    pub period_ps: Option<u64>,
    /// Whether it is a thread of the kernel: it has no user mode.
    pub is_kernel_thread: bool,
}

/// Something that takes a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// As the kernel calls it.
    pub name: String,
    /// Of which kind.
    pub kind: SourceKind,
    /// When it comes; `None` if something makes it come.
    pub arrivals: Option<Arrivals>,
    /// Where it comes; `None` for each CPU in turn.
    pub cpu: Option<CpuId>,
    /// What its handler executes.
    pub code: CodeId,
}

/// Kinds of what takes a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// The CPU's own timer.
    LocalTimer,
    /// An interrupt from another CPU.
    Reschedule,
    /// A device's interrupt.
    Device,
    /// An interrupt that cannot be disabled.
    Nmi,
    /// The hypervisor.
    Steal,
}

/// What makes a scenario impossible to compile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// A name that nothing defines.
    #[error("there is no {kind} named {name:?}")]
    Unknown {
        /// Of what.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Two of one name.
    #[error("there are two {kind}s named {name:?}")]
    Twice {
        /// Of what.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A number that is not allowed.
    #[error("{what} is {value}: expected {expected}")]
    Number {
        /// Which.
        what: &'static str,
        /// What it is.
        value: u64,
        /// What it should be.
        expected: &'static str,
    },
    /// Loops in loops.
    #[error("loops are nested more than {} deep", op::LOOPS)]
    Loops,
    /// A step that does not belong there.
    #[error("{0}")]
    Misplaced(&'static str),
}

impl Image {
    /// Compiles `scenario` for `rules`.
    ///
    /// # Errors
    ///
    /// Names that nothing defines, numbers that are not allowed, and steps where they cannot be.
    pub fn new(scenario: &Scenario, rules: Rules) -> Result<Self, ImageError> {
        compile::compile(scenario, rules)
    }

    /// What a task, or idle, is called.
    pub fn task_name(&self, task: Option<TaskId>) -> &str {
        task.map_or("swapper", |task| &self.tasks[task.index()].name)
    }

    /// Tasks whose wakeups are measured.
    pub fn probes(&self) -> impl Iterator<Item = TaskId> + '_ {
        let is_probe = |&(_, task): &(usize, &TaskImage)| task.period_ps.is_some();
        self.tasks.iter().enumerate().filter(is_probe).map(|(index, _)| TaskId::at(index))
    }
}

/// Names in the order of their numbers.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    fn number(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.numbers.insert(name.to_owned(), self.all.len());
        self.all.push(name.to_owned());
        self.all.len() - 1
    }
}

impl InterruptKind {
    /// What takes the CPU; `None` for a softirq, which nothing but the kernel itself raises.
    fn source(self) -> Option<SourceKind> {
        match self {
            Self::Device | Self::Unthreaded => Some(SourceKind::Device),
            Self::Nmi => Some(SourceKind::Nmi),
            Self::Steal => Some(SourceKind::Steal),
            Self::Softirq(_) => None,
        }
    }
}
