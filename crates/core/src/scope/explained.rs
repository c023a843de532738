//! What `explain` said of late wakeups, against the sections that truly held them up.

use serde::{Deserialize, Serialize};

use super::{Kind, Place};

/// The late wakeups of a cell that were compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Late wakeups of the run.
    pub late: u64,
    /// Of these, compared: those with stored events.
    pub compared: u64,
    /// Times of the tracer in these wakeups. Each is, to the nanosecond, a reading of the clock that the
    /// emulator saw.
    pub matched_times: u64,
    /// For each kind of section, the shares that are blamed on one.
    pub kinds: Vec<SharesOfKind>,
    /// Wakeups of which a section took more than half, while another cause was blamed first.
    pub section_not_first: u64,
    /// Wakeups that were blamed on a section first, which took less than half of that share.
    pub first_not_section: u64,
    /// The shares, those that differ most first.
    pub shares: Vec<ComparedShare>,
    /// Shares that are not listed: there were too many.
    pub shares_unlisted: u64,
}

/// The shares that are blamed on sections of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharesOfKind {
    /// The kind.
    pub kind: Kind,
    /// How many.
    pub shares: u64,
    /// Of these, in a section of this kind.
    pub in_section: u64,
    /// The longest of the others, ns.
    pub longest_beside_ns: Option<u64>,
    /// Of those in a section, how many are blamed on a function at an end of the section, or its caller.
    pub named: u64,
    /// By how much those in a section are longer than it held the wakeup up, ns; below zero if shorter.
    pub longer_ns: Option<Spread>,
}

/// Differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest.
    pub min: i64,
    /// As many are below it as above; the lower one of two.
    pub p50: i64,
    /// The largest.
    pub max: i64,
}

impl Spread {
    /// Of these, if there are any.
    pub fn of(mut all: Vec<i64>) -> Option<Self> {
        all.sort_unstable();
        let middle = *all.get(all.len().checked_sub(1)? / 2)?;
        Some(Self { min: *all.first()?, p50: middle, max: *all.last()? })
    }
}

/// A share that is blamed on a section, and the section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedShare {
    /// What was blamed.
    pub kind: Kind,
    /// When the wakeup was due, since the start of the run, ns.
    pub expiry_ns: u64,
    /// The length of the share, ns; with preemption off, the way to the scheduler is added.
    pub ns: u64,
    /// The function that is blamed, if one is.
    pub function: Option<String>,
    /// Whether it is what was blamed first.
    pub first: bool,
    /// The section that it is in, if it is in one.
    pub section: Option<Held>,
}

/// A section that held a wakeup up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Where it began.
    pub began: Place,
    /// Where it ended.
    pub ended: Place,
    /// How long it held the wakeup up, without interrupts that came meanwhile, ns.
    pub ns: u64,
    /// Its whole length, ns.
    pub length_ns: u64,
}
