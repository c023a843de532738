//! Tasks that come and go, on this CPU and others.

use super::*;

#[test]
fn the_scheduler_has_the_way_to_another_task() {
    let with = |events: Vec<Event>| move |w: &mut Wakeup| w.events = events;
    let held =
        |us: u32| format!("no_preemption_point {us} shmem_undo_range (exit_mmap in rm[412]) stack");
    let to_spin = vec![
        event(30, What::SchedEntry),
        event(31, What::Steal(1)),
        event(45, switch(rm(), spin())),
    ];
    let spins = "higher_priority_task 35 spin[7] fifo 95 edge";
    check(timer(), with(to_spin), &[spins, "scheduler 35 switch edge", &held(10), WAIT, TIMER]);
    // It found nobody else.
    check(timer(), with(vec![event(30, What::SchedEntry)]), &[HELD, SWITCH, WAIT, TIMER]);
    let later = vec![
        event(30, What::SchedEntry),
        event(40, entry("nvme")),
        event(41, exit("nvme")),
        event(45, switch(rm(), spin())),
    ];
    let irq = "irq 1 nvme edge";
    check(timer(), with(later), &[spins, &held(24), SWITCH, WAIT, TIMER, irq]);
}

#[test]
fn the_way_back_is_counted_once() {
    check(
        timer(),
        |w| {
            w.interrupted.as_mut().unwrap().mode = Mode::User;
            w.events = vec![event(21, entry("nvme")), event(22, exit("nvme"))];
        },
        &[
            "unexplained 66",
            SWITCH,
            TIMER,
            "scheduler 3 return from interrupt bound",
            "irq 1 nvme edge",
        ],
    );
}

#[test]
fn a_switch_within_the_interrupt_leaves_nothing_certain_after_it() {
    check(
        timer(),
        |w| {
            w.interrupted = None;
            w.events = vec![event(15, switch(rm(), rm()))];
        },
        &["unexplained 70", SWITCH, TIMER],
    );
}

#[test]
fn the_task_that_ran_before_its_time_need_not_have_got_far() {
    let once = |w: &mut Wakeup| {
        w.marks.sched_entry = Some(at(35));
        w.events = vec![event(40, switch(rm(), probe())), event(50, switch(probe(), spin()))];
    };
    check(
        timer(),
        once,
        &[
            "higher_priority_task 40 spin[7] fifo 95 edge",
            "no_preemption_point 15 shmem_undo_range (exit_mmap in rm[412]) stack",
            // Known as well as the least known part of it.
            "scheduler 18 switch bound",
            "unexplained 7",
            WAIT,
            TIMER,
        ],
    );
}

#[test]
fn the_task_that_goes_again_waits_for_its_page() {
    let again = |w: &mut Wakeup| {
        w.events = vec![event(92, switch(probe(), rm())), event(97, switch(rm(), probe()))];
    };
    check(timer(), again, &[HELD, "scheduler 15 switch edge", WAIT, TIMER, "unexplained 5"]);
    check(
        timer(),
        |w| {
            again(w);
            w.page_faults = 1;
        },
        &[HELD, WAIT, TIMER, "page_fault 10 probe[10] bound", "scheduler 10 switch edge"],
    );
    check(
        timer(),
        |w| {
            w.events = vec![event(92, switch(probe(), spin())), event(97, switch(spin(), probe()))];
        },
        &[
            HELD,
            "scheduler 15 switch edge",
            WAIT,
            TIMER,
            "higher_priority_task 5 spin[7] fifo 95 edge",
        ],
    );
}

#[test]
fn a_cpu_that_was_not_told_yet_chooses_whom_it_likes() {
    let sh = || task(9, "sh", Policy::Other, 120);
    let asleep = |w: &mut Wakeup| {
        w.interrupted = Some(Context { task: idle(), ..Context::default() });
    };
    check(
        woken(1, false),
        |w| {
            asleep(w);
            w.events = vec![event(40, switch(idle(), sh()))];
        },
        &["idle_exit 40 bound", "unexplained 40", SWITCH],
    );
    check(
        woken(1, false),
        |w| {
            asleep(w);
            w.events = vec![
                event(30, switch(idle(), sh())),
                event(50, entry("reschedule")),
                event(51, exit("reschedule")),
            ];
        },
        &[
            "remote_wakeup 50 rm[412] bound",
            "unexplained 26",
            SWITCH,
            "scheduler 3 return from interrupt bound",
            "irq 1 reschedule edge",
        ],
    );
    check(
        woken(1, false),
        |w| {
            asleep(w);
            w.events = vec![event(30, switch(idle(), spin())), event(50, entry("reschedule"))];
            w.events.push(event(51, exit("reschedule")));
        },
        &[
            "higher_priority_task 49 spin[7] fifo 95 edge",
            "idle_exit 30 bound",
            SWITCH,
            "irq 1 reschedule edge",
        ],
    );
}

