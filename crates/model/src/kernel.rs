//! The mechanism: what a kernel does with its operations, one by one, without time.
//!
//! [`Kernel::step`] executes one operation of a CPU. What takes time is handed to the caller, who
//! says with [`Kernel::finish`] that it is over, or with [`Kernel::pause`] that an interrupt came
//! first. All state is here, so that it can be copied, compared and hashed: that is what the checker
//! does with it.

mod bandwidth;
mod bottom_half;
pub mod frame;
mod interrupt;
mod lock;
mod schedule;
mod step;
mod violation;

use crate::image::{
    BudgetId, CpuId, EventId, Image, LengthId, LockId, Op, SourceId, StackId, TaskId, VariableId,
};
use crate::trace::Transition;

pub use frame::{Frame, FrameKind, Stage};
pub use violation::Violation;

/// The preempt count's unit for softirqs, as in include/linux/preempt.h.
pub(crate) const SOFTIRQ_UNIT: u32 = 1 << 8;
/// All bits of that.
const SOFTIRQ_BITS: u32 = 0xff00;
/// That for hard interrupts.
pub const HARDIRQ_UNIT: u32 = 1 << 16;
/// That for NMIs.
pub(crate) const NMI_UNIT: u32 = 1 << 20;

/// What the kernel asks whoever drives it: everything that time or chance decides.
pub trait Environment {
    /// How often a loop runs.
    fn count(&mut self, count: crate::image::CountId) -> u32;
    /// Something has happened.
    fn observe(&mut self, cpu: CpuId, what: Transition);
    /// Whether [`Self::place`] is wanted.
    fn wants_places(&self) -> bool {
        false
    }
    /// Where a CPU is, just before [`Transition::Taken`], [`Transition::IrqsOn`] and
    /// [`Transition::Switch`], and where softirqs are enabled; of a switch where the task is that is left.
    fn place(&mut self, _cpu: CpuId, _at: Running) {}

    /// A task that sleeps, or is about to, is to be made ready by what runs on this CPU, which is there.
    fn wakes(&mut self, _cpu: CpuId, _task: TaskId, _at: Running) {}
    /// A task is about to be taken from the run queue of another CPU, which is at this and hears nothing
    /// of it.
    fn pulls_from(&mut self, _other: CpuId, _at: impl FnOnce() -> Running) {}
    /// A fair task joins the run queue of a CPU, where these fair tasks are already.
    fn joins(&mut self, _on: CpuId, _task: TaskId, _others: impl Iterator<Item = TaskId>) {}
    /// Which of several fair tasks of a CPU runs first: its place in `ready`.
    fn first_of_fair(&mut self, cpu: CpuId, ready: &[TaskId]) -> usize;
    /// Whether a fair task that was woken is to run on a CPU before the one that runs there.
    fn fair_preempts(&mut self, on: CpuId, running: TaskId, woken: TaskId) -> bool;
    /// Which of two tasks has the earlier deadline.
    fn is_earlier(&self, one: TaskId, other: TaskId) -> bool;
    /// A task is about to sleep for so long until this source reports it. On its grid, where there is no
    /// length. `false` if that time is over, so that it does not sleep.
    fn sleep(&mut self, cpu: CpuId, task: TaskId, how: Sleep) -> bool;
    /// A task whose sleep until this source has ended: each is returned once.
    fn next_sleeper(&mut self, cpu: CpuId, source: SourceId) -> Option<TaskId>;
    /// Whether the tick of this CPU is due; once for each tick.
    fn take_tick(&mut self, cpu: CpuId) -> bool;
    /// Whether the task that runs has used its slice up, at each of its ticks; another one begins then.
    /// Nothing comes of it unless others wait.
    fn has_used_its_slice(&mut self, cpu: CpuId, task: TaskId, others_wait: bool) -> bool;
    /// Whether a budget is used up on a CPU. `runs`: by the task that runs there, and since it was last asked
    /// about.
    fn is_used_up(&mut self, cpu: CpuId, budget: BudgetId, runs: bool) -> bool;
    /// The task that runs on a CPU goes on with a budget that is used up there.
    fn runs_over(&mut self, _cpu: CpuId, _budget: BudgetId) {}
    /// A budget whose period ends on this CPU, once for each.
    fn next_period(&mut self, cpu: CpuId) -> Option<BudgetId>;
    /// Whether those that used it up on this CPU have got some in the new period.
    fn is_refilled(&mut self, cpu: CpuId, budget: BudgetId) -> bool;
    /// The interrupt that makes `cpu` call the scheduler is on its way.
    fn send_reschedule(&mut self, cpu: CpuId);
    /// A CPU that spins has got its lock.
    fn granted(&mut self, cpu: CpuId);
    /// A rule was broken. The simulation ends with it.
    fn violated(&mut self, cpu: CpuId, what: Violation);
}

