use std::collections::HashMap;

use wakescope_core::explain::{Event, Marks, Policy, What};
use wakescope_core::units::MonoNs;

use super::*;
use crate::kernel::{GivenUpAt, Irq, KernelEvent, Link, Switch, SwitchedFrom, Vector};

/// Functions of a kernel that is made up, each from here to the next one.
const FUNCTIONS: [(u64, &str); 15] = [
    (0xffff_ffff_8100_0000, "asm_sysvec_apic_timer_interrupt"),
    (0xffff_ffff_8100_0100, "do_work"),
    (0xffff_ffff_8100_0200, "do_syscall_64"),
    (0xffff_ffff_8100_0300, "__schedule"),
    (0xffff_ffff_8100_0400, "schedule"),
    (0xffff_ffff_8100_0500, "bpf_prog_run"),
    (0xffff_ffff_8100_0600, "__traceiter_hrtimer_expire_entry"),
    (0xffff_ffff_8100_0700, "hrtimer_wakeup"),
    (0xffff_ffff_8100_0800, "watchdog_nmi"),
    (0xffff_ffff_8100_0900, "do_work.cold"),
    (0xffff_ffff_8100_0a00, "asm_fred_entrypoint_kernel"),
    (0xffff_ffff_8100_0b00, "fred_entry_from_kernel"),
    (0xffff_ffff_8100_0c00, "fred_extint"),
    (0xffff_ffff_8100_0d00, "exc_page_fault"),
    (0xffff_ffff_8100_0e00, ""),
];

fn kernel_frame(address: u64) -> Frame {
    let before = FUNCTIONS.iter().rfind(|(start, _)| *start <= address);
    match before {
        Some((start, name)) if !name.is_empty() => Frame::in_function(*name, address - start),
        _ => Frame::default(),
    }
}

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
    pub(super) const COLD_WORK: u64 = 0xffff_ffff_8100_0904;
    pub(super) const FRED_ENTRY: u64 = 0xffff_ffff_8100_0a41;
    pub(super) const FRED_FROM_KERNEL: u64 = 0xffff_ffff_8100_0b05;
    pub(super) const FRED_EXTINT: u64 = 0xffff_ffff_8100_0c06;
    pub(super) const PAGE_FAULT: u64 = 0xffff_ffff_8100_0d07;
}

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn kernel_task(pid: u32, comm: &str) -> KernelTask {
    KernelTask { pid, prio: 120, policy: 0, comm: name(comm) }
}

fn event(at: u64, payload: Payload) -> KernelEvent {
    KernelEvent { at: MonoNs(at), steal_ns: 0, payload }
}

fn irq(at: u64, irq: Irq, text: &str) -> KernelEvent {
    event(at, Payload::IrqEntry { irq, name: name(text) })
}

/// A switch from an ordinary thread, or from idle.
fn switch(at: u64, from: u32, pid: u32, comm: &str) -> KernelEvent {
    switch_from(at, SwitchedFrom { pid: from, prio: 120, policy: 0 }, kernel_task(pid, comm))
}

fn switch_from(at: u64, prev: SwitchedFrom, next: KernelTask) -> KernelEvent {
    event(at, Payload::Switch(Switch { prev, next, throttled: false }))
}

/// A wakeup that was due at 1,000 and answered at 2,000.
fn seen() -> KernelWakeup {
    let at = |at| Some(MonoNs(at));
    KernelWakeup {
        marks: Marks {
            due: MonoNs(1_000),
            irq_entry: at(1_100),
            irq_exit: at(1_200),
            sched_entry: at(1_300),
            switch_in: at(1_400),
            response: MonoNs(2_000),
        },
        cpu: 1,
        stimulus: WakeupSource::Timer,
        stimulus_cpu: 1,
        interrupted: Some(in_logger()),
        task: KernelTask { prio: 9, policy: 1, ..kernel_task(400, "probe") },
        ..Default::default()
    }
}

fn in_logger() -> Interrupted {
    Interrupted { task: kernel_task(231, "logger"), mode: Mode::Kernel, ..Default::default() }
}

