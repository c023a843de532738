//! How many runs it would take.

use crate::unpaired::{Welch, can_decide};

/// More than that nobody runs.
const MOST: usize = 1_000;

/// How far from 0 a log ratio must be to be a difference, and how close to be none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    beyond: f64,
    within: f64,
}

impl Margins {
    /// Where a ratio counts from 1 + `margin` on, and figures may be above their true values by the share
    /// `resolution`.
    pub(super) fn of(margin: f64, resolution: f64) -> Self {
        let (margin, resolution) = (margin.ln_1p(), resolution.ln_1p());
        Self { beyond: margin + resolution, within: margin - resolution }
    }
}

/// How many runs each side needs to decide a figure with a probability of 80 %, if its true log ratio were
/// `difference` and the runs of each side have one of these `variances`: a side that has as many needs no
/// more. By the normal distribution, which is close enough for an estimate from a few runs. `None` if it
/// would take more than 1,000, or if no number of them can decide at the level `alpha`.
pub(super) fn runs_needed(
    difference: f64,
    variances: [f64; 2],
    runs: [usize; 2],
    figures: usize,
    margins: Margins,
    alpha: f64,
) -> Option<usize> {
    let (apart, Margins { beyond, within }) = (difference.abs(), margins);
    // A test at the first step of Holm, or an interval that ends inside the margin on both sides.
    let is_enough = |sizes: [usize; 2]| {
        if apart > beyond {
            let significant = distance(variances, sizes, alpha / figures.max(1) as f64, 0.84);
            let far = 0.84 * error(variances, sizes.map(|size| size as f64));
            significant <= apart && far <= apart - beyond
        } else {
            apart < within && distance(variances, sizes, alpha, 1.28) <= within - apart
        }
    };
    // They were not enough, whatever an estimate says.
    (runs[0].min(runs[1]) + 1..=MOST).find(|&needed| {
        let sizes = runs.map(|have| have.max(needed));
        can_decide(sizes[0], sizes[1], figures, alpha) && is_enough(sizes)
    })
}

/// How far the means of sides of `sizes` must be apart so that a test at the level `alpha` finds it with the
/// probability whose normal quantile is `power`.
fn distance(variances: [f64; 2], sizes: [usize; 2], alpha: f64, power: f64) -> f64 {
    let [new, old] = sizes.map(|size| size as f64);
    if new != old {
        let reach = Welch::new(variances, sizes).reach(alpha);
        return reach + power * error(variances, [new, old]);
    }
    let normal = normal_quantile(1.0 - alpha / 2.0);
    // By Student's distribution it takes so many runs more (Guenther, 1981).
    match new - normal * normal / 4.0 {
        size if size > 0.0 => (normal + power) * error(variances, [size; 2]),
        _ => f64::INFINITY,
    }
}

/// The standard error of the difference of means.
fn error(variances: [f64; 2], sizes: [f64; 2]) -> f64 {
    (variances[0] / sizes[0] + variances[1] / sizes[1]).sqrt()
}

/// The quantile of the normal distribution at `share` from 0.5 to 1, to 5 parts in 10,000
/// (Abramowitz and Stegun, 26.2.23).
fn normal_quantile(share: f64) -> f64 {
    let t = (-2.0 * (1.0 - share).max(1e-300).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ALPHA, MARGIN};
    use crate::unpaired::{Asked, apart};
    use wakescope_core::random::Random;

    /// SciPy 1.17.1: `norm.ppf(share)`
    #[test]
    fn quantiles_as_scipy_has_them() {
        for (share, want) in
            [(0.9, 1.28155157), (0.975, 1.95996398), (0.9875, 2.24140273), (0.999, 3.09023231)]
        {
            assert!((normal_quantile(share) - want).abs() < 5e-4, "{share}");
        }
    }

    #[track_caller]
    fn check(ratio: f64, spread: f64, runs: [usize; 2], want: Option<usize>) {
        let got =
            runs_needed(ratio.ln(), [spread * spread; 2], runs, 2, Margins::of(MARGIN, 0.0), ALPHA);
        assert_eq!(got, want, "{ratio} × ± {spread}, {runs:?}");
    }

    #[test]
    fn more_spread_and_smaller_differences_take_more_runs() {
        check(2.0, 0.01, [3, 3], Some(5));
        check(2.0, 0.3, [3, 3], Some(5));
        check(1.5, 0.3, [5, 5], Some(12));
        check(1.2, 0.3, [5, 5], Some(53));
        check(0.5, 0.01, [7, 7], Some(8));
        // No difference to be shown, and one at the margin.
        check(1.0, 0.05, [5, 5], Some(7));
        check(1.0, 0.3, [5, 5], Some(210));
        check(1.1, 0.3, [5, 5], None);
        check(1.0, 0.0, [5, 5], Some(6));
    }

    /// A side that has more runs than it takes is not asked for more, and one with a larger spread needs more.
    #[test]
    fn the_smaller_side_needs_more() {
        check(3.0, 0.05, [1, 30], Some(2));
        check(3.0, 0.05, [30, 1], Some(2));
        check(3.0, 0.3, [2, 30], Some(4));
        check(1.5, 0.3, [5, 30], Some(9));
        check(1.2, 0.3, [5, 30], Some(53));
        check(1.0, 0.05, [3, 30], Some(5));
        let needed = |variances| {
            runs_needed(0.4, variances, [3, 30], 2, Margins::of(MARGIN, 0.0), ALPHA).unwrap()
        };
        assert!(needed([0.09, 0.01]) > needed([0.01, 0.09]));
    }

    #[test]
    fn so_many_decide_in_four_of_five() {
        let mut random = Random::new(1);
        let mut normal = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        for (ratio, spreads, runs) in [(1.5_f64, [0.2, 0.2], [3, 12]), (2.0, [0.3, 0.1], [4, 14])] {
            let variances = spreads.map(|spread: f64| spread * spread);
            let margins = Margins::of(MARGIN, 0.0);
            let needed = runs_needed(ratio.ln(), variances, runs, 1, margins, ALPHA).unwrap();
            assert!(needed <= runs[1], "only the smaller side needs more: {needed}");
            let decided = (0..100).filter(|_| {
                let mut side = |count: usize, spread: f64, mean: f64| -> Vec<f64> {
                    (0..count).map(|_| mean + spread * normal()).collect()
                };
                let (new, old) =
                    (side(needed, spreads[0], ratio.ln()), side(runs[1], spreads[1], 0.0));
                let asked = Asked { alpha: ALPHA, bar: 0.0, figures: 1, seed: 1 };
                let got = apart(&new, &old, &asked).unwrap();
                got.p_value <= ALPHA && got.difference > MARGIN.ln_1p()
            });
            let decided = decided.count();
            assert!(decided >= 68, "{ratio} with {needed} against {}: {decided} of 100", runs[1]);
        }
    }
}
