use expect_test::{Expect, expect};
use proptest::collection::vec;
use proptest::prelude::*;
use wakescope_core::explain::{Cause, Culprit, Policy, Share, Task};
use wakescope_core::scope::edges::{
    Edge, EdgeKind, Edges, FunctionId, PreemptCount, State, TaskId, WayIn,
};

use super::{Late, Outside, outside};

const IDLE: TaskId = TaskId(0);
const FIND: TaskId = TaskId(1);
const PROBE: TaskId = TaskId(2);
const HOG: TaskId = TaskId(3);
const TWIN: TaskId = TaskId(4);

const TIMER: &str = "asm_sysvec_apic_timer_interrupt";

/// In a handler of an interrupt; need for rescheduling is the highest bit, upside down.
const HANDLER: PreemptCount = PreemptCount(0x8001_0000);
const HANDLER_RESCHED: PreemptCount = PreemptCount(0x1_0000);
const RESCHED: PreemptCount = PreemptCount(0);
const OFF_RESCHED: PreemptCount = PreemptCount(1);
const OFF: PreemptCount = PreemptCount(0x8000_0001);

fn count(count: PreemptCount) -> EdgeKind {
    EdgeKind::PreemptCount(count)
}

fn enter(way: WayIn, from_user: bool) -> EdgeKind {
    EdgeKind::Enter { way, from_user }
}

fn leave(to_user: bool) -> EdgeKind {
    EdgeKind::Leave { to_user }
}

/// A place: a function, and what called it. Nothing where it is empty.
type NamedEdge<'a> = (u64, EdgeKind, &'a str, &'a str);

fn tasks() -> Vec<Task> {
    let task = |pid, comm: &str, policy, prio| Task { pid, comm: comm.into(), policy, prio };
    vec![
        task(0, "swapper/0", Policy::Other, 120),
        task(5, "find", Policy::Other, 120),
        task(9, "probe", Policy::Fifo, 9),
        task(7, "hog", Policy::Fifo, 4),
        task(8, "twin", Policy::Fifo, 9),
    ]
}

fn edges(task: TaskId, named_edges: &[NamedEdge]) -> Edges {
    let mut functions: Vec<String> = Vec::new();
    let mut id = |name: &str| {
        if name.is_empty() {
            return None;
        }
        let place = functions.iter().position(|known| known == name).unwrap_or_else(|| {
            functions.push(name.into());
            functions.len() - 1
        });
        Some(FunctionId(u32::try_from(place).unwrap()))
    };
    let edges = named_edges.iter().map(|&(at_ns, what, function, caller)| {
        let (function, caller) = (id(function), id(caller));
        Edge { at_ns, function, caller, what }
    });
    let edges = edges.collect();
    let start = State { task: Some(task), ..State::default() };
    Edges { window_ns: 0..100_000, start, edges, functions, tasks: tasks(), ..Edges::default() }
}

/// From the interrupt's end at `from` to the probe's own reading of the clock 100 ns later.
fn way_to_probe(from: u64) -> Vec<NamedEdge<'static>> {
    vec![
        (from, count(RESCHED), "irq_exit_rcu", ""),
        (from + 10, count(OFF_RESCHED), "preempt_schedule_irq", ""),
        (from + 20, EdgeKind::Schedule, "__schedule", "preempt_schedule_irq"),
        (from + 40, EdgeKind::Switch(PROBE), "__switch_to", ""),
        (from + 60, count(PreemptCount::ON), "schedule", ""),
        (from + 70, EdgeKind::IrqsOn, "syscall_return_via_sysret", ""),
        (from + 70, leave(true), "syscall_return_via_sysret", ""),
        (from + 100, EdgeKind::UserClock, "", ""),
        (from + 900, enter(WayIn::SystemCall, true), "entry_SYSCALL_64", ""),
    ]
}

