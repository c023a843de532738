//! The answer: what made the worst wakeup late, and of how many that is known.

use wakescope_core::explain::{Cause, Explanation, Share};
use wakescope_core::run::{Episode, Run, TimeDomain};
use wakescope_core::units::grouped;

use super::{Ranked, WIDTH, threshold, words};
use crate::domain::span;
use crate::findings::wrapped;
use crate::style::Style;
use crate::text;

/// The first sentence.
pub(super) fn sentence(run: &Run, ranked: &Ranked, style: Style) -> String {
    let lines = wrapped(&told(run, ranked), WIDTH, "");
    lines.lines().map(|line| style.strong(line) + "\n").collect()
}

fn told(run: &Run, ranked: &Ranked) -> String {
    let domain = run.time_domain;
    let Some(worst) = ranked.first() else { return "No wakeup was seen.".into() };
    let late = format!("Worst wakeup {} late", span(worst.wakeup_latency_ns, domain));
    let Some(explanation) = &run.explanation else {
        return format!("{late}. Why is not known: this run was measured, not explained.");
    };
    match ranked.explained().next() {
        Some((1, _)) => format!("{late}: {}.", because(worst, domain)),
        _ if worst.wakeup_latency_ns < explanation.above_ns => format!(
            "{late}: none was later than {}, so there is nothing to explain.",
            threshold(explanation, domain)
        ),
        Some((_, best)) => format!(
            "{late}, not explained: {}. The worst that is explained: {} late, {}.",
            missing(explanation),
            span(best.wakeup_latency_ns, domain),
            because(best, domain)
        ),
        None => format!("{late}, not explained: {}.", missing(explanation)),
    }
}

/// The largest share of an episode. Which of two equal ones makes no difference to anybody, but
/// must not depend on chance: the first.
fn because(episode: &Episode, domain: TimeDomain) -> String {
    let larger = |a: &'_ &Share, b: &'_ &Share| a.ns >= b.ns;
    let largest = episode.blame.iter().reduce(|a, b| if larger(&a, &b) { a } else { b });
    match largest {
        Some(share) if share.cause == Cause::Unexplained => {
            format!("{} of it unexplained", span(share.ns, domain))
        }
        Some(share) => words::phrase(share, domain),
        None => "unexplained".into(),
    }
}

/// What may be the reason that an episode has no explanation. Which of these it was is not known.
fn missing(explanation: &Explanation) -> String {
    let Explanation { lost_records: lost, not_followed, late, explained, .. } = *explanation;
    let mut reasons = Vec::new();
    if lost > 0 {
        reasons.push(format!(
            "{} of the tracer's records {} lost",
            grouped(lost),
            if lost == 1 { "was" } else { "were" }
        ));
    }
    if not_followed > 0 {
        let were = if not_followed == 1 { "wakeup was" } else { "wakeups were" };
        reasons.push(format!("{} {were} not followed", grouped(not_followed)));
    }
    if explained < late && reasons.is_empty() {
        reasons.push("too many were late to keep the events of all".into());
    }
    if reasons.is_empty() {
        reasons.push("the tracer has no record of it".into());
    }
    reasons.join(", ")
}

/// Of how many wakeups the answer speaks, and whether the run can be trusted.
pub(super) fn counts(run: &Run, explanation: &Explanation, style: Style) -> String {
    let mut parts = vec![format!("{} wakeups followed", grouped(explanation.wakeups))];
    if explanation.not_followed > 0 {
        parts.push(format!("{} not followed", grouped(explanation.not_followed)));
    }
    let above = threshold(explanation, run.time_domain);
    parts.push(format!("{} above {above}", grouped(explanation.late)));
    let counted = wrapped(&parts.join(", "), WIDTH - " · degraded: see below".len(), "");
    format!("{counted} · {}\n", text::verdict(run, style))
}
