//! From what was observed during a run to findings: every assumption behind the numbers, checked.

use crate::finding::{Finding, Severity};
use crate::host::cpu_ranges;
use crate::limit::Limit;
use crate::line::Line;
use crate::plan::{IdleStates, Plan, ProbePolicy, Stimulus};
use crate::run::LoadResult;
use crate::units::{SpanNs, counted, grouped, one_or_many};

mod own;

use Severity::{Error, Note, Warning};

const SECOND_NS: u64 = 1_000_000_000;

/// A phase that is not known better than that is worth a new measurement: a call takes about 1 µs.
const WIDE_PHASE_NS: u64 = 10_000;

/// What was seen while measuring, beside the samples. Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// One entry per probe thread.
    pub threads: Vec<ThreadObserved>,
    /// Why the default policy was not used, if it could not be.
    pub policy_refused: Option<String>,
    /// Why memory could not be locked, if so.
    pub memory_refused: Option<String>,
    /// Time that the hypervisor took from the measured CPUs.
    pub steal_ns: u64,
    /// How long the machine slept.
    pub slept_ns: u64,
    /// How much faster or slower than its hardware the clock ran, in parts per million.
    pub clock_drift_ppm: u64,
    /// The clocksource at the start and at the end.
    pub clocksource: (String, String),
    /// How often, and how long, a cgroup's CPU quota stopped this process or its loads.
    pub quota_stops: u64,
    /// See `quota_stops`.
    pub quota_stopped_ns: u64,
    /// Measured CPUs that another wakescope measures too.
    pub also_measured: Vec<u32>,
    /// What the loads did.
    pub loads: Vec<LoadResult>,
    /// What was left out of the requested loads.
    pub left_out: Vec<LeftOut>,
    /// Loads that stopped working for a while: name, and the longest such time.
    pub stalls: Vec<(String, u64)>,
    /// What ended the run early.
    pub ended_by: Option<String>,
    /// The line, if bytes went over one.
    pub line: Option<Line>,
    /// Why the line was lost, if it was.
    pub line_fault: Option<String>,
    /// Why the run could not be saved completely.
    pub not_saved: Option<String>,
    /// Share of the CPU that real-time tasks may use before they are throttled, in parts per
    /// million; `None` where nothing throttles them.
    pub rt_share_ppm: Option<u64>,
}

/// A part of the requested load that could not run on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// What was left out: a load of a group, or a part of a load.
    pub part: String,
    /// The group or load.
    pub of: String,
    /// Why it could not run.
    pub reason: String,
}

/// What was seen of one probe thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadObserved {
    /// The CPU asked for.
    pub cpu: u32,
    /// Whether the thread was bound to it.
    pub pinned: bool,
    /// Wakeups.
    pub woken: u64,
    /// Expiries without a wakeup of their own.
    pub missed: u64,
    /// Wakeups on another CPU.
    pub migrated: u64,
    /// Wakeups before their time.
    pub early: u64,
    /// Stimuli that came before the thread slept.
    pub not_asleep: u64,
    /// Stimuli that were left out, since the waker was late itself.
    pub skipped: u64,
    /// How much later than stated wakeups may have been due.
    pub due_uncertainty_ns: u64,
    /// How often a loop that never sleeps read the clock, and within which time.
    pub loops: u64,
    /// See `loops`.
    pub observed_ns: u64,
    /// The sum of its gaps.
    pub gaps_ns: u64,
    /// What computing a fragment of audio took in the median.
    pub compute_ns: Option<u64>,
    /// Samples that could not be written to the sample file.
    pub lost: u64,
    /// Page faults in the loop, served from memory.
    pub minor_faults: u64,
    /// Page faults in the loop, served from a disk.
    pub major_faults: u64,
    /// Schedules other than the one asked for that were in force, in words.
    pub other_schedule: Option<String>,
    /// Timer slack in force.
    pub slack_ns: u64,
    /// How often something else took the CPU from it while it ran.
    pub preempted: u64,
    /// CPU time that the loop used, in parts per million of its duration.
    pub cpu_share_ppm: u64,
    /// When its CPU went away, from the start of the run.
    pub cpu_lost_at_ns: Option<u64>,
    /// When, from the start of the run, and why nothing could wake it any more.
    pub stimulus_lost: Option<(u64, String)>,
    /// Why the loop ended with an error.
    pub failure: Option<String>,
}

