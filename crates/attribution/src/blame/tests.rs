//! Wakeups made by hand: due at 0, answered at 100 µs unless a test says otherwise.

mod disturbed;
mod edges;
mod guests;
mod in_thread;
mod lent;
mod moved;
mod random;
mod remote;
mod same_time;
mod scenes;
mod softirqs;
mod stacks;
mod switched;
mod way_out;

use crate::testing::{frame, joined, place, who};
use wakescope_core::explain::{
    Cause, Context, Event, Evidence, Frame, GivenUp, Interrupt, Known, KnownSwitches, Marks, Mode,
    Policy, Ran, RunTimes, Share, Taken, Task, Wakeup, What, WokenBy,
};
use wakescope_core::units::MonoNs;

/// Wakeups are due at this time, so that events can lie before.
const DUE: u64 = 1_000_000;

pub(super) fn at(us: u64) -> MonoNs {
    MonoNs(DUE + us * 1_000)
}

pub(super) fn event(us: u64, what: What) -> Event {
    Event { at: at(us), what }
}

pub(super) fn entry(name: &str) -> What {
    What::IrqEntry(Interrupt(name.into()))
}

pub(super) fn exit(name: &str) -> What {
    What::IrqExit(Interrupt(name.into()))
}

pub(super) fn task(pid: u32, comm: &str, policy: Policy, prio: i32) -> Task {
    Task { pid, comm: comm.into(), policy, prio }
}

pub(super) fn probe() -> Task {
    task(10, "probe", Policy::Fifo, 9)
}

pub(super) fn rm() -> Task {
    task(412, "rm", Policy::Other, 120)
}

pub(super) fn spin() -> Task {
    task(7, "spin", Policy::Fifo, 4)
}

pub(super) fn idle() -> Task {
    task(0, "swapper/0", Policy::Other, 120)
}

pub(super) fn switch(from: Task, to: Task) -> What {
    What::Switch { from, to }
}

pub(super) fn frames(names: &[&str]) -> Vec<Frame> {
    names.iter().map(|&name| Frame::in_function(name, 16)).collect()
}

/// `rm` in the kernel, removing pages.
pub(super) fn in_kernel() -> Context {
    Context {
        task: rm(),
        mode: Mode::Kernel,
        preempt_depth: Some(0),
        preemptible: Some(false),
        stack: frames(&["shmem_undo_range", "evict", "exit_mmap", "mmput", "do_exit"]),
        ..Context::default()
    }
}

/// A timer's wakeup of the probe with an interrupt from 10 to 20 µs, the scheduler's entry at 80
/// and the switch at 90.
pub(super) fn timer() -> Wakeup {
    Wakeup {
        task: probe(),
        woken_by: WokenBy::Timer { on: 0 },
        marks: Marks {
            due: at(0),
            irq_entry: Some(at(10)),
            irq_exit: Some(at(20)),
            sched_entry: Some(at(80)),
            switch_in: Some(at(90)),
            response: at(100),
        },
        interrupted: Some(in_kernel()),
        ..Wakeup::default()
    }
}

/// The same without an interrupt, by `rm` or its interrupt on CPU `on`.
pub(super) fn woken(on: u32, in_interrupt: bool) -> Wakeup {
    let mut wakeup = timer();
    wakeup.woken_by = WokenBy::Waker { task: rm(), on, in_interrupt };
    wakeup.marks.irq_entry = None;
    wakeup.marks.irq_exit = None;
    wakeup
}

/// As outside of tests, with the thresholds that are to be tried.
fn blame(wakeup: &Wakeup, known: &Known) -> Vec<Share> {
    super::blame_with(&moved::tuning(), wakeup, known)
}

/// The shares as `cause µs culprit (within) evidence`; µs with a fraction where there is one.
pub(super) fn shares(wakeup: &Wakeup) -> Vec<String> {
    shares_of_run(wakeup, &Known::default())
}

/// The same in a run that teaches something.
fn shares_of_run(wakeup: &Wakeup, known: &Known) -> Vec<String> {
    let shares = blame(wakeup, known);
    let line = |share: &Share| {
        let evidence = match share.evidence {
            _ if share.cause == Cause::Unexplained => "",
            Evidence::Edge => " edge",
            Evidence::Stack => " stack",
            Evidence::Bound => " bound",
        };
        let place = match place(&share.within, share.waiting_for_lock).as_str() {
            "" => String::new(),
            within => format!(" ({within})"),
        };
        let culprit = who(share.blamed());
        let gap = if culprit.is_empty() { "" } else { " " };
        let us = share.ns as f64 / 1_000.0;
        format!("{} {us}{gap}{culprit}{place}{evidence}", share.cause)
    };
    shares.iter().map(line).collect()
}

