//! Wakeups from another CPU, and the one that was to wake.

use super::*;

/// A waker on another CPU; then the CPU's events, at so many µs.
#[track_caller]
fn check_called(own: Task, events: &[(u64, What)], want: &[&str]) {
    let change = |w: &mut Wakeup| {
        w.task = own;
        w.interrupted = None;
        w.events = events.iter().map(|(us, what)| event(*us, what.clone())).collect();
    };
    check(woken(1, false), change, want);
}

fn ordinary() -> Task {
    task(10, "probe", Policy::Other, 120)
}

/// An interrupt that asks for rescheduling, and the switch to the task.
fn called_at(us: u64, from: Task, to: Task) -> Vec<(u64, What)> {
    let end = What::Switch { from, to };
    vec![(us, entry("reschedule")), (us + 5, exit("reschedule")), (100, end)]
}

/// A CPU is called for a task that comes before the one that it runs, and for no other: for that, the call
/// came. (6.18: a thread of an ordinary task waited 2.9 ms for another one, and the wakeup of a probe that came
/// to this CPU then was taken for its own.)
#[test]
fn a_call_for_another_task_is_not_waited_for() {
    let calls = |own: Task, runs: Task| called_at(40, runs, own);
    let called = "remote_wakeup 40 rm[412] bound";
    let (call, switched) = ("irq 5 reschedule edge", "scheduler 20 switch edge");
    let sh = || task(9, "sh", Policy::Other, 120);
    // It has to be called.
    let way = "scheduler 3 return from interrupt bound";
    check_called(probe(), &calls(probe(), sh()), &[called, call, way, "unexplained 32", switched]);
    // Who runs comes first, or as early.
    let runs = "higher_priority_task 75 spin[7] fifo 95 edge";
    check_called(probe(), &calls(probe(), spin()), &[runs, call, switched]);
    let same = || task(8, "same", Policy::Fifo, 9);
    let runs = "equal_or_lower_task 75 same[8] fifo 90 edge";
    check_called(probe(), &calls(probe(), same()), &[runs, call, switched]);
    // Nobody knows.
    let runs = "equal_or_lower_task 72 sh[9] other bound";
    check_called(ordinary(), &calls(ordinary(), sh()), &[runs, way, call, switched]);
}

/// A call that takes no longer to arrive than interrupts of this run usually do was not kept out. Their usual time is
/// that of the fastest tenth.
#[test]
fn a_call_is_a_bound_beyond_what_an_interrupt_takes_to_arrive() {
    let mut wakeup = woken(1, false);
    wakeup.interrupted = None;
    let events = called_at(40, idle(), probe()).into_iter();
    wakeup.events = events.map(|(us, what)| event(us, what)).collect();
    let called = |delivery_ns| {
        let shares = shares_of_run(&wakeup, &Known { delivery_ns, ..Known::default() });
        shares.into_iter().find(|share| share.starts_with("remote_wakeup"))
    };
    assert_eq!(called(20_000).as_deref(), Some("remote_wakeup 40 rm[412] edge"));
    assert_eq!(called(19_999).as_deref(), Some("remote_wakeup 40 rm[412] bound"));
}

/// What an interrupt had broken into on the other CPU has woken nobody. A softirq may be the task's own: one that sends
/// by TCP to this machine wakes the receiver in it.
#[test]
fn only_a_task_that_has_woken_it_is_named() {
    let check_waker = |wakeup: Wakeup, context: Option<Context>, called: &str| {
        let change = |w: &mut Wakeup| {
            w.interrupted = context;
            w.events = called_at(40, idle(), probe())
                .into_iter()
                .map(|(us, what)| event(us, what))
                .collect();
        };
        let rest = ["irq 5 reschedule edge", "idle_exit 35 bound", SWITCH];
        check(wakeup, change, &[&rest[..], &[called]].concat());
    };
    let [by_task, by_nobody] = ["remote_wakeup 40 rm[412] bound", "remote_wakeup 40 bound"];
    let softirq = |task: Task| Context { task, softirq: Some(3), ..in_kernel() };
    check_waker(woken(1, false), None, by_task);
    check_waker(woken(1, true), None, by_nobody);
    check_waker(woken(1, false), Some(softirq(rm())), by_task);
    check_waker(woken(1, false), Some(in_kernel()), by_task);
    // A softirq that had broken into somebody.
    let mut by_softirq = woken(1, false);
    by_softirq.woken_by = WokenBy::Waker { task: Task::default(), on: 1, in_interrupt: false };
    check_waker(by_softirq, None, by_nobody);
}

