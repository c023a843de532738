//! `wakescope compare`, run as a command.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common::bench::{Ended, Test};
use crate::common::made_up::run;
use serde_json::Value;
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_testing::write_program;

const LOW: [u64; 5] = [100, 103, 97, 101, 99];
const SAME: [u64; 5] = [102, 98, 100, 104, 96];
const HIGH: [u64; 5] = [200, 206, 194, 202, 198];
const WIDE: [u64; 5] = [50, 90, 110, 190, 300];

fn compare(test: &Test, new: &[String], old: &[String], args: &[&str]) -> Ended {
    let mut all = vec!["compare"];
    all.extend(new.iter().map(String::as_str));
    all.push("--against");
    all.extend(old.iter().map(String::as_str));
    all.extend(args);
    let ended = test.start_command(&all).output();
    assert!(!ended.stderr.contains("panicked") && ended.code.is_some(), "{ended:?}");
    ended
}

/// Runs around `new` µs against those around `old`, which must end with `code`.
#[track_caller]
fn check(new: &[u64], old: &[u64], args: &[&str], code: i32, first: &str) -> String {
    let test = Test::new("compare");
    let (new, old) = (test.write_runs("new", new), test.write_runs("old", old));
    let ended = compare(&test, &new, &old, args);
    assert_eq!((ended.code, &*ended.stderr), (Some(code), ""), "{args:?}: {ended:?}");
    assert!(ended.stdout.starts_with(first), "{args:?}: {}", ended.stdout);
    ended.stdout
}

#[test]
fn each_verdict_has_its_exit_code() {
    check(&HIGH, &LOW, &[], 1, "Worse: p99.9 2.00 × (1.93–2.07), max 2.00 × (");
    check(&LOW, &HIGH, &[], 0, "Better: p99.9 0.50 × (");
    check(&SAME, &LOW, &[], 0, "No difference: p99.9 1.00 × (");
    check(&WIDE, &LOW, &[], 3, "Inconclusive: p99.9 1.23 × (");
    check(
        &HIGH[..3],
        &LOW[..3],
        &[],
        3,
        "Inconclusive: p99.9 2.00 ×, max 2.00 ×; 3 runs against 3",
    );
    let alone =
        check(&HIGH[..1], &LOW[..1], &[], 3, "Inconclusive: p99.9 2.00 ×, max 2.00 ×; 1 run");
    assert!(alone.contains("One run a side gives no verdict"), "{alone}");
    assert!(alone.contains("p99 of these two runs: "), "{alone}");
}

#[test]
fn what_is_asked_changes_the_verdict() {
    check(&SAME, &LOW, &["--margin", "0.5%"], 3, "Inconclusive: ");
    check(&HIGH, &LOW, &["--margin", "150%"], 0, "No difference: ");
    check(&HIGH, &LOW, &["--alpha", "1%"], 3, "Inconclusive: ");
    check(&HIGH, &LOW, &["--max-regression", "20%"], 1, "Worse: ");
    check(&HIGH, &LOW, &["--max-regression", "150%"], 0, "Worse: ");
    check(&WIDE, &LOW, &["--max-regression", "20%"], 3, "Inconclusive: ");
    check(&LOW, &HIGH, &["--fail-above", "10ms"], 1, "Better: ");
    check(&LOW, &HIGH, &["--fail-above", "11ms", "--fail-above", "p99=1ms"], 0, "Better: ");
    check(&LOW, &HIGH, &["--fail-above", "p99.99=1s"], 3, "Better: ");
}