#[test]
fn the_other_cpus_handler_counts_until_this_one_is_at_work() {
    check(
        timer(),
        |w| {
            w.woken_by = WokenBy::Timer { on: 3 };
            w.marks.irq_exit = Some(at(95));
        },
        &[
            "irq 70 local_timer bound",
            SWITCH,
            "irq_off 10 shmem_undo_range (exit_mmap in rm[412]) bound",
        ],
    );
    // It has called already.
    check(
        timer(),
        |w| {
            w.woken_by = WokenBy::Timer { on: 3 };
            w.interrupted = Some(Context { task: idle(), ..Context::default() });
            w.events = vec![event(15, entry("call_function")), event(17, exit("call_function"))];
        },
        &["idle_exit 73 bound", SWITCH, "irq 5 local_timer bound", "irq 2 call_function edge"],
    );
    // What happens on this CPU meanwhile holds nobody up.
    check(
        timer(),
        |w| {
            w.woken_by = WokenBy::Timer { on: 3 };
            w.interrupted = Some(Context { task: idle(), ..Context::default() });
            w.events = vec![
                event(3, entry("eth0")),
                event(6, exit("eth0")),
                event(12, What::Nmi("watchdog".into(), 1_000)),
                event(15, What::Steal(0)),
                event(18, What::Steal(3_000)),
            ];
        },
        &["idle_exit 70 bound", SWITCH, "irq 10 local_timer bound"],
    );
}

#[test]
fn events_stand_in_for_marks() {
    let none = |w: &mut Wakeup| {
        w.marks.irq_exit = None;
        w.marks.sched_entry = None;
        w.marks.switch_in = None;
    };
    check(
        timer(),
        |w| {
            none(w);
            w.events = vec![
                event(10, entry("local_timer")),
                event(12, entry("eth0")),
                event(14, exit("eth0")),
                event(20, exit("local_timer")),
                event(80, What::SchedEntry),
                event(90, switch(rm(), probe())),
            ];
        },
        &[HELD, SWITCH, WAIT, "irq 8 local_timer edge", "irq 2 eth0 edge"],
    );
    // The scheduler's entry that picked another task is not the one that picked this one.
    check(
        timer(),
        |w| {
            w.marks.sched_entry = None;
            w.events = vec![event(30, What::SchedEntry), event(40, switch(rm(), spin()))];
        },
        &[
            "higher_priority_task 50 spin[7] fifo 95 edge",
            "no_preemption_point 10 shmem_undo_range (exit_mmap in rm[412]) stack",
            SWITCH,
            WAIT,
            TIMER,
        ],
    );
}

#[test]
fn stolen_time_leaves_nmis_alone() {
    check(
        timer(),
        |w| {
            w.events = vec![
                event(20, What::Steal(0)),
                event(70, What::Nmi("watchdog".into(), 45_000)),
                event(80, What::Steal(12_000)),
            ]
        },
        &[
            "nmi 45 watchdog bound",
            SWITCH,
            "steal 12 hypervisor bound",
            WAIT,
            TIMER,
            "no_preemption_point 3 shmem_undo_range (exit_mmap in rm[412]) stack",
        ],
    );
}

