//! Stored windows, shown as they were.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use wakescope_core::date::Date;
use wakescope_core::redact::redact_window;
use wakescope_core::units::{SpanNs, counted};
use wakescope_core::watch::Window;
use wakescope_core::watch::extent::{Extent, Timeline};
use wakescope_core::watch::packed::{LineError, read_lines};
use wakescope_core::watch::sum::Sum;
use wakescope_report::style::{Style, clean};
use wakescope_report::watch::{self as shown, History, Past, View};
use wakescope_store::{Refused, WindowFiles, window_files};

use super::stepping;
use crate::input::regular;
use crate::{Failure, Outcome, output};

/// Which stored windows: those that began at or after `since`, and ended by `until`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    pub(crate) since: Option<Date>,
    pub(crate) until: Option<Date>,
}

/// How windows are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Each as lines of text, and all together at the end.
    Blocks(View),
    /// All together.
    Table(View),
    /// Each as a line of JSON.
    Json,
    /// All together as a line of JSON.
    Sum,
}

/// Shows the windows of the folder at `path`.
pub(super) fn run(
    path: &Path,
    range: Range,
    redacts: bool,
    form: Form,
) -> Result<Outcome, Failure> {
    if let Form::Blocks(view) = form {
        if output::can_take_terminal() {
            if let Some(outcome) = stepping::run(path, range, redacts, view)? {
                return Ok(outcome);
            }
        }
    }
    let mut history = History::default();
    let all = Stored::read(path, range, redacts, |window, _| match form {
        Form::Json => output::print_on(&super::json(window)?),
        Form::Table(_) | Form::Sum => Ok(true),
        Form::Blocks(view) => {
            let heading = shown::stored_heading(window);
            let block = shown::block(window, view, &history, usize::MAX);
            history.add(Past::of(window));
            output::print_on(&format!("{heading}\n{block}\n\n"))
        }
    })?;
    match form {
        Form::Blocks(view) | Form::Table(view) => {
            output::print(&all.table(view, output::style()))?;
        }
        Form::Sum => output::print(&super::json(&all.total)?)?,
        Form::Json => {}
    }
    Ok(Outcome::Done)
}

/// Where a stored window is: the file, and the line in it, from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'f> {
    pub(crate) file: &'f Path,
    pub(crate) line: u64,
}

/// Stored windows together.
pub(crate) struct Stored {
    pub(crate) total: Window,
    extent: Extent,
}

