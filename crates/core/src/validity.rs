//! From what was observed during a run to findings: every assumption behind the numbers, checked.

use crate::finding::{Finding, Severity};
use crate::host::cpu_ranges;
use crate::plan::{IdleStates, Plan, ProbePolicy};
use crate::units::{SpanNs, counted, grouped};

mod loads;
mod observed;
mod own;
mod samples;
mod threads;

pub use observed::{LeftOut, Observed, RtLimit, StimulusLost, ThreadObserved};

use Severity::{Error, Note, Warning};

/// What the user must know about a run made as `plan`, as far as it follows from what was seen
/// during the run. What follows from the machine alone comes beside it.
pub fn findings(plan: &Plan, seen: &Observed) -> Vec<Finding> {
    let mut out = Vec::new();
    privileges(plan, seen, &mut out);
    bindings(plan, seen, &mut out);
    for thread in &seen.threads {
        threads::findings(plan, thread, seen.rt_limit, &mut out);
    }
    samples::samples(plan, seen, &mut out);
    samples::wakers(plan, seen, &mut out);
    lines(seen, &mut out);
    clocks(seen, &mut out);
    surroundings(plan, seen, &mut out);
    loads::findings(seen, &mut out);
    ending(seen, &mut out);
    out
}

fn privileges(plan: &Plan, seen: &Observed, out: &mut Vec<Finding>) {
    if let Some(cause) = &seen.policy_refused {
        out.push(Finding::new(
            "unprivileged",
            Warning,
            format!(
                "the probe ran as SCHED_OTHER, not real-time ({cause}): the numbers include other \
                 tasks' time slices"
            ),
            "run as root; or: setcap cap_sys_nice,cap_ipc_lock+ep on wakescope; or use --policy \
             other if this is intended",
        ));
    } else if plan.policy == ProbePolicy::Other {
        let message = if plan.stimulus.is_busy() {
            "the loop ran as SCHED_OTHER: gaps include other tasks' time slices, so a task or load \
             beside it on the same CPU is a gap"
        } else {
            "the probe ran as SCHED_OTHER, as requested: the numbers include other tasks' time slices"
        };
        out.push(Finding::new("ordinary-task", Note, message.into(), ""));
    }
    if let Some(cause) = &seen.memory_refused {
        out.push(Finding::new(
            "memory-not-locked",
            Warning,
            format!("the probe's memory could not be locked ({cause}), so it may be paged out"),
            "run as root, or raise the limit: ulimit -l unlimited",
        ));
    }
}

/// Probes that run anywhere: of all of them in one, because there may be hundreds.
fn bindings(plan: &Plan, seen: &Observed, out: &mut Vec<Finding>) {
    let cpus: Vec<u32> = seen.threads.iter().filter(|t| !t.pinned).map(|t| t.cpu).collect();
    if cpus.is_empty() {
        return;
    }
    let (probes, them) = if cpus.len() == 1 { ("probe", "it") } else { ("probes", "them") };
    out.push(Finding::new(
        "not-pinned",
        // Whoever asks for such a task gets it. Elsewhere it is a surprise.
        if plan.stimulus.policy().is_some() { Note } else { Warning },
        format!(
            "the {} {probes} of CPU {} could not be bound to {them}, and may have run on any CPU",
            plan.policy,
            cpu_ranges(&cpus)
        ),
        "SCHED_DEADLINE tasks can be bound only where their cpuset has no other CPU; use --stimulus \
         timer --policy fifo for figures per CPU",
    ));
}

/// Of round trips over a line.
fn lines(seen: &Observed, out: &mut Vec<Finding>) {
    let Some(line) = &seen.line else { return };
    let answered = seen.threads.iter().map(|t| t.woken).sum();
    out.append(&mut line.findings(answered, seen.line_fault.as_deref()));
}

