//! What a measurement was asked to do.

use std::fmt;

use serde::{Deserialize, Serialize};

mod target;

pub use target::Target;

/// A scheduling policy for the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
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

impl Policy {
    /// Whether the policy has a priority from 1 to 99.
    pub fn has_priority(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

impl fmt::Display for Policy {
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

/// What events cause the wakeups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stimulus {
    /// A timer on an absolute grid of `CLOCK_MONOTONIC`.
    #[default]
    Timer,
    /// Whatever wakes the threads that are followed.
    Any,
}

impl fmt::Display for Stimulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Timer => "timer",
            Self::Any => "any",
        })
    }
}

/// Everything asked for. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whose wakeups these are.
    pub target: Target,
    /// What events cause the wakeups.
    pub stimulus: Stimulus,
    /// The grid's period.
    pub interval_ns: u64,
    /// The span of the grid that is measured; `None` if `samples` ends the run.
    pub duration_ns: Option<u64>,
    /// Wakeups per CPU; `None` if `duration_ns` ends the run.
    pub samples: Option<u64>,
    /// The probe's scheduling policy.
    pub policy: Policy,
    /// Its priority, for policies that have one.
    pub priority: Option<u8>,
    /// Whether policy and priority are the user's own word, not a default.
    #[serde(default)]
    pub policy_required: bool,
    /// The measured CPUs, one probe thread each.
    pub cpus: Vec<u32>,
    /// Loads, by name.
    pub load: Vec<String>,
    /// For each of these a mark that tells its command from others of the same program: the same for
    /// the same command on the same machine. Empty for what has none; there are none at all where
    /// no load is a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_marks: Vec<String>,
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
    /// Whether the wakeups are those of other threads: then the run has no probes, and what concerns
    /// probes (interval, policy, CPUs, load) means nothing.
    pub fn is_of_others(&self) -> bool {
        self.target != Target::Probes
    }
}
