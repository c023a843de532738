//! What the program and this crate share: the layouts of bpf/watch.h.

use aya::Pod;
use wakescope_core::watch::scale::BUCKETS;

/// The row of all that have none of their own.
pub(super) const OTHERS: u32 = 0;

/// What a kernel may lack.
pub(super) const LACKS_SCHED_INFO: u32 = 1;
pub(super) const LACKS_QUEUE: u32 = 2;
pub(super) const LACKS_IRQ_TIME: u32 = 4;
pub(super) const LACKS_STEAL_TIME: u32 = 8;
pub(super) const LACKS_THROTTLED_TIME: u32 = 16;
pub(super) const LACKS_SLEEP_IN_QUEUES: u32 = 32;

/// Shorter waits are only counted, ns: `LEAST_LONG`.
pub(super) const LEAST_LONG: u64 = 1_000_000;

/// `struct turn`, in words.
pub(super) mod turn {
    pub(crate) const CLOCK: usize = 0;
    pub(crate) const LOST: usize = 1;
    pub(crate) const STEAL: usize = 2;
    pub(crate) const CGROUP: usize = 3;
    pub(crate) const COMM: usize = 4;
    pub(crate) const PID_AND_PRIO: usize = 6;
    pub(crate) const POLICY_AND_IRQ: usize = 7;
    pub(crate) const WORDS: usize = 8;
    /// `TURNS`
    pub(crate) const COUNT: usize = 64;
    /// The number of a task that is not known.
    pub(crate) const NOBODY: u32 = u32::MAX;
}

/// `struct long_wait`, in words.
pub(super) mod long_wait {
    use super::turn;

    pub(crate) const VERSION: usize = 0;
    pub(crate) const NS: usize = 1;
    pub(crate) const HERE: usize = 2;
    pub(crate) const AT: usize = 3;
    pub(crate) const THROTTLED_LEAST: usize = 4;
    pub(crate) const THROTTLED_MOST: usize = 5;
    pub(crate) const SEEN: usize = 6;
    pub(crate) const TURNS: usize = 7;
    pub(crate) const WORDS: usize = TURNS + turn::COUNT * turn::WORDS;
}

/// `struct cpu_turns`, in words.
pub(super) mod cpu_turns {
    use super::{long_wait, turn};

    pub(crate) const ASKED: usize = 0;
    pub(crate) const LONG_WAITS: usize = 2;
    pub(crate) const SEEN: usize = 4;
    pub(crate) const FIRST_IRQ: usize = 5;
    pub(crate) const TURNS: usize = 7;
    pub(crate) const LONGEST: usize = TURNS + turn::COUNT * turn::WORDS;
    /// Places in a bank, and banks.
    pub(crate) const PLACES: usize = 2;
    pub(crate) const BANKS: usize = 2;
    pub(crate) const WORDS: usize = LONGEST + BANKS * PLACES * long_wait::WORDS;
}

/// `struct waits_row`, in words.
pub(super) mod row {
    pub(crate) const SUM: usize = 0;
    pub(crate) const USED: usize = 1;
    pub(crate) const CGROUP: usize = 2;
    pub(crate) const COMM: usize = 3;
    pub(crate) const BUCKETS: usize = 5;
    pub(crate) const WORDS: usize = BUCKETS + super::BUCKETS;
}

/// `struct extremes`, in words.
pub(super) mod extremes {
    pub(crate) const MAX: usize = 0;
    pub(crate) const INVERTED_MIN: usize = 1;
    pub(crate) const WORDS: usize = 2;
}

/// `struct cpu_row`, in words.
pub(super) mod cpu {
    pub(crate) const SWITCHES: usize = 0;
    pub(crate) const SUM: usize = 3;
    pub(crate) const EXTREMES: usize = 4;
    pub(crate) const BUCKETS: usize = EXTREMES + super::extremes::WORDS;
    pub(crate) const WORDS: usize = BUCKETS + super::BUCKETS;
}

/// `struct watch_counts`, in words.
pub(super) mod count {
    pub(crate) const UNSTAMPED: usize = 0;
    pub(crate) const DISCARDED: usize = 1;
    pub(crate) const UNTRACKED: usize = 2;
    pub(crate) const FIRST: usize = 3;
    pub(crate) const CAUGHT_UP: usize = 4;
    pub(crate) const MISSED: usize = 5;
    pub(crate) const MISSED_NS: usize = 6;
    pub(crate) const MOVED: usize = 7;
    pub(crate) const MOVED_NS: usize = 8;
    pub(crate) const CONTRADICTED: usize = 9;
    pub(crate) const ASLEEP: usize = 10;
    pub(crate) const ASLEEP_NS: usize = 11;
    pub(crate) const WORDS: usize = 12;
}

/// `struct task_books`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskBooks {
    pub(super) run_delay: u64,
    pub(super) arrivals: u64,
    pub(super) run_delay_before: u64,
    pub(super) arrivals_before: u64,
    pub(super) count: u64,
    pub(super) sum: u64,
    pub(super) row: u32,
    pub(super) unstamped: u32,
    pub(super) queue: u64,
    pub(super) throttled: u64,
    pub(super) sleeps: u64,
    pub(super) moves: u64,
    pub(super) pid: u32,
    pub(super) unused: u32,
}

// SAFETY: integers only, without gaps between them, for which every pattern of bits is a value.
unsafe impl Pod for TaskBooks {}
