//! What events cause the wakeups of a run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::source::Quantity;

/// What events cause the wakeups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stimulus {
    /// A timer on an absolute grid of `CLOCK_MONOTONIC`.
    #[default]
    Timer,
    /// Another thread, through a futex.
    Futex,
    /// A virtual sound card that has room for a fragment.
    Audio,
    /// Nothing: the probe reads the clock in a loop and never sleeps.
    Spin,
    /// Whatever wakes the threads that are followed.
    Any,
}

/// What stimuli of a kind have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// The kernel wakes the probe at points of an absolute grid: a late wakeup may have swallowed
    /// further expiries that were due regardless of it.
    Grid,
    /// A card wakes the probe when its buffer has room: a late wakeup swallows nothing, because the
    /// buffer makes up for it.
    Card,
    /// Another thread wakes the probe: what is measured begins with that thread's call.
    Waker,
    /// Nothing wakes the probe, because it never sleeps: what counts is when it was kept from running.
    Busy,
    /// It is not the probe's doing what wakes these threads.
    Others,
}

impl Stimulus {
    /// Those that wake a probe, in the order in which they are listed.
    pub const OF_PROBES: &'static [Self] = &[Self::Timer, Self::Futex, Self::Audio, Self::Spin];

    /// How it is named in commands, plans and records.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// What it has in common with others.
    pub fn family(self) -> Family {
        self.row().1
    }

    /// What causes the wakeups, in a few words.
    pub fn about(self) -> &'static str {
        self.row().2
    }

    /// What the values of a run are.
    pub fn quantity(self) -> Quantity {
        match self.family() {
            Family::Busy => Quantity::Gap,
            Family::Grid | Family::Card | Family::Waker | Family::Others => Quantity::WakeupLatency,
        }
    }

    /// Whether the probe sleeps with the timer of clock_nanosleep(2).
    pub fn is_by_timer(self) -> bool {
        matches!(self, Self::Timer | Self::Audio)
    }

    /// Whether the probe never sleeps. Then it has no interval, and no wakeups that could be followed.
    pub fn is_busy(self) -> bool {
        self.family() == Family::Busy
    }

    /// Whether another thread wakes each probe.
    pub fn needs_waker(self) -> bool {
        self.family() == Family::Waker
    }

    fn row(self) -> (&'static str, Family, &'static str) {
        use Family::{Busy, Card, Grid, Others, Waker};
        match self {
            Self::Timer => {
                ("timer", Grid, "A timer that expires on an absolute grid of CLOCK_MONOTONIC")
            }
            Self::Futex => ("futex", Waker, "Another thread, through a futex"),
            Self::Audio => {
                ("audio", Card, "A virtual sound card that plays what the probe computes")
            }
            Self::Spin => ("spin", Busy, "None: a loop reads the clock and counts the gaps"),
            Self::Any => ("any", Others, "Whatever wakes the threads that are followed"),
        }
    }
}

impl fmt::Display for Stimulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Stimulus {
    type Err = UnknownStimulus;

    fn from_str(name: &str) -> Result<Self, UnknownStimulus> {
        let known = Self::OF_PROBES.iter().copied().find(|stimulus| stimulus.name() == name);
        known.ok_or_else(|| UnknownStimulus(name.chars().take(80).collect()))
    }
}

/// No stimulus that wakes a probe has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStimulus(String);

impl fmt::Display for UnknownStimulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Stimulus::OF_PROBES.iter().map(|stimulus| stimulus.name()).collect();
        write!(f, "there is no stimulus `{}`; the stimuli are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownStimulus {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stimulus_has_one_name_wherever_it_is_written() {
        for &stimulus in Stimulus::OF_PROBES {
            let name = stimulus.name();
            assert_eq!(name.parse(), Ok(stimulus));
            assert_eq!(serde_json::to_value(stimulus).unwrap(), name);
            assert_eq!(stimulus.to_string(), name);
            assert_ne!(stimulus.family(), Family::Others, "{name}");
        }
        assert_eq!(serde_json::to_value(Stimulus::Any).unwrap(), "any");
    }

    #[test]
    fn other_names_are_answered_with_those_there_are() {
        for name in ["any", "Timer", "", "fnutex"] {
            let refusal = name.parse::<Stimulus>().unwrap_err().to_string();
            let want =
                format!("there is no stimulus `{name}`; the stimuli are timer, futex, audio, spin");
            assert!(refusal.starts_with(&want), "{refusal}");
        }
    }
}
