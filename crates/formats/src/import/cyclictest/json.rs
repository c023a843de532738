//! `--json`. Overflows are not in it, and follow from the number of cycles.

use std::io::BufRead;

use serde::Deserialize;
use wakescope_core::date::Date;
use wakescope_core::distribution::Distribution;
use wakescope_core::plan::ProbePolicy;
use wakescope_core::run::{Overflow, Run};
use wakescope_core::units::SpanNs;

use super::super::command::{Command, policy};
use super::super::counts::{Counts, in_ns, wide};
use super::super::draft::{Draft, Kernel};
use super::super::json::{self, Entries};
use super::super::lines::number;
use super::super::own::Own;
use super::super::rt_tests;
use super::super::statement::Figure;
use super::super::{About, ImportError, MOST_CPUS, MOST_ROWS, Unit, unit};
use super::{VALUED, draft, extremes, of_thread, priority};

/// What rt-tests write before the results.
#[derive(Deserialize)]
pub(in super::super) struct Preamble {
    #[serde(rename = "cmdline:", alias = "cmdline", default)]
    pub(in super::super) command: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version", default)]
    pub(in super::super) version: Option<String>,
    #[serde(default)]
    start_time: String,
    #[serde(default)]
    end_time: String,
    #[serde(default)]
    sysinfo: SysInfo,
}

#[derive(Default, Deserialize)]
struct SysInfo {
    #[serde(default)]
    release: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    machine: String,
}

impl SysInfo {
    fn kernel(self) -> Option<Kernel> {
        let kernel = Kernel { release: self.release, version: self.version, arch: self.machine };
        (!kernel.release.is_empty()).then_some(kernel)
    }
}

impl Preamble {
    /// The longest in ns that it can have lasted: start and end are whole seconds, of a clock that may
    /// have been set meanwhile by a little. `None` if it does not tell both.
    pub(in super::super) fn longest_ns(&self) -> Option<u64> {
        let [start, end] = [&self.start_time, &self.end_time].map(|time| Date::parse_mail(time));
        let seconds = u64::try_from(end?.seconds() - start?.seconds()).ok()?;
        let ns = seconds.checked_add(1)?.checked_mul(1_000_000_000)?;
        ns.checked_add(ns / 10)
    }

    /// Puts what it tells into a draft.
    pub(in super::super) fn tell(self, draft: &mut Draft) {
        draft.source.version = self.version.filter(|v| !v.is_empty());
        if draft.source.version.as_deref() == Some("2.10") {
            draft.approximate("version: 2.1 and 2.10 are both written as 2.10");
        }
        draft.started = Date::parse_mail(&self.start_time);
        let span = draft
            .started
            .zip(Date::parse_mail(&self.end_time))
            .map(|(from, to)| to.seconds() - from.seconds());
        if let Some(seconds) = span.and_then(|s| u64::try_from(s).ok()).filter(|&s| s > 0) {
            draft.duration_ns = seconds.checked_mul(1_000_000_000);
            draft.approximate("duration_ns: start and end are given in whole seconds");
        }
        draft.kernel = self.sysinfo.kernel();
    }
}

#[derive(Deserialize)]
struct File {
    num_threads: u64,
    resolution_in_ns: u64,
    thread: Entries<Thread>,
}

#[derive(Deserialize)]
struct Thread {
    histogram: Option<Entries<u64>>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: Option<f64>,
    cpu: Option<i64>,
}

pub(in super::super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut bytes = json::bytes(from)?;
    name_missing_means(&mut bytes);
    let preamble: Preamble = json::parse(&bytes)?;
    if let Some(refused) = rt_tests::of_command(&preamble.command) {
        return Err(refused.error());
    }
    let file: File = json::parse(&bytes)?;
    if file.num_threads != file.thread.0.len() as u64 || file.num_threads > MOST_CPUS {
        return Err(ImportError::new(format!(
            "it states {} threads and has {}; there are no more than 8,192",
            file.num_threads,
            file.thread.0.len()
        )));
    }
    let unit = match file.resolution_in_ns {
        0 => Unit::Us,
        1 => Unit::Ns,
        other => {
            return Err(ImportError::new(format!("resolution_in_ns is {other}, not 0 or 1")));
        }
    };
    let unit_ns = unit::stated(about, unit, "`resolution_in_ns` states it")?;
    let mut draft = draft("JSON", about);
    draft.step_ns = unit_ns;
    let text = preamble.command.clone();
    let command = Command::new(&text, VALUED);
    let own = Own::of(text.strip_prefix("cyclictest by ").unwrap_or_default());
    match &own {
        Some(own) => {
            draft.own(own);
            own_plan(&command, &mut draft);
        }
        None => plan(&command, file.num_threads, &mut draft),
    }
    // What wakescope writes has rows that are rounded up, and a mean of what was before.
    let rounded = own.is_some();
    let longest_ns = preamble.longest_ns();
    preamble.tell(&mut draft);
    draft.coarse(unit_ns);
    let asked = command.number('h', "histogram").or_else(|| command.number('H', "histofall"));
    // For more, cyclictest takes so many.
    let rows = asked.map(|rows| rows.min(MOST_ROWS));
    let most_cycles = file.thread.0.iter().map(|(_, thread)| thread.cycles).max();
    lasted_for_cycles(&mut draft, most_cycles.unwrap_or(0), longest_ns)?;
    for (i, (key, thread)) in file.thread.0.into_iter().enumerate() {
        if number(&key) != Some(i as u64) {
            return Err(ImportError::new(format!("thread {i} is missing or out of order")));
        }
        let cpu = thread.cpu.and_then(|cpu| u32::try_from(cpu).ok());
        let d = thread.distribution(&mut draft, i, rows, unit_ns).map_err(|e| of_thread(i, e))?;
        let over = thread.overflow(rows, unit_ns).map_err(|e| of_thread(i, e))?;
        draft.thread(cpu, d);
        draft.extremes = extremes(thread.min);
        match thread.avg.filter(|_| thread.cycles > 0) {
            Some(mean) if rounded => states_mean_of_rounded(&mut draft, mean, unit_ns),
            Some(mean) => states_mean(&mut draft, mean, unit_ns, 0.006),
            None => {}
        }
        // What wakescope writes without a limit has all samples.
        if let Some(over) = over.filter(|_| own.is_none() || rows.is_some()) {
            draft.limit(over.from_ns, over.count);
        }
    }
    draft.finish()
}

