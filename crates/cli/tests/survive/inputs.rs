//! Files to read that others have named: nothing waits for ever, and nothing is read that the user
//! did not mean.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::common::bench::{Running, Test, skip};
use crate::common::made_up::run;

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A command with a path to read, its arguments parted by spaces.
const READERS: [&str; 8] = [
    "report PATH",
    "report PATH --format html -o page.html",
    "report PATH --format jsonl",
    "compare PATH --against PATH",
    "trend PATH PATH PATH",
    "import PATH",
    "explain PATH",
    "lab run --plan ./PATH",
];

#[test]
fn what_waits_or_is_consumed_is_not_read() {
    let test = Test::new("inputs");
    fifo(&test.dir.join("fifo"));
    fs::create_dir(test.dir.join("folder")).unwrap();
    fifo(&test.dir.join("folder/run.json"));
    fs::create_dir(test.dir.join("samples")).unwrap();
    test.write_run("samples", &run(50));
    fifo(&test.dir.join("samples/samples.csv"));
    let trace_pipe = "/sys/kernel/tracing/trace_pipe";
    let mut paths = vec!["fifo", "folder", "/proc/kmsg", "/proc/self/status", "/dev/zero"];
    if Path::new(trace_pipe).exists() {
        paths.push(trace_pipe);
    } else {
        skip("what_waits_or_is_consumed_is_not_read (trace_pipe)", "tracefs is not mounted");
    }
    for reader in READERS {
        for path in &paths {
            let command =
                reader.replace("./PATH", &Path::new(".").join(path).display().to_string());
            let command = command.replace("PATH", path);
            let args: Vec<&str> = command.split(' ').collect();
            // One that waits never ends, and one that reads /dev/zero takes all memory.
            let ended = test.start_command(&args).output();
            assert_eq!(ended.code, Some(2), "{command}: {ended:?}");
            assert_eq!(ended.stdout, "", "{command}");
            assert!(!ended.stderr.contains("Usage:"), "{command}: {ended:?}");
        }
    }
    let ended = test.start_command(&["report", "samples", "--format", "jsonl"]).output();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("not a regular file"), "{}", ended.stderr);
    let ended = test.start_command(&["report", "/proc/self/status"]).output();
    assert!(ended.stderr.contains("a kernel file (proc)"), "{}", ended.stderr);
}

#[test]
fn a_plan_may_come_through_a_pipe_that_the_shell_made() {
    let test = Test::new("plan-pipe");
    if !Path::new("/bin/bash").exists() {
        return skip("a_plan_may_come_through_a_pipe", "there is no /bin/bash");
    }
    for script in [
        "exec \"$0\" lab run --plan <(echo nonsense)",
        "echo nonsense | \"$0\" lab run --plan /dev/stdin",
        "\"$0\" lab run --plan /dev/stdin <<<nonsense",
    ] {
        let mut shell = test.program(Path::new("/bin/bash"));
        let ended = shell.args(["-c", script]).arg(&test.program).output().unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{script}: {text}");
        assert!(!text.contains("cannot read the plan"), "{script}: {text}");
        assert!(text.contains("/dev/"), "{script}: {text}");
    }
}

/// The record of a lab with one cell, whose run lies at `place`.
pub(crate) fn record(place: &str) -> String {
    json!({"schema": "wakescope.lab/1", "repeat": "wakescope lab run", "kernels": [], "published": [],
        "settings": {"interval_ns": 500_000, "samples": 300, "cpu_mips": 1000, "cpus": 1, "emulator": "QEMU",
            "guest_sha256": "00"},
        "cells": [{"kernel": "6.1-cloud", "asked": "none", "model": "none", "load": "find", "seed": 1,
            "status": "ok", "max_ns": 300, "count": 300, "cached": false, "run": place}]})
    .to_string()
}

#[test]
fn a_lab_record_reads_no_run_elsewhere() {
    let test = Test::new("lab-elsewhere");
    let mut other = run(77);
    other.host.release = "of-somebody-else".into();
    test.write_run("elsewhere", &other);
    test.write_run("lab/run", &run(50));
    test.write_run("lab/linked", &run(50));
    test.write_run("cache/cells/own", &run(60));
    let lab = test.dir.join("lab");
    symlink("../elsewhere", lab.join("link")).unwrap();
    fs::remove_file(lab.join("linked/run.json")).unwrap();
    symlink("../../elsewhere/run.json", lab.join("linked/run.json")).unwrap();
    fs::create_dir(lab.join("fifo")).unwrap();
    fifo(&lab.join("fifo/run.json"));
    let own = test.dir.join("cache/cells/own").display().to_string();
    let absolute = test.dir.join("elsewhere").display().to_string();
    let lab_run = lab.join("run").display().to_string();
    for (place, is_read) in [
        ("run", true),
        (lab_run.as_str(), true),
        (own.as_str(), true),
        (absolute.as_str(), false),
        ("../elsewhere", false),
        ("run/../../elsewhere", false),
        ("link", false),
        ("linked", false),
        ("fifo", false),
        ("/proc/kmsg", false),
    ] {
        fs::write(lab.join("lab.json"), record(place)).unwrap();
        let mut command = test.command(&["report", "lab/lab.json", "--format", "svg"]);
        let ended = Running::start(command.env("WAKESCOPE_CACHE", test.dir.join("cache"))).output();
        assert_eq!(ended.code == Some(0), is_read, "{place}: {ended:?}");
        if !is_read {
            assert!(ended.stderr.contains("→ "), "{place}: {}", ended.stderr);
            assert!(!ended.stderr.contains("of-somebody-else"), "{place}: {}", ended.stderr);
        }
    }
}