/// Writes files of cyclictest with histograms of 400 µs: of 20,000 samples each all are `of.0` µs late,
/// and as many as `of.1` says are `of.2` µs.
fn write_cyclictest(test: &Test, side: &str, runs: &[(u64, u64, u64)]) -> Vec<String> {
    let text = |&(us, many, tail): &(u64, u64, u64)| {
        let beyond = if tail < 400 { 0 } else { many };
        let count = |at: u64| {
            let ordinary = if at == us { 20_000 - many } else { 0 };
            ordinary + if at == tail { many } else { 0 }
        };
        let rows: String = (0..400).map(|at| format!("{at:06} {:06}\n", count(at))).collect();
        format!(
            "# cyclictest -q -h 400 -i 1000\n# Histogram\n{rows}# Total: {:09}\n# Min Latencies: {us:05}\n\
             # Avg Latencies: {:05}\n# Max Latencies: {tail:05}\n# Histogram Overflows: {beyond:05}\n",
            20_000 - beyond,
            (us * (20_000 - many) + tail * many) / 20_000,
        )
    };
    let write = |(i, run)| {
        let name = format!("{side}{i}.txt");
        fs::write(test.dir.join(&name), text(run)).unwrap();
        name
    };
    (0..).zip(runs).map(write).collect()
}

#[test]
fn runs_whose_worst_lies_beyond_the_histogram_are_not_left_out() {
    let test = Test::new("compare-bounds");
    let old = write_cyclictest(&test, "o", &[21, 22, 23, 24, 25].map(|us| (us, 40, us + 365)));
    let better = write_cyclictest(&test, "n", &[21, 22, 23, 24, 25].map(|us| (us, 40, us + 275)));
    let beyond = write_cyclictest(&test, "m", &[21, 22, 23, 24, 25].map(|us| (us, 200, 9_000)));
    let new = [better.clone(), beyond].concat();
    for args in [&[][..], &["--max-regression", "10%"]] {
        let ended = compare(&test, &new, &old, args);
        assert_eq!((ended.code, &*ended.stderr), (Some(3), ""), "{ended:?}");
        let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "Inconclusive: p99.9 0.89 to 4.23 × (0.16–23.9), max 4.21 × (0.76–23.2); 10 runs against 5",
            "p99.9 345 µs to 1.64 ms 388 µs to 389 µs 0.89 to 4.23 × (0.16–23.9) inconclusive",
            "p99.9: 5 runs have only bounds of it",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
    for (format, wanted) in [
        ("markdown", "| p99.9 | 345 µs to 1.64 ms | 388 µs to 389 µs | 0.89 to 4.23 × |"),
        ("junit", "name=\"p99.9\"><skipped message=\"p99.9 0.89 to 4.23 × (0.16–23.9), p = 1\""),
    ] {
        let ended = compare(&test, &new, &old, &["--format", format]);
        assert!(ended.stdout.contains(wanted), "{ended:?}");
    }
    let json = compare(&test, &new, &old, &["--json"]).stdout;
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["quantities"][0]["p999"]["only_bounded"]["runs"], serde_json::json!([5, 0]));
    let alone = compare(&test, &better, &old, &[]);
    assert!(alone.code == Some(0) && alone.stdout.starts_with("Better: p99.9 0.77 ×"), "{alone:?}");
}

#[test]
fn a_figure_that_some_runs_lack_says_on_how_many_it_rests() {
    let test = Test::new("compare-short");
    let (new, old) = (test.write_runs("new", &HIGH), test.write_runs("old", &LOW));
    let mut short = run(150);
    short.threads[0].expiries = Distribution::of((1..=500).map(|i| i * 30_000));
    short.threads[0].woken = short.threads[0].expiries.clone();
    short.duration_ns = 500_000_000;
    let short = test.write_run("new/short", &short);
    let ended = compare(&test, &[new, vec![short]].concat(), &old, &[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""), "{ended:?}");
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.starts_with("Worse: p99.9 2.00 × (1.93–2.07) of 5 runs against 5, max "),
        "{words}"
    );
    assert!(words.contains("; 6 runs against 5, "), "{words}");
}

/// Writes five runs a side, each begun so many minutes after one o'clock.
fn write_begun(
    test: &Test,
    side: &str,
    us: &[u64],
    minutes: impl Iterator<Item = u64>,
) -> Vec<String> {
    let write = |(&us, minute): (&u64, u64)| {
        let (id, started) = (format!("{side} {minute}"), format!("2026-11-21T01:{minute:02}:00Z"));
        test.write_run(&format!("{side}/{minute}"), &Run { id, started, ..run(us) })
    };
    us.iter().zip(minutes).map(write).collect()
}

