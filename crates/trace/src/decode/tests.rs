mod drawn;
mod encode;
mod random;

use super::*;
use crate::shared::{
    COPIED_BYTES, Event as Raw, FRAMES, Head, LONG_BYTES, RECORD_BYTES, StackCopy, Task as RawTask,
    Wakeup as RawWakeup,
};

/// Functions of a kernel that is made up.
const LIST: &str = "\
ffffffff81000000 T asm_sysvec_apic_timer_interrupt
ffffffff81000100 T do_work
ffffffff81000200 T do_syscall_64
ffffffff81000300 T __schedule
ffffffff81000400 T schedule
ffffffff81000500 t bpf_prog_run
ffffffff81000600 t __traceiter_hrtimer_expire_entry
ffffffff81000700 t hrtimer_wakeup
ffffffff81000800 t watchdog_nmi
ffffffff81000900 t end
";

/// Places in these functions.
mod at {
    pub(super) const ENTRY: u64 = 0xffff_ffff_8100_0010;
    pub(super) const WORK: u64 = 0xffff_ffff_8100_0123;
    pub(super) const SYSCALL: u64 = 0xffff_ffff_8100_0234;
    pub(super) const INNER_SCHEDULE: u64 = 0xffff_ffff_8100_0345;
    pub(super) const SCHEDULE: u64 = 0xffff_ffff_8100_0456;
    pub(super) const BPF: u64 = 0xffff_ffff_8100_0567;
    pub(super) const TRACE: u64 = 0xffff_ffff_8100_0678;
    pub(super) const WAKER: u64 = 0xffff_ffff_8100_0700;
    pub(super) const NMI: u64 = 0xffff_ffff_8100_0800;
}

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn raw_task(pid: u32, comm: &str) -> RawTask {
    RawTask { pid, prio: 120, policy: 0, pad: 0, comm: name(comm) }
}

fn event(at: u64, kind: u32, number: u32) -> Raw {
    Raw { at, kind, number, ..Default::default() }
}

fn named(at: u64, kind: u32, number: u32, text: &str) -> Raw {
    Raw { name: name(text), ..event(at, kind, number) }
}

/// A switch from an ordinary thread, or from idle.
fn switch(at: u64, from: u32, pid: u32, comm: &str) -> Raw {
    Raw { prio: 120, address: 120 << 32 | u64::from(from), ..named(at, kind::SWITCH, pid, comm) }
}

/// A wakeup that was due at 1,000 and answered at 2,000.
fn raw() -> RawWakeup {
    RawWakeup {
        due: 1_000,
        irq_entry: 1_100,
        irq_exit: 1_200,
        sched_entry: 1_300,
        switch_in: 1_400,
        response: 2_000,
        cpu: 1,
        stimulus: 1,
        stimulus_cpu: 1,
        looked: 1,
        mode: 2,
        task: RawTask { prio: 9, policy: 1, ..raw_task(400, "probe") },
        interrupted: raw_task(231, "logger"),
        ..Default::default()
    }
}

fn late(wakeup: RawWakeup, events: &[Raw]) -> Late {
    Late { wakeup, events: events.to_vec(), lost: 0 }
}

/// Decodes as on a kernel that adds one to the depth of preemption where it traces.
fn decoded(late: &Late) -> Wakeup {
    decoded_by(late, 2, Some(false))
}

fn decoded_by(late: &Late, least_depth: u64, preemptible: Option<bool>) -> Wakeup {
    decoded_with(late, least_depth, preemptible, &UserNames::default())
}

fn decoded_with(
    late: &Late,
    least_depth: u64,
    preemptible: Option<bool>,
    users: &UserNames,
) -> Wakeup {
    let symbols = Symbols::from_list(LIST.as_bytes()).unwrap();
    let idle_states = ["POLL".to_string(), "C1".to_string()];
    Decoder { symbols: &symbols, users, least_depth, preemptible, idle_states: &idle_states }
        .wakeup(late)
}

/// The frames as `function+0x10`; `?` for one of which nothing is known.
fn told(frames: &[Frame]) -> Vec<String> {
    let told = |frame: &Frame| match &frame.function {
        Some(function) => format!("{function}+{:#x}", frame.offset),
        None => {
            assert_eq!(*frame, Frame::default());
            "?".into()
        }
    };
    frames.iter().map(told).collect()
}

