//! The latest wakeups, as many as there is room for.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use crate::shared::{
    COPIED_BYTES, EVENTS, Event, FRAMES, Head, LONG_BYTES, RECORD_BYTES, RING, StackCopy, Wakeup,
    from_bytes,
};

/// A wakeup with what its CPU saw.
#[derive(Clone)]
pub(crate) struct Late {
    pub(crate) wakeup: Wakeup,
    pub(crate) events: Vec<Event>,
    pub(crate) lost: u32,
}

impl Late {
    /// What a record says; `None` if it is too short for one. What a stack is that it has a copy of,
    /// `walk` says.
    pub(crate) fn of(record: &[u8], walk: impl FnOnce(&StackCopy) -> Vec<u64>) -> Option<Self> {
        let mut head = from_bytes::<Head>(record)?;
        let (rest, copy) = record.split_at(copy_at(record));
        if let Some(copy) = from_bytes::<StackCopy>(copy).filter(|copy| copy.registers != 0) {
            put_stack(&mut head.wakeup, &walk(&copy));
        }
        let events = rest[size_of::<Head>()..].chunks_exact(size_of::<Event>());
        let events = events.take((head.events as usize).min(RING));
        let events: Vec<Event> =
            events.filter_map(from_bytes::<Event>).map(|event| *event).collect();
        // Events that it states and does not hold are lost as well.
        let missing = head.events.saturating_sub(u32::try_from(events.len()).unwrap_or(u32::MAX));
        Some(Self { wakeup: head.wakeup, events, lost: head.events_lost.saturating_add(missing) })
    }

    pub(crate) fn late_ns(&self) -> u64 {
        self.wakeup.response.saturating_sub(self.wakeup.due)
    }
}

/// Where the events of a record end, and its copy begins if it has one: its length tells.
fn copy_at(record: &[u8]) -> usize {
    match record.len() {
        COPIED_BYTES => RECORD_BYTES,
        bytes => bytes.min(LONG_BYTES),
    }
}

/// Gives the wakeup what was found of its stack, as if the kernel had done so.
fn put_stack(wakeup: &mut Wakeup, frames: &[u64]) {
    let count = frames.len().min(FRAMES);
    wakeup.stack[..count].copy_from_slice(&frames[..count]);
    wakeup.stack_bytes = i32::try_from(count * size_of::<u64>()).unwrap_or(0);
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
    /// Of all of them.
    events: usize,
}

impl Kept {
    pub(crate) fn with_room_for(room: usize) -> Self {
        Self { heap: BinaryHeap::new(), room, events: 0 }
    }

    /// Takes `late`; where there is no room for it, or for its events, gives the least late back.
    pub(crate) fn add(&mut self, late: Late) -> Vec<Late> {
        self.events += late.events.len();
        self.heap.push(Reverse(late));
        let mut too_many = Vec::new();
        while self.heap.len() > self.room || self.events > self.room * EVENTS {
            let Some(Reverse(least)) = self.heap.pop() else { break };
            self.events -= least.events.len();
            too_many.push(least);
        }
        too_many
    }

    /// Which of those that are not among `stored` come next, the latest first, `most` at the most. They
    /// are among `stored` then.
    pub(crate) fn next_to_store(&self, stored: &mut HashSet<(u64, u32)>, most: usize) -> Vec<Late> {
        let key = |late: &Late| (late.wakeup.due, late.wakeup.cpu);
        let kept = self.heap.iter().map(|Reverse(late)| late);
        let mut next: Vec<&Late> = kept.filter(|late| !stored.contains(&key(late))).collect();
        next.sort_unstable_by(|a, b| b.cmp(a));
        next.truncate(most);
        stored.extend(next.iter().map(|late| key(late)));
        next.into_iter().cloned().collect()
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

    #[test]
    fn each_is_stored_once_the_latest_first() {
        let mut kept = Kept::with_room_for(3);
        let add = |kept: &mut Kept, late: u64| {
            let wakeup = Wakeup { due: 1_000 - late, response: 1_000, ..Default::default() };
            kept.add(Late { wakeup, events: Vec::new(), lost: 0 });
        };
        let mut stored = HashSet::new();
        let mut next = |kept: &Kept| {
            let next = kept.next_to_store(&mut stored, 2);
            next.iter().map(Late::late_ns).collect::<Vec<_>>()
        };
        [10, 30, 20].into_iter().for_each(|late| add(&mut kept, late));
        assert_eq!(next(&kept), [30, 20]);
        add(&mut kept, 40);
        add(&mut kept, 15);
        assert_eq!(next(&kept), [40]);
        assert_eq!(next(&kept), [0_u64; 0]);
    }

    #[test]
    fn those_with_very_many_events_leave_less_room_for_others() {
        let mut kept = Kept::with_room_for(8);
        let add = |kept: &mut Kept, late: u64, events: usize| {
            let wakeup = Wakeup { response: late, ..Default::default() };
            let gone = kept.add(Late { wakeup, events: vec![Event::default(); events], lost: 0 });
            gone.iter().map(Late::late_ns).collect::<Vec<_>>()
        };
        for late in 1..=6 {
            assert_eq!(add(&mut kept, late, 10), [0; 0]);
        }
        assert_eq!(add(&mut kept, 7, RING), [0; 0]);
        assert_eq!(add(&mut kept, 8, RING - 40), [1, 2]);
        assert_eq!(kept.into_latest_first().len(), 6);
    }
}
