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

impl KernelStamps {
    /// Both together.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        match (self.wakeups, other.wakeups) {
            (_, 0) => *self,
            (0, _) => *other,
            (own, others) => Self {
                wakeups: own.saturating_add(others),
                to_function: self.to_function.merged(other.to_function),
                to_reader: self.to_reader.merged(other.to_reader),
                to_probe: self.to_probe.merged(other.to_probe),
            },
        }
    }
}

impl StampedPart {
    fn merged(self, other: Self) -> Self {
        Self {
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
            min_ns: self.min_ns.min(other.min_ns),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}
