//! The binomial distribution, and what follows from it for the order of samples.

use std::f64::consts::PI;

/// How likely `k` of `n` are, each with probability `p` (C. Loader, "Fast and Accurate Computation
/// of Binomial Probabilities", 2000: no difference of large logarithms, so nothing is lost with
/// 10^12 samples).
pub fn probability(k: u64, n: u64, p: f64) -> f64 {
    let q = 1.0 - p;
    if k > n || !(0.0..=1.0).contains(&p) {
        return 0.0;
    }
    let (all, hits, rest) = (n as f64, k as f64, (n - k) as f64);
    if p == 0.0 || q == 0.0 {
        return f64::from(hits == all * p);
    }
    if k == 0 {
        return (all * (-p).ln_1p()).exp();
    }
    if k == n {
        return (all * p.ln()).exp();
    }
    let log = stirling_error(n)
        - stirling_error(k)
        - stirling_error(n - k)
        - deviance(hits, all * p, hits - all * p)
        - deviance(rest, all * q, rest - all * q);
    log.exp() * (all / (2.0 * PI * hits * rest)).sqrt()
}

/// Up to this variance, terms are added up, which takes steps in proportion to its square root.
/// Above it, the expansion errs by less than 10^-9.
const MOST_SUMMED: f64 = 1e7;

