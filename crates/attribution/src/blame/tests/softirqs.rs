//! Softirqs: in whom they run, what they break into, and what comes after them.

use super::*;

#[test]
fn softirqs_wait_with_the_task_that_they_run_in() {
    check(
        timer(),
        |w| {
            w.events = vec![
                event(30, What::SoftirqEntry(3)),
                event(40, switch(rm(), spin())),
                event(50, switch(spin(), rm())),
                event(60, What::SoftirqExit(3)),
            ]
        },
        &[
            "throttled 20 fifo 90 bound",
            "softirq 20 NET_RX (rm[412]) edge",
            "higher_priority_task 10 spin[7] fifo 95 edge",
            "no_preemption_point 10 shmem_undo_range (exit_mmap in rm[412]) stack",
            SWITCH,
            WAIT,
            TIMER,
        ],
    );
}

#[test]
fn a_softirq_that_began_before_the_interrupt_is_the_one_that_was_interrupted() {
    check(
        timer(),
        |w| {
            let context = w.interrupted.as_mut().unwrap();
            context.softirq = Some(3);
            context.stack = frames(&["poll"]);
            w.events = vec![event(5, What::SoftirqEntry(3)), event(50, What::SoftirqExit(3))];
        },
        &[
            "softirq 30 NET_RX (rm[412]) edge",
            "unexplained 27",
            SWITCH,
            "irq_off 10 poll (softirq NET_RX of rm[412]) stack",
            TIMER,
            "scheduler 3 return from interrupt bound",
        ],
    );
}

/// Where softirqs run in threads, one may have been preempted by who was interrupted.
#[test]
fn a_softirq_of_another_task_is_not_the_one_that_was_interrupted() {
    check(
        timer(),
        |w| {
            w.interrupted = Some(Context {
                task: spin(),
                mode: Mode::User,
                softirq: Some(3),
                ..Context::default()
            });
            w.events = vec![event(50, switch(spin(), rm())), event(60, What::SoftirqExit(3))];
        },
        &[
            "higher_priority_task 30 spin[7] fifo 95 edge",
            "throttled 20 fifo 90 bound",
            "unexplained 20",
            SWITCH,
            TIMER,
        ],
    );
}

/// Where the kernel is preempted at a preemption point only.
#[test]
fn what_a_softirq_broke_into_goes_on_after_it() {
    let in_softirq = ["timer_fn", "call_timer_fn", "run_timer_softirq", "handle_softirqs"];
    let of_interrupt = ["irq_exit_rcu", "sysvec_apic_timer_interrupt", "asm_sysvec_apic_timer"];
    let of_task = ["__do_softirq.part.0", "do_softirq", "__local_bh_enable_ip"];
    let of_thread = ["run_ksoftirqd", "smpboot_thread_fn", "kthread"];
    let of_program = ["do_sys_poll", "__x64_sys_poll", "do_syscall_64"];
    let goes_on = |parts: &[&[&str]], preemptible, later| {
        let mut wakeup = timer();
        let context = wakeup.interrupted.as_mut().unwrap();
        context.softirq = Some(1);
        context.preempt_depth = Some(256);
        context.preemptible = Some(preemptible);
        context.stack_is_later = later;
        context.stack = frames(&parts.concat());
        wakeup.events = vec![event(5, What::SoftirqEntry(1)), event(50, What::SoftirqExit(1))];
        let got = shares(&wakeup);
        assert!(got.iter().any(|share| share.starts_with("softirq 30 TIMER")), "{got:?}");
        got.into_iter().find(|share| share.starts_with("no_preemption"))
    };
    // Softirqs end only after the event of it, which takes 1.6 us where their thread is made ready (6.1).
    let poll = "no_preemption_point 27 do_sys_poll (poll in rm[412]) bound";
    for way_in in [&of_interrupt, &of_task] {
        let whole: [&[&str]; 3] = [&in_softirq, way_in, &of_program];
        assert_eq!(goes_on(&whole, false, false).as_deref(), Some(poll), "{way_in:?}");
        assert_eq!(goes_on(&whole, true, false), None, "how deep preemption is off is not known");
        assert_eq!(goes_on(&whole, false, true), None, "a stack of later");
        assert_eq!(goes_on(&whole[..2], false, false), None, "a program, or a stack that was cut");
    }
    assert_eq!(goes_on(&[&in_softirq, &of_thread], false, false), None);
}

