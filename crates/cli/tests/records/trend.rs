//! `wakescope trend`, run as a command.

use crate::common::bench::{Ended, Test};
use crate::common::formats::HISTOGRAM;
use crate::common::made_up::run;
use crate::common::stored_window::busy_window;
use std::fs;

use serde_json::{Value, json};
use wakescope_core::run::{Run, TimeDomain};

const CHANGED: [u64; 12] = [100, 104, 97, 101, 99, 103, 155, 149, 151, 148, 153, 150];

fn trend(test: &Test, args: &[&str], runs: &[String]) -> Ended {
    let mut all = vec!["trend"];
    all.extend(args);
    all.extend(runs.iter().map(String::as_str));
    let ended = test.start_command(&all).output();
    assert!(!ended.stderr.contains("panicked") && ended.code.is_some(), "{ended:?}");
    ended
}

#[test]
fn a_change_is_shown_where_it_is() {
    let test = Test::new("trend");
    let runs = test.write_runs("night", &CHANGED);
    let ended = trend(&test, &[], &runs);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert!(ended.stdout.starts_with("p99.9 changed once: 1.50 × from 6 on (p = 0."), "{ended:?}");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{ended:?}");
    let json: Value = serde_json::from_str(&trend(&test, &["--json"], &runs).stdout).unwrap();
    assert_eq!(json["series"][0]["max"][0]["at"], 6);
    assert_eq!(json["series"][0]["max"][0]["before"], "5");
    let first = test.start_command(&["trend", "night/0", "-o", "out.txt"]).output();
    assert_eq!((first.code, &*first.stdout), (Some(0), ""));
    assert!(test.dir.join("out.txt").exists());
}

#[test]
fn a_series_is_drawn_into_a_file() {
    let test = Test::new("trend-picture");
    let runs = test.write_runs("night", &CHANGED);
    for (file, begins) in [("out.svg", &b"<svg"[..]), ("out.PNG", b"\x89PNG")] {
        let ended = trend(&test, &["-o", file], &runs);
        assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(0), "", ""));
        assert!(fs::read(test.dir.join(file)).unwrap().starts_with(begins), "{file}");
    }
    let ended = trend(&test, &["--json", "-o", "out.svg"], &runs);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("the requested format does not match a name that ends in .svg"),
        "{ended:?}"
    );
    let ended = trend(&test, &["-o", "out.pdf"], &runs);
    assert_eq!((ended.code, test.dir.join("out.pdf").exists()), (Some(2), false), "{ended:?}");
    assert!(ended.stderr.contains(".txt .text .log .json .svg .png"), "{ended:?}");
    trend(&test, &["-o", "out.json"], &runs);
    let record = fs::read(test.dir.join("out.json")).unwrap();
    assert!(serde_json::from_slice::<Value>(&record).is_ok());
}

#[test]
fn a_folder_of_runs_is_a_series() {
    let test = Test::new("trend-folder");
    let runs = test.write_runs("night", &CHANGED);
    let one_by_one = trend(&test, &[], &runs).stdout;
    let without_repeat = |text: &str| text.lines().next().map(str::to_owned);
    let whole = trend(&test, &[], &["night".to_owned()]).stdout;
    assert_eq!(without_repeat(&whole), without_repeat(&one_by_one));
}

#[test]
fn the_order_is_that_given_or_that_of_time() {
    let test = Test::new("trend-time");
    let write = |(i, us): (usize, u64)| {
        // Written from the last to the first.
        let started = format!("2026-11-21T01:{:02}:00Z", 40 - i);
        test.write_run(&format!("r{i}"), &Run { started, ..run(us) })
    };
    let runs: Vec<String> = CHANGED.into_iter().enumerate().map(write).collect();
    let given = trend(&test, &[], &runs).stdout;
    assert!(given.starts_with("p99.9 changed once: 1.50 × from r6 on"), "{given}");
    let sorted = trend(&test, &["--by-time"], &runs).stdout;
    assert!(sorted.starts_with("p99.9 changed once: 0.67 × from r5 on"), "{sorted}");
}

#[test]
fn runs_without_a_start_are_not_ordered_by_it() {
    let test = Test::new("trend-undated");
    let dated = test.write_run("dated", &run(2));
    fs::write(test.dir.join("other"), HISTOGRAM).unwrap();
    let virtual_run = Run { time_domain: TimeDomain::Virtual, ..run(4) };
    for undated in [
        test.write_run("empty", &Run { started: String::new(), ..run(3) }),
        test.write_run("no-date", &Run { started: "yesterday".into(), ..run(3) }),
        test.write_run("virtual", &virtual_run),
        // cyclictest does not tell, and the record that is made of its file has a start all the same.
        "other".into(),
    ] {
        for runs in [[undated.clone(), dated.clone()], [dated.clone(), undated.clone()]] {
            let ended = trend(&test, &["--by-time", "--force"], &runs);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            let why = format!("cannot order {undated} by time");
            assert!(ended.stderr.contains(&why), "{ended:?}");
        }
    }
    let json: Value =
        serde_json::from_str(&trend(&test, &["--json"], &["other".into()]).stdout).unwrap();
    assert_eq!(json["series"][0]["runs"][0]["started"], "");
    for format in ["html", "prometheus", "openmetrics"] {
        let shown = test.start_command(&["report", "other", "--format", format]).output();
        assert_eq!((shown.code, shown.stdout.contains("1970-01-01")), (Some(0), false), "{format}");
    }
}

