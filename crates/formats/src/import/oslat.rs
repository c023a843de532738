//! oslat of rt-tests: text and `--json`.
//!
//! A row is named by its upper edge. Up to version 2.4 the extremes are rounded up to that edge; in 2.5
//! and 2.6 all times are rounded up before they are counted; from 2.7 on they are cut off. So the
//! extremes are kept as the program states them, and where they are rounded up, a row holds what is
//! above its lower edge and up to its upper one. The last row holds all that is longer.

use std::io::BufRead;

use serde::Deserialize;
use wakescope_core::distribution::Distribution;
use wakescope_core::plan::ProbePolicy;
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::command::Command;
use super::counts::{Counts, common_divisor, in_ns, sum_of_mean};
use super::cyclictest::json::{Preamble, not_longer, sum_of};
use super::draft::Draft;
use super::json::{self, Entries};
use super::lines::{Line, Lines, Word, number, thousandths};
use super::statement::Figure;
use super::{About, ImportError, MOST_CPUS, Unit, unit};

/// The most rows: the program's own limit.
const MOST_ROWS: usize = 1_024;

fn draft(format: &str, about: &About) -> Result<Draft, ImportError> {
    unit::stated(about, Unit::Us, "oslat writes µs, if need be with decimals")?;
    let mut draft = Draft::new("oslat", format, about, Quantity::Gap, Omission::None);
    // Each reading of its clock is a sample, however soon after the one before it.
    draft.gap_from_ns = Some(0);
    Ok(draft)
}

/// How a version counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Up to 2.4: extremes are upper edges.
    Upper,
    /// 2.5 and 2.6: rounded up, then counted one row too high.
    RoundedUp,
    /// From 2.7 on.
    CutOff,
}

impl Way {
    /// By version; 2.1 and 2.10 are both written as 2.10, which the extremes tell apart.
    fn of(version: &str, lowest_is_minimum: bool) -> Option<Self> {
        let (major, minor) = version.split_once('.')?;
        let (major, minor) = (number(major)?, number(minor)?);
        // `%1.2f` of 2.4 is 2.40.
        match (major, minor) {
            (0 | 1, _) | (2, 0 | 20 | 30 | 40) => Some(Self::Upper),
            (2, 50 | 60) => Some(Self::RoundedUp),
            (2, 10) if lowest_is_minimum => Some(Self::Upper),
            (2.., _) => Some(Self::CutOff),
        }
    }
}

/// A CPU's rows, in thousandths of µs, which are ns.
struct Rows {
    cpu: u32,
    /// Upper edges as they are named, and counts, but for empty ones.
    rows: Vec<(u64, u64)>,
    min: u64,
    max: u64,
    sum_ns: u64,
}

/// What all rows have in common.
struct Scale {
    width: u64,
    /// The last row, where it is known.
    last: Option<u64>,
    version: String,
}

impl Scale {
    fn way(&self, rows: &Rows) -> Option<Way> {
        let lowest = rows.rows.first().map(|&(row, _)| row);
        Way::of(&self.version, lowest == Some(rows.min))
    }

    fn distribution(&self, draft: &mut Draft, rows: &Rows) -> Result<Distribution, String> {
        let way = self.way(rows);
        let way =
            way.ok_or("it does not state the version of oslat, which decides what a row means")?;
        let unit = if self.width % 1_000 == 0 { 1_000 } else { 1 };
        draft.extremes_are_edges |= way == Way::Upper && self.width > unit;
        // By how much the edges as named are above the real ones, and how far past these a row
        // begins: rounded up, 5 µs is what is above 4 and up to 5.
        let (shift, past) = match way {
            Way::Upper => (0, 1),
            Way::RoundedUp if unit > 1 => (unit, 1),
            Way::RoundedUp | Way::CutOff => (0, 0),
        };
        let real = |edge: u64, by: u64| edge.saturating_sub(by) + past;
        let (min, max) = (rows.min, rows.max);
        if past > 0 && min == 0 && !rows.rows.is_empty() {
            return Err("its minimum is 0, which a version that rounds up does not write".into());
        }
        let mut counts = Counts::default();
        for &(row, count) in &rows.rows {
            if row % self.width != 0 || row == 0 {
                return Err(format!(
                    "a row ends at {row} ns, which is not a multiple of the width"
                ));
            }
            let lower = real(row - self.width, shift);
            let mut upper = real(row, shift);
            if Some(row) == self.last {
                let held = upper;
                upper = upper.max(max + if past > 0 { past } else { unit });
                if upper > held {
                    draft.overflow(&format!("CPU {}", rows.cpu), count, lower, false);
                }
            }
            counts.push(lower, upper, count)?;
        }
        self.agrees(rows, counts.count())?;
        counts.finish(min, max, rows.sum_ns).map_err(|why| {
            format!("{why}; was a bias subtracted (-B)? Such rows cannot be read exactly")
        })
    }
}

