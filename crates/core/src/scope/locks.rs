//! Locks of a guest's kernel, by who took and who released them, as the emulator saw it.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::faults::fault_of;
use super::{Kind, Place};
use crate::distribution::Distribution;
use crate::faults::{first, more_than_whole, wrong_sum};
use crate::run::Episode;

/// Locks that were taken while a cell measured. All times are virtual.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Locks {
    /// How often one was held, in all rows.
    pub holds: u64,
    /// Held longest first.
    pub rows: Vec<LockRow>,
    /// Single holds, longest first; up to 1,000.
    pub longest: Vec<Hold>,
    /// Kinds of locks, and functions, that are not seen in this kernel.
    pub not_seen: Vec<NotSeen>,
    /// What could not be put together, and what should not be.
    pub doubts: Doubts,
    /// Of the latest wakeups, in their order: the locks that were held while they waited.
    pub in_episodes: Vec<EpisodeLocks>,
}

/// All holds of locks of one kind and name that were taken in one place and released in another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockRow {
    /// What kind of lock, and held how.
    pub kind: LockKind,
    /// The variable that it is a part of; `null` if none is known: it is in memory that was allocated, of a module, or
    /// on arm64 of one CPU.
    pub lock: Option<String>,
    /// How many different locks they were, by their addresses.
    pub locks: u64,
    /// The function that took it, and what called that.
    pub taken: Place,
    /// The function that released it, and what called that.
    pub released: Place,
    /// From when the function that took it had returned until the one that released it began.
    pub held: Distribution,
    /// How long those waited that found it held by another: from the call until its return.
    pub waited: Distribution,
    /// Who had taken it that the longest of these waited for, if that was seen.
    pub waited_for: Option<Place>,
    /// In which sections with interrupts or preemption off it was taken, the most time first. Of locks that spin.
    pub sections: Vec<InSection>,
}

/// A lock that was held once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The place of its row in [`Locks::rows`].
    pub row: u64,
    /// The pid of the task that took it.
    pub pid: u32,
    /// When, since the machine was turned on, ns.
    pub begin_ns: u64,
    /// How long, ns.
    pub length_ns: u64,
}

/// How long locks were held within sections that they were taken in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InSection {
    /// What was off.
    pub kind: Kind,
    /// Where the sections began.
    pub began: Place,
    /// Where they ended.
    pub ended: Place,
    /// How often a lock was taken within one.
    pub holds: u64,
    /// How long these were held before the section ended, ns.
    pub ns: u64,
}

/// A kind of lock, and how it was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// A spin lock; with `PREEMPT_RT` a raw one.
    Spin,
    /// A spinning `rwlock`, by a reader.
    Read,
    /// The same by a writer.
    Write,
    /// A mutex.
    Mutex,
    /// A semaphore for readers and writers, by a reader.
    RwsemRead,
    /// The same by a writer.
    RwsemWrite,
    /// A spin lock of `PREEMPT_RT`, which sleeps.
    RtSpin,
    /// An `rwlock` of `PREEMPT_RT`, by a reader.
    RtRead,
    /// The same by a writer.
    RtWrite,
    /// An `rt_mutex` by itself.
    RtMutex,
    /// A counting semaphore.
    Semaphore,
}

impl LockKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Spin,
        Self::Read,
        Self::Write,
        Self::Mutex,
        Self::RwsemRead,
        Self::RwsemWrite,
        Self::RtSpin,
        Self::RtRead,
        Self::RtWrite,
        Self::RtMutex,
        Self::Semaphore,
    ];

    /// Whether preemption is off while it is held, so that nobody else can want it on one CPU.
    pub fn spins(self) -> bool {
        matches!(self, Self::Spin | Self::Read | Self::Write)
    }

    /// Whether several can hold it at once.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Read | Self::RwsemRead | Self::RtRead | Self::Semaphore)
    }
}

/// A kind of lock of which something is not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSeen {
    /// Which.
    pub kind: LockKind,
    /// Whether none of the kind is seen; if not, only those that these functions would take.
    pub whole: bool,
    /// Functions that the kernel lacks: their code is a part of those that would call them. Empty if tasks are not
    /// known, to which such locks belong.
    pub functions: Vec<String>,
}

/// What could not be put together. None of it is in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubts {
    /// Released in the measured time, but taken before it.
    pub taken_before: u64,
    /// Still held when the edges end.
    pub held_at_end: u64,
    /// Released without having been seen taken.
    pub not_seen_taken: u64,
    /// Taken anew without having been seen released, as a lock that is made anew.
    pub not_seen_released: u64,
    /// Sleeping locks that another task released than had taken them. These are in rows.
    pub handed_over: u64,
    /// Locks that spin and were held although preemption was not off.
    pub outside_section: u64,
    /// Calls that were not followed up to their return, for there were too many.
    pub calls_lost: u64,
}

