//! The two files of HdrHistogram: the interval log (`.hlog`) and the percentile distribution
//! (`.hgrm`).
//!
//! Its histograms with three significant digits have 1,024 buckets per octave, ours 512 at the same
//! edges. So each of ours is a whole number of theirs, and nothing is lost on the way there or back.

use std::io::{self, Write};

use wakescope_core::date::Date;
use wakescope_core::distribution::Distribution;
use wakescope_core::run::Run;

use super::{Values, exact, head, latest, latest_of_all, least, numbered, seconds, us, values_of};
use crate::parts::{self, Extremes, Part};
use wakescope_core::harmless::clean;

mod encode;

use encode::Scale;

/// Buckets of the first octaves, for three significant digits.
const SUB_BUCKETS: u64 = 2_048;

/// The unit in ns of a log, and its name: the step of the file that the run was read from, so that a true
/// value stays known to that step and no better; ns of others.
fn unit_of(run: &Run) -> (u64, &'static str) {
    match run.source.as_ref().and_then(|source| source.resolution_ns) {
        Some(1_000) => (1_000, "us"),
        Some(1_000_000) => (1_000_000, "ms"),
        _ => (1, "ns"),
    }
}

/// Writes a log with one interval, the run, and in it a histogram per CPU, with the tag `cpu0` and
/// so on; the second that is not bound has `any-1`. Values are nanoseconds, or in the steps of the file that
/// the run was read from; the largest of an interval is in ms, as in all such logs.
///
/// Fails, with nothing written, where values or counts are 2^63 or more: the format's are signed.
pub fn write_log(run: &Run, values: Values, out: &mut impl Write) -> io::Result<()> {
    let (unit_ns, unit) = unit_of(run);
    let all: Vec<&Distribution> = run.threads.iter().map(|t| values.of(t)).collect();
    let scale = Scale::of(&all, unit_ns);
    let encoded = all.iter().map(|d| encode::compressed(d, least(run, d), unit_ns, scale));
    let encoded: Vec<String> = encoded.collect::<io::Result<_>>()?;
    let head = head(run, values, unit);
    writeln!(out, "#[Logged by {head}, kernel {}]", clean(&run.host.release, 80))?;
    writeln!(out, "#[Histogram log format version 1.3]")?;
    if let Some(date) = Date::parse(&run.started).filter(|_| run.knows("started")) {
        let (epoch, text) = (date.seconds(), date.unix());
        writeln!(out, "#[StartTime: {epoch}.000 (seconds since epoch), {text}]")?;
    }
    writeln!(
        out,
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"HdrHistogramV2-compressed-base64\""
    )?;
    for ((thread, histogram), (cpu, number)) in run.threads.iter().zip(encoded).zip(numbered(run)) {
        let cpu = if thread.cpu.is_some() { format!("cpu{cpu}") } else { cpu };
        let tag = if number == 0 { cpu } else { format!("{cpu}-{number}") };
        let length = thousandths(run.duration_ns, 1_000_000);
        let max_ms = thousandths(latest_of_all(values.of(thread)), 1_000);
        writeln!(out, "Tag={tag},0.000,{length},{max_ms},{histogram}")?;
    }
    Ok(())
}

/// In a unit of a thousand times `thousandth_ns`, with three decimals.
fn thousandths(ns: u64, thousandth_ns: u64) -> String {
    us(ns / thousandth_ns + u64::from(ns % thousandth_ns >= thousandth_ns / 2))
}

/// Writes the percentile distribution of all CPUs together, with a line for each value that there
/// is, not only at chosen percentiles. Values are µs to the ns, or what they were in the distribution
/// that the run was read from.
pub fn write_percentiles(run: &Run, values: Values, out: &mut impl Write) -> io::Result<()> {
    let all = values.of_all(run);
    let places = Places::of(run);
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let rows = rows_of(run, &all, places.resolution_ns);
    let least_ns = rows.first().map_or(0, |&(value, _)| value);
    let mut seen = 0_u64;
    for (value, count) in rows {
        seen = seen.saturating_add(count);
        let beyond = all.count.saturating_sub(seen);
        let share = seen as f64 / all.count as f64;
        write!(out, "{:>12} {share:.12} {seen:>10}", places.text(value))?;
        match beyond {
            0 => writeln!(out)?,
            _ => writeln!(out, " {:>14.2}", all.count as f64 / beyond as f64)?,
        }
    }
    let max_ns = latest_of_all(&all);
    let max_ns = max_ns - max_ns % places.resolution_ns;
    let (mean, deviation) = moments(&all, (least_ns, max_ns), &places);
    let octaves = (64 - (max_ns | (SUB_BUCKETS - 1)).leading_zeros()) - SUB_BUCKETS.ilog2() + 1;
    writeln!(out, "#[Mean    = {mean:>12}, StdDeviation   = {deviation:>12.3}]")?;
    writeln!(out, "#[Max     = {:>12}, Total count    = {:>12}]", places.text(max_ns), all.count)?;
    writeln!(out, "#[Buckets = {octaves:>12}, SubBuckets     = {SUB_BUCKETS:>12}]")?;
    writeln!(out, "#[{}, {} s]", head(run, values, places.unit), seconds(run.duration_ns))
}

