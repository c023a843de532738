//! Where windows go: a live view, a table that is redrawn, lines, or JSON.

use wakescope_core::units::SpanNs;
use wakescope_core::watch::Window;
use wakescope_report::watch::{History, Past, View, block, line, table};
use wakescope_sys::signal::EndSignals;

use super::on_screen::OnScreen;
use crate::screen::{HEIGHT, Screen};
use crate::{Failure, output};

/// Shows windows as they come.
pub(super) enum Shown {
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
    pub(crate) fn json() -> Self {
        Self::Json
    }

    /// On a terminal a live view, or a table that is redrawn where nobody can press keys; elsewhere lines, but
    /// for one window `only`. Whether the watch `outlives_terminal` is as for [`OnScreen::new`].
    pub(super) fn for_people(
        view: View,
        only: bool,
        outlives_terminal: bool,
        signals: &EndSignals,
    ) -> Self {
        if only {
            return Self::Table(view);
        }
        if let Some(live) = OnScreen::new(view, outlives_terminal, signals) {
            return Self::Live(Box::new(live));
        }
        match Screen::of_terminal().filter(|_| output::is_terminal()) {
            Some(screen) => Self::Redrawn { view, screen, history: History::default() },
            None => Self::Lines(view),
        }
    }

    /// Waits for `span`, or until a signal or the user says to end: whether that is so.
    pub(super) fn wait(&mut self, signals: &EndSignals, span: SpanNs) -> bool {
        match self {
            Self::Live(live) => live.wait(signals, span),
            _ => signals.wait(span).is_some(),
        }
    }

    /// Shows a window. Whether anybody still reads.
    pub(super) fn show(&mut self, window: &Window) -> Result<bool, Failure> {
        match self {
            Self::Json => output::print_on(&json(window)?),
            Self::Live(live) => {
                live.show(window);
                Ok(true)
            }
            Self::Redrawn { view, screen, history } => {
                screen.draw(&block(window, *view, history, HEIGHT));
                history.add(Past::of(window));
                Ok(true)
            }
            Self::Lines(_) => output::print_on(&format!("{}\n", line(window))),
            Self::Table(_) => Ok(true),
        }
    }

    /// Shows the last window, which may be shorter than others.
    pub(super) fn show_last(&mut self, window: &Window) -> Result<bool, Failure> {
        match self {
            // The table that follows has it.
            Self::Live(_) => Ok(true),
            Self::Redrawn { screen, .. } => {
                screen.clear();
                Ok(true)
            }
            Self::Lines(_) => output::print_on(&format!("{}\n\n", line(window))),
            Self::Json | Self::Table(_) => self.show(window),
        }
    }

    /// Tells the user something beside the windows.
    pub(super) fn note(&mut self, text: &str) {
        match self {
            Self::Live(live) => return live.note(text),
            Self::Redrawn { screen, .. } => screen.clear(),
            _ => {}
        }
        output::tell(text);
    }

    /// Shows all windows together.
    pub(super) fn end(self, total: &Window) -> Result<(), Failure> {
        match self {
            Self::Json => Ok(()),
            Self::Live(live) => live.end(total),
            Self::Redrawn { view, .. } | Self::Lines(view) | Self::Table(view) => {
                output::print(&table(total, view, output::style()))
            }
        }
    }
}

/// The line of a window, for other programs.
pub(crate) fn json(window: &Window) -> Result<String, Failure> {
    serde_json::to_string(window)
        .map(|json| format!("{json}\n"))
        .map_err(|e| Failure::new(format!("cannot write a window as JSON: {e}")))
}
