//! Distributions from rows of a histogram.

use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::{Bucket, Histogram};

/// Rows of a histogram, ascending, with what a file states beside them. All in ns.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    buckets: Vec<Bucket>,
    count: u64,
}

impl Counts {
    /// Adds the next row. An empty one adds nothing.
    pub(super) fn push(&mut self, lower: u64, upper: u64, count: u64) -> Result<(), String> {
        if count == 0 {
            return Ok(());
        }
        if lower >= upper {
            return Err(format!("a bucket from {lower} ns to {upper} ns holds nothing"));
        }
        if self.buckets.last().is_some_and(|last| lower < last.upper) {
            return Err(format!("a bucket begins at {lower} ns, inside the one before it"));
        }
        let sum = self.count.checked_add(count);
        self.count = sum.ok_or("the counts add up to more than 2^64")?;
        self.buckets.push(Bucket { lower, upper, count });
        Ok(())
    }

    /// Samples so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Takes the last bucket off.
    pub(super) fn pop(&mut self) -> Option<Bucket> {
        let last = self.buckets.pop()?;
        self.count -= last.count;
        Some(last)
    }

    /// The sum of all samples if each were at the lower edge of its bucket.
    pub(super) fn least_sum(&self) -> u64 {
        let product = |b: &Bucket| u128::from(b.lower) * u128::from(b.count);
        let sum = self.buckets.iter().map(product).fold(0, u128::saturating_add);
        u64::try_from(sum).unwrap_or(u64::MAX)
    }

    /// The distribution, if there is one with these extremes.
    pub(super) fn finish(
        self,
        min_ns: u64,
        max_ns: u64,
        sum_ns: u64,
    ) -> Result<Distribution, String> {
        if self.count == 0 {
            return Ok(Distribution::default());
        }
        let distribution = Distribution {
            count: self.count,
            min_ns: Some(min_ns),
            max_ns: Some(max_ns),
            max_at_ns: None,
            sum_ns,
            histogram: Histogram::from_buckets(self.buckets)?,
            stated: None,
        };
        match distribution.fault() {
            Some(fault) => Err(fault),
            None => Ok(distribution),
        }
    }
}

/// `count` samples of which only the extremes are known: one bucket that holds both.
pub(super) fn wide(
    count: u64,
    min_ns: u64,
    max_ns: u64,
    resolution_ns: u64,
    sum_ns: u64,
) -> Result<Distribution, String> {
    let mut counts = Counts::default();
    if min_ns > max_ns {
        return Err("the minimum is above the maximum".into());
    }
    counts.push(min_ns, end_of(max_ns, resolution_ns)?, count)?;
    counts.finish(min_ns, max_ns, sum_ns)
}

/// Where the values end that are stated as `value_ns`.
pub(super) fn end_of(value_ns: u64, resolution_ns: u64) -> Result<u64, String> {
    value_ns.checked_add(resolution_ns).ok_or_else(|| format!("{value_ns} ns is too large"))
}

/// `value` of a unit in ns.
pub(super) fn in_ns(value: u64, unit_ns: u64) -> Result<u64, String> {
    // Room for a bucket's width is left above.
    let ns = value.checked_mul(unit_ns).filter(|&ns| ns < 1 << 62);
    ns.ok_or_else(|| format!("{value} is too large for a time"))
}

/// The sum of `count` samples whose mean is a number of thousandths of a unit.
pub(super) fn sum_of_mean(count: u64, mean_thousandths: u64, unit_ns: u64) -> u64 {
    let sum = u128::from(count)
        .saturating_mul(u128::from(mean_thousandths))
        .saturating_mul(u128::from(unit_ns))
        / 1_000;
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// The greatest width that divides both (Euclid); of 0 and a number, that number.
pub(super) fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
