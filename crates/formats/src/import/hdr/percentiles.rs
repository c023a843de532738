//! Percentile distributions (`.hgrm`): per line a value, and how many samples are not above it.

use std::io::BufRead;

use wakescope_core::budget::{Budget, Entry};
use wakescope_core::percentile::Percentile;
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::super::counts::Counts;
use super::super::detect::is_percentile_head;
use super::super::draft::Draft;
use super::super::lines::{Line, Lines, Word, number};
use super::super::statement::Figure;
use super::super::{About, ImportError};
use super::Declared;
use crate::parts::{self, Extremes};

/// The library takes the middle of a bucket for each of its samples; we know only its ends.
const EXTREMES: Extremes = Extremes::Middles;

#[derive(Default)]
struct Table {
    declared: Declared,
    head: bool,
    /// Of each row, the share of samples that are not above it, at least; and by how much that may
    /// have been rounded up.
    levels: Vec<(f64, f64)>,
    /// Values in steps of the last decimal, and samples up to each.
    rows: Vec<(u64, u64)>,
    /// How many decimals a value has.
    decimals: Option<usize>,
    mean: Option<String>,
    deviation: Option<String>,
    /// Percentiles that lines name, and their values in steps.
    percentiles: Vec<(Percentile, u64)>,
    max: Option<String>,
    total: Option<u64>,
    /// How many buckets the smallest octaves have together, where the file says.
    sub_buckets: Option<u64>,
}

pub(in super::super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut table = Table::default();
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        table.take(line, &about.budget)?;
    }
    let end = lines.count();
    let cut = || ImportError {
        line: Some(end),
        ..ImportError::new("the file ends before `#[Max`: it is truncated")
    };
    let (total, max) = table.total.zip(table.max.as_deref()).ok_or_else(cut)?;
    let decimals = table.decimals.unwrap_or(0);
    let unit_ns = table.declared.unit(about)?.ns();
    let max = steps(max, decimals).ok_or_else(|| ImportError::new("`#[Max` is not a number"))?;
    let held = table.rows.last().map_or(0, |&(_, count)| count);
    if held != total {
        return Err(ImportError::new(format!(
            "the last line counts {held} samples, but `Total count` is {total}"
        )));
    }
    table.check_max(max)?;
    let mut draft = table.draft(about, unit_ns, decimals).map_err(ImportError::new)?;
    if table.rows.last().is_some_and(|&(last, _)| last != max) {
        draft.approximate("max_ns: the end of its bucket; `#[Max` is the lower end");
    }
    table.check_levels(total)?;
    draft.finish()
}

impl Table {
    /// A line's count must reach its percentile.
    #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
    fn check_levels(&self, total: u64) -> Result<(), ImportError> {
        let mut rows = self.levels.iter().zip(&self.rows);
        let short = rows.find(|&(&(level, rounded), &(_, count))| {
            let needed = (level - rounded) * total as f64;
            (count as f64) < needed * (1.0 - 1e-9) - 1.0
        });
        match short {
            None => Ok(()),
            Some(((level, _), (_, count))) => Err(ImportError::new(format!(
                "the line of percentile {level} counts {count} samples, which are fewer than that share of {total}"
            ))),
        }
    }

    fn take(&mut self, line: Line<'_>, budget: &Budget) -> Result<(), ImportError> {
        let text = line.text.trim();
        if text.starts_with('#') {
            self.comment(line)?;
        } else if is_percentile_head(text) {
            if self.head {
                return Err(line.fault("a second table begins; give each a file of its own"));
            }
            self.head = true;
        } else if self.head && !text.is_empty() && (self.max.is_none() || is_row(text)) {
            // What follows the table, such as wrk's summary, is no part of it.
            self.row(line, budget)?;
        }
        Ok(())
    }

    /// The last value is the end of the last bucket. Older libraries name its lower end as the
    /// maximum.
    fn check_max(&self, max: u64) -> Result<(), ImportError> {
        let Some(&(last, _)) = self.rows.last() else { return Ok(()) };
        // From the second octave on, a bucket is at most so wide.
        let width = self.sub_buckets.map_or(0, |n| last.saturating_mul(2) / n);
        if max > last || last - max > width {
            return Err(ImportError::new(
                "the value of the last line is not the maximum, nor in the same bucket",
            ));
        }
        Ok(())
    }

    fn comment(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let text = line.text.trim().trim_start_matches("#[").trim_end_matches(']');
        let value = |text: &str| text.split_once('=').map(|(_, value)| value.trim().to_owned());
        let parts: Vec<&str> = text.split(',').collect();
        if text.starts_with("Mean") {
            self.mean = value(parts[0]);
            self.deviation = parts.get(1).and_then(|part| value(part));
        } else if text.starts_with("Max") {
            if self.max.is_some() {
                return Err(line.fault("this line appears twice"));
            }
            self.max = value(parts[0]);
            let total = parts.get(1).and_then(|part| value(part));
            self.total = total.and_then(|text| whole_number(&text));
            if self.total.is_none() {
                return Err(line.fault("no total count"));
            }
        } else if text.starts_with("Buckets") {
            let of = parts.get(1).and_then(|part| value(part));
            self.sub_buckets = of.and_then(|text| number(&text)).filter(|&n| n > 0);
        } else {
            self.declared.take(line.text.trim());
        }
        Ok(())
    }

