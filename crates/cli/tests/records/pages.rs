//! `wakescope report` as pages, pictures and Markdown, run as a command.

use std::fs;

use crate::common::bench::{Ended, Test};
use crate::common::measured::{RECORD, record};
use serde_json::json;
use wakescope_core::run::{Run, TimeDomain};

/// A test with runs in its folders `one` and `two`, the second with a late wakeup more.
fn with_runs(name: &str) -> Test {
    let test = Test::new(name);
    let args = ["--samples", "300", "--load", "cpu", "--fail-above", "p99=1h", "--out", "one"];
    let ended = test.measure(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = record(&test.dir.join("one"));
    fs::create_dir(test.dir.join("two")).unwrap();
    write(&test, "two", &run);
    test
}

fn write(test: &Test, folder: &str, run: &Run) {
    fs::write(test.dir.join(folder).join(RECORD), run.to_json()).unwrap();
}

fn report(test: &Test, args: &[&str]) -> Ended {
    test.start_command(&[&["report"], args].concat()).output()
}

/// What is written to `file`, which gives the format.
#[track_caller]
fn written(test: &Test, args: &[&str], file: &str) -> Vec<u8> {
    let ended = report(test, &[args, &["-o", file]].concat());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
    assert_eq!(ended.stderr, "", "{args:?}");
    fs::read(test.dir.join(file)).unwrap()
}

#[test]
fn the_ending_of_a_file_tells_the_format() {
    let test = with_runs("endings");
    for (file, beginning) in [
        ("a.html", &b"<!doctype html>"[..]),
        ("a.svg", b"<svg xmlns"),
        ("a.png", b"\x89PNG\r\n"),
        ("a.md", b"**Worst wakeup "),
        ("a.json", b"{\"schema\":"),
        ("a.txt", b"Worst wakeup "),
        ("a", b"Worst wakeup "),
    ] {
        let found = written(&test, &["one"], file);
        assert!(found.starts_with(beginning), "{file}: {}", String::from_utf8_lossy(&found));
    }
    let ended = report(&test, &["one", "--format", "html", "-o", "b.txt"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains(".html .htm .svg"), "{ended:?}");
    assert!(!test.dir.join("b.txt").exists());
    let page = written(&test, &["one", "--format", "html"], "b");
    assert_eq!(page, written(&test, &["one"], "b.html"));
    assert_eq!(report(&test, &["one", "--format", "html"]).stdout.into_bytes(), page);
}

#[test]
fn runs_are_shown_together() {
    let test = with_runs("together");
    let both = ["one", "two", "--title", "old & new"];
    let page = String::from_utf8(written(&test, &both, "both.html")).unwrap();
    assert!(page.contains("<title>old &amp; new</title>"), "{page}");
    assert_eq!(page.matches("<button type=\"button\" aria-pressed=\"true\"").count(), 2);
    assert!(page.contains("p99 ≤ 1.00 h"), "the limits of the runs are lines");
    let args = [&both[..], &["--line", "123us"]].concat();
    let svg = String::from_utf8(written(&test, &args, "both.svg")).unwrap();
    for part in ["data-run=\"1\"", "123 µs", ">one · max ", ">two · max ", "old &amp; new"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let markdown = String::from_utf8(written(&test, &both, "both.md")).unwrap();
    assert!(markdown.contains("\n| one | ") && markdown.contains("\n| two | "), "{markdown}");
    let text = report(&test, &["one", "two"]).stdout;
    assert_eq!(text.matches("Worst wakeup ").count(), 2, "{text}");
}

#[test]
fn what_a_run_does_not_hold_is_not_drawn() {
    let test = with_runs("not-there");
    let ended = report(&test, &["one", "--format", "svg", "--picture", "causes"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("→ it needs an explanation"), "{}", ended.stderr);
    for picture in ["histogram", "course"] {
        let ended = report(&test, &["one", "--format", "svg", "--picture", picture]);
        assert_eq!(ended.code, Some(0), "{picture}: {ended:?}");
    }
}

#[test]
fn times_of_different_kinds_are_not_laid_over_each_other() {
    let test = with_runs("kinds");
    let mut run = record(&test.dir.join("two"));
    run.time_domain = TimeDomain::Virtual;
    write(&test, "two", &run);
    let ended = report(&test, &["one", "two", "--format", "html"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("one is in real time and two in virtual time"), "{ended:?}");
}

#[test]
fn seeds_of_a_lab_are_one_curve() {
    let test = with_runs("lab");
    let mut run = record(&test.dir.join("one"));
    run.time_domain = TimeDomain::Virtual;
    fs::create_dir(test.dir.join("lab")).unwrap();
    let mut cells = Vec::new();
    for (asked, seed) in [("none", 1), ("none", 2), ("full", 1), ("full", 2)] {
        let folder = format!("{asked}-{seed}");
        fs::create_dir(test.dir.join("lab").join(&folder)).unwrap();
        write(&test, &format!("lab/{folder}"), &run);
        cells.push(json!({"kernel": "6.1-cloud", "asked": asked, "model": asked, "load": "find", "seed": seed,
            "status": "ok", "max_ns": run.summary.max_ns, "count": 300, "cached": false, "run": folder}));
    }
    let lab = json!({"schema": "wakescope.lab/1", "repeat": "wakescope lab run", "settings": {"interval_ns": 500_000,
        "samples": 300, "cpu_mips": 1000, "cpus": 1, "emulator": "QEMU", "guest_sha256": "00"}, "kernels": [],
        "cells": cells, "published": ["Linux Journal, 2002: find 78.51 → 0.48 ms"]});
    fs::write(test.dir.join("lab/lab.json"), lab.to_string()).unwrap();
    let page = String::from_utf8(written(&test, &["lab/lab.json"], "lab.html")).unwrap();
    for part in
        ["none, 2 runs", "full, 2 runs", "78.51 → 0.48 ms", "largest wakeup latency, virtual µs"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let mixed = test.ended(&["report", "lab/lab.json", "--mix-quantities"]);
    assert_eq!((mixed.code, &*mixed.stdout), (Some(2), ""), "{mixed:?}");
    assert!(mixed.stderr.contains("--mix-quantities does not apply to a lab's record"));
    let svg = String::from_utf8(written(&test, &["lab/lab.json"], "lab.svg")).unwrap();
    assert!(svg.contains("full, 2 runs · max ") && svg.contains("in virtual time"), "{svg}");
    let markdown = String::from_utf8(written(&test, &["lab/lab.json"], "lab.md")).unwrap();
    assert!(markdown.contains("| kernel | load |"), "{markdown}");
    // Such as can be published: without the run's own names, and those of the user's own kernels.
    let named =
        lab.to_string().replace("6.1-cloud", "/home/me/secret").replace("lab run", "secret");
    fs::write(test.dir.join("lab/secret.json"), named).unwrap();
    let path = test.dir.join("lab/none-1").join(RECORD);
    let own = fs::read_to_string(&path).unwrap().replacen("\"cpu\"", "\"exec:secret\"", 1);
    fs::write(&path, own).unwrap();
    for file in ["public.html", "public.svg", "public.md", "public.json", "public.txt"] {
        let shown = written(&test, &["lab/secret.json", "--redact"], file);
        let shown = String::from_utf8(shown).unwrap();
        assert!(!shown.contains("secret") && shown.contains("none"), "{file}: {shown}");
    }
    // A run that is gone is told, and the others are shown.
    fs::remove_dir_all(test.dir.join("lab/full-2")).unwrap();
    let ended = report(&test, &["lab/lab.json", "--format", "svg"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("1 of the lab's runs are omitted"), "{}", ended.stderr);
    let ended = report(&test, &["lab/lab.json", "one"]);
    assert!(ended.stderr.contains("is a lab, which can only be shown alone"), "{}", ended.stderr);
}
