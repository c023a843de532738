//! Figures that a file states come back from what was read of it, or it is refused.

use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Verdict;
use wakescope_core::histogram::Bucket;
use wakescope_core::limit::{Limit, MeasuredBy, Outcome};
use wakescope_core::run::Run;
use wakescope_core::source::Quantity;
use wakescope_core::stated::Quantile;
use wakescope_core::units::SpanNs;

use super::super::*;
use super::files::*;
use super::read_as;

fn read_in(format: Format, text: &str, unit: Option<Unit>) -> Result<Run, ImportError> {
    let about = About { file: "file".into(), unit, ..About::default() };
    read(format, &mut text.as_bytes(), &about).map(|mut runs| runs.remove(0).run)
}

fn run(format: Format, text: &str) -> Run {
    read_in(format, text, None).unwrap_or_else(|e| panic!("{format}: {e}"))
}

fn quantile(d: &Distribution, percentile: &str) -> Option<Quantile> {
    d.quantile(percentile.parse().unwrap())
}

/// schbench's table of samples in µs, as the program makes it: with a row for the 20th percentile
/// that is computed, and printed or not.
fn schbench(samples: &[u64], prints_20th: bool, computes_20th: bool) -> String {
    let edges = |value: u64| {
        let width = 1_u64 << value.max(256).ilog2().saturating_sub(8);
        (value - value % width, width)
    };
    let mut sorted: Vec<(u64, u64)> = samples.iter().map(|&us| edges(us)).collect();
    sorted.sort_unstable();
    let total = sorted.len() as u64;
    let mut text =
        format!("Wakeup Latencies percentiles (usec) runtime 10 (s) ({total} total samples)\n");
    let mut last = 0;
    for (share, name) in [(200, "20.0"), (500, "50.0"), (900, "90.0"), (990, "99.0"), (999, "99.9")]
    {
        if share == 200 && !computes_20th {
            continue;
        }
        let rank = (total * share).div_ceil(1_000).max(1);
        let (lower, width) = sorted[usize::try_from(rank - 1).unwrap()];
        let up_to = sorted.iter().filter(|&&(l, _)| l <= lower).count() as u64;
        if share > 200 || prints_20th {
            let star = if share == 990 { "* " } else { "  " };
            text += &format!(
                "\t{star}{name}th: {:<10} ({} samples)\n",
                lower + width / 2,
                up_to - last
            );
        }
        last = up_to;
    }
    let (min, max) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
    text + &format!("\t  min={min}, max={max}\n")
}

#[test]
fn percentiles_of_schbench_come_back_whether_or_not_a_row_is_hidden() {
    // Most samples are small, some are large, one is larger than any percentile tells.
    let mut samples: Vec<u64> =
        (0..3_000_u64).map(|i| 3 + i * i % 9 + (i % 50) / 49 * 700).collect();
    samples.extend([5_000, 9_000, 20_000]);
    samples.sort_unstable();
    for (prints, computes) in [(false, true), (true, true), (false, false)] {
        let text = schbench(&samples, prints, computes);
        let run = run(Format::SchbenchText, &text);
        let d = run.expiries();
        assert_eq!((d.count, d.max_ns), (3_003, Some(20_000_000)), "{text}");
        for (percentile, rank) in [("p50", 1_502), ("p99", 2_973), ("p99.9", 3_000)] {
            // The file tells the middle of a bucket of 0.4 %.
            let true_ns = samples[rank - 1] as f64 * 1_000.0;
            match quantile(&d, percentile) {
                Some(Quantile::Known(ns)) => {
                    assert!(
                        (ns as f64 / true_ns - 1.0).abs() < 0.005,
                        "{percentile}: {ns} ns, {text}"
                    );
                }
                // A step of 1 µs is much of a few µs.
                other => assert!(other.is_some() && true_ns < 16_000.0, "{percentile}: {other:?}"),
            }
            let (low, high) = d.range(percentile.parse().unwrap()).unwrap();
            assert!(
                low as f64 <= true_ns && true_ns <= high as f64,
                "{percentile}: {low} to {high}"
            );
        }
    }
}

