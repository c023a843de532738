//! The fair class: who has run least, weighted by its nice value, is next.
//!
//! What a task has run so far, weighted, is its `vruntime`. It is compared on one run queue only.

use crate::scenario::TaskPolicy;

/// How long a task may run before another is to run, nanoseconds: EEVDF's base slice.
pub(super) const SLICE_NS: u64 = 3_000_000;

/// A woken task preempts one that has had so much more, nanoseconds.
const GRANULARITY_NS: u64 = 1_000_000;

/// What `ran` nanoseconds count: less for a task of higher weight. A nice value is a factor of 1.25.
pub(super) fn charged(policy: TaskPolicy, ran: u64) -> u64 {
    let TaskPolicy::Other(nice) = policy else { return 0 };
    if nice == 0 {
        return ran;
    }
    let charged = ran as f64 * 1.25_f64.powi(i32::from(nice));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    {
        charged as u64
    }
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