impl Scale {
    /// Notes the mean, which takes each sample for the upper edge of its row.
    #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
    fn state_mean(&self, draft: &mut Draft, sum_ns: u64, count: u64) {
        if count > 0 {
            let mean = sum_ns as f64 / count as f64;
            draft.states(Figure::Mean, mean - self.width as f64 - 2.0, mean + 2.0);
        }
    }

    /// Where nothing is longer than the last row, the mean follows from the rows: if it is another,
    /// rows are missing.
    fn agrees(&self, rows: &Rows, count: u64) -> Result<(), String> {
        let beyond = self.last.is_none_or(|last| rows.max >= last);
        if beyond || count == 0 {
            return Ok(());
        }
        let sum = rows.rows.iter().map(|&(row, count)| u128::from(row) * u128::from(count));
        let sum: u128 = sum.fold(0, u128::saturating_add);
        let stated = u128::from(rows.sum_ns);
        // It is given to the ns.
        if sum.abs_diff(stated) > u128::from(count) {
            return Err(format!(
                "its rows have a mean of {} ns, but `Average:` is {} ns; rows are missing",
                sum / u128::from(count),
                stated / u128::from(count)
            ));
        }
        Ok(())
    }
}

/// What the text states.
#[derive(Default)]
struct Seen {
    version: Option<String>,
    cpus: Option<Vec<u32>>,
    /// Rows by upper edge in ns, and their counts.
    rows: Vec<(u64, Vec<u64>)>,
    /// The upper edges of those rows before which it says, by `...`, that empty ones are left out (`-z`).
    after_empty: Vec<u64>,
    /// Whether it says so of the row that comes next.
    empty_ones: bool,
    last: Option<u64>,
    min: Option<Vec<u64>>,
    mean: Option<Vec<u64>>,
    max: Option<Vec<u64>>,
    /// Maximum less minimum.
    range: Option<Vec<u64>>,
    duration: Option<Vec<u64>>,
}

pub(super) fn read_text(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut seen = Seen::default();
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        seen.take(line)?;
    }
    let end = lines.count();
    let cut = |what: &str| ImportError {
        line: Some(end),
        ..ImportError::new(format!("the file ends before `{what}`: it is truncated"))
    };
    let width = width(seen.rows.iter().map(|(row, _)| *row));
    seen.has_all_rows(width)?;
    let cpus = seen.cpus.ok_or_else(|| cut("Core:"))?;
    let last = seen.last.ok_or_else(|| cut("(including overflows)"))?;
    let min = seen.min.ok_or_else(|| cut("Minimum:"))?;
    let mean = seen.mean.ok_or_else(|| cut("Average:"))?;
    let max = seen.max.ok_or_else(|| cut("Maximum:"))?;
    let duration = seen.duration.ok_or_else(|| cut("Duration:"))?;
    let mut draft = draft("text", about)?;
    draft.source.version = seen.version.clone();
    draft.duration_ns = duration.iter().max().and_then(|ms| ms.checked_mul(1_000_000));
    let scale = Scale { width, last: Some(last), version: seen.version.unwrap_or_default() };
    draft.coarse(if width % 1_000 == 0 { 1_000 } else { 1 });
    draft.approximate("sum_ns: the mean counts each sample as the upper edge of its row");
    for (i, &cpu) in cpus.iter().enumerate() {
        let of_cpu = seen.rows.iter().map(|(row, counts)| (*row, counts[i]));
        let rows: Vec<(u64, u64)> = of_cpu.filter(|&(_, count)| count > 0).collect();
        let count = rows.iter().fold(0_u64, |sum, &(_, count)| sum.saturating_add(count));
        let sum_ns = sum_of_mean(count, mean[i], 1_000);
        let rows = Rows { cpu, rows, min: min[i], max: max[i], sum_ns };
        let d = scale.distribution(&mut draft, &rows);
        draft.thread(Some(cpu), d.map_err(|why| ImportError::new(format!("CPU {cpu}: {why}")))?);
        scale.state_mean(&mut draft, sum_ns, count);
        let range = seen.range.as_ref().map(|range| range[i]);
        if let Some(range) = range.filter(|&range| min[i].checked_add(range) != Some(max[i])) {
            return Err(ImportError::new(format!(
                "it contradicts itself: CPU {cpu}: `Max-Min:` is {} ns, but its extremes are {} ns and {} ns",
                range, max[i], min[i]
            )));
        }
    }
    draft.finish()
}

