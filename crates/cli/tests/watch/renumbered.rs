//! Threads that call exec, and take over the number of their process.

use std::os::unix::process::CommandExt;
use std::process::Command;

use wakescope_core::watch::LeftOut;

use crate::common::bench::{Test, kill};
use crate::common::following::can_follow;
use crate::{start, windows};

/// How often a process is still to call exec.
const LEFT: &str = "WAKESCOPE_TEST_EXECS_LEFT";
const TIMES: u32 = 300;

/// A process that runs the test below alone, which calls exec in its turn. Tests do not run in the first thread.
fn this_test(left: u32) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "renumbered::what_a_thread_has_waited_goes_with_it_to_another_number";
    command.args(["--exact", name, "--nocapture"]).env(LEFT, left.to_string());
    command
}

#[test]
fn what_a_thread_has_waited_goes_with_it_to_another_number() {
    if let Some(left) = std::env::var(LEFT).ok().and_then(|left| left.parse::<u32>().ok()) {
        if left > 0 {
            panic!("{}", this_test(left - 1).exec());
        }
        return;
    }
    if !can_follow("what_a_thread_has_waited_goes_with_it_to_another_number") {
        return;
    }
    let test = Test::new("renumbered");
    let running = start(&test, &["--json", "--interval", "200ms", "--audit"]);
    let renumbered = this_test(TIMES).output().unwrap();
    assert!(renumbered.status.success(), "{renumbered:?}");
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let windows = windows(&ended.stdout);
    // Waits from before the program was attached may be in the first one.
    let later = windows.iter().skip(1);
    let left_out = later.fold(LeftOut::default(), |sum, window| sum.plus(&window.left_out));
    assert_eq!(left_out.contradicted, 0, "{left_out:?}");
    // A few switches are not reported. Of the threads that call exec, the program has seen all waits.
    assert!(left_out.missed < u64::from(TIMES) / 2, "{left_out:?}");
    assert!(windows.iter().all(|window| window.audit.unwrap().differing == 0), "{windows:?}");
}
