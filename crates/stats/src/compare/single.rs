//! One run a side: what its samples say of it, which is not what they say of the next run.

use serde::{Deserialize, Serialize};

use super::measured::{Measured, P50, P99, P999};
use crate::binomial::ranks_around;
use crate::equal_count::from_the_top;
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
    let lower = |rank| {
        // A value's lower edge is what it cannot be below.
        let mut seen = 0_u64;
        let bucket = d.histogram.buckets().iter().rev().find(|bucket| {
            seen = seen.saturating_add(bucket.count);
            seen >= rank
        })?;
        Some(bucket.lower.max(d.min_ns?))
    };
    Bounds {
        low_ns: ranks.low.and_then(lower),
        high_ns: ranks.high.and_then(|rank| from_the_top(d, rank)),
    }
}
