//! Percentiles that a file states itself, and percentiles of which only an upper bound is known.
//!
//! Another program's file may hold less than its samples: a coarse histogram, or none. Its buckets
//! then bound a percentile without telling it. A bound is never shown, compared or judged as if it
//! were the percentile.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::percentile::Percentile;

/// What another program's file states of a distribution, beside the histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stated {
    /// Percentiles in ns, as the file states them.
    #[serde(default)]
    pub percentiles: BTreeMap<Percentile, u64>,
    /// The file's step between two values, in ns. A true value may lie almost a step above or below what
    /// is stated.
    pub resolution_ns: u64,
    /// Whether the program states the edge of a bucket as its minimum or maximum, so that the true one may
    /// lie anywhere in that bucket.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extremes_are_edges: bool,
    /// Whether the ends of buckets are rounded values, so that samples may lie up to a step and a half below
    /// their bucket. A row from 2 ms to 3 ms holds what is above the end of the row before, which is printed
    /// as 1 ms, and is anything from 0.5 ms on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rows_are_rounded: bool,
}

impl Stated {
    /// What holds of both distributions together. Percentiles of a part are not those of the whole.
    pub(crate) fn of_both(a: Option<&Self>, b: Option<&Self>) -> Option<Self> {
        let both = || [a, b].into_iter().flatten();
        Some(Self {
            percentiles: BTreeMap::new(),
            resolution_ns: both().map(|stated| stated.resolution_ns).max()?,
            extremes_are_edges: both().any(|stated| stated.extremes_are_edges),
            rows_are_rounded: both().any(|stated| stated.rows_are_rounded),
        })
    }
}

/// What is known of a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Its value in ns: as stated, or within the width of a narrow bucket.
    Known(u64),
    /// Only that it is not above this, in ns.
    AtMost(u64),
}

impl Quantile {
    /// The value in ns; `None` if only a bound is known.
    pub fn known(self) -> Option<u64> {
        match self {
            Self::Known(ns) => Some(ns),
            Self::AtMost(_) => None,
        }
    }
}
