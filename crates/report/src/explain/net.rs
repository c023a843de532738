//! Late wakeups without the time that the hypervisor stole, by the CPU's clock of it: a second ranking,
//! which shows the kernel's own causes where the latest wakeups are the hypervisor's.

use wakescope_attribution::without_stolen;
use wakescope_core::explain::{Cause, NetOfSteal};
use wakescope_core::run::{Episode, Run, TimeDomain};

use super::causes::rows;
use super::verdict::because;
use super::{Ranked, WIDTH, is_all, late, late_wakeups};
use crate::domain::span;
use crate::findings::wrapped;

/// What is said of the second ranking above its rows.
pub(crate) const TITLE: &str = "Causes of late wakeups net of measured steal";

/// What the rows of steal in the second ranking are; empty if it has none.
pub(crate) fn rest_of_steal(net: &NetOfSteal) -> &'static str {
    match net.causes.iter().any(|row| row.cause == Cause::Steal) {
        true => {
            "steal that remains here was concluded from events; the CPU's steal clock did not \
             report it"
        }
        false => "",
    }
}

/// The worst wakeup without stolen time, beside the worst with it; empty where nothing was stolen.
pub(super) fn sentence(run: &Run, ranked: &Ranked) -> String {
    let Some(net) = &run.net_of_steal else { return String::new() };
    let domain = run.time_domain;
    if net.late == 0 {
        return " Net of measured steal, no wakeup was late.".into();
    }
    let Some(worst) = net.worst.first() else {
        // Explained ones may not be listed (`--worst 0`).
        let none = " Net of measured steal, no late wakeup is explained.";
        return if net.explained == 0 { none.into() } else { String::new() };
    };
    let is_same = |other: &Episode| (other.cpu, other.expiry_ns) == (worst.cpu, worst.expiry_ns);
    let rest = without_stolen_time(worst);
    let is_steal = is_mostly_steal(&rest);
    if worst.stolen_ns.is_none() && !is_steal && ranked.first().is_some_and(is_same) {
        return " It is the worst wakeup net of measured steal, too.".into();
    }
    let number = if net.explained < net.late { "worst explained wakeup" } else { "worst wakeup" };
    let late = |episode: &Episode| span(episode.wakeup_latency_ns, domain);
    if !is_steal {
        let why = because(&rest, domain);
        return format!(" Net of measured steal, the {number} was {} late: {why}.", late(&rest));
    }
    let other = net.worst.iter().map(without_stolen_time).find(|rest| !is_mostly_steal(rest));
    let other = other.map(|other| {
        format!(
            " The worst with another main cause: {} late, {}.",
            late(&other),
            because(&other, domain)
        )
    });
    format!(
        " Net of measured steal, the {number} was {} late, mainly by steal that was concluded from \
         events.{}",
        late(&rest),
        other.unwrap_or_default()
    )
}

/// Whether its largest share is steal, as concluded from events.
fn is_mostly_steal(rest: &Episode) -> bool {
    let largest = rest.blame.iter().max_by_key(|share| share.ns);
    largest.is_some_and(|share| share.cause == Cause::Steal)
}

/// How many are late without stolen time; `None` where nothing was stolen, or all are late in any case.
pub(super) fn count(run: &Run) -> Option<String> {
    let net = run.net_of_steal.as_ref().filter(|net| !is_all(&net.above))?;
    let late = late(net.late, (net.above_ns, &net.above), run.time_domain);
    Some(format!("{late} net of steal"))
}

/// The causes without stolen time; empty where nothing was stolen.
pub(super) fn table(run: &Run) -> String {
    let Some(net) = &run.net_of_steal else { return String::new() };
    let late = late_wakeups(net.late, (net.above_ns, &net.above), run.time_domain);
    let title = format!("causes of {late} net of steal");
    let note = match rest_of_steal(net) {
        "" => String::new(),
        note => format!(" {}\n", wrapped(note, WIDTH - 1, "   ")),
    };
    rows(&net.causes, title) + &note
}

/// The worst wakeups without stolen time that are not among those `shown` already, each with its rank.
pub(super) fn others<'a>(
    run: &'a Run,
    shown: &[(usize, &Episode)],
    most: usize,
) -> Vec<(usize, &'a Episode)> {
    let worst = run.net_of_steal.iter().flat_map(|net| &net.worst).take(most);
    let is_shown = |episode: &Episode| {
        shown.iter().any(|(_, s)| (s.cpu, s.expiry_ns) == (episode.cpu, episode.expiry_ns))
    };
    (1..).zip(worst).filter(|(_, episode)| !is_shown(episode)).collect()
}

/// What was stolen of an episode: ` (210 µs net of steal)`; empty if nothing was.
pub(super) fn beside(episode: &Episode, domain: TimeDomain) -> String {
    match episode.stolen_ns {
        Some(1..) => {
            let net_ns = without_stolen_time(episode).wakeup_latency_ns;
            format!("({} net of steal)  ", span(net_ns, domain))
        }
        _ => String::new(),
    }
}

/// The same wakeup without stolen time.
fn without_stolen_time(episode: &Episode) -> Episode {
    let stolen_ns = episode.stolen_ns.unwrap_or(0);
    Episode {
        wakeup_latency_ns: episode.wakeup_latency_ns.saturating_sub(stolen_ns),
        blame: without_stolen(&episode.blame, stolen_ns),
        truth: Vec::new(),
        timeline: Vec::new(),
        ..episode.clone()
    }
}