    fn row(&mut self, line: Line<'_>, budget: &Budget) -> Result<(), ImportError> {
        let words: Vec<Word<'_>> = line.words().collect();
        let ([value, _, count] | [value, _, count, _]) = words.as_slice() else {
            return Err(line.fault("not a value, its percentile, and a count"));
        };
        let after_point = value.text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let decimals = *self.decimals.get_or_insert(after_point);
        let of_value = steps(value.text, decimals).filter(|_| after_point == decimals);
        let of_value = of_value
            .ok_or_else(|| value.fault("not a number with as many decimals as the others"))?;
        let count = count.number()?;
        let rises = |&(last, held): &(u64, u64)| of_value >= last && count >= held;
        if !self.rows.last().is_none_or(rises) || self.max.is_some() {
            return Err(line.fault("this does not rise from the line before it"));
        }
        budget.keep(1, Entry::BUCKET)?;
        let (level, rounded) = words
            .get(1)
            .and_then(|word| share(word.text))
            .ok_or_else(|| line.fault("its percentile is not from 0 to 1"))?;
        self.levels.push((level, rounded));
        let named = Percentile::SHOWN.into_iter().find(|p| (1.0 - p.tail() - level).abs() < 1e-12);
        if let Some(named) = named.filter(|p| self.percentiles.iter().all(|(q, _)| q != p)) {
            self.percentiles.push((named, of_value));
        }
        self.rows.push((of_value, count));
        Ok(())
    }

    fn draft(&self, about: &About, unit_ns: u64, decimals: usize) -> Result<Draft, String> {
        let mut draft = Draft::new(
            "HdrHistogram",
            "percentile distribution",
            about,
            Quantity::Unknown,
            Omission::Unknown,
        );
        self.declared.tell(&mut draft);
        draft.unknown.push("threads.woken.min_ns");
        // Where decimals reach below a ns, they are cut off.
        let places = 10_u64.pow(u32::try_from(decimals).map_err(|_| "too many decimals")?);
        let resolution_ns = (unit_ns / places).max(1);
        let ns = |steps: u64| -> Result<u64, String> {
            let ns = u128::from(steps) * u128::from(unit_ns) / u128::from(places);
            u64::try_from(ns)
                .ok()
                .filter(|&ns| ns < 1 << 62)
                .ok_or_else(|| "a value is too large for a time".into())
        };
        draft.coarse(resolution_ns);
        draft.approximate("histogram: its buckets lie between the values of two lines");
        draft.approximate("min_ns: at most that");
        let mut counts = Counts::default();
        let (mut lower, mut held) = (0, 0);
        let mut first = None;
        // With few digits, neighbouring lines name the same value: only the last counts all of its samples.
        for rows in self.rows.chunk_by(|&(a, _), &(b, _)| a == b) {
            let &[.., (value, count)] = rows else { continue };
            let upper = ns(value)? + resolution_ns;
            if count > held {
                counts.push(lower, upper, count - held)?;
                first = first.or(Some(upper - resolution_ns));
                (lower, held) = (upper, count);
            }
        }
        let last = counts.buckets().last().map_or(0, |b| b.upper - resolution_ns);
        let mean = self.mean.as_deref().and_then(super::super::lines::thousandths);
        let least_sum = counts.least_sum();
        let mut all = counts.finish(first.unwrap_or(0), last, least_sum)?;
        match mean {
            Some(mean) => {
                draft.approximate("sum_ns: from the mean as it is given");
                let given = super::super::counts::sum_of_mean(all.count, mean, unit_ns);
                // It is rounded: 0.001 ms may be the mean of 0 and 1 µs.
                let extremes = (all.min_ns.unwrap_or(0), all.max_ns.unwrap_or(0));
                let (least, most) =
                    parts::sums(&parts::of(&all, extremes, resolution_ns, EXTREMES));
                let possible = u128::from(given).clamp(least, most);
                all.sum_ns = u64::try_from(possible).unwrap_or(u64::MAX);
            }
            None => draft.approximate("sum_ns: each sample counts as the lower edge of its bucket"),
        }
        draft.thread(None, all);
        draft.extremes = EXTREMES;
        // Libraries print three digits of a value, which they round: 0.002 ms is 1.5 to 2.5 µs.
        draft.rows_are_rounded = true;
        let deviation = self.deviation.as_deref().and_then(super::super::lines::thousandths);
        for (figure, value) in [(Figure::Mean, mean), (Figure::Deviation, deviation)] {
            if let Some(value) = value {
                #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
                let (ns, unit) = (value as f64 * unit_ns as f64 / 1_000.0, unit_ns as f64);
                draft.states(figure, ns - 0.001 * unit, ns + 0.001 * unit + ns * 0.001);
            }
        }
        for &(percentile, value) in &self.percentiles {
            draft.states_percentile(percentile, ns(value)?);
        }
        Ok(draft)
    }
}

/// A count. The library of Python writes its decimals, too: `50000.000`.
fn whole_number(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    number(whole).filter(|_| decimals.bytes().all(|digit| digit == b'0'))
}

/// Whether a line is one of the table: three or four numbers.
fn is_row(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    matches!(words.len(), 3 | 4) && words.iter().all(|word| word.parse::<f64>().is_ok())
}

/// A share from 0 to 1, and half a unit of its last decimal: of a million samples and more, six
/// decimals are too few to name a sample.
fn share(text: &str) -> Option<(f64, f64)> {
    let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let level = text.parse::<f64>().ok().filter(|level| (0.0..=1.0).contains(level))?;
    Some((level, 0.5 * 0.1_f64.powi(i32::try_from(decimals).ok()?)))
}

/// A decimal number as a whole number of its last place; at most nine places.
fn steps(text: &str, decimals: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if decimals > 9 || fraction.len() > decimals {
        return None;
    }
    number(whole)?;
    number(&format!("{whole}{fraction:0<decimals$}"))
}
