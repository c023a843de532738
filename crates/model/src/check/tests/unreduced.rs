//! The same kernel without any of the reductions, for small scenarios drawn at random: an interrupt
//! arrives at any time, and waits where it is not taken; what takes time can be interrupted in the
//! middle; each operation is a step. Both find the same broken rules.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use wakescope_core::random::Random;

use super::super::choice::{Step as Schedule, is_possible, possible, sleepers, ticks};
use super::super::invariant::{Promise, broken_rule};
use super::super::machine::{Nobody, advance, comes_to_its_end, is_balanced};
use super::super::script::Script;
use super::super::state::State;
use super::*;
use crate::image::{CpuId, RESCHEDULE, SourceId};
use crate::kernel::Progress;

/// More states than this are too many for a test.
const MOST_STATES: usize = 2_000;

type Broken = BTreeSet<Violation>;

/// All violations that come first in some schedule, with the reductions.
fn reduced(image: &Image) -> Option<Broken> {
    let mut steps = Vec::new();
    explore(State::first(image), |state, next, broken| {
        possible(image, state, &mut steps);
        let mut script = Script::new(image);
        for &step in &steps {
            script.begin(&[]);
            loop {
                let mut after = state.clone();
                match advance(image, &mut after, step, &mut script, &mut Nobody).violation {
                    Some((violation, _)) => _ = broken.insert(violation),
                    None => next.push(after),
                }
                if !script.begin_next() {
                    break;
                }
            }
        }
    })
}

/// A state with what the reductions leave out: CPUs in the middle of what takes time, a bit for each.
#[derive(Clone, Hash)]
struct Full {
    state: State,
    busy: u64,
}

#[derive(Clone, Copy)]
enum Move {
    Go(CpuId),
    Arrive(CpuId, SourceId),
}

/// The same without.
fn unreduced(image: &Image) -> Option<Broken> {
    let first = Full { state: State::first(image), busy: 0 };
    explore(first, |full, next, broken| {
        let mut moves = Vec::new();
        for cpu in (0..usize::from(image.cpus)).map(CpuId::at) {
            moves.push(Move::Go(cpu));
            moves.extend((0..image.sources.len()).map(|s| Move::Arrive(cpu, SourceId::at(s))));
        }
        let mut script = Script::new(image);
        for one in moves {
            script.begin(&[]);
            loop {
                let mut after = full.clone();
                make(image, &mut after, one, &mut script);
                let waits = |cpu: usize| after.state.kernel.cpus()[cpu].pending != 0;
                // An interrupt that waits to be taken may still call the scheduler.
                let mut seen = after.state.clone();
                (0..usize::from(image.cpus)).filter(|&cpu| waits(cpu)).for_each(|cpu| {
                    seen.sent |= 1 << cpu;
                });
                let rule = script.violation.or_else(|| broken_rule(image, &seen));
                match rule {
                    Some((violation, _)) => _ = broken.insert(violation),
                    None => next.push(after),
                }
                if !script.begin_next() {
                    break;
                }
            }
        }
    })
}

fn make(image: &Image, full: &mut Full, one: Move, script: &mut Script) {
    let state = &mut full.state;
    match one {
        Move::Arrive(cpu, source) => {
            let bit = 1 << cpu.0;
            let waits = state.kernel.cpus()[cpu.index()].pending & (1 << source.0) != 0;
            let is_masked = !state.kernel.takes(image, cpu, source);
            let has_reason = if is_masked {
                // The reason does not depend on whether the CPU takes it.
                has_reason(image, state, cpu, source)
            } else {
                is_possible(image, state, Schedule::Arrive(cpu, source))
            };
            if waits || !has_reason {
                return;
            }
            if source == RESCHEDULE {
                state.sent &= !bit;
            }
            if state.kernel.raise(image, cpu, source, script) && full.busy & bit != 0 {
                full.busy &= !bit;
                state.kernel.pause(cpu, 1);
            }
        }
        Move::Go(cpu) => {
            let bit = 1 << cpu.0;
            script.sleepers.clear();
            script.sleepers.extend(sleepers(image, &state.kernel));
            script.ticks = ticks(image, &state.kernel, cpu);
            if full.busy & bit != 0 {
                full.busy &= !bit;
                state.kernel.finish(image, cpu, script);
            } else {
                let ends = comes_to_its_end(image, state, Schedule::Run(cpu))
                    && state.kernel.cpus()[cpu.index()].pending == 0;
                if ends && !is_balanced(&state.kernel, cpu) {
                    script.violation.get_or_insert((Violation::Unbalanced, cpu));
                }
                match state.kernel.step(image, cpu, script) {
                    Progress::Takes(_) | Progress::Resumes(_) | Progress::LeavesIdle => {
                        full.busy |= bit;
                    }
                    _ => {}
                }
                let took = full.busy & bit != 0;
                let is_new = state.kernel.top(cpu).is_some_and(|top| top.left.is_none());
                if took && is_new {
                    if let Some(violation) = Promise::in_user_mode(image, state, cpu) {
                        // What was interrupted there goes on without a look.
                        script.violation.get_or_insert((violation, cpu));
                    }
                }
            }
            state.sent |= std::mem::take(&mut script.sent);
        }
    }
}

fn has_reason(image: &Image, state: &State, cpu: CpuId, source: SourceId) -> bool {
    super::super::choice::can_arrive(image, state, cpu, source)
}

