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

/// A few new runs that vary much, against a long history of runs that do not. By the permutation test alone,
/// 39 % are called different.
#[test]
fn alike_runs_of_other_numbers_and_spreads_are_rarely_called_different() {
    let steady = Machine { samples: 2_000, between_runs: 0.05, rates: 0.0 };
    let unsteady = Machine { between_runs: 0.5, ..steady };
    let mut random = Random::new(1);
    let mut wrong = |new: usize, old: usize| {
        let different = (0..60).filter(|_| {
            let (new, old) =
                (unsteady.runs(new, 1.0, &mut random), steady.runs(old, 1.0, &mut random));
            let got = compare(&labelled(&new), &labelled(&old), &Options::default()).unwrap();
            matches!(got.verdict, Verdict::Worse | Verdict::Better)
        });
        different.count()
    };
    // 5 % of 60; three standard deviations more are chance.
    for (new, old) in [(3, 20), (5, 12)] {
        let wrong = wrong(new, old);
        assert!(wrong <= 3 + 5, "{new} against {old}: {wrong} of 60");
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
