//! The edges of one late wakeup.

use wakescope_core::explain::{Event, Interrupt, Task, What};
use wakescope_core::scope::edges::{Edge, EdgeKind, Edges, WayIn};

use super::cpu::Cpu;
use super::{Late, at};

/// What happened from when a wakeup was due until its task ran.
pub(super) struct Cut<'a> {
    pub(super) edges: &'a Edges,
    pub(super) late: Late,
    /// After `due_ns`, up to and including `response_ns`.
    pub(super) within: &'a [Edge],
}

impl Cut<'_> {
    /// The same as the tracer would have seen it, for the timeline.
    pub(super) fn events(&self, before: &Cpu) -> Vec<Event> {
        let mut cpu = before.clone();
        let mut events = Vec::new();
        for edge in self.within {
            let (was, softirq) = (cpu.state, cpu.softirq);
            let interrupt = cpu.interrupt().map(|entered| cpu.name_of(entered));
            cpu.apply(edge);
            let mut put = |what| events.push(Event { at: at(edge.at_ns), what });
            match edge.what {
                EdgeKind::Enter { way: WayIn::Interrupt, .. } => {
                    let name = cpu.interrupt().map(|entered| cpu.name_of(entered));
                    put(What::IrqEntry(Interrupt(name.unwrap_or_default())));
                }
                EdgeKind::PreemptCount(count)
                    if was.preempt.in_interrupt() && !count.in_interrupt() =>
                {
                    put(What::IrqExit(Interrupt(interrupt.unwrap_or_default())));
                }
                EdgeKind::PreemptCount(_) => {
                    if let Some(number) = softirq.filter(|_| cpu.softirq.is_none()) {
                        put(What::SoftirqExit(number));
                    }
                }
                EdgeKind::Softirq(number) => {
                    if let Some(before) = softirq {
                        put(What::SoftirqExit(before));
                    }
                    put(What::SoftirqEntry(number));
                }
                EdgeKind::Schedule => put(What::SchedEntry),
                EdgeKind::Switch(to) => {
                    let task = |id| self.edges.task(id).cloned().unwrap_or_default();
                    let (from, to): (Task, Task) = (task(was.task), task(Some(to)));
                    put(What::Switch { from, to });
                }
                _ => {}
            }
        }
        events
    }
}
