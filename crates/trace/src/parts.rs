//! Parts of wakeups whose tasks were moved to another CPU, until they end.

use std::collections::{BTreeMap, VecDeque};

use wakescope_decode::{KernelWakeup, Part, joined};

use crate::shared::RING;

/// Events of all parts that wait for an end: some 2 MB. A wakeup that is not late in the end never comes.
const MOST_EVENTS: usize = 64 * RING;

/// Of which thread, and when it was due, nanoseconds.
type Key = (u32, u64);

/// What was handed over of wakeups that still waited then.
#[derive(Default)]
pub(crate) struct Parts {
    of: BTreeMap<Key, Vec<Part>>,
    /// In the order in which they began.
    order: VecDeque<Key>,
    events: usize,
}

impl Parts {
    /// Takes in `part`, and gives the wakeup that ends with it, if it ends.
    pub(crate) fn add(&mut self, part: Part) -> Option<KernelWakeup> {
        let key = (part.wakeup.task.pid, part.wakeup.marks.due.0);
        if !part.goes_on {
            return Some(joined(&self.take(key), part));
        }
        self.events += part.wakeup.events.len();
        let parts = self.of.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            Vec::new()
        });
        parts.push(part);
        while self.events > MOST_EVENTS {
            let Some(oldest) = self.order.front().copied() else { break };
            self.take(oldest);
        }
        None
    }

    fn take(&mut self, key: Key) -> Vec<Part> {
        let Some(parts) = self.of.remove(&key) else { return Vec::new() };
        self.order.retain(|other| *other != key);
        self.events -= parts.iter().map(|part| part.wakeup.events.len()).sum::<usize>();
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::explain::Marks;
    use wakescope_core::units::MonoNs;
    use wakescope_decode::{KernelEvent, KernelTask, Payload};

    /// A part of the wakeup of that thread, with so many events.
    fn part(pid: u32, before: u32, goes_on: bool, events: usize) -> Part {
        let at = |ns| MonoNs(1_000 + ns);
        let event = KernelEvent { at: at(1), steal_ns: 0, payload: Payload::SoftirqEntry(1) };
        let moved_at = (before > 0).then(|| at(10 * u64::from(before)));
        let response = at(10 * u64::from(before + 1));
        Part {
            wakeup: KernelWakeup {
                cpu: before,
                task: KernelTask { pid, ..KernelTask::default() },
                marks: Marks { due: at(0), response, ..Marks::default() },
                events: vec![KernelEvent { at: moved_at.unwrap_or(at(0)), ..event }; events],
                ..KernelWakeup::default()
            },
            goes_on,
            moved_at,
            before,
            interrupts_ns: Some(0),
            ..Part::default()
        }
    }

    #[test]
    fn a_wakeup_comes_when_it_ends_with_all_its_parts() {
        let mut parts = Parts::default();
        assert_eq!(parts.add(part(7, 0, true, 3)), None);
        assert_eq!(parts.add(part(8, 0, true, 3)), None);
        assert_eq!(parts.add(part(7, 1, true, 2)), None);
        let whole = parts.add(part(7, 2, false, 1)).unwrap();
        assert_eq!((whole.cpu, whole.first_cpu(), whole.lost), (2, 0, 0));
        // With a move and a switch each.
        assert_eq!(whole.events.len(), 3 + 2 + 1 + 2 * 2);
        // One whose first part is gone says so.
        let alone = parts.add(part(7, 1, false, 2)).unwrap();
        assert_eq!((alone.first_cpu(), alone.lost), (1, 1));
        assert_eq!((parts.of.len(), parts.order.len(), parts.events), (1, 1, 3));
    }

    #[test]
    fn parts_whose_wakeups_never_come_make_room() {
        let mut parts = Parts::default();
        for pid in 0..1_000 {
            assert_eq!(parts.add(part(pid, 0, true, RING)), None);
            assert!(parts.events <= MOST_EVENTS && parts.of.len() == parts.order.len());
        }
        assert_eq!(parts.of.len(), MOST_EVENTS / RING);
        assert_eq!(parts.add(part(999, 1, false, 1)).unwrap().lost, 0);
        assert_eq!(parts.add(part(1, 1, false, 1)).unwrap().lost, 1);
    }
}
