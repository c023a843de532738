//! What a tracer saw of one wakeup.

use serde::{Deserialize, Serialize};

use super::frame::{Frame, short_stack};
use super::task::Task;
use crate::units::MonoNs;

/// One wakeup from its stimulus to its response, and what was seen meanwhile on the CPU that the
/// task waited for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wakeup {
    /// The CPU that the task ran on in the end.
    pub cpu: u32,
    /// Who was to wake, with the priority that it had at the end.
    pub task: Task,
    /// Its own priority if it was lent that one; `None` if it was not, or nobody looked.
    pub normal_prio: Option<i32>,
    /// What was to wake it.
    pub woken_by: WokenBy,
    /// The points that part it into components.
    pub marks: Marks,
    /// What the CPU was at when the interrupt came, or the task was made ready.
    pub interrupted: Option<Context>,
    /// In the order of their times.
    pub events: Vec<Event>,
    /// Events between the first and the last that are missing.
    pub lost: u32,
    /// Although events were lost: from when on every switch is known, if there is such a time.
    pub known_switches: Option<KnownSwitches>,
    /// Where events were lost: who ran on the CPU meanwhile. Empty if that is not known.
    pub ran: RunTimes,
    /// What took the CPU from tasks meanwhile, where events were lost.
    pub taken: Taken,
    /// Who gave up the CPU in the end, and where, as far as that was looked at.
    pub given_up: Option<GivenUp>,
    /// The task's page faults between `switch_in` and `response`.
    pub page_faults: u64,
    /// What the kernel knows to keep such a task from running: a throttled queue.
    pub throttled: bool,
    /// From when on that may have been, where the task was moved to a CPU that held it back and those before did not;
    /// `None` if it may have been from the beginning.
    pub throttled_from: Option<MonoNs>,
    /// How much of the wakeup latency was stolen by the clock of the CPU, nanoseconds; 0 where there is
    /// no such clock.
    pub stolen_ns: u64,
    /// How long a quota of CPU time stopped the task meanwhile, by the kernel's count, nanoseconds; `None`
    /// if that is not known.
    pub quota_ns: Option<u64>,
    /// When interrupts last went off, and on again, before the timer's came; `None` where the kernel
    /// does not show it, or nobody asked.
    pub irqs_off: Option<(MonoNs, MonoNs)>,
}

impl Wakeup {
    /// Who was to wake, without a priority that it was lent.
    pub fn task_alone(&self) -> Task {
        match self.normal_prio {
            Some(prio) => Task { prio, ..self.task.clone() },
            None if !self.task.policy.is_realtime() && self.task.is_urgent() => {
                self.task.as_ordinary()
            }
            None => self.task.clone(),
        }
    }

    /// The CPU that the task waited for first. It may have been moved to others then, up to [`Self::cpu`].
    pub fn first_cpu(&self) -> u32 {
        let moved = self.events.iter().find_map(|event| match event.what {
            What::Moved { from, .. } => Some(from),
            _ => None,
        });
        moved.unwrap_or(self.cpu)
    }
}

/// Who had the CPU where events were lost: the last switches are kept apart from other events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownSwitches {
    /// From when on no switch was lost.
    pub from: MonoNs,
    /// How long all interrupts, softirqs and NMIs took from then on, nanoseconds.
    pub interrupts_ns: u64,
}

/// How long tasks ran on a CPU while another one waited for it, without what interrupted them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// Those that are known, the longest first.
    pub tasks: Vec<Ran>,
    /// How long all others did that are ordinary tasks, nanoseconds.
    pub others_ns: u64,
    /// How long all others did with a real-time or deadline policy or priority, nanoseconds.
    pub urgent_others_ns: u64,
}

impl RunTimes {
    /// Whether nobody is known to have run.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How long a CPU was taken from its tasks while one of them waited for it, at least, nanoseconds. Each without what
/// came into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// By interrupts.
    pub interrupts_ns: u64,
    /// By softirqs.
    pub softirqs_ns: u64,
    /// By NMIs.
    pub nmis_ns: u64,
}

impl Taken {
    /// Whether nothing is known to have taken it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each of these times combined with the same one of `other`.
    #[must_use]
    pub fn with(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            interrupts_ns: both(self.interrupts_ns, other.interrupts_ns),
            softirqs_ns: both(self.softirqs_ns, other.softirqs_ns),
            nmis_ns: both(self.nmis_ns, other.nmis_ns),
        }
    }
}

/// A task that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Which one.
    pub task: Task,
    /// How long at least, nanoseconds.
    pub ns: u64,
}

/// Where a thread gave up the CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUp {
    /// Which one.
    pub pid: u32,
    /// Its kernel stack below the scheduler, innermost first. May be empty.
    #[serde(default, serialize_with = "short_stack", skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
    /// The stack of its program, innermost first. May be empty.
    #[serde(default, serialize_with = "short_stack", skip_serializing_if = "Vec::is_empty")]
    pub user_stack: Vec<Frame>,
}