/// It was preempted after its last answer, before it slept: there was no timer to wait for yet.
#[test]
fn a_task_that_had_not_gone_to_sleep_waits_for_who_kept_it_from_that() {
    let mut spinner = rm();
    (spinner.pid, spinner.prio, spinner.policy) = (77, 4, Policy::Fifo);
    let switch = |from: &Task, to: &Task| What::Switch { from: from.clone(), to: to.clone() };
    let sleeps = |w: &mut Wakeup| {
        w.marks.due = at(0);
        w.marks.irq_entry = Some(at(10));
        w.events = vec![event(5, switch(&spinner, &probe())), event(7, switch(&probe(), &rm()))];
    };
    let mut wakeup = timer();
    sleeps(&mut wakeup);
    let got = shares(&wakeup);
    let has = |begin: &str| assert!(got.iter().any(|s| s.starts_with(begin)), "{begin}: {got:?}");
    has("higher_priority_task 5 rm[77]");
    has("irq_off 3 shmem_undo_range");
    // The time that it had itself.
    has("equal_or_lower_task 2 probe[10] fifo 90 edge");
}

/// It answered the wakeup before shortly before this one was due: nobody kept it from going to sleep.
#[test]
fn a_task_that_had_not_gone_to_sleep_held_itself_up() {
    let sleeps = |w: &mut Wakeup| w.events = vec![event(8, switch(probe(), rm()))];
    let itself = "equal_or_lower_task 8 probe[10] fifo 90 edge";
    let held = "irq_off 2 shmem_undo_range (exit_mmap in rm[412]) stack";
    check(timer(), sleeps, &[HELD, SWITCH, TIMER, itself, held]);
    // What interrupts had of it is theirs.
    check(
        timer(),
        |w| {
            sleeps(w);
            w.events.insert(0, event(2, entry("eth0")));
            w.events.insert(1, event(5, exit("eth0")));
        },
        &[
            HELD,
            SWITCH,
            TIMER,
            "equal_or_lower_task 5 probe[10] fifo 90 edge",
            "irq 3 eth0 edge",
            held,
        ],
    );
    // After a loss nobody knows.
    let mut lost = timer();
    sleeps(&mut lost);
    lost.lost = 1;
    assert!(shares(&lost).iter().all(|share| !share.starts_with("equal_or_lower_task")));
}

/// Its time came while it was awake, and no timer was set for it.
#[test]
fn a_task_that_was_awake_all_the_time_held_itself_up() {
    let awake = |events: Vec<Event>| Wakeup {
        task: probe(),
        woken_by: WokenBy::Awake,
        marks: Marks { due: at(0), response: at(500), ..Marks::default() },
        events,
        ..Wakeup::default()
    };
    let itself = |us: u64| format!("equal_or_lower_task {us} probe[10] fifo 90 edge");
    assert_eq!(shares(&awake(vec![])), [itself(500)]);
    let away = vec![event(100, switch(probe(), spin())), event(300, switch(spin(), probe()))];
    let spins = "higher_priority_task 200 spin[7] fifo 95 edge";
    assert_eq!(shares(&awake(away)), [itself(300).as_str(), spins]);
    // Somebody had kept it from going to sleep before.
    let kept = vec![event(300, switch(spin(), probe()))];
    let first = "higher_priority_task 300 spin[7] fifo 95 edge";
    assert_eq!(shares(&awake(kept)), [first, itself(200).as_str()]);
    let interrupt = vec![event(50, entry("eth0")), event(80, exit("eth0"))];
    assert_eq!(shares(&awake(interrupt)), [itself(470).as_str(), "irq 30 eth0 edge"]);
    let softirq = vec![event(50, What::SoftirqEntry(3)), event(80, What::SoftirqExit(3))];
    let receives = "softirq 30 NET_RX (probe[10]) edge";
    assert_eq!(shares(&awake(softirq)), [itself(470).as_str(), receives]);
    let lost = Wakeup { lost: 1, ..awake(vec![]) };
    assert_eq!(shares(&lost), ["unexplained 500"]);
}

/// Real-time tasks were held back already when the timer's interrupt came into an idle CPU.
#[test]
fn an_idle_cpu_stays_so_while_its_task_is_throttled() {
    let kworker = || task(27, "kworker/0:1", Policy::Other, 120);
    check(
        timer(),
        |w| {
            w.throttled = true;
            w.interrupted = Some(Context { task: idle(), ..Context::default() });
            w.events =
                vec![event(40, switch(idle(), kworker())), event(50, switch(kworker(), idle()))];
        },
        &["throttled 60 fifo 90 bound", SWITCH, "idle_exit 10 bound", TIMER],
    );
}

