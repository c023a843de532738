//! What the hypervisor and NMIs take, and what losses and contradictions make uncertain.

use super::*;

#[test]
fn nmis_are_laid_over_all_else() {
    check(
        timer(),
        |w| w.events = vec![event(22, What::Nmi("perf_event_nmi_handler".into(), 4_000))],
        &[
            "no_preemption_point 58 shmem_undo_range (exit_mmap in rm[412]) stack",
            SWITCH,
            WAIT,
            "irq 8 local_timer edge",
            "nmi 4 perf_event_nmi_handler edge",
        ],
    );
    // The CPU was in no NMI when it took an interrupt.
    check(
        timer(),
        |w| {
            w.events = vec![
                event(30, entry("eth0")),
                event(31, exit("eth0")),
                event(33, What::Nmi("watchdog".into(), 1_000_000)),
            ]
        },
        &[
            "no_preemption_point 57 shmem_undo_range (exit_mmap in rm[412]) stack",
            SWITCH,
            WAIT,
            TIMER,
            "nmi 2 watchdog edge",
            "irq 1 eth0 edge",
        ],
    );
}

#[test]
fn the_tracers_own_time_is_nobody_elses() {
    // In the timer's interrupt, and after the switch: both by when it ends, and how long it was.
    check(
        timer(),
        |w| {
            w.events = vec![
                event(11, What::TimerEntry("hrtimer_wakeup".into(), 1)),
                event(18, What::Tracer(6_000)),
                event(19, What::TimerExit),
                event(98, What::Tracer(8_000)),
            ];
        },
        &[
            HELD,
            "tracer 14 edge",
            "scheduler 12 switch edge",
            WAIT,
            "irq 2 hrtimer_wakeup (local_timer) edge",
            "irq 2 local_timer edge",
        ],
    );
    // It uses nothing up of what the way back may take, 3 µs; what the scheduler takes longer than
    // that before the switch is not the tracer's either.
    let known = Known { scheduling_ns: Some(0), ..Known::default() };
    let mut wakeup = timer();
    wakeup.events = vec![event(98, What::Tracer(8_000))];
    let text = shares_of_run(&wakeup, &known);
    assert!(text.contains(&"tracer 8 edge".into()), "{text:?}");
    assert!(text.contains(&"scheduler 5 switch edge".into()), "{text:?}");
    assert!(text.contains(&"unexplained 7".into()), "{text:?}");
    // One that cannot have been so long is not believed to have been.
    check(
        timer(),
        |w| w.events = vec![event(95, What::SchedEntry), event(98, What::Tracer(u64::MAX))],
        &[HELD, WAIT, TIMER, "scheduler 17 switch edge", "tracer 3 edge"],
    );
}

#[test]
fn stolen_time_is_taken_from_where_it_fits() {
    let readings = |readings: [(u64, u64); 3]| {
        move |w: &mut Wakeup| {
            let reading = |(us, value)| event(us, What::Steal(value));
            w.events = readings.map(reading).into();
        }
    };
    check(
        timer(),
        readings([(0, 5_000), (10, 5_000), (20, 13_000)]),
        &[HELD, SWITCH, WAIT, "steal 8 hypervisor bound", "irq 2 local_timer edge"],
    );
    // More than fits was stolen before.
    check(
        timer(),
        |w| {
            readings([(10, 50_000), (20, 50_000), (80, 50_000)])(w);
            w.events.insert(0, Event { at: MonoNs(1), what: What::Steal(0) });
        },
        &[HELD, SWITCH, "steal 10 hypervisor bound", TIMER],
    );
    // A clock that goes back says nothing.
    check(timer(), readings([(0, 9_000), (10, 5_000), (20, 4_000)]), &[HELD, SWITCH, WAIT, TIMER]);
    // First of what nobody could explain, then of the longest.
    check(
        timer(),
        |w| {
            w.interrupted = None;
            readings([(0, 0), (20, 9_000), (80, 9_000)])(w);
        },
        &[
            "unexplained 58",
            SWITCH,
            "steal 9 hypervisor bound",
            TIMER,
            "scheduler 3 return from interrupt bound",
        ],
    );
}

