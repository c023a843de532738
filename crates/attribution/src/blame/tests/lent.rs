//! Priorities that tasks lend each other, by waiting for their locks.

use super::*;

/// The task that is to wake has the priority of `own` at the end, and `normal_prio` where it was lent that. From 30
/// to 80 µs, `rival` has the CPU.
#[track_caller]
fn check_beside(own: &Task, normal_prio: Option<i32>, rival: &Task, want: &str) {
    let to_rival = event(30, switch(rm(), rival.clone()));
    let to_own = event(100, switch(rival.clone(), own.clone()));
    let wakeup = Wakeup {
        task: own.clone(),
        normal_prio,
        interrupted: None,
        events: vec![to_rival, to_own],
        ..woken(0, false)
    };
    let name = format!(" {}[", rival.comm);
    let got: Vec<_> = shares(&wakeup).into_iter().filter(|share| share.contains(&name)).collect();
    assert_eq!(got, [want], "{own:?}, of its own {normal_prio:?}");
}

/// A task waits for a lock that another one holds, which waits for the CPU. The record has the priority that was lent
/// to it at the end, and not since when: whoever has another rank beside that one than beside its own is a bound.
#[test]
fn the_rank_beside_a_task_that_was_lent_a_priority_is_a_bound() {
    let ordinary = task(10, "probe", Policy::Other, 4);
    let urgent = task(10, "probe", Policy::Fifo, 4);
    let spin = |prio| task(7, "spin", Policy::Fifo, prio);
    let higher = |prio: i32, evidence: &str| {
        format!("higher_priority_task 50 spin[7] fifo {} {evidence}", 99 - prio)
    };
    for (own, normal_prio) in [(&ordinary, None), (&ordinary, Some(120)), (&urgent, Some(94))] {
        // More urgent than the one that lent it, or perhaps only for as long as nobody had.
        check_beside(own, normal_prio, &spin(3), &higher(3, "edge"));
        check_beside(own, normal_prio, &spin(4), &higher(4, "bound"));
        check_beside(own, normal_prio, &spin(50), &higher(50, "bound"));
    }
    check_beside(&urgent, Some(94), &spin(94), "equal_or_lower_task 50 spin[7] fifo 5 bound");
    check_beside(&urgent, None, &spin(4), "equal_or_lower_task 50 spin[7] fifo 95 edge");
    let sh = task(9, "sh", Policy::Other, 120);
    check_beside(&ordinary, Some(120), &sh, "equal_or_lower_task 50 sh[9] other bound");
    let ordinary = task(10, "probe", Policy::Other, 120);
    check_beside(&ordinary, None, &sh, "equal_or_lower_task 50 sh[9] other edge");
}

/// The same where it was interrupted, and goes on.
#[test]
fn the_rank_of_who_was_interrupted_is_a_bound_as_well() {
    let own = |normal_prio| {
        move |w: &mut Wakeup| {
            w.task = task(10, "probe", Policy::Fifo, 4);
            w.normal_prio = normal_prio;
            w.interrupted = Some(Context { task: spin(), mode: Mode::User, ..Context::default() });
        }
    };
    let rest = ["irq 10 local_timer edge", "scheduler 20 switch edge", "unexplained 10"];
    let [timer_, switched, wait] = rest;
    let runs = "equal_or_lower_task 60 spin[7] fifo 95 edge";
    check(timer(), own(None), &[runs, timer_, switched, wait]);
    let runs = "higher_priority_task 60 spin[7] fifo 95 bound";
    check(timer(), own(Some(94)), &[runs, timer_, switched, wait]);
}

/// Between two that have deadlines, the earlier one decides. No event has it, so nobody knows which came first.
#[test]
fn which_of_two_deadlines_is_earlier_is_not_known() {
    let own = task(10, "probe", Policy::Deadline, -1);
    let runs = |policy, prio| task(7, "spin", policy, prio);
    let bound = "equal_or_lower_task 50 spin[7] deadline bound";
    check_beside(&own, None, &runs(Policy::Deadline, -1), bound);
    // Lent by one that has.
    let bound = "equal_or_lower_task 50 spin[7] other bound";
    check_beside(&own, None, &runs(Policy::Other, -1), bound);
    // The stopper comes before all deadlines.
    let stopper = "higher_priority_task 50 spin[7] fifo 99 edge";
    check_beside(&own, None, &runs(Policy::Fifo, -2), stopper);
    // Also of one that was interrupted, or that woke it: neither need have gone, and each may have had to.
    let spin = runs(Policy::Deadline, -1);
    let context = Context { task: spin.clone(), mode: Mode::User, ..Context::default() };
    let interrupted =
        |w: &mut Wakeup| (w.task, w.interrupted) = (own.clone(), Some(context.clone()));
    let rest = ["irq 10 local_timer edge", "scheduler 20 switch edge", "unexplained 10"];
    let [timer_, switched, wait] = rest;
    let runs = "equal_or_lower_task 60 spin[7] deadline bound";
    check(timer(), interrupted, &[runs, timer_, switched, wait]);
    let wakes = |w: &mut Wakeup| {
        w.task = own.clone();
        w.woken_by = WokenBy::Waker { task: spin.clone(), on: w.cpu, in_interrupt: false };
        (w.interrupted, w.events) = (None, Vec::new());
    };
    let got = {
        let mut wakeup = woken(0, false);
        wakes(&mut wakeup);
        shares(&wakeup)
    };
    assert!(
        got.iter().any(|share| share.starts_with("equal_or_lower_task")
            && share.ends_with("spin[7] deadline bound")),
        "{got:?}"
    );
}
