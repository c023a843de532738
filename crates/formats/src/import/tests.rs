use std::fmt::Write;

use expect_test::{Expect, expect};
use wakescope_core::budget::{Entry, Exceeded};
use wakescope_core::finding::Severity;
use wakescope_core::plan::Stimulus;
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::*;
use files::*;

mod damaged;
mod files;
mod framed;
mod identity;
mod one_result;
mod truth;

/// Reads as the command does, with the unit where the file must not state it.
pub(super) fn read_as(format: Format, bytes: &[u8]) -> Result<Vec<Imported>, ImportError> {
    let unit = (format == Format::Realfeel).then_some(Unit::Us);
    let about = About { file: "file".into(), unit, ..About::default() };
    let mut from = bytes;
    read(format, &mut from, &about)
}

fn detected(bytes: &[u8]) -> Format {
    match detect(bytes) {
        Head::Known(format) => format,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn import(bytes: &[u8]) -> Vec<Imported> {
    let format = detected(bytes);
    read_as(format, bytes).unwrap_or_else(|e| panic!("{format}: {e}"))
}

/// Everything that matters of runs, in few lines.
fn shown(runs: &[Imported]) -> String {
    let mut out = String::new();
    for Imported { name, run } in runs {
        let source = run.source.as_ref().unwrap();
        let _ = writeln!(
            out,
            "{name}[{} {:?}] {}; {}; started {} for {} ns, interval {} ns, {} {:?}",
            source.tool,
            source.version,
            source.quantity,
            source.omission,
            run.started,
            run.duration_ns,
            run.plan.interval_ns,
            run.plan.policy,
            run.plan.priority,
        );
        for t in &run.threads {
            let d = &t.woken;
            let buckets: Vec<String> = d
                .histogram
                .buckets()
                .iter()
                .map(|b| format!("{}..{}: {}", b.lower, b.upper, b.count))
                .collect();
            let _ = writeln!(
                out,
                "  CPU {:?}: {} from {:?} to {:?}, sum {}; {}",
                t.cpu,
                d.count,
                d.min_ns,
                d.max_ns,
                d.sum_ns,
                buckets.join(", ")
            );
        }
        for f in run.validity.findings.iter().filter(|f| f.code != "imported" && f.code != "coarse")
        {
            let _ = writeln!(out, "  {}: {}", f.code, f.message);
        }
    }
    out
}

#[track_caller]
fn check(text: &str, want: Expect) {
    want.assert_eq(&shown(&import(text.as_bytes())));
}

#[test]
fn every_format_is_known_by_its_begin() {
    for (format, bytes) in all() {
        assert_eq!(detected(&bytes), format);
        // Also with the ends of lines of DOS, where it is text.
        if let Ok(text) = String::from_utf8(bytes) {
            if format != Format::JitterdebuggerRaw {
                let dos = text.replace('\n', "\r\n");
                assert_eq!(detected(dos.as_bytes()), format);
                let runs = read_as(format, dos.as_bytes()).unwrap();
                assert_eq!(runs, read_as(format, text.as_bytes()).unwrap(), "{format}");
            }
        }
    }
}

#[test]
fn what_is_packed_or_no_text_is_named() {
    let utf16: Vec<u8> = CYCLICTEST_2_4.bytes().flat_map(|b| [b, 0]).collect();
    for (bytes, want) in [
        (&b"\x1f\x8b\x08\0"[..], "it is compressed with gzip"),
        (b"\xfd7zXZ\0", "it is compressed with xz"),
        (b"\x28\xb5\x2f\xfd", "it is compressed with zstd"),
        (b"BZh9", "it is compressed with bzip2"),
        (b"\xff\xfe#\0", "its text is UTF-16"),
        (&utf16, "its text is UTF-16 without a mark"),
        (b"\x89HDF\r\n", "it is HDF5, in which jitterdebugger omits the last samples"),
    ] {
        match detect(bytes) {
            Head::Refused(what, remedy) => assert!(what == want && !remedy.is_empty()),
            other => panic!("{want}: {other:?}"),
        }
    }
    for bytes in [&b""[..], &[0; 280], b"hello\n", b"{\"schema\":\"wakescope.run/1\"}", b"{}"] {
        assert_eq!(detect(bytes), Head::Unknown, "{bytes:?}");
    }
    let error = read_as(Format::CyclictestText, b"").unwrap_err();
    assert_eq!(error.to_string(), "it is empty (0 bytes)");
}

#[test]
fn cyclictest_histograms() {
    check(
        CYCLICTEST_2_4,
        expect![[r#"
            [cyclictest None] wakeup latency; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
              CPU None: 9 from Some(1000) to Some(3000), sum 16000; 1000..2000: 3, 2000..3000: 5, 3000..4000: 1
              CPU None: 5 from Some(2000) to Some(12000), sum 20000; 2000..3000: 4, 4000..13000: 1
              unit-assumed: the file does not state the unit, so µs is assumed: cyclictest counts in µs unless it is given -N
              overflow: 1 sample of thread 1 lies beyond the histogram, which ends at 4.00 µs; only bounds are known
        "#]],
    );
    check(
        CYCLICTEST_2_7,
        expect![[r#"
            [cyclictest None] wakeup latency; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
              CPU None: 9 from Some(1000) to Some(3000), sum 16000; 1000..2000: 3, 2000..3000: 5, 3000..4000: 1
              CPU None: 4 from Some(2000) to Some(2000), sum 8000; 2000..3000: 4
              unit-assumed: the file does not state the unit, so µs is assumed: cyclictest counts in µs unless it is given -N
        "#]],
    );
}

#[test]
fn cyclictest_summaries() {
    check(
        CYCLICTEST_QUIET,
        expect![[r#"
        [cyclictest None] wakeup latency; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 0 ns, interval 500000 ns, other Some(80)
          CPU None: 300 from Some(47000) to Some(2504000), sum 22200000; 47000..2505000: 300
          CPU None: 0 from None to None, sum 0; 
          no-samples: thread 1 has no sample
          summary-only: the file has only the number of samples, their mean and their extremes: percentiles are upper bounds
    "#]],
    );
    check(
        CYCLICTEST_LIVE,
        expect![[r#"
        [cyclictest None] wakeup latency; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 0 ns, interval 1000000 ns, fifo Some(80)
          CPU None: 100 from Some(63000) to Some(80000), sum 6500000; 63000..81000: 100
          summary-only: the file has only the number of samples, their mean and their extremes: percentiles are upper bounds
    "#]],
    );
}

#[test]
fn cyclictest_samples() {
    check(
        CYCLICTEST_VERBOSE,
        expect![[r#"
            [cyclictest None] wakeup latency; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 0 ns, interval 500000 ns, other None
              CPU None: 4 from Some(0) to Some(74000), sum 205000; 0..1000: 1, 65000..66000: 1, 66000..67000: 1, 74000..75000: 1
              CPU None: 2 from Some(65000) to Some(1065000), sum 1130000; 65000..66000: 1, 1064000..1066000: 1
              unit-assumed: the file does not state the unit, so µs is assumed: cyclictest counts in µs unless it is given -N
        "#]],
    );
}

#[test]
fn a_histogram_that_lacks_all_samples_ends_where_its_rows_do() {
    let text = CYCLICTEST_2_4
        .replace("\t000004\n", "\t000000\n")
        .replace("000000004", "000000000")
        .replace("00001 00002", "00001 00007")
        .replace("00001 00004", "00001 00009")
        .replace("00000 00001", "00000 00005");
    let said = shown(&import(text.as_bytes()));
    let want = "5 samples of thread 1 lie beyond the histogram, which ends at 4.00 µs";
    assert!(said.contains(want) && said.contains("7000..13000: 5"), "{said}");
}

#[test]
fn cyclictest_json() {
    check(
        CYCLICTEST_JSON,
        expect![[r#"
            [cyclictest Some("2.40")] wakeup latency; expiries missed during a stall are omitted; started 2026-11-21T00:27:12Z for 2000000000 ns, interval 200000 ns, fifo Some(80)
              CPU Some(0): 10 from Some(3000) to Some(51000), sum 142500; 3000..4000: 2, 4000..5000: 5, 10000..52000: 3
              CPU Some(1): 7 from Some(15000) to Some(51000), sum 142030; 15000..52000: 7
              CPU None: 0 from None to None, sum 0; 
              no-samples: thread 2 has no sample
              overflow: 3 samples of thread 0 lie beyond the histogram, which ends at 10.0 µs; only bounds are known
              overflow: 7 samples of thread 1 lie beyond the histogram, which ends at 10.0 µs; only bounds are known
        "#]],
    );
}

/// Start and end are whole seconds.
#[test]
fn cyclictest_json_lasts_for_all_of_its_cycles() {
    for (interval, want_ns, approximate) in [
        ("-i 200", 2_000_000_000, "start and end are given in whole seconds"),
        ("-i 300000", 3_000_000_000, "at least that, by the number of cycles and the interval"),
    ] {
        let text = CYCLICTEST_JSON.replace("-i 200", interval);
        assert!(text.contains(interval), "{text}");
        let run = import(text.as_bytes()).remove(0).run;
        assert_eq!(run.duration_ns, want_ns, "{interval}");
        let approximations = run.source.unwrap().approximate.join("; ");
        assert!(approximations.contains(approximate), "{approximations}");
    }
}

/// HdrHistogram for Python writes the number of samples as it writes the maximum.
#[test]
fn an_hgrm_may_count_its_samples_with_decimals() {
    let with_total = |total: &str| HGRM.replace("Total count    =          100", total);
    let python = with_total("TotalCount     =      100.000");
    assert_ne!(python, HGRM);
    let run = |text: &str| import(text.as_bytes()).remove(0).run;
    assert_eq!(run(&python).threads, run(HGRM).threads);
    for total in ["TotalCount = 100.500", "TotalCount = ", "TotalCount = .0"] {
        let error = read_as(Format::HdrPercentiles, with_total(total).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("no total count"), "{total}: {error}");
    }
}

#[test]
fn jitterdebugger_json_and_raw() {
    check(
        JITTERDEBUGGER,
        expect![[r#"
        [jitterdebugger None] wakeup latency; expiries missed during a stall are counted; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
          CPU None: 10 from Some(22000) to Some(11184000), sum 12866000; 22000..23000: 2, 23000..24000: 6, 1000000..11185000: 2
          CPU None: 2 from Some(22000) to Some(22000), sum 44000; 22000..23000: 2
          overflow: 2 samples of thread 0 lie beyond the histogram, which ends at 1.00 ms; only bounds are known
    "#]],
    );
    let raw = import(&raw());
    let run = &raw[0].run;
    assert_eq!(run.threads.iter().map(|t| t.woken.count).collect::<Vec<_>>(), [50, 50]);
    assert_eq!(run.threads[1].woken.max_ns, Some(1_500_000));
    // It stores when a thread woke; that was due so much earlier.
    assert_eq!(run.threads[1].woken.max_at_ns, Some(49_000_000 - 1_500_000 + 20_000));
    assert_eq!(run.threads[1].maxima.as_ref().unwrap().largest(), Some(1_500_000));
    assert_eq!(run.source.as_ref().unwrap().omission, Omission::Counted);
}

#[test]
fn rtla_histograms() {
    check(
        TIMERLAT,
        expect![[r#"
            irq[rtla timerlat None] interrupt latency; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 65000000000 ns, interval 0 ns, other None
              CPU Some(0): 12 from Some(0) to Some(1000), sum 0; 0..1000: 10, 1000..2000: 2
              CPU Some(2): 8 from Some(0) to Some(0), sum 0; 0..1000: 8
            thread[rtla timerlat None] latency of a kernel thread; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 65000000000 ns, interval 0 ns, other None
              CPU Some(0): 12 from Some(1000) to Some(40000), sum 84000; 1000..2000: 4, 7000..8000: 7, 8000..41000: 1
              CPU Some(2): 8 from Some(7000) to Some(7000), sum 56000; 7000..8000: 8
              overflow: 1 sample of CPU 0 lies beyond the histogram, which ends at 8.00 µs; only bounds are known
            user[rtla timerlat None] latency of a user thread; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 65000000000 ns, interval 0 ns, other None
              CPU Some(0): 12 from Some(7000) to Some(300000), sum 600000; 7000..8000: 10, 8000..301000: 2
              CPU Some(2): 8 from Some(7000) to Some(200000), sum 320000; 7000..8000: 5, 8000..201000: 3
              overflow: 2 samples of CPU 0 lie beyond the histogram, which ends at 8.00 µs; only bounds are known
              overflow: 3 samples of CPU 2 lie beyond the histogram, which ends at 8.00 µs; only bounds are known
        "#]],
    );
    check(
        OSNOISE,
        expect![[r#"
            [rtla osnoise None] gap in a busy loop; there are no periodic expiries; started 1970-01-01T00:00:00Z for 10000000000 ns, interval 0 ns, other None
              CPU Some(0): 9005 from Some(0) to Some(900000), sum 900500; 0..5000: 9000, 5000..10000: 3, 10000..905000: 2
              CPU Some(1): 9102 from Some(0) to Some(14999), sum 91020; 0..5000: 9100, 10000..15000: 2
              lost-samples: rtla says: 12 (0.50%) events missed, results might not be accurate
              overflow: 1 sample of CPU 0 lies beyond the histogram, which ends at 10.0 µs; only bounds are known
        "#]],
    );
    // Several CPUs or not: what is told apart is what was measured.
    let names: Vec<String> = import(TIMERLAT.as_bytes()).into_iter().map(|i| i.name).collect();
    assert_eq!(names, ["irq", "thread", "user"]);
}

#[test]
fn oslat_rows_are_named_by_their_ends() {
    check(
        OSLAT_2_4,
        expect![[r#"
            [oslat Some("2.40")] gap in a busy loop; there are no periodic expiries; started 1970-01-01T00:00:00Z for 1022000000 ns, interval 0 ns, other None
              CPU Some(0): 13 from Some(1000) to Some(36000), sum 52000; 1..1001: 10, 2001..3001: 2, 3001..36001: 1
              CPU Some(3): 20 from Some(1000) to Some(1000), sum 20000; 1..1001: 20
              overflow: up to 1 sample of CPU 0 lies beyond the histogram, which ends at 3.00 µs; only bounds are known
        "#]],
    );
    check(
        OSLAT_JSON,
        expect![[r#"
            [oslat Some("2.80")] gap in a busy loop; there are no periodic expiries; started 2026-11-21T13:19:24Z for 2002000000 ns, interval 0 ns, fifo Some(5)
              CPU Some(0): 9116 from Some(0) to Some(1993000), sum 11264997; 0..1000: 9000, 1000..2000: 108, 7000..1994000: 8
              overflow: up to 8 samples of CPU 0 lie beyond the histogram, which ends at 7.00 µs; only bounds are known
        "#]],
    );
    // Until 2.6 it rounded up before it counted.
    let rounded = OSLAT_JSON.replace("2.80", "2.50").replace("\"min\": 0", "\"min\": 1");
    assert!(read_as(Format::OslatJson, rounded.as_bytes()).is_err(), "its minimum is in no row");
    let rounded = rounded.replace("\"2\": 108", "\"3\": 108").replace("\"1\": 9000", "\"2\": 9000");
    let run = import(rounded.as_bytes()).remove(0).run;
    let first = run.threads[0].woken.histogram.buckets()[0];
    assert_eq!((first.lower, first.upper), (1, 1_001));
}

#[test]
fn rteval_summaries() {
    check(
        RTEVAL,
        expect![[r#"
        [rteval Some("3.7")] wakeup latency; expiries missed during a stall are omitted; started 2026-11-21T00:27:12Z for 62000000000 ns, interval 100000 ns, fifo Some(95)
          CPU Some(0): 5 from Some(3000) to Some(4000), sum 17000; 3000..4000: 3, 4000..5000: 2
          CPU Some(1): 4 from Some(3000) to Some(6000), sum 16000; 3000..4000: 2, 4000..5000: 1, 6000..7000: 1
    "#]],
    );
}

#[test]
fn schbench_text() {
    check(
        SCHBENCH,
        expect![[r#"
            wakeup[schbench None] wakeup latency; there are no periodic expiries; started 1970-01-01T00:00:00Z for 3000000000 ns, interval 0 ns, other None
              CPU None: 100 from Some(1000) to Some(100000), sum 850000; 1000..3000: 21, 3000..8000: 30, 8000..41000: 40, 41000..91000: 8, 91000..101000: 1
            request[schbench None] latency of a request; there are no periodic expiries; started 1970-01-01T00:00:00Z for 3000000000 ns, interval 0 ns, other None
              CPU None: 10 from Some(6000000) to Some(9500000), sum 66048000; 6000000..7008000: 5, 7008000..8016000: 4, 8016000..9501000: 1
        "#]],
    );
    let json =
        br#"{"normal": {"version": "6.1"}, "int": {"time": 1, "wakeup_latency_pct50.0": 7}}"#;
    let error = read_as(detected(json), json).unwrap_err();
    assert!(error.why.contains("no number of samples"), "{error}");
}

#[test]
fn stress_ng_text() {
    check(
        STRESS_NG,
        expect![[r#"
        [stress-ng None] wakeup latency; a stall delays all later expiries; started 1970-01-01T00:00:00Z for 0 ns, interval 100000 ns, deadline None
          CPU None: 10 from Some(9464) to Some(94728), sum 281593; 0..10000: 1, 10000..20000: 7, 30000..94729: 2
          lost-samples: only the first samples were kept; stress-ng says: Note: --cyclic-samples needed to be 16 to capture all the data for this run
          overflow: 2 samples of stress-ng lie beyond the histogram, which ends at 30.0 µs; only bounds are known
    "#]],
    );
    let without: String = STRESS_NG
        .lines()
        .filter(|l| !l.contains("distribution"))
        .fold(String::new(), |all, l| all + l + "\n");
    let run = import(without.as_bytes()).remove(0).run;
    assert!(run.validity.findings.iter().any(|f| f.code == "summary-only"));
    assert_eq!(run.summary.count, 10);
}

#[test]
fn realfeel_histograms() {
    check(
        REALFEEL,
        expect![[r#"
        [realfeel None] deviation of the interval; a stall delays all later expiries; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
          CPU None: 816 from Some(0) to Some(45200), sum 128200; 0..100: 12, 100..200: 800, 1000..1100: 3, 45200..45300: 1
    "#]],
    );
    let about = About { file: String::new(), unit: None, ..About::default() };
    let error = read(Format::Realfeel, &mut REALFEEL.as_bytes(), &about).unwrap_err();
    assert!(error.remedy.contains("--unit us"), "{error:?}");
}

#[test]
fn hdr_histograms() {
    check(
        HLOG,
        expect![[r#"
        A[HdrHistogram None] latency of a request; treatment of expiries missed during a stall unknown; started 1970-01-01T00:00:00Z for 2002000000 ns, interval 0 ns, other None
          CPU None: 1498 from Some(0) to Some(425983000), sum 438714368000; 0..16384000: 18, 16384000..32768000: 14, 32768000..49152000: 15, 49152000..65536000: 17, 65536000..81920000: 14, 81920000..98304000: 23, 98304000..114688000: 31, 114688000..131072000: 29, 131072000..147456000: 28, 147456000..163840000: 16, 163840000..180224000: 22, 180224000..196608000: 14, 196608000..212992000: 13, 212992000..229376000: 20, 229376000..245760000: 14, 245760000..262144000: 22, 262144000..278528000: 69, 278528000..294912000: 101, 294912000..311296000: 43, 311296000..327680000: 41, 327680000..344064000: 243, 344064000..360448000: 72, 360448000..376832000: 565, 376832000..393216000: 37, 393216000..409600000: 14, 409600000..425984000: 3
        B[HdrHistogram None] latency of a request; treatment of expiries missed during a stall unknown; started 1970-01-01T00:00:00Z for 1007000000 ns, interval 0 ns, other None
          CPU None: 741 from Some(0) to Some(2768895000), sum 217710592000; 0..16384000: 12, 16384000..32768000: 9, 32768000..49152000: 9, 49152000..65536000: 5, 65536000..81920000: 8, 81920000..98304000: 11, 98304000..114688000: 14, 114688000..131072000: 11, 131072000..147456000: 4, 147456000..163840000: 5, 163840000..180224000: 8, 180224000..196608000: 13, 196608000..212992000: 9, 212992000..229376000: 9, 229376000..245760000: 6, 245760000..262144000: 33, 262144000..278528000: 37, 278528000..294912000: 46, 294912000..311296000: 23, 311296000..327680000: 39, 327680000..344064000: 139, 344064000..360448000: 86, 360448000..376832000: 173, 376832000..393216000: 22, 393216000..409600000: 8, 1753088000..1769472000: 1, 2752512000..2768896000: 1
    "#]],
    );
    check(
        HGRM,
        expect![[r#"
            [HdrHistogram None] value of unknown kind; treatment of expiries missed during a stall unknown; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
              CPU None: 100 from Some(7000) to Some(128000), sum 925000; 0..7001: 1, 7001..8001: 54, 8001..12001: 25, 12001..99001: 19, 99001..128001: 1
        "#]],
    );
    for (text, format) in [(HLOG, Format::HdrLog), (HGRM, Format::HdrPercentiles)] {
        let silent = text.replace("#[Unit: us]\n", "");
        let error = read_as(format, silent.as_bytes()).unwrap_err();
        assert!(error.remedy.contains("--unit"), "{error:?}");
    }
}

#[test]
fn perf_sched_tables() {
    check(
        PERF_SCHED,
        expect![[r#"
        [perf sched None] delay on the run queue; there are no periodic expiries; started 1970-01-01T00:00:00Z for 0 ns, interval 0 ns, other None
          CPU None: 108698 from Some(0) to Some(3077000), sum 326094000; 0..3078000: 108698
          CPU None: 1 from Some(0) to Some(10000), sum 10000; 0..11000: 1
          summary-only: the file has only the number of samples, their mean and their extremes: percentiles are upper bounds
    "#]],
    );
}

/// perf 6.1 wrote this line below its table.
#[test]
fn what_perf_says_of_its_own_losses_is_not_lost() {
    let text = format!("{PERF_SCHED}  INFO: 1350.000% context switch bugs (108 out of 8)\n");
    let run = &import(text.as_bytes())[0].run;
    let lost = run.validity.findings.iter().find(|f| f.code == "lost-samples").unwrap();
    assert!(lost.message.contains("context switch bugs (108 out of 8)"), "{}", lost.message);
    assert_eq!(lost.severity, Severity::Warning);
}

#[test]
fn percentiles_that_stress_ng_states_are_no_upper_bounds() {
    let (before, _) =
        STRESS_NG.split_once("stress-ng: info:  [25582] cyclic: latency dist").unwrap();
    let message = |text: &str| {
        let run = import(text.as_bytes()).remove(0).run;
        run.validity.findings.into_iter().find(|f| f.code == "summary-only").unwrap().message
    };
    assert!(message(before).contains("other percentiles are upper bounds"));
    let without: String =
        before.lines().filter(|line| !line.contains("%:")).map(|l| format!("{l}\n")).collect();
    assert!(message(&without).ends_with("extremes: percentiles are upper bounds"));
}

#[test]
fn an_error_of_stress_ng_names_the_place_in_the_file() {
    let text = STRESS_NG.replace("94728", "94x28");
    let (number, line) = (1..).zip(text.lines()).find(|(_, line)| line.contains("94x28")).unwrap();
    let column = line.find("94x28").unwrap() as u64 + 1;
    let error = read_as(Format::StressNg, text.as_bytes()).unwrap_err();
    assert_eq!((error.line, error.column), (Some(number), Some(column)), "{error}");
}

/// stress-ng 0.15 with `--cyclic 2`: the kernel refused the policy to both.
#[test]
fn a_run_of_stress_ng_without_a_result_is_not_called_truncated() {
    let text = "stress-ng: info:  [3253] dispatching hogs: 2 cyclic\n\
        stress-ng: info:  [3254] cyclic: for best results, run just 1 instance of this stressor\n\
        stress-ng: info:  [3254] cyclic: SCHED_DEADLINE: no latency information available\n";
    let error = read_as(detected(text.as_bytes()), text.as_bytes()).unwrap_err();
    assert!(error.why.contains("SCHED_DEADLINE: no latency information available"), "{error}");
    assert!(error.remedy.contains("--cyclic 1"), "{}", error.remedy);
}

#[test]
fn cyclictest_samples_with_lines_of_threads() {
    check(
        CYCLICTEST_VERBOSE_QUIET,
        expect![[r#"
        [cyclictest None] wakeup latency; expiries missed during a stall are omitted; started 1970-01-01T00:00:00Z for 0 ns, interval 3000000 ns, other Some(80)
          CPU Some(0): 6 from Some(19000) to Some(38000), sum 198000; 19000..20000: 1, 32000..33000: 1, 35000..36000: 1, 37000..38000: 2, 38000..39000: 1
          CPU Some(1): 5 from Some(20000) to Some(41000), sum 130000; 20000..21000: 1, 22000..23000: 1, 23000..24000: 1, 24000..25000: 1, 41000..42000: 1
          lost-samples: cyclictest did not print 1 sample of thread 1; the extremes are of all
    "#]],
    );
}

/// Its only sample is the maximum and the minimum.
#[test]
fn a_thread_of_one_cycle_may_have_no_line_of_its_sample() {
    let text = "       0:       0:      19\n       0:       1:      21\n\
                T: 0 (27451) P:80 I:1000 C:      2 Min:     19 Act:   21 Avg:   20 Max:      21\n\
                T: 1 (27452) P:80 I:1000 C:      1 Min:      7 Act:    7 Avg:    7 Max:       7\n";
    let run = import(text.as_bytes()).remove(0).run;
    let of = |at: usize| (run.threads[at].woken.count, run.threads[at].woken.max_ns);
    assert_eq!((of(0), of(1)), ((2, Some(21_000)), (1, Some(7_000))));
    for min in ["     6", "     8"] {
        let text = text.replace("Min:      7", &format!("Min: {min}"));
        let error = read_as(Format::CyclictestVerbose, text.as_bytes()).unwrap_err();
        assert!(error.why.contains("contradicts its samples: the minimum is"), "{error}");
    }
}

#[test]
fn a_histogram_behind_samples_is_refused_with_a_remedy() {
    let text = format!("{CYCLICTEST_VERBOSE}# Histogram\n000065 000002\n");
    let error = read_as(Format::CyclictestVerbose, text.as_bytes()).unwrap_err();
    assert!(error.why.contains("a histogram of the same samples begins"), "{error}");
    assert!(error.remedy.contains("--from cyclictest"), "{}", error.remedy);
}

/// What jitterdebugger 0.3.1 prints resembles cyclictest's lines.
#[test]
fn what_jitterdebugger_prints_is_refused_with_a_remedy() {
    let text = "T: 0 (30960) A: 0 C:      1944 Min:         9 Avg:   31.76 Max:      2533 \n";
    let error = read_as(detected(text.as_bytes()), text.as_bytes()).unwrap_err();
    assert!(error.why.contains("a line of jitterdebugger's"), "{error}");
    assert!(error.remedy.contains("results.json"), "{}", error.remedy);
}

/// What programs of rt-tests 2.4 printed here. Their values are no wakeup latencies as those of
/// cyclictest are, and their files look alike.
#[test]
fn other_programs_of_rt_tests_are_refused_with_a_remedy() {
    const PMQTEST: &str = "\
#0: ID7611, P80, CPU0, I1000; #1: ID7612, P80, CPU0, TO 0, Cycles 500
#2: ID7613, P80, CPU1, I1500; #3: ID7614, P80, CPU1, TO 0, Cycles 359
#1 -> #0, Min    3, Cur    4, Avg    4, Max   30
#3 -> #2, Min    3, Cur    5, Avg    5, Max   34
";
    const PTSEMATEST: &str = "\
#0: ID7605, P80, CPU0, I1000; #1: ID7606, P80, CPU0, Cycles 500
#1 -> #0, Min    2, Cur   47, Avg    3, Max   47
";
    const SIGNALTEST: &str = "\
T: 0 ( 7554) P:80 C:   1000 Min:     24 Act:   34 Avg:   36 Max:     159
T: 1 ( 7555) P:80 C:   1000 Min:     21 Act:   33 Avg:  669 Max:   10198
";
    const CYCLICDEADLINE: &str = "\
T: 0 (21404) I:10000 C:    101 Min:      2 Act:   44 Avg:   24 Max:     233
";
    let refusal = |text: &str| match detect(text.as_bytes()) {
        Head::Refused(why, remedy) => (why.to_owned(), remedy.to_owned()),
        Head::Known(format) => {
            let error = read_as(format, text.as_bytes()).unwrap_err();
            (error.why, error.remedy)
        }
        Head::Unknown => panic!("{text}"),
    };
    let json = |command: &str| CYCLICTEST_JSON.replace("\"cyclictest ", &format!("\"{command} "));
    for (program, remedy, texts) in [
        ("pmqtest", "mqueue", [PMQTEST.to_owned(), json("pmqtest")]),
        ("ptsematest", "semaphore", [PTSEMATEST.to_owned(), json("/usr/bin/ptsematest")]),
        ("signaltest", "kill", [SIGNALTEST.to_owned(), json("signaltest")]),
        ("cyclicdeadline", "deadline", [CYCLICDEADLINE.to_owned(), json("cyclicdeadline")]),
    ] {
        for text in &texts {
            let (why, found) = refusal(text);
            assert!(why.contains(program), "{why}: {text}");
            assert!(found.contains("--stimulus ") && found.contains(remedy), "{found}: {text}");
        }
        // Naming the format of a file does not make it one.
        let error = read_as(Format::CyclictestJson, texts[1].as_bytes()).unwrap_err();
        assert!(error.why.contains(program), "{error}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    #[track_caller]
    fn refuses(text: &str, from: &str, to: &str, why: &str) {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        let error = read_as(detected(text.as_bytes()), changed.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(why), "{from} → {to}: {error}");
    }
    let ct = CYCLICTEST_2_4;
    refuses(ct, "000002 000005", "000002 000006", "the rows add up to 10, but `# Total:` is 9");
    refuses(ct, "000002 ", "000001 ", "line 5, column 1: `000001` is not above the row before it");
    refuses(ct, "000005\t000004", "000005", "line 5, column 1: not a row and 2 counts");
    refuses(ct, "# Max Latencies: 00003 00012\n", "", "the file ends before `# Max Latencies:`");
    refuses(ct, "00003 00012", "00003 00002", "1 sample lies beyond row 3, but the maximum is 2");
    refuses(ct, "000005", "00000x", "line 5, column 8: `00000x` is not a whole number below 2^64");
    refuses(
        ct,
        "# Total",
        "hello\n# Total",
        "line 7, column 1: this is not a line of cyclictest's",
    );
    let new = CYCLICTEST_2_7;
    refuses(new, "000003 000001\t000000\t000001\n", "", "the highest row with samples is 2");
    refuses(new, "000002 000005\t000004\t000009\n", "", "thread 1: there is no sample in its rows");
    refuses(
        new,
        "000001\t000000\t000001",
        "000009\t000000\t000009",
        "thread 0: the mean is stated as 1 µs to 2 µs, but its samples have 2.353 µs",
    );
    refuses(new, "000009", "000008", "the last column of row 2 is not the sum of the others");
    refuses(
        CYCLICTEST_VERBOSE,
        "0:       1:      66\n",
        "0:       2:      66\n",
        "line 7, column 1: thread 0 is at cycle 2, after 1 sample",
    );
    let quiet = CYCLICTEST_VERBOSE_QUIET;
    let contradicts = "its line contradicts its samples";
    refuses(quiet, "C:      6 Min:     19", "C:      5 Min:     19", contradicts);
    refuses(
        quiet,
        "Max:      38",
        "Max:      39",
        "thread 0: its line contradicts its samples: the maximum is 39",
    );
    refuses(
        quiet,
        "Max:      41",
        "Max:      23",
        "thread 1: its line contradicts its samples: the maximum is 23",
    );
    refuses(
        quiet,
        "Min:     20",
        "Min:     21",
        "thread 1: its line contradicts its samples: the minimum is 21",
    );
    refuses(quiet, "Avg:   33", "Avg:   35", "CPU 0: the mean is stated as");
    refuses(quiet, "T: 1", "T: 0", "a second result begins");
    refuses(CYCLICTEST_JSON, "\"cycles\": 10", "\"cycles\": 6", "holds 7 samples, of 6 cycles");
    refuses(CYCLICTEST_JSON, "\"4\": 5", "\"3\": 5", "a duplicate key");
    refuses(CYCLICTEST_JSON, "\"max\": 51", "\"max\": 9", "none is beyond its end 10");
    refuses(JITTERDEBUGGER, "\"count\": 10", "\"count\": 7", "holds 8 samples, of 7");
    refuses(JITTERDEBUGGER, "\"min\": 22", "\"min\": 21", "is not its lowest row");
    refuses(
        TIMERLAT,
        "count:       12",
        "count:       13",
        "CPU 0: rows and `over:` add up to 12, but `count:` is 13",
    );
    refuses(TIMERLAT, "IRQ-002", "IRQ-000", "a column comes twice");
    refuses(OSLAT_2_4, "V 2.40", "V x", "the version of oslat");
    refuses(OSLAT_2_4, " 10 20", " 10 20 30", "more than one count for each of 2 CPUs");
    refuses(OSLAT_JSON, "-D 1", "-D 1 -B", "a bias was subtracted");
    refuses(
        RTEVAL,
        "<samples>5</samples>",
        "<samples>6</samples>",
        "core 0: its buckets hold 5 samples, but <samples> is 6",
    );
    refuses(RTEVAL, "value=\"5\"", "value=\"6\"", "<system>: its buckets hold 10");
    refuses(RTEVAL, "<cyclictest command_line", "<timerlat command_line", "not well-formed");
    refuses(
        RTEVAL,
        "<rteval",
        "<!DOCTYPE x [<!ENTITY a \"b\">]><rteval",
        "declares a document type",
    );
    refuses(SCHBENCH, "(40 samples)", "(400 samples)", "hold");
    refuses(STRESS_NG, "10000          7", "10000          9", "");
    refuses(STRESS_NG, "max: 94728", "max: 29728", "none is beyond them");
    refuses(HLOG, "HISTFAAAAD942p", "HISTFAAAAD942q", "line 5");
    refuses(
        HGRM,
        "Total count    =          100",
        "Total count    =          101",
        "counts 100 samples",
    );
    refuses(PERF_SCHED, "108699", "108698", "its tasks have 108699 delays");
}

#[test]
fn rteval_does_not_mix_what_timerlat_tells_apart() {
    let mixed = RTEVAL.replace("cyclictest", "timerlat");
    let error = read_as(Format::Rteval, mixed.as_bytes()).unwrap_err();
    assert!(error.why.contains("timerlat") && error.remedy.contains("rtla"), "{error:?}");
}

#[test]
fn a_file_of_rteval_above_a_limit_is_not_called_truncated() {
    let about = || About { file: "summary.xml".into(), ..About::default() };
    let read = |largest| rteval::read_up_to(largest as u64, &mut RTEVAL.as_bytes(), &about());
    assert!(read(RTEVAL.len()).is_ok());
    for largest in [40, RTEVAL.len() / 2, RTEVAL.len() - 1] {
        assert_eq!(read(largest).unwrap_err(), json::too_large(), "{largest}");
    }
    let about = about();
    about.budget.keep(499_999, Entry::BUCKET).unwrap();
    let error = rteval::read_up_to(1 << 20, &mut RTEVAL.as_bytes(), &about).unwrap_err();
    assert!(error.line.is_some() && error.why.contains("histogram buckets"), "{error}");
    assert_eq!(error.remedy, Exceeded::REMEDY);
}

#[test]
fn cut_files_are_refused_wherever_they_end() {
    for (format, bytes) in all() {
        // What a file without an end of its own loses cannot be seen at the ends of its lines.
        let open = matches!(
            format,
            Format::CyclictestVerbose
                | Format::JitterdebuggerRaw
                | Format::Realfeel
                | Format::HdrLog
        );
        let tables = matches!(format, Format::SchbenchText | Format::StressNg);
        let summary =
            !bytes.windows(11).any(|w| w == b"# Histogram") && format == Format::CyclictestText;
        for end in 1..bytes.len() {
            let whole_lines = bytes[end - 1] == b'\n';
            if (open || tables || summary) && (whole_lines || format == Format::JitterdebuggerRaw) {
                continue;
            }
            // What follows the results may be missing.
            if let Ok(runs) = read_as(format, &bytes[..end]) {
                let whole = read_as(format, &bytes).unwrap();
                let same = runs.iter().zip(&whole).all(|(a, b)| a.run.threads == b.run.threads);
                assert!(same && runs.len() == whole.len(), "{format} cut at {end}");
            }
        }
    }
}

#[test]
fn the_same_results_have_the_same_name() {
    let id = |file: &str| -> String {
        let about = About { file: file.into(), unit: None, ..About::default() };
        let runs = read(Format::CyclictestText, &mut CYCLICTEST_2_4.as_bytes(), &about).unwrap();
        runs[0].run.id.clone()
    };
    assert_eq!(id("a"), id("b"));
    let other = import(CYCLICTEST_2_7.as_bytes()).remove(0).run;
    assert_ne!(other.id, id("a"));
}

#[test]
fn what_is_not_told_is_unknown() {
    let run: Run = import(CYCLICTEST_2_4.as_bytes()).remove(0).run;
    let unknown = run.source.unwrap().unknown;
    for key in
        ["started", "duration_ns", "host", "plan.interval_ns", "plan.policy", "threads.missed"]
    {
        assert!(unknown.iter().any(|u| u == key), "{key}: {unknown:?}");
    }
    assert_eq!(run.summary.not_excluded_every_ns, None);
    let run: Run = import(CYCLICTEST_JSON.as_bytes()).remove(0).run;
    let source = run.source.unwrap();
    assert!(!source.unknown.iter().any(|u| u == "plan.interval_ns" || u == "started"));
    assert_eq!(source.quantity, Quantity::WakeupLatency);
    assert_eq!(run.host.release, "6.12.95-rt");
}

/// Values near 2^64 thousandths of µs would wrap around.
#[test]
fn times_of_oslat_that_are_too_large_are_refused() {
    for (format, text, from, to) in [
        (Format::OslatText, OSLAT_2_4, "Maximum:\t 36", "Maximum:\t 18446744073709551.615"),
        (Format::OslatText, OSLAT_2_4, "    001 (us)", "    18446744073709551.615 (us)"),
        (Format::OslatJson, OSLAT_JSON, "\"max\": 1993", "\"max\": 18446744073709551"),
        (Format::OslatJson, OSLAT_JSON, "\"8\":", "\"18446744073709551\":"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = read_as(format, text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(error.why.contains("too large for a time"), "{to}: {error}");
    }
}

/// oslat and osnoise measure in a loop that never sleeps.
#[test]
fn gaps_are_of_a_busy_loop() {
    for (text, gap_from_ns) in [(OSLAT_2_4, Some(0)), (OSLAT_JSON, Some(0)), (OSNOISE, None)] {
        let run = import(text.as_bytes()).remove(0).run;
        assert_eq!((run.plan.stimulus, run.plan.gap_from_ns), (Stimulus::Spin, gap_from_ns));
        let lacks = |key: &str| !run.knows(key);
        assert_eq!(lacks("plan.gap_from_ns"), gap_from_ns.is_none(), "{text}");
        assert!(!lacks("plan.stimulus") && !lacks("plan.interval_ns"), "{text}");
    }
    let timer = import(CYCLICTEST_2_4.as_bytes()).remove(0).run;
    assert_eq!((timer.plan.stimulus, timer.knows("plan.gap_from_ns")), (Stimulus::Timer, true));
}