#[test]
fn a_table_of_schbench_that_contradicts_itself_is_refused() {
    let head = "Wakeup Latencies percentiles (usec) runtime 10 (s) (1000 total samples)\n";
    for (rows, why) in [
        // A fifth is neither in the rows, nor can it be in a hidden one: the 20th is printed.
        (
            "20.0th: 3 (200 samples)\n50.0th: 5 (300 samples)\n99.0th: 9 (290 samples)\n",
            "its rows hold 790 samples, of 1000: less than its percentiles say",
        ),
        ("50.0th: 5 (300 samples)\n99.0th: 5 (3 samples)\n", "both 5 µs, but it counts 3 samples"),
        (
            "50.0th: 5 (500 samples)\n99.0th: 9 (600 samples)\n",
            "its rows hold 1100 samples, of 1000",
        ),
        // The 50th percentile would have been reached a row before.
        (
            "50.0th: 5 (100 samples)\n90.0th: 7 (100 samples)\n99.0th: 9 (10 samples)\n",
            "no omitted row makes up for it",
        ),
    ] {
        let text = format!("{head}{rows}min=1, max=30\n");
        let error = read_in(Format::SchbenchText, &text, None).unwrap_err();
        assert!(error.to_string().contains(why), "{rows}: {error}");
    }
}

