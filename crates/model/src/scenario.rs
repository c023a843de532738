//! What is simulated: a machine, its interrupts, its tasks, and the paths through its kernel.

pub(crate) mod draw;
pub mod length;
pub mod limits;
pub mod read;
mod shipped;
mod words;
mod write;

pub use length::Length;
pub use read::ReadError;
pub use shipped::{SHIPPED, Shipped};
pub use words::softirq_name;

use wakescope_core::percentile::Percentile;
use wakescope_core::run::TimeDomain;

/// A machine and what runs on it. Names are unique within their kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// What it is called: the stem of its file.
    pub name: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// What was published about the same question, a line each, to stand beside the figures. They
    /// change nothing of the simulation.
    pub published: Vec<String>,
    /// The same as numbers, of one kernel each. They change nothing either.
    pub measured: Vec<Measured>,
    /// The hardware.
    pub machine: Machine,
    /// How the kernel is built and set.
    pub kernel: Settings,
    /// How long the kernel's own steps take.
    pub costs: Costs,
    /// Paths that tasks and handlers run, by name.
    pub paths: Vec<Path>,
    /// Groups of tasks with a quota.
    pub groups: Vec<Group>,
    /// All tasks but the idle ones.
    pub tasks: Vec<ScenarioTask>,
    /// All interrupts but the timer's and those between CPUs.
    pub interrupts: Vec<Interrupt>,
}

/// What somebody measured and published of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The preemption model that it corresponds to: `none`.
    pub preempt: String,
    /// What the text calls the kernel.
    pub kernel: String,
    /// Which time the figures are in.
    pub time_domain: TimeDomain,
    /// How many samples it had.
    pub samples: u64,
    /// The largest, nanoseconds.
    pub max_ns: Option<u64>,
    /// The mean, nanoseconds.
    pub mean_ns: Option<u64>,
    /// The standard deviation, nanoseconds.
    pub stdev_ns: Option<u64>,
    /// Percentiles, the lowest first, each with its nanoseconds.
    pub percentiles: Vec<(Percentile, u64)>,
    /// How many buckets of 0.1 ms were not empty.
    pub buckets: Option<u64>,
    /// Thresholds in nanoseconds, and what share of the samples lies below each, in percent.
    pub below: Vec<(u64, f64)>,
}

/// The hardware, and how the kernel keeps time on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// 1 to 64.
    pub cpus: u32,
    /// Ticks a second on each CPU that is not idle; 0 for none.
    pub tick_hz: u32,
    /// Idle states, the lightest first. None: a CPU with nothing to do polls.
    pub idle_states: Vec<IdleState>,
}

impl Default for Machine {
    fn default() -> Self {
        Self { cpus: 1, tick_hz: 250, idle_states: Vec::new() }
    }
}

/// A state that an idle CPU may sleep in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdleState {
    /// As the kernel calls it: `C6`.
    pub name: String,
    /// How long it takes to leave, nanoseconds.
    pub exit_ns: u64,
    /// It is chosen where the next timer is at least so far away, nanoseconds.
    pub residency_ns: u64,
}

/// How the kernel is built and set, beside its preemption model.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whether `local_bh_disable` of a real-time kernel takes a lock of the CPU: before 6.18 always, since
    /// then with `CONFIG_PREEMPT_RT_NEEDS_BH_LOCK`.
    pub bh_lock: bool,
    /// How long real-time tasks of a CPU may run; `None` for as long as they want.
    pub rt: Option<RtBudget>,
}

/// What real-time tasks of a CPU may take of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtBudget {
    /// `sched_rt_runtime_us`, in nanoseconds.
    pub runtime_ns: u64,
    /// `sched_rt_period_us`, in nanoseconds.
    pub period_ns: u64,
    /// Whether they give way only to ordinary tasks that wait for the CPU, as from 6.12 on, where nothing
    /// in the kernel shows it. Else they are stopped even where nobody else runs.
    pub fair_server: bool,
}