/// Locks that were held while a wakeup was late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpisodeLocks {
    /// When the wakeup was due, since the start of the run, ns.
    pub expiry_ns: u64,
    /// Those held longest of that time first.
    pub locks: Vec<LockInEpisode>,
}

/// A lock that was held while a wakeup was late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockInEpisode {
    /// What kind of lock, and held how.
    pub kind: LockKind,
    /// The variable that it is a part of.
    pub lock: Option<String>,
    /// The function that took it, and what called that.
    pub taken: Place,
    /// The pid of the task that took it.
    pub pid: u32,
    /// How long it was held of the time of this wakeup, ns.
    pub ns: u64,
    /// How long it was held in all, ns.
    pub held_ns: u64,
}

impl Locks {
    /// What contradicts itself in them, or the late wakeups that are shown, if anything does.
    pub(super) fn fault(&self, episodes: &[Episode]) -> Option<String> {
        let counts = self.rows.iter().map(|row| row.held.count);
        wrong_sum("holds", self.holds, "those of rows", counts)
            .or_else(|| first("rows", &self.rows, LockRow::fault))
            .or_else(|| {
                let listed = ("the number of longest", self.longest.len() as u64);
                more_than_whole([(listed, ("holds", self.holds))])
            })
            .or_else(|| first("longest", &self.longest, |hold| self.fault_of_hold(hold)))
            .or_else(|| self.fault_of_episodes(episodes))
    }

    fn fault_of_hold(&self, hold: &Hold) -> Option<String> {
        let row = usize::try_from(hold.row).ok().and_then(|row| self.rows.get(row));
        let Some(row) = row else { return Some(format!("there is no row {}", hold.row)) };
        let (range, length_ns) = (row.range_ns(), hold.length_ns);
        (!range.contains(&length_ns)).then(|| {
            let (min, max) = range.into_inner();
            format!("length_ns is {length_ns}, but those of its row are from {min} to {max}")
        })
    }

    /// It is one of the holds of a row.
    fn fault_of_held(&self, lock: &LockInEpisode) -> Option<String> {
        let is_its = |row: &&LockRow| {
            (row.kind, &row.lock, &row.taken) == (lock.kind, &lock.lock, &lock.taken)
        };
        let mut rows = self.rows.iter().filter(is_its);
        let is_known = rows.any(|row| row.range_ns().contains(&lock.held_ns));
        (!is_known).then(|| format!("held_ns is {}, as in no row of that lock", lock.held_ns))
    }

    /// Each of these wakeups has its locks. A record may lack the wakeups.
    fn fault_of_episodes(&self, episodes: &[Episode]) -> Option<String> {
        if !episodes.is_empty() && self.in_episodes.len() != episodes.len() {
            let (own, all) = (self.in_episodes.len(), episodes.len());
            return Some(format!("in_episodes are {own}, but episodes are {all}"));
        }
        let pairs: Vec<(&EpisodeLocks, &Episode)> = self.in_episodes.iter().zip(episodes).collect();
        first("in_episodes", &pairs, |(locks, episode)| {
            if locks.expiry_ns != episode.expiry_ns {
                let (own, all) = (locks.expiry_ns, episode.expiry_ns);
                return Some(format!("expiry_ns is {own}, but that of the episode is {all}"));
            }
            let late = ("wakeup_latency_ns of the episode", episode.wakeup_latency_ns);
            first("locks", &locks.locks, |lock| {
                let ns = ("ns", lock.ns);
                more_than_whole([(ns, ("held_ns", lock.held_ns)), (ns, late)])
                    .or_else(|| self.fault_of_held(lock))
            })
        })
    }
}

impl LockRow {
    /// The shortest and the longest hold, ns.
    fn range_ns(&self) -> RangeInclusive<u64> {
        self.held.min_ns.unwrap_or(0)..=self.held.max_ns.unwrap_or(0)
    }

    fn fault(&self) -> Option<String> {
        let held = ("the number of holds", self.held.count);
        let of_distribution = |key: &str, lengths: &Distribution| {
            fault_of(lengths).map(|fault| format!("{key}: {fault}"))
        };
        of_distribution("held", &self.held)
            .or_else(|| of_distribution("waited", &self.waited))
            .or_else(|| {
                let waits = ("the number of waits", self.waited.count);
                more_than_whole([(("locks", self.locks), held), (waits, held)])
            })
            .or_else(|| {
                let is_none = self.locks == 0 && self.held.count > 0;
                is_none.then(|| format!("locks is 0, but there are {} holds", self.held.count))
            })
            .or_else(|| {
                first("sections", &self.sections, |section| {
                    let sum = ("sum_ns of held", self.held.sum_ns);
                    more_than_whole([(("holds", section.holds), held), (("ns", section.ns), sum)])
                })
            })
            .or_else(|| {
                let is_seen = self.waited_for.is_some() && self.waited.count == 0;
                is_seen.then(|| "waited_for is there, but nobody waited".into())
            })
    }
}
