//! What a schedule is made of.

use std::fmt;

use super::state::State;
use crate::image::{BudgetId, CpuId, Image, LOCAL_TIMER, Op, RESCHEDULE, SourceId, TaskId};
use crate::kernel::{Kernel, TaskState};

/// One decision of a schedule: who makes the next step, and what comes of all that chance decides in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Who.
    pub step: Step,
    /// Answers to what the kernel asks in this step, in the order of asking: which fair task is first,
    /// how often a loop runs, which sleep has ended. Mostly there are none.
    pub answers: Box<[u8]>,
}

/// Who makes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A CPU goes on.
    Run(CpuId),
    /// An interrupt arrives at a CPU, which takes it.
    Arrive(CpuId, SourceId),
}

impl Step {
    /// Where.
    pub fn cpu(self) -> CpuId {
        match self {
            Self::Run(cpu) | Self::Arrive(cpu, _) => cpu,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Step::Run(cpu) => write!(f, "{}", cpu.0)?,
            Step::Arrive(cpu, source) => write!(f, "{}!{}", cpu.0, source.0)?,
        }
        self.answers.iter().try_for_each(|answer| write!(f, ":{answer}"))
    }
}

/// A task that sleeps until a timer or a device ends its sleep: where, and which.
pub(super) type Sleeper = (TaskId, CpuId, SourceId);

/// All steps that can be next.
pub(super) fn possible(image: &Image, state: &State, into: &mut Vec<Step>) {
    into.clear();
    let kernel = &state.kernel;
    for cpu in (0..usize::from(image.cpus)).map(CpuId::at) {
        if can_run(image, kernel, cpu) {
            into.push(Step::Run(cpu));
        }
        for source in (0..image.sources.len()).map(SourceId::at) {
            if kernel.takes(image, cpu, source) && can_arrive(image, state, cpu, source) {
                into.push(Step::Arrive(cpu, source));
            }
        }
    }
}

pub(super) fn is_possible(image: &Image, state: &State, step: Step) -> bool {
    match step {
        Step::Run(cpu) => can_run(image, &state.kernel, cpu),
        Step::Arrive(cpu, source) => {
            state.kernel.takes(image, cpu, source) && can_arrive(image, state, cpu, source)
        }
    }
}

/// Whether a CPU does something if nothing comes: one that idles with nobody to run, or that spins for
/// a lock which is not free, does not.
fn can_run(image: &Image, kernel: &Kernel, cpu: CpuId) -> bool {
    let Some(top) = kernel.top(cpu) else {
        return kernel.cpus()[cpu.index()].need_resched != crate::kernel::NeedResched::No;
    };
    match top.op(image) {
        Some(Op::Acquire(lock)) if top.spins => kernel.locks()[lock.index()].holder == Some(cpu),
        _ => true,
    }
}

/// Whether there is a reason for an interrupt. One with arrivals of its own can always come. The timer's
/// comes for a sleep or the tick; a handler that then finds no reason has come too late, which is legal.
pub(super) fn can_arrive(image: &Image, state: &State, cpu: CpuId, source: SourceId) -> bool {
    if source == RESCHEDULE {
        return state.is_sent(cpu);
    }
    let described = &image.sources[source.index()];
    let comes_here = described.cpu.is_none_or(|bound| bound == cpu);
    let ends_sleep = || {
        let here = |&(_, on, by): &Sleeper| on == cpu && by == source;
        sleepers(image, &state.kernel).any(|sleeper| here(&sleeper))
    };
    described.arrivals.is_some() && comes_here
        || source == LOCAL_TIMER && ticks(image, &state.kernel, cpu)
        || source == LOCAL_TIMER && used_up(image, &state.kernel).next().is_some()
        || ends_sleep()
}

/// Budgets that are used up on some CPU: a timer refills them.
pub(super) fn used_up<'k>(
    image: &'k Image,
    kernel: &'k Kernel,
) -> impl Iterator<Item = BudgetId> + 'k {
    let all = (0..image.budgets.len()).map(BudgetId::at);
    all.filter(|budget| kernel.cpus().iter().any(|cpu| cpu.throttled & (1 << budget.0) != 0))
}

/// Whether the tick can come: not on an idle CPU.
pub(super) fn ticks(image: &Image, kernel: &Kernel, cpu: CpuId) -> bool {
    image.tick_ns != 0 && kernel.cpus()[cpu.index()].current.is_some()
}

/// Tasks that sleep until something reports the end of a time.
pub(super) fn sleepers<'k>(
    image: &'k Image,
    kernel: &'k Kernel,
) -> impl Iterator<Item = Sleeper> + 'k {
    kernel.tasks().iter().enumerate().filter_map(|(index, task)| {
        if task.state != TaskState::Sleeping(None) {
            return None;
        }
        let source = match task.frame.op(image) {
            Some(Op::Sleep(_, source)) => source,
            Some(Op::SleepOnGrid) => LOCAL_TIMER,
            _ => return None,
        };
        Some((TaskId::at(index), task.cpu, source))
    })
}
