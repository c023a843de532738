//! What `stress-ng --cyclic` prints: extremes, and with `--cyclic-dist` a histogram.
//!
//! Each wait begins when the last wakeup is done, so nothing can be missed and a constant lateness
//! is in it in full; only the first samples of a run are kept, 10,000 unless asked otherwise.

use std::io::BufRead;

use wakescope_core::finding::Severity;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::counts::{Counts, in_ns, sum_of_mean, wide};
use super::draft::Draft;
use super::lines::{Line, Lines, Word};
use super::statement::Figure;
use super::{About, ImportError, Unit, command, unit};
use wakescope_core::harmless::clean;

#[derive(Default)]
struct Seen {
    policy: Option<String>,
    delay_ns: Option<u64>,
    samples: Option<u64>,
    mean: Option<u64>,
    /// In thousandths, as the mean.
    deviation: Option<u64>,
    /// As printed: 99.9 is 99900 thousandths. In ns.
    percentiles: Vec<(Percentile, u64)>,
    extremes: Option<(u64, u64)>,
    width: Option<u64>,
    /// Buckets that are printed at most.
    buckets: Option<u64>,
    rows: Vec<(u64, u64)>,
    note: Option<String>,
    /// The line that says that there is no result.
    none: Option<String>,
}

pub(super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut seen = Seen::default();
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        let Some(at) = line.text.find(" cyclic:") else { continue };
        seen.take(line.from(at + " cyclic:".len()))?;
    }
    let end = lines.count();
    let cut = |what: &str| ImportError {
        line: Some(end),
        ..ImportError::new(format!("the file ends before `{what}`: it is truncated"))
    };
    if let Some(line) = seen.none.filter(|_| seen.samples.is_none()) {
        let why = format!("stress-ng says: {}", clean(&line, 200));
        return Err(ImportError::new(why).try_this("run one instance: --cyclic 1"));
    }
    let samples = seen.samples.ok_or_else(|| cut("samples"))?;
    let mean = seen.mean.ok_or_else(|| cut("mean:"))?;
    let (min, max) = seen.extremes.ok_or_else(|| cut("min:"))?;
    unit::stated(about, Unit::Ns, "stress-ng writes `ns`")?;
    let mut draft =
        Draft::new("stress-ng", "cyclic text", about, Quantity::WakeupLatency, Omission::Relative);
    draft.interval_ns = seen.delay_ns;
    draft.policy = seen.policy.as_deref().and_then(command::policy);
    draft.source.resolution_ns = Some(1);
    let sum_ns = sum_of_mean(samples, mean, 1);
    draft.approximate("sum_ns: the mean is given with two decimals");
    if let Some(note) = &seen.note {
        let message =
            format!("only the first samples were kept; stress-ng says: {}", clean(note, 200));
        draft.find("lost-samples", Severity::Warning, message, "ask for more: --cyclic-samples");
    }
    let d = match seen.width {
        None => {
            let remedy = "run stress-ng with a histogram: --cyclic-dist 1000";
            match seen.percentiles.is_empty() {
                true => draft.summary_only(remedy),
                false => draft.summary_and_percentiles(remedy),
            }
            wide(samples, in_ns(min, 1).map_err(ImportError::new)?, max, 1, sum_ns)
        }
        Some(width) => {
            let printed = seen.buckets.ok_or_else(|| cut("(for the first … buckets"))?;
            histogram(&seen.rows, width, printed, samples, (min, max), sum_ns, &mut draft)
        }
    };
    draft.thread(None, d.map_err(ImportError::new)?);
    for (figure, value) in [(Figure::Mean, Some(mean)), (Figure::Deviation, seen.deviation)] {
        #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
        if let Some(ns) = value.map(|thousandths| thousandths as f64 / 1_000.0) {
            draft.states(figure, ns - 0.01, ns + 0.01);
        }
    }
    for &(percentile, ns) in &seen.percentiles {
        draft.states_percentile(percentile, ns);
    }
    draft.finish()
}

