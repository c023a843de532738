//! Guests in real time, whose hypervisor may stop them at any moment.

use super::*;

/// The shares where the machine has a clock of stolen time, which reads the same all the time.
fn of_run_with_clock(wakeup: &Wakeup, known: &Known) -> Vec<String> {
    let mut wakeup = wakeup.clone();
    let due = wakeup.marks.due;
    wakeup.events.insert(0, Event { at: due, what: What::Steal(1_000) });
    shares_of_run(&wakeup, known)
}

/// Nothing tells when such a guest stood still, so what it was at need not have taken all that time.
#[test]
fn without_a_clock_of_stolen_time_all_is_a_bound() {
    let known = |guest| Known { guest, ..Known::default() };
    let bounds = |shares: &[String]| shares.iter().filter(|s| s.ends_with("bound")).count();
    let without = shares_of_run(&timer(), &known(true));
    assert_eq!(bounds(&without), without.len(), "{without:?}");
    let with = of_run_with_clock(&timer(), &known(true));
    assert!(bounds(&with) < with.len(), "{with:?}");
    let bare = shares_of_run(&timer(), &known(false));
    assert!(bounds(&bare) < bare.len(), "{bare:?}");
}

#[test]
fn an_interrupt_that_nothing_kept_out_was_held_up_outside_the_kernel() {
    let known = |guest| Known { delivery_ns: 2_000, guest, ..Known::default() };
    let enabled = |enabled| {
        let mut wakeup = timer();
        wakeup.interrupted.as_mut().unwrap().enabled_interrupts = enabled;
        wakeup
    };
    let place = "shmem_undo_range (exit_mmap in rm[412])";
    let section = |evidence: &str| format!("irq_off 8 {place} {evidence}");
    for (text, guest, want) in [
        (Some(true), true, section("bound").as_str()),
        (Some(true), false, &section("stack")),
        (None, true, &section("bound")),
        (Some(false), true, "steal 8 hypervisor bound"),
        (Some(false), false, "unexplained 8"),
    ] {
        let got = of_run_with_clock(&enabled(text), &known(guest));
        assert!(got.iter().any(|share| share == want), "{text:?} {guest}: {got:?}");
    }
}

#[test]
fn a_timer_that_was_not_there_yet_was_kept_out_by_nobody() {
    let mut wakeup = timer();
    wakeup.interrupted.as_mut().unwrap().task = wakeup.task.clone();
    for guest in [true, false] {
        let known = Known { delivery_ns: 2_000, guest, ..Known::default() };
        let got = of_run_with_clock(&wakeup, &known);
        assert!(!got.iter().any(|share| share.starts_with("irq_off")), "{got:?}");
        assert_eq!(got.iter().any(|share| share == "steal 7 hypervisor bound"), guest, "{got:?}");
    }
}

/// The interrupt woke it, and then it did not leave its idle task.
#[test]
fn a_guest_that_is_awake_and_does_not_go_on_was_not_run() {
    let of = |guest, entered| {
        let mut wakeup = timer();
        let mode = Mode::Idle("C1".into());
        wakeup.interrupted = Some(Context { task: idle(), mode, ..Context::default() });
        wakeup.marks.sched_entry = Some(at(entered));
        wakeup.marks.switch_in = Some(at(entered + 1));
        wakeup.marks.response = at(entered + 2);
        let mut got = of_run_with_clock(&wakeup, &Known { guest, ..Known::default() });
        got.retain(|share| share.starts_with("steal") || share.starts_with("idle"));
        got.sort();
        got
    };
    // Until 10 µs it sleeps, until 20 the interrupt is handled.
    assert_eq!(of(true, 220), ["idle_exit 210 C1 bound"]);
    assert_eq!(of(true, 221), ["idle_exit 210 C1 bound", "steal 1 hypervisor bound"]);
    assert_eq!(of(true, 20_020), ["idle_exit 210 C1 bound", "steal 19800 hypervisor bound"]);
    assert_eq!(of(false, 20_020), ["idle_exit 20010 C1 bound"]);
}

