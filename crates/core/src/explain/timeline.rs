//! What happened while a task waited, in order of time.

use super::event::{Context, Event, Interrupt, Mode, Stimulus, Wakeup, What};
use super::record::Step;
use super::words::softirq_name;
use crate::units::{MonoNs, SpanNs, grouped};

/// The most steps, the one included that says how many are left out.
const MOST_STEPS: usize = 40;

/// How many of them are from the end.
const LAST_STEPS: usize = 9;

/// What happened from `due` to `response`, at most 40 steps: of longer ones the middle is left out,
/// and a step says how many that are.
pub fn timeline(wakeup: &Wakeup) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut depth = Depth::default();
    for (at, moment) in moments(wakeup) {
        let what = match moment {
            Moment::Mark(what) => Some((0, what)),
            Moment::Event(what) => words(what).map(|words| (depth.of(what), words)),
        };
        let at_ns = at.since(wakeup.marks.due).0;
        steps.extend(what.map(|(depth, what)| Step { at_ns, depth, what }));
    }
    shortened(steps)
}

enum Moment<'a> {
    Mark(String),
    Event(&'a What),
}

/// Marks and events within the wakeup. Where an event has the time of a mark that says the same, the
/// mark is enough.
fn moments(wakeup: &Wakeup) -> Vec<(MonoNs, Moment<'_>)> {
    let marks = wakeup.marks.consistent();
    let own = wakeup.task.name();
    let said = |what: &What, at: MonoNs| match what {
        What::IrqEntry(_) => marks.irq_entry == Some(at),
        What::IrqExit(_) => marks.irq_exit == Some(at),
        What::SchedEntry => marks.sched_entry == Some(at),
        What::Switch { to, .. } => marks.switch_in == Some(at) && to.pid == wakeup.task.pid,
        _ => false,
    };
    let inside = |event: &&Event| event.at >= marks.due && event.at <= marks.response;
    let events = wakeup.events.iter().filter(inside).filter(|event| !said(&event.what, event.at));
    let interrupt = wakeup.events.iter().find_map(|event| match &event.what {
        What::IrqEntry(interrupt) if Some(event.at) == marks.irq_entry => Some(named(interrupt)),
        _ => None,
    });
    let taken = format!("{} taken", interrupt.unwrap_or(NAMELESS));
    let lost = Some(marks.due).filter(|_| wakeup.lost > 0);
    let before = [
        (Some(marks.due), beginning(wakeup)),
        (lost, missing(wakeup.lost)),
        (marks.irq_entry, taken),
    ];
    let after = [
        (marks.irq_exit, "handler returns".to_owned()),
        (marks.sched_entry, "scheduler entered".to_owned()),
        (marks.switch_in, format!("switch to {own}")),
        (Some(marks.response), format!("{own} runs{}", faults(wakeup.page_faults))),
    ];
    let mark = |(at, what): (Option<MonoNs>, String)| Some((at?, Moment::Mark(what)));
    let mut moments: Vec<_> = before.into_iter().filter_map(mark).collect();
    moments.extend(events.map(|event| (event.at, Moment::Event(&event.what))));
    moments.extend(after.into_iter().filter_map(mark));
    // Stable: what has the same time stays as it is here.
    moments.sort_by_key(|&(at, _)| at);
    moments
}

fn missing(count: u32) -> String {
    match count {
        1 => "1 event is missing below".into(),
        _ => format!("{} events are missing below", grouped(count.into())),
    }
}

/// What an interrupt is called whose entry, which alone has the name, was not seen.
const NAMELESS: &str = "interrupt";

fn named(interrupt: &Interrupt) -> &str {
    if interrupt.0.is_empty() { NAMELESS } else { &interrupt.0 }
}

fn faults(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => " after a page fault".into(),
        _ => format!(" after {} page faults", grouped(count)),
    }
}

/// `timer due; rm[412] running in the kernel`
fn beginning(wakeup: &Wakeup) -> String {
    let stimulus = match &wakeup.stimulus {
        Stimulus::Timer { on } if *on != wakeup.cpu => format!("timer due on CPU {on}"),
        Stimulus::Timer { .. } => "timer due".into(),
        Stimulus::Awake => format!("due before {} slept", wakeup.task.name()),
        Stimulus::Unknown => "made ready".into(),
        Stimulus::Waker { task, on, in_interrupt } => {
            let place = if *in_interrupt { "an interrupt of " } else { "" };
            let cpu = if *on == wakeup.cpu { String::new() } else { format!(" on CPU {on}") };
            format!("made ready by {place}{}{cpu}", task.name())
        }
    };
    match wakeup.interrupted.as_ref().and_then(state) {
        Some(state) => format!("{stimulus}; {state}"),
        None => stimulus,
    }
}

/// What the CPU was at.
fn state(context: &Context) -> Option<String> {
    let softirq = context.softirq.map(|n| format!(", softirq {}", softirq_name(n)));
    let task = context.task.name();
    let state = match &context.mode {
        Mode::Unknown => return None,
        Mode::User => format!("{task} running"),
        Mode::Kernel => format!("{task} running in the kernel"),
        Mode::Idle(state) if state.is_empty() => "CPU idle".into(),
        Mode::Idle(state) => format!("CPU idle in {state}"),
    };
    Some(state + &softirq.unwrap_or_default())
}

