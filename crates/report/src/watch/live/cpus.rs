//! The heat map: the longest wait of each CPU in each of the last windows.

use super::lines::{Line, Tone, tone_of};
use super::{Live, Size};
use crate::watch::max;

/// What stands for a window, by the longest wait in it: less than this, ns.
const SHADES: [(u64, char); 5] =
    [(10_000, ' '), (100_000, '·'), (1_000_000, '░'), (10_000_000, '▒'), (100_000_000, '▓')];
const DARKEST: char = '█';

impl Live {
    /// The heat map in so many lines.
    pub(super) fn cpus(&self, size: Size) -> Vec<Line> {
        let cpus = self.shown.cpus();
        let digits = cpus.keys().map(|cpu| cpu.to_string().len()).max().unwrap_or(1);
        let width = digits.max("CPU".len());
        let mut lines = vec![
            Line::plain(
                " The longest wait on each CPU, a column per window, the last one at the right:",
            ),
            Line::plain(" · from 10 µs, ░ from 100 µs, ▒ from 1 ms, ▓ from 10 ms, █ from 100 ms"),
            Line::with(Tone::Faint, format!(" {:>width$} {:>8}", "CPU", "max")),
        ];
        let most = size.columns.saturating_sub(width + 12).max(1);
        let height = size.lines.saturating_sub(lines.len()).max(1);
        // A page that is full is better than its end.
        let first = self.first_cpu.min(cpus.len().saturating_sub(height));
        for (cpu, waits) in cpus.iter().skip(first).take(height) {
            let past = self.shown.history.of_cpu(*cpu, waits.max_ns, most);
            let picture: String = past.into_iter().map(shade).collect();
            let line = format!(" {cpu:>width$} {:>8} │{picture}", max(waits));
            lines.push(Line::with(tone_of(waits.max_ns), line));
        }
        lines
    }
}

fn shade(longest_ns: u64) -> char {
    let found = SHADES.iter().find(|shade| longest_ns < shade.0);
    found.map_or(DARKEST, |shade| shade.1)
}
