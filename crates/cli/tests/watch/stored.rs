//! What `wakescope watch --out` stores, and what `watch --replay` and `report` make of it.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::bench::{Running, Test, eventually, eventually_some, kill};
use crate::common::following::can_follow;
use crate::common::stored_window::{bucket, stored_window};
use crate::common::{Checker, read};
use serde_json::{Value, json};
use wakescope_core::watch::sum::Sum;
use wakescope_core::watch::{Window, packed};
use wakescope_store::window_files;
use wakescope_sys::file::make_fifo;
use wakescope_testing::Disk;

/// A folder with windows of two watches, of which the second was killed while it wrote.
fn made_up(test: &Test, name: &str) -> PathBuf {
    let folder = test.dir.join(name);
    fs::create_dir(&folder).unwrap();
    let line = |started: &str, begin_s: u64, comm: &str, max_us: u64| {
        let (sum_ns, max_ns) = (max_us * 1_000 + 5, max_us * 1_000);
        let histogram = format!("@0 1 @{} 1", bucket(max_ns));
        let waits = json!({"count": 2, "sum_ns": sum_ns, "max_ns": max_ns, "max_is_exact": true, "min_ns": 5,
            "min_is_exact": true, "histogram": histogram});
        stored_window(started, begin_s * 1_000_000_000, comm, &waits)
    };
    let first = line("2026-11-21T01:40:00Z", 0, "postgres", 300);
    let second = line("2026-11-21T01:50:00Z", 600, "nginx", 900);
    fs::write(folder.join("2026-11-21T01-40-00.jsonl"), first + &second).unwrap();
    let third = line("2026-11-21T03:00:00Z", 0, "postgres", 100);
    let cut = &line("2026-11-21T03:10:00Z", 600, "postgres", 100)[..300];
    fs::write(folder.join("2026-11-21T03-00-00.jsonl"), third + cut).unwrap();
    fs::write(folder.join("lock"), "").unwrap();
    folder
}

const CUT: &str = "2026-11-21T03-00-00.jsonl: line 2: it ends in the middle";

#[test]
fn stored_windows_are_shown_and_what_is_cut_is_named() {
    let test = Test::new("watch-shown");
    made_up(&test, "w");
    let replay = |args: &[&str]| test.ended(&[&["watch", "--replay", "w"], args].concat());
    let table = replay(&["--once"]);
    assert_eq!(table.code, Some(0), "{table:?}");
    assert!(table.stderr.contains(CUT), "{}", table.stderr);
    let extent = "3 stored windows from 2026-11-21T01:40:00Z to 2026-11-21T03:10:00Z. \
                  In between, 1.00 h were not watched.\n\
                  Longest wait 900 µs: nginx in /a. 6 waits in 30.0 min.\n";
    assert!(table.stdout.starts_with(extent), "{}", table.stdout);
    let report = test.ended(&["report", "w"]);
    assert_eq!((report.code, &report.stdout), (Some(0), &table.stdout), "{report:?}");

    let blocks = replay(&["--sort", "time", "--by", "comm"]).stdout;
    let headings = blocks.lines().filter(|line| line.contains("Z UTC, 10.0 min"));
    assert_eq!(headings.count(), 3, "{blocks}");
    assert!(blocks.contains("the last 10.0 min of 20:00"), "{blocks}");
    assert!(blocks.contains(extent), "{blocks}");

    let some = ["--since", "2026-11-21T01:41:00Z", "--until", "2026-11-21T02:00:00Z", "--once"];
    let some = replay(&some).stdout;
    assert!(some.starts_with("1 stored window from 2026-11-21T01:50:00Z"), "{some}");
    let json = replay(&["--json"]).stdout;
    let sums = json.lines().map(|line| packed::read(line.as_bytes()).unwrap().window_ns);
    assert_eq!(sums.sum::<u64>(), 3 * 600_000_000_000);
    // Only their sum, as `report` prints it.
    let sum = replay(&["--json", "--once"]).stdout;
    let total = test.ended(&["report", "w", "--format", "json"]).stdout;
    assert_eq!(sum, total);
    let total = packed::read(total.trim_end().as_bytes()).unwrap();
    assert_eq!((total.series.len(), total.cpus[0].waits.count), (2, 6));
}

