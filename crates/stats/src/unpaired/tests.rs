use proptest::prelude::*;
use wakescope_core::random::Random;

use super::*;

fn asked(alpha: f64, bar: f64) -> Asked {
    Asked { alpha, bar, figures: 1, seed: 1 }
}

/// Two groups, their p-value, that of one side, and their interval.
type Case = (&'static [f64], &'static [f64], f64, f64, [f64; 2]);

/// SciPy 1.17.1: `ttest_ind(first, second, equal_var=False)`, its `confidence_interval(0.95)`, and with
/// `alternative="greater"` of `first` less 0.5. For the last, `t.sf` of its statistics with 2 degrees of freedom.
#[test]
fn as_scipy_has_it() {
    let ones: [Case; 3] = [
        (
            &[3.1, 2.9, 3.3, 2.7, 3.6],
            &[2.0, 2.2, 1.9, 2.4, 2.1, 2.3, 2.6],
            0.0017873128326917889,
            0.0308056990693676,
            [0.4737866418519598, 1.3376419295766124],
        ),
        (
            &[7.0, 9.0, 8.0, 12.0, 5.0, 6.0],
            &[6.5, 6.6, 6.4, 6.9, 6.1],
            0.24718082704464292,
            0.2254282577163001,
            [-1.2691227708322685, 3.9357894374989346],
        ),
        (
            &[3.1, 2.9, 3.3],
            &[2.0, 2.2, 1.9, 2.4, 2.1],
            0.020913388122026026,
            0.03970817623915068,
            [0.36045784757413113, 1.5995421524258688],
        ),
    ];
    for (first, second, p_value, p_above_bar, interval) in ones {
        let welch = Welch::of(first, second).unwrap();
        let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len() as f64;
        let difference = mean(first) - mean(second);
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got} for {want}");
        close(2.0 * welch.beyond(difference.abs()), p_value);
        close(welch.beyond(difference - 0.5), p_above_bar);
        close(difference - welch.reach(0.05), interval[0]);
        close(difference + welch.reach(0.05), interval[1]);
    }
}

/// Nearly normal, with variance 1.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
}

/// By the permutation test alone, 3 figures of spread 0.5 against 20 of spread 0.05 differ in 42 % of cases.
#[test]
fn groups_with_the_same_mean_rarely_differ_whatever_their_spreads() {
    for (sizes, spreads) in [
        ([3, 20], [0.5, 0.05]),
        ([3, 20], [0.05, 0.5]),
        ([3, 20], [0.1, 0.05]),
        ([5, 12], [0.5, 0.05]),
        ([12, 5], [0.5, 0.05]),
        ([2, 40], [0.3, 0.1]),
        ([2, 10], [0.1, 0.05]),
        ([5, 6], [0.1, 0.1]),
    ] {
        let mut random = Random::new(1);
        let different = (0..200).filter(|_| {
            let [first, second] = [0, 1].map(|side| {
                (0..sizes[side]).map(|_| spreads[side] * normal(&mut random)).collect::<Vec<_>>()
            });
            apart(&first, &second, &asked(0.05, 0.0)).unwrap().p_value <= 0.05
        });
        // 10 in the mean; three standard deviations more are chance.
        let different = different.count();
        assert!(different <= 10 + 9, "{sizes:?} of {spreads:?}: {different} of 200");
    }
}

#[test]
fn one_figure_shows_no_spread() {
    let many: Vec<f64> = (0..200).map(f64::from).collect();
    for (first, second) in [(&[1e6][..], &many[..]), (&many[..], &[1e6][..])] {
        let got = apart(first, second, &asked(0.05, 0.0)).unwrap();
        assert_eq!((got.p_value, got.interval), (1.0, (None, None)));
        assert!(got.p_above_bar >= 0.5, "{got:?}");
        assert!(!can_decide(first.len(), second.len(), 1, 0.05));
    }
    assert_eq!(figures_needed([1, 30], 2, 0.05), Some(2));
    assert_eq!(figures_needed([30, 3], 2, 0.05), Some(2));
    assert_eq!(figures_needed([2, 5], 2, 0.05), Some(4));
    assert_eq!(figures_needed([1, 3], 2, 0.05), Some(5));
}

/// Where the figures of each group are equal, Welch's test has nothing to go by.
#[test]
fn groups_without_spread_are_left_to_the_permutation_test() {
    for (first, second) in [(&[2.0; 3][..], &[1.0; 9][..]), (&[1.0; 3][..], &[1.0; 9][..])] {
        let asked = asked(0.05, 0.5);
        let permuted = permutation::apart(first, second, &asked).unwrap();
        assert_eq!(apart(first, second, &asked).unwrap().p_value, permuted.p_value);
        assert_eq!(apart(first, second, &asked).unwrap().interval, permuted.interval);
    }
}

fn group() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0_i32..40).prop_map(f64::from), 2..8)
}

proptest! {
    #[test]
    fn groups_of_the_same_size_are_as_far_apart_as_by_permutation(
        pairs in prop::collection::vec((0.0_f64..9.0, 0.0_f64..9.0), 1..7),
        alpha in 0.02_f64..0.4,
        bar in -5.0_f64..5.0,
    ) {
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let asked = asked(alpha, bar);
        let permuted = permutation::apart(&first, &second, &asked);
        prop_assert_eq!(apart(&first, &second, &asked), permuted.clone());
        let figures = [[first, second]];
        prop_assert_eq!(each_apart(&figures, &asked), [permuted]);
    }

    #[test]
    fn p_and_interval_agree(
        first in group(), second in group(), alpha in 0.02_f64..0.4, tenths in -100_i32..100,
    ) {
        let bar = f64::from(tenths) / 10.0 + 0.05;
        let got = apart(&first, &second, &asked(alpha, bar)).unwrap();
        let (low, high) = got.interval;
        prop_assert!(low.is_none_or(|low| low <= got.difference), "{got:?}");
        prop_assert!(high.is_none_or(|high| high >= got.difference), "{got:?}");
        let leaves_0_out = low.is_some_and(|low| low > 1e-9) || high.is_some_and(|high| high < -1e-9);
        prop_assert_eq!(leaves_0_out, got.p_value <= alpha + 1e-9, "{:?}", got);
        let is_shown = got.difference > bar && got.p_above_bar <= alpha / 2.0 + 1e-9;
        prop_assert_eq!(low.is_some_and(|low| low > bar), is_shown, "{:?}", got);
    }

    #[test]
    fn swapping_the_groups_turns_it_round(first in group(), second in group()) {
        let there = apart(&first, &second, &asked(0.05, 0.0)).unwrap();
        let back = apart(&second, &first, &asked(0.05, 0.0)).unwrap();
        prop_assert!((there.p_value - back.p_value).abs() < 1e-9);
        let opposite = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a + b).abs() < 1e-6,
            (a, b) => a == b,
        };
        prop_assert!(opposite(there.interval.0, back.interval.1));
        prop_assert!(opposite(there.interval.1, back.interval.0));
    }
}
