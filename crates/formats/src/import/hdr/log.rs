//! Interval logs (`.hlog`): a compressed histogram per interval. Those with different tags are kept
//! apart.

use std::io::BufRead;

use wakescope_core::budget::{Budget, Entry};
use wakescope_core::date::Date;
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::source::{Omission, Quantity};

use super::super::counts::{Counts, in_ns};
use super::super::draft::Draft;
use super::super::lines::{Line, Lines, number, thousandths};
use super::super::{About, ImportError, Imported, MOST_CPUS};
use super::{Declared, Fault, decode, from_base64};
use wakescope_core::harmless::clean;

/// The most tags that are kept apart.
const MOST_TAGS: usize = 256;

/// Fewer pending buckets are not merged before the end.
const ENOUGH: usize = 4_096;

#[derive(Default)]
struct Log {
    declared: Declared,
    version: Option<String>,
    /// Seconds since 1970.
    started: Option<i64>,
    tags: Vec<(String, Intervals)>,
}

/// The intervals of one tag, as one.
#[derive(Default)]
struct Intervals {
    histogram: Histogram,
    /// Buckets of intervals that are not yet in it. Each merge passes through the whole histogram,
    /// so it waits until there are as many of these.
    pending: Vec<Bucket>,
    count: u64,
    /// When the first began and the last ended, in ms.
    begin_ms: Option<u64>,
    end_ms: u64,
}

pub(in super::super) fn read(
    from: &mut dyn BufRead,
    about: &About,
) -> Result<Vec<Imported>, ImportError> {
    let mut log = Log::default();
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        if line.text.starts_with('#') {
            log.comment(line.text);
        } else if !line.text.trim().is_empty() && !line.text.starts_with("\"StartTimestamp\"") {
            log.interval(line, &about.budget)?;
        }
    }
    if log.tags.is_empty() {
        return Err(ImportError::new("there is no interval in it"));
    }
    log.tags.iter_mut().for_each(|(_, intervals)| intervals.merge(&about.budget));
    let unit_ns = log.declared.unit(about)?.ns();
    if log.declared.own.is_some() {
        return log.own(about, unit_ns);
    }
    let several = log.tags.len() > 1;
    let run = |(tag, intervals): &(String, Intervals)| {
        let name = match (several, tag.as_str()) {
            (true, "") => "untagged".into(),
            _ => clean(tag, 60),
        };
        let of_tag = |why| ImportError::new(format!("{name}: {why}"));
        let draft = log.draft(about, intervals, unit_ns).map_err(of_tag)?;
        Ok(Imported { name, run: draft.finish()? })
    };
    log.tags.iter().map(run).collect()
}

/// How much larger a maximum can be than it is written, in thousandths: the library of Python cuts it off
/// to a whole number, and writes that with six decimals.
fn step_of(max: &str) -> u64 {
    if max.ends_with(".000000") { 1_000 } else { 1 }
}

/// Whether thousandths of some unit, and up to a step more, can be the maximum of samples that end in a
/// bucket. The unit is not stated; it is a power of 1,000 of that of the samples.
fn is_maximum(thousandths: u64, step: u64, largest: &Bucket) -> bool {
    [1_u128, 1_000, 1_000_000, 1_000_000_000].into_iter().any(|unit| {
        let (least, most) = (u128::from(thousandths), u128::from(thousandths) + u128::from(step));
        let least = least.saturating_sub(1) * unit / 1_000;
        least <= u128::from(largest.upper) && most * unit / 1_000 >= u128::from(largest.lower)
    })
}

impl Intervals {
    /// Merges what is pending, and gives back the memory of buckets that became one.
    fn merge(&mut self, budget: &Budget) {
        let before = self.histogram.buckets().len() + self.pending.len();
        let pending = Histogram::from_unordered(std::mem::take(&mut self.pending));
        self.histogram = self.histogram.merged(&pending);
        let merged = before.saturating_sub(self.histogram.buckets().len());
        budget.release(merged as u64, Entry::BUCKET);
    }
}

impl Log {
    fn comment(&mut self, text: &str) {
        if let Some(rest) = text.strip_prefix("#[Histogram log format version ") {
            self.version = Some(rest.trim_end_matches([']', ' ']).chars().take(12).collect());
        } else if let Some(rest) = text.strip_prefix("#[StartTime:") {
            let seconds = rest.split_ascii_whitespace().next().and_then(thousandths);
            self.started = seconds.and_then(|ms| i64::try_from(ms / 1_000).ok());
        } else {
            self.declared.take(text);
        }
    }

