//! The answer: what made the worst wakeup late, and of how many that is known.

use wakescope_core::explain::{Cause, Evidence, Explanation, Share};
use wakescope_core::run::{Episode, Run, TimeDomain};
use wakescope_core::units::{counted, grouped, one_or_many};

use super::{Ranked, WIDTH, causes, episode, late, net, phrases, threshold, waits};
use crate::domain::span;
use crate::findings::wrapped;
use crate::style::Style;
use crate::text;

/// The first sentence.
pub(super) fn sentence(run: &Run, ranked: &Ranked, style: Style) -> String {
    lines(&text(run, ranked), style)
}

/// A sentence in lines for a terminal.
pub(super) fn lines(sentence: &str, style: Style) -> String {
    wrapped(sentence, WIDTH, "").lines().map(|line| style.strong(line) + "\n").collect()
}

/// The same without style: what threads waited for most if that were not their wakeups, the worst wakeup,
/// the worst without stolen time, and how much of all late ones is unexplained.
pub(super) fn text(run: &Run, ranked: &Ranked) -> String {
    waits::sentence(run) + &worst(run, ranked) + &net::sentence(run, ranked) + &unexplained(run)
}

/// How much of the late time is unexplained, if there are late wakeups without an explanation.
fn unexplained(run: &Run) -> String {
    let Some(explanation) = run.explanation.as_ref().filter(|e| e.explained < e.late) else {
        return String::new();
    };
    let Some(share) = causes::unexplained(run) else { return String::new() };
    let missing = explanation.late - explanation.explained;
    format!(
        " In all, {share} of the late time is unexplained: {} of {} late wakeups {} no explanation.",
        grouped(missing),
        grouped(explanation.late),
        if missing == 1 { "has" } else { "have" },
    )
}

fn worst(run: &Run, ranked: &Ranked) -> String {
    let domain = run.time_domain;
    let listed = ranked.first();
    let latest = listed.map(|worst| worst.wakeup_latency_ns).or(run.summary.max_ns);
    let Some(latest_ns) = latest else { return "No wakeup was seen.".into() };
    let late = format!("Worst wakeup {} late", span(latest_ns, domain));
    let Some(explanation) = &run.explanation else {
        return format!("{late}. Cause unknown: this run was measured, not explained.");
    };
    let nothing_late = || {
        let threshold = threshold(explanation, domain);
        format!("{late}: no wakeup was as late as {threshold}, so there is nothing to explain.")
    };
    let Some(worst) = listed else {
        return match explanation.late {
            0 => nothing_late(),
            // All reached a threshold of 0, and none was late.
            _ if latest_ns == 0 => format!("{late}: there is nothing to explain."),
            _ => format!(
                "{late}. Cause unknown: the record holds no episodes{}.",
                match domain {
                    TimeDomain::Real | TimeDomain::Virtual => " (--worst 0)",
                    TimeDomain::Simulated => "",
                }
            ),
        };
    };
    match ranked.explained().next() {
        Some((1, _)) => format!("{late}: {}.", because(worst, domain)),
        _ if worst.wakeup_latency_ns < explanation.above_ns => nothing_late(),
        Some((_, best)) => format!(
            "{late}, not explained; {}. The worst explained wakeup: {} late, {}.",
            missing(explanation),
            span(best.wakeup_latency_ns, domain),
            because(best, domain)
        ),
        None => format!("{late}, not explained; {}.", missing(explanation)),
    }
}

/// Why an episode was late: its largest share, also if that is what nobody knows. Of two equal ones it is
/// the first, so that it does not depend on chance.
pub(crate) fn because(episode: &Episode, domain: TimeDomain) -> String {
    let shares = episode::shares(episode);
    because_of(shares.iter().reduce(|a, b| if b.ns > a.ns { b } else { a }), domain)
}

/// The same of the largest share alone; `None` where a wakeup was not explained.
pub(crate) fn because_of(largest: Option<&Share>, domain: TimeDomain) -> String {
    match largest {
        Some(share) if share.cause == Cause::Unexplained => {
            let why = share.gap.map(|gap| format!(" ({})", phrases::gap(gap))).unwrap_or_default();
            format!("{} of it unexplained{why}", span(share.ns, domain))
        }
        Some(share) if is_doubtful_section(share) => {
            format!("at most {}", phrases::phrase(share, domain))
        }
        Some(share) => phrases::phrase(share, domain),
        None => "not explained".into(),
    }
}

/// Whether this is kernel code that need not have taken all of the time: in a guest, the hypervisor may
/// have stopped it there.
fn is_doubtful_section(share: &Share) -> bool {
    let is_section =
        matches!(share.cause, Cause::IrqOff | Cause::PreemptOff | Cause::NoPreemptionPoint);
    is_section && share.evidence == Evidence::Bound
}

/// What is known to be missing where an episode has no explanation. Whether that is the reason is not
/// known, so it is not said.
fn missing(explanation: &Explanation) -> String {
    let Explanation { lost_records: lost, not_followed, late, explained, .. } = *explanation;
    let mut missing = Vec::new();
    if lost > 0 {
        let were = one_or_many(lost, "was", "were");
        missing.push(format!("{} of the tracer's records {were} lost", grouped(lost)));
    }
    let of_late = explanation.late_not_followed;
    if of_late > 0 {
        let were = one_or_many(of_late, "was", "were");
        let all = counted(late, "late wakeup");
        missing.push(format!("{} of {all} {were} not followed", grouped(of_late)));
    } else if not_followed > 0 {
        let were = one_or_many(not_followed, "was", "were");
        missing.push(format!("{} {were} not followed", counted(not_followed, "wakeup")));
    }
    if explained < late && missing.is_empty() {
        let are = one_or_many(explained, "is", "are");
        missing.push(format!(
            "{} of {} {are} explained",
            grouped(explained),
            counted(late, "late wakeup")
        ));
    }
    if missing.is_empty() {
        missing.push("the tracer has no record of it".into());
    }
    missing.join(", ")
}

/// Of how many wakeups the answer speaks, and whether the run can be trusted.
pub(super) fn counts(run: &Run, explanation: &Explanation, style: Style) -> String {
    let mut parts = vec![format!("{} followed", counted(explanation.wakeups, "wakeup"))];
    if explanation.not_followed > 0 {
        let late = match explanation.late_not_followed {
            0 => String::new(),
            count => format!(" ({} late)", grouped(count)),
        };
        parts.push(format!("{} not followed{late}", grouped(explanation.not_followed)));
    }
    // What is late is a percentile of them, or a time that none may have reached.
    if explanation.wakeups > 0 {
        let above = (explanation.above_ns, &*explanation.above);
        parts.push(late(explanation.late, above, run.time_domain));
        parts.extend(net::count(run));
    }
    let counted = wrapped(&parts.join(", "), WIDTH - " · degraded: see below".len(), "");
    format!("{counted} · {}\n", text::verdict(run, style))
}
