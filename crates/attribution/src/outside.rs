//! Why wakeups of a guest were late, from all that changed on its CPU, as the emulator saw it.
//!
//! Nothing is concluded here that was not seen: from one edge to the next the CPU is at one thing, so
//! every nanosecond has a cause, and no rule has to guess.

mod cpu;
mod cut;
mod follow;
mod signals;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use wakescope_core::explain::{
    Cause, Components, Context, Culprit, Frame, Mode, Share, Step, Task, Wakeup, WokenBy,
};
use wakescope_core::scope::edges::Edges;
use wakescope_core::scope::signals::Slice;
use wakescope_core::units::MonoNs;

use super::components::components;
use super::timeline::timeline;
use cpu::Cpu;
use cut::Cut;
use follow::Followed;

/// A wakeup that is to be explained: when it was due, and when its task read the clock that said how late it
/// was. Both since the machine was turned on, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Late {
    /// When it was due.
    pub due_ns: u64,
    /// When it ran.
    pub response_ns: u64,
}

/// Why one was late.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outside {
    /// Its four components.
    pub components: Components,
    /// Shares, the largest first. They add up to the time from `due_ns` to `response_ns`.
    pub blame: Vec<Share>,
    /// What of them is time with interrupts off after the task was made ready: it lies behind the wakeup's own
    /// interrupt, which therefore was not held off by it.
    pub irqs_off_when_ready: Vec<Share>,
    /// What happened, in order of time.
    pub timeline: Vec<Step>,
    /// What the CPU was at meanwhile, from the time on when it was due.
    pub slices: Vec<Slice>,
    /// Where sections that held it up ended, in order of time.
    pub ends: Vec<SectionEnd>,
}

/// Where a section ended that is blamed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SectionEnd {
    /// The cause of its share.
    pub cause: Cause,
    /// The culprit of its share, which is where it began.
    pub culprit: Culprit,
    /// Where it ended, and what called that.
    pub frames: Vec<Frame>,
}

/// Explains each of `late`, in their order. `None` of one that the edges do not reach from beginning to end,
/// or whose task is not known.
pub fn outside(edges: &Edges, late: &[Late]) -> Vec<Option<Outside>> {
    let mut order: Vec<usize> = (0..late.len()).collect();
    order.sort_by_key(|&place| late[place]);
    let mut all = vec![None; late.len()];
    let mut cpu = Cpu::new(edges);
    let mut next = 0;
    for place in order {
        let Late { due_ns, response_ns } = late[place];
        let first = edges.edges.partition_point(|edge| edge.at_ns <= due_ns);
        let end = edges.edges.partition_point(|edge| edge.at_ns <= response_ns);
        // Before the first edge the CPU was at what it was when that came.
        if due_ns < edges.window_ns.start || end == edges.edges.len() {
            continue;
        }
        edges.edges[next..first].iter().for_each(|edge| cpu.apply(edge));
        next = first;
        let cut = Cut { edges, late: late[place], within: &edges.edges[first..end] };
        all[place] = explain(&cpu, &cut);
    }
    all
}

fn explain(before: &Cpu, cut: &Cut) -> Option<Outside> {
    let followed = Followed::of(before, cut)?;
    let wakeup = Wakeup {
        task: followed.task.clone(),
        woken_by: followed.woken_by.clone(),
        marks: followed.marks,
        interrupted: Some(context(before, cut)),
        events: cut.events(before),
        page_faults: followed.page_faults,
        ..Wakeup::default()
    };
    let blame = added_up(&followed.shares);
    let irqs_off_when_ready: Vec<Share> = followed
        .shares_when_ready()
        .filter(|share| share.cause == Cause::IrqOff)
        .cloned()
        .collect();
    let irqs_off_when_ready = added_up(&irqs_off_when_ready);
    let slices = signals::slices(before, cut, &followed.shares);
    let (components, timeline) = (components(&wakeup.marks), timeline(&wakeup));
    let ends = followed.ends;
    Some(Outside { components, blame, irqs_off_when_ready, timeline, slices, ends })
}

/// Shares that are the same but for their lengths are one; the largest first.
fn added_up(shares: &[Share]) -> Vec<Share> {
    let mut sums: Vec<Share> = Vec::new();
    for share in shares {
        match sums.iter_mut().find(|other| is_same(other, share)) {
            Some(same) => same.ns += share.ns,
            None => sums.push(share.clone()),
        }
    }
    sums.sort_by_key(|share| (share.cause == Cause::Unexplained, Reverse(share.ns)));
    sums
}

/// Whether both are the same but for their lengths.
fn is_same(one: &Share, other: &Share) -> bool {
    without_length(one) == without_length(other)
}

fn without_length(share: &Share) -> impl PartialEq + '_ {
    let Share {
        ns: _,
        cause,
        culprit,
        phase,
        from_cpu,
        within,
        waiting_for_lock,
        evidence,
        gap,
        frames,
        given_up_at,
        user_stack,
    } = share;
    let how = (evidence, gap, frames, given_up_at, user_stack);
    (cause, culprit, phase, from_cpu, within, waiting_for_lock, how)
}

/// What the CPU was at when the wakeup was due.
fn context(cpu: &Cpu, cut: &Cut) -> Context {
    let task: Task = cut.edges.task(cpu.state.task).cloned().unwrap_or_default();
    let mode = match cpu.state {
        state if state.halted || task.is_idle() => Mode::Idle(String::new()),
        state if state.in_user => Mode::User,
        _ => Mode::Kernel,
    };
    let softirq = cpu.softirq.filter(|_| cpu.state.preempt.in_softirq());
    Context { task, mode, softirq, ..Context::default() }
}

/// The time that a cut is in, as marks have it.
fn at(ns: u64) -> MonoNs {
    MonoNs(ns)
}

/// Who made a task ready that no interrupt did.
fn woken_by(task: Option<&Task>) -> WokenBy {
    match task {
        Some(task) => WokenBy::Waker { task: task.clone(), on: 0, in_interrupt: false },
        None => WokenBy::Unknown,
    }
}
