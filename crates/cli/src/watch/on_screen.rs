//! The live view on the terminal.

use wakescope_core::units::SpanNs;
use wakescope_core::watch::Window;
use wakescope_report::ascii::ascii;
use wakescope_report::watch::View;
use wakescope_report::watch::live::{Live, Wish};
use wakescope_sys::clock;
use wakescope_sys::signal::EndSignals;

use super::streams::{Kept, Streams};
use crate::output;
use crate::terminal::{Event, Terminal};

/// A live view, and the terminal that shows it.
pub(super) struct OnScreen {
    live: Live,
    terminal: Terminal,
    /// Messages, which go to standard error once the terminal is free again.
    notes: Kept,
    /// Whether there is something to do when nobody looks any more.
    outlives_terminal: bool,
}

impl OnScreen {
    /// A live view, if there is a terminal for it. When that is gone the view ends, or is left without a
    /// terminal if it `outlives_terminal`.
    pub(super) fn new(view: View, outlives_terminal: bool, signals: &EndSignals) -> Option<Self> {
        let on_screen = Self::of(Live::new(view), Terminal::take(signals)?);
        let mut on_screen = Self { outlives_terminal, ..on_screen };
        on_screen.draw();
        Some(on_screen)
    }

    /// This view on a terminal that is taken. Nothing is drawn yet. It ends when the terminal is gone.
    pub(super) fn of(live: Live, terminal: Terminal) -> Self {
        Self { live, terminal, notes: Kept::default(), outlives_terminal: false }
    }

    /// Does what the keys say for `span`. Whether a signal or a key says to end.
    pub(super) fn wait(&mut self, signals: &EndSignals, span: SpanNs) -> bool {
        let until = clock::now().after(span);
        loop {
            let left = until.since(clock::now());
            match self.step(signals, left) {
                Wish::End => return true,
                _ if left == SpanNs(0) => return false,
                _ => {}
            }
        }
    }

    /// Waits for the next thing that the user does, for `span` at most. What the view cannot do itself.
    pub(super) fn step(&mut self, signals: &EndSignals, span: SpanNs) -> Wish {
        match self.terminal.wait(signals, span) {
            Event::End => return Wish::End,
            Event::Passed => return Wish::Nothing,
            Event::Gone if self.outlives_terminal => {
                return if signals.wait(span).is_some() { Wish::End } else { Wish::Nothing };
            }
            Event::Gone => return Wish::End,
            Event::Redraw => {}
            Event::Keys(keys) => {
                for key in keys {
                    let wish = self.live.press(key);
                    // Keys behind it were pressed without knowing what it shows.
                    if wish != Wish::Nothing {
                        return wish;
                    }
                }
            }
        }
        self.draw();
        Wish::Nothing
    }

    /// Changes what is shown.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Live)) {
        change(&mut self.live);
        self.draw();
    }

    pub(super) fn show(&mut self, window: &Window) {
        self.change(|live| live.add(window));
    }

    pub(super) fn note(&mut self, text: &str) {
        self.change(|live| live.note(text));
        self.notes.push(text.into());
    }

    /// Gives the terminal back, and prints the messages that were kept meanwhile. Returns the last text to
    /// print: `text` makes it for the view that the user chose.
    pub(super) fn leave(self, streams: &Streams, text: impl FnOnce(View) -> String) -> String {
        let Self { live, terminal, mut notes, .. } = self;
        drop(terminal);
        while let Some(note) = notes.pop() {
            streams.note(&note);
        }
        let text = text(live.view());
        if output::look().ascii { ascii(&text) } else { text }
    }

    fn draw(&mut self) {
        let live = &self.live;
        self.terminal.draw(|size, look| live.frame(size, look));
    }
}
