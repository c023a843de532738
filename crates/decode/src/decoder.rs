//! From what the kernel showed of a wakeup to what it means.

use wakescope_core::explain::{
    Context, Frame, GivenUp, Mode, Ran, RunTimes, Taken, Task, Wakeup, WokenBy,
};

use crate::code::{enables_interrupts, is_arm64_call};
use crate::events;
use crate::kernel::{Interrupted, KernelEvent, KernelTask, KernelWakeup, Payload, WakeupSource};
use crate::names::{is_interrupt_entry, is_tracing};

/// What is needed to understand what the kernel showed.
#[derive(Clone, Copy)]
pub struct Decoder<'a> {
    /// The place in the kernel that an address is; an empty one if it has no name there.
    pub kernel_frame: &'a dyn Fn(u64) -> Frame,
    /// The place in the program of a thread that an address is, if anything is known of it.
    pub user_frame: &'a dyn Fn(u32, u64) -> Option<Frame>,
    /// One more than the least depth of disabled preemption seen, which is what tracing itself
    /// adds; 0 if none was seen.
    pub least_depth: u64,
    /// See [`Context::preemptible`].
    pub preemptible: Option<bool>,
    /// Names of idle states, by their numbers.
    pub idle_states: &'a [String],
}

impl Decoder<'_> {
    /// What `seen` means.
    pub fn wakeup(&self, seen: &KernelWakeup) -> Wakeup {
        let task = seen.task.decoded();
        let throttled = task.policy.is_realtime() && was_throttled(seen);
        Wakeup {
            cpu: seen.cpu,
            woken_by: woken_by(seen),
            marks: seen.marks,
            interrupted: self.context(seen),
            given_up: self.given_up(seen),
            events: events::while_due(self, seen, &task),
            lost: seen.lost,
            known_switches: seen.known_switches,
            ran: ran(seen),
            taken: taken(seen),
            page_faults: seen.page_faults,
            throttled,
            throttled_from: seen.throttled_from.filter(|_| throttled),
            stolen_ns: seen.stolen_of_it_ns(),
            quota_ns: seen.quota_ns.map(|ns| ns.min(seen.latency_ns())),
            irqs_off: seen.irqs_off,
            normal_prio: seen.normal_prio.filter(|&prio| prio != task.prio),
            task,
        }
    }

    /// Who had the CPU last, and where it was then, if a stack was taken of it.
    fn given_up(&self, seen: &KernelWakeup) -> Option<GivenUp> {
        let last = seen.given_up.as_ref()?;
        let stack = self.below_scheduler(&last.stack);
        let looked = !(stack.is_empty() && last.user_stack.is_empty());
        let user_stack = || self.user_stack(last.pid, &last.user_stack);
        looked.then(|| GivenUp { pid: last.pid, stack, user_stack: user_stack() })
    }

    fn user_stack(&self, pid: u32, stack: &[u64]) -> Vec<Frame> {
        let known: Vec<Option<Frame>> =
            stack.iter().map(|&address| (self.user_frame)(pid, address)).collect();
        // A stack of which nothing is known says nothing.
        let is_known = known.iter().any(Option::is_some);
        known.into_iter().filter(|_| is_known).map(Option::unwrap_or_default).collect()
    }

    fn context(&self, seen: &KernelWakeup) -> Option<Context> {
        let idle = seen.idle_state.map(|state| self.idle_state(state));
        let softirq = seen.softirq.and_then(|number| u8::try_from(number).ok());
        let Some(interrupted) = &seen.interrupted else {
            // Of another CPU this much is known.
            let mode = Mode::Idle(idle?);
            return Some(Context { mode, softirq, ..Default::default() });
        };
        let task = match interrupted.task.pid {
            0 => idle_task(),
            _ => interrupted.task.decoded(),
        };
        let mode = match task.pid {
            // A softirq on the idle task's back is awake.
            0 if softirq.is_none() => Mode::Idle(idle.unwrap_or_default()),
            _ => interrupted.mode.clone(),
        };
        Some(Context {
            mode,
            preempt_depth: self.preempt_depth(interrupted),
            softirq,
            preemptible: self.preemptible,
            enabled_interrupts: enables_interrupts(&interrupted.code),
            stack: self.interrupted_stack(interrupted),
            stack_is_later: is_later(interrupted),
            user_stack: self.user_stack(task.pid, &interrupted.user_stack),
            task,
        })
    }

    fn preempt_depth(&self, interrupted: &Interrupted) -> Option<u32> {
        let depth = u64::from(interrupted.preempt_count & 0xff);
        // `local_bh_disable` disables preemption, too. The lowest bit of its part counts softirqs.
        let softirqs_off = u64::from((interrupted.preempt_count & 0xff00) >> 9);
        // Without the variable all counts are 0, and one that was seen is at least 1.
        let counted = interrupted.preempt_count != 0 && self.least_depth > 0;
        let beyond = (depth + 1).saturating_sub(self.least_depth) + softirqs_off;
        counted.then(|| u32::try_from(beyond).unwrap_or(0))
    }

    fn idle_state(&self, number: u32) -> String {
        let name = self.idle_states.get(number as usize).cloned();
        name.unwrap_or_else(|| format!("state {number}"))
    }

    /// The stack from the place on that the interrupt broke into.
    fn interrupted_stack(&self, interrupted: &Interrupted) -> Vec<Frame> {
        let frames = &interrupted.stack;
        let by_address = frames.iter().position(|&frame| frame == interrupted.ip);
        let begin = by_address.or_else(|| {
            let name = |&frame: &u64| self.function(frame);
            let is_entry = |&begin: &usize| {
                let mut outer = frames[..begin].iter().rev().map(name);
                outer.next().is_some_and(|entry| is_interrupt_entry(&entry, outer))
            };
            (1..=frames.len()).rev().find(is_entry)
        });
        let begin = begin.unwrap_or_else(|| {
            let ours = |&frame: &u64| !is_tracing(&self.function(frame));
            frames.iter().position(ours).unwrap_or(0)
        });
        let inside = &frames[begin..];
        let (innermost, callers) = inside.split_at(inside.len().min(1));
        let link = innermost.first().and_then(|&at| self.unframed_caller(interrupted, at, callers));
        let all = innermost.iter().copied().chain(link).chain(callers.iter().copied());
        all.map(|frame| (self.kernel_frame)(frame)).collect()
    }

    /// Who called the innermost function, which is at `at`, where the stack lacks that: on arm64 as
    /// long as the function has no frame yet, or no longer, or never has one. Once it has one, and
    /// has called others, the register tells where in itself the last of them returned to.
    fn unframed_caller(&self, interrupted: &Interrupted, at: u64, callers: &[u64]) -> Option<u64> {
        let link = interrupted.link?;
        let is_others = self.are_in_one(link.address, at) == Some(false);
        let is_new = is_others && callers.first() != Some(&link.address);
        (is_arm64_call(link.before) && is_new).then_some(link.address)
    }

    /// Whether two addresses are in the same function; `None` where one of them is in none.
    fn are_in_one(&self, address: u64, other: u64) -> Option<bool> {
        let [one, other] = [address, other].map(|address| (self.kernel_frame)(address).function);
        // What seldom runs of a function lies elsewhere.
        let whole = |name: String| name.strip_suffix(".cold").map(str::to_string).unwrap_or(name);
        Some(whole(one?) == whole(other?))
    }

    /// The stack below the scheduler.
    fn below_scheduler(&self, frames: &[u64]) -> Vec<Frame> {
        let scheduler = frames.iter().position(|&f| self.function(f) == "__schedule");
        let below = scheduler.map_or(0, |at| at + 1);
        frames[below..].iter().map(|&frame| (self.kernel_frame)(frame)).collect()
    }

    /// The function that `address` is in; empty if it has no name.
    pub(crate) fn function(&self, address: u64) -> String {
        (self.kernel_frame)(address).function.unwrap_or_default()
    }
}

