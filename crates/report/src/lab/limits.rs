//! Limits in sentences.

use wakescope_core::lab::{CellLimit, Lab};
use wakescope_core::run::TimeDomain;

use super::names;
use crate::observed;
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
    for cell in group.iter().filter(|cell| cell.within == Some(false)) {
        let (limit, observed) = limit_and_observed(cell);
        lines.push(LimitLine { text: format!("{limit} broken: {observed}"), within: Some(false) });
    }
    for cell in group.iter().filter(|cell| cell.within.is_none()) {
        let (place, reason) = (place(cell), clean(&cell.reason, 240));
        let (limit, _) = limit_and_observed(cell);
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
        let (limit, observed) = limit_and_observed(most);
        let text = format!("{limit} kept{who}: at most {observed}");
        lines.push(LimitLine { text, within: Some(true) });
    }
}

/// `max ≤ 100 µs of virtual time`, `113 virtual µs, 6.1-cloud/none find, seed 4`
fn limit_and_observed(cell: &CellLimit) -> (String, String) {
    let CellLimit { limit, limit_ns, observed_ns, .. } = cell;
    let (limit, observed) =
        observed::limit_and_observed(limit, *limit_ns, *observed_ns, TimeDomain::Virtual);
    let seed = cell.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
    (format!("{limit} of virtual time"), format!("{observed}, {}{seed}", place(cell)))
}

fn place(cell: &CellLimit) -> String {
    format!("{} {}", names::arm(&cell.arm), names::load(&cell.load))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit_ns: u64, observed_ns: u64, want: &str) {
        let limit = CellLimit {
            limit: "max ≤ 100 µs".into(),
            limit_ns,
            load: "find".into(),
            observed_ns: Some(observed_ns),
            within: Some(observed_ns <= limit_ns),
            ..CellLimit::default()
        };
        let lines = lines(&Lab { limits: vec![limit], ..Lab::default() });
        assert!(lines[0].text.starts_with(want), "{}", lines[0].text);
    }

    /// Both were `100`.
    #[test]
    fn what_breaks_a_limit_does_not_look_equal_to_it() {
        check(100_000, 100_400, "max ≤ 100 µs of virtual time broken: 100.4 virtual µs, ");
        check(100_400, 100_300, "max ≤ 100.4 µs of virtual time kept: at most 100.3 virtual µs, ");
        check(100_000, 114_000, "max ≤ 100 µs of virtual time broken: 114 virtual µs, ");
    }
}
