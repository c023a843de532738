//! Sections and locks as tables, longest first.

use wakescope_core::run::TimeDomain;
use wakescope_core::scope::locks::{EpisodeLocks, LockRow, Locks};
use wakescope_core::scope::{Kind, Row, Scope};
use wakescope_core::units::counted;

use crate::html::element::{Column, folded, name, paragraph, table, text};
use crate::html::values::caption;
use crate::quantity::capital;
use crate::scope::{NAME, figures, in_functions, locks, place, rows, title};

/// The longest sentence that is made of names.
const SENTENCE: usize = 4 * NAME;

/// Both kinds of sections.
pub(super) fn sections(scope: &Scope, most: usize) -> String {
    Kind::ALL.map(|kind| of_kind(scope, kind, most)).concat()
}

fn of_kind(scope: &Scope, kind: Kind, most: usize) -> String {
    let all: Vec<&Row> = rows(scope, kind).collect();
    let cells = |row: &&Row| {
        let ends = [place(&row.began), format!("… {}", place(&row.ended))];
        let cell = lines(&ends, row.spent.as_ref().map(in_functions));
        cells(cell, &figures(&row.lengths))
    };
    let shown: Vec<Vec<String>> = all.iter().take(most).map(cells).collect();
    titled(&title(scope, kind), "began in … ended in", &shown, all.len())
}

/// Locks that spin, and locks that sleep.
pub(super) fn locks(of: &Locks, most: usize) -> String {
    [true, false].map(|spins| locks_of_kind(of, spins, most)).concat()
}

fn locks_of_kind(of: &Locks, spins: bool, most: usize) -> String {
    let all = locks::rows(of, spins);
    let cells = |row: &&LockRow| {
        let ends = [place(&row.taken), format!("… {}", place(&row.released))];
        let more = [Some(locks::identity(row)), locks::within(row), locks::waited(row)];
        cells(lines(&ends, more.into_iter().flatten()), &figures(&row.held))
    };
    let shown: Vec<Vec<String>> = all.iter().take(most).map(cells).collect();
    titled(&locks::title(&all, spins), "taken in … released in", &shown, all.len())
}

/// A cell of several lines, of which those that tell `more` are faint.
fn lines(ends: &[String], more: impl IntoIterator<Item = String>) -> String {
    let ends = ends.iter().map(|line| name(line, SENTENCE));
    let more = more.into_iter();
    let more = more.map(|line| format!("<span class=\"hint\">{}</span>", name(&line, SENTENCE)));
    ends.chain(more).collect::<Vec<_>>().join("<br>")
}

fn cells(first: String, figures: &[String]) -> Vec<String> {
    [first].into_iter().chain(figures.iter().map(|figure| text(figure))).collect()
}

/// A table, and how many of `all` rows it lacks.
fn titled(title: &str, first: &str, cells: &[Vec<String>], all: usize) -> String {
    let title = capital(title);
    if cells.is_empty() {
        return paragraph("hint", &text(&format!("{title}.")));
    }
    let more = match all - cells.len() {
        0 => String::new(),
        more => format!("{}: --rows N, --json", counted(more as u64, "more row")),
    };
    let figures = ["longest", "p99", "count", "total"].map(|title| (title, Column::Number));
    let head = [&[(first, Column::Words)], &figures[..]].concat();
    table(&caption(&title, TimeDomain::Virtual), &head, cells) + &paragraph("hint", &text(&more))
}

/// Which locks were held while each of the latest wakeups waited.
pub(super) fn locks_of_episodes(of: &Locks) -> String {
    let list = |(number, episode): (usize, &EpisodeLocks)| {
        let locks = episode.locks.iter();
        let items =
            locks.map(|lock| format!("<li>{}</li>", name(&locks::of_episode(lock), SENTENCE)));
        let items: String = items.collect();
        let items = if items.is_empty() { "<li>none</li>".into() } else { items };
        format!("<p>#{number}</p>\n<ul>{items}</ul>\n")
    };
    let lists: String = (1..).zip(&of.in_episodes).map(list).collect();
    if lists.is_empty() { lists } else { folded("Locks held while they waited", &lists) }
}
