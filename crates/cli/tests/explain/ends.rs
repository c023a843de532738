//! Ends that nobody planned.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use wakescope_core::run::{Run, State};
use wakescope_sys::sched::this_thread;

use crate::a_cpu;
use crate::common::bench::{Test, eventually, kill, skip};
use crate::common::following::{await_programs, can_follow, links, start_explain};
use crate::common::measured::{RECORD, assert_found, await_samples_in, names, record};

#[test]
fn ctrl_c_ends_early_and_keeps_what_was_seen() {
    if !can_follow("ctrl_c_ends_early_and_keeps_what_was_seen") {
        return;
    }
    let test = Test::new("ctrl-c");
    let args = ["--duration", "1h", "--cpus", &a_cpu(), "--out", "run"];
    let running = start_explain(&test, &args);
    await_samples_in(&test.dir.join("run"));
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.starts_with("Worst wakeup "), "{}", ended.stdout);
    let run = record(&test.dir.join("run"));
    assert_eq!(run.state, State::Interrupted);
    assert_found(&run, "interrupted");
    let explained = run.explanation.as_ref().expect("an explanation");
    // A wakeup that finds the run ended is answered, and not recorded any more.
    let (followed, woken) = (explained.wakeups + explained.not_followed, run.woken().count);
    assert!(
        explained.wakeups > 0 && (woken..=woken + 1).contains(&followed),
        "{explained:?}: {woken}"
    );
    assert_eq!(names(&test.dir.join("run")), ["episodes.jsonl", RECORD]);
}

/// Of whose wakeups it is does not matter.
#[test]
fn no_program_outlives_the_process() {
    let name = "no_program_outlives_the_process";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("outlive");
    let us = this_thread().number().to_string();
    for (signal, whose) in [("KILL", "probes"), ("KILL", "others"), ("INT", "others")] {
        let out = format!("{signal}-{whose}");
        let cpu = a_cpu();
        let mut args = vec!["--duration", "1h", "--out", &out];
        args.extend(if whose == "probes" { ["--cpus", &cpu] } else { ["--pid", &us] });
        let running = start_explain(&test, &args);
        await_programs(&running);
        let record = test.dir.join(&out).join(RECORD);
        eventually("the run has begun", || record.exists());
        let programs: BTreeSet<u32> = links(running.pid()).into_iter().map(|link| link.0).collect();
        assert!(programs.len() > 5, "{programs:?}");
        assert_eq!(loaded(&programs).unwrap_or_else(|| programs.clone()), programs);
        kill(signal, &[running.pid()]);
        let ended = running.output();
        assert_eq!(ended.code, (signal == "INT").then_some(0), "{ended:?}");
        eventually("nobody holds its programs", || held(&programs).is_empty());
        match loaded(&programs) {
            None => skip(name, "there is no bpftool to ask the kernel itself"),
            Some(_) => eventually("its programs are gone", || {
                loaded(&programs).is_some_and(|left| left.is_empty())
            }),
        }
        // Whatever ended it, there is a record that can be read.
        assert!(Run::from_json(&fs::read(record).unwrap()).is_ok());
    }
}

/// Of the test, the run's folder and its process.
type Condition = dyn Fn(&Test, &Path, i32) -> bool;

/// Wherever a run is when it is killed: no part of it goes on, and what it wrote can be read.
#[test]
fn a_run_killed_at_any_moment_leaves_nothing_running() {
    if !can_follow("a_run_killed_at_any_moment_leaves_nothing_running") {
        return;
    }
    let test = Test::new("any-moment");
    let moments: [(&str, &Condition); 6] = [
        ("started", &|_, _, _| true),
        ("has its folder", &|_, folder, _| folder.exists()),
        ("has a record", &|_, folder, _| folder.join(RECORD).exists()),
        ("has a load", &|test, _, _| test.processes().len() > 1),
        ("has a program", &|_, _, pid| !links(pid).is_empty()),
        ("has samples", &|_, folder, _| {
            fs::read(folder.join(RECORD))
                .is_ok_and(|json| !Run::from_json(&json).unwrap().threads.is_empty())
        }),
    ];
    for (number, (moment, is_there)) in moments.into_iter().enumerate() {
        let out = format!("killed-{number}");
        let running = start_explain(&test, &["--duration", "1h", "--load", "find", "--out", &out]);
        let folder = test.dir.join(&out);
        eventually(moment, || is_there(&test, &folder, running.pid()));
        let programs: BTreeSet<u32> = links(running.pid()).into_iter().map(|link| link.0).collect();
        kill("KILL", &[running.pid()]);
        assert_eq!(running.output().code, None);
        eventually("nobody holds its programs", || held(&programs).is_empty());
        eventually("no process is left", || test.processes().is_empty());
        if folder.join(RECORD).exists() {
            let shown = test.ended(&["report", &out]);
            assert_eq!(shown.code, Some(0), "{moment}: {shown:?}");
        }
    }
    // The next one removes what the killed ones could not.
    let ended = test.ended(&["measure", "--samples", "1", "--load", "find"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    test.assert_nothing_is_left();
}

/// Those of `programs` that a process holds.
fn held(programs: &BTreeSet<u32>) -> BTreeSet<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.flat_map(links).map(|link| link.0).filter(|id| programs.contains(id)).collect()
}

/// Those of `programs` that the kernel has, by its own word; `None` if nobody can ask it.
fn loaded(programs: &BTreeSet<u32>) -> Option<BTreeSet<u32>> {
    let tool = ["/usr/sbin/bpftool", "/sbin/bpftool", "/usr/bin/bpftool"];
    let tool = tool.into_iter().find(|path| Path::new(path).exists())?;
    let mut ask = Command::new(tool);
    let shown = ask.args(["-j", "prog", "show"]).stderr(Stdio::null()).output().ok()?;
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).ok()?;
    let ids = shown.as_array()?.iter().filter_map(|program| program["id"].as_u64());
    Some(ids.filter_map(|id| u32::try_from(id).ok()).filter(|id| programs.contains(id)).collect())
}
