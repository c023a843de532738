//! Stored windows in the live view: one after the other, by keys.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use wakescope_core::redact::redact_window;
use wakescope_core::units::SpanNs;
use wakescope_core::watch::Window;
use wakescope_core::watch::packed::{self, LONGEST_LINE};
use wakescope_report::style::clean;
use wakescope_report::watch::live::{Live, Wish};
use wakescope_report::watch::{History, Past, View};

use super::on_screen::OnScreen;
use super::replay::{Place, Range, Stored};
use super::streams::Streams;
use crate::input::regular;
use crate::terminal::Terminal;
use crate::{Failure, Outcome, measure, output};

/// Nothing happens but by keys and signals.
const LONG: SpanNs = SpanNs(3_600_000_000_000);

/// Shows the windows of the folder at `path`, the last one first; `None` if there is no terminal for that.
pub(super) fn run(
    path: &Path,
    range: Range,
    redacts: bool,
    view: View,
) -> Result<Option<Outcome>, Failure> {
    let mut windows = Windows { redacts, ..Windows::default() };
    let all = Stored::read(path, range, redacts, |window, place| {
        windows.add(window, place);
        Ok(true)
    })?;
    let signals = measure::prepare_process()?;
    let Some(terminal) = Terminal::take(&signals) else { return Ok(None) };
    let mut screen = OnScreen::of(Live::of_stored(view, &all.total), terminal);
    let mut at = windows.places.len() - 1;
    windows.show(at, &mut screen);
    loop {
        match screen.step(&signals, LONG) {
            Wish::End => break,
            Wish::Nothing => {}
            Wish::Step(steps) => {
                let to = stepped(at, steps, windows.places.len());
                if windows.show(to, &mut screen) {
                    at = to;
                }
            }
        }
    }
    let streams = Streams::start()?;
    streams.print(screen.leave(&streams, |view| all.table(view, output::style())))?;
    let is_taken = streams.finish(&signals, true)?;
    Ok(Some(if is_taken { Outcome::Done } else { Outcome::Undone }))
}

fn stepped(at: usize, steps: i64, count: usize) -> usize {
    let far = usize::try_from(steps.unsigned_abs()).unwrap_or(usize::MAX);
    let to = if steps < 0 { at.saturating_sub(far) } else { at.saturating_add(far) };
    to.min(count - 1)
}

/// Where windows are, and what is remembered of some of them.
#[derive(Default)]
struct Windows {
    places: Vec<(usize, u64)>,
    files: Vec<PathBuf>,
    /// By the numbers of their windows, those just before the one that is shown.
    pasts: BTreeMap<usize, Past>,
    redacts: bool,
}

impl Windows {
    /// Remembers where a window is.
    fn add(&mut self, window: &Window, place: Place<'_>) {
        if self.files.last().is_none_or(|file| file != place.file) {
            self.files.push(place.file.into());
        }
        let number = self.places.len();
        self.places.push((self.files.len() - 1, place.line));
        self.pasts.insert(number, Past::of(window));
        self.forget_all_but(number);
    }

    fn forget_all_but(&mut self, last: usize) {
        let first = last.saturating_sub(History::MOST);
        self.pasts.retain(|number, _| (first..=last).contains(number));
    }

    /// Shows the window `number`, from 0: whether it could. One that cannot be read any more leaves the one that is
    /// shown.
    fn show(&mut self, number: usize, screen: &mut OnScreen) -> bool {
        match self.read(number) {
            Ok((window, history)) => {
                let [number, count] = [number + 1, self.places.len()].map(|n| n as u64);
                screen.change(|live| live.show_stored(window, history, number, count));
                true
            }
            Err(e) => {
                let file = self.files[self.places[number].0].display().to_string();
                screen.note(&format!("cannot read {file}: {}", clean(&e.to_string(), 300)));
                false
            }
        }
    }

    /// A window, and what came before it, as far as that can still be read: a watch that goes on removes its oldest
    /// file.
    fn read(&mut self, number: usize) -> io::Result<(Window, History)> {
        self.forget_all_but(number);
        let mut history = History::default();
        for before in number.saturating_sub(History::MOST)..number {
            if let Some(past) = self.past(before) {
                history.add(past.clone());
            }
        }
        let window = self.window(number)?;
        self.pasts.insert(number, Past::of(&window));
        Ok((window, history))
    }

    /// What is remembered of a window; `None` if it cannot be read any more.
    fn past(&mut self, number: usize) -> Option<&Past> {
        if !self.pasts.contains_key(&number) {
            let past = Past::of(&self.window(number).ok()?);
            self.pasts.insert(number, past);
        }
        self.pasts.get(&number)
    }

    fn window(&self, number: usize) -> io::Result<Window> {
        let (file, line) = self.places[number];
        let mut input = BufReader::new(regular(&self.files[file])?);
        for _ in 1..line {
            input.skip_until(b'\n')?;
        }
        let mut bytes = Vec::new();
        input.take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut bytes)?;
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let mut window = packed::read(line).map_err(io::Error::other)?;
        if self.redacts {
            redact_window(&mut window);
        }
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wakescope_core::watch::{OwnCost, SCHEMA};
    use wakescope_testing::Folder;

    use super::*;

    /// A folder whose oldest file was removed by the watch: all other windows were said to be unreadable, too, with the
    /// name of a file that was there.
    #[test]
    fn windows_are_shown_also_when_those_before_them_are_gone() {
        let folder = Folder::new("stepping");
        let mut windows = Windows::default();
        for number in 0..3_u64 {
            let window = Window {
                schema: SCHEMA.into(),
                started: format!("2026-11-21T0{number}:00:00Z"),
                begin_ns: number * 3_600_000_000_000,
                window_ns: 1_000_000_000,
                own_cost: OwnCost { cpus: 1, ..OwnCost::default() },
                ..Window::default()
            };
            let file = folder.join(format!("{number}.jsonl"));
            fs::write(&file, packed::line(&window).unwrap().text).unwrap();
            windows.add(&window, Place { file: &file, line: 1 });
        }
        // As when a view is long: nothing is remembered.
        let at = |windows: &mut Windows, number| {
            windows.pasts.clear();
            windows.read(number).map(|(window, _)| window.begin_ns / 3_600_000_000_000)
        };
        assert_eq!([0, 1, 2].map(|number| at(&mut windows, number).unwrap()), [0, 1, 2]);
        fs::remove_file(folder.join("0.jsonl")).unwrap();
        assert!(at(&mut windows, 0).is_err());
        assert_eq!([1, 2].map(|number| at(&mut windows, number).unwrap()), [1, 2]);
    }

    #[test]
    fn steps_end_at_the_first_and_the_last() {
        let to = |at, steps| stepped(at, steps, 5);
        assert_eq!([to(2, -1), to(2, 1), to(0, -1), to(4, 1)], [1, 3, 0, 4]);
        assert_eq!([to(2, i64::MIN), to(2, i64::MAX)], [0, 4]);
    }
}
