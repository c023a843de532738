//! What no simulation could carry out: loops without end in which no time passes, handlers that sleep.

use super::super::{Count, Length, LockKind, Step};
use super::limits;
use super::names::function;

/// Why a task cannot run these steps again and again.
pub(super) fn by_task(steps: &[Step]) -> Result<(), String> {
    if !takes_time(steps) {
        return Err("found an endless loop without time passing, expected a user, compute, \
                    page_fault, block or wait of some length in the path"
            .into());
    }
    rounds(steps, 1)
}

/// Why a probe cannot run these steps before it responds. It does not wait for anything there but the
/// CPU: its lateness is that of its wakeup, and a wakeup that waits for two things has two causes that
/// the model's truth does not tell apart.
pub(super) fn by_probe(steps: &[Step]) -> Result<(), String> {
    if let Some(word) = of_sleepers(steps) {
        return Err(format!(
            "found `{word}` in the path of a probe, expected no step that sleeps, and no lock"
        ));
    }
    rounds(steps, 1)
}

/// Why an interrupt's handler cannot run these steps.
pub(super) fn by_handler(steps: &[Step]) -> Result<(), String> {
    if let Some(word) = of_tasks(steps) {
        return Err(format!(
            "found `{word}` in the path of an interrupt's handler, expected it only \
                            in paths of tasks"
        ));
    }
    rounds(steps, 1)
}

/// Whether time can pass.
fn takes_time(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::User(length) | Step::Compute(length) | Step::PageFault(length) => some(length),
        Step::Block { length, .. } => some(length),
        Step::Wait(_) | Step::PrepareToWait(_) => true,
        Step::Repeat(Count::Fixed(rounds) | Count::Uniform(_, rounds), steps) => {
            *rounds > 0 && takes_time(steps)
        }
        Step::Call(_, steps) | Step::Unless(_, steps) | Step::PerCpu(_, steps) => takes_time(steps),
        _ => false,
    })
}

fn some(length: &Length) -> bool {
    match length {
        &Length::Fixed(ns) | &Length::Uniform(_, ns) | &Length::Exponential(ns) => ns > 0,
        &Length::Pareto { most, .. } => most > 0,
        Length::Mixture(parts) => parts.iter().any(|(_, length)| some(length)),
        Length::Histogram(buckets) => buckets.iter().any(|b| b.count > 0 && b.upper > 1),
    }
}

/// Refuses loops that take no time but many rounds: `outer` is how often these steps run already.
fn rounds(steps: &[Step], outer: u64) -> Result<(), String> {
    for step in steps {
        match step {
            Step::Repeat(Count::Fixed(count) | Count::Uniform(_, count), steps) => {
                // Where time passes in each round, the end of the simulation ends the loop.
                let rounds_here =
                    if takes_time(steps) { 1 } else { outer.saturating_mul(u64::from(*count)) };
                if rounds_here > limits::TIMELESS_ROUNDS {
                    return Err(format!(
                        "found a loop of {rounds_here} rounds without time passing, expected at \
                         most {}",
                        limits::TIMELESS_ROUNDS
                    ));
                }
                rounds(steps, rounds_here)?;
            }
            Step::Call(_, steps) | Step::Unless(_, steps) | Step::PerCpu(_, steps) => {
                rounds(steps, outer)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The first step that may sleep, under one of the models.
fn of_sleepers(steps: &[Step]) -> Option<&'static str> {
    steps.iter().find_map(|step| match step {
        Step::Block { .. } => Some("block"),
        Step::Wait(_) => Some("wait"),
        Step::PrepareToWait(_) => Some("prepare_to_wait"),
        Step::FinishWait(_) => Some("finish_wait"),
        Step::Schedule => Some("schedule"),
        Step::Lock(kind, _) | Step::Unlock(kind, _) => Some(function(*kind)),
        Step::LockBreak(_) => Some("lock_break"),
        Step::Call(_, steps)
        | Step::Repeat(_, steps)
        | Step::Unless(_, steps)
        | Step::PerCpu(_, steps) => of_sleepers(steps),
        _ => None,
    })
}

/// The first step that only a task can run.
fn of_tasks(steps: &[Step]) -> Option<&'static str> {
    steps.iter().find_map(|step| match step {
        Step::User(_) => Some("user"),
        Step::Block { .. } => Some("block"),
        Step::Wait(_) => Some("wait"),
        Step::PrepareToWait(_) => Some("prepare_to_wait"),
        Step::FinishWait(_) => Some("finish_wait"),
        Step::Schedule => Some("schedule"),
        Step::PageFault(_) => Some("page_fault"),
        Step::Work => Some("work"),
        Step::Lock(LockKind::Mutex, _) => Some("mutex_lock"),
        Step::Unlock(LockKind::Mutex, _) => Some("mutex_unlock"),
        Step::Call(_, steps)
        | Step::Repeat(_, steps)
        | Step::Unless(_, steps)
        | Step::PerCpu(_, steps) => of_tasks(steps),
        _ => None,
    })
}
