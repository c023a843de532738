//! Ends that nobody planned.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use wakescope_core::run::{Run, State};
use wakescope_sys::sched::this_thread;

use crate::a_cpu;
use crate::common::bench::{Test, eventually, kill, skip};
use crate::common::measured::{RECORD, assert_found, await_samples_in, names, record};
use crate::following::{await_programs, can_follow, links, start_explain};

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
    let told = run.explanation.as_ref().expect("an explanation");
    // A wakeup that finds the run ended is answered, and not recorded any more.
    let (followed, woken) = (told.wakeups + told.not_followed, run.woken().count);
    assert!(told.wakeups > 0 && (woken..=woken + 1).contains(&followed), "{told:?}: {woken}");
    assert_eq!(names(&test.dir.join("run")), [RECORD]);
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
