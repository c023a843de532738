//! The latest wakeups with and without stolen time, as many as there is room for.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use wakescope_core::units::MonoNs;
use wakescope_decode::KernelWakeup;

use crate::shared::EVENTS;

/// Which wakeup it is: when it was due, nanoseconds, and of which thread.
pub(crate) type Key = (u64, u32);

/// The key of `late`.
pub(crate) fn key_of(late: &KernelWakeup) -> Key {
    (late.marks.due.0, late.task.pid)
}

/// A wakeup in its place: by lateness, then by time and thread, for which are kept must not depend on the order in
/// which CPUs are read.
struct Placed {
    key: (u64, Reverse<MonoNs>, u32),
    late: KernelWakeup,
}

impl Placed {
    fn new(ns: u64, late: KernelWakeup) -> Self {
        Self { key: (ns, Reverse(late.marks.due), late.task.pid), late }
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Placed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Placed {}

/// Those that are largest by one measure of lateness.
struct Largest {
    heap: BinaryHeap<Reverse<Placed>>,
    measure: fn(&KernelWakeup) -> u64,
    room: usize,
    /// Of all of them.
    events: usize,
}

impl Largest {
    fn by(measure: fn(&KernelWakeup) -> u64, room: usize) -> Self {
        Self { heap: BinaryHeap::new(), measure, room, events: 0 }
    }

    /// Takes `late`; where there is no room for it, or for its events, gives the least late back.
    fn add(&mut self, late: KernelWakeup) -> Vec<KernelWakeup> {
        self.events += late.events.len();
        self.heap.push(Reverse(Placed::new((self.measure)(&late), late)));
        let mut too_many = Vec::new();
        while self.heap.len() > self.room || self.events > self.room * EVENTS {
            let Some(Reverse(least)) = self.heap.pop() else { break };
            self.events -= least.late.events.len();
            too_many.push(least.late);
        }
        too_many
    }
}

/// The latest wakeups so far; and of the others those that are latest without stolen time, as soon as any
/// was stolen. Both together hold the latest ones of either kind.
pub(crate) struct Kept {
    latest: Largest,
    latest_net: Largest,
    any_stolen: bool,
}

impl Kept {
    /// With room for so many of each kind.
    pub(crate) fn with_room_for(room: usize) -> Self {
        Self {
            latest: Largest::by(KernelWakeup::latency_ns, room),
            latest_net: Largest::by(KernelWakeup::net_ns, room),
            any_stolen: false,
        }
    }

    /// Takes `late`; where there is no room for it, or for its events, gives others back. As long as
    /// nothing was stolen, those that are given back are less late without stolen time, too, than all
    /// that are kept.
    pub(crate) fn add(&mut self, late: KernelWakeup) -> Vec<KernelWakeup> {
        self.any_stolen |= late.stolen_of_it_ns() > 0;
        let less_late = self.latest.add(late);
        match self.any_stolen {
            false => less_late,
            true => less_late.into_iter().flat_map(|late| self.latest_net.add(late)).collect(),
        }
    }

    /// Which of those that are not among `stored` come next, the latest first, `most` at the most. They
    /// are among `stored` then.
    pub(crate) fn next_to_store(
        &self,
        stored: &mut HashSet<Key>,
        most: usize,
    ) -> Vec<KernelWakeup> {
        let kept = self.latest.heap.iter().chain(&self.latest_net.heap);
        let kept = kept.map(|Reverse(placed)| &placed.late);
        let mut next: Vec<&KernelWakeup> =
            kept.filter(|late| !stored.contains(&key_of(late))).collect();
        next.sort_unstable_by_key(|late| Reverse((late.latency_ns(), Reverse(late.marks.due))));
        next.truncate(most);
        stored.extend(next.iter().copied().map(key_of));
        next.into_iter().cloned().collect()
    }

    /// All, the latest first.
    pub(crate) fn into_latest_first(self) -> Vec<KernelWakeup> {
        let all = self.latest.heap.into_iter().chain(self.latest_net.heap);
        let all = all.map(|Reverse(placed)| Placed::new(placed.late.latency_ns(), placed.late));
        let mut all: Vec<Placed> = all.collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.into_iter().map(|placed| placed.late).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wakescope_core::explain::Marks;
    use wakescope_decode::{KernelEvent, KernelTask, Payload};

    use crate::shared::RING;

    const EVENT: KernelEvent =
        KernelEvent { at: MonoNs(0), steal_ns: 0, payload: Payload::SchedEntry };

    /// One that was due then, and so late.
    fn wakeup(due: u64, late: u64) -> KernelWakeup {
        let (due, response) = (MonoNs(due), MonoNs(due + late));
        KernelWakeup { marks: Marks { due, response, ..Marks::default() }, ..Default::default() }
    }

    #[test]
    fn the_latest_are_kept_in_order() {
        let mut kept = Kept::with_room_for(3);
        for (due, late) in [(1, 50), (2, 10), (3, 70), (4, 50), (5, 5)] {
            kept.add(wakeup(due, late));
        }
        let all: Vec<_> =
            kept.into_latest_first().iter().map(|l| (l.marks.due.0, l.latency_ns())).collect();
        assert_eq!(all, [(3, 70), (1, 50), (4, 50)]);
    }

    proptest! {
        #[test]
        fn the_latest_with_and_without_stolen_time_are_kept(
            drawn in prop::collection::vec((0_u64..1_000, 0_u64..3), 0..60),
            room in 1_usize..12,
        ) {
            let late = |(number, &(ns, quarters)): (usize, &(u64, u64))| {
                let due = 10_000 + number as u64;
                let stolen = ns * quarters / 4;
                KernelWakeup { stolen_ns: stolen, ..wakeup(due, ns) }
            };
            let latest = |by: fn(&KernelWakeup) -> u64| {
                let mut all: Vec<KernelWakeup> = drawn.iter().enumerate().map(late).collect();
                all.sort_by_key(|late| Reverse(by(late)));
                all.iter().take(room).map(by).collect::<Vec<u64>>()
            };
            let mut kept = Kept::with_room_for(room);
            let given: usize = drawn.iter().enumerate().map(|d| kept.add(late(d)).len()).sum();
            let kept = kept.into_latest_first();
            prop_assert_eq!(given + kept.len(), drawn.len());
            for by in [KernelWakeup::latency_ns, KernelWakeup::net_ns] {
                let mut held: Vec<u64> = kept.iter().map(by).collect();
                held.sort_by_key(|&ns| Reverse(ns));
                held.truncate(room);
                prop_assert_eq!(held, latest(by));
            }
            // Where nothing was stolen, nothing is kept twice as long.
            let any_stolen = drawn.iter().enumerate().any(|d| late(d).stolen_of_it_ns() > 0);
            prop_assert!(any_stolen || kept.len() <= room);
        }
    }

    #[test]
    fn each_is_stored_once_the_latest_first() {
        let mut kept = Kept::with_room_for(3);
        let add = |kept: &mut Kept, late: u64| {
            kept.add(wakeup(1_000 - late, late));
        };
        let mut stored = HashSet::new();
        let mut next = |kept: &Kept| {
            let next = kept.next_to_store(&mut stored, 2);
            next.iter().map(KernelWakeup::latency_ns).collect::<Vec<_>>()
        };
        [10, 30, 20].into_iter().for_each(|late| add(&mut kept, late));
        assert_eq!(next(&kept), [30, 20]);
        add(&mut kept, 40);
        add(&mut kept, 15);
        assert_eq!(next(&kept), [40]);
        assert_eq!(next(&kept), [0_u64; 0]);
    }

    /// One CPU's timers of two threads may be due at once.
    #[test]
    fn of_several_that_were_due_at_once_each_is_stored() {
        let mut kept = Kept::with_room_for(2);
        for pid in [7, 8] {
            let task = KernelTask { pid, ..KernelTask::default() };
            kept.add(KernelWakeup { task, ..wakeup(1_000, 10) });
        }
        let next = kept.next_to_store(&mut HashSet::new(), 1);
        let mut stored = next.iter().map(key_of).collect();
        let rest = kept.next_to_store(&mut stored, 2);
        let pids = [&next[..], &rest].concat().iter().map(|late| late.task.pid).collect::<Vec<_>>();
        assert_eq!(pids.iter().sum::<u32>(), 7 + 8, "{pids:?}");
    }

    #[test]
    fn those_with_very_many_events_leave_less_room_for_others() {
        let mut kept = Kept::with_room_for(8);
        let add = |kept: &mut Kept, late: u64, events: usize| {
            let events = vec![EVENT; events];
            let gone = kept.add(KernelWakeup { events, ..wakeup(0, late) });
            gone.iter().map(KernelWakeup::latency_ns).collect::<Vec<_>>()
        };
        for late in 1..=6 {
            assert_eq!(add(&mut kept, late, 10), [0; 0]);
        }
        assert_eq!(add(&mut kept, 7, RING), [0; 0]);
        assert_eq!(add(&mut kept, 8, RING - 40), [1, 2]);
        assert_eq!(kept.into_latest_first().len(), 6);
    }
}
