//! The events of a wakeup's CPU, from when it was due until it was answered.

use std::collections::BTreeMap;

use wakescope_core::explain::{Event, Interrupt, Task, What};
use wakescope_core::units::MonoNs;

use crate::decoder::{Decoder, idle_task};
use crate::kernel::{
    Irq, KernelEvent, KernelTask, KernelWakeup, Payload, SwitchedFrom, WakeupSource,
};
use crate::names::interrupt_name;

/// The events from when the wakeup was due until it was answered. What had begun before and went on
/// then, begins with it. `ours` is the task that was to wake.
pub(crate) fn while_due(decoder: &Decoder, seen: &KernelWakeup, ours: &Task) -> Vec<Event> {
    let (due, response) = (seen.marks.due, seen.marks.response);
    let before = seen.events.iter().take_while(|event| event.at < due);
    let last_reading = before.clone().map(|event| event.steal_ns).filter(|&s| s != 0).last();
    let begun = going_on(before.clone()).into_iter().filter(|begun| went_on(begun, seen));
    let begun = begun.map(|event| (due, event));
    let after = &seen.events[before.count()..];
    // One from after the response that was written too early stays among those of before: it
    // shows that they are out of order.
    let end = after.iter().rposition(|event| event.at <= response).map_or(0, |last| last + 1);
    let during = after[..end].iter().map(|event| (event.at, event));
    let mut lines = Lines::default();
    // What was stolen since the last event before it was due may have been stolen since then.
    let mut steal = last_reading;
    // The last event that read the same: until then nothing more had been stolen.
    let mut unchanged: Option<Event> = None;
    let mut events: Vec<Event> = Vec::new();
    events.extend(last_reading.map(|s| Event { at: due, what: What::Steal(s) }));
    for (at, event) in begun.chain(during) {
        // What was read as something began that goes on, is older than that.
        if event.at >= due && event.steal_ns != 0 {
            if steal != Some(event.steal_ns) {
                events.extend(unchanged.take());
                events.push(Event { at, what: What::Steal(event.steal_ns) });
                steal = Some(event.steal_ns);
            } else {
                unchanged = Some(Event { at, what: What::Steal(event.steal_ns) });
            }
        }
        if event.steal_ns == 0 {
            // Readings stay in the order of events.
            unchanged = None;
        }
        let what = meaning(decoder, event, seen, ours, &mut lines);
        events.extend(what.map(|what| Event { at, what }));
        if matches!(event.payload, Payload::SoftirqExit { pending: true, .. }) {
            events.push(Event { at, what: What::SoftirqsPending });
        }
    }
    let after = seen.steal_after_ns;
    if after != 0 && steal.is_some_and(|last| last != after) {
        events.extend(unchanged);
        events.push(Event { at: response, what: What::Steal(after) });
    }
    events
}

/// What interrupts are called whose entry was seen: only that says what the line is called.
#[derive(Default)]
struct Lines(BTreeMap<Irq, Interrupt>);

impl Lines {
    fn entered(&mut self, irq: Irq, name: &[u8; 16]) -> Interrupt {
        let interrupt = interrupt_name(irq, name);
        self.0.insert(irq, interrupt.clone());
        interrupt
    }

    fn left(&self, irq: Irq) -> Interrupt {
        self.0.get(&irq).cloned().unwrap_or_default()
    }
}

fn meaning(
    decoder: &Decoder,
    event: &KernelEvent,
    seen: &KernelWakeup,
    ours: &Task,
    lines: &mut Lines,
) -> Option<What> {
    Some(match event.payload {
        Payload::IrqEntry { irq, ref name } => What::IrqEntry(lines.entered(irq, name)),
        Payload::IrqExit(irq) => What::IrqExit(lines.left(irq)),
        Payload::TimerEntry { function, count } => {
            What::TimerEntry(decoder.function(function), count)
        }
        Payload::TimerExit => What::TimerExit,
        Payload::SoftirqEntry(number) => What::SoftirqEntry(u8::try_from(number).ok()?),
        Payload::SoftirqExit { number, .. } => What::SoftirqExit(u8::try_from(number).ok()?),
        Payload::Nmi { handler, duration_ns } => What::Nmi(decoder.function(handler), duration_ns),
        Payload::Tracer { duration_ns } => What::Tracer(duration_ns),
        Payload::Switch(switch) => {
            let is_ours = switch.next.pid == ours.pid;
            let to = if is_ours { ours.clone() } else { switch.next.decoded() };
            What::Switch { from: task_left(event.at, &switch.prev, seen), to }
        }
        Payload::Moved { from, to } => What::Moved { from, to },
        Payload::SchedEntry => What::SchedEntry,
        Payload::ContentionBegin => What::ContentionBegin,
        Payload::ContentionEnd => What::ContentionEnd,
        Payload::Deboost(thread) => What::Deboost(task_left(event.at, &thread, seen)),
        Payload::Unknown => return None,
    })
}

