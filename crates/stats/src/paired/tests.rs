use proptest::prelude::*;

use super::*;

fn of(pairs: &[(u32, u32)]) -> Paired {
    let pairs: Vec<_> = pairs.iter().map(|&(a, b)| (f64::from(a), f64::from(b))).collect();
    Paired::of(&pairs).unwrap()
}

#[test]
fn what_pairs_say() {
    let got = of(&[(100, 50), (100, 25), (100, 100), (100, 200)]);
    assert_eq!((got.count, got.smaller, got.larger), (4, 2, 1));
    assert_eq!((got.low, got.high), (0.25, 2.0));
    assert!((got.median - 0.5_f64.sqrt()).abs() < 1e-12);
    assert_eq!(got.interval, None, "four pairs do not hold the median with 95 %");
    // ln 2 times -1, -2, 0, 1: 2 or more in sum in six of eight ways.
    assert_eq!(got.p_value, 0.75);
}

#[test]
fn equal_series_do_not_differ() {
    let got = of(&[(7, 7); 10]);
    assert_eq!((got.median, got.p_value, got.interval), (1.0, 1.0, Some((1.0, 1.0))));
}

/// In 11 of 20 pairs B is a fifth smaller, and in 9 a hundred times larger. In the mean it is larger
/// (p = 0.004), but that does not show that it is smaller, as the median has it.
#[test]
fn a_mean_on_the_other_side_shows_nothing_of_the_median() {
    let pairs = [vec![(100, 80); 11], vec![(100, 10_000); 9]].concat();
    let swapped: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).collect();
    for pairs in [pairs, swapped] {
        let logs: Vec<f64> =
            pairs.iter().map(|&(a, b)| log_ratio(f64::from(a), f64::from(b))).collect();
        assert!(sign_flip(&logs) < 0.005);
        assert_eq!(of(&pairs).p_value, 1.0);
    }
}

#[test]
fn what_is_no_positive_number_is_not_compared() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Paired::of(&[(1.0, 2.0), (bad, 1.0)]), None, "{bad}");
        assert_eq!(Paired::of(&[(1.0, bad)]), None, "{bad}");
    }
    assert_eq!(Paired::of(&[(f64::MIN_POSITIVE, f64::MAX)]), None);
    assert_eq!(Paired::of(&[]), None);
}

#[test]
fn values_left_out_around_the_median() {
    // From tables of the binomial distribution.
    for (count, want) in [
        (1, None),
        (5, None),
        (6, Some(0)),
        (8, Some(0)),
        (9, Some(1)),
        (10, Some(1)),
        (11, Some(1)),
        (12, Some(2)),
        (20, Some(5)),
        (100, Some(39)),
    ] {
        assert_eq!(trimmed(count), want, "{count}");
    }
    assert!(trimmed(5_000).is_some_and(|cut| (2_400..2_500).contains(&cut)));
}

#[test]
fn holm_by_hand() {
    assert_eq!(holm(&[]), [] as [f64; 0]);
    assert_eq!(holm(&[0.04]), [0.04]);
    assert_eq!(holm(&[0.5, 0.01, 0.02]), [0.5, 0.03, 0.04]);
    // The second may not come out below the first.
    assert_eq!(holm(&[0.25, 0.25]), [0.5, 0.5]);
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
}

#[test]
fn pairs_that_can_decide() {
    for (comparisons, want) in [(0, 6), (1, 6), (2, 7), (6, 8), (25, 10), (26, 11)] {
        assert_eq!(pairs_needed(comparisons, 0.05), want, "{comparisons}");
    }
    assert_eq!(pairs_needed(1, 0.5), 6, "fewer have no interval");
}

fn pairs() -> impl Strategy<Value = Vec<(u32, u32)>> {
    prop::collection::vec((1_u32..1_000_000, 1_u32..1_000_000), 1..36)
}

proptest! {
    #[test]
    fn swapping_the_sides_inverts_the_answer(pairs in pairs()) {
        let swapped: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).collect();
        let (there, back) = (of(&pairs), of(&swapped));
        prop_assert_eq!(there.p_value, back.p_value);
        prop_assert_eq!((there.smaller, there.larger), (back.larger, back.smaller));
        let inverse = |x: f64, y: f64| (x * y - 1.0).abs() < 1e-9;
        prop_assert!(inverse(there.median, back.median));
        prop_assert!(inverse(there.low, back.high) && inverse(there.high, back.low));
        match (there.interval, back.interval) {
            (Some(i), Some(j)) => prop_assert!(inverse(i.0, j.1) && inverse(i.1, j.0)),
            (i, j) => prop_assert_eq!(i, j),
        }
    }

    #[test]
    fn the_unit_does_not_matter(pairs in pairs(), factor in 2_u32..4_000) {
        let scaled: Vec<_> = pairs.iter()
            .map(|&(a, b)| (f64::from(a) * f64::from(factor), f64::from(b) * f64::from(factor)))
            .collect();
        prop_assert_eq!(Paired::of(&scaled).unwrap(), of(&pairs));
    }

    #[test]
    fn the_order_of_pairs_does_not_matter(mut pairs in pairs()) {
        let there = of(&pairs);
        pairs.reverse();
        let back = of(&pairs);
        prop_assert!((there.p_value - back.p_value).abs() < 1e-12);
        prop_assert_eq!((there.median, there.interval), (back.median, back.interval));
    }

    #[test]
    fn figures_stay_in_their_ranges(pairs in pairs()) {
        let got = of(&pairs);
        prop_assert!(got.p_value > 0.0 && got.p_value <= 1.0);
        prop_assert!(got.low <= got.median * (1.0 + 1e-12) && got.median <= got.high * (1.0 + 1e-12));
        prop_assert!(got.smaller + got.larger <= got.count);
        if let Some((low, high)) = got.interval {
            prop_assert!(got.low <= low && low <= high && high <= got.high);
        }
    }

    #[test]
    fn holm_is_never_below_the_raw_value_and_keeps_the_order(
        raw in prop::collection::vec(1e-9_f64..=1.0, 0..40)
    ) {
        let adjusted = holm(&raw);
        prop_assert_eq!(adjusted.len(), raw.len());
        for (&p, &q) in raw.iter().zip(&adjusted) {
            prop_assert!(q >= p && q <= 1.0);
            for (&other, &corrected) in raw.iter().zip(&adjusted) {
                prop_assert!(p > other || q <= corrected);
            }
        }
    }
}
