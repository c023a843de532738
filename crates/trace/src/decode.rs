//! From what programs wrote to what a wakeup means.

use std::collections::BTreeMap;

use wakescope_core::explain::{
    Context, Event, Frame, GivenUp, Interrupt, Marks, Mode, Policy, Task, Wakeup, What, WokenBy,
};
use wakescope_core::units::MonoNs;

use crate::code::{enables_interrupts, is_arm64_call};
use crate::kept::Late;
use crate::shared::{self, AWAKE, EVENTS, NO_LINE, RING, kind};
use crate::symbols::Symbols;
use crate::users::UserNames;

/// The programs' own stacks, each with its thread.
pub(crate) fn user_stacks(late: &Late) -> [(u32, &[u64]); 2] {
    let Late { wakeup, .. } = late;
    let interrupted = stack(&wakeup.user, wakeup.user_bytes);
    let last = stack(&wakeup.away_user, wakeup.away_user_bytes);
    [(wakeup.interrupted.pid, interrupted), (wakeup.away_pid, last)]
}

/// The frames that were written.
pub(crate) fn stack<const MOST: usize>(frames: &[u64; MOST], bytes: i32) -> &[u64] {
    let count = usize::try_from(bytes).unwrap_or(0) / size_of::<u64>();
    &frames[..count.min(MOST)]
}

/// What is needed to understand what was written.
pub(crate) struct Decoder<'a> {
    pub(crate) symbols: &'a Symbols,
    pub(crate) users: &'a UserNames,
    /// One more than the least depth of disabled preemption seen, which is what tracing itself
    /// adds; 0 if none was seen.
    pub(crate) least_depth: u64,
    /// See [`Context::preemptible`].
    pub(crate) preemptible: Option<bool>,
    /// Names of idle states.
    pub(crate) idle_states: &'a [String],
}

