use super::*;
use crate::explain::tests::runs::{function, named_task};

fn share(cause: Cause, culprit: Culprit, within: Within) -> Share {
    Share { cause, ns: 231_000, culprit, within, ..Share::default() }
}

fn nowhere() -> Within {
    Within::default()
}

/// In a task, and within that in a function.
fn within(caller: Option<&str>, task: Option<(&str, u32)>) -> Within {
    let caller = caller.map(function);
    Within { caller, task: task.map(|(comm, pid)| named_task(comm, pid)), ..Within::default() }
}

#[track_caller]
fn check(share: &Share, want: &str) {
    assert_eq!(phrase(share, TimeDomain::Real), want);
}

#[test]
fn shares_read_as_sentences() {
    let of = |name: &str| Culprit::Function(function(name));
    let task = |comm: &str, pid| Culprit::Task(named_task(comm, pid));
    let with = |cause, culprit, within, want| check(&share(cause, culprit, within), want);
    with(
        Cause::IrqOff,
        of("uart_drain_fifo"),
        within(Some("serial_release"), Some(("logger", 231))),
        "231 µs interrupts off in uart_drain_fifo, called from serial_release in logger[231]",
    );
    with(
        Cause::NoPreemptionPoint,
        of("copy_page"),
        within(None, Some(("rm", 4))),
        "231 µs no preemption point in copy_page, in rm[4]",
    );
    with(
        Cause::NoPreemptionPoint,
        of("copy_page"),
        within(Some("exit_mmap"), None),
        "231 µs no preemption point in copy_page, in exit_mmap",
    );
    with(Cause::Softirq, Culprit::softirq("NET_RX"), nowhere(), "231 µs softirq NET_RX");
    with(Cause::Softirq, Culprit::softirq("12"), nowhere(), "231 µs softirq 12");
    with(Cause::Steal, Culprit::Hypervisor, nowhere(), "231 µs stolen by the hypervisor");
    with(Cause::Steal, Culprit::None, nowhere(), "231 µs stolen by the hypervisor");
    let spin = NamedTask { policy: Policy::Fifo, priority: Some(95), ..named_task("spin", 7) };
    with(
        Cause::HigherPriorityTask,
        Culprit::Task(spin),
        nowhere(),
        "231 µs higher-priority task spin[7] fifo 95",
    );
    with(
        Cause::EqualOrLowerTask,
        Culprit::Task(NamedTask { pid: None, ..named_task("sh", 7) }),
        nowhere(),
        "231 µs equal- or lower-priority task sh other",
    );
    // Which of two deadlines is earlier nobody knows.
    let named = NamedTask { policy: Policy::Deadline, ..named_task("dl", 9) };
    let deadline = Culprit::Task(named);
    with(
        Cause::EqualOrLowerTask,
        deadline.clone(),
        nowhere(),
        "231 µs deadline task dl[9] deadline",
    );
    // A probe with a deadline that had not gone to sleep yet was seen to have the CPU.
    let awake = share(Cause::EqualOrLowerTask, deadline.clone(), nowhere());
    check(
        &Share { evidence: Evidence::Edge, ..awake },
        "231 µs equal- or lower-priority task dl[9] deadline",
    );
    let higher = "231 µs higher-priority task dl[9] deadline";
    with(Cause::HigherPriorityTask, deadline, nowhere(), higher);
    // Of tasks that took turns none is known to have run for long.
    let several = "231 µs several equal- or lower-priority tasks";
    with(Cause::EqualOrLowerTask, Culprit::None, nowhere(), several);
    let several = "231 µs several higher-priority tasks";
    with(Cause::HigherPriorityTask, Culprit::None, nowhere(), several);
    with(Cause::Throttled, task("probe", 9), nowhere(), "231 µs throttled probe[9] other");
    with(Cause::PageFault, task("probe", 9), nowhere(), "231 µs page fault in probe[9]");
    with(Cause::IdleExit, Culprit::idle("C6"), nowhere(), "231 µs exit from idle C6");
    with(Cause::RemoteWakeup, task("kworker", 9), nowhere(), "231 µs remote wakeup by kworker[9]");
    with(Cause::Tracer, Culprit::Tracer, nowhere(), "231 µs tracer overhead");
    with(Cause::Nmi, Culprit::nmi("watchdog"), nowhere(), "231 µs NMI watchdog");
    with(Cause::Unexplained, Culprit::None, nowhere(), "231 µs unexplained");
    let in_timer = Within { interrupt: Some("local_timer".into()), ..Within::default() };
    with(Cause::Irq, Culprit::timer("hrtick"), in_timer, "231 µs interrupt hrtick, in local_timer");
}

