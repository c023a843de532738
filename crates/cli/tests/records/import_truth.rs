//! Whole runs of the command on files that state more, or less, than their samples: units, stated
//! percentiles, bounds, and values that are no wakeup latencies.

use std::fs;

use crate::common::bench::Test;
use crate::common::formats::HISTOGRAM;

const OSLAT: &str = "\
oslat V 2.40
        Core:\t 0
    001 (us):\t 9000
    002 (us):\t 10
    003 (us):\t 0 (including overflows)
     Minimum:\t 1 (us)
     Average:\t 1.001 (us)
     Maximum:\t 2 (us)
     Max-Min:\t 1 (us)
    Duration:\t 1.000 (sec)
";

const SCHBENCH: &str = "\
Wakeup Latencies percentiles (usec) runtime 10 (s) (100000 total samples)
\t  50.0th: 7          (26000 samples)
\t  90.0th: 18         (33000 samples)
\t* 99.0th: 175        (9000 samples)
\t  99.9th: 909        (900 samples)
\t  min=1, max=10224
";

#[track_caller]
fn refused(test: &Test, args: &[&str], parts: &[&str]) {
    let ended = test.ended(args);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{args:?}: {part}: {ended:?}");
    }
}

#[test]
fn every_verb_says_that_a_unit_was_assumed_and_takes_one() {
    let test = Test::new("import-unit");
    fs::write(test.dir.join("a.txt"), HISTOGRAM).unwrap();
    let with_one_more = HISTOGRAM.replace("000005\t000004", "000005\t000005");
    fs::write(test.dir.join("b.txt"), with_one_more.replace("000000004", "000000005")).unwrap();
    let verbs: [&[&str]; 4] = [
        &["import", "a.txt"],
        &["report", "a.txt"],
        &["compare", "a.txt", "--against", "b.txt"],
        &["trend", "a.txt", "b.txt"],
    ];
    for verb in verbs {
        let silent = test.ended(verb);
        assert!(silent.stdout.contains("unit-assumed"), "{verb:?}: {silent:?}");
        let text = test.ended(&[verb, &["--unit", "ns"]].concat());
        assert!(!text.stdout.contains("unit-assumed") && text.stderr.is_empty(), "{text:?}");
        // The file does not tell, so each of the two is possible: a thousand times apart.
        if verb[0] != "trend" {
            assert!(text.stdout.contains(" ns"), "{verb:?}: {text:?}");
        }
    }
    let json = test.done(&["report", "a.txt", "--unit", "ns", "--format", "json"]);
    assert!(json.contains("\"max_ns\":3,") && !json.contains("3000"), "{json}");
}

#[test]
fn a_unit_that_contradicts_a_file_is_refused_by_every_verb() {
    let test = Test::new("import-unit-refused");
    let named = format!("# cyclictest -N -q -h 400\n{HISTOGRAM}");
    fs::write(test.dir.join("n.txt"), named).unwrap();
    fs::write(test.dir.join("s.txt"), SCHBENCH).unwrap();
    let why = "--unit says µs, but the file's values are in ns: its command line states it";
    for verb in [
        &["import", "n.txt", "--unit", "us"][..],
        &["report", "n.txt", "--unit", "us"],
        &["compare", "n.txt", "--against", "n.txt", "--unit", "us"],
        &["trend", "n.txt", "--unit", "us"],
    ] {
        refused(&test, verb, &[why, "omit --unit"]);
    }
    refused(&test, &["report", "s.txt", "--unit", "ns"], &["schbench writes `(usec)`"]);
    // A record is in ns, and says so.
    test.done(&["import", "n.txt", "--out", "run"]);
    refused(&test, &["report", "run", "--unit", "us"], &["always in ns"]);
    assert!(test.done(&["report", "run", "--unit", "ns"]).contains("3 ns"));
}

#[test]
fn samples_of_jitterdebugger_are_in_the_unit_of_the_results_beside_them() {
    let test = Test::new("import-beside");
    let mut samples = Vec::new();
    for i in 0..20_u64 {
        samples.extend(0_u32.to_le_bytes());
        for word in [5, i * 1_000_000, 60_000 + i] {
            samples.extend(word.to_le_bytes());
        }
    }
    fs::write(test.dir.join("samples.raw"), samples).unwrap();
    // 60 ms late every ms: as µs, that cannot be.
    refused(&test, &["report", "samples.raw"], &["above the interval of 1000.000 µs", "--unit ns"]);
    let results = "{\"version\": 3, \"sysinfo\": {\"resolution_in_ns\": 1}, \"cpu\": {}}";
    fs::write(test.dir.join("results.json"), results).unwrap();
    let text = test.done(&["report", "samples.raw"]);
    assert!(text.contains("Worst wakeup 60.0 µs late") && !text.contains("unit-assumed"), "{text}");
    refused(&test, &["import", "samples.raw", "--unit", "us"], &["results.json states ns"]);
    test.done(&["import", "samples.raw", "--unit", "ns"]);
}