#[test]
fn a_guest_that_sleeps_longer_than_ever_was_not_run() {
    let asleep = |lost| {
        let mut wakeup = timer();
        let mode = Mode::Idle("C1".into());
        wakeup.interrupted = Some(Context { task: idle(), mode, ..Context::default() });
        wakeup.lost = lost;
        wakeup
    };
    let known =
        |waking_ns, guest| Known { delivery_ns: 1_000, waking_ns, guest, ..Known::default() };
    for (waited, usual, guest, lost, want) in [
        (900, Some(20_000), true, 0, &["idle_exit 20 C1 bound", "steal 880 hypervisor bound"][..]),
        (200, Some(19_999), true, 0, &["idle_exit 200 C1 bound"]),
        (201, Some(20_000), true, 0, &["idle_exit 20 C1 bound", "steal 181 hypervisor bound"]),
        // Ten times the usual, or 200 µs.
        (900, Some(90_000), true, 0, &["idle_exit 900 C1 bound"]),
        (200, Some(1_000), true, 0, &["idle_exit 200 C1 bound"]),
        (900, None, true, 0, &["idle_exit 900 C1 bound"]),
        (900, Some(20_000), false, 0, &["idle_exit 900 C1 bound"]),
        (900, Some(20_000), true, 1, &["idle_exit 20 C1 bound"]),
    ] {
        let mut wakeup = asleep(lost);
        let entry = at(waited);
        wakeup.marks =
            Marks { due: at(0), irq_entry: Some(entry), response: entry, ..Marks::default() };
        let mut got = of_run_with_clock(&wakeup, &known(usual, guest));
        got.retain(|share| !share.starts_with("unexplained"));
        got.sort();
        assert_eq!(got, want, "{waited} {usual:?} {guest} {lost}");
    }
}

/// Between the scheduler and the answer nothing is that long, if nothing is seen.
#[test]
fn a_guest_that_stalls_on_the_way_to_the_task_was_not_run() {
    let of_run = |scheduling_ns, guest, response, events: &[Event]| {
        let mut wakeup = timer();
        wakeup.marks.response = at(response);
        wakeup.events.extend_from_slice(events);
        let known = Known { scheduling_ns, guest, ..Known::default() };
        let mut got = of_run_with_clock(&wakeup, &known);
        got.retain(|share| share.starts_with("steal") || share.starts_with("unexplained"));
        got
    };
    let of = |guest, response, events: &[Event]| of_run(Some(1_000), guest, response, events);
    let interrupt = |from, to| [event(from, entry("eth0")), event(to, exit("eth0"))];
    // The scheduler was entered at 80 and switched at 90 µs; 5 µs of each part are what it takes.
    assert_eq!(of(true, 900, &[]), ["steal 805 hypervisor bound", "unexplained 5"]);
    assert_eq!(of(false, 900, &[]), ["unexplained 810"]);
    assert_eq!(of(true, 290, &[]), ["unexplained 200"]);
    assert_eq!(of(true, 291, &[]), ["steal 196 hypervisor bound", "unexplained 5"]);
    // Where nobody knows what is usual.
    assert_eq!(of_run(None, true, 900, &[]), ["steal 610 hypervisor bound"]);
    assert_eq!(of_run(None, true, 290, &[]), [""; 0]);
    assert_eq!(of_run(None, false, 900, &[]), [""; 0]);
    // The interrupt took most of it, and what is left came in pieces.
    assert_eq!(of(true, 900, &interrupt(100, 800)), ["unexplained 110"]);
    assert_eq!(of(true, 900, &[event(700, What::Tracer(600_000))]), ["unexplained 205"]);
    let nested = [event(100, What::SoftirqEntry(3)), event(400, entry("eth0"))];
    let ends = [event(500, exit("eth0")), event(800, What::SoftirqExit(3))];
    assert_eq!(of(true, 900, &[nested, ends].concat()), ["unexplained 110"]);
}

/// A probe does hardly anything before it sleeps; another task may do what it likes.
#[test]
fn a_guest_whose_probe_takes_long_to_sleep_was_not_run() {
    let of = |guest, probes, asleep| {
        let mut wakeup = timer();
        wakeup.marks = Marks {
            due: at(0),
            irq_entry: Some(at(asleep + 2)),
            irq_exit: Some(at(asleep + 5)),
            switch_in: Some(at(asleep + 7)),
            response: at(asleep + 8),
            ..Marks::default()
        };
        wakeup.events = vec![event(asleep, switch(probe(), rm()))];
        let mut got = of_run_with_clock(&wakeup, &Known { guest, probes, ..Known::default() });
        got.retain(|share| share.starts_with("steal") || share.starts_with("equal"));
        got.sort();
        got
    };
    let itself = |us| format!("equal_or_lower_task {us} probe[10] fifo 90 edge");
    let stolen = "steal 2000 hypervisor bound".to_owned();
    assert_eq!(of(true, true, 3_000), [itself(1_000), stolen]);
    assert_eq!(of(true, true, 1_000), [itself(1_000)]);
    assert_eq!(of(true, false, 3_000), [itself(3_000)]);
    assert_eq!(of(false, true, 3_000), [itself(3_000)]);
}

