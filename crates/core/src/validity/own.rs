//! Findings that belong to one stimulus.

use super::ThreadObserved;
use crate::finding::{Finding, Severity};
use crate::plan::Plan;
use crate::units::{SpanNs, counted};

use Severity::{Note, Warning};

/// Of a loop that never sleeps: whether its own pace is short against what counts as a gap.
pub(super) fn coarse_loop(plan: &Plan, t: &ThreadObserved, out: &mut Vec<Finding>) {
    let Some(from_ns) = plan.gap_from_ns.filter(|_| t.loops > 0) else { return };
    let quiet = (t.observed_ns.saturating_sub(t.gaps_ns)).checked_div(t.loops - t.woken);
    let pace_ns = quiet.unwrap_or(t.observed_ns / t.loops);
    if t.woken * 2 > t.loops || pace_ns * 2 > from_ns {
        let pace = SpanNs(if t.woken * 2 > t.loops { t.observed_ns / t.loops } else { pace_ns });
        out.push(Finding::new(
            "coarse-loop",
            Warning,
            format!(
                "one turn of the loop on CPU {} takes {pace}, and a gap counts from {}: some gaps \
                 are the loop's own",
                t.cpu,
                SpanNs(from_ns)
            ),
            "raise --gap-from; see `wakescope check` for what reading the clock costs",
        ));
    }
}

/// Of a `SCHED_DEADLINE` probe: whether it could run until it slept each time. The kernel counts how
/// often a thread lost the CPU, and not why.
pub(super) fn out_of_runtime(plan: &Plan, t: &ThreadObserved, out: &mut Vec<Finding>) {
    let Some(runtime) = plan.runtime().filter(|_| t.preempted > 0) else { return };
    out.push(Finding::new(
        "out-of-runtime",
        // Now and then a kernel thread that stops a CPU comes first.
        if t.preempted > t.woken / 1_000 { Warning } else { Note },
        format!(
            "the probe on CPU {} lost the CPU {} before it slept again: it had used up its runtime \
             of {runtime}, so that the kernel stopped it until the next period, or something more \
             urgent ran. Wakeups after that are later for it",
            t.cpu,
            counted(t.preempted, "time")
        ),
        "use a larger --runtime; if that changes nothing, look for other SCHED_DEADLINE tasks",
    ));
}

/// Of an audio program: whether it computed for the time asked for. It was calibrated on a CPU that
/// nobody else used.
pub(super) fn compute_time(plan: &Plan, t: &ThreadObserved, out: &mut Vec<Finding>) {
    let (Some(audio), Some(took_ns)) = (plan.audio, t.compute_ns) else { return };
    let asked_ns = audio.compute_ns();
    if took_ns.abs_diff(asked_ns) > asked_ns / 10 {
        out.push(Finding::new(
            "compute-time",
            Warning,
            format!(
                "the median fragment on CPU {} took {} to compute, not {}: the CPU was slower or \
                 faster than when this was calibrated, or shared",
                t.cpu,
                SpanNs(took_ns),
                SpanNs(asked_ns)
            ),
            "see `governor`, `steal` and the load; overruns may be due to computing, not to wakeups",
        ));
    }
}