/// Checks the shares of a wakeup that differs from `wakeup` by `change`, in any order: that the
/// largest comes first is checked for all wakeups at once.
#[track_caller]
pub(super) fn check(mut wakeup: Wakeup, change: impl FnOnce(&mut Wakeup), want: &[&str]) {
    change(&mut wakeup);
    let (mut got, mut want) = (shares(&wakeup), want.to_vec());
    got.sort();
    want.sort_unstable();
    assert_eq!(got, want);
}

#[test]
fn what_every_wakeup_takes_holds_nobody_up() {
    let known = Known {
        delivery_ns: 2_000,
        scheduling_ns: Some(1_000),
        least_sched_latency_ns: None,
        waking_ns: None,
        guest: false,
        ticks: false,
        probes: true,
        shows_softirqs_left: false,
        shows_throttling: false,
    };
    let mut got = shares_of_run(&timer(), &known);
    got.sort();
    let place = "shmem_undo_range (exit_mmap in rm[412])";
    let has = |share: &str| assert!(got.iter().any(|s| s == share), "{share}: {got:?}");
    has("irq 2 delivery bound");
    // Twice the usual, and the way back.
    has("scheduler 10 switch edge");
    has("unexplained 10");
    assert!(got.iter().any(|s| s.starts_with("irq_off")), "{place}: {got:?}");
}

#[test]
fn a_section_that_ends_with_the_interrupt_is_not_what_goes_on() {
    let unlock = |depth| {
        move |wakeup: &mut Wakeup| {
            let context = wakeup.interrupted.as_mut().unwrap();
            context.preempt_depth = Some(depth);
            context.preemptible = None;
            context.stack.insert(0, frame("_raw_spin_unlock_irqrestore+0x19"));
        }
    };
    for (depth, want) in [(1, "no_preemption_point"), (2, "preempt_off")] {
        let mut wakeup = timer();
        unlock(depth)(&mut wakeup);
        let got = shares(&wakeup);
        assert!(got.iter().any(|share| share.starts_with(want)), "{depth}: {got:?}");
    }
}

#[test]
fn a_later_stack_tells_where_preemption_was_off_and_not_who_kept_the_interrupt_out() {
    let mut wakeup = timer();
    let context = wakeup.interrupted.as_mut().unwrap();
    context.preempt_depth = Some(1);
    context.preemptible = Some(true);
    // Interrupts were off within the section; that is where the later one came.
    context.stack.insert(0, frame("_raw_spin_unlock_irqrestore+0x19"));
    context.stack_is_later = true;
    let off = "preempt_off 60 shmem_undo_range (exit_mmap in rm[412]) stack";
    check(wakeup, |_| {}, &[off, SWITCH, "irq_off 10 (rm[412]) bound", TIMER]);
}

const SWITCH: &str = "scheduler 20 switch edge";
const TIMER: &str = "irq 10 local_timer edge";
const WAIT: &str = "irq_off 10 shmem_undo_range (exit_mmap in rm[412]) stack";
const HELD: &str = "no_preemption_point 60 shmem_undo_range (exit_mmap in rm[412]) stack";

#[test]
fn kernel_code_holds_the_interrupt_up_and_then_the_switch() {
    check(timer(), |_| {}, &[HELD, SWITCH, WAIT, TIMER]);
    let depth = |n| move |w: &mut Wakeup| w.interrupted.as_mut().unwrap().preempt_depth = n;
    let off = "preempt_off 60 shmem_undo_range (exit_mmap in rm[412]) stack";
    // Where nobody is preempted, it does not matter whether preemption was off for a moment.
    check(timer(), depth(Some(2)), &[HELD, SWITCH, WAIT, TIMER]);
    for preemptible in [Some(true), None] {
        let section = |w: &mut Wakeup| {
            depth(Some(2))(w);
            w.interrupted.as_mut().unwrap().preemptible = preemptible;
        };
        check(timer(), section, &[off, SWITCH, WAIT, TIMER]);
    }
    check(timer(), depth(None), &[HELD, SWITCH, WAIT, TIMER]);
}

