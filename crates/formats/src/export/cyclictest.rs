//! The histogram as cyclictest prints it, for the scripts that read that.

use std::collections::BTreeSet;
use std::io::{self, Write};

use wakescope_core::budget::{Budget, Exceeded};
use wakescope_core::distribution::Distribution;
use wakescope_core::run::Run;

use super::{Values, head, latest_of_all, least, values_of};
use wakescope_core::harmless::clean;

/// The most rows; cyclictest's own limit.
pub const MOST_ROWS: u64 = 1_000_000;

/// What cyclictest prints as the minimum of a thread without samples.
pub(super) const NO_MINIMUM: u64 = 1_000_000;

/// Which of cyclictest's two layouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A row for each µs, and the line `# Total`: rt-tests up to 2.6.
    #[default]
    Full,
    /// No rows without samples, and no such line: rt-tests from 2.7 on.
    Sparse,
}

/// Writes the histogram with one column per thread. Row k holds wakeups late by k µs and less than
/// k + 1; `rows` or more µs are an overflow. By default there are as many rows as it takes for
/// there to be none, but a million at most.
pub fn write(
    run: &Run,
    values: Values,
    layout: Layout,
    rows: Option<u64>,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = Column::all(run, values);
    let Rows { count: rows, is_limit } = Rows::of(run, &all, rows);
    let limit = if is_limit { format!(", rows {rows}") } else { String::new() };
    let release = clean(&run.host.release, 80);
    writeln!(out, "# {}{limit}, kernel {release}", head(run, values, "us"))?;
    writeln!(out, "# Histogram")?;
    write_rows(&all, layout, rows, out)?;
    if layout == Layout::Full {
        numbers("Total", 9, all.iter().map(|c| c.within(rows)), out)?;
    }
    numbers("Min Latencies", 5, all.iter().map(Column::min_us), out)?;
    // As cyclictest, which cuts the mean off.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A mean of 64 bits.
    let means = all.iter().map(|c| c.mean_us(rows) as u64);
    numbers("Avg Latencies", 5, means, out)?;
    numbers("Max Latencies", 5, all.iter().map(Column::max_us), out)?;
    numbers("Histogram Overflows", 5, all.iter().map(|c| c.count - c.within(rows)), out)?;
    writeln!(out, "# Histogram Overflow at cycle number:")?;
    for (i, column) in all.iter().enumerate() {
        match column.count - column.within(rows) {
            0 => writeln!(out, "# Thread {i}:")?,
            over => writeln!(out, "# Thread {i}: # {over:05} others")?,
        }
    }
    writeln!(out)
}

/// Whether the histogram has more fields than a budget allows: a row for each µs and a column for each
/// thread make a short record into gigabytes of text.
///
/// # Errors
/// If it has.
pub fn check(run: &Run, values: Values, layout: Layout, rows: Option<u64>) -> Result<(), Exceeded> {
    let all = Column::all(run, values);
    let end = Rows::of(run, &all, rows).count;
    let rows = match layout {
        Layout::Full => end,
        Layout::Sparse => {
            let used = all.iter().flat_map(|c| &c.rows).map(|row| row.0).filter(|&row| row < end);
            used.collect::<BTreeSet<u64>>().len() as u64
        }
    };
    let held: usize = values.of_threads(run).map(|d| d.histogram.buckets().len()).sum();
    // A bucket takes so many bytes of a record at least, in both distributions.
    let budget = Budget::of(held as u64 * 16);
    budget.take(rows.saturating_mul(all.len() as u64), "fields in cyclictest's histogram")
}

/// Where the rows of a run's histogram end, ns: how much later a sample is that lies beyond, the file
/// does not state. `rows` as in [`write()`].
pub fn end_ns(run: &Run, values: Values, rows: Option<u64>) -> u64 {
    let all = Column::all(run, values);
    Rows::of(run, &all, rows).count.saturating_mul(1_000)
}

