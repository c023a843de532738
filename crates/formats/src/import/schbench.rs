//! schbench: its text has the number of samples up to each percentile; its JSON has no counts.
//!
//! Each row counts the samples above the row before it. Versions from 2023 on compute a row for the
//! 20th percentile and, but for pipe mode, do not print it: the first row then counts only what is
//! above that. How many samples the row would hold follows from the percentiles, to the share of
//! samples beyond the last row.
//!
//! Values are the middles of buckets, of 1 µs up to 512 µs and at most 0.4 % above, so a percentile may
//! be above the maximum.

use std::io::BufRead;

use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;
use wakescope_core::plan::Target;
use wakescope_core::source::{Omission, Quantity};

use super::counts::{Counts, in_ns};
use super::draft::Draft;
use super::lines::{Line, Lines, Word, number};
use super::{About, ImportError, Imported, Unit, unit};

pub(super) fn refuse_json() -> ImportError {
    ImportError::new(
        "schbench's JSON has percentiles but no number of samples: it is not a distribution",
    )
    .try_this("import what schbench prints on standard error: schbench … 2> FILE")
}

/// What it prints once, behind its last table.
const ENDS: [&str; 2] = ["average rps:", "avg worker transfer:"];

/// The percentile that a version may compute and not print.
const HIDDEN: Percentile = Percentile::whole(20);

/// A row of a table.
#[derive(Clone, Copy, Debug)]
struct Row {
    percentile: Percentile,
    /// The middle of its bucket, in µs.
    value: u64,
    /// Samples above the last row's bucket and up to this one.
    count: u64,
}

/// A table of percentiles.
#[derive(Clone, Debug)]
struct Table {
    what: String,
    seconds: u64,
    total: u64,
    rows: Vec<Row>,
    extremes: Option<(u64, u64)>,
}

/// The results of one run of schbench, as far as they are read.
#[derive(Default)]
struct Seen {
    /// The last table of each kind of values, but for requests per second, which are no times.
    tables: Vec<Table>,
    /// The least runtime of the next table.
    seconds: u64,
    /// Whether a warm-up has ended.
    has_warmed_up: bool,
    /// Whether what schbench prints behind its last table was there.
    has_ended: bool,
}

pub(super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Vec<Imported>, ImportError> {
    let mut seen = Seen::default();
    let mut current: Option<Table> = None;
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        if let Some(table) = head(line)? {
            seen.goes_on(&table, line)?;
            current = Some(table);
        } else if let Some(mut table) = current.take() {
            table.take(line)?;
            match table.extremes {
                None => current = Some(table),
                Some(_) => seen.keep(table, line)?,
            }
        } else {
            seen.other(line)?;
        }
    }
    if current.is_some() {
        return Err(ImportError {
            line: Some(lines.count()),
            ..ImportError::new("the file ends before `min=`: it is truncated")
        });
    }
    let runs = seen.tables.iter().map(|t| t.run(about)).collect::<Result<Vec<_>, _>>()?;
    match runs.is_empty() {
        true => Err(ImportError::new("there is no table of percentiles in it")),
        false => Ok(runs),
    }
}

impl Seen {
    /// Refuses a table of another run of schbench.
    fn goes_on(&mut self, table: &Table, line: Line<'_>) -> Result<(), ImportError> {
        if self.has_ended || table.seconds < self.seconds {
            return Err(second_result(line));
        }
        self.seconds = table.seconds;
        Ok(())
    }

    /// Keeps a table in place of the one before it, of which it must have all samples: schbench prints
    /// intermediate results, too.
    fn keep(&mut self, table: Table, line: Line<'_>) -> Result<(), ImportError> {
        let before = self.tables.iter().find(|before| before.what == table.what);
        if let Some(lost) = before.and_then(|before| table.lost_of(before)) {
            let why = format!("samples of the table before this one are not in it: {lost}");
            let remedy = "run schbench without -z; give each result a file of its own";
            return Err(line.fault(&why).try_this(remedy));
        }
        if !table.what.starts_with("RPS") {
            self.tables.retain(|before| before.what != table.what);
            self.tables.push(table);
        }
        Ok(())
    }