impl Stored {
    /// Reads those in `range`, and gives each with its place to `each` until that is false. What is cut is
    /// named.
    pub(crate) fn read(
        path: &Path,
        range: Range,
        redacts: bool,
        mut each: impl FnMut(&Window, Place<'_>) -> Result<bool, Failure>,
    ) -> Result<Self, Failure> {
        let cannot = |path: &Path, e| Failure::new(format!("cannot read {}: {e}", path.display()));
        let mut sum = Sum::default();
        let mut timeline = Timeline::default();
        let mut there: Option<(Date, Date)> = None;
        let mut seen: HashMap<u64, (PathBuf, u64)> = HashMap::new();
        let WindowFiles { files, refused } = window_files(path).map_err(|e| {
            cannot(path, e).try_this("name the folder of a watch: wakescope watch --out DIR")
        })?;
        tell_refused(&refused, "skipped");
        for file in files {
            let opened = regular(&file).map_err(|e| cannot(&file, e))?;
            let take = |number, found: Result<Window, LineError>| {
                let window = match found {
                    Ok(window) => window,
                    Err(e @ LineError::Cut) => {
                        output::tell(&format!("{}: line {number}: {e}: skipped", file.display()));
                        return Ok(());
                    }
                    Err(e) => return Err(Stop::Failure(damaged(&file, number, &e))),
                };
                let Some(begin) = Date::parse(&window.started) else {
                    let odd = LineError::Fault("started".into(), "it is no date".into());
                    return Err(Stop::Failure(damaged(&file, number, &odd)));
                };
                let end = begin.after(SpanNs(window.window_ns));
                there = Some(there.map_or((begin, end), |(first, _)| (first, end)));
                let is_before = range.since.is_some_and(|since| begin < since);
                if is_before || range.until.is_some_and(|until| end > until) {
                    return Ok(());
                }
                timeline.add(&window);
                if let Some(before) = seen.insert(mark(&window), (file.clone(), number)) {
                    return Err(Stop::Failure(repeated(&file, number, &window, &before)));
                }
                let place = Place { file: &file, line: number };
                let goes_on = each(&as_shown(&window, redacts), place).map_err(Stop::Failure)?;
                // With the names: after a boot another cgroup may have the ID that one had before.
                sum.add(window);
                if goes_on { Ok(()) } else { Err(Stop::Enough) }
            };
            let read = read_lines(BufReader::new(opened), take).map_err(|e| cannot(&file, e))?;
            match read {
                Ok(()) => {}
                Err(Stop::Enough) => break,
                Err(Stop::Failure(failure)) => return Err(failure),
            }
        }
        match (sum.window(), timeline.extent()) {
            (Some(total), Some(extent)) => {
                let total = as_shown(&total, redacts).into_owned();
                Ok(Self { total, extent })
            }
            _ => Err(none_in(path, there)),
        }
    }

    /// When the first one began, and when the last one would have ended if the clock had not been set.
    pub(crate) fn extent(&self) -> (Date, Date) {
        (self.extent.first, self.extent.end_unless_set())
    }

    /// All of them as a table.
    pub(crate) fn table(&self, view: View, style: Style) -> String {
        shown::stored_table(&self.extent, &self.total, view, style)
    }
}

/// Says what becomes of files that are not believed to be windows.
pub(super) fn tell_refused(refused: &[(PathBuf, Refused)], fate: &str) {
    let Some(((first, why), others)) = refused.split_first() else { return };
    let others = match others.len() {
        0 => String::new(),
        count => format!(", with {}", counted(count as u64, "other file")),
    };
    output::tell(&format!("{}: {why}: {fate}{others}", first.display()));
}

/// What no other window has in common with this one: when it began and how long it is, to the nanosecond,
/// and what was counted.
pub(crate) fn mark(window: &Window) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&window.started, window.begin_ns, window.window_ns).hash(&mut hasher);
    (window.own_cost.agent_ns, window.own_cost.program_runs).hash(&mut hasher);
    for cpu in &window.cpus {
        (cpu.cpu, cpu.switches, cpu.waits.count, cpu.waits.sum_ns).hash(&mut hasher);
    }
    hasher.finish()
}

/// A file that was copied within the folder.
fn repeated(file: &Path, number: u64, window: &Window, (before, line): &(PathBuf, u64)) -> Failure {
    let [file, before] = [file, before].map(|path| clean(&path.display().to_string(), 200));
    let started = clean(&window.started, 30);
    Failure::new(format!(
        "cannot use {file}: line {number}: the window of {started} is also in {before}, line {line}, and \
         would count twice"
    ))
    .try_this("remove one of the two lines, or the file that is a copy")
}

/// The window, without names where these are not to be shown.
fn as_shown(window: &Window, redacts: bool) -> Cow<'_, Window> {
    let mut shown = Cow::Borrowed(window);
    if redacts {
        redact_window(shown.to_mut());
    }
    shown
}

/// Why no more is read.
enum Stop {
    Enough,
    Failure(Failure),
}

fn damaged(file: &Path, number: u64, error: &LineError) -> Failure {
    // The error may quote the file, which may be anybody's.
    let why = clean(&error.to_string(), 300);
    let failure = Failure::new(format!("cannot use {}: line {number}: {why}", file.display()));
    failure.try_this(match error {
        LineError::Schema(_) => "read it with the version of wakescope that wrote it",
        _ => "remove this line, or the file; the others can be read without it",
    })
}

fn none_in(path: &Path, there: Option<(Date, Date)>) -> Failure {
    let path = path.display();
    match there {
        Some((first, end)) => Failure::new(format!("{path} has no whole window in that time"))
            .try_this(format!("those that there are lie between {first} and {end}")),
        None => Failure::new(format!("{path} contains no stored window"))
            .try_this("name the folder of a watch: wakescope watch --out DIR"),
    }
}