fn hash<S: Hash>(state: &S) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// All states from `first` on; `None` if they are too many.
fn explore<S: Hash>(
    first: S,
    mut successors: impl FnMut(&S, &mut Vec<S>, &mut Broken),
) -> Option<Broken> {
    let mut known = HashSet::from([hash(&first)]);
    let mut queue = VecDeque::from([first]);
    let (mut next, mut broken) = (Vec::new(), Broken::new());
    while let Some(state) = queue.pop_front() {
        successors(&state, &mut next, &mut broken);
        for state in next.drain(..) {
            if known.insert(hash(&state)) {
                queue.push_back(state);
            }
        }
        if known.len() > MOST_STATES {
            return None;
        }
    }
    Some(broken)
}

/// Up to `most` steps with or without sense; some forget to undo what they did.
fn steps(random: &mut Random, most: usize, in_handler: bool) -> Vec<Do> {
    let count = 1 + random.below(most);
    (0..count).flat_map(|_| one_step(random, in_handler)).collect()
}

fn one_step(random: &mut Random, in_handler: bool) -> Vec<Do> {
    let kind = [LockKind::Spin, LockKind::SpinIrq, LockKind::RawIrq][random.below(3)];
    let name = ["a", "b"][random.below(2)].to_owned();
    let in_task = [compute(), block(), Do::Wait(event()), Do::Wake(event())];
    let inner = if in_handler { compute() } else { in_task[random.below(4)].clone() };
    let change = || Do::PerCpu("x".into(), vec![compute()]);
    let inner = if random.below(3) == 0 { change() } else { inner };
    let pair = |begin, end, forgets: bool| {
        if forgets { vec![begin, inner.clone()] } else { vec![begin, inner.clone(), end] }
    };
    let forgets = random.below(8) == 0;
    match random.below(if in_handler { 8 } else { 15 }) {
        0 | 1 => vec![Do::Wake(event())],
        2 => vec![change()],
        3 => pair(Do::Lock(kind, name.clone()), Do::Unlock(kind, name), forgets),
        4 => pair(Do::PreemptDisable, Do::PreemptEnable, forgets),
        5 => pair(Do::IrqSave, Do::IrqRestore, forgets),
        6 => pair(Do::BhDisable, Do::BhEnable, forgets),
        7 => vec![Do::RaiseSoftirq(3)],
        8 => vec![Do::Wait(event())],
        9 => vec![block()],
        10 => vec![Do::Repeat(Count::Uniform(0, 2), vec![inner])],
        11 => vec![Do::CondResched, compute()],
        12 => vec![Do::RcuReadLock, inner, Do::RcuReadUnlock],
        13 => {
            let sleep = Do::Unless(event(), vec![Do::Schedule]);
            vec![Do::PrepareToWait(event()), sleep, Do::FinishWait(event())]
        }
        _ => {
            let sleep = vec![Do::PrepareToWait(event()), Do::Schedule];
            vec![Do::Unless(event(), sleep), Do::FinishWait(event())]
        }
    }
}

/// A scenario that is small enough without reductions, now and then.
fn drawn(random: &mut Random) -> Scenario {
    let cpus = 1 + random.below(2);
    let policies = [FAIR, URGENT, TaskPolicy::Fifo(10)];
    let mut task = |number: usize| {
        let policy = policies[random.below(3)];
        let cpu = if random.below(3) == 0 { None } else { Some([0, number % cpus][cpus - 1]) };
        let steps = steps(random, 3 - cpus, false);
        (policy, cpu.and_then(|cpu| u32::try_from(cpu).ok()), [steps, vec![user()]].concat())
    };
    let tasks = vec![task(0), task(1)];
    let mut scenario = machine(u32::try_from(cpus).unwrap(), tasks);
    if random.below(2) == 0 {
        scenario = with_device(scenario, steps(random, 1, true));
    } else if random.below(3) == 0 {
        scenario.machine.tick_hz = 100;
    }
    scenario
}

#[test]
fn reductions_hide_no_broken_rule() {
    let (mut compared, mut with_failure) = ([0, 0], BTreeSet::new());
    for seed in 0..320 {
        let mut random = Random::new(seed);
        let scenario = drawn(&mut random);
        let mut rules = Rules::ALL[random.below(Rules::ALL.len())];
        rules.preempted_stay_ready = random.below(4) > 0;
        rules.interrupt_return_schedules &= random.below(4) > 0;
        let Ok(image) = Image::new(&scenario, rules) else { continue };
        let image = prepare(&image, &Limits { iterations: 2, ..Limits::default() });
        let (Some(few), Some(all)) = (reduced(&image), unreduced(&image)) else { continue };
        let shown = (seed, rules, &scenario.paths, &scenario.tasks);
        assert_eq!(few, all, "seed, rules and scenario: {shown:#?}");
        compared[scenario.machine.cpus as usize - 1] += 1;
        let name = |broken| format!("{broken:?}").split(['(', ' ']).next().map(str::to_owned);
        with_failure.extend(few.iter().filter_map(name));
    }
    // Scenarios with more states than are allowed would compare nothing.
    assert!(compared[0] > 40 && compared[1] > 10, "{compared:?}");
    assert!(with_failure.len() > 5, "{with_failure:?}");
}
