//! Running tests of the same program again, in processes of their own, with something changed.

use std::env;
use std::process::Command;

/// Names what is changed, in the processes that run tests again.
const CHANGE: &str = "WAKESCOPE_TEST_CHANGE";

/// What is changed in this process; `None` outside of [`failing_with`].
pub fn change() -> Option<String> {
    env::var(CHANGE).ok()
}

/// The tests of this program whose names begin with `tests`, without those that begin with any of
/// `others`, that fail where [`change`] tells them of this one. `tests` is taken off their names.
///
/// # Panics
///
/// If the tests cannot be run.
pub fn failing_with(change: &str, tests: &str, others: &[&str]) -> Vec<String> {
    let mut run = Command::new(env::current_exe().expect("the program of the tests"));
    run.args([tests, "--test-threads", "1"]);
    others.iter().for_each(|other| {
        run.args(["--skip", other]);
    });
    let ended = run.env(CHANGE, change).env("RUST_BACKTRACE", "0").output().expect("tests");
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(text.contains("test result: "), "{text}");
    let lines =
        text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    lines.map(|test| test.strip_prefix(tests).unwrap_or(test).to_owned()).collect()
}