#[test]
fn full_preemption_leaves_the_way_back_only() {
    let preemptible = |w: &mut Wakeup| w.interrupted.as_mut().unwrap().preemptible = Some(true);
    let way_back = "scheduler 3 return from interrupt bound";
    check(timer(), preemptible, &["unexplained 57", SWITCH, WAIT, TIMER, way_back]);
    let user = |w: &mut Wakeup| w.interrupted.as_mut().unwrap().mode = Mode::User;
    check(timer(), user, &["unexplained 67", SWITCH, TIMER, way_back]);
    check(timer(), |w| w.interrupted = None, &["unexplained 67", SWITCH, TIMER, way_back]);
}

#[test]
fn a_stack_that_is_not_there_proves_nothing() {
    let bare = |w: &mut Wakeup| w.interrupted.as_mut().unwrap().stack.clear();
    check(
        timer(),
        bare,
        &["no_preemption_point 60 (rm[412]) bound", SWITCH, "irq_off 10 (rm[412]) bound", TIMER],
    );
    let gave_up = |w: &mut Wakeup, pid| {
        let stack = frames(&["__cond_resched", "shmem_undo_range", "exit_mmap"]);
        w.given_up = Some(GivenUp { pid, stack, ..GivenUp::default() });
    };
    // The same code was seen where it gave the CPU up: that it had interrupts off before was not.
    check(
        timer(),
        |w| {
            bare(w);
            gave_up(w, rm().pid);
        },
        &[HELD, SWITCH, "irq_off 10 (rm[412]) bound", TIMER],
    );
    // Somebody else did.
    check(
        timer(),
        |w| {
            bare(w);
            gave_up(w, spin().pid);
        },
        &["no_preemption_point 60 (rm[412]) bound", SWITCH, "irq_off 10 (rm[412]) bound", TIMER],
    );
}

#[test]
fn where_code_gave_up_the_cpu_is_told_beside_where_it_was_seen() {
    let shown = |pid| {
        let stack = frames(&["__cond_resched", "shmem_undo_range"]);
        let given_up = Some(GivenUp { pid, stack, ..GivenUp::default() });
        let shares = blame(&Wakeup { given_up, ..timer() }, &Known::default());
        let with = shares.iter().filter(|share| !share.given_up_at.is_empty());
        with.map(|s| format!("{} {}", s.cause, joined(&s.given_up_at))).collect::<Vec<_>>()
    };
    let text = "no_preemption_point __cond_resched+0x10 shmem_undo_range+0x10";
    assert_eq!(shown(rm().pid), [text]);
    assert_eq!(shown(spin().pid), [""; 0]);
}

#[test]
fn an_idle_cpu_wakes_first() {
    check(
        timer(),
        |w| {
            let mode = Mode::Idle("C6".into());
            w.interrupted = Some(Context { task: idle(), mode, ..Context::default() });
        },
        &["idle_exit 70 C6 bound", SWITCH, TIMER],
    );
}

/// Simulated: `idle_exit` was unexplained where a device woke the CPU while the timer was due, and what it
/// woke had let the timer's interrupt in.
#[test]
fn a_cpu_that_another_interrupt_woke_had_slept() {
    let woken_by_device = |from: Task| {
        move |w: &mut Wakeup| {
            w.interrupted = Some(Context { enabled_interrupts: Some(false), ..in_kernel() });
            w.events = vec![
                event(3, entry("eth0")),
                event(5, exit("eth0")),
                event(6, switch(from.clone(), rm())),
                event(90, switch(rm(), w.task.clone())),
            ];
        }
    };
    let [timer_irq, device] = ["irq 10 local_timer edge", "irq 2 eth0 edge"];
    let held = "no_preemption_point 60 shmem_undo_range (exit_mmap in rm[412]) stack";
    let slept = ["idle_exit 3 bound", timer_irq, device, held, SWITCH, "unexplained 5"];
    check(timer(), woken_by_device(idle()), &slept);
    check(timer(), woken_by_device(spin()), &[timer_irq, device, held, SWITCH, "unexplained 8"]);
}

#[test]
fn without_its_end_a_section_is_a_bound() {
    check(
        timer(),
        |w| (w.marks.sched_entry, w.marks.switch_in) = (None, None),
        &["no_preemption_point 80 shmem_undo_range (exit_mmap in rm[412]) bound", WAIT, TIMER],
    );
}

