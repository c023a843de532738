//! Who watches a simulation.

use crate::image::{CpuId, TaskId};
use crate::kernel::Running;
use crate::trace::Transition;

/// A wakeup of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which probe.
    pub task: TaskId,
    /// When its timer expired, nanoseconds from the start.
    pub expiry_ns: u64,
    /// When it responded.
    pub response_ns: u64,
    /// Further expiries that lie between the two: they have no wakeup of their own.
    pub missed: u64,
    /// On which CPU.
    pub cpu: CpuId,
}

impl Sample {
    /// How late it was, nanoseconds.
    pub fn latency_ns(&self) -> u64 {
        self.response_ns - self.expiry_ns
    }
}

/// Sees what happens. What is not overridden costs nothing.
pub trait Watch {
    /// Whether [`Self::ran`] and [`Self::happened`] are wanted at all.
    const FOLLOWS: bool;

    /// A probe has responded.
    fn sample(&mut self, sample: Sample);

    /// A task's timer was set: it expires at `expiry_ns` on this CPU.
    fn armed(&mut self, _task: TaskId, _cpu: CpuId, _expiry_ns: u64) {}

    /// A CPU was at this all the time between two points, nanoseconds from the start.
    fn ran(&mut self, _cpu: CpuId, _from_ns: u64, _to_ns: u64, _at: Running) {}

    /// Where a CPU is just before it takes an interrupt, enables interrupts or softirqs, or switches.
    fn place(&mut self, _cpu: CpuId, _at_ns: u64, _at: Running) {}

    /// What a CPU is at makes a task ready that sleeps, or is about to.
    fn wakes(&mut self, _cpu: CpuId, _at_ns: u64, _task: TaskId, _at: Running) {}

    /// Something has happened on a CPU at this time.
    fn happened(&mut self, _cpu: CpuId, _at_ns: u64, _what: Transition) {}
}

/// Calls a function with each sample, and looks at nothing else. It is one type for all functions, so that the
/// compiler makes one simulation for all of them.
pub struct Unwatched<'a>(pub &'a mut dyn FnMut(Sample));

impl Watch for Unwatched<'_> {
    const FOLLOWS: bool = false;

    fn sample(&mut self, sample: Sample) {
        (self.0)(sample);
    }
}