/// What the user must know about a run made as `plan`, as far as it follows from what was seen
/// during the run. What follows from the machine alone comes beside it.
pub fn findings(plan: &Plan, seen: &Observed) -> Vec<Finding> {
    let mut out = Vec::new();
    privileges(plan, seen, &mut out);
    bindings(plan, seen, &mut out);
    for thread in &seen.threads {
        thread_findings(plan, thread, seen.rt_share_ppm, &mut out);
    }
    samples(plan, seen, &mut out);
    wakers(plan, seen, &mut out);
    lines(seen, &mut out);
    clocks(seen, &mut out);
    surroundings(plan, seen, &mut out);
    loads(seen, &mut out);
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
    } else if plan.policy == ProbePolicy::Other && plan.stimulus.is_busy() {
        out.push(Finding::new(
            "unprivileged",
            Note,
            "the loop ran as SCHED_OTHER: gaps include other tasks' time slices, so a task or load \
             beside it on the same CPU is a gap"
                .into(),
            "",
        ));
    } else if plan.policy == ProbePolicy::Other {
        out.push(Finding::new(
            "unprivileged",
            Note,
            "the probe ran as SCHED_OTHER, as requested: the numbers include other tasks' time \
             slices"
                .into(),
            "",
        ));
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

fn thread_findings(
    plan: &Plan,
    t: &ThreadObserved,
    rt_share_ppm: Option<u64>,
    out: &mut Vec<Finding>,
) {
    let cpu = t.cpu;
    let sample = if plan.stimulus.is_busy() { "gap" } else { "wakeup" };
    let mut add =
        |code, severity, message, hint| out.push(Finding::new(code, severity, message, hint));
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
    if let Some((at_ns, why)) = &t.stimulus_lost {
        let is_card = plan.audio.is_some_and(|audio| audio.pcm.is_some());
        add(
            if is_card { "card-lost" } else { "waker-lost" },
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
    if let Some(other) = &t.other_schedule {
        add(
            "policy",
            Error,
            format!(
                "the probe on CPU {cpu} ran under {other}, not as requested: another program \
                 changed it"
            ),
            "find the tool that changes priorities (rtkit, tuned, ananicy), stop it and measure \
             again",
        );
    }
    if t.migrated > 0 {
        add(
            "migrated",
            Error,
            format!("{} of CPU {cpu} happened on another CPU", counted(t.migrated, sample)),
            "find the tool that moves tasks, such as a cpuset manager (irqbalance does not), stop \
             it and measure again",
        );
    }
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
    let throttled_at = rt_share_ppm.filter(|_| plan.policy.has_priority());
    if throttled_at.is_some_and(|share| t.cpu_share_ppm >= share / 10 * 9) {
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
    own::out_of_runtime(plan, t, out);
    own::coarse_loop(plan, t, out);
    own::compute_time(plan, t, out);
    let mut add =
        |code, severity, message, hint| out.push(Finding::new(code, severity, message, hint));
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

fn samples(plan: &Plan, seen: &Observed, out: &mut Vec<Finding>) {
    let missed: u64 = seen.threads.iter().map(|t| t.missed).sum();
    let expiries = missed + seen.threads.iter().map(|t| t.woken).sum::<u64>();
    if missed * 10 > expiries {
        out.push(Finding::new(
            "overload",
            Warning,
            format!(
                "{} of {} had no wakeup of {} own: {} is short for what runs here",
                grouped(missed),
                counted(expiries, "period"),
                one_or_many(missed, "its", "their"),
                SpanNs(plan.interval_ns)
            ),
            "use a longer --interval, unless these stalls are of interest",
        ));
    }
    for limit in plan.fail_above.iter().filter_map(|text| text.parse::<Limit>().ok()) {
        let Some(percentile) = limit.percentile else { continue };
        if !percentile.is_carried_by(expiries) {
            let need = percentile.samples_needed();
            let cpus = (plan.cpus.len() as u64).max(1);
            let needed_ns = need.div_ceil(cpus).saturating_mul(plan.interval_ns);
            // Up to a whole second: fewer samples would not do.
            let span = SpanNs(needed_ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS));
            out.push(Finding::new(
                "few-samples",
                Warning,
                format!(
                    "{} {} too few for {percentile}, which needs {}",
                    counted(expiries, "sample"),
                    one_or_many(expiries, "is", "are"),
                    grouped(need)
                ),
                &match plan.interval_ns {
                    0 => "measure longer".to_owned(),
                    _ => format!("measure for at least --duration {}", span.as_argument()),
                },
            ));
        }
    }
}

/// Of wakeups by another thread: those that were none.
fn wakers(plan: &Plan, seen: &Observed, out: &mut Vec<Finding>) {
    let sum = |of: fn(&ThreadObserved) -> u64| seen.threads.iter().map(of).sum::<u64>();
    let (woken, not_asleep) = (sum(|t| t.woken), sum(|t| t.not_asleep));
    let skipped = sum(|t| t.skipped);
    if not_asleep > 0 && plan.audio.is_some() {
        out.push(Finding::new(
            "not-asleep",
            Note,
            format!(
                "at {} of {} there was room in the buffer already: the probe was behind, so they \
                 are no wakeups",
                grouped(not_asleep),
                counted(woken + not_asleep, "wait"),
            ),
            "see the cycles of the fragments, which have all of them",
        ));
    } else if not_asleep > 0 {
        let calls = woken + not_asleep;
        out.push(Finding::new(
            "not-asleep",
            // A waker that now and then finds the probe awake is not to be avoided.
            if not_asleep > calls / 100 { Warning } else { Note },
            format!(
                "{} of {} found the probe still awake: no wakeup, and no sample",
                grouped(not_asleep),
                counted(calls, "wakeup call"),
            ),
            "use a longer --interval",
        ));
    }
    if skipped > 0 {
        let points = woken + not_asleep + skipped;
        out.push(Finding::new(
            "late-waker",
            if skipped > points / 10 { Warning } else { Note },
            format!(
                "{} of {} {} left out, because the waker was late itself: what delayed it may \
                 have delayed wakeups too, and is not in the figures",
                grouped(skipped),
                counted(points, "wakeup call"),
                one_or_many(skipped, "was", "were"),
            ),
            "use a longer --interval, or measure --stimulus timer as well, whose latency includes \
             such delays",
        ));
    }
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
    if seen.slept_ns >= 1_000_000 {
        out.push(Finding::new(
            "time-jump",
            Error,
            format!("the machine was suspended for {} during the run", SpanNs(seen.slept_ns)),
            "measure again, without suspend: systemd-inhibit wakescope measure …",
        ));
    }
    // NTP slews by 500 ppm at most (kernel/time/ntp.c, MAXFREQ); adjtime can add as much.
    if seen.clock_drift_ppm > 1_000 {
        out.push(Finding::new(
            "time-jump",
            Warning,
            format!(
                "the rate of CLOCK_MONOTONIC was {} ppm off that of the hardware clock",
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
                "a CPU quota stopped this cgroup {}, for {} in all",
                counted(seen.quota_stops, "time"),
                SpanNs(seen.quota_stopped_ns)
            ),
            "raise the quota (cpu.max), or measure outside the container",
        ));
    }
    if !seen.also_measured.is_empty() {
        let cpus: Vec<String> = seen.also_measured.iter().map(u32::to_string).collect();
        out.push(Finding::new(
            "busy-probe",
            Warning,
            format!(
                "another wakescope also measures CPU {}: they disturb each other",
                cpus.join(", ")
            ),
            "measure one after the other, or on different CPUs: --cpus",
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

fn loads(seen: &Observed, out: &mut Vec<Finding>) {
    for load in &seen.loads {
        if !load.alive {
            out.push(Finding::new(
                "load-died",
                Error,
                format!("the load {} ended before the run did: {}", load.name, load.fault),
                "part of the run was measured without it; see why it ended, and measure again",
            ));
        } else if load.work == 0 && !load.was_starved() {
            out.push(Finding::new(
                "load-unfinished",
                Warning,
                format!(
                    "the load {} worked, but completed no whole unit of work during the run",
                    load.name
                ),
                "measure longer; this run does not tell how much work the load did",
            ));
        } else if load.work == 0 {
            out.push(Finding::new(
                "load-died",
                Error,
                format!("the load {} did no work during the run", load.name),
                "measure longer, or find what starves it",
            ));
        }
    }
    for LeftOut { part, of, reason } in &seen.left_out {
        out.push(Finding::new(
            "load-left-out",
            Warning,
            format!("{part} was left out of the load {of}: {reason}"),
            "compare it with runs that left out the same",
        ));
    }
    for (name, longest_ns) in &seen.stalls {
        out.push(Finding::new(
            "load-stalled",
            Note,
            format!("the load {name} did no work for up to {}", SpanNs(*longest_ns)),
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
mod tests {
    use super::*;
    use crate::finding::{CODES, Validity, Verdict};

    fn sound() -> Observed {
        let thread =
            ThreadObserved { pinned: true, woken: 1_000, slack_ns: 50_000, ..Default::default() };
        Observed {
            threads: vec![thread],
            clocksource: ("tsc".into(), "tsc".into()),
            rt_share_ppm: Some(950_000),
            ..Default::default()
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Plan, &mut Observed), want: &[(&str, Severity)]) {
        let mut plan = Plan { interval_ns: 1_000_000, cpus: vec![0], ..Default::default() };
        let mut seen = sound();
        change(&mut plan, &mut seen);
        let found = findings(&plan, &seen);
        let got: Vec<_> = found.iter().map(|f| (f.code.as_str(), f.severity)).collect();
        assert_eq!(got, want, "{found:#?}");
        assert!(found.iter().all(|f| CODES.iter().any(|c| c.0 == f.code)));
        assert!(found.iter().all(|f| !f.message.contains("  ")), "{found:#?}");
    }

    #[test]
    fn a_sound_run_has_no_findings() {
        check(|_, _| (), &[]);
    }

    /// What is found of a loop that never sleeps.
    #[track_caller]
    fn check_spin(change: impl FnOnce(&mut Plan, &mut ThreadObserved), want: &[(&str, Severity)]) {
        let of_loop = |plan: &mut Plan, seen: &mut Observed| {
            plan.stimulus = Stimulus::Spin;
            (plan.interval_ns, plan.gap_from_ns) = (0, Some(1_000));
            (plan.policy, plan.priority) = (ProbePolicy::Other, None);
            let thread = &mut seen.threads[0];
            (thread.slack_ns, thread.cpu_share_ppm) = (1, 990_000);
            // 50 ns a turn, and 1,000 gaps of 10 µs.
            (thread.loops, thread.observed_ns) = (1_001_000, 60_000_000);
            (thread.woken, thread.gaps_ns) = (1_000, 10_000_000);
            change(plan, thread);
        };
        check(of_loop, want);
    }

    #[test]
    fn a_loop_that_never_sleeps_is_judged_by_what_it_is() {
        const OTHER: (&str, Severity) = ("unprivileged", Note);
        check_spin(|_, _| (), &[OTHER]);
        // It may be that nothing interrupts it.
        check_spin(|_, t| (t.woken, t.gaps_ns) = (0, 0), &[OTHER]);
        let never_ran = |_: &mut Plan, t: &mut ThreadObserved| {
            (t.woken, t.gaps_ns, t.loops, t.observed_ns) = (0, 0, 0, 0);
        };
        check_spin(never_ran, &[OTHER, ("no-samples", Error)]);
        // A turn of 600 ns is no small part of a microsecond; and a loop of gaps only has no turns.
        check_spin(|_, t| t.observed_ns = 610_000_000, &[OTHER, ("coarse-loop", Warning)]);
        check_spin(|_, t| t.woken = 1_000_900, &[OTHER, ("coarse-loop", Warning)]);
        check_spin(|_, t| t.early = 1, &[OTHER, ("early", Error)]);
        // All of a CPU is more than real-time tasks may have.
        check_spin(|p, _| p.policy = ProbePolicy::Fifo, &[("rt-throttling", Warning)]);
    }

    #[test]
    fn the_duration_that_is_suggested_is_enough_and_can_be_asked_for() {
        // p99.999 takes 200,000 samples: of one CPU at 333 µs 66.6 s, of two half of that.
        for (interval_ns, cpus, want) in [
            (1_000_000, vec![0], "measure for at least --duration 200s"),
            (333_000, vec![0], "measure for at least --duration 67s"),
            (333_000, vec![0, 1], "measure for at least --duration 34s"),
        ] {
            let fail_above = vec!["p99.999=1ms".into()];
            let plan = Plan { interval_ns, cpus, fail_above, ..Default::default() };
            let found = findings(&plan, &sound());
            let hint = found.iter().find(|f| f.code == "few-samples").map(|f| f.hint.clone());
            assert_eq!(hint.as_deref(), Some(want));
        }
    }

    #[test]
    fn each_broken_assumption_is_found() {
        check(|_, s| s.policy_refused = Some("EPERM".into()), &[("unprivileged", Warning)]);
        check(
            |p, s| {
                p.policy = ProbePolicy::Other;
                s.threads[0].slack_ns = 1;
            },
            &[("unprivileged", Note)],
        );
        check(
            |p, _| p.policy = ProbePolicy::Other,
            &[("unprivileged", Note), ("timer-slack", Warning)],
        );
        check(|_, s| s.memory_refused = Some("EPERM".into()), &[("memory-not-locked", Warning)]);
        check(|_, s| s.threads[0].other_schedule = Some("other".into()), &[("policy", Error)]);
        check(|_, s| s.threads[0].due_uncertainty_ns = 900, &[("rtc-phase", Note)]);
        check(|_, s| s.threads[0].due_uncertainty_ns = 10_001, &[("rtc-phase", Warning)]);
        check(|_, s| s.threads[0].migrated = 1, &[("migrated", Error)]);
        check(|_, s| s.threads[0].pinned = false, &[("not-pinned", Warning)]);
        check(
            |p, s| {
                (p.stimulus, p.policy) = (Stimulus::Deadline, ProbePolicy::Deadline);
                s.threads[0].pinned = false;
            },
            &[("not-pinned", Note)],
        );
        check(|_, s| s.threads[0].preempted = 3, &[]);
        for (preempted, severity) in [(1, Note), (2, Warning)] {
            check(
                |p, s| (p.policy, s.threads[0].preempted) = (ProbePolicy::Deadline, preempted),
                &[("out-of-runtime", severity)],
            );
        }
        check(|_, s| s.threads[0].early = 1, &[("early", Error)]);
        check(|_, s| s.threads[0].minor_faults = 1, &[("page-faults", Warning)]);
        check(|_, s| s.threads[0].cpu_lost_at_ns = Some(5), &[("cpu-lost", Warning)]);
        let lost = Some((5, "it has ended".to_owned()));
        check(|_, s| s.threads[0].stimulus_lost = lost, &[("waker-lost", Warning)]);
        check(|_, s| s.threads[0].woken = 0, &[("no-samples", Error)]);
        check(|_, s| s.threads[0].lost = 7, &[("lost-samples", Warning)]);
        check(|_, s| s.threads[0].not_asleep = 10, &[("not-asleep", Note)]);
        check(|_, s| s.threads[0].not_asleep = 11, &[("not-asleep", Warning)]);
        check(|_, s| s.threads[0].skipped = 111, &[("late-waker", Note)]);
        check(|_, s| s.threads[0].skipped = 120, &[("late-waker", Warning)]);
        check(
            |_, s| {
                s.line = Some(Line { unanswered: 1, ..Line::default() });
                s.line_fault = Some("closed".into());
            },
            &[("line-lost", Warning), ("line-unanswered", Warning)],
        );
        check(|_, s| s.threads[0].missed = 500, &[("overload", Warning)]);
        check(|_, s| s.threads[0].cpu_share_ppm = 900_000, &[("rt-throttling", Warning)]);
        check(|p, _| p.fail_above = vec!["p99.9=1ms".into()], &[("few-samples", Warning)]);
        check(|_, s| s.clocksource.1 = "hpet".into(), &[("clocksource", Error)]);
        check(|_, s| s.slept_ns = 9_000_000_000, &[("time-jump", Error)]);
        check(|_, s| s.clock_drift_ppm = 5_000, &[("time-jump", Warning)]);
        check(|_, s| s.steal_ns = 1, &[("steal", Warning)]);
        check(|_, s| s.quota_stops = 1, &[("cpu-quota", Warning)]);
        check(|_, s| s.also_measured = vec![0], &[("busy-probe", Warning)]);
        check(|p, _| p.idle_states = IdleStates::Shallow, &[("idle-limited", Note)]);
        check(|_, s| s.stalls = vec![("find".into(), 9)], &[("load-stalled", Note)]);
        let left_out = LeftOut { part: "fs".into(), of: "all".into(), reason: "full".into() };
        check(|_, s| s.left_out = vec![left_out], &[("load-left-out", Warning)]);
        check(|_, s| s.ended_by = Some("SIGINT".into()), &[("interrupted", Note)]);
        check(|_, s| s.not_saved = Some("ENOSPC".into()), &[("not-saved", Warning)]);
        let dead = LoadResult { name: "find".into(), work: 5, alive: false, ..Default::default() };
        let lazy = LoadResult {
            name: "find".into(),
            work: 0,
            alive: true,
            window_ns: 5_000_000_000,
            ..Default::default()
        };
        let cut = LoadResult { window_ns: 100_000_000, ..lazy.clone() };
        check(|_, s| s.loads = vec![cut.clone()], &[("load-unfinished", Warning)]);
        let slow = LoadResult { before_per_second: Some(150.0), ..cut.clone() };
        check(|_, s| s.loads = vec![slow], &[("load-unfinished", Warning)]);
        let starved = LoadResult { before_per_second: Some(250.0), ..cut };
        check(|_, s| s.loads = vec![starved], &[("load-died", Error)]);
        check(|_, s| s.loads = vec![dead], &[("load-died", Error)]);
        check(|_, s| s.loads = vec![lazy], &[("load-died", Error)]);
    }

    #[test]
    fn a_dead_load_makes_a_run_invalid() {
        let mut seen = sound();
        seen.loads = vec![LoadResult { name: "find".into(), ..Default::default() }];
        let plan = Plan { cpus: vec![0], ..Default::default() };
        assert_eq!(Validity::of(findings(&plan, &seen)).verdict, Verdict::Invalid);
    }
}
