//! A CPU that goes away while it is measured. Nothing else runs beside this: cargo runs one test
//! binary after the other, and the tests in here take turns.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use common::bench::{Ended, Test, eventually, skip};
use common::measured::{allowed_cpus, assert_found, assert_not_found, await_samples_in, record};
use wakescope_core::finding::Verdict;
use wakescope_core::limit::Outcome;
use wakescope_core::run::{Run, State};
use wakescope_sys::file::effective_user;

mod common;

/// Set where tests may take CPUs offline: a developer's own machine is not touched unasked.
const CONSENT: &str = "WAKESCOPE_TEST_HOTPLUG";

static TURN: Mutex<()> = Mutex::new(());

/// A CPU that can be taken offline, and is back online at the end.
struct Hotplug {
    cpu: u32,
    switch: PathBuf,
}

impl Hotplug {
    /// The last CPU. `None`, and so said for `test`, if none may be taken offline.
    fn last(test: &str) -> Option<Self> {
        let refuse = |why: &str| {
            skip(test, &format!("{why}; run it as root, on more than one CPU, with {CONSENT}=1"));
            None
        };
        if std::env::var_os(CONSENT).is_none_or(|value| value != "1") {
            return refuse(&format!("{CONSENT} is not 1, so no CPU may be taken offline"));
        }
        if effective_user() != 0 {
            return refuse("only root can take a CPU offline");
        }
        let cpus = allowed_cpus();
        let cpu = *cpus.last()?;
        let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        if cpus.len() < 2 || fs::OpenOptions::new().write(true).open(&switch).is_err() {
            return refuse("there is no CPU that can be taken offline");
        }
        Some(Self { cpu, switch })
    }

    fn take_offline(&self) {
        fs::write(&self.switch, "0").unwrap();
    }
}

impl Drop for Hotplug {
    fn drop(&mut self) {
        let back = fs::write(&self.switch, "1");
        if !std::thread::panicking() {
            back.unwrap();
            eventually("the CPU is back", || allowed_cpus().contains(&self.cpu));
        }
    }
}

/// Measures `args` and takes `hotplug`'s CPU away in the midst of it.
#[track_caller]
fn measure_and_lose(test: &Test, hotplug: Hotplug, args: &[&str]) -> (Ended, Run) {
    let running = test.start_measure(&[args, &["--out", "run"]].concat());
    let folder = test.dir.join("run");
    await_samples_in(&folder);
    hotplug.take_offline();
    let ended = running.output();
    drop(hotplug);
    let run = record(&folder);
    let finding = assert_found(&run, "cpu-lost");
    assert!(!finding.hint.is_empty(), "{finding:?}");
    assert_not_found(&run, "no-samples");
    assert_not_found(&run, "policy");
    (ended, run)
}

#[test]
fn a_run_goes_on_without_a_cpu_that_goes_away() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // What the lost CPU would have shown is not known: no limit is passed.
    for (limits, code) in [(&[][..], 2), (&["--fail-above", "1h"], 3)] {
        let test = Test::new("hotplug");
        let Some(hotplug) = Hotplug::last("a_run_goes_on_without_a_cpu_that_goes_away") else {
            return;
        };
        let lost = hotplug.cpu;
        let args = [&["--duration", "3s"], limits].concat();
        let (ended, run) = measure_and_lose(&test, hotplug, &args);
        assert_eq!((ended.code, run.state), (Some(code), State::Complete), "{ended:?}");
        assert_eq!(run.validity.verdict, Verdict::Degraded, "{:?}", run.validity);
        for thread in &run.threads {
            let count = thread.expiries.count;
            if thread.cpu == Some(lost) {
                // What it had when the others were waited for is kept.
                assert!(count > 0 && count < 3_000, "{count}");
                let finding = assert_found(&run, "cpu-lost");
                assert!(finding.message.contains(&format!("CPU {lost} ")), "{finding:?}");
            } else {
                assert_eq!((count, thread.migrated), (3_000, 0));
            }
        }
    }
}

#[test]
fn a_run_that_loses_its_only_cpu_was_cut_short() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let test = Test::new("hotplug-all");
    let Some(hotplug) = Hotplug::last("a_run_that_loses_its_only_cpu_was_cut_short") else {
        return;
    };
    let cpu = hotplug.cpu.to_string();
    // It does not wait for the end of what it can no longer measure.
    let args = ["--cpus", &cpu, "--duration", "1h", "--fail-above", "59min"];
    let (ended, run) = measure_and_lose(&test, hotplug, &args);
    assert_eq!((ended.code, run.state), (Some(3), State::Interrupted), "{ended:?}");
    assert_eq!(run.limits[0].outcome, Outcome::Inconclusive);
    assert!(run.threads[0].woken.count > 0, "{:?}", run.threads);
}
