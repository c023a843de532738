//! realfeel's histogram: a line per bucket that is not empty, its value with one decimal, and a
//! count.
//!
//! It measures how much longer than the period an interval was: a delay comes twice, once above and
//! once below, and what is below is counted as 0. Its unit is not in the file: the program of 2001
//! counts tenths of µs where its comment says ms, and later ones count ms.

use std::io::BufRead;

use wakescope_core::budget::Entry;
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::counts::{Counts, in_ns};
use super::draft::Draft;
use super::lines::{Lines, number};
use super::{About, ImportError};

pub(super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let Some(unit) = about.unit else {
        return Err(ImportError::new(
            "realfeel's files do not state their unit: the program of 2001 counts in µs, others in ms",
        )
        .try_this("say which it is: wakescope import FILE --unit us, or --unit ms"));
    };
    let mut rows: Vec<(u64, u64)> = Vec::new();
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        let words: Vec<_> = line.words().collect();
        if words.is_empty() {
            continue;
        }
        let [bucket, count] = words.as_slice() else {
            return Err(line.fault("not a bucket and a count"));
        };
        let tenth = bucket.text.split_once('.').filter(|(_, tenth)| tenth.len() == 1);
        let tenth = tenth.and_then(|(whole, tenth)| number(&format!("{whole}{tenth}")));
        let tenth = tenth.ok_or_else(|| bucket.fault("not a number with one decimal"))?;
        if rows.last().is_some_and(|&(last, _)| tenth <= last) {
            return Err(bucket.fault("not above the bucket before it"));
        }
        about.budget.keep(1, Entry::BUCKET)?;
        rows.push((tenth, count.number()?));
    }
    let tenth_ns = unit.ns() / 10;
    if tenth_ns == 0 {
        return Err(ImportError::new("realfeel does not count in tenths of ns")
            .try_this("say which it is: --unit us, or --unit ms"));
    }
    let mut draft =
        Draft::new("realfeel", "histogram", about, Quantity::IntervalDeviation, Omission::Relative);
    draft.coarse(tenth_ns);
    draft.approximate("min_ns, max_ns, sum_ns: known to the width of a bucket");
    draft.approximate("min_ns: wakeups that came too early were counted as 0");
    let mut counts = Counts::default();
    let mut push = |row: u64, count| {
        let lower = in_ns(row, tenth_ns)?;
        counts.push(lower, lower + tenth_ns, count)
    };
    for &(row, count) in &rows {
        push(row, count).map_err(ImportError::new)?;
    }
    let extremes = counts.buckets().first().zip(counts.buckets().last());
    let (min, max) = extremes.map_or((0, 0), |(first, last)| (first.lower, last.lower));
    let sum = counts.least_sum();
    draft.thread(None, counts.finish(min, max, sum).map_err(ImportError::new)?);
    draft.finish()
}
