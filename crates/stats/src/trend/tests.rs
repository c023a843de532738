use super::*;
use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::observation::Observation;
use wakescope_core::random::Random;
use wakescope_core::run::{Run, Thread};
use wakescope_core::source::Source;
use wakescope_core::stated::Stated;

/// A run of one CPU with these samples.
fn run_of(samples: &[u64]) -> Run {
    let d = Distribution::of(samples.iter().copied());
    let thread = Thread { cpu: Some(0), woken: d.clone(), expiries: d, ..Thread::default() };
    Run { threads: vec![thread], ..Run::default() }
}

/// A run of 3,000 samples up to `us` µs, the largest ten times that.
fn run(us: u64) -> Run {
    run_of(&(1..3_000).map(|i| us * (i % 997)).chain([us * 10_000]).collect::<Vec<_>>())
}

fn followed(runs: &[Run], options: &Options) -> Result<Trend, Box<Refusal>> {
    let labels: Vec<String> = (0..runs.len()).map(|i| format!("night-{i}")).collect();
    let observed: Vec<Observation> = runs.iter().cloned().map(Observation::from).collect();
    let labelled = labels.iter().zip(&observed).map(|(label, run)| Labelled { label, run });
    trend(&labelled.collect::<Vec<_>>(), options)
}

#[test]
fn a_change_is_told_with_its_size() {
    let us = [100, 104, 97, 101, 99, 103, 98, 102, 155, 149, 151, 148, 153, 150, 147, 152];
    let got = followed(&us.map(run), &Options::default()).unwrap();
    let series = &got.series[0];
    for steps in [&series.p999, &series.max] {
        let [step] = &steps.as_ref().unwrap()[..] else { panic!("{steps:?}") };
        assert_eq!((step.at, &*step.before, &*step.after), (8, "night-7", "night-8"));
        assert!((step.ratio - 1.5).abs() < 0.01 && step.p_value <= 0.005, "{step:?}");
        assert!((step.after_ns / step.before_ns - step.ratio).abs() < 1e-12);
    }
    assert_eq!((series.runs.len(), series.count, got.notes.len()), (16, 3_000, 0));
}

/// A run of another program that cuts values off to whole µs. The latest 20 are about `tail_ns`.
fn in_steps(tail_ns: u64, more: u64) -> Run {
    in_rows(&[(tail_ns / 2_000, 2_000 + more), (tail_ns / 1_000, 20)])
}

/// A run of another program whose histogram has these rows: whole µs, and how many samples.
fn in_rows(rows: &[(u64, u64)]) -> Run {
    let samples = rows.iter().flat_map(|&(us, count)| (0..count).map(move |_| us * 1_000));
    let mut run = run_of(&samples.collect::<Vec<_>>());
    let d = &mut run.threads[0].expiries;
    let bucket =
        |&(us, count): &(u64, u64)| Bucket { lower: us * 1_000, upper: (us + 1) * 1_000, count };
    d.histogram = Histogram::from_buckets(rows.iter().map(bucket).collect()).unwrap();
    d.stated = Some(Stated { resolution_ns: 1_000, ..Stated::default() });
    run.source = Some(Source { resolution_ns: Some(1_000), ..Source::default() });
    run
}

