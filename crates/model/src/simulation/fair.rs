//! The fair class: who has run least, weighted by its nice value, is next.
//!
//! What a task has run so far, weighted, is its `vruntime`. It is compared on one run queue only.

use crate::scenario::TaskPolicy;

/// How long a task may run before another is to run, nanoseconds: EEVDF's base slice.
pub(super) const SLICE_NS: u64 = 3_000_000;

/// A woken task preempts one that has had so much more, nanoseconds.
const GRANULARITY_NS: u64 = 1_000_000;

/// The weights of the nice values -20 to 19: `sched_prio_to_weight` (kernel/sched/core.c, 6.18). Each is about 1.25
/// times the next.
#[rustfmt::skip]
const WEIGHTS: [u32; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291,
    29_154, 23_254, 18_705, 14_949, 11_916,
    9_548, 7_620, 6_100, 4_904, 3_906,
    3_121, 2_501, 1_991, 1_586, 1_277,
    1_024, 820, 655, 526, 423,
    335, 272, 215, 172, 137,
    110, 87, 70, 56, 45,
    36, 29, 23, 18, 15,
];

/// What `ran` nanoseconds count: less for a task of higher weight.
pub(super) fn charged(policy: TaskPolicy, ran: u64) -> u64 {
    let TaskPolicy::Other(nice) = policy else { return 0 };
    let weight =
        |nice: i8| u128::from(WEIGHTS[usize::from((nice.clamp(-20, 19) + 20).unsigned_abs())]);
    u64::try_from(u128::from(ran) * weight(0) / weight(nice)).unwrap_or(u64::MAX)
}

/// Where a task begins that joins others, the `least` of which has run so much. It is not so far behind that
/// it would run alone for long, and what it has run more than the others is forgotten above a limit: as
/// `update_entity_lag` bounds it (kernel/sched/fair.c, 6.18).
pub(super) fn placed(policy: TaskPolicy, vruntime: u64, least: u64, tick_ns: u64) -> u64 {
    let most = least.saturating_add(charged(policy, tick_ns.max(2 * SLICE_NS)));
    vruntime.clamp(least.saturating_sub(SLICE_NS), most)
}

pub(super) fn preempts(running: u64, woken: u64) -> bool {
    running > woken.saturating_add(GRANULARITY_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_ran_counts_by_its_weight_and_to_the_nanosecond() {
        let long = 10_000_000_000_000_000;
        for (nice, ran, want) in [
            (0, long, long),
            (-20, 88_761, 1_024),
            (19, 15, 1_024),
            (1, 820, 1_024),
            (1, 819, 1_022),
            // More than a number of 53 bits holds.
            (1, long, long * 1_024 / 820),
            (-1, long, long * 1_024 / 1_277),
            (19, u64::MAX, u64::MAX),
        ] {
            assert_eq!(charged(TaskPolicy::Other(nice), ran), want, "nice {nice}, {ran} ns");
        }
        assert_eq!(charged(TaskPolicy::Fifo(1), long), 0);
        for pair in WEIGHTS.windows(2) {
            let ratio = f64::from(pair[0]) / f64::from(pair[1]);
            assert!((1.19..1.29).contains(&ratio), "{pair:?}");
        }
    }
}
