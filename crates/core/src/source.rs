//! Where the figures of a run come from, where another program measured them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Another program's result that was read into a run: what it can tell, and what it cannot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The program: `cyclictest`.
    pub tool: String,
    /// Its version, if the file says.
    #[serde(default)]
    pub version: Option<String>,
    /// The format that was read: `text histogram`.
    pub format: String,
    /// The file, as it was named.
    #[serde(default)]
    pub file: String,
    /// What the values are.
    pub quantity: Quantity,
    /// What became of expiries that a late wakeup swallowed.
    pub omission: Omission,
    /// The smallest difference that the file can state; `None` if it does not say.
    #[serde(default)]
    pub resolution_ns: Option<u64>,
    /// Keys of the record that the file tells nothing of: `plan.interval_ns`. What stands there
    /// is only what had to.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// What is not exact, a sentence each: `sum_ns: the mean is given in whole µs`.
    #[serde(default)]
    pub approximate: Vec<String>,
}

impl Source {
    /// Whether the file tells nothing of this key of the record, as `plan.interval_ns`, or of a key that
    /// it is part of, as `plan`.
    pub fn lacks(&self, key: &str) -> bool {
        let is_of = |rest: &str| rest.is_empty() || rest.starts_with('.');
        self.unknown.iter().any(|unknown| key.strip_prefix(unknown.as_str()).is_some_and(is_of))
    }
}

/// What the values of a distribution are. Different ones are never added up or compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// How much later than it was due a task ran.
    #[default]
    WakeupLatency,
    /// From the expiry to the timer's interrupt.
    IrqLatency,
    /// From the expiry until a kernel thread ran.
    ThreadLatency,
    /// From the expiry until a thread was back in user space.
    UserLatency,
    /// How much longer than the period one wakeup came after the last one. A delay shows up twice,
    /// and a constant one not at all.
    IntervalDeviation,
    /// How long a loop that never sleeps was kept from running.
    Gap,
    /// How long a task that could run waited for a CPU.
    RunqueueDelay,
    /// From asking to being answered.
    RequestLatency,
    /// From sending a byte over a line until its answer was there.
    RoundTrip,
    /// The file does not tell what its values are.
    Unknown,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WakeupLatency => "wakeup latency",
            Self::IrqLatency => "interrupt latency",
            Self::ThreadLatency => "latency of a kernel thread",
            Self::UserLatency => "latency of a user thread",
            Self::IntervalDeviation => "deviation of the interval",
            Self::Gap => "gap in a busy loop",
            Self::RunqueueDelay => "delay on the run queue",
            Self::RequestLatency => "latency of a request",
            Self::RoundTrip => "round trip",
            Self::Unknown => "value of unknown kind",
        })
    }
}

/// What became of expiries that a late wakeup swallowed. Tails of different policies differ many
/// times over: one stall of 100 ms at 1 ms is 1 sample here and 100 there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Omission {
    /// Each counts, with its own lateness.
    Counted,
    /// They are left out, and not counted.
    Skipped,
    /// The next period begins when the last wakeup is done: nothing can be missed.
    Relative,
    /// There is no grid.
    None,
    /// The file does not tell.
    #[default]
    Unknown,
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Counted => "expiries missed during a stall are counted",
            Self::Skipped => "expiries missed during a stall are omitted",
            Self::Relative => "a stall delays all later expiries",
            Self::None => "there are no periodic expiries",
            Self::Unknown => "treatment of expiries missed during a stall unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_part_of_something_unknown_is_unknown() {
        let source =
            Source { unknown: vec!["host".into(), "plan.load".into()], ..Source::default() };
        for (key, want) in [
            ("host", true),
            ("host.clock", true),
            ("hosts", false),
            ("plan", false),
            ("plan.load", true),
            ("plan.load_cpus", false),
            ("seed", false),
        ] {
            assert_eq!(source.lacks(key), want, "{key}");
        }
    }
}
