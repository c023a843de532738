//! Rules that hold in each state.

use super::machine::need;
use super::state::State;
use crate::image::{CpuId, Image, LockId, Op, TaskId};
use crate::kernel::{FrameKind, Kernel, NeedResched, TaskState, Violation};
use crate::rules::Rules;

/// How soon a set `need_resched` is honoured under a preemption model.
///
/// All models: the CPU goes to user mode only through the scheduler then. A model that lets kernel code
/// be left anywhere promises more: no operation of the kernel follows while `need_resched` is set, the
/// preempt count 0 and interrupts on, but where the interrupt that tells the CPU is still on its way.
/// Two places keep that promise, `preempt_enable` and the return from an interrupt: a model that has
/// either has made it. What is lazy has to wait for the tick or for user mode, and is promised no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Before user mode.
    UserMode,
    /// Before the next operation of the kernel that can be preempted.
    AtOnce,
}

impl Promise {
    pub(super) fn of(rules: Rules) -> Self {
        if rules.preempt_enable_schedules || rules.interrupt_return_schedules {
            Self::AtOnce
        } else {
            Self::UserMode
        }
    }

    /// Whether a CPU that has just got through the check before user mode ought not to.
    pub(super) fn in_user_mode(image: &Image, state: &State, cpu: CpuId) -> Option<Violation> {
        let is_user = matches!(state.kernel.top(cpu)?.op(image), Some(Op::User(_)));
        let is_lost = is_user && need(&state.kernel, cpu) != NeedResched::No;
        let waits = most_urgent_ready(image, &state.kernel, cpu)?;
        is_lost.then_some(Violation::LostNeedResched(waits))
    }
}

/// The first rule that a state breaks, and where.
pub(super) fn broken_rule(image: &Image, state: &State) -> Option<(Violation, CpuId)> {
    let cpus = || (0..usize::from(image.cpus)).map(CpuId::at);
    let lost = cpus().find_map(|cpu| Some((lost_need(image, state, cpu)?, cpu)));
    lost.or_else(|| lost_wakeup(&state.kernel)).or_else(|| {
        cpus().find_map(|cpu| spins_for_ever(image, &state.kernel, cpu)).or_else(|| {
            (0..image.tasks.len())
                .find_map(|task| waits_for_itself(&state.kernel, TaskId::at(task)))
        })
    })
}

/// `need_resched` is set for each CPU where somebody more urgent is ready, and honoured in time.
fn lost_need(image: &Image, state: &State, cpu: CpuId) -> Option<Violation> {
    let kernel = &state.kernel;
    let on = &kernel.cpus()[cpu.index()];
    let schedules = |kind| matches!(kind, FrameKind::Scheduler { .. });
    if on.ready.is_empty() || on.frames.iter().any(|frame| schedules(frame.kind)) {
        return None;
    }
    let first = most_urgent_ready(image, kernel, cpu)?;
    let lost = Some(Violation::LostNeedResched(first));
    // Fair tasks share: who is first among them is not a matter of urgency.
    let class = |task: TaskId| kernel.tasks()[task.index()].prio.min(FAIR);
    let is_more_urgent = on.current.is_none_or(|current| class(first) < class(current));
    if is_more_urgent && on.need_resched == NeedResched::No {
        return lost;
    }
    let may_be_left = on.current.is_some()
        && on.frames.is_empty()
        && on.count == 0
        && !kernel.irqs_off(cpu)
        && !state.is_sent(cpu);
    let is_due = on.need_resched == NeedResched::Now && may_be_left;
    (is_due && Promise::of(image.rules) == Promise::AtOnce).then_some(lost).flatten()
}

/// The least priority of the fair class, as the kernel counts.
const FAIR: i16 = 100;

fn most_urgent_ready(image: &Image, kernel: &Kernel, cpu: CpuId) -> Option<TaskId> {
    let ready = kernel.cpus()[cpu.index()].ready.iter().copied();
    let may_run = ready.filter(|&task| kernel.may_run(image, cpu, task));
    may_run.min_by_key(|task| kernel.tasks()[task.index()].prio)
}

/// No task sleeps until an event that is announced already: it was to look after it had prepared.
fn lost_wakeup(kernel: &Kernel) -> Option<(Violation, CpuId)> {
    let lost = |task: &crate::kernel::SimulatedTask| match task.state {
        TaskState::Sleeping(Some(event)) => !task.is_queued && kernel.is_announced(event),
        _ => false,
    };
    let at = kernel.tasks().iter().position(lost)?;
    Some((Violation::LostWakeup(TaskId::at(at)), kernel.tasks()[at].cpu))
}

/// CPUs that spin for each other's locks. What spins is on top of each, so that nothing below it can
/// give a lock back; interrupts that come on top do not hold any.
fn spins_for_ever(image: &Image, kernel: &Kernel, cpu: CpuId) -> Option<(Violation, CpuId)> {
    let mut at = cpu;
    for _ in kernel.cpus() {
        let lock = spins_for(image, kernel, at)?;
        at = kernel.locks()[lock.index()].holder?;
        if at == cpu {
            return Some((Violation::Deadlock, cpu));
        }
    }
    None
}

fn spins_for(image: &Image, kernel: &Kernel, cpu: CpuId) -> Option<LockId> {
    let top = kernel.top(cpu)?;
    match top.op(image) {
        Some(Op::Acquire(lock)) if top.spins => {
            (kernel.locks()[lock.index()].holder != Some(cpu)).then_some(lock)
        }
        _ => None,
    }
}

/// Tasks that wait for each other's locks.
fn waits_for_itself(kernel: &Kernel, task: TaskId) -> Option<(Violation, CpuId)> {
    let mut at = task;
    for _ in kernel.tasks() {
        let TaskState::Blocked(lock) = kernel.tasks()[at.index()].state else { return None };
        at = kernel.locks()[lock.index()].owner?;
        if at == task {
            return Some((Violation::Deadlock, kernel.tasks()[task.index()].cpu));
        }
    }
    None
}
