//! A late wakeup as the kernel shows it: numbers and addresses, no names.

use wakescope_core::explain::{KnownSwitches, Marks, Mode, Policy, Taken, Task};
use wakescope_core::units::MonoNs;

use crate::code::CODE_BYTES;
use crate::names::text;

/// One wakeup, and what was seen meanwhile on the CPU that its task waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelWakeup {
    /// The CPU that the task ran on in the end.
    pub cpu: u32,
    /// Who was to wake, with the priority that it had at the end.
    pub task: KernelTask,
    /// Its priority without one that it was lent; `None` if that is not known.
    pub normal_prio: Option<i32>,
    /// What was to wake it.
    pub stimulus: WakeupSource,
    /// The CPU that the stimulus was on.
    pub stimulus_cpu: u32,
    /// The points that part it into components.
    pub marks: Marks,
    /// When the task was made ready.
    pub woken: MonoNs,
    /// The task's page faults between the switch to it and the response.
    pub page_faults: u64,
    /// How much of the wakeup latency was stolen by the clock of the CPU, nanoseconds. May be more than
    /// all of it, in a record that is damaged.
    pub stolen_ns: u64,
    /// The CPU's clock of stolen time when the task had answered, nanoseconds; 0 if there is none.
    pub steal_after_ns: u64,
    /// What quotas of CPU time took of the wait, nanoseconds; `None` if that is not known.
    pub quota_ns: Option<u64>,
    /// When interrupts last went off, and on again, before the timer's came, where that is measured.
    pub irqs_off: Option<(MonoNs, MonoNs)>,
    /// Whether real-time tasks were throttled when it began.
    pub throttled: bool,
    /// From when on they may have been, if the CPU that held them back is one that the task was moved to.
    pub throttled_from: Option<MonoNs>,
    /// The softirq that the CPU was in when it began, by its number.
    pub softirq: Option<u32>,
    /// The idle state that the CPU was in when it began, by its number.
    pub idle_state: Option<u32>,
    /// What the interrupt broke into, where somebody looked.
    pub interrupted: Option<Interrupted>,
    /// The task that ran on the CPU that it was to wait for, if the stimulus was on another one.
    pub ran_there: Option<KernelTask>,
    /// Who gave up the CPU in the end, where somebody looked.
    pub given_up: Option<GivenUpAt>,
    /// What the CPU went through from some time before it was due, in the order in which it was
    /// written down.
    pub events: Vec<KernelEvent>,
    /// Events that are missing among these.
    pub lost: u32,
    /// Although events were lost: from when on every switch is known, if there is such a time.
    pub known_switches: Option<KnownSwitches>,
    /// Who ran on the CPU while the task waited for it.
    pub ran: KernelRunTimes,
    /// The time that was taken from tasks on that CPU, from the begin of the wait until the record of it was made: that
    /// is at the response, or later.
    pub taken: Taken,
}

/// How long tasks ran on a CPU, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelRunTimes {
    /// Those that are known.
    pub tasks: Vec<(KernelTask, u64)>,
    /// All ordinary tasks together, these among them.
    pub ordinary_ns: u64,
    /// All with a real-time or deadline policy or priority.
    pub urgent_ns: u64,
}

/// The stack of a thread's own program: whose it is, and its addresses, innermost first.
pub type UserStack<'a> = (u32, &'a [u64]);

impl KernelWakeup {
    /// The CPU that the task waited for first.
    pub fn first_cpu(&self) -> u32 {
        let moved = self.events.iter().find_map(|event| match event.payload {
            Payload::Moved { from, .. } => Some(from),
            _ => None,
        });
        moved.unwrap_or(self.cpu)
    }

    /// How late it was, nanoseconds.
    pub fn latency_ns(&self) -> u64 {
        self.marks.response.0.saturating_sub(self.marks.due.0)
    }

    /// How much of that was stolen, by the clock of the CPU, nanoseconds.
    pub fn stolen_of_it_ns(&self) -> u64 {
        self.stolen_ns.min(self.latency_ns())
    }

    /// How late it was without stolen time, nanoseconds.
    pub fn net_ns(&self) -> u64 {
        self.latency_ns() - self.stolen_of_it_ns()
    }

    /// The stacks of programs, for somebody who can name their functions.
    pub fn user_stacks(&self) -> impl Iterator<Item = UserStack<'_>> {
        let interrupted = self.interrupted.iter().map(|i| (i.task.pid, &i.user_stack[..]));
        let last = self.given_up.iter().map(|last| (last.pid, &last.user_stack[..]));
        interrupted.chain(last)
    }
}

/// What was to wake a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WakeupSource {
    /// Not known.
    #[default]
    Unknown,
    /// Its timer.
    Timer,
    /// Another task.
    Task(KernelTask),
    /// An interrupt that came while this task ran.
    Interrupt(KernelTask),
    /// Nothing: it was due while the task was still awake, and no timer was set.
    Awake,
}

/// A task as the kernel describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTask {
    /// The number of the thread.
    pub pid: u32,
    /// The kernel's priority: -1 for deadline, 0 to 98 for real-time, 100 to 139 for others.
    pub prio: i32,
    /// The number of the policy, as in include/uapi/linux/sched.h.
    pub policy: u32,
    /// Its name up to the first zero byte.
    pub comm: [u8; 16],
}

impl KernelTask {
    /// The same with its name as text, and its policy by its name.
    pub fn decoded(&self) -> Task {
        let &Self { pid, prio, policy, ref comm } = self;
        Task { pid, comm: text(comm), policy: policy_of(policy), prio }
    }
}