#[test]
fn percentiles_of_schbench_are_shown_as_far_as_it_tells_them() {
    let test = Test::new("import-schbench");
    fs::write(test.dir.join("s.txt"), SCHBENCH).unwrap();
    let text = test.done(&["report", "s.txt"]);
    assert!(text.contains("99.9 % within 909 µs"), "{text}");
    assert!(text.contains("≤ 8.00 µs  175 µs  909 µs  ≤ 10.2 ms"), "{text}");
    let markdown = test.done(&["report", "s.txt", "--format", "md"]);
    assert!(markdown.contains("| ≤ 8.00 µs | 175 µs | 909 µs | ≤ 10.2 ms |"), "{markdown}");
    let page = test.done(&["report", "s.txt", "--format", "html"]);
    assert!(page.contains("909") && page.contains("≤ 10.2"), "{page}");
    // By what the file states the sides differ, not by a bound.
    let slower = SCHBENCH.replace("909 ", "990 ");
    fs::write(test.dir.join("t.txt"), slower).unwrap();
    let ended = test.ended(&["compare", "t.txt", "--against", "s.txt"]);
    assert!(ended.stdout.contains("990 µs") && ended.stdout.contains("909 µs"), "{ended:?}");
    // A limit between a bound's ends is open; one above it holds.
    for (limit, code) in
        [("p99=176us", 3), ("p99=100us", 1), ("p99.99=5ms", 3), ("p99.99=500us", 1)]
    {
        let args = ["compare", "t.txt", "--against", "s.txt", "--fail-above", limit];
        let ended = test.ended(&args);
        assert_eq!(ended.code, Some(code), "{limit}: {ended:?}");
        if limit.starts_with("p99.99=5ms") {
            assert!(ended.stdout.contains("only bounds are known"), "{ended:?}");
        }
    }
}

#[test]
fn a_contradiction_is_refused_with_both_figures() {
    let test = Test::new("import-contradiction");
    let wrong = OSLAT.replace("1.001", "2.900");
    fs::write(test.dir.join("o.txt"), wrong).unwrap();
    refused(&test, &["report", "o.txt"], &["a mean of 1001 ns", "is 2900 ns"]);
    let less = SCHBENCH.replace("(26000 samples)", "(2000 samples)").replace("(33000 ", "(1000 ");
    fs::write(test.dir.join("s.txt"), less).unwrap();
    refused(&test, &["report", "s.txt"], &["its rows hold 12900 samples, of 100000"]);
}

#[test]
fn gaps_are_put_beside_wakeup_latencies_only_when_asked() {
    let test = Test::new("import-quantities");
    fs::write(test.dir.join("o.txt"), OSLAT).unwrap();
    fs::write(test.dir.join("c.txt"), HISTOGRAM).unwrap();
    let text = test.done(&["report", "o.txt"]);
    // The maximum is the tool's.
    assert!(text.starts_with("Largest gap in a busy loop 2.00 µs"), "{text}");
    let compared = ["compare", "o.txt", "--against", "c.txt"];
    refused(
        &test,
        &compared,
        &["they measure different quantities", "gap in a busy loop", "--mix-quantities"],
    );
    refused(&test, &[&compared[..], &["--force"]].concat(), &["they measure different quantities"]);
    let mixed = [&compared[..], &["--mix-quantities", "--force"]].concat();
    let ended = test.ended(&mixed);
    assert!(ended.stdout.contains("The runs differ in quantity: gap in a busy loop"), "{ended:?}");
    let shown = ["report", "o.txt", "c.txt", "--format", "svg"];
    refused(
        &test,
        &shown,
        &["measure different quantities", "o.txt holds gap in a busy loop", "--mix-quantities"],
    );
    let picture = test.done(&[&shown[..], &["--mix-quantities"]].concat());
    assert!(picture.contains("gap in a busy loop / wakeup latency"), "{picture}");
    let page = test.done(&["report", "o.txt", "--format", "html"]);
    assert!(page.contains("Gaps by length") && !page.contains("Wakeups by lateness"), "{page}");
}
