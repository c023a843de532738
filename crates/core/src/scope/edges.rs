//! All that changed on a guest's CPU while it measured, edge by edge, as the emulator saw it.
//!
//! From one edge to the next the CPU is at one thing, so whatever is made of these edges leaves no time
//! unexplained. [`State`] follows them.

use std::ops::Range;

use crate::explain::Task;

/// What the interrupt of the CPU's own timer is called on arm64, as the tracer names it: all interrupts enter the
/// kernel by the same ways there.
pub const ARM64_TIMER: &str = "arch_timer";

/// Where the kernel is entered by the interrupt of the CPU's own timer: on x86-64 the local APIC's. With FRED all
/// interrupts would enter by one way, but no CPU whose edges are seen has that: see `ways_in` in `decode`.
const TIMER_ENTRIES: [&str; 2] = ["asm_sysvec_apic_timer_interrupt", ARM64_TIMER];

/// A number of a function, in [`Edges::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// A number of a task, in [`Edges::tasks`]. A task that changes its name or priority gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// The edges of one run of a guest with one CPU. All times are virtual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edges {
    /// When the first process first read the clock, since the machine was turned on, ns; if it never did without the
    /// kernel, when it began.
    pub process_ns: u64,
    /// The time in which edges were written, since the machine was turned on, ns: while the guest measured, and
    /// 10 ms longer.
    pub window_ns: Range<u64>,
    /// Until when the guest measured, since the machine was turned on, ns: no wakeup is due after that.
    pub measured_until_ns: u64,
    /// What the CPU was at when the first of them came.
    pub start: State,
    /// In order of time.
    pub edges: Vec<Edge>,
    /// The names of functions.
    pub functions: Vec<String>,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Whether each place of the kernel's image was known at which it asks by `cond_resched` or `might_sleep`, also
    /// where the model that ran has it patched away. Modules have places of their own, which are not known.
    pub knows_asks: bool,
}

impl Edges {
    /// How long the guest measured, ns: the window in which sections count.
    pub fn measured_ns(&self) -> u64 {
        self.measured_until_ns.saturating_sub(self.window_ns.start)
    }

    /// The function by which the interrupt of the CPU's own timer enters the kernel, if one did.
    pub fn timer_entry(&self) -> Option<FunctionId> {
        let place =
            self.functions.iter().position(|name| TIMER_ENTRIES.contains(&name.as_str()))?;
        u32::try_from(place).ok().map(FunctionId)
    }

    /// Whether it was seen when that timer was set, and so when it fired. Not of a kernel that uses
    /// another timer.
    pub fn sees_timer(&self) -> bool {
        self.edges.iter().any(|edge| matches!(edge.what, EdgeKind::TimerSet(_)))
    }

    /// Each interrupt of that timer, in order: from when it fired until the CPU took it.
    pub fn timer_interrupts(&self) -> Vec<Range<u64>> {
        let entry = self.timer_entry();
        let (mut all, mut fired_ns) = (Vec::new(), None);
        for edge in &self.edges {
            match edge.what {
                // It may be set anew before its interrupt is taken, and fire once more.
                EdgeKind::TimerFires => fired_ns = fired_ns.or(Some(edge.at_ns)),
                EdgeKind::Enter { way: WayIn::Interrupt, .. }
                    if entry.is_some() && edge.function == entry =>
                {
                    all.extend(fired_ns.take().map(|fired_ns| fired_ns..edge.at_ns));
                }
                _ => {}
            }
        }
        all
    }

    /// The name of a function; `None` of code whose name is not known: a module's.
    pub fn function(&self, id: Option<FunctionId>) -> Option<&str> {
        self.functions.get(id?.0 as usize).map(String::as_str)
    }

    /// A task; `None` if it is not known.
    pub fn task(&self, id: Option<TaskId>) -> Option<&Task> {
        self.tasks.get(id?.0 as usize)
    }
}

