//! What made threads of others wait, and whether their waits agree with the kernel's own account.

use wakescope_core::explain::{
    Cause, Culprit, Schedstat, Share, StepEvent, Task, WaitKind, Waits, WorstWait,
};
use wakescope_core::finding::{Finding, Severity};
use wakescope_core::run::Episode;
use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};

/// What was seen of a wait that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// How long it was, nanoseconds.
    pub ns: u64,
    /// What a quota or throttle took of it, nanoseconds; `None` if nobody knows.
    pub throttled_ns: Option<u64>,
    /// What the hypervisor took of it, nanoseconds.
    pub steal_ns: u64,
    /// Who waited, with the priority that it had at the end.
    pub task: Task,
    /// Its priority without the one that it was lent by then; `None` if it was lent none.
    pub normal_prio: Option<i32>,
    /// Who ran on the CPU longest meanwhile, of those that are known.
    pub other: Task,
    /// For how long at least, nanoseconds.
    pub other_ns: u64,
    /// How long all ordinary tasks ran meanwhile, nanoseconds.
    pub ordinary_ns: u64,
    /// How long all others did, with a real-time or deadline policy or priority, nanoseconds.
    pub urgent_ns: u64,
}

impl Waited {
    /// What took most of it, and who. A CPU that went idle meanwhile says nothing of why, and whoever ran for less
    /// than half of what is left is not to blame. Of an ordinary thread several others together may be.
    pub fn cause(&self) -> (Cause, Culprit) {
        let unknown = (Cause::Unexplained, Culprit::None);
        let Some(throttled_ns) = self.throttled_ns else { return unknown };
        let left_ns = self.ns.saturating_sub(throttled_ns).saturating_sub(self.steal_ns);
        if throttled_ns >= self.steal_ns && throttled_ns >= left_ns {
            return (Cause::Throttled, Culprit::None);
        }
        if self.steal_ns >= left_ns {
            return (Cause::Steal, Culprit::Hypervisor);
        }
        let is_most = |ns: u64| ns >= throttled_ns.max(self.steal_ns).max(left_ns.div_ceil(2));
        if self.other.is_idle() || !is_most(self.other_ns) {
            return match !self.task.is_urgent() {
                true if is_most(self.ordinary_ns) => (Cause::EqualOrLowerTask, Culprit::None),
                true if is_most(self.urgent_ns) => (Cause::HigherPriorityTask, Culprit::None),
                _ => unknown,
            };
        }
        let own = Task { prio: self.normal_prio.unwrap_or(self.task.prio), ..self.task.clone() };
        let cause = match [&own, &self.task].map(|task| self.other.comes_before(task)) {
            [true, true] => Cause::HigherPriorityTask,
            [false, false] => Cause::EqualOrLowerTask,
            // Nobody knows since when the thread has the priority that it was lent.
            _ => return unknown,
        };
        (cause, Culprit::Task(self.other.named()))
    }
}

/// Makes times of `waits` count from the start of the run, and takes the cause of the longest wait
/// after a wakeup from the explanation of that wakeup, if it is among `worst` and knows one.
pub(crate) fn placed(mut waits: Waits, origin_ns: u64, worst: &[Episode]) -> Waits {
    if let Some(open) = &mut waits.longest_open {
        open.at_ns = open.at_ns.saturating_sub(origin_ns);
    }
    for row in &mut waits.kinds {
        let Some(longest) = &mut row.worst else { continue };
        longest.at_ns = longest.at_ns.saturating_sub(origin_ns);
        let same = |episode: &&Episode| match row.kind {
            WaitKind::Woken => is_wakeup_of(episode, longest),
            // Such a wait may have begun otherwise than by a wakeup.
            WaitKind::Migrated => is_wakeup_of(episode, longest) && is_of_thread(episode, longest),
            WaitKind::Preempted | WaitKind::Throttled => false,
        };
        let largest = worst.iter().find(same).and_then(largest_share);
        if let Some(Share { cause, culprit, .. }) =
            largest.filter(|s| s.cause != Cause::Unexplained)
        {
            (longest.cause, longest.culprit) = (*cause, culprit.clone());
        }
    }
    waits
}

/// Two programs see the same switch, one just after the other. No thread is switched to twice in so
/// short a time.
const SAME_SWITCH_NS: u64 = 5_000;

/// Whether this wait came after this wakeup. They ended together, unless something (a hypervisor, say) came
/// between the two programs that saw the end; but only one wakeup of a thread goes on when a wait of it
/// begins.
fn is_wakeup_of(episode: &Episode, wait: &WorstWait) -> bool {
    let ended = episode.expiry_ns.saturating_add(episode.wakeup_latency_ns);
    let together = ended.abs_diff(wait.at_ns.saturating_add(wait.ns)) <= SAME_SWITCH_NS;
    let inside = || (episode.expiry_ns..ended).contains(&wait.at_ns);
    episode.cpu == Some(wait.cpu) && (together || (inside() && is_of_thread(episode, wait)))
}

