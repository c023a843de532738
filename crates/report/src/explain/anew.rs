//! What came of attributing the stored episodes of a run anew.

use wakescope_core::explain::{Anew, Change, Explanation};
use wakescope_core::run::TimeDomain;
use wakescope_core::units::{counted, grouped};

use super::{WIDTH, phrases};
use crate::domain::span;
use crate::findings::wrapped;
use crate::style::Style;

/// The most changes that are listed.
const MOST: usize = 10;

/// How many late wakeups were attributed anew, and where the answer changed; empty of a run of which
/// none were.
pub(super) fn text(explanation: &Explanation, domain: TimeDomain, style: Style) -> String {
    let Some(anew) = &explanation.anew else { return String::new() };
    let Anew { episodes, changed, changed_net_of_steal, damaged_lines, excess_ns, changes } = anew;
    let net = match changed_net_of_steal {
        0 => String::new(),
        net => format!(", {} of wakeups that are late only without stolen time", grouped(*net)),
    };
    let answers = match changed.saturating_add(*changed_net_of_steal) {
        0 => "all answers are as recorded".to_owned(),
        all => format!(
            "{} changed{net} (--as-recorded shows the recorded ones)",
            counted(all, "answer")
        ),
    };
    let late = counted(explanation.late, "late wakeup");
    let first = format!("attributed anew: {} of {late}; {answers}", grouped(*episodes));
    let mut out = format!(" {}\n", wrapped(&first, WIDTH - 1, "   "));
    for change in changes.iter().take(MOST) {
        out.push_str(&format!("   {}\n", wrapped(&line(change, domain), WIDTH - 3, "     ")));
    }
    if changes.len() > MOST {
        out.push_str(&format!("   … {} more\n", grouped((changes.len() - MOST) as u64)));
    }
    let mut warn = |text: String| {
        out.push_str(&format!(" {}\n", style.warn(&wrapped(&text, WIDTH - 1, "   "))));
    };
    if *damaged_lines > 0 {
        warn(format!(
            "not used: {} of episodes.jsonl; the causes of these wakeups are as recorded",
            counted(*damaged_lines, "damaged line")
        ));
    }
    if *excess_ns > 0 {
        warn(format!(
            "episodes.jsonl contradicts the record: its recorded shares exceed the recorded causes \
             by {}",
            span(*excess_ns, domain)
        ));
    }
    out
}

/// `2 episodes: interrupts off in f → softirq NET_RX, 231 µs`
fn line(change: &Change, domain: TimeDomain) -> String {
    let Change { before, after, episodes, ns } = change;
    let (before, after) = (phrases::named(before.blamed()), phrases::named(after.blamed()));
    let episodes = counted(*episodes, "episode");
    match before == after {
        true => format!("{episodes}: {before}, known in another way"),
        false => format!("{episodes}: {before} → {after}, {}", span(*ns, domain)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::explain::{Answer, Cause, Culprit, Function};

    #[track_caller]
    fn check(anew: Anew, want: &str) {
        let explanation = Explanation { late: 43, anew: Some(anew), ..Explanation::default() };
        assert_eq!(text(&explanation, TimeDomain::Real, Style::default()), want);
    }

    fn answer(cause: Cause, culprit: Culprit) -> Answer {
        Answer { cause, culprit, ..Answer::default() }
    }

    #[test]
    fn where_nothing_changed_one_line_says_so() {
        let none = Explanation::default();
        assert_eq!(text(&none, TimeDomain::Real, Style::default()), "");
        check(
            Anew { episodes: 41, ..Anew::default() },
            " attributed anew: 41 of 43 late wakeups; all answers are as recorded\n",
        );
    }

    #[test]
    fn changes_are_told_with_both_answers() {
        let function = Culprit::Function(Function { name: "f".into(), module: None });
        let before = answer(Cause::IrqOff, function);
        let after = answer(Cause::Softirq, Culprit::softirq("NET_RX"));
        let change = Change { before: before.clone(), after, episodes: 2, ns: 231_000 };
        let other = Change { after: before, episodes: 1, ..change.clone() };
        check(
            Anew {
                episodes: 41,
                changed: 3,
                changed_net_of_steal: 0,
                damaged_lines: 1,
                excess_ns: 2_000,
                changes: vec![change, other],
            },
            " attributed anew: 41 of 43 late wakeups; 3 answers changed (--as-recorded shows the \
             recorded ones)\n   2 episodes: interrupts off in f → softirq NET_RX, 231 µs\n   \
             1 episode: interrupts off in f, known in another way\n not used: 1 damaged line of \
             episodes.jsonl; the causes of these wakeups are as recorded\n episodes.jsonl \
             contradicts the record: its recorded shares exceed the recorded causes by 2.00 \
             µs\n",
        );
    }

    #[test]
    fn answers_of_wakeups_that_are_not_among_the_late_ones_are_counted_too() {
        check(
            Anew { episodes: 41, changed: 1, changed_net_of_steal: 2, ..Anew::default() },
            " attributed anew: 41 of 43 late wakeups; 3 answers changed, 2 of wakeups that are late \
             only without\n   stolen time (--as-recorded shows the recorded ones)\n",
        );
    }

    #[test]
    fn a_hostile_record_fills_no_screen() {
        let culprit = Culprit::Function(Function { name: "x".repeat(9_000), module: None });
        let change = Change { before: answer(Cause::Irq, culprit), ..Change::default() };
        let anew = Anew { changes: vec![change; 1_000], ..Anew::default() };
        let explanation = Explanation { anew: Some(anew), ..Explanation::default() };
        let text = text(&explanation, TimeDomain::Real, Style::default());
        assert!(text.lines().count() < 40 && text.contains("… 990 more"), "{text}");
    }
}
