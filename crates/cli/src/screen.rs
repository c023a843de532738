//! A block of lines on the terminal that stderr is, drawn again and again in the same place.

use std::fmt::Write;

use crate::cleaner::cleaned;
use crate::output;

/// The most lines that a block takes: a terminal of 24 lines still shows it whole.
pub(crate) const HEIGHT: usize = 20;

/// What is drawn at the moment.
#[derive(Default)]
pub(crate) struct Screen {
    drawn_lines: usize,
}

impl Screen {
    /// A place to draw, if stderr is one: a dumb terminal cannot move the cursor.
    pub(crate) fn of_terminal() -> Option<Self> {
        output::can_redraw().then(Self::default)
    }

    /// Draws `block` in place of the last one. Its lines must be short enough not to be wrapped.
    pub(crate) fn draw(&mut self, block: &str) {
        let mut out = String::new();
        if self.drawn_lines > 0 {
            let _ = write!(out, "\x1b[{}A", self.drawn_lines);
        }
        let drawn = std::mem::take(&mut self.drawn_lines);
        for line in block.lines() {
            // Each line ends by clearing what an earlier, longer one left.
            let _ = writeln!(out, "{}\x1b[K", cleaned(line, true));
            self.drawn_lines += 1;
        }
        if drawn > self.drawn_lines {
            out.push_str("\x1b[J");
        }
        output::draw(&out);
    }

    /// Takes the block away, so that what comes next stands alone.
    pub(crate) fn clear(&mut self) {
        if self.drawn_lines > 0 {
            output::draw(&format!("\x1b[{}A\x1b[J", self.drawn_lines));
            self.drawn_lines = 0;
        }
    }
}