#[test]
fn more_urgent_tasks_come_first() {
    let spin = |w: &mut Wakeup| w.interrupted.as_mut().unwrap().task = spin();
    let wait = "irq_off 10 shmem_undo_range (exit_mmap in spin[7]) stack";
    check(timer(), spin, &["higher_priority_task 60 spin[7] fifo 95 edge", SWITCH, wait, TIMER]);
    check(
        timer(),
        |w| w.interrupted.as_mut().unwrap().task = task(8, "peer", Policy::Fifo, 9),
        &[
            "equal_or_lower_task 60 peer[8] fifo 90 edge",
            SWITCH,
            "irq_off 10 shmem_undo_range (exit_mmap in peer[8]) stack",
            TIMER,
        ],
    );
}

#[test]
fn other_tasks_that_are_switched_to_are_named() {
    let to = |other: Task| {
        move |w: &mut Wakeup| {
            w.events = vec![
                event(30, What::SchedEntry),
                event(30, switch(rm(), other.clone())),
                event(90, switch(other, w.task.clone())),
            ]
        }
    };
    let held = "no_preemption_point 10 shmem_undo_range (exit_mmap in rm[412]) stack";
    let want = |first: &'static str| [first, SWITCH, WAIT, TIMER, held];
    let bound = "equal_or_lower_task 10 rm[412] other bound";
    let ordinary = |first: &'static str| [first, SWITCH, WAIT, TIMER, bound];
    check(timer(), to(spin()), &want("higher_priority_task 50 spin[7] fifo 95 edge"));
    check(
        timer(),
        to(task(8, "peer", Policy::RoundRobin, 9)),
        &want("equal_or_lower_task 50 peer[8] rr 90 edge"),
    );
    let other = || task(9, "sh", Policy::Other, 120);
    check(timer(), to(other()), &want("throttled 50 fifo 90 bound"));
    check(timer(), to(idle()), &want("throttled 50 fifo 90 bound"));
    check(
        timer(),
        |w| {
            to(other())(w);
            w.task = task(10, "probe", Policy::Other, 120);
        },
        &ordinary("equal_or_lower_task 50 sh[9] other edge"),
    );
    // A quota of some tasks is refilled while another one runs.
    check(
        timer(),
        |w| {
            to(other())(w);
            w.task = task(10, "probe", Policy::Other, 120);
            let refilled = || What::TimerEntry("sched_cfs_period_timer".into(), 1);
            w.events.splice(
                2..2,
                [
                    event(50, entry("local_timer")),
                    event(52, refilled()),
                    event(58, What::TimerExit),
                    event(60, exit("local_timer")),
                ],
            );
        },
        &[
            "equal_or_lower_task 40 sh[9] other bound",
            "irq 14 local_timer edge",
            "irq 6 sched_cfs_period_timer (local_timer) edge",
            SWITCH,
            WAIT,
            bound,
        ],
    );
    check(
        timer(),
        |w| {
            to(idle())(w);
            w.task = task(10, "probe", Policy::Other, 120);
        },
        &ordinary("unexplained 50"),
    );
    // The kernel counts how long a quota has stopped the task, and not when.
    let stopped = |other: fn() -> Task, quota_ns| {
        move |w: &mut Wakeup| {
            to(other())(w);
            w.task = task(10, "probe", Policy::Other, 120);
            w.quota_ns = Some(quota_ns);
        }
    };
    check(
        timer(),
        stopped(other, 40_000),
        &[
            "throttled 40 other bound",
            "equal_or_lower_task 10 sh[9] other bound",
            SWITCH,
            WAIT,
            TIMER,
            bound,
        ],
    );
    check(timer(), stopped(idle, 50_000), &ordinary("throttled 50 other bound"));
    check(timer(), stopped(other, 0), &ordinary("equal_or_lower_task 50 sh[9] other edge"));
    // More than an interrupt and the switch leave.
    check(timer(), stopped(idle, 90_000), &["throttled 60 other bound", SWITCH, WAIT, TIMER]);
    check(
        timer(),
        |w| {
            to(other())(w);
            w.throttled = true;
        },
        &["throttled 60 fifo 90 bound", SWITCH, WAIT, TIMER],
    );
}

