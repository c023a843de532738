use expect_test::expect;
use wakescope_core::observation::Observation;
use wakescope_core::run::Run;
use wakescope_stats::compare::Labelled;
use wakescope_stats::trend::{Options, trend};

use super::*;
use crate::text::tests::run_of;

const PLAIN: Style = Style { colour: false };

/// A run of 3,000 samples up to `us` µs, the largest ten times that.
fn run(us: u64) -> Run {
    let samples: Vec<u64> = (1..3_000).map(|i| us * (i % 997)).chain([us * 10_000]).collect();
    run_of(&[&samples])
}

fn followed(runs: &[Run], label: &str) -> Trend {
    let labels: Vec<String> = (0..runs.len()).map(|i| format!("{label}{i:02}")).collect();
    let mut observed: Vec<Observation> = runs.iter().cloned().map(Observation::from).collect();
    observed.iter_mut().zip(&labels).for_each(|(run, label)| run.id.clone_from(label));
    let labelled: Vec<Labelled> =
        labels.iter().zip(&observed).map(|(label, run)| Labelled { label, run }).collect();
    trend(&labelled, &Options::default()).unwrap()
}

const CHANGED: [u64; 16] =
    [100, 104, 97, 101, 99, 103, 98, 102, 155, 149, 151, 148, 153, 150, 147, 152];

#[test]
fn what_changed_comes_first() {
    let mut got = followed(&CHANGED.map(run), "night-");
    got.notes.push("A note.".into());
    expect![[r#"
        p99.9 changed once: 1.50 × from night-08 on (p < 0.001).
        max changed once: 1.50 × from night-08 on (p < 0.001).

         run         p99.9                                  max
         night-00  99.7 µs  ██████████▎                 1.00 ms  ██████████▎
         night-01   104 µs  ██████████▋                 1.04 ms  ██████████▋
         night-02  96.6 µs  █████████▉                   970 µs  ██████████
         night-03   101 µs  ██████████▍                 1.01 ms  ██████████▍
         night-04  98.7 µs  ██████████▏                  990 µs  ██████████▏
         night-05   103 µs  ██████████▌                 1.03 ms  ██████████▋
         night-06  97.7 µs  ██████████                   980 µs  ██████████
         night-07   102 µs  ██████████▌                 1.02 ms  ██████████▌
         night-08   155 µs  ████████████████  ↑ 1.50 ×  1.55 ms  ████████████████  ↑ 1.50 ×
         night-09   148 µs  ███████████████▎            1.49 ms  ███████████████▍
         night-10   151 µs  ███████████████▌            1.51 ms  ███████████████▌
         night-11   147 µs  ███████████████▎            1.48 ms  ███████████████▎
         night-12   153 µs  ███████████████▊            1.53 ms  ███████████████▊
         night-13   150 µs  ███████████████▍            1.50 ms  ███████████████▍
         night-14   146 µs  ███████████████▏            1.47 ms  ███████████████▏
         night-15   152 µs  ███████████████▋            1.52 ms  ███████████████▋

         ! A note.

         Change points: E-divisive, 4,999 permutations each, --seed 1; false positive rate 5 % per series.
    "#]].assert_eq(&text(&got, PLAIN));
}

#[test]
fn nothing_changed() {
    let shown = |us: &[u64]| {
        let runs: Vec<Run> = us.iter().copied().map(run).collect();
        text(&followed(&runs, ""), PLAIN)
    };
    let text = shown(&[100, 101, 99, 100, 102, 98, 101, 99, 100]);
    assert!(text.starts_with("p99.9: no change found.\nmax: no change found.\n"), "{text}");
    assert!(text.contains("Change points: E-divisive, all orders of the runs;"), "{text}");
    for (us, note) in [
        (&[1, 2, 1][..], "3 runs are too few"),
        // A step of 300 µs.
        (
            &[22, 23, 22, 322, 321, 322],
            "6 runs are too few: they cannot show a change of any size.",
        ),
    ] {
        let text = shown(us);
        let not_known =
            "p99.9: whether it changed is not known.\nmax: whether it changed is not known.\n";
        assert!(text.starts_with(not_known), "{text}");
        assert!(text.contains(note), "{text}");
    }
}

#[test]
fn long_series_are_listed_where_they_changed() {
    let runs: Vec<Run> = (0..130).map(|i| run(if i < 60 { 100 + i % 3 } else { 300 })).collect();
    let text = text(&followed(&runs, "n"), PLAIN);
    let listed: Vec<&str> = text.lines().filter(|line| line.starts_with(" n")).collect();
    assert_eq!(listed.len(), 2, "{text}");
    assert!(listed[1].contains("↑ 2.97 ×"), "{text}");
    assert!(text.contains("\n 128 more runs without a change\n"), "{text}");
    let short = self::text(&followed(&runs[..120], "n"), PLAIN);
    assert!(!short.contains("without a change"), "{short}");
}

#[test]
fn a_change_that_may_be_one_of_the_lengths_is_pointed_out() {
    let mut got = followed(&CHANGED.map(run), "night-");
    got.series[0].p999_unclear = vec![Unclear { at: 12, after: "night-12".into() }];
    let text = text(&got, PLAIN);
    let want =
        "p99.9 changed once: 1.50 × from night-08 on (p < 0.001), and perhaps from night-12 on.\n";
    assert!(text.starts_with(want), "{text}");
    let of_max = "max changed once: 1.50 × from night-08 on (p < 0.001).\n";
    assert!(text.contains(of_max), "{text}");
    let row = text.lines().find(|line| line.starts_with(" night-12")).unwrap();
    assert_eq!(row.matches('?').count(), 1, "{row}");
}

#[test]
fn hostile_labels_do_no_harm() {
    let text = text(&followed(&CHANGED.map(run), "\u{1b}[2J\n\u{202e}"), PLAIN);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert_eq!(text.lines().filter(|line| line.contains("[2J")).count(), 18, "{text}");
}

#[test]
fn bars_are_as_long_as_their_part() {
    for (value, want) in
        [(0, ""), (1, "▏"), (64, "████████"), (127, "███████████████▉"), (128, "████████████████")]
    {
        assert_eq!(bar(value, 128), format!("{want:<BAR$}"));
    }
    assert_eq!(bar(u64::MAX, u64::MAX).trim().chars().count(), BAR);
    assert_eq!(bar(0, 0).trim(), "");
}

#[test]
fn a_maximum_of_fewer_samples_is_called_so() {
    let mut runs: Vec<Run> = CHANGED.map(run).into();
    runs.insert(3, run_of(&[&[1_000, 2_000, 3_000]]));
    let got = text(&followed(&runs, "night-"), PLAIN);
    let want = "p99.9: whether it changed is not known.\nmax of 3,000 changed once: 1.50 × from night-09 on";
    assert!(got.starts_with(want), "{got}");
    assert!(got.contains("\n night-03        –"), "{got}");
}
