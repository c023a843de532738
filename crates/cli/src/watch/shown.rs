//! Where windows go: a table that is redrawn, lines, or JSON.

use wakescope_core::watch::Window;
use wakescope_report::watch::{History, View, block, line, table};

use crate::screen::{HEIGHT, Screen};
use crate::{Failure, output};

/// Shows windows as they come.
pub(super) enum Shown {
    /// Each window as a line of JSON.
    Json,
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

    /// On a terminal, a table that is redrawn; elsewhere lines, but for one window `only`.
    pub(super) fn for_people(view: View, only: bool) -> Self {
        let screen = Screen::of_terminal().filter(|_| output::is_terminal());
        match screen {
            _ if only => Self::Table(view),
            Some(screen) => Self::Redrawn { view, screen, history: History::default() },
            None => Self::Lines(view),
        }
    }

    /// Shows a window. Whether anybody still reads.
    pub(super) fn show(&mut self, window: &Window) -> Result<bool, Failure> {
        match self {
            Self::Json => output::print_on(&json(window)?),
            Self::Redrawn { view, screen, history } => {
                screen.draw(&block(window, *view, history, HEIGHT));
                history.add(window, view.by);
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
        if let Self::Redrawn { screen, .. } = self {
            screen.clear();
        }
        output::tell(text);
    }

    /// Shows all windows together.
    pub(super) fn end(self, total: &Window) -> Result<(), Failure> {
        match self {
            Self::Json => Ok(()),
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
