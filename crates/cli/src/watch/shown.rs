//! Where windows go: a live view, a table that is redrawn, lines, or JSON.

use std::borrow::Cow;

use wakescope_core::units::SpanNs;
use wakescope_core::watch::Window;
use wakescope_core::watch::sum::Sum;
use wakescope_report::watch::{History, Past, View, block, line, table};
use wakescope_sys::signal::EndSignals;

use super::on_screen::OnScreen;
use super::streams::Streams;
use crate::screen::{HEIGHT, Screen};
use crate::{Failure, output};

/// Shows windows as they come. No reader and no terminal is waited for.
pub(super) struct Shown {
    form: Form,
    streams: Streams,
    /// Windows that ended while standard output took nothing. The next one that is printed holds them all.
    not_taken: Sum,
    /// Whether the user knows of that.
    has_told: bool,
}

/// How windows are shown.
enum Form {
    /// Each window as a line of JSON.
    Json,
    /// A view that is used by keys, and a table at the end.
    Live(Box<OnScreen>),
    /// A table that is redrawn, and one at the end.
    Redrawn { view: View, screen: Screen, history: History },
    /// A line for each window, and a table at the end.
    Lines(View),
    /// The table at the end.
    Table(View),
}

impl Shown {
    /// For other programs.
    pub(super) fn json(streams: Streams) -> Self {
        Self::by(Form::Json, streams)
    }

    /// On a terminal a live view, or a table that is redrawn where nobody can press keys; elsewhere lines, but
    /// for one window `only`. Whether the watch `outlives_terminal` is as for [`OnScreen::new`].
    pub(super) fn for_people(
        view: View,
        only: bool,
        outlives_terminal: bool,
        signals: &EndSignals,
        streams: Streams,
    ) -> Self {
        let live = if only { None } else { OnScreen::new(view, outlives_terminal, signals) };
        let screen = Screen::of_terminal().filter(|_| output::is_terminal());
        let form = match (live, screen) {
            (Some(live), _) => Form::Live(Box::new(live)),
            _ if only => Form::Table(view),
            (None, Some(screen)) => Form::Redrawn { view, screen, history: History::default() },
            (None, None) => Form::Lines(view),
        };
        Self::by(form, streams)
    }

    fn by(form: Form, streams: Streams) -> Self {
        Self { form, streams, not_taken: Sum::default(), has_told: false }
    }

    /// Waits for `span`, or until a signal or the user says to end: whether that is so.
    pub(super) fn wait(&mut self, signals: &EndSignals, span: SpanNs) -> bool {
        match &mut self.form {
            Form::Live(live) => live.wait(signals, span),
            _ => signals.wait(span).is_some(),
        }
    }

    /// Shows a window. Whether anybody still reads.
    pub(super) fn show(&mut self, window: &Window) -> Result<bool, Failure> {
        let is_behind = self.streams.is_behind();
        match &mut self.form {
            Form::Json | Form::Lines(_) if is_behind => {
                self.not_taken.add(window);
                if !self.has_told && self.streams.is_out_full() {
                    self.has_told = true;
                    self.streams.note(
                        "standard output takes nothing: intervals are added up to one until it does",
                    );
                }
                return Ok(true);
            }
            Form::Json | Form::Lines(_) => return self.print(window, ""),
            Form::Live(live) => live.show(window),
            Form::Redrawn { view, screen, history } => {
                if self.streams.can_draw() {
                    let drawing = screen.drawing(&block(window, *view, history, HEIGHT));
                    self.streams.draw(drawing);
                }
                history.add(Past::of(window));
            }
            Form::Table(_) => {}
        }
        Ok(true)
    }

    /// Prints a window with those that were not taken before it, and what stands `behind` it.
    fn print(&mut self, window: &Window, behind: &str) -> Result<bool, Failure> {
        let mut all = std::mem::take(&mut self.not_taken);
        let mut window = Cow::Borrowed(window);
        if all.window_ns() > 0 {
            all.add(window.as_ref());
            window = all.window().map_or(window, Cow::Owned);
        }
        let text = match self.form {
            Form::Json => json(&window)?,
            _ => format!("{}\n", line(&window)),
        };
        self.streams.print(text + behind)
    }

    /// Shows the last window, which may be shorter than others, and all windows together, which are `total`.
    pub(super) fn end(&mut self, last: &Window, total: &Window) -> Result<(), Failure> {
        let is_read = match &mut self.form {
            // The table that follows has it.
            Form::Live(_) | Form::Table(_) => true,
            Form::Redrawn { screen, .. } => {
                self.streams.draw(screen.clearing());
                true
            }
            Form::Json => self.print(last, "")?,
            Form::Lines(_) => self.print(last, "\n")?,
        };
        let of = |view| table(total, view, output::style());
        let text = match std::mem::replace(&mut self.form, Form::Json) {
            Form::Live(live) => live.leave(&self.streams, of),
            Form::Redrawn { view, .. } | Form::Lines(view) | Form::Table(view) => of(view),
            Form::Json => return Ok(()),
        };
        if is_read {
            self.streams.print(text)?;
        }
        Ok(())
    }

    /// Tells the user something beside the windows.
    pub(super) fn note(&mut self, text: &str) {
        match &mut self.form {
            Form::Live(live) => return live.note(text),
            Form::Redrawn { screen, .. } => self.streams.draw(screen.clearing()),
            _ => {}
        }
        self.streams.note(text);
    }

    /// Waits until all is taken: see [`Streams::finish`].
    pub(super) fn finish(&self, signals: &EndSignals, is_hurried: bool) -> Result<bool, Failure> {
        self.streams.finish(signals, is_hurried)
    }
}

/// The line of a window, for other programs.
pub(crate) fn json(window: &Window) -> Result<String, Failure> {
    serde_json::to_string(window)
        .map(|json| format!("{json}\n"))
        .map_err(|e| Failure::new(format!("cannot write a window as JSON: {e}")))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::watch::streams::tests::SlowReader;

    /// Windows that a reader takes late, and what was told.
    fn taken_late(has_room: bool) -> (Vec<(u64, u64)>, Vec<String>) {
        let window = |begin_ns, window_ns| Window {
            started: "2026-11-21T01:00:00Z".into(),
            begin_ns,
            window_ns,
            ..Window::default()
        };
        let (reader, out) = SlowReader::new();
        let (told, notes) = channel();
        let err = move |text: &str| {
            let _ = told.send(text.to_owned());
            Ok(true)
        };
        let streams = Streams::with(out, err).unwrap();
        let streams = if has_room { streams.with_room() } else { streams };
        let mut shown = Shown::by(Form::Json, streams);
        for window in [window(0, 10), window(10, 20), window(30, 5)] {
            assert!(shown.show(&window).unwrap());
        }
        let last = window(35, 1);
        shown.end(&last, &last).unwrap();
        let printed = [(); 2].map(|()| {
            let window: Window = serde_json::from_str(&reader.take()).unwrap();
            (window.begin_ns, window.window_ns)
        });
        drop(shown);
        (printed.into(), notes.iter().collect())
    }

    #[test]
    fn windows_that_are_not_taken_are_added_up() {
        let (printed, notes) = taken_late(false);
        assert_eq!(printed, [(0, 10), (10, 26)]);
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert!(note.starts_with("standard output takes nothing"), "{note}");
    }

    /// The reader is not to blame for a thread that had no CPU.
    #[test]
    fn a_reader_that_leaves_room_is_not_said_to_take_nothing() {
        assert_eq!(taken_late(true), (vec![(0, 10), (10, 26)], Vec::new()));
    }
}
