//! Progress on stderr: a block that is redrawn on a terminal, a line now and then elsewhere.

use std::collections::VecDeque;

use wakescope_core::plan::Plan;
use wakescope_core::run::TimeDomain;
use wakescope_core::source::Quantity;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_probe::driver;
use wakescope_probe::measurement::Progress;
use wakescope_report::progress::{Line, block, followed, line};
use wakescope_report::text;
use wakescope_sys::clock;

use crate::output;
use crate::screen::{HEIGHT, Screen};

/// How often the block is redrawn.
const REDRAW: SpanNs = SpanNs(250_000_000);
/// How often a line is printed where there is no terminal.
const REPORT: SpanNs = SpanNs(10_000_000_000);
/// Slices of time that each CPU's picture shows.
const SLICES: usize = 20;

/// Whoever waits so long wonders why.
const WONDER: SpanNs = SpanNs(2_000_000_000);

/// Shows how a measurement stands.
pub(crate) struct Live {
    title: String,
    /// What one sample is called.
    sample: &'static str,
    screen: Option<Screen>,
    recent: Vec<VecDeque<u64>>,
    started: MonoNs,
    has_told: bool,
}

impl Default for Live {
    fn default() -> Self {
        let started = clock::now();
        let screen = Screen::of_terminal();
        Self {
            title: String::new(),
            sample: "",
            screen,
            recent: Vec::new(),
            started,
            has_told: false,
        }
    }
}

impl driver::Screen for Live {
    fn wait(&mut self, span: SpanNs) {
        if span >= WONDER {
            output::tell(&format!("warming up for {span}"));
        } else if !self.has_told && clock::now().since(self.started) >= WONDER {
            self.has_told = true;
            output::tell("the measurement is still being set up");
        }
    }

    fn begin(&mut self, plan: &Plan) {
        self.sample = text::sample_of(plan);
        let what =
            if plan.quantity(None) == Quantity::WakeupLatency { "wakeup" } else { self.sample };
        self.title = format!("measuring {what}s  {}", text::plan(plan, TimeDomain::Real));
    }

    fn pace(&self) -> Option<SpanNs> {
        Some(if self.screen.is_some() { REDRAW } else { REPORT })
    }

    fn show(&mut self, progress: &Progress) {
        let elapsed = SpanNs(progress.elapsed.0.min(progress.total.0));
        if let Some(lateness) = &progress.followed {
            let line = followed(elapsed, progress.total, lateness);
            match &mut self.screen {
                Some(screen) => screen.draw(&line),
                None => output::tell(&line),
            }
            return;
        }
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
        match &mut self.screen {
            Some(screen) => {
                screen.draw(&block(&self.title, elapsed, progress.total, &lines, HEIGHT));
            }
            None => output::tell(&line(elapsed, progress.total, &lines, self.sample)),
        }
    }

    /// The result stands alone.
    fn clear(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
    }
}
