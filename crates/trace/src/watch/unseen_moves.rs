//! Tests of moves that the program that is there for them cannot note.

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;

use self::moved_sleeper::{MovedSleeper, check_sleep_is_told};
use super::{Limits, Watcher, loading};
use crate::TraceError;

#[path = "../../tests/moved_sleeper/mod.rs"]
mod moved_sleeper;

/// A guest of 6.18 omitted 3 moves in 24 s: sleep that one of them had stamped must not be taken for a wait.
#[test]
fn long_waits_after_moves_that_nobody_saw_are_left_out() {
    const NAME: &str = "long_waits_after_moves_that_nobody_saw_are_left_out";
    check_sleep_is_told(NAME, || sleep_is_left_out(Limits::default(), false));
}

/// Moves are noted in the books of the task. Where there is only one place, hardly any task has some.
#[test]
fn long_waits_of_tasks_without_a_place_are_left_out() {
    const NAME: &str = "long_waits_of_tasks_without_a_place_are_left_out";
    check_sleep_is_told(NAME, || sleep_is_left_out(Limits { tasks: 1, ..Limits::default() }, true));
}

/// Whether a watch left sleep out that sees moves or not, or why there cannot be a watch. It counts none as waits.
fn sleep_is_left_out(limits: Limits, sees_moves: bool) -> Result<bool, String> {
    let started = Watcher::start(limits, true);
    let mut watcher = started.map_err(|why| match why {
        TraceError::NotAllowed | TraceError::NoTypes(_) | TraceError::LockedDown => why.to_string(),
        why => panic!("{why}"),
    })?;
    // Kernels on which no task sleeps in a queue have no such program.
    let at = watcher.links.iter().position(|(name, _)| *name == loading::MOVE);
    if let Some(at) = at.filter(|_| !sees_moves) {
        let (name, link) = watcher.links.remove(at);
        loading::program(&mut watcher.programs, name).unwrap().detach(link).unwrap();
    }
    let sleeper = MovedSleeper::start()?;
    clock::sleep_until(clock::now().after(SpanNs(1_500_000_000))).unwrap();
    let awake = sleeper.end();
    watcher.detach();
    let counted = watcher.read();
    let series = counted.series.into_iter().find(|series| series.comm == moved_sleeper::NAME);
    let waits = series.map(|series| series.waits).unwrap_or_default();
    let figures = format!("{waits:?}, awake for {awake}, {:?}", counted.left_out);
    assert!(waits.sum_ns <= awake.0, "{figures}");
    Ok(counted.left_out.asleep > 0)
}
