//! What an explanation rests on: what was seen, what was not, and what was lost.

use wakescope_core::explain::Explanation;
use wakescope_core::run::Run;
use wakescope_core::units::grouped;

use super::{WIDTH, anew, bound, sections};
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
