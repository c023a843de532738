use proptest::prelude::*;

use super::*;
use crate::explain::{
    Cause, Frame, Interrupt, KnownSwitches, Mode, Policy, Ran, RunTimes, Taken, What,
};

fn task(pid: u32, comm: &str) -> Task {
    Task { pid, comm: comm.into(), policy: Policy::Fifo, prio: 9 }
}

/// One of each kind of event, and something in each field.
fn full() -> Attributed {
    let (from, to) = (task(7, "rm"), task(10, "probe"));
    let all = [
        What::IrqEntry(Interrupt("eth0".into())),
        What::IrqExit(Interrupt("eth0".into())),
        What::TimerEntry("hrtimer_wakeup".into(), 3),
        What::TimerExit,
        What::SoftirqEntry(3),
        What::SoftirqExit(3),
        What::SoftirqsPending,
        What::Nmi("perf".into(), 700),
        What::Tracer(90),
        What::Switch { from, to: to.clone() },
        What::Moved { from: 0, to: 1 },
        What::SchedEntry,
        What::Steal(123),
        What::ContentionBegin,
        What::ContentionEnd,
        What::Deboost(task(8, "sh")),
    ];
    let at = |ns: u64| MonoNs(1_000_000 + ns);
    let module = Some("ext4".to_owned());
    let stack = vec![Frame { module, ..Frame::in_function("f", 16) }, Frame::default()];
    let wakeup = Wakeup {
        cpu: 1,
        task: to,
        woken_by: WokenBy::Waker { task: task(8, "sh"), on: 2, in_interrupt: true },
        normal_prio: Some(94),
        marks: Marks {
            due: at(0),
            irq_entry: Some(at(10)),
            irq_exit: Some(at(20)),
            sched_entry: None,
            switch_in: Some(at(90)),
            response: at(100),
        },
        interrupted: Some(Context {
            task: task(7, "rm"),
            mode: Mode::Idle("C1".into()),
            preempt_depth: Some(1),
            softirq: Some(3),
            preemptible: Some(false),
            enabled_interrupts: Some(true),
            stack: stack.clone(),
            stack_is_later: true,
            user_stack: stack.clone(),
        }),
        events: (0..).zip(all).map(|(i, what)| Event { at: at(i), what }).collect(),
        lost: 2,
        known_switches: Some(KnownSwitches { from: MonoNs(1_000_100), interrupts_ns: 7_000 }),
        ran: RunTimes {
            tasks: vec![Ran { task: task(7, "rm"), ns: 80 }],
            others_ns: 4,
            urgent_others_ns: 3,
        },
        taken: Taken { interrupts_ns: 900, softirqs_ns: 70, nmis_ns: 5 },
        given_up: Some(GivenUp { pid: 7, stack: stack.clone(), user_stack: stack.clone() }),
        page_faults: 3,
        throttled: true,
        throttled_from: Some(at(20)),
        irqs_off: Some((MonoNs(999_000), MonoNs(999_500))),
        stolen_ns: 40,
        quota_ns: Some(30),
    };
    let components = Components { irq_latency_ns: 100, ..Components::default() };
    let blame = vec![Share { cause: Cause::IrqOff, ns: 100, ..Share::default() }];
    Attributed { wakeup, components, blame }
}

fn there_and_back(episode: &Attributed, origin_ns: u64) -> Attributed {
    let text = Entry::Episode(Box::new(Line::of(episode.clone(), origin_ns))).text();
    let Entry::Episode(line) = Entry::read(text.as_bytes()).unwrap() else { panic!("{text}") };
    line.attributed(origin_ns).unwrap()
}

#[test]
fn an_episode_is_read_as_it_was_written() {
    let episode = full();
    for origin_ns in [0, 1, 999_999, 2_000_000, u64::MAX] {
        assert_eq!(there_and_back(&episode, origin_ns), episode, "{origin_ns}");
    }
}

