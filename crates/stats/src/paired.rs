//! Two series of positive figures, paired: how far apart they are, and whether chance explains it.
//!
//! All that is assumed is that, were both alike, each pair could as well have come the other way
//! round. So every p-value is counted, never approximated by a distribution.

mod sign_flip;

pub use sign_flip::sign_flip;

/// What pairs of positive figures say about B against A.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// Pairs, at least one.
    pub count: u32,
    /// Median of the ratios B / A; of an even number, the geometric mean of the two in the middle,
    /// so that A against B is exactly the inverse.
    pub median: f64,
    /// The smallest ratio.
    pub low: f64,
    /// The largest ratio.
    pub high: f64,
    /// Pairs in which B is smaller.
    pub smaller: u32,
    /// Pairs in which B is larger. In the rest they are equal.
    pub larger: u32,
    /// How likely a mean log ratio so far from 0 is, in either direction, if each pair could as
    /// well have come the other way round: above 0, at most 1. It is 1 if the mean is on the other side of 0
    /// than the median, because then it shows nothing of the median.
    pub p_value: f64,
    /// At least 95 % sure to hold the median ratio of all pairs that there could be; `None` if
    /// there are too few for that.
    pub interval: Option<(f64, f64)>,
}

impl Paired {
    /// Compares `pairs` of (A, B). `None` if there are none, or if a figure is not a positive number.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let usable = |x: f64| x.is_finite() && x > 0.0;
        if pairs.is_empty() || !pairs.iter().all(|&(a, b)| usable(a) && usable(b)) {
            return None;
        }
        let mut ratios: Vec<f64> = pairs.iter().map(|&(a, b)| b / a).collect();
        if !ratios.iter().all(|&ratio| usable(ratio)) {
            return None;
        }
        ratios.sort_by(f64::total_cmp);
        let median = middle(&ratios);
        let count_if = |wanted: fn(f64, f64) -> bool| {
            counted(pairs.iter().filter(|&&(a, b)| wanted(a, b)).count())
        };
        Some(Self {
            count: counted(pairs.len()),
            median,
            low: ratios[0],
            high: ratios[ratios.len() - 1],
            smaller: count_if(|a, b| b < a),
            larger: count_if(|a, b| b > a),
            p_value: p_value(pairs, median),
            interval: trimmed(counted(ratios.len()))
                .map(|cut| (ratios[cut], ratios[ratios.len() - 1 - cut])),
        })
    }
}

fn counted(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn p_value(pairs: &[(f64, f64)], median: f64) -> f64 {
    let ratios: Vec<f64> = pairs.iter().map(|&(a, b)| log_ratio(a, b)).collect();
    // Two roots multiplied are 1 up to rounding.
    let is_between = median.ln().abs() < 1e-9;
    match ratios.iter().sum::<f64>() * median.ln() < 0.0 && !is_between {
        true => 1.0,
        false => sign_flip(&ratios),
    }
}

/// ln(B / A), exactly the negative of ln(A / B): rounding must not favour a side.
fn log_ratio(a: f64, b: f64) -> f64 {
    if b >= a { (b / a).ln() } else { -(a / b).ln() }
}

/// The median of sorted positive numbers.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[half],
        // Two roots rather than the root of a product, which could overflow.
        _ => sorted[half - 1].sqrt() * sorted[half].sqrt(),
    }
}

/// How many of `count` ordered values can be left out at either end so that what remains holds the
/// median with at least 95 %. Each value is below it with probability one half, so the number
/// below is binomial.
fn trimmed(count: u32) -> Option<usize> {
    let n = f64::from(count);
    let (mut log_ways, mut tail, mut cut) = (0.0_f64, 0.0_f64, None);
    for left_out in 0..count.div_ceil(2) {
        tail += (log_ways - n * std::f64::consts::LN_2).exp();
        if 1.0 - 2.0 * tail < 0.95 {
            break;
        }
        cut = usize::try_from(left_out).ok();
        log_ways += ((n - f64::from(left_out)) / f64::from(left_out + 1)).ln();
    }
    cut
}

/// Corrects p-values that were looked at together (Holm): the result is at least the raw value and
/// at most 1, and the order is kept. With it, the chance of even one false alarm among them all is
/// what one would have allowed for a single one.
pub(crate) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut so_far = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let remaining = f64::from(counted(p_values.len() - rank));
        so_far = so_far.max(p_values[index] * remaining).min(1.0);
        adjusted[index] = so_far;
    }
    adjusted
}

/// The fewest pairs that can decide `comparisons` looked at together at the level `alpha`: those
/// with which even the smallest p-value there is, 2/2^n, passes Holm's first step, and the median has an
/// interval.
pub fn pairs_needed(comparisons: usize, alpha: f64) -> u32 {
    let smallest = |n: u32| 2.0 * 0.5_f64.powi(n.try_into().unwrap_or(i32::MAX));
    let comparisons = f64::from(counted(comparisons.max(1)));
    (1..1_000)
        .find(|&n| smallest(n) * comparisons <= alpha && trimmed(n).is_some())
        .unwrap_or(1_000)
}

#[cfg(test)]
mod tests;
