//! What an explained run's record holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::anew::Anew;
use super::bound::Bound;
use super::cause::{Cause, Evidence};
use super::culprit::{Blamed, Culprit, Phase, Within};
use super::frame::Frame;
use super::gap::Gap;
use super::measured::Measured;
use super::truth::Truth;
use super::waits::Waits;
use crate::distribution::Distribution;

/// One named share of a wakeup's lateness. All shares of an episode add up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// What it was.
    pub cause: Cause,
    /// How long, nanoseconds.
    pub ns: u64,
    /// Who.
    #[serde(default)]
    pub culprit: Culprit,
    /// Which part of the way to the task, if it was that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Of a remote wakeup without a waker: the CPU whose timer it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_cpu: Option<u32>,
    /// In what the culprit was.
    #[serde(default, skip_serializing_if = "Within::is_empty")]
    pub within: Within,
    /// Whether the CPU waited for a lock that was held elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting_for_lock: bool,
    /// How it is known.
    pub evidence: Evidence,
    /// Why it is unexplained, if it is and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// The culprit's kernel stack, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// The kernel stack where the culprit gave up the CPU in the end, innermost first, if `frames` were
    /// taken before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up_at: Vec<Frame>,
    /// The culprit's own stack, of its program, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_stack: Vec<Frame>,
}

impl Share {
    /// What it is blamed on.
    pub fn blamed(&self) -> Blamed<'_> {
        let Self { cause, culprit, phase, from_cpu, .. } = self;
        let (cause, phase, from_cpu) = (*cause, *phase, *from_cpu);
        Blamed { cause, culprit, phase, from_cpu, others: false }
    }
}

/// The four components of a wakeup, nanoseconds. They add up to the wakeup latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Components {
    /// From the expiry to the entry of the interrupt.
    pub irq_latency_ns: u64,
    /// From there to the handler's return.
    pub handler_duration_ns: u64,
    /// From there until the scheduler was entered; until the response where that is not seen.
    pub sched_latency_ns: u64,
    /// From there to the response; `None` where the kernel does not show the scheduler's entry.
    pub sched_duration_ns: Option<u64>,
}

impl Components {
    /// Their sum, which is the wakeup latency.
    pub fn total_ns(&self) -> u64 {
        self.checked_total_ns().unwrap_or(u64::MAX)
    }

    /// The same; `None` if it is 2^64 or more.
    pub(crate) fn checked_total_ns(&self) -> Option<u64> {
        let first = [self.irq_latency_ns, self.handler_duration_ns, self.sched_latency_ns];
        first.iter().try_fold(self.sched_duration_ns.unwrap_or(0), |sum, &ns| sum.checked_add(ns))
    }

    /// So many times each part.
    #[must_use]
    pub fn times(&self, count: u64) -> Self {
        let times = |ns: u64| ns.saturating_mul(count);
        Self {
            irq_latency_ns: times(self.irq_latency_ns),
            handler_duration_ns: times(self.handler_duration_ns),
            sched_latency_ns: times(self.sched_latency_ns),
            sched_duration_ns: self.sched_duration_ns.map(times),
        }
    }

    /// Both, part by part.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let both = (self.sched_duration_ns, other.sched_duration_ns);
        Self {
            irq_latency_ns: self.irq_latency_ns.saturating_add(other.irq_latency_ns),
            handler_duration_ns: self.handler_duration_ns.saturating_add(other.handler_duration_ns),
            sched_latency_ns: self.sched_latency_ns.saturating_add(other.sched_latency_ns),
            sched_duration_ns: match both {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            },
        }
    }
}

impl Components {
    /// What is left of each part without `other`, at least nothing.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let less = |ns: u64, by: u64| ns.saturating_sub(by);
        Self {
            irq_latency_ns: less(self.irq_latency_ns, other.irq_latency_ns),
            handler_duration_ns: less(self.handler_duration_ns, other.handler_duration_ns),
            sched_latency_ns: less(self.sched_latency_ns, other.sched_latency_ns),
            sched_duration_ns: self
                .sched_duration_ns
                .map(|ns| less(ns, other.sched_duration_ns.unwrap_or(0))),
        }
    }
}

/// The components of all wakeups, one value per wakeup each. Not all wakeups have the first one and the last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComponentTable {
    /// See [`Components::irq_latency_ns`]: of wakeups whose timer's interrupt came after they were due. All have it in
    /// runs of earlier versions, as 0 where there was no such interrupt.
    pub irq_latency: Distribution,
    /// See [`Components::handler_duration_ns`].
    pub handler_duration: Distribution,
    /// See [`Components::sched_latency_ns`].
    pub sched_latency: Distribution,
    /// See [`Components::sched_duration_ns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_duration: Option<Distribution>,
}

