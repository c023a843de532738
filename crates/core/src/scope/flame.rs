//! Where the time of long sections went, by who called whom: what a flame graph draws.

use serde::{Deserialize, Serialize};

use super::Kind;

/// The time of all long sections of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flame {
    /// What was off.
    pub kind: Kind,
    /// How many sections.
    pub sections: u64,
    /// How long they were together, ns.
    pub total_ns: u64,
    /// Calls, callers before those that they call. What took less than a two-thousandth of the whole is
    /// left out, and in its caller's total.
    pub calls: Vec<Call>,
}

/// A function, called by the same callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The function; `null` in a module, whose symbols are not known.
    pub function: Option<String>,
    /// The place in [`Flame::calls`] of the call that made this one; `null` of the outermost one that was seen
    /// in a section.
    pub caller: Option<u32>,
    /// How long its own instructions took, ns.
    pub self_ns: u64,
    /// How long it took with all that it called, ns.
    pub total_ns: u64,
}
