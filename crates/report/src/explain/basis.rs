//! What an explanation rests on: what was seen, what was not, and what was lost.

use wakescope_core::explain::{Explanation, Truth};
use wakescope_core::run::Run;
use wakescope_core::units::{counted, grouped};

use super::{WIDTH, anew, bound, percent, sections};
use crate::findings::wrapped;
use crate::style::{Style, clean};

/// The most hooks that are named, and the longest name of one.
const MOST_NAMED: usize = 16;
const LONGEST_NAMED: usize = 80;

/// The longest sections, what was used to see all this, what this kernel does not show, and what was
/// lost.
pub(super) fn text(run: &Run, explanation: &Explanation, style: Style) -> String {
    let mut out = String::new();
    if let Some(longest) = &explanation.sections {
        out.push_str(&sections::text(longest, run.time_domain));
    }
    if let Some(bound) = &explanation.bound {
        out.push_str(&bound::text(run, bound, style));
    }
    out.push_str(&listed("traced with: ", &explanation.seen_with));
    out.push_str(&listed("not traced: ", &explanation.not_seen));
    out.push_str(&losses_text(explanation, style));
    out.push_str(
        &explanation.truth.as_ref().map(|truth| truth_text(truth, style)).unwrap_or_default(),
    );
    out.push_str(&anew::text(explanation, run.time_domain, style));
    out
}

/// A list of names on as few lines as they take; empty without names.
fn listed(title: &str, names: &[String]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(MOST_NAMED).map(|name| clean(name, LONGEST_NAMED)).collect();
    if names.len() > MOST_NAMED {
        shown.push(format!("{} more", grouped((names.len() - MOST_NAMED) as u64)));
    }
    if shown.is_empty() {
        return String::new();
    }
    format!(" {}\n", wrapped(&format!("{title}{}", shown.join(", ")), WIDTH - 1, "   "))
}

/// How right the explanations of a simulated run are.
fn truth_text(truth: &Truth, style: Style) -> String {
    let &Truth { wakeups, uncompared, .. } = truth;
    let verdicts = [
        (truth.right, "right"),
        (truth.other_function, "another function of the right section"),
        (truth.wrong_bound, "a wrong bound"),
        (truth.wrong, "wrong"),
        (truth.unexplained, "unexplained"),
    ];
    let verdicts = verdicts.into_iter().filter(|(count, _)| *count > 0);
    let verdicts: Vec<String> =
        verdicts.map(|(count, verdict)| format!("{verdict} {}", grouped(count))).collect();
    let first = format!(
        "compared with the truth of the simulation, the largest share of {}: {}",
        counted(wakeups, "late wakeup"),
        if verdicts.is_empty() { "none".into() } else { verdicts.join(", ") },
    );
    let mut out = format!(" {}\n", wrapped(&first, WIDTH - 1, "   "));
    let title = if uncompared > 0 {
        let text = format!(
            "not compared, because too much happened while they waited: {} of {} late wakeups",
            grouped(uncompared),
            grouped(wakeups.saturating_add(uncompared)),
        );
        out.push_str(&format!(" {}\n", style.warn(&wrapped(&text, WIDTH - 1, "   "))));
        "the others truly were: "
    } else {
        "it truly was: "
    };
    let shares = percent::of(&truth.causes.iter().map(|row| row.ns).collect::<Vec<_>>());
    let rows = truth.causes.iter().zip(shares).filter(|(row, _)| row.ns > 0).take(MOST_NAMED);
    let rows: Vec<String> =
        rows.map(|(row, share)| format!("{} {}", row.cause, share.trim())).collect();
    out + &listed(title, &rows)
}

fn losses_text(explanation: &Explanation, style: Style) -> String {
    let Explanation { records, lost_records: lost, late, explained, .. } = *explanation;
    let text =
        format!("lost records: {} of {}", grouped(lost), grouped(records.saturating_add(lost)));
    let mut out = format!(" {}\n", if lost > 0 { style.warn(&text) } else { text });
    if explained < late {
        let text = format!(
            "late wakeups not explained: {} of {}",
            grouped(late - explained),
            grouped(late)
        );
        out.push_str(&format!(" {}\n", style.warn(&text)));
    }
    if explanation.late_not_followed > 0 {
        let text = format!(
            "late wakeups not followed: {} of {}",
            grouped(explanation.late_not_followed),
            grouped(late)
        );
        out.push_str(&format!(" {}\n", style.warn(&text)));
    }
    out
}
