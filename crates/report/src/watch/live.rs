//! The live view of a watch: keys and windows in, lines out.

mod cpus;
mod lines;
mod opened;
mod table;

use std::collections::BTreeMap;

use wakescope_core::watch::sum::Sum;
use wakescope_core::watch::{Waits, Window};

use super::rows::{By, History, Key as RowKey, Past, Row, Sort, rows};
use super::{View, in_order};
use crate::style::{Style, clean};

/// What the user pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The arrows.
    Up,
    /// ↓
    Down,
    /// ←
    Left,
    /// →
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// The first.
    Home,
    /// The last.
    End,
    /// Enter.
    Enter,
    /// Escape or backspace.
    Back,
    /// A character.
    Char(char),
}

/// What the user wants that the view itself cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    Nothing,
    /// To end.
    End,
    /// To see another stored window: so many later, or earlier.
    Step(i64),
}

/// The place for a frame, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The length of a line.
    pub columns: usize,
    /// How many there are.
    pub lines: usize,
}

/// What the terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Its colours.
    pub style: Style,
    /// Whether it shows ASCII only.
    pub ascii: bool,
}

/// How far one press of page down goes.
const PAGE: usize = 10;

/// The live view, or that of stored windows.
#[derive(Debug)]
pub struct Live {
    view: View,
    page: Page,
    /// Whether figures are of all windows, and not of the last one.
    of_all: bool,
    /// The row that the user has chosen, and where it was; none means the first, whichever that is.
    chosen: Option<RowKey>,
    at: usize,
    /// The first CPU that is shown.
    first_cpu: usize,
    shown: Moment,
    /// What is known by now, while `shown` stands still.
    latest: Option<Moment>,
    /// Of stored windows, the number of the one that is shown, from 1, and how many there are.
    stored: Option<(u64, u64)>,
    /// What the user should know beside the figures.
    note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Table,
    Opened,
    Cpus,
}

/// What there is to show.
#[derive(Clone, Debug, Default)]
struct Moment {
    last: Option<Window>,
    history: History,
    all: Sum,
}

impl Moment {
    fn add(&mut self, window: &Window) {
        self.all.add(window);
        if let Some(before) = self.last.replace(window.clone()) {
            self.history.add(Past::of(&before));
        }
    }

    /// The CPUs that were seen, with the longest wait of each in the last window.
    fn cpus(&self) -> BTreeMap<u32, Waits> {
        let mut cpus: BTreeMap<u32, Waits> =
            self.history.cpus().map(|cpu| (cpu, Waits::default())).collect();
        let last = self.last.iter().flat_map(|window| &window.cpus);
        cpus.extend(last.map(|cpu| (cpu.cpu, cpu.waits.clone())));
        cpus
    }
}

impl Live {
    /// A view of windows that are still to come.
    pub fn new(view: View) -> Self {
        Self {
            view,
            page: Page::Table,
            of_all: false,
            chosen: None,
            at: 0,
            first_cpu: 0,
            shown: Moment::default(),
            latest: None,
            stored: None,
            note: None,
        }
    }

    /// A view of stored windows, which are `total` together.
    pub fn of_stored(view: View, total: &Window) -> Self {
        let mut live = Self::new(view);
        live.shown.all.add(total.clone());
        live.stored = Some((0, 0));
        live
    }

    /// Shows a window that has just ended.
    pub fn add(&mut self, window: &Window) {
        self.latest.as_mut().unwrap_or(&mut self.shown).add(window);
    }

    /// Shows the stored window with this `number`, from 1, of so many, behind those before it.
    pub fn show_stored(&mut self, window: Window, history: History, number: u64, of: u64) {
        self.shown.last = Some(window);
        self.shown.history = history;
        self.stored = Some((number, of));
    }

    /// Shows the first line of `text` from now on.
    pub fn note(&mut self, text: &str) {
        const MOST: usize = 300;
        self.note = text.lines().next().map(|line| clean(line, MOST));
    }

    /// What a table shows, as the user has chosen by now.
    pub fn view(&self) -> View {
        self.view
    }

