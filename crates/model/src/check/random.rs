//! Random schedules, where all are too many; and how a schedule that fails is made short.

use std::collections::HashMap;

use wakescope_core::random::Random;

use super::choice::{Choice, possible};
use super::machine::{Nobody, advance, choose};
use super::script::Script;
use super::state::State;
use super::{Failure, Limits};
use crate::image::{CpuId, Image};
use crate::kernel::Violation;

/// So many schedules are tried to make a long one short.
const MOST_TRIALS: u32 = 20_000;

/// Tries random schedules until one breaks a rule: how many, and which.
pub(super) fn schedules(image: &Image, limits: &Limits) -> (u64, Option<Failure>) {
    let mut script = Script::random(image, Random::new(limits.seed));
    for number in 1..=limits.schedules {
        if let Some(failure) = schedule(image, limits, &mut script) {
            return (number, Some(shortened(image, failure)));
        }
    }
    (limits.schedules, None)
}

fn schedule(image: &Image, limits: &Limits, script: &mut Script) -> Option<Failure> {
    let mut state = State::first(image);
    let mut steps = Vec::new();
    let mut schedule = Vec::new();
    for _ in 0..limits.choices {
        possible(image, &state, &mut steps);
        let step = *steps.get(script.below(steps.len()))?;
        script.begin(&[]);
        let came = advance(image, &mut state, step, script, &mut Nobody);
        schedule.push(Choice { step, answers: script.answers() });
        if let Some((violation, cpu)) = came.violation {
            return Some(Failure { violation, cpu, schedule, cycle: Vec::new() });
        }
    }
    None
}

/// A schedule with the same end and no choice that can be left out: first without its cycles, then
/// without halves, quarters, and so on.
fn shortened(image: &Image, failure: Failure) -> Failure {
    let mut schedule = without_cycles(image, failure.schedule);
    let mut part = schedule.len().div_ceil(2);
    let mut trials = 0;
    while part > 0 && trials < MOST_TRIALS {
        let mut at = 0;
        let mut is_shorter = false;
        while at < schedule.len() && trials < MOST_TRIALS {
            let end = (at + part).min(schedule.len());
            let rest: Vec<Choice> = [&schedule[..at], &schedule[end..]].concat();
            trials += 1;
            match until(image, &rest, failure.violation) {
                Some((shorter, _)) => (schedule, is_shorter) = (shorter, true),
                None => at = end,
            }
        }
        if !is_shorter || part > 1 {
            part /= 2;
        }
    }
    let cpu = until(image, &schedule, failure.violation).map_or(failure.cpu, |(_, cpu)| cpu);
    Failure { cpu, schedule, ..failure }
}

/// Leaves out what leads from a state back to it.
fn without_cycles(image: &Image, schedule: Vec<Choice>) -> Vec<Choice> {
    let mut state = State::first(image);
    let mut script = Script::new(image);
    let mut kept: Vec<Choice> = Vec::new();
    let mut at = HashMap::from([(state.fingerprint(), 0)]);
    let mut passed = vec![state.fingerprint()];
    for choice in schedule {
        choose(image, &mut state, &choice, &mut script, &mut Nobody);
        kept.push(choice);
        let fingerprint = state.fingerprint();
        if let Some(&length) = at.get(&fingerprint) {
            kept.truncate(length);
            for later in passed.drain(length + 1..) {
                at.remove(&later);
            }
        } else {
            at.insert(fingerprint, kept.len());
            passed.push(fingerprint);
        }
    }
    kept
}

/// The beginning of a schedule until it breaks this rule, without choices that are not possible; and on
/// which CPU it does.
fn until(image: &Image, schedule: &[Choice], wanted: Violation) -> Option<(Vec<Choice>, CpuId)> {
    let mut state = State::first(image);
    let mut script = Script::new(image);
    let mut taken = Vec::new();
    for choice in schedule {
        let Some(came) = choose(image, &mut state, choice, &mut script, &mut Nobody) else {
            continue;
        };
        taken.push(Choice { step: choice.step, answers: script.answers() });
        if let Some((violation, cpu)) = came.violation {
            return (violation == wanted).then_some((taken, cpu));
        }
    }
    None
}
