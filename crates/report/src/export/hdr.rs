//! The two files of HdrHistogram: the interval log (`.hlog`) and the percentile distribution
//! (`.hgrm`).
//!
//! Its histograms with three significant digits have 1,024 buckets per octave, ours 512 at the same
//! edges. So each of ours is a whole number of theirs, and nothing is lost on the way there or back.

use std::io::{self, Write};

use wakescope_core::distribution::Distribution;
use wakescope_core::run::Run;
use wakescope_core::source::Quantity;

use super::date::Date;
use super::{Values, latest, seconds, us, writer};
use crate::domain;
use crate::quantity;
use crate::style::clean;

mod encode;

/// Buckets of the first octaves, for three significant digits.
const SUB_BUCKETS: u64 = 2_048;

/// Writes a log with one interval, the run, and in it a histogram per CPU, with the tag `cpu0` and
/// so on. Values are nanoseconds; the largest of an interval is in ms, as in all such logs.
///
/// Fails, with nothing written, where values or counts are 2^63 or more: the format's are signed.
pub fn write_log(run: &Run, values: Values, out: &mut impl Write) -> io::Result<()> {
    let encoded = run.threads.iter().map(|t| encode::compressed(values.of(t)));
    let encoded: Vec<String> = encoded.collect::<io::Result<_>>()?;
    writeln!(
        out,
        "#[Logged by {}: {values}, {}ns, kernel {}]",
        writer(),
        domain::word(run.time_domain),
        clean(&run.host.release, 80)
    )?;
    write_quantity(run, out)?;
    writeln!(out, "#[Histogram log format version 1.3]")?;
    if let Some(date) = Date::parse(&run.started) {
        let (epoch, text) = (date.epoch(), date.of_unix());
        writeln!(out, "#[StartTime: {epoch}.000 (seconds since epoch), {text}]")?;
    }
    writeln!(
        out,
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"HdrHistogramV2-compressed-base64\""
    )?;
    for (thread, histogram) in run.threads.iter().zip(encoded) {
        let tag = thread.cpu.map_or_else(|| "any".into(), |cpu| format!("cpu{cpu}"));
        let length = thousandths(run.duration_ns, 1_000_000);
        let max_ms = thousandths(values.of(thread).max_ns.unwrap_or(0), 1_000);
        writeln!(out, "Tag={tag},0.000,{length},{max_ms},{histogram}")?;
    }
    Ok(())
}

/// Says what the values are, where they are no wakeup latencies: `#[Quantity: gap]`.
fn write_quantity(run: &Run, out: &mut impl Write) -> io::Result<()> {
    let quantity = quantity::of(run);
    match serde_json::to_value(quantity).ok().as_ref().and_then(serde_json::Value::as_str) {
        Some(name) if quantity != Quantity::WakeupLatency => writeln!(out, "#[Quantity: {name}]"),
        _ => Ok(()),
    }
}

/// In a unit of a thousand times `thousandth_ns`, with three decimals.
fn thousandths(ns: u64, thousandth_ns: u64) -> String {
    us(ns / thousandth_ns + u64::from(ns % thousandth_ns >= thousandth_ns / 2))
}

/// The counts that make the same histogram there: each bucket's samples as late as they can have
/// been, but for the least late of all, which is known.
fn values_of(d: &Distribution) -> impl Iterator<Item = (u64, u64)> {
    let first = d.min_ns.map(|min| (min, 1));
    let rest = d
        .histogram
        .buckets()
        .iter()
        .enumerate()
        .map(move |(i, bucket)| (latest(bucket, d), bucket.count - u64::from(i == 0)));
    first.into_iter().chain(rest).filter(|&(_, count)| count > 0)
}

/// Writes the percentile distribution of all CPUs together, in µs, with a line for each value that
/// there is, not only at chosen percentiles.
pub fn write_percentiles(run: &Run, values: Values, out: &mut impl Write) -> io::Result<()> {
    let all = values.of_all(run);
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut seen = 0_u64;
    for (value, count) in values_of(&all) {
        seen = seen.saturating_add(count);
        let beyond = all.count.saturating_sub(seen);
        let share = seen as f64 / all.count as f64;
        write!(out, "{:>12} {share:.12} {seen:>10}", us(value))?;
        match beyond {
            0 => writeln!(out)?,
            _ => writeln!(out, " {:>14.2}", all.count as f64 / beyond as f64)?,
        }
    }
    write_quantity(run, out)?;
    let (mean, deviation) = moments(&all);
    let max_ns = all.max_ns.unwrap_or(0);
    let octaves = (64 - (max_ns | (SUB_BUCKETS - 1)).leading_zeros()) - SUB_BUCKETS.ilog2() + 1;
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    writeln!(out, "#[Max     = {:>12}, Total count    = {:>12}]", us(max_ns), all.count)?;
    writeln!(out, "#[Buckets = {octaves:>12}, SubBuckets     = {SUB_BUCKETS:>12}]")?;
    writeln!(
        out,
        "#[{}: {values}, {}us, {} s]",
        writer(),
        domain::word(run.time_domain),
        seconds(run.duration_ns)
    )
}

/// The exact mean, and the standard deviation from the middle of each bucket, both in µs.
fn moments(d: &Distribution) -> (f64, f64) {
    let count = d.count.max(1) as f64;
    let mean = d.sum_ns as f64 / count;
    let square = |b: &wakescope_core::histogram::Bucket| {
        let middle = (b.lower as f64 + (b.upper - 1) as f64) / 2.0;
        (middle - mean).powi(2) * b.count as f64
    };
    let sum: f64 = d.histogram.buckets().iter().map(square).sum();
    (mean / 1e3, (sum / count).sqrt() / 1e3)
}
