//! From the bytes that programs hand over to what the kernel showed of a wakeup.

use wakescope_core::explain::{KnownSwitches, Marks, Mode, Taken};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_decode::{
    GivenUpAt, Interrupted, Irq, KernelEvent, KernelRunTimes, KernelTask, KernelWakeup, Link, Part,
    Payload, Switch, SwitchedFrom, Vector, WakeupSource,
};

use crate::shared::{
    self, AWAKE, COPIED_BYTES, EVENTS, Event, Head, LONG_BYTES, ORDINARY, RECORD_BYTES, RING,
    RunTimes, StackCopy, UNKNOWN, URGENT, WOKEN, Wakeup, from_bytes, kind,
};

/// What a record says of a wakeup, or of a part of it; `None` if it is too short for one. What a stack is that it
/// has a copy of, `walk` says.
pub(crate) fn part_of(record: &[u8], walk: impl FnOnce(&StackCopy) -> Vec<u64>) -> Option<Part> {
    let head = from_bytes::<Head>(record)?;
    let (rest, copy) = record.split_at(copy_at(record));
    let copy = from_bytes::<StackCopy>(copy).filter(|copy| copy.registers != 0);
    let events = rest[size_of::<Head>()..].chunks_exact(size_of::<Event>());
    let events = events.take((head.events as usize).min(RING));
    // Events that it states and does not hold are lost as well.
    let missing = head.events.saturating_sub(u32::try_from(events.len()).unwrap_or(u32::MAX));
    let events = events.filter_map(from_bytes::<Event>);
    let events = events.filter(|event| event.kind != kind::NO_EVENT);
    let mut events: Vec<KernelEvent> = events.map(|event| event_of(&event)).collect();
    let is_full = matches!(events.len(), EVENTS | RING);
    let goes_on = head.wakeup.state == WOKEN;
    if goes_on {
        drop_torn(&mut events, MonoNs(head.wakeup.response));
    }
    let lost = head.events_lost.saturating_add(missing);
    let mut wakeup = bare_wakeup(&head.wakeup);
    let moved_at = (head.wakeup.moved_at != 0).then_some(MonoNs(head.wakeup.moved_at));
    let begin = moved_at.unwrap_or(wakeup.marks.due);
    // Programs keep what the ring has room for, from before the wakeup on. A full ring may have begun too late;
    // from its first event on nothing is lost.
    let first_at = events.first().map(|first| first.at);
    let cut = first_at.filter(|&first_at| is_full && lost == 0 && first_at > begin);
    let interrupts_ns =
        (missing == 0 && head.in_interrupts != UNKNOWN).then_some(head.in_interrupts);
    let kept = interrupts_ns.filter(|_| lost > 0).map(|interrupts_ns| KnownSwitches {
        from: begin.max(MonoNs(head.switches_from)),
        interrupts_ns,
    });
    wakeup.known_switches = kept.or(cut.map(|from| KnownSwitches { from, interrupts_ns: 0 }));
    wakeup.lost = lost.max(u32::from(cut.is_some()));
    wakeup.events = events;
    wakeup.ran = run_times_of(record);
    wakeup.taken = taken_of(&head.taken);
    put_entries_before_their_interrupts(&mut wakeup.events);
    if let (Some(interrupted), Some(copy)) = (&mut wakeup.interrupted, copy) {
        interrupted.stack = walk(&copy);
    }
    Some(Part {
        wakeup,
        goes_on,
        moved_at,
        moved_steal_ns: head.wakeup.moved_steal,
        moved_softirq: head.wakeup.moved_softirq.checked_sub(1),
        before: head.wakeup.parts,
        interrupts_ns,
    })
}

/// So long before a part ends, nanoseconds, its events are sure to be whole: they are written in far less.
const WRITTEN_NS: u64 = 1_000;

/// Drops events that may be torn. A part that ends then may be handed over on another CPU than that of its events,
/// which goes on meanwhile: it has not written all of the last ones, and writes over the oldest.
fn drop_torn(events: &mut Vec<KernelEvent>, end: MonoNs) {
    while let [rest @ .., last] = &events[..] {
        let is_stale = rest.last().is_some_and(|before| last.at < before.at);
        if !is_stale && last.at.after(SpanNs(WRITTEN_NS)) < end {
            break;
        }
        events.pop();
    }
    let newest = events.last().map_or(end, |last| last.at);
    let overwritten = events.iter().take_while(|event| event.at > newest).count();
    events.drain(..overwritten);
}

