//! Why a measurement could not begin, in words.

use std::io;

use wakescope_core::plan::Stimulus;
use wakescope_core::units::SpanNs;
use wakescope_sys::sched::Schedule;

use crate::admission::Refusal;
use crate::card::CardError;
use crate::line::LineError;
use crate::load::LoadError;
use crate::observer::ObserverError;
use crate::schedule::words;
use crate::stimulus::availability::Unavailable;

/// Why a measurement could not begin.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The schedule asked for is refused.
    #[error("cannot run the probe under {}: {1}", words(*.0))]
    Schedule(Schedule, io::Error),
    /// The kernel does not admit it as a `SCHED_DEADLINE` task.
    #[error("cannot run the probe under {}: {1}", words(*.0))]
    Deadline(Schedule, Refusal),
    /// A probe could not be started on a CPU.
    #[error("cannot run a probe on CPU {0}: {1}")]
    Cpu(u32, io::Error),
    /// The interval is shorter than one wakeup takes: interval and that time.
    #[error("an interval of {0} is too short: one sleep and wakeup takes {1} here")]
    Interval(SpanNs, SpanNs),
    /// The stimulus cannot be had here.
    #[error("cannot wake the probe by {0}: {1}")]
    Stimulus(Stimulus, Unavailable),
    /// Idle states cannot be limited.
    #[error("cannot limit idle states: /dev/cpu_dma_latency: {0}")]
    IdleStates(io::Error),
    /// A load could not be started.
    #[error(transparent)]
    Load(LoadError),
    /// The sound card cannot be used.
    #[error(transparent)]
    Card(CardError),
    /// The line cannot be used.
    #[error(transparent)]
    Line(LineError),
    /// The observer cannot observe.
    #[error(transparent)]
    Observer(ObserverError),
    /// The user ended it before it began.
    #[error("interrupted before the first wakeup was measured")]
    Ended,
}