#[test]
fn a_task_that_comes_first_is_shown_with_its_programs_stack() {
    let shown = |change: &dyn Fn(&mut Wakeup)| {
        let mut wakeup = timer();
        wakeup.events =
            vec![event(40, switch(rm(), spin())), event(60, switch(spin(), wakeup.task.clone()))];
        change(&mut wakeup);
        let shares = blame(&wakeup, &Known::default());
        let with = shares.iter().filter(|share| !share.user_stack.is_empty());
        with.map(|s| format!("{} {}", s.cause, joined(&s.user_stack))).collect::<Vec<_>>()
    };
    let last = |pid| GivenUp { pid, user_stack: frames(&["burn", "main"]), ..GivenUp::default() };
    assert_eq!(shown(&|_| {}), [""; 0]);
    let of_spin = shown(&|w| w.given_up = Some(last(spin().pid)));
    assert_eq!(of_spin, ["higher_priority_task burn+0x10 main+0x10"]);
    // One that somebody else's program was at says nothing of it.
    assert_eq!(shown(&|w| w.given_up = Some(last(99))), [""; 0]);
    let interrupted = shown(&|w| {
        let context = w.interrupted.as_mut().unwrap();
        (context.task, context.mode) = (spin(), Mode::User);
        context.user_stack = frames(&["turn"]);
        w.given_up = Some(last(spin().pid));
    });
    assert_eq!(interrupted, ["higher_priority_task turn+0x10"]);
}

/// Found by the simulated kernels of the crate `oracle`, whose clocks are exact.
#[test]
fn a_timers_function_may_end_with_its_interrupt() {
    let softirq = |w: &mut Wakeup| {
        w.interrupted.as_mut().unwrap().softirq = Some(3);
        w.events = vec![
            event(10, entry("local_timer")),
            event(10, What::TimerEntry("hrtimer_wakeup".into(), 1)),
            event(20, What::TimerExit),
            event(20, exit("local_timer")),
            event(80, What::SoftirqExit(3)),
        ];
    };
    let got = super::shares(&{
        let mut wakeup = timer();
        softirq(&mut wakeup);
        wakeup
    });
    assert!(got.iter().any(|share| share.starts_with("softirq 60 NET_RX")), "{got:?}");
}

/// Whether the scheduler wanted an ordinary task to go for another one is not seen: that it had the CPU is, and
/// where it was then.
#[test]
fn among_ordinary_tasks_the_other_one_is_blamed_and_not_its_kernel_code() {
    let ordinary = |w: &mut Wakeup| {
        w.task = task(10, "probe", Policy::Other, 120);
        w.interrupted.as_mut().unwrap().preempt_depth = Some(1);
    };
    let mut wakeup = timer();
    ordinary(&mut wakeup);
    let rm = "equal_or_lower_task 60 rm[412] other bound";
    check(timer(), ordinary, &[rm, SWITCH, WAIT, TIMER]);
    let shares = crate::blame(&wakeup, &Known::default());
    let frames: Vec<_> = shares[0].frames.iter().filter_map(|f| f.function.as_deref()).collect();
    assert_eq!(frames[..2], ["shmem_undo_range", "evict"]);
}

/// A lock lent it a priority. It gave both back at some time before it was switched away from.
#[test]
fn a_task_that_was_more_urgent_for_a_while_is_a_bound() {
    let lent = || task(412, "rm", Policy::Other, 4);
    let runs = |from: Task| {
        move |w: &mut Wakeup| {
            let came = event(30, switch(spin(), lent()));
            w.events = vec![came, event(70, switch(from, spin()))];
        }
    };
    let shares = |rm: &'static str| {
        ["unexplained 10", rm, "higher_priority_task 10 spin[7] fifo 95 edge", SWITCH, WAIT, TIMER]
    };
    check(timer(), runs(lent()), &shares("higher_priority_task 40 rm[412] other edge"));
    check(timer(), runs(rm()), &shares("higher_priority_task 40 rm[412] other bound"));
}

