//! A file holds one result, and all of it; what a program adds to that is no figure of its own.

use super::super::*;
use super::files::*;
use super::read_as;

#[test]
fn lines_of_cyclictest_are_of_one_run_and_of_all_its_threads() {
    let line = |thread: u64, task: u64, cycles: u64| {
        format!(
            "T: {thread} ({task:5}) P:80 I:1000 C: {cycles:6} Min:     15 Act:   35 Avg:   74 Max:     500\n"
        )
    };
    let read = |text: String| read_as(Format::CyclictestText, text.as_bytes());
    let counts = |text: String| -> Vec<u64> {
        read(text).unwrap()[0].run.threads.iter().map(|t| t.woken.count).collect()
    };
    assert_eq!(counts(line(0, 7, 10) + &line(1, 0, 0) + &line(0, 7, 20) + &line(1, 8, 9)), [20, 9]);
    for (text, why) in [
        // The next run had more of everything, as if it went on.
        (
            line(0, 7, 10) + "# /dev/cpu_dma_latency set to 0us\n" + &line(0, 9, 20),
            "a second result",
        ),
        (line(0, 7, 10) + &line(0, 8, 10), "a second result"),
        (line(1, 8, 10), "there are lines of thread 1, but none of thread 0"),
        (line(0, 7, 10) + &line(2, 8, 10), "there are lines of thread 2, but none of thread 1"),
    ] {
        let error = read(text.clone()).unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}: {text}");
    }
}

/// cyclictest changes the extremes and the sum before it counts a sample.
#[test]
fn a_line_of_cyclictest_may_have_a_sample_that_is_not_counted_yet() {
    let line = |task: u64, min: u64, mean: u64, max: u64| {
        format!("T: 0 ({task}) P:80 I:1000 C: 100 Min: {min} Act: 35 Avg: {mean} Max: {max}\n")
    };
    let first = line(7, 15, 20, 50);
    for (next, goes_on) in [
        (line(7, 15, 20, 50), true),
        (line(7, 15, 20, 60), true),
        (line(7, 15, 21, 60), true),
        (line(7, 12, 20, 50), true),
        (line(7, 15, 31, 1_000), true),
        // No single sample does this.
        (line(7, 15, 22, 60), false),
        (line(7, 15, 19, 60), false),
        (line(7, 12, 20, 60), false),
        (line(7, 15, 20, 49), false),
        (line(8, 15, 20, 60), false),
    ] {
        let last = next.replace("C: 100", "C: 150");
        let read = |text: String| read_as(Format::CyclictestText, text.as_bytes());
        match read(format!("{first}{next}")) {
            Ok(_) => assert!(goes_on, "{next}"),
            Err(e) => {
                assert!(!goes_on && e.to_string().contains("a second result"), "{next}: {e}");
                continue;
            }
        }
        assert_eq!(
            read(format!("{first}{next}{last}")).unwrap()[0].run.threads[0].woken.count,
            150
        );
    }
}

/// `--spike`, before a histogram, behind lines of threads, and between samples.
#[test]
fn spikes_of_cyclictest_are_no_figures_of_their_own() {
    let spikes = "T: 0 Spike:      64: TS:  53612989842\nT: 1 Spike:     182: TS:  53612997812\nspikes = 2\n\n";
    for (format, text) in [
        (Format::CyclictestText, CYCLICTEST_2_4),
        (Format::CyclictestText, CYCLICTEST_QUIET),
        (Format::CyclictestVerbose, CYCLICTEST_VERBOSE_QUIET),
    ] {
        let plain = read_as(format, text.as_bytes()).unwrap();
        let head = text.find("# Histogram").unwrap_or(text.len());
        let with = format!("{}{spikes}{}", &text[..head], &text[head..]);
        assert_eq!(read_as(format, with.as_bytes()).unwrap(), plain, "{with}");
        let odd = with.replace(": TS:", ": TX:");
        assert!(read_as(format, odd.as_bytes()).is_err(), "{odd}");
    }
}

