//! What a lab shows while it lasts.

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_lab::farm::{Continue, Event, Standing};
use wakescope_lab::matrix::Phase;
use wakescope_lab::watch::Watch;
use wakescope_report::lab_progress::{LabProgress, RunningCell, block, line};
use wakescope_report::style::clean;
use wakescope_sys::clock;

use super::waiting::Waiting;
use crate::output;
use crate::screen::{HEIGHT, Screen};

/// How often progress is shown where it is redrawn.
const REDRAW_EVERY: SpanNs = SpanNs(500_000_000);

/// Where each is a line that stays: often at first, and later often enough to show that it lives.
/// A lab takes hours, and nobody reads thousands of lines.
const LINE_EVERY: SpanNs = SpanNs(10_000_000_000);
const LINE_EVERY_MOST: SpanNs = SpanNs(60_000_000_000);

/// As wide as all that wakescope prints.
const WIDTH: usize = 100;

/// What takes less is not talked about.
const SHORT: SpanNs = SpanNs(2_000_000_000);

/// Someone who watches a lab.
pub(super) struct Showing {
    waiting: Waiting,
    screen: Option<Screen>,
    began: MonoNs,
    next: MonoNs,
}

impl Showing {
    /// Ends the lab when a signal comes to `waiting`.
    pub(super) fn new(mut waiting: Waiting) -> Self {
        waiting.clear();
        let began = clock::now();
        let screen = Screen::of_terminal();
        Self { waiting, screen, began, next: began.after(SHORT) }
    }

    /// Shows how it stands. Whether it goes on, or the user has ended it.
    pub(super) fn attend(
        &mut self,
        phase: Phase,
        event: &Event<'_>,
        standing: &Standing,
    ) -> Continue {
        if let Event::Started { damaged: Some(why), .. } = event {
            self.tell(&format!("a cached cell is damaged and is run again: {why}"));
        }
        let now = clock::now();
        if now >= self.next {
            let mut progress = progress(standing, self.began, now);
            if phase == Phase::Checking {
                // What these take says nothing about the measurements that follow.
                progress.left = None;
            }
            self.show(title(phase), &progress);
            self.next = now.after(self.pace(now));
        }
        if self.waiting.stopped() { Continue::Break(()) } else { Continue::Continue(()) }
    }

    /// Says something that stays.
    fn tell(&mut self, text: &str) {
        self.clear();
        output::tell(&clean(text, 300));
    }

    /// How long to wait until progress is shown again.
    fn pace(&self, now: MonoNs) -> SpanNs {
        match self.screen {
            Some(_) => REDRAW_EVERY,
            None => SpanNs(now.since(self.began).0 / 10).clamp(LINE_EVERY, LINE_EVERY_MOST),
        }
    }

    fn show(&mut self, title: &str, progress: &LabProgress) {
        match &mut self.screen {
            Some(screen) => {
                screen.draw(&block(title, progress, HEIGHT, WIDTH));
            }
            None => output::tell(&format!("{title}: {}", line(progress))),
        }
    }

    fn clear(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        self.clear();
    }
}

fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Checking => "checking the kernels' preemption models",
        Phase::Measuring => "measuring in virtual time",
        Phase::Repeating => "repeating cells",
        Phase::Looking => "looking into the worst cells",
    }
}

fn progress(standing: &Standing, began: MonoNs, now: MonoNs) -> LabProgress {
    let running = standing.running.iter().map(|running| RunningCell {
        kernel: running.label.kernel.clone(),
        model: running.label.model.clone(),
        load: running.label.load.clone(),
        seed: running.label.seed,
        elapsed: now.since(running.since),
    });
    LabProgress {
        total: standing.total,
        done: standing.done,
        cached: standing.cached,
        failed: standing.failed,
        waiting: standing.waiting,
        elapsed: now.since(began),
        left: standing.left,
        running: running.collect(),
    }
}
