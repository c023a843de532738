//! Timers that wake in a thread, which runs after their interrupt: those of user space with `PREEMPT_RT`.

use super::*;

fn ktimers() -> Task {
    task(15, "ktimers/0", Policy::Fifo, 98)
}

/// An interrupt from 10 to 20 µs broke into `first`. The CPU was switched from there to the thread of timers at
/// `left`, which woke the probe: at 80 the scheduler was entered, and it switched at 90.
fn woken_by_ktimers(first: &Task, left: u64) -> Wakeup {
    let stack = ["timerfd_tmrproc", "hrtimer_run_softirq", "handle_softirqs", "run_timersd"];
    let context = Context {
        task: ktimers(),
        mode: Mode::Kernel,
        preempt_depth: Some(0),
        preemptible: Some(true),
        softirq: Some(8),
        stack: frames(&stack),
        ..Context::default()
    };
    let switches =
        vec![event(left, switch(first.clone(), ktimers())), event(90, switch(ktimers(), probe()))];
    Wakeup { interrupted: Some(context), events: switches, ..timer() }
}

/// What the thread was at says nothing of who kept the interrupt out. Here it was late.
#[test]
fn the_thread_of_timers_did_not_keep_out_the_interrupt_that_woke_it() {
    for (first, want) in
        [(idle(), "idle_exit 20 bound"), (rm(), "unexplained"), (spin(), "unexplained")]
    {
        let got = shares(&woken_by_ktimers(&first, 30));
        assert!(got.iter().any(|share| share.starts_with(want)), "{first:?}: {got:?}");
        assert!(got.iter().all(|share| !share.starts_with("irq_off")), "{first:?}: {got:?}");
        assert!(got.iter().all(|share| !share.contains("timerfd_tmrproc")), "{first:?}: {got:?}");
    }
    // If it ran already, it may have.
    let got = shares(&Wakeup {
        events: vec![event(90, switch(ktimers(), probe()))],
        ..woken_by_ktimers(&rm(), 30)
    });
    assert!(got.iter().any(|share| share.starts_with("irq_off 10")), "{got:?}");
}

/// The probe was awake when its timer was due, and until it left the CPU to the thread.
#[test]
fn a_probe_that_is_awake_when_it_is_due_is_so_until_it_leaves_the_cpu() {
    let wakeup = woken_by_ktimers(&probe(), 60);
    check(
        wakeup,
        |_| {},
        &[
            "equal_or_lower_task 50 probe[10] fifo 90 edge",
            "equal_or_lower_task 20 ktimers/0[15] fifo 1 edge",
            "irq 10 local_timer edge",
            "scheduler 20 switch edge",
        ],
    );
}