impl ComponentTable {
    /// The components, in the order of time.
    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = &mut Distribution> {
        let Self { irq_latency, handler_duration, sched_latency, sched_duration } = self;
        [irq_latency, handler_duration, sched_latency].into_iter().chain(sched_duration)
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let all = [
            ("irq_latency", Some(&self.irq_latency)),
            ("handler_duration", Some(&self.handler_duration)),
            ("sched_latency", Some(&self.sched_latency)),
            ("sched_duration", self.sched_duration.as_ref()),
        ];
        let text = |(name, part): (&str, Option<&Distribution>)| {
            Some(format!("components.{name}: {}", part?.fault()?))
        };
        all.into_iter().find_map(text)
    }
}

/// One cause of late wakeups, over all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CauseRow {
    /// What.
    pub cause: Cause,
    /// Who. A task here is all tasks of that name, policy and priority.
    #[serde(default)]
    pub culprit: Culprit,
    /// Which part of the way to the task, if it was that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Of remote wakeups without a waker: the CPU whose timer it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_cpu: Option<u32>,
    /// Whether this row stands for all culprits of the cause that have none of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
    /// In how many late wakeups it has a share.
    pub episodes: u64,
    /// Its shares together, nanoseconds.
    pub total_ns: u64,
    /// Its largest share, nanoseconds.
    pub worst_ns: u64,
    /// Of the lateness of all late wakeups, 0 to 1. All rows together make 1.
    pub share: f64,
}

impl CauseRow {
    /// What it blames.
    pub fn blamed(&self) -> Blamed<'_> {
        let Self { cause, culprit, phase, from_cpu, others, .. } = self;
        let (cause, phase, from_cpu, others) = (*cause, *phase, *from_cpu, *others);
        Blamed { cause, culprit, phase, from_cpu, others }
    }
}

/// How a run was explained: with what, how completely, and of how many wakeups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Wakeups at least so late are late ones, nanoseconds.
    pub above_ns: u64,
    /// How that was asked for: `p99.9`, `50us`; `all` where there are too few wakeups for a percentile.
    pub above: String,
    /// Wakeups that were followed from stimulus to response.
    pub wakeups: u64,
    /// Wakeups that were not, though the probe has them.
    pub not_followed: u64,
    /// Late wakeups, followed or not.
    pub late: u64,
    /// Of these, with an explanation: of the others the record was lost, or they were not followed.
    pub explained: u64,
    /// Late wakeups that the probe has, and that were not followed: they are unexplained.
    #[serde(default)]
    pub late_not_followed: u64,
    /// Lateness of all late wakeups that have no explanation, together, nanoseconds: to 0.2 %.
    #[serde(default)]
    pub unexplained_ns: u64,
    /// Of those beyond the worst, one in so many was taken for the causes, where it stands for as
    /// many; `None` if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_in: Option<u64>,
    /// The components of these, added up over all of them; `None` in records that do not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_components: Option<Components>,
    /// How many of the explained ones `episodes.jsonl` holds; `None` if there is no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_episodes: Option<u64>,
    /// What came of attributing these anew; `None` in the record that a measurement writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anew: Option<Anew>,
    /// Records that the tracer sent.
    pub records: u64,
    /// Records that it could not send.
    pub lost_records: u64,
    /// What is used, in words: `sched_switch`, …
    pub seen_with: Vec<String>,
    /// What this kernel does not show, and what is therefore unseen.
    pub not_seen: Vec<String>,
    /// The id of the kernel's build, in hexadecimal digits: the same as its image has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// The ids of the builds of the modules that frames are in, by the modules' names, in hexadecimal
    /// digits: the same as their files have. Of those that are known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub module_build_ids: BTreeMap<String, String>,
    /// Longest sections, where seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Sections>,
    /// The bound that follows from what was seen, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// All waits of the threads, where these are not our probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// How right this is, where the run was simulated, so that the truth is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
}

/// The longest sections that held off an interrupt or a switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sections {
    /// Whether their edges were seen; otherwise they are what late wakeups show, which is a lower
    /// estimate.
    pub exact: bool,
    /// The longest with interrupts off.
    pub irq_off: Option<Share>,
    /// The longest with preemption off, or without a preemption point.
    pub preempt_off: Option<Share>,
    /// All that were seen with both edges; `None` where none were, or nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}
