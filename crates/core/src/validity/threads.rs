//! Findings of one probe thread.

use super::{RtLimit, StimulusLost, ThreadObserved, own};
use crate::finding::{Finding, Severity};
use crate::plan::{Plan, ProbePolicy, Stimulus};
use crate::units::{SpanNs, counted, one_or_many};

use Severity::{Error, Note, Warning};

/// Of threads that were moved.
const MOVER: &str = "find the tool that moves tasks, such as a cpuset manager (irqbalance does not), stop it and \
                     measure again";

/// A phase that is not known better than that is worth a new measurement: a call takes about 1 µs.
const WIDE_PHASE_NS: u64 = 10_000;

/// What the user must know about the samples of one thread. See [`super::Observed`] for `rt_limit`.
pub(super) fn findings(
    plan: &Plan,
    t: &ThreadObserved,
    rt_limit: Option<RtLimit>,
    out: &mut Vec<Finding>,
) {
    early_end(plan, t, out);
    changes_by_others(plan, t, out);
    times(plan, t, out);
    own_delays(plan, t, out);
    throttling(plan, t, rt_limit, out);
    own::out_of_runtime(plan, t, out);
    own::coarse_loop(plan, t, out);
    own::compute_time(plan, t, out);
    missing_samples(t, out);
}

/// Adds findings to `out`.
fn adding(out: &mut Vec<Finding>) -> impl FnMut(&'static str, Severity, String, &str) {
    |code, severity, message, hint| out.push(Finding::new(code, severity, message, hint))
}

/// What its samples are called.
fn sample_of(plan: &Plan) -> &'static str {
    if plan.stimulus.is_busy() { "gap" } else { "wakeup" }
}

/// What ended it before its time.
fn early_end(plan: &Plan, t: &ThreadObserved, out: &mut Vec<Finding>) {
    let cpu = t.cpu;
    let sample = sample_of(plan);
    let mut add = adding(out);
    if let Some(failure) = &t.failure {
        add("no-samples", Error, format!("the probe on CPU {cpu} ended: {failure}"), "");
    }
    if let Some(at_ns) = t.cpu_lost_at_ns {
        add(
            "cpu-lost",
            Warning,
            format!(
                "CPU {cpu} became unavailable {} into the run; its {} until then {} kept",
                SpanNs(at_ns),
                counted(t.woken, sample),
                one_or_many(t.woken, "is", "are")
            ),
            "see why it was taken offline, or measure other CPUs: --cpus",
        );
    }
    if let Some(StimulusLost { code, at_ns, why }) = &t.stimulus_lost {
        add(
            code,
            Warning,
            format!(
                "nothing could wake the probe on CPU {cpu} after {}: {why}; its {} until then {} kept",
                SpanNs(*at_ns),
                counted(t.woken, "wakeup"),
                one_or_many(t.woken, "is", "are")
            ),
            "see what ended it, and measure again",
        );
    }
}

/// What other programs changed of it.
fn changes_by_others(plan: &Plan, t: &ThreadObserved, out: &mut Vec<Finding>) {
    let cpu = t.cpu;
    let sample = sample_of(plan);
    let mut add = adding(out);
    for (what, other) in [
        (format!("the probe on CPU {cpu}"), &t.other_schedule),
        (format!("the waker of the probe on CPU {cpu}"), &t.other_waker_schedule),
    ] {
        let Some(other) = other else { continue };
        add(
            "policy",
            Error,
            format!("{what} ran under {other}, not as requested: another program changed it"),
            "find the tool that changes priorities (rtkit, tuned, ananicy), stop it and measure \
             again",
        );
    }
    if t.migrated > 0 {
        add(
            "migrated",
            Error,
            format!("{} of CPU {cpu} happened on another CPU", counted(t.migrated, sample)),
            MOVER,
        );
    }
    if t.waker_moved > 0 {
        add(
            "waker-moved",
            Error,
            format!(
                "the waker of the probe on CPU {cpu} was found on another CPU {}: wakeups from there \
                 are of another kind",
                counted(t.waker_moved, "time")
            ),
            MOVER,
        );
    }
}

