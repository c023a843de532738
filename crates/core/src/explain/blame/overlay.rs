//! What takes time away from everything else: NMIs, the tracer and the hypervisor.

use super::super::event::{Event, What};
use super::super::record::{Cause, Evidence, Share};
use super::case::Case;
use super::piece::{Label, Pieces, label};
use super::rules::SLOW_WAY_NS;

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
    let spared = |share: &Share| matches!(share.cause, Cause::Nmi | Cause::Tracer | Cause::Steal);
    let mut before: Option<(u64, u64)> = None;
    for event in counted(case) {
        let What::Steal(reading_ns) = event.what else { continue };
        if let Some((at, earlier_ns)) = before {
            let taken_ns = reading_ns.saturating_sub(earlier_ns);
            pieces.take((at.max(begin(case)), event.at.0), taken_ns, &stopped(), spared);
        }
        before = Some((event.at.0, reading_ns));
    }
}

/// What a CPU that runs with interrupts on may be without an interrupt, nanoseconds: more than two
/// ticks where these come seldom (CONFIG_HZ=100).
const TICKLESS_NS: u64 = 25_000_000;

/// When the next tick comes at the latest, nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Interrupts of the CPU's own timer, whose handler only looks for timers that are due and sets the
/// next one: the functions of these are named by themselves.
const TIMERS_INTERRUPTS: [&str; 2] = ["local_timer", "arch_timer"];

/// The kernel's own functions of timers, which wake somebody or are its tick: up to 21 µs in late
/// wakeups of a guest of KVM (6.18), up to 240 µs where the processor is emulated (7.2).
const SHORT_FUNCTIONS: [&str; 5] =
    ["hrtimer_wakeup", "timerfd_tmrproc", "tick_sched_timer", "tick_nohz_handler", "hrtick"];

/// What none of these takes, nanoseconds.
const LONG_FUNCTION_NS: u64 = 1_000_000;

/// Lays the hypervisor's time over what nothing else can have taken: the CPU stood still. Stolen time
/// does not tell of that where the hypervisor keeps a guest to a quota.
pub(super) fn lay_standstills(pieces: &mut Pieces, case: &Case) {
    if case.known.guest && !case.doubtful {
        lay_standstills_in_interrupts(pieces, case);
        if case.known.ticks {
            lay_standstills_between_ticks(pieces);
        }
    }
}

fn stopped() -> Label {
    label(Cause::Steal, "hypervisor", "", Evidence::Bound)
}

/// In the timer's interrupt: what it took for itself, and what short functions took. (6.1 and 7.2
/// under an emulator that was stopped: 54 ms before the first timer, 62 ms of a tick.)
fn lay_standstills_in_interrupts(pieces: &mut Pieces, case: &Case) {
    let is_timers = |share: &Share| {
        share.cause == Cause::Irq && TIMERS_INTERRUPTS.contains(&share.culprit.as_str())
    };
    for (from, to) in pieces.longer_than(SLOW_WAY_NS, is_timers) {
        pieces.cover(from, to, &stopped());
    }
    let mut begun = None;
    for event in counted(case) {
        match &event.what {
            What::TimerEntry(name, count) if SHORT_FUNCTIONS.contains(&name.as_str()) => {
                begun = Some((event.at.0, u64::from(*count).max(1)));
            }
            What::TimerExit => {
                let Some((from, count)) = begun.take() else { continue };
                let ns = event.at.0.saturating_sub(from);
                if ns / count > LONG_FUNCTION_NS {
                    let spared = |share: &Share| share.cause != Cause::Irq;
                    pieces.take((from, event.at.0), ns, &stopped(), spared);
                }
            }
            _ => {}
        }
    }
}

/// What no tick came to, though something ran there that has interrupts on. (6.18 on KVM: 27 ms of
/// `kmem_cache_alloc_noprof` without a tick, and none stolen.)
fn lay_standstills_between_ticks(pieces: &mut Pieces) {
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
        pieces.cover(from + TICK_NS, to, &stopped());
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
