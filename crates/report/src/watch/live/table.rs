//! The table of rows, in bands of severity.

use wakescope_core::units::{SpanNs, grouped};
use wakescope_core::watch::Window;

use super::lines::{Line, Tone, tone_of};
use super::{Live, Size};
use crate::progress::sparkline;
use crate::table::columns;
use crate::watch::rows::{CGROUP, Past, Row, Sort};
use crate::watch::{in_order, max, percentile_of, rows, sum_line};

/// The widest cgroup.
const WIDEST_CGROUP: usize = 60;
/// Tables of fewer lines have no headings of bands.
const FOR_BANDS: usize = 12;

/// Bands of severity: the least wait of each, ns, and its heading.
const BANDS: [(u64, &str); 4] = [
    (10_000_000, "10 ms and longer"),
    (1_000_000, "1 ms to 10 ms"),
    (100_000, "100 µs to 1 ms"),
    (0, "below 100 µs"),
];

/// A figure of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Waits,
    P99,
    P999,
    Max,
    Waited,
    /// The longest wait of each of the last windows, as a picture.
    Course,
}

impl Figure {
    fn head(self) -> &'static str {
        match self {
            Self::Waits => "waits",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Waited => "waited",
            Self::Course => "",
        }
    }
}

impl Live {
    /// The table, in so many lines, with the sum of all below it.
    pub(super) fn table(&self, window: &Window, size: Size) -> Vec<Line> {
        let rows = in_order(rows(window, self.view.by), self.view.sort);
        let chosen = self.position(&rows);
        // Rows are worth more than their head, and that more than the sum.
        let (has_head, has_sum) = (size.lines > 1, size.lines > 2);
        let around = usize::from(has_head) + usize::from(has_sum);
        let height = size.lines.saturating_sub(around).max(1);
        let lines = self.banded(&rows, height >= FOR_BANDS);
        let place = lines.iter().position(|line| *line == Entry::Row(chosen)).unwrap_or(0);
        // Page by page: rows stand still while the user moves among them.
        let first = place / height * height;
        let page = &lines[first.min(lines.len())..lines.len().min(first + height)];
        // A heading with no row below it says nothing.
        let last = page.iter().rposition(|entry| entry.row().is_some());
        let page = &page[..last.map_or(0, |last| last + 1)];
        let shown: Vec<usize> = page.iter().filter_map(Entry::row).collect();
        // A row of all windows still has the course of the last ones.
        let last = self.shown.last.as_ref().filter(|_| self.of_all).map(Past::of);
        let listed = shown.iter().map(|&at| {
            let row = &rows[at];
            let last = last.as_ref().map_or(row.waits.max_ns, |last| Some(last.longest(&row.key)));
            Listed { row, course: sparkline(&self.shown.history.of(&row.key, last)) }
        });
        let listed: Vec<Listed> = listed.collect();
        let texts = self.texts(&listed, size.columns);
        let mut texts = texts.into_iter();
        let head = Line::with(Tone::Faint, texts.next().unwrap_or_default());
        let mut out = if has_head { vec![head] } else { Vec::new() };
        for entry in page {
            match *entry {
                Entry::Band(heading) => out.push(Line::with(Tone::Faint, format!(" ─ {heading}"))),
                Entry::Row(at) => {
                    let mut text = texts.next().unwrap_or_default();
                    if at == chosen {
                        text.replace_range(..text.len().min(1), ">");
                    }
                    let worst = self.view.sort.key(&rows[at].waits).0;
                    let worst = if self.view.sort == Sort::Time { None } else { worst };
                    out.push(Line::with(tone_of(worst), text));
                }
            }
        }
        if !has_sum {
            return out;
        }
        out.resize(height + 1, Line::plain(""));
        let hidden = match rows.len() - shown.len() {
            0 => String::new(),
            _ => {
                let ends = [shown.first(), shown.last()];
                let [from, to] = ends.map(|at| grouped(at.map_or(0, |at| at + 1) as u64));
                format!("{from}–{to} of {}. ", grouped(rows.len() as u64))
            }
        };
        out.push(Line::plain(format!(" {hidden}{}", sum_line(window, self.view.by))));
        out
    }

    /// The rows with the headings of their bands, where they are sorted by length.
    fn banded(&self, rows: &[Row], has_bands: bool) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut band = None;
        for (at, row) in rows.iter().enumerate() {
            let heading = match (self.view.sort, self.view.sort.key(&row.waits).0) {
                (Sort::Time, _) => None,
                (_, None) => Some("too few waits for a percentile"),
                (_, Some(ns)) => BANDS.iter().find(|band| ns >= band.0).map(|band| band.1),
            };
            if has_bands && heading != band {
                entries.extend(heading.map(Entry::Band));
                band = heading;
            }
            entries.push(Entry::Row(at));
        }
        entries
    }

    /// The head and the rows at `shown`, with as many figures as there is room for.
    fn texts(&self, rows: &[Listed], width: usize) -> Vec<String> {
        // The first ones go first.
        let mut figures = match self.view.sort {
            Sort::Percentile => vec![Figure::P99, Figure::Course, Figure::Waited],
            _ => vec![Figure::P999, Figure::Course, Figure::P99],
        };
        figures.push(match self.view.sort {
            Sort::Time => Figure::Max,
            _ => Figure::Waits,
        });
        let mut left_out = 0;
        loop {
            let is_in = |figure: &Figure| !figures[..left_out].contains(figure);
            let all = [
                Figure::Waits,
                Figure::P99,
                Figure::P999,
                Figure::Max,
                Figure::Waited,
                Figure::Course,
            ];
            let some: Vec<Figure> = all.into_iter().filter(is_in).collect();
            let texts = self.with(&some, rows, CGROUP);
            let widest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
            if widest <= width {
                let more = (width - widest).min(WIDEST_CGROUP - CGROUP);
                return self.with(&some, rows, CGROUP + more);
            }
            if left_out == figures.len() {
                return self.with(&some, rows, CGROUP.saturating_sub(widest - width));
            }
            left_out += 1;
        }
    }

    /// The same with these figures.
    fn with(&self, figures: &[Figure], rows: &[Listed], cgroup: usize) -> Vec<String> {
        let heads: Vec<&str> = figures.iter().map(|figure| figure.head()).collect();
        let mut cells = vec![self.view.by.head(cgroup, &heads)];
        cells.extend(rows.iter().map(|listed| {
            let cells: Vec<String> = figures.iter().map(|figure| listed.cell(*figure)).collect();
            listed.row.cells(cgroup, &cells)
        }));
        columns(&cells, true).lines().map(str::to_owned).collect()
    }
}

/// A row, and a picture of the longest waits in the last windows.
struct Listed<'r> {
    row: &'r Row,
    course: String,
}

impl Listed<'_> {
    fn cell(&self, figure: Figure) -> String {
        let waits = &self.row.waits;
        match figure {
            Figure::Waits => grouped(waits.count),
            Figure::P99 => percentile_of(waits, "p99"),
            Figure::P999 => percentile_of(waits, "p99.9"),
            Figure::Max => max(waits),
            Figure::Waited => SpanNs(waits.sum_ns).to_string(),
            Figure::Course => self.course.clone(),
        }
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Band(&'static str),
    Row(usize),
}

impl Entry {
    fn row(&self) -> Option<usize> {
        match self {
            Self::Row(at) => Some(*at),
            Self::Band(_) => None,
        }
    }
}
