//! All waits of threads that are not ours: from when a thread could run until it did.

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::culprit::Culprit;
use super::task::NamedTask;

/// Why a thread waited that could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// It was woken.
    Woken,
    /// It had to leave its CPU, or gave it up, without going to sleep.
    Preempted,
    /// Its group or its policy had no time left, for at least half of the wait.
    Throttled,
    /// It was moved to the run queue of another CPU meanwhile.
    Migrated,
}

impl WaitKind {
    /// All of them, in the order of records.
    pub const ALL: [Self; 4] = [Self::Woken, Self::Preempted, Self::Throttled, Self::Migrated];

    /// As in records: `throttled`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Woken => "woken",
            Self::Preempted => "preempted",
            Self::Throttled => "throttled",
            Self::Migrated => "migrated",
        }
    }
}

/// All waits of the threads that were followed. Each wait is of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// Waits that have ended, by kind, in the order of [`WaitKind::ALL`]; without those that did not
    /// occur.
    pub kinds: Vec<WaitRow>,
    /// The threads that waited longest, the longest first.
    pub threads: Vec<ThreadWaits>,
    /// Threads that `threads` leaves out.
    pub more_threads: u64,
    /// The sum of their waits, nanoseconds.
    pub more_threads_ns: u64,
    /// Waits that began.
    pub begun: u64,
    /// Of these, waits that had not ended when the run did.
    pub open: u64,
    /// How long these had lasted by then, together, nanoseconds: in no other sum.
    pub open_ns: u64,
    /// Threads that waited already when the run began and had not run when it ended: in no other number.
    /// Older records do not have it.
    #[serde(default)]
    pub throughout: u64,
    /// The longest of the waits that had not ended, of `throughout` if there was one. Older records do not have
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_open: Option<OpenWait>,
    /// Of those that ended, waits whose end was not seen: the kernel's own account tells how long they
    /// were, and two of a row may be one.
    pub ends_missed: u64,
    /// Waits that only the kernel's own account shows, since they were not seen to begin: in no kind's
    /// sum.
    pub begins_missed: u64,
    /// How long these were together, nanoseconds.
    pub begins_missed_ns: u64,
    /// What the kernel's own account shows of threads for a time when they were not followed, since they had
    /// another name or were in another cgroup, nanoseconds: in no other sum, nor in what these are compared
    /// with. Older records do not have it.
    #[serde(default)]
    pub not_followed_ns: u64,
    /// Of those that began, waits whose end was not seen, and that the kernel does not count either: in
    /// no sum.
    pub broken: u64,
    /// Waits of threads for which there was no room: they did not even begin here.
    pub no_room: u64,
    /// The comparison with the kernel's own account; `None` where the kernel keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedstat: Option<Schedstat>,
    /// The quota that throttled the threads, if it is known which did: the same cgroup had it from begin to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
}

/// All waits of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    /// Which.
    pub kind: WaitKind,
    /// How many.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub sum_ns: u64,
    /// What of that sum a quota or throttle took, nanoseconds.
    pub throttled_ns: u64,
    /// What of that sum the hypervisor took, nanoseconds, of waits that began and ended on one CPU.
    pub steal_ns: u64,
    /// The longest of those that were seen to end; `None` if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstWait>,
}

/// The longest wait of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorstWait {
    /// How long, nanoseconds.
    pub ns: u64,
    /// When it began, nanoseconds from the start of the run.
    pub at_ns: u64,
    /// The CPU that it ended on.
    pub cpu: u32,
    /// Who waited.
    pub task: NamedTask,
    /// What took most of it, as far as that is known.
    pub cause: Cause,
    /// Who took the CPU, or had it last, whichever of them had it for most of the wait.
    #[serde(default)]
    pub culprit: Culprit,
    /// What a quota or throttle took of it, nanoseconds.
    pub throttled_ns: u64,
    /// What the hypervisor took of it, nanoseconds.
    pub steal_ns: u64,
}

/// A wait that had not ended when the run did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenWait {
    /// How long it had lasted by then, without what came before the run, nanoseconds: less than the wait.
    pub ns: u64,
    /// When it began, or the run if that was later, nanoseconds from the start of the run.
    pub at_ns: u64,
    /// Who waited.
    pub task: NamedTask,
}

/// All waits of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadWaits {
    /// Which. It may have ended.
    pub task: NamedTask,
    /// The sum of its waits, nanoseconds.
    pub sum_ns: u64,
    /// By how much field 2 of /proc/TID/schedstat grew by the same waits, nanoseconds; `None` where the
    /// kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_ns: Option<u64>,
    /// By kind, without those that did not occur.
    pub kinds: Vec<ThreadWaitRow>,
}

/// The waits of a thread of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadWaitRow {
    /// Which.
    pub kind: WaitKind,
    /// How many.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds.
    pub worst_ns: u64,
}

/// The same waits by the kernel's own account, field 2 of /proc/TID/schedstat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedstat {
    /// Threads that were compared.
    pub threads: u64,
    /// Of these, threads whose sums contradict the kernel's.
    pub differing: u64,
    /// The sum of their waits here, nanoseconds.
    pub sum_ns: u64,
    /// By how much the kernel's account of them grew, nanoseconds.
    pub run_delay_ns: u64,
    /// What of `sum_ns` the kernel does not count, nanoseconds: waits of threads that were preempted
    /// when they were about to sleep.
    pub not_counted_ns: u64,
    /// The sum of the waits that the kernel counts, by the clock that it counts them with, nanoseconds.
    /// That clock may stand still for a part of a wait. With the waits that were not seen to begin, and
    /// `asleep_ns`, this is `run_delay_ns`.
    pub by_its_clock_ns: u64,
    /// What the kernel counted as waiting although the threads slept, nanoseconds: from 6.12 on it does that
    /// of threads that are moved to another CPU just after they fell asleep. Older records do not have it.
    #[serde(default)]
    pub asleep_ns: u64,
}

impl Schedstat {
    /// All that is known here of what the kernel has counted, with waits of `begins_missed_ns` that were not
    /// seen to begin.
    pub fn known_ns(&self, begins_missed_ns: u64) -> u64 {
        self.by_its_clock_ns.saturating_add(begins_missed_ns).saturating_add(self.asleep_ns)
    }
}

/// A quota of CPU time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// The path of the cgroup that has it, in its hierarchy.
    pub cgroup: String,
    /// Time that its threads may take of each period, together, nanoseconds.
    pub quota_ns: u64,
    /// That period, nanoseconds.
    pub period_ns: u64,
}

impl Waits {
    /// The waits of this kind, if there were any.
    pub fn of(&self, kind: WaitKind) -> Option<&WaitRow> {
        self.kinds.iter().find(|row| row.kind == kind)
    }

    /// Waits that have ended.
    pub fn ended(&self) -> u64 {
        self.kinds.iter().fold(0, |sum, row| sum.saturating_add(row.count))
    }

    /// The sum of all that have ended, nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.kinds.iter().fold(0, |sum, row| sum.saturating_add(row.sum_ns))
    }

    /// The longest wait that was not over at the end, if it had lasted longer than any that ended.
    pub fn longest_is_open(&self) -> Option<&OpenWait> {
        let ended = self.kinds.iter().filter_map(|row| row.worst.as_ref());
        let ended_ns = ended.map(|worst| worst.ns).max();
        self.longest_open.as_ref().filter(|open| Some(open.ns) > ended_ns)
    }

    /// What quotas and throttles took of these, nanoseconds.
    pub fn throttled_ns(&self) -> u64 {
        self.kinds.iter().fold(0, |sum, row| sum.saturating_add(row.throttled_ns))
    }
}