/// The kernel may choose the waker's own CPU for it, after it was woken. The whole wait was once that of an idle CPU.
#[test]
fn a_waker_that_is_not_known_was_not_idle() {
    let mut here = woken(0, false);
    here.woken_by = WokenBy::Waker { task: Task::default(), on: here.cpu, in_interrupt: false };
    here.interrupted = None;
    let found = shares(&here);
    assert!(found.iter().all(|share| !share.contains("idle")), "{found:?}");
}

/// The call was not on its way while the CPU took other interrupts.
#[test]
fn a_call_that_was_not_on_its_way_is_not_waited_for() {
    let mut events = vec![(10, entry("eth0")), (20, exit("eth0"))];
    events.extend(called_at(40, idle(), probe()));
    let rest = ["irq 10 eth0 edge", "irq 5 reschedule edge", SWITCH];
    let want = ["unexplained 30", rest[0], rest[1], "idle_exit 35 bound", rest[2]];
    check_called(probe(), &events, &want);
}

/// No CPU is called for a task that it holds back: the call came when it did so no more.
#[test]
fn a_throttled_task_waits_for_no_call() {
    let events = called_at(40, idle(), probe());
    let (call, switched) = ("irq 5 reschedule edge", "scheduler 20 switch edge");
    let exit = "idle_exit 35 bound";
    check_called(probe(), &events, &["remote_wakeup 40 rm[412] bound", call, exit, switched]);
    let throttled = |w: &mut Wakeup| {
        w.throttled = true;
        w.interrupted = None;
        w.events = events.iter().map(|(us, what)| event(*us, what.clone())).collect();
    };
    check(woken(1, false), throttled, &["throttled 75 fifo 90 bound", call, switched]);
}

/// Of the CPU of the timer no events are seen: an NMI may have come in its interrupt.
#[test]
fn another_cpus_interrupt_is_a_bound() {
    let handler = |on| {
        let events = vec![event(90, switch(rm(), probe()))];
        let woken_by = WokenBy::Timer { on };
        let shares = shares(&Wakeup { woken_by, interrupted: None, events, ..timer() });
        shares.into_iter().find(|share| share.contains("local_timer"))
    };
    assert_eq!(handler(0).as_deref(), Some("irq 10 local_timer edge"));
    assert_eq!(handler(1).as_deref(), Some("irq 10 local_timer bound"));
}

/// Another CPU's idle task, in whose softirq the timer's interrupt came, is not this one's.
#[test]
fn the_idle_task_of_another_cpu_is_not_this_cpus() {
    let in_softirq = |w: &mut Wakeup| {
        w.woken_by = WokenBy::Timer { on: 1 };
        let stack = frames(&["net_rx_action", "handle_softirqs"]);
        let seen = Context { task: idle(), mode: Mode::Kernel, stack, ..Context::default() };
        w.interrupted = Some(Context { softirq: Some(3), ..seen });
        w.events = vec![event(100, switch(idle(), probe()))];
    };
    let mut wakeup = timer();
    in_softirq(&mut wakeup);
    let got = shares(&wakeup);
    assert!(got.contains(&"idle_exit 60 bound".to_owned()), "{got:?}");
    assert!(!got.iter().any(|share| share.starts_with("softirq")), "{got:?}");
}

/// A wakeup on CPU 0 at 0, moved to CPU 1 at 60 µs, and switched to there at 100 µs.
fn moved(w: &mut Wakeup, before: Vec<(u64, What)>, from: Task, to: Task, after: Vec<(u64, What)>) {
    w.cpu = 1;
    w.task = ordinary();
    w.interrupted = None;
    let moved = [(60, What::Moved { from: 0, to: 1 }), (60, switch(from, to.clone()))];
    let last = [(100, switch(to, ordinary()))];
    let all = before.into_iter().chain(moved).chain(after).chain(last);
    w.events = all.map(|(us, what)| event(us, what)).collect();
}

