//! What is imported, exported and imported again has the same figures, in every format that is both
//! read and written. The seed of a failure is printed and kept.

use std::fmt::Write;

use hdrhistogram::Histogram as HdrHistogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use proptest::prelude::*;
use wakescope_core::distribution::Distribution;
use wakescope_core::run::{Overflow, Thread, TimeDomain};

use super::*;
use crate::export::cyclictest::Layout;
use crate::export::tests::written;
use crate::export::{Values, cyclictest, cyclictest_json, hdr, prometheus};
use crate::made_up::run_of;

/// What may not change on the way. What one of the formats has no room for is in none of them.
#[derive(Debug, PartialEq)]
struct Figures {
    threads: Vec<Thread>,
    time_domain: TimeDomain,
    quantity: Quantity,
    unknown_quantity: bool,
    resolution_ns: Option<u64>,
}

fn figures(run: &Run) -> Figures {
    let source = run.source.as_ref().unwrap();
    Figures {
        threads: run.threads.clone(),
        time_domain: run.time_domain,
        quantity: source.quantity,
        unknown_quantity: source.unknown.iter().any(|key| key == "source.quantity"),
        resolution_ns: source.resolution_ns,
    }
}

/// The only run in a file.
fn only_run(format: Format, text: &str, unit: Option<Unit>) -> Run {
    let about = About { file: "file".into(), unit, ..About::default() };
    let mut runs = read(format, &mut text.as_bytes(), &about)
        .unwrap_or_else(|e| panic!("{format}: {e}\n{text}"));
    assert_eq!(runs.len(), 1, "{text}");
    runs.remove(0).run
}

fn exported(format: Format, run: &Run, layout: Layout) -> String {
    let values = Values::Woken;
    written(|out| match format {
        Format::CyclictestText => cyclictest::write(run, values, layout, None, out),
        Format::CyclictestJson => cyclictest_json::write(run, values, None, out),
        Format::HdrLog => hdr::write_log(run, values, out),
        _ => hdr::write_percentiles(run, values, out),
    })
}

/// Exports a run and imports that, which must be the same.
#[track_caller]
fn check(format: Format, run: &Run, layout: Layout) -> Run {
    let text = exported(format, run, layout);
    let again = only_run(format, &text, None);
    assert_eq!(figures(&again), figures(run), "{format} {layout:?}\n{text}");
    // What the run tells besides is not lost where the format has room for it.
    if matches!(format, Format::CyclictestJson | Format::HdrLog) {
        assert_eq!(
            (&again.started, again.duration_ns, known(&again, "started")),
            (&run.started, run.duration_ns, known(run, "started")),
            "{text}"
        );
    }
    if format == Format::CyclictestJson {
        let plan = |run: &Run| (run.plan.interval_ns, run.plan.policy, run.plan.priority);
        assert_eq!(plan(&again), plan(run), "{text}");
        assert_eq!(again.host.release, run.host.release);
    }
    assert_eq!(exported(format, &again, layout), text);
    again
}

fn known(run: &Run, key: &str) -> bool {
    !run.source.as_ref().unwrap().unknown.iter().any(|other| other == key)
}

/// Samples of a thread in whole units, many small ones and few large.
fn samples() -> impl Strategy<Value = Vec<u64>> {
    let value = (0_u32..20, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1));
    prop::collection::vec(value, 0..60)
}

fn stated(values: &[u64]) -> (u64, u64, u64) {
    let sum: u64 = values.iter().sum();
    let mean = sum.checked_div(values.len() as u64).unwrap_or(0);
    let min = values.iter().min().copied().unwrap_or(1_000_000);
    (min, mean, values.iter().max().copied().unwrap_or(0))
}