/// `shmem_undo_range` of 6.1 with no preemption, beneath a softirq: from the event of its end to the switch it
/// took 2,728 ns. Of those the emulator saw 1,588 of the softirq, which made its thread ready, 1,140 of the
/// scheduler and the way there, and 3 of `_raw_spin_unlock_irqrestore`. They were blamed on `shmem_undo_range`,
/// where a stack had been taken, for 1,631.
#[test]
fn what_a_softirq_broke_into_is_not_blamed_for_the_end_of_softirqs() {
    let entry =
        ["handle_softirqs", "sysvec_apic_timer_interrupt", "asm_sysvec_apic_timer_interrupt"];
    let stack = [&["rcu_core"], &entry[..], &["shmem_undo_range"]].concat();
    let mut wakeup = timer();
    let context = wakeup.interrupted.as_mut().unwrap();
    (context.softirq, context.preempt_depth) = (Some(9), Some(4));
    (context.preemptible, context.stack) = (Some(false), frames(&stack));
    wakeup.marks.sched_entry = None;
    let ended = wakeup.marks.switch_in.unwrap().0 - 2_728;
    wakeup.events = vec![Event { at: MonoNs(ended), what: What::SoftirqExit(9) }];
    let known =
        Known { scheduling_ns: Some(4_000), least_sched_latency_ns: Some(683), ..Known::default() };
    let found = |wakeup: &Wakeup, shows_softirqs_left: bool| {
        let known = Known { shows_softirqs_left, ..known };
        let shares = blame(wakeup, &known).into_iter().filter(|share| {
            let is_way = who(share.blamed()) == "return from interrupt";
            is_way || matches!(share.cause, Cause::NoPreemptionPoint | Cause::Softirq)
        });
        let mut found: Vec<_> = shares.map(|s| (s.cause, s.ns, s.evidence)).collect();
        found.sort_by_key(|&(cause, ..)| cause);
        found
    };
    let in_softirq = (Cause::Softirq, ended - at(20).0, Evidence::Edge);
    let way = |ns| (Cause::Scheduler, ns, Evidence::Bound);
    assert_eq!(found(&wakeup, false), [in_softirq, way(2_728)]);
    // Where the kernel shows that it makes its thread ready, it is seen that it did not.
    let code = (Cause::NoPreemptionPoint, 2_728 - 956, Evidence::Bound);
    assert_eq!(found(&wakeup, true), [in_softirq, code, way(956)]);
    // And that it did. As of 6.12, where 62.9 µs of the code came behind.
    wakeup.events.push(Event { at: MonoNs(ended), what: What::SoftirqsPending });
    let in_softirq = (Cause::Softirq, in_softirq.1 + 2_000, Evidence::Bound);
    assert_eq!(found(&wakeup, true), [in_softirq, way(728)]);
    for event in &mut wakeup.events {
        event.at.0 -= 20_000;
    }
    let in_softirq = (Cause::Softirq, in_softirq.1 - 20_000, Evidence::Bound);
    let code = (Cause::NoPreemptionPoint, 22_728 - 2_000 - 956, Evidence::Bound);
    assert_eq!(found(&wakeup, true), [in_softirq, code, way(956)]);
}

