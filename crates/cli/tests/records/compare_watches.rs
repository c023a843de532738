//! `wakescope compare` of stored windows of watches, run as a command.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::bench::{Ended, Test};
use crate::common::stored_window::busy_window;
use crate::common::{Checker, read};
use serde_json::Value;

/// One of a fleet: two tasks, of which the second waits so many µs at its p99.9, in windows from 01:40 and 01:50
/// on. No two have a window in common.
fn write_watch(test: &Test, folder: &str, own: u64, switches: u64, slow_us: u64) {
    let path = test.dir.join(folder);
    fs::create_dir_all(&path).unwrap();
    let tail = |us: u64| vec![(100_000 + own, 2_980), (us * 1_000 + own, 20)];
    let tasks = [("postgres", tail(2_000)), ("cron\u{1b}[31m", tail(slow_us))];
    let window = |minute: u64| {
        let started = format!("2026-11-21T01:{minute}:00Z");
        busy_window(&started, own, switches, &tasks)
    };
    fs::write(path.join("2026-11-21T01-40-00.jsonl"), window(40) + &window(50)).unwrap();
}

/// As many watches a side, in the folders `new` and `old`.
fn fleets(test: &Test, count: u64, switches: u64, slow_us: u64) {
    for at in 0..count {
        write_watch(test, &format!("new/host{at}"), 1 + at, switches, slow_us);
        write_watch(test, &format!("old/host{at}"), 51 + at, 1_000, 3_000);
    }
}

fn compare(test: &Test, args: &[&str]) -> Ended {
    test.ended(&[&["compare", "new", "--against", "old"], args].concat())
}

