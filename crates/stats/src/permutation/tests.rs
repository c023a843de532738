use proptest::prelude::*;

use super::*;
use crate::unpaired::{can_decide, figures_needed};

fn asked(alpha: f64, seed: u64) -> Asked {
    Asked { alpha, bar: 0.0, figures: 1, seed }
}

#[track_caller]
fn check(first: &[f64], second: &[f64], difference: f64, p_value: f64) {
    let got = apart(first, second, &asked(0.05, 1)).unwrap();
    assert!((got.difference - difference).abs() < 1e-12, "{first:?} {second:?}: {got:?}");
    assert!((got.p_value - p_value).abs() < 1e-12, "{first:?} {second:?}: {got:?}");
    assert!(got.exact, "{got:?}");
}

/// SciPy 1.17.1:
/// `permutation_test((first, second), lambda x, y: mean(x) - mean(y), n_resamples=inf)`
#[test]
fn as_scipy_has_it() {
    let odd = [1.2, 0.9, 1.7, 2.1, 1.4];
    check(&odd, &[0.8, 1.0, 1.1, 0.7, 0.95], 0.55, 0.03968253968253968);
    check(&[3.1, 2.9, 3.3], &[2.0, 2.2, 1.9, 2.4], 0.975, 0.05714285714285714);
    check(&[1.0, 2.0, 2.0, 3.0], &[2.0, 2.0, 1.0, 1.0, 4.0], 0.0, 1.0);
    check(&[0.5, 0.6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], -3.45, 0.05555555555555555);
    let close = [5.0, 5.1, 4.8, 5.2, 4.95, 5.05];
    check(&[5.0, 5.2, 4.9, 5.3, 5.1, 5.6], &close, 1.0 / 6.0, 0.20995670995670995);
}

/// With one far outlier in the second group, all splits but one differ to one side. That a difference on
/// that side is the least of those shows none on the other side, although only 2 of 100 splits are as far
/// there.
#[test]
fn a_difference_is_only_held_against_those_on_its_side() {
    let others: Vec<f64> = (1..99).map(f64::from).chain([-1e6]).collect();
    for sign in [1.0, -1.0] {
        let second: Vec<f64> = others.iter().map(|x| x * sign).collect();
        let got = apart(&[0.0], &second, &asked(0.05, 1)).unwrap();
        let (low, high) = got.interval;
        assert!(got.difference * sign > 0.0 && got.p_value == 1.0, "{got:?}");
        assert!(low.unwrap() < 0.0 && high.unwrap() > 0.0, "{got:?}");
    }
}

#[test]
fn alike_groups_are_not_apart() {
    check(&[7.0; 4], &[7.0; 5], 0.0, 1.0);
    let got = apart(&[0.1 + 0.2; 5], &[0.3; 5], &asked(0.05, 1)).unwrap();
    assert!(got.difference > 0.0 && got.p_value < 0.01, "one bit apart is apart: {got:?}");
}

#[test]
fn what_cannot_be_compared_is_not() {
    assert_eq!(apart(&[], &[1.0], &asked(0.05, 1)), None);
    assert_eq!(apart(&[1.0], &[], &asked(0.05, 1)), None);
    assert_eq!(apart(&[1.0], &[f64::NAN], &asked(0.05, 1)), None);
}

#[test]
fn few_figures_decide_nothing() {
    for (first, second, want) in
        [(1, 1, 1.0), (2, 2, 2.0 / 6.0), (3, 3, 0.1), (4, 4, 2.0 / 70.0), (1, 39, 0.05)]
    {
        assert_eq!(smallest_p(first, second, 1, 0.05), want, "{first} against {second}");
    }
    assert_eq!(
        (figures_needed([0; 2], 1, 0.05), figures_needed([0; 2], 2, 0.05)),
        (Some(4), Some(5))
    );
    assert_eq!(
        (figures_needed([0; 2], 6, 0.05), figures_needed([0; 2], 2, 0.001)),
        (Some(5), Some(8))
    );
    let alone = apart(&[1.0], &[2.0], &asked(0.05, 1)).unwrap();
    assert_eq!((alone.p_value, alone.interval, alone.splits), (1.0, (None, None), 2));
}

