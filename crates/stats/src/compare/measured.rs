//! What one run comes to: a number per figure.

use serde::{Deserialize, Serialize};

use super::words::{count_of, listed, percent, times};
use super::{Effect, Labelled, OfQuantity, OfWatches};
use crate::equal_count::{equal_count, mean_maximum, mean_maximum_range};
use crate::equal_share::Share;
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Verdict;
use wakescope_core::observation::Observation;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::LoadResult;
use wakescope_core::source::Quantity;
use wakescope_core::stated::Quantile;
use wakescope_core::units::{SpanNs, grouped, one_or_many};

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
    /// The maximum; `null` if it is only the edge of a bucket that is wider than 6.25 %.
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
    /// Of the maximum.
    #[serde(default)]
    pub max_ns: Option<[u64; 2]>,
    /// Of the maximum of as many samples as maxima are compared over.
    pub max_of_count_ns: Option<[u64; 2]>,
}

impl RunFigures {
    /// The least and the largest value in ns that the 99.9th percentile can have: twice the same if it is
    /// known. `None` if the samples do not carry it.
    pub fn p999_range_ns(&self) -> Option<[u64; 2]> {
        self.p999_ns.map(|ns| [ns; 2]).or_else(|| self.only_bounded?.p999_ns)
    }

    /// The same of the maximum.
    pub fn max_range_ns(&self) -> Option<[u64; 2]> {
        self.max_ns.map(|ns| [ns; 2]).or_else(|| self.only_bounded?.max_ns)
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
    /// The logarithm of how long it is: of its samples, or if it is a watch, of the time that it covers.
    pub(crate) length: f64,
    /// What is known of each percentile that a comparison shows.
    quantiles: [(Percentile, Option<Quantile>); 3],
    run: &'a Observation,
}

impl<'a> Measured<'a> {
    pub(crate) fn of(labelled: &Labelled<'a>) -> Self {
        let Labelled { label, run } = *labelled;
        let expiries = &run.expiries;
        let quantiles = [P50, P99, P999].map(|p| (p, expiries.quantile(p)));
        let length = (expiries.count.max(1) as f64).ln();
        Self { label, quantity: run.quantity(), expiries, length, quantiles, run }
    }

