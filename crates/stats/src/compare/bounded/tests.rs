use std::collections::BTreeMap;

use super::super::tests::{held, of_samples};
use super::super::{Compare, Options, Verdict};
use super::*;
use crate::permutation::{Asked, apart};
use proptest::prelude::*;
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::limit::Outcome;
use wakescope_core::run::Run;
use wakescope_core::stated::Stated;

/// Where the histogram of imported runs ends, ns.
const LAST_EDGE: u64 = 400_000;

/// A run of `count` samples that another program measured, the largest of which are `tail` µs. Its
/// histogram has steps of 1 µs up to [`LAST_EDGE`]; of the samples beyond, only their number and the
/// maximum are known.
fn imported(count: u64, tail: &[u64]) -> Run {
    let ordinary = (0..count - tail.len() as u64).map(|i| 20_000 + i % 10 * 1_000);
    let samples: Vec<u64> = ordinary.chain(tail.iter().map(|us| us * 1_000)).collect();
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for ns in &samples {
        *counts.entry((ns / 1_000 * 1_000).min(LAST_EDGE)).or_default() += 1;
    }
    let mut run = of_samples(samples.into_iter());
    let d = &mut run.threads[0].expiries;
    let upper = |lower: u64| if lower < LAST_EDGE { lower + 1_000 } else { d.max_ns.unwrap() + 1 };
    let buckets =
        counts.into_iter().map(|(lower, count)| Bucket { lower, upper: upper(lower), count });
    d.histogram = Histogram::from_buckets(buckets.collect()).unwrap();
    d.stated = Some(Stated { resolution_ns: 1_000, ..Stated::default() });
    run
}

/// Runs of 20,000 samples, of which the 40 largest are around so many µs each.
fn with_tails(us: &[u64]) -> Vec<Run> {
    (0..).zip(us).map(|(i, &us)| imported(20_000, &[us + i; 40])).collect()
}

fn compared(new: &[Run], old: &[Run]) -> Compare {
    held(new, old, &Options::default()).unwrap()
}

#[test]
fn the_worst_runs_do_not_vanish() {
    // Half of the new runs are better, and half have a p99.9 beyond the histogram.
    let new = with_tails(&[296, 296, 296, 296, 296, 9_000, 9_000, 9_000, 9_000, 9_000]);
    let old = with_tails(&[386; 5]);
    let got = compared(&new, &old);
    assert_eq!((got.verdict, got.outcome), (Verdict::Inconclusive, Outcome::Inconclusive));
    let p999 = got.quantities[0].p999.as_ref().unwrap();
    let bounded = p999.effect.only_bounded.as_ref().unwrap();
    assert_eq!((p999.effect.runs, bounded.runs), ([10, 5], [5, 0]));
    let [least, most] = bounded.ratio;
    assert!((least - 0.89).abs() < 0.01 && (most - 4.2).abs() < 0.1, "{bounded:?}");
    assert_eq!((p999.effect.ratio, p999.effect.p_value), (1.0, 1.0));
    assert!(got.reasons[0].starts_with("p99.9: 5 runs have only bounds of it, because"));
    assert!(got.reasons[1].starts_with("p99.9 is undecided: 0.89 to 4.2"), "{:?}", got.reasons);
    let asked = Options { max_regression: Some(0.1), ..Options::default() };
    let got = held(&new, &old, &asked).unwrap();
    assert_eq!(got.outcome, Outcome::Inconclusive, "{got:#?}");
}

#[test]
fn maxima_at_equal_count_do_not_vanish() {
    // Twice as many samples, so the largest of half of them is not the maximum. Half of the new runs are
    // better, and half have too many samples beyond the histogram to know it.
    let long = |us: u64| imported(40_000, &vec![us; if us < 400 { 4 } else { 300 }]);
    let new: Vec<Run> =
        [196, 197, 198, 199, 24_000, 25_000, 26_000, 27_000].into_iter().map(long).collect();
    let old: Vec<Run> = (290..298).map(|us| imported(20_000, &[us; 3])).collect();
    let got = compared(&new, &old);
    assert_eq!((got.verdict, got.outcome), (Verdict::Inconclusive, Outcome::Inconclusive));
    let max = &got.quantities[0].max.as_ref().unwrap().effect;
    assert_eq!((max.runs, max.only_bounded.as_ref().unwrap().runs), ([8, 8], [4, 0]));
}

