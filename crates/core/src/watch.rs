//! All waits of all tasks of a machine, window by window: the record of `watch`.
//!
//! A wait lasts from when a task is put into a run queue until it runs, as the kernel counts it itself
//! (`sched_info`, shown in /proc/TID/schedstat).

pub mod arming;
pub mod boot;
pub mod cgroup;
pub mod counters;
pub mod episode;
pub mod explained;
pub mod extent;
pub mod meter;
pub mod observed;
pub mod packed;
pub mod scale;
pub mod sum;
pub mod turns;
mod waits;

use serde::{Deserialize, Serialize};

use boot::Boot;
use episode::Episodes;
use explained::Explanations;
pub use waits::{Known, Waits};

/// The schema of a window.
pub const SCHEMA: &str = "wakescope.watch/1";

/// What was counted between two readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// [`SCHEMA`].
    pub schema: String,
    /// When the window began, UTC, RFC 3339.
    pub started: String,
    /// When it began, from the start of the watch, ns.
    pub begin_ns: u64,
    /// When it began by the clock of its boot, which nobody sets and which runs on while the machine is suspended
    /// (`CLOCK_BOOTTIME`), ns; `None` in windows of earlier versions, and where a time namespace shifts that clock.
    #[serde(default)]
    pub boottime_ns: Option<u64>,
    /// How long it is, ns.
    pub window_ns: u64,
    /// Where a wait begins.
    pub from: WaitBegin,
    /// Waits of tasks of one name in one cgroup; those without any are left out.
    pub series: Vec<Series>,
    /// Waits of all tasks that found no series of their own.
    pub others: Waits,
    /// Waits by the CPU on which they ended.
    pub cpus: Vec<Cpu>,
    /// What is not in the waits.
    pub left_out: LeftOut,
    /// Waits that began in the queue of another CPU than the one on which they ended. They are counted whole.
    pub moved: Moved,
    /// Series that have a row of their own.
    pub series_used: u64,
    /// Series that there can be.
    pub series_limit: u64,
    /// What watching took.
    pub own_cost: OwnCost,
    /// The comparison with the kernel's own counts, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// The longest waits, and who had the CPU meanwhile; `None` in windows of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes: Option<Episodes>,
    /// Why series were late, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanations: Option<Explanations>,
    /// On which machine, and under which kernel, it was counted; several in a sum of windows, none in windows
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boots: Vec<Boot>,
}

/// Where a wait begins. Waits from different points are never put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitBegin {
    /// When the task is put into a run queue.
    #[default]
    Queued,
}

/// Waits of tasks of one name in one cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The ID of the cgroup in the unified hierarchy; 0 where there is none.
    pub cgroup_id: u64,
    /// Its path from the root of that hierarchy; `None` if it was gone when its name was looked up.
    pub cgroup: Option<String>,
    /// The name of the tasks, which any program gives itself.
    pub comm: String,
    /// Their waits.
    pub waits: Waits,
}

/// Waits that ended on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// The CPU.
    pub cpu: u32,
    /// How often it switched from one task to another, or to or from idle.
    pub switches: u64,
    /// The waits.
    pub waits: Waits,
}

/// What is not in the waits, or nearly was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Time in which nothing was counted: until the program was attached, ns.
    pub uncovered_ns: u64,
    /// How often a task began to run that the kernel had not marked as waiting: it was preempted when it
    /// was about to sleep.
    pub unstamped: u64,
    /// Waits whose end lies before their begin by the kernel's clock.
    pub discarded: u64,
    /// Waits of tasks for which there was no place. Each is counted, but not what it lasted in the queue of
    /// another CPU before. From 6.12 on, those of 1 ms and longer are in no figure, and count as [`Self::asleep`] as
    /// well.
    pub untracked: u64,
    /// First waits of tasks that had run before the watch saw them. Each is counted, but not what it lasted
    /// in the queue of another CPU before.
    pub first: u64,
    /// Waits that are counted although the kernel did not report the switch that ended them.
    pub caught_up: u64,
    /// Waits that the kernel has counted, and the program did not see.
    pub missed: u64,
    /// How long these lasted, ns.
    pub missed_ns: u64,
    /// How often the kernel's own sum was less than what was counted here.
    pub contradicted: u64,
    /// Waits that are not counted because the kernel may have counted sleep as waiting: from 6.12 on it does
    /// where a task is moved to another CPU just after it fell asleep. Older windows do not have this number.
    #[serde(default)]
    pub asleep: u64,
    /// How long these lasted by the kernel's count, ns.
    #[serde(default)]
    pub asleep_ns: u64,
}

