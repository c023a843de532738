//! The largest lateness over the course of a run.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use Ordering::Relaxed;

use crate::maxima::{FIRST_SLOT_NS, Maxima, SLOTS};

/// Slots of equal width from the start of the run, each with the largest lateness in it. When the
/// run grows out of them, pairs of them become one, so that a run of days takes what one of a
/// second takes.
pub(super) struct Course {
    /// Slots are 2^shift ns wide.
    shift: AtomicU32,
    /// Lateness plus one; 0 where nothing was due.
    slots: Box<[AtomicU64]>,
}

impl Course {
    pub(super) fn new() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self { shift: AtomicU32::new(FIRST_SLOT_NS.trailing_zeros()), slots }
    }

    pub(super) fn reset(&self) {
        self.shift.store(FIRST_SLOT_NS.trailing_zeros(), Relaxed);
        for slot in &self.slots {
            slot.store(0, Relaxed);
        }
    }

    #[inline]
    pub(super) fn raise(&self, due_ns: u64, late_ns: u64) {
        let slot = due_ns >> self.shift.load(Relaxed);
        match usize::try_from(slot).ok().and_then(|i| self.slots.get(i)) {
            Some(cell) if cell.load(Relaxed) > late_ns => {}
            Some(cell) => cell.store(late_ns.saturating_add(1), Relaxed),
            None => self.outgrown(due_ns, late_ns),
        }
    }

    /// Notes the expiries that a wakeup `late_ns` late for `due_ns` swallowed: the first of each
    /// slot is the latest there.
    #[cold]
    pub(super) fn raise_steps(&self, due_ns: u64, late_ns: u64, steps: u64, step_ns: u64) {
        let mut step = 1;
        while step <= steps {
            let due = due_ns.saturating_add(step.saturating_mul(step_ns));
            self.raise(due, late_ns.saturating_sub(step.saturating_mul(step_ns)));
            let next_slot = ((due >> self.shift.load(Relaxed)) + 1) << self.shift.load(Relaxed);
            step += (next_slot - due).div_ceil(step_ns.max(1)).max(1);
        }
    }

    #[cold]
    fn outgrown(&self, due_ns: u64, late_ns: u64) {
        let mut shift = self.shift.load(Relaxed);
        while due_ns >> shift >= SLOTS as u64 {
            for i in 0..SLOTS {
                let of = |i: usize| self.slots.get(i).map_or(0, |slot| slot.load(Relaxed));
                self.slots[i].store(of(2 * i).max(of(2 * i + 1)), Relaxed);
            }
            shift += 1;
        }
        self.shift.store(shift, Relaxed);
        self.raise(due_ns, late_ns);
    }

    pub(super) fn copy(&self) -> Maxima {
        let value = |slot: &AtomicU64| slot.load(Relaxed).checked_sub(1);
        let mut max_ns: Vec<Option<u64>> = self.slots.iter().map(value).collect();
        let used = max_ns.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        max_ns.truncate(used);
        Maxima { slot_ns: 1 << self.shift.load(Relaxed), max_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_run_is_told_as_briefly_as_a_short_one() {
        let course = Course::new();
        let day = 86_400_000_000_000;
        for second in 0..1000 {
            course.raise(second * day / 1000, second);
        }
        let maxima = course.copy();
        assert!((SLOTS / 2..=SLOTS).contains(&maxima.max_ns.len()), "{}", maxima.max_ns.len());
        assert!(maxima.max_ns.iter().flatten().is_sorted(), "{maxima:?}");
        assert_eq!(maxima.largest(), Some(999));
    }

    proptest! {
        #[test]
        fn slots_hold_the_largest_of_what_was_due_in_them(
            wakeups in prop::collection::vec((1_u64..1 << 33, 0_u64..1 << 31), 1..60),
            interval_ns in 100_000_u64..1 << 24,
        ) {
            let course = Course::new();
            let mut due_ns = 0;
            let mut all = Vec::new();
            for (gap, late) in wakeups {
                due_ns += gap;
                let missed = late / interval_ns;
                course.raise(due_ns, late);
                course.raise_steps(due_ns, late, missed, interval_ns);
                all.extend((0..=missed).map(|i| (due_ns + i * interval_ns, late - i * interval_ns)));
                due_ns += missed * interval_ns;
            }
            let got = course.copy();
            let mut want = vec![None; got.max_ns.len()];
            for (due, late) in all {
                let slot = &mut want[usize::try_from(due / got.slot_ns).unwrap()];
                *slot = (*slot).max(Some(late));
            }
            prop_assert_eq!(got.max_ns, want);
        }
    }
}
