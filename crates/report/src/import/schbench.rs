//! schbench: its text has the number of samples up to each percentile; its JSON has no counts.
//!
//! Values are the ends of buckets, at most 0.4 % wide, and rounded so that a percentile may be above
//! the maximum.

use std::io::BufRead;

use wakescope_core::source::{Omission, Quantity};

use super::counts::{Counts, in_ns};
use super::draft::Draft;
use super::lines::{Line, Lines, Word, number};
use super::{About, ImportError, Imported};

pub(super) fn refuse_json() -> ImportError {
    ImportError::new(
        "schbench's JSON has percentiles but not how many samples there were: it is no distribution",
    )
    .try_this("import what schbench prints on standard error: schbench … 2> FILE")
}

/// A table of percentiles.
#[derive(Clone, Debug)]
struct Table {
    what: String,
    seconds: u64,
    total: u64,
    /// Values and how many samples are above the last and up to that.
    rows: Vec<(u64, u64)>,
    extremes: Option<(u64, u64)>,
}

pub(super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Vec<Imported>, ImportError> {
    // It prints intermediate results too; the last of each counts.
    let mut tables: Vec<Table> = Vec::new();
    let mut current: Option<Table> = None;
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        if let Some(table) = head(line)? {
            current = Some(table);
            continue;
        }
        let Some(table) = &mut current else { continue };
        let words: Vec<Word<'_>> = line.words().collect();
        let texts: Vec<&str> = words.iter().map(|w| w.text).collect();
        match texts.as_slice() {
            [extremes] | [extremes, _] if extremes.starts_with("min=") => {
                table.extremes = Some(extremes_of(line)?);
                if let Some(table) = current.take() {
                    tables.retain(|t| t.what != table.what);
                    tables.push(table);
                }
            }
            [.., percentile, value, count, samples]
                if percentile.ends_with("th:") && *samples == "samples)" =>
            {
                let at = words.len() - 4;
                let count = Word { text: count.trim_start_matches('('), ..words[at + 2] };
                let value = number(value).ok_or_else(|| words[at + 1].fault("no value"))?;
                if table.rows.len() >= 64
                    || table.rows.last().is_some_and(|&(last, _)| value < last)
                {
                    return Err(line.fault("a percentile below the one before it"));
                }
                table.rows.push((value, count.number()?));
            }
            _ => return Err(line.fault("this is no line of a table of percentiles")),
        }
    }
    if current.is_some() {
        return Err(ImportError {
            line: Some(lines.count()),
            ..ImportError::new("the file ends before `min=`: it was cut")
        });
    }
    // Requests per second are no times.
    let times = tables.into_iter().filter(|t| !t.what.starts_with("RPS"));
    let runs = times.map(|t| t.run(about)).collect::<Result<Vec<_>, _>>()?;
    match runs.is_empty() {
        true => Err(ImportError::new("there is no table of percentiles in it")),
        false => Ok(runs),
    }
}

/// `Wakeup Latencies percentiles (usec) runtime 10 (s) (12345 total samples)`
fn head(line: Line<'_>) -> Result<Option<Table>, ImportError> {
    let Some((what, rest)) = line.text.split_once(" percentiles (") else { return Ok(None) };
    let fault = || line.fault("not the head of a table of percentiles");
    let (unit, rest) = rest.split_once(") runtime ").ok_or_else(fault)?;
    let what = what.trim();
    if unit != "usec" && !what.starts_with("RPS") {
        return Err(line.fault("not in µs"));
    }
    let (seconds, rest) = rest.split_once(" (s) (").ok_or_else(fault)?;
    let total = rest.split_once(" total samples").map(|(total, _)| total).ok_or_else(fault)?;
    Ok(Some(Table {
        what: what.into(),
        seconds: number(seconds.trim()).ok_or_else(fault)?,
        total: number(total.trim()).ok_or_else(fault)?,
        rows: Vec::new(),
        extremes: None,
    }))
}

/// `min=1, max=73330`
fn extremes_of(line: Line<'_>) -> Result<(u64, u64), ImportError> {
    let fault = || line.fault("no minimum and maximum");
    let (min, max) = line.text.trim().split_once(',').ok_or_else(fault)?;
    let value = |text: &str, key: &str| text.trim().strip_prefix(key).and_then(number);
    value(min, "min=").zip(value(max, "max=")).ok_or_else(fault)
}

impl Table {
    fn run(&self, about: &About) -> Result<Imported, ImportError> {
        let (name, quantity) = match self.what.as_str() {
            "Wakeup Latencies" | "Latency" => ("wakeup", Quantity::WakeupLatency),
            "Request Latencies" => ("request", Quantity::RequestLatency),
            other => {
                return Err(ImportError::new(format!(
                    "what `{}` are is not known",
                    crate::style::clean(other, 40)
                )));
            }
        };
        let mut draft = Draft::new("schbench", "percentiles", about, quantity, Omission::None);
        draft.duration_ns = self.seconds.checked_mul(1_000_000_000).filter(|&ns| ns > 0);
        draft.coarse(1_000);
        draft.approximate(
            "histogram: between two percentiles, only how many samples there are is known",
        );
        draft.approximate("sum_ns: each sample is taken for the lower edge of its bucket");
        draft.target = Some("schbench's workers".into());
        let d = self.distribution();
        draft.thread(None, d.map_err(|why| ImportError::new(format!("{}: {why}", self.what)))?);
        Ok(Imported { name: name.into(), run: draft.finish()? })
    }

    fn distribution(&self) -> Result<wakescope_core::distribution::Distribution, String> {
        let (min, max) = self.extremes.ok_or("it has no extremes")?;
        let (min_ns, max_ns) = (in_ns(min, 1_000)?, in_ns(max, 1_000)?);
        let end_ns = max_ns + 1_000;
        let mut counts = Counts::default();
        let mut lower = min_ns;
        // Rows of the same value are one bucket.
        let mut held = 0_u64;
        for &(value, count) in &self.rows {
            held = held.checked_add(count).ok_or("the counts add up to more than 2^64")?;
            if held == 0 {
                continue;
            }
            let upper = in_ns(value, 1_000)?.saturating_add(1_000).min(end_ns);
            if upper > lower {
                counts.push(lower, upper, held)?;
                (lower, held) = (upper, 0);
            }
        }
        let rest = self.total.checked_sub(counts.count());
        let rest = rest.ok_or_else(|| {
            format!("its rows hold {} samples, of {}", counts.count(), self.total)
        })?;
        if rest > 0 {
            if lower >= end_ns {
                // All up to the maximum are in one bucket already.
                let last = counts.pop().ok_or("it has no row")?;
                counts.push(last.lower, last.upper, last.count + rest)?;
            } else {
                counts.push(lower, end_ns, rest)?;
            }
        }
        let sum_ns = counts.least_sum();
        counts.finish(min_ns, max_ns, sum_ns)
    }
}