    /// Does what a key stands for, or says what is to be done.
    pub fn press(&mut self, key: Key) -> Wish {
        match key {
            Key::Char('q') => return Wish::End,
            Key::Left | Key::Right | Key::Char('<' | '>') if self.stored.is_some() => {
                return Wish::Step(match key {
                    Key::Left => -1,
                    Key::Right => 1,
                    Key::Char('<') => i64::MIN,
                    _ => i64::MAX,
                });
            }
            Key::Char('s') => self.view.sort = self.view.sort.next(),
            Key::Char('g') => {
                self.view.by = self.view.by.next();
                (self.page, self.chosen, self.at) = (Page::Table, None, 0);
            }
            Key::Char('a') => self.of_all = !self.of_all,
            Key::Char('c') => {
                self.page = if self.page == Page::Cpus { Page::Table } else { Page::Cpus };
            }
            Key::Char(' ') if self.stored.is_none() => match self.latest.take() {
                Some(latest) => self.shown = latest,
                None => self.latest = Some(self.shown.clone()),
            },
            Key::Enter if self.page == Page::Table => {
                self.go(|at, _| at);
                if self.chosen.is_some() {
                    self.page = Page::Opened;
                }
            }
            Key::Back => self.page = Page::Table,
            Key::Home if self.page == Page::Table => (self.chosen, self.at) = (None, 0),
            _ => {
                if let Some(to) = movement(key) {
                    self.go(to);
                }
            }
        }
        Wish::Nothing
    }

    /// Goes to another row or CPU: `to` has the place of the one that it is at, and of the last.
    fn go(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        if self.page == Page::Cpus {
            self.first_cpu = to(self.first_cpu, self.shown.cpus().len().saturating_sub(1));
            return;
        }
        let rows = self.rows();
        let Some(last) = rows.len().checked_sub(1) else { return };
        let at = to(self.position(&rows), last);
        (self.at, self.chosen) = (at, rows.get(at).map(|row| row.key.clone()));
    }

    /// Whether figures are of all windows. The heat map shows each by itself, so that those of its foot are of
    /// the last one.
    fn is_of_all(&self) -> bool {
        self.of_all && self.page != Page::Cpus
    }

    /// The window that figures are of.
    fn window(&self) -> Option<Window> {
        if self.is_of_all() { self.shown.all.window() } else { self.shown.last.clone() }
    }

    /// The rows, in order.
    fn rows(&self) -> Vec<Row> {
        let found = self.window().map(|window| rows(&window, self.view.by));
        in_order(found.unwrap_or_default(), self.view.sort)
    }

    /// Which of these the user is at. One that has no waits just now leaves its place to another.
    fn position(&self, rows: &[Row]) -> usize {
        let chosen = self.chosen.as_ref();
        let found = chosen.and_then(|key| rows.iter().position(|row| row.key == *key));
        found.unwrap_or(self.at).min(rows.len().saturating_sub(1))
    }

    /// What the chosen row had in `window`.
    fn waits_of(&self, key: &RowKey, window: Option<&Window>) -> Waits {
        let found = window.map(|window| rows(window, self.view.by)).unwrap_or_default();
        found.into_iter().find(|row| row.key == *key).map(|row| row.waits).unwrap_or_default()
    }
}

/// Where a key leads to: from a place to another, of which that of the last is given.
fn movement(key: Key) -> Option<fn(usize, usize) -> usize> {
    Some(match key {
        Key::Up | Key::Char('k') => |at, _| at.saturating_sub(1),
        Key::Down | Key::Char('j') => |at, last| last.min(at + 1),
        Key::PageUp => |at, _| at.saturating_sub(PAGE),
        Key::PageDown => |at, last| last.min(at + PAGE),
        Key::Home => |_, _| 0,
        Key::End => |_, last| last,
        _ => return None,
    })
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Max => Self::Percentile,
            Self::Percentile => Self::Time,
            Self::Time => Self::Max,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Percentile => "p99.9",
            Self::Time => "waited",
        }
    }
}

impl By {
    fn next(self) -> Self {
        match self {
            Self::Series => Self::Comm,
            Self::Comm => Self::Cgroup,
            Self::Cgroup => Self::Cpu,
            Self::Cpu => Self::Series,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::Comm => "task",
            Self::Cgroup => "cgroup",
            Self::Cpu => "CPU",
        }
    }
}

#[cfg(test)]
mod tests;