#[test]
fn times_count_from_the_expiry_and_what_is_not_there_is_not_written() {
    let text = Entry::Episode(Box::new(Line::of(Attributed::default(), 0))).text();
    let want = concat!(
        r#"{"expiry_ns":0,"wakeup_latency_ns":0,"cpu":0,"#,
        r#""task":{"pid":0,"comm":"","policy":"other","prio":0},"woken_by":{"kind":"unknown"},"#,
        r#""marks":{},"events":[],"components":{"irq_latency_ns":0,"handler_duration_ns":0,"#,
        r#""sched_latency_ns":0,"sched_duration_ns":null},"blame":[]}"#,
        "\n"
    );
    assert_eq!(text, want);
    let text = Entry::Episode(Box::new(Line::of(full(), 400_000))).text();
    for part in [
        r#""expiry_ns":600000,"wakeup_latency_ns":100,"#,
        r#""marks":{"irq_entry_ns":10,"irq_exit_ns":20,"switch_in_ns":90}"#,
        r#"{"at_ns":2,"kind":"timer_entry","name":"hrtimer_wakeup","count":3}"#,
        r#""irqs_off_ns":[-1000,-500]"#,
        r#""stack":[{"function":"f","offset":16,"module":"ext4"},{"offset":0}]"#,
        r#""mode":{"idle":"C1"}"#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn stacks_of_shares_are_those_of_the_wakeup() {
    let mut episode = full();
    episode.blame[0].frames = vec![Frame::in_function("f", 16)];
    let mut want = episode.clone();
    want.blame.iter_mut().for_each(without_stacks);
    assert_eq!(there_and_back(&episode, 0), want);
}

#[test]
fn lines_that_cannot_be_used_say_why() {
    let whole = Entry::Episode(Box::new(Line::of(full(), 0))).text();
    let head = Entry::Head(Box::new(Head { schema: SCHEMA.into(), ..Head::default() })).text();
    assert!(matches!(Entry::read(head.as_bytes()), Ok(Entry::Head(_))));
    let why = |text: &str| match Entry::read(text.as_bytes()) {
        Ok(Entry::Episode(line)) => line.attributed(0).unwrap_err().to_string(),
        other => other.unwrap_err().to_string(),
    };
    let without = |part: &str, by: &str| {
        assert!(whole.contains(part), "{part}: {whole}");
        why(&whole.replacen(part, by, 1))
    };
    for (why, want) in [
        (why(&whole[..whole.len() / 2]), "it is damaged: EOF while parsing"),
        (why(&head.replace("episode/1", "episode/9")), "`wakescope.episode/9`"),
        (why("{\"schema\":7}"), "it is damaged: invalid type"),
        (without("\"ns\":700", "\"nanoseconds\":700"), "the kind nmi lacks `ns`"),
        (without("\"kind\":\"nmi\"", "\"kind\":\"later\""), "unknown variant `later`"),
        (without("\"wakeup_latency_ns\":100", "\"wakeup_latency_ns\":101"), "add up to 101 ns"),
        (without("\"irq_latency_ns\":100", "\"irq_latency_ns\":99"), "add up to 100 ns"),
    ] {
        assert!(why.contains(want), "{why}, not {want}");
    }
}

proptest! {
    /// Times lead back whatever they are.
    #[test]
    fn every_time_is_read_as_it_was_written(
        times in any::<[u64; 6]>(), origin_ns in any::<u64>(), events in any::<Vec<u64>>(),
    ) {
        let [due, entry, exit, switch, off, on] = times.map(MonoNs);
        let mut episode = Attributed::default();
        let late_ns = entry.0 % 1_000_000;
        episode.components.irq_latency_ns = late_ns;
        episode.blame = vec![Share { ns: late_ns, ..Share::default() }];
        let event = |at| Event { at: MonoNs(at), what: What::SchedEntry };
        episode.wakeup.events = events.into_iter().map(event).collect();
        episode.wakeup.irqs_off = Some((off, on));
        episode.wakeup.marks = Marks {
            due,
            irq_entry: Some(entry),
            irq_exit: Some(exit),
            sched_entry: None,
            switch_in: Some(switch),
            response: MonoNs(due.0.wrapping_add(late_ns)),
        };
        prop_assert_eq!(there_and_back(&episode, origin_ns), episode);
    }
}