/// How a task sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Until its next expiry.
    OnGrid,
    /// For so long, until this source reports it.
    For(LengthId, SourceId),
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It took no time.
    Instant,
    /// It takes so long.
    Takes(LengthId),
    /// It takes what was left of it when an interrupt came, nanoseconds.
    Resumes(u64),
    /// It takes as long as leaving the idle state does.
    LeavesIdle,
    /// The CPU has nothing to do until an interrupt comes.
    Idle,
    /// The CPU spins until [`Environment::granted`].
    Spins,
}

/// Whether somebody is to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NeedResched {
    /// Nobody.
    #[default]
    No,
    /// At the tick or on the way to user mode.
    Lazy,
    /// At once.
    Now,
}

/// What a task is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// It runs or could run.
    #[default]
    Running,
    /// It sleeps, or is about to, until something wakes it.
    Sleeping(Option<EventId>),
    /// It waits for a lock.
    Blocked(LockId),
}

/// A task while it is simulated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SimulatedTask {
    /// Where it is in its code.
    pub frame: Frame,
    /// What it is at.
    pub state: TaskState,
    /// Whether it is on a run queue, or runs.
    pub is_queued: bool,
    /// On which CPU it runs, or ran last.
    pub cpu: CpuId,
    /// Its priority as the kernel counts: -1 for deadline, 0 to 98 for real-time, 100 to 139 for others.
    pub prio: i16,
    /// The priority that it has of its own.
    pub own_prio: i16,
    /// The preempt count that it had when it was switched away from.
    pub count: u32,
    /// How deep in read-side sections of RCU it is.
    pub rcu_depth: u32,
    /// The softirq that it executes as its own code: on RT.
    pub softirq: Option<u8>,
    /// How often it has disabled softirqs: on RT, where that is no part of the preempt count.
    pub bh_depth: u16,
    /// Where it goes on once it has executed the softirqs that it has enabled: on RT.
    pub after_softirqs: Option<Box<Frame>>,
    /// Whether it stays on its CPU, though it may run on any.
    pub is_bound: bool,
    /// Sleeping locks that it owns.
    pub owns: Vec<LockId>,
}

/// A CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cpu {
    /// Who runs; `None` is idle.
    pub current: Option<TaskId>,
    /// Budgets that are used up here: a bit for each.
    pub throttled: u32,
    /// What interrupted that, the innermost last; the scheduler is one of these.
    pub frames: Vec<Frame>,
    /// The preempt count.
    pub count: u32,
    /// Whether somebody is to run.
    pub need_resched: NeedResched,
    /// Interrupts that have arrived and were not taken: a bit for each source.
    pub pending: u64,
    /// Softirqs that were raised: a bit for each.
    pub softirqs: u16,
    /// How often tasks of this CPU have disabled them: on RT.
    pub bh_sections: u16,
    /// Tasks that could run, in the order in which they became ready.
    pub ready: Vec<TaskId>,
    /// Whom the scheduler has chosen, until it has switched.
    pub next: Option<TaskId>,
    /// Whether who ran could run on, until then.
    pub preempts: bool,
    /// Which variables are half-changed, and by how many at once.
    pub changes: Vec<u8>,
}

/// A spin lock and a sleeping lock in one: a scenario uses each lock in one way, under one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lock {
    /// The CPU that holds it, as a spin lock.
    pub holder: Option<CpuId>,
    /// CPUs that spin for it, the first first.
    pub spinners: Vec<CpuId>,
    /// The task that owns it, as a sleeping lock.
    pub owner: Option<TaskId>,
    /// Tasks that wait for it.
    pub waiters: Vec<TaskId>,
}

/// The state of a simulated kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    cpus: Vec<Cpu>,
    tasks: Vec<SimulatedTask>,
    locks: Vec<Lock>,
    /// Which events are announced.
    announced: Vec<bool>,
}

/// What a CPU is at: the answer to who has its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Which task; `None` is idle.
    pub task: Option<TaskId>,
    /// Its priority, which may be lent, as the kernel counts; 120 of idle.
    pub prio: i16,
    /// What runs on top of it, or the task itself.
    pub kind: FrameKind,
    /// How far that has come.
    pub stage: Stage,
    /// The functions that it is in.
    pub stack: StackId,
    /// Whether it is in user mode.
    pub is_user: bool,
    /// Whether it is in a page fault.
    pub in_page_fault: bool,
    /// The preempt count.
    pub count: u32,
    /// Whether interrupts are off.
    pub irqs_off: bool,
    /// The softirq that the task executes as its own code: on RT.
    pub softirq: Option<u8>,
    /// Whether somebody else is to run.
    pub need_resched: NeedResched,
    /// The lock that the CPU spins for.
    pub spins_for: Option<LockId>,
}