    fn interval(&mut self, line: Line<'_>, budget: &Budget) -> Result<(), ImportError> {
        let (tag, text) = match line.text.strip_prefix("Tag=") {
            Some(rest) => {
                rest.split_once(',').ok_or_else(|| line.fault("a tag without an interval"))?
            }
            None => ("", line.text),
        };
        let fields: Vec<&str> = text.split(',').collect();
        let [begin, length, max, packed] = fields.as_slice() else {
            return Err(line.fault("not start, length, maximum and a histogram"));
        };
        let time = |text: &str| thousandths(text.trim()).ok_or_else(|| line.fault("not a time"));
        let (begin_ms, length_ms) = (time(begin)?, time(length)?);
        let (max, step) = (time(max)?, step_of(max));
        let column = line.offset + line.text.len() - packed.len();
        let at = |why: String| ImportError::at(line.number, column, why);
        let bytes = from_base64(packed.trim()).ok_or_else(|| at("not whole base64".into()))?;
        let buckets = decode(&bytes, budget).map_err(|fault| match fault {
            Fault::Wrong(why) => at(why),
            Fault::Exceeded(exceeded) => exceeded.into(),
        })?;
        let histogram = Histogram::from_buckets(buckets).map_err(at)?;
        if let Some(largest) = histogram.buckets().last().filter(|b| !is_maximum(max, step, b)) {
            return Err(line.fault(&format!(
                "its maximum is stated as {max} thousandths, but its histogram ends with a bucket from {} to {}",
                largest.lower, largest.upper
            )));
        }
        let place = self.tags.iter().position(|(known, _)| known == tag);
        let place = match place {
            Some(place) => place,
            None if self.tags.len() >= MOST_TAGS => {
                return Err(line.fault("more than 256 tags"));
            }
            None => {
                self.tags.push((tag.into(), Intervals::default()));
                self.tags.len() - 1
            }
        };
        let intervals = &mut self.tags[place].1;
        let sum = intervals.count.checked_add(histogram.count());
        intervals.count = sum.ok_or_else(|| at("the counts add up to more than 2^64".into()))?;
        intervals.pending.extend_from_slice(histogram.buckets());
        if intervals.pending.len() >= intervals.histogram.buckets().len().max(ENOUGH) {
            intervals.merge(budget);
        }
        intervals.begin_ms = Some(intervals.begin_ms.map_or(begin_ms, |b| b.min(begin_ms)));
        intervals.end_ms = intervals.end_ms.max(begin_ms.saturating_add(length_ms));
        Ok(())
    }

    /// Of what wakescope wrote, each tag is a CPU of the same run.
    fn own(&self, about: &About, unit_ns: u64) -> Result<Vec<Imported>, ImportError> {
        let mut whole: Option<Draft> = None;
        for (tag, intervals) in &self.tags {
            let of_tag = |why| ImportError::new(format!("{}: {why}", clean(tag, 40)));
            let mut draft = self.draft(about, intervals, unit_ns).map_err(of_tag)?;
            // A second thread on CPU 3 is `cpu3-1`.
            let cpu = tag.strip_prefix("cpu").and_then(|rest| number(rest.split('-').next()?));
            let cpu = cpu.filter(|&cpu| cpu < MOST_CPUS);
            for thread in &mut draft.threads {
                thread.cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok());
            }
            match &mut whole {
                None => whole = Some(draft),
                Some(whole) => {
                    whole.duration_ns = whole.duration_ns.max(draft.duration_ns);
                    whole.threads.append(&mut draft.threads);
                    whole.findings.append(&mut draft.findings);
                }
            }
        }
        let whole = whole.ok_or_else(|| ImportError::new("there is no interval in it"))?;
        Ok(vec![Imported { name: String::new(), run: whole.finish()? }])
    }

    fn draft(&self, about: &About, of: &Intervals, unit_ns: u64) -> Result<Draft, String> {
        let mut draft =
            Draft::new("HdrHistogram", "interval log", about, Quantity::Unknown, Omission::Unknown);
        self.declared.tell(&mut draft);
        draft.started = self.started.and_then(Date::from_seconds);
        let span = of.begin_ms.map(|begin| of.end_ms.saturating_sub(begin));
        draft.duration_ns = span.and_then(|ms| ms.checked_mul(1_000_000)).filter(|&ns| ns > 0);
        if let Some(version) = &self.version {
            draft.source.format = format!("interval log {version}");
        }
        draft.source.resolution_ns = Some(unit_ns);
        draft.extremes_are_edges = true;
        draft.approximate("min_ns, max_ns: known to the width of a bucket");
        draft.approximate("sum_ns: each sample counts as the lower edge of its bucket");
        let mut counts = Counts::default();
        for &Bucket { lower, upper, count } in of.histogram.buckets() {
            counts.push(in_ns(lower, unit_ns)?, in_ns(upper, unit_ns)?, count)?;
        }
        let ends = counts.buckets().first().zip(counts.buckets().last());
        // The library itself names the end of a bucket as its maximum, so that none is understated.
        let (min, max) = ends.map_or((0, 0), |(first, last)| (first.lower, last.upper - unit_ns));
        let sum_ns = counts.least_sum();
        draft.thread(None, counts.finish(min, max, sum_ns)?);
        Ok(draft)
    }
}
