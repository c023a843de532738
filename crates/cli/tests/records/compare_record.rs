//! docs/reference/compare.schema.json, trend.schema.json and series.schema.json say what these records
//! hold.

use crate::common::made_up::run;
use crate::common::schema::{
    assert_described, assert_keys_may_be_added, object_pointers, unused_keys,
};
use crate::common::stored_window::busy_window;
use crate::common::{Checker, read};
use serde_json::{Value, json};
use wakescope_core::date::Date;
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Validity;
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::limit::{Limit, MeasuredBy};
use wakescope_core::observation::Observation;
use wakescope_core::run::Run;
use wakescope_core::stated::Stated;
use wakescope_core::units::SpanNs;
use wakescope_core::watch::observed::{Grouping, Observed};
use wakescope_core::watch::packed;
use wakescope_core::watch::sum::Sum;
use wakescope_report::series::{self, Figures, Row};
use wakescope_stats::compare::{Compare, Labelled, Options, Watched, compare, compare_watches};
use wakescope_stats::trend::{self, Trend, trend};

fn schema(name: &str) -> Value {
    serde_json::from_str(&read(format!("docs/reference/{name}.schema.json"))).unwrap()
}

fn labelled<'a>(labels: &'a [String], runs: &'a [Observation]) -> Vec<Labelled<'a>> {
    labels.iter().zip(runs).map(|(label, run)| Labelled { label, run }).collect()
}

fn labels() -> Vec<String> {
    (0..100).map(|i| format!("run-{i}")).collect()
}

fn compared(new: &[u64], old: &[u64], options: &Options) -> Compare {
    let side = |name: &str, us: &[u64]| -> Vec<Observation> {
        us.iter().map(|&us| Run { id: format!("{name} {us}"), ..run(us) }.into()).collect()
    };
    let (mut new, old) = (side("new", new), side("old", old));
    new[0].plan.priority = Some(7);
    compare(&labelled(&labels(), &new), &labelled(&labels(), &old), options).unwrap()
}

/// Comparisons in which, together, every key is used.
fn comparisons() -> Vec<Compare> {
    let options = Options {
        max_regression: Some(0.1),
        limits: vec!["1us".parse().unwrap(), "p99.999=1s".parse().unwrap()],
        ..Options::default()
    };
    let plain = Options::default();
    vec![
        compared(&[100, 101, 102, 99, 98], &[100, 101, 102, 99, 97], &options),
        compared(&[200, 201, 202, 199, 198], &[100, 101, 102, 99, 97], &plain),
        compared(&[50, 201, 402, 199, 100], &[100, 101, 102, 99, 97], &plain),
        compared(&[50], &[100], &options),
        of_bounds(),
        of_steps(),
        of_longer(),
        of_idle_loads(),
        of_watches(),
    ]
}

/// A comparison in which a load did nothing in a run.
fn of_idle_loads() -> Compare {
    let side = |name: &str, us: [u64; 5]| -> Vec<Observation> {
        us.map(|us| Run { id: format!("{name} {us}"), ..run(us) }.into()).into()
    };
    let (mut new, old) = (side("new", [100, 101, 102, 99, 98]), side("old", [90, 91, 92, 89, 88]));
    new[0].load[0].per_second = 0.0;
    compare(&labelled(&labels(), &new), &labelled(&labels(), &old), &Options::default()).unwrap()
}

/// A comparison in which files of other programs give only bounds of p99.9: their histograms have one
/// bucket.
fn of_bounds() -> Compare {
    let side = |name: &str, us: [u64; 5], are_known: bool| -> Vec<Observation> {
        let of = |us: u64| {
            let mut run = Observation::from(Run { id: format!("{name} {us}"), ..run(us) });
            let d = &mut run.expiries;
            if !are_known {
                let bucket = Bucket { lower: 1_000, upper: d.max_ns.unwrap() + 1, count: d.count };
                d.min_ns = Some(1_000);
                d.histogram = Histogram::from_buckets(vec![bucket]).unwrap();
                d.stated = Some(Stated { resolution_ns: 1_000, ..Stated::default() });
            }
            run
        };
        us.map(of).into()
    };
    let (new, old) =
        (side("new", [100, 101, 102, 99, 98], false), side("old", [90, 91, 92, 89, 88], true));
    compare(&labelled(&labels(), &new), &labelled(&labels(), &old), &Options::default()).unwrap()
}

