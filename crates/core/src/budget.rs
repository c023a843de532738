//! What one input may cost: memory and steps, the same for every format.
//!
//! A small input can stand for a large result: packed histograms, a thread per line, a table with a
//! row and a column per cell. Whoever reads one draws from its budget before it keeps an entry, and
//! before it takes steps that the length of the input does not bound. An input that exceeds its
//! budget is refused whole.

use std::cell::Cell;
use std::fmt;

use crate::units::grouped;

/// Inputs up to this length, in bytes, have the same budget; longer ones have more, in proportion.
pub const SMALL: u64 = 1_000_000;

/// Memory for the entries of a small input, in bytes. Their prices include what reports make of
/// them, so that the whole process stays below 300 MB.
pub const MEMORY: u64 = 128_000_000;

/// Steps that a small input may take beyond those that its length bounds: less than a second.
pub const STEPS: u64 = 32_000_000;

/// What is kept of an input, and the memory that it takes at most until a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// In the plural, as a message names it.
    pub name: &'static str,
    /// The price in bytes.
    pub bytes: u64,
}

impl Entry {
    /// A bucket of a histogram: it is kept as that of wakeups and of expiries, added up over threads,
    /// and written.
    pub const BUCKET: Self = Self { name: "histogram buckets", bytes: 256 };
    /// The counters of 64 neighbouring values.
    pub const COUNTERS: Self = Self { name: "counters of samples", bytes: 640 };
    /// A thread without its buckets.
    pub const THREAD: Self = Self { name: "threads", bytes: 4_096 };
    /// A slot of the course of a run.
    pub const SLOT: Self = Self { name: "slots of the maxima over time", bytes: 32 };
    /// A cause of late wakeups, by which their time is added up.
    pub const CAUSE: Self = Self { name: "causes", bytes: 512 };
    /// An event or a frame of a stack, with what is kept of the wakeup around it.
    pub const SEEN: Self = Self { name: "events and frames", bytes: 256 };
    /// A place in the table of a lab; it may hold cells or none.
    pub(crate) const PLACE: Self = Self { name: "places of its table", bytes: 512 };
}

/// What is left of memory and steps for one input.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    input: Cell<u64>,
    memory: Cell<u64>,
    steps: Cell<u64>,
}

impl Budget {
    /// The budget of an input of this length in bytes.
    pub fn of(input: u64) -> Self {
        let budget = Self::default();
        budget.input.set(input);
        budget
    }

    /// Notes that so many more bytes of the input have been read.
    pub fn read(&self, bytes: u64) {
        self.input.set(self.input.get().saturating_add(bytes));
    }

    /// Draws the memory of `count` entries.
    ///
    /// # Errors
    /// If less is left.
    pub fn keep(&self, count: u64, entry: Entry) -> Result<(), Exceeded> {
        let memory = self.memory.get().saturating_add(count.saturating_mul(entry.bytes));
        let limit = self.limit(MEMORY);
        if memory > limit {
            return Err(Exceeded { what: Need::Memory(entry), limit, input: self.input.get() });
        }
        self.memory.set(memory);
        Ok(())
    }

    /// Gives back the memory of entries that are no longer kept.
    pub fn release(&self, count: u64, entry: Entry) {
        self.memory.set(self.memory.get().saturating_sub(count.saturating_mul(entry.bytes)));
    }

    /// Draws steps, of which `what` says, in the plural, what they are taken for.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn take(&self, steps: u64, what: &'static str) -> Result<(), Exceeded> {
        let steps = self.steps.get().saturating_add(steps);
        let limit = self.limit(STEPS);
        if steps > limit {
            return Err(Exceeded { what: Need::Steps(what), limit, input: self.input.get() });
        }
        self.steps.set(steps);
        Ok(())
    }

    /// How many steps are left.
    pub fn steps_left(&self) -> u64 {
        self.limit(STEPS).saturating_sub(self.steps.get())
    }

    fn limit(&self, of_small: u64) -> u64 {
        let limit = u128::from(of_small) * u128::from(self.input.get().max(SMALL));
        u64::try_from(limit / u128::from(SMALL)).unwrap_or(u64::MAX)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Memory(Entry),
    Steps(&'static str),
}

/// That an input costs more than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    what: Need,
    limit: u64,
    input: u64,
}

impl Exceeded {
    /// What can be done.
    pub const REMEDY: &'static str = "use an input with fewer of them: shorter, of fewer CPUs, or \
                                      with wider buckets; see the limits in docs/import.md";
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = match self.input {
            ..=SMALL => "an input of up to 1 MB".to_owned(),
            more => format!("an input of {} MB", grouped(more / SMALL)),
        };
        match self.what {
            Need::Memory(Entry { name, .. }) => write!(
                f,
                "it needs more than {} MB of memory for {name}, the limit for {input}",
                grouped(self.limit / 1_000_000)
            ),
            Need::Steps(name) => {
                write!(f, "it has more than {} {name}, the limit for {input}", grouped(self.limit))
            }
        }
    }
}

impl std::error::Error for Exceeded {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_small_input_may_keep_does_not_depend_on_its_length() {
        for input in [0, 10, SMALL] {
            let budget = Budget::of(input);
            let most = MEMORY / Entry::BUCKET.bytes;
            assert_eq!(budget.keep(most, Entry::BUCKET), Ok(()));
            let refused = budget.keep(1, Entry::BUCKET).unwrap_err().to_string();
            assert_eq!(
                refused,
                "it needs more than 128 MB of memory for histogram buckets, the limit for an input \
                 of up to 1 MB"
            );
            budget.release(1, Entry::BUCKET);
            assert_eq!(budget.keep(1, Entry::BUCKET), Ok(()), "what was given back");
        }
    }

    #[test]
    fn a_larger_input_may_keep_more_in_proportion() {
        let budget = Budget::of(0);
        budget.read(20 * SMALL);
        assert_eq!(budget.keep(20 * MEMORY / Entry::THREAD.bytes, Entry::THREAD), Ok(()));
        let refused = budget.keep(1, Entry::THREAD).unwrap_err().to_string();
        assert_eq!(
            refused,
            "it needs more than 2,560 MB of memory for threads, the limit for an input of 20 MB"
        );
        assert_eq!(budget.steps_left(), 20 * STEPS);
    }

    #[test]
    fn steps_are_counted() {
        let budget = Budget::default();
        budget.take(STEPS - 1, "rows").unwrap();
        assert_eq!(budget.steps_left(), 1);
        let refused = budget.take(2, "rows").unwrap_err().to_string();
        assert_eq!(
            refused,
            "it has more than 32,000,000 rows, the limit for an input of up to 1 MB"
        );
        assert_eq!(budget.take(1, "rows"), Ok(()), "what is refused is not drawn");
        for count in [u64::MAX, u64::MAX / 2] {
            assert!(budget.keep(count, Entry::PLACE).is_err());
            assert!(budget.take(count, "rows").is_err());
        }
    }
}