/// The timer's interrupt from `from` on, 99 ns.
fn timer(from: u64, into: &'static str) -> Vec<NamedEdge<'static>> {
    vec![
        (from, enter(WayIn::Interrupt, into.is_empty()), TIMER, into),
        (from + 19, count(HANDLER), "irq_enter_rcu", ""),
        (from + 49, EdgeKind::Wake(PROBE), "try_to_wake_up", "hrtimer_wakeup"),
        (from + 59, count(HANDLER_RESCHED), "resched_curr", ""),
    ]
}

#[track_caller]
fn check(task: TaskId, named_edges: &[&[NamedEdge]], late: (u64, u64), want: Expect) {
    let edges = edges(task, &named_edges.concat());
    let late = Late { due_ns: late.0, response_ns: late.1 };
    let [Some(seen)] = &outside(&edges, &[late])[..] else { panic!("it was not followed") };
    assert_sums(late, seen);
    let shares = seen.blame.iter().map(|share| {
        let phase = share.phase.map(|phase| format!(" {phase:?}")).unwrap_or_default();
        let of = match &share.culprit {
            Culprit::None => String::new(),
            other => format!(" {}", other.name()),
        };
        let within = share.within.task.as_ref().map(|task| format!(" in {}", task.comm));
        let within = within.unwrap_or_default();
        format!("{} {}{phase}{of}{within}\n", share.ns, share.cause.name())
    });
    let parts = seen.components;
    let parts = format!(
        "{} {} {} {:?}\n",
        parts.irq_latency_ns,
        parts.handler_duration_ns,
        parts.sched_latency_ns,
        parts.sched_duration_ns
    );
    want.assert_eq(&(parts + &shares.collect::<String>()));
}

fn assert_sums(late: Late, seen: &Outside) {
    let lateness = late.response_ns - late.due_ns;
    assert_eq!(seen.blame.iter().map(|share| share.ns).sum::<u64>(), lateness, "{seen:#?}");
    assert_eq!(seen.components.total_ns(), lateness, "{seen:#?}");
}

#[test]
fn where_a_section_ended_is_kept_with_what_is_blamed() {
    let section = [
        (10, EdgeKind::IrqsOff, "_raw_spin_lock_irqsave", "free_bulk"),
        (400, EdgeKind::IrqsOn, "_raw_spin_unlock_irqrestore", "free_list"),
    ];
    let all = [&section[..], &timer(401, "free_list"), &way_to_probe(500)].concat();
    let [Some(seen)] = &outside(&edges(FIND, &all), &[Late { due_ns: 100, response_ns: 600 }])[..]
    else {
        panic!("it was not followed")
    };
    let end = seen.ends.iter().find(|end| end.cause == Cause::IrqOff).unwrap();
    let names: Vec<&str> = end.frames.iter().map(|frame| frame.name()).collect();
    assert_eq!(names, ["_raw_spin_unlock_irqrestore", "free_list"]);
    assert_eq!(end.culprit.name(), "free_bulk");
}

#[test]
fn a_section_with_interrupts_off_is_blamed_until_the_interrupt_comes() {
    let section = [
        (10, EdgeKind::IrqsOff, "_raw_spin_lock_irqsave", "free_bulk"),
        (400, EdgeKind::IrqsOn, "_raw_spin_unlock_irqrestore", "free_list"),
    ];
    check(
        FIND,
        &[&section, &timer(401, "free_list"), &way_to_probe(500)],
        (100, 600),
        expect![[r#"
            301 99 20 Some(80)
            300 irq_off free_bulk in find
            99 irq local_timer
            80 scheduler Switch
            20 scheduler ReturnFromInterrupt
            1 irq Delivery
        "#]],
    );
}

#[test]
fn nothing_holds_an_interrupt_off_before_its_timer_fires() {
    let section = [
        (5, EdgeKind::TimerSet(Some(155)), "native_apic_mem_write", "lapic_next_event"),
        (10, EdgeKind::IrqsOff, "_raw_spin_lock_irqsave", "free_bulk"),
        (160, EdgeKind::TimerFires, "", ""),
        (300, EdgeKind::TimerSet(Some(9_000)), "native_apic_mem_write", "lapic_next_event"),
        (400, EdgeKind::IrqsOn, "_raw_spin_unlock_irqrestore", "free_list"),
    ];
    // Set anew before its interrupt is taken, it asks all the same.
    check(
        FIND,
        &[&section, &timer(401, "free_list"), &way_to_probe(500)],
        (100, 600),
        expect![[r#"
            301 99 20 Some(80)
            240 irq_off free_bulk in find
            99 irq local_timer
            80 scheduler Switch
            60 irq Timer
            20 scheduler ReturnFromInterrupt
            1 irq Delivery
        "#]],
    );
    // The interrupt of a device asks for itself.
    let device = timer(401, "free_list").into_iter().map(|(at, what, function, caller)| {
        (at, what, if function == TIMER { "irq_entries_start" } else { function }, caller)
    });
    check(
        FIND,
        &[&section, &device.collect::<Vec<_>>(), &way_to_probe(500)],
        (100, 600),
        expect![[r#"
            301 99 20 Some(80)
            300 irq_off free_bulk in find
            99 irq device
            80 scheduler Switch
            20 scheduler ReturnFromInterrupt
            1 irq Delivery
        "#]],
    );
}

#[test]
fn a_section_with_preemption_off_is_blamed_after_the_interrupt() {
    let before = [(50, count(OFF), "_raw_spin_lock", "undo_range")];
    let after = [
        (200, count(PreemptCount(1)), "irq_exit_rcu", ""),
        (210, EdgeKind::IrqsOn, "native_iret", ""),
        (210, leave(false), "native_iret", ""),
        (700, count(RESCHED), "_raw_spin_unlock", "undo_range"),
    ];
    check(
        FIND,
        &[&before, &timer(101, "undo_range"), &after, &way_to_probe(705)],
        (100, 805),
        expect![[r#"
            1 99 525 Some(80)
            490 preempt_off undo_range in find
            99 irq local_timer
            90 scheduler Switch
            15 no_preemption_point undo_range in find
            10 scheduler ReturnFromInterrupt
            1 irq Delivery
        "#]],
    );
}

#[test]
fn interrupts_off_behind_the_interrupt_are_told_from_those_before_it() {
    let before = [
        (10, EdgeKind::IrqsOff, "_raw_spin_lock_irqsave", "free_bulk"),
        (400, EdgeKind::IrqsOn, "_raw_spin_unlock_irqrestore", "free_list"),
    ];
    // The same section once more, when the probe is ready, in a kernel that does not preempt.
    let behind = [
        (500, count(RESCHED), "irq_exit_rcu", ""),
        (510, EdgeKind::IrqsOn, "native_iret", ""),
        (510, leave(false), "native_iret", ""),
        (520, EdgeKind::IrqsOff, "_raw_spin_lock_irqsave", "free_bulk"),
        (590, EdgeKind::IrqsOn, "_raw_spin_unlock_irqrestore", "free_list"),
    ];
    let all = [&before[..], &timer(401, "free_list"), &behind, &way_to_probe(600)].concat();
    let late = Late { due_ns: 100, response_ns: 700 };
    let [Some(seen)] = &outside(&edges(FIND, &all), &[late])[..] else {
        panic!("it was not followed")
    };
    let lengths = |shares: &[Share]| {
        let irqs_off = shares.iter().filter(|share| share.cause == Cause::IrqOff);
        irqs_off.map(|share| share.ns).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&seen.blame), [300 + 70]);
    assert_eq!(lengths(&seen.irqs_off_when_ready), [70]);
}

#[test]
fn other_interrupts_softirqs_and_tasks_are_blamed_by_name() {
    let other = [
        (50, enter(WayIn::Interrupt, true), "irq_entries_start", ""),
        (60, count(HANDLER), "irq_enter_rcu", ""),
        (150, count(PreemptCount::ON), "irq_exit_rcu", ""),
        (160, EdgeKind::IrqsOn, "native_iret", ""),
        (160, leave(true), "native_iret", ""),
    ];
    let after = [
        (300, count(PreemptCount(0x100)), "handle_softirqs", ""),
        (310, EdgeKind::Softirq(3), "net_rx_action", "handle_softirqs"),
        (320, EdgeKind::IrqsOn, "handle_softirqs", ""),
        (900, count(RESCHED), "handle_softirqs", ""),
        (910, EdgeKind::IrqsOn, "native_iret", ""),
        (910, leave(true), "native_iret", ""),
        (2_000, enter(WayIn::SystemCall, true), "entry_SYSCALL_64", ""),
    ];
    check(
        HOG,
        &[&other, &timer(201, ""), &after, &way_to_probe(2_100)],
        (100, 2_200),
        expect![[r#"
            101 99 1820 Some(80)
            1210 higher_priority_task hog
            590 softirq NET_RX in hog
            99 irq local_timer
            80 scheduler Switch
            60 irq device
            41 irq Delivery
            10 softirq
            10 scheduler ReturnFromInterrupt
        "#]],
    );
}

/// A tick that comes when the probe has the CPU, and its softirqs: of 6.1 under `find`, 22 us of them counted as the
/// interrupt's.
#[test]
fn softirqs_are_blamed_that_come_when_the_task_has_the_cpu() {
    let switched = [
        (300, count(RESCHED), "irq_exit_rcu", ""),
        (310, count(OFF_RESCHED), "preempt_schedule_irq", ""),
        (320, EdgeKind::Schedule, "__schedule", "preempt_schedule_irq"),
        (340, EdgeKind::Switch(PROBE), "__switch_to", ""),
        (360, count(PreemptCount::ON), "schedule", ""),
        (370, EdgeKind::IrqsOn, "schedule", ""),
    ];
    let tick = [
        (380, enter(WayIn::Interrupt, false), TIMER, "schedule"),
        (390, count(HANDLER), "irq_enter_rcu", ""),
        (450, count(PreemptCount(0x100)), "handle_softirqs", ""),
        (460, EdgeKind::Softirq(9), "rcu_core_si", "handle_softirqs"),
        (470, EdgeKind::IrqsOn, "handle_softirqs", ""),
        // With an interrupt in it.
        (600, enter(WayIn::Interrupt, false), "irq_entries_start", "rcu_core_si"),
        (610, count(PreemptCount(0x1_0100)), "irq_enter_rcu", ""),
        (640, count(PreemptCount(0x100)), "irq_exit_rcu", ""),
        (650, EdgeKind::IrqsOn, "native_iret", ""),
        (650, leave(false), "native_iret", ""),
        (900, count(PreemptCount::ON), "handle_softirqs", ""),
        (910, EdgeKind::IrqsOn, "native_iret", ""),
        (910, leave(false), "native_iret", ""),
        (920, leave(true), "syscall_return_via_sysret", ""),
        (950, EdgeKind::UserClock, "", ""),
        (1_900, enter(WayIn::SystemCall, true), "entry_SYSCALL_64", ""),
    ];
    check(
        HOG,
        &[&timer(201, ""), &switched, &tick],
        (200, 950),
        expect![[r#"
        1 99 20 Some(630)
        410 softirq RCU
        179 irq local_timer
        100 scheduler Switch
        30 irq device
        20 scheduler ReturnFromInterrupt
        10 softirq
        1 irq Delivery
    "#]],
    );
}

/// A task of the same priority need not go, also where it is in the kernel. Code of an ordinary one is to be left.
#[test]
fn who_has_the_same_priority_has_the_cpu_in_the_kernel_too() {
    let back = [
        (200, count(PreemptCount::ON), "irq_exit_rcu", ""),
        (210, EdgeKind::IrqsOn, "native_iret", ""),
        (210, leave(false), "native_iret", ""),
    ];
    for (runs, want) in [
        (
            TWIN,
            expect![[r#"
        1 99 520 Some(80)
        500 equal_or_lower_task twin
        99 irq local_timer
        90 scheduler Switch
        10 scheduler ReturnFromInterrupt
        1 irq Delivery
    "#]],
        ),
        (
            FIND,
            expect![[r#"
        1 99 520 Some(80)
        500 no_preemption_point copy_page in find
        99 irq local_timer
        90 scheduler Switch
        10 scheduler ReturnFromInterrupt
        1 irq Delivery
    "#]],
        ),
    ] {
        check(runs, &[&timer(101, "copy_page"), &back, &way_to_probe(700)], (100, 800), want);
    }
}

#[test]
fn idle_cpus_and_probes_that_never_slept_are_explained() {
    let idle = [(5, count(OFF), "do_idle", ""), (20, EdgeKind::Halt, "default_idle", "")];
    let leaves = [
        (200, count(PreemptCount(1)), "irq_exit_rcu", ""),
        (230, EdgeKind::IrqsOn, "native_iret", ""),
        (230, leave(false), "native_iret", ""),
    ];
    let way = way_to_probe(250).split_off(1);
    check(
        IDLE,
        &[&idle, &timer(101, "default_idle"), &leaves, &way],
        (100, 350),
        expect![[r#"
            1 99 70 Some(80)
            99 irq local_timer
            80 scheduler Switch
            70 scheduler ReturnFromInterrupt
            1 irq Delivery
        "#]],
    );
    let awake = [
        (50, enter(WayIn::Exception, true), "asm_exc_page_fault", ""),
        (400, EdgeKind::IrqsOn, "native_iret", ""),
        (400, leave(true), "native_iret", ""),
        (500, EdgeKind::UserClock, "", ""),
        (900, EdgeKind::UserClock, "", ""),
    ];
    check(
        PROBE,
        &[&awake],
        (100, 500),
        expect![[r#"
            0 0 400 None
            300 page_fault
            100 scheduler Switch
        "#]],
    );
}

/// Such a kernel (6.12 for arm64) was taken to be in the scheduler until the next interrupt, and after it.
#[test]
fn the_scheduler_ends_where_interrupts_go_on_if_preemption_is_not_counted() {
    let switch = |from, to| {
        [
            (from, EdgeKind::Schedule, "__schedule", "__cond_resched"),
            (from + 10, EdgeKind::IrqsOff, "__schedule", "__cond_resched"),
            (from + 20, count(PreemptCount::ON), "__schedule", ""),
            (from + 40, EdgeKind::Switch(to), "cpu_switch_to", ""),
            (from + 60, EdgeKind::IrqsOn, "finish_task_switch", "__schedule"),
        ]
    };
    let back = [
        (200, count(RESCHED), "irq_exit_rcu", ""),
        (210, EdgeKind::IrqsOn, "ret_to_kernel", ""),
        (210, leave(false), "ret_to_kernel", ""),
    ];
    let runs = [
        (780, leave(true), "ret_to_user", ""),
        (800, EdgeKind::UserClock, "", ""),
        (900, enter(WayIn::SystemCall, true), "el0t_64_sync", ""),
    ];
    check(
        PROBE,
        &[&switch(10, FIND), &timer(101, "shrink_list"), &back, &switch(700, PROBE), &runs],
        (100, 800),
        expect![[r#"
            1 99 500 Some(100)
            490 no_preemption_point shrink_list in find
            100 scheduler Switch
            99 irq local_timer
            10 scheduler ReturnFromInterrupt
            1 irq Delivery
        "#]],
    );
}

/// Seen in a guest whose program was slow: its time was taken for that of the timer's interrupt.
#[test]
fn a_task_that_is_awake_when_its_wakeup_is_due_has_that_time_itself() {
    let sleeps = [
        (50, EdgeKind::UserClock, "", ""),
        (400, enter(WayIn::SystemCall, true), "entry_SYSCALL_64", ""),
        (410, count(OFF), "schedule", ""),
        (420, EdgeKind::Schedule, "__schedule", "schedule"),
        (450, EdgeKind::Switch(FIND), "__switch_to", ""),
        (460, count(PreemptCount::ON), "schedule", ""),
        (470, EdgeKind::IrqsOn, "syscall_return_via_sysret", ""),
        (470, leave(true), "syscall_return_via_sysret", ""),
    ];
    check(
        PROBE,
        &[&sleeps, &timer(501, ""), &way_to_probe(600)],
        (100, 700),
        expect![[r#"
            401 99 20 Some(80)
            350 equal_or_lower_task probe
            99 irq local_timer
            80 scheduler Switch
            31 irq Delivery
            20 irq_off
            20 scheduler ReturnFromInterrupt
        "#]],
    );
}

#[test]
fn a_task_that_the_scheduler_is_about_to_leave_is_held_up_by_that() {
    // It was due at 100, and its timer's interrupt comes as soon as interrupts are on: 6.1, full.
    let sleeps = [
        (60, enter(WayIn::SystemCall, true), "entry_SYSCALL_64", ""),
        (70, count(OFF), "schedule", ""),
        (80, EdgeKind::Schedule, "__schedule", "schedule"),
        (90, EdgeKind::IrqsOff, "__schedule", "schedule"),
        (150, EdgeKind::Switch(FIND), "__switch_to", ""),
        (160, EdgeKind::IrqsOn, "finish_task_switch", "__schedule"),
    ];
    check(
        PROBE,
        &[&sleeps, &timer(161, ""), &way_to_probe(270)],
        (100, 400),
        expect![[r#"
        61 109 20 Some(110)
        110 scheduler Switch
        109 irq local_timer
        50 irq_off __schedule
        20 scheduler ReturnFromInterrupt
        10 irq_off __schedule in find
        1 irq Delivery
    "#]],
    );
}

#[test]
fn what_the_edges_do_not_reach_is_not_explained() {
    let named_edges = [&timer(101, "")[..], &way_to_probe(200)].concat();
    let edges = Edges { window_ns: 100..100_000, ..edges(FIND, &named_edges) };
    let late = |due_ns, response_ns| Late { due_ns, response_ns };
    let seen = outside(&edges, &[late(150, 1_200), late(110, 300), late(90, 300)]);
    assert!(matches!(&seen[..], [None, Some(_), None]), "{seen:#?}");
    // Of whom nothing is known.
    let unknown = Edges { tasks: Vec::new(), ..edges };
    assert_eq!(outside(&unknown, &[late(110, 300)]), [None]);
}

fn any_kind() -> impl Strategy<Value = EdgeKind> {
    let count = prop_oneof![
        Just(PreemptCount::ON),
        Just(RESCHED),
        Just(OFF),
        Just(HANDLER),
        any::<u32>().prop_map(PreemptCount)
    ];
    let task = || (0_u32..5).prop_map(TaskId);
    let ways = [WayIn::Interrupt, WayIn::Exception, WayIn::SystemCall];
    let way = prop::sample::select(ways.to_vec());
    prop_oneof![
        Just(EdgeKind::IrqsOff),
        Just(EdgeKind::IrqsOn),
        count.prop_map(EdgeKind::PreemptCount),
        (way, any::<bool>()).prop_map(|(way, from_user)| enter(way, from_user)),
        any::<bool>().prop_map(leave),
        (0_u8..12).prop_map(EdgeKind::Softirq),
        task().prop_map(EdgeKind::Wake),
        Just(EdgeKind::Schedule),
        task().prop_map(EdgeKind::Switch),
        Just(EdgeKind::Halt),
        Just(EdgeKind::UserClock),
    ]
}

proptest! {
    #[test]
    fn every_nanosecond_has_a_cause(
        drawn in vec((0_u64..50, any_kind(), 0_usize..4, 0_usize..4), 2..120),
        late in vec((0_u64..2_000, 0_u64..2_000), 1..6),
    ) {
        let names = ["", TIMER, "asm_exc_page_fault", "free_bulk"];
        let mut at_ns = 0;
        let named_edges: Vec<NamedEdge> = drawn.into_iter().map(|(since, kind, one, two)| {
            at_ns += since;
            (at_ns, kind, names[one], names[two])
        }).collect();
        let edges = edges(FIND, &named_edges);
        let late: Vec<Late> = late.into_iter()
            .map(|(due_ns, after)| Late { due_ns, response_ns: due_ns + after })
            .collect();
        for (late, seen) in late.iter().zip(outside(&edges, &late)) {
            if let Some(seen) = seen {
                assert_sums(*late, &seen);
                for part in &seen.irqs_off_when_ready {
                    let is_whole = |share: &&Share| Share { ns: part.ns, ..(*share).clone() } == *part;
                    prop_assert!(seen.blame.iter().find(is_whole).is_some_and(|whole| whole.ns >= part.ns));
                }
                prop_assert!(seen.timeline.iter().all(|step| step.at_ns <= late.response_ns - late.due_ns));
            }
        }
    }
}
