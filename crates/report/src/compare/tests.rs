use std::collections::BTreeMap;

use expect_test::expect;
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::Explanation;
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::observation::{Observation, Sums, ThreadSums};
use wakescope_core::run::{LoadResult, Run, TimeDomain};
use wakescope_core::source::Source;
use wakescope_core::stated::Stated;
use wakescope_core::watch::observed::{Group, Grouping, Observed, SWITCHES};
use wakescope_stats::compare::{Labelled, Options, Watched, compare, compare_watches};

use super::*;
use crate::style::Style;
use crate::text::tests::run_of;

const PLAIN: Style = Style { colour: false };

/// A run of 4,000 samples around `us` µs, with a load.
fn run(us: u64) -> Run {
    let ns = us * 1_000;
    let samples: Vec<u64> = (0..3_979)
        .map(|i| ns / 2 + i % 3 * ns / 4)
        .chain([ns * 10; 20])
        .chain([ns * 100])
        .collect();
    let mut run = run_of(&[&samples]);
    run.plan.load = vec!["find".into()];
    run.load = vec![LoadResult {
        name: "find".into(),
        unit: "files".into(),
        per_second: 41_000.0 + us as f64,
        ..LoadResult::default()
    }];
    run
}

fn held(new: &[Run], old: &[Run], options: &Options) -> Compare {
    let labels: Vec<String> = (1..10).map(|i| format!("runs/2026-11-2{i}")).collect();
    let side = |name: &str, runs: &'_ [Run]| -> Vec<(String, Observation)> {
        let own = |(label, run): (&String, &Run)| {
            let run = Run { id: format!("{name} {label}"), ..run.clone() };
            (label.clone(), run.into())
        };
        labels.iter().zip(runs).map(own).collect()
    };
    let (new, old) = (side("new", new), side("old", old));
    compare(&labelled(&new), &labelled(&old), options).unwrap()
}

fn labelled(side: &[(String, Observation)]) -> Vec<Labelled<'_>> {
    side.iter().map(|(label, run)| Labelled { label, run }).collect()
}

fn runs(us: &[u64]) -> Vec<Run> {
    us.iter().map(|&us| run(us)).collect()
}

const LOW: [u64; 5] = [100, 103, 97, 101, 99];

/// A run of a program that cuts values off to whole µs up to 400 µs, with 40 samples of `us` µs or more, all
/// of the same size.
fn in_steps(us: u64) -> Run {
    let (tail, count) = (us.min(400) * 1_000, 3_000 + us % 7);
    let mut run =
        run_of(&[&[vec![0; usize::try_from(count).unwrap()], vec![us * 1_000; 40]].concat()]);
    let d = &mut run.threads[0].expiries;
    let end = (us + 1) * 1_000;
    let buckets = [(0, 1_000, count), (tail, end, 40)];
    let bucket = |(lower, upper, count)| Bucket { lower, upper, count };
    d.histogram = Histogram::from_buckets(buckets.map(bucket).into()).unwrap();
    d.stated = Some(Stated { resolution_ns: 1_000, ..Stated::default() });
    run
}

