//! How many runs it would take.

use crate::permutation::figures_needed;

/// More than that nobody runs.
const MOST: f64 = 1_000.0;

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

/// How many runs a side would decide a figure with a probability of 80 %, if its true log ratio
/// were `difference` and runs vary by `spread` within a side. By the normal distribution, which is
/// close enough for an estimate from a few runs. `None` if it would take more than 1,000, or if no number
/// of them can decide at the level `alpha`.
pub(super) fn runs_needed(
    difference: f64,
    spread: f64,
    runs: [usize; 2],
    figures: usize,
    margins: Margins,
    alpha: f64,
) -> Option<usize> {
    let (apart, Margins { beyond, within }) = (difference.abs(), margins);
    let variance = 2.0 * spread * spread;
    // A test at the first step of Holm, or an interval that ends inside the margin on both sides.
    let test = normal_quantile(1.0 - alpha / 2.0 / figures.max(1) as f64);
    let interval = normal_quantile(1.0 - alpha / 2.0);
    let estimate = if apart > beyond {
        let significant = variance * ((test + 0.84) / apart).powi(2) + test * test / 4.0;
        let far = variance * (0.84 / (apart - beyond)).powi(2);
        significant.max(far)
    } else if apart < within {
        variance * ((interval + 1.28) / (within - apart)).powi(2) + interval * interval / 4.0
    } else {
        return None;
    };
    if !estimate.is_finite() || estimate > MOST {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 0 and 1,000.
    let estimate = estimate.ceil() as usize;
    // They were not enough, whatever an estimate says.
    let more = runs[0].max(runs[1]) + 1;
    Some(estimate.max(figures_needed(figures, alpha)?).max(more))
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
        let got = runs_needed(ratio.ln(), spread, runs, 2, Margins::of(MARGIN, 0.0), ALPHA);
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
}
