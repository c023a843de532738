//! Sleep that the kernel counts as waiting.

use wakescope_core::units::SpanNs;
use wakescope_core::watch::LeftOut;
use wakescope_sys::clock;

use crate::common::bench::{Test, kill};
use crate::common::following::can_follow;
use crate::common::moved_sleeper::{self, MovedSleeper, check_sleep_is_told};
use crate::workers::waits_of;
use crate::{start, windows};

/// The kernel stamps a task that sleeps in a queue when it is moved, as if it waited from then on.
#[test]
fn sleep_of_a_task_that_is_moved_is_no_wait() {
    const NAME: &str = "sleep_of_a_task_that_is_moved_is_no_wait";
    if !can_follow(NAME) {
        return;
    }
    check_sleep_is_told(NAME, sleep_is_left_out);
}

/// Whether a watch left sleep out, or why there cannot be a watch. It counts none as waits.
fn sleep_is_left_out() -> Result<bool, String> {
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
    assert!(waits.sum_ns <= awake.0, "{figures}");
    assert!(windows.iter().all(|window| window.audit.unwrap().differing == 0), "{windows:?}");
    assert_eq!(left_out.asleep > 0, left_out.asleep_ns > 0, "{figures}");
    Ok(left_out.asleep > 0)
}