/// It takes a million rows for more: `-N -h 4000000`.
#[test]
fn cyclictest_has_a_million_rows_at_most() {
    let over = |rows: u64| {
        let text = [
            ("-h 10 ", format!("-h {rows} ")),
            ("\"max\": 51", "\"max\": 1000051".into()),
            ("14.25", "300010.00".into()),
            ("\"min\": 15", "\"min\": 1000015".into()),
            ("20.29", "1000030.00".into()),
        ]
        .iter()
        .fold(CYCLICTEST_JSON.to_owned(), |text, (from, to)| text.replace(from, to));
        let runs = read_as(Format::CyclictestJson, text.as_bytes()).unwrap();
        runs[0].run.threads[0].overflow.map(|over| (over.from_ns, over.count))
    };
    assert_eq!(over(1_000_000), Some((1_000_000_000, 3)));
    assert_eq!(over(4_000_000), over(1_000_000));
}

#[test]
fn the_last_table_of_schbench_counts_if_it_has_the_samples_of_all() {
    let table = |seconds: u64, total: u64, (min, max): (u64, u64)| {
        let half = total / 2;
        let rows = format!("50.0th: 5 ({half} samples)\n99.0th: 9 ({} samples)\n", half - 1);
        format!(
            "Wakeup Latencies percentiles (usec) runtime {seconds} (s) ({total} total samples)\n\
             {rows}min={min}, max={max}\n"
        )
    };
    let rps = |total: u64| {
        format!("RPS percentiles (requests) runtime 1 (s) ({total} total samples)\nmin=1, max=9\n")
    };
    let read = |tables: &[String]| {
        read_as(Format::SchbenchText, tables.concat().as_bytes())
            .map(|runs| runs[0].run.threads[0].woken.count)
    };
    let first = table(2, 100, (3, 900));
    for tables in [
        [first.clone(), table(4, 200, (3, 900))],
        [first.clone(), table(2, 100, (3, 900))],
        [table(2, 100, (0, 900)), table(4, 200, (3, 901))],
        // What came before the warm-up ended is no part of the result.
        [first.clone() + "warmup done, zeroing stats\n", table(4, 200, (4, 12))],
        // Requests per second are no times: those of `-A` begin anew.
        [rps(9) + &first, table(4, 200, (2, 1_000)) + &rps(1).replace("runtime 1", "runtime 4")],
    ] {
        let of_last = if tables[1].contains("200 total") { 200 } else { 100 };
        assert_eq!(read(&tables).unwrap(), of_last, "{tables:?}");
    }
    for (last, why) in [
        (table(4, 98, (3, 900)), "the number of samples was 100, and is 98"),
        (table(4, 200, (3, 899)), "the maximum was 900, and is 899"),
        (table(4, 200, (4, 900)), "the minimum was 3, and is 4"),
        (table(1, 200, (3, 900)), "a second result begins"),
    ] {
        let error = read(&[first.clone(), last]).unwrap_err();
        assert!(error.to_string().contains(why), "{why}: {error}");
    }
    let warm = "warmup done, zeroing stats\n".to_owned();
    for results in [
        [warm.clone() + &first, warm.clone() + &first],
        [warm.clone() + &first, warm.clone() + &table(9, 400, (1, 950))],
        [warm.clone() + &first, warm.clone()],
        // Only the second one has a warm-up.
        [first.clone(), warm + &first],
    ] {
        let error = read(&results).unwrap_err();
        assert!(error.to_string().contains("a second result begins"), "{results:?}: {error}");
    }
    for end in ["average rps: 65.20\n", "avg worker transfer: 27405.18 ops/sec 26.14MB/s\n"] {
        let error = read(&[first.clone(), end.into(), table(4, 200, (3, 900))]).unwrap_err();
        assert!(error.to_string().contains("a second result begins"), "{end}: {error}");
    }
}
