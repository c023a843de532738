//! Sections of a guest's kernel that no task could run in, each with both of its ends, as the emulator
//! saw them.

use serde::{Deserialize, Serialize};

pub mod edges;
pub mod explained;
mod faults;
pub mod first_blame;
pub mod flame;
pub mod locks;
pub mod signals;

use explained::Explained;
use first_blame::FirstBlame;
use flame::Flame;
use locks::Locks;

use crate::distribution::Distribution;
use crate::run::Episode;
use crate::unknown::{Unknown, keep_unknown};

/// What a record of these says it is.
pub const SCHEMA: &str = "wakescope.scope/1";

/// The sections of one run of a guest, by where they began and ended. All times are virtual.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Scope {
    /// [`SCHEMA`].
    pub schema: String,
    /// The key of the cell, whose result this run repeated to the bit.
    pub cell: String,
    /// What the cell is called: its kernel, preemption model, load and seed.
    pub label: String,
    /// How long the time was in which sections began that are counted, ns.
    pub window_ns: u64,
    /// How many sections are in [`Self::rows`].
    pub sections: u64,
    /// Sections that were seen and are in no row: there were too many different ones.
    pub sections_lost: u64,
    /// Sections above the length from which on they are listed that are not in [`Self::longest`]: there
    /// were too many.
    pub sections_unlisted: u64,
    /// Sections whose callers could not be read.
    pub callers_lost: u64,
    /// The largest difference between the guest's clock and the instructions that were counted, between
    /// two readings of the clock in [`Self::window_ns`], ns. Lengths are known to this.
    pub drift_ns: u64,
    /// Whether calls can be followed back: without the kernel's unwind tables they cannot.
    pub has_callers: bool,
    /// Whether the kernel's preempt count has no part for code that turns preemption off, as without
    /// `CONFIG_PREEMPT_COUNT`: of preemption off, only softirqs and interrupts were seen.
    #[serde(default)]
    pub preempt_count_partial: bool,
    /// Longest first.
    pub rows: Vec<Row>,
    /// Where the time of long sections went, by who called whom, of each kind that had any; empty if that was
    /// not followed.
    #[serde(default)]
    pub flames: Vec<Flame>,
    /// Single sections above a length, longest first.
    pub longest: Vec<Section>,
    /// Of a cell that was run with `--explain`: what it said of its late wakeups, against the sections
    /// that were seen.
    pub explained: Option<Explained>,
    /// Why there is no such comparison, although the cell explained its late wakeups.
    pub not_compared: Option<String>,
    /// The latest wakeups of the cell, worst first: why each was late, as the emulator saw it. Nothing of
    /// them is unexplained.
    #[serde(default)]
    pub episodes: Vec<Episode>,
    /// Why there are none, although some were asked for.
    pub no_episodes: Option<String>,
    /// Whether it was seen when the CPU's own timer fired. If not, what is called delivery in episodes begins when
    /// a wakeup was due.
    #[serde(default)]
    pub sees_timer: bool,
    /// Of a cell that was run with `--explain`: what it blamed first for these and the other latest wakeups,
    /// against what was seen of them.
    #[serde(default)]
    pub first_blame: Option<FirstBlame>,
    /// Who held locks for how long; `null` if that was not followed.
    #[serde(default)]
    pub locks: Option<Locks>,
    /// Keys that this version does not know. They are kept.
    #[serde(skip)]
    pub other: Unknown,
}

keep_unknown!(Scope);

impl Scope {
    /// Reads a record.
    ///
    /// # Errors
    /// If it is not one, is of another schema, or contradicts itself.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let scope: Self = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        if scope.schema != SCHEMA {
            return Err(format!("its schema is not {SCHEMA}"));
        }
        match scope.fault() {
            None => Ok(scope),
            Some(fault) => Err(format!("it contradicts itself: {fault}")),
        }
    }

    /// The record as JSON.
    pub fn to_json(&self) -> String {
        // Maps have string keys and numbers are finite: there is nothing that could fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// All sections that begin at one place and end at another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was off.
    pub kind: Kind,
    /// Where they began.
    pub began: Place,
    /// Where they ended.
    pub ended: Place,
    /// How long they were. The edges of the buckets are a sixteenth of a power of two apart.
    pub lengths: Distribution,
    /// Where the time of the long ones among them went; `null` if that was not followed, or none was long.
    pub spent: Option<Spent>,
}

/// In which functions the time of sections went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// How many sections were long enough to be followed.
    pub sections: u64,
    /// How long they were together, ns: the sum of [`Self::functions`].
    pub total_ns: u64,
    /// The most time first, each without what it called.
    pub functions: Vec<TimeIn>,
}

/// The time in a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeIn {
    /// The function; `null` for all whose names are not known: those of modules.
    pub function: Option<String>,
    /// How long, ns.
    pub ns: u64,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// What was off.
    pub kind: Kind,
    /// Where it began.
    pub began: Place,
    /// Where it ended.
    pub ended: Place,
    /// When, since the machine was turned on, ns.
    pub begin_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
}

/// What no task could run because of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Interrupts were off.
    IrqsOff,
    /// The preempt count was above zero: preemption or softirqs off, or an interrupt.
    PreemptOff,
}

impl Kind {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::IrqsOff, Self::PreemptOff];
}

/// A place in the kernel's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The function; `null` in a module, whose symbols are not known.
    pub function: Option<String>,
    /// What called it; `null` if that is not known, or nothing did.
    pub caller: Option<String>,
}
