//! The longest waits, each with who had the CPU meanwhile.

use wakescope_core::date::Date;
use wakescope_core::explain::{Cause, Culprit, NamedTask, Policy};
use wakescope_core::units::{SpanNs, counted, grouped};
use wakescope_core::watch::cgroup::Cgroup;
use wakescope_core::watch::episode::{Episode, Episodes, NotMeasured, Occupant};
use wakescope_core::watch::{Known, Window};

use super::rows::{Key, cgroup_name};
use super::{all_waits, known_in_words};
use crate::progress::clock;
use crate::style::clean;

/// The longest name of a task that a line shows.
const COMM: usize = 15;

/// The most tasks that a line names of those that ran meanwhile.
const SHOWN_OCCUPANTS: usize = 2;

/// How a list says when a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// From the start of the watch.
    Elapsed,
    /// By the date: stored windows may be of several watches.
    Dates,
}

impl Times {
    /// When an episode of `window` ended.
    fn of(self, episode: &Episode, window: &Window) -> String {
        self.at(episode.end_ns, window)
    }

    /// The time `ns` after the start of the watch of `window`.
    pub(super) fn at(self, ns: u64, window: &Window) -> String {
        match (self, Date::parse(&window.started)) {
            (Self::Dates, Some(begin)) => {
                let after = ns.saturating_sub(window.begin_ns);
                begin.after(SpanNs(after)).to_string()
            }
            _ => clock(SpanNs(ns)),
        }
    }
}

/// The longest waits of a window, as a list with its heading; empty if there were none.
pub(super) fn list(window: &Window, most: usize, times: Times) -> Vec<String> {
    let Some(episodes) = &window.episodes else { return Vec::new() };
    let unseen = unseen_longest(window, episodes)
        .map(|longest| format!(" the longest wait, {longest}: its cause was not seen"));
    if episodes.longest.is_empty() {
        return unseen.into_iter().collect();
    }
    let shown = episodes.longest.len().min(most) as u64;
    let waits = counted(episodes.long_waits, "wait");
    let least = SpanNs(episodes.least_ns);
    let heading = match episodes.long_waits == shown {
        true => format!(" waits of {least} and longer:"),
        // The third longest of one CPU may be longer than the second of another.
        false => format!(
            " {} of {waits} of {least} and longer, from the two longest of each CPU and interval:",
            grouped(shown)
        ),
    };
    let mut lines = vec![heading];
    lines.extend(unseen);
    lines.extend(episodes.longest.iter().take(most).map(|episode| {
        let whose = within(&episode.task, episode.cgroup_id, episode.cgroup.as_ref());
        format!(" {}", line(episode, &whose, &times.of(episode, window)))
    }));
    lines.extend(not_measured(episodes.not_measured).map(|text| format!(" {text}")));
    lines
}

/// The longest wait of all, where it is longer than these: the kernel did not report the switch that ended it,
/// or it ended as an interval did.
fn unseen_longest(window: &Window, episodes: &Episodes) -> Option<String> {
    let longest = all_waits(window).longest()?;
    let at_least = match longest {
        Known::Exactly(ns) | Known::AtLeast(ns) => ns,
        // The end of a bucket is at most a sixteenth above its begin.
        Known::AtMost(ns) => ns / 17 * 16,
    };
    let seen = episodes.longest.first().map_or(episodes.least_ns, |first| first.ns);
    (at_least > seen).then(|| known_in_words(longest))
}

/// The longest waits of the tasks of a row, or of a CPU.
pub(super) fn of_row(window: &Window, key: &Key, times: Times) -> Vec<String> {
    let all = window.episodes.iter().flat_map(|episodes| &episodes.longest);
    let own = all.filter(|episode| match key {
        Key::Cpu(cpu) => *cpu == episode.cpu,
        _ => {
            let cgroup = Cgroup::named(episode.cgroup_id, episode.cgroup.as_ref());
            key.has(&Key::Series { comm: episode.task.comm.clone(), cgroup })
        }
    });
    // Its cgroup is that of the row.
    let line = |episode: &Episode| {
        format!(" {}", line(episode, &name(&episode.task), &times.of(episode, window)))
    };
    own.map(line).collect()
}

/// The longest wait of a window, in a line.
pub(super) fn longest(window: &Window) -> Option<String> {
    let episodes = window.episodes.as_ref()?;
    if let Some(longest) = unseen_longest(window, episodes) {
        return Some(format!(" longest: {longest}  its cause was not seen"));
    }
    let first = episodes.longest.first()?;
    let (ns, who) = (SpanNs(first.ns), name(&first.task));
    Some(format!(" longest: {ns}  {who}: {}", verdict(first)))
}

/// `42.1 ms  nginx[7] in /web, CPU 1 at 0:05: its CPU quota took 40.0 ms`.
fn line(episode: &Episode, whose: &str, when: &str) -> String {
    let ns = SpanNs(episode.ns).to_string();
    let (verdict, queues) = (verdict(episode), earlier_queues(episode));
    format!("{ns:>7}  {whose}, CPU {} at {when}: {verdict}{queues}", episode.cpu)
}