#[test]
fn where_events_were_lost_nobody_is_said_to_have_stopped_a_guest() {
    let mut wakeup = timer();
    wakeup.interrupted.as_mut().unwrap().enabled_interrupts = Some(false);
    wakeup.lost = 1;
    let known = Known { delivery_ns: 2_000, guest: true, ..Known::default() };
    let got = of_run_with_clock(&wakeup, &known);
    assert!(!got.iter().any(|share| share.starts_with("steal")), "{got:?}");
}

/// A program ran, and was not interrupted for 40 µs; then two interrupts were due.
#[test]
fn the_way_back_to_a_program_had_interrupts_off_only_since_it_was_interrupted() {
    let mut wakeup = timer();
    wakeup.marks.irq_entry = Some(at(46));
    wakeup.marks.irq_exit = Some(at(50));
    wakeup.events = vec![event(40, entry("reschedule")), event(43, exit("reschedule"))];
    let stack = &["irqentry_exit_to_user_mode", "asm_sysvec_reschedule_ipi"];
    let of = |stack: &[&str], guest| {
        let mut wakeup = wakeup.clone();
        wakeup.interrupted = Some(Context { stack: frames(stack), ..in_kernel() });
        of_run_with_clock(&wakeup, &Known { guest, ..Known::default() })
    };
    let has = |shares: &[String], share: &str| {
        assert!(shares.iter().any(|s| s.starts_with(share)), "{share}: {shares:?}");
    };
    has(&of(stack, true), "steal 40 hypervisor bound");
    has(&of(stack, true), "irq_off 3 irqentry_exit_to_user_mode");
    has(&of(stack, false), "unexplained 40");
    has(&of(stack, false), "irq_off 3 irqentry_exit_to_user_mode");
    // With FRED, a function that ends with a call leaves no frame.
    let (entry, from_user) = ("asm_fred_entrypoint_user", "fred_entry_from_user");
    let way_back = "irqentry_exit_to_user_mode";
    for stack in [
        &[way_back, "irqentry_exit", "fred_extint", from_user, entry][..],
        &[way_back, "irqentry_exit", "fred_extint.constprop.0", entry],
        &[way_back, "common_interrupt", entry],
    ] {
        has(&of(stack, true), "steal 40 hypervisor bound");
    }
    // A system call has the same entry, and so has what broke into the kernel.
    let call = [way_back, "evict", "do_syscall_64", from_user, entry];
    let in_kernel = ["irqentry_exit", "fred_extint", "asm_fred_entrypoint_kernel", "evict"];
    for stack in [&call[..], &in_kernel] {
        let got = of(stack, true);
        assert!(!got.iter().any(|share| share.starts_with("steal")), "{stack:?}: {got:?}");
    }
    // One that came in the kernel came where interrupts went on again.
    has(&of(&["irqentry_exit", "asm_sysvec_reschedule_ipi", "evict"], true), "irq_off 43 evict");
}