#[test]
fn what_is_no_series_is_refused() {
    let test = Test::new("trend-refused");
    let mut other = run(100);
    (other.plan.interval_ns, other.duration_ns) = (7, 28_000);
    let runs = [test.write_run("a", &run(1)), test.write_run("b", &other)];
    let ended = trend(&test, &[], &runs);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("differ in interval: 1.00 ms (a); 7 ns (b)"), "{ended:?}");
    let forced = trend(&test, &["--force"], &runs);
    assert_eq!(forced.code, Some(0));
    assert!(forced.stdout.contains("2 runs are too few"), "{forced:?}");
    let many = vec!["a".to_owned(); 1_001];
    let ended = trend(&test, &[], &many);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("the limit is 1000"), "{ended:?}");
}

#[test]
fn a_run_counts_once_in_a_series() {
    let test = Test::new("trend-twice");
    let runs = test.write_runs("night", &CHANGED);
    let id = "18ebf8b6e9e73134-18ba".to_owned();
    let copies =
        ["one", "copy"].map(|name| test.write_run(name, &Run { id: id.clone(), ..run(98) }));
    for (more, want) in [
        (runs[3..4].to_vec(), "cannot follow: night/3 is given twice and would count as two runs"),
        (vec!["night".into()], "cannot follow: night/0 is given twice"),
        (copies.to_vec(), "cannot follow: one and copy are the same run and would count as two"),
    ] {
        let ended = trend(&test, &["--force"], &[runs.clone(), more].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(want), "{ended:?}");
    }
}

/// Watches of 12 weeks, the last one first. From the seventh on waits are longer, and the load with them where
/// it `grows`.
fn write_weeks(test: &Test, grows: bool) {
    for week in 0..12_u64 {
        let later = u64::from(week >= 6);
        let (us, load) = (1_000 + 1_000 * later, if grows { 1 + 2 * later } else { 1 });
        let folder = test.dir.join(format!("watches/week{week}"));
        fs::create_dir_all(&folder).unwrap();
        let tasks = [("postgres", vec![(100_000 + week, 2_980), (us * 1_000 + week, 20)])];
        let started = format!("2026-11-{:02}T01:00:00Z", 21 - week);
        let window = busy_window(&started, week, load * 1_000 + week, &tasks);
        let mut window: Value = serde_json::from_str(&window).unwrap();
        let machine = if week == 11 { "n" } else { "m" };
        window["boots"] = json!([{"machine": machine, "boot": "b", "release": "6.12", "version": "1",
            "arch": "x86_64", "preemption": "full"}]);
        fs::write(folder.join("2026-11-01T01-00-00.jsonl"), format!("{window}\n")).unwrap();
    }
}

#[test]
fn watches_are_followed_as_runs_are() {
    let test = Test::new("trend-watches");
    write_weeks(&test, false);
    let followed = |args: &[&str]| {
        let ended = trend(&test, args, &["watches".into()]);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
        ended.stdout
    };
    let text = followed(&[]);
    assert!(text.contains(": p99.9 changed once: 2.00 × from week6 on (p = 0."), "{text}");
    let machines = "The runs are of 2 machines: a change may be that of the machine.";
    assert!(text.contains(machines) && !text.contains("load changed"), "{text}");
    let json: Value = serde_json::from_str(&followed(&["--json", "--by-time"])).unwrap();
    let series = &json["series"][0];
    assert_eq!(series["quantity"], "runqueue-delay");
    assert_eq!(series["p999"][0]["after"], "week5");
    followed(&["-o", "out.svg"]);
    write_weeks(&test, true);
    let words: Vec<String> = followed(&[]).split_whitespace().map(Into::into).collect();
    let told = words.join(" ");
    assert!(told.contains("switches per second are 3.00 ×"), "{told}");
    assert!(told.contains("from week6 on. Waits may have changed because of the load."), "{told}");
}

#[test]
fn a_series_of_runs_and_watches_is_refused() {
    let test = Test::new("trend-mixed");
    write_weeks(&test, false);
    let run = test.write_runs("night", &[100]).remove(0);
    let refused = trend(&test, &[], &["watches".into(), run]);
    assert_eq!((refused.code, &*refused.stdout), (Some(2), ""));
    assert!(refused.stderr.contains("a watch with anything else"), "{refused:?}");
    let unit = trend(&test, &["--unit", "ns"], &["watches".into()]);
    assert!(unit.code == Some(2) && unit.stderr.contains("a watch is in ns"), "{unit:?}");
}