/// Start and end are whole seconds, so that a run of 1.5 s can seem to be one of 1 s. It lasted for all
/// of its cycles at least; intervals of other threads than the first are longer, if anything.
fn lasted_for_cycles(
    draft: &mut Draft,
    cycles: u64,
    longest_ns: Option<u64>,
) -> Result<(), ImportError> {
    let Some(interval_ns) = draft.interval_ns else { return Ok(()) };
    let least_ns = cycles.saturating_mul(interval_ns);
    not_longer(least_ns, longest_ns, &format!("{cycles} cycles of {} take", SpanNs(interval_ns)))?;
    if draft.duration_ns.is_some_and(|stated_ns| least_ns > stated_ns) {
        draft.duration_ns = Some(least_ns);
        draft.approximate("duration_ns: at least that, by the number of cycles and the interval");
    }
    Ok(())
}

/// Refuses what `took` so long where start and end leave less time.
pub(in super::super) fn not_longer(
    ns: u64,
    longest_ns: Option<u64>,
    took: &str,
) -> Result<(), ImportError> {
    match longest_ns.filter(|&longest_ns| ns > longest_ns) {
        None => Ok(()),
        Some(longest_ns) => Err(ImportError::new(format!(
            "it contradicts itself: {took} {}, but its start and end are at most {} apart",
            SpanNs(ns),
            SpanNs(longest_ns)
        ))),
    }
}

/// Of a thread without a cycle the mean is written as a number that JSON does not have.
fn name_missing_means(bytes: &mut [u8]) {
    for (found, instead) in [(b": -nan", b": null"), (b":  nan", b": null")] {
        replace(bytes, found, instead);
    }
    replace(bytes, b": nan", b":null");
}

fn replace<const N: usize>(bytes: &mut [u8], found: &[u8; N], instead: &[u8; N]) {
    let mut at = 0;
    while at + N <= bytes.len() {
        if &bytes[at..at + N] == found {
            bytes[at..at + N].copy_from_slice(instead);
            at += N;
        } else {
            at += 1;
        }
    }
}

/// What wakescope writes as a command line. What is not on it was not known.
fn own_plan(command: &Command<'_>, draft: &mut Draft) {
    let interval_us = command.number('i', "interval");
    draft.interval_ns = interval_us.and_then(|us| us.checked_mul(1_000));
    draft.policy = command.option('y', "policy").flatten().and_then(policy);
    draft.priority = command.number('p', "priority").and_then(priority);
}

/// What the command line tells. What is not on it is the program's default.
fn plan(command: &Command<'_>, threads: u64, draft: &mut Draft) {
    let interval_us = command.number('i', "interval").unwrap_or(1_000);
    draft.interval_ns = interval_us.checked_mul(1_000);
    let histogram = command.has('h', "histogram") || command.has('H', "histofall");
    let distance = if histogram { 0 } else { command.number('d', "distance").unwrap_or(500) };
    if distance > 0 && threads > 1 {
        draft.approximate("plan.interval_ns: of the first thread; the others have longer ones");
    }
    let named = command.option('y', "policy").flatten().and_then(policy);
    let of = command.number('p', "priority");
    draft.priority = of.and_then(priority);
    draft.policy = match (named, draft.priority) {
        (Some(policy), _) => Some(policy),
        (None, Some(_)) => Some(ProbePolicy::Fifo),
        (None, None) => Some(ProbePolicy::Other),
    };
    if !draft.policy.is_some_and(ProbePolicy::has_priority) {
        draft.priority = None;
    }
}

