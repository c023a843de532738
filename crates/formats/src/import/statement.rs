//! What a file states twice: a figure, and the samples that it is a figure of.
//!
//! Each importer lists the figures that its file states beside the histogram. They are checked in
//! one place, against the distributions that were built. A histogram bounds a figure, so a statement
//! is a contradiction only where no samples in these buckets can have it.

use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::Bucket;
use wakescope_core::percentile::Percentile;

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
}

impl Statement {
    /// What contradicts it, in words with both figures.
    ///
    /// `step_ns` is what samples were cut off to before the program computed the figure.
    pub(super) fn contradiction(&self, d: &Distribution, step_ns: u64) -> Option<String> {
        let (low, high) = self.figure.range(d, step_ns)?;
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
    fn range(self, d: &Distribution, step_ns: u64) -> Option<(f64, f64)> {
        let all = (d.count as f64, d.count as f64);
        if self == Self::Count {
            return Some(all);
        }
        let (min, max) = (d.min_ns?, d.max_ns?);
        let ends = |b: &Bucket| {
            let high = b.upper.saturating_sub(step_ns).max(b.lower).min(max);
            (b.lower.max(min).min(high) as f64, high as f64)
        };
        let buckets = || d.histogram.buckets().iter().map(|b| (ends(b), b.count as f64 / all.0));
        let exact = |ns: u64| (ns as f64, ns as f64);
        Some(match self {
            Self::Count => all,
            Self::Min => exact(min),
            Self::Max => exact(max),
            Self::Mean => buckets().fold((0.0, 0.0), |(low, high), ((lower, upper), share)| {
                (low + lower * share, high + upper * share)
            }),
            Self::Deviation => {
                // The deviation is a norm: it differs from that of the middles of the buckets by no
                // more than the samples differ from these.
                let middle = |(lower, upper): (f64, f64)| (lower + upper) / 2.0;
                let mean: f64 = buckets().map(|(ends, share)| middle(ends) * share).sum();
                let variance: f64 =
                    buckets().map(|(ends, share)| (middle(ends) - mean).powi(2) * share).sum();
                let width: f64 =
                    buckets().map(|((l, u), share)| ((u - l) / 2.0).powi(2) * share).sum();
                let (deviation, width) = (variance.sqrt(), width.sqrt());
                // With one sample less in the divisor, it is a little larger.
                let sample = if d.count > 1 { (all.0 / (all.0 - 1.0)).sqrt() } else { 1.0 };
                ((deviation - width).max(0.0), (deviation + width) * sample)
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::counts::Counts;

    /// 3 samples from 1 to 2 µs, 1 from 2 µs up to the maximum of 9 µs.
    fn distribution() -> Distribution {
        let mut counts = Counts::default();
        counts.push(1_000, 2_000, 3).unwrap();
        counts.push(2_000, 10_000, 1).unwrap();
        counts.finish(1_000, 9_000, 0).unwrap()
    }

    #[track_caller]
    fn check(figure: Figure, (least, most): (f64, f64), want: &str) {
        let statement = Statement { thread: None, figure, least, most };
        let got = statement.contradiction(&distribution(), 1_000).unwrap_or_default();
        assert_eq!(got, want, "{figure:?} {least} {most}");
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
        // (3 · 1 + 2) / 4 to (3 · 1 + 9) / 4
        check(Figure::Mean, (1_250.0, 1_250.0), "");
        check(Figure::Mean, (3_000.0, 3_000.0), "");
        check(
            Figure::Mean,
            (3_001.0, 3_100.0),
            "the mean is stated as 3.001 µs to 3.1 µs, but its samples have 1.25 µs to 3 µs",
        );
        // The last sample at 2 µs, and at 9 µs.
        check(Figure::Deviation, (433.0, 434.0), "");
        check(Figure::Deviation, (3_464.0, 3_465.0), "");
        check(
            Figure::Deviation,
            (9_000.0, 9_000.0),
            "the standard deviation is stated as 9 µs, but its samples have 0.199 µs to 4.271 µs",
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
