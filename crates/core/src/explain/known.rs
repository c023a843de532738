//! What is known of a wakeup before its events are looked at.

use super::ComponentTable;
use serde::{Deserialize, Serialize};

/// What a run teaches about all its wakeups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// What nearly every wakeup of the run waited for its interrupt, nanoseconds: the time from the
    /// expiry to the interrupt's first event that no code of the kernel could have avoided.
    pub delivery_ns: u64,
    /// How long nearly every wakeup of the run took from the scheduler to its response, nanoseconds:
    /// the same code runs each time, so what is longer has a reason that was not seen. `None` if the
    /// run does not tell.
    pub scheduling_ns: Option<u64>,
    /// The shortest scheduler latency of the run's wakeups, nanoseconds: from the interrupt's end to
    /// the scheduler's entry, or to the response where the kernel does not show the scheduler's entry
    /// (`scheduling_ns` is `None` then). `None` if the run does not tell.
    ///
    /// Left out of a file then: the lab writes what its guests send anew, and cells of earlier versions are to
    /// repeat to the bit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_sched_latency_ns: Option<u64>,
    /// How long half of the run's wakeups waited for their interrupt at most, nanoseconds, or how
    /// long the CPU's deepest idle state takes to leave, if that is longer. `None` if the run does not
    /// tell.
    pub waking_ns: Option<u64>,
    /// Whether the machine is a guest in real time: where it stands still, its hypervisor ran
    /// something else.
    pub guest: bool,
    /// Whether CPUs that run anything have ticks, which come every 10 ms at the least.
    pub ticks: bool,
    /// Whether those that wake are probes, which do hardly anything between two sleeps.
    pub probes: bool,
    /// Whether the kernel shows which softirqs it leaves to their thread: see `What::SoftirqsPending`.
    ///
    /// Left out of a file if it does not, for the same reason.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shows_softirqs_left: bool,
    /// Whether each switch shows if real-time tasks are held back: from 6.12 on, without quotas of real-time groups.
    ///
    /// Left out of a file if it does not, for the same reason.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shows_throttling: bool,
}

impl Known {
    /// The same, with what the `components` of its run show where a version before this one did not
    /// store it.
    #[must_use]
    pub fn completed(self, components: Option<&ComponentTable>) -> Self {
        let shown = || components.and_then(|table| table.sched_latency.min_ns);
        Self { least_sched_latency_ns: self.least_sched_latency_ns.or_else(shown), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_did_not_store_is_not_written() {
        let earlier = r#"{"delivery_ns":266,"scheduling_ns":4288,"waking_ns":273,"guest":false,"ticks":true,"probes":true}"#;
        let known: Known = serde_json::from_str(earlier).unwrap();
        assert_eq!(known.least_sched_latency_ns, None);
        assert_eq!(serde_json::to_string(&known).unwrap(), earlier);
    }
}