/// It was lent one after it was switched to, and gave it back before it was switched away from.
#[test]
fn a_task_that_gave_a_priority_back_was_more_urgent_for_a_while() {
    let given_back = |prio: i32| {
        move |w: &mut Wakeup| {
            w.woken_by = WokenBy::Waker { task: rm(), on: 0, in_interrupt: false };
            w.interrupted = None;
            let deboost = What::Deboost(task(412, "rm", Policy::Other, prio));
            w.events = vec![event(70, deboost), event(100, switch(rm(), w.task.clone()))];
        }
    };
    let runs = |prio| {
        let mut wakeup = woken(0, false);
        wakeup.task = task(10, "probe", Policy::Other, 120);
        given_back(prio)(&mut wakeup);
        super::shares(&wakeup)
    };
    assert!(
        runs(4).contains(&"equal_or_lower_task 80 rm[412] other bound".into()),
        "{:?}",
        runs(4)
    );
    assert!(
        runs(121).contains(&"equal_or_lower_task 80 rm[412] other edge".into()),
        "{:?}",
        runs(121)
    );
}

/// Ticks during a long wait have filled the ring; the last switches are kept apart from them.
#[test]
fn who_had_the_cpu_is_known_where_switches_were_kept() {
    let lost_until = |from: Option<u64>, w: &mut Wakeup| {
        w.lost = 300;
        w.known_switches = from.map(|us| KnownSwitches { from: at(us), interrupts_ns: 4_000 });
        w.interrupted.as_mut().unwrap().task = rm();
        w.events = vec![
            event(30, switch(rm(), spin())),
            // The begin of the first one is lost.
            event(71, exit("local_timer")),
            event(75, entry("local_timer")),
            event(76, exit("local_timer")),
            event(90, switch(spin(), w.task.clone())),
        ];
    };
    let lost = |switches_known: bool, w: &mut Wakeup| lost_until(switches_known.then_some(0), w);
    // The time of a section may be that of an interrupt that was lost.
    check(
        timer(),
        |w| lost(true, w),
        &[
            "higher_priority_task 45 spin[7] fifo 95 bound",
            "unexplained 15",
            "scheduler 20 switch bound",
            WAIT,
            TIMER,
        ],
    );
    check(
        timer(),
        |w| lost(false, w),
        &["unexplained 60", "scheduler 20 switch bound", WAIT, TIMER],
    );
    // From the first switch that was kept on, also if there were more before.
    check(
        timer(),
        |w| lost_until(Some(30), w),
        &[
            "higher_priority_task 45 spin[7] fifo 95 bound",
            "unexplained 15",
            "scheduler 20 switch bound",
            WAIT,
            TIMER,
        ],
    );
    check(
        timer(),
        |w| lost_until(Some(31), w),
        &["unexplained 60", "scheduler 20 switch bound", WAIT, TIMER],
    );
    // Switches tell of throttling, too.
    check(
        timer(),
        |w| {
            lost(true, w);
            w.throttled = true;
            w.interrupted = Some(Context { task: idle(), ..Context::default() });
            w.events[0] = event(30, switch(idle(), rm()));
            w.events[4] = event(90, switch(rm(), w.task.clone()));
        },
        &[
            "throttled 51 fifo 90 bound",
            "scheduler 20 switch bound",
            "idle_exit 10 bound",
            TIMER,
            "unexplained 9",
        ],
    );
    // A switch that does not fit says that one was lost after all.
    check(
        timer(),
        |w| {
            lost(true, w);
            w.events[4] = event(79, switch(idle(), rm()));
        },
        &["unexplained 60", "scheduler 20 switch bound", WAIT, TIMER],
    );
    // Events that are out of order may lack anything.
    check(
        timer(),
        |w| {
            lost(true, w);
            w.events.swap(2, 3);
        },
        &["unexplained 60", "scheduler 20 switch bound", WAIT, TIMER],
    );
}