fn write_rows(all: &[Column], layout: Layout, rows: u64, out: &mut impl Write) -> io::Result<()> {
    let mut next = vec![0; all.len()];
    let mut row = 0;
    while row < rows {
        if layout == Layout::Sparse {
            // To the next row that any thread has samples in.
            let ahead = all.iter().zip(&next).filter_map(|(c, &at)| Some(c.rows.get(at)?.0));
            match ahead.min() {
                Some(used) if used < rows => row = used,
                _ => break,
            }
        }
        write!(out, "{row:06}")?;
        for (i, (column, at)) in all.iter().zip(&mut next).enumerate() {
            let count = match column.rows.get(*at) {
                Some(&(us, count)) if us == row => {
                    *at += 1;
                    count
                }
                _ => 0,
            };
            write!(out, "{}{count:06}", if i == 0 { ' ' } else { '\t' })?;
        }
        writeln!(out)?;
        row += 1;
    }
    Ok(())
}

fn numbers(
    name: &str,
    width: usize,
    of: impl Iterator<Item = u64>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "# {name}:")?;
    for number in of {
        write!(out, " {number:0width$}")?;
    }
    writeln!(out)
}

/// How many rows a histogram gets, and whether it ends there although samples may be later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) count: u64,
    /// Whether somebody set the end: who asked, or the program that the run was read from.
    pub(super) is_limit: bool,
}

impl Rows {
    /// As many as asked for, or as the histogram had that the run was read from, or as it takes.
    /// Never more than that histogram had if samples lie beyond it, of which no row is known.
    pub(super) fn of(run: &Run, all: &[Column], asked: Option<u64>) -> Self {
        let needed = all.iter().map(|c| c.max_us() + 1).max().unwrap_or(0);
        let overflows = || run.threads.iter().filter_map(|t| t.overflow);
        let in_us = |ns: u64| (ns % 1_000 == 0).then_some(ns / 1_000);
        let had = overflows().filter_map(|over| in_us(over.from_ns)).max();
        let over = overflows().any(|over| over.count > 0);
        let limit = match (asked, had) {
            (Some(asked), Some(had)) if over => Some(asked.min(had)),
            (asked, had) => asked.or(had),
        };
        let is_limit = limit.is_some() || needed > MOST_ROWS;
        Self { count: limit.unwrap_or(needed).min(MOST_ROWS), is_limit }
    }
}

/// One thread in whole µs.
pub(super) struct Column {
    pub(super) count: u64,
    /// Samples per µs, ascending, none empty.
    pub(super) rows: Vec<(u64, u64)>,
    max_ns: u64,
    sum_ns: u64,
    /// Whether of some samples only bounds are known, so that rows have them as late as they can have been.
    has_bounds: bool,
}

impl Column {
    /// One for each thread.
    pub(super) fn all(run: &Run, values: Values) -> Vec<Self> {
        values.of_threads(run).map(|d| Self::of(d, least(run, d))).collect()
    }

    fn of(d: &Distribution, least: Option<u64>) -> Self {
        let mut rows: Vec<(u64, u64)> = Vec::new();
        for (value, count) in values_of(d, least) {
            let us = value / 1_000;
            match rows.last_mut() {
                Some(last) if last.0 == us => last.1 += count,
                _ => rows.push((us, count)),
            }
        }
        let has_bounds = d.only_bounded().next().is_some();
        Self { count: d.count, rows, max_ns: latest_of_all(d), sum_ns: d.sum_ns, has_bounds }
    }

    /// Samples in the first `rows` rows.
    pub(super) fn within(&self, rows: u64) -> u64 {
        self.rows.iter().take_while(|row| row.0 < rows).map(|row| row.1).sum()
    }

    pub(super) fn min_us(&self) -> u64 {
        self.rows.first().map_or(NO_MINIMUM, |&(us, _)| us)
    }

    pub(super) fn max_us(&self) -> u64 {
        self.max_ns / 1_000
    }

    /// The mean in µs: exact, but not below that of what the file has, which are so many rows and the
    /// samples beyond them.
    pub(super) fn mean_us(&self, rows: u64) -> f64 {
        let exact = self.sum_ns as f64 / 1e3;
        let sum = if self.has_bounds { exact.max(self.least_sum_us(rows)) } else { exact };
        sum / self.count.max(1) as f64
    }

    /// The sum if each sample is at the lower end of its row, all beyond the rows where these end, and the
    /// latest where it is.
    fn least_sum_us(&self, rows: u64) -> f64 {
        let lowest = self.rows.iter().map(|&(us, count)| us.min(rows) as f64 * count as f64);
        lowest.sum::<f64>() + self.max_us().saturating_sub(rows) as f64
    }
}