impl Seen {
    fn take(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let text = line.text.trim();
        if let Some(version) = text.strip_prefix("oslat V ") {
            self.version = Some(version.trim().chars().take(12).collect());
            return Ok(());
        }
        if text == "..." {
            self.empty_ones = true;
            return Ok(());
        }
        let Some((name, _)) = text.split_once(':') else { return Ok(()) };
        let name = name.trim_end();
        let at = line.text.find(':').unwrap_or(0);
        let words: Vec<Word<'_>> = line.words().filter(|w| w.column > at).collect();
        if name == "Core" {
            if self.cpus.is_some() {
                return Err(line.fault("a second result begins; give each a file of its own"));
            }
            let cpu = |w: &Word<'_>| match w.number()? {
                cpu if cpu < MOST_CPUS => Ok(u32::try_from(cpu).unwrap_or(0)),
                _ => Err(w.fault("no CPU")),
            };
            self.cpus = Some(words.iter().map(cpu).collect::<Result<_, _>>()?);
            return Ok(());
        }
        let Some(cpus) = self.cpus.as_ref().map(Vec::len) else { return Ok(()) };
        if let Some(row) = name.strip_suffix("(us)") {
            return self.row(line, row.trim(), &words, cpus);
        }
        let into = match name {
            "Minimum" => &mut self.min,
            "Average" => &mut self.mean,
            "Maximum" => &mut self.max,
            "Duration" => &mut self.duration,
            "Max-Min" => &mut self.range,
            _ => return Ok(()),
        };
        let ns = |word: &Word<'_>| in_ns(word.thousandths()?, 1).map_err(|why| word.fault(&why));
        let values = words.iter().take(cpus).map(ns).collect::<Result<Vec<_>, _>>()?;
        if values.len() != cpus || into.is_some() {
            return Err(line.fault(&format!("not one value for each of {cpus} CPUs")));
        }
        *into = Some(values);
        Ok(())
    }

    fn row(
        &mut self,
        line: Line<'_>,
        name: &str,
        words: &[Word<'_>],
        cpus: usize,
    ) -> Result<(), ImportError> {
        let row = thousandths(name).ok_or_else(|| line.fault("a row without a number"))?;
        let row = in_ns(row, 1).map_err(|why| line.fault(&why))?;
        if self.last.is_some() || self.rows.last().is_some_and(|&(last, _)| row <= last) {
            return Err(line.fault("this row is not above the one before it"));
        }
        if self.rows.len() >= MOST_ROWS {
            return Err(line.fault("more than 1,024 rows, which oslat never writes"));
        }
        let counts = words.iter().take(cpus).map(|w| w.number()).collect::<Result<Vec<_>, _>>()?;
        if counts.len() != cpus {
            return Err(line.fault(&format!("not one count for each of {cpus} CPUs")));
        }
        let rest: Vec<&str> = words[cpus..].iter().map(|w| w.text).collect();
        match rest.as_slice() {
            [] => {}
            ["(including", "overflows)"] => self.last = Some(row),
            _ => return Err(line.fault(&format!("more than one count for each of {cpus} CPUs"))),
        }
        if std::mem::take(&mut self.empty_ones) {
            self.after_empty.push(row);
        }
        self.rows.push((row, counts));
        Ok(())
    }

    /// Every row is there from the first on, or said to be empty.
    fn has_all_rows(&self, width: u64) -> Result<(), ImportError> {
        let mut before = 0;
        for &(row, _) in &self.rows {
            if row - before != width && !self.after_empty.contains(&row) {
                let bias = if before == 0 { "; or was a bias subtracted (-B)?" } else { "" };
                return Err(ImportError::new(format!(
                    "it has no row between {before} ns and the one that ends at {row} ns; rows are missing{bias}",
                ))
                .try_this("copy its whole output again, or measure without -B"));
            }
            before = row;
        }
        Ok(())
    }
}