#[test]
fn each_statement_is_checked() {
    for (format, text, from, to, why) in [
        (
            Format::CyclictestText,
            CYCLICTEST_2_4,
            "00001 00004",
            "00001 00005",
            "thread 1: the mean is stated as 5 µs to 6 µs, but its samples have 4 µs",
        ),
        (
            Format::CyclictestJson,
            CYCLICTEST_JSON,
            "14.25",
            "19.95",
            "CPU 0: the mean is stated as 19.944 µs to 19.956 µs, but its samples have 9.7 µs to 17.9 µs",
        ),
        (
            Format::JitterdebuggerJson,
            JITTERDEBUGGER,
            "22.00",
            "23.00",
            "thread 1: the mean is stated",
        ),
        (
            Format::Timerlat,
            TIMERLAT,
            "avg:          0         7        50",
            "avg:          0         9        50",
            "CPU 0: the mean is stated as 8.99 µs to 10 µs, but its samples have 7.75 µs",
        ),
        (
            Format::Timerlat,
            TIMERLAT,
            "count:       20        20",
            "count:       21        20",
            "all threads: the number of samples is stated as 21, but its samples have 20",
        ),
        (
            Format::Timerlat,
            TIMERLAT,
            "max:          1        40       300 \n",
            "max:          2        40       300 \n",
            "maximum",
        ),
        (
            Format::Timerlat,
            TIMERLAT,
            "avg:          0         7        46",
            "avg:          0         9        46",
            "all threads: the mean",
        ),
        (Format::Osnoise, OSNOISE, "avg:       0.10", "avg:       9.10", "the mean"),
        (Format::OslatText, OSLAT_2_4, "4.000 1.000", "4.000 3.000", "mean"),
        (
            Format::OslatText,
            OSLAT_2_4,
            "35 0",
            "34 0",
            "`Max-Min:` is 34000 ns, but its extremes are 36000 ns and 1000 ns",
        ),
        (
            Format::OslatText,
            OSLAT_2_4,
            "    ...\n",
            "",
            "no row between 1000 ns and the one that ends at 3000 ns; rows are missing",
        ),
        (
            Format::OslatText,
            OSLAT_2_4,
            "    001 (us):\t 10 20\n    ...\n",
            "",
            "no row between 0 ns and the one that ends at 3000 ns; rows are missing; or was a bias",
        ),
        (Format::OslatJson, OSLAT_JSON, "1.235739", "9.235739", "mean"),
        (
            Format::Rteval,
            RTEVAL,
            "3.6666666666666665",
            "4.1",
            "all threads: the mean is stated as 4.09 µs to 4.11 µs, but its samples have 3.667 µs",
        ),
        (
            Format::Rteval,
            RTEVAL,
            "<mean unit=\"us\">3.4<",
            "<mean unit=\"us\">3.2<",
            "CPU 0: the mean",
        ),
        (
            Format::Rteval,
            RTEVAL,
            "<median unit=\"us\">3<",
            "<median unit=\"us\">6<",
            "all threads: p50",
        ),
        (
            Format::OslatJson,
            OSLAT_JSON,
            "2.002",
            "1e5",
            "a thread ran for 1.16 d, but its start and end are at most 3.30 s apart",
        ),
        (
            Format::CyclictestJson,
            CYCLICTEST_JSON,
            "-i 200",
            "-i 2000000",
            "10 cycles of 2.00 s take 20.0 s, but its start and end are at most 3.30 s apart",
        ),
        (
            Format::SchbenchText,
            SCHBENCH,
            "min=1, max=100",
            "min=1000000000000000000, max=100",
            "its minimum is 1000000000000000000 µs, but samples are at most 2 µs",
        ),
        (
            Format::SchbenchText,
            SCHBENCH,
            "min=6000",
            "min=7016",
            "its minimum is 7016 µs, but samples are at most 7007 µs",
        ),
        (Format::StressNg, STRESS_NG, "28159.34", "9464.34", "the mean"),
        (
            Format::StressNg,
            STRESS_NG,
            "std.dev. 26989.19",
            "std.dev. 80611.19",
            "the standard deviation",
        ),
        (
            Format::StressNg,
            STRESS_NG,
            "15883",
            "25883",
            "p25 is stated as 25.883 µs, but its samples have 10 µs to 19.999 µs",
        ),
        (Format::HdrLog, HLOG, "0.426", "4.260", "its maximum is stated as 4260 thousandths"),
        (Format::HdrPercentiles, HGRM, "9.250", "29.250", "the mean"),
        (Format::HdrPercentiles, HGRM, "12.100", "93.100", "the standard deviation"),
        (
            Format::HdrPercentiles,
            HGRM,
            "12.000 0.750000000000         80",
            "12.000 0.950000000000         80",
            "the line of percentile 0.95 counts 80 samples",
        ),
        (Format::PerfSched, PERF_SCHED, "avg:   0.003", "avg:   4.003", "the mean"),
        // A maximum of which even its own share is more than the mean.
        (
            Format::CyclictestText,
            CYCLICTEST_2_4,
            "00003 00012",
            "00003 90000",
            "thread 1: the mean is stated as 4 µs to 5 µs, but its samples have 18001.6 µs",
        ),
        (
            Format::CyclictestText,
            CYCLICTEST_QUIET,
            "Max:    2504",
            "Max: 900000",
            "thread 0: the mean is stated as 74 µs to 75 µs, but its samples have 3046.843 µs to 897000.157 µs",
        ),
        (
            Format::CyclictestJson,
            CYCLICTEST_JSON,
            "\"max\": 51,",
            "\"max\": 51000,",
            "CPU 0: the mean is stated as 14.244 µs to 14.256 µs, but its samples have 5104.6 µs",
        ),
        (
            Format::JitterdebuggerJson,
            JITTERDEBUGGER,
            "11184",
            "111840",
            "thread 0: the mean is stated as 1286.594 µs to 1286.606 µs, but its samples have 11302.2 µs",
        ),
        (
            Format::Timerlat,
            TIMERLAT,
            "max:          1        40       300 \n",
            "max:          1        40    300000 \n",
            "maximum",
        ),
        (Format::OslatJson, OSLAT_JSON, "\"max\": 1993", "\"max\": 1993000", "the mean is stated"),
        (
            Format::StressNg,
            STRESS_NG,
            "max: 94728",
            "max: 5000000000",
            "the mean is stated as 28.159 µs, but its samples have 500010.946 µs",
        ),
        (Format::StressNg, STRESS_NG, "max: 94728", "max: 1000000000000000000", "the mean"),
        (
            Format::StressNg,
            STRESS_NG,
            "std.dev. 26989.19",
            "std.dev. 8061.19",
            "the standard deviation is stated as 8.061 µs, but its samples have 22.902 µs to 39.846 µs",
        ),
        (
            Format::HdrPercentiles,
            HGRM,
            "128.000 1.000000000000        100\n#[Mean    =        9.250, StdDeviation   =       12.100]\n#[Max     =      128.000",
            "12800.000 1.000000000000        100\n#[Mean    =        9.250, StdDeviation   =       12.100]\n#[Max     =    12800.000",
            "the mean",
        ),
        (Format::PerfSched, PERF_SCHED, "max:   3.077", "max: 9999.077", "the mean"),
    ] {
        assert!(read_as(format, text.as_bytes()).is_ok(), "{format}");
        assert!(text.contains(from), "{format}: {from}");
        let changed = text.replacen(from, to, 1);
        let error =
            read_as(format, changed.as_bytes()).err().unwrap_or_else(|| panic!("{format}: {to}"));
        assert!(error.to_string().contains(why), "{format}: {to}: {error}");
    }
}