/// What was to wake a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WokenBy {
    /// Its timer, on the CPU `on`.
    Timer {
        /// Where the interrupt was.
        #[serde(rename = "cpu")]
        on: u32,
    },
    /// Nobody: its time came while the task was still awake, and no timer was set.
    Awake,
    /// Somebody else, on the CPU `on`: a futex, a pipe, a device.
    #[default]
    Unknown,
    /// Another task, or an interrupt that it was in.
    Waker {
        /// Who.
        task: Task,
        /// Where.
        #[serde(rename = "cpu")]
        on: u32,
        /// Whether it was in an interrupt.
        in_interrupt: bool,
    },
}

/// The points of a wakeup. Those that this kernel does not show are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// When it was due: the timer's expiry, or when a waker made the task ready.
    pub due: MonoNs,
    /// The interrupt of the timer was taken.
    pub irq_entry: Option<MonoNs>,
    /// That interrupt's handler returned.
    pub irq_exit: Option<MonoNs>,
    /// The scheduler was entered that picked the task.
    pub sched_entry: Option<MonoNs>,
    /// The CPU was switched to the task.
    pub switch_in: Option<MonoNs>,
    /// The task ran on.
    pub response: MonoNs,
}

impl Marks {
    /// These marks without those that contradict others: before `due`, after `response`, or out of
    /// order. Of two in the wrong order either may be the wrong one, so both go, unless one of
    /// them contradicts more marks than the other does.
    #[must_use]
    pub fn consistent(&self) -> Self {
        let mut seen = [self.irq_entry, self.irq_exit, self.sched_entry, self.switch_in];
        for mark in &mut seen {
            *mark = mark.filter(|&at| at >= self.due && at <= self.response);
        }
        loop {
            let contradicted: [usize; 4] = std::array::from_fn(|i| {
                let Some(at) = seen[i] else { return 0 };
                let before = seen[..i].iter().flatten().filter(|&&other| other > at).count();
                before + seen[i + 1..].iter().flatten().filter(|&&other| other < at).count()
            });
            let most = contradicted.into_iter().max().unwrap_or(0);
            if most == 0 {
                let [irq_entry, irq_exit, sched_entry, switch_in] = seen;
                return Self { irq_entry, irq_exit, sched_entry, switch_in, ..*self };
            }
            for (mark, count) in seen.iter_mut().zip(contradicted) {
                *mark = mark.filter(|_| count < most);
            }
        }
    }
}

/// What a CPU was at when an interrupt came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    /// The task that ran.
    pub task: Task,
    /// In which mode.
    pub mode: Mode,
    /// How many times preemption was disabled, the interrupt itself apart; `None` if this kernel
    /// does not count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preempt_depth: Option<u32>,
    /// The softirq that it was in, by its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub softirq: Option<u8>,
    /// Whether the kernel would have left this place at once for a more urgent task: it runs full
    /// preemption or RT. `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// Whether it had enabled interrupts with the very instruction before, so that it had held up
    /// the interrupt until then. `None` if its code was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled_interrupts: Option<bool>,
    /// The kernel stack of what was interrupted, without the interrupt's own part, innermost first.
    #[serde(serialize_with = "short_stack", skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
    /// Whether that stack was taken in a later interrupt, as the wakeup still waited: all else here
    /// was so when the first one came.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stack_is_later: bool,
    /// Of its program's own stack, the same.
    #[serde(serialize_with = "short_stack", skip_serializing_if = "Vec::is_empty")]
    pub user_stack: Vec<Frame>,
}

/// The mode of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Not known.
    #[default]
    Unknown,
    /// A program's own code.
    User,
    /// The kernel, for a task.
    Kernel,
    /// Idle, in this state if it has a name or number.
    Idle(String),
}

/// Something seen on the CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: MonoNs,
    /// What.
    pub what: What,
}

/// What an event is.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A hard interrupt begins.
    IrqEntry(Interrupt),
    /// The innermost hard interrupt ends.
    IrqExit(Interrupt),
    /// Within a timer interrupt, this function of a timer begins, for so many timers in a row.
    TimerEntry(String, u32),
    /// That function ends.
    TimerExit,
    /// A softirq begins, by its number.
    SoftirqEntry(u8),
    /// That softirq ends.
    SoftirqExit(u8),
    /// More softirqs are pending then, and `ksoftirqd`, the thread for these, sleeps: the kernel makes it ready
    /// unless it goes on with another softirq at once.
    SoftirqsPending,
    /// An NMI handler of this name ends that took so long, nanoseconds.
    Nmi(String, u64),
    /// The tracer itself ends that had the CPU for so long, nanoseconds: it took stacks, or handed a
    /// wakeup over.
    Tracer(u64),
    /// The CPU is switched from one task to another.
    Switch {
        /// Who ran.
        from: Task,
        /// Who runs now.
        to: Task,
    },
    /// The task is moved to the run queue of another CPU while it waits: what comes now is of that one. First
    /// comes a switch, from who ran on the one to who runs on the other.
    Moved {
        /// The CPU that it waited for.
        from: u32,
        /// The CPU that it waits for now.
        to: u32,
    },
    /// The scheduler is entered.
    SchedEntry,
    /// The reading of the CPU's clock of stolen time, nanoseconds.
    Steal(u64),
    /// The CPU waits for a lock, held elsewhere.
    ContentionBegin,
    /// It has got it.
    ContentionEnd,
    /// The task that runs gives back a priority that it was lent, and had until then.
    Deboost(Task),
}

/// A hard interrupt, by what it is called: `local_timer`, `reschedule`, `eth0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt(pub String);
