//! All waits of threads that are not ours: how long they could run and did not, and why.

use std::collections::BTreeSet;

use wakescope_core::explain::{
    Blamed, OpenWait, Policy, Schedstat, ThreadWaits, WaitKind, WaitRow, Waits, WorstWait,
};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};

use super::{WIDTH, phrases};
use crate::domain::span;
use crate::findings::wrapped;
use crate::style::{clean, clean_end};
use crate::table::columns;

/// The most threads with a row of their own, and the longest names.
const MOST_THREADS: usize = 8;
const LONGEST_CULPRIT: usize = 40;
const LONGEST_CGROUP: usize = 80;

/// What a table says of the waits of a kind.
pub(crate) struct Line {
    /// `throttled`
    pub(crate) kind: &'static str,
    pub(crate) count: u64,
    pub(crate) sum_ns: u64,
    /// The longest; `None` if none was seen to end.
    pub(crate) worst_ns: Option<u64>,
    /// What took most of the longest: `higher_priority_task`; empty without one.
    pub(crate) cause: &'static str,
    /// Who: `spin[7] fifo 95`. It is cleaned.
    pub(crate) culprit: String,
}

impl Line {
    fn of(row: &WaitRow) -> Self {
        let worst = row.worst.as_ref();
        Self {
            kind: row.kind.name(),
            count: row.count,
            sum_ns: row.sum_ns,
            worst_ns: worst.map(|worst| worst.ns),
            cause: worst.map_or("", |worst| worst.cause.name()),
            culprit: worst.map(|worst| culprit(worst, LONGEST_CULPRIT)).unwrap_or_default(),
        }
    }
}

/// `12 waits throttled, 2.10 s; longest 190 ms: throttled`
pub(crate) fn row(row: &WaitRow) -> String {
    let Line { kind, count, sum_ns, worst_ns, cause, culprit } = Line::of(row);
    let longest = worst_ns.map(|ns| {
        let of = [cause, &culprit].into_iter().filter(|text| !text.is_empty());
        let of: Vec<&str> = of.collect();
        format!("; longest {}: {}", SpanNs(ns), of.join(" "))
    });
    let (waits, sum) = (counted(count, "wait"), SpanNs(sum_ns));
    format!("{kind}: {waits}, {sum}{}", longest.unwrap_or_default())
}

/// How many threads have waited.
fn threads(waits: &Waits) -> u64 {
    waits.more_threads.saturating_add(waits.threads.len() as u64)
}

/// A line per kind, the largest sum first.
pub(crate) fn lines(waits: &Waits) -> Vec<Line> {
    let mut rows: Vec<&WaitRow> = waits.kinds.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
    rows.into_iter().map(Line::of).collect()
}

/// Who took the CPU, or had it last.
fn culprit(worst: &WorstWait, most: usize) -> String {
    let WorstWait { cause, culprit, .. } = worst;
    let blamed = Blamed { cause: *cause, culprit, phase: None, from_cpu: None, others: false };
    clean(&phrases::culprit(blamed), most)
}

/// Sentences on a wait that was longest although it was not over, and on the waits that outweigh those after
/// wakeups, each with a blank at its end; empty if none
/// does.
pub(super) fn sentence(run: &Run) -> String {
    let waits = run.explanation.as_ref().and_then(|explanation| explanation.waits.as_ref());
    let Some(waits) = waits else { return String::new() };
    let woken_ns = waits.of(WaitKind::Woken).map_or(0, |row| row.sum_ns);
    let mut rows: Vec<&WaitRow> = waits.kinds.iter().filter(|row| row.sum_ns > woken_ns).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
    let rows = rows.into_iter().map(|row| kind_text(run, waits, row) + " ");
    let open = waits.longest_is_open().map(|open| open_text(open, run.time_domain) + " ");
    open.into_iter().chain(rows).collect()
}

/// `At the end, spin[7] other was waiting for a CPU, for 820 ms so far.`
fn open_text(open: &OpenWait, domain: TimeDomain) -> String {
    let who = clean(&phrases::task_with_policy(&open.task), LONGEST_CULPRIT);
    format!("At the end, {who} was waiting for a CPU, for {} so far.", span(open.ns, domain))
}