#[test]
fn names_are_left_out_where_that_is_asked_for() {
    let test = Test::new("watch-redacted");
    made_up(&test, "w");
    for args in [
        &["watch", "--replay", "w", "--redact"][..],
        &["watch", "--replay", "w", "--redact", "--json"],
        &["report", "w", "--redact"],
    ] {
        let text = test.ended(args).stdout;
        assert!(text.contains("[redacted]"), "{args:?}: {text}");
        assert!(!text.contains("nginx") && !text.contains("/a"), "{args:?}: {text}");
    }
    // After a boot another cgroup has the ID.
    let later = test.dir.join("w/2026-11-21T03-00-00.jsonl");
    fs::write(&later, fs::read_to_string(&later).unwrap().replace("/a", "/b")).unwrap();
    let table = test.ended(&["watch", "--replay", "w", "--redact", "--once", "--by", "cgroup"]);
    let rows = table.stdout.lines().filter(|line| line.contains("(id "));
    let counts = rows.map(|row| row.split_whitespace().nth(2).unwrap());
    assert_eq!(counts.collect::<Vec<_>>(), ["4", "2"], "{}", table.stdout);
}

#[test]
fn what_cannot_be_shown_or_stored_is_refused_with_a_remedy() {
    let test = Test::new("watch-stored-refused");
    let folder = made_up(&test, "w");
    fs::create_dir(test.dir.join("empty")).unwrap();
    for (args, told) in [
        (&["watch", "--replay", "empty"][..], "contains no stored window"),
        (&["watch", "--replay", "gone"], "cannot read gone"),
        (
            &["watch", "--replay", "w", "--since", "2026-11-22T00:00:00Z"],
            "lie between 2026-11-21T01",
        ),
        (&["watch", "--replay", "w", "--since", "now"], "write a date as in"),
        (&["watch", "--replay", "w", "--out", "x"], "cannot be used with"),
        (&["watch", "--replay", "w", "--interval", "1s"], "cannot be used with"),
        (&["watch", "--since", "2026-11-22T00:00:00Z"], "--replay"),
        (&["watch", "--keep", "2MB"], "--out"),
        (&["watch", "--out", "x", "--keep", "2kB"], "keep at least 1MB"),
        (&["watch", "--redact"], "add --out DIR or --replay DIR"),
        (&["report", "w", "empty"], "is a watch, which is shown alone"),
        (&["report", "w/2026-11-21T01-40-00.jsonl"], "wakescope report w\n"),
        (&["explain", "w"], "wakescope report w\n"),
        (&["report", "w", "-o", "w.html"], "--format html does not show a watch"),
        (&["report", "w", "--line", "5us"], "--line does not apply"),
        (&["report", "w", "--unit", "us"], "--unit does not apply to a watch"),
        (&["report", "w", "--mix-quantities"], "--mix-quantities does not apply to a watch"),
    ] {
        let ended = test.ended(args);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
    }
    // Damage in the middle is no cut.
    let file = folder.join("2026-11-21T01-40-00.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("@0 1", "@0 2", 1)).unwrap();
    let ended = test.ended(&["report", "w"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("01-40-00.jsonl: line 1: its waits: count is 2"), "{ended:?}");
    fs::write(&file, text.replace("watch/1", "watch/9")).unwrap();
    let ended = test.ended(&["report", "w"]);
    assert!(ended.stderr.contains("`wakescope.watch/9`"), "{}", ended.stderr);
}

/// In a sticky folder, any user can give something such a name.
#[test]
fn what_is_no_regular_file_is_no_window() {
    let test = Test::new("watch-stored-kinds");
    let folder = made_up(&test, "w");
    let shown = |told: &str| {
        let ended = test.ended(&["report", "w"]);
        assert_eq!((ended.code, ended.stderr.starts_with(told)), (Some(0), true), "{ended:?}");
        ended.stdout
    };
    let before = shown("");
    let fifo = "w/2026-11-20T01-00-00.jsonl";
    make_fifo(&test.dir.join(fifo)).unwrap();
    let told = format!("{fifo}: it is a FIFO, not a regular file: skipped");
    assert_eq!(shown(&format!("{told}\n")), before);
    symlink("2026-11-21T01-40-00.jsonl", folder.join("2026-11-22T01-00-00.jsonl")).unwrap();
    assert_eq!(shown(&format!("{told}, with 1 other file\n")), before);
}

/// The windows in a folder, each of which fits the schema.
fn stored(folder: &Path) -> Vec<Window> {
    let checker =
        Checker::closed(serde_json::from_str(&read("docs/reference/watch.schema.json")).unwrap());
    let mut windows = Vec::new();
    for file in window_files(folder).unwrap().files {
        for line in fs::read_to_string(file).unwrap().lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(checker.fault(&value), None, "{line}");
            windows.push(packed::read(line.as_bytes()).unwrap());
        }
    }
    windows
}

fn sum_of(windows: impl IntoIterator<Item = Window>) -> Window {
    let mut sum = Sum::default();
    windows.into_iter().for_each(|window| sum.add(window));
    sum.window().expect("windows")
}

fn start(test: &Test, args: &[&str]) -> Running {
    test.start_command(&[&["watch", "--json", "--interval", "100ms"], args].concat())
}

fn lives(stdout: &str) -> Window {
    sum_of(stdout.lines().map(|line| packed::read(line.as_bytes()).unwrap()))
}

#[test]
fn what_is_stored_is_what_was_shown() {
    if !can_follow("what_is_stored_is_what_was_shown") {
        return;
    }
    let test = Test::new("watch-out");
    let folder = test.dir.join("w");
    let running = start(&test, &["--out", "w", "--merge", "300ms"]);
    eventually("three are stored", || window_files(&folder).is_ok() && stored(&folder).len() >= 3);
    let other = test.ended(&["watch", "--once", "--out", "w"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("another watch writes to w"), "{}", other.stderr);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let windows = stored(&folder);
    // To the nearest whole interval: one that ends early makes no window a whole interval longer.
    let is_whole = |window: &Window| window.window_ns + 50_000_000 >= 300_000_000;
    assert!(windows[..windows.len() - 1].iter().all(is_whole), "{windows:?}");
    assert_eq!(sum_of(windows), lives(&ended.stdout));
}

#[test]
fn what_a_killed_watch_stored_is_read() {
    if !can_follow("what_a_killed_watch_stored_is_read") {
        return;
    }
    let test = Test::new("watch-killed");
    let folder = test.dir.join("w");
    let running = start(&test, &["--out", "w", "--merge", "100ms", "--redact"]);
    let file = eventually_some("a file", || window_files(&folder).ok()?.files.pop());
    let text = || fs::read_to_string(&file).unwrap();
    eventually("two are stored", || text().lines().count() >= 2);
    kill("KILL", &[running.pid()]);
    drop(running.output());
    let whole = text();
    assert!(whole.contains("[redacted]"), "{whole}");
    fs::write(&file, &whole[..whole.len() - 20]).unwrap();
    // The next one neither waits for the lock of the dead nor adds to the line that is cut.
    test.done(&["watch", "--once", "--interval", "100ms", "--out", "w"]);
    let ended = test.ended(&["report", "w", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let cut = format!("line {}: it ends in the middle", whole.lines().count());
    assert!(ended.stderr.contains(&cut), "{}", ended.stderr);
}

#[test]
fn a_full_disk_makes_windows_longer_and_loses_none() {
    let name = "a_full_disk_makes_windows_longer_and_loses_none";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("watch-full");
    let disk = test.dir.join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = Disk::mount(&disk, "size=2m", name) else { return };
    let mut running = start(&test, &["--out", "disk/w", "--merge", "100ms"]);
    let file = eventually_some("a file", || window_files(&disk.join("w")).ok()?.files.pop());
    let filler = disk.join("filler");
    fs::write(&filler, vec![1; 4 << 20]).unwrap_err();
    running.await_line("cannot write to disk/w");
    assert!(running.awaited().contains("No space left"), "{}", running.awaited());
    let before = fs::metadata(&file).unwrap().len();
    fs::remove_file(&filler).unwrap();
    eventually("it is written again", || fs::metadata(&file).unwrap().len() > before);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let again = "disk/w can be written again: all of the last";
    assert_eq!(ended.stderr.matches("cannot write to disk/w").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains(again), "{}", ended.stderr);
    assert_eq!(sum_of(stored(&disk.join("w"))), lives(&ended.stdout));
}

#[test]
fn windows_that_standard_output_does_not_take_are_stored() {
    if !can_follow("windows_that_standard_output_does_not_take_are_stored") {
        return;
    }
    let test = Test::new("watch-unshown");
    for (name, form) in [("json", &["--json"][..]), ("lines", &[])] {
        let args = [&["watch", "--interval", "100ms", "--out", name], form].concat();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ended = test.command(&args).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {told}");
        assert_eq!(told.matches("No space left on device").count(), 1, "{args:?}: {told}");
        // What was counted up to the end is one window, as no `--merge` was over.
        let [window] = &stored(&test.dir.join(name))[..] else { panic!("{args:?}: {told}") };
        assert!(window.window_ns >= 100_000_000, "{window:?}");
    }
}

#[test]
fn a_watch_that_cannot_begin_leaves_no_folder() {
    let test = Test::new("watch-not-begun");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let ended = test.ended(&["watch", "--out", "w", "--listen", &address]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains(&address), "{}", ended.stderr);
    assert!(!test.dir.join("w").exists());
}