/// cyclictest's text with `-h rows`, as before and since rt-tests 2.7.
fn cyclictest_text(threads: &[Vec<u64>], rows: u64, sparse: bool) -> String {
    let mut text = String::from("# /dev/cpu_dma_latency set to 0us\n# Histogram\n");
    let count = |values: &[u64], row: u64| values.iter().filter(|&&v| v == row).count();
    for row in 0..rows {
        let counts: Vec<usize> = threads.iter().map(|t| count(t, row)).collect();
        if sparse && counts.iter().all(|&c| c == 0) {
            continue;
        }
        let cells: Vec<String> = counts.iter().map(|c| format!("{c:06}")).collect();
        let _ = writeln!(text, "{row:06} {}", cells.join("\t"));
    }
    let mut line = |name: &str, of: &dyn Fn(&[u64]) -> u64| {
        let cells: Vec<String> = threads.iter().map(|t| format!("{:05}", of(t))).collect();
        let _ = writeln!(text, "# {name}: {}", cells.join(" "));
    };
    let within = |t: &[u64]| t.iter().filter(|&&v| v < rows).count() as u64;
    if !sparse {
        line("Total", &within);
    }
    line("Min Latencies", &|t| stated(t).0);
    line("Avg Latencies", &|t| stated(t).1);
    line("Max Latencies", &|t| stated(t).2);
    line("Histogram Overflows", &|t| t.len() as u64 - within(t));
    text + "# Histogram Overflow at cycle number:\n# Thread 0: 00001\n\n"
}

/// cyclictest's `--json`, maybe with a histogram of so many rows.
fn cyclictest_json_of(threads: &[Vec<u64>], rows: Option<u64>, resolution_ns: u64) -> String {
    let option = rows.map_or(String::new(), |rows| format!(" -h {rows}"));
    let mut text = format!(
        "{{ \"cmdline:\": \"cyclictest -t{0} -p80 -i 200{option}\", \"rt_test_version:\": \"2.80\",\n\
         \"start_time\": \"Sat, 21 Nov 2026 00:27:12 +0000\", \"end_time\": \"Sat, 21 Nov 2026 00:27:14 +0000\",\n\
         \"sysinfo\": {{ \"release\": \"6.12.95-rt\", \"version\": \"#1\", \"machine\": \"x86_64\" }},\n\
         \"num_threads\": {0}, \"resolution_in_ns\": {resolution_ns}, \"thread\": {{",
        threads.len()
    );
    for (i, values) in threads.iter().enumerate() {
        let (min, _, max) = stated(values);
        let mut used: Vec<u64> =
            values.iter().copied().filter(|&v| rows.is_some_and(|rows| v < rows)).collect();
        used.sort_unstable();
        let count = |row: u64| used.iter().filter(|&&v| v == row).count();
        let mut rows = used.clone();
        rows.dedup();
        let cells: Vec<String> = rows.iter().map(|&r| format!("\"{r}\": {}", count(r))).collect();
        let sum: u64 = values.iter().sum();
        #[allow(clippy::cast_precision_loss)]
        let mean = sum as f64 / values.len().max(1) as f64;
        let _ = write!(
            text,
            "{}\"{i}\": {{ \"histogram\": {{ {} }}, \"cycles\": {}, \"min\": {min}, \"max\": {max}, \
             \"avg\": {mean:.2}, \"cpu\": {i} }}",
            if i > 0 { ", " } else { "" },
            cells.join(", "),
            values.len()
        );
    }
    text + "}}\n"
}

/// An interval log as Java's library writes it.
fn hlog(values: &[u64], digits: u8, lowest: u64, unit: &str) -> String {
    let mut histogram = HdrHistogram::<u64>::new_with_bounds(lowest, 1 << 40, digits).unwrap();
    values.iter().for_each(|&v| histogram.record(v).unwrap());
    let mut packed = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut packed).unwrap();
    let base64: String = packed
        .chunks(3)
        .flat_map(|three| {
            const DIGITS: &[u8; 64] =
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let bits = (0..3).fold(0_u32, |b, i| b << 8 | u32::from(*three.get(i).unwrap_or(&0)));
            (0..4).map(move |at| match at <= three.len() {
                true => char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]),
                false => '=',
            })
        })
        .collect();
    // The log's maximum is in a million of the samples' unit.
    #[allow(clippy::cast_precision_loss)]
    let max = histogram.max() as f64 / 1e6;
    format!(
        "#[Histogram log format version 1.3]\n#[StartTime: 1700000000.000 (seconds since epoch), x]\n\
         #[Unit: {unit}]\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"x\"\n\
         0.500,2.000,{max:.3},{base64}\n"
    )
}

