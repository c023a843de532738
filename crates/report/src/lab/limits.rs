//! Limits in sentences.

use wakescope_core::lab::{CellLimit, Lab};

use super::figures::micros;
use super::names;
use crate::style::clean;

/// How cells stand to a limit, in words.
pub(super) struct LimitLine {
    pub(super) text: String,
    /// Whether all is within it; `None` if that cannot be said.
    pub(super) within: Option<bool>,
}

/// How the cells stand to each limit: what breaks it and what is not known one by one, what is
/// within it in one line.
pub(super) fn lines(lab: &Lab) -> Vec<LimitLine> {
    let mut lines = Vec::new();
    let mut rest = &lab.limits[..];
    while let Some(first) = rest.first() {
        let end = rest.iter().position(|l| l.limit != first.limit).unwrap_or(rest.len());
        add_lines(&rest[..end], &mut lines);
        rest = &rest[end..];
    }
    lines
}

/// `group` is of one limit, and not empty.
fn add_lines(group: &[CellLimit], lines: &mut Vec<LimitLine>) {
    let limit = format!("{} of virtual time", clean(&group[0].limit, 60));
    for cell in group.iter().filter(|cell| cell.within == Some(false)) {
        lines.push(LimitLine {
            text: format!("{limit} broken: {}", observed(cell)),
            within: Some(false),
        });
    }
    for cell in group.iter().filter(|cell| cell.within.is_none()) {
        let (place, reason) = (place(cell), clean(&cell.reason, 240));
        lines.push(LimitLine {
            text: format!("{limit} undecided: {place}: {reason}"),
            within: None,
        });
    }
    let within: Vec<&CellLimit> = group.iter().filter(|cell| cell.within == Some(true)).collect();
    if let Some(most) = within.iter().max_by_key(|cell| cell.observed_ns) {
        let who = match (within.len(), group.len()) {
            (1, 1) => String::new(),
            (some, all) if some == all => format!(" by all {all}"),
            (some, all) => format!(" by {some} of {all}"),
        };
        let text = format!("{limit} kept{who}: at most {}", observed(most));
        lines.push(LimitLine { text, within: Some(true) });
    }
}

/// `113 virtual µs, 6.1-cloud/none find, seed 4`
fn observed(cell: &CellLimit) -> String {
    let value = cell.observed_ns.map_or("–".into(), |ns| micros(ns as f64));
    let seed = cell.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
    format!("{value} virtual µs, {}{seed}", place(cell))
}

fn place(cell: &CellLimit) -> String {
    format!("{} {}", names::arm(&cell.arm), names::load(&cell.load))
}