/// The events of the wakeup that came of `events`, a line each: when, and what.
#[track_caller]
fn check(events: &[Raw], want: &[&str]) {
    check_of(raw(), events, want);
}

#[track_caller]
fn check_of(wakeup: RawWakeup, events: &[Raw], want: &[&str]) {
    let wakeup = decoded(&late(wakeup, events));
    let line = |event: &Event| format!("{} {:?}", event.at.0, event.what);
    assert_eq!(wakeup.events.iter().map(line).collect::<Vec<_>>(), want);
}

#[test]
fn what_was_not_seen_is_none() {
    let whole = decoded(&late(raw(), &[]));
    let seen = |at| Some(MonoNs(at));
    let marks = Marks {
        due: MonoNs(1_000),
        irq_entry: seen(1_100),
        irq_exit: seen(1_200),
        sched_entry: seen(1_300),
        switch_in: seen(1_400),
        response: MonoNs(2_000),
    };
    assert_eq!((whole.cpu, whole.marks, whole.lost), (1, marks, 0));
    assert_eq!(whole.woken_by, WokenBy::Timer { on: 1 });
    assert_eq!((whole.task.policy, whole.task.prio), (Policy::Fifo, 9));
    let bare = decoded(&late(
        RawWakeup { irq_entry: 0, irq_exit: 0, sched_entry: 0, switch_in: 0, ..raw() },
        &[],
    ));
    assert_eq!(bare.marks, Marks { due: marks.due, response: marks.response, ..Marks::default() });
}

#[test]
fn events_are_those_between_due_and_response() {
    check(
        &[
            named(900, kind::IRQ_ENTRY, 7, "eth0"),
            event(990, kind::IRQ_EXIT, 7),
            event(1_000, kind::SOFTIRQ_ENTRY, 3),
            event(2_000, kind::SOFTIRQ_EXIT, 3),
            event(2_001, kind::SCHED_ENTRY, 0),
        ],
        &["1000 SoftirqEntry(3)", "2000 SoftirqExit(3)"],
    );
}

#[test]
fn events_behind_one_that_came_too_early_are_kept() {
    // Without the event of 2,500, those around it would seem to be in order.
    check(
        &[
            event(1_050, kind::SOFTIRQ_ENTRY, 3),
            event(2_500, kind::SCHED_ENTRY, 0),
            event(1_300, kind::SOFTIRQ_EXIT, 3),
            event(2_600, kind::SCHED_ENTRY, 0),
        ],
        &["1050 SoftirqEntry(3)", "2500 SchedEntry", "1300 SoftirqExit(3)"],
    );
}

#[test]
fn what_had_begun_and_goes_on_begins_when_it_is_due() {
    let in_softirq = || RawWakeup { softirq: 1 + 3, ..raw() };
    check_of(
        in_softirq(),
        &[
            event(800, kind::SOFTIRQ_ENTRY, 9),
            event(810, kind::SOFTIRQ_EXIT, 9),
            event(900, kind::SOFTIRQ_ENTRY, 3),
            named(950, kind::IRQ_ENTRY, 7, "eth0"),
            event(1_050, kind::IRQ_EXIT, 7),
        ],
        &[
            "1000 SoftirqEntry(3)",
            r#"1000 IrqEntry(Interrupt("eth0"))"#,
            r#"1050 IrqExit(Interrupt("eth0"))"#,
        ],
    );
    // An end closes all that had begun within.
    check(
        &[
            named(800, kind::IRQ_ENTRY, 7, "eth0"),
            event(810, kind::TIMER_ENTRY, 0),
            event(900, kind::IRQ_EXIT, 7),
            event(950, kind::CONTENTION_BEGIN, 0),
        ],
        &["1000 ContentionBegin"],
    );
    // An end without a beginning closes nothing.
    check_of(
        in_softirq(),
        &[event(800, kind::SOFTIRQ_ENTRY, 3), event(900, kind::IRQ_EXIT, 7)],
        &["1000 SoftirqEntry(3)"],
    );
}