/// Tasks of the fair class that share a quota of CPU time: a cgroup with `cpu.max`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// What tasks call it.
    pub name: String,
    /// How long they may run in each period, on all CPUs together, nanoseconds.
    pub quota_ns: u64,
    /// The period, nanoseconds.
    pub period_ns: u64,
}

impl Default for Settings {
    /// As Linux 6.1, with `sched_rt_runtime_us` of -1.
    fn default() -> Self {
        Self { bh_lock: true, rt: None }
    }
}

/// How long the kernel's own steps take.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// From the interrupt's arrival at a CPU that takes it, to the first line of its handler.
    pub interrupt_entry: Length,
    /// From the end of the handler to where the CPU goes on.
    pub interrupt_exit: Length,
    /// The function of a timer that wakes a task.
    pub timer_function: Length,
    /// The tick's own work.
    pub tick: Length,
    /// Choosing the next task, interrupts off.
    pub schedule: Length,
    /// Changing from one task to another, interrupts off.
    pub switch: Length,
    /// From the switch to a task to its own code, where it was woken in a system call.
    pub return_to_user: Length,
    /// An interrupt from one CPU to another: from the write to the arrival.
    pub ipi: Length,
}

impl Default for Costs {
    /// Those of a machine of about 2 GHz.
    fn default() -> Self {
        let ns = Length::Fixed;
        Self {
            interrupt_entry: ns(600),
            interrupt_exit: ns(200),
            timer_function: ns(400),
            tick: ns(1_000),
            schedule: ns(500),
            switch: ns(700),
            return_to_user: ns(300),
            ipi: ns(400),
        }
    }
}

/// A sequence of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// What tasks and interrupts call it.
    pub name: String,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A step of a path: a primitive of the kernel, or several in a function or a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The task's own code, in user mode.
    User(Length),
    /// Kernel code.
    Compute(Length),
    /// A function with this name, which is on the stack meanwhile.
    Call(String, Vec<Step>),
    /// The steps so many times.
    Repeat(Count, Vec<Step>),
    /// `spin_lock`, `spin_unlock` and their variants.
    Lock(LockKind, String),
    /// Gives back what [`Step::Lock`] took.
    Unlock(LockKind, String),
    /// `preempt_disable`
    PreemptDisable,
    /// `preempt_enable`
    PreemptEnable,
    /// `local_irq_save`
    IrqSave,
    /// `local_irq_restore`
    IrqRestore,
    /// `local_bh_disable`
    BhDisable,
    /// `local_bh_enable`
    BhEnable,
    /// `rcu_read_lock`
    RcuReadLock,
    /// `rcu_read_unlock`
    RcuReadUnlock,
    /// `cond_resched`: where today's kernels without full preemption ask whether somebody is to run.
    CondResched,
    /// A preemption point of the voluntary model only: `might_sleep`, or one of the low-latency patch.
    PreemptionPoint,
    /// The low-latency patch's preemption point in a loop that holds a spin lock.
    LockBreak(LockBreak),
    /// Sleeps for so long, until the interrupt of this name reports it (a disk's); or the timer's.
    Block {
        /// How long.
        length: Length,
        /// Which interrupt ends it; `None` for a timer.
        interrupt: Option<String>,
    },
    /// Sleeps until this event is announced, and takes the announcement; does not sleep where it was already.
    Wait(String),
    /// Announces an event, and wakes who waits for it.
    Wake(String),
    /// `set_current_state` before a wait for the event: from now on [`Step::Wake`] makes the task ready.
    PrepareToWait(String),
    /// The steps where the event was not announced.
    Unless(String, Vec<Step>),
    /// Takes the announcement back, and no longer waits.
    FinishWait(String),
    /// `schedule`: gives up the CPU, for good where the task is prepared to wait.
    Schedule,
    /// A softirq of this number is to run (0 to 9, as the kernel numbers them).
    RaiseSoftirq(u8),
    /// A page of the task is not there: so long in the kernel.
    PageFault(Length),
    /// The steps change this variable of the CPU: nobody else on the CPU may see it half-changed.
    PerCpu(String, Vec<Step>),
    /// One unit of the load's work is done.
    Work,
}