/// An event in words; `None` if it is only the end of what the step before said, or a reading.
fn words(what: &What) -> Option<String> {
    Some(match what {
        What::IrqEntry(Interrupt(name)) if name.is_empty() => NAMELESS.into(),
        What::IrqEntry(Interrupt(name)) => format!("interrupt {name}"),
        What::IrqExit(interrupt) => format!("{} returns", named(interrupt)),
        What::TimerEntry(name, 0..=1) => name.clone(),
        What::TimerEntry(name, count) => format!("{name} of {} timers", grouped((*count).into())),
        What::SoftirqEntry(number) => format!("softirq {}", softirq_name(*number)),
        What::SoftirqExit(number) => format!("softirq {} ends", softirq_name(*number)),
        What::Nmi(name, ns) => format!("NMI {name} ends after {}", SpanNs(*ns)),
        What::Switch { to, .. } if to.is_idle() => "CPU goes idle".into(),
        What::Switch { to, .. } => format!("switch to {}", to.words()),
        What::SchedEntry => "scheduler entered".into(),
        What::Tracer(ns) => format!("tracing ends after {}", SpanNs(*ns)),
        What::ContentionBegin => "waits for a lock".into(),
        What::ContentionEnd => "has the lock".into(),
        What::TimerExit | What::Steal(_) => return None,
    })
}

/// How deep the CPU is in interrupts and softirqs.
#[derive(Default)]
struct Depth {
    interrupts: u32,
    softirqs: u32,
}

impl Depth {
    fn of(&mut self, what: &What) -> u32 {
        let here = |depth: &Self| depth.interrupts.saturating_add(depth.softirqs);
        match what {
            What::IrqExit(_) => self.interrupts = self.interrupts.saturating_sub(1),
            What::SoftirqExit(_) => self.softirqs = self.softirqs.saturating_sub(1),
            // A task is never switched to within an interrupt.
            What::Switch { .. } => *self = Self::default(),
            _ => {}
        }
        let depth = 1_u32.saturating_add(here(self));
        match what {
            What::IrqEntry(_) => self.interrupts = self.interrupts.saturating_add(1),
            What::SoftirqEntry(_) => self.softirqs = self.softirqs.saturating_add(1),
            _ => {}
        }
        depth
    }
}

/// What a step begins with that stands for those that were left out.
const LEFT_OUT: &str = "… and ";

impl Step {
    /// How many steps this one stands for: itself, or those that the record has left out here.
    pub fn stands_for(&self) -> u64 {
        let count = self.what.strip_prefix(LEFT_OUT).and_then(|rest| rest.strip_suffix(" more"));
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }
}