/// Each CPU holds it up while it waits there. An interrupt from another CPU after the move is no answer to the call
/// before it, and what goes on when it is moved has gone on until then.
#[test]
fn a_task_that_is_moved_is_held_up_by_each_cpu_in_turn() {
    let sh = || task(9, "sh", Policy::Other, 120);
    let called = vec![(70, entry("reschedule")), (75, exit("reschedule"))];
    let change = |w: &mut Wakeup| moved(w, Vec::new(), spin(), sh(), called);
    let rest = ["irq 5 reschedule edge", SWITCH];
    let first = "higher_priority_task 60 spin[7] fifo 95 edge";
    check(
        woken(2, false),
        change,
        &[first, "equal_or_lower_task 15 sh[9] other edge", rest[0], rest[1]],
    );
    let softirq = || vec![(20, What::SoftirqEntry(3))];
    let change = |w: &mut Wakeup| moved(w, softirq(), spin(), idle(), Vec::new());
    let first = "higher_priority_task 20 spin[7] fifo 95 edge";
    check(
        woken(2, false),
        change,
        &[first, "softirq 40 NET_RX (spin[7]) edge", "idle_exit 20 bound", SWITCH],
    );
}

/// A CPU that a real-time task is moved to has not chosen whom it runs before that task.
#[test]
fn a_real_time_task_that_is_moved_is_not_throttled_by_that() {
    let sh = || task(9, "sh", Policy::Other, 120);
    let first = ["irq 20 local_timer edge", "higher_priority_task 40 spin[7] fifo 95 edge"];
    let check_moved = |to: Task, after: Vec<(u64, What)>, want: &[&str]| {
        let change = |w: &mut Wakeup| {
            moved(w, Vec::new(), spin(), to, after);
            w.task = probe();
            w.marks.irq_entry = Some(at(0));
            (w.marks.sched_entry, w.marks.switch_in) = (Some(at(95)), Some(at(96)));
            w.interrupted = Some(Context { task: spin(), mode: Mode::User, ..Context::default() });
            let last = w.events.len() - 1;
            let What::Switch { from, .. } = &w.events[last].what else { unreachable!() };
            w.events[last] = event(96, switch(from.clone(), probe()));
        };
        check(timer(), change, &[&first[..], &["scheduler 5 switch edge"], want].concat());
    };
    let called = || vec![(70, entry("reschedule")), (75, exit("reschedule"))];
    let (call, way) = ("irq 5 reschedule edge", "scheduler 3 return from interrupt bound");
    let on_its_way = "remote_wakeup 10 bound";
    check_moved(sh(), called(), &[on_its_way, call, way, "unexplained 17"]);
    check_moved(idle(), called(), &[on_its_way, call, "idle_exit 20 bound"]);
    check_moved(idle(), Vec::new(), &["idle_exit 35 bound"]);
    check_moved(sh(), Vec::new(), &[way, "unexplained 32"]);
    // The scheduler has chosen there, and not the task.
    let chosen = vec![(80, switch(sh(), idle()))];
    let want = [way, "unexplained 17", "throttled 15 fifo 90 bound"];
    check_moved(sh(), chosen, &want);
}

/// A CPU that holds it back does so from when it comes there.
#[test]
fn a_task_is_not_throttled_before_it_is_moved_to_a_cpu_that_does_so() {
    let check_from = |throttled_from, want: &[&str]| {
        let change = |w: &mut Wakeup| {
            let interrupted = w.interrupted.take();
            moved(w, Vec::new(), rm(), idle(), Vec::new());
            let last = w.events.len() - 1;
            w.events[last] = event(90, switch(idle(), probe()));
            (w.task, w.interrupted) = (probe(), interrupted);
            (w.throttled, w.throttled_from) = (true, throttled_from);
        };
        check(timer(), change, want);
    };
    let all = "throttled 60 fifo 90 bound";
    check_from(None, &[all, WAIT, TIMER, SWITCH]);
    let (before, after) = (HELD.replace("60", "40"), "throttled 20 fifo 90 bound");
    check_from(Some(at(60)), &[&before, after, WAIT, TIMER, SWITCH]);
}

/// A guest's CPU that was left may have been stopped since its last event. It says so when it goes on.
#[test]
fn what_a_guests_cpu_was_last_at_before_a_move_is_a_bound() {
    let mut wakeup = woken(2, false);
    let before = vec![(5, What::Steal(7)), (20, What::SoftirqEntry(3))];
    moved(&mut wakeup, before, spin(), idle(), Vec::new());
    let shares = |guest| {
        let mut shares = shares_of_run(&wakeup, &Known { guest, ..Known::default() });
        shares.retain(|share| share.starts_with("higher") || share.starts_with("softirq"));
        shares.sort();
        shares
    };
    let first = "higher_priority_task 20 spin[7] fifo 95 edge";
    assert_eq!(shares(false), [first, "softirq 40 NET_RX (spin[7]) edge"]);
    assert_eq!(shares(true), [first, "softirq 40 NET_RX (spin[7]) bound"]);
}