impl LeftOut {
    /// How many waits are missing, or may be incomplete; at most as many if [`Self::lost_is_bound`].
    pub fn lost(&self) -> u64 {
        let all = [self.missed, self.discarded, self.untracked, self.contradicted, self.asleep];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Whether waits may count twice in [`Self::lost`]: as untracked and as asleep.
    pub fn lost_is_bound(&self) -> bool {
        self.untracked > 0 && self.asleep > 0
    }

    /// What came between `earlier` and this.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            uncovered_ns: self.uncovered_ns.saturating_sub(earlier.uncovered_ns),
            unstamped: self.unstamped.saturating_sub(earlier.unstamped),
            discarded: self.discarded.saturating_sub(earlier.discarded),
            untracked: self.untracked.saturating_sub(earlier.untracked),
            first: self.first.saturating_sub(earlier.first),
            caught_up: self.caught_up.saturating_sub(earlier.caught_up),
            missed: self.missed.saturating_sub(earlier.missed),
            missed_ns: self.missed_ns.saturating_sub(earlier.missed_ns),
            contradicted: self.contradicted.saturating_sub(earlier.contradicted),
            asleep: self.asleep.saturating_sub(earlier.asleep),
            asleep_ns: self.asleep_ns.saturating_sub(earlier.asleep_ns),
        }
    }
}

/// Waits that were moved from the queue of a CPU to that of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// How many.
    pub count: u64,
    /// How long they lasted before they were moved, ns.
    pub before_ns: u64,
}

/// What watching took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCost {
    /// CPU time of `wakescope` itself, ns.
    pub agent_ns: u64,
    /// Run time of its program in the kernel, on all CPUs, ns; `None` where it is not known.
    pub program_ns: Option<u64>,
    /// The same of the programs of the tracer that followed a series, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tracer_ns: u64,
    /// How often that ran.
    pub program_runs: u64,
    /// How the run time is known.
    pub source: CostSource,
    /// CPUs that switched from one task to another since the watch began.
    pub cpus: u32,
}

impl OwnCost {
    /// All together, as a part of all CPU time in `window_ns`; `None` where it is not known.
    pub fn share(&self, window_ns: u64) -> Option<f64> {
        let all = (window_ns as f64) * f64::from(self.cpus);
        (all > 0.0).then_some({
            (self.agent_ns as f64 + self.program_ns? as f64 + self.tracer_ns as f64) / all
        })
    }

    /// Why it cannot have been taken in a window of this length, if it cannot.
    fn fault(&self, window_ns: u64) -> Option<String> {
        // Estimates may be too high. A window begins a little before or after its own cost does.
        const FACTOR: u64 = 2;
        const SLACK_NS: u64 = 1_000_000_000;
        let cpus = u64::from(self.cpus.max(1));
        let most_ns =
            window_ns.saturating_mul(FACTOR).saturating_add(SLACK_NS).saturating_mul(cpus);
        let parts = [self.agent_ns, self.program_ns.unwrap_or(0), self.tracer_ns];
        let taken_ns = parts.into_iter().fold(0, u64::saturating_add);
        (taken_ns > most_ns).then(|| {
            format!("{taken_ns} ns were taken of {cpus} CPUs in a window of {window_ns} ns")
        })
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

/// How the run time of the program is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The kernel measured every run in the window (BPF statistics).
    Measured,
    /// The runs in the window times what a run took when the kernel measured last.
    Estimated,
    /// The kernel has measured none.
    #[default]
    Unknown,
}

/// A comparison of what was counted of tasks with what the kernel has counted of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Tasks whose count and sum of waits are those of the kernel, to the nanosecond.
    pub equal: u64,
    /// Tasks of which the kernel has counted more waits: the switch that ended the last one was not seen,
    /// which is known only when the task gives up the CPU.
    pub behind: u64,
    /// Tasks of which count or sum is another for no such reason.
    pub differing: u64,
    /// The largest difference of a sum, ns.
    pub largest_ns: u64,
    /// Tasks that ran or were moved while they were compared.
    pub busy: u64,
    /// Tasks that were gone.
    pub gone: u64,
    /// Tasks for which no time was left in this window.
    pub not_reached: u64,
    /// Waits that the tasks that are equal had, since they were seen first.
    pub waits: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_cpu_time_is_of_all_cpus() {
        let cost = |program_ns| OwnCost {
            agent_ns: 1_000_000,
            program_ns,
            tracer_ns: 0,
            program_runs: 10,
            source: CostSource::Measured,
            cpus: 4,
        };
        assert_eq!(cost(Some(3_000_000)).share(1_000_000_000), Some(0.001));
        let with_tracer = OwnCost { tracer_ns: 4_000_000, ..cost(Some(3_000_000)) };
        assert_eq!(with_tracer.share(1_000_000_000), Some(0.002));
        assert_eq!(cost(None).share(1_000_000_000), None);
        assert_eq!(cost(Some(1)).share(0), None);
    }
}