/// Numbers of include/uapi/linux/sched.h.
pub(crate) fn policy_of(number: u32) -> Policy {
    match number {
        0 => Policy::Other,
        1 => Policy::Fifo,
        2 => Policy::RoundRobin,
        3 => Policy::Batch,
        5 => Policy::Idle,
        6 => Policy::Deadline,
        7 => Policy::Ext,
        other => Policy::Unknown(other),
    }
}

/// What an interrupt broke into, or what the waker was at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupted {
    /// The task that ran; of idle the number alone, which is 0.
    pub task: KernelTask,
    /// The mode of the CPU. For the idle task, [`KernelWakeup::idle_state`] says which state it was in.
    pub mode: Mode,
    /// As the kernel counts, with what interrupts and tracing add; 0 if that is not known.
    pub preempt_count: u32,
    /// Where it went on; 0 if that is not known.
    pub ip: u64,
    /// The code up to there, if that is the kernel's; 0 if it was not read.
    pub code: [u8; CODE_BYTES],
    /// On arm64.
    pub link: Option<Link>,
    /// The kernel's stack, innermost first; may begin with the interrupt's own functions, and those of
    /// tracing.
    pub stack: Vec<u64>,
    /// The stack of the task's program, innermost first.
    pub user_stack: Vec<u64>,
}

/// What arm64's register for return addresses held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The address in it.
    pub address: u64,
    /// The instruction before that address; 0 if it cannot be read.
    pub before: u32,
}

/// Who gave up the CPU, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUpAt {
    /// Which thread.
    pub pid: u32,
    /// Its kernel stack, innermost first; may begin with functions of tracing and of the scheduler.
    pub stack: Vec<u64>,
    /// The stack of its program, innermost first.
    pub user_stack: Vec<u64>,
}

/// Something seen on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    /// When.
    pub at: MonoNs,
    /// What the CPU's clock of stolen time read then, nanoseconds; 0 if there is none.
    pub steal_ns: u64,
    /// What, and what belongs to it.
    pub payload: Payload,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A hard interrupt begins.
    IrqEntry {
        /// Which one.
        irq: Irq,
        /// The name of its line, or the reason of an interrupt from another CPU; cut at 15 bytes.
        name: [u8; 16],
    },
    /// A hard interrupt ends.
    IrqExit(Irq),
    /// A timer's function begins.
    TimerEntry {
        /// Its address.
        function: u64,
        /// How many timers in a row call it.
        count: u32,
    },
    /// The function of the last of them ends.
    TimerExit,
    /// The softirq of this number begins.
    SoftirqEntry(u32),
    /// The softirq of this number ends.
    SoftirqExit {
        /// Its number.
        number: u32,
        /// Whether more are pending, and the thread for these sleeps.
        pending: bool,
    },
    /// The handler of an NMI ends.
    Nmi {
        /// Its address.
        handler: u64,
        /// How long it took, nanoseconds.
        duration_ns: u64,
    },
    /// The CPU is switched to another task.
    Switch(Switch),
    /// The task is moved to another CPU, whose events follow: see [`joined`](crate::joined).
    Moved {
        /// The CPU that it waited for.
        from: u32,
        /// The CPU that it waits for now.
        to: u32,
    },
    /// The scheduler is entered.
    SchedEntry,
    /// The CPU waits for a lock.
    ContentionBegin,
    /// It has got it.
    ContentionEnd,
    /// The tracer itself ends that had the CPU.
    Tracer {
        /// For how long, nanoseconds.
        duration_ns: u64,
    },
    /// The thread that runs gives back a priority that it was lent, and had until then.
    Deboost(SwitchedFrom),
    /// An event of a kind that nobody knows.
    Unknown,
}

/// A switch of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Who ran.
    pub prev: SwitchedFrom,
    /// Who runs now.
    pub next: KernelTask,
    /// Whether real-time tasks are throttled.
    pub throttled: bool,
}

/// The task that runs until a switch, or gives back a priority: its name is known from elsewhere, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchedFrom {
    /// The number of the thread.
    pub pid: u32,
    /// As [`KernelTask::prio`].
    pub prio: i32,
    /// As [`KernelTask::policy`].
    pub policy: u32,
}

/// A hard interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Irq {
    /// One that has a line, of this number.
    Line(u32),
    /// One that the processor has a vector for.
    Vector(Vector),
}

/// Interrupts that have no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Vector {
    LocalTimer = 1,
    Reschedule,
    CallFunction,
    CallFunctionSingle,
    IrqWork,
    /// From another CPU, on arm64, whose reason is its name.
    Ipi,
    Thermal,
    Threshold,
    DeferredError,
    Error,
    Spurious,
    PlatformIpi,
    /// Any other.
    Other,
}

impl Vector {
    /// All that have a number, in the order of these, which begin with 1.
    pub const ALL: [Self; 12] = [
        Self::LocalTimer,
        Self::Reschedule,
        Self::CallFunction,
        Self::CallFunctionSingle,
        Self::IrqWork,
        Self::Ipi,
        Self::Thermal,
        Self::Threshold,
        Self::DeferredError,
        Self::Error,
        Self::Spurious,
        Self::PlatformIpi,
    ];

    /// The one of this number.
    pub fn of(number: u32) -> Self {
        Self::ALL.into_iter().find(|&vector| vector as u32 == number).unwrap_or(Self::Other)
    }
}