#[test]
fn what_ended_unseen_does_not_go_on() {
    let begun = event(800, kind::SOFTIRQ_ENTRY, 3);
    // A softirq is not seen to end where nobody waits any more. The CPU was in none, or in another.
    check(&[begun], &[]);
    check_of(RawWakeup { softirq: 1 + 1, ..raw() }, &[begun], &[]);
    let again = [begun, event(1_250, kind::SOFTIRQ_ENTRY, 3), event(1_260, kind::SOFTIRQ_EXIT, 3)];
    check(&again, &["1250 SoftirqEntry(3)", "1260 SoftirqExit(3)"]);
    // It ended before the wakeup began.
    check(
        &[begun, event(1_050, kind::SOFTIRQ_EXIT, 3)],
        &["1000 SoftirqEntry(3)", "1050 SoftirqExit(3)"],
    );
    // Where it can be preempted, it is that of somebody else.
    let preempted = [begun, switch(900, 231, 5, "spin")];
    check_of(RawWakeup { softirq: 1 + 3, ..raw() }, &preempted, &[]);
    // Of locks that are waited for, the last of which in an interrupt, one end is seen.
    check(
        &[
            event(800, kind::CONTENTION_BEGIN, 0),
            named(810, kind::IRQ_ENTRY, 7, "eth0"),
            event(820, kind::CONTENTION_BEGIN, 0),
            event(830, kind::CONTENTION_END, 0),
        ],
        &[r#"1000 IrqEntry(Interrupt("eth0"))"#],
    );
}

#[test]
fn ends_of_interrupts_have_the_names_of_their_lines() {
    check(
        &[
            event(1_010, kind::IRQ_ENTRY, NO_LINE + 1),
            named(1_020, kind::IRQ_ENTRY, 7, "eth0"),
            event(1_030, kind::IRQ_EXIT, 7),
            event(1_040, kind::IRQ_EXIT, NO_LINE + 1),
            // The line has no name, and of the last one the beginning was not seen.
            event(1_050, kind::IRQ_ENTRY, 8),
            event(1_060, kind::IRQ_EXIT, 8),
            event(1_070, kind::IRQ_EXIT, 9),
        ],
        &[
            r#"1010 IrqEntry(Interrupt("local_timer"))"#,
            r#"1020 IrqEntry(Interrupt("eth0"))"#,
            r#"1030 IrqExit(Interrupt("eth0"))"#,
            r#"1040 IrqExit(Interrupt("local_timer"))"#,
            r#"1050 IrqEntry(Interrupt("irq 8"))"#,
            r#"1060 IrqExit(Interrupt("irq 8"))"#,
            r#"1070 IrqExit(Interrupt(""))"#,
        ],
    );
}

#[test]
fn functions_have_names() {
    let timer = Raw { value: at::WAKER, ..event(1_010, kind::TIMER_ENTRY, 3) };
    let nmi = Raw { address: at::NMI, value: 150, ..event(1_020, kind::NMI, 0) };
    let tracer = Raw { value: 8_000, ..event(1_045, kind::TRACER, 0) };
    let nowhere = Raw { value: 0x10, ..event(1_030, kind::TIMER_ENTRY, 0) };
    check(
        &[timer, nmi, nowhere, event(1_040, kind::TIMER_EXIT, 0), tracer, event(1_050, 99, 0)],
        &[
            r#"1010 TimerEntry("hrtimer_wakeup", 3)"#,
            r#"1020 Nmi("watchdog_nmi", 150)"#,
            r#"1030 TimerEntry("", 0)"#,
            "1040 TimerExit",
            "1045 Tracer(8000)",
        ],
    );
}

#[test]
fn a_switch_is_from_whoever_ran() {
    let switched = |events: &[Raw]| -> Vec<(Task, Task)> {
        let pair = |event: &Event| match &event.what {
            What::Switch { from, to } => (from.clone(), to.clone()),
            other => panic!("{other:?}"),
        };
        decoded(&late(raw(), events)).events.iter().map(pair).collect()
    };
    let names = |pairs: &[(Task, Task)]| -> Vec<String> {
        let name = |task: &Task| format!("{}[{}]", task.comm, task.pid);
        pairs.iter().map(|(from, to)| format!("{} {}", name(from), name(to))).collect()
    };
    let seen = switched(&[
        switch(1_010, 231, 5, "spin"),
        switch(1_020, 5, 0, "swapper/1"),
        switch(1_030, 0, 9, "rm"),
        switch(1_400, 9, 400, "probe"),
    ]);
    assert_eq!(
        names(&seen),
        ["logger[231] spin[5]", "spin[5] swapper/1[0]", "swapper[0] rm[9]", "rm[9] probe[400]"]
    );
    // Who was to wake is the same task there, with its priority.
    assert_eq!((seen[3].1.policy, seen[3].1.prio), (Policy::Fifo, 9));
    // Switches are not seen while nobody waits: the last one before says nothing of who ran then.
    let unseen = switched(&[switch(900, 0, 5, "spin"), switch(1_010, 0, 9, "rm")]);
    assert_eq!(names(&unseen), ["swapper[0] rm[9]"]);
    // Nor need there be a name anywhere.
    assert_eq!(names(&switched(&[switch(1_010, 77, 9, "rm")])), ["[77] rm[9]"]);
}

#[test]
fn who_is_left_has_the_priority_and_policy_of_then() {
    let left = |address| {
        let switch = Raw { address, ..named(1_010, kind::SWITCH, 9, "rm") };
        match &decoded(&late(raw(), &[switch])).events[0].what {
            What::Switch { from, .. } => from.clone(),
            other => panic!("{other:?}"),
        }
    };
    let fifo = left(1 << 48 | 4 << 32 | 231);
    let named = fifo.named();
    assert_eq!((named.comm.as_str(), named.pid, named.policy), ("logger", Some(231), Policy::Fifo));
    assert_eq!((named.priority, fifo.prio), (Some(95), 4));
    let deadline = left(6 << 48 | 0xffff << 32 | 231);
    assert_eq!((deadline.policy, deadline.prio), (Policy::Deadline, -1));
    let idle = left(120 << 32);
    assert_eq!((idle.pid, idle.prio, idle.comm.as_str()), (0, 120, "swapper"));
}

#[test]
fn stolen_time_is_told_where_its_clock_moved() {
    let at = |at, steal| Raw { steal, ..event(at, kind::SCHED_ENTRY, 0) };
    let stolen = |events: &[Raw], after| {
        let wakeup = decoded(&late(RawWakeup { steal_after: after, ..raw() }, events));
        let steals = wakeup.events.iter().filter_map(|event| match event.what {
            What::Steal(ns) => Some((event.at.0, ns)),
            _ => None,
        });
        steals.collect::<Vec<_>>()
    };
    let events = [at(900, 50), at(1_100, 50), at(1_200, 80), at(1_300, 0)];
    assert_eq!(stolen(&events, 90), [(1_000, 50), (1_200, 80), (2_000, 90)]);
    assert_eq!(stolen(&events, 80), [(1_000, 50), (1_200, 80)]);
    // A reading alone says nothing: what it was before is not known.
    assert_eq!(stolen(&[], 90), []);
    assert_eq!(stolen(&events, 0), [(1_000, 50), (1_200, 80)]);
    // What had begun before the last reading does not turn it back: 20 were stolen before, in it.
    let begun = Raw { steal: 30, ..event(800, kind::IRQ_ENTRY, 7) };
    assert_eq!(stolen(&[begun, at(900, 50), at(1_100, 50)], 50), [(1_000, 50)]);
}

#[test]
fn a_ring_that_is_full_of_later_events_has_lost_some() {
    let full = |first, room: usize| {
        let events: Vec<Raw> =
            (0..room as u64).map(|i| event(first + i, kind::SCHED_ENTRY, 0)).collect();
        decoded(&late(raw(), &events)).lost
    };
    for room in [EVENTS, RING] {
        assert_eq!((full(1_000, room), full(1_001, room)), (0, 1));
    }
    // One that is not full has all that there was.
    assert_eq!(full(1_001, RING - 1), 0);
    let few = Late { lost: 7, ..late(raw(), &[event(1_500, kind::SCHED_ENTRY, 0)]) };
    assert_eq!(decoded(&few).lost, 7);
}

#[test]
fn interrupts_from_other_cpus_are_called_by_their_reasons() {
    const IPI: u32 = NO_LINE + 6;
    check(
        &[
            // Of a line, and within it of none: as newer and as older kernels have them.
            named(1_010, kind::IRQ_ENTRY, 2, "Rescheduling in"),
            event(1_020, kind::IRQ_EXIT, 2),
            named(1_030, kind::IRQ_ENTRY, IPI, "Function call i"),
            event(1_040, kind::IRQ_EXIT, IPI),
            named(1_050, kind::IRQ_ENTRY, IPI, ""),
            event(1_060, kind::IRQ_EXIT, IPI),
            named(1_070, kind::IRQ_ENTRY, 9, "CPU stop (for c"),
            named(1_080, kind::IRQ_ENTRY, 3, "arch_timer"),
        ],
        &[
            r#"1010 IrqEntry(Interrupt("reschedule"))"#,
            r#"1020 IrqExit(Interrupt("reschedule"))"#,
            r#"1030 IrqEntry(Interrupt("call_function"))"#,
            r#"1040 IrqExit(Interrupt("call_function"))"#,
            r#"1050 IrqEntry(Interrupt("IPI"))"#,
            r#"1060 IrqExit(Interrupt("IPI"))"#,
            r#"1070 IrqEntry(Interrupt("cpu_stop"))"#,
            r#"1080 IrqEntry(Interrupt("arch_timer"))"#,
        ],
    );
}

/// What came of a stack that was taken in the interrupt.
#[track_caller]
fn check_stack(frames: &[u64], interrupted_ip: u64, want: &[&str]) {
    let mut wakeup = RawWakeup { interrupted_ip, ..raw() };
    wakeup.stack[..frames.len()].copy_from_slice(frames);
    wakeup.stack_bytes = i32::try_from(size_of_val(frames)).unwrap();
    assert_eq!(told(&decoded(&late(wakeup, &[])).interrupted.unwrap().stack), want);
}

#[test]
fn a_stack_begins_where_the_interrupt_came() {
    let frames = [at::BPF, at::TRACE, at::ENTRY, at::WORK, at::SYSCALL];
    let interrupted = ["do_work+0x23", "do_syscall_64+0x34"];
    check_stack(&frames, at::WORK, &interrupted);
    // Where the place is not known, or not in it: by the interrupt's entry, the outermost.
    check_stack(&frames, 0, &interrupted);
    check_stack(&frames, 0xdead, &interrupted);
    check_stack(&[at::ENTRY, at::TRACE, at::ENTRY, at::WORK], 0, &["do_work+0x23"]);
    // Without either, all but tracing itself.
    check_stack(&[at::BPF, at::TRACE, at::WORK], 0, &["do_work+0x23"]);
    // No record holds an address.
    check_stack(&[at::WORK, 0xffff_ffff_f000_0000], 0, &["do_work+0x23", "?"]);
    check_stack(&[], 0, &[]);
}

#[test]
fn a_stack_without_the_place_of_the_interrupt_was_taken_later() {
    let frames = [at::BPF, at::ENTRY, at::WORK, at::SYSCALL];
    for (interrupted_ip, want) in [(at::WORK, false), (at::WAKER, true), (0, false)] {
        let mut wakeup = RawWakeup { interrupted_ip, ..raw() };
        wakeup.stack[..frames.len()].copy_from_slice(&frames);
        for (bytes, is_there) in [(size_of_val(&frames), true), (0, false)] {
            wakeup.stack_bytes = i32::try_from(bytes).unwrap();
            let context = decoded(&late(wakeup, &[])).interrupted.unwrap();
            assert_eq!(context.stack_is_later, want && is_there, "{interrupted_ip:#x} {bytes}");
        }
    }
}

/// What comes of a stack on arm64, whose register `link` has an instruction `before` it.
#[track_caller]
fn check_link(frames: &[u64], link: u64, before: u32, want: &[&str]) {
    let mut wakeup = RawWakeup { interrupted_ip: frames[0], link, before_link: before, ..raw() };
    wakeup.stack[..frames.len()].copy_from_slice(frames);
    wakeup.stack_bytes = i32::try_from(size_of_val(frames)).unwrap();
    assert_eq!(told(&decoded(&late(wakeup, &[])).interrupted.unwrap().stack), want);
}

#[test]
fn the_caller_of_a_function_without_a_frame_is_where_its_register_says() {
    const CALL: u32 = 0x9400_0010;
    const BY_REGISTER: u32 = 0xd63f_0040;
    let frames = [at::WAKER, at::SYSCALL];
    let whole = ["hrtimer_wakeup+0x0", "do_work+0x23", "do_syscall_64+0x34"];
    for call in [CALL, BY_REGISTER] {
        check_link(&frames, at::WORK, call, &whole);
    }
    let plain = [whole[0], whole[2]];
    check_link(&frames, 0, 0, &plain);
    // No call returns there; it is a call of its own that did; nobody knows what is there.
    check_link(&frames, at::WORK, 0xd503_201f, &plain);
    check_link(&frames, at::WAKER + 0x10, CALL, &plain);
    check_link(&frames, 0xdead, CALL, &plain);
    // The function has its frame by now, so that the stack has the caller.
    check_link(&[at::WAKER, at::WORK, at::SYSCALL], at::WORK, CALL, &whole);
    // It is the innermost of what was interrupted, not of what looked.
    let mut wakeup = RawWakeup { link: at::WORK, before_link: CALL, ..raw() };
    let frames = [at::BPF, at::TRACE, at::ENTRY, at::WAKER, at::SYSCALL];
    wakeup.stack[..frames.len()].copy_from_slice(&frames);
    wakeup.stack_bytes = i32::try_from(size_of_val(&frames)).unwrap();
    assert_eq!(told(&decoded(&late(wakeup, &[])).interrupted.unwrap().stack), whole);
}

#[test]
fn a_stack_that_could_not_be_taken_is_empty() {
    for bytes in [-14, 0, 7] {
        let wakeup = RawWakeup { stack: [at::WORK; FRAMES], stack_bytes: bytes, ..raw() };
        assert_eq!(decoded(&late(wakeup, &[])).interrupted.unwrap().stack, [], "{bytes}");
    }
    let wakeup = RawWakeup { stack: [at::WORK; FRAMES], stack_bytes: i32::MAX, ..raw() };
    assert_eq!(decoded(&late(wakeup, &[])).interrupted.unwrap().stack.len(), FRAMES);
}

#[test]
fn the_cpu_was_given_up_below_the_scheduler() {
    let given_up = |frames: &[u64]| {
        let mut wakeup = RawWakeup { away_pid: 7, ..raw() };
        wakeup.away[..frames.len()].copy_from_slice(frames);
        wakeup.away_bytes = i32::try_from(size_of_val(frames)).unwrap();
        let given_up = decoded(&late(wakeup, &[])).given_up;
        given_up.map(|last| format!("{}: {}", last.pid, told(&last.stack).join(" ")))
    };
    let frames = [at::BPF, at::INNER_SCHEDULE, at::SCHEDULE, at::WORK];
    let want = Some("7: schedule+0x56 do_work+0x23".into());
    assert_eq!(given_up(&frames), want);
    assert_eq!(given_up(&[at::SCHEDULE, at::WORK]), want);
    assert_eq!(given_up(&[]), None);
}

#[test]
fn the_depth_of_preemption_is_without_what_tracing_adds() {
    let depth = |count, least| {
        let wakeup = RawWakeup { preempt_count: count, ..raw() };
        decoded_by(&late(wakeup, &[]), least, None).interrupted.unwrap().preempt_depth
    };
    // Tracing adds one: the least that was seen is 1, and told as 2.
    assert_eq!([depth(1, 2), depth(2, 2), depth(4, 2)], [Some(0), Some(1), Some(3)]);
    // What counts softirqs and interrupts is not depth.
    assert_eq!(depth(0x0001_0102, 2), Some(1));
    // Tracing adds nothing.
    assert_eq!([depth(0x0001_0000, 1), depth(1, 1)], [Some(0), Some(1)]);
    // The kernel does not count, or nobody looked.
    assert_eq!([depth(0, 1), depth(3, 0)], [None, None]);
}

#[test]
fn what_was_interrupted_is_told_as_far_as_it_was_seen() {
    let context = |wakeup: RawWakeup| decoded(&late(wakeup, &[])).interrupted;
    let mode = |wakeup| context(wakeup).map(|context| context.mode);
    assert_eq!(mode(RawWakeup { mode: 1, ..raw() }), Some(Mode::User));
    assert_eq!(mode(RawWakeup { mode: 2, ..raw() }), Some(Mode::Kernel));
    assert_eq!(mode(RawWakeup { mode: 0, ..raw() }), Some(Mode::Unknown));
    // Numbers of states begin with 1, and not all have names.
    let idle = |idle| RawWakeup { interrupted: raw_task(0, "swapper/1"), idle, ..raw() };
    for (number, name) in [(0, ""), (1, "POLL"), (2, "C1"), (9, "state 8")] {
        assert_eq!(mode(idle(number)), Some(Mode::Idle(name.into())), "{number}");
    }
    // Of another CPU no more is known than that it was idle.
    assert_eq!(context(RawWakeup { looked: 0, idle: 0, ..raw() }), None);
    let other = context(RawWakeup { looked: 0, idle: 2, softirq: 4, ..raw() }).unwrap();
    assert_eq!((other.mode, other.softirq), (Mode::Idle("C1".into()), Some(3)));
    let kernel = context(RawWakeup { softirq: 4, ..raw() }).unwrap();
    assert_eq!((kernel.softirq, kernel.preemptible), (Some(3), Some(false)));
    assert_eq!(kernel.task.comm, "logger");
}

#[test]
fn a_stimulus_is_a_timer_or_somebody() {
    let stimulus = |number| {
        let wakeup = RawWakeup { stimulus: number, stimulus_cpu: 3, ..raw() };
        decoded(&late(RawWakeup { waker: raw_task(5, "writer"), ..wakeup }, &[])).woken_by
    };
    let waker = |in_interrupt| {
        let task = Task { pid: 5, comm: "writer".into(), policy: Policy::Other, prio: 120 };
        WokenBy::Waker { task, on: 3, in_interrupt }
    };
    assert_eq!(stimulus(1), WokenBy::Timer { on: 3 });
    assert_eq!(stimulus(4), WokenBy::Awake);
    assert_eq!([stimulus(2), stimulus(3)], [waker(false), waker(true)]);
    assert_eq!([stimulus(0), stimulus(77)], [WokenBy::Unknown, WokenBy::Unknown]);
}

#[test]
fn page_faults_are_those_since_the_switch() {
    let faults = |switch_in, before, after| {
        let wakeup = RawWakeup { switch_in, faults_before: before, faults_after: after, ..raw() };
        decoded(&late(wakeup, &[])).page_faults
    };
    assert_eq!([faults(1_400, 7, 9), faults(1_400, 7, 7), faults(1_400, 7, 0)], [2, 0, 0]);
    // One that was still awake had all of its life's by then.
    assert_eq!(faults(0, 0, 14), 0);
}

#[test]
fn hostile_records_do_no_harm() {
    // A ring buffer is shared memory: whatever is in it is a record.
    for byte in [0_u8, 1, 0x7f, 0x80, 0xff] {
        for room in [0, EVENTS, RING, 2 * RING] {
            let bytes = vec![byte; size_of::<Head>() + room * size_of::<Raw>() + 7];
            let late = Late::of(&bytes, |_| vec![at::WORK; 2 * FRAMES]).unwrap();
            assert!(late.events.len() <= room.min(RING));
            let wakeup = decoded(&late);
            assert!(wakeup.events.len() <= 3 * RING, "{byte}");
        }
        assert!(Late::of(&vec![byte; size_of::<Head>() - 1], |_| Vec::new()).is_none());
    }
}

#[test]
fn what_was_walked_is_the_stack_of_what_was_interrupted() {
    let stack_in = |(bytes, at): (usize, usize), registers: u64, walked: &[u64]| {
        let mut bytes = vec![0; bytes];
        bytes[at..at + 8].copy_from_slice(&registers.to_le_bytes());
        let mut late = Late::of(&bytes, |copy| {
            assert_eq!(copy.registers, registers);
            walked.to_vec()
        })
        .unwrap();
        late.wakeup = RawWakeup {
            stack: late.wakeup.stack,
            stack_bytes: late.wakeup.stack_bytes,
            interrupted_ip: at::WORK,
            ..raw()
        };
        told(&decoded(&late).interrupted.unwrap().stack)
    };
    let copy = size_of::<StackCopy>();
    for record in [(COPIED_BYTES, RECORD_BYTES), (LONG_BYTES + copy, LONG_BYTES)] {
        let stack = |registers, walked: &[u64]| stack_in(record, registers, walked);
        let walked = [at::WORK, at::SYSCALL];
        assert_eq!(stack(0x1000, &walked), ["do_work+0x23", "do_syscall_64+0x34"], "{record:?}");
        assert_eq!(stack(0x1000, &[]), [""; 0]);
        // Without registers there is no copy, and nobody is to walk it.
        assert_eq!(stack(0, &[at::WORK]), [""; 0]);
    }
    // Nor is there one in a record that has no room for it.
    assert_eq!(stack_in((RECORD_BYTES, RECORD_BYTES - 8), 0x1000, &[at::WORK]), [""; 0]);
}

#[test]
fn events_end_where_the_copy_begins() {
    for (bytes, room) in [
        (RECORD_BYTES, EVENTS),
        (COPIED_BYTES, EVENTS),
        (LONG_BYTES + size_of::<StackCopy>(), RING),
    ] {
        let mut bytes = vec![0; bytes];
        let at = std::mem::offset_of!(Head, events);
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let late = Late::of(&bytes, |_| Vec::new()).unwrap();
        assert_eq!(late.events.len(), room);
        assert_eq!(late.lost, u32::MAX - u32::try_from(room).unwrap());
    }
}

#[test]
fn throttling_counts_while_a_real_time_task_waits() {
    let throttled = |at, value| Raw { value, ..switch(at, 231, 500, "spinner") };
    for (events, policy, want) in [
        (vec![throttled(1_150, 1)], 1, true),
        (vec![throttled(1_150, 0)], 1, false),
        (vec![throttled(900, 1)], 1, false),
        (vec![throttled(1_500, 1)], 1, false),
        (vec![throttled(1_150, 1)], 0, false),
    ] {
        let task = RawTask { prio: 9, policy, ..raw_task(400, "probe") };
        let wakeup = RawWakeup { woken: 1_100, task, ..raw() };
        assert_eq!(decoded(&late(wakeup, &events)).throttled, want, "policy {policy}");
    }
    assert!(decoded(&late(RawWakeup { throttled: 1, ..raw() }, &[])).throttled);
}

#[test]
fn stacks_of_programs_belong_to_their_tasks() {
    let mut wakeup = RawWakeup { user_bytes: 16, away_pid: 7, ..raw() };
    wakeup.user[..2].copy_from_slice(&[0x55d0, 0x55d8]);
    wakeup.away_user[0] = 0x7f00;
    let of = |name: &str| Frame::in_function(name, 16);
    let own = wakeup.interrupted.pid;
    let users: UserNames =
        [((own, 0x55d0), of("read")), ((own, 0x55d8), of("main")), ((7, 0x7f00), of("burn"))]
            .into();
    let shown = |wakeup: &RawWakeup| {
        let late = late(*wakeup, &[]);
        let Wakeup { interrupted, given_up, .. } = decoded_with(&late, 2, Some(false), &users);
        (
            told(&interrupted.unwrap().user_stack).join(" "),
            given_up.map(|last| (last.pid, told(&last.user_stack).join(" "))),
        )
    };
    assert_eq!(shown(&wakeup), ("read+0x10 main+0x10".into(), None));
    // An address that has no name is not told.
    wakeup.user[1] = 0x55d9;
    assert_eq!(shown(&wakeup).0, "read+0x10 ?");
    wakeup.away_user_bytes = 8;
    assert_eq!(shown(&wakeup).1, Some((7, "burn+0x10".into())));
    // Where nobody has a name, as in guests, there is no stack.
    let Wakeup { interrupted, given_up, .. } = decoded(&late(wakeup, &[]));
    assert_eq!((interrupted.unwrap().user_stack, given_up.unwrap().user_stack), (vec![], vec![]));
    // A stack that could not be taken is a number of an error; and no count is believed.
    (wakeup.user_bytes, wakeup.away_user_bytes) = (-14, i32::MAX);
    let (interrupted, last) = shown(&wakeup);
    assert_eq!(interrupted, "");
    assert_eq!(last.unwrap().1.split(' ').count(), crate::shared::USER_FRAMES);
}