const UNKNOWN: &[&str] = &["unexplained 60", "scheduler 20 switch bound", WAIT, TIMER];

#[test]
fn after_a_loss_only_marks_count() {
    check(timer(), |w| w.lost = 1, UNKNOWN);
    check(
        timer(),
        |w| {
            w.lost = 1;
            w.events = vec![
                event(12, What::TimerEntry("tick_nohz_handler".into(), 1)),
                event(18, What::TimerExit),
                event(30, What::SoftirqEntry(3)),
                event(40, What::SoftirqExit(3)),
                event(50, switch(rm(), spin())),
            ];
        },
        UNKNOWN,
    );
    check(
        timer(),
        |w| {
            w.lost = 1;
            w.events = vec![event(2, entry("eth0")), event(5, exit("eth0"))];
        },
        &[
            "unexplained 63",
            "scheduler 20 switch bound",
            TIMER,
            "irq_off 7 shmem_undo_range (exit_mmap in rm[412]) stack",
        ],
    );
}

#[test]
fn events_out_of_order_are_no_better_than_lost_ones() {
    check(
        timer(),
        |w| {
            w.events = vec![event(60, switch(rm(), spin())), event(40, switch(spin(), rm()))];
        },
        UNKNOWN,
    );
}

#[test]
fn what_has_no_end_or_no_beginning_is_unexplained() {
    // No end: until the scheduler was entered, which no interrupt does.
    check(
        timer(),
        |w| w.events = vec![event(40, entry("eth0"))],
        &[
            "unexplained 40",
            SWITCH,
            "no_preemption_point 20 shmem_undo_range (exit_mmap in rm[412]) stack",
            WAIT,
            TIMER,
        ],
    );
    // No beginning: since the interrupt of the timer. What comes after is certain again.
    check(
        timer(),
        |w| w.events = vec![event(40, What::SoftirqExit(3))],
        &[
            "no_preemption_point 40 shmem_undo_range (exit_mmap in rm[412]) stack",
            "unexplained 20",
            SWITCH,
            WAIT,
            TIMER,
        ],
    );
    // An end of something else takes away what is within it.
    check(
        timer(),
        |w| {
            w.events = vec![
                event(30, What::SoftirqEntry(3)),
                event(35, entry("eth0")),
                event(40, What::SoftirqExit(3)),
            ]
        },
        &[
            "no_preemption_point 50 shmem_undo_range (exit_mmap in rm[412]) stack",
            SWITCH,
            WAIT,
            TIMER,
            "softirq 5 NET_RX (rm[412]) edge",
            "unexplained 5",
        ],
    );
    // Within the interrupt of the timer all is at least that interrupt's.
    check(
        timer(),
        |w| w.events = vec![event(12, What::TimerEntry("hrtimer_wakeup".into(), 1))],
        &[HELD, SWITCH, WAIT, TIMER],
    );
    // An interrupt that never ended is not the timer's, which another one's end shows.
    check(
        timer(),
        |w| w.events = vec![event(4, entry("eth0"))],
        &[
            HELD,
            SWITCH,
            TIMER,
            "unexplained 6",
            "irq_off 4 shmem_undo_range (exit_mmap in rm[412]) stack",
        ],
    );
}

#[test]
fn a_switch_from_a_task_that_did_not_run_contradicts_what_was_thought() {
    check(
        timer(),
        |w| w.events = vec![event(50, switch(idle(), spin()))],
        &["higher_priority_task 30 spin[7] fifo 95 edge", "unexplained 30", SWITCH, WAIT, TIMER],
    );
    // Nor is a CPU switched within an interrupt.
    check(
        timer(),
        |w| w.events = vec![event(15, switch(rm(), spin()))],
        &["unexplained 60", SWITCH, WAIT, TIMER],
    );
}