#[test]
fn a_change_is_no_larger_than_steps_allow() {
    // The true tails of the first and the second half, ns, and the change that is told.
    for (first, second, want) in [
        (2_990, 3_010, None),
        (2_010, 2_990, None),
        (17_990, 18_010, Some(1.0)),
        (17_990, 27_010, Some(1.5)),
        (27_010, 17_990, Some(18.0 / 27.0)),
    ] {
        let runs: Vec<Run> =
            (0..12).map(|i| in_steps(if i < 6 { first } else { second }, i)).collect();
        let got = followed(&runs, &Options::default()).unwrap();
        for steps in [&got.series[0].p999, &got.series[0].max] {
            assert_eq!(steps.is_some(), want.is_some(), "{first} {second}: {steps:?}");
            let told: Vec<f64> = steps.iter().flatten().map(|step| step.ratio).collect();
            let is_near = told.iter().zip(want).all(|(told, want)| (told - want).abs() < 1e-3);
            assert!(told.len() == want.iter().len() && is_near, "{first} {second}: {steps:?}");
        }
        let has = |text: &str| got.notes.iter().any(|note| note.contains(text));
        assert!(has("12 runs of 12 are in steps of 1.00 µs"), "{:?}", got.notes);
        assert_eq!(has("The maximum is not followed"), want.is_none(), "{:?}", got.notes);
    }
    // Below 16 µs, only the largest value before the change and the least one after it are certain.
    for (first, second, want) in [
        (2_010, 3_990, None),
        (2_990, 4_010, Some("at least 1.33 ×")),
        (9_990, 2_010, Some("at most 0.33 ×")),
    ] {
        let runs: Vec<Run> =
            (0..12).map(|i| in_steps(if i < 6 { first } else { second }, i)).collect();
        let got = followed(&runs, &Options::default()).unwrap();
        for steps in [&got.series[0].p999, &got.series[0].max] {
            let told = steps.iter().flatten().map(Step::ratio_in_words).collect::<Vec<_>>();
            assert!(told.iter().eq(&want), "{first} {second}: {told:?}");
            assert_eq!(steps.is_some(), want.is_some(), "{first} {second}");
            assert!(steps.iter().flatten().all(|step| step.at == 6), "{steps:?}");
        }
        let has = |text: &str| got.notes.iter().any(|note| note.starts_with(text));
        assert_eq!(has("p99.9 is not followed: 12 runs have only bounds"), want.is_none());
        assert_eq!(has("p99.9: 12 runs have only bounds of it"), want.is_some());
    }
    // Values that only go to and fro between two steps have not changed.
    let runs: Vec<Run> = (0..12).map(|i| in_steps(17_990 + i % 2 * 20, i)).collect();
    let got = followed(&runs, &Options::default()).unwrap();
    assert_eq!((&got.series[0].p999, &got.series[0].max), (&Some(vec![]), &Some(vec![])));
}

#[test]
fn nothing_is_made_of_little() {
    let got = followed(&[run(100), run(101), run(300)], &Options::default()).unwrap();
    // No change would be a claim, where none could be found.
    assert_eq!((&got.series[0].p999, &got.series[0].max), (&None, &None));
    assert!(got.notes[0].starts_with("3 runs are too few"), "{:?}", got.notes);
    let enough = [100, 101, 99, 103, 102, 98, 104, 97, 105].map(run);
    let got = followed(&enough, &Options::default()).unwrap();
    assert_eq!((&got.series[0].p999, &got.series[0].max), (&Some(vec![]), &Some(vec![])));
    assert_eq!(got.notes, [""; 0]);
    let short = run_of(&[1_000; 50]);
    let got = followed(&[short, run(101)], &Options::default()).unwrap();
    assert_eq!(got.series[0].p999, None);
    assert!(got.notes[1].contains("2,000 samples"), "{:?}", got.notes);
}

#[test]
fn so_few_runs_that_no_step_is_found_are_not_said_to_be_without_one() {
    let stepped = |count: u64, alpha| {
        let us = (0..count).map(|i| if i < count / 2 { 20 + i } else { 320 + i });
        let options = Options { alpha, ..Options::default() };
        followed(&us.map(run).collect::<Vec<_>>(), &options).unwrap()
    };
    for (count, alpha, note) in [
        (
            6,
            0.05,
            "6 runs are too few: they cannot show a change of any size. The clearest one has p = 0.10, times 2 for the number of figures. It takes 9 runs.",
        ),
        (
            7,
            0.05,
            "7 runs are too few: they cannot show a change of any size. The clearest one has p = 0.058, times 2 for the number of figures. It takes 9 runs.",
        ),
        (
            8,
            0.05,
            "8 runs are too few: they cannot show a change of any size. The clearest one has p = 0.029, times 2 for the number of figures. It takes 9 runs.",
        ),
        (
            5,
            0.05,
            "5 runs are too few: a change point needs 3 runs before it and 3 after, and more to be significant. It takes 9 runs.",
        ),
        (
            5,
            0.2,
            "5 runs are too few: a change point needs 3 runs before it and 3 after. It takes 6 runs.",
        ),
        (
            12,
            0.000_3,
            "12 runs are too few: they cannot show a change of any size. The clearest one has p = 0.003, times 2 for the number of figures. It takes 17 runs.",
        ),
        (
            16,
            0.000_01,
            "No series can show a change at so small a level (--alpha): at most 99,999 permutations are drawn.",
        ),
    ] {
        let got = stepped(count, alpha);
        assert_eq!((&got.series[0].p999, &got.series[0].max), (&None, &None), "{count} {alpha}");
        assert_eq!(got.notes, [note]);
    }
    for (count, alpha) in [(6, 0.2), (8, 0.1), (9, 0.05), (17, 0.000_3)] {
        let got = stepped(count, alpha);
        let max = got.series[0].max.as_ref().unwrap();
        assert_eq!(
            (max.len(), max[0].at as u64, got.notes.len()),
            (1, count / 2, 0),
            "{count} {alpha}"
        );
    }
}