fn seen_in(interrupted: Interrupted) -> KernelWakeup {
    KernelWakeup { interrupted: Some(interrupted), ..seen() }
}

fn seen_with(events: &[KernelEvent]) -> KernelWakeup {
    KernelWakeup { events: events.to_vec(), ..seen() }
}

/// Decodes as on a kernel that adds one to the depth of preemption where it traces.
fn decoded(seen: &KernelWakeup) -> Wakeup {
    decoded_by(seen, 2, &HashMap::new())
}

fn decoded_by(seen: &KernelWakeup, least_depth: u64, users: &HashMap<(u32, u64), Frame>) -> Wakeup {
    Decoder {
        kernel_frame: &kernel_frame,
        user_frame: &|pid, address| users.get(&(pid, address)).cloned(),
        least_depth,
        preemptible: Some(false),
        idle_states: &["POLL".to_string(), "C1".to_string()],
    }
    .wakeup(seen)
}

fn context_of(seen: &KernelWakeup) -> Context {
    decoded(seen).interrupted.unwrap()
}

/// The frames as `function+0x10`; `?` for one of which nothing is known.
fn text_of(frames: &[Frame]) -> Vec<String> {
    let text = |frame: &Frame| match &frame.function {
        Some(function) => format!("{function}+{:#x}", frame.offset),
        None => {
            assert_eq!(*frame, Frame::default());
            "?".into()
        }
    };
    frames.iter().map(text).collect()
}

/// The events of the wakeup that came of `events`, a line each: when, and what.
#[track_caller]
fn check(events: &[KernelEvent], want: &[&str]) {
    check_of(seen(), events, want);
}

#[track_caller]
fn check_of(wakeup: KernelWakeup, events: &[KernelEvent], want: &[&str]) {
    let wakeup = decoded(&KernelWakeup { events: events.to_vec(), ..wakeup });
    let line = |event: &Event| format!("{} {:?}", event.at.0, event.what);
    assert_eq!(wakeup.events.iter().map(line).collect::<Vec<_>>(), want);
}

/// The end of a softirq after which none is pending.
fn exit(number: u32) -> Payload {
    Payload::SoftirqExit { number, pending: false }
}

#[test]
fn softirqs_that_are_pending_as_one_ends_are_an_event_at_its_end() {
    let ends = |pending| event(1_300, Payload::SoftirqExit { number: 3, pending });
    let begins = event(1_050, Payload::SoftirqEntry(3));
    let both = ["1050 SoftirqEntry(3)", "1300 SoftirqExit(3)", "1300 SoftirqsPending"];
    check(&[begins, ends(true)], &both);
    check(&[begins, ends(false)], &both[..2]);
}

#[test]
fn events_are_those_between_due_and_response() {
    check(
        &[
            irq(900, Irq::Line(7), "eth0"),
            event(990, Payload::IrqExit(Irq::Line(7))),
            event(1_000, Payload::SoftirqEntry(3)),
            event(2_000, exit(3)),
            event(2_001, Payload::SchedEntry),
        ],
        &["1000 SoftirqEntry(3)", "2000 SoftirqExit(3)"],
    );
}

#[test]
fn events_behind_one_that_came_too_early_are_kept() {
    // Without the event of 2,500, those around it would seem to be in order.
    check(
        &[
            event(1_050, Payload::SoftirqEntry(3)),
            event(2_500, Payload::SchedEntry),
            event(1_300, exit(3)),
            event(2_600, Payload::SchedEntry),
        ],
        &["1050 SoftirqEntry(3)", "2500 SchedEntry", "1300 SoftirqExit(3)"],
    );
}

