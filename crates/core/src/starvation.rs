//! Loads that did little or nothing: whether something kept them from work.

use crate::finding::Severity;
use crate::run::LoadResult;

/// Of the least count that is not 0 by chance.
const MANY: f64 = 20.0;
/// One whose speed nobody knows must have had so long.
const LONG_NS: u64 = 5_000_000_000;
/// A pause of this length becomes a finding, however small a part of the run it is.
const NOTED_NS: u64 = 2_000_000_000;
/// A load that did nothing for one part in so many of the run, or that was slowed to one part in so many,
/// was not the one that was asked for.
const MUCH: u64 = 10;

/// Times in which no work of a load was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stall {
    /// How long the longest was at least.
    pub longest_ns: u64,
    /// How long, in all, the process of the load was stopped, at least: many short stops count as one long one
    /// does.
    pub held_up_ns: u64,
    /// Of a measured time of this length.
    pub of_ns: u64,
    /// How many pieces of work the load does in a second otherwise, counting as one what it may do at once.
    pub pieces_per_second: f64,
}

impl Stall {
    /// For how long of the measured time no work was seen, at least.
    pub(crate) fn still_ns(&self) -> u64 {
        self.longest_ns.max(self.held_up_ns)
    }

    /// How much it weighs; `None` if it is nothing to tell. A load that does a piece of work now and then
    /// does nothing in between, however long that is.
    pub fn severity(&self) -> Option<Severity> {
        let still_ns = self.still_ns();
        let is_long = is_many(self.pieces_per_second, still_ns);
        let is_part = |parts: u64| is_long && still_ns > self.of_ns / parts;
        if is_part(2) {
            Some(Severity::Error)
        } else if is_part(MUCH) {
            Some(Severity::Warning)
        } else {
            (self.longest_ns > NOTED_NS).then_some(Severity::Note)
        }
    }
}

impl LoadResult {
    /// Whether it is known to have been starved: it did nothing in a time in which it does many pieces of
    /// work otherwise. One whose speed nobody knows must have had some seconds.
    pub(crate) fn was_starved(&self) -> bool {
        match self.before_per_second {
            Some(rate) => is_many(rate, self.window_ns),
            None => self.window_ns >= LONG_NS,
        }
    }

    /// The speed from before the run, per second, if that was steady and the load fell far below it.
    pub(crate) fn slowed_from(&self) -> Option<f64> {
        let before = self.before_per_second.filter(|_| self.before_steady == Some(true))?;
        let is_slow = self.per_second < before / MUCH as f64;
        (is_slow && is_many(self.stall.pieces_per_second, self.window_ns)).then_some(before)
    }
}

/// Whether a load does many pieces of work in so long, at this speed.
fn is_many(per_second: f64, span_ns: u64) -> bool {
    per_second * span_ns as f64 / 1e9 >= MANY
}
