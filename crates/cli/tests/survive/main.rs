//! What a measurement must survive, and what must be left when it did not.

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::bench::{PATIENCE, Running, Test, eventually, eventually_some, kill};
use common::measured::{
    NEXT, RECORD, assert_found, assert_not_found, await_samples_in, names, record,
};
use wakescope_core::finding::Verdict;
use wakescope_core::limit::Outcome;
use wakescope_core::run::{Run, State};
use wakescope_sys::clock;

#[path = "../common/mod.rs"]
mod common;
mod confined;
mod disk;
mod hostile;
mod inputs;
mod scope;
mod signals;
mod written;

#[test]
fn a_signal_ends_a_run_early_and_it_is_written() {
    for (signal, limits, code, text) in [
        ("INT", &[][..], 0, "SIGINT"),
        ("TERM", &[], 0, "SIGTERM"),
        ("HUP", &[], 0, "SIGHUP"),
        // What the rest of it would have seen is not known: it can fail, but not pass.
        ("INT", &["--fail-above", "1h"], 3, "SIGINT"),
        ("TERM", &["--fail-above", "1ns"], 1, "SIGTERM"),
    ] {
        let test = Test::new("signal");
        let running = test.start_measure(&[&["--duration", "1h"], limits].concat());
        let folder = test.await_samples();
        kill(signal, &[running.pid()]);
        let ended = running.output();
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stdout.starts_with("Worst wakeup "), "{}", ended.stdout);
        assert_eq!(names(&folder), [RECORD]);
        let run = record(&folder);
        assert_eq!(run.state, State::Interrupted);
        assert!(assert_found(&run, "interrupted").message.contains(text), "{:?}", run.validity);
        assert_not_found(&run, "unfinished");
        assert!(run.threads.iter().all(|t| t.woken.count > 0), "{:?}", run.threads);
    }
}

#[test]
fn a_signal_before_the_first_wakeup_leaves_nothing() {
    for args in [&["--warmup", "1h"][..], &["--warmup", "1h", "--load", "cpu"]] {
        let test = Test::new("too-early");
        let running = test.start_measure(args);
        eventually("a run begins", || !test.runs().is_empty());
        kill("INT", &[running.pid()]);
        let ended = running.output();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("before the first wakeup"), "{}", ended.stderr);
        assert_eq!(names(&test.dir), [""; 0]);
        test.assert_nothing_is_left();
    }
}

/// Kills a run and looks at what it left.
fn killed(test: &Test, running: Running, folder: &Path) -> Run {
    kill("KILL", &[running.pid()]);
    assert_eq!(running.output().code, None);
    let run = record(folder);
    assert_eq!(run.state, State::Running);
    assert_found(&run, "unfinished");
    let report = test.start_command(&["report", &folder.display().to_string()]).output();
    assert_eq!(report.code, Some(0), "{report:?}");
    assert!(report.stdout.contains(" unfinished "), "{}", report.stdout);
    run
}

#[test]
fn a_killed_run_lacks_at_most_a_second() {
    let test = Test::new("killed");
    let running = test.start_measure(&["--duration", "1h"]);
    let folder = test.await_samples();
    let mut seen = vec![record(&folder).duration_ns];
    eventually("there are some versions", || {
        seen.push(record(&folder).duration_ns);
        seen.dedup();
        seen.len() == 8
    });
    assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
    // How much is lacking is a matter of how often versions are due (a test beside `Due`), and of
    // how busy the machine is: here, that the last version stays.
    let run = killed(&test, running, &folder);
    assert!(run.duration_ns >= seen[seen.len() - 1], "{seen:?}");
    assert!(run.threads.iter().all(|t| t.expiries.count > 1_000), "{:?}", run.threads);
}

#[test]
fn a_reader_never_sees_half_a_record() {
    let test = Test::new("whole");
    let running = test.start_measure(&["--duration", "1h"]);
    let folder = test.await_samples();
    let path = folder.join(RECORD);
    let deadline = clock::now().after(PATIENCE);
    let mut versions = vec![fs::read(&path).unwrap()];
    // Without a pause: a record is half written for some microseconds, if it ever is.
    while versions.len() < 4 {
        let json = fs::read(&path).unwrap();
        if versions.last() != Some(&json) {
            assert!(Run::from_json(&json).is_ok(), "{}", String::from_utf8_lossy(&json));
            versions.push(json);
        }
        assert!(clock::now() < deadline, "the record is not written any more");
    }
    drop(running);
}

#[test]
fn a_run_killed_before_the_first_wakeup_says_so() {
    let test = Test::new("killed-early");
    let running = test.start_measure(&["--warmup", "1h"]);
    let folder = eventually_some("a run begins", || {
        test.runs().into_iter().find(|folder| folder.join(RECORD).exists())
    });
    let run = killed(&test, running, &folder);
    assert_eq!((run.validity.verdict, run.threads.len()), (Verdict::Invalid, 0));
}