/// Runs of another program that cuts values off to whole µs: all samples are in the step of 2 µs, later
/// in that of 5 µs.
fn in_steps() -> Vec<Observation> {
    let of = |i: u64| {
        let mut run = Observation::from(Run { id: format!("steps {i}"), ..run(5) });
        let (lower, count) = (if i < 6 { 2_000 } else { 5_000 }, 3_000 + i);
        run.expiries = Distribution {
            count,
            min_ns: Some(lower),
            max_ns: Some(lower),
            sum_ns: lower * count,
            histogram: Histogram::from_buckets(vec![Bucket { lower, upper: lower + 1_000, count }])
                .unwrap(),
            stated: Some(Stated {
                resolution_ns: 1_000,
                extremes_are_edges: true,
                ..Stated::default()
            }),
            ..Distribution::default()
        };
        run
    };
    (0..12).map(of).collect()
}

/// A comparison of runs of which every figure is known only within a step.
fn of_steps() -> Compare {
    let runs = in_steps();
    let (old, new) = runs.split_at(6);
    compare(&labelled(&labels(), new), &labelled(&labels(), old), &Options::default()).unwrap()
}

/// A series in which the figures went from one step to another.
fn series_in_steps() -> Trend {
    let trend = trend(&labelled(&labels(), &in_steps()), &trend::Options::default()).unwrap();
    assert!(trend.series[0].max.iter().flatten().all(|step| step.ratio_within.is_some()));
    trend
}

/// Runs that become later twice, the second time where they also become longer.
fn of_lengths() -> Vec<Observation> {
    let of = |i: u64| {
        let (us, times) = [(10, 1), (40, 1), (80, 5)][usize::try_from(i / 6).unwrap()];
        let mut run = Observation::from(Run { id: format!("lengths {i}"), ..run(us) });
        let samples = (0..3_000).map(|at| us * (1_000 + i) * if at % 100 == 0 { 10 } else { 1 });
        run.expiries = Distribution::of(samples.collect::<Vec<_>>().repeat(times));
        run
    };
    (0..18).map(of).collect()
}

/// A series whose figures changed twice, the second time where runs became longer.
fn series_of_lengths() -> Trend {
    trend(&labelled(&labels(), &of_lengths()), &trend::Options::default()).unwrap()
}

/// A comparison of longer runs with shorter ones.
fn of_longer() -> Compare {
    let (runs, labels) = (of_lengths(), labels());
    let (old, new) = (&runs[6..12], &runs[12..]);
    let compared =
        compare(&labelled(&labels, new), &labelled(&labels, old), &Options::default()).unwrap();
    let max = &compared.quantities[0].max.as_ref().unwrap().effect.only_bounded;
    assert!(max.as_ref().unwrap().length_ratio.is_some());
    compared
}

fn series() -> Trend {
    let of = |i: u64| run(if i < 8 { 100 + i } else { 200 + i });
    let mut runs: Vec<Observation> = (0..16).map(|i| of(i).into()).collect();
    runs[0].plan.priority = Some(7);
    trend(&labelled(&labels(), &runs), &trend::Options::default()).unwrap()
}

/// A comparison of watches, with groups that only one side has.
fn of_watches() -> Compare {
    let watch = |at: u64, comms: &[&str]| {
        let tail = vec![(100_000 + at, 2_990), (900_000, 10)];
        let tasks: Vec<_> = comms.iter().map(|comm| (*comm, tail.clone())).collect();
        let line = busy_window("2026-11-21T01:40:00Z", at, 1_000, &tasks);
        let window = packed::read(line.trim_end().as_bytes()).unwrap();
        let first = Date::parse(&window.started).unwrap();
        let mut sum = Sum::default();
        sum.add(window);
        let total = sum.window().unwrap();
        Observed::of(&total, first, first.after(SpanNs(total.window_ns)), Grouping::Series)
    };
    let new = (0..5).map(|at| watch(at, &["x", "y"]));
    let watches: Vec<Observed> = new.chain((5..10).map(|at| watch(at, &["x", "z"]))).collect();
    let labels = labels();
    let watched: Vec<Watched> =
        labels.iter().zip(&watches).map(|(label, watch)| Watched { label, watch }).collect();
    let (new, old) = watched.split_at(5);
    compare_watches(new, old, Grouping::Series, &Options::default()).unwrap()
}