#[test]
fn timers_within_the_interrupt_are_named() {
    let events = |w: &mut Wakeup| {
        w.events = vec![
            event(10, entry("arch_timer")),
            event(12, What::TimerEntry("hrtimer_wakeup".into(), 1)),
            event(13, What::TimerExit),
            event(13, What::TimerEntry("tick_nohz_handler".into(), 1)),
            event(18, What::TimerExit),
            event(20, exit("arch_timer")),
        ]
    };
    check(
        timer(),
        events,
        &[
            HELD,
            SWITCH,
            WAIT,
            "irq 5 tick_nohz_handler (arch_timer) edge",
            "irq 4 arch_timer edge",
            "irq 1 hrtimer_wakeup (arch_timer) edge",
        ],
    );
}

#[test]
fn interrupts_and_softirqs_take_their_time_from_what_they_break_into() {
    check(
        timer(),
        |w| {
            w.events = vec![
                event(2, entry("eth0")),
                event(5, exit("eth0")),
                event(20, What::SoftirqEntry(3)),
                event(22, entry("nvme")),
                event(24, exit("nvme")),
                event(40, What::SoftirqExit(3)),
                event(50, What::SoftirqEntry(9)),
                event(51, What::SoftirqExit(9)),
                event(95, entry("nvme")),
                event(96, exit("nvme")),
            ]
        },
        &[
            "no_preemption_point 39 shmem_undo_range (exit_mmap in rm[412]) stack",
            "scheduler 19 switch edge",
            "softirq 18 NET_RX (rm[412]) edge",
            TIMER,
            "irq_off 7 shmem_undo_range (exit_mmap in rm[412]) stack",
            "irq 3 eth0 edge",
            "irq 3 nvme edge",
            "softirq 1 RCU (rm[412]) edge",
        ],
    );
}

#[test]
fn a_softirq_is_shown_with_the_stack_that_was_taken_in_it() {
    let shown = |stack: &[&str]| {
        let mut wakeup = timer();
        let context = wakeup.interrupted.as_mut().unwrap();
        (context.softirq, context.stack) = (Some(3), frames(stack));
        wakeup.events = vec![event(50, What::SoftirqExit(3))];
        let shares = blame(&wakeup, &Known::default());
        let softirq = shares.iter().find(|share| share.cause == Cause::Softirq).unwrap();
        joined(&softirq.frames)
    };
    let stack = ["poll", "net_rx_action", "handle_softirqs", "exit_mmap"];
    assert_eq!(shown(&stack), "poll+0x10 net_rx_action+0x10");
    // A later interrupt may have come into another one.
    assert_eq!(shown(&["f", "run_timer_softirq", "handle_softirqs", "exit_mmap"]), "");
    assert_eq!(shown(&["shmem_undo_range", "exit_mmap"]), "");
    assert_eq!(shown(&[]), "");
}

#[test]
fn a_softirq_that_was_interrupted_goes_on_to_its_end() {
    let in_softirq = |w: &mut Wakeup| {
        let context = w.interrupted.as_mut().unwrap();
        context.softirq = Some(3);
        context.preempt_depth = Some(1);
        context.stack = frames(&["poll", "net_rx_action", "handle_softirqs", "exit_mmap"]);
    };
    let wait = "irq_off 10 poll (net_rx_action in softirq NET_RX of rm[412]) stack";
    check(
        timer(),
        |w| {
            in_softirq(w);
            w.events = vec![event(50, What::SoftirqExit(3))];
        },
        &[
            "softirq 30 NET_RX (rm[412]) edge",
            "unexplained 27",
            SWITCH,
            wait,
            TIMER,
            "scheduler 3 return from interrupt bound",
        ],
    );
    check(
        timer(),
        in_softirq,
        &[
            "preempt_off 60 poll (net_rx_action in softirq NET_RX of rm[412]) stack",
            SWITCH,
            wait,
            TIMER,
        ],
    );
}

#[test]
fn page_faults_are_the_tasks_own() {
    check(
        timer(),
        |w| w.page_faults = 1,
        &[HELD, WAIT, TIMER, "page_fault 10 probe[10] bound", "scheduler 10 switch edge"],
    );
}

#[test]
fn the_wait_for_a_lock_is_told() {
    check(
        timer(),
        |w| {
            w.interrupted.as_mut().unwrap().preempt_depth = Some(1);
            w.events = vec![event(30, What::ContentionBegin), event(70, What::ContentionEnd)];
        },
        &[
            "no_preemption_point 40 shmem_undo_range (exit_mmap in rm[412], waiting for a lock) stack",
            "no_preemption_point 20 shmem_undo_range (exit_mmap in rm[412]) stack",
            SWITCH,
            WAIT,
            TIMER,
        ],
    );
}