/// A wakeup whose interrupt is over after 20 µs, and which is 40 ms late.
#[test]
fn what_runs_for_long_without_a_tick_stood_still() {
    let of = |guest, ticks, more: &[Event]| {
        let mut wakeup = timer();
        wakeup.marks.sched_entry = Some(at(39_980));
        wakeup.marks.switch_in = Some(at(39_990));
        wakeup.marks.response = at(40_000);
        wakeup.events = more.to_vec();
        of_run_with_clock(&wakeup, &Known { guest, ticks, ..Known::default() })
    };
    const ALL: &str = "no_preemption_point 39960 shmem_undo_range (exit_mmap in rm[412])";
    let first = |shares: Vec<String>| shares[0].clone();
    // One tick may have come late, no more.
    let text = of(true, true, &[]);
    assert_eq!(text[0], "steal 29960 hypervisor bound", "{text:?}");
    assert!(text[1].starts_with("no_preemption_point 10000 shmem_undo_range"), "{text:?}");
    // On a bare machine, or where the tick may be off, nothing is known of that.
    assert_eq!(first(of(false, true, &[])), format!("{ALL} stack"));
    assert_eq!(first(of(true, false, &[])), format!("{ALL} bound"));
    // Where ticks came it ran.
    let ticks = [15_000, 25_000].map(|us| {
        let tick = What::TimerEntry("tick_nohz_handler".into(), 1);
        [event(us, entry("local_timer")), event(us, tick), event(us + 1, What::TimerExit)]
            .into_iter()
            .chain([event(us + 2, exit("local_timer"))])
    });
    let ticks: Vec<Event> = ticks.into_iter().flatten().collect();
    assert!(first(of(true, true, &ticks)).starts_with("no_preemption_point 3995"));
}

/// The interrupt is taken at 10 µs, and is 1 ms long.
#[test]
fn a_guest_stood_still_if_its_timers_interrupt_is_long_but_for_timers() {
    let of = |guest, name: &str, function: Option<([u64; 2], &str, u32)>| {
        let mut wakeup = timer();
        let (from, to) = (10, function.map_or(1_010, |(times, ..)| times[1] + 1));
        wakeup.marks = Marks {
            irq_exit: Some(at(to)),
            sched_entry: Some(at(to + 1)),
            switch_in: Some(at(to + 2)),
            response: at(to + 3),
            ..wakeup.marks
        };
        wakeup.events = vec![event(from, entry(name))];
        if let Some(([from, to], name, count)) = function {
            let begins = What::TimerEntry(name.into(), count);
            wakeup.events.extend([event(from, begins), event(to, What::TimerExit)]);
        }
        wakeup.events.push(event(to, exit(name)));
        let all = of_run_with_clock(&wakeup, &Known { guest, ..Known::default() });
        let text = all.iter().filter(|share| share.starts_with("irq ") || share.starts_with("st"));
        text.cloned().collect::<Vec<_>>()
    };
    let stolen = |us| format!("steal {us} hypervisor bound");
    let own = |us, name| format!("irq {us} {name} edge");
    assert_eq!(of(true, "local_timer", None), [stolen(1_000)]);
    assert_eq!(of(true, "arch_timer", None), [stolen(1_000)]);
    assert_eq!(of(false, "local_timer", None), [own(1_000, "local_timer")]);
    // Of a device's handler nobody knows what it does, nor of a driver's timers.
    assert_eq!(of(true, "eth0", None), [own(1_000, "eth0")]);
    let function = |us, name| format!("irq {us} {name} (local_timer) edge");
    let with = |guest, times, name, count| of(guest, "local_timer", Some((times, name, count)));
    let own = |us| own(us, "local_timer");
    assert_eq!(with(true, [211, 1_009], "f", 1), [function(798, "f"), stolen(201), own(1)]);
    assert_eq!(with(true, [210, 1_009], "f", 1), [function(799, "f"), own(201)]);
    let all = [0, 1_002].map(|more| [11, 11 + 998 + more]);
    assert_eq!(with(true, all[0], "f", 1), [function(998, "f"), own(2)]);
    assert_eq!(with(true, all[1], "f", 1), [function(2_000, "f"), own(2)]);
    // But each of the kernel's own is short.
    let wakes = "hrtimer_wakeup";
    assert_eq!(with(true, all[0], wakes, 1), [function(998, wakes), own(2)]);
    assert_eq!(with(true, all[1], wakes, 1), [stolen(2_000), own(2)]);
    assert_eq!(with(true, all[1], wakes, 2), [function(2_000, wakes), own(2)]);
    assert_eq!(with(false, all[1], wakes, 1), [function(2_000, wakes), own(2)]);
}

/// A timer of a softirq, broken into by one that nobody says to be short.
#[test]
fn a_long_function_within_a_short_one_is_not_the_hypervisors() {
    let mut wakeup = timer();
    wakeup.marks = Marks {
        sched_entry: Some(at(2_060)),
        switch_in: Some(at(2_061)),
        response: at(2_062),
        ..wakeup.marks
    };
    let function = |name: &str| What::TimerEntry(name.into(), 1);
    wakeup.events = vec![
        event(25, What::SoftirqEntry(8)),
        event(30, function("hrtimer_wakeup")),
        event(40, entry("local_timer")),
        event(40, function("f")),
        event(2_040, What::TimerExit),
        event(2_041, exit("local_timer")),
        event(2_042, What::TimerExit),
        event(2_043, What::SoftirqExit(8)),
    ];
    let got = of_run_with_clock(&wakeup, &Known { guest: true, ..Known::default() });
    assert_eq!(got[0], "irq 2000 f (local_timer) edge", "{got:?}");
}

