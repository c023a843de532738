//! How often comparisons and series are wrong about a machine whose truth is known. `make simulate`
//! does the same at length; here it is done often enough to notice a mistake.

use simulated::{CALM, Machine, NOISY};
use wakescope_core::observation::Observation;
use wakescope_core::random::Random;
use wakescope_stats::compare::{Labelled, Options, Verdict, compare};
use wakescope_stats::trend::{self, trend};

mod simulated;

fn labelled(runs: &[Observation]) -> Vec<Labelled<'_>> {
    runs.iter().map(|run| Labelled { label: "", run }).collect()
}

/// How many of `times` comparisons come out as `wanted`.
fn count(machine: Machine, runs: usize, factor: f64, times: u32, wanted: &[Verdict]) -> usize {
    let mut random = Random::new(1);
    (0..times)
        .filter(|_| {
            let new = machine.runs(runs, factor, &mut random);
            let old = machine.runs(runs, 1.0, &mut random);
            let options = Options { margin: 0.0, ..Options::default() };
            let got = compare(&labelled(&new), &labelled(&old), &options).unwrap();
            wanted.contains(&got.verdict)
        })
        .count()
}

#[test]
fn alike_runs_are_rarely_called_different() {
    // 5 % of 100 at most; three standard deviations more are chance.
    for machine in [CALM, NOISY] {
        let short = Machine { samples: 2_000, ..machine };
        let wrong = count(short, 5, 1.0, 100, &[Verdict::Worse, Verdict::Better]);
        assert!(wrong <= 5 + 7, "{machine:?}: {wrong} of 100");
    }
}

#[test]
fn what_is_worse_is_called_worse() {
    // 99 % and, with twice the runs, 100 % by docs/compare.md.
    assert!(count(CALM, 5, 2.0, 12, &[Verdict::Worse]) >= 10);
    assert!(count(NOISY, 10, 2.0, 8, &[Verdict::Worse]) >= 6);
    assert_eq!(count(NOISY, 5, 2.0, 8, &[Verdict::Better]), 0);
}

#[test]
fn series_without_a_change_rarely_show_one() {
    let machine = Machine { samples: 2_000, ..NOISY };
    let mut random = Random::new(1);
    let wrong = (0..50).filter(|_| {
        let runs = machine.runs(16, 1.0, &mut random);
        let got = trend(&labelled(&runs), &trend::Options::default()).unwrap();
        let changes = |steps: &Option<Vec<_>>| steps.as_ref().map_or(0, Vec::len);
        changes(&got.series[0].p999) + changes(&got.series[0].max) > 0
    });
    let wrong = wrong.count();
    assert!(wrong <= 3 + 5, "{wrong} of 50");
}