impl Decoder<'_> {
    pub(crate) fn wakeup(&self, late: &Late) -> Wakeup {
        let wakeup = &late.wakeup;
        let due = MonoNs(wakeup.due);
        let seen = |at: u64| (at != 0).then_some(MonoNs(at));
        let task = task(&wakeup.task);
        // Programs keep what the ring has room for, from before the wakeup on: a full one may have
        // begun too late.
        let cut = matches!(late.events.len(), EVENTS | RING)
            && late.events.first().is_some_and(|first| first.at > wakeup.due);
        Wakeup {
            cpu: wakeup.cpu,
            woken_by: woken_by(wakeup),
            marks: Marks {
                due,
                irq_entry: seen(wakeup.irq_entry),
                irq_exit: seen(wakeup.irq_exit),
                sched_entry: seen(wakeup.sched_entry),
                switch_in: seen(wakeup.switch_in),
                response: MonoNs(wakeup.response),
            },
            interrupted: self.interrupted(late),
            given_up: self.given_up(late),
            events: self.events(late, &task),
            lost: late.lost.max(u32::from(cut)),
            // Without a switch to the task it is not known how many it had before.
            page_faults: match wakeup.switch_in {
                0 => 0,
                _ => wakeup.faults_after.saturating_sub(wakeup.faults_before),
            },
            throttled: task.policy.is_realtime() && was_throttled(late),
            stolen_ns: late.stolen_ns(),
            irqs_off: seen(wakeup.irqs_off).zip(seen(wakeup.irqs_on)),
            task,
        }
    }

    /// Who had the CPU last, and where it was then, if a stack was taken of it.
    fn given_up(&self, late: &Late) -> Option<GivenUp> {
        let [_, (pid, user_stack)] = user_stacks(late);
        let stack = self.given_up_at(&late.wakeup);
        let looked = pid != 0 && !(stack.is_empty() && user_stack.is_empty());
        looked.then(|| GivenUp { pid, stack, user_stack: self.named(pid, user_stack) })
    }

    fn named(&self, pid: u32, stack: &[u64]) -> Vec<Frame> {
        let known: Vec<Option<&Frame>> =
            stack.iter().map(|&address| self.users.get(&(pid, address))).collect();
        // A stack of which nothing is known says nothing.
        let is_known = known.iter().any(Option::is_some);
        known.into_iter().filter(|_| is_known).map(|f| f.cloned().unwrap_or_default()).collect()
    }

    fn interrupted(&self, late: &Late) -> Option<Context> {
        let wakeup = &late.wakeup;
        let idle = wakeup.idle.checked_sub(1).map(|state| self.idle_state(state));
        let softirq = wakeup.softirq.checked_sub(1).and_then(|number| u8::try_from(number).ok());
        if wakeup.looked == 0 {
            // Of another CPU this much is known.
            let mode = Mode::Idle(idle?);
            return Some(Context { mode, softirq, ..Default::default() });
        }
        let task = match wakeup.interrupted.pid {
            0 => idle_task(),
            _ => task(&wakeup.interrupted),
        };
        let mode = match wakeup.mode {
            _ if task.pid == 0 => Mode::Idle(idle.unwrap_or_default()),
            1 => Mode::User,
            2 => Mode::Kernel,
            _ => Mode::Unknown,
        };
        let depth = u64::from(wakeup.preempt_count & 0xff);
        // Without the variable all counts are 0, and one that was seen is at least 1.
        let counted = wakeup.preempt_count != 0 && self.least_depth > 0;
        let preempt_depth = counted
            .then(|| u32::try_from((depth + 1).saturating_sub(self.least_depth)).unwrap_or(0));
        let [(pid, user_stack), _] = user_stacks(late);
        Some(Context {
            task,
            mode,
            preempt_depth,
            softirq,
            preemptible: self.preemptible,
            enabled_interrupts: enables_interrupts(&wakeup.code),
            stack: self.interrupted_stack(wakeup),
            stack_is_later: is_later(wakeup),
            user_stack: self.named(pid, user_stack),
        })
    }

    fn idle_state(&self, number: u32) -> String {
        let name = self.idle_states.get(number as usize).cloned();
        name.unwrap_or_else(|| format!("state {number}"))
    }

    /// The stack from the place on that the interrupt broke into.
    fn interrupted_stack(&self, wakeup: &shared::Wakeup) -> Vec<Frame> {
        let frames = stack(&wakeup.stack, wakeup.stack_bytes);
        let by_address = frames.iter().position(|&frame| frame == wakeup.interrupted_ip);
        let begin = by_address.or_else(|| {
            let is_entry = |&frame: &u64| is_interrupt_entry(&self.symbols.function(frame));
            frames.iter().rposition(is_entry).map(|at| at + 1)
        });
        let begin = begin.unwrap_or_else(|| {
            let ours = |&frame: &u64| !is_tracing(&self.symbols.function(frame));
            frames.iter().position(ours).unwrap_or(0)
        });
        let inside = &frames[begin..];
        let (innermost, callers) = inside.split_at(inside.len().min(1));
        let link = innermost.first().and_then(|&at| self.unframed_caller(wakeup, at, callers));
        let all = innermost.iter().copied().chain(link).chain(callers.iter().copied());
        all.map(|frame| self.symbols.frame(frame)).collect()
    }

    /// Who called the innermost function, which is at `at`, where the stack lacks that: on arm64 as
    /// long as the function has no frame yet, or no longer, or never has one. Once it has one, and
    /// has called others, the register tells where in itself the last of them returned to.
    fn unframed_caller(&self, wakeup: &shared::Wakeup, at: u64, callers: &[u64]) -> Option<u64> {
        let link = wakeup.link;
        let is_others = self.symbols.are_in_one(link, at) == Some(false);
        let is_new = is_others && callers.first() != Some(&link);
        (is_arm64_call(wakeup.before_link) && is_new).then_some(link)
    }

    /// The stack below the scheduler.
    fn given_up_at(&self, wakeup: &shared::Wakeup) -> Vec<Frame> {
        let frames = stack(&wakeup.away, wakeup.away_bytes);
        let scheduler = frames.iter().position(|&f| self.symbols.function(f) == "__schedule");
        let below = scheduler.map_or(0, |at| at + 1);
        frames[below..].iter().map(|&frame| self.symbols.frame(frame)).collect()
    }

    /// The events from when the wakeup was due until it was answered. What had begun before and
    /// went on then, begins with it.
    fn events(&self, late: &Late, ours: &Task) -> Vec<Event> {
        let (due, response) = (late.wakeup.due, late.wakeup.response);
        let before = late.events.iter().take_while(|event| event.at < due);
        let last_reading = before.clone().map(|event| event.steal).filter(|&s| s != 0).last();
        let begun = going_on(before.clone()).into_iter().filter(|begun| went_on(begun, late));
        let begun = begun.map(|event| (due, event));
        let after = &late.events[before.count()..];
        // One from after the response that was written too early stays among those of before: it
        // shows that they are out of order.
        let end = after.iter().rposition(|event| event.at <= response).map_or(0, |last| last + 1);
        let during = after[..end].iter().map(|event| (event.at, event));
        // Only an interrupt's entry says what its line is called.
        let mut lines = BTreeMap::new();
        // What was stolen since the last event before it was due may have been stolen since then.
        let mut steal = last_reading;
        let mut events: Vec<Event> = Vec::new();
        events.extend(last_reading.map(|s| Event { at: MonoNs(due), what: What::Steal(s) }));
        for (at, event) in begun.chain(during) {
            // What was read as something began that goes on, is older than that.
            if event.at >= due && event.steal != 0 && steal != Some(event.steal) {
                events.push(Event { at: MonoNs(at), what: What::Steal(event.steal) });
                steal = Some(event.steal);
            }
            if event.kind == kind::IRQ_ENTRY {
                lines.insert(event.number, interrupt(event));
            }
            let line = || lines.get(&event.number).cloned().unwrap_or_default();
            let what = match event.kind {
                kind::IRQ_ENTRY => Some(What::IrqEntry(line())),
                kind::IRQ_EXIT => Some(What::IrqExit(line())),
                _ => self.what(event, late, ours),
            };
            if let Some(what) = what {
                events.push(Event { at: MonoNs(at), what });
            }
        }
        let after = late.wakeup.steal_after;
        if after != 0 && steal.is_some_and(|last| last != after) {
            events.push(Event { at: MonoNs(response), what: What::Steal(after) });
        }
        events
    }

    fn what(&self, event: &shared::Event, late: &Late, ours: &Task) -> Option<What> {
        Some(match event.kind {
            kind::TIMER_ENTRY => What::TimerEntry(self.symbols.function(event.value), event.number),
            kind::TIMER_EXIT => What::TimerExit,
            kind::SOFTIRQ_ENTRY => What::SoftirqEntry(u8::try_from(event.number).ok()?),
            kind::SOFTIRQ_EXIT => What::SoftirqExit(u8::try_from(event.number).ok()?),
            kind::NMI => What::Nmi(self.symbols.function(event.address), event.value),
            kind::TRACER => What::Tracer(event.value),
            kind::SWITCH => {
                let next = next_task(event);
                let to = if next.pid == ours.pid { ours.clone() } else { task(&next) };
                What::Switch { from: task_left(event, late), to }
            }
            kind::SCHED_ENTRY => What::SchedEntry,
            kind::CONTENTION_BEGIN => What::ContentionBegin,
            kind::CONTENTION_END => What::ContentionEnd,
            _ => return None,
        })
    }
}

