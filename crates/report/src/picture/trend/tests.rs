use wakescope_stats::compare::RunFigures;

use super::super::tests::{check_scene, check_svg};
use super::super::{svg, trend_png};
use super::*;

/// Runs of these p99.9 in µs; where it changes by a half there is a step.
fn series(p999_us: &[u64], name: &str) -> (Trend, Series) {
    let run = |(i, &us): (usize, &u64)| RunFigures {
        label: format!("{name}{i}"),
        p999_ns: Some(us * 1_000),
        max_of_count_ns: (i % 3 > 0).then_some(us * 9_000),
        ..Default::default()
    };
    let runs: Vec<RunFigures> = p999_us.iter().enumerate().map(run).collect();
    let step = |(i, pair): (usize, &[u64])| Step {
        at: i + 1,
        after: runs[i + 1].label.clone(),
        before_ns: pair[0] as f64 * 1e3,
        after_ns: pair[1] as f64 * 1e3,
        ratio: pair[1] as f64 / pair[0] as f64,
        ..Default::default()
    };
    let pairs = p999_us.windows(2).enumerate();
    let steps = pairs.filter(|(_, pair)| pair[1] * 2 > pair[0] * 3).map(step).collect();
    let series =
        Series { count: 3_000, runs: runs.clone(), p999: Some(steps), ..Default::default() };
    (Trend::default(), series)
}

#[test]
fn every_series_is_in_order() {
    let names =
        ["v", "<b>&\"'", "ein-sehr-langer-name-eines-laufs-in-einem-ordner-", "\u{202e}abc"];
    for name in names {
        for values in
            [&[1][..], &[5, 5, 9, 9, 9], &[1; 200], &[0, u64::MAX / 10_000], &[3, 9, 30, 99]]
        {
            let (trend, series) = series(values, name);
            let scene = scene(&trend, &series).unwrap();
            check_scene(&scene);
            check_svg(&svg::document(&scene));
        }
    }
}

#[test]
fn a_change_is_drawn_and_told() {
    let (trend, series) = series(&[100, 100, 100, 200, 200, 200], "v");
    let scene = scene(&trend, &series).unwrap();
    assert!(scene.description.contains("p99.9: 2.00 times from v3 on"), "{}", scene.description);
    let svg = svg::document(&scene);
    assert!(svg.contains("p99.9 2.00 ×"), "{svg}");
    assert_eq!(svg.matches("<g class=\"series\"").count(), 2, "{svg}");
    assert!(trend_png(&trend, &series).unwrap().starts_with(b"\x89PNG"));
}

/// The mean after a change ends where the next one may begin.
#[test]
fn a_mean_does_not_reach_beyond_an_unclear_change() {
    let (trend, mut series) = series(&[100, 100, 100, 200, 200, 200, 290, 290, 290], "v");
    let drawn = |series: &Series| svg::document(&scene(&trend, series).unwrap());
    let certain = drawn(&series);
    assert!(certain.contains("M334.7 265.2h525.3") && !certain.contains("p99.9 ?"), "{certain}");
    series.p999_unclear = vec![Unclear { at: 6, after: "v6".into() }];
    let unclear = drawn(&series);
    assert!(unclear.contains("M334.7 265.2h262.6") && unclear.contains("p99.9 ?"), "{unclear}");
    assert!(unclear.contains("2.00 times from v3 on, and perhaps from v6 on"), "{unclear}");
}

#[test]
fn nothing_is_drawn_of_runs_without_figures() {
    let (trend, mut series) = series(&[1, 2], "v");
    for run in &mut series.runs {
        (run.p999_ns, run.max_of_count_ns) = (None, None);
    }
    assert!(scene(&trend, &series).is_none());
}
