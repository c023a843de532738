//! What a measurement was asked to do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::audio::AudioPlan;
use crate::limit::MeasuredBy;
use crate::source::{Quantity, Source};
use crate::units::SpanNs;

mod rate;
mod stimulus;
mod target;

pub use rate::{NoRate, Rate};
pub use stimulus::{Family, Stimulus, UnknownStimulus};
pub use target::Target;

/// A scheduling policy for the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbePolicy {
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_FIFO`.
    #[default]
    Fifo,
    /// `SCHED_RR`.
    Rr,
    /// `SCHED_DEADLINE`.
    Deadline,
}

impl ProbePolicy {
    /// Whether the policy has a priority from 1 to 99.
    pub fn has_priority(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

impl fmt::Display for ProbePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Deadline => "deadline",
        })
    }
}

/// What to do about idle states while measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleStates {
    /// Leave them as they are: this is how the machine runs.
    #[default]
    AsIs,
    /// Ask for the shallowest (0 µs through PM QoS) while measuring.
    Shallow,
}

/// The length from which gaps in a busy loop count, unless another is asked for: 1 µs. It is several
/// times what the loop itself takes, and less than any interrupt.
pub const GAP_FROM_NS: u64 = 1_000;

/// The kernel takes no shorter runtime of a `SCHED_DEADLINE` task (kernel/sched/deadline.c,
/// `__checkparam_dl`).
pub const SHORTEST_RUNTIME: SpanNs = SpanNs(1_024);

/// How many of the latest wakeups are kept unless more or fewer are asked for.
pub const WORST: u16 = 10;

/// The threads that wake probes, one for each. They have the probes' policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waker {
    /// Where they run.
    pub placement: Placement,
    /// Their priority, for policies that have one.
    pub priority: Option<u8>,
    /// Where `placement` is another CPU: that of each waker, in the order of the measured CPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Whether they are threads of the probes' process.
    #[serde(default, skip_serializing_if = "Between::is_threads")]
    pub between: Between,
}

/// What a probe and its waker are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// Two threads of one process.
    #[default]
    Threads,
    /// Two processes.
    Processes,
}

impl Between {
    pub(crate) fn is_threads(&self) -> bool {
        *self == Self::Threads
    }
}

impl fmt::Display for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        })
    }
}

/// Where a waker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// On the CPU of its probe, which it is bound to.
    SameCpu,
    /// On another CPU than its probe, which it is bound to.
    CrossCpu,
}

impl Waker {
    /// The waker of a probe with this priority: one less, so that the probe preempts it at once. Below
    /// 1 there is none.
    pub fn of_probe(priority: Option<u8>) -> Self {
        let priority = priority.map(|priority| priority.saturating_sub(1).max(1));
        let (cpus, between) = (Vec::new(), Between::Threads);
        Self { placement: Placement::SameCpu, priority, cpus, between }
    }

    /// The same wakers for probes of this priority.
    #[must_use]
    pub fn with_probe(self, priority: Option<u8>) -> Self {
        Self { priority: Self::of_probe(priority).priority, ..self }
    }

    /// The CPU of the waker of the probe at `rank`, which measures the CPU `probe`.
    pub fn cpu(&self, rank: usize, probe: u32) -> u32 {
        self.cpus.get(rank).copied().unwrap_or(probe)
    }
}

/// The line of a stimulus that goes over one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinePlan {
    /// The path of its device, without links: `/dev/ttyUSB0`.
    pub device: String,
    /// Bits per second, which mean nothing on a pseudoterminal.
    pub baud: u32,
    /// The device that answers come in on, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_on: Option<String>,
}

/// What was simulated: the machine, its loads and its rules are those of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioPlan {
    /// The scenario's name.
    pub name: String,
    /// A checksum of what it holds, 16 digits: the same name with another one is another scenario.
    pub checksum: String,
    /// The name of the preemption rules: `both`, `lazy`.
    pub rules: String,
}

/// Everything asked for. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whose wakeups these are.
    pub target: Target,
    /// What events cause the wakeups.
    pub stimulus: Stimulus,
    /// The grid's period; 0 where the stimulus has no grid.
    pub interval_ns: u64,
    /// The span of the grid that is measured; `None` if `samples` ends the run.
    pub duration_ns: Option<u64>,
    /// Wakeups per CPU; `None` if `duration_ns` ends the run.
    pub samples: Option<u64>,
    /// The probe's scheduling policy.
    pub policy: ProbePolicy,
    /// Its priority, for policies that have one.
    pub priority: Option<u8>,
    /// CPU time per interval, where the policy is `SCHED_DEADLINE` and it is not to be the usual half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ns: Option<u64>,
    /// Whether policy and priority are the user's own word, not a default.
    #[serde(default)]
    pub policy_required: bool,
    /// The thread that wakes each probe, where the stimulus needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waker: Option<Waker>,
    /// The line that bytes go over, where the stimulus is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LinePlan>,
    /// The virtual sound card; `None` where the stimulus is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<AudioPlan>,
    /// The length from which a gap counts, in ns; 0 where each reading of the clock does, and `None` where the
    /// probe sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_from_ns: Option<u64>,
    /// The measured CPUs, one probe thread each.
    pub cpus: Vec<u32>,
    /// Loads, by name.
    pub load: Vec<String>,
    /// For each of these a mark that tells its command from others of the same program: the same for
    /// the same command on the same machine. Empty for what has none; there are none at all where
    /// no load is a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_marks: Vec<String>,
    /// What was simulated; `None` where the run was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioPlan>,
    /// How long the load runs alone, and then the probe unrecorded, before the measurement.
    #[serde(default)]
    pub warmup_ns: u64,
    /// What to do about idle states.
    #[serde(default)]
    pub idle_states: IdleStates,
    /// How many of the latest wakeups to keep, per CPU and in the run.
    #[serde(default)]
    pub worst: usize,
    /// Limits that the run is held to, as written: `p99.9=100us`.
    #[serde(default)]
    pub fail_above: Vec<String>,
    /// Whether every sample is written to a file.
    #[serde(default)]
    pub save_samples: bool,
}

impl Plan {
    /// What the values of a run made as this plan are: what its stimulus gives, unless another program,
    /// the `source`, measured something.
    pub fn quantity(&self, source: Option<&Source>) -> Quantity {
        source.map_or(self.stimulus.quantity(), |source| source.quantity)
    }

    /// The measurer of a run made as this plan: another program, the `source`, if there is one.
    pub fn measured_by(&self, source: Option<&Source>) -> MeasuredBy {
        match source {
            Some(_) => MeasuredBy::OtherProgram,
            None if self.is_of_others() => MeasuredBy::Tracer,
            None => MeasuredBy::Probes,
        }
    }

    /// CPU time per interval that a `SCHED_DEADLINE` probe reserves; `None` for other policies.
    pub fn runtime(&self) -> Option<SpanNs> {
        // Half of the CPU: far more than a wakeup takes, so that the budget is never what makes
        // one late, and little enough to be admitted beside other deadline tasks.
        let usual = || (self.interval_ns / 2).max(SHORTEST_RUNTIME.0);
        (self.policy == ProbePolicy::Deadline)
            .then(|| SpanNs(self.runtime_ns.unwrap_or_else(usual)))
    }

    /// Whether each wakeup is that of an expiry, so that a late one may have swallowed further expiries
    /// that were due regardless of it.
    pub fn counts_expiries(&self) -> bool {
        self.stimulus.family() == Family::Grid
    }

    /// How many points of the grid lie within so long a time, with the first at its beginning.
    pub fn points_in(&self, span: SpanNs) -> u64 {
        match Rate::of(SpanNs(self.interval_ns)) {
            Some(rate) if self.stimulus == Stimulus::RtcGrid => rate.points_in(span),
            _ => span.0.div_ceil(self.interval_ns.max(1)),
        }
    }

    /// Whether the wakeups are those of other threads: then the run has no probes, and what concerns
    /// probes (interval, policy, CPUs, load) means nothing.
    pub fn is_of_others(&self) -> bool {
        self.target != Target::Probes
    }
}