#[track_caller]
fn check(count: u64, switches: u64, slow_us: u64, args: &[&str], code: i32, want: &[&str]) {
    let test = Test::new("compare-watches");
    fleets(&test, count, switches, slow_us);
    let ended = compare(&test, args);
    assert_eq!((ended.code, &*ended.stderr), (Some(code), ""), "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
    for want in want {
        assert!(ended.stdout.contains(want), "{want}: {}", ended.stdout);
    }
}

#[test]
fn each_verdict_of_a_fleet_has_its_exit_code() {
    let slower = "Worse: of 2 tested series, longer waits in 1 (cron\u{fffd}[31m in /a), no difference in 1.";
    check(6, 1_000, 6_000, &[], 1, &[slower, "All waits together: worse: p99.9 "]);
    check(6, 1_000, 1_000, &[], 0, &["Better: of 2 tested series, shorter waits in 1 (cron"]);
    let alike = "No difference: of 2 tested series, no difference in 2.\nAll waits together: no difference: ";
    check(6, 1_000, 3_000, &[], 0, &[alike, "Load: no difference (1.00 × as many switches"]);
    check(6, 2_000, 6_000, &[], 3, &["The load differs: 2.00 ×", "would be: worse."]);
    check(6, 2_000, 6_000, &["--force"], 1, &["Worse: of 2 tested series"]);
    check(
        1,
        1_000,
        6_000,
        &[],
        3,
        &["Inconclusive: no series is tested.", "A watch counts as one"],
    );
    check(6, 1_000, 6_000, &["--by", "none"], 1, &["All waits together: worse: p99.9 "]);
    check(
        6,
        1_000,
        6_000,
        &["--by", "cgroup"],
        1,
        &["of 1 tested cgroup, longer waits in 1 (/a)."],
    );
    check(
        6,
        1_000,
        6_000,
        &["--max-regression", "20%"],
        1,
        &["Worse by more than 20 %: p99.9, max, p99.9 of cron"],
    );
    check(6, 1_000, 6_000, &["--fail-above", "10ms", "--by", "none"], 1, &["within the limit"]);
}

#[test]
fn every_format_has_the_groups() {
    let test = Test::new("compare-watches-formats");
    fleets(&test, 6, 1_000, 6_000);
    let json = compare(&test, &["--json", "--by", "series"]).stdout;
    let schema = serde_json::from_str(&read("docs/reference/compare.schema.json")).unwrap();
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(Checker::closed(schema).fault(&record), None, "{json}");
    assert_eq!(record["quantities"][0]["quantity"], "runqueue-delay");
    assert_eq!(record["watches"]["groups"][0]["tested"]["verdict"], "worse");
    let repeat = record["settings"]["repeat"].as_str().unwrap();
    assert_eq!(repeat, "wakescope compare new --against old --by=series");
    let markdown = compare(&test, &["--format", "markdown"]).stdout;
    assert!(markdown.contains("\n| postgres in /a |"), "{markdown}");
    let junit = compare(&test, &["--format", "junit"]).stdout;
    let case = "<testcase classname=\"wakescope.compare.series\" name=\"postgres in /a\"/>";
    assert!(junit.contains(case), "{junit}");
    let counts = "tests=\"4\" failures=\"3\" errors=\"0\" skipped=\"0\"";
    assert!(junit.contains(counts), "{junit}");
}

#[test]
fn what_is_no_fair_comparison_is_refused_with_a_remedy() {
    let test = Test::new("compare-watches-refused");
    fleets(&test, 2, 1_000, 3_000);
    let run = test.write_runs("runs", &[100]).remove(0);
    fs::create_dir(test.dir.join("copies")).unwrap();
    fs::create_dir(test.dir.join("empty")).unwrap();
    write_watch(&test, "copies/again", 1, 1_000, 3_000);
    symlink("new/host0", test.dir.join("link")).unwrap();
    for (args, told) in [
        (&["new", "--against", &run][..], "cannot compare a watch with anything else"),
        (&[&run, "--against", "old", "--force"], "which is not wakeup latency"),
        (&[&run, "--against", "old", "--mix-quantities"], "is one, "),
        (&["new", "--against", "old", "gone"], "cannot read gone: No such file or directory"),
        (&["new", "--against", "old", "empty"], "empty contains no watch"),
        (&["new", "--against", "new/host0"], "new/host0 is given twice"),
        (&["new/host0", "--against", "link", "--force"], "have a window in common"),
        (&["new", "--against", "copies"], "a copy is not a second watch"),
        (&["new", "--against", "old", "--mix-quantities"], "waits are compared only with waits"),
        (&["new", "--against", "old", "--unit", "ns"], "a watch is in ns"),
        (&[&run, "--against", &run, "--by", "comm"], "--by applies only to watches"),
        (&["--interleave-plan", "5", "--by", "comm"], "cannot be used with"),
    ] {
        let ended = test.ended(&[&["compare"], args].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_window_that_is_twice_in_a_folder_does_not_count_twice() {
    let test = Test::new("watches-copied");
    fleets(&test, 1, 1_000, 3_000);
    let folder = test.dir.join("new/host0");
    fs::copy(folder.join("2026-11-21T01-40-00.jsonl"), folder.join("2026-11-21T02-00-00.jsonl"))
        .unwrap();
    for args in [
        &["report", "new/host0"][..],
        &["report", "new/host0", "--format", "json"],
        &["watch", "--replay", "new/host0", "--once"],
        &["compare", "new", "--against", "old"],
    ] {
        let ended = test.ended(args);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        let told = "02-00-00.jsonl: line 1: the window of 2026-11-21T01:40:00Z is also in";
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("→ remove one of the two lines"), "{}", ended.stderr);
    }
}

#[test]
fn what_is_cut_is_named_and_what_is_damaged_is_refused() {
    let test = Test::new("compare-watches-damaged");
    fleets(&test, 1, 1_000, 3_000);
    let file = test.dir.join("new/host0/2026-11-21T01-40-00.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 30]).unwrap();
    let ended = compare(&test, &[]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("line 2: it ends in the middle"), "{}", ended.stderr);
    for (from, to, told) in [
        ("\"count\":3000", "\"count\":3001", "but the histogram holds 3000"),
        ("\"queued\"", "\"waking\"", "unknown variant `waking`"),
        ("watch/1", "watch/9", "read it with the version of wakescope that wrote it"),
    ] {
        fs::write(&file, whole.replacen(from, to, 1)).unwrap();
        let ended = compare(&test, &[]);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{from}: {ended:?}");
        assert!(ended.stderr.contains(told), "{from}: {}", ended.stderr);
    }
    fs::write(&file, "").unwrap();
    assert!(compare(&test, &[]).stderr.contains("contains no stored window"));
}