/// How often steps are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So often.
    Fixed(u32),
    /// Each number from the first to the second as likely as the others.
    Uniform(u32, u32),
}

/// Which lock functions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// `spin_lock`
    Spin,
    /// `spin_lock_irqsave`
    SpinIrq,
    /// `spin_lock_bh`
    SpinBh,
    /// `raw_spin_lock`: spins on RT, too.
    Raw,
    /// `raw_spin_lock_irqsave`
    RawIrq,
    /// `mutex_lock`: sleeps in every model.
    Mutex,
}

/// Where a long loop gives its lock back if somebody is to run: drop it, schedule, take it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockBreak {
    /// The lock, taken by `spin_lock`.
    pub lock: String,
    /// It looks at need_resched in each so many iterations: 1 or more.
    pub every: u32,
    /// Whether the innermost loop begins anew after it; else it goes on where it was.
    pub restart: bool,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioTask {
    /// Its name, 15 bytes at most.
    pub name: String,
    /// How it is scheduled.
    pub policy: TaskPolicy,
    /// Where it runs: `None` for any CPU.
    pub cpu: Option<u32>,
    /// Whose quota it uses.
    pub group: Option<String>,
    /// What it does.
    pub does: Does,
}

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskPolicy {
    /// The fair class, with a nice value of -20 to 19.
    Other(i8),
    /// First in, first out: priority 1 to 99.
    Fifo(u8),
    /// The same with a slice of 100 ms.
    RoundRobin(u8),
    /// The earliest deadline first: so many nanoseconds after each wakeup.
    Deadline(u64),
}

impl Default for TaskPolicy {
    fn default() -> Self {
        Self::Other(0)
    }
}

impl TaskPolicy {
    /// The priority as the kernel counts it: -1 for deadline, 0 to 98 for real-time, 100 to 139 for fair
    /// tasks. The least is the most urgent.
    pub fn prio(self) -> i16 {
        match self {
            Self::Deadline(_) => -1,
            Self::Fifo(priority) | Self::RoundRobin(priority) => 99 - i16::from(priority),
            Self::Other(nice) => 120 + i16::from(nice),
        }
    }
}

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// It sleeps on a grid and is measured: a sample for each wakeup.
    Probe {
        /// From one expiry to the next, picoseconds: 2048 Hz is no whole number of nanoseconds.
        period_ps: u64,
        /// The path that it runs after each wakeup, before it responds.
        path: Option<String>,
    },
    /// It runs a path again and again.
    Path(String),
}

impl Default for Does {
    fn default() -> Self {
        Self::Path(String::new())
    }
}

/// An interrupt, or something else that takes a CPU by force.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    /// As the kernel calls it: `eth0`.
    pub name: String,
    /// Of which kind.
    pub kind: InterruptKind,
    /// When it comes; `None` if only a [`Step::Block`] makes it come.
    pub arrivals: Option<Arrivals>,
    /// Where it comes; `None` for each CPU in turn. What a [`Step::Block`] makes come, comes where the task slept.
    pub cpu: Option<u32>,
    /// The path that its handler runs.
    pub handler: String,
}

/// Kinds of what takes a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InterruptKind {
    /// A device's. RT runs its handler in a thread.
    #[default]
    Device,
    /// One that no kernel runs in a thread.
    Unthreaded,
    /// It comes even where interrupts are off.
    Nmi,
    /// The hypervisor runs something else.
    Steal,
    /// The handler of a softirq of this number, which only [`Step::RaiseSoftirq`] makes run.
    Softirq(u8),
}

/// When interrupts come.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// One each so many nanoseconds, from a phase that the seed decides.
    Periodic(u64),
    /// At random, each so many nanoseconds on average.
    Poisson(u64),
    /// So many in a row with so many nanoseconds between them, and such bursts at random.
    Bursts {
        /// From the end of a burst to the next one, on average.
        every_ns: u64,
        /// How many there are in one.
        count: u32,
        /// Between those of one.
        gap_ns: u64,
    },
    /// At these times from the start, nanoseconds, in order; then no more.
    Recorded(Vec<u64>),
}
