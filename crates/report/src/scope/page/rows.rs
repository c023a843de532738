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
    let shown = &all[..most.min(all.len())];
    let has_functions = shown.iter().any(|row| row.spent.is_some());
    let mut head = vec![("began in", Column::Words), ("ended in", Column::Words)];
    head.extend(FIGURES);
    if has_functions {
        head.push(("time of the longest ones, in functions", Column::Words));
    }
    let cells = |row: &&Row| {
        let mut cells =
            vec![name(&place(&row.began), SENTENCE), name(&place(&row.ended), SENTENCE)];
        cells.extend(figures(row).iter().map(|figure| text(figure)));
        if has_functions {
            let spent = row.spent.as_ref().map(in_functions);
            cells.push(spent.map_or_else(String::new, |spent| name(&spent, SENTENCE)));
        }
        cells
    };
    let cells: Vec<Vec<String>> = shown.iter().map(cells).collect();
    titled(&title(scope, kind), &head, &cells, all.len())
}

/// Locks that spin, and locks that sleep.
pub(super) fn locks(of: &Locks, most: usize) -> String {
    [true, false].map(|spins| locks_of_kind(of, spins, most)).concat()
}

fn locks_of_kind(of: &Locks, spins: bool, most: usize) -> String {
    let all = locks::rows(of, spins);
    let shown = &all[..most.min(all.len())];
    let has = |of: fn(&LockRow) -> Option<String>| shown.iter().any(|row| of(row).is_some());
    let mut head =
        vec![("lock", Column::Words), ("taken in", Column::Words), ("released in", Column::Words)];
    head.extend(FIGURES);
    let more: Vec<_> =
        [("within", locks::within as fn(&LockRow) -> _), ("waited for", locks::waited)]
            .into_iter()
            .filter(|(_, of)| has(*of))
            .collect();
    head.extend(more.iter().map(|(title, _)| (*title, Column::Words)));
    let cells = |row: &&LockRow| {
        let mut cells = vec![name(&locks::identity(row), SENTENCE)];
        cells.extend([&row.taken, &row.released].map(|at| name(&place(at), SENTENCE)));
        cells.extend(locks::figures(row).iter().map(|figure| text(figure)));
        cells.extend(more.iter().map(|(_, of)| name(&of(row).unwrap_or_default(), SENTENCE)));
        cells
    };
    let cells: Vec<Vec<String>> = shown.iter().map(cells).collect();
    titled(&locks::title(&all, spins), &head, &cells, all.len())
}

const FIGURES: [(&str, Column); 4] = [
    ("longest", Column::Number),
    ("p99", Column::Number),
    ("count", Column::Number),
    ("total", Column::Number),
];

/// A table, and how many of `all` rows it lacks.
fn titled(title: &str, head: &[(&str, Column)], cells: &[Vec<String>], all: usize) -> String {
    let title = capital(title);
    if cells.is_empty() {
        return paragraph("hint", &text(&format!("{title}.")));
    }
    let more = match all - cells.len() {
        0 => String::new(),
        more => format!("{}: --rows N, --json", counted(more as u64, "more row")),
    };
    table(&caption(&title, TimeDomain::Virtual), head, cells) + &paragraph("hint", &text(&more))
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