#[test]
fn lines_of_threads_are_checked_against_the_histogram() {
    let line = "T: 0 (  1) P:80 I:1000 C:      9 Min:      1 Act:    2 Avg:    1 Max:       3\n";
    let text = format!("{line}{CYCLICTEST_2_4}");
    assert!(read_as(Format::CyclictestText, text.as_bytes()).is_ok());
    for (from, to) in [
        ("C:      9", "C:     10"),
        ("Max:       3", "Max:       4"),
        ("Min:      1", "Min:      0"),
    ] {
        let changed = text.replacen(from, to, 1);
        let error = read_as(Format::CyclictestText, changed.as_bytes()).unwrap_err();
        assert!(error.why.contains("thread 0: the "), "{to}: {error}");
    }
}

/// The unit that a file is read in, by its maximum, and whether it was assumed.
#[track_caller]
fn unit_is(format: Format, text: &str, unit: Option<Unit>, max_ns: u64, assumed: bool) {
    let run = read_in(format, text, unit).unwrap_or_else(|e| panic!("{text}: {e}"));
    let found = run.validity.findings.iter().any(|f| f.code == "unit-assumed");
    assert_eq!((run.summary.max_ns, found), (Some(max_ns), assumed), "{text}");
    assert_eq!(
        run.validity.verdict == Verdict::Degraded,
        assumed || text.contains("T: 0"),
        "{text}"
    );
}

#[test]
fn the_unit_is_what_the_file_tells() {
    use Format::{CyclictestText, CyclictestVerbose};
    let us = CYCLICTEST_2_7;
    unit_is(CyclictestText, us, None, 3_000, true);
    unit_is(CyclictestText, us, Some(Unit::Us), 3_000, false);
    unit_is(CyclictestText, us, Some(Unit::Ns), 3, false);
    for (command, max_ns) in [
        ("# cyclictest -q -h 400\n", 3_000),
        ("# cyclictest -qN -h 400\n", 3),
        ("# /usr/bin/cyclictest --nsecs -h 400\n", 3),
        ("# $ sudo cyclictest -h400 -N\n", 3),
    ] {
        unit_is(CyclictestText, &format!("{command}{us}"), None, max_ns, false);
    }
    // Prose is no command line.
    unit_is(CyclictestText, &format!("# of cyclictest with -N\n{us}"), None, 3_000, true);
    unit_is(CyclictestVerbose, "# cyclictest -v -N\n       0:       0:      74\n", None, 74, false);
    // With -N the columns of a thread's line are wider.
    let line = |act: &str| {
        format!("T: 0 (    1) P:80 I:1000 C:     10 Min:     63 Act:{act} Avg:{act} Max:      76\n")
    };
    unit_is(CyclictestText, &line("   65"), None, 76_000, false);
    unit_is(CyclictestText, &line("      65"), None, 76, false);
    unit_is(CyclictestText, &line(" 65"), None, 76_000, true);
}

#[test]
fn a_unit_that_contradicts_the_file_is_an_error() {
    let named = format!("# cyclictest -N -h 400\n{CYCLICTEST_2_7}");
    for (format, text, unit) in [
        (Format::CyclictestText, named.as_str(), Unit::Us),
        (Format::CyclictestText, CYCLICTEST_QUIET, Unit::Ns),
        (Format::CyclictestJson, CYCLICTEST_JSON, Unit::Ns),
        (Format::JitterdebuggerJson, JITTERDEBUGGER, Unit::Ns),
        (Format::Timerlat, TIMERLAT, Unit::Ns),
        (Format::Osnoise, OSNOISE, Unit::Ms),
        (Format::OslatText, OSLAT_2_4, Unit::Ns),
        (Format::OslatJson, OSLAT_JSON, Unit::Ns),
        (Format::Rteval, RTEVAL, Unit::Ns),
        (Format::SchbenchText, SCHBENCH, Unit::Ms),
        (Format::StressNg, STRESS_NG, Unit::Us),
        (Format::HdrLog, HLOG, Unit::Ns),
        (Format::HdrPercentiles, HGRM, Unit::Ms),
        (Format::PerfSched, PERF_SCHED, Unit::Us),
    ] {
        let error = read_in(format, text, Some(unit)).unwrap_err();
        assert!(error.why.contains("--unit says"), "{format}: {error}");
        assert_eq!(error.remedy, "omit --unit", "{format}");
        assert!(read_in(format, text, None).is_ok(), "{format}");
    }
}

