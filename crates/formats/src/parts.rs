//! Where samples lie of which a file has only the buckets and the extremes.

use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::Bucket;

/// How the extremes that a file states take part in the mean and the deviation that it states.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Extremes {
    /// Both are samples.
    #[default]
    Samples,
    /// The maximum is a sample. The minimum is not known, or it is where the program began to look for
    /// one.
    MaximumOnly,
    /// Each counts as the middle of its bucket, which is no wider than twice its middle.
    Middles,
    /// Not at all: the program counts by rows.
    Rows,
}

/// So many samples, each from `low` to `high`, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) count: u64,
}

/// Where the samples lie, the extremes, which are given in ns, apart from the others. `step_ns` is what samples
/// were cut off to.
pub(crate) fn of(
    d: &Distribution,
    (min, max): (u64, u64),
    step_ns: u64,
    extremes: Extremes,
) -> Vec<Part> {
    let buckets = d.histogram.buckets();
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return Vec::new() };
    let ends = |b: &Bucket| {
        let high = b.upper.saturating_sub(step_ns).max(b.lower).max(min).min(max);
        (b.lower.max(min).min(high), high)
    };
    let (lowest, highest) = (ends(first), ends(last));
    let (least, most) = match extremes {
        Extremes::Samples => (Some((min, min)), Some((max, max))),
        Extremes::MaximumOnly => (None, Some((max, max))),
        // Middles are whole numbers. Buckets of a record need not be whole steps.
        Extremes::Middles => (
            Some((lowest.0, lowest.1.min(min.saturating_add(min / 2)).max(lowest.0))),
            Some((highest.0.max(max.div_ceil(2)).min(highest.1), highest.1)),
        ),
        Extremes::Rows => (None, None),
    };
    let least = least.filter(|_| d.count > 1);
    let part = |(low, high), count| Part { low, high, count };
    let mut parts: Vec<Part> = least.into_iter().map(|ends| part(ends, 1)).collect();
    parts.extend(buckets.iter().enumerate().map(|(i, bucket)| {
        let apart = u64::from(i == 0 && least.is_some())
            + u64::from(i + 1 == buckets.len() && most.is_some());
        part(ends(bucket), bucket.count.saturating_sub(apart))
    }));
    parts.extend(most.map(|ends| part(ends, 1)));
    parts.retain(|part| part.count > 0);
    parts
}

/// The least and the largest sum that these samples can have, in ns.
pub(crate) fn sums(parts: &[Part]) -> (u128, u128) {
    let sum = |end: fn(&Part) -> u64| {
        parts.iter().map(|part| u128::from(end(part)) * u128::from(part.count)).sum()
    };
    (sum(|part| part.low), sum(|part| part.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::histogram::Histogram;

    #[test]
    fn no_part_ends_before_it_begins() {
        // A step of 1 µs does not divide these buckets.
        for (lower, upper) in [(0, 1_001), (999, 1_500), (7, 8), (1_999, 2_000)] {
            let histogram = Histogram::from_buckets(vec![Bucket { lower, upper, count: 3 }]);
            let d = Distribution { count: 3, histogram: histogram.unwrap(), ..Default::default() };
            for extremes in [(lower, upper - 1), (lower, lower), (0, upper / 1_000 * 1_000)] {
                for part in of(&d, extremes, 1_000, Extremes::Middles) {
                    assert!(part.low <= part.high, "{lower} to {upper}, {extremes:?}: {part:?}");
                }
            }
        }
    }
}