impl Thread {
    /// Where the histogram ended, and how many samples lie beyond; `None` where that is not known.
    fn overflow(&self, rows: Option<u64>, unit_ns: u64) -> Result<Option<Overflow>, String> {
        let histogram = match &self.histogram {
            Some(histogram) => histogram.rows().map_err(|e| e.why)?,
            None => Vec::new(),
        };
        if histogram.is_empty() && rows.is_none() {
            return Ok(Some(Overflow { from_ns: 0, count: self.cycles }));
        }
        let held = histogram.iter().fold(0_u64, |sum, &(_, count)| sum.saturating_add(count));
        let count = self.cycles.saturating_sub(held);
        let seen = histogram.last().filter(|_| count > 0).map(|&(row, _)| row + 1);
        let from_ns = rows.or(seen).map(|end| in_ns(end, unit_ns)).transpose()?;
        Ok(from_ns.map(|from_ns| Overflow { from_ns, count }))
    }

    fn distribution(
        &self,
        draft: &mut Draft,
        thread: usize,
        rows: Option<u64>,
        unit_ns: u64,
    ) -> Result<Distribution, String> {
        if self.cycles == 0 {
            return match &self.histogram {
                Some(histogram) if !histogram.0.is_empty() => {
                    Err("it has no cycles, but a histogram".into())
                }
                _ => Ok(Distribution::default()),
            };
        }
        let (min_ns, max_ns) = (in_ns(self.min, unit_ns)?, in_ns(self.max, unit_ns)?);
        let mean = self.avg.ok_or("it has no mean")?;
        let sum_ns = sum_of(self.cycles, mean, unit_ns)?;
        draft.approximate("sum_ns: the mean is given with two decimals");
        let histogram = match &self.histogram {
            Some(histogram) => histogram.rows().map_err(|e| e.why)?,
            None => Vec::new(),
        };
        if histogram.is_empty() && rows.is_none() {
            if thread == 0 {
                draft.summary_only("run cyclictest with a histogram: -h 1000");
            }
            return wide(self.cycles, min_ns, max_ns, unit_ns, sum_ns);
        }
        let mut counts = Counts::default();
        for &(row, count) in &histogram {
            if row >= MOST_ROWS || rows.is_some_and(|rows| row >= rows) {
                return Err(format!("its histogram has a row {row}, beyond its end"));
            }
            counts.push(in_ns(row, unit_ns)?, in_ns(row + 1, unit_ns)?, count)?;
        }
        let held = counts.count();
        let overflow = self.cycles.checked_sub(held).ok_or_else(|| {
            format!("its histogram holds {held} samples, of {} cycles", self.cycles)
        })?;
        let ends = [histogram.first(), histogram.last()].map(|row| row.map(|&(row, _)| row));
        if held > 0 && ends[0] != Some(self.min) {
            return Err(format!("its minimum {} is not its lowest row", self.min));
        }
        if overflow > 0 {
            let end = rows.unwrap_or_else(|| ends[1].map_or(self.min, |row| row + 1));
            if self.max < end {
                return Err(format!(
                    "its histogram lacks {overflow} of {} samples, but none is beyond its end {end}",
                    self.cycles
                ));
            }
            let lower = if held == 0 { min_ns } else { in_ns(end, unit_ns)? };
            counts.push(lower, max_ns + unit_ns, overflow)?;
            draft.overflow(&format!("thread {thread}"), overflow, in_ns(end, unit_ns)?, true);
        } else if ends[1] != Some(self.max) {
            return Err(format!("its maximum {} is not its highest row", self.max));
        }
        counts.finish(min_ns, max_ns, sum_ns)
    }
}

/// Notes a mean that is exact to so many units: to 0.006 where it has two decimals.
pub(in super::super) fn states_mean(draft: &mut Draft, mean: f64, unit_ns: u64, to: f64) {
    #[allow(clippy::cast_precision_loss)] // 1 or 1,000.
    let unit = unit_ns as f64;
    draft.states(Figure::Mean, (mean - to) * unit, (mean + to) * unit);
}

/// Notes the mean of what was before its buckets were rounded up, each by a unit and by its own width
/// at most.
fn states_mean_of_rounded(draft: &mut Draft, mean: f64, unit_ns: u64) {
    #[allow(clippy::cast_precision_loss)] // 1 or 1,000.
    let unit = unit_ns as f64;
    let widest = mean / 512.0;
    draft.states(Figure::Mean, (mean - 1.006) * unit, (mean + widest + 1.006) * unit);
}

/// The sum of `count` samples whose mean is given with few decimals.
pub(in super::super) fn sum_of(count: u64, mean: f64, unit_ns: u64) -> Result<u64, String> {
    // A mean of a hundredth of a unit and more than 2^53 samples are both rounded anyway.
    #[allow(clippy::cast_precision_loss)]
    let sum = mean * count as f64 * unit_ns as f64;
    if !(0.0..1.8e19).contains(&sum) {
        return Err(format!("{mean} is not a mean"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(sum.round() as u64)
}