fn of_compare() -> Vec<Value> {
    comparisons().iter().map(|c| serde_json::from_str(&c.to_json()).unwrap()).collect()
}

fn of_series() -> Vec<Value> {
    let row = |name: &str, run: Result<Run, &str>| {
        let path = run.as_ref().ok().map(|_| format!("runs/a/{name}"));
        let not_measured = run.as_ref().err().map(|why| (*why).to_owned());
        Row { name: name.into(), path, figures: run.ok().as_ref().map(Figures::of), not_measured }
    };
    let none = Run { threads: Vec::new(), ..run(5) };
    let limit: Limit = "max=1ms".parse().unwrap();
    let judged = limit.judge(&run(5).expiries(), &Validity::default(), MeasuredBy::Probes, true);
    let judged = Run { limits: vec![judged], ..run(5) };
    let rows = [row("pipe", Ok(judged)), row("mqueue", Err("not there")), row("tcp", Ok(none))];
    let printed = ["stimulus", "between", "waker:probe"].map(|what| series::json(what, 1, &rows));
    printed.map(|json| serde_json::from_str(&json.unwrap()).unwrap()).into()
}

fn of_trend() -> Vec<Value> {
    [series(), series_in_steps(), series_of_lengths()]
        .iter()
        .map(|t| serde_json::from_str(&t.to_json()).unwrap())
        .collect()
}

#[track_caller]
fn check(name: &str, records: &[Value]) {
    let (open, closed) = (Checker::new(schema(name)), Checker::closed(schema(name)));
    let mut unused = None;
    for record in records {
        assert_eq!(closed.fault(record), None, "{record:#}");
        let own = unused_keys(&schema(name), record);
        unused = Some(unused.map_or(own.clone(), |all| &all & &own));
        assert_keys_may_be_added(&schema(name), record, &[]);
        for pointer in object_pointers(record) {
            let mut changed = record.clone();
            let map = changed.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
            let keys: Vec<String> = map.keys().cloned().collect();
            map.remove(&keys[0]);
            assert!(open.fault(&changed).is_some(), "{pointer} may lack {}", keys[0]);
        }
    }
    assert_eq!(unused.unwrap_or_default(), [].into(), "{name} documents keys that none has");
    assert_described(&schema(name), "in ns");
}

#[test]
fn comparisons_fit_their_schema() {
    check("compare", &of_compare());
}

#[test]
fn series_fit_their_schema() {
    check("trend", &of_trend());
}

#[test]
fn runs_of_one_command_fit_their_schema() {
    check("series", &of_series());
}

#[test]
fn figures_of_a_run_that_was_not_measured_do_not_fit() {
    let checker = Checker::new(schema("series"));
    let whole = of_series().remove(0);
    for (pointer, damage) in [
        ("/schema", json!("wakescope.series/2")),
        ("/varied", json!("priority")),
        ("/not_begun", json!(-1)),
        ("/runs", json!([])),
        ("/runs/0/max_ns", json!(1.5)),
        ("/runs/0/verdict", json!("fine")),
        ("/runs/0/not_measured", json!("interrupted")),
        ("/runs/1/not_measured", json!("")),
    ] {
        let (place, key) = pointer.rsplit_once('/').unwrap();
        let mut changed = whole.clone();
        changed.pointer_mut(place).unwrap()[key] = damage;
        assert!(checker.fault(&changed).is_some(), "{pointer}");
    }
}

#[test]
fn records_can_be_read_again() {
    for compared in comparisons() {
        let again: Compare = serde_json::from_str(&compared.to_json()).unwrap();
        assert_eq!(again.to_json(), compared.to_json());
    }
    assert_eq!(serde_json::from_str::<Trend>(&series().to_json()).unwrap(), series());
}
