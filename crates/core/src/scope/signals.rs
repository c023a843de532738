//! What a CPU was at while a wakeup was late, as an oscilloscope draws it: signals side by side.

use super::Place;
use super::locks::LockKind;
use crate::explain::{NamedTask, Share};

/// The signals of one late wakeup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// When it was due, since the start of the run, ns.
    pub expiry_ns: u64,
    /// How late it was, ns.
    pub wakeup_latency_ns: u64,
    /// In order of their beginnings. Those of one kind do not overlap.
    pub slices: Vec<Slice>,
}

/// A signal from when it is on until it is off, or until the wakeup's end.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// When, since the wakeup was due, ns.
    pub at_ns: u64,
    /// How long, ns.
    pub ns: u64,
    /// Which signal, and what is known of it.
    pub what: Signal,
}

/// A signal.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// What held the wakeup up. These leave no gap.
    HeldUp(Box<Share>),
    /// Interrupts are off, from this place on, if that is known.
    IrqsOff(Place),
    /// Preemption is off, from this place on, if that is known.
    PreemptOff(Place),
    /// A hard interrupt of this name, or the way into or out of it.
    Interrupt(String),
    /// A softirq of this name.
    Softirq(String),
    /// The task that runs is to give up the CPU.
    NeedResched,
    /// The CPU's own timer is set, and has not fired.
    TimerSet,
    /// The task that has the CPU, and whether its program runs and not the kernel.
    Task(NamedTask, bool),
    /// A lock is held.
    Lock {
        /// Of several that are held at once, each has a track of its own.
        track: usize,
        /// What kind of lock.
        kind: LockKind,
        /// The variable that it is a part of.
        lock: Option<String>,
        /// Where it was taken.
        taken: Place,
    },
}

impl Signal {
    /// The place of its track among all of them.
    pub fn track(&self) -> usize {
        match self {
            Self::HeldUp(_) => 0,
            Self::IrqsOff(_) => 1,
            Self::PreemptOff(_) => 2,
            Self::Interrupt(_) => 3,
            Self::Softirq(_) => 4,
            Self::NeedResched => 5,
            Self::TimerSet => 6,
            Self::Task(..) => 7,
            Self::Lock { track, .. } => 8 + track,
        }
    }
}
