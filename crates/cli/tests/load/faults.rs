//! Findings about loads that cannot work as they should.

use std::fs;
use std::os::unix::fs::{lchown, symlink};

use wakescope_core::finding::Severity;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::file::effective_user;

use crate::common::bench::{NOBODY, Running, Test, eventually, eventually_some, kill, skip};
use crate::common::measured::{assert_found, await_samples_in, record};

#[test]
fn loads_that_were_stopped_for_most_of_a_run_make_it_invalid() {
    let test = Test::new("stopped");
    let folder = test.dir.join("run");
    let (out, dir) = (folder.display().to_string(), test.loads.display().to_string());
    let args = ["--load", "cpu,find", "--load-dir", &dir, "--duration", "1h", "--out", &out];
    let running = test.start_measure(&args);
    await_samples_in(&folder);
    let processes = test.processes().into_iter();
    let keepers: Vec<i32> = processes
        .filter_map(|(pid, command)| command.contains("load-keeper").then_some(pid))
        .collect();
    assert_eq!(keepers.len(), 2);
    kill("STOP", &keepers);
    let stopped = clock::now();
    // They worked for less than a quarter of the time, and a beat is taken for half a second more.
    let worked = stopped.since(MonoNs(record(&folder).origin_ns));
    let patience = worked.0 * 3 + 2_000_000_000;
    eventually("enough time has passed", || clock::now().since(stopped).0 >= patience);
    kill("CONT", &keepers);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert!(ended.stdout.contains("invalid"), "{ended:?}");
    let run = record(&folder);
    let found = run.validity.findings.iter().filter(|f| f.code == "load-stalled");
    let found: Vec<_> = found.map(|f| (f.severity, f.message.as_str())).collect();
    for (load, (severity, message)) in ["cpu", "find"].into_iter().zip(&found) {
        assert_eq!(*severity, Severity::Error, "{found:?}");
        assert!(message.starts_with(&format!("no work of the load {load} was seen for ")));
    }
    assert_eq!(found.len(), 2, "{:?}", run.validity);
    assert!(run.load.iter().all(|load| load.alive && load.work > 0), "{:?}", run.load);
    test.assert_nothing_is_left();
}

#[test]
fn loads_that_are_stopped_for_short_times_again_and_again_make_a_run_invalid() {
    let name = "loads_that_are_stopped_for_short_times_again_and_again_make_a_run_invalid";
    if fs::metadata("/proc/self/schedstat").is_err() {
        return skip(name, "this kernel does not tell how long a task waited for a CPU");
    }
    let test = Test::new("stopped-often");
    let folder = test.dir.join("run");
    let out = folder.display().to_string();
    let running = test.start_measure(&["--load", "cpu", "--duration", "1h", "--out", &out]);
    await_samples_in(&folder);
    let processes = test.processes();
    let keeper = *processes.iter().find(|(_, command)| command.contains("load-keeper")).unwrap().0;
    let passes = |ns| {
        let end = clock::now().after(SpanNs(ns));
        eventually("time has passed", || clock::now() >= end);
    };
    // Each stop is shorter than the time between two reports.
    let began = clock::now();
    while clock::now().since(began).0 < 12_000_000_000 {
        kill("STOP", &[keeper]);
        passes(400_000_000);
        kill("CONT", &[keeper]);
        passes(60_000_000);
    }
    kill("INT", &[running.pid()]);
    let ended = running.output();
    let run = record(&folder);
    let finding = assert_found(&run, "load-stalled");
    assert_eq!(finding.severity, Severity::Error, "{finding:?} {ended:?}");
    test.assert_nothing_is_left();
}

