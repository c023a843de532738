//! A measurement as the driver and the command know it, whoever's wakeups it is about.

use std::collections::BTreeMap;

use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Finding;
use wakescope_core::host::Host;
use wakescope_core::plan::Plan;
use wakescope_core::recorder::Snapshot;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::{MonoNs, SpanNs};

use crate::load::Load;
use crate::observer::Observer;

/// What is to be measured, and beside what.
pub struct Request {
    /// The name of the run.
    pub identity: Identity,
    /// What was asked for. Every CPU of it must be one that this process may use.
    pub plan: Plan,
    /// The machine.
    pub host: Host,
    /// Findings that follow from the machine alone.
    pub host_findings: Vec<Finding>,
    /// Loads that have been started.
    pub loads: Vec<Load>,
    /// Whether the machine restarts next: then nothing that loads leave behind is removed.
    pub abandons_loads: bool,
}

/// A name for the run that is to be made.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// A name that no other run has.
    pub id: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Of everything left to chance.
    pub seed: u64,
    /// Which time this machine's clock counts.
    pub time_domain: TimeDomain,
}

/// A measurement that goes on.
pub(crate) trait Measurement {
    /// The plan as it is carried out.
    fn plan(&self) -> &Plan;
    /// Whether everything was measured, or nothing is left to measure.
    fn is_finished(&mut self) -> bool;
    /// When the measurement will be over, if nothing is late.
    fn planned_end(&self) -> MonoNs;
    /// Verifies that everything is as it should be.
    fn verify(&mut self);
    /// This process was stopped, for so long at most.
    fn was_stopped(&mut self, span: SpanNs);
    /// Hands the samples taken since the last call to `sink`.
    fn drain(&self, sink: &mut dyn SampleSink);
    /// How the measurement stands; `observer` knows of threads of others.
    fn progress(&mut self, observer: &dyn Observer) -> Progress;
    /// The run so far, as a record that stands by itself should this process be killed.
    fn checkpoint(&mut self) -> Run;
    /// Ends the measurement, now if need be: then `ended_by` says why. `sink` gets the last samples.
    fn end(self: Box<Self>, ended_by: Option<String>, sink: &mut dyn SampleSink) -> Run;
}

/// How a measurement stands, for display.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since the first expiry was due.
    pub elapsed: SpanNs,
    /// Time that it will take in all, if nothing is late.
    pub total: SpanNs,
    /// One entry per probe.
    pub cpus: Vec<CpuProgress>,
    /// The wakeup latencies of threads of others, where these are followed.
    pub followed: Option<Distribution>,
}

/// How one probe stands.
#[derive(Clone, Debug)]
pub struct CpuProgress {
    /// Its CPU.
    pub cpu: u32,
    /// The last wakeup's lateness.
    pub now_ns: u64,
    /// The largest lateness since the last look.
    pub recent_max_ns: u64,
    /// The statistics so far.
    pub seen: Snapshot,
}

/// A sample on its way to a file. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedSample {
    /// The CPU that was measured.
    pub cpu: u32,
    /// When the wakeup was due, from the start of the run.
    pub expiry_ns: u64,
    /// How late it was.
    pub wakeup_latency_ns: u64,
}

/// Where samples go that are saved.
pub trait SampleSink {
    /// Takes a sample. What cannot be kept is counted.
    fn add(&mut self, sample: SavedSample);
    /// Completes what is kept; there are no more samples.
    fn close(&mut self) -> Unsaved;
}

/// Samples that could not be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsaved {
    /// Why, if any.
    pub cause: Option<String>,
    /// How many, by CPU.
    pub lost: BTreeMap<u32, u64>,
}
