//! Rows of series that have no waits any more, for others.
//!
//! A row is given back in two steps: first the program no longer finds it, and a second later what it still
//! counted there is taken. A run of the program that had found it takes microseconds, with interrupts off.

use std::collections::BTreeMap;

use aya::maps::{HashMap, Map, MapData, Queue};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::{Series, Waits};

use super::refused;
use crate::error::TraceError;

/// How long a row rests between the two steps.
const REST: SpanNs = SpanNs(1_000_000_000);

/// The program's free rows, and what is known of those that were given back.
pub(super) struct Reuse {
    known: HashMap<MapData, [u64; 3], u32>,
    free: Queue<MapData, u32>,
    /// Rows that the program no longer finds, and since when.
    resting: BTreeMap<u32, MonoNs>,
    /// The waits of series whose rows were given back.
    ended: BTreeMap<(u64, String), Series>,
    /// Waits of those beyond the limit.
    others: Waits,
    limit: usize,
}

impl Reuse {
    /// All rows up to `limit` are free: the program's maps are given.
    pub(super) fn of(known: Map, free: Map, limit: u32) -> Result<Self, TraceError> {
        let known = HashMap::try_from(known).map_err(refused("series_rows"))?;
        let mut free = Queue::try_from(free).map_err(refused("free_rows"))?;
        for row in super::layout::OTHERS + 1..=limit {
            free.push(row, 0).map_err(refused("free_rows"))?;
        }
        let (resting, ended, others) = (BTreeMap::new(), BTreeMap::new(), Waits::default());
        Ok(Self { known, free, resting, ended, others, limit: limit as usize })
    }

    /// Has the program find the row of this series no more.
    pub(super) fn rest(&mut self, row: u32, key: [u64; 3], now: MonoNs) {
        // It is not there only if it was given back already.
        let _ = self.known.remove(&key);
        self.resting.insert(row, now);
    }

    /// Rows that have rested for long enough: nothing is counted in them any more.
    pub(super) fn rested(&mut self, now: MonoNs) -> Vec<u32> {
        let is_done = |since: MonoNs| now.since(since) >= REST;
        let resting = self.resting.iter().filter(|&(_, &since)| is_done(since));
        let done = resting.map(|(&row, _)| row).collect();
        self.resting.retain(|_, since| !is_done(*since));
        done
    }

    /// Whether the row rests.
    pub(super) fn is_resting(&self, row: u32) -> bool {
        self.resting.contains_key(&row)
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
        let mut all = self.ended.clone();
        for series in rows {
            let key = (series.cgroup_id, series.comm.clone());
            let sum =
                all.entry(key).or_insert(Series { waits: Waits::default(), ..series.clone() });
            sum.waits = sum.waits.merged(&series.waits);
        }
        *others = others.merged(&self.others);
        all.into_values().collect()
    }
}