#[test]
fn a_guest_may_have_stood_still_while_interrupts_were_off() {
    let of = |guest| of_run_with_clock(&timer(), &Known { guest, ..Known::default() });
    let irq_off = |shares: Vec<String>| shares.into_iter().find(|s| s.starts_with("irq_off"));
    assert!(irq_off(of(false)).unwrap().ends_with("stack"));
    assert!(irq_off(of(true)).unwrap().ends_with("bound"));
}

/// Neither a program nor kernel code that may be left goes on before somebody more urgent.
#[test]
fn a_guest_that_does_not_leave_what_must_be_left_at_once_was_not_run() {
    let of = |guest, context: &Context, events: &[Event], entered| {
        let mut wakeup = timer();
        wakeup.marks.irq_entry = Some(at(0));
        wakeup.marks.sched_entry = Some(at(entered));
        wakeup.marks.switch_in = Some(at(entered + 1));
        wakeup.marks.response = at(entered + 2);
        wakeup.interrupted = Some(context.clone());
        wakeup.events = events.to_vec();
        let mut got = of_run_with_clock(&wakeup, &Known { guest, ..Known::default() });
        got.retain(|share| share.starts_with("steal") || share.starts_with("unexplained"));
        got
    };
    let program = Context { task: rm(), mode: Mode::User, ..Context::default() };
    let kernel = Context { preemptible: Some(true), ..in_kernel() };
    for context in [&program, &kernel] {
        // The interrupt is over at 20 µs; 3 µs are the way back from it.
        assert_eq!(of(true, context, &[], 20_020), ["steal 19997 hypervisor bound"]);
        assert_eq!(of(true, context, &[], 221), ["steal 198 hypervisor bound"]);
        assert_eq!(of(true, context, &[], 220), ["unexplained 197"]);
        assert_eq!(of(false, context, &[], 20_020), ["unexplained 19997"]);
        // Something went on all the time.
        let busy: Vec<_> = (1..=100).map(|turn| event(turn * 200, What::Steal(7))).collect();
        assert!(!of(true, context, &busy, 20_020).iter().any(|s| s.starts_with("steal")));
    }
    // Who may not be left may take any time.
    let held = Context { preempt_depth: Some(1), ..kernel };
    assert_eq!(of(true, &held, &[], 20_020), [""; 0]);
}

