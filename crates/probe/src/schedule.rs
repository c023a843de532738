//! From the policy that a plan names to the schedule that the kernel gives.

use std::io;

use wakescope_core::plan::{Plan, ProbePolicy};
use wakescope_core::units::SpanNs;
use wakescope_sys::sched::{self, Schedule};

use crate::trial::in_own_thread;

/// The schedule that the plan asks for, or the best that this user may have where the plan only
/// states a default; then the plan is changed to say so. With it, why the default was refused.
/// The error is that of the schedule that must be and is refused.
pub fn settle_schedule(
    plan: &mut Plan,
) -> Result<(Schedule, Option<String>), (Schedule, io::Error)> {
    let wanted = schedule_of(plan);
    // Of these the kernel admits only so many, and those that were tried before count for a moment.
    if plan.policy == ProbePolicy::Deadline {
        return Ok((wanted, None));
    }
    let Err(refusal) = try_schedule(wanted) else { return Ok((wanted, None)) };
    if plan.policy_required {
        return Err((wanted, refusal));
    }
    // Audio users, for one, are often allowed real-time priorities up to some limit.
    let limit = sched::rt_priority_limit().unwrap_or(0);
    if let Some(priority) = u8::try_from(limit).ok().filter(|p| (1..=99).contains(p)) {
        let lower = Schedule::Fifo { priority };
        if try_schedule(lower).is_ok() {
            plan.priority = Some(priority);
            plan.waker = plan.waker.take().map(|waker| waker.with_probe(plan.priority));
            return Ok((lower, None));
        }
    }
    (plan.policy, plan.priority) = (ProbePolicy::Other, None);
    plan.waker = plan.waker.take().map(|waker| waker.with_probe(None));
    Ok((ordinary(), Some(format!("{}: {refusal}", words(wanted)))))
}

/// The schedule of the threads that wake probes of a settled plan.
pub(crate) fn schedule_of_waker(plan: &Plan) -> Schedule {
    let priority = plan.waker.as_ref().and_then(|waker| waker.priority).unwrap_or(1);
    match plan.policy {
        ProbePolicy::Fifo => Schedule::Fifo { priority },
        ProbePolicy::Rr => Schedule::Rr { priority },
        ProbePolicy::Other | ProbePolicy::Deadline => ordinary(),
    }
}

/// Whether this process may use `schedule`, tried on a thread that ends at once.
fn try_schedule(schedule: Schedule) -> io::Result<()> {
    in_own_thread(move || sched::set_schedule(schedule))
}

/// The ordinary schedule that this process was started under: its nice value may be one that an
/// ordinary user can raise but not lower again.
pub(crate) fn ordinary() -> Schedule {
    match sched::schedule_of(sched::this_thread()) {
        Ok(own @ (Schedule::Other { .. } | Schedule::Idle)) => own,
        _ => Schedule::Other { nice: 0 },
    }
}

/// The schedule that the plan asks for.
pub(crate) fn schedule_of(plan: &Plan) -> Schedule {
    let priority = plan.priority.unwrap_or(1);
    match plan.policy {
        ProbePolicy::Other => ordinary(),
        ProbePolicy::Fifo => Schedule::Fifo { priority },
        ProbePolicy::Rr => Schedule::Rr { priority },
        ProbePolicy::Deadline => Schedule::Deadline {
            runtime: plan.runtime().unwrap_or_default(),
            period: SpanNs(plan.interval_ns),
        },
    }
}

/// Whether a thread under `a` runs as one under `b`.
pub(crate) fn same(a: Schedule, b: Schedule) -> bool {
    match (a, b) {
        // The nice value is whatever this process was started with.
        (Schedule::Other { .. }, Schedule::Other { .. }) => true,
        _ => a == b,
    }
}

/// A schedule as people say it.
pub fn words(schedule: Schedule) -> String {
    match schedule {
        Schedule::Other { .. } => "SCHED_OTHER".into(),
        Schedule::Idle => "SCHED_IDLE".into(),
        Schedule::Fifo { priority } => format!("SCHED_FIFO {priority}"),
        Schedule::Rr { priority } => format!("SCHED_RR {priority}"),
        Schedule::Deadline { runtime, period } => format!("SCHED_DEADLINE {runtime} of {period}"),
    }
}
