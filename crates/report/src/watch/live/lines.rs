//! A frame: title, body, what the figures rest on, and the keys.

use wakescope_core::units::{SpanNs, grouped};
use wakescope_core::watch::Window;

use super::{Live, Look, Page, Size};
use crate::ascii::ascii;
use crate::progress::clock;
use crate::style::clean;
use crate::watch::boots;
use crate::watch::episodes::longest;
use crate::watch::{MOST_DATE, end_of, notes};

/// Frames of fewer lines have fewer notes, or none.
const FOR_ALL_NOTES: usize = 12;
const FOR_COST: usize = 6;
const FOR_KEYS: usize = 4;

/// How a line is dressed, which says nothing that its words do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Strong,
    Faint,
    Warn,
    Bad,
}

/// A line of a frame.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl Line {
    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::with(Tone::Plain, text)
    }

    pub(super) fn with(tone: Tone, text: impl Into<String>) -> Self {
        Self { text: text.into(), tone }
    }

    fn dressed(&self, columns: usize, look: Look) -> String {
        let mut cut: String = self.text.chars().take(columns).collect();
        // A number that is cut must not be taken for another one.
        if self.text.chars().nth(columns).is_some() && cut.pop().is_some() {
            cut.push('…');
        }
        let text = if look.ascii { ascii(&cut) } else { cut };
        match self.tone {
            Tone::Plain => text,
            Tone::Strong => look.style.strong(&text),
            Tone::Faint => look.style.faint(&text),
            Tone::Warn => look.style.warn(&text),
            Tone::Bad => look.style.bad(&text),
        }
    }
}

/// Waits from this length on need attention, and from this on are bad.
const ATTENTION_NS: u64 = 1_000_000;
const BAD_NS: u64 = 10_000_000;

/// The tone of a wait.
pub(super) fn tone_of(longest_ns: Option<u64>) -> Tone {
    match longest_ns {
        Some(ns) if ns >= BAD_NS => Tone::Bad,
        Some(ns) if ns >= ATTENTION_NS => Tone::Warn,
        _ => Tone::Plain,
    }
}

impl Live {
    /// What is to be seen now, in lines that fit.
    pub fn frame(&self, size: Size, look: Look) -> Vec<String> {
        let window = self.window();
        let mut lines = vec![Line::with(Tone::Strong, self.title())];
        let foot = self.foot(window.as_ref(), size, look);
        let height = size.lines.saturating_sub(lines.len() + foot.len());
        let body = Size { lines: height, ..size };
        let mut middle = match (&window, self.page) {
            (None, _) => vec![Line::plain(" the first interval has not ended")],
            (Some(window), Page::Table) => self.table(window, body),
            (Some(window), Page::Opened) => self.opened(window, body),
            (Some(_), Page::Cpus) => self.cpus(body),
        };
        middle.resize(height, Line::plain(""));
        lines.extend(middle);
        lines.extend(foot);
        lines.iter().take(size.lines).map(|line| line.dressed(size.columns, look)).collect()
    }

    /// Of when the figures are.
    fn title(&self) -> String {
        let last = self.shown.last.as_ref();
        let length = last.map_or(SpanNs(0), |window| SpanNs(window.window_ns));
        let of_all = self.is_of_all();
        let when = match (self.stored, last) {
            (Some((_, count)), _) if of_all => format!("all {} windows", grouped(count)),
            (Some((number, count)), Some(window)) => {
                let started = clean(&window.started, MOST_DATE);
                let (number, count) = (grouped(number), grouped(count));
                let kernel = boots::kernel_of(&window.boots);
                let kernel = kernel.map(|name| format!(", {name}")).unwrap_or_default();
                format!("window {number} of {count}, {started}, {length}{kernel}")
            }
            (None, Some(window)) if of_all => format!("all of {}", clock(end_of(window))),
            (None, Some(window)) => format!("the last {length} of {}", clock(end_of(window))),
            (_, None) => "none yet".into(),
        };
        let paused = if self.latest.is_some() { " · paused" } else { "" };
        format!("waits, runnable to running: {when}{paused}")
    }

    /// What the figures rest on, and the keys, as far as there is room.
    fn foot(&self, window: Option<&Window>, size: Size, look: Look) -> Vec<Line> {
        let mut foot = Vec::new();
        let notes = window.map(|window| notes(window, size.columns)).unwrap_or_default();
        let shown = match size.lines {
            FOR_ALL_NOTES.. => notes.len(),
            FOR_COST.. => 1,
            _ => 0,
        };
        if size.lines >= FOR_ALL_NOTES && self.page != Page::Opened {
            foot.extend(window.and_then(longest).map(Line::plain));
        }
        foot.extend(notes.into_iter().take(shown).map(Line::plain));
        if shown > 0 {
            foot.extend(self.note.iter().map(|note| Line::with(Tone::Bad, format!(" ! {note}"))));
        }
        if size.lines >= FOR_KEYS {
            foot.push(Line::with(Tone::Faint, self.keys(size.columns, look)));
        }
        foot
    }

    /// The keys, the most important first, as many as fit.
    fn keys(&self, columns: usize, look: Look) -> String {
        let sort = format!("s sort: {}", self.view.sort.name());
        let by = format!("g by: {}", self.view.by.name());
        let scope = if self.of_all { "a last one" } else { "a all" }.to_owned();
        let plain = |text: &str| text.to_owned();
        let mut keys = vec![plain("q end")];
        // In ASCII, arrows would be the keys that lead to the first and the last window.
        let arrows = if look.ascii { "left/right" } else { "←→" };
        keys.extend(self.stored.map(|_| format!("{arrows} window")));
        match self.page {
            Page::Table => keys.extend([plain("Enter open"), sort, by, plain("c CPUs"), scope]),
            Page::Opened => keys.extend([plain("Esc back"), plain("↑↓ row"), scope]),
            Page::Cpus => keys.extend([plain("Esc back"), plain("↑↓ scroll")]),
        }
        if self.stored.is_none() {
            keys.push(plain(if self.latest.is_some() { "space go on" } else { "space pause" }));
        }
        let mut line = String::new();
        for key in keys {
            let longer = format!("{line} {}{key}", if line.is_empty() { "" } else { " " });
            if longer.chars().count() > columns {
                break;
            }
            line = longer;
        }
        line
    }
}
