//! The latest wakeups.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use Ordering::Relaxed;

use super::Late;

/// The latest wakeups: a list of fixed length, unordered, with the least late one's lateness as
/// the price of entry.
pub(super) struct Worst {
    threshold: AtomicU64,
    used: AtomicUsize,
    slots: Box<[[AtomicU64; 3]]>,
}

impl Worst {
    pub(super) fn new(length: usize) -> Self {
        let slots = (0..length).map(|_| Default::default()).collect();
        let list = Self { threshold: AtomicU64::new(0), used: AtomicUsize::new(0), slots };
        list.reset();
        list
    }

    pub(super) fn reset(&self) {
        self.used.store(0, Relaxed);
        // With no slot, no lateness is enough to enter.
        self.threshold.store(if self.slots.is_empty() { u64::MAX } else { 0 }, Relaxed);
    }

    /// Whether a wakeup so late enters the list.
    #[inline]
    pub(super) fn takes(&self, late_ns: u64) -> bool {
        late_ns > self.threshold.load(Relaxed)
    }

    #[cold]
    pub(super) fn insert(&self, late: Late) {
        let used = self.used.load(Relaxed);
        let slot = if used < self.slots.len() {
            self.used.store(used + 1, Relaxed);
            used
        } else {
            self.least()
        };
        for (cell, value) in self.slots[slot].iter().zip([late.late_ns, late.due_ns, late.missed]) {
            cell.store(value, Relaxed);
        }
        if self.used.load(Relaxed) == self.slots.len() {
            self.threshold.store(self.slots[self.least()][0].load(Relaxed), Relaxed);
        }
    }

    fn least(&self) -> usize {
        (0..self.slots.len()).min_by_key(|&i| self.slots[i][0].load(Relaxed)).unwrap_or(0)
    }

    pub(super) fn copy(&self) -> Vec<Late> {
        let used = self.used.load(Relaxed);
        let late = |[late_ns, due_ns, missed]: &[AtomicU64; 3]| Late {
            late_ns: late_ns.load(Relaxed),
            due_ns: due_ns.load(Relaxed),
            missed: missed.load(Relaxed),
        };
        self.slots[..used].iter().map(late).collect()
    }
}