/// rt-tests 2.4 printed these lines for `-i 500` with the distance (`-d`) that each case names.
#[test]
fn lines_of_intervals_are_those_of_the_next_thread() {
    let sample = "       0:       0:      60\n";
    let interval = |text: &str| {
        let run =
            read_in(Format::CyclictestVerbose, &format!("{text}{sample}"), Some(Unit::Us)).unwrap();
        let source = run.source.unwrap();
        let is_unknown = source.unknown.iter().any(|key| key == "plan.interval_ns");
        assert_eq!(is_unknown, run.plan.interval_ns == 0, "{text}");
        let is_of_first = source.approximate.iter().any(|what| what.contains("of the first"));
        (run.plan.interval_ns, is_of_first)
    };
    assert_eq!(interval("Thread 0 Interval: 1000\nThread 1 Interval: 1500\n"), (500_000, true));
    let three = "Thread 0 Interval: 600\nThread 1 Interval: 700\nThread 2 Interval: 800\n";
    assert_eq!(interval(three), (500_000, true));
    assert_eq!(interval("Thread 0 Interval: 500\nThread 1 Interval: 500\n"), (500_000, false));
    // One line does not tell the distance, and some are none of cyclictest's.
    for unknown in ["Thread 0 Interval: 1000\n", "Thread 0 Interval: 9\nThread 1 Interval: 5\n"] {
        assert_eq!(interval(unknown), (0, false));
    }
}

#[test]
fn a_mean_above_the_interval_refuses_an_assumed_unit() {
    let text = "Thread 0 Interval: 1000\n       0:       0:   60000\n       0:       1:   61000\n";
    let error = read_in(Format::CyclictestVerbose, text, None).unwrap_err();
    assert!(error.why.contains("60500.000 µs, above the interval of 1000.000 µs"), "{error}");
    assert!(error.remedy.contains("--unit ns"), "{error:?}");
    for (unit, max_ns) in [(Unit::Ns, 61_000), (Unit::Us, 61_000_000)] {
        let run = read_in(Format::CyclictestVerbose, text, Some(unit)).unwrap();
        assert_eq!(run.summary.max_ns, Some(max_ns), "the user knows");
    }
    // Raw samples have times: by these one comes each ms.
    let mut bytes = raw();
    for record in bytes.chunks_exact_mut(28) {
        let value = u64::from_le_bytes(record[20..28].try_into().unwrap()) * 1_000;
        record[20..28].copy_from_slice(&value.to_le_bytes());
    }
    let error = read_as(Format::JitterdebuggerRaw, &bytes).unwrap_err();
    assert!(error.why.contains("above the interval of 1000.000 µs"), "{error}");
}

#[test]
fn a_results_file_tells_the_unit_of_samples_beside_it() {
    let unit = |text: &str| unit_of_results(&mut text.as_bytes());
    assert_eq!(unit(JITTERDEBUGGER), Some(Unit::Us));
    assert_eq!(unit(&JITTERDEBUGGER.replace("ns\": 1000", "ns\": 1")), Some(Unit::Ns));
    assert_eq!(unit(CYCLICTEST_JSON), None);
    assert_eq!(unit("{"), None);
}

