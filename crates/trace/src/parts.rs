//! Parts of wakeups whose tasks were moved to another CPU, until they end.

use std::collections::BTreeMap;

use wakescope_decode::{KernelWakeup, Part, joined};

use crate::kept::{Key, key_of};
use crate::shared::RING;

/// Events of all parts that wait for an end, each part counted as one more. A wakeup that is not late in the end
/// never comes.
const MOST_EVENTS: usize = 64 * (RING + 1);

/// What was handed over of wakeups that still waited then.
#[derive(Default)]
pub(crate) struct Parts {
    of: BTreeMap<Key, Vec<Part>>,
    events: usize,
}

impl Parts {
    /// Takes in `part`, and gives the wakeup that ends with it, if it ends. Where there is no room, those that were
    /// due first go.
    pub(crate) fn add(&mut self, part: Part) -> Option<KernelWakeup> {
        let key = key_of(&part.wakeup);
        if !part.goes_on {
            let before = self.of.remove(&key).unwrap_or_default();
            self.leave(&before);
            return Some(joined(&before, part));
        }
        self.events += room_of(&part);
        self.of.entry(key).or_default().push(part);
        while self.events > MOST_EVENTS {
            let Some((_, first)) = self.of.pop_first() else { break };
            self.leave(&first);
        }
        None
    }

    fn leave(&mut self, parts: &[Part]) {
        self.events -= parts.iter().map(room_of).sum::<usize>();
    }
}

/// How much `part` takes of [`MOST_EVENTS`].
fn room_of(part: &Part) -> usize {
    1 + part.wakeup.events.len()
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
        assert_eq!((parts.of.len(), parts.events), (1, 1 + 3));
    }

    #[test]
    fn parts_whose_wakeups_never_come_make_room() {
        let mut parts = Parts::default();
        for pid in 0..1_000 {
            assert_eq!(parts.add(part(pid, 0, true, RING)), None);
            assert!(parts.events <= MOST_EVENTS);
        }
        assert_eq!(parts.of.len(), 64);
        assert_eq!(parts.add(part(999, 1, false, 1)).unwrap().lost, 0);
        assert_eq!(parts.add(part(1, 1, false, 1)).unwrap().lost, 1);
        // Without any event, too.
        (1_000..101_000).for_each(|pid| drop(parts.add(part(pid, 0, true, 0))));
        assert_eq!((parts.of.len(), parts.events), (MOST_EVENTS, MOST_EVENTS));
    }
}
