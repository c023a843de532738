//! Deadline tasks, measured by the whole command.

use std::process::Command;

use wakescope_core::plan::{ProbePolicy, Stimulus};
use wakescope_core::run::State;
use wakescope_sys::file::effective_user;

use crate::common::bench::{Test, skip};
use crate::common::deadline::admitted;
use crate::common::measured::{allowed_cpus, assert_found, assert_not_found, names};

#[test]
fn deadline_probes_of_several_cpus_are_not_bound_to_them() {
    let name = "deadline_probes_of_several_cpus_are_not_bound_to_them";
    if effective_user() != 0 {
        return skip(name, "only root may use SCHED_DEADLINE");
    }
    let test = Test::new("deadline");
    let args = ["--samples", "50", "--policy", "deadline"];
    let (run, _) = admitted(&test, &[&["measure"], &args[..]].concat());
    assert_eq!((run.plan.policy, run.plan.priority), (ProbePolicy::Deadline, None));
    assert_not_found(&run, "policy");
    if run.plan.cpus.len() > 1 {
        assert_found(&run, "not-pinned");
        assert!(run.threads.iter().all(|t| t.cpu.is_none()), "{:?}", run.threads);
        assert!(run.worst.iter().all(|w| w.cpu.is_none()), "{:?}", run.worst);
    }
}

#[test]
fn deadline_tasks_are_measured_on_the_grid_with_the_runtime_asked_for() {
    let name = "deadline_tasks_are_measured_on_the_grid_with_the_runtime_asked_for";
    if effective_user() != 0 {
        return skip(name, "only root may use SCHED_DEADLINE");
    }
    let test = Test::new("deadline-stimulus");
    let args = ["--stimulus", "deadline", "--interval", "2ms", "--runtime", "300us"];
    let args = [&args[..], &["--duration", "500ms"]].concat();
    let (run, text) = admitted(&test, &[&["measure"], &args[..]].concat());
    assert_eq!((run.state, run.plan.stimulus), (State::Complete, Stimulus::Deadline));
    assert_eq!((run.plan.policy, run.plan.runtime_ns), (ProbePolicy::Deadline, Some(300_000)));
    // Another schedule than that one would be found.
    assert_not_found(&run, "policy");
    assert_not_found(&run, "early");
    for thread in &run.threads {
        assert_eq!((thread.expiries.count, thread.not_asleep), (250, 0), "{thread:?}");
        assert_eq!(thread.woken.count + thread.missed, 250, "{thread:?}");
    }
    assert!(text.contains(" deadline 2.00 ms · deadline 300 µs · "), "{text}");
}

#[test]
fn a_deadline_task_that_cannot_be_is_refused_with_a_remedy() {
    let test = Test::new("deadline-refused");
    let stimulus = ["--stimulus", "deadline"];
    for (args, want, remedy) in [
        (&["--policy", "fifo"][..], "--policy fifo does not apply", "omit --policy"),
        (&["--priority", "5"], "--policy deadline has no --priority", "omit --priority"),
        (&["--runtime", "1023ns"], "the kernel takes 1024ns or more", "--help"),
        (&["--runtime", "2ms"], "longer than the interval of 1ms", "smaller --runtime"),
        (&["--interval", "5s"], "allows a period from", "another --interval"),
    ] {
        let ended = test.measure(&[&stimulus[..], args, &["--duration", "9s"]].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want) && ended.stderr.contains(remedy), "{ended:?}");
        assert!(names(&test.dir).is_empty(), "{args:?}");
    }
    let ended = test.measure(&["--runtime", "100us"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let text = ended.stderr.contains("--runtime does not apply to --policy fifo");
    assert!(text && ended.stderr.contains("--stimulus deadline"), "{ended:?}");
}

#[test]
fn deadline_probes_are_not_measured_on_other_cpus_than_those_asked_for() {
    let name = "deadline_probes_are_not_measured_on_other_cpus_than_those_asked_for";
    let cpus = allowed_cpus();
    if effective_user() != 0 || cpus.len() < 2 {
        return skip(name, "it takes root and two CPUs");
    }
    let test = Test::new("deadline-cpu");
    let first = cpus[0].to_string();
    // Little enough to be admitted beside other tests.
    let args = ["--stimulus", "deadline", "--runtime", "10us", "--cpus", &first, "--out", "run"];
    let ended = test.measure(&args);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let want = format!("the probe cannot be bound to CPU {first} of ");
    assert!(ended.stderr.contains(&want), "{ended:?}");
    for remedy in ["omit --cpus", "cpuset.cpus.partition", "--stimulus timer"] {
        assert!(ended.stderr.contains(remedy), "{ended:?}");
    }
    let mut bound = Command::new("taskset");
    let bound = bound.args(["-c", &first]).arg(env!("CARGO_BIN_EXE_wakescope"));
    let message = bound.args(["measure", "--stimulus", "deadline"]).current_dir(&test.dir).output();
    let message = message.expect("util-linux is there");
    let text = String::from_utf8_lossy(&message.stderr);
    assert_eq!(message.status.code(), Some(2), "{text}");
    assert!(text.contains(&format!("may use only CPU {first}\n")), "{text}");
    assert!(text.contains("without taskset"), "{text}");
}