/// Each value that there is, once, with how many samples it stands for: in whole steps, as it is printed.
fn rows_of(run: &Run, all: &Distribution, resolution_ns: u64) -> Vec<(u64, u64)> {
    let mut rows: Vec<(u64, u64)> = Vec::new();
    let mut add = |value: u64, count: u64| {
        let value = value - value % resolution_ns;
        match rows.last_mut() {
            Some(last) if last.0 == value => last.1 += count,
            _ => rows.push((value, count)),
        }
    };
    if let Some(least) = least(run, all) {
        values_of(all, Some(least)).for_each(|(value, count)| add(value, count));
        return rows;
    }
    // Of such a file the least late is not known, and values are lower ends of what they stand for.
    for bucket in all.histogram.buckets() {
        add(
            (bucket.upper - resolution_ns.min(bucket.upper)).min(latest(bucket, all)),
            bucket.count,
        );
    }
    rows
}

/// How values are written.
struct Places {
    unit_ns: u64,
    unit: &'static str,
    /// What the last place stands for.
    resolution_ns: u64,
    /// How the extremes take part in the mean: it may have been read from such a file.
    extremes: Extremes,
}

impl Places {
    fn of(run: &Run) -> Self {
        let of_source = run.source.as_ref().filter(|source| source.tool == "HdrHistogram");
        let resolution_ns = of_source.and_then(|source| source.resolution_ns).unwrap_or(1);
        let is_power = 10_u64.pow(resolution_ns.max(1).ilog10()) == resolution_ns;
        let (unit_ns, unit, resolution_ns) = match resolution_ns {
            10_000.. if is_power => (1_000_000, "ms", resolution_ns),
            _ if is_power => (1_000, "us", resolution_ns),
            _ => (1_000, "us", 1),
        };
        let extremes = if of_source.is_some() { Extremes::Middles } else { Extremes::Samples };
        Self { unit_ns, unit, resolution_ns, extremes }
    }

    fn text(&self, ns: u64) -> String {
        match self.unit_ns / self.resolution_ns {
            0 | 1 => (ns / self.unit_ns).to_string(),
            steps => exact(ns / self.resolution_ns, steps),
        }
    }
}

/// The mean to a thousandth of a unit, and the largest standard deviation that samples can have with this
/// mean. The mean is not below that of the lines: of samples with bounds only, these are upper bounds.
fn moments(d: &Distribution, extremes_ns: (u64, u64), places: &Places) -> (String, f64) {
    let &Places { unit_ns, resolution_ns, extremes, .. } = places;
    // As who reads the file knows them: to its resolution, and from the first line to the maximum.
    let parts = parts::of(d, extremes_ns, resolution_ns, extremes);
    let (lowest, highest) = parts::sums(&parts);
    let sum = u128::from(d.sum_ns).max(lowest);
    // In whole numbers: a mean that was read from such a file stays what it was. At an end of what samples can
    // have, it is rounded away from what they can: who reads it finds that end again.
    let all = u128::from(unit_ns) * u128::from(d.count.max(1));
    let rounding = match sum {
        sum if extremes == Extremes::Middles && sum == lowest => 0,
        sum if extremes == Extremes::Middles && sum == highest => all - 1,
        _ => all / 2,
    };
    let thousandths = sum / all * 1_000 + (sum % all * 1_000 + rounding) / all;
    let mean = exact(u64::try_from(thousandths).unwrap_or(u64::MAX), 1_000);
    // The deviation is largest where each sample is at an end of its range: those of the highest ranges at
    // the upper one, as many as the mean allows.
    let mut left = (sum - lowest) as f64;
    let mut values: Vec<(f64, f64)> = Vec::new();
    for Part { low, high, count } in parts.into_iter().rev() {
        let (width, samples) = ((high - low) as f64, count as f64);
        let moved = if width > 0.0 { (left / width).min(samples) } else { 0.0 };
        left -= moved * width;
        values.extend([(high as f64, moved), (low as f64, samples - moved)]);
    }
    let count = d.count.max(1) as f64;
    let center = values.iter().map(|(value, samples)| value * samples).sum::<f64>() / count;
    let squares = values.iter().map(|(value, samples)| (value - center).powi(2) * samples);
    (mean, (squares.sum::<f64>() / count).sqrt() / unit_ns as f64)
}
