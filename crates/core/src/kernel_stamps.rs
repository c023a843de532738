//! How the time stamps of the kernel module's device divide wakeup latencies.

use serde::{Deserialize, Serialize};

/// The parts of wakeup latencies between the time stamps of the kernel module's device. Those of a
/// wakeup add up to its latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelStamps {
    /// How many wakeups there were.
    pub wakeups: u64,
    /// From when the timer was due to when its function ran.
    pub to_function: StampedPart,
    /// From there to when the probe ran, still in the kernel.
    pub to_reader: StampedPart,
    /// From there to the probe's own clock reading.
    pub to_probe: StampedPart,
}

/// A part of wakeup latencies, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedPart {
    /// Of all wakeups together.
    pub sum_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}
