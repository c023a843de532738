//! Observers of a measurement: what follows wakeups through the kernel while probes, or threads of
//! others, are measured.

use std::error::Error;

use wakescope_core::distribution::Distribution;
use wakescope_core::run::Run;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::sched::ThreadId;
use wakescope_sys::shared::Answers;

/// Observes a measurement from inside the kernel. An error it returns ends the measurement.
pub trait Observer {
    /// The place for the responses of the probe on the plan's CPU at `rank`, if it needs one.
    fn answers(&self, rank: usize) -> Option<Answers>;
    /// The next probe, in the order of the plan's CPUs, is `thread`.
    fn follow(&mut self, thread: ThreadId) -> Result<(), ObserverError>;
    /// Reads what has to be known of threads of others before the origin is chosen. This may take seconds.
    fn prepare(&mut self);
    /// Wakeups count that are due at `origin` or later.
    fn begin(&mut self, origin: MonoNs) -> Result<(), ObserverError>;
    /// How often to call [`Self::look`] from `now` on, at least; `None` if never.
    fn pace(&self, now: MonoNs) -> Option<SpanNs>;
    /// Takes what has been observed so far.
    fn look(&mut self, now: MonoNs);
    /// The wakeup latencies observed so far, of threads that record none themselves.
    fn lateness(&self) -> Distribution;
    /// Adds to the record of a run that goes on what only the observer knows so far.
    fn complete_checkpoint(&self, run: &mut Run);
    /// Adds all observations to the record of a run that is over.
    fn complete(&mut self, run: &mut Run);
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

impl Observer for Unobserved {
    fn answers(&self, _: usize) -> Option<Answers> {
        None
    }

    fn follow(&mut self, _: ThreadId) -> Result<(), ObserverError> {
        Ok(())
    }

    fn prepare(&mut self) {}

    fn begin(&mut self, _: MonoNs) -> Result<(), ObserverError> {
        Ok(())
    }

    fn pace(&self, _: MonoNs) -> Option<SpanNs> {
        None
    }

    fn look(&mut self, _: MonoNs) {}

    fn lateness(&self) -> Distribution {
        Distribution::default()
    }

    fn complete_checkpoint(&self, _: &mut Run) {}

    fn complete(&mut self, _: &mut Run) {}
}