/// The scheduler is entered with interrupts on. One that comes after the program has read the clock, and before
/// it has a place for the entry, writes its own events first. (7.2-rt: 293 us of a section with preemption off
/// were unexplained, as the events were out of order.)
///
/// Only entries behind whole interrupts are moved: anything else is a disorder that nobody understands.
fn put_entries_before_their_interrupts(events: &mut [KernelEvent]) {
    for entry in 1..events.len() {
        let at = events[entry].at;
        if events[entry].payload != Payload::SchedEntry || events[entry - 1].at <= at {
            continue;
        }
        let later = events[..entry].iter().rev().take_while(|event| event.at > at).count();
        let first = entry - later;
        if are_whole_interrupts(&events[first..entry]) {
            events[first..=entry].rotate_right(1);
            // What it says was stolen was read after what the interrupts say.
            events[first].steal_ns = 0;
        }
    }
}

/// Whether these are interrupts from their begin to their end, and nothing else.
fn are_whole_interrupts(events: &[KernelEvent]) -> bool {
    let mut depth = 0_u32;
    for event in events {
        match event.payload {
            Payload::IrqEntry { .. } => depth += 1,
            Payload::IrqExit(_) if depth > 0 => depth -= 1,
            _ if depth == 0 => return false,
            Payload::Switch(_) | Payload::SchedEntry => return false,
            _ => {}
        }
    }
    depth == 0
}

/// Where the events of a record end, and its copy begins if it has one: its length tells.
fn copy_at(record: &[u8]) -> usize {
    match record.len() {
        COPIED_BYTES => RECORD_BYTES,
        bytes => bytes.min(LONG_BYTES),
    }
}

/// Who ran meanwhile, by a record that has room for it.
fn run_times_of(record: &[u8]) -> KernelRunTimes {
    let behind = record.get(LONG_BYTES + size_of::<StackCopy>()..).unwrap_or_default();
    let Some(times) = from_bytes::<RunTimes>(behind) else { return KernelRunTimes::default() };
    let tasks = times.ran.iter().filter(|ran| ran.ns > 0);
    KernelRunTimes {
        tasks: tasks.map(|ran| (task_of(&ran.task), ran.ns)).collect(),
        ordinary_ns: times.all_ran[ORDINARY],
        urgent_ns: times.all_ran[URGENT],
    }
}

fn taken_of(raw: &shared::Taken) -> Taken {
    let shared::Taken { all, softirqs, nmis } = *raw;
    let interrupts_ns = all.saturating_sub(softirqs).saturating_sub(nmis);
    Taken { interrupts_ns, softirqs_ns: softirqs, nmis_ns: nmis }
}

/// All but events.
fn bare_wakeup(raw: &Wakeup) -> KernelWakeup {
    let seen = |at: u64| (at != 0).then_some(MonoNs(at));
    KernelWakeup {
        cpu: raw.cpu,
        task: task_of(&raw.task),
        normal_prio: Some(raw.task.normal_prio),
        stimulus: stimulus_of(raw),
        stimulus_cpu: raw.stimulus_cpu,
        marks: Marks {
            due: MonoNs(raw.due),
            irq_entry: seen(raw.irq_entry),
            irq_exit: seen(raw.irq_exit),
            sched_entry: seen(raw.sched_entry),
            switch_in: seen(raw.switch_in),
            response: MonoNs(raw.response),
        },
        woken: MonoNs(raw.woken),
        // Without a switch to the task it is not known how many it had before.
        page_faults: match raw.switch_in {
            0 => 0,
            _ => raw.faults_after.saturating_sub(raw.faults_before),
        },
        stolen_ns: raw.stolen,
        quota_ns: (raw.quota != UNKNOWN).then_some(raw.quota),
        steal_after_ns: raw.steal_after,
        irqs_off: seen(raw.irqs_off).zip(seen(raw.irqs_on)),
        throttled: raw.throttled != 0,
        throttled_from: None,
        softirq: raw.softirq.checked_sub(1),
        idle_state: raw.idle.checked_sub(1),
        interrupted: (raw.looked != 0).then(|| interrupted_of(raw)),
        ran_there: match (raw.runs.pid, raw.moved_at, raw.looked, raw.interrupted.pid) {
            (0, 0, 0, 1..) => Some(task_of(&raw.interrupted)),
            // An idle task has a name.
            (0, ..) if raw.runs.comm[0] == 0 => None,
            _ => Some(task_of(&raw.runs)),
        },
        given_up: (raw.away_pid != 0).then(|| GivenUpAt {
            pid: raw.away_pid,
            stack: stack(&raw.away, raw.away_bytes).to_vec(),
            user_stack: stack(&raw.away_user, raw.away_user_bytes).to_vec(),
        }),
        events: Vec::new(),
        lost: 0,
        known_switches: None,
        ran: KernelRunTimes::default(),
        taken: Taken::default(),
    }
}

