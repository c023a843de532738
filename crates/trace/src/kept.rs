//! The latest wakeups, as many as there is room for.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::shared::{Event, Head, RING, Wakeup, from_bytes};

/// A wakeup with what its CPU saw.
pub(crate) struct Late {
    pub(crate) wakeup: Wakeup,
    pub(crate) events: Vec<Event>,
    pub(crate) lost: u32,
}

impl Late {
    /// What a record says; `None` if it is too short for one.
    pub(crate) fn of(record: &[u8]) -> Option<Self> {
        let head = from_bytes::<Head>(record)?;
        let events = record[size_of::<Head>()..].chunks_exact(size_of::<Event>());
        let events = events.take((head.events as usize).min(RING));
        let events = events.filter_map(from_bytes::<Event>).map(|event| *event).collect();
        Some(Self { wakeup: head.wakeup, events, lost: head.events_lost })
    }

    pub(crate) fn late_ns(&self) -> u64 {
        self.wakeup.response.saturating_sub(self.wakeup.due)
    }
}

/// By lateness, then by time: which are kept must not depend on the order in which CPUs are read.
impl Ord for Late {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |late: &Self| (late.late_ns(), Reverse(late.wakeup.due), late.wakeup.cpu);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Late {}

/// The latest wakeups so far.
pub(crate) struct Kept {
    heap: BinaryHeap<Reverse<Late>>,
    room: usize,
}

impl Kept {
    pub(crate) fn with_room_for(room: usize) -> Self {
        Self { heap: BinaryHeap::new(), room }
    }

    /// Takes `late`; where there is no room, the least late one goes.
    pub(crate) fn add(&mut self, late: Late) {
        self.heap.push(Reverse(late));
        if self.heap.len() > self.room {
            self.heap.pop();
        }
    }

    /// All, the latest first.
    pub(crate) fn into_latest_first(self) -> Vec<Late> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(late)| late).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_in_order() {
        let mut kept = Kept::with_room_for(3);
        for (due, late) in [(1, 50), (2, 10), (3, 70), (4, 50), (5, 5)] {
            let wakeup = Wakeup { due, response: due + late, ..Default::default() };
            kept.add(Late { wakeup, events: Vec::new(), lost: 0 });
        }
        let all: Vec<_> =
            kept.into_latest_first().iter().map(|l| (l.wakeup.due, l.late_ns())).collect();
        assert_eq!(all, [(3, 70), (1, 50), (4, 50)]);
    }
}