fn clocks(seen: &Observed, out: &mut Vec<Finding>) {
    let (before, after) = &seen.clocksource;
    if before != after {
        out.push(Finding::new(
            "clocksource",
            Error,
            format!("the kernel changed its clocksource from {before} to {after} during the run"),
            "see `dmesg` for the reason; measure again with the new clocksource",
        ));
    }
    if seen.slept_ns > 0 {
        out.push(Finding::new(
            "time-jump",
            Error,
            format!("the machine was suspended for {} during the run", SpanNs(seen.slept_ns)),
            "measure again, without suspend: systemd-inhibit wakescope measure …",
        ));
    }
    if seen.stops > 0 {
        out.push(Finding::new(
            "stopped",
            Error,
            format!(
                "wakescope was stopped {} during the run, for up to {}: wakeups of that time are late because of it",
                match seen.stops {
                    1 => "once".into(),
                    stops => counted(stops, "time"),
                },
                SpanNs(seen.stopped_ns)
            ),
            "measure again, without Ctrl-Z, SIGSTOP, a debugger or a frozen cgroup",
        ));
    }
    // NTP slews by 500 ppm at most (kernel/time/ntp.c, MAXFREQ); adjtime can add as much.
    if seen.clock_drift_ppm > 1_000 {
        out.push(Finding::new(
            "time-jump",
            Warning,
            format!(
                "the rate of CLOCK_MONOTONIC was at least {} ppm off that of the hardware clock",
                grouped(seen.clock_drift_ppm)
            ),
            "see what adjusts the clock (chronyc tracking, timedatectl)",
        ));
    }
}

fn surroundings(plan: &Plan, seen: &Observed, out: &mut Vec<Finding>) {
    if seen.steal_ns > 0 {
        out.push(Finding::new(
            "steal",
            Warning,
            format!(
                "the hypervisor took {} from these CPUs (steal time): maxima are partly due to \
                 the hypervisor",
                SpanNs(seen.steal_ns)
            ),
            "measure on the bare machine, or compare kernels with `wakescope lab`",
        ));
    }
    if seen.quota_stops > 0 {
        out.push(Finding::new(
            "cpu-quota",
            Warning,
            format!(
                "a CPU quota stopped this cgroup, or one above it, {}; the stops of all its CPUs add \
                 up to {}",
                counted(seen.quota_stops, "time"),
                SpanNs(seen.quota_stopped_ns)
            ),
            "raise the quota (cpu.max), or measure outside the container",
        ));
    }
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if !seen.also_measured.is_empty() {
        out.push(Finding::new(
            "busy-probe",
            Warning,
            format!(
                "by its mark, another wakescope also measures CPU {}: they disturb each other",
                list(&seen.also_measured)
            ),
            // A finding that any user can cause must not send its reader to look for a measurement that there is not.
            "measure one after the other, or on different CPUs: --cpus; if there is no other, a program of any user \
             can have set the mark, and then it disturbs nothing (@wakescope-measures-cpu-N in /proc/net/unix)",
        ));
    }
    if let Some((cpus, cause)) = &seen.unannounced {
        out.push(Finding::new(
            "unannounced",
            Note,
            format!(
                "CPU {} could not be announced as measured ({cause}): another wakescope that measures \
                 it is not noticed",
                list(cpus)
            ),
            "measure nothing else on these CPUs; too few open files: raise their limit (ulimit -n)",
        ));
    }
    if plan.idle_states == IdleStates::Shallow {
        out.push(Finding::new(
            "idle-limited",
            Note,
            "idle states were limited to the shallowest for this run, as requested: in normal \
             operation wakeups may be later"
                .into(),
            "",
        ));
    }
}

fn ending(seen: &Observed, out: &mut Vec<Finding>) {
    if let Some(cause) = &seen.ended_by {
        out.push(Finding::new(
            "interrupted",
            Note,
            format!("the run ended early: {cause}; all samples until then are recorded"),
            "",
        ));
    }
    if let Some(cause) = &seen.not_saved {
        out.push(Finding::new(
            "not-saved",
            Warning,
            format!("the run could not be saved completely: {cause}"),
            "free some space, or name another folder: --out",
        ));
    }
}

#[cfg(test)]
mod tests;