fn histogram(
    rows: &[(u64, u64)],
    width: u64,
    printed: u64,
    samples: u64,
    (min, max): (u64, u64),
    sum_ns: u64,
    draft: &mut Draft,
) -> Result<wakescope_core::distribution::Distribution, String> {
    let mut counts = Counts::default();
    let end = in_ns(printed, width)?;
    let beyond = in_ns(max, 1)? + 1;
    for &(row, count) in rows {
        if row % width != 0 || row >= end {
            return Err(format!("there is no bucket at {row} ns"));
        }
        counts.push(row, in_ns(row + width, 1)?.min(beyond.max(row + 1)), count)?;
    }
    let held = counts.count();
    let overflow = samples.checked_sub(held);
    let overflow =
        overflow.ok_or_else(|| format!("its buckets hold {held} samples, of {samples}"))?;
    if overflow > 0 {
        if max < end {
            return Err(format!(
                "its buckets lack {overflow} of {samples} samples, but none is beyond them: it is truncated"
            ));
        }
        counts.push(if held == 0 { min } else { end }, beyond, overflow)?;
        draft.overflow("stress-ng", overflow, end, true);
    }
    counts.finish(min, max, sum_ns)
}

impl Seen {
    fn take(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let words: Vec<Word<'_>> = line.words().collect();
        let texts: Vec<&str> = words.iter().map(|w| w.text).collect();
        match texts.as_slice() {
            ["sched", policy, _, "ns", "delay,", _, "samples"] => {
                if self.samples.is_some() {
                    return Err(line.fault("a second result begins; give each a file of its own"));
                }
                self.policy = Some(policy.trim_end_matches(':').into());
                self.delay_ns = Some(words[2].number()?);
                self.samples = Some(words[5].number()?);
            }
            ["mean:", _, "ns,", ..] => self.mean = Some(words[1].thousandths()?),
            ["min:", _, "ns,", "max:", _, "ns,", rest @ ..] => {
                self.extremes = Some((words[1].number()?, words[4].number()?));
                if let ["std.dev.", _, ..] = rest {
                    self.deviation = Some(words[7].thousandths()?);
                }
            }
            [percentile, _, "ns"] if percentile.ends_with("%:") => {
                let fault = || words[0].fault("no percentile above the one before it");
                let (name, ns) = (percentile.trim_end_matches("%:"), words[1].number()?);
                let percentile = format!("p{name}").parse().map_err(|_| fault())?;
                let rises = |&(p, held): &(Percentile, u64)| p < percentile && held <= ns;
                if !self.percentiles.last().is_none_or(rises) {
                    return Err(fault());
                }
                self.percentiles.push((percentile, ns));
            }
            ["latency", "distribution", width, "ns", "intervals):"] => {
                let width = Word { text: width.trim_start_matches('('), ..words[2] }.number()?;
                if width == 0 {
                    return Err(words[2].fault("no width of a bucket"));
                }
                self.width = Some(width);
            }
            ["(for", "the", "first", _, "buckets", "of", _] => {
                self.buckets = Some(words[3].number()?);
            }
            [.., "no", "latency", "information", "available"] => {
                self.none = Some(line.text.trim().into());
            }
            ["Note:", ..] => self.note = Some(line.text.trim().into()),
            [row, count]
                if row.starts_with(|c: char| c.is_ascii_digit()) && !count.starts_with('n') =>
            {
                let (row, count) = (words[0].number()?, words[1].number()?);
                if self.rows.last().is_some_and(|&(last, _)| row <= last) {
                    return Err(words[0].fault("not above the bucket before it"));
                }
                if self.rows.len() >= 1_000 {
                    return Err(line.fault("more buckets than stress-ng prints"));
                }
                self.rows.push((row, count));
            }
            _ => {}
        }
        Ok(())
    }
}
