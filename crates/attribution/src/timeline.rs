//! What happened while a task waited, in order of time.

use wakescope_core::explain::{
    Context, Event, Interrupt, Interrupted, Mode, NamedTask, Step, StepEvent, StepMode, Wakeup,
    What, WokenBy,
};
use wakescope_core::softirq::softirq_name;
use wakescope_core::units::MonoNs;

/// The most steps, the one included that says how many are left out.
const MOST_STEPS: usize = 40;

/// How many of them are from the end.
const LAST_STEPS: usize = 9;

/// What happened from `due` to `response`, at most 40 steps: of longer ones the middle is left out,
/// and a step says how many that are.
pub fn timeline(wakeup: &Wakeup) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut depth = Depth::default();
    let mut moved_to = None;
    for (at, moment) in moments(wakeup) {
        let text = match moment {
            Moment::Mark(event) => Some((0, event)),
            Moment::Event(What::Moved { to, .. }) => {
                moved_to = Some(*to);
                None
            }
            Moment::Event(what) => {
                let event = match (what, moved_to.take()) {
                    // The switch that comes with the move.
                    (What::Switch { to, .. }, Some(cpu)) => {
                        Some(StepEvent::Moved { cpu, to: to.named() })
                    }
                    _ => step_event(what),
                };
                event.map(|event| (depth.of(what), event))
            }
        };
        let at_ns = at.since(wakeup.marks.due).0;
        steps.extend(text.map(|(depth, event)| Step { at_ns, depth, event }));
    }
    shortened(steps)
}

enum Moment<'a> {
    Mark(StepEvent),
    Event(&'a What),
}

/// Marks and events within the wakeup. Where an event has the time of a mark that says the same, the
/// mark is enough.
fn moments(wakeup: &Wakeup) -> Vec<(MonoNs, Moment<'_>)> {
    let marks = wakeup.marks.consistent();
    let said = |what: &What, at: MonoNs| match what {
        What::IrqEntry(_) => marks.irq_entry == Some(at),
        What::IrqExit(_) => marks.irq_exit == Some(at),
        What::SchedEntry => marks.sched_entry == Some(at),
        What::Switch { to, .. } => marks.switch_in == Some(at) && to.pid == wakeup.task.pid,
        _ => false,
    };
    let inside = |event: &&Event| event.at >= marks.due && event.at <= marks.response;
    let events = wakeup.events.iter().filter(inside).filter(|event| !said(&event.what, event.at));
    let name = own_interrupt(wakeup, marks.irq_entry);
    let lost = Some(marks.due).filter(|_| wakeup.lost > 0);
    let before = [
        (Some(marks.due), beginning(wakeup)),
        (lost, StepEvent::Missing { count: wakeup.lost.into() }),
        (marks.irq_entry, StepEvent::Interrupt { name: name.clone() }),
    ];
    let task = wakeup.task.named();
    let from = switched_from(wakeup, marks.switch_in);
    let after = [
        (marks.irq_exit, StepEvent::InterruptExit { name }),
        (marks.sched_entry, StepEvent::SchedEntry),
        (marks.switch_in, StepEvent::Switch { from, to: task.clone() }),
        (Some(marks.response), StepEvent::Runs { task, page_faults: wakeup.page_faults }),
    ];
    let mark = |(at, event): (Option<MonoNs>, StepEvent)| Some((at?, Moment::Mark(event)));
    let mut moments: Vec<_> = before.into_iter().filter_map(mark).collect();
    moments.extend(events.map(|event| (event.at, Moment::Event(&event.what))));
    moments.extend(after.into_iter().filter_map(mark));
    // Stable: what has the same time stays as it is here.
    moments.sort_by_key(|&(at, _)| at);
    moments
}

/// What the interrupt is called that was taken at `entry`.
fn own_interrupt(wakeup: &Wakeup, entry: Option<MonoNs>) -> Option<String> {
    wakeup.events.iter().find_map(|event| match &event.what {
        What::IrqEntry(interrupt) if Some(event.at) == entry => name(interrupt),
        _ => None,
    })
}

/// Who ran until the task was switched to at `switch_in`, if there is an event of that.
fn switched_from(wakeup: &Wakeup, switch_in: Option<MonoNs>) -> Option<NamedTask> {
    wakeup.events.iter().find_map(|event| match &event.what {
        What::Switch { from, to } if Some(event.at) == switch_in && to.pid == wakeup.task.pid => {
            Some(from.named())
        }
        _ => None,
    })
}

fn name(Interrupt(name): &Interrupt) -> Option<String> {
    Some(name.clone()).filter(|name| !name.is_empty())
}