/// A percentile distribution of values with so many decimals.
fn hgrm(values: &[u64], decimals: usize, unit: &str) -> String {
    let mut values = values.to_vec();
    values.sort_unstable();
    let decimal = |value: u64| match 10_u64.pow(u32::try_from(decimals).unwrap()) {
        1 => value.to_string(),
        one => format!("{}.{:0decimals$}", value / one, value % one),
    };
    let mut text =
        format!("#[Unit: {unit}]\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n");
    for (i, &value) in values.iter().enumerate() {
        if values.get(i + 1) != Some(&value) {
            #[allow(clippy::cast_precision_loss)]
            let level = (i + 1) as f64 / values.len() as f64;
            let _ = writeln!(text, "{:>12} {level:.12} {:>10} 2.00", decimal(value), i + 1);
        }
    }
    let max = values.last().copied().unwrap_or(0);
    #[allow(clippy::cast_precision_loss)]
    let moment = |of: &dyn Fn(f64) -> f64| {
        values.iter().map(|&value| of(value as f64)).sum::<f64>() / values.len() as f64
    };
    let mean = moment(&|value| value);
    let deviation = moment(&|value| (value - mean).powi(2)).sqrt();
    let one = 10_f64.powi(i32::try_from(decimals).unwrap());
    let (mean, deviation) = (mean / one, deviation / one);
    let _ = write!(
        text,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]\n\
         #[Max     = {:>12}, Total count    = {:>12}]\n\
         #[Buckets =           27, SubBuckets     =         2048]\n",
        decimal(max),
        values.len()
    );
    text
}

/// A percentile distribution of values in ns as libraries print it: in a unit, with three decimals.
#[allow(clippy::cast_precision_loss)]
fn printed_hgrm(values_ns: &[u64], unit: Unit) -> String {
    let mut histogram = HdrHistogram::<u64>::new(3).unwrap();
    values_ns.iter().for_each(|&ns| histogram.record(ns).unwrap());
    let in_unit = |ns: f64| ns / unit.ns() as f64;
    let mut text =
        format!("#[Unit: {unit}]\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n");
    let mut count = 0;
    for row in histogram.iter_quantiles(5) {
        count += row.count_since_last_iteration();
        let (value, level) = (in_unit(row.value_iterated_to() as f64), row.quantile_iterated_to());
        let _ = writeln!(text, "{value:>12.3} {level:.12} {count:>10} 2.00");
    }
    let _ = write!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {count:>12}]\n\
         #[Buckets =           27, SubBuckets     =         2048]\n",
        in_unit(histogram.mean()),
        in_unit(histogram.stdev()),
        in_unit(histogram.max() as f64),
    );
    text
}

/// 0.002 ms is 1.5 to 2.5 µs, of which a table that counts whole µs would hold 2.000 to 2.999 µs.
#[test]
fn what_is_printed_with_few_digits_is_known_to_a_step() {
    let text = "#[Unit: ms]\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n\
         0.001 0.000000000000 2 1.00\n0.001 0.250000000000 3 1.33\n\
         0.002 0.500000000000 4 2.00\n0.002 1.000000000000 5\n\
         #[Mean    =        0.001, StdDeviation   =        0.000]\n\
         #[Max     =        0.002, Total count    =            5]\n";
    let d = only_run(Format::HdrPercentiles, text, None).woken();
    let counts: Vec<u64> = d.histogram.buckets().iter().map(|bucket| bucket.count).collect();
    assert_eq!(counts, [3, 2]);
    assert_eq!(d.max_range(), Some((1_001, 2_999)));
    assert_eq!(d.range_at(4), Some((501, 2_999)));
    // What is printed to the nanosecond is exact.
    let exact = only_run(Format::HdrPercentiles, &text.replace(": ms", ": us"), None).woken();
    assert_eq!((exact.max_range(), exact.range_at(4)), (Some((2, 2)), Some((2, 2))));
}