#[test]
fn a_short_run_does_not_hide_a_change_of_the_maxima() {
    let us = [100, 104, 97, 101, 99, 103, 98, 102, 155, 149, 151, 148, 153, 150, 147, 152];
    let runs: Vec<Run> = us.map(run).into();
    // The short run lies before the change, after it, and where it begins.
    for (place, at, after) in [(2, 9, "night-9"), (16, 8, "night-8"), (8, 9, "night-9")] {
        let mut runs = runs.clone();
        runs.insert(place, run_of(&[1_000, 2_000, 2_001]));
        let got = followed(&runs, &Options::default()).unwrap();
        let series = &got.series[0];
        assert_eq!((series.count, series.runs[place].max_of_count_ns), (3_000, None));
        let [step] = &series.max.as_ref().unwrap()[..] else { panic!("{series:?}") };
        assert_eq!((step.at, &*step.after), (at, after));
        assert!((step.ratio - 1.5).abs() < 0.01, "{step:?}");
        let told = format!(
            "1 run is too short to count (night-{place}); the largest value there is 2.00 µs."
        );
        assert!(got.notes.iter().any(|note| note.ends_with(&told)), "{:?}", got.notes);
    }
    // Too few are left.
    let nine: Vec<Run> = [100, 101, 99, 103, 102, 98, 104, 97].map(run).into();
    let with_short = [nine, vec![run_of(&[1_000; 50])]].concat();
    let got = followed(&with_short, &Options::default()).unwrap();
    assert_eq!(got.series[0].max, None);
    let told = "max is not followed: of the runs with 3,000 samples, 8 runs are too few: ";
    assert!(got.notes[0].starts_with(told), "{:?}", got.notes);
    // No run has enough.
    let got = followed(
        &(0..9).map(|i| run_of(&[1_000 + i; 50])).collect::<Vec<_>>(),
        &Options::default(),
    );
    assert_eq!(got.unwrap().series[0].max, None);
}

#[test]
fn copies_of_a_run_are_no_series() {
    let with_id = |us: u64, id: &str| Run { id: id.into(), ..run(us) };
    let forced = Options { force: true, ..Options::default() };
    // Two runs, copied six times each, would be a change with p = 0.002.
    let [before, after] = [with_id(100, "a"), with_id(150, "b")];
    let copies: Vec<Run> = [vec![before; 6], vec![after; 6]].concat();
    let same = Some(Refusal::Repeated("night-0".into(), "night-1".into()));
    assert_eq!(followed(&copies, &forced).err().map(|r| *r), same);
    // Without an id of its own a run is known by its samples, and there is a doubt.
    let nameless = [run(100), run(150), run(150)];
    let Err(refused) = followed(&nameless, &Options::default()) else { panic!("not refused") };
    let Refusal::Differences(found) = *refused else { panic!("{refused:?}") };
    assert_eq!(found[0].message, "night-1 and night-2 are the same run and would count as two.");
    assert_eq!(followed(&nameless, &forced).unwrap().differences, found);
    // In virtual time another kernel may well give the same.
    let of_guest = |us| Run { time_domain: TimeDomain::Virtual, ..run(us) };
    let guests = [100, 100, 100].map(of_guest);
    assert_eq!(followed(&guests, &Options::default()).unwrap().differences, []);
}

#[test]
fn what_is_not_one_series_is_refused() {
    let refused = |runs: &[Run]| followed(runs, &Options::default()).err().map(|r| *r);
    assert_eq!(refused(&[]), Some(Refusal::NoRuns));
    assert_eq!(refused(&[run(1), run_of(&[])]), Some(Refusal::NoSamples("night-1".into())));
    let mut other = run(2);
    other.plan.load = vec!["cpu".into()];
    assert!(matches!(refused(&[run(1), other.clone()]), Some(Refusal::Differences(_))));
    let forced = Options { force: true, ..Options::default() };
    assert_eq!(followed(&[run(1), other], &forced).unwrap().differences.len(), 1);
}

#[test]
fn quantities_are_followed_one_by_one() {
    let of =
        |us, quantity| Run { source: Some(Source { quantity, ..Source::default() }), ..run(us) };
    let runs: Vec<Run> = (0..12)
        .flat_map(|i| {
            let us = if i < 6 { 100 + i } else { 200 + i };
            [of(100 + 5 * i % 12, Quantity::IrqLatency), of(us, Quantity::ThreadLatency)]
        })
        .collect();
    let got = followed(&runs, &Options::default()).unwrap();
    let found: Vec<_> =
        got.series.iter().map(|s| (s.quantity, s.max.as_ref().unwrap().len())).collect();
    assert_eq!(found, [(Quantity::IrqLatency, 0), (Quantity::ThreadLatency, 1)]);
}