/// Whether its times are right.
fn times(plan: &Plan, t: &ThreadObserved, out: &mut Vec<Finding>) {
    let cpu = t.cpu;
    let mut add = adding(out);
    if t.early > 0 && plan.stimulus.is_busy() {
        add(
            "early",
            Error,
            format!("the clock of CPU {cpu} went backwards {}", counted(t.early, "time")),
            "check `dmesg` for clocksource messages",
        );
    } else if t.early > 0 {
        add(
            "early",
            Error,
            format!(
                "{} on CPU {cpu} came before {} expiry: its clock or timer is wrong",
                counted(t.early, "wakeup"),
                one_or_many(t.early, "its", "their")
            ),
            "check `dmesg` for clocksource messages",
        );
    }
    if t.due_uncertainty_ns > 0 {
        let wide = t.due_uncertainty_ns > WIDE_PHASE_NS;
        add(
            "rtc-phase",
            if wide { Warning } else { Note },
            format!(
                "latencies on CPU {cpu} are overstated, all by the same time between 0 and {}",
                SpanNs(t.due_uncertainty_ns)
            ),
            if wide {
                "measure again; the interrupt was switched on in a disturbed moment"
            } else {
                ""
            },
        );
    }
}

/// What delays it that a real-time thread with locked memory has not.
fn own_delays(plan: &Plan, t: &ThreadObserved, out: &mut Vec<Finding>) {
    let cpu = t.cpu;
    let mut add = adding(out);
    if t.major_faults + t.minor_faults > 0 {
        add(
            "page-faults",
            Warning,
            format!(
                "the loop on CPU {cpu} took {}, {} of them from a disk",
                counted(t.major_faults + t.minor_faults, "page fault"),
                t.major_faults
            ),
            "allow the probe to lock its memory (root, or ulimit -l unlimited)",
        );
    }
    if t.slack_ns > 1 && plan.policy == ProbePolicy::Other {
        add(
            "timer-slack",
            Warning,
            format!(
                "the kernel may fire the timers of CPU {cpu}'s probe {} late on purpose",
                SpanNs(t.slack_ns)
            ),
            "the slack could not be switched off; measure with a real-time policy, which has none",
        );
    }
}

/// Whether it needs so much of its CPU that the kernel stops it.
///
/// The kernel counts what real-time tasks use of a period, and stops them once that is their runtime. A probe that has
/// used less in all was far from it, whatever share of its few milliseconds that was: in a run of one sample it
/// hardly sleeps.
fn throttling(plan: &Plan, t: &ThreadObserved, rt_limit: Option<RtLimit>, out: &mut Vec<Finding>) {
    let cpu = t.cpu;
    let mut add = adding(out);
    let is_near = |limit: RtLimit| {
        let share_ppm = limit.runtime_ns.saturating_mul(1_000_000).checked_div(limit.period_ns);
        let near = |used: u64, most: u64| used >= most / 10 * 9;
        near(t.cpu_ns, limit.runtime_ns)
            && share_ppm.is_some_and(|share_ppm| near(t.cpu_share_ppm, share_ppm))
    };
    if rt_limit.filter(|_| plan.policy.has_priority()).is_some_and(is_near) {
        add(
            "rt-throttling",
            Warning,
            format!(
                "the probe used {} % of CPU {cpu}, near the limit at which the kernel throttles \
                 real-time tasks",
                t.cpu_share_ppm / 10_000
            ),
            match plan.stimulus {
                Stimulus::Spin => "omit --policy",
                Stimulus::Audio => "use a smaller --share",
                _ => "use a longer --interval",
            },
        );
    }
}

/// Whether it has samples, and the sample file all of them.
fn missing_samples(t: &ThreadObserved, out: &mut Vec<Finding>) {
    let cpu = t.cpu;
    let mut add = adding(out);
    // A loop that ran and was never interrupted is the best there is.
    if t.woken == 0 && t.failure.is_none() && t.loops == 0 {
        add(
            "no-samples",
            Error,
            format!("CPU {cpu} gave no sample"),
            "measure longer, or with a shorter --interval",
        );
    }
    if t.lost > 0 {
        add(
            "lost-samples",
            Warning,
            format!(
                "{} of CPU {cpu} {} missing from the sample file; the histogram has {}",
                counted(t.lost, "sample"),
                one_or_many(t.lost, "is", "are"),
                one_or_many(t.lost, "it", "them")
            ),
            "write to a faster disk, or use a longer --interval",
        );
    }
}
