//! Steps of the checked machine: from one state to the next.

use super::choice::{Choice, Step, is_possible, sleepers, ticks, used_up};
use super::invariant::{Promise, broken_rule};
use super::local::is_local;
use super::script::Script;
use super::state::State;
use crate::image::{CpuId, Image, Op, RESCHEDULE, TaskId};
use crate::kernel::{FrameKind, Kernel, NeedResched, Progress, Violation};

/// Operations without a choice that may follow each other: loops are short here, so that this is more
/// than any path has.
const MOST_LOCAL_STEPS: u32 = 1_000_000;

/// What came of a step, beside the state after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    /// A rule that was broken, and on which CPU.
    pub(super) violation: Option<(Violation, CpuId)>,
    /// A task that has got on: it has done work, gone to sleep, or come to the end of its path.
    pub(super) progress: Option<TaskId>,
    /// A task that drops a lock in a loop.
    pub(super) breaks_lock: Option<TaskId>,
}

/// Executes operations for somebody who wants to see each of them.
pub(super) trait Witness {
    /// A CPU is about to do something.
    fn before(&mut self, kernel: &Kernel, cpu: CpuId);
    /// It has done it.
    fn after(&mut self, script: &mut Script);
}

/// Nobody.
pub(super) struct Nobody;

impl Witness for Nobody {
    fn before(&mut self, _: &Kernel, _: CpuId) {}
    fn after(&mut self, _: &mut Script) {}
}

/// Makes a step, and all of that CPU that nobody else can see.
pub(super) fn advance(
    image: &Image,
    state: &mut State,
    step: Step,
    script: &mut Script,
    witness: &mut impl Witness,
) -> Came {
    let cpu = step.cpu();
    script.sleepers.clear();
    script.sleepers.extend(sleepers(image, &state.kernel));
    script.used_up.clear();
    script.used_up.extend(used_up(image, &state.kernel));
    script.ticks = ticks(image, &state.kernel, cpu);
    witness.before(&state.kernel, cpu);
    if let Step::Arrive(_, source) = step {
        if source == RESCHEDULE {
            state.sent &= !(1 << cpu.0);
        }
        state.kernel.raise(image, cpu, source, script);
    }
    let current = state.kernel.cpus()[cpu.index()].current;
    let was_queued = |kernel: &Kernel| current.is_some_and(|t| kernel.tasks()[t.index()].is_queued);
    let (begins_anew, before) = (comes_to_its_end(image, state, step), was_queued(&state.kernel));
    if begins_anew && !is_balanced(&state.kernel, cpu) {
        script.violation.get_or_insert((Violation::Unbalanced, cpu));
    }
    one(image, state, cpu, script);
    witness.after(script);
    let sleeps = before && !was_queued(&state.kernel);
    for _ in 0..MOST_LOCAL_STEPS {
        if script.violation.is_some() || !is_local(image, &state.kernel, cpu) {
            break;
        }
        witness.before(&state.kernel, cpu);
        one(image, state, cpu, script);
        witness.after(script);
    }
    let violation = script.violation.or_else(|| broken_rule(image, state));
    Came {
        violation,
        progress: script.seen.work.or(current.filter(|_| sleeps || begins_anew)),
        breaks_lock: current.filter(|_| script.seen.breaks_lock),
    }
}

/// One operation; what takes time has its end in the same step.
fn one(image: &Image, state: &mut State, cpu: CpuId, script: &mut Script) {
    match state.kernel.step(image, cpu, script) {
        Progress::Takes(_) | Progress::Resumes(_) | Progress::LeavesIdle => {
            if let Some(violation) = Promise::in_user_mode(image, state, cpu) {
                script.violation.get_or_insert((violation, cpu));
            }
            state.kernel.finish(image, cpu, script);
        }
        Progress::Instant | Progress::Idle | Progress::Spins => {}
    }
    state.sent |= std::mem::take(&mut script.sent);
}

/// Whether a task is at the last operation of its path, which jumps to the first.
pub(super) fn comes_to_its_end(image: &Image, state: &State, step: Step) -> bool {
    let Step::Run(cpu) = step else { return false };
    state.kernel.top(cpu).is_some_and(|top| {
        let ops = &image.codes[top.code.index()].ops;
        top.kind == FrameKind::Task
            && top.pc as usize + 1 == ops.len()
            && matches!(top.op(image), Some(Op::Jump(_)))
    })
}

/// Whether the task of this CPU has enabled again all that it has disabled. In user mode the kernel
/// checks that itself; a task that has none would go on for ever.
pub(super) fn is_balanced(kernel: &Kernel, cpu: CpuId) -> bool {
    let state = &kernel.cpus()[cpu.index()];
    let Some(task) = state.current.map(|task| &kernel.tasks()[task.index()]) else { return true };
    let is_enabled = state.count == 0 && task.frame.irq_depth == 0 && task.bh_depth == 0;
    is_enabled && task.rcu_depth == 0 && task.owns.is_empty()
}

/// Makes the step of a choice. `None` if it is not possible in this state.
pub(super) fn choose(
    image: &Image,
    state: &mut State,
    choice: &Choice,
    script: &mut Script,
    witness: &mut impl Witness,
) -> Option<Came> {
    if !is_possible(image, state, choice.step) {
        return None;
    }
    script.begin(&choice.answers);
    Some(advance(image, state, choice.step, script, witness))
}

/// Whether somebody is to run on this CPU.
pub(super) fn need(kernel: &Kernel, cpu: CpuId) -> NeedResched {
    kernel.cpus()[cpu.index()].need_resched
}
