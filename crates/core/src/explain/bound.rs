//! The record of a bound on the scheduling latency, and what it is composed from.

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::culprit::Culprit;

/// The longest of each kind of section, nanoseconds, without the interrupts that fell into it.
/// `None` where that was not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables {
    /// What the interrupt of a timer takes to arrive where nothing holds it off. A timer's wakeup
    /// begins when the timer is due, and not only when its interrupt is there.
    #[serde(default)]
    pub delivery_ns: Option<u64>,
    /// Preemption or interrupts off for another reason than to schedule.
    pub poid_ns: Option<u64>,
    /// Both on, though it was already asked to reschedule, until the scheduler was called.
    pub paie_ns: Option<u64>,
    /// Preemption off in order to schedule.
    pub psd_ns: Option<u64>,
    /// From where the scheduler last turned interrupts off to its return: it no longer notices who
    /// becomes ready.
    pub dst_ns: Option<u64>,
    /// What the tracer itself took of one late wakeup: it delays what it observes.
    #[serde(default)]
    pub tracer_ns: Option<u64>,
    /// The interrupts of the CPU, NMIs among them.
    pub interrupts: Vec<Interference>,
}

/// An interrupt that takes time from whatever it falls into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interference {
    /// Which one: an interrupt, a softirq or a handler of NMIs.
    #[serde(flatten)]
    pub culprit: Culprit,
    /// The longest that its handler took, nanoseconds.
    pub wcet_ns: u64,
    /// The shortest time from one arrival to the next, nanoseconds; `None` if it came only once.
    pub miat_ns: Option<u64>,
    /// The shortest time from one arrival to the second one after it, to the third, and so on: an
    /// interrupt that comes twice in a row now and then does not come that often all the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans_ns: Vec<u64>,
    /// The most that those took that came within stretches of several lengths: not each one takes
    /// as long as the longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<Work>,
}

/// The most that an interrupt took of any stretch of time of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The length of the stretch, nanoseconds.
    pub within_ns: u64,
    /// What was taken, nanoseconds.
    pub most_ns: u64,
}

/// A bound, and what it is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// What it is composed from.
    pub variables: Variables,
    /// The scheduling latency where no interrupt falls into it, nanoseconds.
    pub interference_free_ns: u64,
    /// With as many interrupts as can fall into it, nanoseconds; `None` if there is no bound below
    /// a second.
    pub bound_ns: Option<u64>,
    /// Why a longer latency is possible all the same. Empty if the bound is sound as far as what was
    /// seen is the worst.
    pub unsound: Vec<Unsound>,
}

/// Why a longer latency than the bound is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unsound {
    /// Sections with interrupts or preemption off are observed only where they delayed a late wakeup:
    /// longer ones may exist.
    SectionsOfLateWakeups,
    /// No section with interrupts or preemption off was observed.
    NoSection,
    /// The time from a reschedule request to the scheduler is not observed.
    WayToSchedulerUnseen,
    /// The scheduler's own time with preemption off is not observed, or only from the switch on.
    SchedulerUnseen,
    /// The scheduler's last section with interrupts off is not observed.
    LastSectionUnseen,
    /// The kernel's code may run for any time even with preemption enabled.
    NotFullyPreemptible,
    /// Softirqs may delay the thread one after another.
    SoftirqsNotThreaded,
    /// Not all interrupts are observed.
    InterruptsUnseen,
    /// The thread may wait for tasks of higher priority.
    NotMostUrgent,
    /// A hypervisor may take the CPU at any time.
    Hypervisor,
    /// A wakeup exceeded the bound.
    Exceeded {
        /// The cause that took most of it of those that the bound does not include, if that is known.
        cause: Option<Cause>,
    },
    /// What this version does not know.
    #[serde(other)]
    Unknown,
}

impl Interference {
    /// Takes over from `other` what is worse.
    pub fn worsen(&mut self, other: &Self) {
        self.wcet_ns = self.wcet_ns.max(other.wcet_ns);
        self.miat_ns = self.miat_ns.into_iter().chain(other.miat_ns).min();
        let both = self.spans_ns.len().min(other.spans_ns.len());
        let longer = if other.spans_ns.len() > both { &other.spans_ns } else { &self.spans_ns };
        let rest = longer[both..].to_vec();
        self.spans_ns.truncate(both);
        self.spans_ns
            .iter_mut()
            .zip(&other.spans_ns)
            .for_each(|(one, &span)| *one = span.min(*one));
        self.spans_ns.extend(rest);
        self.work.iter_mut().zip(&other.work).for_each(|(one, other)| {
            one.most_ns = one.most_ns.max(other.most_ns);
        });
    }
}