#[test]
fn the_next_start_tidies_up_after_the_dead_but_not_after_the_living() {
    let test = Test::new("tidy");
    let dead = test.start_measure(&["--duration", "1h"]);
    let dead_folder = test.await_samples();
    kill("KILL", &[dead.pid()]);
    assert_eq!(dead.output().code, None);
    assert_eq!(names(&dead_folder), [RECORD, NEXT]);

    // This one tidies up already.
    let alive = test.start_measure(&["--duration", "1h"]);
    let alive_folder = eventually_some("another run begins", || {
        test.runs().into_iter().find(|folder| *folder != dead_folder)
    });
    await_samples_in(&alive_folder);
    assert_eq!(names(&dead_folder), [RECORD]);
    assert_eq!(record(&dead_folder).state, State::Running);

    test.measured(&["--samples", "1"]);
    assert_eq!(names(&alive_folder), [RECORD, NEXT]);
    let before = record(&alive_folder).duration_ns;
    eventually("the living run goes on", || record(&alive_folder).duration_ns > before);
    kill("INT", &[alive.pid()]);
    assert_eq!(alive.output().code, Some(0));
    assert_eq!(names(&alive_folder), [RECORD]);
}

#[test]
fn loads_do_not_outlive_a_killed_run() {
    let test = Test::new("loads");
    let loads = "find,cpu,exec:sleep 1000 & sleep 1000";
    let running = test.start_measure(&["--duration", "1h", "--load", loads]);
    let folder = test.await_samples();
    assert!(test.processes().len() > 4 && test.directories() == 1);
    killed(&test, running, &folder);
    eventually("no process is left", || test.processes().is_empty());
    let ended = test.measure(&["--samples", "1", "--load", "cpu", "--out", "next"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    test.assert_nothing_is_left();
}

#[test]
fn a_load_that_dies_makes_a_run_invalid() {
    // Dead before the probe began, and while it measured.
    const EARLY: &str = "exec:PASSWORD=hunter2 sleep 0.3; echo hunter2 >&2; false";
    const LATER: &str = "exec:sleep 1; echo hunter2 >&2; false";
    const NAME: &str = "exec:sleep";
    for (load, limit, code, outcome) in [
        (EARLY, &[][..], 0, None),
        (EARLY, &["--fail-above", "10s"], 3, Some(Outcome::Inconclusive)),
        (EARLY, &["--fail-above", "1ns"], 3, Some(Outcome::Inconclusive)),
        (LATER, &["--fail-above", "10s"], 3, Some(Outcome::Inconclusive)),
    ] {
        let test = Test::new("load-dies");
        let args = ["--load", load, "--duration", "1s"];
        let ended = test.measure(&[&args, limit].concat());
        assert_eq!(ended.code, Some(code), "{load} {limit:?}: {ended:?}");
        let run = record(&test.run_folder());
        assert_eq!((run.validity.verdict, run.state), (Verdict::Invalid, State::Complete));
        assert!(assert_found(&run, "load-died").message.contains(NAME), "{:?}", run.validity);
        assert!(!run.load[0].alive && run.load[0].name == NAME, "{:?}", run.load);
        assert_eq!((&run.plan.load[..], run.plan.load_marks.len()), (&[NAME.to_owned()][..], 1));
        // Only standard error quotes the command: neither the record nor the report does.
        let text = std::fs::read_to_string(test.run_folder().join(RECORD)).unwrap();
        assert!(!text.contains("hunter2") && !ended.stdout.contains("hunter2"), "{text}");
        assert!(ended.stderr.contains("the load exec:sleep said last: hunter2"), "{ended:?}");
        assert_eq!(run.limits.first().map(|j| j.outcome), outcome);
        assert!(ended.stdout.lines().next().unwrap().contains("invalid"), "{}", ended.stdout);
    }
}

#[test]
fn a_stopped_process_counts_every_expiry_that_it_slept_through() {
    const MS: u64 = 1_000_000;
    let test = Test::new("stopped");
    let running = test.start_measure(&["--duration", "3s", "--interval", "1ms"]);
    let folder = test.await_samples();
    let pid = running.pid();
    kill("STOP", &[pid]);
    eventually("every thread is stopped", || {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        tasks.map(|t| fs::read_to_string(t.path().join("stat")).unwrap()).all(|stat| {
            let state = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().next();
            state == Some("T")
        })
    });
    let begin = clock::now();
    std::thread::sleep(Duration::from_millis(120));
    let stopped_ns = clock::now().since(begin).0;
    kill("CONT", &[pid]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = record(&folder);
    assert_eq!(run.state, State::Complete);
    let stopped_ms = stopped_ns / MS;
    for thread in &run.threads {
        assert_eq!(thread.expiries.count, 3_000);
        assert_eq!(thread.woken.count, 3_000 - thread.missed);
        assert!(thread.missed >= stopped_ms - 3, "{stopped_ms} ms, {} missed", thread.missed);
        assert!(thread.expiries.max_ns.unwrap() >= stopped_ns - 2 * MS, "{stopped_ns} {thread:?}");
        let is_the_stop = |missed: u64, late_ns: u64| {
            missed >= stopped_ms - 3 && late_ns >= stopped_ns - 2 * MS && missed == late_ns / MS
        };
        let mut own = run.worst.iter().filter(|w| w.cpu == thread.cpu);
        assert!(own.any(|w| is_the_stop(w.missed, w.wakeup_latency_ns)), "{:?}", run.worst);
    }
}
