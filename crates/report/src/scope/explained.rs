//! What `explain` said of late wakeups, against the sections that were seen, as a table.

use std::fmt::Write;

use wakescope_core::scope::explained::{Explained, SharesOfKind};
use wakescope_core::units::{SpanNs, counted, grouped};

use super::{WIDTH, name};
use crate::findings::wrapped;
use crate::style::Style;
use crate::table::columns;

pub(super) const HEAD: [&str; 8] =
    ["blamed on", "shares", "in one", "beside", "named", "too long: min", "p50", "max"];

/// A row for each kind of section, and a sentence on what was blamed first.
pub(super) fn table(explained: &Explained, style: Style) -> String {
    let mut out = format!("{}\n", style.strong(&format!(" {}", title(explained))));
    let rows = explained.kinds.iter().map(row);
    let all: Vec<Vec<String>> = [HEAD.map(String::from).into()].into_iter().chain(rows).collect();
    let laid_out = columns(&all, true);
    let mut lines = laid_out.lines();
    if let Some(head) = lines.next() {
        let _ = writeln!(out, "{}", style.faint(head));
    }
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, " {}", wrapped(&blamed_first(explained), WIDTH - 2, " "));
    out
}

pub(super) fn title(explained: &Explained) -> String {
    format!(
        "explain against the sections: {} of {} compared",
        grouped(explained.compared),
        counted(explained.late, "late wakeup"),
    )
}

/// Of how many wakeups what was blamed first is not what took longest.
pub(super) fn blamed_first(explained: &Explained) -> String {
    format!(
        "A section took more than half of the wakeup latency, and explain blames something else first: \
         {}. Explain blames a section first, which took less than half of that: {}.",
        counted(explained.section_not_first, "wakeup"),
        counted(explained.first_not_section, "wakeup"),
    )
}

pub(super) fn row(kind: &SharesOfKind) -> Vec<String> {
    let difference = |of: fn(&wakescope_core::scope::explained::Spread) -> i64| {
        kind.longer_ns.as_ref().map_or_else(|| "–".into(), |spread| signed(of(spread)))
    };
    let beside = kind.shares.saturating_sub(kind.in_section);
    let longest = kind.longest_beside_ns.map(|ns| format!(", ≤ {}", SpanNs(ns)));
    vec![
        name(kind.kind).into(),
        grouped(kind.shares),
        grouped(kind.in_section),
        grouped(beside) + &longest.unwrap_or_default(),
        grouped(kind.named),
        difference(|spread| spread.min),
        difference(|spread| spread.p50),
        difference(|spread| spread.max),
    ]
}

/// `−56 ns`
pub(super) fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "" };
    format!("{sign}{}", SpanNs(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wakescope_core::scope::Kind;
    use wakescope_core::scope::explained::Spread;

    use super::*;

    #[test]
    fn shares_are_a_row_for_each_kind() {
        let irqs = SharesOfKind {
            kind: Kind::IrqsOff,
            shares: 197,
            in_section: 97,
            longest_beside_ns: Some(35),
            named: 90,
            longer_ns: Some(Spread { min: -112, p50: -55, max: -9 }),
        };
        let preempt = SharesOfKind {
            kind: Kind::PreemptOff,
            shares: 3,
            in_section: 3,
            longest_beside_ns: None,
            named: 0,
            longer_ns: Some(Spread { min: 90, p50: 990, max: 2_170 }),
        };
        let none = SharesOfKind { shares: 0, in_section: 0, longer_ns: None, ..preempt.clone() };
        let explained = Explained {
            late: 297,
            compared: 296,
            kinds: vec![irqs, preempt, none],
            first_not_section: 1,
            ..Explained::default()
        };
        // The first line is there for the margin of the others.
        expect![[r#"
            explained:
             explain against the sections: 296 of 297 late wakeups compared
             blamed on       shares  in one        beside  named  too long: min     p50      max
             interrupts off     197      97  100, ≤ 35 ns     90        −112 ns  −55 ns    −9 ns
             preemption off       3       3             0      0          90 ns  990 ns  2.17 µs
             preemption off       0       0             0      0              –       –        –
             A section took more than half of the wakeup latency, and explain blames something else first: 0
             wakeups. Explain blames a section first, which took less than half of that: 1 wakeup.
        "#]]
        .assert_eq(&format!("explained:\n{}", table(&explained, Style::default())));
    }
}