/// Whether its stack was taken elsewhere than where the first interrupt came: that is not on it.
fn is_later(wakeup: &shared::Wakeup) -> bool {
    let frames = stack(&wakeup.stack, wakeup.stack_bytes);
    wakeup.interrupted_ip != 0 && !frames.is_empty() && !frames.contains(&wakeup.interrupted_ip)
}

/// Whether the kernel held real-time tasks back when the wakeup began, or at a switch to another
/// task since then.
fn was_throttled(late: &Late) -> bool {
    let Late { wakeup, events, .. } = late;
    let until = if wakeup.switch_in == 0 { wakeup.response } else { wakeup.switch_in };
    let waiting = |event: &&shared::Event| event.at >= wakeup.woken && event.at < until;
    let mut switches = events.iter().filter(|event| event.kind == kind::SWITCH).filter(waiting);
    wakeup.throttled != 0 || switches.any(|switch| switch.value != 0)
}

/// Who ran until this switch. Its name is that of the same thread elsewhere, if it is seen there: the
/// switch to it may have been none that anybody looked at.
fn task_left(switch: &shared::Event, late: &Late) -> Task {
    let [a, b, c, d, prio_low, prio_high, policy_low, policy_high] = switch.address.to_le_bytes();
    let pid = u32::from_le_bytes([a, b, c, d]);
    if pid == 0 {
        return idle_task();
    }
    let Late { wakeup, events, .. } = late;
    let switches = events.iter().filter(|event| event.kind == kind::SWITCH);
    let before = switches.take_while(|event| event.at < switch.at).map(next_task);
    let told = before.chain([wakeup.interrupted, wakeup.task, wakeup.waker]);
    let comm = told.filter(|task| task.pid == pid).last().map(|task| text(&task.comm));
    Task {
        pid,
        comm: comm.unwrap_or_default(),
        policy: policy(u16::from_le_bytes([policy_low, policy_high]).into()),
        prio: i16::from_le_bytes([prio_low, prio_high]).into(),
    }
}

