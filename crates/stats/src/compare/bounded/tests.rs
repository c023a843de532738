use std::collections::BTreeMap;

use super::super::tests::{held, of_samples};
use super::super::{Compare, Options, Verdict};
use super::*;
use crate::unpaired::{Asked, apart};
use proptest::prelude::*;
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::limit::Outcome;
use wakescope_core::run::Run;
use wakescope_core::source::Source;
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
    // Where no run of either side has more than bounds, these tell nothing here.
    let none = compared(&with_tails(&[8_000; 5]), &beyond);
    let p999 = &none.quantities[0].p999.as_ref().unwrap().effect;
    assert_eq!((p999.verdict, p999.p_value), (Verdict::Inconclusive, 1.0));
    assert_eq!(p999.ratio_in_words(), "0.0444 to 20.0 ×");
    assert!(none.reasons[0].starts_with("p99.9: 10 runs have only bounds of it, because"));
}

/// The run that a program measures which cuts off `samples` to whole µs.
fn in_steps(samples: &[u64]) -> Run {
    let cut = |ns: &u64| ns / 1_000 * 1_000;
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for ns in samples {
        *counts.entry(cut(ns)).or_default() += 1;
    }
    let mut run = of_samples(samples.iter().map(cut));
    let d = &mut run.threads[0].expiries;
    let bucket = |(lower, count)| Bucket { lower, upper: lower + 1_000, count };
    d.histogram = Histogram::from_buckets(counts.into_iter().map(bucket).collect()).unwrap();
    d.stated = Some(Stated { resolution_ns: 1_000, ..Stated::default() });
    run.source = Some(Source { resolution_ns: Some(1_000), ..Source::default() });
    run
}

/// 2,000 samples and `more`, of which 20 are about `tail_ns`, the largest of all.
fn with_tail(tail_ns: u64, more: u64) -> Vec<u64> {
    let ordinary = (0..1_980 + more).map(|i| tail_ns / 2 + i % 7);
    ordinary.chain((0..20).map(|i| tail_ns + (i + more) % 20)).collect()
}

/// Five runs a side, of which the tails are at `new_ns` and `old_ns`.
fn stepped(new_ns: u64, old_ns: u64, options: &Options) -> Compare {
    let [new, old] = [(new_ns, 0), (old_ns, 5)].map(|(tail_ns, first)| -> Vec<Run> {
        (first..first + 5).map(|more| in_steps(&with_tail(tail_ns, more))).collect()
    });
    held(&new, &old, options).unwrap()
}

#[test]
fn a_step_is_no_difference() {
    use Verdict::{Inconclusive, NoDifference, Worse};
    let gated = Options { max_regression: Some(0.1), ..Options::default() };
    for (new_ns, old_ns, verdict, gate, ratio) in [
        // One edge lies between them, or none; the true ratios are 1.02 and 1.46.
        (3_010, 2_950, Inconclusive, Outcome::Inconclusive, "at least 1.00 ×"),
        (2_950, 2_020, Inconclusive, Outcome::Inconclusive, "0.67 to 1.50 ×"),
        (1_010, 950, Inconclusive, Outcome::Inconclusive, "at least 1.00 ×"),
        (3_010, 3_010, Inconclusive, Outcome::Inconclusive, "0.75 to 1.33 ×"),
        (9_010, 3_970, Worse, Outcome::Fail, "at least 2.25 ×"),
        // Here a step is little.
        (50_010, 50_010, NoDifference, Outcome::Pass, "1.00 ×"),
        (90_010, 60_010, Worse, Outcome::Fail, "1.48 ×"),
    ] {
        let got = stepped(new_ns, old_ns, &Options::default());
        let p999 = &got.quantities[0].p999.as_ref().unwrap().effect;
        assert_eq!(got.verdict, verdict, "{new_ns} {old_ns}: {p999:?}");
        assert_eq!(p999.ratio_in_words(), ratio, "{new_ns} {old_ns}");
        assert_eq!(stepped(new_ns, old_ns, &gated).outcome, gate, "{new_ns} {old_ns}");
        assert!(
            got.notes.iter().any(|note| note.contains("10 runs of 10 are in steps of 1.00 µs"))
        );
    }
}

#[test]
fn nothing_is_shown_as_nothing() {
    let run = |more: u64| of_samples((0..2_000 + more).map(|_| 0));
    let got = compared(&[run(0), run(1), run(2)], &[run(3), run(4), run(5)]);
    let p999 = got.quantities[0].p999.as_ref().unwrap();
    assert_eq!((p999.new_ns, p999.old_ns, p999.effect.ratio), (0.0, 0.0, 1.0));
    // In steps, it is from 0 ns on.
    let bounded = |d: &Compare| d.quantities[0].max.clone().unwrap().effect.only_bounded.unwrap();
    let got = stepped(300, 300, &Options::default());
    assert_eq!(bounded(&got).new_ns.map(f64::round), [0.0, 999.0]);
}

