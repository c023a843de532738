//! Runs in other programs' formats, by the whole command, read with the tools that people use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::bench::{Test, skip};
use crate::common::formats::OF_OTHERS;
use crate::common::measured::{RECORD, record};
use crate::common::reported::{measured, report, shown};
use serde_json::Value;
use wakescope_core::plan::Target;
use wakescope_core::run::Run;

/// A test with a run in its folder `run` whose samples are there as well.
fn with_run(name: &str) -> Test {
    measured(name, &["--save-samples"])
}

/// What a shell makes of `script` with `input`.
#[track_caller]
fn shell(script: &str, input: &str) -> String {
    let mut shell = Command::new("sh")
        .args(["-euc", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = shell.wait_with_output().unwrap();
    let _ = writer.join();
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).unwrap()
}

/// Each CPU's wakeups by whole µs, as the scripts have them.
fn columns(histogram: &str, cpus: usize) -> Vec<BTreeMap<u64, u64>> {
    let column = |cpu: usize| {
        let script = format!("grep -v -e '^#' -e '^$' | tr ' ' '\\t' | cut -f1,{}", cpu + 2);
        let text = shell(&script, histogram);
        let pairs = text.lines().map(|line| line.split_once('\t').unwrap());
        let pairs = pairs.map(|(us, count)| (us.parse().unwrap(), count.parse().unwrap()));
        pairs.filter(|&(_, count)| count > 0).collect()
    };
    (0..cpus).map(column).collect()
}

#[test]
fn scripts_for_cyclictest_read_the_histogram() {
    let test = with_run("scripts");
    let run = record(&test.dir.join("run"));
    let cpus = run.threads.len();
    let text = shown(&test, &["run", "--format", "cyclictest"]);
    let max = shell(
        "grep 'Max Latencies' | tr ' ' '\\n' | grep '^[0-9]' | sort -n | tail -1 | sed 's/^0*//'",
        &text,
    );
    assert_eq!(max.trim(), (run.woken().max_ns.unwrap() / 1_000).to_string());
    let total =
        shell("awk '!/^#/ && NF { for (i = 2; i <= NF; i++) n += $i } END { print n }'", &text);
    assert_eq!(total.trim(), run.woken().count.to_string());
    let full = columns(&text, cpus);
    for (column, thread) in full.iter().zip(&run.threads) {
        assert_eq!(column.values().sum::<u64>(), thread.woken.count);
        assert_eq!(column.keys().last(), Some(&(thread.woken.max_ns.unwrap() / 1_000)));
    }
    // The newer layout says the same.
    let sparse = shown(&test, &["run", "--format", "cyclictest", "--sparse"]);
    assert!(sparse.len() < text.len() && !sparse.contains("# Total"), "{sparse}");
    assert_eq!(columns(&sparse, cpus), full);
    // So does the JSON.
    let json: Value =
        serde_json::from_str(&shown(&test, &["run", "--format", "cyclictest-json"])).unwrap();
    for (i, column) in full.iter().enumerate() {
        let histogram = json["thread"][i.to_string()]["histogram"].as_object().unwrap();
        let counts: BTreeMap<u64, u64> =
            histogram.iter().map(|(us, n)| (us.parse().unwrap(), n.as_u64().unwrap())).collect();
        assert_eq!(&counts, column);
    }
}

/// Lines with each number as one `0`, each once.
fn shapes(text: &str) -> BTreeSet<String> {
    let mut shapes = BTreeSet::new();
    for line in text.lines() {
        let mut shape = String::new();
        for c in line.chars() {
            match c {
                '0'..='9' if shape.ends_with('0') => {}
                '0'..='9' => shape.push('0'),
                _ => shape.push(c),
            }
        }
        shapes.insert(shape);
    }
    shapes
}

#[test]
fn the_histogram_has_the_lines_of_the_installed_cyclictest() {
    let test = with_run("peer");
    let peer =
        Command::new("cyclictest").args("-q -t2 -l 100 -i 1000 -h 1000000".split(' ')).output();
    let Ok(peer) = peer else {
        return skip("the_histogram_has_the_lines_of_the_installed_cyclictest", "it is not here");
    };
    if !peer.status.success() {
        return skip("the_histogram_has_the_lines_of_the_installed_cyclictest", "it does not run");
    }
    let theirs = String::from_utf8(peer.stdout).unwrap();
    // rt-tests has the other layout from 2.7 on.
    let layout: &[&str] = if theirs.contains("# Total") { &[] } else { &["--sparse"] };
    let mut run = record(&test.dir.join("run"));
    run.threads.resize_with(2, Default::default);
    fs::write(test.dir.join("run").join(RECORD), run.to_json()).unwrap();
    let ours = shown(&test, &[&["run", "--format", "cyclictest"], layout].concat());
    let comments = |text: &str| {
        let mut shapes = shapes(text);
        shapes.retain(|line| !line.contains("cpu_dma_latency") && !line.contains("wakescope"));
        shapes
    };
    // Each of two threads: cycles that overflow are the only thing that may differ.
    assert_eq!(comments(&ours), comments(&theirs));
}

#[test]
fn every_format_goes_to_a_file_as_to_the_terminal() {
    let test = with_run("to-file");
    for format in OF_OTHERS {
        let printed = shown(&test, &["run", "--format", format]);
        assert!(!printed.is_empty() && printed.ends_with('\n'), "{format}");
        assert_eq!(shown(&test, &["run/run.json", "--format", format]), printed, "{format}");
        assert_eq!(shown(&test, &["run", "--format", format, "-o", "out"]), "");
        assert_eq!(fs::read_to_string(test.dir.join("out")).unwrap(), printed, "{format}");
        let ended = report(&test, &["run", "--format", format, "-o", "not/there"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("cannot write not/there"), "{}", ended.stderr);
    }
}

#[test]
fn all_samples_are_written_as_json() {
    let test = with_run("samples");
    let run = record(&test.dir.join("run"));
    let lines = shown(&test, &["run", "--format", "jsonl"]);
    let samples: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for thread in &run.threads {
        let of_cpu = samples.iter().filter(|s| s["cpu"].as_u64() == thread.cpu.map(u64::from));
        let late: Vec<u64> = of_cpu.map(|s| s["wakeup_latency_ns"].as_u64().unwrap()).collect();
        assert_eq!(late.len() as u64, thread.woken.count);
        assert_eq!(late.iter().max().copied(), thread.woken.max_ns);
        assert_eq!(late.iter().sum::<u64>(), thread.woken.sum_ns);
    }

    let csv = test.dir.join("run/samples.csv");
    let whole = fs::read_to_string(&csv).unwrap();
    for (text, message) in [
        (&whole[..whole.len() - 1], "it has no end"),
        (&whole.replace('\n', "\r\n"), "line 1: it is not the head"),
        (&whole.replacen("\n0,", "\nzero,", 1), "line 2: it is not three"),
        ("", "line 1: it has no end"),
    ] {
        fs::write(&csv, text).unwrap();
        let ended = report(&test, &["run", "--format", "jsonl"]);
        assert_eq!(ended.code, Some(2), "{message}: {ended:?}");
        assert!(
            ended.stderr.contains(message) && ended.stderr.contains("samples.csv"),
            "{ended:?}"
        );
    }
    fs::remove_file(&csv).unwrap();
    let ended = report(&test, &["run", "--format", "jsonl"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("--save-samples"), "{}", ended.stderr);
    fs::create_dir(&csv).unwrap();
    let ended = report(&test, &["run", "--format", "jsonl"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn samples_with_bounds_only_are_told_where_a_format_has_no_place_for_them() {
    let test = Test::new("bounds");
    let text = "# Histogram\n000002 000990\n000003 000007\n# Total: 000000997\n\
                # Min Latencies: 00002\n# Avg Latencies: 00002\n# Max Latencies: 00095\n\
                # Histogram Overflows: 00003\n# Histogram Overflow at cycle number:\n# Thread 0:\n\n";
    fs::write(test.dir.join("ct.txt"), text).unwrap();
    let told = "of 3 of 1,000 samples only bounds are known, from 4.00 µs to 96.0 µs: the file has each \
                as late as it can have been, so that percentiles among them";
    for format in OF_OTHERS {
        if matches!(format, "jsonl" | "trace") {
            continue;
        }
        let ended = report(&test, &["ct.txt", "--unit", "us", "--format", format]);
        let want = match format {
            "hlog" => format!("{told}, and a mean, are upper bounds\n"),
            // They state the sum of the samples.
            "prometheus" | "openmetrics" => format!("{told} are upper bounds\n"),
            _ => String::new(),
        };
        assert_eq!((ended.code, ended.stderr), (Some(0), want), "{format}");
    }
    // schbench states percentiles only. No row of cyclictest is a place for a sample from 10 to 412 µs.
    let text = "Wakeup Latencies percentiles (usec) runtime 30 (s) (100000 total samples)\n\
                \t  50.0th: 5          (50000 samples)\n\t  90.0th: 9          (40000 samples)\n\
                \t* 99.0th: 412        (9000 samples)\n\t  99.9th: 4012       (900 samples)\n\
                \t  min=1, max=9876\n";
    fs::write(test.dir.join("sb.txt"), text).unwrap();
    for (format, rows, told) in [
        (
            "hlog",
            None,
            "of 100,000 of 100,000 samples only bounds are known, from 1.00 µs to 9.88 ms",
        ),
        (
            "cyclictest",
            None,
            "of 100,000 of 100,000 samples only bounds are known, from 1.00 µs to 9.88 ms",
        ),
        (
            "cyclictest-json",
            None,
            "of 100,000 of 100,000 samples only bounds are known, from 1.00 µs to 9.88 ms",
        ),
        // The others are in its overflow.
        (
            "cyclictest",
            Some("10"),
            "of 90,000 of 100,000 samples only bounds are known, from 1.00 µs to 10.0 µs",
        ),
        (
            "cyclictest-json",
            Some("10"),
            "of 90,000 of 100,000 samples only bounds are known, from 1.00 µs to 10.0 µs",
        ),
        ("csv", None, ""),
        ("hgrm", None, ""),
    ] {
        let mut args = vec!["sb.txt", "--format", format];
        args.extend(rows.iter().flat_map(|rows| ["--rows", *rows]));
        let ended = report(&test, &args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.starts_with(told), "{format}: {ended:?}");
        assert_eq!(ended.stderr.is_empty(), told.is_empty(), "{format}: {ended:?}");
    }
    // Of its own runs each sample is known.
    let test = measured("no-bounds", &[]);
    assert_eq!(report(&test, &["run", "--format", "hlog"]).stderr, "");
}

#[test]
fn the_distribution_can_be_chosen() {
    let test = with_run("choice");
    // One wakeup of CPU 0 swallowed one expiry more than it did.
    let mut run = record(&test.dir.join("run"));
    let thread = &mut run.threads[0];
    thread.missed += 1;
    let latest = thread.woken.max_ns.unwrap();
    let extra = wakescope_core::distribution::Distribution::of([latest]);
    thread.expiries = thread.expiries.merged(&extra);
    let missed: u64 = run.threads.iter().map(|thread| thread.missed).sum();
    run.summarize();
    fs::write(test.dir.join("run").join(RECORD), run.to_json()).unwrap();
    let (woken, expiries) = (run.woken().count, run.expiries().count);
    let count = |format: &str, more: &[&str]| -> u64 {
        let text = shown(&test, &[&["run", "--format", format], more].concat());
        match format {
            "hgrm" => {
                let last = text.lines().rfind(|l| !l.starts_with('#')).unwrap();
                last.split_whitespace().nth(2).unwrap().parse().unwrap()
            }
            "csv" => text
                .lines()
                .skip(1)
                .map(|l| l.rsplit_once(',').unwrap().1.parse::<u64>().unwrap())
                .sum(),
            "cyclictest" => {
                columns(&text, run.threads.len()).iter().flat_map(BTreeMap::values).sum()
            }
            _ => text
                .lines()
                .filter(|l| l.contains("_seconds_count{"))
                .map(|l| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
                .sum(),
        }
    };
    assert_eq!(expiries, woken + missed);
    for (format, default) in [
        ("cyclictest", woken),
        ("csv", woken + expiries),
        ("hgrm", expiries),
        ("prometheus", expiries),
    ] {
        assert_eq!(count(format, &[]), default, "{format}");
        assert_eq!(count(format, &["--distribution", "woken"]), woken, "{format}");
        assert_eq!(count(format, &["--distribution", "expiries"]), expiries, "{format}");
    }
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let test = with_run("options");
    for (args, text) in [
        ("--distribution woken", "--distribution does not apply"),
        ("--format jsonl --distribution woken", "--distribution does not apply"),
        ("--format trace --distribution woken", "--distribution does not apply"),
        ("--format csv --rows 5", "--rows does not apply"),
        ("--format cyclictest-json --sparse", "--sparse does not apply"),
        ("--format realfeel --sparse", "--sparse does not apply"),
        ("--format csv --thresholds 5us", "--thresholds does not apply"),
        ("--format cyclictest --rows 0", "not in 1..=1000000"),
        ("--format cyclictest --rows 1000001", "not in 1..=1000000"),
        ("--format csv --distribution both", "possible values: woken, expiries"),
    ] {
        let args = [vec!["run"], args.split(' ').collect()].concat();
        let ended = report(&test, &args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let test = with_run("head");
    let program = test.program.display();
    for format in OF_OTHERS {
        let dir = test.dir.display();
        let script = format!("'{program}' report '{dir}/run' --format {format} | head -c 10");
        assert_eq!(shell(&script, "").len(), 10, "{format}");
    }
}

#[test]
fn text_from_elsewhere_does_no_harm_in_any_format() {
    const HOSTILE: &str = "\u{1b}[31m\"\\\n#]} 1\n\u{202e}</script>\u{0}";
    let test = with_run("hostile");
    let mut run = record(&test.dir.join("run"));
    let lines = |run: &Run, format: &str| {
        fs::write(test.dir.join("run").join(RECORD), run.to_json()).unwrap();
        let text = shown(&test, &["run", "--format", format]);
        let is_clean = |c: char| c == '\n' || c == '\t' || (!c.is_control() && c != '\u{202e}');
        assert!(text.chars().all(is_clean), "{format}: {text:?}");
        if ["cyclictest-json", "trace"].contains(&format) {
            serde_json::from_str::<Value>(&text).unwrap();
        }
        text.lines().count()
    };
    let before: Vec<usize> = OF_OTHERS.iter().map(|format| lines(&run, format)).collect();
    for text in [&mut run.id, &mut run.host.release, &mut run.host.version, &mut run.host.arch] {
        *text = HOSTILE.into();
    }
    run.plan.target = Target::Comm { comm: HOSTILE.into() };
    run.plan.load = vec![HOSTILE.into()];
    let after: Vec<usize> = OF_OTHERS.iter().map(|format| lines(&run, format)).collect();
    assert_eq!(before, after, "text from elsewhere made lines");
}

#[test]
fn a_report_says_what_the_maximum_proves() {
    let test = with_run("tail");
    let text = shown(&test, &["run"]);
    // On a disturbed machine the sentence begins with how many expiries come together in a burst.
    let (_, proof) = text.split_once("\n How long is long enough?\n · ").expect(&text);
    let proof: Vec<&str> = proof.split_whitespace().collect();
    assert!(proof.join(" ").contains("With 95 % confidence, fewer than 1 in "), "{text}");
    assert!(text.contains(" · Measuring time needed without a value above "), "{text}");
    assert!(text.contains("xtrapolation"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// Rows of a run's distributions, and how many samples they hold of each kind.
fn rows(test: &Test, run: &str) -> (String, BTreeMap<String, u64>) {
    let csv = shown(test, &[run, "--format", "csv"]);
    let mut counts = BTreeMap::new();
    for row in csv.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        *counts.entry(cells[1].to_owned()).or_default() += cells[4].parse::<u64>().unwrap();
    }
    (csv, counts)
}

#[test]
fn what_is_exported_and_imported_again_is_the_same_distribution() {
    let test = with_run("round-trip");
    let run: Run = record(&test.dir.join("run"));
    for format in ["cyclictest", "cyclictest-json", "hlog", "hgrm"] {
        let (once, twice) = (format!("1.{format}"), format!("2.{format}"));
        shown(&test, &["run", "--format", format, "-o", &once]);
        shown(&test, &[&once, "--format", format, "-o", &twice]);
        let (first, counts) = rows(&test, &once);
        assert_eq!(first, rows(&test, &twice).0, "{format}");
        // What cyclictest means is one value per wakeup.
        let count =
            if format.starts_with("cyclictest") { run.woken() } else { run.expiries() }.count;
        assert_eq!(counts["expiries"], count, "{format}");
    }
}