/// Whether the thread that waited is known to be the one that woke.
fn is_of_thread(episode: &Episode, wait: &WorstWait) -> bool {
    let who = episode.timeline.iter().rev().find_map(|step| match &step.event {
        StepEvent::Runs { task, .. } => task.pid,
        _ => None,
    });
    who.is_some() && who == wait.task.pid
}

fn largest_share(episode: &Episode) -> Option<&Share> {
    episode.blame.iter().reduce(|a, b| if b.ns > a.ns { b } else { a })
}

/// By how much the waits of a thread, by the clock that the kernel counts them with, may differ from
/// its count of them: both read that clock at the same switches, so only a wait that was missed or
/// counted twice makes a difference. Waits shorter than this are not worth a finding.
const LEAST_DIFFERENCE: SpanNs = SpanNs(100_000);

/// Whether two sums of the same waits by the same clock contradict each other.
pub fn differ(by_its_clock_ns: u64, run_delay_ns: u64) -> bool {
    let allowed = LEAST_DIFFERENCE.0.max(run_delay_ns / 1_000);
    by_its_clock_ns.abs_diff(run_delay_ns) > allowed
}

/// What a reader must know of the waits.
pub(crate) fn findings(waits: &Waits) -> Vec<Finding> {
    let found = [contradiction(waits), missed(waits), no_room(waits), still_open(waits)];
    found.into_iter().flatten().collect()
}

/// The finding if the waits contradict themselves, or the kernel's account of them.
fn contradiction(waits: &Waits) -> Option<Finding> {
    let mut found = Vec::new();
    let ends = [waits.ended(), waits.open, waits.broken];
    let ends = ends.into_iter().fold(0, u64::saturating_add);
    if waits.begun != ends {
        found.push(format!(
            "{} waits began, but {} ended or are still open",
            grouped(waits.begun),
            grouped(ends)
        ));
    }
    let differing = waits.schedstat.as_ref().filter(|compared| compared.differing > 0);
    if let Some(compared) = differing {
        let Schedstat { threads, differing, run_delay_ns, .. } = compared;
        let here_ns = compared.known_ns(waits.begins_missed_ns);
        found.push(format!(
            "the waits of {} of {} differ from their /proc/TID/schedstat: {} here, {} there",
            grouped(*differing),
            counted(*threads, "thread"),
            SpanNs(here_ns),
            SpanNs(*run_delay_ns)
        ));
    }
    let finding = || {
        Finding::new(
            "contradictory-waits",
            Severity::Warning,
            format!("{}: sums and causes of waits are unreliable", found.join("; ")),
            "report this with the run's record; the latencies of wakeups are not affected",
        )
    };
    (!found.is_empty()).then(finding)
}

/// The finding if switches were not seen, and the waits that they began or ended are known from the
/// kernel's own account only.
fn missed(waits: &Waits) -> Option<Finding> {
    let Waits { begun, ends_missed, begins_missed, begins_missed_ns, broken, .. } = *waits;
    let missed = [ends_missed, begins_missed, broken].into_iter().fold(0, u64::saturating_add);
    // How long a wait was whose end was not seen is known all the same.
    let is_grave = broken > begun / 100 || begins_missed_ns > waits.sum_ns() / 100;
    let finding = || {
        let by_kind = match begins_missed {
            0 => String::new(),
            _ => format!(
                "; {} that /proc/TID/schedstat shows is in no kind's sum",
                SpanNs(begins_missed_ns),
            ),
        };
        Finding::new(
            "missed-switches",
            if is_grave { Severity::Warning } else { Severity::Note },
            format!(
                "the tracer missed the begin or end of {} of {}{by_kind}",
                grouped(missed),
                counted(begun.saturating_add(begins_missed), "wait"),
            ),
            "",
        )
    };
    (missed > 0).then(finding)
}

/// The finding if waits were not followed for want of room.
fn no_room(waits: &Waits) -> Option<Finding> {
    let finding = || {
        Finding::new(
            "waits-not-followed",
            Severity::Warning,
            format!(
                "{} of threads beyond the first 8,192 {} not followed",
                counted(waits.no_room, "wait"),
                one_or_many(waits.no_room, "was", "were"),
            ),
            "follow fewer threads: --pid with a thread's ID, --comm or --cgroup",
        )
    };
    (waits.no_room > 0).then(finding)
}

/// The finding if the longest wait was not over at the end. A thread that gets no CPU at all has no other one.
fn still_open(waits: &Waits) -> Option<Finding> {
    let open = waits.longest_is_open()?;
    Some(Finding::new(
        "open-waits",
        Severity::Warning,
        format!(
            "at the end, a followed thread had waited for a CPU for {}, longer than any wait that \
             ended: how long it waits in all is unknown",
            SpanNs(open.ns),
        ),
        "see who keeps its CPU busy (top -H), or follow it for longer: --duration",
    ))
}

#[cfg(test)]
mod tests;
