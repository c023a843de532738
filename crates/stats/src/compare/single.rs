//! One run a side: what its samples say of it, which is not what they say of the next run.

use serde::{Deserialize, Serialize};

use super::measured::{Measured, P50, P99, P999};
use crate::binomial::ranks_around;
use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;

/// Each side's interval is wrong with this probability, so both together with 5 % at most.
const ALPHA: f64 = 0.025;

/// What holds a quantile of a run, by the order of its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Not below this, in nanoseconds; `null` if that cannot be said.
    pub low_ns: Option<u64>,
    /// Not above this; `null` if there are too few samples beyond it.
    pub high_ns: Option<u64>,
}

/// A quantile of two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// `p50`, `p99`, `p99.9`.
    pub figure: String,
    /// Of the new run, with 97.5 %.
    pub new: Bounds,
    /// Of the old run, with 97.5 %.
    pub old: Bounds,
    /// With 95 %, new / old of these two runs is not below this.
    pub low: Option<f64>,
    /// With 95 %, it is not above this.
    pub high: Option<f64>,
}

/// The quantiles of a new and an old run; nothing if there is not one of each.
pub(super) fn within(new: &[&Measured], old: &[&Measured]) -> Vec<Within> {
    let ([new], [old]) = (new, old) else { return Vec::new() };
    let within = |percentile: Percentile| {
        let (new, old) = (bounds(new.expiries, percentile), bounds(old.expiries, percentile));
        let ratio = |above: Option<u64>, below: Option<u64>| {
            Some(above?.max(1) as f64 / below?.max(1) as f64)
        };
        Within {
            figure: percentile.to_string(),
            new,
            old,
            low: ratio(new.low_ns, old.high_ns),
            high: ratio(new.high_ns, old.low_ns),
        }
    };
    [P50, P99, P999].map(within).into()
}

fn bounds(d: &Distribution, percentile: Percentile) -> Bounds {
    let ranks = ranks_around(percentile.tail(), d.count, ALPHA);
    // Ranks are counted from the largest sample.
    let range = |rank: u64| d.range_at(d.count - (rank - 1));
    Bounds {
        low_ns: ranks.low.and_then(range).map(|(least, _)| least),
        high_ns: ranks.high.and_then(range).map(|(_, most)| most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::histogram::{Bucket, Histogram};
    use wakescope_core::stated::Stated;

    /// 1,000 samples up to 1 µs and 50 up to 2 µs, by a file that states values in steps of 1 µs.
    fn in_steps() -> Distribution {
        let bucket = |lower, upper, count| Bucket { lower, upper, count };
        let buckets = vec![bucket(1, 1_001, 1_000), bucket(1_001, 2_001, 50)];
        Distribution {
            count: 1_050,
            min_ns: Some(1_000),
            max_ns: Some(2_000),
            histogram: Histogram::from_buckets(buckets).unwrap(),
            stated: Some(Stated { resolution_ns: 1_000, ..Stated::default() }),
            ..Distribution::default()
        }
    }

    #[test]
    fn a_step_holds_all_its_values() {
        let of = |p: Percentile| bounds(&in_steps(), p);
        assert_eq!(of(P50), Bounds { low_ns: Some(1), high_ns: Some(1_000) });
        assert_eq!(of(P99), Bounds { low_ns: Some(1_001), high_ns: Some(2_000) });
    }

    #[test]
    fn a_rank_is_counted_from_the_largest() {
        // Of 10 samples, 2 to 9 hold the median with 97.5 %.
        let d = Distribution::of((1..=10).map(|us| us * 1_000));
        let Bounds { low_ns: Some(low), high_ns: Some(high) } = bounds(&d, P50) else {
            panic!("{:?}", bounds(&d, P50));
        };
        let is_near = |ns: u64, want: u64| ns.abs_diff(want) <= want / 500;
        assert!(is_near(low, 2_000) && is_near(high, 9_000), "{low} {high}");
        // The largest is not above it. No sample is known not to be below it.
        assert_eq!(bounds(&d, P999), Bounds { low_ns: Some(10_000), high_ns: None });
        assert_eq!(bounds(&Distribution::default(), P50), Bounds::default());
    }
}
