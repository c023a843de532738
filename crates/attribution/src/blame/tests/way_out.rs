//! Code that was interrupted in a section, in a run whose shortest way from an interrupt to the scheduler is
//! known.

use super::*;

/// `fput` of 7.2 with full preemption, interrupted in a section that was over at once: from the interrupt's
/// end at 20 µs to the scheduler's entry this took 778 ns, the shortest way of the run 575 ns.
fn fput() -> Wakeup {
    let mut wakeup = timer();
    let context = wakeup.interrupted.as_mut().unwrap();
    context.preempt_depth = Some(1);
    context.preemptible = Some(true);
    context.stack = frames(&["fput", "path_init", "path_lookupat"]);
    wakeup.marks.sched_entry = wakeup.marks.irq_exit.map(|exit| MonoNs(exit.0 + 778));
    wakeup
}

/// Checks the shares that are the section's, and the way's. `least`: of the run, nanoseconds.
#[track_caller]
fn check(
    change: impl FnOnce(&mut Wakeup),
    (least, scheduling_ns): (Option<u64>, Option<u64>),
    want: &[(Cause, u64)],
) {
    let mut wakeup = fput();
    change(&mut wakeup);
    let known = Known { scheduling_ns, least_sched_latency_ns: least, ..Known::default() };
    let shares = blame(&wakeup, &known);
    let of_way = |share: &Share| who(share.blamed()) == "return from interrupt";
    let of_section =
        |share: &Share| matches!(share.cause, Cause::PreemptOff | Cause::NoPreemptionPoint);
    let mut got: Vec<_> = shares
        .iter()
        .filter(|share| of_way(share) || of_section(share))
        .map(|share| (share.cause, share.ns))
        .collect();
    got.sort_by_key(|share| share.0);
    assert_eq!(got, want, "{shares:#?}");
    let latency = wakeup.marks.response.since(wakeup.marks.due).0;
    assert_eq!(shares.iter().map(|share| share.ns).sum::<u64>(), latency);
}

#[test]
fn a_section_held_up_only_what_is_beyond_the_way_to_the_scheduler() {
    let entered = |ns| move |w: &mut Wakeup| w.marks.sched_entry = Some(MonoNs(at(20).0 + ns));
    let known = (Some(575), Some(4_000));
    check(|_| {}, known, &[(Cause::Scheduler, 778)]);
    // The tracer's own reading of pages, under the same load: 823 ns of it were seen from outside.
    check(entered(1_599), known, &[(Cause::PreemptOff, 794), (Cause::Scheduler, 805)]);
    // A run that does not tell gives it all to the section, as runs of earlier versions.
    check(|_| {}, (None, Some(4_000)), &[(Cause::PreemptOff, 778)]);
    // No way back takes longer than 3 us, whatever the run says: then its wakeups were of another kind.
    check(
        entered(60_000),
        (Some(50_000), Some(4_000)),
        &[(Cause::PreemptOff, 57_000), (Cause::Scheduler, 3_000)],
    );
}

#[test]
fn code_without_a_preemption_point_is_left_by_the_same_way() {
    let none = |w: &mut Wakeup| {
        w.interrupted.as_mut().unwrap().preemptible = Some(false);
        w.marks.sched_entry = Some(at(50));
    };
    let want = [(Cause::NoPreemptionPoint, 29_195), (Cause::Scheduler, 805)];
    check(none, (Some(575), Some(4_000)), &want);
}

#[test]
fn without_the_schedulers_entry_the_way_goes_on_to_the_task() {
    // 6.1: the switch is at 90 us, the response at 100.
    let unseen = |w: &mut Wakeup| w.marks.sched_entry = None;
    let way = |ns| [(Cause::PreemptOff, 70_000 - ns), (Cause::Scheduler, ns)];
    check(unseen, (Some(11_500), None), &way(1_500));
    check(unseen, (Some(14_000), None), &way(3_000));
    // What the task itself took this time is longer than the whole way of another.
    check(unseen, (Some(9_000), None), &[(Cause::PreemptOff, 70_000)]);
}

#[test]
fn the_way_of_another_cpu_says_nothing() {
    let remote = |w: &mut Wakeup| {
        w.cpu = 1;
        w.events = vec![event(30, switch(rm(), probe()))];
    };
    check(remote, (Some(575), Some(4_000)), &[(Cause::PreemptOff, 778)]);
}