#[test]
fn runs_of_which_only_bounds_are_known_are_shown_with_them() {
    let [new, old] = [[2, 3, 4, 2, 3], [5_000, 6, 7, 900, 5]].map(|us| us.map(in_steps));
    let got = held(&new, &old, &Options::default());
    let text = text(&got, PLAIN);
    let (_, runs) = text.split_once("      run  ").unwrap();
    let (runs, _) = runs.split_once("\n\n").unwrap();
    expect![[r#"
        samples               p99.9      max        max of 3,040   kernel
         new  runs/2026-11-21    3,042  2.00 µs to 3.00 µs  2.00 µs  2.00 µs to 3.00 µs  6.12.95
         new  runs/2026-11-22    3,043  3.00 µs to 4.00 µs  3.00 µs  3.00 µs to 4.00 µs  6.12.95
         new  runs/2026-11-23    3,044  4.00 µs to 5.00 µs  4.00 µs  4.00 µs to 5.00 µs  6.12.95
         new  runs/2026-11-24    3,042  2.00 µs to 3.00 µs  2.00 µs  2.00 µs to 3.00 µs  6.12.95
         new  runs/2026-11-25    3,043  3.00 µs to 4.00 µs  3.00 µs  3.00 µs to 4.00 µs  6.12.95
         old  runs/2026-11-21    3,042   400 µs to 5.00 ms  5.00 ms             5.00 ms  6.12.95
         old  runs/2026-11-22    3,046  6.00 µs to 7.00 µs  6.00 µs  6.00 µs to 7.00 µs  6.12.95
         old  runs/2026-11-23    3,040  7.00 µs to 8.00 µs  7.00 µs  7.00 µs to 8.00 µs  6.12.95
         old  runs/2026-11-24    3,044    400 µs to 901 µs   900 µs              900 µs  6.12.95
         old  runs/2026-11-25    3,045  5.00 µs to 6.00 µs  5.00 µs  5.00 µs to 6.00 µs  6.12.95"#]]
    .assert_eq(runs);
    // The same, where it can be 0.
    assert_eq!(quantity::within(Some([0, 999])), "≤ 999 ns");
}

#[test]
fn one_side_after_the_other_is_told_in_every_format() {
    let begun = |us: &[u64], minute: u64| -> Vec<Run> {
        let started = |i: u64| format!("2026-11-21T01:{:02}:00Z", minute + i);
        us.iter().zip(0..).map(|(&us, i)| Run { started: started(i), ..run(us) }).collect()
    };
    let (new, old) = (begun(&LOW.map(|us| us * 3 / 2), 5), begun(&LOW, 0));
    let got = held(&new, &old, &Options::default());
    let text = text(&got, PLAIN);
    let message: Vec<&str> = text.lines().filter(|line| !line.starts_with(" new ")).collect();
    expect![[r#"
        Inconclusive: p99.9 1.50 × (1.45–1.55), max 1.50 × (1.45–1.55); 5 runs against 5, p = 0.016, margin
        10 %.
        Throughput of the load: inconclusive (1.00 ×).

                           new             old  new / old
         p50            112 µs         75.0 µs     1.50 ×  (1.45–1.55)
         p99            150 µs          100 µs     1.50 ×  (1.45–1.55)
         p99.9         1.50 ms         1.00 ms     1.50 ×  (1.45–1.55)  inconclusive
         max           15.0 ms         10.0 ms     1.50 ×  (1.45–1.55)  inconclusive
         find   41,100 files/s  41,100 files/s     1.00 ×  (1.00–1.00)

         ? All new runs were measured after all old ones. A drift of the machine could look like a
           difference. Without drift, the verdict would be: worse. Measure the sides alternately (wakescope
           compare --interleave-plan 5), or accept the risk: --accept-blocks.
    "#]].assert_eq(&(message[..14].join("\n") + "\n"));
    assert!(markdown(&got).contains("All new runs were measured after all old ones"));
    let xml = junit(&got);
    assert!(xml.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"2\""), "{xml}");
}

#[test]
fn the_answer_comes_first() {
    let options = Options {
        max_regression: Some(0.1),
        limits: vec!["p99.9=1.5ms".parse().unwrap(), "100ms".parse().unwrap()],
        ..Options::default()
    };
    let mut got = held(&runs(&LOW.map(|us| us * 3 / 2)), &runs(&LOW), &options);
    got.notes.push("A note.".into());
    expect![[r#"
        Worse: p99.9 1.50 × (1.45–1.55), max 1.50 × (1.45–1.55); 5 runs against 5, p = 0.016, margin 10 %.
        Throughput of the load: no difference (1.00 ×).
        Worse by more than 10 %: p99.9, max.
        above the limit p99.9 ≤ 1.50 ms: 1.54 ms (runs/2026-11-22)
        within the limit max ≤ 100 ms: 15.4 ms at most (runs/2026-11-22)

                           new             old  new / old
         p50            112 µs         75.0 µs     1.50 ×  (1.45–1.55)
         p99            150 µs          100 µs     1.50 ×  (1.45–1.55)
         p99.9         1.50 ms         1.00 ms     1.50 ×  (1.45–1.55)  worse
         max           15.0 ms         10.0 ms     1.50 ×  (1.45–1.55)  worse
         find   41,100 files/s  41,100 files/s     1.00 ×  (1.00–1.00)

         ! A note.

                          run  samples    p99.9      max   kernel
         new  runs/2026-11-21    4,000  1.50 ms  15.0 ms  6.12.95
         new  runs/2026-11-22    4,000  1.54 ms  15.4 ms  6.12.95
         new  runs/2026-11-23    4,000  1.45 ms  14.5 ms  6.12.95
         new  runs/2026-11-24    4,000  1.51 ms  15.1 ms  6.12.95
         new  runs/2026-11-25    4,000  1.48 ms  14.8 ms  6.12.95
         old  runs/2026-11-21    4,000  1.00 ms  10.0 ms  6.12.95
         old  runs/2026-11-22    4,000  1.03 ms  10.3 ms  6.12.95
         old  runs/2026-11-23    4,000   971 µs  9.70 ms  6.12.95
         old  runs/2026-11-24    4,000  1.01 ms  10.1 ms  6.12.95
         old  runs/2026-11-25    4,000   990 µs  9.90 ms  6.12.95

         Figures are geometric means over runs; the unit of analysis is the run, not the wakeup.
         p: permutation test, all 252 splits of the runs, corrected for 2 figures (Holm); intervals: the
         same test, 95 %.
         --max-regression fails by a one-sided test of this kind, corrected for 2 figures (Holm).
    "#]].assert_eq(&text(&got, PLAIN));
    expect![[r#"
        **Worse: p99.9 1.50 × (1.45–1.55), max 1.50 × (1.45–1.55); 5 runs against 5, p = 0.016, margin 10 %.**
        Throughput of the load: no difference (1.00 ×).

        - ✗ Worse by more than 10 %: p99.9, max.
        - ✗ above the limit p99.9 ≤ 1.50 ms: 1.54 ms (runs/2026-11-22)
        - ✓ within the limit max ≤ 100 ms: 15.4 ms at most (runs/2026-11-22)

        | | new | old | new / old | interval | |
        |---|---:|---:|---:|---|---|
        | p50 | 112 µs | 75.0 µs | 1.50 × | (1.45–1.55) |  |
        | p99 | 150 µs | 100 µs | 1.50 × | (1.45–1.55) |  |
        | p99.9 | 1.50 ms | 1.00 ms | 1.50 × | (1.45–1.55) | worse |
        | max | 15.0 ms | 10.0 ms | 1.50 × | (1.45–1.55) | worse |
        | find | 41,100 files/s | 41,100 files/s | 1.00 × | (1.00–1.00) | |

        - A note.

        Figures are geometric means over runs; the unit of analysis is the run, not the wakeup. p: permutation test, all 252 splits of the runs, corrected for 2 figures (Holm); intervals: the same test, 95 %. --max-regression fails by a one-sided test of this kind, corrected for 2 figures (Holm).
    "#]].assert_eq(&markdown(&got));
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="4" failures="3" errors="0" skipped="0">
        <testsuite name="wakescope compare" tests="4" failures="3" errors="0" skipped="0">
        <testcase classname="wakescope.compare.wakeup-latency" name="p99.9"><failure message="p99.9 1.50 × (1.45–1.55), p = 0.016"/></testcase>
        <testcase classname="wakescope.compare.wakeup-latency" name="max"><failure message="max 1.50 × (1.45–1.55), p = 0.016"/></testcase>
        <testcase classname="wakescope.compare.wakeup-latency" name="p99.9 ≤ 1.50 ms"><failure message="above the limit p99.9 ≤ 1.50 ms: 1.54 ms (runs/2026-11-22)"/></testcase>
        <testcase classname="wakescope.compare.wakeup-latency" name="max ≤ 100 ms"/>
        <system-out>Worse: p99.9 1.50 × (1.45–1.55), max 1.50 × (1.45–1.55); 5 runs against 5, p = 0.016, margin 10 %.
        Throughput of the load: no difference (1.00 ×).
        Worse by more than 10 %: p99.9, max.
        above the limit p99.9 ≤ 1.50 ms: 1.54 ms (runs/2026-11-22)
        within the limit max ≤ 100 ms: 15.4 ms at most (runs/2026-11-22)

                           new             old  new / old
         p50            112 µs         75.0 µs     1.50 ×  (1.45–1.55)
         p99            150 µs          100 µs     1.50 ×  (1.45–1.55)
         p99.9         1.50 ms         1.00 ms     1.50 ×  (1.45–1.55)  worse
         max           15.0 ms         10.0 ms     1.50 ×  (1.45–1.55)  worse
         find   41,100 files/s  41,100 files/s     1.00 ×  (1.00–1.00)

         ! A note.

                          run  samples    p99.9      max   kernel
         new  runs/2026-11-21    4,000  1.50 ms  15.0 ms  6.12.95
         new  runs/2026-11-22    4,000  1.54 ms  15.4 ms  6.12.95
         new  runs/2026-11-23    4,000  1.45 ms  14.5 ms  6.12.95
         new  runs/2026-11-24    4,000  1.51 ms  15.1 ms  6.12.95
         new  runs/2026-11-25    4,000  1.48 ms  14.8 ms  6.12.95
         old  runs/2026-11-21    4,000  1.00 ms  10.0 ms  6.12.95
         old  runs/2026-11-22    4,000  1.03 ms  10.3 ms  6.12.95
         old  runs/2026-11-23    4,000   971 µs  9.70 ms  6.12.95
         old  runs/2026-11-24    4,000  1.01 ms  10.1 ms  6.12.95
         old  runs/2026-11-25    4,000   990 µs  9.90 ms  6.12.95

         Figures are geometric means over runs; the unit of analysis is the run, not the wakeup.
         p: permutation test, all 252 splits of the runs, corrected for 2 figures (Holm); intervals: the
         same test, 95 %.
         --max-regression fails by a one-sided test of this kind, corrected for 2 figures (Holm).
        </system-out>
        </testsuite>
        </testsuites>
    "#]].assert_eq(&junit(&got));
}

#[test]
fn doubt_is_explained() {
    let got = held(&runs(&[50, 90, 100, 190, 300]), &runs(&LOW), &Options::default());
    expect![[r#"
        Inconclusive: p99.9 1.21 × (0.66–2.44), max 1.21 × (0.66–2.44); 5 runs against 5, p = 1, margin 10
        %.
        Throughput of the load: no difference (1.00 ×).

                           new             old  new / old
         p50           90.6 µs         75.0 µs     1.21 ×  (0.66–2.43)
         p99            121 µs          100 µs     1.21 ×  (0.66–2.44)
         p99.9         1.21 ms         1.00 ms     1.21 ×  (0.66–2.44)  inconclusive
         max           12.1 ms         10.0 ms     1.21 ×  (0.66–2.44)  inconclusive
         find   41,100 files/s  41,100 files/s     1.00 ×  (1.00–1.00)

         ? p99.9 is undecided: 1.21 × (0.66–2.44), p = 1. About 131 runs a side (126 more) would probably
           decide it, if their variation is the same.
         ? max is undecided: 1.21 × (0.66–2.44), p = 1. About 131 runs a side (126 more) would probably
           decide it, if their variation is the same.

                          run  samples    p99.9      max   kernel
         new  runs/2026-11-21    4,000   500 µs  5.00 ms  6.12.95
         new  runs/2026-11-22    4,000   900 µs  9.00 ms  6.12.95
         new  runs/2026-11-23    4,000  1.00 ms  10.0 ms  6.12.95
         new  runs/2026-11-24    4,000  1.90 ms  19.0 ms  6.12.95
         new  runs/2026-11-25    4,000  3.00 ms  30.0 ms  6.12.95
         old  runs/2026-11-21    4,000  1.00 ms  10.0 ms  6.12.95
         old  runs/2026-11-22    4,000  1.03 ms  10.3 ms  6.12.95
         old  runs/2026-11-23    4,000   971 µs  9.70 ms  6.12.95
         old  runs/2026-11-24    4,000  1.01 ms  10.1 ms  6.12.95
         old  runs/2026-11-25    4,000   990 µs  9.90 ms  6.12.95

         Figures are geometric means over runs; the unit of analysis is the run, not the wakeup.
         p: permutation test, all 252 splits of the runs, corrected for 2 figures (Holm); intervals: the
         same test, 95 %.
    "#]].assert_eq(&text(&got, PLAIN));
    let got = held(&runs(&[150]), &runs(&[100]), &Options::default());
    expect![[r#"
        Inconclusive: p99.9 1.50 ×, max 1.50 ×; 1 run against 1, margin 10 %.
        Throughput of the load: inconclusive (1.00 ×).

                           new             old  new / old
         p50            113 µs         75.0 µs     1.50 ×
         p99            150 µs          100 µs     1.50 ×
         p99.9         1.50 ms         1.00 ms     1.50 ×    inconclusive
         max           15.0 ms         10.0 ms     1.50 ×    inconclusive
         find   41,200 files/s  41,100 files/s     1.00 ×

         ? One run a side gives no verdict: the variation between runs is unknown. It takes 5 a side.
         · p50 of these two runs: 1.50 × to 1.50 × (95 % interval for independent samples).
         · p99 of these two runs: 1.50 × to 1.50 × (95 % interval for independent samples).
         · p99.9 of these two runs: their samples give no 95 % confidence interval.

                          run  samples    p99.9      max   kernel
         new  runs/2026-11-21    4,000  1.50 ms  15.0 ms  6.12.95
         old  runs/2026-11-21    4,000  1.00 ms  10.0 ms  6.12.95

         Figures are geometric means over runs; the unit of analysis is the run, not the wakeup.
    "#]].assert_eq(&text(&got, PLAIN));
}

#[test]
fn both_tests_are_named_where_both_count() {
    let basis = |new: &[u64]| basis(&held(&runs(new), &runs(&LOW), &Options::default())).join(" ");
    let (even, uneven) = (basis(&LOW.map(|us| us * 2)), basis(&[200, 203, 199]));
    assert!(!even.contains("Welch") && even.contains("intervals: the same test,"), "{even}");
    assert!(
        uneven.contains("all 56 splits of the runs, and Welch's t-test for")
            && uneven.contains("intervals: the same tests,"),
        "{uneven}"
    );
}

#[test]
fn both_tests_are_named_where_a_group_needs_the_second() {
    let mut got = held_watches(&[1_000, 200], &[1_000, 200]);
    assert!(!basis(&got).join(" ").contains("Welch"));
    // One of the new watches lacks the group.
    let groups = &mut got.watches.as_mut().unwrap().groups;
    groups.iter_mut().filter_map(|group| group.tested.as_mut()).for_each(|e| e.runs[0] -= 1);
    assert!(basis(&got).join(" ").contains("Welch"));
}

#[test]
fn a_short_run_and_a_load_that_did_nothing_are_told_in_every_format() {
    let (mut new, mut old) = (runs(&LOW.map(|us| us * 3 / 2)), runs(&LOW));
    new[1].load[0].per_second = 0.0;
    old.push(run_of(&[&[80_000, 90_000, 90_001]]));
    old[5].plan.load = vec!["find".into()];
    let got = held(&new, &old, &Options::default());
    let text = text(&got, PLAIN);
    let (shown, _) = text.split_once("\n\n        ").unwrap();
    expect![[r#"
        Worse: p99.9 1.50 × (1.45–1.55) of 5 runs against 5, max of 4,000 1.50 × (1.45–1.55) of 5 runs
        against 5; 5 runs against 6, p = 0.016, margin 10 %.
        Throughput of the load: inconclusive (1.00 × of 4 runs against 5). It did no work, or none is
          recorded, in 1 of 5 new runs and 1 of 6 old runs."#]].assert_eq(shown);
    let markdown = markdown(&got);
    let (shown, _) = markdown.split_once("\n- ").unwrap();
    expect![[r#"
        **Worse: p99.9 1.50 × (1.45–1.55) of 5 runs against 5, max of 4,000 1.50 × (1.45–1.55) of 5 runs against 5; 5 runs against 6, p = 0.016, margin 10 %.**
        Throughput of the load: inconclusive (1.00 × of 4 runs against 5). It did no work, or none is recorded, in 1 of 5 new runs and 1 of 6 old runs.

        | | new | old | new / old | interval | |
        |---|---:|---:|---:|---|---|
        | p50 | 112 µs | 75.0 µs | 1.50 × | (1.45–1.55) |  |
        | p99 | 150 µs | 100 µs | 1.50 × | (1.45–1.55) |  |
        | p99.9 | 1.50 ms | 1.00 ms | 1.50 × | (1.45–1.55) | worse |
        | max of 4,000 | 15.0 ms | 10.0 ms | 1.50 × | (1.45–1.55) | worse |
        | find | 41,100 files/s | 41,100 files/s | 1.00 × | (1.00–1.00) | of 4 runs against 5 |
    "#]].assert_eq(shown);
    let slower =
        "<failure message=\"max of 4,000 1.50 × (1.45–1.55) of 5 runs against 5, p = 0.016\"/>";
    assert!(junit(&got).contains(slower), "{}", junit(&got));
    // No run of a side did any work.
    new.iter_mut().for_each(|run| run.load[0].per_second = 0.0);
    let got = held(&new, &runs(&LOW), &Options::default());
    let want = "Throughput of the load: not known. It did no work, or none is recorded, in 5 of 5 new runs.";
    assert_eq!(throughput(&got.quantities[0], &got), [want]);
}

#[test]
fn several_quantities_have_a_sentence_each() {
    use wakescope_core::source::{Quantity, Source};
    let side = |us: u64| -> Vec<Run> {
        let of = |us, quantity| {
            let source = Source { quantity, ..Source::default() };
            Run { source: Some(source), ..run(us) }
        };
        (0..4)
            .map(|i| of(us + i, Quantity::IrqLatency))
            .chain((0..4).map(|i| of(us + i, Quantity::ThreadLatency)))
            .collect()
    };
    let got = held(&side(100), &side(101), &Options::default());
    let shown = text(&got, PLAIN);
    assert!(shown.starts_with("Interrupt latency: no difference: p99.9 0.99 ×"), "{shown}");
    assert!(shown.contains("\nLatency of a kernel thread: no difference: "), "{shown}");
    assert!(
        junit(&got).contains("classname=\"wakescope.compare.interrupt-latency\" name=\"max\"/>")
    );
}

/// One column had the maxima of 3,000 samples of one quantity and of 4,000 of the other, and was called by
/// the first.
#[test]
fn runs_of_each_quantity_have_a_table_of_their_own() {
    use wakescope_core::source::{Quantity, Source};
    let of =
        |run: Run, quantity| Run { source: Some(Source { quantity, ..Source::default() }), ..run };
    let short = |us: u64| Run {
        threads: run_of(&[&[vec![us * 1_000; 2_999], vec![us * 100_000]].concat()]).threads,
        ..run(us)
    };
    let side = |us: u64, first: Run| {
        [of(first, Quantity::IrqLatency), of(run(us), Quantity::IrqLatency)]
            .into_iter()
            .chain([of(run(us), Quantity::ThreadLatency), of(run(us + 1), Quantity::ThreadLatency)])
            .collect::<Vec<_>>()
    };
    let got = held(&side(100, short(100)), &side(101, short(101)), &Options::default());
    let shown = text(&got, PLAIN);
    let (_, runs) = shown.split_once("\n ! ").unwrap();
    let (_, runs) = runs.split_once("\n\n").unwrap();
    let (runs, _) = runs.split_once("\n\n Figures").unwrap();
    expect![[r#"
        shown:
         Interrupt latency
                          run  samples    p99.9      max  max of 3,000   kernel
         new  runs/2026-11-21    3,000   100 µs  10.0 ms       10.0 ms  6.12.95
         new  runs/2026-11-22    4,000  1.00 ms  10.0 ms       5.62 ms  6.12.95
         old  runs/2026-11-21    3,000   101 µs  10.1 ms       10.1 ms  6.12.95
         old  runs/2026-11-22    4,000  1.01 ms  10.1 ms       5.68 ms  6.12.95

         Latency of a kernel thread
                          run  samples    p99.9      max   kernel
         new  runs/2026-11-23    4,000  1.00 ms  10.0 ms  6.12.95
         new  runs/2026-11-24    4,000  1.01 ms  10.1 ms  6.12.95
         old  runs/2026-11-23    4,000  1.01 ms  10.1 ms  6.12.95
         old  runs/2026-11-24    4,000  1.02 ms  10.2 ms  6.12.95"#]]
    .assert_eq(&format!("shown:\n{runs}"));
}

#[test]
fn what_two_runs_say_names_the_quantity_where_there_are_several() {
    use wakescope_core::source::{Quantity, Source};
    let of =
        |us, quantity| Run { source: Some(Source { quantity, ..Source::default() }), ..run(us) };
    let side = |irq, thread| [of(irq, Quantity::IrqLatency), of(thread, Quantity::ThreadLatency)];
    let got = held(&side(150, 90), &side(100, 100), &Options::default());
    for shown in [text(&got, PLAIN), markdown(&got)] {
        for want in [
            "interrupt latency: p50 of these two runs: 1.50 × to 1.50 ×",
            "latency of a kernel thread: p50 of these two runs: 0.90 × to 0.90 ×",
        ] {
            assert!(shown.contains(want), "{want}: {shown}");
        }
    }
}

#[test]
fn virtual_time_is_called_virtual() {
    for explanation in [None, Some(Explanation::default())] {
        let of = |us| Run {
            time_domain: TimeDomain::Virtual,
            explanation: explanation.clone(),
            ..run(us)
        };
        let shown = text(&held(&[of(3)], &[of(4)], &Options::default()), PLAIN);
        assert!(shown.contains(" times are virtual: they count instructions\n"));
        assert!(shown.contains("Virtual time counts instructions"));
        assert_eq!(shown.contains("The tracer that explains"), explanation.is_some(), "{shown}");
    }
}

#[test]
fn hostile_text_does_no_harm() {
    let hostile = "<b a=\"'\">\u{1b}[2J\n|*_`\u{202e}\u{ffff}".repeat(30);
    let mut new = runs(&LOW);
    new[0].host.release = hostile.clone();
    new[0].load[0].name = hostile.clone();
    new[0].load[0].unit = hostile.clone();
    new[1].host.cpu_model = Some(hostile.clone());
    new[2].host.cpu_model = Some("other".into());
    let mut got = held(
        &new,
        &runs(&LOW),
        &Options { limits: vec!["1us".parse().unwrap()], ..Options::default() },
    );
    got.new[0].label = hostile.clone();
    got.limits[0].run = hostile.clone();
    got.reasons.push(hostile);
    let text = text(&got, PLAIN);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!markdown(&got).replace("\\<b", "").contains("<b"), "{}", markdown(&got));
    let xml = junit(&got);
    assert!(!xml.contains("<b") && !xml.contains('\u{ffff}') && !xml.contains('\u{1b}'), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), 3);
}

/// A watch of tasks that wait about so many µs each, the first in a cgroup with a long name.
fn watch(us: &[u64], own: u64) -> Observed {
    let waits = |us: u64| {
        let ns = us * 1_000 + own;
        Distribution::of((0..3_990).map(|_| ns / 4).chain([ns; 10]))
    };
    let group = |place: usize| Group {
        cgroup: Some(
            if place == 0 { "/system.slice/system-a.slice/web.service" } else { "/b" }.into(),
        ),
        comm: Some(format!("task-{place}")),
    };
    let groups: BTreeMap<Group, Distribution> =
        us.iter().enumerate().map(|(place, &us)| (group(place), waits(us))).collect();
    let all: Vec<&Distribution> = groups.values().collect();
    let expiries = Distribution::of_all(&all, |waits| waits);
    let sums = Sums { count: expiries.count, ..Sums::default() };
    let switches = LoadResult {
        name: SWITCHES.into(),
        unit: SWITCHES.into(),
        per_second: 900.0,
        ..LoadResult::default()
    };
    let source = Source { quantity: Quantity::RunqueueDelay, ..Source::default() };
    let run = Observation {
        started: format!("2026-11-21T01:00:{own:02}Z"),
        duration_ns: 60_000_000_000,
        source: Some(source),
        load: vec![switches],
        threads: vec![ThreadSums { cpu: Some(0), expiries: sums, ..ThreadSums::default() }],
        expiries,
        ..Observation::default()
    };
    Observed { run, covered_ns: 60_000_000_000, cpus: 2, groups, ..Observed::default() }
}

fn held_watches(new: &[u64], old: &[u64]) -> Compare {
    held_watches_but(new, old, |_| {})
}

/// The same, with a change of all watches.
fn held_watches_but(new: &[u64], old: &[u64], change: impl Fn(&mut [Observed])) -> Compare {
    let sides = (0..5).map(|own| watch(new, own)).chain((5..10).map(|own| watch(old, own)));
    let mut watches: Vec<Observed> = sides.collect();
    change(&mut watches);
    let labels: Vec<String> = (0..10).map(|i| format!("host-{i}")).collect();
    let watched: Vec<Watched> =
        labels.iter().zip(&watches).map(|(label, watch)| Watched { label, watch }).collect();
    let (new, old) = watched.split_at(5);
    compare_watches(new, old, Grouping::Series, &Options::default()).unwrap()
}

/// Longer watches see more of the bursts. A row had the ratio that does not allow for that, beside a verdict that does.
#[test]
fn a_row_has_the_ratio_that_its_verdict_rests_on() {
    let longer = |watches: &mut [Observed]| {
        watches[..5].iter_mut().for_each(|watch| watch.covered_ns *= 3);
    };
    let got = held_watches_but(&[1_000, 540], &[1_000, 200], longer);
    let (_, rows) = watches::rows(got.watches.as_ref().unwrap(), [5, 5]).unwrap();
    let cells: Vec<[&str; 2]> = rows.iter().map(|row| [&*row[3], &*row[5]]).collect();
    assert_eq!(cells, [["at most 1.00 ×", "inconclusive"], ["0.90 to 2.70 ×", "inconclusive"]]);
    let said = watches::tested(&got).into_iter().map(|(.., said)| said);
    for (row, said) in rows.iter().zip(said) {
        assert!(said.contains(&row[3]), "{said}: {row:?}");
    }
}

#[test]
fn watches_are_shown_with_their_groups() {
    let got = held_watches(&[3_000, 200, 200, 200, 100, 100], &[1_000, 200, 200, 200, 100]);
    expect![[r#"
        Worse: of 4 tested series, longer waits in 1 (task-0 in /system.slice/system-a.slice/web.service),
        no difference in 3.
        All waits together: worse: p99.9 3.00 × (2.82–3.19), max 3.00 × (2.82–3.19); 5 runs against 5, p =
        0.048, margin 10 %.
        Load: no difference (1.00 × as many switches per second).

                              new             old  new / old
         p50              50.0 µs         50.0 µs     1.00 ×  (0.94–1.06)
         p99               751 µs          250 µs     3.00 ×  (2.82–3.19)
         p99.9             751 µs          250 µs     3.00 ×  (2.82–3.19)  worse
         max              3.00 ms         1.00 ms     3.00 ×  (2.82–3.19)  worse
         waited         63.8 ms/s       28.5 ms/s     2.24 ×  (2.24–2.24)
         switches  900 switches/s  900 switches/s     1.00 ×  (1.00–1.00)

         series, p99.9                    new      old  new / old                              waits/s  waited
         task-0 in …lice/web.service  3.00 ms  1.00 ms     3.00 ×  (2.82–3.19)          worse   1.00 ×  3.00 ×
         task-1 in /b                  200 µs   200 µs     1.00 ×  (0.94–1.06)  no difference   1.00 ×  1.00 ×
         task-2 in /b                  200 µs   200 µs     1.00 ×  (0.94–1.06)  no difference   1.00 ×  1.00 ×
         task-3 in /b                  200 µs   200 µs     1.00 ×  (0.94–1.06)  no difference   1.00 ×  1.00 ×
         task-4 in /b                  100 µs   100 µs     1.00 ×                  not tested   1.00 ×  1.00 ×

         ! The order is not balanced: in 100 % of all pairs of a new and an old run, the old one started
           later. A drift of the machine could look like part of the difference.
         ! Runs have from 20,000 to 24,000 samples: maxima are compared over 20,000 samples; a longer run
           counts with the mean maximum of so many of its samples.
         ! Both sides have 5 series. Of these, 4 are tested, those with the most waiting: 5 runs against 5
           can decide no more at once, or too few runs have the 2,000 waits that p99.9 needs.
         ! Only new watches have 1 series: task-5 in /b.

                 run  samples   p99.9      max
         new  host-0   24,000  751 µs  3.00 ms
         new  host-1   24,000  751 µs  3.00 ms
         new  host-2   24,000  751 µs  3.00 ms
         new  host-3   24,000  751 µs  3.00 ms
         new  host-4   24,000  751 µs  3.00 ms
         old  host-5   20,000  250 µs  1.00 ms
         old  host-6   20,000  250 µs  1.00 ms
         old  host-7   20,000  250 µs  1.00 ms
         old  host-8   20,000  250 µs  1.00 ms
         old  host-9   20,000  250 µs  1.00 ms

         Figures are geometric means over watches: each is one run, however many windows it has.
         Percentiles may be above their true values by the width of a bucket, 6.25 %; intervals and
         verdicts allow for that.
         p: permutation test, all 252 splits of the runs, corrected for 6 figures (Holm); intervals: the
         same test, 95 %.
    "#]].assert_eq(&text(&got, PLAIN));
    let got = markdown(&got);
    expect![[r#"
        **Worse: of 4 tested series, longer waits in 1 (task-0 in /system.slice/system-a.slice/web.service), no difference in 3.**

        **All waits together: worse: p99.9 3.00 × (2.82–3.19), max 3.00 × (2.82–3.19); 5 runs against 5, p = 0.048, margin 10 %.**
        Load: no difference (1.00 × as many switches per second).

        | | new | old | new / old | interval | |
        |---|---:|---:|---:|---|---|
        | p50 | 50.0 µs | 50.0 µs | 1.00 × | (0.94–1.06) |  |
        | p99 | 751 µs | 250 µs | 3.00 × | (2.82–3.19) |  |
        | p99.9 | 751 µs | 250 µs | 3.00 × | (2.82–3.19) | worse |
        | max | 3.00 ms | 1.00 ms | 3.00 × | (2.82–3.19) | worse |
        | waited | 63.8 ms/s | 28.5 ms/s | 2.24 × | (2.24–2.24) | |
        | switches | 900 switches/s | 900 switches/s | 1.00 × | (1.00–1.00) | |

        | series, p99.9 | new | old | new / old |  |  | waits/s | waited |
        |---|---:|---:|---:|---|---|---:|---:|
        | task-0 in …lice/web.service | 3.00 ms | 1.00 ms | 3.00 × | (2.82–3.19) | worse | 1.00 × | 3.00 × |
        | task-1 in /b | 200 µs | 200 µs | 1.00 × | (0.94–1.06) | no difference | 1.00 × | 1.00 × |
        | task-2 in /b | 200 µs | 200 µs | 1.00 × | (0.94–1.06) | no difference | 1.00 × | 1.00 × |
        | task-3 in /b | 200 µs | 200 µs | 1.00 × | (0.94–1.06) | no difference | 1.00 × | 1.00 × |
        | task-4 in /b | 100 µs | 100 µs | 1.00 × |  | not tested | 1.00 × | 1.00 × |"#]].assert_eq(&got[..got.find("\n\n- ").unwrap()]);
}

#[test]
fn tasks_that_some_watches_do_not_have_are_counted() {
    let us = [1_000, 200];
    let got = held_watches_but(&us, &us, |watches| {
        watches[1..5].iter_mut().for_each(|watch| {
            watch.groups.retain(|group, _| group.comm.as_deref() != Some("task-1"));
        });
    });
    let text = text(&got, PLAIN);
    let (_, table) = text.split_once("\n series, ").unwrap();
    expect![[r#"
        p99.9                    new      old  new / old                              waits/s  waited   watches
         task-0 in …lice/web.service  1.00 ms  1.00 ms     1.00 ×  (0.94–1.06)  no difference   1.00 ×  1.00 ×
         task-1 in /b                  200 µs   200 µs     1.00 ×                  not tested   1.00 ×  1.00 ×  1/5, 5/5"#]].assert_eq(table.split_once("\n\n").unwrap().0);
    let markdown = markdown(&got);
    let (_, table) = markdown.split_once("\n| series, ").unwrap();
    expect![[r#"
        p99.9 | new | old | new / old |  |  | waits/s | waited | watches |
        |---|---:|---:|---:|---|---|---:|---:|---|
        | task-0 in …lice/web.service | 1.00 ms | 1.00 ms | 1.00 × | (0.94–1.06) | no difference | 1.00 × | 1.00 × |  |
        | task-1 in /b | 200 µs | 200 µs | 1.00 × |  | not tested | 1.00 × | 1.00 × | 1/5, 5/5 |"#]].assert_eq(table.split_once("\n\n").unwrap().0);
}
