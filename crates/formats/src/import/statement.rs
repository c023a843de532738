//! What a file states twice: a figure, and the samples that it is a figure of.
//!
//! Each importer lists the figures that its file states beside the histogram. They are checked in
//! one place, against the distributions that were built. A histogram bounds a figure, so a statement
//! is a contradiction only where no samples in these buckets can have it. One of the samples is the
//! maximum, and of two or more another one is the minimum.

use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;

use crate::parts::{self, Extremes};

/// What is stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Figure {
    Count,
    Min,
    Max,
    Mean,
    Deviation,
    Percentile(Percentile),
}

/// A figure that a file states.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// The place of its thread; `None` if it is of all threads together.
    pub(super) thread: Option<usize>,
    pub(super) figure: Figure,
    /// The least that can be meant, in ns, or samples.
    pub(super) least: f64,
    /// The most that can be meant.
    pub(super) most: f64,
    /// How the extremes take part in it.
    pub(super) extremes: Extremes,
}

impl Statement {
    /// What contradicts it, in words with both figures.
    ///
    /// `step_ns` is what samples were cut off to before the program computed the figure.
    pub(super) fn contradiction(&self, d: &Distribution, step_ns: u64) -> Option<String> {
        let (low, high) = self.figure.range(d, step_ns, self.extremes)?;
        // Programs compute in doubles, and so does this.
        let slack = 1e-9 * high.abs() + 1e-6;
        if self.most >= low - slack && self.least <= high + slack {
            return None;
        }
        let stated = self.figure.shown(self.least, self.most);
        let held = self.figure.shown(low, high);
        Some(format!("{} is stated as {stated}, but its samples have {held}", self.figure.name()))
    }
}

impl Figure {
    fn name(self) -> String {
        match self {
            Self::Count => "the number of samples".into(),
            Self::Min => "the minimum".into(),
            Self::Max => "the maximum".into(),
            Self::Mean => "the mean".into(),
            Self::Deviation => "the standard deviation".into(),
            Self::Percentile(p) => p.to_string(),
        }
    }

    /// What the samples in a histogram can have as this figure; `None` without samples.
    #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
    fn range(self, d: &Distribution, step_ns: u64, extremes: Extremes) -> Option<(f64, f64)> {
        let exact = |value: u64| (value as f64, value as f64);
        Some(match self {
            Self::Count => exact(d.count),
            Self::Min => exact(d.min_ns?),
            Self::Max => exact(d.max_ns?),
            Self::Mean => mean(&parts(d, step_ns, extremes)?),
            Self::Deviation => deviation(&parts(d, step_ns, extremes)?, d.count),
            Self::Percentile(p) => {
                let (low, high) = d.range_near(p)?;
                (low as f64, high as f64)
            }
        })
    }

    /// `3.5 µs`, `from 3 µs to 4 µs`, `17`.
    fn shown(self, low: f64, high: f64) -> String {
        let one = |value: f64| match self {
            Self::Count => format!("{value:.0}"),
            _ => {
                let text = format!("{:.3}", value / 1_000.0);
                format!("{} µs", text.trim_end_matches('0').trim_end_matches('.'))
            }
        };
        match (one(low), one(high)) {
            (low, high) if low == high => low,
            (low, _) if high.is_infinite() => format!("at least {low}"),
            (low, high) => format!("{low} to {high}"),
        }
    }
}

/// So many samples, as a share of all, of which only the ends of a range are known, in ns.
struct Part {
    low: f64,
    high: f64,
    share: f64,
}

#[allow(clippy::cast_precision_loss)] // It is compared with room for that.
fn parts(d: &Distribution, step_ns: u64, extremes: Extremes) -> Option<Vec<Part>> {
    let parts = parts::of(d, (d.min_ns?, d.max_ns?), step_ns, extremes);
    let part = |part: parts::Part| Part {
        low: part.low as f64,
        high: part.high as f64,
        share: part.count as f64 / d.count as f64,
    };
    Some(parts.into_iter().map(part).collect())
}