/// Something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When, since the machine was turned on, ns. No edge is before the one that precedes it.
    pub at_ns: u64,
    /// The function in which it changes; `None` in code of modules and of programs.
    pub function: Option<FunctionId>,
    /// What called that function; of an entry into the kernel what it interrupted. `None` if that is not
    /// known, or a program.
    pub caller: Option<FunctionId>,
    /// What changes.
    pub what: EdgeKind,
}

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// Interrupts go off.
    IrqsOff,
    /// Interrupts go on.
    IrqsOn,
    /// The preempt count is another one: zero or no longer zero, or another in its parts for softirqs,
    /// interrupts and NMIs, or in need for rescheduling. How deep it is apart from these is not followed.
    PreemptCount(PreemptCount),
    /// The kernel is entered, which turns interrupts off. [`Edge::function`] says by what.
    Enter {
        /// In what way.
        way: WayIn,
        /// Whether a program was interrupted, or made the call.
        from_user: bool,
    },
    /// What was entered last, in this task, is left.
    Leave {
        /// Whether for a program, and not for the kernel's code that was interrupted.
        to_user: bool,
    },
    /// A softirq of this number begins. It ends where the next one does, or all of them.
    Softirq(u8),
    /// The kernel is about to make a task ready, whether it is already or not.
    Wake(TaskId),
    /// The scheduler is entered (`__schedule`).
    Schedule,
    /// Another task has the CPU.
    Switch(TaskId),
    /// The CPU halts, until it is entered by an interrupt or resumes.
    Halt,
    /// An interrupt ended that, but is not taken yet, for interrupts were off (arm64).
    Resume,
    /// A program reads the clock: the reading is this edge's time.
    UserClock,
    /// The kernel comes to a place at which it asks whether somebody else is to run, or would under another model.
    Ask(AskKind),
    /// The CPU's own timer is set to fire after so many ns, and not when it was to fire before.
    /// `None`: it is stopped.
    TimerSet(Option<u32>),
    /// That timer fires: its interrupt comes as soon as the CPU takes it.
    TimerFires,
}

/// How the kernel asks whether somebody else is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskKind {
    /// In `__cond_resched`, which both others call under models that ask there. It is all that is seen of
    /// modules, and of kernels that do not list their places.
    Either,
    /// By `cond_resched`, under models that do not preempt.
    CondResched,
    /// By `might_sleep`, under `voluntary` only.
    MightResched,
    /// By the flag of the task that runs (`need_resched`): a loop looks at it under every model, also with
    /// preemption off, and ends early if the CPU is to be given up.
    NeedResched,
}

/// A way into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WayIn {
    /// An interrupt.
    Interrupt,
    /// An exception, a page fault among them, or an NMI.
    Exception,
    /// A system call.
    SystemCall,
}

/// The preempt count, with its flag for need of rescheduling as x86-64 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptCount(pub u32);

impl PreemptCount {
    /// Preemption is on, and the CPU is to be given up: the kernel's own initial value without that.
    pub const ON: Self = Self(0x8000_0000);

    /// Whether preemption is off, be it for softirqs or an interrupt.
    pub fn is_off(self) -> bool {
        self.0 & 0x7fff_ffff != 0
    }

    /// Whether the task that runs is to give up the CPU. Requests that may wait for the next tick, as `lazy`
    /// makes them for ordinary tasks, are not here.
    pub fn need_resched(self) -> bool {
        self.0 & 0x8000_0000 == 0
    }

    /// How often preemption was turned off, apart from softirqs and interrupts. Only whether the whole
    /// count is zero is followed, so this may be behind.
    pub fn depth(self) -> u32 {
        self.0 & 0xff
    }

    /// Whether a softirq runs.
    pub fn in_softirq(self) -> bool {
        self.0 & 0x100 != 0
    }

    /// Whether softirqs are off, or one runs.
    pub fn softirqs_off(self) -> bool {
        self.0 & 0xff00 != 0
    }

    /// Whether a hard interrupt's handler runs.
    pub fn in_interrupt(self) -> bool {
        self.0 & 0xf_0000 != 0
    }

    /// Whether an NMI's handler runs.
    pub fn in_nmi(self) -> bool {
        self.0 & 0xf0_0000 != 0
    }
}

