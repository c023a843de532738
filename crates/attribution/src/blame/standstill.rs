//! Where a guest's CPU stood still, because its hypervisor ran something else. Stolen time does not
//! tell of all that: some hypervisors keep no clock of it, and none tells of a quota that it keeps a
//! guest to.
//!
//! What is told here is a bound. It is told where nothing else is known that can take so long, in a
//! guest in real time, and only if no event is missing.

use super::case::{Case, TIMERS_INTERRUPTS};
use super::piece::{Label, Pieces, label, unexplained};
use crate::rule::Rule;
use crate::tuning::Tuning;
use wakescope_core::explain::{Cause, Culprit, Evidence, Name, Share, What};
use wakescope_core::units::MonoNs;

/// The kernel's own functions of timers, which wake somebody or are its tick.
const SHORT_FUNCTIONS: [&str; 5] =
    ["hrtimer_wakeup", "timerfd_tmrproc", "tick_sched_timer", "tick_nohz_handler", "hrtick"];

/// The hypervisor's time, of which only the amount is known, or a bound.
pub(super) fn stolen(rule: Rule) -> Label {
    label(rule, Cause::Steal, Culprit::Hypervisor, Evidence::Bound)
}

/// An interrupt was due, nothing in the machine kept it out, and it did not come: the CPU did not
/// run. (6.18 on KVM that reports no stolen time: up to 7 ms, in `__d_lookup_rcu` or `_copy_to_iter`,
/// which never have interrupts off. Without a hypervisor it may be firmware; where events were lost,
/// another interrupt.)
pub(super) fn stood_still(rule: Rule, case: &Case) -> Label {
    match case.known.guest && !case.doubtful {
        true => stolen(rule),
        false => unexplained(rule),
    }
}

/// What `rule` leaves of the way to the task: if nothing was seen of it for long, the CPU stood still. (7.2
/// under an emulator that was stopped for 20 ms: all of it was unexplained.)
pub(super) fn stalled(rule: Rule, case: &Case, from: Option<MonoNs>, to: Option<MonoNs>) -> Label {
    match quietly_waits(case, from, to) {
        true => stood_still(Rule::Stall, case),
        false => unexplained(rule),
    }
}

/// Whether nothing was seen for longer than a way to the task takes.
pub(super) fn quietly_waits(case: &Case, from: Option<MonoNs>, to: Option<MonoNs>) -> bool {
    from.zip(to).is_some_and(|(from, to)| quiet_ns(case, from, to) > case.tuning.slow_way_ns)
}

/// The longest time between two points without an event and outside of interrupts and softirqs,
/// nanoseconds.
fn quiet_ns(case: &Case, from: MonoNs, to: MonoNs) -> u64 {
    let (mut last, mut depth, mut longest_ns) = (from, 0_u32, 0);
    for event in case.events().filter(|event| event.at > from && event.at <= to) {
        let in_tracer_ns = match &event.what {
            What::Tracer(length_ns) => *length_ns,
            _ => 0,
        };
        if depth == 0 {
            longest_ns = longest_ns.max(event.at.since(last).0.saturating_sub(in_tracer_ns));
        }
        match &event.what {
            What::IrqEntry(_) | What::SoftirqEntry(_) => depth += 1,
            What::IrqExit(_) | What::SoftirqExit(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = event.at;
    }
    if depth == 0 { longest_ns.max(to.since(last).0) } else { longest_ns }
}

/// Covers with the hypervisor's time what nothing else can have taken.
pub(super) fn cover_with_standstills(pieces: &mut Pieces, case: &Case) {
    if case.known.guest && !case.doubtful {
        cover_with_standstills_in_interrupts(pieces, case);
        cover_with_standstills_in_tracer(pieces, case.tuning.long_tracer_ns);
        if case.known.ticks {
            cover_with_standstills_between_ticks(pieces, &case.tuning);
        }
    }
}

/// In the timer's interrupt: what it took for itself, and what short functions took. (6.1 and 7.2
/// under an emulator that was stopped: 54 ms before the first timer, 62 ms of a tick.)
fn cover_with_standstills_in_interrupts(pieces: &mut Pieces, case: &Case) {
    let is_timers = |share: &Share| {
        let is_it = |name: &Name| TIMERS_INTERRUPTS.contains(&name.name.as_str());
        matches!(&share.culprit, Culprit::Interrupt(name) if is_it(name))
    };
    for (from, to) in pieces.longer_than(case.tuning.slow_handler_ns, is_timers) {
        pieces.cover(from, to, &stolen(Rule::SlowTimerInterrupt));
    }
    let mut begun = None;
    for event in case.counted_events() {
        match &event.what {
            // Timers that run in softirqs are broken into by those of interrupts, which may take long.
            What::TimerEntry(name, count) => {
                let is_short = SHORT_FUNCTIONS.contains(&name.as_str());
                begun = is_short.then_some((event.at.0, u64::from(*count).max(1)));
            }
            What::TimerExit => {
                let Some((from, count)) = begun.take() else { continue };
                let ns = event.at.0.saturating_sub(from);
                if ns / count > case.tuning.long_function_ns {
                    let spared = |share: &Label| share.cause != Cause::Irq;
                    pieces.take((from, event.at.0), ns, &stolen(Rule::SlowFunction), spared);
                }
            }
            _ => {}
        }
    }
}

/// In the tracer, which takes `most_ns`.
fn cover_with_standstills_in_tracer(pieces: &mut Pieces, most_ns: u64) {
    for (from, to) in pieces.longer_than(most_ns, |share| share.cause == Cause::Tracer) {
        pieces.cover(from, to, &stolen(Rule::SlowTracer));
    }
}

/// What no tick came to, though something ran there that has interrupts on. (6.18 on KVM: 27 ms of
/// `kmem_cache_alloc_noprof` without a tick, and none stolen.)
fn cover_with_standstills_between_ticks(pieces: &mut Pieces, tuning: &Tuning) {
    let has_ticks = |share: &Share| {
        matches!(
            share.cause,
            Cause::NoPreemptionPoint
                | Cause::PreemptOff
                | Cause::HigherPriorityTask
                | Cause::EqualOrLowerTask
        )
    };
    for (from, to) in pieces.longer_than(tuning.tickless_ns, has_ticks) {
        pieces.cover(from.saturating_add(tuning.tick_ns), to, &stolen(Rule::NoTick));
    }
}