/// The least and the largest mean.
fn mean(parts: &[Part]) -> (f64, f64) {
    parts.iter().fold((0.0, 0.0), |(low, high), part| {
        (low + part.low * part.share, high + part.high * part.share)
    })
}

/// A deviation that is not below the least and one that is not above the largest, of so many samples.
#[allow(clippy::cast_precision_loss)] // It is compared with room for that.
fn deviation(parts: &[Part], count: u64) -> (f64, f64) {
    let norm = |of: &dyn Fn(&Part) -> f64| {
        parts.iter().map(|part| of(part).powi(2) * part.share).sum::<f64>().sqrt()
    };
    // It is least where each sample is as near as it can be to the mean of all.
    let (mut low, mut high) = mean(parts);
    for _ in 0..64 {
        let center = (low + high) / 2.0;
        let nearest = |part: &Part| center.max(part.low).min(part.high) * part.share;
        match parts.iter().map(nearest).sum::<f64>() > center {
            true => low = center,
            false => high = center,
        }
    }
    let least = norm(&|part| low.max(part.low).min(part.high) - low);
    // The deviation is a norm: it differs from that of the middles of the ranges by no more than the
    // samples differ from these.
    let middle = |part: &Part| (part.low + part.high) / 2.0;
    let mean: f64 = parts.iter().map(|part| middle(part) * part.share).sum();
    let most = norm(&|part| middle(part) - mean) + norm(&|part| (part.high - part.low) / 2.0);
    // With one sample less in the divisor, it is a little larger.
    let of_sample = if count > 1 { (count as f64 / (count - 1) as f64).sqrt() } else { 1.0 };
    (least, most * of_sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::counts::Counts;
    use proptest::prelude::*;
    use wakescope_core::histogram::Histogram;

    /// 3 samples from 1 to 2 µs, 1 from 2 µs up to the maximum of 9 µs.
    fn distribution() -> Distribution {
        let mut counts = Counts::default();
        counts.push(1_000, 2_000, 3).unwrap();
        counts.push(2_000, 10_000, 1).unwrap();
        counts.finish(1_000, 9_000, 0).unwrap()
    }

    #[track_caller]
    fn check(figure: Figure, (least, most): (f64, f64), want: &str) {
        let extremes = Extremes::Samples;
        let statement = Statement { thread: None, figure, least, most, extremes };
        let got = statement.contradiction(&distribution(), 1_000).unwrap_or_default();
        assert_eq!(got, want, "{figure:?} {least} {most}");
    }

    #[test]
    fn extremes_bound_the_mean_as_far_as_they_are_samples() {
        // 10 samples from 1 µs to 9 µs, of which nothing else is known.
        let mut counts = Counts::default();
        counts.push(1_000, 10_000, 10).unwrap();
        let d = counts.finish(1_000, 9_000, 0).unwrap();
        for (extremes, least, most) in [
            (Extremes::Samples, 1_800.0, 8_200.0),
            (Extremes::MaximumOnly, 1_800.0, 9_000.0),
            (Extremes::Middles, 1_350.0, 8_250.0),
            (Extremes::Rows, 1_000.0, 9_000.0),
        ] {
            let (low, high) = Figure::Mean.range(&d, 1_000, extremes).unwrap();
            assert!((low - least).abs() < 1e-6 && (high - most).abs() < 1e-6, "{low} {high}");
        }
    }

    proptest! {
        /// Samples are cut off to whole µs, counted in rows of any width, and stated with their figures.
        #[test]
        fn figures_of_true_samples_are_never_contradictions(
            samples in prop::collection::vec(0_u64..300, 1..40),
            latest in 1_000_u64..1 << 40,
            width in 1_u64..400,
        ) {
            let mut rows = std::collections::BTreeMap::new();
            for sample in &samples {
                *rows.entry(sample / width).or_default() += 1_u64;
            }
            let mut counts = Counts::default();
            for (row, count) in rows {
                counts.push(row * width * 1_000, (row + 1) * width * 1_000, count).unwrap();
            }
            let end = counts.buckets().last().unwrap().upper;
            counts.push(end, (latest + 1) * 1_000, 1).unwrap();
            let min = samples.iter().min().unwrap() * 1_000;
            let d = counts.finish(min, latest * 1_000, 0).unwrap();
            let ns: Vec<f64> = samples.iter().chain([&latest]).map(|&us| us as f64 * 1e3).collect();
            let count = ns.len() as f64;
            let mean = ns.iter().sum::<f64>() / count;
            let squares = ns.iter().map(|ns| (ns - mean).powi(2)).sum::<f64>();
            let contradiction = |d: &Distribution, figure, value, extremes| {
                let statement =
                    Statement { thread: None, figure, least: value, most: value, extremes };
                statement.contradiction(d, 1_000)
            };
            for extremes in [Extremes::Samples, Extremes::MaximumOnly, Extremes::Rows] {
                for (figure, value) in [
                    (Figure::Mean, mean),
                    (Figure::Deviation, (squares / count).sqrt()),
                    (Figure::Deviation, (squares / (count - 1.0)).sqrt()),
                ] {
                    prop_assert_eq!(contradiction(&d, figure, value, extremes), None);
                }
            }
            // The others cannot make up for a maximum that is a thousand times later.
            let mut late = d.histogram.buckets().to_vec();
            late.last_mut().unwrap().upper *= 1_000;
            let max_ns = Some(latest * 1_000_000);
            let histogram = Histogram::from_buckets(late).unwrap();
            let late = Distribution { max_ns, histogram, ..d };
            for (figure, value) in
                [(Figure::Mean, mean), (Figure::Deviation, (squares / count).sqrt())]
            {
                let found = contradiction(&late, figure, value, Extremes::Samples);
                prop_assert!(found.is_some(), "{:?}", figure);
            }
        }
    }

    #[test]
    fn a_statement_holds_if_samples_can_have_it() {
        check(Figure::Count, (4.0, 4.0), "");
        check(
            Figure::Count,
            (5.0, 5.0),
            "the number of samples is stated as 5, but its samples have 4",
        );
        check(Figure::Max, (9_000.0, 9_000.0), "");
        check(
            Figure::Min,
            (0.0, 500.0),
            "the minimum is stated as 0 µs to 0.5 µs, but its samples have 1 µs",
        );
        check(
            Figure::Max,
            (9_001.0, f64::INFINITY),
            "the maximum is stated as at least 9.001 µs, but its samples have 9 µs",
        );
        // (3 · 1 + 9) / 4, as rows are whole µs and the last sample is the maximum.
        check(Figure::Mean, (3_000.0, 3_000.0), "");
        check(
            Figure::Mean,
            (1_250.0, 1_250.0),
            "the mean is stated as 1.25 µs, but its samples have 3 µs",
        );
        check(
            Figure::Mean,
            (3_001.0, 3_100.0),
            "the mean is stated as 3.001 µs to 3.1 µs, but its samples have 3 µs",
        );
        // Divided by 4, and by 3.
        check(Figure::Deviation, (3_464.0, 3_465.0), "");
        check(Figure::Deviation, (4_000.0, 4_000.0), "");
        check(
            Figure::Deviation,
            (433.0, 434.0),
            "the standard deviation is stated as 0.433 µs to 0.434 µs, but its samples have 3.464 µs to 4 µs",
        );
        check(
            Figure::Deviation,
            (9_000.0, 9_000.0),
            "the standard deviation is stated as 9 µs, but its samples have 3.464 µs to 4 µs",
        );
        let p50 = Figure::Percentile("p50".parse().unwrap());
        check(p50, (1_500.0, 1_500.0), "");
        check(
            p50,
            (2_500.0, 2_500.0),
            "p50 is stated as 2.5 µs, but its samples have 1 µs to 1.999 µs",
        );
    }
}
