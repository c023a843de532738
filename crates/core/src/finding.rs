//! Findings: what a reader must know before trusting a number.

use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the numbers are what they say they are.
    Note,
    /// The numbers hold with a reservation: the run is `degraded`.
    Warning,
    /// The run does not measure what was asked: it is `invalid`.
    Error,
}

/// Whether a run's numbers can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every assumption that could be verified was, and held.
    Valid,
    /// The numbers hold with the reservations listed.
    Degraded,
    /// The run does not measure what was asked.
    Invalid,
}

impl Verdict {
    /// The gravest finding decides.
    fn on(findings: &[Finding]) -> Self {
        match findings.iter().map(|f| f.severity).max() {
            None | Some(Severity::Note) => Self::Valid,
            Some(Severity::Warning) => Self::Degraded,
            Some(Severity::Error) => Self::Invalid,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Valid => "valid",
            Self::Degraded => "degraded",
            Self::Invalid => "invalid",
        })
    }
}

/// One thing to know about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// A stable name, listed in [`CODES`] and in docs/reference/findings.md.
    pub code: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What was found, as a sentence with figures.
    pub message: String,
    /// What to do about it; empty if nothing can be done.
    pub hint: String,
}

impl Finding {
    /// A finding under one of the [`CODES`].
    pub fn new(code: &'static str, severity: Severity, message: String, hint: &str) -> Self {
        debug_assert!(CODES.iter().any(|c| c.0 == code), "`{code}` is not in the list of codes");
        Self { code: code.into(), severity, message, hint: hint.into() }
    }
}

/// A verdict and what led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// The verdict that follows from the findings.
    pub verdict: Verdict,
    /// The findings, the gravest first.
    pub findings: Vec<Finding>,
}