/// Nothing came between, and what was interrupted in the end is code that is soon done.
#[test]
fn a_short_way_with_interrupts_off_that_seems_long_stood_still() {
    let of = |stack: &[&str], guest, change: fn(&mut Wakeup)| {
        let mut wakeup = timer();
        wakeup.marks.irq_entry = Some(at(20_000));
        wakeup.marks.irq_exit = Some(at(20_010));
        wakeup.marks.sched_entry = Some(at(20_020));
        wakeup.marks.switch_in = Some(at(20_030));
        wakeup.marks.response = at(20_040);
        wakeup.interrupted = Some(Context { stack: frames(stack), ..in_kernel() });
        change(&mut wakeup);
        let mut got = of_run_with_clock(&wakeup, &Known { guest, ..Known::default() });
        got.retain(|share| ["steal", "irq_off"].iter().any(|cause| share.starts_with(cause)));
        got.iter().map(|share| share.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect()
    };
    let as_it_is: fn(&mut Wakeup) = |_| {};
    let text = |shares: Vec<String>, want: &[&str]| assert_eq!(shares, want);
    let switched = ["finish_task_switch.isra.0", "__schedule", "schedule", "do_sigtimedwait"];
    let back = ["exit_to_user_mode_prepare", "irqentry_exit_to_user_mode", "asm_sysvec_x"];
    let stood = "steal 19000 hypervisor";
    text(of(&switched, true, as_it_is), &[stood, "irq_off 1000 __schedule"]);
    text(of(&back, true, as_it_is), &[stood, "irq_off 1000 exit_to_user_mode_prepare"]);
    text(of(&switched, false, as_it_is), &["irq_off 20000 __schedule"]);
    // Whose way back it is may take any time; and where a stack is of later, nobody knows.
    text(of(&["evict", "finish_task_switch"], true, as_it_is), &["irq_off 20000 evict"]);
    let later = of(&switched, true, |w| w.interrupted.as_mut().unwrap().stack_is_later = true);
    assert!(!later.iter().any(|share| share.starts_with("steal")), "{later:?}");
    text(of(&switched, true, |w| w.lost = 1), &["irq_off 20000 __schedule"]);
}

/// The task slept for something else before it set its timer, which had been due by then.
#[test]
fn what_was_interrupted_did_not_hold_up_a_timer_that_was_not_there() {
    let of = |name, us, lost, context: Context| {
        let mut wakeup = timer();
        wakeup.marks.irq_entry = Some(at(60));
        wakeup.marks.irq_exit = Some(at(70));
        wakeup.marks.sched_entry = Some(at(70));
        wakeup.events = vec![event(us, entry(name)), event(us + 5, exit(name))];
        wakeup.lost = lost;
        wakeup.interrupted = Some(context);
        let got = of_run_with_clock(&wakeup, &Known { guest: true, ..Known::default() });
        let waits = ["irq_off", "idle_exit", "steal"];
        got.into_iter().find(|share| waits.iter().any(|cause| share.starts_with(cause)))
    };
    let running = || Context { enabled_interrupts: Some(false), ..in_kernel() };
    let mode = || Mode::Idle("C1".into());
    let asleep = || Context { task: idle(), mode: mode(), ..Context::default() };
    for lost in [0, 1] {
        for context in [in_kernel(), running(), asleep()] {
            for name in ["local_timer", "arch_timer"] {
                assert_eq!(of(name, 30, lost, context.clone()), None, "{lost} {context:?}");
            }
        }
    }
    // Another interrupt looks at no timers, nor did one that came before the timer was due.
    let want = "irq_off 55 shmem_undo_range (exit_mmap in rm[412]) bound";
    assert_eq!(of("eth0", 30, 0, in_kernel()).as_deref(), Some(want));
    // Nor was the task asleep that its own timer broke into: it stood still on its way there.
    let awake = of("local_timer", 30, 0, Context { task: probe(), ..in_kernel() });
    assert!(awake.as_ref().is_some_and(|share| share.starts_with("steal")), "{awake:?}");
    let early = of("local_timer", 0, 0, in_kernel());
    assert!(early.as_ref().is_some_and(|share| share.starts_with("irq_off 55")), "{early:?}");
}

#[test]
fn a_tracer_that_takes_longer_than_a_stack_does_stood_still() {
    let of = |guest, us: u64, lost| {
        let mut wakeup = timer();
        wakeup.marks.sched_entry = Some(at(39_980));
        wakeup.marks.switch_in = Some(at(39_990));
        wakeup.marks.response = at(40_000);
        wakeup.events = vec![event(30_000, What::Tracer(us * 1_000))];
        wakeup.lost = lost;
        let mut got = of_run_with_clock(&wakeup, &Known { guest, ..Known::default() });
        got.retain(|share| share.starts_with("steal") || share.starts_with("tracer"));
        got
    };
    assert_eq!(of(true, 20_000, 0), ["steal 20000 hypervisor bound"]);
    assert_eq!(of(true, 1_000, 0), ["tracer 1000 edge"]);
    assert_eq!(of(false, 20_000, 0), ["tracer 20000 edge"]);
    assert!(!of(true, 20_000, 1).iter().any(|share| share.starts_with("steal")));
}

/// Whether it stood still in the handler is read at events, of which some are missing.
#[test]
fn a_handler_in_a_guest_is_a_bound_where_events_are_missing() {
    for (guest, lost, want) in [
        (true, 1, "irq 10 local_timer bound"),
        (true, 0, "irq 10 local_timer edge"),
        (false, 1, "irq 10 local_timer edge"),
    ] {
        let mut wakeup = timer();
        wakeup.lost = lost;
        let got = of_run_with_clock(&wakeup, &Known { guest, ..Known::default() });
        assert!(got.iter().any(|share| share == want), "{guest} {lost}: {got:?}");
    }
}