#[test]
fn the_limit_of_a_histogram_and_what_lies_beyond_come_back() {
    // -h 300, of which 58 samples lie beyond, up to 12 ms.
    let values: Vec<u64> =
        (0..5_000).map(|i| 5 + i % 40).chain((0..58).map(|i| 300 + i * 200)).collect();
    let text = cyclictest_text(&[values], 300, false);
    let run = only_run(Format::CyclictestText, &text, None);
    assert_eq!(run.threads[0].overflow, Some(Overflow { from_ns: 300_000, count: 58 }));
    let again = exported(Format::CyclictestText, &run, Layout::Full);
    assert_eq!(again.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).count(), 300);
    for line in
        ["\n# Total: 000005000\n", "\n# Histogram Overflows: 00058\n", "\n# Max Latencies: 11700\n"]
    {
        assert!(again.contains(line), "{line}: {again}");
    }
    // More rows than there were are not made up; fewer can be had.
    for (asked, rows, over) in [(400, 300, 58), (20, 20, 3_183), (1, 1, 5_058)] {
        let text =
            written(|out| cyclictest::write(&run, Values::Woken, Layout::Full, Some(asked), out));
        let found = text.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).count();
        assert_eq!(found, rows, "{asked}");
        assert!(text.contains(&format!("\n# Histogram Overflows: {over:05}\n")), "{asked}: {text}");
    }
    let json = exported(Format::CyclictestJson, &run, Layout::Full);
    assert_eq!(only_run(Format::CyclictestJson, &json, None).threads, run.threads);
}

#[test]
fn what_is_no_wakeup_latency_in_real_time_stays_so() {
    let mut run = import(OSLAT_2_4.as_bytes()).remove(0).run;
    run.time_domain = TimeDomain::Virtual;
    for format in
        [Format::CyclictestText, Format::CyclictestJson, Format::HdrLog, Format::HdrPercentiles]
    {
        let again = only_run(format, &exported(format, &run, Layout::Full), None);
        let source = again.source.as_ref().unwrap();
        assert_eq!(source.quantity, Quantity::Gap, "{format}");
        assert_eq!(again.time_domain, TimeDomain::Virtual, "{format}");
        assert_eq!(again.woken().count, run.woken().count, "{format}");
    }
}

/// The library of Python cuts the maximum of a log off, and writes six decimals.
#[test]
fn a_maximum_of_a_log_may_be_cut_off_to_a_whole_number() {
    let text = hlog(&[5_000, 24_690_000], 3, 1, "ns");
    assert!(text.contains(",24.691,") || text.contains(",24.690,"), "{text}");
    let with = |max: &str| {
        let text = text.replace(",24.691,", max).replace(",24.690,", max);
        read(Format::HdrLog, &mut text.as_bytes(), &About::default()).is_ok()
    };
    for (max, want) in [
        (",24.000000,", true),
        (",24.000,", false),
        (",25.000000,", false),
        (",23.000000,", false),
        (",24.100000,", false),
    ] {
        assert_eq!(with(max), want, "{max}");
    }
}

