//! Few open files: whatever is run either works, or ends with an error that names their limit.

use std::fs;
use std::path::Path;

use common::bench::{Ended, Running, Test, skip};

mod common;

/// Limits that every command meets. With the least, a run's folder can be made and not be opened; with
/// 13 or 14 a load can make its files and not remove them, unless it sees to that before.
const LIMITS: [u32; 10] = [4, 8, 12, 13, 14, 16, 24, 32, 64, 128];

/// Runs `wakescope` with so many files open at most.
fn limited(test: &Test, limit: u32, args: &[&str]) -> Ended {
    let mut command = test.program(Path::new("/bin/sh"));
    let script = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(&test.program).args(args);
    Running::start(&mut command).output()
}

fn names_the_limit(ended: &Ended) -> bool {
    ended.code == Some(2)
        && ended.stderr.contains("open files")
        && ended.stderr.contains("→ raise the limit of open files: ulimit -n")
}

/// Fails unless the command ends as it does with many open files, or because there are few.
#[track_caller]
fn check(test: &Test, usual: &Ended, limit: u32, args: &[&str]) -> Ended {
    let ended = limited(test, limit, args);
    let text = format!("{args:?} with {limit} open files: {ended:?}");
    for wrong in ["panicked", "Bad file descriptor", "backtrace"] {
        assert!(!ended.stderr.contains(wrong), "{text}");
    }
    let first = |ended: &Ended| ended.stderr.lines().next().unwrap_or_default().to_owned();
    let same = ended.code == usual.code && (usual.code == Some(0) || first(&ended) == first(usual));
    assert!(same || names_the_limit(&ended), "{text}");
    test.assert_nothing_is_left();
    ended
}

/// The same for all limits. What works without one must work with so many open files and more.
#[track_caller]
fn check_all(args: &[&str], works_with: Option<u32>) {
    let test = Test::new("open-files");
    let usual = test.ended(args);
    let _ = fs::remove_dir_all(test.dir.join("run"));
    if usual.code != Some(0) {
        return skip(&format!("open_files {args:?}"), &usual.stderr.replace('\n', " "));
    }
    for limit in LIMITS {
        let ended = check(&test, &usual, limit, args);
        let left = fs::metadata(test.dir.join("run")).is_ok();
        assert!(!left || ended.code == Some(0), "{args:?}, {limit}: a folder is left");
        let _ = fs::remove_dir_all(test.dir.join("run"));
        let must_work = works_with.is_some_and(|least| limit >= least);
        assert!(!must_work || ended.code == Some(0), "{args:?}, {limit}: {ended:?}");
    }
}

#[test]
fn loads_work_or_name_the_limit_of_open_files() {
    for (load, works_with) in [
        ("find", Some(24)),
        ("launch", Some(24)),
        ("file-move", Some(24)),
        ("cpu", Some(16)),
        ("fifos-mmap", Some(32)),
        ("p3-fpu", Some(16)),
        ("fs", Some(24)),
        ("crashme", Some(24)),
        ("fork@50%", Some(16)),
        ("memory", Some(16)),
        ("sync", Some(24)),
        ("truncate", Some(24)),
        ("exec:while :; do sleep 1; done", Some(24)),
        ("disturb-fifo-300us", Some(16)),
        ("ttcp", Some(24)),
        ("network", None),
        ("hackbench", None),
        ("interrupts", Some(16)),
        ("serial-pty", Some(24)),
    ] {
        check_all(&["load", load, "--duration", "1ms"], works_with);
    }
}

#[test]
fn disturbances_that_open_many_files_work_or_name_the_limit() {
    for load in ["disturb-timers-300us", "disturb-syscall-300us", "disturb-softirq-300us"] {
        check_all(&["load", load, "--duration", "1ms"], None);
    }
}

#[test]
fn commands_work_or_name_the_limit_of_open_files() {
    let measure = ["measure", "--samples", "10", "--cpus", "0", "--out", "run"];
    check_all(&measure, Some(16));
    check_all(&[&measure[..], &["--load", "cpu"]].concat(), Some(32));
    check_all(&["explain", "--samples", "10", "--cpus", "0", "--out", "run"], Some(128));
    check_all(&["watch", "--once", "--interval", "100ms"], Some(128));
}

#[test]
fn a_measurement_uses_the_files_that_its_limit_can_be_raised_to() {
    let test = Test::new("open-files-soft");
    let measure = "measure --samples 10 --cpus 0 --stimulus tcp --out";
    let load = "--load 'exec:ulimit -Sn >limit; while :; do sleep 1; done'";
    // The first is too few for the channel. What a measurement starts has the limit that it was started with.
    for (limit, args) in [(8, format!("{measure} a")), (24, format!("{measure} b {load}"))] {
        let mut command = test.program(Path::new("/bin/sh"));
        let script = format!("ulimit -Sn {limit} && exec \"$0\" {args}");
        command.args(["-c", &script]).arg(&test.program);
        let ended = Running::start(&mut command).output();
        assert_eq!(ended.code, Some(0), "{limit}: {ended:?}");
    }
    assert_eq!(fs::read_to_string(test.dir.join("limit")).unwrap().trim(), "24");
    test.assert_nothing_is_left();
}

#[test]
fn a_lab_comes_as_far_as_with_many_open_files_or_names_the_limit() {
    let test = Test::new("open-files-lab");
    fs::write(test.dir.join("no-kernel"), [0; 4096]).unwrap();
    let args = ["lab", "run", "--kernel", "no-kernel"];
    let usual = test.ended(&args);
    assert_eq!(usual.code, Some(2), "{usual:?}");
    assert!(usual.stderr.contains("cannot boot no-kernel"), "{usual:?}");
    for limit in LIMITS {
        check(&test, &usual, limit, &args);
    }
}

#[test]
fn a_check_finds_the_same_with_few_open_files() {
    let test = Test::new("open-files-check");
    let usual = test.ended(&["check"]);
    for limit in LIMITS {
        let ended = check(&test, &usual, limit, &["check"]);
        let first = |ended: &Ended| ended.stdout.lines().next().unwrap_or_default().to_owned();
        assert_eq!((ended.code, first(&ended)), (usual.code, first(&usual)), "{limit}");
    }
}