fn beginning(wakeup: &Wakeup) -> StepEvent {
    let interrupted = wakeup.interrupted.as_ref().and_then(interrupted);
    let elsewhere = |on: u32| Some(on).filter(|&on| on != wakeup.first_cpu());
    match &wakeup.woken_by {
        WokenBy::Timer { on } => StepEvent::TimerExpiry { cpu: elsewhere(*on), interrupted },
        WokenBy::Awake => StepEvent::NotAsleep { task: wakeup.task.named(), interrupted },
        WokenBy::Unknown => {
            StepEvent::MadeReady { by: None, cpu: None, in_interrupt: false, interrupted }
        }
        WokenBy::Waker { task, on, in_interrupt } => StepEvent::MadeReady {
            by: task.is_known().then(|| task.named()),
            cpu: elsewhere(*on),
            in_interrupt: *in_interrupt,
            interrupted,
        },
    }
}

/// What the CPU was at, if that is known.
fn interrupted(context: &Context) -> Option<Interrupted> {
    let (mode, state) = match &context.mode {
        Mode::Unknown => return None,
        Mode::User => (StepMode::User, ""),
        Mode::Kernel => (StepMode::Kernel, ""),
        Mode::Idle(state) => (StepMode::Idle, state.as_str()),
    };
    Some(Interrupted {
        mode,
        task: context.task.named(),
        idle_state: Some(state.to_owned()).filter(|state| !state.is_empty()),
        softirq: context.softirq.map(softirq_name),
    })
}