/// What a CPU is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether interrupts are off.
    pub irqs_off: bool,
    /// The preempt count.
    pub preempt: PreemptCount,
    /// Whether a program runs, and not the kernel.
    pub in_user: bool,
    /// Whether it is halted.
    pub halted: bool,
    /// The task that has the CPU; `None` until that is known.
    pub task: Option<TaskId>,
}

impl Default for State {
    fn default() -> Self {
        let preempt = PreemptCount::ON;
        Self { irqs_off: false, preempt, in_user: false, halted: false, task: None }
    }
}

impl State {
    /// What it is at after `edge`.
    #[must_use]
    pub fn after(self, edge: EdgeKind) -> Self {
        match edge {
            EdgeKind::IrqsOff => Self { irqs_off: true, ..self },
            EdgeKind::IrqsOn => Self { irqs_off: false, ..self },
            EdgeKind::PreemptCount(preempt) => Self { preempt, ..self },
            EdgeKind::Enter { .. } => {
                Self { irqs_off: true, in_user: false, halted: false, ..self }
            }
            EdgeKind::Leave { to_user } => Self { in_user: to_user, ..self },
            EdgeKind::Switch(task) => Self { task: Some(task), ..self },
            EdgeKind::Halt => Self { halted: true, ..self },
            EdgeKind::Resume => Self { halted: false, ..self },
            EdgeKind::Softirq(_)
            | EdgeKind::Wake(_)
            | EdgeKind::Schedule
            | EdgeKind::UserClock
            | EdgeKind::Ask(_)
            | EdgeKind::TimerSet(_)
            | EdgeKind::TimerFires => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_preempt_count_are_the_kernels() {
        let parts = |count: u32| {
            let count = PreemptCount(count);
            let flags = [count.is_off(), count.need_resched(), count.in_softirq()];
            (flags, count.softirqs_off(), count.in_interrupt(), count.in_nmi())
        };
        assert_eq!(parts(PreemptCount::ON.0), ([false; 3], false, false, false));
        assert_eq!(parts(0), ([false, true, false], false, false, false));
        assert_eq!(parts(0x8000_0001), ([true, false, false], false, false, false));
        assert_eq!(parts(0x8000_0100), ([true, false, true], true, false, false));
        assert_eq!(parts(0x8000_0200), ([true, false, false], true, false, false));
        assert_eq!(parts(0x8001_0000), ([true, false, false], false, true, false));
        assert_eq!(parts(0x8010_0000), ([true, false, false], false, false, true));
    }

    #[test]
    fn interrupts_of_the_timer_last_from_its_firing_until_they_are_taken() {
        let enter = EdgeKind::Enter { way: WayIn::Interrupt, from_user: false };
        let edge = |(at_ns, what, function): (u64, EdgeKind, u32)| Edge {
            at_ns,
            function: Some(FunctionId(function)),
            caller: None,
            what,
        };
        let drawn = [
            // What fired before the first edge is not known.
            (5, enter, 1),
            (10, EdgeKind::TimerFires, 0),
            (12, enter, 0),
            (20, EdgeKind::TimerFires, 0),
            (25, enter, 1),
            (30, enter, 1),
            (40, EdgeKind::TimerFires, 0),
            (40, enter, 1),
        ];
        let functions = vec!["irq_entries_start".into(), TIMER_ENTRIES[0].into()];
        let edges = drawn.map(edge).into();
        let edges = Edges { edges, functions, ..Edges::default() };
        assert_eq!(edges.timer_interrupts(), [10..25, 40..40]);
        assert_eq!(Edges::default().timer_interrupts(), []);
    }

    #[test]
    fn the_state_follows_the_edges() {
        let mut state = State::default();
        for edge in [
            EdgeKind::Halt,
            EdgeKind::Enter { way: WayIn::Interrupt, from_user: false },
            EdgeKind::Switch(TaskId(3)),
        ] {
            state = state.after(edge);
        }
        let want = State { irqs_off: true, task: Some(TaskId(3)), ..State::default() };
        assert_eq!(state, want);
        let left = state.after(EdgeKind::IrqsOn).after(EdgeKind::Leave { to_user: true });
        assert_eq!(left, State { irqs_off: false, in_user: true, ..want });
    }
}