#[test]
fn bounds_that_suffice_decide() {
    let (low, beyond) = (with_tails(&[50; 5]), with_tails(&[9_000; 5]));
    // At least 400 µs against 50 µs, and the other way round.
    let worse = compared(&beyond, &low);
    assert_eq!((worse.verdict, worse.outcome), (Verdict::Worse, Outcome::Fail));
    let effect = &worse.quantities[0].p999.as_ref().unwrap().effect;
    assert!(effect.ratio > 7.0 && effect.ratio < 8.0, "the one closest to 1: {effect:?}");
    assert!(effect.ratio_in_words().starts_with("at least 7."), "{effect:?}");
    let better = compared(&low, &beyond);
    assert_eq!((better.verdict, better.outcome), (Verdict::Better, Outcome::Pass));
    let effect = &better.quantities[0].p999.as_ref().unwrap().effect;
    assert!(effect.ratio_in_words().starts_with("at most 0.1"), "{effect:?}");
    // Where no run of either side has more than bounds, there is no figure.
    let none = compared(&with_tails(&[8_000; 5]), &beyond);
    assert_eq!(none.quantities[0].p999, None);
    assert_eq!(none.reasons[0], "p99.9 is unknown: 10 runs have only bounds of it.");
}

/// What is least, how much more it can be (half of the values are known), and how much of that it is.
fn values() -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
    let width = prop_oneof![Just(0.0), 0.0_f64..2.0];
    prop::collection::vec((0.0_f64..2.0, width, 0.0_f64..=1.0), 2..7)
}

proptest! {
    #[test]
    fn it_holds_for_every_value_within_the_bounds(new in values(), old in values(), alpha in 0.03_f64..0.4, bar in -1.0_f64..1.0) {
        let ranges = |side: &[(f64, f64, f64)]| Ranges {
            least: side.iter().map(|x| x.0).collect(),
            most: side.iter().map(|x| x.0 + x.1).collect(),
        };
        let true_values = |side: &[(f64, f64, f64)]| -> Vec<f64> {
            side.iter().map(|(least, width, part)| least + width * part).collect()
        };
        let asked = Asked { alpha, bar, figures: 1, seed: 1 };
        let truth = apart(&true_values(&new), &true_values(&old), &asked).unwrap();
        let (new, old) = (ranges(&new), ranges(&old));
        let lowest = apart(&new.least, &old.most, &asked).unwrap();
        let highest = apart(&new.most, &old.least, &asked).unwrap();
        let ([new, old], got, bounded) = between([&new, &old], lowest, &highest);
        prop_assert!(truth.p_value <= got.p_value + 1e-9, "{truth:?} {got:?}");
        prop_assert!(truth.p_above_bar <= got.p_above_bar + 1e-9, "{truth:?} {got:?}");
        let [least, most] = bounded.ratio.map(f64::ln);
        prop_assert!(least <= truth.difference + 1e-9 && truth.difference <= most + 1e-9);
        // It is closer to no difference, and on the same side.
        prop_assert!(got.difference.abs() <= truth.difference.abs() + 1e-9);
        prop_assert!(got.difference * truth.difference >= -1e-9);
        let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len() as f64;
        prop_assert!((mean(&new) - mean(&old) - got.difference).abs() < 1e-9);
        let outside = |got: Option<f64>, truth: Option<f64>, sign: f64| match (got, truth) {
            (Some(got), Some(truth)) => sign * got <= sign * truth + 1e-9,
            (None, _) => true,
            (Some(_), None) => false,
        };
        prop_assert!(outside(got.interval.0, truth.interval.0, 1.0), "{truth:?} {got:?}");
        prop_assert!(outside(got.interval.1, truth.interval.1, -1.0), "{truth:?} {got:?}");
    }
}
