use super::*;

#[track_caller]
fn check(k: u64, n: u64, p: f64, exactly: f64, or_fewer: f64) {
    for (got, want) in [(probability(k, n, p), exactly), (at_most(k, n, p), or_fewer)] {
        assert!((got - want).abs() <= 1e-9 * want, "{k} of {n} at {p}: {got}, not {want}");
    }
}

/// SciPy 1.17.1: `binom.pmf(k, n, p), binom.cdf(k, n, p)`
#[test]
fn as_scipy_has_it() {
    check(0, 10, 0.3, 0.0282475249, 0.028247524900000005);
    check(3, 10, 0.3, 0.2668279319999998, 0.6496107184000002);
    check(10, 10, 0.3, 5.9048999999999975e-06, 1.0);
    check(12, 10_000, 0.001, 0.09481826277028826, 0.7916513294452172);
    check(9, 10_000, 0.001, 0.12516010811088843, 0.4578671239790144);
    check(1_000, 1_000_000, 0.001, 0.012620923387767836, 0.5084093682207762);
    check(999_800, 1_000_000_000, 0.001, 0.0003912690649641515, 0.42095927367890085);
    check(20, 25, 0.9, 0.06459367658396939, 0.09799362119546466);
    let two_sigma = 500_001_000_000;
    check(two_sigma, 1_000_000_000_000, 0.5, 1.0798193306352345e-07, 0.9772499220444636);
}

/// With `lgamma` of Python 3.13: n! / Π c! × Π (c / n)^c
#[test]
fn counts_that_many_buckets_have_by_chance() {
    for (counts, want) in [
        (&[7][..], 1.0),
        (&[1, 1], 0.5),
        (&[3, 2, 5], 0.08505),
        (&[9_000, 900, 80, 15, 4, 1], 4.597_777_88e-6),
        (&[700; 14], 7.781_037_03e-24),
    ] {
        let got = largest_probability_of(counts);
        assert!((got - want).abs() <= 1e-8 * want, "{counts:?}: {got}, not {want}");
    }
}

#[test]
fn nothing_is_certain_but_what_is() {
    assert_eq!((probability(3, 2, 0.5), probability(0, 0, 0.5)), (0.0, 1.0));
    assert_eq!(
        (probability(0, 5, 0.0), probability(1, 5, 0.0), probability(5, 5, 1.0)),
        (1.0, 0.0, 1.0)
    );
    assert_eq!((at_most(5, 5, 0.3), at_most(0, 0, 0.3)), (1.0, 1.0));
}

/// SciPy 1.17.1: the ranks j, counted from the largest, next to the quantile with
/// `binom.sf(j - 1, n, tail) <= alpha / 2` and `binom.cdf(j - 1, n, tail) <= alpha / 2`.
#[test]
fn ranks_that_hold_a_quantile() {
    for (tail, count, alpha, low, high) in [
        (0.5, 5, 0.05, None, None),
        (0.5, 6, 0.05, Some(6), Some(1)),
        (0.5, 100, 0.05, Some(61), Some(40)),
        (0.01, 200, 0.05, Some(6), None),
        (0.01, 1_000, 0.05, Some(18), Some(4)),
        (0.001, 2_000, 0.05, Some(6), None),
        (0.001, 3_000, 0.05, Some(8), None),
        (0.001, 10_000, 0.05, Some(18), Some(4)),
        (0.001, 10_000, 0.025, Some(19), Some(4)),
        (0.001, 10_000_000, 0.05, Some(10_197), Some(9_805)),
        (1e-4, 20_000, 0.05, Some(6), None),
        (0.5, 1_000_000_000, 0.025, Some(500_035_441), Some(499_964_560)),
    ] {
        let got = ranks_around(tail, count, alpha);
        assert_eq!(got, Ranks { low, high }, "{tail} of {count} at {alpha}");
    }
    assert_eq!(ranks_around(0.5, 0, 0.05), Ranks { low: None, high: None });
}

/// The same sums, without a bound on their steps.
fn summed(k: u64, n: u64, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    let mut term = probability(k, n, p);
    let mut sum = term;
    for i in (1..=k).rev() {
        term *= i as f64 / ((n - i + 1) as f64 * odds);
        sum += term;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

#[test]
fn the_expansion_is_the_sum() {
    for (n, p) in [(40_000_000_u64, 0.5), (1_100_000_000, 0.01), (10_100_000_000, 0.001)] {
        let (mean, sd) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
        for sds in [-8.0, -5.0, -3.0, -2.9, -1.0, -0.1, -1e-3, 0.0] {
            let k = floor(mean + sds * sd);
            let (got, want) = (expanded(k, n, p), summed(k, n, p));
            assert!((got - want).abs() <= 1e-8 * want, "{k} of {n} at {p}: {got}, not {want}");
            // From the other side: so many or fewer misses.
            let above = expanded(n - k - 1, n, 1.0 - p);
            assert!((above - (1.0 - want)).abs() < 1e-9, "{k} of {n} at {p}: {above}");
        }
    }
    for k in [0, 1, u64::MAX / 2, u64::MAX - 1] {
        let chance = at_most(k, u64::MAX, 0.5);
        assert!((0.0..=1.0).contains(&chance), "{k}: {chance}");
    }
}

#[test]
fn ranks_of_the_largest_count_take_no_longer() {
    for tail in [0.5, 0.01, 0.001] {
        let Ranks { low, high } = ranks_around(tail, u64::MAX, 0.05);
        let mean = u64::MAX as f64 * tail;
        let width = 1.959_964 * (mean * (1.0 - tail)).sqrt();
        for (got, want) in [(low, mean + width), (high, mean - width)] {
            let apart = (got.unwrap() as f64 - want).abs();
            assert!(apart < 0.01 * width, "{tail}: {got:?} is {apart} from {want}");
        }
    }
}
