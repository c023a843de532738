//! A run, and what `wakescope report` makes of it.

use super::bench::{Ended, Test};

/// A test with a run in its folder `run`, measured with these options as well.
pub(crate) fn measured(name: &str, options: &[&str]) -> Test {
    let test = Test::new(name);
    let usual = ["--samples", "300", "--load", "cpu", "--out", "run"];
    let ended = test.measure(&[&usual[..], options].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    test
}

/// `wakescope report` with `args`, run to its end.
pub(crate) fn report(test: &Test, args: &[&str]) -> Ended {
    test.start_command(&[&["report"], args].concat()).output()
}

/// What it prints, without a complaint.
#[track_caller]
pub(crate) fn shown(test: &Test, args: &[&str]) -> String {
    let ended = report(test, args);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
    ended.stdout
}
