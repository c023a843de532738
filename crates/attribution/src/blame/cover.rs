//! What takes time away from everything else: NMIs, the tracer and the hypervisor; and what further
//! interrupts take to arrive.

use super::case::Case;
use super::piece::{Label, Pieces, label};
use super::rules::{delivered, is_left_at_once, others_ran, ran_meanwhile, stopped_by_quota};
use super::standstill::stolen;
use crate::rule::Rule;
use wakescope_core::explain::{Cause, Culprit, Evidence, Ran, RunTimes, Taken, What};

/// Covers pieces with NMIs and the tracer's own time, of which the end and the length are known. One
/// that would have begun before another event is taken to have begun right after that: the CPU can
/// have been in only one of the two.
pub(super) fn cover_with_nmis_and_tracer(pieces: &mut Pieces, case: &Case) {
    let mut earlier = case.counted_from();
    for event in case.counted_events() {
        let whose = match &event.what {
            What::Nmi(name, length_ns) => {
                Some((Rule::Nmi, Cause::Nmi, Culprit::nmi(name), *length_ns))
            }
            What::Tracer(length_ns) => {
                Some((Rule::Tracer, Cause::Tracer, Culprit::Tracer, *length_ns))
            }
            _ => None,
        };
        if let Some((rule, cause, culprit, length_ns)) = whose {
            let from = event.at.0.saturating_sub(length_ns).max(earlier);
            pieces.cover(from, event.at.0, &label(rule, cause, culprit, Evidence::Edge));
        }
        // A reading of the clock is no work, and comes right before the event that it was read at.
        if !matches!(event.what, What::Steal(_)) {
            earlier = earlier.max(event.at.0);
        }
    }
}

/// Covers pieces with stolen time: of two readings in succession the difference, which was taken
/// somewhere between them.
///
/// It is bounded by what of that time belongs to the wakeup: if the first reading is from before it
/// was due, more than what fits was stolen before.
pub(super) fn cover_with_stolen_time(pieces: &mut Pieces, case: &Case) {
    let spared = |share: &Label| matches!(share.cause, Cause::Nmi | Cause::Tracer | Cause::Steal);
    let mut before: Option<(u64, u64)> = None;
    for event in case.counted_events() {
        let What::Steal(reading_ns) = event.what else { continue };
        if let Some((at, earlier_ns)) = before {
            let taken_ns = reading_ns.saturating_sub(earlier_ns);
            let (between, label) =
                ((at.max(case.counted_from()), event.at.0), stolen(Rule::StealClock));
            let left_ns = pieces.take(between, taken_ns, &label, spared);
            // The length of an NMI has what was stolen from it: as much as this, at most.
            pieces.take(between, left_ns, &label, |share| share.cause == Cause::Steal);
            if taken_ns > 0 {
                let has_length = |share: &Label| matches!(share.cause, Cause::Nmi | Cause::Tracer);
                pieces.are_bounds_where(between, has_length);
            }
        }
        before = Some((event.at.0, reading_ns));
    }
}

/// Covers with what interrupts, softirqs and NMIs took what is unexplained because their events were lost.
pub(super) fn cover_with_taken(pieces: &mut Pieces, case: &Case) {
    let claims = claims_of_taken(pieces, case);
    share_out(pieces, case, claims);
}

/// How long they took, of each kind its sum: without what it was given already, and without all that was taken from
/// them as well, for that is in their sums.
fn claims_of_taken(pieces: &Pieces, case: &Case) -> Vec<(Label, u64)> {
    let Taken { interrupts_ns, softirqs_ns, nmis_ns } = case.wakeup.taken;
    let kinds = [(Cause::Irq, interrupts_ns), (Cause::Softirq, softirqs_ns), (Cause::Nmi, nmis_ns)];
    let is_of_all = |cause| matches!(cause, Cause::Steal | Cause::Tracer);
    let claims = kinds.into_iter().map(|(cause, ns)| {
        let given_ns = pieces.ns_of(|label| label.cause == cause || is_of_all(label.cause));
        let label = label(Rule::TakenMeanwhile, cause, Culprit::None, Evidence::Bound);
        (label, ns.saturating_sub(given_ns))
    });
    claims.filter(|(_, ns)| *ns > 0).collect()
}

/// Covers with the time for which tasks ran what is unexplained because events were lost. (6.18: 303 of 305 ms beside
/// two tasks that woke each other.)
pub(super) fn cover_with_runners(pieces: &mut Pieces, case: &Case) {
    let claims = claims_of_runners(pieces, case);
    share_out(pieces, case, claims);
}

