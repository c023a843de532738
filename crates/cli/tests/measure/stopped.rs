//! Runs that a signal ends in the middle of a stall.

use std::fs;
use std::process::Command;
use std::sync::atomic::Ordering;

use wakescope_core::limit::Outcome;
use wakescope_core::run::State;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule};

use crate::common::bench::{Test, eventually, kill, skip};
use crate::common::measured::{RECORD, allowed_cpus, assert_found, await_samples_in, record};
use crate::common::threads::Threads;

const TEST: &str = "a_stall_in_which_a_run_is_ended_by_a_signal_is_in_its_record";

/// More urgent than any probe.
const HOG: Schedule = Schedule::Fifo { priority: 95 };

/// The thread of the process `pid` that measures `cpu`.
fn probe_of(pid: i32, cpu: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut tasks = tasks.map(|task| task.unwrap().path().display().to_string());
    let name = |task: &str| fs::read_to_string(format!("{task}/comm")).unwrap_or_default();
    tasks.find(|task| name(task).trim() == format!("wakescope/{cpu}")).expect("a probe")
}

/// Whether a signal to this thread alone is still pending: the thread was asked to end, and has not run since.
fn is_asked_to_end(task: &str) -> bool {
    let status = fs::read_to_string(format!("{task}/status")).unwrap();
    let mut lines = status.lines();
    let pending = lines.find_map(|line| line.strip_prefix("SigPnd:")).expect("pending signals");
    u64::from_str_radix(pending.trim(), 16).unwrap() != 0
}

#[test]
fn a_stall_in_which_a_run_is_ended_by_a_signal_is_in_its_record() {
    if !std::thread::spawn(|| set_schedule(HOG).is_ok()).join().unwrap() {
        return skip(TEST, "SCHED_FIFO is not permitted");
    }
    let cpus = allowed_cpus();
    let [other, .., cpu] = cpus[..] else { return skip(TEST, "there is one CPU") };
    let test = Test::new("stopped");
    for stimulus in ["timer", "timerfd", "signal", "sigwait", "futex-timeout", "rtc-grid", "spin"] {
        let out = test.dir.join(stimulus);
        let (on, folder) = (cpu.to_string(), out.to_str().unwrap());
        let args = ["--duration", "1h", "--warmup", "50ms", "--fail-above", "100ms"];
        let named = ["--cpus", &on, "--out", folder, "--stimulus", stimulus];
        set_affinity(&cpus).unwrap();
        let running = test.start_measure(&[&args[..], &named].concat());
        eventually("the run begins", || out.join(RECORD).exists());
        await_samples_in(&out);
        // Neither this thread nor its first one, which is to end the run, may wait for the hog.
        set_affinity(&[other]).unwrap();
        let pid = running.pid().to_string();
        let bound = Command::new("taskset").args(["-pc", &other.to_string(), &pid]).output();
        assert!(bound.unwrap().status.success());
        let probe = probe_of(running.pid(), cpu);

        let mut hog = Threads::default();
        hog.start("hog", &[cpu], HOG, |ends| while !ends.load(Ordering::Relaxed) {});
        let began = clock::now();
        let stalled = || clock::now().since(began);
        // Longer than the limit, and shorter than what the kernel lets real-time tasks have of a second.
        eventually("the stall is long", || stalled() > SpanNs(150_000_000));
        let until_stop = stalled();
        kill("TERM", &[running.pid()]);
        eventually("the run is ended", || is_asked_to_end(&probe));
        let until_end = stalled();
        hog.end();
        let ended = running.output();
        assert_eq!(ended.code, Some(1), "{stimulus}: {ended:?}");
        let run = record(&out);
        assert_found(&run, "interrupted");
        let outcomes: Vec<_> = run.limits.iter().map(|limit| limit.outcome).collect();
        assert_eq!((run.state, outcomes), (State::Interrupted, vec![Outcome::Fail]));
        // What it hit was due within an interval after it began.
        let stall_ns = run.summary.max_ns.unwrap() + 1_000_000;
        assert!(stall_ns > until_end.0, "{stimulus}: {stall_ns} {until_end}");
        assert!(run.duration_ns > until_stop.0, "{stimulus}: {} {until_stop}", run.duration_ns);
    }
}