/// An event as a step; `None` if it is only the end of what the step before said, or a reading.
fn step_event(what: &What) -> Option<StepEvent> {
    Some(match what {
        What::IrqEntry(interrupt) => StepEvent::Interrupt { name: name(interrupt) },
        What::IrqExit(interrupt) => StepEvent::InterruptExit { name: name(interrupt) },
        What::TimerEntry(name, count) => StepEvent::Timer { name: name.clone(), count: *count },
        What::SoftirqEntry(number) => StepEvent::Softirq { name: softirq_name(*number) },
        What::SoftirqExit(number) => StepEvent::SoftirqExit { name: softirq_name(*number) },
        What::Nmi(name, ns) => StepEvent::Nmi { name: name.clone(), ns: *ns },
        What::Switch { from, to } => StepEvent::Switch { from: Some(from.named()), to: to.named() },
        What::SchedEntry => StepEvent::SchedEntry,
        What::Tracer(ns) => StepEvent::Tracer { ns: *ns },
        What::ContentionBegin => StepEvent::LockWait,
        What::ContentionEnd => StepEvent::LockAcquired,
        What::TimerExit | What::SoftirqsPending | What::Steal(_) => return None,
        What::Moved { .. } | What::Deboost(_) => return None,
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

fn shortened(mut steps: Vec<Step>) -> Vec<Step> {
    if steps.len() <= MOST_STEPS {
        return steps;
    }
    let last = steps.split_off(steps.len() - LAST_STEPS);
    let left_out = steps.split_off(MOST_STEPS - LAST_STEPS - 1);
    let event = StepEvent::LeftOut { count: left_out.len() as u64 };
    steps.extend(left_out.first().map(|first| Step { event, ..first.clone() }));
    steps.extend(last);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use wakescope_core::explain::{Marks, Policy, Task};

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
            woken_by: WokenBy::Timer { on: 0 },
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
            let event = serde_json::to_string(&step.event).unwrap();
            format!("{:>6} {:indent$}{event}\n", step.at_ns, "")
        };
        want.assert_eq(&timeline(&wakeup).iter().map(line).collect::<String>());
    }

    #[test]
    fn steps_are_in_order() {
        check(
            |_| {},
            expect![[r#"
                     0 {"kind":"timer_expiry","cpu":null,"interrupted":{"mode":"kernel","task":{"comm":"logger","pid":231,"policy":"other","priority":null},"idle_state":null,"softirq":"NET_RX"}}
                231000 {"kind":"interrupt","name":"local_timer"}
                232000   {"kind":"timer","name":"hrtimer_wakeup","count":1}
                234000 {"kind":"interrupt_exit","name":"local_timer"}
                235000   {"kind":"softirq","name":"RCU"}
                236000     {"kind":"interrupt","name":"eth0"}
                237000     {"kind":"interrupt_exit","name":"eth0"}
                238000   {"kind":"softirq_exit","name":"RCU"}
                240000   {"kind":"switch","from":{"comm":"logger","pid":231,"policy":"other","priority":null},"to":{"comm":"spin","pid":7,"policy":"fifo","priority":95}}
                250000   {"kind":"nmi","name":"watchdog","ns":1500}
                260000 {"kind":"sched_entry"}
                262000 {"kind":"switch","from":{"comm":"spin","pid":7,"policy":"fifo","priority":95},"to":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90}}
                265000 {"kind":"runs","task":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90},"page_faults":0}
            "#]],
        );
    }

    #[test]
    fn a_move_tells_who_runs_there() {
        check(
            |w| {
                w.cpu = 1;
                let to = task(8, "sh", Policy::Other, 120);
                let at = w.events[3].at;
                let moved = Event { at, what: What::Moved { from: 0, to: 1 } };
                let from = task(231, "logger", Policy::Other, 120);
                let switch = Event { at, what: What::Switch { from, to } };
                w.events.truncate(4);
                w.events.extend([moved, switch]);
            },
            expect![[r#"
                     0 {"kind":"timer_expiry","cpu":null,"interrupted":{"mode":"kernel","task":{"comm":"logger","pid":231,"policy":"other","priority":null},"idle_state":null,"softirq":"NET_RX"}}
                231000 {"kind":"interrupt","name":"local_timer"}
                232000   {"kind":"timer","name":"hrtimer_wakeup","count":1}
                234000   {"kind":"moved","cpu":1,"to":{"comm":"sh","pid":8,"policy":"other","priority":null}}
                234000 {"kind":"interrupt_exit","name":"local_timer"}
                260000 {"kind":"sched_entry"}
                262000 {"kind":"switch","from":null,"to":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90}}
                265000 {"kind":"runs","task":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90},"page_faults":0}
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
                     0 {"kind":"timer_expiry","cpu":null,"interrupted":{"mode":"kernel","task":{"comm":"logger","pid":231,"policy":"other","priority":null},"idle_state":null,"softirq":"NET_RX"}}
                     0 {"kind":"missing","count":1}
                231000   {"kind":"interrupt","name":null}
                232000     {"kind":"timer","name":"hrtimer_wakeup","count":1}
                234000   {"kind":"interrupt_exit","name":null}
                260000 {"kind":"sched_entry"}
                262000 {"kind":"switch","from":null,"to":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90}}
                265000 {"kind":"runs","task":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90},"page_faults":0}
            "#]],
        );
    }

    #[test]
    fn other_stimuli_say_who() {
        let waker = |on, in_interrupt| {
            move |w: &mut Wakeup| {
                let task = task(5, "writer", Policy::Other, 120);
                w.woken_by = WokenBy::Waker { task, on, in_interrupt };
                w.interrupted = None;
                w.events.clear();
                w.marks =
                    Marks { due: w.marks.due, response: w.marks.response, ..Marks::default() };
            }
        };
        check(
            waker(0, false),
            expect![[r#"
                     0 {"kind":"made_ready","by":{"comm":"writer","pid":5,"policy":"other","priority":null},"cpu":null,"in_interrupt":false,"interrupted":null}
                265000 {"kind":"runs","task":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90},"page_faults":0}
            "#]],
        );
        check(
            waker(1, true),
            expect![[r#"
                     0 {"kind":"made_ready","by":{"comm":"writer","pid":5,"policy":"other","priority":null},"cpu":1,"in_interrupt":true,"interrupted":null}
                265000 {"kind":"runs","task":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90},"page_faults":0}
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
                     0 {"kind":"timer_expiry","cpu":null,"interrupted":{"mode":"kernel","task":{"comm":"logger","pid":231,"policy":"other","priority":null},"idle_state":null,"softirq":"NET_RX"}}
                     0 {"kind":"missing","count":1200}
                231000 {"kind":"interrupt","name":null}
                234000 {"kind":"interrupt_exit","name":null}
                260000 {"kind":"sched_entry"}
                262000 {"kind":"switch","from":null,"to":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90}}
                265000 {"kind":"runs","task":{"comm":"wakescope","pid":400,"policy":"fifo","priority":90},"page_faults":2}
            "#]],
        );
    }

    #[test]
    fn a_waker_that_is_not_known_is_not_told_as_the_idle_task() {
        let mut unknown = wakeup();
        unknown.woken_by = WokenBy::Waker { task: Task::default(), on: 1, in_interrupt: false };
        let first = &timeline(&unknown)[0].event;
        assert!(matches!(first, StepEvent::MadeReady { by: None, cpu: Some(1), .. }), "{first:?}");
    }

    #[test]
    fn a_switch_leaves_the_softirq_behind() {
        let mut wakeup = wakeup();
        wakeup.events.retain(|event| !matches!(event.what, What::SoftirqExit(_)));
        let steps = timeline(&wakeup);
        let depth = |is_it: fn(&StepEvent) -> bool| {
            steps.iter().find(|step| is_it(&step.event)).unwrap().depth
        };
        let eth0 = depth(
            |e| matches!(e, StepEvent::Interrupt { name } if name.as_deref() == Some("eth0")),
        );
        let spin = depth(|e| matches!(e, StepEvent::Switch { to, .. } if to.comm == "spin"));
        assert_eq!((eth0, spin), (2, 1));
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
        assert!(matches!(steps[0].event, StepEvent::TimerExpiry { .. }));
        assert_eq!(steps[30].event, StepEvent::LeftOut { count: 967 });
        let stand_for: Vec<u64> = steps.iter().map(Step::stands_for).collect();
        assert_eq!((stand_for[0], stand_for[30], stand_for[39]), (1, 967, 1));
        assert!(matches!(steps[39].event, StepEvent::Runs { .. }));
        assert!(steps.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    }
}