/// Two that wake each other have filled the ring and the switches. Programs have added up how long each ran.
#[test]
fn who_ran_is_known_where_switches_were_lost() {
    let ran = |all: &[(Task, u64)], w: &mut Wakeup| {
        w.lost = 40_000;
        let ran = |(task, us): &(Task, u64)| Ran { task: task.clone(), ns: us * 1_000 };
        w.ran.tasks = all.iter().map(ran).collect();
    };
    let ordinary = |w: &mut Wakeup| w.task = task(10, "work", Policy::Other, 120);
    let (last, first) = ("scheduler 20 switch bound", [WAIT, TIMER]);
    let check = |change: &dyn Fn(&mut Wakeup), shares: &[&str]| {
        let all: Vec<&str> = shares.iter().copied().chain(first).collect();
        check(timer(), change, &all);
    };
    let spins = |us: u64| format!("higher_priority_task {us} spin[7] fifo 95 bound");
    let works = |us: u64| format!("equal_or_lower_task {us} rm[412] other bound");
    // Who wakes has to wait for the one, and for the other only if it is an ordinary task.
    let both = [(spin(), 25), (rm(), 10)];
    check(&|w| ran(&both, w), &["unexplained 35", &spins(25), last]);
    check(
        &|w| {
            ran(&both, w);
            ordinary(w);
        },
        &[&spins(25), "unexplained 25", last, &works(10)],
    );
    // A real-time task of a lower priority gives way at once, unless code keeps it; one of the same does not.
    let fifo = |prio| task(8, "fifo", Policy::Fifo, prio);
    let of_same = "equal_or_lower_task 30 fifo[8] fifo 90 bound";
    check(&|w| ran(&[(fifo(probe().prio + 1), 30)], w), &["unexplained 60", last]);
    check(&|w| ran(&[(fifo(probe().prio), 30)], w), &[of_same, "unexplained 30", last]);
    // Of those that are not known an ordinary task has to wait for all.
    let others = |w: &mut Wakeup| {
        ran(&[(rm(), 25)], w);
        (w.ran.others_ns, w.ran.urgent_others_ns) = (15_000, 18_000);
    };
    check(&others, &["unexplained 60", last]);
    check(
        &|w| {
            others(w);
            ordinary(w);
        },
        &[
            &works(25),
            last,
            "higher_priority_task 18 bound",
            "equal_or_lower_task 15 bound",
            "unexplained 2",
        ],
    );
    // They did not run for longer than there was time.
    check(
        &|w| {
            ran(&[(spin(), 300), (rm(), 200)], w);
            ordinary(w);
        },
        &[&spins(36), &works(24), last],
    );
    // What is known of a switch that was kept counts once.
    let kept = |us: u64, w: &mut Wakeup| {
        ran(&[(spin(), us)], w);
        w.known_switches = Some(KnownSwitches { from: at(50), interrupts_ns: 0 });
        w.events = vec![event(50, switch(rm(), spin())), event(90, switch(spin(), probe()))];
    };
    check(&|w| kept(30, w), &[&spins(30), "unexplained 30", last]);
    check(&|w| kept(45, w), &[&spins(45), last, "unexplained 15"]);
    // Who waits does not run, and of one that was idle nothing follows.
    check(&|w| ran(&[(probe(), 30), (idle(), 30)], w), &["unexplained 60", last]);
}

