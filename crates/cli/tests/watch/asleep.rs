//! Sleep that the kernel counts as waiting.

use wakescope_core::units::SpanNs;
use wakescope_core::watch::LeftOut;
use wakescope_sys::clock;

use crate::common::bench::{Test, kill, skip};
use crate::common::following::can_follow;
use crate::common::moved_sleeper::{self, MovedSleeper, sleeps_in_queues};
use crate::workers::waits_of;
use crate::{start, windows};

/// The kernel stamps a task that sleeps in a queue when it is moved, as if it waited from then on.
///
/// Not every move is reported to programs: a guest of 6.18 omits up to one switch in a hundred. Without the marks no
/// watch would do: nearly each sleep would be a wait.
#[test]
fn sleep_of_a_task_that_is_moved_is_no_wait() {
    const NAME: &str = "sleep_of_a_task_that_is_moved_is_no_wait";
    if !can_follow(NAME) {
        return;
    }
    let mut figures = String::new();
    for _ in 0..5 {
        match watch_a_moved_sleeper() {
            None => return skip(NAME, "it takes two CPUs"),
            Some((true, _)) => return,
            Some((false, told)) => figures = told,
        }
    }
    panic!("in each watch sleep was counted: {figures}");
}

/// Whether none of its sleep was counted, as far as that shows, and the figures; `None` where there is but one CPU.
fn watch_a_moved_sleeper() -> Option<(bool, String)> {
    let test = Test::new("watch-asleep");
    let running = start(&test, &["--json", "--interval", "200ms", "--audit"]);
    let sleeper = MovedSleeper::start()?;
    clock::sleep_until(clock::now().after(SpanNs(1_500_000_000))).unwrap();
    let awake = sleeper.end();
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let windows = windows(&ended.stdout);
    let left_out =
        windows.iter().fold(LeftOut::default(), |sum, window| sum.plus(&window.left_out));
    let waits = waits_of(&windows, moved_sleeper::NAME);
    let figures = format!("{waits:?}, awake for {awake}, {left_out:?}");
    assert!(windows.iter().all(|window| window.audit.unwrap().differing == 0), "{windows:?}");
    let is_told = (left_out.asleep > 0, left_out.asleep_ns > 0);
    assert_eq!(is_told, (sleeps_in_queues(), sleeps_in_queues()), "{figures}");
    // The clock of the queue is not adjusted as that of spans is.
    Some((waits.sum_ns <= awake.0 + awake.0 / 100 + 1_000_000, figures))
}
