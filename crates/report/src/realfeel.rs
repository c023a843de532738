//! The statistics block of Clark Williams' "Linux Scheduler Latency" (2002), for any thresholds.
//!
//! He sorted samples into buckets of 100 µs and gave count, extremes, mean, median, mode, variance,
//! standard deviation, and the share of samples below each threshold. We give the same of the
//! lateness per expiry (of other runs, of what they measured), with the maximum exact and the median
//! from buckets of 0.2 %.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use wakescope_core::distribution::Distribution;
use wakescope_core::interval_deviation::IntervalDeviation;
use wakescope_core::percentile::Percentile;
use wakescope_core::preemption::Model;
use wakescope_core::run::Run;
use wakescope_core::source::Quantity;
use wakescope_core::stated::Quantile;
use wakescope_core::units::{SpanNs, counted};

use crate::quantity;
use crate::share;
use crate::style::clean;

/// His thresholds.
pub const THRESHOLDS_NS: [u64; 9] =
    [100_000, 200_000, 500_000, 700_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000, 100_000_000];

/// The width of his buckets.
const BUCKET_NS: u64 = 100_000;

/// In place of a mean, and of what is computed from it, where the sum saturated.
const NO_SUM: &str = "- (the sum of the samples is too large to be counted)";

/// Figures as he had them: of samples in buckets of 0.1 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Statistics {
    /// The largest, nanoseconds.
    pub(crate) max_ns: u64,
    /// The mean, milliseconds, with each sample in the middle of its bucket of 0.1 ms.
    pub(crate) mean_ms: f64,
    /// The standard deviation, milliseconds, of the same.
    pub(crate) stdev_ms: f64,
    /// How many buckets of 0.1 ms are not empty.
    pub(crate) buckets: usize,
}

impl Statistics {
    /// Those of `all`; `None` if there is no sample.
    pub(crate) fn of(all: &Distribution) -> Option<Self> {
        let max_ns = all.max_ns?;
        let tenths = tenths_of_ms(all);
        let count: u64 = tenths.values().sum();
        let middle = |tenth: u64| (tenth as f64 + 0.5) * BUCKET_NS as f64 / 1e6;
        let mean_of = |value: &dyn Fn(u64) -> f64| {
            let sum: f64 = tenths.iter().map(|(&at, &n)| value(at) * n as f64).sum();
            sum / count.max(1) as f64
        };
        let mean_ms = mean_of(&middle);
        let stdev_ms = mean_of(&|at| (middle(at) - mean_ms).powi(2)).sqrt();
        Some(Self { max_ns, mean_ms, stdev_ms, buckets: tenths.len() })
    }
}