fn shortened(mut steps: Vec<Step>) -> Vec<Step> {
    if steps.len() <= MOST_STEPS {
        return steps;
    }
    let last = steps.split_off(steps.len() - LAST_STEPS);
    let left_out = steps.split_off(MOST_STEPS - LAST_STEPS - 1);
    let what = format!("{LEFT_OUT}{} more", left_out.len());
    steps.extend(left_out.first().map(|first| Step { what, ..first.clone() }));
    steps.extend(last);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::event::{Marks, Policy, Task};
    use expect_test::{Expect, expect};

    fn task(pid: u32, comm: &str, policy: Policy, prio: i32) -> Task {
        Task { pid, comm: comm.into(), policy, prio }
    }

    fn wakeup() -> Wakeup {
        let at = |us: u64| MonoNs(7_000_000 + us * 1_000);
        let event = |us, what| Event { at: at(us), what };
        let irq = |name: &str| Interrupt(name.into());
        let logger = task(231, "logger", Policy::Other, 120);
        let spin = task(7, "spin", Policy::Fifo, 4);
        let probe = task(400, "wakescope", Policy::Fifo, 9);
        Wakeup {
            task: probe.clone(),
            stimulus: Stimulus::Timer { on: 0 },
            marks: Marks {
                due: at(0),
                irq_entry: Some(at(231)),
                irq_exit: Some(at(234)),
                sched_entry: Some(at(260)),
                switch_in: Some(at(262)),
                response: at(265),
            },
            interrupted: Some(Context {
                task: logger.clone(),
                mode: Mode::Kernel,
                softirq: Some(3),
                ..Context::default()
            }),
            events: vec![
                event(231, What::IrqEntry(irq("local_timer"))),
                event(232, What::TimerEntry("hrtimer_wakeup".into(), 1)),
                event(233, What::TimerExit),
                event(234, What::IrqExit(irq("local_timer"))),
                event(235, What::SoftirqEntry(9)),
                event(236, What::IrqEntry(irq("eth0"))),
                event(237, What::IrqExit(irq("eth0"))),
                event(238, What::SoftirqExit(9)),
                event(239, What::Steal(5)),
                event(240, What::Switch { from: logger, to: spin.clone() }),
                event(250, What::Nmi("watchdog".into(), 1_500)),
                event(260, What::SchedEntry),
                event(262, What::Switch { from: spin, to: probe }),
                event(300, What::SchedEntry),
            ],
            ..Wakeup::default()
        }
    }

    fn check(change: impl FnOnce(&mut Wakeup), want: Expect) {
        let mut wakeup = wakeup();
        change(&mut wakeup);
        let line = |step: &Step| {
            let indent = usize::try_from(step.depth).unwrap() * 2;
            format!("{:>6} {:indent$}{}\n", step.at_ns, "", step.what)
        };
        want.assert_eq(&timeline(&wakeup).iter().map(line).collect::<String>());
    }

    #[test]
    fn steps_are_in_order() {
        check(
            |_| {},
            expect![[r#"
                 0 timer due; logger[231] running in the kernel, softirq NET_RX
            231000 local_timer taken
            232000   hrtimer_wakeup
            234000 handler returns
            235000   softirq RCU
            236000     interrupt eth0
            237000     eth0 returns
            238000   softirq RCU ends
            240000   switch to spin[7] fifo 95
            250000   NMI watchdog ends after 1.50 µs
            260000 scheduler entered
            262000 switch to wakescope[400]
            265000 wakescope[400] runs
        "#]],
        );
    }

    #[test]
    fn an_interrupt_whose_beginning_was_lost_has_no_name_and_is_still_one() {
        check(
            |w| {
                w.lost = 1;
                w.marks.irq_entry = None;
                w.marks.irq_exit = None;
                // Of the entry, and of its exit.
                w.events.truncate(4);
                w.events[0].what = What::IrqEntry(Interrupt(String::new()));
                w.events[3].what = What::IrqExit(Interrupt(String::new()));
            },
            expect![[r#"
                 0 timer due; logger[231] running in the kernel, softirq NET_RX
                 0 1 event is missing below
            231000   interrupt
            232000     hrtimer_wakeup
            234000   interrupt returns
            260000 scheduler entered
            262000 switch to wakescope[400]
            265000 wakescope[400] runs
        "#]],
        );
    }

    #[test]
    fn other_stimuli_say_who() {
        let waker = |on, in_interrupt| {
            move |w: &mut Wakeup| {
                let task = task(5, "writer", Policy::Other, 120);
                w.stimulus = Stimulus::Waker { task, on, in_interrupt };
                w.interrupted = None;
                w.events.clear();
                w.marks =
                    Marks { due: w.marks.due, response: w.marks.response, ..Marks::default() };
            }
        };
        check(
            waker(0, false),
            expect![[r#"
                 0 made ready by writer[5]
            265000 wakescope[400] runs
        "#]],
        );
        check(
            waker(1, true),
            expect![[r#"
                 0 made ready by an interrupt of writer[5] on CPU 1
            265000 wakescope[400] runs
        "#]],
        );
    }

    #[test]
    fn losses_and_page_faults_are_told() {
        let change = |w: &mut Wakeup| {
            w.lost = 1_200;
            w.page_faults = 2;
            w.events.clear();
        };
        check(
            change,
            expect![[r#"
                 0 timer due; logger[231] running in the kernel, softirq NET_RX
                 0 1,200 events are missing below
            231000 interrupt taken
            234000 handler returns
            260000 scheduler entered
            262000 switch to wakescope[400]
            265000 wakescope[400] runs after 2 page faults
        "#]],
        );
    }

    #[test]
    fn a_switch_leaves_the_softirq_behind() {
        let mut wakeup = wakeup();
        wakeup.events.retain(|event| !matches!(event.what, What::SoftirqExit(_)));
        let steps = timeline(&wakeup);
        let depth =
            |what: &str| steps.iter().find(|step| step.what.starts_with(what)).unwrap().depth;
        assert_eq!((depth("interrupt eth0"), depth("switch to spin")), (2, 1));
    }

    #[test]
    fn what_a_step_stands_for_is_read_from_our_own_words_only() {
        for what in ["", "… and more", "… and -1 more", "… and 99999999999999999999 more", "9 more"]
        {
            assert_eq!(Step { what: what.into(), ..Step::default() }.stands_for(), 1, "{what}");
        }
    }

    #[test]
    fn long_ones_lose_their_middle() {
        let mut wakeup = wakeup();
        let begin = wakeup.marks.due;
        let softirqs = (0..1_000_u64).map(|i| Event {
            at: MonoNs(begin.0 + i),
            what: What::SoftirqEntry(u8::try_from(i % 250).unwrap()),
        });
        wakeup.events = softirqs.collect();
        let steps = timeline(&wakeup);
        assert_eq!(steps.len(), MOST_STEPS);
        assert_eq!(steps[0].what, "timer due; logger[231] running in the kernel, softirq NET_RX");
        assert_eq!(steps[30].what, "… and 967 more");
        let stand_for: Vec<u64> = steps.iter().map(Step::stands_for).collect();
        assert_eq!((stand_for[0], stand_for[30], stand_for[39]), (1, 967, 1));
        assert_eq!(steps[39].what, "wakescope[400] runs");
        assert!(steps.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    }
}
