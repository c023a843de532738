//! All waits of others' threads, as programs counted them.

use std::cmp::Reverse;
use std::path::Path;

use aya::Ebpf;
use aya::maps::{Array, HashMap};
use wakescope_attribution::{Waited, differ};
use wakescope_core::explain::{
    NamedTask, OpenWait, Schedstat, Task, ThreadWaitRow, ThreadWaits, WaitKind, WaitRow, Waits,
    WorstWait,
};
use wakescope_core::units::MonoNs;

use crate::quota::Quotas;
use crate::record::task_of;
use crate::shared::{self, WaitCounts, WaitsOfKind};
use crate::target::has_kernels_numbers;

/// The most threads that a record lists.
const MOST_THREADS: usize = 64;

/// All waits of a run that ended at `end`, with the quota that throttled its threads since its start, if that is
/// known. `None` if nothing can be read.
pub(crate) fn of_run(programs: &Ebpf, end: MonoNs, at_start: &Quotas) -> Option<Waits> {
    let mut waits = Counted::read(programs)?.waits(end);
    // Real-time threads are under other limits.
    let is_throttled = |thread: &&ThreadWaits| {
        !thread.task.policy.is_realtime()
            && thread.kinds.iter().any(|row| row.kind == WaitKind::Throttled)
    };
    let throttled = waits.threads.iter().filter(is_throttled);
    let throttled: Vec<u32> = throttled.filter_map(|thread| thread.task.pid).collect();
    // In another namespace the numbers are other threads'.
    if !throttled.is_empty() && has_kernels_numbers() {
        let at_end = Quotas::read(Path::new("/proc"), throttled.iter().copied());
        waits.quota = at_start.that_stopped(&throttled, &at_end);
    }
    Some(waits)
}

/// The same with the threads that waited throughout the run, from its start to its end.
pub(crate) fn with_throughout(
    waits: Waits,
    (start, end): (MonoNs, MonoNs),
    threads: Vec<NamedTask>,
) -> Waits {
    let throughout = threads.len() as u64;
    let wait = |task| OpenWait { ns: end.since(start).0, at_ns: start.0, task };
    let longest_open = threads.into_iter().next().map(wait).or(waits.longest_open);
    Waits { throughout, longest_open, ..waits }
}

/// What was counted when no program counted any more.
pub(crate) struct Counted {
    counts: WaitCounts,
    threads: Vec<shared::Waits>,
}

impl Counted {
    /// Reads all of it; `None` if the maps cannot be read.
    pub(crate) fn read(programs: &Ebpf) -> Option<Self> {
        let counts = Array::<_, WaitCounts>::try_from(programs.map("wait_counts")?).ok()?;
        let threads = HashMap::<_, u32, shared::Waits>::try_from(programs.map("waits_of")?).ok()?;
        let threads = threads.iter().filter_map(Result::ok).map(|(_, waits)| waits);
        Some(Self { threads: threads.collect(), counts: counts.get(&0, 0).ok()? })
    }

    /// The same as a record has it, of a run that ended at `end`. Times count from boot.
    pub(crate) fn waits(&self, end: MonoNs) -> Waits {
        let WaitCounts { begun, ended: _, ends_missed, begins_missed, broken, no_room } =
            self.counts;
        let mut threads: Vec<ThreadWaits> = self.threads.iter().filter_map(thread).collect();
        threads.sort_by(|a, b| b.sum_ns.cmp(&a.sum_ns).then_with(|| a.task.cmp(&b.task)));
        let more = threads.split_off(threads.len().min(MOST_THREADS));
        let open: Vec<OpenWait> =
            self.threads.iter().filter_map(|waits| open(waits, end)).collect();
        Waits {
            kinds: WaitKind::ALL.into_iter().filter_map(|kind| self.row(kind)).collect(),
            threads,
            more_threads: more.len() as u64,
            more_threads_ns: sum(more.iter().map(|thread| thread.sum_ns)),
            begun,
            open: open.len() as u64,
            open_ns: sum(open.iter().map(|wait| wait.ns)),
            longest_open: open.into_iter().max_by_key(|wait| (wait.ns, Reverse(wait.task.pid))),
            throughout: 0,
            ends_missed,
            begins_missed,
            begins_missed_ns: sum(self.threads.iter().map(|waits| waits.unseen)),
            not_followed_ns: sum(self.threads.iter().map(|waits| waits.away)),
            broken,
            no_room,
            schedstat: self.schedstat(),
            quota: None,
        }
    }

