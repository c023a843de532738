//! Progress on stderr: a block that is redrawn on a terminal, a line now and then elsewhere.

use std::collections::VecDeque;

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_probe::session::Progress;
use wakescope_report::progress::{Line, block, line};

use crate::output;
use crate::screen::{HEIGHT, Screen};

/// How often the block is redrawn.
const REDRAW: SpanNs = SpanNs(250_000_000);
/// How often a line is printed where there is no terminal.
const REPORT: SpanNs = SpanNs(10_000_000_000);
/// Slices of time that each CPU's picture shows.
const SLICES: usize = 20;

/// Shows how a measurement stands.
pub(crate) struct Live {
    title: String,
    screen: Option<Screen>,
    next: MonoNs,
    recent: Vec<VecDeque<u64>>,
}

impl Live {
    /// Begins to show progress under `title`, first at `now`.
    pub(crate) fn new(title: String, now: MonoNs) -> Self {
        let screen = Screen::of_terminal();
        let next = now.after(if screen.is_some() { REDRAW } else { REPORT });
        Self { title, screen, next, recent: Vec::new() }
    }

    /// How often there is something to show.
    pub(crate) fn pace(&self) -> SpanNs {
        if self.screen.is_some() { REDRAW } else { REPORT }
    }

    /// Whether it is time to show something.
    pub(crate) fn is_due(&self, now: MonoNs) -> bool {
        now >= self.next
    }

    /// Shows how it stands at `now`.
    pub(crate) fn show(&mut self, progress: &Progress, now: MonoNs) {
        self.next = now.after(self.pace());
        self.recent.resize_with(progress.cpus.len(), VecDeque::new);
        let lines: Vec<Line> = progress
            .cpus
            .iter()
            .zip(&mut self.recent)
            .map(|(cpu, recent)| {
                recent.push_back(cpu.recent_max_ns);
                while recent.len() > SLICES {
                    recent.pop_front();
                }
                Line {
                    cpu: cpu.cpu,
                    now_ns: cpu.now_ns,
                    expiries: cpu.seen.expiries.clone(),
                    missed: cpu.seen.missed,
                    recent_max_ns: recent.iter().copied().collect(),
                }
            })
            .collect();
        let elapsed = SpanNs(progress.elapsed.0.min(progress.total.0));
        match &mut self.screen {
            Some(screen) => {
                screen.draw(&block(&self.title, elapsed, progress.total, &lines, HEIGHT));
            }
            None => output::tell(&line(elapsed, progress.total, &lines)),
        }
    }

    /// Takes the block away, so that the result stands alone.
    pub(crate) fn clear(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
    }
}