/// Where the kernel is preempted as soon as that is allowed. It was off in the softirq, or in what that broke
/// into; if that does not go on its way back, it was the latter.
#[test]
fn what_a_softirq_broke_into_had_preemption_off_if_it_goes_on() {
    let stack = ["timer_fn", "handle_softirqs", "irq_exit_rcu", "asm_common_interrupt", "fput"];
    let with = |depth, stack: &[&str]| {
        let stack = frames(stack);
        move |w: &mut Wakeup| {
            let context = w.interrupted.as_mut().unwrap();
            (context.softirq, context.preempt_depth) = (Some(1), Some(depth));
            (context.preemptible, context.stack) = (Some(true), stack);
            w.events = vec![event(5, What::SoftirqEntry(1)), event(50, What::SoftirqExit(1))];
        }
    };
    let wait = "irq_off 10 timer_fn (softirq TIMER of rm[412]) stack";
    let back = "scheduler 3 return from interrupt bound";
    let want = |held| ["softirq 30 TIMER (rm[412]) edge", held, SWITCH, wait, TIMER, back];
    check(timer(), with(1, &stack), &want("preempt_off 27 fput (rm[412]) bound"));
    check(timer(), with(0, &stack), &want("unexplained 27"));
    // It broke into a program.
    check(timer(), with(1, &stack[..4]), &want("unexplained 27"));
}

/// Softirqs are recorded while a wakeup waits, so the end of one of before may be missing.
#[test]
fn a_softirq_that_another_one_follows_has_ended() {
    check(
        timer(),
        |w| {
            w.interrupted.as_mut().unwrap().mode = Mode::User;
            w.events = vec![
                event(5, What::SoftirqEntry(1)),
                event(40, What::SoftirqEntry(1)),
                event(60, What::SoftirqExit(1)),
                event(70, switch(rm(), spin())),
            ];
        },
        &[
            "softirq 20 TIMER (rm[412]) edge",
            "unexplained 37",
            "higher_priority_task 10 spin[7] fifo 95 edge",
            SWITCH,
            TIMER,
            "scheduler 3 return from interrupt bound",
        ],
    );
}

/// As of 6.12 under `launch`, where the kernel took 675 ns from one to the next, most of that for the tracer. They
/// were the scheduler's.
#[test]
fn softirqs_have_what_lies_between_them() {
    let ns = |ns: u64, what: What| Event { at: MonoNs(at(0).0 + ns), what };
    let two = |gap_ns: u64| {
        vec![
            event(91, What::SoftirqEntry(1)),
            event(94, What::SoftirqExit(1)),
            ns(94_010, What::Tracer(10)),
            ns(94_000 + gap_ns, What::SoftirqEntry(9)),
            event(98, What::SoftirqExit(9)),
        ]
    };
    let of_task = |events: Vec<Event>| {
        let mut wakeup = Wakeup { events, ..timer() };
        wakeup.interrupted.as_mut().unwrap().mode = Mode::User;
        let of_task = |line: &String| line.starts_with("softirq") || line.contains(" switch ");
        shares(&wakeup).into_iter().filter(of_task).collect::<Vec<_>>()
    };
    let timer_3 = "softirq 3 TIMER (probe[10]) edge";
    let longer = "softirq 3.79 TIMER (probe[10]) edge";
    let rcu = "softirq 3.2 RCU (probe[10]) edge";
    assert_eq!(of_task(two(800)), ["scheduler 13 switch edge", longer, rcu]);
    // An interrupt came in between, or code of a task may have.
    let mut other = two(800);
    other.splice(3..3, [ns(94_100, entry("nvme")), ns(94_103, exit("nvme"))]);
    assert_eq!(of_task(other), ["scheduler 13.787 switch edge", rcu, timer_3]);
    let rcu = "softirq 2.8 RCU (probe[10]) edge";
    assert_eq!(of_task(two(1_200)), ["scheduler 14.19 switch edge", timer_3, rcu]);
}