#[test]
fn events_outside_the_wakeup_only_tell_how_it_begins_and_ends() {
    check(
        timer(),
        |w| {
            w.events = vec![
                Event { at: MonoNs(5), what: entry("eth0") },
                event(3, exit("eth0")),
                event(101, switch(probe(), spin())),
                event(200, exit("nvme")),
            ]
        },
        &[
            HELD,
            SWITCH,
            TIMER,
            "irq_off 7 shmem_undo_range (exit_mmap in rm[412]) stack",
            "irq 3 eth0 edge",
        ],
    );
}

#[test]
fn who_ran_before_tells_who_runs_when_it_begins() {
    let before = |to: Task| {
        move |w: &mut Wakeup| {
            w.events = vec![Event { at: MonoNs(5), what: switch(spin(), to) }];
        }
    };
    check(
        woken(0, false),
        before(rm()),
        &["no_preemption_point 80 shmem_undo_range (exit_mmap in rm[412]) stack", SWITCH],
    );
    check(woken(0, false), before(idle()), &["unexplained 80", SWITCH]);
    check(timer(), before(rm()), &[HELD, SWITCH, WAIT, TIMER]);
    check(timer(), before(idle()), &["unexplained 60", SWITCH, WAIT, TIMER]);
}

#[test]
fn a_wakeup_that_took_no_time_has_no_shares() {
    check(timer(), |w| w.marks.response = w.marks.due, &[]);
    check(timer(), |w| w.marks.response = MonoNs(0), &[]);
}

/// What is left at once waits for nothing but an interrupt that is on its way.
#[test]
fn another_interrupt_takes_its_time_to_arrive_too() {
    let of = |context: &Context, delivery_ns, comes, change: fn(&mut Wakeup)| {
        let mut wakeup = Wakeup { interrupted: Some(context.clone()), ..timer() };
        wakeup.events = vec![event(comes, entry("eth0")), event(60, exit("eth0"))];
        change(&mut wakeup);
        let mut got = shares_of_run(&wakeup, &Known { delivery_ns, ..Known::default() });
        got.retain(|share| share.contains(" delivery"));
        got.concat()
    };
    let as_it_is: fn(&mut Wakeup) = |_| {};
    let program = Context { task: rm(), mode: Mode::User, ..Context::default() };
    let kernel = Context { preemptible: Some(true), ..in_kernel() };
    for context in [&program, &kernel] {
        assert_eq!(of(context, 2_000, 30, as_it_is), "irq 4 delivery bound");
        // From 20 to 23 µs lies the way back from the first one, and 9 are the first one's.
        assert_eq!(of(context, 9_000, 30, as_it_is), "irq 16 delivery bound");
        assert_eq!(of(context, 2_000, 24, as_it_is), "irq 3 delivery bound");
        assert_eq!(of(context, 2_000, 23, as_it_is), "irq 2 delivery bound");
        // Of what comes after a loss nobody knows what it kept waiting.
        assert_eq!(of(context, 2_000, 30, |w| w.lost = 1), "irq 2 delivery bound");
        // Nor of what came after the scheduler had been entered.
        let scheduled = |w: &mut Wakeup| w.marks.sched_entry = Some(at(25));
        assert_eq!(of(context, 2_000, 30, scheduled), "irq 2 delivery bound");
        // Also where that picked another task first, or none.
        let idled = |w: &mut Wakeup| {
            let left = [event(25, What::SchedEntry), event(26, switch(rm(), idle()))];
            w.events.splice(0..0, left);
            w.task = task(10, "waits", Policy::Other, 120);
        };
        assert_eq!(of(context, 2_000, 30, idled), "irq 2 delivery bound");
        // Nor is the task itself made to go.
        let own = |w: &mut Wakeup| w.interrupted.as_mut().unwrap().task = w.task.clone();
        assert_eq!(of(context, 2_000, 30, own), "");
    }
    // What need not be left at once had something else to do.
    for held in [
        Context { preempt_depth: Some(1), ..kernel },
        Context { preemptible: Some(false), ..in_kernel() },
        Context { softirq: Some(3), ..program },
    ] {
        assert_eq!(of(&held, 2_000, 30, as_it_is), "irq 2 delivery bound", "{held:?}");
    }
}
