//! A row that is opened: its figures, and its histogram.

use wakescope_core::units::{SpanNs, grouped};
use wakescope_core::watch::{Waits, Window};

use super::lines::{Line, Tone};
use super::{Live, Size};
use crate::plot::log_log_within;
use crate::table::columns;
use crate::watch::episodes::{Times, of_row};
use crate::watch::explained;
use crate::watch::rows::Row;
use crate::watch::{max, percentile_of};

impl Live {
    /// The chosen row in so many lines.
    pub(super) fn opened(&self, window: &Window, size: Size) -> Vec<Line> {
        let Some(key) = &self.chosen else { return Vec::new() };
        let row = Row { key: key.clone(), waits: self.waits_of(key, Some(window)) };
        let mut lines = vec![Line::with(Tone::Strong, format!(" {}", row.name()))];
        let last = self.waits_of(key, self.shown.last.as_ref());
        let all = self.waits_of(key, self.shown.all.window().as_ref());
        let (names, times) = match self.stored {
            Some(_) => (["this window", "all"], Times::Dates),
            None => (["last", "all"], Times::Elapsed),
        };
        let head = ["", "waits", "p50", "p99", "p99.9", "max", "waited"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(names.into_iter().zip([&last, &all]).map(|(name, waits)| figures(name, waits)));
        lines.extend(columns(&rows, true).lines().map(Line::plain));
        lines.extend(of_row(window, key, times).into_iter().map(Line::plain));
        // They are of a few windows only, and of interest behind these.
        let all = self.shown.all.window();
        let explained = all.map(|all| explained::of_row(&all, key, times)).unwrap_or_default();
        lines.extend(explained.into_iter().map(Line::plain));
        lines.push(Line::plain(""));
        if row.waits.count == 0 {
            lines.push(Line::plain(" no task of it waited"));
        }
        let left = size.lines.saturating_sub(lines.len());
        let picture = log_log_within(row.waits.histogram.buckets(), left.max(1), size.columns);
        lines.extend(picture.lines().map(Line::plain));
        lines
    }
}

fn figures(name: &str, waits: &Waits) -> Vec<String> {
    let percentile = |percentile| percentile_of(waits, percentile);
    let [p50, p99, p999] = ["p50", "p99", "p99.9"].map(percentile);
    let waited = SpanNs(waits.sum_ns).to_string();
    vec![name.into(), grouped(waits.count), p50, p99, p999, max(waits), waited]
}
