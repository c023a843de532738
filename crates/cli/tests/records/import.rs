//! `wakescope import`, run as a command: on what the real programs print, where they are installed,
//! and on what is no result at all.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::bench::{Test, skip};
use crate::common::formats::HISTOGRAM;
use crate::common::measured::{RECORD, record};
use wakescope_core::run::Run;

const TIMERLAT: &str = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:05
Index   IRQ-000   Thr-000
0            10         0 
1             2        12 
over:         0         0 
count:       12        12 
min:          0         1 
avg:          0         1 
max:          1         1 
";

/// Imports a file of a test's directory into a run, which must be a valid one.
#[track_caller]
fn imported(test: &Test, file: &str) -> Run {
    let out = format!("run-of-{}", file.replace('/', "-"));
    let text = test.done(&["import", file, "--out", &out]);
    assert!(text.contains("unknown: "), "{text}");
    crate::common::assert_valid_run(&fs::read_to_string(test.dir.join(&out).join(RECORD)).unwrap());
    record(&test.dir.join(out))
}

#[test]
fn a_file_becomes_a_run_like_any_other() {
    let test = Test::new("import");
    fs::write(test.dir.join("ct.txt"), HISTOGRAM).unwrap();
    let run = imported(&test, "ct.txt");
    assert_eq!((run.summary.count, run.summary.max_ns), (13, Some(3_000)));
    assert_eq!(run.source.unwrap().tool, "cyclictest");
    // From the file or from the run, the report is the same.
    let text = test.done(&["report", "ct.txt"]);
    assert_eq!(text, test.done(&["report", "run-of-ct.txt"]));
    assert!(text.contains("13 samples of cyclictest, 2 threads"), "{text}");
    assert!(!text.contains("0 ns") && !text.contains("kernel "), "{text}");
    // Without --out, runs lie where those of `measure` do.
    let message = test.done(&["import", "ct.txt", "ct.txt"]);
    assert_eq!(test.runs().len(), 2, "{message}");
}

