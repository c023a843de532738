//! Lines of episodes.jsonl fit docs/reference/episode.schema.json, and it documents no more.

use serde_json::Value;
use wakescope_core::episodes::{Attributed, Entry, Head, Line};
use wakescope_core::explain::{
    Cause, Components, Context, Culprit, Event, Frame, Function, Gap, GivenUp, Interrupt,
    KnownSwitches, Marks, Mode, NamedTask, Phase, Policy, Ran, RunTimes, Share, Taken, Task,
    Wakeup, What, Within, WokenBy,
};
use wakescope_core::units::MonoNs;

use crate::common::schema::unused_keys;
use crate::common::{Checker, read};

fn schema() -> Value {
    serde_json::from_str(&read("docs/reference/episode.schema.json")).unwrap()
}

fn task() -> Task {
    Task { pid: 7, comm: "rm".into(), policy: Policy::Fifo, prio: 4 }
}

fn stack() -> Vec<Frame> {
    vec![Frame { module: Some("ext4".into()), ..Frame::in_function("f", 16) }, Frame::default()]
}

/// With something in each field.
pub(super) fn full_lines() -> Vec<String> {
    let name = || "eth0".to_owned();
    let all = [
        What::IrqEntry(Interrupt(name())),
        What::IrqExit(Interrupt(name())),
        What::TimerEntry(name(), 1),
        What::TimerExit,
        What::SoftirqEntry(3),
        What::SoftirqExit(3),
        What::SoftirqsPending,
        What::Nmi(name(), 1),
        What::Tracer(1),
        What::Switch { from: task(), to: task() },
        What::Moved { from: 0, to: 1 },
        What::SchedEntry,
        What::Steal(1),
        What::ContentionBegin,
        What::ContentionEnd,
        What::Deboost(task()),
    ];
    let at = |ns: u64| Some(MonoNs(1_000 + ns));
    let function = || Function { name: "f".into(), module: Some("ext4".into()) };
    let named: NamedTask = task().named();
    let within = Within {
        caller: Some(function()),
        syscall: Some("read".into()),
        softirq: Some("NET_RX".into()),
        interrupt: Some(name()),
        task: Some(named.clone()),
    };
    let share = |ns, culprit| Share { cause: Cause::IrqOff, ns, culprit, ..Share::default() };
    let whole = Share {
        phase: Some(Phase::Switch),
        from_cpu: Some(1),
        within,
        waiting_for_lock: true,
        gap: Some(Gap::LostEvents),
        ..share(60, Culprit::Function(function()))
    };
    let context = Context {
        task: task(),
        mode: Mode::Idle("C1".into()),
        preempt_depth: Some(1),
        softirq: Some(3),
        preemptible: Some(true),
        enabled_interrupts: Some(true),
        stack: stack(),
        stack_is_later: true,
        user_stack: stack(),
    };
    let wakeup = Wakeup {
        cpu: 1,
        task: task(),
        normal_prio: Some(94),
        woken_by: WokenBy::Waker { task: task(), on: 0, in_interrupt: true },
        marks: Marks {
            due: MonoNs(1_000),
            irq_entry: at(10),
            irq_exit: at(20),
            sched_entry: at(30),
            switch_in: at(40),
            response: MonoNs(1_100),
        },
        interrupted: Some(context),
        events: all.map(|what| Event { at: MonoNs(1_050), what }).into(),
        lost: 1,
        known_switches: Some(KnownSwitches { from: MonoNs(1_010), interrupts_ns: 5_000 }),
        ran: RunTimes {
            tasks: vec![Ran { task: task(), ns: 20 }],
            others_ns: 5,
            urgent_others_ns: 2,
        },
        taken: Taken { interrupts_ns: 9, softirqs_ns: 7, nmis_ns: 1 },
        given_up: Some(GivenUp { pid: 7, stack: stack(), user_stack: stack() }),
        page_faults: 1,
        throttled: true,
        throttled_from: at(20),
        irqs_off: at(0).zip(at(5)),
        stolen_ns: 7,
        quota_ns: Some(5),
    };
    let components =
        Components { irq_latency_ns: 100, sched_duration_ns: Some(0), ..Default::default() };
    let blame = vec![whole, share(40, Culprit::Task(named))];
    let mut run = super::full_run();
    run.plan.load = vec!["disturb-fifo-300us".into()];
    let known = wakescope_core::explain::Known {
        scheduling_ns: Some(1),
        least_sched_latency_ns: Some(3),
        waking_ns: Some(2),
        shows_softirqs_left: true,
        shows_throttling: true,
        ..Default::default()
    };
    let head = Head::of(&run, Default::default(), known);
    let line = Line::of(Attributed { wakeup, components, blame }, 0);
    vec![Entry::Head(Box::new(head)).text(), Entry::Episode(Box::new(line)).text()]
}

#[test]
fn lines_of_episodes_fit_the_schema_and_use_each_key_of_it() {
    let (schema, checker) = (schema(), Checker::closed(schema()));
    let lines: Vec<Value> =
        full_lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut unused: Option<std::collections::BTreeSet<String>> = None;
    for line in &lines {
        assert_eq!(checker.fault(line), None, "{line}");
        let own = unused_keys(&schema, line);
        unused = Some(unused.map_or(own.clone(), |all| all.intersection(&own).cloned().collect()));
    }
    let unused = unused.unwrap();
    assert!(unused.is_empty(), "the schema documents keys that no line has: {unused:?}");
}

#[test]
fn damaged_lines_do_not_fit_the_schema() {
    let checker = Checker::new(schema());
    let lines = full_lines();
    for (line, part, by) in [
        (0, "wakescope.episode/1", "wakescope.episode/2"),
        (0, "\"run\"", "\"of\""),
        (0, "\"p99.9\"", "\"often\""),
        (1, "\"wakeup_latency_ns\":100", "\"wakeup_latency_ns\":-1"),
        (1, "\"kind\":\"nmi\"", "\"kind\":\"later\""),
        (1, "\"kind\":\"waker\"", "\"kind\":\"later\""),
        (1, "\"prio\":4", "\"prio\":0.5"),
    ] {
        assert!(lines[line].contains(part), "{part}: {}", lines[line]);
        let damaged = serde_json::from_str(&lines[line].replacen(part, by, 1)).unwrap();
        assert!(checker.fault(&damaged).is_some(), "{damaged}");
    }
}