/// The idle task, of which programs say no more than its number.
fn idle_task() -> Task {
    Task { comm: "swapper".into(), prio: 120, ..Default::default() }
}

/// Whether what had `begun` went on when the wakeup was due. Softirqs are written down only while
/// somebody waits for their CPU, so that the end of one may be missing; but which one the CPU is in
/// when a wakeup begins is always known. One that ended between the two shows its end.
fn went_on(begun: &shared::Event, late: &Late) -> bool {
    let Late { wakeup, events, .. } = late;
    let is_same = |event: &&shared::Event| {
        let is_edge = matches!(event.kind, kind::SOFTIRQ_ENTRY | kind::SOFTIRQ_EXIT);
        is_edge && event.at >= wakeup.due && event.number == begun.number
    };
    begun.kind != kind::SOFTIRQ_ENTRY
        || wakeup.softirq.checked_sub(1) == Some(begun.number)
        || events.iter().find(is_same).is_some_and(|next| next.kind == kind::SOFTIRQ_EXIT)
}

/// What of `events` had begun and not ended.
fn going_on<'a>(events: impl Iterator<Item = &'a shared::Event>) -> Vec<&'a shared::Event> {
    let mut open: Vec<&shared::Event> = Vec::new();
    for event in events {
        let ends = match event.kind {
            // Nothing goes on over a switch but softirqs, where they can be preempted: in whom is left.
            kind::SWITCH => {
                open.clear();
                continue;
            }
            // Of waits for locks, one in another, only the inner one's end is told.
            kind::CONTENTION_END => {
                open.retain(|begun| begun.kind != kind::CONTENTION_BEGIN);
                continue;
            }
            kind::IRQ_ENTRY | kind::TIMER_ENTRY | kind::SOFTIRQ_ENTRY | kind::CONTENTION_BEGIN => {
                open.push(event);
                continue;
            }
            kind::IRQ_EXIT => kind::IRQ_ENTRY,
            kind::TIMER_EXIT => kind::TIMER_ENTRY,
            kind::SOFTIRQ_EXIT => kind::SOFTIRQ_ENTRY,
            _ => continue,
        };
        if let Some(at) = open.iter().rposition(|begun| begun.kind == ends) {
            open.truncate(at);
        }
    }
    open
}

