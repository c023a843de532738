//! What one run comes to: a number per figure.

use serde::{Deserialize, Serialize};

use super::words::{count_of, listed};
use super::{Labelled, OfQuantity};
use crate::equal_count::{equal_count, mean_maximum, mean_maximum_range};
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Verdict;
use wakescope_core::observation::Observation;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::LoadResult;
use wakescope_core::source::Quantity;
use wakescope_core::stated::Quantile;
use wakescope_core::units::{SpanNs, grouped};

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
    /// The geometric mean of the maximum of as many of its samples as maxima are compared over; `null` if it has fewer.
    pub max_of_count_ns: Option<u64>,
    /// Bounds of the figures of which a file of another program tells no more; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_bounded: Option<RunBounds>,
}

/// The least and the largest value, in nanoseconds, of each of a run's figures that is not known better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBounds {
    /// Of the median; `None`, as the others, if it is known to 6.25 %, or the samples do not carry it.
    pub p50_ns: Option<[u64; 2]>,
    /// Of the 99th percentile.
    pub p99_ns: Option<[u64; 2]>,
    /// Of the 99.9th percentile.
    pub p999_ns: Option<[u64; 2]>,
    /// Of the maximum of as many samples as maxima are compared over.
    pub max_of_count_ns: Option<[u64; 2]>,
}

impl RunFigures {
    /// The least and the largest value in ns that the 99.9th percentile can have: twice the same if it is
    /// known. `None` if the samples do not carry it.
    pub fn p999_range_ns(&self) -> Option<[u64; 2]> {
        self.p999_ns.map(|ns| [ns; 2]).or_else(|| self.only_bounded?.p999_ns)
    }

    /// The same of the maximum of as many samples as maxima are compared over.
    pub fn max_of_count_range_ns(&self) -> Option<[u64; 2]> {
        self.max_of_count_ns.map(|ns| [ns; 2]).or_else(|| self.only_bounded?.max_of_count_ns)
    }
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

    /// The least and the largest value in ns that a percentile can have: twice the same where wakescope
    /// measured. `None` if there are too few samples to say.
    pub(crate) fn percentile_range(&self, percentile: Percentile) -> Option<(u64, u64)> {
        match self.quantile(percentile)? {
            Quantile::Known(ns) if self.expiries.stated.is_none() => Some((ns, ns)),
            _ => self.expiries.range(percentile),
        }
    }

    fn quantile(&self, percentile: Percentile) -> Option<Quantile> {
        self.quantiles.iter().find(|(p, _)| *p == percentile)?.1
    }

    /// The largest of `count` of its samples; `None` if it has fewer, or its file tells only a bound.
    pub(crate) fn maximum_of(&self, count: u64) -> Option<u64> {
        mean_maximum(self.expiries, count)
    }

    /// The least and the largest value in ns that this can have: twice the same where wakescope measured.
    pub(crate) fn maximum_range(&self, count: u64) -> Option<(u64, u64)> {
        match self.maximum_of(count) {
            Some(ns) if self.expiries.stated.is_none() => Some((ns, ns)),
            _ => mean_maximum_range(self.expiries, count),
        }
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
        let unless_known = |known: Option<u64>, range: Option<(u64, u64)>| match known {
            Some(_) => None,
            None => range.map(|(least, most)| [least, most]),
        };
        let bounds = |p| unless_known(self.percentile(p), self.percentile_range(p));
        let only_bounded = RunBounds {
            p50_ns: bounds(P50),
            p99_ns: bounds(P99),
            p999_ns: bounds(P999),
            max_of_count_ns: unless_known(self.maximum_of(count), self.maximum_range(count)),
        };
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
            only_bounded: (only_bounded != RunBounds::default()).then_some(only_bounded),
        }
    }
}

/// Over how many samples maxima of these runs are compared.
pub(crate) fn count_of_maxima(sides: [&[&Measured]; 2]) -> u64 {
    let counts = sides.map(|side| side.iter().map(|m| m.expiries.count).collect::<Vec<u64>>());
    equal_count([&counts[0], &counts[1]])
}

/// That runs differ in length, and which of them are too short for a maximum of `count` samples; `None` if
/// all have as many.
pub(crate) fn of_lengths(runs: &[&Measured], count: u64) -> Option<String> {
    let counts = || runs.iter().map(|m| m.expiries.count);
    let (least, most) = (counts().min()?, counts().max()?);
    if least == most || count == 0 {
        return None;
    }
    let longer = match most > count {
        true => "; a longer run counts with the mean maximum of so many of its samples",
        false => "",
    };
    let mut text = format!(
        "Runs have from {} to {} samples: maxima are compared over {} samples{longer}.",
        grouped(least),
        grouped(most),
        grouped(count)
    );
    let short: Vec<&&Measured> = runs.iter().filter(|m| m.expiries.count < count).collect();
    if let Some(largest) = short.iter().filter_map(|m| m.expiries.max_ns).max() {
        let labels: Vec<String> = short.iter().map(|m| m.label.to_owned()).collect();
        text += &format!(
            " {} too short to count ({}); the largest value there is {}.",
            match short.len() {
                1 => "1 run is".to_owned(),
                n => format!("{} are", count_of(n, "run")),
            },
            listed(&labels),
            SpanNs(largest)
        );
    }
    Some(text)
}

/// The same of each quantity, which is named where there are several.
pub(super) fn lengths(sides: &[Vec<Measured>; 2], quantities: &[OfQuantity]) -> Vec<String> {
    let of = |q: &OfQuantity| {
        let runs = sides.iter().flatten().filter(|m| m.quantity == q.quantity);
        let note = of_lengths(&runs.collect::<Vec<_>>(), q.count)?;
        let is_alone = quantities.len() == 1;
        Some(if is_alone { note } else { format!("{}: {note}", q.quantity) })
    };
    quantities.iter().filter_map(of).collect()
}
