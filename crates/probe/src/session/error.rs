//! Why a measurement could not begin, in words.

use std::fmt;
use std::io;

use wakescope_core::units::SpanNs;
use wakescope_sys::sched::Schedule;

use crate::load::LoadError;
use crate::observer::ObserverError;
use crate::schedule::words;

/// Why a measurement could not begin.
#[derive(Debug)]
pub enum MeasureError {
    /// The schedule asked for is refused.
    Schedule(Schedule, io::Error),
    /// A probe could not be started on a CPU.
    Cpu(u32, io::Error),
    /// The interval is shorter than one wakeup takes: interval and that time.
    Interval(SpanNs, SpanNs),
    /// Idle states cannot be limited.
    IdleStates(io::Error),
    /// A load could not be started.
    Load(LoadError),
    /// The observer cannot observe.
    Observer(ObserverError),
    /// The user ended it before it began.
    Ended,
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule(schedule, e) => {
                write!(f, "cannot run the probe under {}: {e}", words(*schedule))
            }
            Self::Cpu(cpu, e) => write!(f, "cannot run a probe on CPU {cpu}: {e}"),
            Self::Interval(interval, turnaround) => write!(
                f,
                "an interval of {interval} is too short: one sleep and wakeup takes {turnaround} \
                 here"
            ),
            Self::IdleStates(e) => write!(f, "cannot limit idle states: /dev/cpu_dma_latency: {e}"),
            Self::Load(e) => e.fmt(f),
            Self::Observer(e) => e.fmt(f),
            Self::Ended => write!(f, "interrupted before the first wakeup was measured"),
        }
    }
}

impl std::error::Error for MeasureError {}
