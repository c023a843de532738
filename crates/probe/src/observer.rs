//! Observers of a measurement: what follows wakeups through the kernel while probes, or threads of
//! others, are measured.

use std::error::Error;

use wakescope_core::distribution::Distribution;
use wakescope_core::run::Run;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::sched::ThreadId;
use wakescope_sys::shared::Answers;

/// Observes a measurement from inside the kernel. An error it returns ends the measurement. Where a method is not
/// implemented, nothing is observed.
pub trait Observer {
    /// The place for the responses of the probe on the plan's CPU at this rank, if it needs one.
    fn answers(&self, _rank: usize) -> Option<Answers> {
        None
    }
    /// The next probe, in the order of the plan's CPUs, is this thread.
    fn follow(&mut self, _thread: ThreadId) -> Result<(), ObserverError> {
        Ok(())
    }
    /// Reads what has to be known of threads of others before the origin is chosen. This may take seconds.
    fn prepare(&mut self) {}
    /// Wakeups count that are due at this origin or later.
    fn begin(&mut self, _origin: MonoNs) -> Result<(), ObserverError> {
        Ok(())
    }
    /// How often to call [`Self::look`] from now on, at least; `None` if never.
    fn pace(&self, _now: MonoNs) -> Option<SpanNs> {
        None
    }
    /// Takes what has been observed so far.
    fn look(&mut self, _now: MonoNs) {}
    /// The wakeup latencies observed so far, of threads that record none themselves.
    fn lateness(&self) -> Distribution {
        Distribution::default()
    }
    /// Adds to the record of a run that goes on what only the observer knows so far.
    fn complete_checkpoint(&self, _run: &mut Run) {}
    /// Adds all observations to the record of a run that is over.
    fn complete(&mut self, _run: &mut Run) {}
}

/// Why an observer cannot observe.
#[derive(Debug, thiserror::Error)]
pub enum ObserverError {
    /// It cannot follow a probe.
    #[error("cannot follow the probe with thread ID {}: {1}", .0.number())]
    Follow(ThreadId, #[source] Box<dyn Error + Send + Sync>),
    /// It cannot begin.
    #[error("cannot begin to follow wakeups: {0}")]
    Begin(#[source] Box<dyn Error + Send + Sync>),
}

impl ObserverError {
    /// What lies behind it, in the observer's own type.
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        let (Self::Follow(_, cause) | Self::Begin(cause)) = self;
        &**cause
    }
}

/// No observer.
pub struct Unobserved;

impl Observer for Unobserved {}
