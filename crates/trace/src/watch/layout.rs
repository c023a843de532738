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
    pub(crate) const TENURE: usize = 3;
    pub(crate) const PID_AND_SCHEDULE: usize = 4;
    pub(crate) const WORDS: usize = 5;
}

/// `struct stay`, in words.
pub(super) mod stay {
    pub(crate) const NS: usize = 0;
    pub(crate) const CLOCK: usize = 1;
    pub(crate) const LOST: usize = 2;
    pub(crate) const STEAL: usize = 3;
    pub(crate) const THROTTLED: usize = 4;
    pub(crate) const TURNS: usize = 5;
    pub(crate) const CPU: usize = 6;
    pub(crate) const WORDS: usize = 7;
}

/// `struct long_wait`, in words.
pub(super) mod long_wait {
    use super::{stay, turn};

    pub(crate) const VERSION: usize = 0;
    pub(crate) const ASKED: usize = 1;
    pub(crate) const NS: usize = 2;
    pub(crate) const HERE: usize = 3;
    pub(crate) const AT: usize = 4;
    pub(crate) const THROTTLED_LEAST: usize = 5;
    pub(crate) const THROTTLED_MOST: usize = 6;
    pub(crate) const CGROUP: usize = 7;
    pub(crate) const COMM: usize = 8;
    pub(crate) const STAYS: usize = 10;
    /// `STAYS`
    pub(crate) const MOST_STAYS: usize = 2;
    pub(crate) const TURN: usize = STAYS + MOST_STAYS * stay::WORDS;
    pub(crate) const TURNS: usize = TURN + 1;
    /// `KEPT_TURNS`
    pub(crate) const KEPT: usize = 64;
    pub(crate) const WORDS: usize = TURNS + KEPT * turn::WORDS;
}

/// `struct waits_row`, in words.
pub(super) mod row {
    pub(crate) const SUM: usize = 0;
    pub(crate) const GENERATION: usize = 1;
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
    use super::{extremes, long_wait};

    pub(crate) const SWITCHES: usize = 0;
    pub(crate) const SUM: usize = 2;
    pub(crate) const EXTREMES: usize = 3;
    pub(crate) const IRQ: usize = EXTREMES + extremes::WORDS;
    pub(crate) const FIRST_IRQ: usize = IRQ + 1;
    pub(crate) const ASKED: usize = IRQ + 3;
    pub(crate) const LONG_WAITS: usize = IRQ + 5;
    pub(crate) const BUCKETS: usize = LONG_WAITS + BANKS + 1;
    pub(crate) const LONGEST: usize = BUCKETS + super::BUCKETS;
    /// Places in a bank, and banks.
    pub(crate) const PLACES: usize = 2;
    pub(crate) const BANKS: usize = 2;
    pub(crate) const WORDS: usize = LONGEST + BANKS * PLACES * long_wait::WORDS;
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
    pub(super) task: u64,
    pub(super) pid: u32,
    pub(super) stopped_after: u32,
}

// SAFETY: integers only, without gaps between them, for which every pattern of bits is a value.
unsafe impl Pod for TaskBooks {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::check_with_compiler;

    /// Words of structs, by the names that their fields have in C.
    #[test]
    fn layouts_are_those_of_the_program() {
        let words = [
            ("turn, clock", turn::CLOCK),
            ("turn, lost", turn::LOST),
            ("turn, steal", turn::STEAL),
            ("turn, tenure", turn::TENURE),
            ("turn, pid", turn::PID_AND_SCHEDULE),
            ("stay, ns", stay::NS),
            ("stay, clock", stay::CLOCK),
            ("stay, lost", stay::LOST),
            ("stay, steal", stay::STEAL),
            ("stay, throttled", stay::THROTTLED),
            ("stay, turns", stay::TURNS),
            ("stay, cpu", stay::CPU),
            ("long_wait, version", long_wait::VERSION),
            ("long_wait, asked", long_wait::ASKED),
            ("long_wait, ns", long_wait::NS),
            ("long_wait, here", long_wait::HERE),
            ("long_wait, at", long_wait::AT),
            ("long_wait, quota.least", long_wait::THROTTLED_LEAST),
            ("long_wait, quota.most", long_wait::THROTTLED_MOST),
            ("long_wait, whose.cgroup", long_wait::CGROUP),
            ("long_wait, whose.comm", long_wait::COMM),
            ("long_wait, stays", long_wait::STAYS),
            ("long_wait, turn", long_wait::TURN),
            ("long_wait, turns", long_wait::TURNS),
            ("waits_row, sum", row::SUM),
            ("waits_row, generation", row::GENERATION),
            ("waits_row, cgroup", row::CGROUP),
            ("waits_row, comm", row::COMM),
            ("waits_row, buckets", row::BUCKETS),
            ("extremes, max", extremes::MAX),
            ("extremes, inverted_min", extremes::INVERTED_MIN),
            ("cpu_row, switches", cpu::SWITCHES),
            ("cpu_row, sum", cpu::SUM),
            ("cpu_row, extremes", cpu::EXTREMES),
            ("cpu_row, irq", cpu::IRQ),
            ("cpu_row, first_irq", cpu::FIRST_IRQ),
            ("cpu_row, asked", cpu::ASKED),
            ("cpu_row, long_waits", cpu::LONG_WAITS),
            ("cpu_row, buckets", cpu::BUCKETS),
            ("cpu_row, longest", cpu::LONGEST),
            ("watch_counts, unstamped", count::UNSTAMPED),
            ("watch_counts, discarded", count::DISCARDED),
            ("watch_counts, untracked", count::UNTRACKED),
            ("watch_counts, first", count::FIRST),
            ("watch_counts, caught_up", count::CAUGHT_UP),
            ("watch_counts, missed", count::MISSED),
            ("watch_counts, missed_ns", count::MISSED_NS),
            ("watch_counts, moved", count::MOVED),
            ("watch_counts, moved_ns", count::MOVED_NS),
            ("watch_counts, contradicted", count::CONTRADICTED),
            ("watch_counts, asleep", count::ASLEEP),
            ("watch_counts, asleep_ns", count::ASLEEP_NS),
        ];
        let words = words.map(|(c, word)| (format!("__builtin_offsetof(struct {c})"), 8 * word));
        let sizes = [
            ("turn", turn::WORDS),
            ("stay", stay::WORDS),
            ("long_wait", long_wait::WORDS),
            ("waits_row", row::WORDS),
            ("extremes", extremes::WORDS),
            ("cpu_row", cpu::WORDS),
            ("watch_counts", count::WORDS),
        ];
        let sizes = sizes.map(|(c, words)| (format!("sizeof(struct {c})"), 8 * words));
        let values = [
            ("BUCKETS", BUCKETS),
            ("STAYS", long_wait::MOST_STAYS),
            ("KEPT_TURNS", long_wait::KEPT),
            ("LONGEST", cpu::PLACES),
            ("BANKS", cpu::BANKS),
            ("sizeof(struct task_books)", size_of::<TaskBooks>()),
        ];
        let values = values.map(|(c, value)| (c.to_string(), value));
        check_with_compiler("watch.h", words.into_iter().chain(sizes).chain(values));
    }
}
