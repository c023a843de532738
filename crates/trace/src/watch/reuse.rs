//! Rows of series that have no waits any more, for others.
//!
//! A row is given back in two steps: first the program no longer finds it, and once no run of the program
//! can still count in it, what it counted there is taken.

use std::collections::{BTreeMap, BTreeSet};

use aya::maps::{HashMap, Map, MapData, Queue};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::{Series, Waits};

use super::refused;
use crate::error::TraceError;

/// How long a row rests between the two steps at most. A run of the program takes microseconds, with
/// interrupts off, but a hypervisor can stop it. What a CPU counts that was stopped for longer than this is
/// counted for the next owner of the row.
const MOST_REST: SpanNs = SpanNs(10_000_000_000);

/// The program's free rows, and what is known of those that were given back.
pub(super) struct Reuse {
    known: HashMap<MapData, [u64; 3], u32>,
    free: Queue<MapData, u32>,
    resting: Vec<Resting>,
    /// The waits of series whose rows were given back.
    ended: BTreeMap<(u64, String), Series>,
    /// Waits of those beyond the limit.
    others: Waits,
    limit: usize,
}

/// Rows that the program no longer finds.
struct Resting {
    rows: BTreeSet<u32>,
    /// How many runs of the program each CPU had begun when they were hidden.
    runs: Vec<u64>,
    since: MonoNs,
}

impl Resting {
    /// Whether no run can have found these rows that has not ended. When a CPU begins a run, its last one has
    /// ended; a CPU without a run since may be idle, or stopped in the middle of one.
    fn is_over(&self, runs: &[u64], now: MonoNs) -> bool {
        let has_ended = |(&then, &now): (&u64, &u64)| then == 0 || now > then;
        self.runs.iter().zip(runs).all(has_ended) || now.since(self.since) >= MOST_REST
    }
}

impl Reuse {
    /// All rows up to `limit` are free: the program's maps are given.
    pub(super) fn of(known: Map, free: Map, limit: u32) -> Result<Self, TraceError> {
        let known = HashMap::try_from(known).map_err(refused("series_rows"))?;
        let mut free = Queue::try_from(free).map_err(refused("free_rows"))?;
        for row in super::layout::OTHERS + 1..=limit {
            free.push(row, 0).map_err(refused("free_rows"))?;
        }
        let (resting, ended, others) = (Vec::new(), BTreeMap::new(), Waits::default());
        Ok(Self { known, free, resting, ended, others, limit: limit as usize })
    }

    /// Has the program find the row of this series no more.
    pub(super) fn hide(&mut self, key: [u64; 3]) {
        // It is not there only if it was given back already.
        let _ = self.known.remove(&key);
    }

    /// Has rows rest that are hidden. Each CPU has begun so many runs of the program by now.
    pub(super) fn rest(&mut self, rows: BTreeSet<u32>, runs: Vec<u64>, now: MonoNs) {
        if !rows.is_empty() {
            self.resting.push(Resting { rows, runs, since: now });
        }
    }

    /// Rows that have rested for long enough: nothing is counted in them any more.
    pub(super) fn rested(&mut self, runs: &[u64], now: MonoNs) -> Vec<u32> {
        let (done, rest) = std::mem::take(&mut self.resting)
            .into_iter()
            .partition::<Vec<_>, _>(|resting| resting.is_over(runs, now));
        self.resting = rest;
        done.into_iter().flat_map(|resting| resting.rows).collect()
    }

    /// Whether the row rests.
    pub(super) fn is_resting(&self, row: u32) -> bool {
        self.resting.iter().any(|resting| resting.rows.contains(&row))
    }

    /// Gives a row, which is empty again, to whoever needs one. All that `series` had is kept.
    pub(super) fn give_back(&mut self, row: u32, series: Series) {
        // There is room: each row is in the queue once at most.
        let _ = self.free.push(row, 0);
        let key = (series.cgroup_id, series.comm.clone());
        let sum = match self.ended.contains_key(&key) || self.ended.len() < self.limit {
            true => {
                let none = Series { waits: Waits::default(), ..series.clone() };
                &mut self.ended.entry(key).or_insert(none).waits
            }
            false => &mut self.others,
        };
        *sum = sum.merged(&series.waits);
    }

    /// The waits of all series: those that have rows, and those that had one. What is beyond the limit is
    /// added to `others`.
    pub(super) fn total(&self, rows: Vec<Series>, others: &mut Waits) -> Vec<Series> {
        *others = others.merged(&self.others);
        merged(self.ended.values().cloned().chain(rows).collect())
    }
}

/// Each series once, with what all of its rows counted. It may have several: one that rests and its successor, and up
/// to 5.16 one for each of the longer names that its tasks had before, the ends of which these tasks keep.
pub(super) fn merged(mut rows: Vec<Series>) -> Vec<Series> {
    fn key(series: &Series) -> (u64, &str) {
        (series.cgroup_id, &series.comm)
    }
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
    rows.dedup_by(|next, first| {
        let is_same = key(next) == key(first);
        if is_same {
            first.waits.add(&next.waits);
        }
        is_same
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_with_several_rows_is_one() {
        let rows = [(2, "ls", 5), (1, "ls", 7), (1, "cat", 8), (1, "ls", 1_000_000), (1, "ls", 9)];
        let rows = rows.map(|(cgroup_id, comm, sum_ns)| Series {
            cgroup_id,
            cgroup: None,
            comm: comm.into(),
            waits: Waits { count: 1, sum_ns, ..Waits::default() },
        });
        let all = merged(rows.into());
        let all =
            all.iter().map(|it| (it.cgroup_id, &it.comm[..], it.waits.count, it.waits.sum_ns));
        let want = [(1, "cat", 1, 8), (1, "ls", 3, 1_000_016), (2, "ls", 1, 5)];
        assert_eq!(all.collect::<Vec<_>>(), want);
        assert_eq!(merged(Vec::new()), []);
    }

    #[test]
    fn rows_rest_until_no_run_can_count_in_them() {
        let runs = vec![10, 0, 30];
        let resting = Resting { rows: BTreeSet::new(), runs, since: MonoNs(5_000_000_000) };
        for (runs, after_s, want) in [
            // The last CPU may be stopped in its 30th run.
            ([11, 0, 30], 1, false),
            ([11, 0, 30], 9, false),
            ([11, 0, 30], 10, true),
            ([11, 0, 31], 0, true),
            ([10, 5, 31], 1, false),
        ] {
            let now = MonoNs((5 + after_s) * 1_000_000_000);
            assert_eq!(resting.is_over(&runs, now), want, "{runs:?} {after_s}");
        }
    }
}
