//! Events and marks at one nanosecond: they count in the order in which they were recorded.

use super::*;

/// A softirq ends right before the scheduler is entered that picks the task. When the task that it was in runs
/// again, it has ended.
#[test]
fn a_softirq_that_ends_when_the_scheduler_is_entered_has_ended() {
    let sh = || task(9, "sh", Policy::Other, 120);
    let change = |w: &mut Wakeup| {
        w.marks.sched_entry = Some(at(40));
        w.marks.switch_in = Some(at(50));
        w.events = vec![
            event(30, What::SoftirqEntry(3)),
            event(40, What::SoftirqExit(3)),
            event(40, What::SchedEntry),
            event(50, switch(rm(), probe())),
            event(60, switch(probe(), spin())),
            event(70, switch(spin(), rm())),
            event(80, switch(rm(), sh())),
            event(90, switch(sh(), probe())),
        ];
        w.page_faults = 1;
    };
    let softirqs = |wakeup: &Wakeup| {
        let mut shares = shares(wakeup);
        shares.retain(|share| share.starts_with("softirq"));
        shares
    };
    let mut wakeup = timer();
    change(&mut wakeup);
    assert_eq!(softirqs(&wakeup), ["softirq 10 NET_RX (rm[412]) edge"]);
    // It has not, if it ends later.
    wakeup.events[1] = event(75, What::SoftirqExit(3));
    wakeup.events.sort_by_key(|event| event.at);
    assert_eq!(softirqs(&wakeup), ["softirq 15 NET_RX (rm[412]) edge"]);
}

/// The CPU was switched to the waker at the nanosecond of the wakeup: before it, as it wakes.
#[test]
fn a_waker_that_was_switched_to_then_had_the_cpu_before() {
    let events = |from: Task, to: Task| {
        move |w: &mut Wakeup| {
            w.events = vec![event(0, What::SoftirqEntry(3)), event(0, switch(from, to))];
        }
    };
    let held = "no_preemption_point 80 shmem_undo_range (exit_mmap in rm[412]) stack";
    check(woken(0, false), events(spin(), rm()), &[held, SWITCH]);
    // After it, somebody else has it.
    check(
        woken(0, false),
        events(rm(), spin()),
        &["higher_priority_task 80 spin[7] fifo 95 edge", SWITCH],
    );
}

/// The clock of stolen time is read at the event that shows the NMI's end, and takes nothing of its time.
#[test]
fn a_reading_of_the_clock_does_not_shorten_an_nmi() {
    let nmi = |length_us: u64, stolen_us: u64| {
        move |w: &mut Wakeup| {
            let ended = What::Nmi("watchdog".into(), length_us * 1_000);
            w.events = vec![
                event(25, What::Steal(1)),
                event(70, What::Steal(1 + stolen_us * 1_000)),
                event(70, ended),
            ];
        }
    };
    let held = |us: u64| HELD.replace("60", &us.to_string());
    let rest = [SWITCH, WAIT, TIMER];
    let [switch, wait, timer_] = rest;
    check(timer(), nmi(40, 0), &["nmi 40 watchdog edge", &held(20), switch, wait, timer_]);
    check(
        timer(),
        nmi(40, 3),
        &["nmi 40 watchdog bound", &held(17), switch, wait, timer_, "steal 3 hypervisor bound"],
    );
    // More was stolen than there was besides: the rest was in the NMI.
    check(
        timer(),
        nmi(40, 9),
        &["nmi 36 watchdog bound", &held(15), switch, wait, timer_, "steal 9 hypervisor bound"],
    );
}

/// A CPU fetches the task for itself: it is in its scheduler already.
#[test]
fn a_scheduler_that_fetches_a_task_has_the_way_to_it() {
    let sh = || task(9, "sh", Policy::Other, 120);
    let change = |w: &mut Wakeup| {
        w.cpu = 1;
        w.interrupted = None;
        w.marks.sched_entry = Some(at(60));
        w.events = vec![
            event(60, What::Moved { from: 0, to: 1 }),
            event(60, switch(spin(), sh())),
            event(90, switch(sh(), probe())),
        ];
    };
    check(
        woken(2, false),
        change,
        &["higher_priority_task 60 spin[7] fifo 95 edge", "scheduler 40 switch edge"],
    );
}
