//! A test of moves that the kernel does not report to the program that is there for them.

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_testing::skip;

use self::moved_sleeper::{MovedSleeper, sleeps_in_queues};
use super::{Limits, Watcher, loading};
use crate::TraceError;

#[path = "../../../cli/tests/common/moved_sleeper.rs"]
mod moved_sleeper;

/// A guest of 6.18 omitted 3 moves in 24 s: sleep that one of them had stamped must not be taken for a wait.
#[test]
fn long_waits_after_moves_that_nobody_saw_are_left_out() {
    const NAME: &str = "long_waits_after_moves_that_nobody_saw_are_left_out";
    if !sleeps_in_queues() {
        return skip(NAME, "no task of this kernel sleeps in a queue (6.12)");
    }
    // Beside other work the task may get all that it wants: then it does not stay in its queue.
    for _ in 0..5 {
        match waits_of_a_moved_sleeper() {
            Err(why) => return skip(NAME, &why),
            Ok(left_out) if left_out > 0 => return,
            Ok(_) => {}
        }
    }
    panic!("none of five watches left sleep out");
}

/// Watches a thread that is moved while it sleeps, and sees no move. How many of its waits were left out; why there
/// cannot be any. None of those that were counted has its sleep.
fn waits_of_a_moved_sleeper() -> Result<u64, String> {
    let started = Watcher::start(Limits::default(), true);
    let mut watcher = started.map_err(|why| match why {
        TraceError::NotAllowed | TraceError::NoTypes(_) | TraceError::LockedDown => why.to_string(),
        why => panic!("{why}"),
    })?;
    let seen = watcher.links.iter().position(|(name, _)| *name == loading::MOVE).unwrap();
    let (name, link) = watcher.links.remove(seen);
    loading::program(&mut watcher.programs, name).unwrap().detach(link).unwrap();
    let sleeper = MovedSleeper::start().ok_or("it takes two CPUs")?;
    clock::sleep_until(clock::now().after(SpanNs(1_500_000_000))).unwrap();
    let awake = sleeper.end();
    watcher.detach();
    let counted = watcher.read();
    let series = counted.series.into_iter().find(|series| series.comm == moved_sleeper::NAME);
    let waits = series.map(|series| series.waits).unwrap_or_default();
    // Sleep that was counted was ten times as long as it was awake.
    let figures = format!("{waits:?}, awake for {awake}, {:?}", counted.left_out);
    assert!(waits.sum_ns <= 2 * awake.0, "{figures}");
    Ok(counted.left_out.asleep)
}