#[test]
fn a_load_that_does_not_answer_has_done_what_it_had_reported() {
    let test = Test::new("no-answer");
    let folder = test.dir.join("run");
    let out = folder.display().to_string();
    let running = test.start_measure(&["--load", "cpu", "--duration", "1h", "--out", &out]);
    await_samples_in(&folder);
    // Longer than from one beat to the next.
    let origin = MonoNs(record(&folder).origin_ns);
    eventually("it has reported", || clock::now().since(origin).0 >= 2_000_000_000);
    let processes = test.processes();
    let keeper = processes.iter().find(|(_, command)| command.contains("load-keeper")).unwrap();
    kill("STOP", &[*keeper.0]);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert!(ended.stdout.contains("did not answer"), "{ended:?}");
    let run = record(&folder);
    assert_found(&run, "load-died");
    let [load] = run.load.as_slice() else { panic!("{:?}", run.load) };
    assert!(!load.alive && load.incomplete && load.work > 0, "{load:?}");
    assert!(ended.stdout.contains("≥ "), "{}", ended.stdout);
    test.assert_nothing_is_left();
}

/// A directory that was removed reads as an empty one, and is walked without end.
#[test]
fn a_load_whose_files_are_removed_has_died_and_leaves_nothing() {
    let test = Test::new("files-removed");
    let dir = test.loads.display().to_string();
    let running = Running::start(&mut test.command(&["load", "find", "--dir", &dir]));
    let of_load = || fs::read_dir(&test.loads).unwrap().next().map(|entry| entry.unwrap().path());
    let folder = eventually_some("it has a directory", of_load);
    eventually("it is at work", || fs::read_dir(folder.join("files")).is_ok_and(|f| f.count() > 1));
    // The load may be the one that removes the last of them.
    let remove = || fs::remove_dir_all(folder.join("files"));
    eventually("its files are removed", || remove().is_ok() || !folder.exists());
    let ended = running.output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("the load `find` died: "), "{ended:?}");
    test.assert_nothing_is_left();
}

#[test]
fn an_empty_variable_names_no_directory_and_a_wrong_one_is_named_in_the_error() {
    let test = Test::new("tmpdir");
    let start = |args: &[&str], tmpdir: &str| {
        Running::start(test.command(args).env("TMPDIR", tmpdir)).output()
    };
    let load = ["load", "fifos-mmap", "--duration", "1ms"];
    let measure = ["measure", "--samples", "1", "--load", "fifos-mmap"];
    let ended = start(&load, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for args in [&load[..], &measure] {
        let ended = start(args, "/does/not/exist");
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let fault = "cannot make a directory in /does/not/exist (TMPDIR): No such file";
        assert!(ended.stderr.contains(fault), "{}", ended.stderr);
    }
    test.assert_nothing_is_left();
}

#[test]
fn disturbances_whose_log_cannot_be_written_do_not_begin() {
    let test = Test::new("no-log");
    let log = test.dir.join("missing/log");
    let name = "disturb-syscall-200us";
    let of_load = ["load", name, "--duration", "1ms"];
    let of_measure = ["measure", "--samples", "1", "--load", name];
    for args in [&of_load[..], &of_measure] {
        let ended = Running::start(test.command(args).env("WAKESCOPE_DISTURBANCES", &log)).output();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        for words in [&format!("cannot write {} (", log.display()), "WAKESCOPE_DISTURBANCES=FILE"] {
            assert!(ended.stderr.contains(words), "{}", ended.stderr);
        }
    }
    // Nobody asked for one.
    let ended = Running::start(test.command(&of_load).env("WAKESCOPE_DISTURBANCES", "")).output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    test.assert_nothing_is_left();
}

#[test]
fn a_log_of_disturbances_is_written_through_no_link_of_another_user() {
    if effective_user() != 0 {
        let name = "a_log_of_disturbances_is_written_through_no_link_of_another_user";
        return skip(name, "only root can give files away");
    }
    let test = Test::new("foreign-log");
    let (log, treasure) = (test.dir.join("log"), test.dir.join("treasure"));
    fs::write(&treasure, "treasure").unwrap();
    symlink("treasure", &log).unwrap();
    lchown(&log, Some(NOBODY), None).unwrap();
    let args = ["load", "disturb-syscall-200us", "--duration", "1ms"];
    let ended = Running::start(test.command(&args).env("WAKESCOPE_DISTURBANCES", &log)).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("a symbolic link that user 65534 controls"), "{ended:?}");
    assert_eq!(fs::read_to_string(&treasure).unwrap(), "treasure");
}