#[test]
fn one_side_after_the_other_is_no_verdict_unless_accepted() {
    let test = Test::new("compare-blocks");
    let old = write_begun(&test, "old", &LOW, 0..5);
    for (us, code, word) in
        [(HIGH, 1, "worse"), (LOW.map(|us| us / 2), 0, "better"), (SAME, 0, "no difference")]
    {
        let new = write_begun(&test, word, &us, 10..15);
        let ended = compare(&test, &new, &old, &[]);
        assert_eq!((ended.code, &*ended.stderr), (Some(3), ""), "{ended:?}");
        assert!(ended.stdout.starts_with("Inconclusive: p99.9 "), "{ended:?}");
        let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "All new runs were measured after all old ones.",
            &format!("the verdict would be: {word}."),
            "wakescope compare --interleave-plan 5",
            "--accept-blocks",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        let json = compare(&test, &new, &old, &["--json"]).stdout;
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&value["verdict"], &value["order"]),
            (&"inconclusive".into(), &"blocks".into())
        );
        let gate = compare(&test, &new, &old, &["--max-regression", "50%"]);
        assert_eq!(gate.code, Some(3), "{gate:?}");
        let accepted = compare(&test, &new, &old, &["--accept-blocks", "--json"]);
        assert_eq!(accepted.code, Some(code), "{accepted:?}");
        let value: Value = serde_json::from_str(&accepted.stdout).unwrap();
        assert_eq!(value["settings"]["accepted_blocks"], true);
        let repeat = value["settings"]["repeat"].as_str().unwrap();
        assert!(repeat.ends_with(" --accept-blocks"), "{repeat}");
        // A limit is one on each run alone.
        assert_eq!(compare(&test, &new, &old, &["--fail-above", "1us"]).code, Some(1));
    }
    let new = write_begun(&test, "turns", &HIGH, (1..).step_by(2));
    let old = write_begun(&test, "turns-old", &LOW, (0..).step_by(2));
    assert_eq!(compare(&test, &new, &old, &[]).code, Some(1));
}