#[test]
fn quantities_of_one_file_are_runs_of_their_own() {
    let test = Test::new("import-several");
    fs::write(test.dir.join("t.txt"), TIMERLAT).unwrap();
    test.done(&["import", "t.txt", "--out", "all"]);
    assert_eq!(record(&test.dir.join("all/t-irq")).summary.max_ns, Some(1_000));
    // All of them, or none.
    fs::remove_dir_all(test.dir.join("all/t-irq")).unwrap();
    let ended = test.ended(&["import", "t.txt", "--out", "all"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("all/t-thread already holds a run"), "{ended:?}");
    assert!(!test.dir.join("all/t-irq").exists());
    let both = test.done(&["report", "t.txt"]);
    for part in ["t.txt#irq\n", "t.txt#thread\n", "Largest interrupt latency 1.00 µs (CPU 0)"] {
        assert!(both.contains(part), "{part}: {both}");
    }
    // What takes one run says which there are.
    let ended = test.ended(&["report", "t.txt", "--format", "csv"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in ["holds 2 runs", "t.txt#irq, interrupt latency", "t.txt#thread"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    assert!(test.done(&["report", "t.txt#thread"]).contains("latency of a kernel thread"));
    let ended = test.ended(&["report", "t.txt#user"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no run named `user`"), "{ended:?}");
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let test = Test::new("import-refused");
    let utf16: Vec<u8> = HISTOGRAM.bytes().flat_map(|b| [b, 0]).collect();
    for (name, bytes, why) in [
        ("empty", &b""[..], "it is empty (0 bytes)"),
        ("x.gz", b"\x1f\x8b\x08\0\0\0", "it is compressed with gzip"),
        ("x.xz", b"\xfd7zXZ\0", "unpack it first: unxz x.xz"),
        ("utf16", &utf16, "iconv"),
        ("other", b"hello\n", "neither a run record nor the output"),
        ("cut", &HISTOGRAM.as_bytes()[..40], "line 3, column 8: the file ends in the middle"),
        ("wrong", HISTOGRAM.replace("000005", "00000x").as_bytes(), "line 3, column 8: `00000x`"),
        ("hdr", b"#[Histogram log format version 1.3]\n", "there is no interval in it"),
    ] {
        fs::write(test.dir.join(name), bytes).unwrap();
        for command in ["import", "report"] {
            let ended = test.ended(&[command, name]);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name}: {ended:?}");
            assert!(ended.stderr.contains(why), "{name}: {ended:?}");
        }
    }
    assert!(!test.dir.join("runs").exists(), "nothing is left behind");
    let ended = test.ended(&["import", "/dev/zero"]);
    assert!(ended.stderr.contains("not a regular file"), "{ended:?}");
}

#[test]
fn json_that_is_no_result_is_named_as_what_it_is() {
    let test = Test::new("import-json");
    test.write_run("run", &crate::common::made_up::run(5));
    for (name, json, why) in [
        (
            "fio.json",
            "{\"fio version\": \"3\", \"jobs\": []}",
            "its keys are `fio version`, `jobs`",
        ),
        ("lab.json", "{\"schema\": \"wakescope.lab/1\"}", "its schema is `wakescope.lab/1`"),
        ("none.json", "{}", "it is an object without keys"),
        ("cut.json", "{\"a\": [1,", "not the output of a supported program"),
    ] {
        fs::write(test.dir.join(name), json).unwrap();
        let ended = test.ended(&["import", name]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name}: {ended:?}");
        assert!(ended.stderr.contains(why), "{name}: {ended:?}");
        assert!(!ended.stderr.contains("is already a run"), "{name}: {ended:?}");
    }
    let ended = test.ended(&["import", "run/run.json"]);
    assert!(ended.stderr.contains("is already a run"), "{ended:?}");
}

#[test]
fn the_folder_that_jitterdebugger_writes_is_read() {
    let test = Test::new("import-folder");
    fs::create_dir(test.dir.join("jd")).unwrap();
    let results = r#"{"version": 3, "sysinfo": {"resolution_in_ns": 1000, "cpus_online": 1},
        "cpu": {"0": {"histogram": {"3": 2}, "count": 2, "min": 3, "max": 3, "avg": 3.00}}}"#;
    fs::write(test.dir.join("jd/results.json"), results).unwrap();
    fs::write(test.dir.join("jd/samples.raw"), "").unwrap();
    fs::write(test.dir.join("jd/cpuinfo"), "processor: 0").unwrap();
    assert_eq!(imported(&test, "jd").summary.count, 2);
    let shown = test.done(&["report", "jd"]);
    assert_eq!(shown, test.done(&["report", "jd/results.json"]));
    fs::create_dir(test.dir.join("other")).unwrap();
    let ended = test.ended(&["import", "other"]);
    assert!(ended.stderr.contains("cannot import other: it is a folder"), "{ended:?}");
}

#[test]
fn a_file_of_10_gb_is_read_in_little_memory() {
    let test = Test::new("import-large");
    for (name, begin, from) in [
        ("text", &b"# Histogram\n"[..], "cyclictest"),
        ("json", b"{\"rt_test_version:\": 1,", "cyclictest-json"),
        ("xml", b"<rteval>", "rteval"),
        ("raw", b"", "jitterdebugger-raw"),
    ] {
        fs::write(test.dir.join(name), begin).unwrap();
        File::options().write(true).open(test.dir.join(name)).unwrap().set_len(10 << 30).unwrap();
        // 1 GiB of address space: beyond that, memory is refused, and it would abort.
        let line = format!("ulimit -v {}; exec \"$0\" import {name} --from {from}", 1 << 20);
        let ended = Command::new("sh")
            .args(["-c", &line])
            .arg(&test.program)
            .current_dir(&test.dir)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{name}: {message}");
        assert!(message.contains("cannot import"), "{name}: {message}");
    }
}

/// Runs another program in the test's directory and keeps what it prints in a file there; `None` if
/// it is not installed, or does not work on this machine, which is said.
fn printed_by(test: &Test, file: &str, program: &str, args: &[&str]) -> Option<String> {
    let out = File::create(test.dir.join(file)).unwrap();
    let mut command = Command::new(program);
    command.args(args).current_dir(&test.dir).stdin(Stdio::null()).stdout(out).process_group(0);
    let ended = match command.stderr(Stdio::null()).status() {
        Ok(status) if status.success() => fs::read_to_string(test.dir.join(file)).ok(),
        _ => None,
    };
    if ended.is_none() {
        skip(&format!("what {program} prints now"), "it is not installed, or does not run here");
    }
    ended
}

/// The numbers in the line of `text` that begins with `head`.
fn stated(text: &str, head: &str) -> Vec<u64> {
    let line =
        text.lines().find(|l| l.starts_with(head)).unwrap_or_else(|| panic!("{head}: {text}"));
    let numbers = line[head.len()..].split_ascii_whitespace();
    numbers.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn what_cyclictest_prints_now_is_read() {
    let test = Test::new("import-cyclictest");
    let args = ["-q", "-i", "500", "-l", "200", "-t", "2", "-h", "60", "--json=ct.json"];
    let Some(text) = printed_by(&test, "ct.txt", "cyclictest", &args) else { return };
    let run = imported(&test, "ct.txt");
    let overflows: u64 = stated(&text, "# Histogram Overflows:").iter().sum();
    let max = stated(&text, "# Max Latencies:").into_iter().max().map(|us| us * 1_000);
    assert_eq!(run.summary.max_ns, max);
    if text.contains("# Total:") {
        let total: u64 = stated(&text, "# Total:").iter().sum();
        assert_eq!(run.summary.count, total + overflows);
    }
    // The JSON is of the same samples; it states the interval, too.
    let json = imported(&test, "ct.json");
    assert_eq!(json.plan.interval_ns, 500_000);
    for (a, b) in run.threads.iter().zip(&json.threads) {
        assert_eq!(a.woken.histogram, b.woken.histogram);
    }
    if let Some(text) = printed_by(&test, "q.txt", "cyclictest", &["-q", "-i", "500", "-l", "50"]) {
        assert!(text.contains("C:     50"), "{text}");
        assert_eq!(imported(&test, "q.txt").summary.count, 50);
    }
    if let Some(text) = printed_by(&test, "v.txt", "cyclictest", &["-v", "-i", "500", "-l", "50"]) {
        let samples = text.lines().filter(|l| l.starts_with("       0:")).count();
        // The samples do not tell their unit, and on a busy machine are later than the interval.
        test.done(&["import", "v.txt", "--unit", "us", "--out", "v"]);
        assert_eq!(record(&test.dir.join("v")).summary.count, samples as u64);
    }
}

#[test]
fn what_jitterdebugger_writes_now_is_read() {
    let test = Test::new("import-jitterdebugger");
    let args = ["-l", "200", "-i", "500", "-s", "-o", "jd"];
    if printed_by(&test, "jd.txt", "jitterdebugger", &args).is_none() {
        return;
    }
    let run = imported(&test, "jd/results.json");
    assert!(run.threads.iter().all(|t| t.woken.count == 200), "{:?}", run.summary);
    let bytes = fs::metadata(test.dir.join("jd/samples.raw")).unwrap().len();
    if bytes == 0 {
        skip("raw samples of jitterdebugger", "on this busy machine it wrote none");
        return;
    }
    let raw = imported(&test, "jd/samples.raw");
    assert_eq!(raw.summary.count, bytes / 28);
    assert!(raw.threads.iter().all(|t| t.maxima.is_some()));
}

#[test]
fn what_oslat_prints_now_is_read() {
    let test = Test::new("import-oslat");
    let args = ["-D", "1", "-q", "-c", "0", "--json=o.json"];
    let Some(text) = printed_by(&test, "o.txt", "oslat", &args) else { return };
    let run = imported(&test, "o.txt");
    let rows = text.lines().filter_map(|l| l.split_once("(us):"));
    let count: u64 = rows
        .filter_map(|(_, rest)| rest.split_ascii_whitespace().next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(run.summary.count, count);
    let json = imported(&test, "o.json");
    assert_eq!(json.threads[0].woken.histogram, run.threads[0].woken.histogram);
}

#[test]
fn what_stress_ng_prints_now_is_read() {
    let test = Test::new("import-stress-ng");
    let args = ["--cyclic", "1", "--cyclic-dist", "10000", "-t", "1", "--log-file", "s.log"];
    if printed_by(&test, "s.txt", "stress-ng", &args).is_none() {
        return;
    }
    let text = fs::read_to_string(test.dir.join("s.log")).unwrap_or_default();
    let of = |line: &str| line.split(" ns delay, ").nth(1)?.split(' ').next()?.parse::<u64>().ok();
    let Some(samples) = text.lines().find_map(of) else {
        skip("what stress-ng prints now", "it measured nothing here");
        return;
    };
    assert_eq!(imported(&test, "s.log").summary.count, samples);
}

#[test]
fn what_rtla_prints_now_is_read() {
    let test = Test::new("import-rtla");
    if !Path::new("/sys/kernel/tracing/osnoise").exists() {
        skip(
            "what rtla prints now",
            "this kernel has no timerlat tracer, or tracefs is not mounted",
        );
        return;
    }
    if let Some(text) = printed_by(&test, "t.txt", "rtla", &["timerlat", "hist", "-d", "1s"]) {
        let counts: u64 = stated(&text, "count:").iter().sum();
        test.done(&["import", "t.txt", "--out", "all"]);
        let runs = ["t-irq", "t-thread"].map(|name| record(&test.dir.join("all").join(name)));
        assert_eq!(runs.iter().map(|r| r.summary.count).sum::<u64>(), counts);
    }
}
