//! Whether what was counted of tasks is what the kernel has counted of them.

use std::fs;
use std::path::Path;

use aya::maps::{Array, HashMap, Map, MapData};
use wakescope_core::units::MonoNs;
use wakescope_core::watch::Audit;
use wakescope_sys::clock;

use super::layout::TaskBooks;
use super::runnable::is_runnable;
use crate::error::TraceError;
use crate::target::{TargetError, has_kernels_numbers};
use crate::threads;

/// How often a task is looked at that ran, or began to, while it was compared.
const TRIES: u32 = 5;

/// Compares tasks, some each time: all of them in turn.
pub(super) struct Auditor {
    books: Books,
    /// Those below were compared last.
    next: u32,
}

/// The books of all tasks.
struct Books {
    /// Each at the place that its task's number gives.
    places: Array<MapData, TaskBooks>,
    /// Which task has a place.
    owners: HashMap<MapData, u32, u32>,
    /// Those of tasks whose place another has.
    displaced: HashMap<MapData, u32, TaskBooks>,
}

impl Books {
    /// The numbers of all tasks, ascending.
    fn tasks(&self) -> Vec<u32> {
        let owners = self.owners.iter().filter_map(|entry| Some(entry.ok()?.1));
        let mut all: Vec<u32> =
            owners.chain(self.displaced.keys().filter_map(Result::ok)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn of(&self, task: u32) -> Option<TaskBooks> {
        let place = self.places.get(&(task % self.places.len()), 0).ok();
        let own = place.filter(|books| books.pid == task);
        own.or_else(|| self.displaced.get(&task, 0).ok())
    }
}

/// What a comparison of a task says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Equal, after so many waits.
    Equal(u64),
    /// The kernel has counted more waits.
    Behind,
    /// The sums differ by this, ns, or only the counts.
    Differing(u64),
    Busy,
    Gone,
}

impl Auditor {
    /// An auditor of the program's maps with these names.
    pub(super) fn of(places: Map, owners: Map, displaced: Map) -> Result<Self, TraceError> {
        if !has_kernels_numbers() {
            return Err(TraceError::Target(TargetError::Namespace));
        }
        let books = Books {
            places: Array::try_from(places).map_err(super::refused("places"))?,
            owners: HashMap::try_from(owners).map_err(super::refused("owners"))?,
            displaced: HashMap::try_from(displaced).map_err(super::refused("displaced"))?,
        };
        Ok(Self { books, next: 0 })
    }

    /// Compares tasks until `end`, beginning where it stopped last time.
    pub(super) fn compare(&mut self, end: MonoNs) -> Audit {
        let mut ids = self.books.tasks();
        let first = ids.partition_point(|&id| id < self.next);
        ids.rotate_left(first);
        let mut audit = Audit::default();
        for (done, &id) in ids.iter().enumerate() {
            if clock::now() >= end {
                self.next = id;
                audit.not_reached = (ids.len() - done) as u64;
                break;
            }
            match self.verdict(id) {
                Verdict::Equal(waits) => {
                    audit.equal += 1;
                    audit.waits += waits;
                }
                Verdict::Behind => audit.behind += 1,
                Verdict::Differing(ns) => {
                    audit.differing += 1;
                    audit.largest_ns = audit.largest_ns.max(ns);
                }
                Verdict::Busy => audit.busy += 1,
                Verdict::Gone => audit.gone += 1,
            }
        }
        audit
    }

    fn verdict(&self, id: u32) -> Verdict {
        let folder = threads::folder_of(Path::new("/proc"), id);
        let mut verdict = Verdict::Busy;
        for _ in 0..TRIES {
            let Some(before) = self.books.of(id) else { return Verdict::Gone };
            let Ok(text) = fs::read_to_string(folder.join("schedstat")) else {
                return Verdict::Gone;
            };
            let stat = fs::read(folder.join("stat")).unwrap_or_default();
            let Some(after) = self.books.of(id) else { return Verdict::Gone };
            let Some(kernel) = run_delay_and_arrivals(&text) else { return Verdict::Gone };
            verdict = judge(&before, &after, kernel, is_runnable(&stat));
            if let Verdict::Equal(_) = verdict {
                break;
            }
        }
        verdict
    }
}

/// Compares books that were read before and after the kernel's counts. The kernel adds a wait just after
/// the program does, and what a task waits in the queue of another CPU before the program does: so a task
/// that can run is compared only where both agree.
fn judge(
    before: &TaskBooks,
    after: &TaskBooks,
    (run_delay, arrivals): (u64, u64),
    is_runnable: bool,
) -> Verdict {
    let delay_here = after.run_delay_before.wrapping_add(after.sum);
    let arrivals_here = after.arrivals_before.wrapping_add(after.count);
    // Kernels that count arrivals without a stamp have them in their count already.
    let more = arrivals.wrapping_sub(arrivals_here);
    let counts_agree = more <= u64::from(after.unstamped);
    match () {
        () if before != after => Verdict::Busy,
        () if counts_agree && delay_here == run_delay => Verdict::Equal(after.count),
        () if is_runnable => Verdict::Busy,
        () if !counts_agree && arrivals > arrivals_here && run_delay >= delay_here => {
            Verdict::Behind
        }
        () => Verdict::Differing(delay_here.abs_diff(run_delay)),
    }
}

/// Fields 2 and 3 of /proc/TID/schedstat.
fn run_delay_and_arrivals(schedstat: &str) -> Option<(u64, u64)> {
    let mut fields = schedstat.split_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKS: TaskBooks = TaskBooks {
        run_delay: 1_000,
        arrivals: 10,
        run_delay_before: 400,
        arrivals_before: 4,
        count: 6,
        sum: 600,
        row: 1,
        unstamped: 0,
        queue: 0,
        throttled: 0,
        sleeps: 0,
        moves: 0,
        task: 1,
        pid: 1,
        stopped_after: 0,
    };

    #[track_caller]
    fn check(kernel: (u64, u64), is_runnable: bool, want: Verdict) {
        assert_eq!(judge(&BOOKS, &BOOKS, kernel, is_runnable), want, "{kernel:?}");
    }

    #[test]
    fn books_are_equal_to_the_nanosecond_or_not() {
        check((1_000, 10), false, Verdict::Equal(6));
        check((1_000, 10), true, Verdict::Equal(6));
        check((1_001, 10), false, Verdict::Differing(1));
        check((999, 10), false, Verdict::Differing(1));
        check((1_000, 11), false, Verdict::Behind);
        check((1_007, 12), false, Verdict::Behind);
        check((999, 11), false, Verdict::Differing(1));
        check((1_000, 9), false, Verdict::Differing(0));
        // It may wait, and have waited elsewhere before.
        check((1_001, 10), true, Verdict::Busy);
        let later = TaskBooks { count: 7, ..BOOKS };
        assert_eq!(judge(&BOOKS, &later, (1_000, 10), false), Verdict::Busy);
    }

    #[test]
    fn arrivals_without_a_stamp_may_be_counted() {
        let books = TaskBooks { unstamped: 2, ..BOOKS };
        for (arrivals, want) in [
            (10, Verdict::Equal(6)),
            (12, Verdict::Equal(6)),
            (13, Verdict::Behind),
            (9, Verdict::Differing(0)),
        ] {
            assert_eq!(judge(&books, &books, (1_000, arrivals), false), want, "{arrivals}");
        }
    }

    #[test]
    fn what_proc_says_is_read() {
        assert_eq!(run_delay_and_arrivals("1243318 675409 4\n"), Some((675_409, 4)));
        assert_eq!(run_delay_and_arrivals("12"), None);
    }
}
