//! Results inside logs, terminals and documents.

use super::*;

/// A text as something else shows it.
type Framing = (&'static str, fn(&str) -> String);

fn each_line(text: &str, mut framed: impl FnMut(usize, &str) -> String) -> String {
    text.lines().enumerate().map(|(i, line)| framed(i, line) + "\n").collect()
}

const FRAMINGS: [Framing; 12] = [
    ("a byte order mark", |text| format!("\u{feff}{text}")),
    ("a list's indentation", |text| each_line(text, |_, line| format!("    {line}"))),
    ("tabs", |text| each_line(text, |_, line| format!("\t\t{line}"))),
    ("a quote", |text| each_line(text, |_, line| format!("> {line}"))),
    ("a virtual machine's name", |text| each_line(text, |_, line| format!("[VM 1] {line}"))),
    ("GitHub's log", |text| {
        each_line(text, |i, line| format!("2026-11-22T14:{:02}:39.1234567Z {line}", i % 60))
    }),
    ("GitLab's log", |text| {
        each_line(text, |i, line| format!("2026-11-22T14:{:02}:39.123456Z 00O {line}", i % 60))
    }),
    ("Jenkins' log", |text| {
        each_line(text, |i, line| format!("[2026-11-22T14:{:02}:39.123Z] {line}", i % 60))
    }),
    ("a journal", |text| {
        each_line(text, |i, line| format!("Nov 22 14:{:02}:39 vm test[12]: {line}", i % 60))
    }),
    ("a terminal", |text| format!("root@vm:~# ./measure -q\n^C{text}root@vm:~# ")),
    ("a traced script", |text| format!("+ ./measure -q\n{text}+ exit 0\n")),
    ("a document", |text| {
        let code = each_line(text, |_, line| format!("  {line}"));
        format!("\n  ```console\n  $ ./measure -q\n{code}  ```\n")
    }),
];

#[test]
fn results_are_read_from_logs_terminals_and_documents() {
    for (format, bytes) in all() {
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if matches!(format, Format::JitterdebuggerRaw | Format::Rteval) {
            continue;
        }
        let want = read_as(format, text.as_bytes()).unwrap();
        for (name, framing) in FRAMINGS {
            let framed = framing(&text);
            assert_eq!(detected(framed.as_bytes()), format, "{format} in {name}:\n{framed}");
            let got = read_as(format, framed.as_bytes())
                .unwrap_or_else(|e| panic!("{format} in {name}: {e}\n{framed}"));
            assert_eq!(got, want, "{format} in {name}");
        }
    }
}

#[test]
fn what_is_around_a_result_in_a_document_is_no_part_of_it() {
    let text = "Measured on Tuesday, 2 of 5 boards.\n\n    T: 0 ( 12) P:80 I:1000 C:  100 Min:  3 Act:  4 Avg:  5 Max:  9\n\nThat is good.\n";
    assert_eq!(import(text.as_bytes())[0].run.threads[0].woken.count, 100);
    let text = format!("Before:\n\n{CYCLICTEST_2_4}\nThat is good.\n");
    let want = import(CYCLICTEST_2_4.as_bytes());
    assert_eq!(import(text.as_bytes())[0].run.threads, want[0].run.threads);
}

#[test]
fn what_follows_the_summary_of_rtla_is_no_part_of_it() {
    let text = TIMERLAT.split("ALL:").next().unwrap();
    let words = "rtla timerlat hit stop tracing\n  IRQ handler delay:  (exit from idle)  48.21 us (91.09 %)\n  2 CPUs\n\nSEE ALSO\n========\n";
    let want = import(text.as_bytes());
    assert_eq!(import(format!("{text}{words}").as_bytes()), want);
    for more in ["8   1 2 3 4 5 6\n", "max:  1 2 3 4 5 6\n"] {
        let text = format!("{text}{words}{more}");
        assert!(read_as(Format::Timerlat, text.as_bytes()).is_err(), "{more}");
    }
    // What stands before the end of the summary is of it.
    let text = text.replace("min:", "and so on\nmin:");
    assert!(read_as(Format::Timerlat, text.as_bytes()).is_err());
}

#[test]
fn results_that_are_mixed_are_refused() {
    let line = |cycles: u32, max: u32| {
        format!("T: 0 ( 12) P:80 I:1000 C: {cycles} Min:  3 Act:  4 Avg:  5 Max: {max}\n")
    };
    let before_and_after = format!("Before:\n{}After:\n{}", line(100, 90), line(100, 9));
    let mixed: String = CYCLICTEST_QUIET
        .lines()
        .enumerate()
        .map(|(i, line)| format!("[VM {}] {line}\n", i % 2))
        .collect();
    let second = "a second result begins; give each a file of its own";
    for (text, why) in [
        (before_and_after, second),
        (line(100, 90) + &line(100, 9), second),
        (line(100, 90) + &line(50, 90), second),
        (mixed, "lines of `[VM 0]` and of `[VM 1]` are mixed"),
        (format!("{JITTERDEBUGGER_0_1}{JITTERDEBUGGER_0_1}"), "trailing characters"),
        (
            CYCLICTEST_2_4.replace("# Total", "and so on\n# Total"),
            "this is not a line of cyclictest's histogram or summary",
        ),
    ] {
        let error = read_as(detected(text.as_bytes()), text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(why), "{error}\n{text}");
    }
}

/// What version 0.1 prints on a terminal.
const JITTERDEBUGGER_0_1: &str = r#"  # jitterdebugger -v
  affinity: 0,1 = 2 [0x3]
  T: 0 (  700) A: 0 C:         9 Min:         4 Avg:    4.44 Max:         6
  T: 1 (  701) A: 1 C:         9 Min:         5 Avg:    5.00 Max:         5
  ^C
  {
    "cpu": {
      "0": {
        "histogram": {
          "4": 6,
          "5": 2,
          "6": 1
        },
        "count": 9,
        "min": 4,
        "max": 6,
        "avg": 4.44
      },
      "1": {
        "histogram": {
          "5": 9
        },
        "count": 9,
        "min": 5,
        "max": 5,
        "avg": 5.00
      }
    }
  }
"#;

#[test]
fn jitterdebugger_before_its_versions() {
    let want = expect![[r#"
        [jitterdebugger None] wakeup latency; expiries missed during a stall are counted; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
          CPU None: 9 from Some(4000) to Some(6000), sum 39960; 4000..5000: 6, 5000..6000: 2, 6000..7000: 1
          CPU None: 9 from Some(5000) to Some(5000), sum 45000; 5000..6000: 9
    "#]];
    let bare = &JITTERDEBUGGER_0_1[JITTERDEBUGGER_0_1.find('{').unwrap()..];
    let versions = [1, 2].map(|v| bare.replacen('{', &format!("{{\n  \"version\": {v},"), 1));
    for text in [JITTERDEBUGGER_0_1, bare] {
        want.assert_eq(&shown(&import(text.as_bytes())));
    }
    for text in &versions {
        let runs = read_as(Format::JitterdebuggerJson, text.as_bytes()).unwrap();
        want.assert_eq(&shown(&runs));
    }
    let future = bare.replacen('{', "{\"version\": 4,", 1);
    let error = read_as(Format::JitterdebuggerJson, future.as_bytes()).unwrap_err();
    assert!(error.why.contains("versions up to 3 are read"), "{error}");
}

/// As HdrHistogram_c prints it inside wrk2's report: other blanks, six decimals of percentiles, a
/// last line with `inf`, and more words behind it.
const WRK2: &str = "\
Running 10s test @ http://127.0.0.1:80/index.html
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.02ms
100.000%    4.01ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.500     0.000000            1         1.00
       1.023     0.500000            6         2.00
       2.047     0.900000            9        10.00
       4.015     1.000000           10          inf
#[Mean    =        1.300, StdDeviation   =        0.900]
#[Max     =        4.012, Total count    =           10]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  10 requests in 10.00s, 3.00KB read
Requests/sec:      1.00
";

#[test]
fn percentile_distributions_of_other_libraries() {
    let about = About { file: "file".into(), unit: Some(Unit::Ms), ..About::default() };
    let read_ms = |text: &str| read(detected(text.as_bytes()), &mut text.as_bytes(), &about);
    let runs = read_ms(WRK2).unwrap();
    expect![[r#"
        [HdrHistogram None] value of unknown kind; treatment of expiries missed during a stall unknown; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
          CPU None: 10 from Some(500000) to Some(4015000), sum 13000000; 0..501000: 1, 501000..1024000: 5, 1024000..2048000: 3, 2048000..4016000: 1
    "#]]
    .assert_eq(&shown(&runs));
    let source = runs[0].run.source.as_ref().unwrap();
    assert!(source.approximate.iter().any(|a| a.starts_with("max_ns: ")), "{source:?}");
    // A maximum that cannot be in the last bucket is a contradiction.
    for max in ["4.000", "4.016"] {
        let text = WRK2.replace("=        4.012", &format!("=        {max}"));
        let error = read_ms(&text).unwrap_err();
        assert!(error.why.contains("is not the maximum, nor in the same bucket"), "{max}: {error}");
    }
    let twice = format!("{WRK2}{WRK2}");
    assert!(read_ms(&twice).unwrap_err().why.contains("a second table begins"));
}

#[test]
fn percentiles_of_many_samples_are_rounded() {
    // 0.999853515625, which is 39,994,140.6 samples, is printed as 0.999854; and 0.9999996
    // as 1.000000.
    let text = |count: u64| {
        format!(
            "       Value   Percentile   TotalCount 1/(1-Percentile)\n\n       \
             0.500     0.000000            1         1.00\n       \
             1.023     0.500000     20000000         2.00\n       \
             2.047     0.999854     {count}      6826.67\n       \
             4.000     1.000000     39999985   2621440.00\n       \
             4.015     1.000000     40000000          inf\n\
             #[Mean    =        1.300, StdDeviation   =        0.400]\n\
             #[Max     =        4.012, Total count    =     40000000]\n\
             #[Buckets =           27, SubBuckets     =         2048]\n"
        )
    };
    let about = About { file: "file".into(), unit: Some(Unit::Ms), ..About::default() };
    let read_ms = |text: &str| read(detected(text.as_bytes()), &mut text.as_bytes(), &about);
    let runs = read_ms(&text(39_994_141)).unwrap();
    assert_eq!(runs[0].run.threads[0].woken.count, 40_000_000);
    let error = read_ms(&text(39_994_130)).unwrap_err();
    assert!(error.why.contains("which are fewer than that share"), "{error}");
}

#[test]
fn interval_logs_without_a_head_are_recognised() {
    let lines =
        ["0.127,1.007,2.769,HISTFAAAAEV4", "Tag=a b,1527510686.313,40.807,0.000,HISTFAAAABx4 "];
    for line in lines {
        for before in ["", "#a program v1.0\n\"StartTimestamp\",\"Interval_Length\",\"x\",\"y\"\n"]
        {
            let text = format!("{before}{line}\n");
            assert_eq!(detect(text.as_bytes()), Head::Known(Format::HdrLog), "{text}");
        }
    }
    for other in ["HISTFAAAA", "a,b,c,HISTFAAAA", "1,2,HISTFAAAA", "1,2,3,histogram"] {
        assert_eq!(detect(format!("{other}\n").as_bytes()), Head::Unknown, "{other}");
    }
}