impl Kernel {
    /// A kernel just booted: all tasks are ready, each on its CPU, those of any CPU in turn.
    pub fn new(image: &Image) -> Self {
        let cpus = usize::from(image.cpus);
        let new_cpu = || Cpu { changes: vec![0; image.variables.len()], ..Cpu::default() };
        let mut kernel = Self {
            cpus: (0..cpus).map(|_| new_cpu()).collect(),
            tasks: Vec::with_capacity(image.tasks.len()),
            locks: vec![Lock::default(); image.locks.len()],
            announced: vec![false; image.events.len()],
        };
        for (index, task) in image.tasks.iter().enumerate() {
            let cpu = task.cpu.unwrap_or(CpuId::at(index % cpus));
            let prio = task.policy.prio();
            kernel.tasks.push(SimulatedTask {
                frame: Frame::new(FrameKind::Task, task.code),
                state: TaskState::Running,
                is_queued: true,
                cpu,
                prio,
                own_prio: prio,
                count: 0,
                rcu_depth: 0,
                softirq: None,
                bh_depth: 0,
                after_softirqs: None,
                is_bound: false,
                owns: Vec::new(),
            });
            kernel.cpus[cpu.index()].ready.push(TaskId::at(index));
            kernel.cpus[cpu.index()].need_resched = NeedResched::Now;
        }
        kernel
    }

    /// All CPUs.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// All tasks.
    pub fn tasks(&self) -> &[SimulatedTask] {
        &self.tasks
    }

    /// All locks.
    pub fn locks(&self) -> &[Lock] {
        &self.locks
    }

    /// Whether an event was announced, and nobody has taken that.
    pub(crate) fn is_announced(&self, event: EventId) -> bool {
        self.announced[event.index()]
    }

    /// What runs on a CPU: what interrupted its task last, or the task; `None` if it is idle.
    pub fn top(&self, cpu: CpuId) -> Option<&Frame> {
        let cpu = &self.cpus[cpu.index()];
        cpu.frames.last().or_else(|| cpu.current.map(|task| &self.tasks[task.index()].frame))
    }

    fn top_mut(&mut self, cpu: CpuId) -> Option<&mut Frame> {
        let cpu = &mut self.cpus[cpu.index()];
        let current = cpu.current;
        match cpu.frames.last_mut() {
            Some(frame) => Some(frame),
            None => current.map(|task| &mut self.tasks[task.index()].frame),
        }
    }

    /// What a CPU is at.
    pub fn running(&self, image: &Image, cpu: CpuId) -> Running {
        let state = &self.cpus[cpu.index()];
        let top = self.top(cpu);
        let op = top.and_then(|frame| frame.op(image));
        Running {
            task: state.current,
            prio: state.current.map_or(120, |task| self.tasks[task.index()].prio),
            kind: top.map_or(FrameKind::Task, |frame| frame.kind),
            stage: top.map_or(Stage::Code, |frame| frame.stage),
            stack: top.map_or(StackId(0), |frame| frame.stack(image)),
            is_user: matches!(op, Some(Op::User(_))),
            in_page_fault: matches!(op, Some(Op::PageFault(_))),
            count: state.count,
            irqs_off: self.irqs_off(cpu),
            softirq: state.current.and_then(|task| self.tasks[task.index()].softirq),
            need_resched: state.need_resched,
            spins_for: match op {
                Some(Op::Acquire(lock)) if top.is_some_and(|frame| frame.spins) => Some(lock),
                _ => None,
            },
        }
    }

    /// Whether a CPU takes no interrupts but NMIs.
    pub fn irqs_off(&self, cpu: CpuId) -> bool {
        let Some(top) = self.top(cpu) else { return false };
        match top.kind {
            FrameKind::Scheduler { .. } => top.stage != Stage::Code,
            FrameKind::Interrupt(_) => true,
            FrameKind::Softirq { .. } | FrameKind::Task => top.irq_depth > 0,
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    fn task(&mut self, task: TaskId) -> &mut SimulatedTask {
        &mut self.tasks[task.index()]
    }

    fn set_softirq(&mut self, cpu: CpuId, softirq: Option<u8>) {
        if let Some(task) = self.cpus[cpu.index()].current {
            self.task(task).softirq = softirq;
        }
    }

    fn begin_change(&mut self, cpu: CpuId, variable: VariableId, env: &mut impl Environment) {
        let changes = &mut self.cpu(cpu).changes[variable.index()];
        *changes = changes.saturating_add(1);
        if *changes > 1 {
            env.violated(cpu, Violation::HalfChanged(variable));
        }
    }

    /// Where no change has begun, the task has been moved to this CPU in the middle of one.
    fn end_change(&mut self, cpu: CpuId, variable: VariableId, env: &mut impl Environment) {
        let changes = &mut self.cpu(cpu).changes[variable.index()];
        match changes.checked_sub(1) {
            Some(left) => *changes = left,
            None => env.violated(cpu, Violation::HalfChanged(variable)),
        }
    }
}

/// The least priority of the fair class.
const FIRST_FAIR_PRIO: i16 = 100;