#[test]
fn what_had_begun_and_goes_on_begins_when_it_is_due() {
    let in_softirq = || KernelWakeup { softirq: Some(3), ..seen() };
    check_of(
        in_softirq(),
        &[
            event(800, Payload::SoftirqEntry(9)),
            event(810, exit(9)),
            event(900, Payload::SoftirqEntry(3)),
            irq(950, Irq::Line(7), "eth0"),
            event(1_050, Payload::IrqExit(Irq::Line(7))),
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
            irq(800, Irq::Line(7), "eth0"),
            event(810, Payload::TimerEntry { function: 0, count: 1 }),
            event(900, Payload::IrqExit(Irq::Line(7))),
            event(950, Payload::ContentionBegin),
        ],
        &["1000 ContentionBegin"],
    );
    // An end without a beginning closes nothing.
    check_of(
        in_softirq(),
        &[event(800, Payload::SoftirqEntry(3)), event(900, Payload::IrqExit(Irq::Line(7)))],
        &["1000 SoftirqEntry(3)"],
    );
}

#[test]
fn what_ended_unseen_does_not_go_on() {
    let begun = event(800, Payload::SoftirqEntry(3));
    // A softirq is not seen to end where nobody waits any more. The CPU was in none, or in another.
    check(&[begun], &[]);
    check_of(KernelWakeup { softirq: Some(1), ..seen() }, &[begun], &[]);
    let again = [begun, event(1_250, Payload::SoftirqEntry(3)), event(1_260, exit(3))];
    check(&again, &["1250 SoftirqEntry(3)", "1260 SoftirqExit(3)"]);
    // It ended before the wakeup began.
    check(&[begun, event(1_050, exit(3))], &["1000 SoftirqEntry(3)", "1050 SoftirqExit(3)"]);
    // Where it can be preempted, it is that of somebody else.
    let preempted = [begun, switch(900, 231, 5, "spin")];
    check_of(KernelWakeup { softirq: Some(3), ..seen() }, &preempted, &[]);
    // Or of the other CPU whose interrupt was looked at.
    let there = KernelWakeup {
        softirq: Some(3),
        stimulus_cpu: seen().cpu + 1,
        interrupted: Some(Interrupted::default()),
        ..seen()
    };
    check_of(there, &[begun], &[]);
    // Of locks that are waited for, the last of which in an interrupt, one end is seen.
    check(
        &[
            event(800, Payload::ContentionBegin),
            irq(810, Irq::Line(7), "eth0"),
            event(820, Payload::ContentionBegin),
            event(830, Payload::ContentionEnd),
        ],
        &[r#"1000 IrqEntry(Interrupt("eth0"))"#],
    );
}

#[test]
fn ends_of_interrupts_have_the_names_of_their_lines() {
    check(
        &[
            irq(1_010, Irq::Vector(Vector::LocalTimer), ""),
            irq(1_020, Irq::Line(7), "eth0"),
            event(1_030, Payload::IrqExit(Irq::Line(7))),
            event(1_040, Payload::IrqExit(Irq::Vector(Vector::LocalTimer))),
            // The line has no name, and of the last one the beginning was not seen.
            irq(1_050, Irq::Line(8), ""),
            event(1_060, Payload::IrqExit(Irq::Line(8))),
            event(1_070, Payload::IrqExit(Irq::Line(9))),
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
    let timer = event(1_010, Payload::TimerEntry { function: at::WAKER, count: 3 });
    let nmi = event(1_020, Payload::Nmi { handler: at::NMI, duration_ns: 150 });
    let tracer = event(1_045, Payload::Tracer { duration_ns: 8_000 });
    let nowhere = event(1_030, Payload::TimerEntry { function: 0x10, count: 0 });
    check(
        &[
            timer,
            nmi,
            nowhere,
            event(1_040, Payload::TimerExit),
            tracer,
            event(1_050, Payload::Unknown),
        ],
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
    let switched = |events: &[KernelEvent]| -> Vec<(Task, Task)> {
        let pair = |event: &Event| match &event.what {
            What::Switch { from, to } => (from.clone(), to.clone()),
            other => panic!("{other:?}"),
        };
        decoded(&seen_with(events)).events.iter().map(pair).collect()
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
    // It may be switched to again later.
    let again = switched(&[switch(1_010, 77, 9, "rm"), switch(1_020, 9, 77, "sh")]);
    assert_eq!(names(&again), ["sh[77] rm[9]", "rm[9] sh[77]"]);
    // Nor need there be a name anywhere.
    assert_eq!(names(&switched(&[switch(1_010, 77, 9, "rm")])), ["[77] rm[9]"]);
}

#[test]
fn who_is_left_has_the_priority_and_policy_of_then() {
    let left = |pid, prio, policy| {
        let switch = switch_from(1_010, SwitchedFrom { pid, prio, policy }, kernel_task(9, "rm"));
        match &decoded(&seen_with(&[switch])).events[0].what {
            What::Switch { from, .. } => from.clone(),
            other => panic!("{other:?}"),
        }
    };
    let fifo = left(231, 4, 1);
    let named = fifo.named();
    assert_eq!((named.comm.as_str(), named.pid, named.policy), ("logger", Some(231), Policy::Fifo));
    assert_eq!((named.priority, fifo.prio), (Some(95), 4));
    let deadline = left(231, -1, 6);
    assert_eq!((deadline.policy, deadline.prio), (Policy::Deadline, -1));
    let idle = left(0, 120, 0);
    assert_eq!((idle.pid, idle.prio, idle.comm.as_str()), (0, 120, "swapper"));
}

#[test]
fn stolen_time_is_told_where_its_clock_moved() {
    let at = |at, steal_ns| KernelEvent { steal_ns, ..event(at, Payload::SchedEntry) };
    let stolen = |events: &[KernelEvent], after| {
        let wakeup = decoded(&KernelWakeup { steal_after_ns: after, ..seen_with(events) });
        let steals = wakeup.events.iter().filter_map(|event| match event.what {
            What::Steal(ns) => Some((event.at.0, ns)),
            _ => None,
        });
        steals.collect::<Vec<_>>()
    };
    let events = [at(900, 50), at(1_100, 50), at(1_200, 80), at(1_300, 0)];
    // Until 1,100 nothing was stolen, though the clock has not moved since 900.
    assert_eq!(stolen(&events, 90), [(1_000, 50), (1_100, 50), (1_200, 80), (2_000, 90)]);
    assert_eq!(stolen(&events, 80), [(1_000, 50), (1_100, 50), (1_200, 80)]);
    let later = [at(900, 50), at(1_100, 50), at(1_200, 50)];
    assert_eq!(stolen(&later, 90), [(1_000, 50), (1_200, 50), (2_000, 90)]);
    // A reading alone says nothing: what it was before is not known.
    assert_eq!(stolen(&[], 90), []);
    assert_eq!(stolen(&events, 0), [(1_000, 50), (1_100, 50), (1_200, 80)]);
    // What had begun before the last reading does not turn it back: 20 were stolen before, in it.
    let begun = KernelEvent { steal_ns: 30, ..irq(800, Irq::Line(7), "") };
    assert_eq!(stolen(&[begun, at(900, 50), at(1_100, 50)], 50), [(1_000, 50)]);
}

#[test]
fn interrupts_from_other_cpus_are_called_by_their_reasons() {
    const IPI: Irq = Irq::Vector(Vector::Ipi);
    check(
        &[
            // Of a line, and within it of none: as newer and as older kernels have them.
            irq(1_010, Irq::Line(2), "Rescheduling in"),
            event(1_020, Payload::IrqExit(Irq::Line(2))),
            irq(1_030, IPI, "Function call i"),
            event(1_040, Payload::IrqExit(IPI)),
            irq(1_050, IPI, ""),
            event(1_060, Payload::IrqExit(IPI)),
            irq(1_070, Irq::Line(9), "CPU stop (for c"),
            irq(1_080, Irq::Line(3), "arch_timer"),
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
fn check_stack(frames: &[u64], ip: u64, want: &[&str]) {
    let interrupted = Interrupted { ip, stack: frames.to_vec(), ..in_logger() };
    assert_eq!(text_of(&context_of(&seen_in(interrupted)).stack), want);
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
    // An exception has the same entry of FRED. The function between may have no frame.
    let fault = [at::PAGE_FAULT, at::FRED_FROM_KERNEL, at::FRED_ENTRY, at::SYSCALL];
    let in_fault = ["do_work+0x23", "exc_page_fault+0x7", "fred_entry_from_kernel+0x5"];
    let in_fault = [&in_fault[..], &["asm_fred_entrypoint_kernel+0x41", interrupted[1]]].concat();
    for between in [&[at::FRED_FROM_KERNEL][..], &[]] {
        let came = [&[at::BPF, at::TRACE, at::FRED_EXTINT], between, &[at::FRED_ENTRY]].concat();
        check_stack(&[&came[..], &[at::WORK, at::SYSCALL]].concat(), 0, &interrupted);
        check_stack(&[&came[..], &[at::WORK], &fault].concat(), 0, &in_fault);
    }
    // Without either, all but tracing itself.
    check_stack(&[at::BPF, at::TRACE, at::WORK], 0, &["do_work+0x23"]);
    // No record holds an address.
    check_stack(&[at::WORK, 0xffff_ffff_f000_0000], 0, &["do_work+0x23", "?"]);
    check_stack(&[], 0, &[]);
}

#[test]
fn a_stack_without_the_place_of_the_interrupt_was_taken_later() {
    let frames = [at::BPF, at::ENTRY, at::WORK, at::SYSCALL];
    for (ip, want) in [(at::WORK, false), (at::WAKER, true), (0, false)] {
        for (stack, is_there) in [(frames.to_vec(), true), (Vec::new(), false)] {
            let context = context_of(&seen_in(Interrupted { ip, stack, ..in_logger() }));
            assert_eq!(context.stack_is_later, want && is_there, "{ip:#x}");
        }
    }
}

/// What comes of a stack on arm64, whose register `link` has an instruction `before` it.
#[track_caller]
fn check_link(frames: &[u64], address: u64, before: u32, want: &[&str]) {
    let link = Some(Link { address, before });
    let interrupted = Interrupted { ip: frames[0], link, stack: frames.to_vec(), ..in_logger() };
    assert_eq!(text_of(&context_of(&seen_in(interrupted)).stack), want);
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
    // The parts of a function are one.
    check_link(&[at::WORK, at::SYSCALL], at::COLD_WORK, CALL, &whole[1..]);
    // It is the innermost of what was interrupted, not of what looked.
    let link = Some(Link { address: at::WORK, before: CALL });
    let stack = vec![at::BPF, at::TRACE, at::ENTRY, at::WAKER, at::SYSCALL];
    let context = context_of(&seen_in(Interrupted { link, stack, ..in_logger() }));
    assert_eq!(text_of(&context.stack), whole);
}

#[test]
fn the_cpu_was_given_up_below_the_scheduler() {
    let given_up = |frames: &[u64]| {
        let last = GivenUpAt { pid: 7, stack: frames.to_vec(), ..Default::default() };
        let given_up = decoded(&KernelWakeup { given_up: Some(last), ..seen() }).given_up;
        given_up.map(|last| format!("{}: {}", last.pid, text_of(&last.stack).join(" ")))
    };
    let frames = [at::BPF, at::INNER_SCHEDULE, at::SCHEDULE, at::WORK];
    let want = Some("7: schedule+0x56 do_work+0x23".into());
    assert_eq!(given_up(&frames), want);
    assert_eq!(given_up(&[at::SCHEDULE, at::WORK]), want);
    assert_eq!(given_up(&[]), None);
}

#[test]
fn the_depth_of_preemption_is_without_what_tracing_adds() {
    let depth = |preempt_count, least| {
        let wakeup = seen_in(Interrupted { preempt_count, ..in_logger() });
        decoded_by(&wakeup, least, &HashMap::new()).interrupted.unwrap().preempt_depth
    };
    // Tracing adds one. The smallest count that was seen is passed plus one: 2 for 1.
    assert_eq!([depth(1, 2), depth(2, 2), depth(4, 2)], [Some(0), Some(1), Some(3)]);
    // What counts softirqs and interrupts is not depth.
    assert_eq!(depth(0x0001_0102, 2), Some(1));
    // But where softirqs are off, so is preemption: `local_bh_disable`, once and in another one.
    assert_eq!([depth(0x0001_0201, 2), depth(0x0001_0402, 2)], [Some(1), Some(3)]);
    // Tracing adds nothing.
    assert_eq!([depth(0x0001_0000, 1), depth(1, 1)], [Some(0), Some(1)]);
    // The kernel does not count, or nobody looked.
    assert_eq!([depth(0, 1), depth(3, 0)], [None, None]);
}

#[test]
fn what_was_interrupted_is_told_as_far_as_it_was_seen() {
    for mode in [Mode::User, Mode::Kernel, Mode::Unknown] {
        let interrupted = Interrupted { mode: mode.clone(), ..in_logger() };
        assert_eq!(context_of(&seen_in(interrupted)).mode, mode);
    }
    // Not all states have names.
    for (idle_state, name) in [(None, ""), (Some(0), "POLL"), (Some(1), "C1"), (Some(8), "state 8")]
    {
        let idle = Interrupted { task: kernel_task(0, "swapper/1"), ..in_logger() };
        let context = context_of(&KernelWakeup { idle_state, ..seen_in(idle) });
        assert_eq!(context.mode, Mode::Idle(name.into()));
    }
    // What runs softirqs on its back is awake.
    let idle = Interrupted { task: kernel_task(0, "swapper/1"), ..in_logger() };
    let awake = Interrupted { mode: Mode::Kernel, ..idle };
    let softirq = KernelWakeup { softirq: Some(3), idle_state: Some(1), ..seen_in(awake) };
    assert_eq!(context_of(&softirq).mode, Mode::Kernel);
    // Of another CPU no more is known than that it was idle.
    let elsewhere = || KernelWakeup { interrupted: None, softirq: Some(3), ..seen() };
    assert_eq!(decoded(&elsewhere()).interrupted, None);
    let other = context_of(&KernelWakeup { idle_state: Some(1), ..elsewhere() });
    assert_eq!((other.mode, other.softirq), (Mode::Idle("C1".into()), Some(3)));
    let kernel = context_of(&KernelWakeup { softirq: Some(3), ..seen() });
    assert_eq!((kernel.softirq, kernel.preemptible), (Some(3), Some(false)));
    assert_eq!(kernel.task.comm, "logger");
}

#[test]
fn a_stimulus_is_a_timer_or_somebody() {
    let woken_by =
        |stimulus| decoded(&KernelWakeup { stimulus, stimulus_cpu: 3, ..seen() }).woken_by;
    let waker = |in_interrupt| {
        let task = Task { pid: 5, comm: "writer".into(), policy: Policy::Other, prio: 120 };
        WokenBy::Waker { task, on: 3, in_interrupt }
    };
    let writer = kernel_task(5, "writer");
    assert_eq!(woken_by(WakeupSource::Timer), WokenBy::Timer { on: 3 });
    assert_eq!(woken_by(WakeupSource::Task(writer)), waker(false));
    assert_eq!(woken_by(WakeupSource::Interrupt(writer)), waker(true));
    assert_eq!(woken_by(WakeupSource::Awake), WokenBy::Awake);
    assert_eq!(woken_by(WakeupSource::Unknown), WokenBy::Unknown);
}

#[test]
fn throttling_counts_while_a_real_time_task_waits() {
    let throttled = |at, throttled| {
        let prev = SwitchedFrom { pid: 231, prio: 120, policy: 0 };
        event(at, Payload::Switch(Switch { prev, next: kernel_task(500, "spinner"), throttled }))
    };
    for (events, policy, want) in [
        (vec![throttled(1_150, true)], 1, true),
        (vec![throttled(1_150, false)], 1, false),
        (vec![throttled(900, true)], 1, false),
        (vec![throttled(1_500, true)], 1, false),
        (vec![throttled(1_150, true)], 0, false),
    ] {
        let task = KernelTask { prio: 9, policy, ..kernel_task(400, "probe") };
        let wakeup = KernelWakeup { woken: MonoNs(1_100), task, ..seen_with(&events) };
        assert_eq!(decoded(&wakeup).throttled, want, "policy {policy}");
    }
    assert!(decoded(&KernelWakeup { throttled: true, ..seen() }).throttled);
}

#[test]
fn stacks_of_programs_belong_to_their_tasks() {
    let of = |name: &str| Frame::in_function(name, 16);
    let users: HashMap<(u32, u64), Frame> =
        [((231, 0x55d0), of("read")), ((231, 0x55d8), of("main")), ((7, 0x7f00), of("burn"))]
            .into();
    let wakeup = |stack: &[u64], last: &[u64]| KernelWakeup {
        given_up: Some(GivenUpAt { pid: 7, user_stack: last.to_vec(), ..Default::default() }),
        ..seen_in(Interrupted { user_stack: stack.to_vec(), ..in_logger() })
    };
    let shown = |wakeup: &KernelWakeup| {
        let Wakeup { interrupted, given_up, .. } = decoded_by(wakeup, 2, &users);
        (
            text_of(&interrupted.unwrap().user_stack).join(" "),
            given_up.map(|last| (last.pid, text_of(&last.user_stack).join(" "))),
        )
    };
    assert_eq!(shown(&wakeup(&[0x55d0, 0x55d8], &[])), ("read+0x10 main+0x10".into(), None));
    // An address without a name appears as a question mark.
    let both = wakeup(&[0x55d0, 0x55d9], &[0x7f00]);
    assert_eq!(shown(&both), ("read+0x10 ?".into(), Some((7, "burn+0x10".into()))));
    // Where nobody has a name, as in guests, there is no stack.
    let Wakeup { interrupted, given_up, .. } = decoded(&both);
    assert_eq!((interrupted.unwrap().user_stack, given_up.unwrap().user_stack), (vec![], vec![]));
}

#[test]
fn what_was_taken_is_told_where_events_were_lost_without_what_came_later() {
    let taken_of = |change: &dyn Fn(&mut KernelWakeup)| {
        let taken = Taken { interrupts_ns: 900, softirqs_ns: 500, nmis_ns: 40 };
        let mut seen = KernelWakeup { lost: 3, taken, ..seen() };
        change(&mut seen);
        let Taken { interrupts_ns, softirqs_ns, nmis_ns } = decoded(&seen).taken;
        [interrupts_ns, softirqs_ns, nmis_ns]
    };
    let later = |payload| {
        move |seen: &mut KernelWakeup| {
            let at = seen.marks.response.0;
            seen.events.extend([event(at + 60, payload), event(at + 90, Payload::SchedEntry)]);
        }
    };
    assert_eq!(taken_of(&|_| {}), [900, 500, 40]);
    assert_eq!(taken_of(&|seen| seen.lost = 0), [0; 3], "events tell");
    assert_eq!(taken_of(&|seen| seen.stimulus = WakeupSource::Awake), [0; 3]);
    // The program may have gone on for long before somebody heard of its answer.
    let softirq = Payload::SoftirqExit { number: 3, pending: false };
    let nmi = Payload::Nmi { handler: at::NMI, duration_ns: 5 };
    for payload in [Payload::IrqExit(Irq::Line(7)), softirq, nmi] {
        assert_eq!(taken_of(&later(payload)), [840, 440, 0], "{payload:?}");
    }
    assert_eq!(taken_of(&later(Payload::SchedEntry)), [900, 500, 40]);
}

/// A record has the task's priority at the end, and its own one where that is another.
#[test]
fn a_priority_of_its_own_is_told_where_it_was_lent_another() {
    let of = |normal_prio| decoded(&KernelWakeup { normal_prio, ..seen() }).normal_prio;
    let prio = seen().task.prio;
    assert_eq!(of(Some(prio)), None);
    assert_eq!(of(Some(prio + 5)), Some(prio + 5));
    assert_eq!(of(None), None);
}