#[test]
fn a_waker_goes_on_or_is_in_an_interrupt() {
    let user = |w: &mut Wakeup| w.interrupted = None;
    check(woken(0, false), user, &["equal_or_lower_task 80 rm[412] other bound", SWITCH]);
    check(
        woken(0, false),
        |_| {},
        &["no_preemption_point 80 shmem_undo_range (exit_mmap in rm[412]) stack", SWITCH],
    );
    let irq_exit = |w: &mut Wakeup| w.marks.irq_exit = Some(at(20));
    check(woken(0, true), irq_exit, &[HELD, "irq 20 edge", SWITCH]);
    // The interrupt's own events name it, and end it where there is no mark.
    check(
        woken(0, true),
        |w| w.events = vec![event(20, exit("eth0"))],
        &[HELD, "irq 20 eth0 edge", SWITCH],
    );
    // The thread of an interrupt is woken after the handler: what was interrupted goes on, at some time.
    let held = HELD.replace("60", "80").replace("stack", "bound");
    check(woken(0, true), |_| (), &[&held, SWITCH]);
    let same = task(8, "same", Policy::Fifo, probe().prio);
    for (runs, want) in [
        (spin(), "higher_priority_task 80 spin[7] fifo 95 bound"),
        (same, "equal_or_lower_task 80 same[8] fifo 90 bound"),
    ] {
        let context = Context { task: runs, mode: Mode::User, ..Context::default() };
        check(woken(0, true), |w| w.interrupted = Some(context), &[want, SWITCH]);
    }
    let lost = |w: &mut Wakeup| w.lost = 1;
    check(woken(0, true), lost, &["unexplained 80", "scheduler 20 switch bound"]);
    check(
        woken(0, true),
        |w| {
            w.events = vec![event(20, What::SoftirqExit(3))];
            w.interrupted.as_mut().unwrap().softirq = Some(3);
        },
        &[
            "unexplained 57",
            "scheduler 20 switch edge",
            "softirq 20 NET_RX (rm[412]) edge",
            "scheduler 3 return from interrupt bound",
        ],
    );
}

#[test]
fn another_cpu_calls_with_an_interrupt() {
    let called = |w: &mut Wakeup| {
        w.events = vec![event(30, entry("reschedule")), event(35, exit("reschedule"))];
        w.events.push(event(90, switch(idle(), probe())));
        w.interrupted = Some(Context { task: idle(), ..Context::default() });
    };
    check(
        woken(1, false),
        called,
        &["idle_exit 45 bound", "remote_wakeup 30 rm[412] bound", SWITCH, "irq 5 reschedule edge"],
    );
    // An idle CPU that watches for work needs no interrupt.
    check(
        woken(1, false),
        |w| w.interrupted = Some(Context { task: idle(), ..Context::default() }),
        &["idle_exit 80 bound", SWITCH],
    );
    check(
        timer(),
        |w| {
            called(w);
            w.woken_by = WokenBy::Timer { on: 3 };
        },
        &[
            "idle_exit 55 bound",
            SWITCH,
            "irq 10 local_timer bound",
            "remote_wakeup 10 CPU 3 bound",
            "irq 5 reschedule edge",
        ],
    );
}

#[test]
fn a_timers_interrupt_that_is_not_seen_explains_nothing() {
    let gone = |w: &mut Wakeup| (w.marks.irq_entry, w.marks.irq_exit) = (None, None);
    check(timer(), gone, &["unexplained 80", SWITCH]);
    check(timer(), |w| w.marks.irq_exit = None, &["unexplained 70", SWITCH, WAIT]);
    // Its exit's event stands in for the mark.
    check(
        timer(),
        |w| {
            w.marks.irq_exit = None;
            w.events = vec![event(10, entry("local_timer")), event(20, exit("local_timer"))];
        },
        &[HELD, SWITCH, WAIT, TIMER],
    );
}

#[test]
fn an_interrupt_whose_beginning_was_lost_is_the_usual_one() {
    let with = |name: &str| {
        let mut wakeup = timer();
        wakeup.events = vec![event(20, exit(name))];
        shares(&wakeup)
    };
    assert!(with("").contains(&TIMER.to_owned()), "{:?}", with(""));
    assert_eq!(with(""), with("local_timer"));
}
