//! Loads that did nothing: whether something kept them from work.

use crate::run::LoadResult;

impl LoadResult {
    /// Whether it is known to have been starved: it did nothing in a time in which it does many pieces of
    /// work otherwise. One whose speed nobody knows must have had some seconds.
    pub fn was_starved(&self) -> bool {
        /// Of the least count that is not 0 by chance.
        const MANY: f64 = 20.0;
        const LONG_NS: u64 = 5_000_000_000;
        match self.before_per_second {
            Some(rate) => rate * self.window_ns as f64 / 1e9 >= MANY,
            None => self.window_ns >= LONG_NS,
        }
    }
}