#[test]
fn splits_are_counted() {
    for (first, second, want) in
        [(0, 5, 1), (1, 5, 6), (5, 5, 252), (10, 10, 184_756), (500, 500, u64::MAX)]
    {
        assert_eq!(splits(first, second), want);
        assert_eq!(splits(second, first), want);
    }
}

#[test]
fn many_are_drawn_and_the_seed_repeats_them() {
    let first: Vec<f64> = (0..30).map(|i| f64::from(i % 7)).collect();
    let second: Vec<f64> = (0..25).map(|i| f64::from(i % 6) + 0.7).collect();
    let got = apart(&first, &second, &asked(0.05, 1)).unwrap();
    assert_eq!((got.exact, got.splits), (false, 10_000));
    assert_eq!(apart(&first, &second, &asked(0.05, 1)), Some(got.clone()));
    let other = apart(&first, &second, &asked(0.05, 2)).unwrap();
    assert!(other != got && (other.p_value - got.p_value).abs() < 0.02, "{got:?} {other:?}");
    // The other way round, the other group is drawn.
    let back = apart(&second, &first, &asked(0.05, 3)).unwrap();
    assert!((back.p_value - got.p_value).abs() < 0.02, "{got:?} {back:?}");
    assert!((back.interval.0.unwrap() + got.interval.1.unwrap()).abs() < 0.1);
    let far = apart(&[9.0; 40], &[1.0; 40], &asked(0.05, 1)).unwrap();
    assert_eq!((far.p_value, far.interval), (2e-4, (Some(8.0), Some(8.0))));
    assert!(apart(&[1.0], &vec![2.0; 300_000], &asked(0.05, 1)).unwrap().p_value > 1e-4);
}

#[test]
fn as_many_are_drawn_as_the_level_takes() {
    // Groups that are far apart: is the smallest p-value the one that is promised, and does it decide?
    for (size, figures, alpha, counted, decides) in [
        (10, 2, 0.000_3, 184_756, true),
        (11, 2, 0.000_3, 13_334, true),
        (11, 1, 0.05, 10_000, true),
        (15, 202, 0.001, 404_001, true),
        (11, 2, 4e-6, 1_000_000, true),
        (11, 2, 3.9e-6, 1_000_000, false),
    ] {
        let [low, high] =
            [0, 1_000].map(|from| (from..from + size).map(f64::from).collect::<Vec<_>>());
        let size = usize::try_from(size).unwrap();
        let got = apart(&high, &low, &Asked { figures, ..asked(alpha, 1) }).unwrap();
        assert_eq!((got.splits, can_decide(size, size, figures, alpha)), (counted, decides));
        // With 705,432 ways to split 22 figures, the one that is seen is drawn again in 1,000,000.
        let again = if counted == 1_000_000 { 4.0 } else { 0.0 };
        let smallest = smallest_p(size, size, figures, alpha);
        assert!(got.p_value >= smallest && got.p_value <= smallest * (1.0 + again), "{got:?}");
        let needed = figures_needed([0; 2], figures, alpha);
        assert_eq!(needed.is_some_and(|needed| needed <= size), decides, "{needed:?}");
    }
    assert_eq!(figures_needed([0; 2], 2, 3.9e-6), None);
}

/// All splits, one by one: the shares with a difference at least, and at most, as large as seen.
fn counted_one_by_one(first: &[f64], second: &[f64]) -> (f64, f64) {
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let seen: f64 = first.iter().sum();
    let (mut more, mut less, mut count) = (0.0, 0.0, 0.0);
    for mask in 0_u32..1 << all.len() {
        if mask.count_ones() as usize != first.len() {
            continue;
        }
        let sum: f64 = (0..all.len()).filter(|i| mask >> i & 1 == 1).map(|i| all[i]).sum();
        count += 1.0;
        more += f64::from(u8::from(sum >= seen - 1e-9));
        less += f64::from(u8::from(sum <= seen + 1e-9));
    }
    (more / count, less / count)
}

fn group() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0_i32..40).prop_map(f64::from), 1..6)
}