/// As of 6.1 and 6.12, where this took 1.6 to 1.8 µs that were the interrupted code's.
#[test]
fn softirqs_have_the_time_in_which_their_thread_is_made_ready() {
    let ns = |ns: u64, what: What| Event { at: MonoNs(at(0).0 + ns), what };
    let ends = |then: Vec<Event>| {
        let ends = [event(25, What::SoftirqEntry(9)), event(30, What::SoftirqExit(9))];
        move |w: &mut Wakeup| w.events = ends.into_iter().chain(then).collect()
    };
    let left = || event(30, What::SoftirqsPending);
    let held = |us: &str| HELD.replace("60", us);
    let rcu = |us: &str, evidence: &str| format!("softirq {us} RCU (rm[412]) {evidence}");
    let seen = |then: Vec<Event>, rcu: &str, us: &str| {
        check(timer(), ends(then), &[&held(us), SWITCH, WAIT, TIMER, rcu]);
    };
    seen(vec![], &rcu("5", "edge"), "55");
    seen(vec![left()], &rcu("7", "bound"), "53");
    // The tracer does not end it, whose time is its own.
    let tracer = vec![left(), ns(30_500, What::Tracer(500))];
    check(
        timer(),
        ends(tracer),
        &[&held("53"), SWITCH, WAIT, TIMER, &rcu("6.5", "bound"), "tracer 0.5 edge"],
    );
    // Whatever comes next does.
    let interrupt = vec![left(), ns(30_700, entry("nvme")), event(31, exit("nvme"))];
    check(
        timer(),
        ends(interrupt),
        &[&held("54"), SWITCH, WAIT, TIMER, &rcu("5.7", "bound"), "irq 0.3 nvme edge"],
    );
    // The kernel went on with them itself.
    let more = vec![left(), ns(30_400, What::SoftirqEntry(1)), event(31, What::SoftirqExit(1))];
    check(
        timer(),
        ends(more),
        &[
            &held("54"),
            SWITCH,
            WAIT,
            TIMER,
            &rcu("5.4", "edge"),
            "softirq 0.6 TIMER (rm[412]) edge",
        ],
    );
    let mut scheduled = timer();
    scheduled.marks.sched_entry = Some(MonoNs(at(30).0 + 900));
    check(
        scheduled,
        ends(vec![left()]),
        &["scheduler 69.1 switch edge", WAIT, TIMER, &rcu("5.9", "bound"), &held("5")],
    );
    // It says nothing of a softirq that was not seen to begin, nor of what came before.
    check(timer(), |w| w.events = vec![left()], &[HELD, SWITCH, WAIT, TIMER]);
}

/// Who wakes does so in a softirq, which it came to as it turned softirqs on again.
#[test]
fn a_wakers_softirq_ends_and_the_waker_goes_on() {
    let in_softirq = |w: &mut Wakeup| {
        let context = w.interrupted.as_mut().unwrap();
        (context.softirq, context.preempt_depth) = (Some(9), Some(1));
        let names = ["rcu_cb", "rcu_core_si", "handle_softirqs", "__local_bh_enable_ip", "poll"];
        context.stack = frames(&names);
        w.events = vec![event(30, What::SoftirqExit(9))];
    };
    let [way, held] =
        ["scheduler 3 return from interrupt bound", "no_preemption_point 47 poll (rm[412]) bound"];
    check(woken(0, false), in_softirq, &["softirq 30 RCU (rm[412]) edge", way, held, SWITCH]);
    // It began and ended at the nanosecond of the wakeup.
    let at_once = |w: &mut Wakeup| {
        in_softirq(w);
        w.events = vec![event(0, What::SoftirqEntry(9)), event(0, What::SoftirqExit(9))];
    };
    let held = "no_preemption_point 77 poll (rm[412]) bound";
    check(woken(0, false), at_once, &[way, held, SWITCH]);
}

/// A softirq that was interrupted goes on until the task leaves its CPU, if it was not seen to end.
#[test]
fn a_softirq_that_was_interrupted_goes_on_until_the_task_is_moved() {
    let moved = |w: &mut Wakeup| {
        let context = w.interrupted.as_mut().unwrap();
        context.softirq = Some(3);
        context.stack =
            frames(&["poll", "net_rx_action", "handle_softirqs", "asm_common_interrupt"]);
        w.cpu = 1;
        w.events = vec![event(70, What::Moved { from: 0, to: 1 }), event(70, switch(rm(), spin()))];
    };
    check(
        timer(),
        moved,
        &[
            "softirq 50 NET_RX (rm[412]) edge",
            "higher_priority_task 10 spin[7] fifo 95 edge",
            "irq_off 10 poll (net_rx_action in softirq NET_RX of rm[412]) stack",
            SWITCH,
            TIMER,
        ],
    );
}