/// The block for `run`, all times in ms.
pub fn block(run: &Run, thresholds: &[SpanNs]) -> String {
    let all = run.expiries();
    let mut out = String::new();
    let domain = run.time_domain.before_unit();
    let words = quantity::words(run);
    let what = match quantity::of(run) {
        Quantity::WakeupLatency => format!("{} per {}", words.value, words.one),
        other => other.to_string(),
    };
    let mut line = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{text}");
    };
    line(format_args!("# {what} in {domain}ms; {}", kernel(run)));
    let (Some(min_ns), Some(max_ns)) = (all.min_ns, all.max_ns) else {
        line(format_args!("samples 0"));
        return out;
    };
    let buckets = Buckets::of(&all);
    let at_least_so_many = at_least(!buckets.anywhere.is_empty());
    line(format_args!("buckets {at_least_so_many}{} of 0.1 ms", buckets.fewest()));
    line(format_args!("samples {}", all.count));
    line(format_args!("minimum {}", ms(min_ns)));
    line(format_args!("maximum {}", ms(max_ns)));
    let mean_ns = all.mean_ns();
    line(format_args!("mean {}", mean_ns.map_or_else(|| NO_SUM.into(), ms)));
    match all.quantile(Percentile::SHOWN[0]) {
        Some(Quantile::Known(median)) => line(format_args!("median {}", ms(median))),
        Some(Quantile::AtMost(bound)) => line(format_args!("median - (at most {})", ms(bound))),
        None => line(format_args!("median - (too few samples)")),
    }
    let or_not_known = |known: Option<String>| known.unwrap_or_else(|| buckets.not_known());
    let is_known = !all.only_bounded().any(|range| is_anywhere(&range));
    line(format_args!("mode {}", or_not_known(buckets.mode())));
    let variance = mean_ns.filter(|_| is_known).map(|mean_ns| variance_ms(&all, mean_ns));
    let of_variance = |value: Option<f64>| match mean_ns {
        None => NO_SUM.into(),
        Some(_) => or_not_known(value.map(|value| format!("{value:.6}"))),
    };
    line(format_args!("variance {}", of_variance(variance)));
    line(format_args!("standard deviation {}", of_variance(variance.map(f64::sqrt))));
    for threshold in thresholds.iter().filter(|t| t.0 <= max_ns) {
        let below = all.histogram.count_below(threshold.0);
        let is_inside = |(low, high, _)| low < threshold.0 && threshold.0 <= high;
        line(format_args!(
            "{}{:>9} % below {} ms ({})",
            at_least(all.only_bounded().any(is_inside)),
            share::percent(below, all.count, 5),
            plain_ms(threshold.0),
            plainly(below)
        ));
    }
    let most_ns = all.max_range().map_or(max_ns, |(_, most_ns)| most_ns);
    let what = if most_ns > max_ns { "the most that the maximum can be" } else { "the maximum" };
    line(format_args!("{:>9.5} % not above {} ms, {what}", 100.0, ms(most_ns)));
    line(format_args!("{}", five_nines(&all)));
    if let Some(deviation) = run.interval_deviation() {
        out.push_str(&intervals(&deviation, thresholds, domain));
    }
    out
}

/// What two blocks of one machine differ in: the kernel, and the preemption model that it ran.
fn kernel(run: &Run) -> String {
    let release = match run.host.release.as_str() {
        "" => "unknown".into(),
        release => clean(release, 80),
    };
    match run.host.preemption.model {
        Model::Unknown => format!("kernel {release}"),
        model => format!("kernel {release}, preemption {model}"),
    }
}

/// The same of what he measured: the time from one sample to the next, without the interval. Some are
/// negative; their share is that of the samples that deviate by less, either way.
fn intervals(all: &IntervalDeviation, thresholds: &[SpanNs], domain: &str) -> String {
    let Some(figures) = all.figures() else { return String::new() };
    let mut out = format!("# deviation of the interval in {domain}ms\n");
    let mut line = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{text}");
    };
    let spread = figures.standard_deviation_ns / 1e6;
    line(format_args!("samples {}", figures.count));
    line(format_args!("minimum {}", signed_ms(figures.min_ns)));
    line(format_args!("maximum {}", signed_ms(figures.max_ns)));
    line(format_args!("mean {:.6}", figures.mean_ns / 1e6));
    line(format_args!("variance {:.6}", spread.powi(2)));
    line(format_args!("standard deviation {spread:.6}"));
    let most = figures.max_ns.unsigned_abs().max(figures.min_ns.unsigned_abs());
    for threshold in thresholds.iter().filter(|t| t.0 <= most) {
        let below = |d: &Distribution| d.histogram.count_below(threshold.0);
        let below = below(&all.longer) + below(&all.shorter);
        line(format_args!(
            "{:>9} % below {} ms either way ({})",
            share::percent(below, figures.count, 5),
            plain_ms(threshold.0),
            plainly(below)
        ));
    }
    out
}

fn signed_ms(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", ms(ns.unsigned_abs()))
}

/// `1 sample`, `20000 samples`: without separators, as the block of 2002 has its numbers.
fn plainly(count: u64) -> String {
    counted(count, "sample").replace(',', "")
}