/// Of samples with bounds only, other formats have the latest that they can have been.
#[test]
fn no_export_of_what_was_imported_looks_better_or_contradicts_itself() {
    let mut files = all();
    // Of perf's delays, no minimum is known.
    for row in ["1 | avg: 6.500 ms | max: 6.500 ms", "9 | avg: 0.500 ms | max: 3.500 ms"] {
        let total = &row[..1];
        let text = format!(
            "  Task | Runtime ms | Switches | Avg delay ms | Max delay ms |\n\
             a:1 | 1.504 ms | {row} |\n  TOTAL: | 1.504 ms | {total} |\n"
        );
        files.push((Format::PerfSched, text.into_bytes()));
    }
    for (of, bytes) in files {
        let runs = read_as(of, &bytes).unwrap();
        let targets = [
            Format::CyclictestText,
            Format::CyclictestJson,
            Format::HdrLog,
            Format::HdrPercentiles,
        ];
        for (run, format) in runs.iter().flat_map(|i| targets.map(|format| (&i.run, format))) {
            let text = exported(format, run, Layout::Sparse);
            let again = only_run(format, &text, None);
            assert_eq!(again.woken().count, run.woken().count, "{of} as {format}: {text}");
            // Where there is no CPU to name, one histogram has all threads.
            let is_merged = again.threads.len() != run.threads.len();
            let of_threads = |of: &Run| match is_merged {
                true => vec![of.woken()],
                false => of.threads.iter().map(|t| t.woken.clone()).collect(),
            };
            // The least of each thread is a sample, where it is known.
            let has_minima = known(run, "threads.woken.min_ns");
            let first = 1 + if has_minima { run.threads.len() as u64 } else { 0 };
            if is_merged && !has_minima {
                continue;
            }
            for (after, before) in of_threads(&again).iter().zip(of_threads(run)) {
                for rank in [first, before.count.div_ceil(2).max(first), before.count] {
                    let latest = |d: &Distribution| d.range_at(rank).map(|(_, high)| high);
                    let (is, was) = (latest(after), latest(&before));
                    assert!(is >= was, "{of} as {format}: {is:?} {was:?} of {rank}: {text}");
                }
            }
        }
    }
}

/// Threads without a CPU, or on the same one, would be one if they had the same tag.
#[test]
fn threads_of_one_name_stay_apart_in_a_log() {
    let mut run = run_of(&[&[1_000], &[2_000, 3_000], &[4_000; 3], &[5_000; 4]]);
    for (thread, cpu) in run.threads.iter_mut().zip([None, Some(3), None, Some(3)]) {
        thread.cpu = cpu;
    }
    let text = exported(Format::HdrLog, &run, Layout::Full);
    let again = only_run(Format::HdrLog, &text, None);
    let threads =
        |run: &Run| run.threads.iter().map(|t| (t.cpu, t.woken.count)).collect::<Vec<_>>();
    assert_eq!(threads(&again), threads(&run), "{text}");
    for tag in ["Tag=any,", "Tag=cpu3,", "Tag=any-1,", "Tag=cpu3-1,"] {
        assert!(text.contains(tag), "{text}");
    }
}