/// Who ran until then. Its name is that of the same thread elsewhere, if it is seen there: the switch to it may
/// have been none that anybody looked at.
fn task_left(at: MonoNs, ran: &SwitchedFrom, seen: &KernelWakeup) -> Task {
    let &SwitchedFrom { pid, prio, policy } = ran;
    if pid == 0 {
        return idle_task();
    }
    let switched_to = |event: &KernelEvent| match event.payload {
        Payload::Switch(switch) => Some(switch.next),
        _ => None,
    };
    let earlier = seen.events.iter().take_while(|event| event.at < at).count();
    let (before, after) = seen.events.split_at(earlier);
    // The nearest of them comes last.
    let switched = after.iter().rev().chain(before).filter_map(switched_to);
    let interrupted = seen.interrupted.iter().map(|interrupted| interrupted.task);
    let waker = match seen.stimulus {
        WakeupSource::Task(task) | WakeupSource::Interrupt(task) => Some(task),
        _ => None,
    };
    let mut elsewhere =
        switched.chain(interrupted).chain([seen.task]).chain(waker).chain(seen.ran_there);
    let comm = elsewhere.rfind(|task| task.pid == pid).map(|task| task.comm);
    KernelTask { pid, prio, policy, comm: comm.unwrap_or_default() }.decoded()
}

/// Whether what had `begun` went on when the wakeup was due. Softirqs are written down only while
/// somebody waits for their CPU, so that the end of one may be missing; but which one the CPU is in
/// when a wakeup begins is always known. One that ended between the two shows its end.
fn went_on(begun: &KernelEvent, seen: &KernelWakeup) -> bool {
    let Payload::SoftirqEntry(number) = begun.payload else { return true };
    let mut edges = seen.events.iter().filter_map(|event| match event.payload {
        Payload::SoftirqEntry(of) => Some((event.at, of, false)),
        Payload::SoftirqExit { number: of, .. } => Some((event.at, of, true)),
        _ => None,
    });
    let next = edges.find(|&(at, of, _)| at >= seen.marks.due && of == number);
    // Where somebody looked at what was interrupted, the softirq is that of its CPU, which may be another.
    let is_of_here = seen.interrupted.is_none() || seen.stimulus_cpu == seen.first_cpu();
    (is_of_here && seen.softirq == Some(number)) || next.is_some_and(|(.., ends)| ends)
}

/// What of `events` had begun and not ended.
pub(crate) fn going_on<'a>(events: impl Iterator<Item = &'a KernelEvent>) -> Vec<&'a KernelEvent> {
    type Begins = fn(&Payload) -> bool;
    let mut open: Vec<&KernelEvent> = Vec::new();
    for event in events {
        let begins: Begins = match event.payload {
            // Nothing goes on over a switch but softirqs, where they can be preempted: in whom is left.
            Payload::Switch(_) => {
                open.clear();
                continue;
            }
            // Waits for locks can nest. The kernel reports the end of the inner wait only.
            Payload::ContentionEnd => {
                open.retain(|begun| begun.payload != Payload::ContentionBegin);
                continue;
            }
            Payload::IrqEntry { .. }
            | Payload::TimerEntry { .. }
            | Payload::SoftirqEntry(_)
            | Payload::ContentionBegin => {
                open.push(event);
                continue;
            }
            Payload::IrqExit(_) => |payload| matches!(payload, Payload::IrqEntry { .. }),
            Payload::TimerExit => |payload| matches!(payload, Payload::TimerEntry { .. }),
            Payload::SoftirqExit { .. } => |payload| matches!(payload, Payload::SoftirqEntry(_)),
            _ => continue,
        };
        if let Some(at) = open.iter().rposition(|begun| begins(&begun.payload)) {
            open.truncate(at);
        }
    }
    open
}