/// What is least, how much more it can be (half of the values are known), and how much of that it is.
fn values() -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
    let width = prop_oneof![Just(0.0), 0.0_f64..2.0];
    prop::collection::vec((0.0_f64..2.0, width, 0.0_f64..=1.0), 2..7)
}

/// The true tails of the runs of a side, ns.
fn tails() -> impl Strategy<Value = Vec<u64>> {
    let middle = prop_oneof![900_u64..9_000, 9_000_u64..90_000];
    let spread = prop::collection::vec(0.97_f64..1.03, 5..6);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (middle, spread).prop_map(|(middle, spread)| {
        spread.iter().map(|factor| (middle as f64 * factor) as u64).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_verdict_in_steps_is_contrary_to_that_of_the_true_samples(new in tails(), old in tails(), nearly in any::<bool>()) {
        // Half of the sides are nearly alike.
        let old: Vec<u64> = if nearly { new.iter().rev().map(|ns| ns + 40).collect() } else { old };
        let samples = |side: &[u64], first: u64| -> Vec<Vec<u64>> {
            (first..).zip(side).map(|(more, &tail_ns)| with_tail(tail_ns, more)).collect()
        };
        let (new, old) = (samples(&new, 0), samples(&old, 5));
        let own = |side: &[Vec<u64>]| -> Vec<Run> { side.iter().map(|s| of_samples(s.iter().copied())).collect() };
        let cut = |side: &[Vec<u64>]| -> Vec<Run> { side.iter().map(|s| in_steps(s)).collect() };
        let options = Options { max_regression: Some(0.2), ..Options::default() };
        let truth = held(&own(&new), &own(&old), &options).unwrap();
        let got = held(&cut(&new), &cut(&old), &options).unwrap();
        let (truth, got) = (&truth.quantities[0], &got.quantities[0]);
        for (truth, got) in [(&truth.p999, &got.p999), (&truth.max, &got.max)] {
            let (truth, got) = (truth.as_ref().unwrap(), got.as_ref().unwrap());
            // Own percentiles are known to 0.2 %, so a verdict at the very edge may be another.
            let ratio = truth.effect.ratio;
            prop_assert!(match got.effect.verdict {
                Verdict::Worse => ratio > 1.095,
                Verdict::Better => ratio < 1.0 / 1.095,
                Verdict::NoDifference => (1.0 / 1.105..1.105).contains(&ratio),
                Verdict::Inconclusive => true,
            }, "{got:?} {truth:?}");
            prop_assert!(match got.effect.regression {
                Some(Outcome::Fail) => ratio > 1.195,
                Some(Outcome::Pass) => ratio < 1.205,
                _ => true,
            }, "{got:?} {truth:?}");
            let holds = |least: f64, ns: f64, most: f64| least <= ns * 1.004 && ns <= most * 1.004;
            match &got.effect.only_bounded {
                Some(Bounded { ratio: [least, most], new_ns, old_ns, .. }) => {
                    prop_assert!(holds(*least, ratio, *most), "{got:?} {truth:?}");
                    prop_assert!(holds(new_ns[0], truth.new_ns, new_ns[1]), "{got:?} {truth:?}");
                    prop_assert!(holds(old_ns[0], truth.old_ns, old_ns[1]), "{got:?} {truth:?}");
                }
                None => prop_assert!((truth.new_ns / got.new_ns).ln().abs() < 0.066, "{got:?} {truth:?}"),
            }
            prop_assert!(got.effect.low.is_none_or(|low| low <= ratio * 1.004), "{got:?} {truth:?}");
            prop_assert!(got.effect.high.is_none_or(|high| high * 1.004 >= ratio), "{got:?} {truth:?}");
        }
    }
}

proptest! {
    #[test]
    fn it_holds_for_every_value_within_the_bounds(new in values(), old in values(), alpha in 0.03_f64..0.4, bar in -1.0_f64..1.0) {
        let ranges = |side: &[(f64, f64, f64)]| Ranges {
            least: side.iter().map(|x| x.0).collect(),
            most: side.iter().map(|x| x.0 + x.1).collect(),
            ..Ranges::default()
        };
        let true_values = |side: &[(f64, f64, f64)]| -> Vec<f64> {
            side.iter().map(|(least, width, part)| least + width * part).collect()
        };
        let asked = Asked { alpha, bar, figures: 1, seed: 1 };
        let truth = apart(&true_values(&new), &true_values(&old), &asked).unwrap();
        let (new, old) = (ranges(&new), ranges(&old));
        let lowest = apart(&new.least, &old.most, &asked).unwrap();
        let highest = apart(&new.most, &old.least, &asked).unwrap();
        let Between { values: [new, old], apart: got, bounded, .. } =
            between([&new, &old], lowest, highest, &asked);
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
