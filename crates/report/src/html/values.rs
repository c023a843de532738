//! The tables beside the pictures.

use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::TimeDomain;
use wakescope_core::units::{SpanNs, grouped};

use super::element::{Column, folded, key_table, name, section, table, text};
use crate::bands::Band;
use crate::intervals;
use crate::picture::{self, maxima};
use crate::progress::span_or_dash;
use crate::quantity;
use crate::run_set::{Entry, RunSet};

/// A time in a cell, or a dash.
pub(crate) fn time(ns: Option<u64>) -> String {
    text(&span_or_dash(ns))
}

/// A percentile in a cell: a value, a bound, or a dash.
pub(super) fn quantile(d: &Distribution, percentile: Percentile) -> String {
    text(&quantity::quantile(d, percentile))
}

/// The maximum in a cell, in the same way.
pub(super) fn maximum(d: &Distribution) -> String {
    text(&quantity::maximum(d))
}

pub(crate) fn count(count: u64) -> String {
    grouped(count)
}

/// A table's caption, which says where cells have no room to that time is virtual.
pub(crate) fn caption(of: &str, domain: TimeDomain) -> String {
    match domain.before_unit() {
        "" => of.into(),
        word => format!("{of}, in {word}time"),
    }
}

/// How a run's curves look.
pub(super) fn swatch(at: usize) -> String {
    let (colour, dash) = picture::look_of(at);
    format!(
        "<svg class=\"swatch\" viewBox=\"0 0 32 12\" aria-hidden=\"true\"><path class=\"l {colour}\" \
         stroke-width=\"2.5\"{dash} d=\"M0 6h32\"/></svg>"
    )
}

/// A run's name in a row.
fn row_name(at: usize, entry: &Entry, run_set: &RunSet) -> String {
    let name = name(&entry.name(), 120);
    if run_set.entries.len() > 1 { format!("{}{name}", swatch(at)) } else { name }
}

/// A row per run: what the curve shows where it crosses the nines.
pub(super) fn percentiles(run_set: &RunSet) -> String {
    let names: Vec<String> = Percentile::SHOWN.iter().map(ToString::to_string).collect();
    let words = quantity::words_of(run_set);
    let mut head =
        vec![("run", Column::Words), (words.many, Column::Number), ("min", Column::Number)];
    head.extend(names.iter().map(|n| (n.as_str(), Column::Number)));
    head.push(("max", Column::Number));
    let row = |(at, entry): (usize, &Entry)| {
        let all = entry.run.expiries();
        let min_ns = quantity::min_of_all_ns(&entry.run);
        let mut row = vec![row_name(at, entry, run_set), count(all.count), time(min_ns)];
        row.extend(Percentile::SHOWN.iter().map(|&p| quantile(&all, p)));
        row.push(maximum(&all));
        row
    };
    let rows: Vec<Vec<String>> = run_set.entries.iter().enumerate().map(row).collect();
    let caption =
        caption("Percentiles", run_set.domain()) + "; a dash where there are too few samples";
    key_table(&caption, &head, &rows)
}

/// The bands of histograms, for who cannot see them. Of several runs only their outlines are shown.
pub(super) fn bands(run_set: &RunSet) -> String {
    let [entry] = run_set.entries.as_slice() else { return String::new() };
    let row = |band: &Band| {
        vec![format!("{} to {}", SpanNs(band.lower), SpanNs(band.upper)), count(band.count)]
    };
    let rows: Vec<Vec<String>> = picture::bands(&entry.run.expiries()).iter().map(row).collect();
    let words = quantity::words_of(run_set);
    let head = [(words.value, Column::Words), (words.many, Column::Number)];
    let caption = caption(&quantity::by_value(words), run_set.domain());
    folded("The bands as a table", &table(&caption, &head, &rows))
}

/// How the times between wakeups deviate from the interval; empty where that was not recorded.
pub(super) fn intervals(run_set: &RunSet) -> String {
    let all: Vec<_> = run_set.entries.iter().map(|entry| entry.run.interval_deviation()).collect();
    let row = |at: usize, entry: &Entry| {
        let figures = all[at].as_ref()?.figures()?;
        let mut row = vec![row_name(at, entry, run_set), count(figures.count)];
        row.push(text(&SpanNs(entry.run.plan.interval_ns).to_string()));
        row.extend(intervals::cells(&figures).map(|cell| text(&cell)));
        Some(row)
    };
    let rows = run_set.entries.iter().enumerate().filter_map(|(at, entry)| row(at, entry));
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let numbers = ["intervals", "of", "min", "mean", "standard deviation", "max"];
    let mut head = vec![("run", Column::Words)];
    head.extend(numbers.map(|number| (number, Column::Number)));
    let mut shown =
        key_table(&caption("Deviation of the interval", run_set.domain()), &head, &rows);
    if let [Some(all)] = all.as_slice() {
        let bands = |sign: &str, d: &Distribution| -> Vec<Vec<String>> {
            let row = |band: &Band| {
                let (from, to) = (SpanNs(band.lower), SpanNs(band.upper));
                vec![format!("{sign}{from} to {sign}{to}"), count(band.count)]
            };
            picture::bands(d).iter().map(row).collect()
        };
        let mut rows = bands("-", &all.shorter);
        rows.reverse();
        rows.extend(bands("+", &all.longer));
        let head = [("deviation", Column::Words), ("intervals", Column::Number)];
        let caption = caption("Intervals by deviation", run_set.domain());
        shown.push_str(&folded("The intervals as a table", &table(&caption, &head, &rows)));
    }
    section("intervals", "Time between wakeups", &shown)
}

/// The rows of the table beside the course.
const PARTS: usize = 16;

/// The largest lateness of each part of the run.
pub(super) fn course(run_set: &RunSet) -> String {
    let [entry] = run_set.entries.as_slice() else { return String::new() };
    let Some(maxima) = maxima(&entry.run) else { return String::new() };
    let size = maxima.max_ns.len().div_ceil(PARTS).max(1);
    let from = |slot: usize| SpanNs((slot as u64).saturating_mul(maxima.slot_ns));
    let row = |(at, part): (usize, &[Option<u64>])| {
        let (first, last) = (from(at * size), from(at * size + part.len()));
        vec![format!("{first} to {last}"), time(part.iter().flatten().max().copied())]
    };
    let rows: Vec<Vec<String>> = maxima.max_ns.chunks(size).enumerate().map(row).collect();
    let largest = format!("largest {}", quantity::words_of(run_set).value);
    let head = [("from the start of the run", Column::Words), (largest.as_str(), Column::Number)];
    let caption = caption(&quantity::capital(&largest), run_set.domain());
    folded("The course as a table", &table(&caption, &head, &rows))
}