fn woken_by(wakeup: &shared::Wakeup) -> WokenBy {
    let on = wakeup.stimulus_cpu;
    match wakeup.stimulus {
        1 => WokenBy::Timer { on },
        2 => WokenBy::Waker { task: task(&wakeup.waker), on, in_interrupt: false },
        3 => WokenBy::Waker { task: task(&wakeup.waker), on, in_interrupt: true },
        AWAKE => WokenBy::Awake,
        _ => WokenBy::Unknown,
    }
}

pub(crate) fn task(task: &shared::Task) -> Task {
    Task { pid: task.pid, comm: text(&task.comm), policy: policy(task.policy), prio: task.prio }
}

fn next_task(event: &shared::Event) -> shared::Task {
    let &shared::Event { number: pid, prio, policy, name: comm, .. } = event;
    shared::Task { pid, prio, policy, pad: 0, comm }
}

/// Numbers of include/uapi/linux/sched.h.
fn policy(number: u32) -> Policy {
    match number {
        0 => Policy::Other,
        1 => Policy::Fifo,
        2 => Policy::RoundRobin,
        3 => Policy::Batch,
        5 => Policy::Idle,
        6 => Policy::Deadline,
        7 => Policy::Ext,
        other => Policy::Unknown(other),
    }
}

fn interrupt(event: &shared::Event) -> Interrupt {
    Interrupt(interrupt_name(event.number, &event.name))
}

/// What the interrupt `number` is called, whose line, if it has one, is called `name`.
pub(crate) fn interrupt_name(number: u32, name: &[u8; 16]) -> String {
    let vector = match number.checked_sub(NO_LINE) {
        Some(1) => "local_timer",
        Some(2) => "reschedule",
        Some(3) => "call_function",
        Some(4) => "call_function_single",
        Some(5) => "irq_work",
        Some(6) => "IPI",
        Some(7) => "thermal_apic",
        Some(8) => "threshold_apic",
        Some(9) => "deferred_error_apic",
        Some(10) => "error_apic",
        Some(11) => "spurious_apic",
        Some(12) => "x86_platform_ipi",
        Some(_) => "vector",
        None => "",
    };
    match (vector, text(name)) {
        ("", name) if name.is_empty() => format!("irq {number}"),
        ("" | "IPI", name) if !name.is_empty() => from_another_cpu(&name).unwrap_or(&name).into(),
        (vector, _) => vector.into(),
    }
}

/// The interrupt from another CPU whose reason arm64 puts into words that begin with these. Where x86
/// has the same one, it is called as there.
fn from_another_cpu(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "Rescheduling in" => "reschedule",
        "Function call i" => "call_function",
        "IRQ work interr" => "irq_work",
        "Timer broadcast" => "timer_broadcast",
        "CPU wake-up int" => "cpu_wakeup",
        _ if reason.starts_with("CPU stop") => "cpu_stop",
        _ => return None,
    })
}

/// The text before the first zero byte.
fn text(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Whether a function is where the processor enters the kernel for an interrupt: arch/x86/entry and
/// arch/arm64/kernel/entry.S.
fn is_interrupt_entry(function: &str) -> bool {
    let entries =
        ["asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "el1h_64_irq", "el0t_64_irq"];
    entries.iter().any(|entry| function.starts_with(entry))
}

/// Whether a function belongs to tracing itself, which is the top of each stack.
pub(crate) fn is_tracing(function: &str) -> bool {
    let own = ["bpf_", "__bpf_", "__traceiter_", "trace_", "__trace_"];
    own.iter().any(|begin| function.starts_with(begin))
}

#[cfg(test)]
mod tests;
