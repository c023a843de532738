//! The sign-flip permutation test.

/// Up to this many differences that are not 0, all 2^n signs are counted.
const EXACT: usize = 30;

/// Steps of an average difference where they are too many for that. More would be finer and slower:
/// time grows with it, and with the square of the number of differences (a thousand take about a
/// tenth of a second).
const STEPS: usize = 200;

/// The share of all 2^n ways to sign `differences` in which their sum is at least as far from 0 as
/// it is, in either direction: above 0, and 1 if all differences are 0.
///
/// A difference of 0 stays in, and weighs nothing: it has no other way round.
///
/// Up to 30 differences the count is complete. Above, the differences are rounded to a 200th of
/// their average, and whatever rounding could have pushed below the bar is counted as above it; so
/// the p-value is never too small.
pub fn sign_flip(differences: &[f64]) -> f64 {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).filter(|&d| d > 0.0).collect();
    let whole: f64 = sizes.iter().sum();
    if sizes.is_empty() || !whole.is_finite() {
        return 1.0;
    }
    // As whole numbers, so that sums do not depend on the order in which they are formed.
    let steps = if sizes.len() <= EXACT { 1 << 50 } else { STEPS * sizes.len() };
    let scaled = |d: f64| whole_number(d.abs() / whole * steps as f64);
    let sizes: Vec<i64> = sizes.into_iter().map(scaled).collect();
    let observed: i64 =
        differences.iter().map(|&d| if d < 0.0 { -scaled(d) } else { scaled(d) }).sum();
    // Each was rounded by half a step at most, on both sides of the comparison.
    let bar = observed.abs() - i64::try_from(sizes.len()).unwrap_or(i64::MAX);
    if bar <= 0 {
        return 1.0;
    }
    let share = if sizes.len() <= EXACT {
        share_of_all_signs(&sizes, bar)
    } else {
        share_by_adding_up(&sizes, bar)
    };
    share.clamp(f64::MIN_POSITIVE, 1.0)
}

#[allow(clippy::cast_possible_truncation)] // At most 2^50, as the caller scales it.
fn whole_number(value: f64) -> i64 {
    value.round() as i64
}

/// The share of all signs with which the sum of `sizes` is at least `bar` away from 0.
///
/// `bar` is above 0. The sizes are parted in two halves; for each sum of the one, those of the other that reach the
/// bar with it are found in a sorted list. So 2^n signs take about 2^(n/2) steps.
fn share_of_all_signs(sizes: &[i64], bar: i64) -> f64 {
    let (left, right) = sizes.split_at(sizes.len() / 2);
    let (left, mut right) = (signed_sums(left), signed_sums(right));
    right.sort_unstable();
    // Signs come in pairs of opposites, so it is enough to count one side.
    let reaching: usize =
        left.iter().map(|sum| right.len() - right.partition_point(|r| sum + r < bar)).sum();
    2.0 * reaching as f64 / (left.len() as f64 * right.len() as f64)
}

/// The sums of `sizes` under all 2^n signs.
fn signed_sums(sizes: &[i64]) -> Vec<i64> {
    sizes.iter().fold(vec![0], |sums, size| {
        sums.iter().map(|sum| sum + size).chain(sums.iter().map(|sum| sum - size)).collect()
    })
}