/// The greatest width that rows ending there can have.
fn width(rows: impl Iterator<Item = u64>) -> u64 {
    rows.fold(0, common_divisor).max(1)
}

#[derive(Deserialize)]
struct File {
    num_threads: u64,
    thread: Entries<Thread>,
}

#[derive(Deserialize)]
struct Thread {
    cpu: u32,
    min: u64,
    avg: f64,
    max: u64,
    duration: f64,
    histogram: Entries<u64>,
}

pub(super) fn read_json(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let bytes = json::bytes(from)?;
    let (preamble, file): (Preamble, File) = (json::parse(&bytes)?, json::parse(&bytes)?);
    if file.num_threads != file.thread.0.len() as u64 || file.num_threads > MOST_CPUS {
        return Err(ImportError::new(format!(
            "it states {} threads and has {}",
            file.num_threads,
            file.thread.0.len()
        )));
    }
    let text = preamble.command.clone();
    let command = Command::new(&text, "bcCDfmTwW");
    if command.has('B', "bias") {
        return Err(ImportError::new(
            "a bias was subtracted (-B): which row a gap is in then depends on the version, and on rounding",
        )
        .try_this("measure without -B"));
    }
    let width = command.number('W', "bucket-width").unwrap_or(1_000);
    let rows = command.number('b', "bucket-size").unwrap_or(32);
    let last = width.checked_mul(rows).filter(|_| width > 0 && rows <= MOST_ROWS as u64);
    let last = last.ok_or_else(|| ImportError::new("its command line has no sensible -W or -b"))?;
    let mut draft = draft("JSON", about)?;
    let rtprio = command.number('f', "rtprio").and_then(|p| u8::try_from(p).ok());
    draft.policy = Some(if rtprio.is_some() { ProbePolicy::Fifo } else { ProbePolicy::Other });
    draft.priority = rtprio;
    let version = preamble.version.clone().unwrap_or_default();
    let longest_ns = preamble.longest_ns();
    preamble.tell(&mut draft);
    draft.source.approximate.retain(|a| !a.starts_with("duration_ns"));
    let longest = file.thread.0.iter().map(|(_, t)| t.duration).fold(0.0, f64::max);
    draft.duration_ns = sum_of(1, longest, 1_000_000_000).ok().filter(|&ns| ns > 0);
    not_longer(draft.duration_ns.unwrap_or(0), longest_ns, "a thread ran for")?;
    draft.coarse(if width % 1_000 == 0 { 1_000 } else { 1 });
    draft.approximate("sum_ns: the mean counts each sample as the upper edge of its row");
    let scale = Scale { width, last: Some(last), version };
    // Where rows are in fractions of µs, the extremes are in ns.
    let unit = if width % 1_000 == 0 { 1_000 } else { 1 };
    for (_, thread) in &file.thread.0 {
        let cpu = thread.cpu;
        let of_cpu = |why: String| ImportError::new(format!("CPU {cpu}: {why}"));
        let rows = thread.rows(unit).map_err(of_cpu)?;
        let d = scale.distribution(&mut draft, &rows).map_err(of_cpu)?;
        let count = d.count;
        draft.thread(Some(cpu), d);
        scale.state_mean(&mut draft, rows.sum_ns, count);
    }
    draft.finish()
}

impl Thread {
    fn rows(&self, unit: u64) -> Result<Rows, String> {
        let row = |(key, count): &(String, u64)| -> Result<(u64, u64), String> {
            let row = thousandths(key).ok_or("a row is not a number")?;
            Ok((in_ns(row, 1)?, *count))
        };
        let mut rows: Vec<(u64, u64)> =
            self.histogram.0.iter().map(row).collect::<Result<_, _>>()?;
        rows.sort_unstable();
        rows.retain(|&(_, count)| count > 0);
        let count = rows.iter().fold(0_u64, |sum, &(_, count)| sum.saturating_add(count));
        let (min, max) = (in_ns(self.min, unit)?, in_ns(self.max, unit)?);
        let sum_ns = if count == 0 { 0 } else { sum_of(count, self.avg, 1_000)? };
        Ok(Rows { cpu: self.cpu, rows, min, max, sum_ns })
    }
}
