//! What events cause the wakeups of a run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ProbePolicy;
use crate::source::Quantity;

/// What events cause the wakeups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stimulus {
    /// A timer on an absolute grid of `CLOCK_MONOTONIC`.
    #[default]
    Timer,
    /// A timer that is a file, which the probe reads.
    Timerfd,
    /// A POSIX timer, whose signal a handler takes.
    Signal,
    /// A POSIX timer, whose signal the probe waits for.
    Sigwait,
    /// The absolute time-out of a wait for a futex.
    FutexTimeout,
    /// The time-out of a wait for files.
    Epoll,
    /// A timer that a `SCHED_DEADLINE` task sleeps for.
    Deadline,
    /// The periodic interrupt of a real-time clock.
    Rtc,
    /// A timer on the grid that a real-time clock would have.
    RtcGrid,
    /// A timer of the project's kernel module, whose device the probe reads.
    Device,
    /// Another thread, through a futex.
    Futex,
    /// Another thread, through a pipe.
    Pipe,
    /// Another thread, through an eventfd.
    Eventfd,
    /// Another thread, through a pair of Unix sockets.
    Socketpair,
    /// Another thread, through UDP over the loopback device.
    Udp,
    /// Another thread, through TCP over the loopback device.
    Tcp,
    /// Another thread, through a POSIX message queue.
    Mqueue,
    /// Another thread, through a POSIX semaphore.
    Semaphore,
    /// Another thread, through a System V semaphore.
    SysvSemaphore,
    /// Another thread, by a signal.
    Kill,
    /// Another thread, through a condition variable.
    Condvar,
    /// A byte over a line, answered by another machine.
    Line,
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
    /// The probe sends on a grid, and its answer comes from another machine.
    Line,
    /// Nothing wakes the probe, because it never sleeps: what counts is when it was kept from running.
    Busy,
    /// It is not the probe's doing what wakes these threads.
    Others,
}

impl Stimulus {
    /// Those that wake a probe, in the order in which they are listed.
    pub const OF_PROBES: &'static [Self] = &[
        Self::Timer,
        Self::Timerfd,
        Self::Signal,
        Self::Sigwait,
        Self::FutexTimeout,
        Self::Epoll,
        Self::Deadline,
        Self::Rtc,
        Self::RtcGrid,
        Self::Device,
        Self::Futex,
        Self::Pipe,
        Self::Eventfd,
        Self::Socketpair,
        Self::Udp,
        Self::Tcp,
        Self::Mqueue,
        Self::Semaphore,
        Self::SysvSemaphore,
        Self::Kill,
        Self::Condvar,
        Self::Line,
        Self::Audio,
        Self::Spin,
    ];

    /// How it is named in commands, plans and records.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// What it has in common with others.
    pub fn family(self) -> Family {
        self.row().1
    }

    /// What the values of a run are.
    pub fn quantity(self) -> Quantity {
        match self.family() {
            Family::Line => Quantity::RoundTrip,
            Family::Busy => Quantity::Gap,
            Family::Grid | Family::Card | Family::Waker | Family::Others => Quantity::WakeupLatency,
        }
    }

    /// What causes the wakeups, in a few words.
    pub fn about(self) -> &'static str {
        self.row().2
    }

    /// Whether the probe never sleeps. Then it has no interval, and no wakeups that could be followed.
    pub fn is_busy(self) -> bool {
        self.family() == Family::Busy
    }

    /// Whether another thread wakes each probe.
    pub fn needs_waker(self) -> bool {
        self.family() == Family::Waker
    }

    /// Whether the grid is that of a real-time clock's [`Rate`](super::Rate), so that only the
    /// intervals of these are possible.
    pub fn keeps_rate(self) -> bool {
        matches!(self, Self::Rtc | Self::RtcGrid)
    }

    /// Whether the probe sleeps with clock_nanosleep: then a tracer sees by the kernel's timer alone whom
    /// it wakes and when that was due. All others announce it.
    pub fn is_plain_sleep(self) -> bool {
        matches!(self, Self::Timer | Self::Deadline | Self::RtcGrid | Self::Audio)
    }

    /// The only policy of its probes, where it is one of those that a policy makes.
    pub fn policy(self) -> Option<ProbePolicy> {
        (self == Self::Deadline).then_some(ProbePolicy::Deadline)
    }

    fn row(self) -> (&'static str, Family, &'static str) {
        use Family::{Busy, Card, Grid, Others, Waker};
        match self {
            Self::Timer => {
                ("timer", Grid, "A timer that expires on an absolute grid of CLOCK_MONOTONIC")
            }
            Self::Timerfd => ("timerfd", Grid, "A timerfd on the same grid, by a blocking read"),
            Self::Signal => ("signal", Grid, "A POSIX timer on the same grid, by a signal handler"),
            Self::Sigwait => ("sigwait", Grid, "A POSIX timer on the same grid, by sigwaitinfo"),
            Self::FutexTimeout => {
                ("futex-timeout", Grid, "The time-out of a futex, at points of the same grid")
            }
            Self::Epoll => {
                ("epoll", Grid, "The time-out of epoll_pwait2, at points of the same grid")
            }
            Self::Deadline => {
                ("deadline", Grid, "A timer on the same grid, for a SCHED_DEADLINE task")
            }
            Self::Rtc => {
                ("rtc", Grid, "The periodic interrupt of the real-time clock, as realfeel")
            }
            Self::RtcGrid => ("rtc-grid", Grid, "A timer on the grid of a real-time clock's rate"),
            Self::Device => {
                ("device", Grid, "A timer of the kernel module wakescope, by a blocking read")
            }
            Self::Futex => ("futex", Waker, "Another thread, through a futex"),
            Self::Pipe => ("pipe", Waker, "Another thread, through a pipe"),
            Self::Eventfd => ("eventfd", Waker, "Another thread, through an eventfd"),
            Self::Socketpair => ("socketpair", Waker, "Another thread, through Unix sockets"),
            Self::Udp => ("udp", Waker, "Another thread, through UDP over the loopback device"),
            Self::Tcp => ("tcp", Waker, "Another thread, through TCP over the loopback device"),
            Self::Mqueue => ("mqueue", Waker, "Another thread, through a POSIX message queue"),
            Self::Semaphore => ("semaphore", Waker, "Another thread, through a POSIX semaphore"),
            Self::SysvSemaphore => {
                ("sysv-semaphore", Waker, "Another thread, through a System V semaphore")
            }
            Self::Kill => ("kill", Waker, "Another thread, by a signal that the probe waits for"),
            Self::Condvar => {
                ("condvar", Waker, "Another thread, through a condition variable with PI mutex")
            }
            Self::Line => (
                "line",
                Family::Line,
                "A byte over a serial line (--line), answered by `wakescope respond`",
            ),
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
            let want = format!("there is no stimulus `{name}`; the stimuli are timer, timerfd, ");
            assert!(refusal.starts_with(&want), "{refusal}");
        }
    }
}