#[test]
fn parts_of_the_way_to_the_task_are_named() {
    let phase = |cause, phase| Share { phase, ..share(cause, Culprit::None, nowhere()) };
    check(&phase(Cause::Irq, Some(Phase::Timer)), "231 µs interrupt before its timer fired");
    check(&phase(Cause::Irq, Some(Phase::Delivery)), "231 µs interrupt delivery");
    check(&phase(Cause::Scheduler, Some(Phase::Switch)), "231 µs scheduler in switch");
    check(
        &phase(Cause::Scheduler, Some(Phase::ReturnFromInterrupt)),
        "231 µs scheduler in return from interrupt",
    );
    let remote = share(Cause::RemoteWakeup, Culprit::None, nowhere());
    check(&Share { from_cpu: Some(3), ..remote.clone() }, "231 µs remote wakeup by CPU 3");
    check(&remote, "231 µs remote wakeup");
}

#[test]
fn places_are_told_from_the_inside_out() {
    let softirq = |caller, task| Within { softirq: Some("NET_RX".into()), ..within(caller, task) };
    let rm = Some(("rm", 412));
    for (within, lock, want) in [
        (
            within(Some("exit_mmap"), rm),
            true,
            "called from exit_mmap in rm[412], waiting for a lock",
        ),
        (within(None, rm), true, "in rm[412], waiting for a lock"),
        (nowhere(), true, "waiting for a lock"),
        (
            softirq(Some("net_rx_action"), rm),
            false,
            "called from net_rx_action in softirq NET_RX of rm[412]",
        ),
        (softirq(None, rm), false, "in softirq NET_RX of rm[412]"),
        (softirq(None, None), false, "in softirq NET_RX"),
        (
            Within { syscall: Some("read".into()), ..within(None, rm) },
            false,
            "called from read in rm[412]",
        ),
        // A task may be called anything, and is one name nevertheless.
        (within(None, Some(("a in b", 1))), false, "in a in b[1]"),
    ] {
        let culprit = Culprit::Function(function("f"));
        let text = share(Cause::IrqOff, culprit, within);
        let text = Share { waiting_for_lock: lock, ..text };
        check(&text, &format!("231 µs interrupts off in f, {want}"));
    }
}

#[test]
fn each_gap_is_told_in_its_own_words() {
    let unexplained = share(Cause::Unexplained, Culprit::None, nowhere());
    assert_eq!(known(&unexplained), "");
    let words = Gap::ALL.map(|gap| known(&Share { gap: Some(gap), ..unexplained.clone() }));
    let different: std::collections::HashSet<&str> =
        words.into_iter().filter(|words| !words.is_empty()).collect();
    assert_eq!(different.len(), Gap::ALL.len(), "{words:?}");
}

#[test]
fn tasks_are_named_with_the_priority_that_one_sets() {
    let of =
        |policy, priority| task_with_policy(&NamedTask { policy, priority, ..named_task("x", 7) });
    assert_eq!(of(Policy::Fifo, Some(95)), "x[7] fifo 95");
    assert_eq!(of(Policy::RoundRobin, Some(1)), "x[7] rr 1");
    assert_eq!(of(Policy::Deadline, None), "x[7] deadline");
    assert_eq!(of(Policy::Other, None), "x[7] other");
    assert_eq!(of(Policy::Unknown(9), None), "x[7] policy 9");
}

#[test]
fn no_word_is_doubled() {
    let of = |cause, culprit: &Culprit| {
        named(Blamed { cause, culprit, phase: None, from_cpu: None, others: false })
    };
    for (cause, culprit, want) in [
        (Cause::Steal, Culprit::Hypervisor, "stolen by the hypervisor"),
        (Cause::Softirq, Culprit::softirq("softirq 12"), "softirq 12"),
        (Cause::Irq, Culprit::interrupt("interrupt"), "interrupt"),
        (Cause::Nmi, Culprit::nmi("nmi"), "NMI"),
        (Cause::IdleExit, Culprit::idle("idle"), "exit from idle"),
        (Cause::Scheduler, Culprit::interrupt("scheduler"), "scheduler"),
        (Cause::Tracer, Culprit::Tracer, "tracer overhead"),
        (
            Cause::NoPreemptionPoint,
            Culprit::Function(function("copy_page")),
            "no preemption point in copy_page",
        ),
    ] {
        assert_eq!(of(cause, &culprit), want);
    }
    // Whatever a record calls a culprit, also what the cause is called.
    for of_cause in Cause::ALL {
        let words = cause(of_cause);
        for name in words.split(' ').chain([of_cause.name(), words]) {
            let text = of(of_cause, &Culprit::interrupt(name)).to_lowercase();
            let words: Vec<&str> = text.split(' ').collect();
            assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{text}");
        }
    }
}

#[test]
fn tenths_of_microseconds_are_not_rounded_up() {
    for (ns, want) in
        [(0, "0.0"), (231_499, "231.4"), (99, "0.0"), (u64::MAX, "18446744073709551.6")]
    {
        assert_eq!(micros(ns), want);
    }
}
