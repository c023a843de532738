//! What is exported, read again: by readers written here from the formats' own descriptions, and by
//! another implementation where there is one.

use std::collections::BTreeMap;
use std::io;

use expect_test::expect;
use hdrhistogram::Histogram as HdrHistogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use proptest::prelude::*;
use wakescope_core::histogram::{Histogram, bucket_of};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::source::Source;

use super::cyclictest::Layout;
use super::*;
use crate::made_up::run_of;

/// What `write` writes.
pub(crate) fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn histogram_text(run: &Run, layout: Layout, rows: Option<u64>) -> String {
    written(|out| cyclictest::write(run, Values::Woken, layout, rows, out))
}

/// A run in which each CPU has wakeups from 2 to 6 µs late.
fn small() -> Run {
    run_of(&[&[2_000, 2_999, 4_100, 6_700], &[2_500, 5_000]])
}

#[test]
fn the_histogram_is_as_cyclictest_prints_it() {
    expect![[r#"
        # wakescope 0.1.0: woken, us, kernel 6.12.95
        # Histogram
        000000 000000	000000
        000001 000000	000000
        000002 000002	000001
        000003 000000	000000
        000004 000001	000000
        000005 000000	000001
        000006 000001	000000
        # Total: 000000004 000000002
        # Min Latencies: 00002 00002
        # Avg Latencies: 00003 00003
        # Max Latencies: 00006 00005
        # Histogram Overflows: 00000 00000
        # Histogram Overflow at cycle number:
        # Thread 0:
        # Thread 1:

    "#]]
    .assert_eq(&histogram_text(&small(), Layout::Full, None));
    expect![[r#"
        # wakescope 0.1.0: woken, us, rows 5, kernel 6.12.95
        # Histogram
        000002 000002	000001
        000004 000001	000000
        # Min Latencies: 00002 00002
        # Avg Latencies: 00003 00003
        # Max Latencies: 00006 00005
        # Histogram Overflows: 00001 00001
        # Histogram Overflow at cycle number:
        # Thread 0: # 00001 others
        # Thread 1: # 00001 others

    "#]]
    .assert_eq(&histogram_text(&small(), Layout::Sparse, Some(5)));
}

#[test]
fn a_thread_without_samples_is_as_cyclictest_has_it() {
    expect![[r#"
        # wakescope 0.1.0: woken, virtual us, kernel 6.12.95
        # Histogram
        000000 000000
        # Total: 000000000
        # Min Latencies: 1000000
        # Avg Latencies: 00000
        # Max Latencies: 00000
        # Histogram Overflows: 00000
        # Histogram Overflow at cycle number:
        # Thread 0:

    "#]]
    .assert_eq(&histogram_text(
        &Run { time_domain: TimeDomain::Virtual, ..run_of(&[&[]]) },
        Layout::Full,
        None,
    ));
}

#[test]
fn the_file_is_as_cyclictest_writes_it() {
    expect![[r#"
        {
          "file_version": 1,
          "cmdline:": "cyclictest by wakescope 0.1.0: woken, us, -t 2 -i 1000 -y fifo -p 90 -h 5",
          "rt_test_version:": "wakescope 0.1.0",
          "start_time": "Sat, 21 Nov 2026 01:00:00 +0000",
          "end_time": "Sat, 21 Nov 2026 01:00:10 +0000",
          "return_code": 0,
          "sysinfo": {
            "sysname": "Linux",
            "nodename": "",
            "release": "6.12.95",
            "version": "",
            "machine": "",
            "realtime": 0
          },
          "num_threads": 2,
          "resolution_in_ns": 0,
          "thread": {
            "0": {
              "histogram": {
                "2": 2,
                "4": 1
              },
              "cycles": 4,
              "min": 2,
              "max": 6,
              "avg": 3.95,
              "cpu": 0
            },
            "1": {
              "histogram": {
                "2": 1
              },
              "cycles": 2,
              "min": 2,
              "max": 5,
              "avg": 3.75,
              "cpu": 1
            }
          }
        }
    "#]]
    .assert_eq(&written(|out| cyclictest_json::write(&small(), Values::Woken, Some(5), out)));
}

#[test]
fn a_wakeup_is_never_exported_as_less_late_than_it_can_have_been() {
    // The bucket from 589,824 to 590,848 ns lies across 590 µs.
    let run = run_of(&[&[500_000, 589_900, 700_000]]);
    let text = histogram_text(&run, Layout::Sparse, None);
    assert!(text.contains("\n000590 000001\n"), "{text}");
    let metrics = written(|out| {
        prometheus::write(
            &run_of(&[&[499_800, 700_000]]),
            "timer 1 ms",
            Values::Woken,
            prometheus::Format::Prometheus,
            out,
        )
    });
    assert!(metrics.contains("le=\"0.0005\"} 0\n"), "{metrics}");
    assert!(metrics.contains("le=\"0.001\"} 2\n"), "{metrics}");
}

#[test]
fn a_series_that_the_source_lacks_is_left_out() {
    let mut run = small();
    for (unknown, want) in [("seed", true), ("threads.missed", false)] {
        run.source = Some(Source { unknown: vec![unknown.into()], ..Source::default() });
        for format in [prometheus::Format::Prometheus, prometheus::Format::OpenMetrics] {
            let text = written(|out| prometheus::write(&run, "", Values::Woken, format, out));
            assert_eq!(text.contains("missed"), want, "{unknown}: {text}");
        }
    }
}

#[test]
fn the_help_names_the_quantity() {
    let mut run = small();
    for (quantity, want) in [
        (Quantity::WakeupLatency, "lateness of each timer expiry, missed ones included"),
        (Quantity::RunqueueDelay, "delay on the run queue"),
        (Quantity::Gap, "gap in a busy loop"),
    ] {
        run.source = Some(Source { quantity, ..Source::default() });
        let format = prometheus::Format::OpenMetrics;
        let text = written(|out| prometheus::write(&run, "", Values::Expiries, format, out));
        assert!(text.contains(&format!("_seconds wakescope run: {want}.\n")), "{text}");
    }
}

/// Samples per µs.
type Rows = BTreeMap<u64, u64>;

/// Reads the histogram as a script does: by its first column, whatever lines are missing. For each
/// thread the rows, and what stands behind each name.
fn read_histogram(text: &str) -> (Vec<Rows>, BTreeMap<String, Vec<u64>>) {
    let (mut threads, mut named) = (Vec::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix("# ") {
            let (name, rest) = comment.split_once(':').unwrap_or((comment, ""));
            named.insert(name.into(), rest.split(' ').flat_map(str::parse).collect());
            continue;
        }
        let mut numbers = line.split_whitespace().map(|n| n.parse::<u64>().unwrap());
        let us = numbers.next().unwrap();
        for (i, count) in numbers.enumerate() {
            if i == threads.len() {
                threads.push(BTreeMap::new());
            }
            if count > 0 {
                assert!(threads[i].insert(us, count).is_none(), "{us} twice");
            }
        }
    }
    (threads, named)
}

/// Samples in whole µs, as late as each bucket allows, but for the least late, which is known.
fn in_us(d: &Distribution) -> Rows {
    let mut rows = BTreeMap::new();
    for (i, bucket) in d.histogram.buckets().iter().enumerate() {
        *rows.entry(latest(bucket, d) / 1_000).or_insert(0) += bucket.count - u64::from(i == 0);
    }
    *rows.entry(d.min_ns.unwrap_or(0) / 1_000).or_insert(0) += u64::from(d.count > 0);
    rows.retain(|_, count| *count > 0);
    rows
}

/// A histogram on our scale of values with counts.
fn on_our_scale(values: impl IntoIterator<Item = (u64, u64)>) -> Histogram {
    let mut counts = BTreeMap::new();
    for (value, count) in values {
        *counts.entry(bucket_of(value)).or_insert(0) += count;
    }
    Histogram::from_scale(counts)
}

/// Fails unless `text` is what the text formats allow: comments that precede their samples, names
/// and labels of the right letters, numbers. Returns the samples.
#[track_caller]
fn read_metrics(text: &str, format: prometheus::Format) -> BTreeMap<String, f64> {
    let is_open = format == prometheus::Format::OpenMetrics;
    assert_eq!(text.ends_with("\n# EOF\n"), is_open);
    let mut samples = BTreeMap::new();
    let mut family = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            match words.as_slice() {
                ["TYPE", name, kind] => {
                    assert!(["histogram", "gauge", "counter", "info"].contains(kind), "{line}");
                    family = (*name).into();
                }
                ["UNIT", name, unit] => {
                    assert!(is_open && *name == family && name.ends_with(unit), "{line}");
                }
                ["HELP", name, _] => assert_eq!(*name, family),
                _ => panic!("{line}"),
            }
            continue;
        }
        let name_end = line.find('{').unwrap();
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(line[..name_end].chars().all(letters) && line.starts_with(&family), "{line}");
        let labels_end = name_end + 1 + end_of_labels(&line[name_end + 1..]);
        let number = line[labels_end + 1..].strip_prefix(' ').unwrap();
        let previous = samples.insert(line[..=labels_end].into(), number.parse().unwrap());
        assert_eq!(previous, None, "twice: {line}");
    }
    samples
}

/// Where the brace is that ends `name="value",…`.
#[track_caller]
fn end_of_labels(text: &str) -> usize {
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{text}");
        let mut escaped = false;
        let end = after.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        rest = &after[end.unwrap() + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    assert!(rest.starts_with('}'), "{text}");
    text.len() - rest.len()
}

fn values() -> impl Strategy<Value = u64> {
    // As many near 0 as near 2^40.
    (0_u32..40, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))
}

fn runs() -> impl Strategy<Value = Run> {
    let cpus = prop::collection::vec(prop::collection::vec(values(), 0..40), 1..4);
    cpus.prop_map(|cpus| run_of(&cpus.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}

proptest! {
    #[test]
    fn cyclictest_has_every_sample(run in runs(), rows in 1_u64..3_000, sparse in any::<bool>()) {
        let layout = if sparse { Layout::Sparse } else { Layout::Full };
        let text = histogram_text(&run, layout, Some(rows));
        let (threads, named) = read_histogram(&text);
        for (i, thread) in run.threads.iter().enumerate() {
            let mut want = in_us(&thread.woken);
            want.retain(|&us, _| us < rows);
            let got = threads.get(i).cloned().unwrap_or_default();
            let over = named["Histogram Overflows"][i];
            prop_assert_eq!(got.values().sum::<u64>() + over, thread.woken.count);
            prop_assert_eq!(got, want);
        }
        prop_assert_eq!(named.contains_key("Total"), !sparse);
    }

    #[test]
    fn cyclictest_json_has_every_sample(run in runs(), rows in 1_u64..3_000) {
        let text = written(|out| cyclictest_json::write(&run, Values::Woken, Some(rows), out));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (i, thread) in run.threads.iter().enumerate() {
            let entry = &json["thread"][i.to_string()];
            prop_assert_eq!(entry["cycles"].as_u64(), Some(thread.woken.count));
            let got: BTreeMap<u64, u64> = entry["histogram"].as_object().unwrap().iter()
                .map(|(us, count)| (us.parse().unwrap(), count.as_u64().unwrap())).collect();
            let mut want = in_us(&thread.woken);
            want.retain(|&us, _| us < rows);
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn csv_is_the_same_histogram(run in runs()) {
        let text = written(|out| csv::write(&run, &Values::ALL, out));
        let mut lines = text.lines();
        prop_assert_eq!(lines.next(), Some("cpu,distribution,lower_ns,upper_ns,count"));
        let mut read: BTreeMap<(u32, String), Vec<[u64; 3]>> = BTreeMap::new();
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let [cpu, kind, lower, upper, count] = fields[..] else { panic!("{line}") };
            let numbers = [lower, upper, count].map(|n| n.parse().unwrap());
            read.entry((cpu.parse().unwrap(), kind.into())).or_default().push(numbers);
        }
        for thread in &run.threads {
            for (kind, d) in [("woken", &thread.woken), ("expiries", &thread.expiries)] {
                let buckets = read.remove(&(thread.cpu.unwrap(), kind.into())).unwrap_or_default();
                let histogram = serde_json::to_value(&d.histogram).unwrap();
                prop_assert_eq!(serde_json::to_value(&buckets).unwrap(), histogram);
            }
        }
        prop_assert!(read.is_empty());
    }

    #[test]
    fn another_implementation_reads_the_same_from_an_hlog(run in runs()) {
        let text = written(|out| hdr::write_log(&run, Values::Woken, out));
        let entries: Vec<LogEntry> =
            IntervalLogIterator::new(text.as_bytes()).collect::<Result<_, _>>().unwrap();
        let mut threads = run.threads.iter();
        for entry in entries {
            let LogEntry::Interval(interval) = entry else { continue };
            let thread = threads.next().unwrap();
            let tag = format!("cpu{}", thread.cpu.unwrap());
            prop_assert_eq!(interval.tag().unwrap().as_str(), tag);
            prop_assert_eq!(interval.duration().as_secs(), 10);
            let encoded = interval.encoded_histogram();
            let bytes = decoded_base64(encoded);
            let h: HdrHistogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(h.len(), thread.woken.count);
            let read = h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()));
            prop_assert_eq!(on_our_scale(read), thread.woken.histogram.clone());
            if let (Some(min), Some(max)) = (thread.woken.min_ns, thread.woken.max_ns) {
                prop_assert!(h.equivalent(h.min(), min) && h.equivalent(h.max(), max));
            }
        }
        prop_assert!(threads.next().is_none());
    }

    #[test]
    fn an_hgrm_is_the_same_histogram(run in runs()) {
        let text = written(|out| hdr::write_percentiles(&run, Values::Expiries, out));
        let (mut values, mut before) = (Vec::new(), 0);
        for line in text.lines().skip(2).filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let ns: u64 = fields[0].replace('.', "").parse().unwrap();
            let seen: u64 = fields[2].parse().unwrap();
            let share: f64 = fields[1].parse().unwrap();
            prop_assert_eq!(fields.len(), if share < 1.0 { 4 } else { 3 });
            values.push((ns, seen - before));
            before = seen;
        }
        let all = run.expiries();
        prop_assert_eq!(on_our_scale(values.iter().copied()), all.histogram.clone());
        prop_assert_eq!(values.first().map(|v| v.0), all.min_ns);
        prop_assert_eq!(values.last().map(|v| v.0), all.max_ns);
    }

    #[test]
    fn metrics_have_every_sample(run in runs(), open in any::<bool>(), text in "\\PC{0,16}") {
        let mut run = run;
        run.host.release = format!("{text}\"\\\n");
        let format =
            if open { prometheus::Format::OpenMetrics } else { prometheus::Format::Prometheus };
        let text = written(|out| prometheus::write(&run, "timer 1 ms", Values::Expiries, format, out));
        let samples = read_metrics(&text, format);
        for thread in &run.threads {
            let of = |what: &str, more: &str| {
                let cpu = thread.cpu.unwrap();
                let labels =
                    format!("{{cpu=\"{cpu}\",time=\"real\",distribution=\"expiries\"{more}}}");
                samples.get(&format!("wakescope_wakeup_latency_{what}{labels}")).copied()
            };
            let count = Some(thread.expiries.count as f64);
            prop_assert_eq!(of("seconds_count", ""), count);
            prop_assert_eq!(of("seconds_bucket", ",le=\"+Inf\""), count);
            let sum = of("seconds_sum", "").unwrap() * 1e9;
            prop_assert!((sum - thread.expiries.sum_ns as f64).abs() <= sum / 1e12);
            prop_assert_eq!(of("max_seconds", "").is_some(), thread.expiries.max_ns.is_some());
            let below = thread.expiries.histogram.count_below(10_000_001) as f64;
            let at_10_ms = of("seconds_bucket", ",le=\"0.01\"").unwrap();
            let up_to = thread.expiries.histogram.count_up_to(10_000_001) as f64;
            prop_assert!((below..=up_to).contains(&at_10_ms));
        }
        let mut last = (String::new(), 0.0);
        for line in text.lines().filter(|line| line.contains("_bucket{")) {
            let (labels, count) = line.rsplit_once(' ').unwrap();
            let series = labels.split("le=").next().unwrap();
            let count: f64 = count.parse().unwrap();
            prop_assert!(series != last.0 || count >= last.1, "{}", line);
            last = (series.into(), count);
        }
    }
}

/// Independent of the encoder: digit by digit.
fn decoded_base64(text: &str) -> Vec<u8> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut out) = (0_u32, 0, Vec::new());
    for c in text.trim_end_matches('=').chars() {
        bits = (bits << 6 | u32::try_from(digits.find(c).unwrap()).unwrap()) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    out
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let run = run_of(&[&[1, u64::MAX / 2 + 2]]);
    let mut out = Vec::new();
    let refused = hdr::write_log(&run, Values::Woken, &mut out).unwrap_err();
    assert!(refused.to_string().contains("2^63") && out.is_empty(), "{refused}");
}
