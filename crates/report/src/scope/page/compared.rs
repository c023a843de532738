//! What `explain` said, against what the emulator saw.

use wakescope_core::run::TimeDomain;
use wakescope_core::scope::Scope;
use wakescope_core::scope::explained::Explained;
use wakescope_core::scope::first_blame::FirstBlame;

use crate::html::element::{Column, paragraph, table, text};
use crate::html::values::caption;
use crate::quantity::capital;
use crate::scope::{explained, first_blame};

/// Of sections, and of the latest wakeups.
pub(super) fn both(scope: &Scope) -> String {
    let of_sections = scope.explained.as_ref().map_or_else(String::new, sections);
    of_sections + &scope.first_blame.as_ref().map_or_else(String::new, latest)
}

fn sections(of: &Explained) -> String {
    let column =
        |(number, title)| (title, if number == 0 { Column::Words } else { Column::Number });
    let head: Vec<(&str, Column)> = (0..).zip(explained::HEAD).map(column).collect();
    let cells =
        of.kinds.iter().map(|kind| explained::row(kind).iter().map(|cell| text(cell)).collect());
    let cells: Vec<Vec<String>> = cells.collect();
    let title = caption(&capital(&explained::title(of)), TimeDomain::Virtual);
    table(&title, &head, &cells) + &paragraph("hint", &text(&explained::blamed_first(of)))
}

fn latest(of: &FirstBlame) -> String {
    let sentences =
        [capital(&first_blame::title(of)) + "."].into_iter().chain(first_blame::sentences(of));
    let sentences: String = sentences.map(|sentence| paragraph("hint", &text(&sentence))).collect();
    let others: String = of
        .others
        .iter()
        .map(|other| format!("<li>{}</li>", text(&first_blame::line(other))))
        .collect();
    if others.is_empty() { sentences } else { format!("{sentences}<ul>{others}</ul>\n") }
}