/// As [`share_of_all_signs`], for many sizes whose sum is small enough to have a slot for each
/// value: the chance of each sum, size after size.
fn share_by_adding_up(sizes: &[i64], bar: i64) -> f64 {
    let sizes: Vec<usize> = sizes.iter().filter_map(|&s| usize::try_from(s).ok()).collect();
    let whole: usize = sizes.iter().sum();
    // Slot `s` holds the chance that the sizes with a plus add up to `s`.
    let mut chance = vec![0.0_f64; whole + 1];
    chance[0] = 1.0;
    let mut reached = 0;
    for size in sizes {
        reached += size;
        for plus in (0..=reached).rev() {
            let with = if plus >= size { chance[plus - size] } else { 0.0 };
            chance[plus] = 0.5 * (chance[plus] + with);
        }
    }
    let far = |plus: usize| {
        let sum = 2 * i128::try_from(plus).unwrap_or(0) - i128::try_from(whole).unwrap_or(0);
        sum.abs() >= i128::from(bar)
    };
    chance.iter().enumerate().filter(|&(plus, _)| far(plus)).map(|(_, share)| share).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(differences: &[f64], want: f64) {
        let got = sign_flip(differences);
        assert!((got - want).abs() < 1e-12, "{differences:?}: {got}, not {want}");
    }

    #[test]
    fn signs_are_counted() {
        check(&[], 1.0);
        check(&[0.0, 0.0, -0.0], 1.0);
        check(&[1.0], 1.0);
        check(&[1.0, 1.0], 0.5);
        check(&[1.0, -1.0], 1.0);
        check(&[1.0, 2.0, 3.0], 0.25);
        // +1+2-3 is 0: every sum is as far away.
        check(&[1.0, 2.0, -3.0], 1.0);
        // ±1±2±4±8, of which 15 and 13 are at least 13.
        check(&[-1.0, 2.0, 4.0, 8.0], 4.0 / 16.0);
        check(&[-0.1; 10], 2.0 / 1024.0);
        check(&[0.3; 30], 2.0 / f64::from(1 << 30));
    }

    #[test]
    fn a_difference_of_nothing_weighs_nothing() {
        check(&[0.1, 0.2, 0.3, 0.0, 0.0], 0.25);
    }

    #[test]
    fn equal_sums_are_equal_whatever_their_terms() {
        // 0.1 + 0.2 and 0.3 differ in the last bit.
        check(&[0.1, 0.2, 0.3, -0.3], 12.0 / 16.0);
    }

    #[test]
    fn many_differences_are_counted_too() {
        check(&[0.7; 40], 2.0 * 0.5_f64.powi(40));
        assert_eq!(sign_flip(&[0.0; 1000]), 1.0);
        let many: Vec<f64> = (0..300).map(|i| f64::from(i % 7) + 1.0).collect();
        let p = sign_flip(&many);
        assert!(p > 0.0 && p < 1e-50, "{p}");
        let balanced: Vec<f64> = (0..150).flat_map(|i| [f64::from(i), f64::from(-i)]).collect();
        assert_eq!(sign_flip(&balanced), 1.0);
    }

    /// All signs, one by one.
    fn counted_one_by_one(differences: &[i64]) -> f64 {
        let observed = differences.iter().sum::<i64>().abs();
        let signed = |signs: u32| -> i64 {
            differences
                .iter()
                .enumerate()
                .map(|(i, d)| if signs >> i & 1 == 1 { -d } else { *d })
                .sum()
        };
        let far = (0..1_u32 << differences.len()).filter(|&s| signed(s).abs() >= observed).count();
        far as f64 / f64::from(1_u32 << differences.len())
    }

    proptest! {
        #[test]
        fn both_ways_to_count_agree_with_counting_one_by_one(
            differences in prop::collection::vec(-50_i64..50, 1..12)
        ) {
            let want = counted_one_by_one(&differences);
            let got = sign_flip(&differences.iter().map(|&d| d as f64).collect::<Vec<_>>());
            prop_assert!((got - want).abs() < 1e-12, "{got} is not {want}");
            let sizes: Vec<i64> = differences.iter().map(|d| d.abs()).collect();
            let bar = differences.iter().sum::<i64>().abs();
            let added = share_by_adding_up(&sizes, bar);
            prop_assert!((added - want).abs() < 1e-12, "{added} is not {want}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_grid_for_many_is_never_too_sure(
            differences in prop::collection::vec(-1.0_f64..1.0, 31..34)
        ) {
            let whole: f64 = differences.iter().map(|d| d.abs()).sum();
            let steps = (1_u64 << 50) as f64;
            let scaled: Vec<i64> =
                differences.iter().map(|d| whole_number(d / whole * steps)).collect();
            let sizes: Vec<i64> = scaled.iter().map(|d| d.abs()).collect();
            let bar = scaled.iter().sum::<i64>().abs();
            prop_assume!(bar > 0);
            let exact = share_of_all_signs(&sizes, bar);
            let got = sign_flip(&differences);
            prop_assert!(got >= exact - 1e-12 && got <= exact + 0.03, "{got} for {exact}");
        }
    }
}