#[test]
fn a_change_is_told_only_beyond_that_of_the_lengths() {
    // From the tenth run on, runs are five times as long.
    for (later, want) in [(3, None), (8, Some("at least 1.60 ×"))] {
        let of = |i: u64| -> Vec<u64> {
            let (us, times) = if i < 9 { (1, 1) } else { (later, 5) };
            let ns = us * (100_000 + i);
            let each = (0..2_980).map(|i| ns / 2 + i % 3).chain([ns * 10; 20]);
            each.collect::<Vec<u64>>().repeat(times)
        };
        let runs: Vec<Run> = (0..16).map(|i| run_of(&of(i))).collect();
        let got = followed(&runs, &Options::default()).unwrap();
        for steps in [&got.series[0].p999, &got.series[0].max] {
            let told = steps.as_ref().map(|steps| steps[0].ratio_in_words());
            assert_eq!(told.as_deref(), want, "{steps:?}");
        }
        let is_told = got.notes.iter().any(|note| note.contains("runs became longer or shorter"));
        assert_eq!(is_told, want.is_none(), "{:?}", got.notes);
    }
}

/// A figure that changes at the seventh run, and again at the thirteenth, from which on runs are five times as
/// long. It was said to have changed once.
#[test]
fn a_change_of_the_lengths_is_told_beside_one_that_is_certain() {
    let of = |i: u64| -> Vec<u64> {
        let (us, times) = [(1, 1), (4, 1), (8, 5)][(i / 6) as usize];
        let ns = us * (100_000 + i);
        (0..2_980).map(|i| ns / 2 + i % 3).chain([ns * 10; 20]).collect::<Vec<u64>>().repeat(times)
    };
    let runs: Vec<Run> = (0..18).map(|i| run_of(&of(i))).collect();
    let got = followed(&runs, &Options::default()).unwrap();
    let series = &got.series[0];
    for (steps, unclear) in
        [(&series.p999, &series.p999_unclear), (&series.max, &series.max_unclear)]
    {
        let certain: Vec<usize> = steps.iter().flatten().map(|step| step.at).collect();
        assert_eq!(certain, [6]);
        assert_eq!(unclear[..], [Unclear { at: 12, after: "night-12".into() }]);
    }
    for name in ["p99.9", "The maximum"] {
        let note = format!(
            "{name} may have changed more often: runs became longer or shorter from night-12 on"
        );
        assert!(got.notes.iter().any(|it| it.starts_with(&note)), "{:?}", got.notes);
    }
}

/// From the eleventh run on, runs are five times as long and their tails five times as late, which vary by a quarter
/// from run to run.
#[test]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
fn noise_beside_a_change_of_the_lengths_is_no_change() {
    let mut random = Random::new(1);
    let mut normal = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
    let mut run = |i: u64| -> Run {
        let times = if i < 10 { 1 } else { 5 };
        let tail = (1e6 * times as f64 * (0.25 * normal()).exp()) as u64;
        run_of(&[vec![1_000; 1_990 * times], vec![tail; 10 * times]].concat())
    };
    let mut has_changed = |_: &u32| {
        let runs: Vec<Run> = (0..20).map(&mut run).collect();
        let got = followed(&runs, &Options::default()).unwrap();
        [&got.series[0].p999, &got.series[0].max].into_iter().flatten().any(|of| !of.is_empty())
    };
    let changed = (0..20).filter(|series| has_changed(series)).count();
    // 5 % are allowed.
    assert!(changed <= 3, "{changed} of 20");
}

/// The p99.9 of each run is in a step of 5 % of it. That of the longer runs at the share of the shorter ones is two
/// ranks lower, in a step of 7 %. Nothing changed.
#[test]
fn bounds_are_counted_where_a_figure_is_followed() {
    let runs: Vec<Run> = (0..20)
        .map(|i| match i % 3 {
            0 => in_rows(&[(5, 19_969 - i), (6, i + 1), (14, 9), (20, 21)]),
            _ => in_rows(&[(5, 3_994 - i), (6, i + 1), (20, 5)]),
        })
        .collect();
    let got = followed(&runs, &Options::default()).unwrap();
    assert_eq!((&got.series[0].p999, &got.series[0].max), (&None, &Some(vec![])));
    let begin = "p99.9 is not followed: 7 runs have only bounds of it";
    assert!(got.notes.iter().any(|note| note.starts_with(begin)), "{:?}", got.notes);
}