    fn row(&self, kind: WaitKind) -> Option<WaitRow> {
        let all: Vec<(&shared::Waits, &WaitsOfKind)> = self
            .threads
            .iter()
            .map(|waits| (waits, &waits.of[kind as usize]))
            .filter(|(_, of)| of.count > 0)
            .collect();
        let of = |figure: fn(&WaitsOfKind) -> u64| sum(all.iter().map(|(_, of)| figure(of)));
        // Of two that are equally long it is that of the smaller number, so that it is no chance.
        let longest = all.iter().max_by_key(|(waits, of)| (of.worst, Reverse(waits.task.pid)));
        longest.map(|(waits, worst)| WaitRow {
            kind,
            count: of(|of| of.count),
            sum_ns: of(|of| of.sum),
            throttled_ns: of(|of| of.stopped),
            steal_ns: of(|of| of.steal),
            worst: (worst.worst > 0).then(|| worst_of(waits, worst)),
        })
    }

    fn schedstat(&self) -> Option<Schedstat> {
        let all = self.threads.iter().filter(|waits| waits.compared > 0);
        let of = |figure: fn(&shared::Waits) -> u64| sum(all.clone().map(figure));
        let known =
            |waits: &shared::Waits| sum([waits.by_clock, waits.unseen, waits.asleep].into_iter());
        let differing = all.clone().filter(|w| differ(known(w), w.run_delay)).count() as u64;
        let threads = all.clone().count() as u64;
        (threads > 0).then(|| Schedstat {
            threads,
            differing,
            sum_ns: of(sum_of),
            run_delay_ns: of(|waits| waits.run_delay),
            not_counted_ns: of(|waits| waits.not_in_run_delay),
            by_its_clock_ns: of(|waits| waits.by_clock),
            asleep_ns: of(|waits| waits.asleep),
        })
    }
}

fn sum(all: impl Iterator<Item = u64>) -> u64 {
    all.fold(0, u64::saturating_add)
}

fn sum_of(waits: &shared::Waits) -> u64 {
    sum(waits.of.iter().map(|of| of.sum))
}

/// The wait of a thread that still waited at the `end`.
fn open(waits: &shared::Waits, end: MonoNs) -> Option<OpenWait> {
    let task = || task_of(&waits.task).decoded().named();
    let ns = end.since(MonoNs(waits.since)).0;
    (waits.since != 0).then(|| OpenWait { ns, at_ns: waits.since, task: task() })
}

fn thread(waits: &shared::Waits) -> Option<ThreadWaits> {
    let row = |kind: WaitKind| {
        let of = &waits.of[kind as usize];
        let WaitsOfKind { count, sum: sum_ns, worst: worst_ns, .. } = *of;
        (count > 0).then_some(ThreadWaitRow { kind, count, sum_ns, worst_ns })
    };
    let kinds: Vec<ThreadWaitRow> = WaitKind::ALL.into_iter().filter_map(row).collect();
    (!kinds.is_empty()).then(|| ThreadWaits {
        task: task_of(&waits.task).decoded().named(),
        sum_ns: sum_of(waits),
        run_delay_ns: (waits.compared > 0).then_some(waits.run_delay),
        kinds,
    })
}

fn worst_of(waits: &shared::Waits, of: &WaitsOfKind) -> WorstWait {
    let who = task_of(&waits.task).decoded();
    let throttled_ns = (of.worst_unsure == 0).then_some(of.worst_stopped);
    let (ns, steal_ns) = (of.worst, of.worst_steal);
    let seen = Waited {
        ns,
        throttled_ns,
        steal_ns,
        task: Task { prio: of.worst_prio, ..who.clone() },
        normal_prio: Some(of.worst_normal_prio).filter(|&prio| prio != of.worst_prio),
        other: task_of(&of.runner).decoded(),
        other_ns: of.worst_ran,
        ordinary_ns: of.worst_all_ran[shared::ORDINARY],
        urgent_ns: of.worst_all_ran[shared::URGENT],
    };
    let (cause, culprit) = seen.cause();
    WorstWait {
        ns,
        at_ns: of.worst_at,
        cpu: of.worst_cpu,
        task: who.named(),
        cause,
        culprit,
        throttled_ns: throttled_ns.unwrap_or(0),
        steal_ns,
    }
}

#[cfg(test)]
mod tests;
