//! Sections that were measured from edge to edge, as a record tells of them.

use serde::{Deserialize, Serialize};

use super::frame::Frame;
use super::task::NamedTask;
use crate::distribution::Distribution;

/// Sections that were measured from their beginning to their end, of all CPUs that were watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Interrupts off, interrupts themselves apart; `None` where the kernel does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq_off: Option<SectionKind>,
    /// Preemption off for another reason than to schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempt_off: Option<SectionKind>,
    /// Preemption off in order to schedule, and the CPU was switched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SectionKind>,
    /// Interrupts, from where they turn interrupts off for themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handlers: Option<SectionKind>,
    /// The longest with interrupts or preemption or both off, one after the other without a gap,
    /// other than to schedule; without interrupts that came meanwhile, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub either_ns: Option<u64>,
    /// The same, in order to schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub either_scheduling_ns: Option<u64>,
    /// Edges that were seen.
    pub edges: u64,
    /// Edges without their counterpart: these sections are not counted.
    pub unpaired: u64,
    /// Sections that an NMI fell into, which not every kernel shows the end of: not counted.
    pub with_nmi: u64,
    /// Sections that are counted, but not by their places: there was no room.
    pub no_room: u64,
}

/// All sections of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SectionKind {
    /// How long they were: one value per section. Times of maxima are when the section began.
    pub lengths: Distribution,
    /// The longest; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<Longest>,
    /// By where they began and ended: those with the longest sections, the longest first.
    pub places: Vec<SectionPlace>,
}

/// An end of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The place; `None` where the CPU came out of idle.
    pub place: Option<Frame>,
    /// Where it was called from; `None` where the kernel does not tell.
    #[serde(default)]
    pub caller: Option<Frame>,
}

/// The sections between two places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionPlace {
    /// Where they began.
    pub begin: Edge,
    /// Where they ended.
    pub end: Edge,
    /// How many.
    pub count: u64,
    /// How long together, nanoseconds.
    pub total_ns: u64,
    /// The longest, nanoseconds.
    pub worst_ns: u64,
}

/// The longest section of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Longest {
    /// Where it began.
    pub begin: Edge,
    /// Where it ended.
    pub end: Edge,
    /// The task that ran as it ended; `None` if that is not known.
    #[serde(default)]
    pub task: Option<NamedTask>,
    /// The kernel stack at its end, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
}

impl Measured {
    /// Whether interrupts and preemption were both seen to go off and on.
    pub fn is_complete(&self) -> bool {
        self.irq_off.is_some() && self.preempt_off.is_some()
    }

    /// Whether there may be longer ones than those that were counted.
    pub fn has_lost(&self) -> bool {
        self.unpaired > 0 || self.with_nmi > 0
    }

    /// Its kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &SectionKind> {
        [&self.irq_off, &self.preempt_off, &self.scheduling, &self.handlers].into_iter().flatten()
    }

    /// Its kinds, to be changed.
    pub fn kinds_mut(&mut self) -> impl Iterator<Item = &mut SectionKind> {
        let Self { irq_off, preempt_off, scheduling, handlers, .. } = self;
        [irq_off, preempt_off, scheduling, handlers].into_iter().flatten()
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let fault = |kind: &SectionKind| kind.lengths.fault();
        self.kinds().find_map(fault).map(|fault| format!("explanation.sections.measured: {fault}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    #[test]
    fn lengths_that_contradict_themselves_are_told() {
        let histogram = Histogram::of([1, 2]);
        let lengths = Distribution { count: 3, histogram, ..Distribution::default() };
        let damaged = SectionKind { lengths, ..SectionKind::default() };
        let measured = Measured { scheduling: Some(damaged), ..Measured::default() };
        assert!(measured.fault().unwrap().starts_with("explanation.sections.measured: "));
        assert_eq!(Measured::default().fault(), None);
    }
}