/// What contradicts itself, or was not seen, does so because of what is lost. Who had no reason to run is known.
/// Between switches that were kept, interrupts may have taken all of their time in any stretch. So more is unexplained
/// than they took, and the rest is of whoever had the CPU. (6.18: 200 of 899 ms, beside a task that made room once.)
fn is_lost(label: &Label) -> bool {
    use Rule::{BesideLostInterrupts, Contradiction, LostEvents, Unseen};
    let is_of_loss =
        matches!(label.rule, LostEvents | Contradiction | Unseen | BesideLostInterrupts);
    is_of_loss && label.cause == Cause::Unexplained
}

/// Gives what is lost to those that claim it. Their sums have what the hypervisor took as well: where they are too
/// much, each gets its part.
fn share_out(pieces: &mut Pieces, case: &Case, claims: Vec<(Label, u64)>) {
    let left_ns = pieces.ns_of(is_lost);
    let claimed_ns = claims.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    let all = (case.marks.due.0, case.marks.response.0);
    let (mut claimed_so_far, mut given_ns) = (0_u64, 0_u64);
    for (label, ns) in claims {
        claimed_so_far = claimed_so_far.saturating_add(ns);
        let of_it = u128::from(left_ns) * u128::from(claimed_so_far);
        let until_ns = of_it / u128::from(claimed_ns.max(left_ns).max(1));
        let until_ns = u64::try_from(until_ns).unwrap_or(left_ns);
        pieces.take(all, until_ns - given_ns, &label, |label| !is_lost(label));
        given_ns = until_ns;
    }
}

/// How long tasks ran that the one that wakes has to wait for: of each its sum, without what it was given already.
fn claims_of_runners(pieces: &Pieces, case: &Case) -> Vec<(Label, u64)> {
    let RunTimes { tasks, others_ns, urgent_others_ns } = &case.wakeup.ran;
    let tasks =
        tasks.iter().filter(|ran| !case.is_own(&ran.task)).filter_map(|Ran { task, ns }| {
            let is_its = |label: &Label| match &label.culprit {
                Culprit::Task(culprit) => culprit.pid == Some(task.pid),
                _ => false,
            };
            Some((ran_meanwhile(case, task)?, ns.saturating_sub(pieces.ns_of(is_its))))
        });
    let others = [(false, *others_ns), (true, *urgent_others_ns)].into_iter();
    let others = others.filter_map(|(are_urgent, ns)| Some((others_ran(case, are_urgent)?, ns)));
    tasks.chain(others).collect()
}

/// Covers with the time in which a quota stopped the task what then held nobody up: other tasks and an idle
/// CPU. The kernel counts how long that was, after the interrupt, and not when.
pub(super) fn cover_with_quota(pieces: &mut Pieces, case: &Case) {
    let Some(ns) = case.wakeup.quota_ns.filter(|&ns| ns > 0) else { return };
    let goes_on = |share: &Label| {
        !matches!(
            share.cause,
            Cause::Unexplained
                | Cause::EqualOrLowerTask
                | Cause::NoPreemptionPoint
                | Cause::PreemptOff
                | Cause::RemoteWakeup
                | Cause::IdleExit
        )
    };
    let from = case.marks.irq_exit.unwrap_or(case.marks.due);
    pieces.take((from.0, case.marks.response.0), ns, &stopped_by_quota(case), goes_on);
}

/// Covers with the time that further interrupts take to arrive what nobody could explain right before
/// them, between the wakeup's own interrupt and the scheduler, in code that is left at once: it had to
/// go there, and an interrupt that is on its way is all that keeps it from that. More than interrupts
/// usually take stays unexplained. (6.18 on KVM, timers of two expiries shortly after each other: 6 to
/// 20 us between the two interrupts in one of three wakeups.)
pub(super) fn cover_with_arrivals(pieces: &mut Pieces, case: &Case) {
    let context = case.context().filter(|context| context.softirq.is_none());
    let Some(returned) = case.marks.irq_exit.filter(|_| !case.doubtful && !case.remote) else {
        return;
    };
    if !context.is_some_and(|context| is_left_at_once(context) && !case.is_own(&context.task)) {
        return;
    }
    let delivery = delivered(Rule::NextArrival);
    let explained = |share: &Label| share.cause != Cause::Unexplained;
    let until = case.marks.sched_entry.or(case.marks.switch_in).unwrap_or(case.marks.response);
    // The scheduler may have picked somebody else first: that is what the CPU had to go to.
    let is_left = |what: &What| matches!(what, What::SchedEntry | What::Switch { .. });
    let since = case.events().filter(|event| event.at > returned && event.at <= until);
    for event in since.take_while(|event| !is_left(&event.what)) {
        if matches!(event.what, What::IrqEntry(_)) {
            let from = event.at.0.saturating_sub(case.known.delivery_ns).max(returned.0);
            pieces.take((from, event.at.0), case.known.delivery_ns, &delivery, explained);
        }
    }
}
