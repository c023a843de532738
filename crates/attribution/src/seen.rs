//! What a tracer found out about all wakeups of a run.

use std::collections::BTreeMap;

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{By, ComponentTable, Interference, Known, Measured, Waits, Wakeup};

use crate::abridged::Abridged;
use crate::tally::Tally;

/// What a tracer found out about all wakeups of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Late wakeups, with stolen time or without, the latest first; no more than there was room for.
    pub wakeups: Vec<Wakeup>,
    /// What their time is to be ranked by beside its causes.
    pub by: Option<By>,
    /// The others, abridged.
    pub abridged: Abridged,
    /// What all wakeups teach about each, where that is known already; `None` if it follows from
    /// `components`.
    pub known: Option<Known>,
    /// The components of all wakeups. Times of maxima are `CLOCK_MONOTONIC`.
    pub components: ComponentTable,
    /// The lateness of all wakeups.
    pub wakeup_latency: Distribution,
    /// The same without stolen time; empty where there is no clock of it.
    pub net_of_steal: Distribution,
    /// Wakeups that were handed over one by one.
    pub records: u64,
    /// Wakeups that should have been.
    pub lost_records: u64,
    /// Wakeups that could not be followed to their end.
    pub broken: u64,
    /// Wakeups of threads for which there was no room.
    pub no_room: u64,
    /// What was counted in more than one way, to be checked; `None` where that was not read.
    pub tally: Option<Tally>,
    /// What interrupts may take, for a bound; `None` where nobody asked for one.
    pub interrupts: Option<Interrupts>,
    /// Sections whose edges were seen; `None` where the kernel does not show them, or nobody asked.
    pub sections: Option<Measured>,
    /// Edges of sections were asked for, and the kernel does not show all of them.
    pub lacks_edges: bool,
    /// All waits of others' threads, counted from boot; `None` where probes were followed.
    pub waits: Option<Waits>,
    /// What was used.
    pub seen_with: Vec<String>,
    /// What this kernel does not show.
    pub not_seen: Vec<String>,
    /// The id of the kernel's build, in hexadecimal digits.
    pub build_id: Option<String>,
    /// The ids of modules' builds by their names, in hexadecimal digits.
    pub module_build_ids: BTreeMap<String, String>,
}

/// The interrupts that may fall into a wakeup, each as it was at its worst on any of the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// Interrupts, NMIs among them, and softirqs where these are not threads.
    pub each: Vec<Interference>,
    /// Whether all that came were seen.
    pub complete: bool,
}