    /// A line between two tables.
    fn other(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        if line.text.starts_with("warmup done") {
            // It prints this once, and looks no sooner than a second after its last table.
            if self.has_warmed_up {
                return Err(second_result(line));
            }
            self.has_warmed_up = true;
            self.seconds = self.seconds.saturating_add(1);
            // Samples before that are no part of the result (`-w`).
            self.tables.clear();
        }
        self.has_ended |= ENDS.iter().any(|end| line.text.starts_with(end));
        Ok(())
    }
}

fn second_result(line: Line<'_>) -> ImportError {
    line.fault("a second result begins; give each a file of its own")
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
    /// A line below its head.
    fn take(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let words: Vec<Word<'_>> = line.words().collect();
        let texts: Vec<&str> = words.iter().map(|w| w.text).collect();
        match texts.as_slice() {
            [extremes] | [extremes, _] if extremes.starts_with("min=") => {
                self.extremes = Some(extremes_of(line)?);
            }
            [.., percentile, value, count, samples]
                if percentile.ends_with("th:") && *samples == "samples)" =>
            {
                let at = words.len() - 4;
                let count = Word { text: count.trim_start_matches('('), ..words[at + 2] };
                let value = number(value).ok_or_else(|| words[at + 1].fault("no value"))?;
                let name = percentile.trim_start_matches('*').trim_end_matches("th:");
                let percentile = format!("p{name}").parse().ok();
                let percentile = percentile.ok_or_else(|| words[at].fault("no percentile"))?;
                let row = Row { percentile, value, count: count.number()? };
                let rises =
                    |last: &Row| last.percentile < row.percentile && last.value <= row.value;
                if self.rows.len() >= 64 || !self.rows.last().is_none_or(rises) {
                    return Err(line.fault("a percentile below the one before it"));
                }
                self.rows.push(row);
            }
            _ => return Err(line.fault("this is not a line of a table of percentiles")),
        }
        Ok(())
    }

    /// What shows that samples of a table before it are not in this one.
    fn lost_of(&self, before: &Self) -> Option<String> {
        let ((min, max), (min_before, max_before)) = self.extremes.zip(before.extremes)?;
        let lost =
            |what: &str, now: u64, then: u64| Some(format!("{what} was {then}, and is {now}"));
        if self.total < before.total {
            return lost("the number of samples", self.total, before.total);
        }
        // Without a sample, there are no extremes.
        if before.total > 0 && max < max_before {
            return lost("the maximum", max, max_before);
        }
        // A minimum of 0 is none yet: it is that of samples above 0.
        if min_before > 0 && min > min_before {
            return lost("the minimum", min, min_before);
        }
        None
    }

    fn run(&self, about: &About) -> Result<Imported, ImportError> {
        let (name, quantity) = match self.what.as_str() {
            "Wakeup Latencies" | "Latency" => ("wakeup", Quantity::WakeupLatency),
            "Request Latencies" => ("request", Quantity::RequestLatency),
            other => {
                return Err(ImportError::new(format!(
                    "unknown kind of values: `{}`",
                    wakescope_core::harmless::clean(other, 40)
                )));
            }
        };
        let of_table = |why| ImportError::new(format!("{}: {why}", self.what));
        let unit_ns = unit::stated(about, Unit::Us, "schbench writes `(usec)`")?;
        let mut draft = Draft::new("schbench", "percentiles", about, quantity, Omission::None);
        draft.duration_ns = self.seconds.checked_mul(1_000_000_000).filter(|&ns| ns > 0);
        draft.coarse(unit_ns);
        draft
            .approximate("histogram: between two percentiles, only the number of samples is known");
        draft.approximate("sum_ns: each sample counts as the lower edge of its bucket");
        draft.target = Target::Program { name: "schbench".into() };
        let (least, most) = self.hidden().map_err(of_table)?;
        if most > 0 {
            draft.approximate(format!(
                "histogram: a row that schbench does not print holds {least} to {most} samples; {least} is assumed"
            ));
        }
        let d = self.distribution(least).map_err(of_table)?;
        let max_ns = d.max_ns.unwrap_or(0);
        draft.thread(None, d);
        for row in &self.rows {
            let value_ns = in_ns(row.value, unit_ns).map_err(of_table)?;
            // The middle of the last bucket may be above the maximum.
            draft.states_percentile(row.percentile, value_ns.min(max_ns));
        }
        Ok(Imported { name: name.into(), run: draft.finish()? })
    }

    /// The least and the most samples that a row can hold that is not printed; both 0 if all are.
    ///
    /// Up to a row there must be at least its share of all samples, and up to the row before it there
    /// were less, unless both end in the same bucket.
    fn hidden(&self) -> Result<(u64, u64), String> {
        let (mut least, mut held, mut last) = (0_u64, 0_u64, None);
        let mut most = u64::MAX;
        for row in &self.rows {
            let needed = row.percentile.rank(self.total);
            if let Some(value) = last {
                if (row.value == value) != (row.count == 0) {
                    return Err(format!(
                        "{} and the row before it are both {value} µs, but it counts {} samples",
                        row.percentile, row.count
                    ));
                }
                if row.value > value {
                    most = most.min(needed.saturating_sub(held));
                }
            }
            held = held.checked_add(row.count).ok_or("the counts add up to more than 2^64")?;
            least = least.max(needed.saturating_sub(held));
            if last.is_none() && row.count > 0 {
                // The row before it, if there is one, ends in a bucket of its own.
                most = most.min(needed);
            }
            last = Some(row.value);
        }
        most = most.min(
            self.total
                .checked_sub(held)
                .ok_or_else(|| format!("its rows hold {held} samples, of {}", self.total))?,
        );
        if least == 0 {
            return Ok((0, 0));
        }
        let first = self.rows.first().map(|row| row.percentile);
        least = least.max(HIDDEN.rank(self.total));
        if first.is_none_or(|first| first <= HIDDEN) || least > most {
            return Err(format!(
                "its rows hold {held} samples, of {}: less than its percentiles say, and no omitted row makes up for it",
                self.total
            ));
        }
        Ok((least, most))
    }

    /// The samples, with so many in the row that is not printed.
    fn distribution(&self, hidden: u64) -> Result<Distribution, String> {
        let (min, max) = self.extremes.ok_or("it has no extremes")?;
        let row = self.rows.first().map_or((min, max), |row| edges(row.value));
        // It takes a minimum of 0 for none, so samples of the first row may be below it if that ends at 0.
        let highest = if row.0 > 0 { max.min(row.1 - 1) } else { max };
        if self.total > 0 && min > highest {
            return Err(format!("its minimum is {min} µs, but samples are at most {highest} µs"));
        }
        let first = row.0;
        let (min_ns, max_ns) = (in_ns(min.min(first), 1_000)?, in_ns(max, 1_000)?);
        let end_ns = max_ns + 1_000;
        let mut counts = Counts::default();
        let (mut lower, mut held) = (min_ns, hidden);
        for row in &self.rows {
            held = held.checked_add(row.count).ok_or("the counts add up to more than 2^64")?;
            let upper = in_ns(edges(row.value).1, 1_000)?.min(end_ns);
            if held > 0 && upper > lower {
                counts.push(lower, upper, held)?;
                (lower, held) = (upper, 0);
            }
        }
        let beyond = self.total.checked_sub(counts.count());
        let beyond = beyond.ok_or_else(|| {
            format!("its rows hold {} samples, of {}", counts.count(), self.total)
        })?;
        match (beyond, lower < end_ns) {
            (0, _) => {}
            (_, true) => counts.push(lower, end_ns, beyond)?,
            (_, false) => {
                // All up to the maximum are in one bucket already.
                let last = counts.pop().ok_or("it has no row")?;
                counts.push(last.lower, last.upper, last.count + beyond)?;
            }
        }
        let sum_ns = counts.least_sum();
        counts.finish(min_ns, max_ns, sum_ns)
    }
}

/// The edges in µs of the bucket with this middle: 256 buckets to each doubling from 512 on.
fn edges(middle: u64) -> (u64, u64) {
    let width = 1_u64 << middle.max(256).ilog2().saturating_sub(8).min(32);
    let lower = middle - middle % width;
    (lower, lower.saturating_add(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_program() {
        for (middle, want) in [
            (0, (0, 1)),
            (511, (511, 512)),
            (513, (512, 514)),
            (909, (908, 910)),
            (1_266, (1_264, 1_268)),
            (16_864, (16_832, 16_896)),
        ] {
            assert_eq!(edges(middle), want, "{middle}");
        }
    }
}
