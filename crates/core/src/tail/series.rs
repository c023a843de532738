//! Tests on a series: whether its level stays the same, and whether its values know of each other.

/// Above this, the level of a series of independent values has changed, with 5 % false alarms
/// (Kwiatkowski, Phillips, Schmidt and Shin, J. Econometrics 54, 1992, table 1).
pub(super) const LEVEL_LIMIT: f64 = 0.463;

/// The statistic of Kwiatkowski et al. for a constant level: large if the level drifts or jumps.
/// What neighbours share is taken out over 4 (n/100)^(1/4) lags (Bartlett's weights).
pub(super) fn level(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let centred = centred(values);
    let lags = whole(4.0 * (n / 100.0).powf(0.25));
    let mut variance = product(&centred, 0);
    for lag in 1..=lags {
        let weight = 1.0 - lag as f64 / (lags as f64 + 1.0);
        variance += 2.0 * weight * product(&centred, lag);
    }
    let mut sum = 0.0;
    let partial_sums: f64 = centred
        .iter()
        .map(|value| {
            sum += value;
            sum * sum
        })
        .sum();
    if variance > 0.0 { partial_sums / (n * variance) } else { 0.0 }
}

/// The probability that independent values are as much correlated with those before them as these
/// (Ljung and Box, Biometrika 65, 1978), over the last ten, or fewer in short series.
pub(super) fn independence(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let centred = centred(values);
    let variance = product(&centred, 0);
    if variance <= 0.0 {
        return 1.0;
    }
    // An even number, for the closed form below.
    let lags = if values.len() >= 50 { 10 } else { 4 };
    let sum: f64 =
        (1..=lags).map(|lag| (product(&centred, lag) / variance).powi(2) / (n - lag as f64)).sum();
    chi_square_above(n * (n + 2.0) * sum, lags / 2)
}

/// The probability that `times` within 0 to 1, of events that come alone and at a constant rate, are
/// as unevenly spread as these (Kolmogorov, with Stephens' correction for few).
pub(super) fn evenness(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let n = times.len() as f64;
    let gap = |(i, &time): (usize, &f64)| {
        let (before, after) = (i as f64 / n, (i as f64 + 1.0) / n);
        (time - before).max(after - time)
    };
    let largest = times.iter().enumerate().map(gap).fold(0.0, f64::max);
    let x = largest * (n.sqrt() + 0.12 + 0.11 / n.sqrt());
    let term = |k: i32| {
        let k = f64::from(k);
        let sign = if k % 2.0 == 0.0 { -1.0 } else { 1.0 };
        2.0 * sign * (-2.0 * k * k * x * x).exp()
    };
    // The series needs more and more terms towards 0, where the answer is 1.
    if x < 0.3 { 1.0 } else { (1..=20).map(term).sum::<f64>().clamp(0.0, 1.0) }
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| value - mean).collect()
}

/// The sum of the products of values `lag` apart.
fn product(values: &[f64], lag: usize) -> f64 {
    values.iter().zip(values.iter().skip(lag)).map(|(a, b)| a * b).sum()
}

/// The probability of a chi-square above `x` with twice `half` degrees of freedom.
fn chi_square_above(x: f64, half: usize) -> f64 {
    let mut term = (-x / 2.0).exp();
    let mut sum = term;
    for i in 1..half {
        term *= x / 2.0 / i as f64;
        sum += term;
    }
    sum.min(1.0)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A few lags.
fn whole(value: f64) -> usize {
    value as usize
}
