//! The locks that are shown of a wakeup: a row for who holds each, and rows for those that wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use wakescope_model::Image;
use wakescope_model::image::LockId;
use wakescope_model::scenario::softirq_name;
use wakescope_model::timeline::{LockSpan, Timeline};
use wakescope_model::trace::LockUser;

use crate::style::clean;
use wakescope_core::units::{counted, one_or_many};

/// So many locks are shown: those that somebody waited for, then those that were held longest.
const LOCKS: usize = 6;

/// So many wait for a lock at a time; what more there are is counted.
const WAITERS: usize = 4;

/// Rows of locks, and what has no place in them.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    /// A sentence each.
    pub(crate) left_out: Vec<String>,
}

/// Spans of a lock of which none lies over another, by their beginning.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) lock: LockId,
    /// Whether these wait; else they hold the lock.
    pub(crate) waits: bool,
    pub(crate) spans: Vec<LockSpan>,
}

impl Rows {
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let mut locks: BTreeMap<LockId, Vec<LockSpan>> = BTreeMap::new();
        let within =
            |span: &&LockSpan| span.from_ns < timeline.to_ns && span.to_ns > timeline.from_ns;
        for span in timeline.locks.iter().filter(within) {
            locks.entry(span.lock).or_default().push(*span);
        }
        let mut locks: Vec<(LockId, Vec<LockSpan>)> = locks.into_iter().collect();
        let length = |spans: &[LockSpan], waits: bool| -> u64 {
            let own = spans.iter().filter(|span| span.waits == waits);
            own.map(|s| s.to_ns.min(timeline.to_ns) - s.from_ns.max(timeline.from_ns)).sum()
        };
        // Stable: of two alike, the one with the lower number.
        locks.sort_by_key(|(_, spans)| Reverse((length(spans, true), length(spans, false))));
        let mut rows = Self::default();
        for (lock, spans) in locks.iter().take(LOCKS) {
            rows.add(*lock, spans);
        }
        rows.leave_out(locks.len().saturating_sub(LOCKS) as u64, "more lock");
        rows.leave_out(timeline.left_out, "more timeline entry");
        rows
    }

    fn add(&mut self, lock: LockId, spans: &[LockSpan]) {
        let of = |waits: bool| spans.iter().filter(move |span| span.waits == waits).copied();
        self.rows.push(Row { lock, waits: false, spans: of(false).collect() });
        let mut lanes: Vec<Vec<LockSpan>> = Vec::new();
        let mut left_out = 0_u64;
        for span in of(true) {
            let is_free =
                |lane: &Vec<LockSpan>| lane.last().is_none_or(|last| last.to_ns <= span.from_ns);
            match lanes.iter().position(is_free) {
                Some(at) => lanes[at].push(span),
                None if lanes.len() < WAITERS => lanes.push(vec![span]),
                None => left_out += 1,
            }
        }
        self.rows.extend(lanes.into_iter().map(|spans| Row { lock, waits: true, spans }));
        self.leave_out(left_out, "more lock wait");
    }

    /// Says how many there is no room for. `what` ends with the word that has the plural.
    fn leave_out(&mut self, count: u64, what: &str) {
        if count > 0 {
            let are = one_or_many(count, "is", "are");
            self.left_out.push(format!("{} {are} not shown", counted(count, what)));
        }
    }
}

impl Row {
    /// What stands beside it: the lock, or that these wait for the lock above.
    pub(crate) fn name(&self, image: &Image) -> String {
        match self.waits {
            true => "  waits".into(),
            false => clean(&image.locks[self.lock.index()], 64),
        }
    }
}

/// Who holds a lock or waits for it.
pub(crate) fn user(image: &Image, by: LockUser) -> String {
    match by {
        LockUser::Task(task) => clean(image.task_name(Some(task)), 15),
        LockUser::Interrupt(source) => clean(&image.sources[source.index()].name, 64),
        LockUser::Softirq(number) => format!("softirq {}", softirq_name(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_in_words() {
        let span = |lock: u16, waits: bool| LockSpan {
            lock: LockId(lock),
            waits,
            by: LockUser::Softirq(0),
            from_ns: 0,
            to_ns: 10,
        };
        for (more, want) in [
            (0, &[][..]),
            (
                1,
                &[
                    "1 more lock wait is not shown",
                    "1 more lock is not shown",
                    "1 more timeline entry is not shown",
                ],
            ),
            (
                3,
                &[
                    "3 more lock waits are not shown",
                    "3 more locks are not shown",
                    "3 more timeline entries are not shown",
                ],
            ),
        ] {
            let held = (0..LOCKS + more).map(|lock| span(u16::try_from(lock).unwrap(), false));
            let waits = (0..WAITERS + more).map(|_| span(0, true));
            let timeline = Timeline {
                to_ns: 10,
                locks: held.chain(waits).collect(),
                left_out: more as u64,
                ..Timeline::default()
            };
            assert_eq!(Rows::of(&timeline).left_out, want);
        }
    }
}
