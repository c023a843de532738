//! What is known of a wakeup before its events are looked at.

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
}