/// For which other CPUs it waited before, as far as that is known.
fn earlier_queues(episode: &Episode) -> String {
    let queues = episode.earlier_queues.iter();
    let queues = queues.map(|queue| format!("{} for CPU {}", SpanNs(queue.ns), queue.cpu));
    match &queues.collect::<Vec<_>>()[..] {
        [] => String::new(),
        queues => format!("; before, it waited {}", queues.join(", ")),
    }
}

/// What took it.
fn verdict(episode: &Episode) -> String {
    let Episode { throttled_ns, irq_ns, steal_ns, occupants, .. } = episode;
    let took = |ns: &u64| format!("took {}", SpanNs(*ns));
    let ran = |occupant: &Occupant| {
        let whose = within(&occupant.task, occupant.cgroup_id, occupant.cgroup.as_ref());
        format!("{whose} ran {}", SpanNs(occupant.ns))
    };
    match (&episode.cause, &episode.culprit) {
        (Cause::Throttled, _) => format!("its CPU quota {}", took(throttled_ns)),
        (Cause::Steal, _) => format!("the hypervisor {} (steal)", took(steal_ns)),
        (Cause::Irq, _) => format!("interrupts {}", took(irq_ns)),
        (Cause::HigherPriorityTask | Cause::EqualOrLowerTask, Culprit::Task(who)) => {
            let first = occupants.iter().find(|occupant| occupant.task == *who);
            first.map_or_else(|| name(who), ran)
        }
        _ => {
            let mut parts: Vec<String> = occupants.iter().take(SHOWN_OCCUPANTS).map(ran).collect();
            let known = [
                (throttled_ns, "its CPU quota"),
                (steal_ns, "the hypervisor"),
                (irq_ns, "interrupts"),
            ];
            let known = known.iter().filter(|part| *part.0 > 0);
            parts.extend(known.map(|(ns, who)| format!("{who} {}", took(ns))));
            let rest = beside_shown(episode, SHOWN_OCCUPANTS);
            if rest > 0 {
                parts.push(format!("others ran {}", SpanNs(rest)));
            }
            if episode.unexplained_ns > 0 {
                // A narrow line is cut at its end: the largest part is not what goes.
                let first = occupants.first().map_or(0, |occupant| occupant.ns);
                let at = if episode.unexplained_ns > first { 0 } else { parts.len() };
                parts.insert(at, not_explained(episode));
            }
            format!("no single cause: {}", parts.join("; "))
        }
    }
}

/// What is known of its time beside what the line has of the first `shown` occupants and of all else, ns.
fn beside_shown(episode: &Episode, shown: usize) -> u64 {
    let Episode { ns, throttled_ns, irq_ns, steal_ns, unexplained_ns, occupants, .. } = episode;
    let shown = occupants.iter().take(shown).map(|occupant| occupant.ns);
    let parts = shown.chain([*throttled_ns, *irq_ns, *steal_ns, *unexplained_ns]);
    ns.saturating_sub(parts.fold(0, u64::saturating_add))
}

/// Nobody is known to have run while it waited in a queue that is not known, so that time is no share of its own.
fn not_explained(episode: &Episode) -> String {
    let unexplained = SpanNs(episode.unexplained_ns);
    let moved = episode.elsewhere_ns().min(episode.unexplained_ns);
    if moved == 0 {
        return format!("{unexplained} not explained");
    }
    // A quota may have stopped it there, too.
    let bound = if episode.throttled_ns > 0 { "at most " } else { "" };
    let moved = SpanNs(moved);
    format!("{unexplained} not explained, {bound}{moved} of it in the queue of another CPU")
}

fn within(task: &NamedTask, cgroup_id: u64, cgroup: Option<&String>) -> String {
    match Cgroup::named(cgroup_id, cgroup) {
        Cgroup::None => name(task),
        cgroup => format!("{} in {}", name(task), cgroup_name(&cgroup)),
    }
}

/// `hog[7] (fifo 50)`.
fn name(task: &NamedTask) -> String {
    let comm = clean(&task.comm, COMM);
    let pid = task.pid.map(|pid| format!("[{pid}]")).unwrap_or_default();
    let policy = match (task.policy, task.priority) {
        (Policy::Fifo, Some(priority)) => format!(" (fifo {priority})"),
        (Policy::RoundRobin, Some(priority)) => format!(" (rr {priority})"),
        (Policy::Deadline, _) => " (deadline)".into(),
        _ => String::new(),
    };
    format!("{comm}{pid}{policy}")
}

/// What is not measured here.
fn not_measured(not_measured: NotMeasured) -> Option<String> {
    let NotMeasured { interrupts, steal, quota } = not_measured;
    let parts = [(interrupts, "interrupts"), (steal, "steal"), (quota, "quotas")];
    let lacking: Vec<&str> = parts.iter().filter(|part| part.0).map(|part| part.1).collect();
    match lacking.as_slice() {
        [] => None,
        lacking => Some(format!(
            "the time of {} is not measured here: it is in that of others",
            lacking.join(" and ")
        )),
    }
}
