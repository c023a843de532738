//! What a run's findings follow from.

use crate::line::Line;
use crate::run::LoadResult;

/// What was seen while measuring, beside the samples. Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// One entry per probe thread.
    pub threads: Vec<ThreadObserved>,
    /// Why the default policy was not used, if it could not be.
    pub policy_refused: Option<String>,
    /// Why memory could not be locked, if so.
    pub memory_refused: Option<String>,
    /// Time that the hypervisor took from the measured CPUs.
    pub steal_ns: u64,
    /// How long the machine slept.
    pub slept_ns: u64,
    /// How often this process was stopped, and its probes with it.
    pub stops: u64,
    /// How long these stops lasted at most.
    pub stopped_ns: u64,
    /// How much faster or slower than its hardware the clock ran at least, in parts per million.
    pub clock_drift_ppm: u64,
    /// The clocksource at the start and at the end.
    pub clocksource: (String, String),
    /// How often CPU quotas stopped the cgroup of this process, or one above it.
    pub quota_stops: u64,
    /// The lengths of these stops, summed over CPUs.
    pub quota_stopped_ns: u64,
    /// Measured CPUs that another wakescope measures too.
    pub also_measured: Vec<u32>,
    /// Measured CPUs of which that is not known, and why.
    pub unannounced: Option<(Vec<u32>, String)>,
    /// What the loads did.
    pub loads: Vec<LoadResult>,
    /// What was left out of the requested loads.
    pub left_out: Vec<LeftOut>,
    /// What ended the run early.
    pub ended_by: Option<String>,
    /// The line, if bytes went over one.
    pub line: Option<Line>,
    /// Why the line was lost, if it was.
    pub line_fault: Option<String>,
    /// Why the run could not be saved completely.
    pub not_saved: Option<String>,
    /// What real-time tasks may use of a CPU before they are throttled; `None` where nothing throttles them.
    pub rt_limit: Option<RtLimit>,
}

/// So much of each period real-time tasks may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtLimit {
    /// The time that they get.
    pub runtime_ns: u64,
    /// The period.
    pub period_ns: u64,
}

/// A part of the requested load that could not run on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// What was left out: a load of a group, or a part of a load.
    pub part: String,
    /// The group or load.
    pub of: String,
    /// Why it could not run.
    pub reason: String,
}

/// Why nothing could wake a probe any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StimulusLost {
    /// The finding that it is.
    pub code: &'static str,
    /// When the last wakeup was due, from the start of the run.
    pub at_ns: u64,
    /// The cause.
    pub why: String,
}

/// What was seen of one probe thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadObserved {
    /// The CPU asked for.
    pub cpu: u32,
    /// Whether the thread was bound to it.
    pub pinned: bool,
    /// Wakeups.
    pub woken: u64,
    /// Expiries without a wakeup of their own.
    pub missed: u64,
    /// Wakeups on another CPU.
    pub migrated: u64,
    /// Wakeups before their time.
    pub early: u64,
    /// Stimuli that came before the thread slept.
    pub not_asleep: u64,
    /// Stimuli that were left out, since the waker was late itself.
    pub skipped: u64,
    /// How much later than stated wakeups may have been due.
    pub due_uncertainty_ns: u64,
    /// How often a loop that never sleeps read the clock, and within which time.
    pub loops: u64,
    /// See `loops`.
    pub observed_ns: u64,
    /// The sum of its gaps.
    pub gaps_ns: u64,
    /// What computing a fragment of audio took in the median.
    pub compute_ns: Option<u64>,
    /// Samples that could not be written to the sample file.
    pub lost: u64,
    /// Page faults in the loop, served from memory.
    pub minor_faults: u64,
    /// Page faults in the loop, served from a disk.
    pub major_faults: u64,
    /// Schedules other than the one asked for that were in force, in words.
    pub other_schedule: Option<String>,
    /// The same of the thread or process that wakes it.
    pub other_waker_schedule: Option<String>,
    /// How often that was found on another CPU than its own.
    pub waker_moved: u64,
    /// Timer slack in force.
    pub slack_ns: u64,
    /// How often something else took the CPU from it while it ran.
    pub preempted: u64,
    /// CPU time that the loop used.
    pub cpu_ns: u64,
    /// The same in parts per million of its duration.
    pub cpu_share_ppm: u64,
    /// When its CPU went away, from the start of the run.
    pub cpu_lost_at_ns: Option<u64>,
    /// Why nothing could wake it any more, if so.
    pub stimulus_lost: Option<StimulusLost>,
    /// Why the loop ended with an error.
    pub failure: Option<String>,
}