/// What stress-ng prints of 1,000 samples of which its histogram has few.
fn stress_ng() -> String {
    let mut text = String::from(
        "stress-ng: info:  [1] cyclic: sched SCHED_FIFO: 100000 ns delay, 1000 samples\n\
         stress-ng: info:  [1] cyclic:   mean: 9500.00 ns, mode: 3505 ns\n\
         stress-ng: info:  [1] cyclic:   min: 3100 ns, max: 3150000 ns, std.dev. 90000.00\n\
         stress-ng: info:  [1] cyclic: latency percentiles:\n",
    );
    for (percentile, ns) in
        [("25.00", 3_300), ("50.00", 3_505), ("99.00", 40_000), ("99.90", 3_150_000)]
    {
        text += &format!("stress-ng: info:  [1] cyclic:   {percentile}%:      {ns} ns\n");
    }
    text
}

#[test]
fn percentiles_of_stress_ng_are_kept_as_stated() {
    let run = run(Format::StressNg, &stress_ng());
    let d = run.expiries();
    assert_eq!(quantile(&d, "p50"), Some(Quantile::Known(3_505)));
    assert_eq!(quantile(&d, "p99"), Some(Quantile::Known(40_000)));
    // What is not stated lies in one bucket from the minimum to the maximum.
    assert_eq!(quantile(&d, "p90"), Some(Quantile::AtMost(3_150_000)));
    assert_eq!(run.summary.percentiles["p50"], Some(3_505));
    assert_eq!(run.summary.percentiles["p99.9"], None, "1,000 samples do not carry it");
    let text = wakescope_report::text::report(&run, wakescope_report::style::Style::default());
    assert!(text.contains("3.51 µs  40.0 µs"), "{text}");
}

#[test]
fn a_bound_is_shown_as_one_everywhere() {
    let line = "T: 0 (    1) P:80 I:1000 C: 100000 Min:      3 Act:    5 Avg:    5 Max:     976\n";
    let run = run(Format::CyclictestText, line);
    assert_eq!(run.summary.percentiles["p50"], None);
    assert_eq!(run.summary.percentiles_at_most["p99.9"], 976_999);
    let run_set =
        wakescope_report::run_set::RunSet::of(vec![wakescope_report::run_set::Entry::of(
            "a", &run,
        )]);
    let shown = [
        wakescope_report::text::report(&run, wakescope_report::style::Style::default()),
        wakescope_report::markdown::report(&run_set).replace('\\', ""),
        wakescope_report::html::page(&run_set),
    ];
    for text in shown {
        assert_eq!(text.matches("≤ 977 µs").count() % 4, 0, "{text}");
        assert!(text.contains("≤ 977 µs") && !text.contains("% within"), "{text}");
    }
}

#[test]
fn extremes_of_oslat_are_those_of_the_tool() {
    // What each version writes of gaps of 0.5 µs and 35.2 µs, with four rows of 1 µs.
    for (version, rows, min, max, last) in [
        (
            "2.40",
            ["001", "002", "003", "004"],
            1,
            36,
            Bucket { lower: 3_001, upper: 36_001, count: 1 },
        ),
        (
            "2.60",
            ["001", "002", "003", "004"],
            1,
            36,
            Bucket { lower: 2_001, upper: 36_001, count: 1 },
        ),
        (
            "2.80",
            ["001", "002", "003", "004"],
            0,
            35,
            Bucket { lower: 3_000, upper: 36_000, count: 1 },
        ),
    ] {
        // Up to 2.6, what is rounded up to 1 µs is counted in the second row.
        let least = usize::from(version == "2.60");
        let count = |at: usize| u64::from(at == least) * 9 + u64::from(at == 3);
        let mut text = format!("oslat V {version}\n        Core:\t 0\n");
        for (at, row) in rows.iter().enumerate() {
            let mark = if at == 3 { " (including overflows)" } else { "" };
            text += &format!("    {row} (us):\t {}{mark}\n", count(at));
        }
        let mean = if version == "2.60" { 5.4 } else { 4.5 };
        text += &format!(
            "     Minimum:\t {min} (us)\n     Average:\t {mean:.3} (us)\n     Maximum:\t {max} (us)\n     Max-Min:\t {} (us)\n    Duration:\t 1.000 (sec)\n",
            max - min
        );
        let run = run(Format::OslatText, &text);
        assert_eq!(run.summary.max_ns, Some(max * 1_000), "{version}");
        assert_eq!(run.summary.min_ns, Some(min * 1_000), "{version}");
        assert_eq!(run.expiries().histogram.buckets().last(), Some(&last), "{version}");
    }
}