#[test]
fn what_interrupts_took_is_known_though_they_were_lost() {
    // 60 us of an ordinary task's wait of 80 are lost.
    let taken = |us: [u64; 3], w: &mut Wakeup| {
        w.lost = 40_000;
        let [interrupts_ns, softirqs_ns, nmis_ns] = us.map(|us| us * 1_000);
        w.taken = Taken { interrupts_ns, softirqs_ns, nmis_ns };
        w.task = task(10, "work", Policy::Other, 120);
    };
    let last = "scheduler 20 switch bound";
    let check_with = |handler, change: &dyn Fn(&mut Wakeup), shares: &[&str]| {
        let all: Vec<&str> = shares.iter().copied().chain([WAIT, handler]).collect();
        check(timer(), change, &all);
    };
    let check = |change: &dyn Fn(&mut Wakeup), shares: &[&str]| check_with(TIMER, change, shares);
    // Of interrupts, the wakeup's own handler has had 10. NMIs may have come in it.
    check_with(
        "irq 10 local_timer bound",
        &|w| taken([25, 18, 2], w),
        &["unexplained 25", last, "softirq 18 bound", "irq 15 bound", "nmi 2 bound"],
    );
    // They did not take longer than there was time.
    check(&|w| taken([130, 40, 0], w), &["irq 45 bound", last, "softirq 15 bound"]);
    // Whatever took time from interrupts is in their sums.
    let stolen = |w: &mut Wakeup| {
        taken([25, 18, 0], w);
        w.events = vec![event(12, What::Steal(1)), event(90, What::Steal(12_001))];
    };
    check(
        &stolen,
        &["unexplained 39", last, "steal 12 hypervisor bound", "softirq 6 bound", "irq 3 bound"],
    );
    // Beside who ran, and beside a switch that was kept.
    let both = |w: &mut Wakeup| {
        taken([40, 0, 0], w);
        w.ran.tasks = vec![Ran { task: rm(), ns: 30_000 }];
    };
    check(&both, &["irq 30 bound", "equal_or_lower_task 30 rm[412] other bound", last]);
    let kept = |w: &mut Wakeup| {
        taken([30, 0, 0], w);
        w.known_switches = Some(KnownSwitches { from: at(10), interrupts_ns: 20_000 });
        w.events = vec![event(50, switch(rm(), spin())), event(90, switch(spin(), probe()))];
    };
    // Either of the two may have run in the rest.
    check(
        &kept,
        &[
            "irq 20 bound",
            "unexplained 20",
            last,
            "higher_priority_task 10 spin[7] fifo 95 bound",
            "equal_or_lower_task 10 rm[412] other bound",
        ],
    );
    // Unless it is known how long they did.
    let known = |w: &mut Wakeup| {
        kept(w);
        w.ran.tasks = vec![Ran { task: rm(), ns: 15_000 }, Ran { task: spin(), ns: 25_000 }];
    };
    check(
        &known,
        &[
            "higher_priority_task 25 spin[7] fifo 95 bound",
            "irq 20 bound",
            last,
            "equal_or_lower_task 15 rm[412] other bound",
        ],
    );
}

/// The interrupt comes where the scheduler turns interrupts on again after a switch, with preemption still off. It
/// looks again whether somebody is to run before it goes back to its caller.
#[test]
fn the_scheduler_that_has_just_switched_has_preemption_off_itself() {
    let stack = ["finish_task_switch", "__schedule", "schedule", "worker_thread"];
    let depth = |depth| {
        move |w: &mut Wakeup| {
            let context = w.interrupted.as_mut().unwrap();
            (context.preemptible, context.preempt_depth) = (Some(true), Some(depth));
            context.stack = frames(&stack);
        }
    };
    let off = "irq_off 10 __schedule (rm[412]) stack";
    // Known as well as the least known part of it.
    check(
        timer(),
        depth(2),
        &["scheduler 77 switch bound", "scheduler 3 return from interrupt bound", off, TIMER],
    );
}

/// Where each switch says whether real-time tasks are held back, one that does not say so had another reason. (Core
/// scheduling keeps a CPU idle beside a task of another cookie.)
#[test]
fn a_switch_that_would_say_so_and_does_not_is_no_throttling() {
    let sh = || task(9, "sh", Policy::Other, 120);
    for (to, throttled, shows_throttling, want) in [
        (sh(), false, false, "throttled 60 fifo 90 bound"),
        (sh(), false, true, "unexplained 60"),
        (idle(), false, true, "unexplained 60"),
        (idle(), true, true, "throttled 70 fifo 90 bound"),
        (spin(), false, true, "higher_priority_task 60 spin[7] fifo 95 edge"),
    ] {
        let events =
            vec![event(30, switch(rm(), to.clone())), event(90, switch(to.clone(), probe()))];
        let mut wakeup = Wakeup { throttled, events, ..timer() };
        wakeup.marks.sched_entry = None;
        let got = shares_of_run(&wakeup, &Known { shows_throttling, ..Known::default() });
        assert!(got.iter().any(|share| share == want), "{to:?}, {throttled}: {got:?}");
    }
    // No switch shows that a deadline task was stopped when it was queued.
    let own = || task(100, "probe", Policy::Deadline, -1);
    let events = vec![event(30, switch(rm(), sh())), event(90, switch(sh(), own()))];
    let mut wakeup = Wakeup { task: own(), events, ..timer() };
    wakeup.marks.sched_entry = None;
    let got = shares_of_run(&wakeup, &Known { shows_throttling: true, ..Known::default() });
    assert!(got.iter().any(|share| share.starts_with("throttled 60 ")), "{got:?}");
}