    /// The same, if it is as long as the logarithm `length` says.
    pub(super) fn of_length(self, length: f64) -> Self {
        Self { length, ..self }
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

    /// The same at the share at which a percentile is compared.
    pub(crate) fn range_at_share(&self, share: Share) -> Option<(u64, u64)> {
        let (least, most) = share.range(self.expiries)?;
        Some(if self.expiries.stated.is_none() { (most, most) } else { (least, most) })
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
            max_ns: unless_known(self.expiries.known_maximum(), self.expiries.max_range()),
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
            max_ns: self.expiries.known_maximum(),
            max_of_count_ns: self.maximum_of(count),
            only_bounded: (only_bounded != RunBounds::default()).then_some(only_bounded),
        }
    }
}

/// Over how many samples maxima of these runs are compared.
pub(crate) fn count_of_maxima(sides: [&[&Measured]; 2]) -> u64 {
    let [new, old] = counts(sides);
    equal_count([&new, &old])
}

/// At which share of the samples a percentile of these runs is compared.
pub(crate) fn share_of(percentile: Percentile, sides: [&[&Measured]; 2]) -> Option<Share> {
    let [new, old] = counts(sides);
    Share::of(percentile, [&new, &old])
}

fn counts(sides: [&[&Measured]; 2]) -> [Vec<u64>; 2] {
    sides.map(|side| side.iter().map(|m| m.expiries.count).collect())
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
    let largest = short.iter().max_by_key(|m| m.expiries.max_ns);
    if let Some((largest, max_ns)) = largest.and_then(|m| Some((m.expiries, m.expiries.max_ns?))) {
        let labels: Vec<String> = short.iter().map(|m| m.label.to_owned()).collect();
        text += &format!(
            " {} too short to count ({}); the largest value there is {}{}.",
            match short.len() {
                1 => "1 run is".to_owned(),
                n => format!("{} are", count_of(n, "run")),
            },
            listed(&labels),
            if largest.known_maximum().is_some() { "" } else { "at most " },
            SpanNs(max_ns)
        );
    }
    Some(text)
}

/// That runs of one side are longer, and what that may make of these figures: a sentence for each side. Figures of
/// which not all runs have each may differ in it.
fn of_longer<'a>(
    figures: impl Iterator<Item = (String, &'a Effect)>,
    are_watches: bool,
) -> Vec<String> {
    let longer = |(name, effect): (String, &Effect)| {
        Some((name, effect.only_bounded.as_ref()?.length_ratio?))
    };
    let (new, old): (Vec<_>, Vec<_>) =
        figures.filter_map(longer).partition(|(_, ratio)| *ratio > 1.0);
    let sides = [("New", "old", new), ("Old", "new", old)].into_iter();
    let sentence = |(side, others, figures): (&str, &str, Vec<(String, f64)>)| {
        let (names, ratios): (Vec<String>, Vec<f64>) = figures.into_iter().unzip();
        let by = || ratios.iter().map(|ratio| ratio.max(1.0 / ratio));
        let (least, most) = (by().min_by(f64::total_cmp)?, by().max_by(f64::total_cmp)?);
        let (least, most) = (times(least), times(most));
        let up_to = if least == most { "" } else { "up to " };
        let (longer, large) = match are_watches {
            true => (format!("watches cover {up_to}{most} as much time"), "long waits"),
            false => (format!("runs have {up_to}{most} as many samples"), "large samples"),
        };
        Some(format!(
            "{side} {longer} as {others} ones. Bursts of {large} may make {} as many times as large, so only a \
             larger difference counts. Runs of one length show more.",
            listed(&names),
        ))
    };
    sides.filter_map(sentence).collect()
}

/// That these percentiles are not compared as runs have them, and by how much they differ; `None` if they differ
/// by no more than two buckets of a histogram.
pub(crate) fn of_shares(sides: [&[&Measured]; 2], percentiles: &[Percentile]) -> Option<String> {
    let farthest = |&percentile: &Percentile| {
        let share = share_of(percentile, sides)?;
        let apart = sides.into_iter().flatten().filter_map(|m| {
            let (own, compared) = (m.percentile_range(percentile)?.1, m.range_at_share(share)?.1);
            Some((compared.max(1) as f64 / own.max(1) as f64).ln().abs())
        });
        apart.max_by(f64::total_cmp).filter(|&apart| apart > 1.0 / 256.0)
    };
    let found = percentiles.iter().filter_map(|p| Some((p.to_string(), farthest(p)?)));
    let (names, aparts): (Vec<String>, Vec<f64>) = found.unzip();
    let most = aparts.into_iter().max_by(f64::total_cmp)?;
    let are = one_or_many(names.len() as u64, "is", "are");
    let differ = one_or_many(names.len() as u64, "It differs", "They differ");
    Some(format!(
        "{} {are} compared at an equal share of the samples of each run. {differ} from the runs' own by up to {}.",
        listed(&names),
        percent(most.exp_m1())
    ))
}

/// These of each quantity, which is named where there are several. Groups of watches are of the only one.
pub(super) fn lengths(
    sides: &[Vec<Measured>; 2],
    quantities: &[OfQuantity],
    watches: Option<&OfWatches>,
) -> Vec<String> {
    let mut notes = Vec::new();
    for q in quantities {
        let [new, old] = sides
            .each_ref()
            .map(|side| side.iter().filter(|m| m.quantity == q.quantity).collect::<Vec<_>>());
        let of_lengths = of_lengths(&[&new[..], &old].concat(), q.count);
        let of_shares = of_shares([&new, &old], &[P50, P99, P999]);
        let figures = [("p99", q.p99.as_ref())].into_iter().chain(q.deciding());
        let figures = figures.filter_map(|(name, figure)| Some((name.into(), &figure?.effect)));
        let groups = watches.into_iter().flat_map(OfWatches::tested);
        let groups = groups.map(|(group, effect)| (format!("p99.9 of {}", group.name()), effect));
        let of_longer = of_longer(figures.chain(groups), watches.is_some());
        notes.extend(of_lengths.into_iter().chain(of_longer).chain(of_shares).map(|note| {
            match quantities.len() {
                1 => note,
                _ => format!("{}: {note}", q.quantity),
            }
        }));
    }
    notes
}
