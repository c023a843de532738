//! What the program and this crate share: the layouts of bpf/watch.h.

use aya::Pod;
use wakescope_core::watch::scale::BUCKETS;

/// The row of all that have none of their own.
pub(super) const OTHERS: u32 = 0;

/// What a kernel may lack; the other bit stands for the way to the run queue.
pub(super) const LACKS_SCHED_INFO: u32 = 1;

/// `struct waits_row`, in words.
pub(super) mod row {
    pub(crate) const SUM: usize = 0;
    pub(crate) const USED: usize = 1;
    pub(crate) const CGROUP: usize = 2;
    pub(crate) const COMM: usize = 3;
    pub(crate) const BUCKETS: usize = 5;
    pub(crate) const WORDS: usize = BUCKETS + super::BUCKETS;
}

/// `struct cpu_row`, in words.
pub(super) mod cpu {
    pub(crate) const SWITCHES: usize = 0;
    pub(crate) const SUM: usize = 3;
    pub(crate) const MAX: usize = 4;
    pub(crate) const BUCKETS: usize = 5;
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
    pub(crate) const WORDS: usize = 10;
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
}

// SAFETY: integers only, without gaps between them, for which every pattern of bits is a value.
unsafe impl Pod for TaskBooks {}
