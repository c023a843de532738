//! cyclictest of rt-tests: text, samples, JSON.
//!
//! Bucket k holds what is from k to below k + 1. After a late wakeup it skips all expiries that have
//! passed, without counting them.

use wakescope_core::plan::Policy;
use wakescope_core::source::{Omission, Quantity};

use super::draft::Draft;
use super::{About, ImportError};

pub(super) mod json;
pub(super) mod text;
pub(super) mod verbose;

/// The most rows of a histogram: cyclictest's own limit.
const MOST_ROWS: u64 = 1_000_000;

/// The most threads that are read: the most CPUs that Linux can be built for.
const MOST_THREADS: u64 = 8_192;

/// The minimum of a thread that has no sample.
const NO_MINIMUM: u64 = 1_000_000;

fn draft(format: &str, about: &About) -> Draft {
    Draft::new("cyclictest", format, about, Quantity::WakeupLatency, Omission::Skipped)
}

/// The unit of a file that does not state one.
fn unit_of(draft: &mut Draft, about: &About) -> u64 {
    match about.unit {
        Some(unit) => unit.ns(),
        None => {
            draft.approximate(
                "unit: the text does not state it; µs is the program's default, ns with -N",
            );
            1_000
        }
    }
}

/// What a priority says of the policy: without one it is `SCHED_OTHER`.
fn policy_of(priority: u64) -> Option<Policy> {
    (priority == 0).then_some(Policy::Other)
}

/// A priority that is one.
fn priority(of: u64) -> Option<u8> {
    u8::try_from(of).ok().filter(|p| (1..=99).contains(p))
}

/// What is wrong with a thread, said of that thread.
fn of_thread(number: usize, why: impl std::fmt::Display) -> ImportError {
    ImportError::new(format!("thread {number}: {why}"))
}