fn interrupted_of(raw: &Wakeup) -> Interrupted {
    Interrupted {
        task: task_of(&raw.interrupted),
        mode: match raw.mode {
            1 => Mode::User,
            2 => Mode::Kernel,
            _ => Mode::Unknown,
        },
        preempt_count: raw.preempt_count,
        ip: raw.interrupted_ip,
        code: raw.code,
        link: (raw.link != 0).then_some(Link { address: raw.link, before: raw.before_link }),
        stack: stack(&raw.stack, raw.stack_bytes).to_vec(),
        user_stack: stack(&raw.user, raw.user_bytes).to_vec(),
    }
}

fn stimulus_of(raw: &Wakeup) -> WakeupSource {
    match raw.stimulus {
        1 => WakeupSource::Timer,
        2 => WakeupSource::Task(task_of(&raw.waker)),
        3 => WakeupSource::Interrupt(task_of(&raw.waker)),
        AWAKE => WakeupSource::Awake,
        _ => WakeupSource::Unknown,
    }
}

/// The frames that were written.
pub(crate) fn stack<const MOST: usize>(frames: &[u64; MOST], bytes: i32) -> &[u64] {
    let count = usize::try_from(bytes).unwrap_or(0) / size_of::<u64>();
    &frames[..count.min(MOST)]
}

pub(crate) fn task_of(task: &shared::Task) -> KernelTask {
    let &shared::Task { pid, prio, policy, normal_prio: _, comm } = task;
    KernelTask { pid, prio, policy, comm }
}

fn event_of(raw: &Event) -> KernelEvent {
    KernelEvent { at: MonoNs(raw.at_ns), steal_ns: raw.steal_ns, payload: payload_of(raw) }
}

fn payload_of(raw: &Event) -> Payload {
    match raw.kind {
        kind::IRQ_ENTRY => {
            let irq: shared::Irq = raw.payload();
            Payload::IrqEntry { irq: irq_of(&irq), name: irq.name }
        }
        kind::IRQ_EXIT => Payload::IrqExit(irq_of(&raw.payload())),
        kind::TIMER_ENTRY => {
            let timer: shared::Timer = raw.payload();
            Payload::TimerEntry { function: timer.function, count: timer.count }
        }
        kind::TIMER_EXIT => Payload::TimerExit,
        kind::SOFTIRQ_ENTRY => Payload::SoftirqEntry(raw.payload::<shared::Softirq>().number),
        kind::SOFTIRQ_EXIT => {
            let softirq: shared::Softirq = raw.payload();
            Payload::SoftirqExit { number: softirq.number, pending: softirq.pending != 0 }
        }
        kind::NMI => {
            let nmi: shared::Nmi = raw.payload();
            Payload::Nmi { handler: nmi.handler, duration_ns: nmi.duration_ns }
        }
        kind::SWITCH => Payload::Switch(switch_of(&raw.payload())),
        kind::SCHED_ENTRY => Payload::SchedEntry,
        kind::CONTENTION_BEGIN => Payload::ContentionBegin,
        kind::CONTENTION_END => Payload::ContentionEnd,
        kind::DEBOOST => Payload::Deboost(switched_from(raw.payload())),
        kind::TRACER => {
            let own: shared::OwnTime = raw.payload();
            Payload::Tracer { duration_ns: own.duration_ns }
        }
        _ => Payload::Unknown,
    }
}

fn irq_of(irq: &shared::Irq) -> Irq {
    match irq.vector {
        0 => Irq::Line(irq.line),
        vector => Irq::Vector(Vector::of(vector)),
    }
}

fn switch_of(switch: &shared::CpuSwitch) -> Switch {
    let &shared::CpuSwitch { prev, next, comm, throttled, pad: _ } = switch;
    let (prio, policy) = (next.prio.into(), next.policy.into());
    Switch {
        prev: switched_from(prev),
        next: KernelTask { pid: next.pid, prio, policy, comm },
        throttled: throttled != 0,
    }
}

fn switched_from(shared::Switched { pid, prio, policy }: shared::Switched) -> SwitchedFrom {
    SwitchedFrom { pid, prio: prio.into(), policy: policy.into() }
}

#[cfg(test)]
mod tests;
