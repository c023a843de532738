//! What takes time away from everything else: NMIs, the tracer and the hypervisor.

use super::super::event::{Event, What};
use super::super::record::{Cause, Evidence, Share};
use super::case::Case;
use super::piece::{Pieces, label};

/// Lays NMIs and the tracer's own time over the pieces, of which the end and the length are known. One
/// that would have begun before another event is taken to have begun right after that: the CPU can
/// have been in only one of the two.
pub(super) fn lay_nmis_and_tracer(pieces: &mut Pieces, case: &Case) {
    let mut earlier = begin(case);
    for event in counted(case) {
        let whose = match &event.what {
            What::Nmi(name, length_ns) => Some((Cause::Nmi, name.as_str(), *length_ns)),
            What::Tracer(length_ns) => Some((Cause::Tracer, "", *length_ns)),
            _ => None,
        };
        if let Some((cause, name, length_ns)) = whose {
            let from = event.at.0.saturating_sub(length_ns).max(earlier);
            pieces.cover(from, event.at.0, &label(cause, name, "", Evidence::Edge));
        }
        earlier = earlier.max(event.at.0);
    }
}

/// Lays stolen time over the pieces: of two readings in succession the difference, which was taken
/// somewhere between them.
///
/// It is bounded by what of that time belongs to the wakeup: if the first reading is from before it
/// was due, more than what fits was stolen before.
pub(super) fn lay_stolen_time(pieces: &mut Pieces, case: &Case) {
    let stolen = label(Cause::Steal, "hypervisor", "", Evidence::Bound);
    let spared = |share: &Share| matches!(share.cause, Cause::Nmi | Cause::Tracer | Cause::Steal);
    let mut before: Option<(u64, u64)> = None;
    for event in counted(case) {
        let What::Steal(reading_ns) = event.what else { continue };
        if let Some((at, earlier_ns)) = before {
            let taken_ns = reading_ns.saturating_sub(earlier_ns);
            pieces.take((at.max(begin(case)), event.at.0), taken_ns, &stolen, spared);
        }
        before = Some((event.at.0, reading_ns));
    }
}

/// What a CPU that runs with interrupts on may be without an interrupt, nanoseconds: more than two
/// ticks where these come seldom (CONFIG_HZ=100).
const TICKLESS_NS: u64 = 25_000_000;

/// When the next tick comes at the latest, nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Lays the hypervisor's time over what no tick came to, though something ran there that has
/// interrupts on: the CPU stood still. Stolen time does not tell of that where the hypervisor keeps a
/// guest to a quota. (6.18 on KVM: 27 ms of `kmem_cache_alloc_noprof` without a tick, and none stolen.)
pub(super) fn lay_standstills(pieces: &mut Pieces, case: &Case) {
    if !case.known.guest || !case.known.ticks || case.doubtful {
        return;
    }
    let stopped = label(Cause::Steal, "hypervisor", "", Evidence::Bound);
    let has_ticks = |share: &Share| {
        matches!(
            share.cause,
            Cause::NoPreemptionPoint
                | Cause::PreemptOff
                | Cause::HigherPriorityTask
                | Cause::EqualOrLowerTask
        )
    };
    for (from, to) in pieces.longer_than(TICKLESS_NS, has_ticks) {
        pieces.cover(from + TICK_NS, to, &stopped);
    }
}

/// Where events begin to count. Of a remote stimulus only after the interrupt, which was on another
/// CPU.
fn begin(case: &Case) -> u64 {
    match (case.remote, case.marks.irq_exit) {
        (true, Some(exit)) => exit.0,
        _ => case.marks.due.0,
    }
}

/// The events that count; of the readings before, the last.
fn counted<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Event> {
    let (from, response) = (begin(case), case.marks.response.0);
    let events = &case.wakeup.events;
    let reading = |event: &&Event| matches!(event.what, What::Steal(_)) && event.at.0 < from;
    let last = events.iter().rfind(reading);
    let rest = events.iter().filter(move |event| event.at.0 >= from && event.at.0 <= response);
    last.into_iter().chain(rest)
}