fn kind_text(run: &Run, waits: &Waits, row: &WaitRow) -> String {
    let domain = run.time_domain;
    let threads = threads(waits);
    let length = span(run.duration_ns, domain);
    let of_run = |ns: u64| match threads {
        1 => format!("for {} of {length}", of_same_unit(span(ns, domain), &length)),
        _ => format!(
            "for {} in all, {} within {length}",
            span(ns, domain),
            counted(threads, "thread")
        ),
    };
    let times = |count: u64| match count {
        1 => "once".to_owned(),
        count => format!("{} times", grouped(count)),
    };
    let often = times(row.count);
    match row.kind {
        WaitKind::Throttled => {
            let limits = limits(waits, row);
            let by: Vec<&str> = limits.iter().map(|limit| limit.name()).collect();
            let (by, time) = (by.join(" or "), of_run(row.throttled_ns));
            let group = if limits.contains(&Limit::Quota) { in_cgroup(waits) } else { "".into() };
            format!("Stopped by {by} {time}, {often}{group}.")
        }
        WaitKind::Preempted => format!(
            "Preempted {}, {often}{}{}.",
            of_run(row.sum_ns),
            also_throttled(row, domain),
            longest(row, domain)
        ),
        WaitKind::Migrated | WaitKind::Woken => format!(
            "Waited {}, {often}, and was moved to the queue of another CPU meanwhile{}{}.",
            of_run(row.sum_ns),
            also_throttled(row, domain),
            longest(row, domain)
        ),
    }
}

/// `, throttled for 548 ms of it`: waits with less than half of that are of another kind. Empty below a hundredth.
fn also_throttled(row: &WaitRow, domain: TimeDomain) -> String {
    match row.throttled_ns > row.sum_ns / 100 {
        true => format!(", throttled for {} of it", span(row.throttled_ns, domain)),
        false => String::new(),
    }
}

/// `6.30` beside `7.00 s`; `630 ms` where the units differ.
fn of_same_unit(text: String, other: &str) -> String {
    let unit = other.split_once(' ').map_or("", |(_, unit)| unit);
    match text.split_once(' ') {
        Some((number, own)) if own == unit => number.to_owned(),
        _ => text,
    }
}

/// A limit of CPU time, which stops threads that have used it up. A thread's policy says which it is under.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Quota,
    RealTime,
    Deadline,
}

impl Limit {
    fn of(policy: Policy) -> Self {
        match policy {
            Policy::Fifo | Policy::RoundRobin => Self::RealTime,
            Policy::Deadline => Self::Deadline,
            _ => Self::Quota,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Quota => "its cgroup's CPU quota",
            Self::RealTime => "real-time throttling",
            Self::Deadline => "its SCHED_DEADLINE runtime limit",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Quota => "to raise the quota: the cgroup's cpu.max (cgroup v1: cpu.cfs_quota_us)",
            Self::RealTime => {
                "to lift real-time throttling: kernel.sched_rt_runtime_us, or the group's \
                 cpu.rt_runtime_us; from 6.12 on, \
                 /sys/kernel/debug/sched/fair_server/cpuN/runtime"
            }
            Self::Deadline => {
                "to raise the runtime limit: sched_runtime of sched_setattr(2) (chrt -d \
                 --sched-runtime NS)"
            }
        }
    }
}

/// The limits that stopped these threads: several where their policies differ.
fn limits(waits: &Waits, throttled: &WaitRow) -> BTreeSet<Limit> {
    let is_throttled =
        |thread: &&ThreadWaits| thread.kinds.iter().any(|row| row.kind == WaitKind::Throttled);
    let listed = waits.threads.iter().filter(is_throttled).map(|thread| &thread.task);
    let worst = throttled.worst.iter().map(|worst| &worst.task);
    let limits: BTreeSet<Limit> = listed.chain(worst).map(|task| Limit::of(task.policy)).collect();
    if limits.is_empty() { BTreeSet::from([Limit::Quota]) } else { limits }
}

/// ` (cgroup /system.slice/x.service: 10.0 ms of each 100 ms)`
fn in_cgroup(waits: &Waits) -> String {
    let Some(quota) = &waits.quota else { return " (cgroup not known)".into() };
    format!(
        " (cgroup {}: {} of each {})",
        clean_end(&quota.cgroup, LONGEST_CGROUP),
        SpanNs(quota.quota_ns),
        SpanNs(quota.period_ns)
    )
}

/// `; the longest, 12.0 ms, by spin[7] fifo 95`
fn longest(row: &WaitRow, domain: TimeDomain) -> String {
    let Some(worst) = &row.worst else { return String::new() };
    let length = span(worst.ns, domain);
    match culprit(worst, LONGEST_CULPRIT) {
        none if none.is_empty() => {
            format!("; the longest {length}: {}", phrases::cause(worst.cause))
        }
        culprit => format!("; the longest {length}, by {culprit}"),
    }
}

/// A row per kind, what the sums were compared with, and the threads that waited longest.
pub(super) fn table(waits: &Waits, domain: TimeDomain) -> String {
    let lines = lines(waits);
    // Threads that only began to wait have no row, but a note.
    if lines.is_empty() {
        return noted(waits, domain);
    }
    let threads = threads(waits);
    let width = lines.iter().map(|line| line.cause.len()).max().unwrap_or(0);
    let title = format!("waits of {}: cause of the longest", counted(threads, "thread"));
    let mut rows = vec![[&title, "count", "sum", "longest"].map(String::from).to_vec()];
    rows.extend(lines.iter().map(|line| {
        let Line { kind, count, sum_ns, worst_ns, cause, culprit } = line;
        let name = format!("{kind:<9}  {cause:<width$}  {culprit}");
        let worst = worst_ns.map(|ns| span(ns, domain)).unwrap_or_default();
        vec![name, grouped(*count), span(*sum_ns, domain), worst]
    }));
    let mut out = columns(&rows, true);
    if threads > 1 {
        out.push_str(&of_threads(waits, domain));
    }
    out + &noted(waits, domain)
}