proptest! {
    #[test]
    fn p_is_counted_as_one_would_by_hand(first in group(), second in group()) {
        let (more, less) = counted_one_by_one(&first, &second);
        let got = apart(&first, &second, &asked(0.05, 1)).unwrap();
        let share = match got.difference {
            difference if difference > 1e-9 => more,
            difference if difference < -1e-9 => less,
            _ => 1.0,
        };
        prop_assert!((got.p_value - (2.0 * share).min(1.0)).abs() < 1e-12);
    }

    #[test]
    fn p_and_interval_agree(first in group(), second in group(), alpha in 0.02_f64..0.4) {
        let got = apart(&first, &second, &asked(alpha, 1)).unwrap();
        let (low, high) = got.interval;
        prop_assert!(low.is_none_or(|low| low <= got.difference), "{got:?}");
        prop_assert!(high.is_none_or(|high| high >= got.difference), "{got:?}");
        let leaves_0_out = low.is_some_and(|low| low > 1e-9) || high.is_some_and(|high| high < -1e-9);
        prop_assert_eq!(leaves_0_out, got.p_value <= alpha + 1e-9, "{:?}", got);
    }

    #[test]
    fn the_interval_holds_the_shifts_that_are_not_rejected(
        first in group(), second in group(), alpha in 0.02_f64..0.4,
    ) {
        let shifted = |by: f64| {
            let moved: Vec<f64> = first.iter().map(|x| x - by).collect();
            counted_one_by_one(&moved, &second)
        };
        let Apart { interval: (low, high), difference, .. } =
            apart(&first, &second, &asked(alpha, 1)).unwrap();
        // The shares only change at differences of means of up to 5 whole numbers: so no closer
        // than 1/20 to each other where they differ at all. An end that would leave the difference
        // itself out is the difference.
        if let Some(low) = low {
            prop_assert!(shifted(low - 0.01).0 <= alpha / 2.0 + 1e-9);
            prop_assert!(low == difference || shifted(low + 0.01).0 > alpha / 2.0 - 1e-9);
        } else {
            prop_assert!(shifted(-1e6).0 > alpha / 2.0 - 1e-9);
        }
        if let Some(high) = high {
            prop_assert!(shifted(high + 0.01).1 <= alpha / 2.0 + 1e-9);
            prop_assert!(high == difference || shifted(high - 0.01).1 > alpha / 2.0 - 1e-9);
        } else {
            prop_assert!(shifted(1e6).1 > alpha / 2.0 - 1e-9);
        }
    }
}

proptest! {
    #[test]
    fn the_bar_is_exceeded_as_the_interval_says(
        first in group(), second in group(), tenths in -100_i32..100, alpha in 0.02_f64..0.4,
    ) {
        let bar = f64::from(tenths) / 10.0 + 0.05;
        let got = apart(&first, &second, &Asked { bar, ..asked(alpha, 1) }).unwrap();
        let moved: Vec<f64> = first.iter().map(|x| x - bar).collect();
        prop_assert!((got.p_above_bar - counted_one_by_one(&moved, &second).0).abs() < 1e-12);
        let is_above = got.interval.0.is_some_and(|low| low > bar);
        let is_shown = got.p_above_bar <= alpha / 2.0 + 1e-9;
        prop_assert_eq!(is_above, got.difference > bar && is_shown);
    }
}

#[test]
fn figures_that_are_split_together_are_as_apart_as_alone() {
    let figures = |sizes: [usize; 2], seed| {
        let mut random = Random::new(seed);
        sizes.map(|size| (0..size).map(|_| random.uniform()).collect::<Vec<f64>>())
    };
    for sizes in [[30, 40], [40, 30], [5, 5], [1, 300_000]] {
        let alike = [1, 2, 3].map(|seed| figures(sizes, seed));
        let other_sizes = [figures(sizes, 1), figures([31, 40], 2), figures(sizes, 3)];
        let one_unknown = [figures(sizes, 1), [vec![1.0], vec![]], figures(sizes, 3)];
        for all in [alike, other_sizes, one_unknown] {
            let alone = all.each_ref().map(|[first, second]| apart(first, second, &asked(0.05, 7)));
            assert_eq!(each_apart(&all, &asked(0.05, 7)), alone, "{sizes:?}");
        }
    }
}
