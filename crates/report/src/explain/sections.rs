//! Sections with interrupts or preemption off: how long, and where.

use wakescope_attribution::function_at;
use wakescope_core::explain::{
    Cause, Edge, Evidence, Longest, Measured, SectionKind, SectionPlace, Sections, Share,
};
use wakescope_core::percentile::Percentile;
use wakescope_core::run::TimeDomain;
use wakescope_core::units::{SpanNs, grouped};

use super::{WIDTH, episode, frames, phrases};
use crate::domain::span;
use crate::findings::wrapped;
use crate::progress::span_or_dash;
use crate::sound::Sound;
use crate::style::clean;
use crate::table::columns;

/// The places that are shown of each kind, and their longest name.
const MOST_PLACES: usize = 4;
const LONGEST_PLACE: usize = 32;

/// What the kernel tells only of idle.
const IDLE: &str = "idle";

/// The longest sections. What late wakeups show of them is a lower estimate.
pub(super) fn text(sections: &Sections, domain: TimeDomain) -> String {
    let measured = sections.measured.as_ref();
    let mut out = measured.map(table).unwrap_or_default();
    let both = [
        (&sections.irq_off, measured.and_then(|all| all.irq_off.as_ref())),
        (&sections.preempt_off, measured.and_then(|all| all.preempt_off.as_ref())),
    ];
    for (share, kind) in both {
        let Some(share) = share else { continue };
        let words = match share.cause {
            Cause::IrqOff => "section with interrupts off",
            Cause::NoPreemptionPoint => "stretch without a preemption point",
            _ => "section with preemption off",
        };
        let is_exact = sections.exact || (measured.is_some() && share.evidence == Evidence::Edge);
        let longest = kind.and_then(|kind| kind.longest.as_ref());
        let longest = longest.filter(|_| share.evidence == Evidence::Edge);
        out.push_str(&section_text(words, share, is_exact, longest, domain));
    }
    out + &measured.map(places_text).unwrap_or_default()
}

fn section_text(
    kind: &str,
    share: &Share,
    is_exact: bool,
    longest: Option<&Longest>,
    domain: TimeDomain,
) -> String {
    let at_least = match share.evidence {
        _ if is_exact => "",
        // It began before the wakeup was due, and part of it may have been something else.
        Evidence::Bound => "perhaps ",
        Evidence::Edge | Evidence::Stack => "at least ",
    };
    let length = span(share.ns, domain);
    let mut text = format!("longest {kind}: {at_least}{length}{}", phrases::whose(share));
    if let Some(Longest { begin, end, .. }) = longest {
        text.push_str(&format!("; from {} to {}", place(begin), place(end)));
    }
    let mut out = format!(" {}\n", wrapped(&text, WIDTH - 1, "   "));
    // Otherwise it is the stack of an episode, which has its place there.
    if is_exact {
        out.push_str(&episode::stack(share, 4));
    }
    out
}

/// A row per kind of section.
fn table(measured: &Measured) -> String {
    let kinds = [
        ("interrupts off", &measured.irq_off),
        ("preemption off", &measured.preempt_off),
        ("preemption off to schedule", &measured.scheduling),
        ("interrupts", &measured.handlers),
    ];
    let title = ["sections, from edge to edge", "count", "p50", "p99", "max"];
    let mut rows = vec![title.map(String::from).to_vec()];
    let kinds = kinds.into_iter().filter_map(|(name, kind)| Some((name, kind.as_ref()?)));
    rows.extend(kinds.map(|(name, kind)| row(name, kind)));
    columns(&rows, true) + &losses_text(measured)
}

fn row(name: &str, kind: &SectionKind) -> Vec<String> {
    let lengths = Sound::of(&kind.lengths);
    let [p50, p99, ..] = Percentile::SHOWN.map(|p| lengths.percentile(p));
    let cells = [p50, p99, lengths.max_ns()].map(span_or_dash);
    [name.to_owned(), grouped(kind.lengths.count)].into_iter().chain(cells).collect()
}

/// What is not in the table.
fn losses_text(measured: &Measured) -> String {
    let losses = [(measured.unpaired, "an unpaired edge"), (measured.with_nmi, "an NMI")];
    let losses = losses.iter().filter(|loss| loss.0 > 0);
    let losses: Vec<String> =
        losses.map(|(count, what)| format!("{} with {what}", grouped(*count))).collect();
    match losses.is_empty() {
        true => String::new(),
        false => {
            let text = format!("sections not counted: {}", losses.join(", "));
            format!(" {}\n", wrapped(&text, WIDTH - 1, "   "))
        }
    }
}

/// Where the longest sections begin and end.
fn places_text(measured: &Measured) -> String {
    let title = ["locations of the longest sections", "count", "worst"].map(String::from);
    let kinds = [("irq_off", &measured.irq_off), ("preempt_off", &measured.preempt_off)];
    let mut rows = vec![title.to_vec()];
    for (name, kind) in kinds {
        let places = kind.iter().flat_map(|kind| kind.places.iter().take(MOST_PLACES));
        rows.extend(places.map(|known| {
            let SectionPlace { begin, end, count, worst_ns, .. } = known;
            let from_to = match (function(begin), function(end)) {
                (begin, end) if begin == end => format!("{name:<11}  {begin}"),
                (begin, end) => format!("{name:<11}  {begin} → {end}"),
            };
            vec![from_to, grouped(*count), SpanNs(*worst_ns).to_string()]
        }));
    }
    if rows.len() == 1 { String::new() } else { columns(&rows, true) }
}

/// `uart_write+0x33, called from tty_write+0x40`
fn place(edge: &Edge) -> String {
    let name = |frame| clean(&frames::kernel_frame(frame), LONGEST_PLACE);
    match (&edge.place, &edge.caller) {
        (None, _) => IDLE.into(),
        (Some(place), None) => name(place),
        (Some(place), Some(caller)) => format!("{} ({})", name(place), name(caller)),
    }
}

fn function(edge: &Edge) -> String {
    match (function_at(edge), &edge.place) {
        (Some(function), _) => clean(&function.name, LONGEST_PLACE),
        (None, Some(place)) => frames::kernel_frame(place),
        (None, None) => IDLE.into(),
    }
}