#[test]
fn what_is_no_wakeup_latency_is_not_called_one() {
    for (format, text, head) in [
        (Format::OslatText, OSLAT_2_4, "Largest gap in a busy loop 36.0 µs"),
        (Format::HdrPercentiles, HGRM, "Largest value of unknown kind 128 µs"),
        (Format::PerfSched, PERF_SCHED, "Largest delay on the run queue 3.08 ms"),
        (Format::HdrLog, HLOG, "Largest latency of a request"),
    ] {
        let run = run(format, text);
        let run_set =
            wakescope_report::run_set::RunSet::of(vec![wakescope_report::run_set::Entry::of(
                "a", &run,
            )]);
        let page = wakescope_report::html::page(&run_set);
        let body = page.split("<body>").nth(1).unwrap().split("<script").next().unwrap();
        let shown = [
            wakescope_report::text::report(&run, wakescope_report::style::Style::default()),
            wakescope_report::markdown::report(&run_set),
            body.replace('\u{a0}', " "),
        ];
        for text in shown {
            assert!(text.contains(head), "{format}: {head}: {text}");
            let lower = text.to_lowercase();
            for word in ["wakeup", "lateness", "later than", "how late"] {
                let at = lower.find(word);
                let near = at.map(|at| &lower[at.saturating_sub(80)..(at + 80).min(lower.len())]);
                assert_eq!(near, None, "{format}: {word}");
            }
        }
    }
    assert_eq!(run(Format::HdrPercentiles, HGRM).source.unwrap().quantity, Quantity::Unknown);
}

#[test]
fn a_quantity_survives_a_log_of_hdr_histogram() {
    let run = run(Format::OslatJson, OSLAT_JSON);
    let (mut log, mut table) = (Vec::new(), Vec::new());
    crate::export::hdr::write_log(&run, crate::export::Values::Woken, &mut log).unwrap();
    crate::export::hdr::write_percentiles(&run, crate::export::Values::Woken, &mut table).unwrap();
    for (bytes, format) in [(log, Format::HdrLog), (table, Format::HdrPercentiles)] {
        let again = read_as(format, &bytes).unwrap().remove(0).run;
        assert_eq!(again.source.unwrap().quantity, Quantity::Gap);
    }
}

#[test]
fn figures_of_osnoise_are_of_rows() {
    // Up to Linux 6.1 the mean is 0 whatever the samples are; its maximum is the row's lower end, and the longest
    // gap lies anywhere in that row.
    let text = "\
# RTLA osnoise histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:00
Index   CPU-000   CPU-001
0           300       400
10          200         0
20            8         0
over:         0         0
count:      508       400
min:          0         0
avg:          0         0
max:         20         0
";
    let read = run(Format::Osnoise, text);
    let d = &read.threads[0].woken;
    assert_eq!((d.count, d.min_ns, d.max_range()), (508, Some(0), Some((20_000, 29_999))));
    for (above, want) in
        [(19_999, Outcome::Fail), (25_000, Outcome::Inconclusive), (29_999, Outcome::Pass)]
    {
        let limit = Limit { percentile: None, above: SpanNs(above) };
        let judged = limit.judge(d, &read.validity, MeasuredBy::OtherProgram, true);
        assert_eq!(judged.outcome, want, "{above}: {judged:?}");
    }
    assert_eq!(d.sum_ns, 200 * 10_000 + 8 * 20_000, "each at the lower end of its row");
    let last = d.histogram.buckets().last().copied();
    assert_eq!(last, Some(Bucket { lower: 20_000, upper: 30_000, count: 8 }));
    let source = read.source.unwrap();
    assert!(source.approximate.iter().any(|a| a.starts_with("min_ns: ")), "{source:?}");
    // A mean that is stated must be that of the samples.
    let wrong = text.replace("avg:          0", "avg:         19");
    let error = read_in(Format::Osnoise, &wrong, None).unwrap_err();
    assert!(error.why.contains("CPU 0: the mean is stated as"), "{error}");
    // timerlat's mean is of samples: 0 is a statement.
    let timerlat = text.replace("osnoise", "timerlat").replace("CPU-", "IRQ-");
    assert!(read_in(Format::Timerlat, &timerlat, None).is_err());
}