/// The notes, each wrapped.
fn noted(waits: &Waits, domain: TimeDomain) -> String {
    let notes = notes(waits, domain).into_iter();
    notes.map(|text| format!(" {}\n", wrapped(&text, WIDTH - 1, "   "))).collect()
}

fn of_threads(waits: &Waits, domain: TimeDomain) -> String {
    let mut rows = vec![["thread", "waits", "sum", "schedstat"].map(String::from).to_vec()];
    rows.extend(waits.threads.iter().take(MOST_THREADS).map(|thread| {
        let ThreadWaits { task, sum_ns, run_delay_ns, kinds } = thread;
        let count = kinds.iter().fold(0, |sum: u64, row| sum.saturating_add(row.count));
        let there = run_delay_ns.map(|ns| span(ns, domain)).unwrap_or_default();
        let name = clean(&phrases::task_with_policy(task), LONGEST_CULPRIT);
        vec![name, grouped(count), span(*sum_ns, domain), there]
    }));
    let shown = waits.threads.len().min(MOST_THREADS);
    let others = waits.threads.len() - shown;
    let count = waits.more_threads.saturating_add(others as u64);
    if count > 0 {
        let left = waits.threads[shown..].iter().map(|thread| thread.sum_ns);
        let sum_ns = left.fold(waits.more_threads_ns, u64::saturating_add);
        rows.push(vec![format!("{} more", grouped(count)), String::new(), span(sum_ns, domain)]);
    }
    columns(&rows, true)
}

/// What the sums were compared with, which waits are in none, and which quota threads are under.
pub(crate) fn notes(waits: &Waits, domain: TimeDomain) -> Vec<String> {
    let mut notes = Vec::new();
    let limits = waits.of(WaitKind::Throttled).map(|row| limits(waits, row)).unwrap_or_default();
    notes.extend(limits.into_iter().map(|limit| limit.remedy().to_owned()));
    notes.extend(waits.schedstat.as_ref().map(|compared| compared_with(compared, waits, domain)));
    if waits.open > 0 {
        let lasted = one_or_many(waits.open, "it had lasted", "they had lasted");
        notes.push(format!(
            "at the end {} not over: {lasted} {}, in no sum",
            counted_were(waits.open),
            span(waits.open_ns, domain)
        ));
    }
    if waits.throughout > 0 {
        notes.push(format!(
            "{} waited from before the run to its end, in no sum",
            counted(waits.throughout, "thread")
        ));
    }
    if waits.ends_missed > 0 {
        notes.push(format!(
            "{} not seen to end: lengths from the kernel's own account",
            counted_were(waits.ends_missed)
        ));
    }
    if waits.begins_missed > 0 {
        notes.push(format!(
            "{} not seen to begin: {}, in no sum above",
            counted_were(waits.begins_missed),
            span(waits.begins_missed_ns, domain)
        ));
    }
    if waits.not_followed_ns > 0 {
        notes.push(format!(
            "under another name or in another cgroup, threads were not followed: {} of waiting by the \
             kernel's own account, in no sum above",
            span(waits.not_followed_ns, domain)
        ));
    }
    notes
}

fn counted_were(count: u64) -> String {
    format!("{} {}", counted(count, "wait"), one_or_many(count, "was", "were"))
}

/// The sums as the kernel makes them: those of the table are by another clock, which shows more of short
/// waits, so they do not agree with the kernel's.
fn compared_with(compared: &Schedstat, waits: &Waits, domain: TimeDomain) -> String {
    let Schedstat { threads, differing, run_delay_ns, not_counted_ns, asleep_ns, .. } = *compared;
    let here_ns = compared.known_ns(waits.begins_missed_ns).saturating_sub(asleep_ns);
    let verb = if differing == 0 { "agree with" } else { "contradict" };
    let beside = match not_counted_ns {
        0 => String::new(),
        ns => format!(", without {} that the kernel does not count", span(ns, domain)),
    };
    let asleep = match asleep_ns {
        0 => String::new(),
        ns => format!(
            ", of which {} is sleep: threads were moved to another CPU just after they fell asleep",
            span(ns, domain)
        ),
    };
    format!(
        "by the run queue's clock, sums {verb} field 2 of /proc/TID/schedstat of {}: {} here{beside}, {} there{asleep}",
        counted(threads, "thread"),
        span(here_ns, domain),
        span(run_delay_ns, domain)
    )
}

#[cfg(test)]
mod tests;