/// Whether its stack was taken elsewhere than where the first interrupt came: that is not on it.
fn is_later(interrupted: &Interrupted) -> bool {
    let Interrupted { ip, stack, .. } = interrupted;
    *ip != 0 && !stack.is_empty() && !stack.contains(ip)
}

/// Who ran meanwhile: of a wakeup of which all is known, events tell that.
fn ran(seen: &KernelWakeup) -> RunTimes {
    if seen.lost == 0 {
        return RunTimes::default();
    }
    let known = seen.ran.tasks.iter().filter(|(_, ns)| *ns > 0);
    let mut tasks: Vec<Ran> =
        known.map(|(task, ns)| Ran { task: task.decoded(), ns: *ns }).collect();
    tasks.sort_by_key(|ran| std::cmp::Reverse(ran.ns));
    let beside = |all_ns: u64, are_urgent: bool| {
        let known = tasks.iter().filter(|ran| ran.task.is_urgent() == are_urgent);
        known.fold(all_ns, |left_ns, ran| left_ns.saturating_sub(ran.ns))
    };
    let others_ns = beside(seen.ran.ordinary_ns, false);
    let urgent_others_ns = beside(seen.ran.urgent_ns, true);
    RunTimes { tasks, others_ns, urgent_others_ns }
}

/// What took the CPU meanwhile: of a wakeup of which all is known, events tell that. One that was due before its thread
/// slept shares what was counted with the one before.
fn taken(seen: &KernelWakeup) -> Taken {
    if seen.lost == 0 || seen.stimulus == WakeupSource::Awake {
        return Taken::default();
    }
    // The tracer may hear of the answer late. The time of interrupts since then is no part of the wait.
    let takes = |event: &&KernelEvent| {
        use Payload::{IrqExit, Nmi, SoftirqExit};
        matches!(event.payload, IrqExit(_) | SoftirqExit { .. } | Nmi { .. })
    };
    let last = seen.events.iter().rfind(takes).map_or(0, |event| event.at.0);
    let later_ns = last.saturating_sub(seen.marks.response.0);
    let later = Taken { interrupts_ns: later_ns, softirqs_ns: later_ns, nmis_ns: later_ns };
    seen.taken.with(later, u64::saturating_sub)
}

/// Whether the kernel held real-time tasks back when the wakeup began, or at a switch to another
/// task since then.
fn was_throttled(seen: &KernelWakeup) -> bool {
    let until = seen.marks.switch_in.unwrap_or(seen.marks.response);
    let waiting = seen.events.iter().filter(|event| event.at >= seen.woken && event.at < until);
    let mut payloads = waiting.map(|event| event.payload);
    seen.throttled || payloads.any(|p| matches!(p, Payload::Switch(switch) if switch.throttled))
}

/// The idle task, of which the kernel's events say no more than its number.
pub(crate) fn idle_task() -> Task {
    Task { comm: "swapper".into(), prio: 120, ..Default::default() }
}

fn woken_by(seen: &KernelWakeup) -> WokenBy {
    let on = seen.stimulus_cpu;
    let waker =
        |task: KernelTask, in_interrupt| WokenBy::Waker { task: task.decoded(), on, in_interrupt };
    match seen.stimulus {
        WakeupSource::Timer => WokenBy::Timer { on },
        WakeupSource::Task(task) => waker(task, false),
        WakeupSource::Interrupt(task) => waker(task, true),
        WakeupSource::Awake => WokenBy::Awake,
        WakeupSource::Unknown => WokenBy::Unknown,
    }
}

#[cfg(test)]
mod tests;