/// The point below which all but one sample in 100,000 lie.
fn five_nines(all: &Distribution) -> String {
    let nines = Percentile::SHOWN[4];
    match all.range(nines) {
        Some((_, most_ns)) => format!("five nines: 99.99900 % within {} ms", ms(most_ns)),
        None => format!(
            "five nines: {} are too few; {} are needed",
            plainly(all.count),
            nines.samples_needed()
        ),
    }
}

/// Samples per bucket of 0.1 ms. Samples that can lie across an edge of his count for the lower one: a
/// bucket of ours is 0.2 % wide, his 100 µs.
fn tenths_of_ms(all: &Distribution) -> BTreeMap<u64, u64> {
    let mut tenths = BTreeMap::new();
    for bucket in all.ranges() {
        *tenths.entry(bucket.lower / BUCKET_NS).or_insert(0) += bucket.count;
    }
    tenths
}

/// Samples in his buckets of 0.1 ms, as far as it is known which these are.
struct Buckets {
    /// How many are known to be in each.
    tenths: BTreeMap<u64, u64>,
    /// How many lie anywhere from one bucket to another: those beyond another program's histogram, say, or in
    /// a bucket of ours that is wider than his.
    anywhere: Vec<(u64, u64, u64)>,
    /// All of these.
    unknown: u64,
}

impl Buckets {
    fn of(all: &Distribution) -> Self {
        let bounded: BTreeSet<u64> = all.only_bounded().map(|(low, ..)| low).collect();
        let is_known = |&(low, high, _): &_| high - low < BUCKET_NS && !bounded.contains(&low);
        let ranges = all.ranges().map(|bucket| (bucket.lower, bucket.upper - 1, bucket.count));
        let anywhere: Vec<_> =
            ranges.filter(|range| is_anywhere(range) && !is_known(range)).collect();
        let mut tenths = tenths_of_ms(all);
        for (low, _, count) in &anywhere {
            tenths.entry(low / BUCKET_NS).and_modify(|held| *held -= count);
        }
        tenths.retain(|_, count| *count > 0);
        let unknown = anywhere.iter().map(|(_, _, count)| count).sum();
        Self { tenths, anywhere, unknown }
    }

    /// How many are not empty, at least: those with samples whose place is known, and as few more as can hold
    /// the others.
    fn fewest(&self) -> usize {
        let mut held: BTreeSet<u64> = self.tenths.keys().copied().collect();
        let range = |&(low, high, _): &_| (high / BUCKET_NS, low / BUCKET_NS);
        let mut ranges: Vec<(u64, u64)> = self.anywhere.iter().map(range).collect();
        // The last bucket of the range that ends first is in as many of the others as any can be.
        ranges.sort_unstable();
        for (last, first) in ranges {
            if held.range(first..=last).next().is_none() {
                held.insert(last);
            }
        }
        held.len()
    }

    /// The middle of the fullest, and how many samples are in it; `None` if another may be fuller.
    fn mode(&self) -> Option<String> {
        let fullest = |&(at, count): &(&u64, &u64)| (*count, std::cmp::Reverse(*at));
        let (&tenth, &count) = self.tenths.iter().max_by_key(fullest)?;
        let others = self.tenths.iter().filter(|(at, _)| **at != tenth);
        let next = others.map(|(_, &count)| count).max().unwrap_or(0);
        // It is this one even if all whose place is not known are in the next.
        if count < next.saturating_add(self.unknown) {
            return None;
        }
        let may_be_here =
            |&(low, high, _): &_| (low / BUCKET_NS..=high / BUCKET_NS).contains(&tenth);
        let more = at_least(self.anywhere.iter().any(may_be_here));
        Some(format!("{} ({more}{})", ms(tenth * BUCKET_NS + BUCKET_NS / 2), plainly(count)))
    }

    /// In place of what cannot be said.
    fn not_known(&self) -> String {
        let low = self.anywhere.iter().map(|(low, ..)| *low).min().unwrap_or(0);
        let high = self.anywhere.iter().map(|(_, high, _)| *high).max().unwrap_or(0);
        format!("- ({} lie anywhere from {} to {})", plainly(self.unknown), ms(low), ms(high))
    }
}

