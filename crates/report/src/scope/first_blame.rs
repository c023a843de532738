//! What `explain` blamed first for the latest wakeups, against what was seen of them.

use std::fmt::Write;

use wakescope_core::scope::first_blame::{FirstBlame, OtherBlame};
use wakescope_core::units::{SpanNs, counted, grouped};

use super::WIDTH;
use super::explained::signed;
use crate::explain::named;
use crate::findings::wrapped;
use crate::style::Style;

/// Wakeups with another blame that are named.
const NAMED: usize = 6;

/// A sentence on how many are the same, and a line for each that is not.
pub(super) fn text(first: &FirstBlame, style: Style) -> String {
    let mut out = format!("{}\n", style.strong(&format!(" {}", title(first))));
    for sentence in sentences(first) {
        let _ = writeln!(out, " {}", wrapped(&sentence, WIDTH - 2, " "));
    }
    for other in first.others.iter().take(NAMED) {
        let _ = writeln!(out, " {}", wrapped(&line(other), WIDTH - 2, "   "));
    }
    if let Some(more @ 1..) = first.others.len().checked_sub(NAMED) {
        let hidden = format!(" {}: --json", counted(more as u64, "more wakeup"));
        let _ = writeln!(out, "{}", style.faint(&hidden));
    }
    out
}

pub(super) fn title(first: &FirstBlame) -> String {
    let compared = counted(first.wakeups, "latest wakeup");
    format!("explain against what was seen: {compared} compared")
}

/// How many are the same.
pub(super) fn sentences(first: &FirstBlame) -> Vec<String> {
    let FirstBlame { wakeups, held_by_nothing, same_cause, same_culprit, longer_ns, .. } = first;
    let mut all = Vec::new();
    if *held_by_nothing > 0 {
        all.push(format!("Held up by nothing, as both say: {}.", grouped(*held_by_nothing)));
    }
    if *wakeups == 0 {
        return all;
    }
    let longer = longer_ns.map(|longer| {
        let [min, p50, max] = [longer.min, longer.p50, longer.max].map(signed);
        format!(" Its time for that cause is too long by {min} (min), {p50} (p50), {max} (max).")
    });
    all.push(format!(
        "Blamed on the same cause first: {}; on the same culprit, too: {}.{}",
        grouped(*same_cause),
        grouped(*same_culprit),
        longer.unwrap_or_default()
    ));
    all
}

/// `late by 11.0 µs: explain says 4.10 µs interrupts off in f, seen were 4.20 µs preemption off in g`
pub(super) fn line(other: &OtherBlame) -> String {
    format!(
        "late by {}: explain says {} {}, seen were {} {}",
        SpanNs(other.wakeup_latency_ns),
        SpanNs(other.said_ns),
        named(other.said.blamed()),
        SpanNs(other.seen_ns),
        named(other.seen.blamed()),
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wakescope_core::explain::{Answer, Cause, Culprit, Function};
    use wakescope_core::scope::explained::Spread;

    use super::*;

    #[test]
    fn wakeups_with_another_blame_are_named() {
        let answer = |cause, name: &str| {
            let function = Function { name: name.into(), module: None };
            Answer { cause, culprit: Culprit::Function(function), ..Answer::default() }
        };
        let other = OtherBlame {
            expiry_ns: 5,
            wakeup_latency_ns: 11_000,
            said: answer(Cause::IrqOff, "free_bulk"),
            said_ns: 4_100,
            seen: answer(Cause::PreemptOff, "undo_range"),
            seen_ns: 4_200,
        };
        let first = FirstBlame {
            wakeups: 20,
            held_by_nothing: 3,
            same_cause: 13,
            same_culprit: 13,
            longer_ns: Some(Spread { min: -56, p50: 9, max: 12 }),
            causes: Vec::new(),
            others: vec![other; 7],
        };
        let text = text(&first, Style::default());
        let lines: Vec<&str> = text.lines().take(5).chain(text.lines().last()).collect();
        // The first line is there for the margin of the others.
        expect![[r#"
            first:
             explain against what was seen: 20 latest wakeups compared
             Held up by nothing, as both say: 3.
             Blamed on the same cause first: 13; on the same culprit, too: 13. Its time for that cause is too
             long by −56 ns (min), 9 ns (p50), 12 ns (max).
             late by 11.0 µs: explain says 4.10 µs interrupts off in free_bulk, seen were 4.20 µs preemption
             1 more wakeup: --json
        "#]].assert_eq(&format!("first:\n{}\n", lines.join("\n")));
        let nothing = FirstBlame { held_by_nothing: 3, ..FirstBlame::default() };
        expect![[r#"
            first:
             explain against what was seen: 0 latest wakeups compared
             Held up by nothing, as both say: 3.
        "#]]
        .assert_eq(&format!("first:\n{}", super::text(&nothing, Style::default())));
    }
}
