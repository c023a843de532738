//! A block of lines on the terminal that stderr is, drawn again and again in the same place; and a line of progress.

use std::fmt::Write;

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

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

    /// Draws `block` in place of the last one, as much of it as the terminal has room for: a line that
    /// goes on in the next one, and a block that is higher than the terminal, would not be drawn over.
    pub(crate) fn draw(&mut self, block: &str) {
        output::draw(&self.drawing(block));
    }

    /// What draws it.
    pub(crate) fn drawing(&mut self, block: &str) -> String {
        let (columns, lines) = output::room();
        let mut out = String::new();
        if self.drawn_lines > 0 {
            let _ = write!(out, "\x1b[{}A", self.drawn_lines);
        }
        let drawn = std::mem::take(&mut self.drawn_lines);
        for line in block.lines().take(lines) {
            // Each line ends by clearing what an earlier, longer one left.
            let _ = writeln!(out, "{}\x1b[K", fit(&cleaned(line, true), columns));
            self.drawn_lines += 1;
        }
        if drawn > self.drawn_lines {
            out.push_str("\x1b[J");
        }
        out
    }

    /// Takes the block away, so that what comes next stands alone.
    pub(crate) fn clear(&mut self) {
        output::draw(&self.clearing());
    }

    /// What takes it away; empty if there is none.
    pub(crate) fn clearing(&mut self) -> String {
        match std::mem::take(&mut self.drawn_lines) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\x1b[J"),
        }
    }
}

/// How often progress of work is redrawn, and how long work takes at least that shows any.
const WORK_EVERY: SpanNs = SpanNs(250_000_000);
const SHORT: SpanNs = SpanNs(2_000_000_000);

/// How often a line of progress is shown where each is one that stays.
const LINE_EVERY: SpanNs = SpanNs(10_000_000_000);

/// A line that says how far work is: redrawn on a terminal, and elsewhere a line now and then.
pub(crate) struct ProgressLine {
    every: SpanNs,
    next: MonoNs,
    redraws: bool,
    is_drawn: bool,
}

impl ProgressLine {
    /// That of work that may be over soon, and then shows none.
    pub(crate) fn of_work() -> Self {
        Self { next: clock::now().after(SHORT), ..Self::redrawn(WORK_EVERY) }
    }

    /// One that is redrawn so `often`.
    pub(crate) fn redrawn(often: SpanNs) -> Self {
        let redraws = output::can_redraw();
        let every = if redraws { often } else { LINE_EVERY };
        Self { every, next: clock::now().after(every), redraws, is_drawn: false }
    }

    /// Shows what `line` makes, if it is time for that.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        let now = clock::now();
        if now < self.next {
            return;
        }
        self.next = now.after(self.every);
        if self.redraws {
            self.is_drawn = true;
            output::redraw(&line());
        } else {
            output::tell(&line());
        }
    }

    /// Takes it away, so that what comes next stands alone.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            output::redraw("");
        }
    }
}

/// The part of a line that so many columns show, its colours whole. A number that is cut must not be taken
/// for another one.
pub(crate) fn fit(line: &str, columns: usize) -> String {
    let mut is_in_sequence = false;
    // Of each character, whether it takes a column.
    let mut takes = |c: char| {
        let was_in_sequence = std::mem::replace(&mut is_in_sequence, c == '\x1b');
        if was_in_sequence {
            is_in_sequence = !c.is_ascii_alphabetic();
        }
        !was_in_sequence && c != '\x1b'
    };
    let characters: Vec<(char, bool)> = line.chars().map(|c| (c, takes(c))).collect();
    let width = characters.iter().filter(|(_, takes)| *takes).count();
    if width <= columns {
        return line.to_owned();
    }
    let (mut cut, mut column) = (String::new(), 0);
    for (c, takes) in characters {
        column += usize::from(takes);
        match takes {
            true if column == columns => cut.push('…'),
            true if column > columns => {}
            _ => cut.push(c),
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_terminal_ends_and_colours_are_not() {
        for (columns, want) in [
            (9, "a \x1b[1m12.3 µs\x1b[0m"),
            (8, "a \x1b[1m12.3 …\x1b[0m"),
            (4, "a \x1b[1m1…\x1b[0m"),
            (2, "a…\x1b[1m\x1b[0m"),
            (1, "…\x1b[1m\x1b[0m"),
            (0, "\x1b[1m\x1b[0m"),
            (usize::MAX, "a \x1b[1m12.3 µs\x1b[0m"),
        ] {
            assert_eq!(fit("a \x1b[1m12.3 µs\x1b[0m", columns), want, "{columns}");
        }
        assert_eq!(fit("", 0), "");
    }
}