impl Default for Validity {
    /// Nothing speaks against it.
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Validity {
    /// The verdict on `findings`.
    pub fn of(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
        Self { verdict: Verdict::on(&findings), findings }
    }

    /// What is wrong with the verdict, if it is not the one on the findings.
    pub(crate) fn fault(&self) -> Option<String> {
        let (said, follows) = (self.verdict, Verdict::on(&self.findings));
        (said != follows).then(|| format!("verdict is {said}, but its findings make it {follows}"))
    }
}

/// Every finding code with its meaning, in the order of docs/reference/findings.md.
pub const CODES: &[(&str, &str)] = &[
    (
        "unprivileged",
        "the probe ran without real-time priority, because it has no permission for one",
    ),
    ("ordinary-task", "the probe ran without real-time priority, as it was to"),
    ("policy", "the scheduling policy or priority was not the requested one"),
    ("migrated", "wakeups happened on another CPU than the one that counts them"),
    ("waker-moved", "the waker of a probe ran on another CPU than the one that it was bound to"),
    ("not-pinned", "a probe could not be bound to its CPU"),
    ("cpu-lost", "a CPU went offline, or became forbidden, during the run"),
    (
        "waker-lost",
        "a probe could not be woken any more, because its waker or what it waits for was gone",
    ),
    ("card-lost", "the sound card failed, was unplugged, or stopped playing during the run"),
    ("memory-not-locked", "the probe's memory was not locked, so it may be paged out"),
    ("page-faults", "the measuring loop took page faults"),
    ("early", "wakeups came before their expiry, so a clock or timer is wrong"),
    ("not-asleep", "wakeup calls found the probe still awake, and woke nobody"),
    ("late-waker", "wakeup calls were left out, because the waker was late itself"),
    ("line-lost", "the line of round trips was closed, or nothing answered any more"),
    ("line-unanswered", "bytes sent over the line got no answer"),
    ("line-stray", "bytes came over the line that answer nothing"),
    ("line-left-out", "no byte was sent at some points of the grid"),
    ("line-echo", "bytes came back as they were sent, so no `wakescope respond` answered"),
    ("line-buffered", "the near end of the line holds received bytes back"),
    ("rtc-phase", "the due times of wakeups are known only to within a stated time"),
    ("out-of-runtime", "a SCHED_DEADLINE probe lost the CPU before it slept"),
    ("coarse-loop", "a turn of the loop that looks for gaps is too long"),
    ("compute-time", "audio fragments did not take the time to compute that was asked for"),
    ("no-samples", "a CPU, or the followed threads, gave no sample"),
    ("few-samples", "there are too few samples for a requested percentile"),
    ("overload", "the interval is so short that many expiries were missed"),
    ("lost-samples", "samples could not be written to the sample file"),
    ("timer-slack", "the kernel may delay this thread's timers on purpose"),
    ("low-resolution", "the kernel has no high-resolution timers"),
    ("clocksource", "the clock is slow, coarse or changed during the run"),
    ("time-jump", "the machine was suspended, or its clock ran at a wrong rate"),
    ("stopped", "wakescope was stopped during the run"),
    ("not-checked", "files of the kernel are missing, so most checks were left out"),
    ("rt-throttling", "the kernel takes real-time tasks off the CPU for part of each period"),
    ("rt-group", "real-time group scheduling limits the probe"),
    ("sched-ext", "a scheduler of sched_ext decides which ordinary tasks run"),
    ("cpu-quota", "a cgroup's CPU quota stopped the probe or its load"),
    ("hypervisor", "the machine is a guest: the numbers include delays by its hypervisor"),
    ("virtual-time", "time was counted in instructions, not measured"),
    ("simulated-time", "a model was run, and no machine was measured"),
    ("steal", "the hypervisor took time from the measured CPUs"),
    ("idle-states", "the CPU may enter idle states with a long exit latency"),
    ("idle-limited", "idle states were limited for the run, as requested"),
    ("governor", "the CPU changes its frequency"),
    ("busy-probe", "another wakescope measures on the same CPU"),
    ("unannounced", "another wakescope on the same CPU would not be noticed"),
    ("load-died", "a load ended, or did no work, during the run"),
    ("load-left-out", "a part of the requested load could not run on this machine"),
    ("load-slowed", "a load did far less work during the run than just before it"),
    ("load-stalled", "a load did no work for a while"),
    ("load-unfinished", "a load completed no whole unit of work during the run"),
    ("lost-records", "records of late wakeups were lost before they were explained"),
    ("forgotten-events", "more events came during late wakeups than are kept for a CPU"),
    ("episodes-not-stored", "the events of late wakeups could not be stored"),
    ("sampled-causes", "causes of the late wakeups beyond the worst are estimated from a sample"),
    ("no-section-edges", "the kernel has no tracepoints at the ends of sections"),
    ("not-followed", "wakeups were not followed from stimulus to response"),
    ("contradictory-counts", "the tracer's numbers of wakeups contradict those of the probes"),
    ("contradictory-tracer", "the tracer's own counts contradict each other"),
    ("contradictory-waits", "the waits of threads contradict the kernel's own account of them"),
    ("missed-switches", "the tracer did not see some waits of threads begin or end"),
    ("waits-not-followed", "there was no room to follow the waits of all threads"),
    ("open-waits", "the longest wait of a followed thread had not ended when the run did"),
    ("interrupted", "the run was stopped early"),
    ("unfinished", "the run has no final record: it was killed, or is still going on"),
    ("not-saved", "the run could not be saved completely"),
    ("imported", "another program measured this run, and its file lacks some information"),
    ("overflow", "samples lie beyond the histogram's last row"),
    ("summary-only", "only the number of samples and their extremes are known"),
    ("coarse", "values have a coarse resolution"),
    ("unit-assumed", "the file does not state the unit of its values, and one was assumed"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_finding_decides() {
        let finding = |severity| Finding::new("steal", severity, String::new(), "");
        for (severities, want) in [
            (vec![], Verdict::Valid),
            (vec![Severity::Note], Verdict::Valid),
            (vec![Severity::Note, Severity::Warning], Verdict::Degraded),
            (vec![Severity::Warning, Severity::Error, Severity::Note], Verdict::Invalid),
        ] {
            assert_eq!(Validity::of(severities.into_iter().map(finding).collect()).verdict, want);
        }
    }
}
