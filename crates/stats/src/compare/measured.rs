//! What one run comes to: a number per figure.

use serde::{Deserialize, Serialize};

use super::{Labelled, OfQuantity};
use crate::equal_count::{median_maximum, median_maximum_range};
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Verdict;
use wakescope_core::observation::Observation;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::LoadResult;
use wakescope_core::source::Quantity;
use wakescope_core::stated::Quantile;

pub(crate) const P50: Percentile = Percentile::SHOWN[0];
pub(crate) const P99: Percentile = Percentile::SHOWN[1];
pub(crate) const P999: Percentile = Percentile::SHOWN[2];

/// One run's figures, for tables. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// What the run is called.
    pub label: String,
    /// What its values are.
    pub quantity: Quantity,
    /// When it began, RFC 3339; may be empty.
    pub started: String,
    /// The kernel's release; may be empty.
    pub release: String,
    /// Whether it can be trusted; `null` if it does not say.
    pub validity: Option<Verdict>,
    /// Samples.
    pub count: u64,
    /// The median; `null`, as the others, where the samples do not carry it.
    pub p50_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// The maximum.
    pub max_ns: Option<u64>,
    /// The median of the maximum of as many samples as the shortest run has.
    pub max_of_count_ns: Option<u64>,
}

/// A run and its figures.
pub(crate) struct Measured<'a> {
    pub(crate) label: &'a str,
    pub(crate) quantity: Quantity,
    pub(crate) expiries: &'a Distribution,
    /// What is known of each percentile that a comparison shows.
    quantiles: [(Percentile, Option<Quantile>); 3],
    run: &'a Observation,
}

impl<'a> Measured<'a> {
    pub(crate) fn of(labelled: &Labelled<'a>) -> Self {
        let Labelled { label, run } = *labelled;
        let expiries = &run.expiries;
        let quantiles = [P50, P99, P999].map(|p| (p, expiries.quantile(p)));
        Self { label, quantity: run.quantity(), expiries, quantiles, run }
    }

    pub(crate) fn percentile(&self, percentile: Percentile) -> Option<u64> {
        self.quantile(percentile)?.known()
    }

    /// The least and the largest value in ns that a percentile can have: twice the same where it is
    /// known. `None` if there are too few samples to say.
    pub(super) fn percentile_range(&self, percentile: Percentile) -> Option<(u64, u64)> {
        match self.quantile(percentile)? {
            Quantile::Known(ns) => Some((ns, ns)),
            Quantile::AtMost(_) => self.expiries.range(percentile),
        }
    }

    fn quantile(&self, percentile: Percentile) -> Option<Quantile> {
        self.quantiles.iter().find(|(p, _)| *p == percentile)?.1
    }

    /// The largest of `count` of its samples; `None` if its file tells only a bound.
    pub(crate) fn maximum_of(&self, count: u64) -> Option<u64> {
        median_maximum(self.expiries, count)
    }

    /// The least and the largest value in ns that this can have: twice the same where it is known.
    pub(super) fn maximum_range(&self, count: u64) -> Option<(u64, u64)> {
        median_maximum_range(self.expiries, count)
    }

    pub(super) fn loads(&self) -> &'a [LoadResult] {
        &self.run.load
    }

    pub(super) fn figures(&self, quantities: &[OfQuantity]) -> RunFigures {
        let count = quantities.iter().find(|q| q.quantity == self.quantity).map_or(0, |q| q.count);
        self.figures_at(count)
    }

    /// Its figures, the maximum also of `count` samples.
    pub(crate) fn figures_at(&self, count: u64) -> RunFigures {
        RunFigures {
            label: self.label.into(),
            quantity: self.quantity,
            started: self.run.started.clone(),
            release: self.run.host.release.clone(),
            validity: Some(self.run.validity.verdict),
            count: self.expiries.count,
            p50_ns: self.percentile(P50),
            p99_ns: self.percentile(P99),
            p999_ns: self.percentile(P999),
            max_ns: self.expiries.max_ns,
            max_of_count_ns: self.maximum_of(count),
        }
    }
}

/// How many samples the shortest run has.
pub(crate) fn least_count<'a>(runs: impl IntoIterator<Item = &'a Measured<'a>>) -> u64 {
    runs.into_iter().map(|m| m.expiries.count).min().unwrap_or(0)
}