#[test]
fn a_plan_tells_the_order_and_is_no_block_itself() {
    let test = Test::new("compare-plan");
    let plan = |args: &[&str]| {
        test.start_command(&[&["compare", "--interleave-plan"], args].concat()).output()
    };
    let ended = plan(&["4", "--seed", "3"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_eq!(plan(&["4", "--seed", "3"]).stdout, ended.stdout, "the seed repeats it");
    let is_file = plan(&["4", "--seed", "3", "-o", "plan.sh"]);
    assert_eq!((is_file.code, &*is_file.stdout), (Some(0), ""));
    // The script itself, with programs that only say what they are asked.
    let bin = test.dir.join("bin");
    write_program(&bin.join("wakescope"), b"#!/bin/sh\necho \"$STATE $*\"\n");
    let run = |vars: &[(&str, &str)]| {
        let mut command = Command::new("sh");
        command.args(["plan.sh", "--duration", "1s"]).current_dir(&test.dir);
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        command.env("PATH", path).envs(vars.iter().copied()).output().unwrap()
    };
    let ran = run(&[("SET_UP_OLD", "export STATE=old"), ("SET_UP_NEW", "export STATE=new")]);
    let out = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((ran.status.code(), lines.len()), (Some(0), 9), "{out}");
    for line in &lines[..8] {
        let (state, rest) = line.split_once(' ').unwrap();
        assert!(rest.starts_with("measure --duration 1s --out "), "{line}");
        assert!(rest.contains(&format!(" {state}/")), "the state is that of the side: {line}");
    }
    assert!(lines[8].contains("compare new/1 new/2 new/3 new/4 --against old/1 old/2 "), "{out}");
    let left =
        format!("the machine is left in its {} state\n", lines[7].split(' ').next().unwrap());
    assert!(String::from_utf8_lossy(&ran.stderr).ends_with(&left), "{left}");
    // A limit that was exceeded is no reason to end, and what could not be measured is.
    for (code, steps) in [(1, 8), (3, 8), (2, 1)] {
        let script = format!("#!/bin/sh\n[ $1 = compare ] || {{ echo $1; exit {code}; }}\n");
        write_program(&bin.join("wakescope"), script.as_bytes());
        let ran = run(&[("SET_UP_OLD", "true"), ("SET_UP_NEW", "true")]);
        let out = String::from_utf8(ran.stdout).unwrap();
        let ends = if steps == 8 { 0 } else { code };
        assert_eq!((ran.status.code(), out.lines().count()), (Some(ends), steps), "{out}");
    }
    fs::remove_file(bin.join("wakescope")).unwrap();
    let lacking =
        Command::new("/bin/sh").arg("plan.sh").current_dir(&test.dir).env("PATH", &bin).output();
    let lacking = lacking.unwrap();
    assert_eq!(lacking.status.code(), Some(2), "{lacking:?}");
    assert!(
        String::from_utf8_lossy(&lacking.stderr).contains("add its folder to PATH"),
        "{lacking:?}"
    );
    write_program(&bin.join("wakescope"), b"#!/bin/sh\necho $*\n");
    let without = run(&[("SET_UP_OLD", "true")]);
    assert!(!without.status.success() && without.stdout.is_empty(), "{without:?}");
    assert!(String::from_utf8_lossy(&without.stderr).contains("SET_UP_NEW"), "{without:?}");
    for bad in
        [&["1"][..], &["0"], &["x"], &["5", "new/0"], &["5", "--force"], &["5", "--against", "x"]]
    {
        assert_eq!(plan(bad).code, Some(2), "{bad:?}");
    }
}

#[test]
fn a_run_that_is_given_twice_is_an_error() {
    let test = Test::new("compare-twice");
    let (new, old) = (test.write_runs("new", &HIGH), test.write_runs("old", &LOW));
    symlink("new/1", test.dir.join("link")).unwrap();
    symlink("old", test.dir.join("other-old")).unwrap();
    fs::create_dir_all(test.dir.join("copy")).unwrap();
    fs::copy(test.dir.join("old/2/run.json"), test.dir.join("copy/run.json")).unwrap();
    let with = |side: &[String], more: &str| [side, &[more.to_owned()]].concat();
    for (new, old, want) in [
        (with(&new, "new/1"), old.clone(), "new/1 is given twice and would count as two runs"),
        (with(&new, "new/1/"), old.clone(), "both lead to "),
        (with(&new, "new/1/run.json"), old.clone(), "both lead to "),
        (with(&new, "link"), old.clone(), "new/1 and link are the same run and would count as two"),
        (with(&new, "old/3"), old.clone(), "old/3 is given twice"),
        (with(&new, "other-old/3"), old.clone(), "other-old/3 and old/3 are the same run"),
        (new.clone(), with(&old, "copy"), "old/2 and copy are the same run"),
        (with(&new, "copy"), old.clone(), "copy and old/2 are the same run"),
    ] {
        for force in [&[][..], &["--force"]] {
            let ended = compare(&test, &new, &old, force);
            assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{new:?}: {ended:?}");
            assert!(ended.stderr.contains(want), "{want}: {ended:?}");
        }
    }
}

/// cyclictest writes a run as JSON, with its start, and as a histogram, without it.
#[test]
fn a_run_in_two_formats_is_one_run() {
    let test = Test::new("compare-formats");
    let counts = |own: u64| -> Vec<(u64, u64)> {
        (10..30).map(|us| (us, 150 + us * (own + us) % 97)).collect()
    };
    let write = |side: &str, own: u64| {
        let counts = counts(own);
        let count: u64 = counts.iter().map(|(_, count)| count).sum();
        let sum: u64 = counts.iter().map(|(us, count)| us * count).sum();
        // Truncated in the text, and rounded to two decimals in the JSON.
        let (mean, hundredths) = (sum / count, (sum * 200 + count) / (2 * count));
        let json: Vec<String> = counts.iter().map(|(us, n)| format!("\"{us}\": {n}")).collect();
        let rows: String = counts.iter().map(|(us, n)| format!("{us:06} {n:06}\n")).collect();
        let json = format!(
            "{{\"file_version\": 1, \"cmdline:\": \"cyclictest -q -h 100\", \"rt_test_version:\": \"2.40\", \
             \"start_time\": \"Sat, 21 Nov 2026 00:{own:02}:00 +0000\", \
             \"end_time\": \"Sat, 21 Nov 2026 00:{own:02}:10 +0000\", \"return_code\": 0, \
             \"sysinfo\": {{\"sysname\": \"Linux\", \"nodename\": \"vm\", \"release\": \"6.12.95\", \
             \"version\": \"#1\", \"machine\": \"x86_64\", \"realtime\": 1}}, \"num_threads\": 1, \
             \"resolution_in_ns\": 0, \"thread\": {{\"0\": {{\"histogram\": {{{}}}, \"cycles\": {count}, \
             \"min\": 10, \"max\": 29, \"avg\": {}.{:02}, \"cpu\": 0, \"node\": 0}}}}}}",
            json.join(", "),
            hundredths / 100,
            hundredths % 100
        );
        let text = format!(
            "# /dev/cpu_dma_latency set to 0us\n# Histogram\n{rows}# Total: {count:09}\n\
             # Min Latencies: 00010\n# Avg Latencies: {mean:05}\n# Max Latencies: 00029\n\
             # Histogram Overflows: 00000\n# Histogram Overflow at cycle number:\n# Thread 0:\n"
        );
        fs::create_dir_all(test.dir.join(side)).unwrap();
        [("json", json), ("txt", text)].map(|(kind, content)| {
            let name = format!("{side}/{own}.{kind}");
            fs::write(test.dir.join(&name), content).unwrap();
            name
        })
    };
    let [new, old] = ["new", "old"].map(|side| {
        let owns = if side == "new" { 1..4 } else { 11..14 };
        owns.map(|own| write(side, own)).collect::<Vec<_>>()
    });
    let jsons =
        |side: &[[String; 2]]| side.iter().map(|[json, _]| json.clone()).collect::<Vec<_>>();
    let ended = compare(&test, &jsons(&new), &jsons(&old), &["--unit", "us"]);
    assert!(ended.stdout.contains("3 runs against 3"), "{ended:?}");
    let ended = compare(&test, &new.concat(), &old.concat(), &["--unit", "us"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    let want = "are the same run and would count as two";
    assert!(ended.stderr.contains(want), "{ended:?}");
}

#[test]
fn throughput_stands_beside() {
    let text = check(&HIGH, &LOW, &[], 1, "Worse: ");
    assert_eq!(text.lines().nth(1), Some("Throughput of the load: no difference (1.00 ×)."));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn other_formats_say_the_same() {
    let json = check(&HIGH, &LOW, &["--json"], 1, "{");
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["verdict"], &value["outcome"]), (&"worse".into(), &"fail".into()));
    assert_eq!(value["runs"], serde_json::json!([5, 5]));
    assert!(value["ratios"]["max"]["low"].as_f64().unwrap() > 1.9, "{json}");
    assert_eq!(check(&HIGH, &LOW, &["--format", "json"], 1, "{"), json);
    let repeat = value["settings"]["repeat"].as_str().unwrap();
    assert!(repeat.starts_with("wakescope compare new/0 new/1 "), "{repeat}");
    let test = Test::new("compare-dash");
    test.write_runs("-n", &HIGH);
    test.write_runs("old", &LOW);
    let ended = test.ended(&["compare", "--json", "--against", "old", "--", "-n"]);
    assert!(ended.stdout.contains("\"wakescope compare ./-n --against old\""), "{ended:?}");
    let xml = check(&HIGH, &LOW, &["--format", "junit"], 1, "<?xml version=\"1.0\"");
    assert!(xml.contains("tests=\"2\" failures=\"2\" errors=\"0\" skipped=\"0\""), "{xml}");
    check(&HIGH, &LOW, &["--format", "markdown"], 1, "**Worse: p99.9 2.00 × (1.93–2.07), max");
}

#[test]
fn folders_of_runs_are_sides() {
    let test = Test::new("compare-folders");
    let (new, old) = (test.write_runs("new", &HIGH), test.write_runs("old", &LOW));
    let verdict = |ended: &Ended| ended.stdout.lines().next().map(str::to_owned);
    let one_by_one = compare(&test, &new, &old, &[]);
    let whole = compare(&test, &["new".into()], &["old".into()], &[]);
    assert_eq!((verdict(&whole), whole.code), (verdict(&one_by_one), Some(1)), "{whole:?}");
    fs::create_dir(test.dir.join("none")).unwrap();
    let ended = compare(&test, &["new".into()], &["none".into()], &[]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("none contains no run"), "{ended:?}");
}

#[test]
fn the_ending_of_a_file_says_the_format_or_is_refused() {
    let test = Test::new("compare-endings");
    let (new, old) = (test.write_runs("new", &HIGH), test.write_runs("old", &LOW));
    for (file, begins) in [("a.xml", "<?xml"), ("a.json", "{"), ("a.md", "**Worse"), ("a", "Worse")]
    {
        assert_eq!(compare(&test, &new, &old, &["-o", file]).code, Some(1), "{file}");
        let text = fs::read_to_string(test.dir.join(file)).unwrap();
        assert!(text.starts_with(begins), "{file}: {text}");
    }
    for args in [&["-o", "x.pdf"][..], &["-o", "x.xml", "--json"], &["-o", "x.html"]] {
        let ended = compare(&test, &new, &old, args);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(".txt .text .log .json .xml .md"), "{ended:?}");
        assert!(!test.dir.join(args[1]).exists(), "{args:?}");
    }
}

#[test]
fn it_goes_to_a_file_if_asked() {
    let test = Test::new("compare-file");
    let (new, old) = (test.write_runs("new", &HIGH), test.write_runs("old", &LOW));
    let ended = compare(&test, &new, &old, &["-o", "out.txt"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    let text = fs::read_to_string(test.dir.join("out.txt")).unwrap();
    let printed = compare(&test, &new, &old, &[]).stdout;
    assert_eq!(text, printed);
    let ended = compare(&test, &new, &old, &["-o", "-"]);
    assert_eq!(
        (ended.code, &ended.stdout, test.dir.join("-").exists()),
        (Some(1), &printed, false)
    );
    let ended = compare(&test, &new, &old, &["-o", "no/where"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("cannot write no/where: "), "{ended:?}");
}

/// Five runs, all changed so, against five others; then the same by force.
#[track_caller]
fn refused(change: impl Fn(&mut Run), want: &str) {
    let test = Test::new("compare-refused");
    let write = |(i, us): (usize, u64)| {
        let mut run = run(us);
        change(&mut run);
        test.write_run(&format!("new/{i}"), &run)
    };
    let new: Vec<String> = HIGH.into_iter().enumerate().map(write).collect();
    let old = test.write_runs("old", &LOW);
    let ended = compare(&test, &new, &old, &[]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{want}: {ended:?}");
    assert!(ended.stderr.contains(want) && ended.stderr.contains("--force"), "{want}: {ended:?}");
    let forced = compare(&test, &new, &old, &["--force"]);
    assert_eq!((forced.code, &*forced.stderr), (Some(1), ""), "{want}: {forced:?}");
    assert!(forced.stdout.contains("Compared with --force"), "{want}: {forced:?}");
}

#[test]
fn runs_that_are_not_alike_are_refused() {
    refused(|run| run.time_domain = TimeDomain::Virtual, "differ in time domain: virtual (");
    refused(
        |run| (run.plan.interval_ns, run.duration_ns) = (500_000, 2_000_000_000),
        "differ in interval: 500 µs (",
    );
    refused(|run| run.plan.load.clear(), "differ in load: none (");
    refused(
        |run| {
            let finding = Finding::new("policy", Severity::Error, "it was not".into(), "");
            run.validity = Validity::of(vec![finding]);
        },
        "not fully trustworthy: invalid: policy (",
    );
}

#[test]
fn what_cannot_be_read_or_compared_says_why() {
    let test = Test::new("compare-unread");
    let (new, old) = (test.write_runs("new", &HIGH), test.write_runs("old", &LOW));
    let none = Run { threads: Vec::new(), ..run(1) };
    test.write_run("empty", &none);
    fs::write(test.dir.join("bad.json"), "{").unwrap();
    for (new, want) in [
        (vec!["nowhere".to_owned()], "nowhere"),
        (vec!["bad.json".to_owned()], "bad.json"),
        (vec!["empty".to_owned()], "cannot use empty: it has no samples"),
        (vec![new[0].clone(), new[0].clone()], "is given twice"),
    ] {
        let ended = compare(&test, &new, &old, &[]);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{new:?}: {ended:?}");
        assert!(ended.stderr.contains(want), "{new:?}: {ended:?}");
    }
    for args in [&["compare"][..], &["compare", "new/0"], &["compare", "--against", "old/0"]] {
        assert_eq!(test.start_command(args).output().code, Some(2), "{args:?}");
    }
    for args in [
        ["--margin", "x"],
        ["--margin", "10"],
        ["--alpha", "0"],
        ["--max-regression", "-5%"],
        ["--max-regression", "10"],
    ] {
        assert_eq!(compare(&test, &new, &old, &args).code, Some(2), "{args:?}");
    }
}

#[test]
fn degraded_runs_are_pointed_out() {
    let test = Test::new("compare-degraded");
    let mut degraded = run(100);
    let finding = Finding::new("steal", Severity::Warning, "some".into(), "");
    degraded.validity = Validity::of(vec![finding]);
    let mut new = test.write_runs("new", &HIGH);
    new.push(test.write_run("new/bad", &degraded));
    let ended = compare(&test, &new, &test.write_runs("old", &LOW), &[]);
    assert!(ended.stdout.contains("1 of 11 runs not fully trustworthy"), "{ended:?}");
    assert!(ended.stdout.contains("degraded: steal (bad)"), "{ended:?}");
}

#[test]
fn hostile_names_do_no_harm() {
    let test = Test::new("compare-hostile");
    let name = "a\u{1b}[2J<b>&\"'\n|`";
    let mut hostile = run(150);
    hostile.host.release = name.repeat(50);
    hostile.plan.load = vec![name.into()];
    hostile.load[0].name = name.into();
    let new = vec![test.write_run(name, &hostile)];
    let old = test.write_runs("old", &LOW);
    for format in ["text", "json", "junit", "markdown"] {
        let ended = compare(&test, &new, &old, &["--force", "--format", format]);
        assert_eq!(ended.code, Some(3), "{format}: {ended:?}");
        let harmless = |c: char| c == '\n' || !c.is_control();
        assert!(ended.stdout.chars().all(harmless), "{format}: {:?}", ended.stdout);
        let marks_up = ["junit", "markdown"].contains(&format);
        let markup = ended.stdout.replace("\\<b", "").contains("<b>");
        assert!(!(marks_up && markup), "{format}: {}", ended.stdout);
    }
    let ended = compare(&test, &new, &old, &[]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", ended.stderr);
}

#[test]
fn a_thousand_runs_are_compared() {
    let test = Test::new("compare-thousand");
    let many = |from: u64| -> Vec<u64> { (from..from + 500).collect() };
    let (new, old) = (test.write_runs("new", &many(1_600)), test.write_runs("old", &many(1_000)));
    let ended = compare(&test, &new, &old, &[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
    assert!(ended.stdout.starts_with("Worse: p99.9 1.49 × ("), "{}", ended.stdout);
    assert!(ended.stdout.contains("10,000 splits of the runs drawn with --seed 1"));
    assert_eq!(compare(&test, &new, &old, &[]).stdout, ended.stdout, "the seed repeats it");
}