/// 5 µs of cyclictest is anything from 5.000 to 5.999 µs, and 1 µs anything up to 1.999 µs.
#[test]
fn extremes_that_were_cut_off_are_exported_as_the_ends_of_their_steps() {
    let values: Vec<u64> = [1; 10].into_iter().chain([5; 20]).collect();
    let run = only_run(Format::CyclictestText, &cyclictest_text(&[values], 20, true), None);
    let format = prometheus::Format::Prometheus;
    let metrics = written(|out| prometheus::write(&run, "", Values::Woken, format, out));
    let labels = "cpu=\"any\",time=\"real\",distribution=\"woken\"";
    for (le, count) in [("1e-06", 0), ("2e-06", 10), ("5e-06", 10), ("1e-05", 30)] {
        let line = format!("seconds_bucket{{{labels},le=\"{le}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    let line = format!("max_seconds{{{labels}}} 0.000005999\n");
    assert!(metrics.contains(&line), "{metrics}");
    for format in [Format::HdrLog, Format::HdrPercentiles] {
        let text = exported(format, &run, Layout::Full);
        let d = only_run(format, &text, None).woken();
        let latest = [1, 10, 11, 30].map(|rank| d.range_at(rank).map(|(_, high)| high));
        assert_eq!(latest, [1_999, 1_999, 5_999, 5_999].map(Some), "{format}: {text}");
        // A log has the steps of the file, so that it is not certain either that a sample is later than 5.5 µs.
        let low = d.max_range().map(|(low, _)| low);
        assert_eq!(low, Some(if format == Format::HdrLog { 5_000 } else { 5_999 }), "{text}");
    }
    // Values that are exact stay so.
    let exact = run_of(&[&[1_000, 5_000]]);
    let metrics = written(|out| prometheus::write(&exact, "", Values::Woken, format, out));
    assert!(metrics.contains(",le=\"1e-06\"} 1\n"), "{metrics}");
    assert!(metrics.contains(",le=\"5e-06\"} 2\n"), "{metrics}");
}

/// A mean with three decimals of a millisecond may be larger than that of the samples can be.
#[test]
fn a_rounded_mean_makes_no_sum_that_the_samples_cannot_have() {
    for (values, sum_ns, mean) in [
        (&[0][..], 0, "0.000"),
        (&[0, 1], 1_000, "0.500"),
        (&[1, 1, 2], 4_000, "1.333"),
        (&[0, 1, 4_725], 4_725_000, "1575.000"),
    ] {
        let run = only_run(Format::HdrPercentiles, &hgrm(values, 3, "ms"), None);
        assert_eq!(run.woken().sum_ns, sum_ns);
        let text = exported(Format::HdrPercentiles, &run, Layout::Full);
        assert!(text.contains(&format!("#[Mean    = {mean:>12},")), "{text}");
        check(Format::HdrPercentiles, &run, Layout::Full);
    }
}

/// Buckets of long latencies are wider than a row: the mean of the rows is above that of the samples.
#[test]
fn what_wakescope_measured_is_read_again_from_what_it_wrote() {
    let long: Vec<u64> = (0..40).map(|i| (1 << 29) + i * (1 << 20) + 1).collect();
    let run = run_of(&[&long, &[40_001, 700_000_001]]);
    for format in
        [Format::CyclictestText, Format::CyclictestJson, Format::HdrLog, Format::HdrPercentiles]
    {
        let again = only_run(format, &exported(format, &run, Layout::Full), None);
        assert_eq!(again.woken().count, 42, "{format}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_own_runs(
        cpus in prop::collection::vec(prop::collection::vec(0_u64..900_000_000, 1..40), 1..4),
    ) {
        let run = run_of(&cpus.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for format in [Format::CyclictestJson, Format::HdrLog, Format::HdrPercentiles] {
            let again = only_run(format, &exported(format, &run, Layout::Full), None);
            prop_assert_eq!(again.woken().count, run.woken().count);
        }
    }

    #[test]
    fn of_cyclictest_text(
        threads in prop::collection::vec(samples(), 1..4),
        rows in 1_u64..400,
        sparse in any::<bool>(),
    ) {
        let run = only_run(Format::CyclictestText, &cyclictest_text(&threads, rows, sparse), None);
        let all: u64 = run.threads.iter().filter_map(|t| t.overflow).map(|o| o.count).sum();
        let beyond = threads.iter().flatten().filter(|&&v| v >= rows).count();
        prop_assert_eq!(all, beyond as u64);
        check(Format::CyclictestText, &run, Layout::Full);
        check(Format::CyclictestText, &run, Layout::Sparse);
        // The other format of the same program has the same room.
        let json = only_run(
            Format::CyclictestJson,
            &exported(Format::CyclictestJson, &run, Layout::Full),
            None,
        );
        for (json, text) in json.threads.iter().zip(&run.threads) {
            prop_assert_eq!(&json.woken.histogram, &text.woken.histogram);
            prop_assert_eq!(json.overflow.map(|o| o.count).unwrap_or(0), text.overflow.map(|o| o.count).unwrap_or(0));
        }
    }

    #[test]
    fn of_cyclictest_summaries(threads in prop::collection::vec(samples(), 1..4)) {
        let mut text = String::new();
        for (i, values) in threads.iter().enumerate() {
            let (min, mean, max) = stated(values);
            let _ = writeln!(
                text,
                "T: {i} ( 12) P:80 I:1000 C: {:6} Min: {min:6} Act: {mean:4} Avg: {mean:4} Max: {max:7}",
                values.len()
            );
        }
        // Means above the interval are refused where nobody says the unit.
        let run = only_run(Format::CyclictestText, &text, Some(Unit::Us));
        check(Format::CyclictestText, &run, Layout::Full);
        check(Format::CyclictestText, &run, Layout::Sparse);
    }

    #[test]
    fn of_cyclictest_json(
        threads in prop::collection::vec(samples(), 1..4),
        rows in prop::option::of(1_u64..400),
    ) {
        let text = cyclictest_json_of(&threads, rows, 0);
        check(Format::CyclictestJson, &only_run(Format::CyclictestJson, &text, None), Layout::Full);
    }

    #[test]
    fn of_interval_logs(
        values in samples(),
        digits in 1_u8..6,
        lowest in prop::sample::select(vec![1_u64, 2, 1_000, 20_000]),
        unit in prop::sample::select(vec!["ns", "us", "ms"]),
    ) {
        prop_assume!(!values.is_empty());
        let run = only_run(Format::HdrLog, &hlog(&values, digits, lowest, unit), None);
        prop_assert_eq!(run.woken().count, values.len() as u64);
        check(Format::HdrLog, &run, Layout::Full);
    }

    #[test]
    fn of_percentile_distributions(
        values in samples(),
        decimals in 0_usize..4,
        unit in prop::sample::select(vec!["us", "ms"]),
    ) {
        prop_assume!(!values.is_empty());
        let run = only_run(Format::HdrPercentiles, &hgrm(&values, decimals, unit), None);
        prop_assert_eq!(run.woken().count, values.len() as u64);
        check(Format::HdrPercentiles, &run, Layout::Full);
    }

    /// What is printed with fewer digits than it was recorded with is read, and holds every sample.
    #[test]
    fn of_printed_percentile_distributions(
        values in prop::sample::select(vec![3_000_u64, 20_000, 2_000_000])
            .prop_flat_map(|end| prop::collection::vec(1..end, 1..200)),
        unit in prop::sample::select(vec![Unit::Us, Unit::Ms]),
    ) {
        let mut values = values;
        values.sort_unstable();
        let run = only_run(Format::HdrPercentiles, &printed_hgrm(&values, unit), None);
        let d = run.woken();
        prop_assert_eq!(d.count, values.len() as u64);
        // The library itself has them to 0.1 %.
        let holds = |(low, high): (u64, u64), ns: u64| low <= ns + ns / 1_000 && ns <= high;
        for (rank, &ns) in (1..).zip(&values) {
            let range = d.range_at(rank).unwrap();
            prop_assert!(holds(range, ns), "{:?} {}", range, ns);
        }
        let latest = *values.last().unwrap();
        prop_assert!(holds(d.max_range().unwrap(), latest), "{:?} {}", d.max_range(), latest);
    }

    #[test]
    fn of_runs_that_were_measured(
        cpus in prop::collection::vec(prop::collection::vec(samples(), 1..3), 1..3),
        sparse in any::<bool>(),
    ) {
        let cpus: Vec<Vec<u64>> = cpus.into_iter().map(|parts| parts.concat()).collect();
        prop_assume!(cpus.iter().any(|values| !values.is_empty()));
        let run = run_of(&cpus.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let layout = if sparse { Layout::Sparse } else { Layout::Full };
        for format in
            [Format::CyclictestText, Format::CyclictestJson, Format::HdrLog, Format::HdrPercentiles]
        {
            let imported = only_run(format, &exported(format, &run, layout), None);
            prop_assert_eq!(imported.woken().count, run.woken().count);
            check(format, &imported, layout);
        }
    }
}