/// How likely `k` or fewer of `n` are, each with probability `p`. Takes at most 30,000 steps.
pub fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    if n as f64 * p * (1.0 - p) > MOST_SUMMED {
        return expanded(k, n, p);
    }
    let odds = p / (1.0 - p);
    // The tail that does not hold the mode is added up, from its largest term on.
    let (mut sum, mut term);
    if (k as f64) < n as f64 * p {
        term = probability(k, n, p);
        sum = term;
        for i in (1..=k).rev() {
            term *= i as f64 / ((n - i + 1) as f64 * odds);
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        sum.min(1.0)
    } else {
        term = probability(k + 1, n, p);
        sum = term;
        for i in k + 1..n {
            term *= (n - i) as f64 * odds / (i + 1) as f64;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        (1.0 - sum).max(0.0)
    }
}

/// [`at_most`] by the saddlepoint expansion of Lugannani and Rice (1980), with the correction for
/// whole numbers that Daniels (1987) calls the second. It takes the same time for any `n`.
fn expanded(k: u64, n: u64, p: f64) -> f64 {
    let q = 1.0 - p;
    let (hits, rest) = (k as f64 + 0.5, (n - k) as f64 - 0.5);
    let (mean, mean_rest) = (n as f64 * p, n as f64 * q);
    // The smaller one is known to more digits. Both must be as far apart, or the difference below
    // is lost in their rounding.
    let apart = if p < 0.5 { hits - mean } else { mean_rest - rest };
    let deviances = deviance(hits, mean, apart) + deviance(rest, mean_rest, -apart);
    let distance = (2.0 * deviances.max(0.0)).sqrt();
    let distance = distance.copysign(apart);
    let correction = if distance.abs() < 1e-4 {
        // The limit of the difference below, whose terms both grow beyond bounds: a sixth of the skewness.
        (q - p) / (n as f64 * p * q).sqrt() / 6.0
    } else {
        let tilt = (apart / mean).ln_1p() - (-apart / mean_rest).ln_1p();
        1.0 / distance - 1.0 / (2.0 * (tilt / 2.0).sinh() * (hits * rest / n as f64).sqrt())
    };
    let density = (-0.5 * distance * distance).exp() / (2.0 * PI).sqrt();
    // Of the smaller tail, so that nothing is lost of a small probability.
    let below = if distance < 0.0 {
        normal_above(-distance) + density * correction
    } else {
        1.0 - (normal_above(distance) - density * correction)
    };
    below.clamp(0.0, 1.0)
}

/// The probability that a normal variable is above `x`, which is not negative.
fn normal_above(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * PI).sqrt();
    if x < 3.0 {
        // x + x³/3 + x⁵/(3·5) + …, of which all terms are positive.
        let (mut term, mut sum) = (x, x);
        for i in 1..60 {
            term *= x * x / f64::from(2 * i + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // Laplace's continued fraction, from its end.
    let fraction = (1..=100).rev().fold(x, |rest, i| x + f64::from(i) / rest);
    density / fraction
}

/// The largest probability, over all distributions, that as many independent samples fall into buckets in
/// exactly these numbers, none of which is 0: the multinomial probability where each sample falls into a
/// bucket with the share that was seen.
pub(crate) fn largest_probability_of(counts: &[u64]) -> f64 {
    // ln n! is n ln n - n + this; the rest cancels out.
    let beyond = |n: u64| 0.5 * (2.0 * PI * n as f64).ln() + stirling_error(n);
    let all = counts.iter().fold(0_u64, |sum, &count| sum.saturating_add(count)).max(1);
    (beyond(all) - counts.iter().map(|&count| beyond(count)).sum::<f64>()).exp().min(1.0)
}

/// ln n! less Stirling's formula.
fn stirling_error(n: u64) -> f64 {
    let x = n as f64;
    if n < 16 {
        let factorial: f64 = (1..=n).map(|i| i as f64).product();
        return factorial.ln() - ((x + 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln());
    }
    let square = x * x;
    (1.0 / 12.0
        - (1.0 / 360.0
            - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square)
            / square)
        / x
}

/// x ln(x / mean) + mean - x, without loss where both are close; `apart` is x - mean.
fn deviance(x: f64, mean: f64, apart: f64) -> f64 {
    if apart.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - apart;
    }
    // With v = (x - mean) / (x + mean), ln(x / mean) is 2 (v + v³/3 + v⁵/5 + …).
    let v = apart / (x + mean);
    let mut sum = apart * v;
    let mut power = 2.0 * x * v;
    for i in 1..1_000 {
        power *= v * v;
        let next = sum + power / f64::from(2 * i + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// Two ranks among ordered samples, counted from the largest (1), that hold a quantile between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// The sample of this rank is not above the quantile; `None` if all may be.
    pub low: Option<u64>,
    /// The sample of this rank is not below it; `None` if all may be.
    pub high: Option<u64>,
}

/// The ranks that hold the quantile which a share `tail` of all samples lies beyond, by `count`
/// independent samples. Either is wrong with probability `alpha` / 2 at most: how many samples lie
/// beyond a quantile is binomial, whatever the distribution.
pub(crate) fn ranks_around(tail: f64, count: u64, alpha: f64) -> Ranks {
    let half = alpha / 2.0;
    let beyond = |k: u64| at_most(k, count, tail);
    // 40 standard deviations from the mean nothing is left.
    let (mean, sd) = (count as f64 * tail, (count as f64 * tail * (1.0 - tail)).sqrt());
    let (least, most) = (floor(mean - 40.0 * sd - 40.0), floor(mean + 40.0 * sd + 40.0));
    // The sample of rank j is below the quantile if fewer than j lie beyond that.
    let first_above = |bar: f64| {
        let (mut low, mut high) = (least, most.min(count));
        while low < high {
            let middle = low + (high - low) / 2;
            if beyond(middle) > bar { high = middle } else { low = middle + 1 }
        }
        low
    };
    let high = first_above(half);
    // … and above it if at least j lie beyond.
    let low = {
        let (mut low, mut high) = (least, most.min(count));
        while low < high {
            let middle = low + (high - low) / 2;
            if 1.0 - beyond(middle) <= half { high = middle } else { low = middle + 1 }
        }
        low + 1
    };
    Ranks { low: (low <= count).then_some(low), high: (high > 0).then_some(high) }
}

/// The whole part of a number that is not negative; 0 of others.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
fn floor(x: f64) -> u64 {
    x.max(0.0).floor() as u64
}

#[cfg(test)]
mod tests;
