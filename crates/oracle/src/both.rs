//! A simulation that the tracer and the witness watch side by side.

use wakescope_model::image::{CpuId, Image, TaskId};
use wakescope_model::kernel::Running;
use wakescope_model::simulation::{Sample, Watch};
use wakescope_model::trace::Transition;

use crate::tracepoints::{Followed, Shown, Tracepoints};
use crate::truth::Witness;

/// The tracer, the witness, who sees more than it, and what is made of both while they watch.
pub(crate) struct Both<'i, L> {
    pub(crate) tracer: Tracepoints<'i>,
    pub(crate) witness: Witness<'i>,
    pub(crate) listener: L,
}

/// Hears of what both have seen just now.
pub(crate) trait Listener: Sized {
    /// A probe has responded.
    fn sample(_both: &mut Both<'_, Self>, _sample: Sample) {}

    /// Something has happened. The tracer had the ends of `known` wakeups before.
    fn happened(both: &mut Both<'_, Self>, known: usize);
}

impl<'i, L> Both<'i, L> {
    pub(crate) fn new(image: &'i Image, shown: Shown, followed: Followed, listener: L) -> Self {
        Self {
            tracer: Tracepoints::new(image, shown, followed),
            witness: Witness::new(image, shown.sched_entry, followed),
            listener,
        }
    }

    /// Wakeups at least so late are kept from now on, nanoseconds.
    pub(crate) fn keep(&mut self, late_ns: u64) {
        (self.tracer.keep_ns, self.witness.keep_ns) = (late_ns, late_ns);
    }
}

impl<L: Listener> Watch for Both<'_, L> {
    const FOLLOWS: bool = true;

    fn sample(&mut self, sample: Sample) {
        self.tracer.responded(sample);
        self.witness.responded(sample);
        L::sample(self, sample);
    }

    fn armed(&mut self, task: TaskId, cpu: CpuId, expiry_ns: u64) {
        self.tracer.armed(task, expiry_ns);
        self.witness.armed(task, cpu, expiry_ns);
    }

    fn ran(&mut self, cpu: CpuId, from_ns: u64, to_ns: u64, at: Running) {
        self.tracer.ran(cpu, from_ns, to_ns, at);
        self.witness.ran(cpu, from_ns, to_ns, at);
    }

    fn place(&mut self, cpu: CpuId, at_ns: u64, at: Running) {
        self.tracer.place(cpu, at);
        self.witness.place(cpu, at_ns, at);
    }

    fn wakes(&mut self, cpu: CpuId, at_ns: u64, task: TaskId, at: Running) {
        self.tracer.wakes(cpu, at_ns, task, at);
        self.witness.wakes(cpu, at_ns, task, at);
    }

    fn happened(&mut self, cpu: CpuId, at_ns: u64, what: Transition) {
        let known = self.tracer.ended.len();
        self.tracer.happened(cpu, at_ns, what);
        self.witness.happened(cpu, at_ns, what);
        L::happened(self, known);
    }
}