/// Whether samples from the least to the largest of these values can lie in several of his buckets.
fn is_anywhere(&(low, high, _): &(u64, u64, u64)) -> bool {
    low / BUCKET_NS < high / BUCKET_NS
}

fn at_least(is_bound: bool) -> &'static str {
    if is_bound { "at least " } else { "" }
}

/// In ms², from the middle of each bucket about the exact mean.
fn variance_ms(all: &Distribution, mean_ns: u64) -> f64 {
    let square = |b: &wakescope_core::histogram::Bucket| {
        let middle = (b.lower as f64 + (b.upper - 1) as f64) / 2.0;
        ((middle - mean_ns as f64) / 1e6).powi(2) * b.count as f64
    };
    all.histogram.buckets().iter().map(square).sum::<f64>() / all.count.max(1) as f64
}

/// Exact, to the nanosecond.
fn ms(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

/// As short as it can be: `0.1`, `5`.
fn plain_ms(ns: u64) -> String {
    ms(ns).trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::run_of;
    use expect_test::expect;
    use wakescope_core::histogram::{Bucket, Histogram};
    use wakescope_core::plan::Stimulus;
    use wakescope_core::source::Source;
    use wakescope_core::stated::Stated;

    fn thresholds() -> Vec<SpanNs> {
        THRESHOLDS_NS.map(SpanNs).to_vec()
    }

    #[test]
    fn the_block_of_2002() {
        let samples = [vec![52_000; 19_990], vec![150_000; 8], vec![620_000, 1_200_007]].concat();
        expect![[r#"
            # lateness per expiry in ms; kernel 6.12.95, preemption voluntary
            buckets 4 of 0.1 ms
            samples 20000
            minimum 0.052000
            maximum 1.200007
            mean 0.052125
            median 0.052031
            mode 0.050000 (19990 samples)
            variance 0.000086
            standard deviation 0.009260
             99.95000 % below 0.1 ms (19990 samples)
             99.99000 % below 0.2 ms (19998 samples)
             99.99000 % below 0.5 ms (19998 samples)
             99.99500 % below 0.7 ms (19999 samples)
             99.99500 % below 1 ms (19999 samples)
            100.00000 % not above 1.200007 ms, the maximum
            five nines: 20000 samples are too few; 200000 are needed
        "#]]
        .assert_eq(&block(&run_of(&[&samples]), &thresholds()));
    }

    #[test]
    fn the_time_between_samples_has_a_block_of_its_own() {
        let distribution = |values: &[u64]| {
            let mut run = run_of(&[values]);
            std::mem::take(&mut run.threads[0].woken)
        };
        let mut run = run_of(&[&[52_000; 5]]);
        run.threads[0].interval_deviation = Some(IntervalDeviation {
            longer: distribution(&[1_000, 250_000]),
            shorter: distribution(&[90_000, 150_007]),
        });
        let text = block(&run, &thresholds());
        let (_, text) = text.split_once("are needed\n").unwrap();
        expect![[r#"
            # deviation of the interval in ms
            samples 4
            minimum -0.150007
            maximum 0.250000
            mean 0.002748
            variance 0.023252
            standard deviation 0.152488
             50.00000 % below 0.1 ms either way (2 samples)
             75.00000 % below 0.2 ms either way (3 samples)
        "#]]
        .assert_eq(text);
    }

    #[test]
    fn a_sum_that_saturated_has_no_mean() {
        let mut run = run_of(&[&[52_000; 10]]);
        run.threads[0].expiries.sum_ns = u64::MAX;
        let text = block(&run, &[]);
        for what in ["mean", "variance", "standard deviation"] {
            let line = format!("\n{what} - (the sum of the samples is too large to be counted)\n");
            assert!(text.contains(&line), "{text}");
        }
    }

    #[test]
    fn the_model_that_ran_stands_beside_the_kernel() {
        let mut run = run_of(&[&[52_000; 10]]);
        run.host = Default::default();
        let text = block(&run, &thresholds());
        assert!(text.starts_with("# lateness per expiry in ms; kernel unknown\n"), "{text}");
        let mut run = run_of(&[&[52_000; 10]]);
        run.host.preemption.model = Model::Full;
        let text = block(&run, &thresholds());
        let begin = "# lateness per expiry in ms; kernel 6.12.95, preemption full\n";
        assert!(text.starts_with(begin), "{text}");
    }

    /// A histogram of another program that ends at 0.1 ms: 50 samples lie beyond, up to 6.5 ms.
    #[test]
    fn where_samples_beyond_a_histogram_lie_is_not_known() {
        let mut run = run_of(&[&[[52_000; 950].as_slice(), &[110_000], &[6_500_000; 49]].concat()]);
        let d = &mut run.threads[0].expiries;
        let (ends, last) = (110_000, 6_501_000);
        let mut buckets = d.histogram.buckets().to_vec();
        buckets.truncate(1);
        buckets.push(Bucket { lower: ends, upper: last, count: 50 });
        d.histogram = Histogram::from_buckets(buckets).unwrap();
        d.stated = Some(Stated { resolution_ns: 1_000, ..Stated::default() });
        expect![[r#"
            buckets at least 2 of 0.1 ms
            samples 1000
            minimum 0.052000
            maximum 6.500000
            mean 0.368010
            median 0.052031
            mode 0.050000 (950 samples)
            variance - (50 samples lie anywhere from 0.110000 to 6.500999)
            standard deviation - (50 samples lie anywhere from 0.110000 to 6.500999)
             95.00000 % below 0.1 ms (950 samples)
            at least  95.00000 % below 0.2 ms (950 samples)
            at least  95.00000 % below 5 ms (950 samples)
            100.00000 % not above 6.500999 ms, the most that the maximum can be
            five nines: 1000 samples are too few; 200000 are needed
        "#]]
        .assert_eq(
            block(&run, &[100_000, 200_000, 5_000_000].map(SpanNs)).split_once('\n').unwrap().1,
        );
        // The 50 may all be in one bucket.
        for (known, mode) in
            [(80, "0.050000 (80 samples)"), (49, "- (50 samples lie anywhere from")]
        {
            let d = &mut run.threads[0].expiries;
            let mut buckets = d.histogram.buckets().to_vec();
            (d.count, buckets[0].count) = (known + 50, known);
            d.histogram = Histogram::from_buckets(buckets).unwrap();
            let text = block(&run, &thresholds());
            assert!(text.contains(&format!("\nmode {mode}")), "{text}");
        }
    }

    /// Of schbench's percentiles: 9,000 samples lie from 10 to 412 µs, perhaps in the bucket of the mode.
    #[test]
    fn the_mode_counts_no_sample_whose_place_is_not_known() {
        let mut run = run_of(&[&[]]);
        let bucket = |(lower, upper, count)| Bucket { lower, upper, count };
        let buckets =
            [(1_000, 10_000, 90_000), (10_000, 413_000, 9_000), (413_000, 4_013_000, 900)]
                .into_iter()
                .chain([(4_013_000, 9_877_000, 100)])
                .map(bucket);
        run.threads[0].expiries = Distribution {
            count: 100_000,
            min_ns: Some(1_000),
            max_ns: Some(9_876_000),
            histogram: Histogram::from_buckets(buckets.collect()).unwrap(),
            stated: Some(Stated { resolution_ns: 1_000, ..Stated::default() }),
            ..Distribution::default()
        };
        let text = block(&run, &[SpanNs(100_000)]);
        for want in [
            // The last 1,000 may all be in the bucket from 4.0 ms, the 9,000 in the first.
            "\nbuckets at least 2 of 0.1 ms\n",
            "\nmode 0.050000 (at least 90000 samples)\n",
            "\nat least  90.00000 % below 0.1 ms (90000 samples)\n",
        ] {
            assert!(text.contains(want), "{want}{text}");
        }
    }

    /// Rows of 1 ms, as rtla writes them: 1,000 samples from 350 µs on, two from 1 ms to 1.35 ms.
    #[test]
    fn no_bucket_holds_samples_below_the_minimum() {
        let mut run = run_of(&[&[]]);
        let rows = [(0, 1_000_000, 1_000), (1_000_000, 2_000_000, 2)];
        let rows = rows.map(|(lower, upper, count)| Bucket { lower, upper, count });
        run.threads[0].expiries = Distribution {
            count: 1_002,
            min_ns: Some(350_000),
            max_ns: Some(1_350_000),
            histogram: Histogram::from_buckets(rows.into()).unwrap(),
            stated: Some(Stated { resolution_ns: 1_000, ..Stated::default() }),
            ..Distribution::default()
        };
        let text = block(&run, &thresholds());
        assert!(text.contains("\nbuckets at least 2 of 0.1 ms\n"), "{text}");
        assert!(text.contains("\nmode - (1002 samples lie anywhere"), "{text}");
    }

    #[test]
    fn an_exact_share_is_not_rounded() {
        let samples = [[5_000; 41].as_slice(), &[150_000; 59]].concat();
        let text = block(&run_of(&[&samples]), &thresholds());
        assert!(text.contains("\n 41.00000 % below 0.1 ms (41 samples)\n"), "{text}");
    }

    #[test]
    fn no_samples_are_said_to_be_none() {
        assert!(block(&run_of(&[&[]]), &thresholds()).ends_with("samples 0\n"));
    }

    #[test]
    fn the_block_says_what_a_sample_is() {
        let begin = |run: &Run| {
            block(run, &[])
                .lines()
                .next()
                .unwrap()
                .replace("; kernel 6.12.95, preemption voluntary", "")
        };
        let mut run = run_of(&[&[52_000; 5]]);
        assert_eq!(begin(&run), "# lateness per expiry in ms");
        run.plan.stimulus = Stimulus::Pipe;
        assert_eq!(begin(&run), "# lateness per wakeup in ms");
        run.plan.stimulus = Stimulus::Timer;
        // Cyclictest omits expiries that a late wakeup swallowed.
        run.source = Some(Source::default());
        assert_eq!(begin(&run), "# lateness per sample in ms");
    }

    /// Cyclictest cuts values off to whole µs.
    #[test]
    fn no_sample_of_a_file_in_steps_is_above_what_is_stated() {
        let mut run = run_of(&[&[vec![5_000; 199_999], vec![812_000]].concat()]);
        let d = &mut run.threads[0].expiries;
        let bucket = |lower, count| Bucket { lower, upper: lower + 1_000, count };
        d.histogram =
            Histogram::from_buckets(vec![bucket(5_000, 199_999), bucket(812_000, 1)]).unwrap();
        d.stated = Some(Stated { resolution_ns: 1_000, ..Stated::default() });
        let text = block(&run, &[]);
        for want in [
            "\nmaximum 0.812000\n",
            "\n100.00000 % not above 0.812999 ms, the most that the maximum can be\n",
            "\nfive nines: 99.99900 % within 0.005999 ms\n",
        ] {
            assert!(text.contains(want), "{want}{text}");
        }
    }

    /// Our own buckets are 0.2 % wide, and so wider than his from 67 ms on.
    #[test]
    fn samples_of_a_wide_bucket_are_not_all_in_one_tenth() {
        let late: Vec<u64> = (0..4_000).map(|i| 1_000_000_000 + i * 100_000).collect();
        let text = block(&run_of(&[&[&[50_000; 3_000][..], &late].concat()]), &[SpanNs(100_000)]);
        assert!(text.contains("\nbuckets at least "), "{text}");
        assert!(text.contains("\nmode - (4000 samples lie anywhere from 999."), "{text}");
        assert!(text.contains("\n 42.85714 % below 0.1 ms (3000 samples)\n"), "{text}");
        // That hardly matters to these.
        assert!(!text.contains("variance -") && !text.contains("deviation -"), "{text}");
    }
}
