//! The largest lateness over the course of a run, slot by slot.

use serde::{Deserialize, Serialize};

/// The most slots that are kept. A run of any length has between half of them and all.
pub const SLOTS: usize = 256;

/// The width of a slot when a run begins. It doubles whenever the run grows out of the slots.
pub const FIRST_SLOT_NS: u64 = 1 << 20;

/// The largest lateness of the wakeups that were due in each slot of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maxima {
    /// The width of a slot in ns; the first begins at the start of the run.
    pub slot_ns: u64,
    /// Per slot the largest lateness in ns; `None` where no wakeup was due.
    pub max_ns: Vec<Option<u64>>,
}

impl Maxima {
    /// The largest of all slots.
    pub fn largest(&self) -> Option<u64> {
        self.max_ns.iter().flatten().max().copied()
    }

    /// Both as one, on the coarser grid of the two. The widths of a run's threads are powers of two
    /// of the same unit; if they are not, the slots of `other` count where they begin.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let slot_ns = self.slot_ns.max(other.slot_ns).max(1);
        let mut max_ns: Vec<Option<u64>> = Vec::new();
        for side in [self, other] {
            for (i, &max) in side.max_ns.iter().enumerate() {
                let begins = u64::try_from(i).unwrap_or(u64::MAX).saturating_mul(side.slot_ns);
                let Ok(slot) = usize::try_from(begins / slot_ns) else { break };
                if slot >= max_ns.len() {
                    max_ns.resize(slot + 1, None);
                }
                max_ns[slot] = max_ns[slot].max(max);
            }
        }
        Self { slot_ns, max_ns }
    }

    /// What is wrong with it, if anything.
    pub fn fault(&self) -> Option<String> {
        // Another program's may have more slots, but not so many that adding them up takes long.
        const MOST: usize = 1 << 16;
        match self.max_ns.len() {
            0 => None,
            _ if self.slot_ns == 0 => Some("slots of 0 ns".into()),
            n if n > MOST => Some(format!("{n} slots; at most {MOST} are read")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(slot_ns: u64, max_ns: &[u64]) -> Maxima {
        // 0 stands for a slot without a wakeup.
        Maxima { slot_ns, max_ns: max_ns.iter().map(|&m| (m > 0).then_some(m)).collect() }
    }

    #[test]
    fn the_coarser_grid_holds_both() {
        let (fine, coarse) = (of(10, &[1, 5, 0, 2, 9]), of(20, &[3, 3]));
        let both = of(20, &[5, 3, 9]);
        assert_eq!(fine.merged(&coarse), both);
        assert_eq!(coarse.merged(&fine), both);
        assert_eq!(both.largest(), Some(9));
        assert_eq!(of(10, &[0, 0]).largest(), None);
    }

    #[test]
    fn what_cannot_be_a_timeline_is_found() {
        assert_eq!(of(0, &[]).fault(), None);
        assert!(of(0, &[1]).fault().is_some());
        assert!(of(1, &[1; 1 << 17]).fault().is_some());
    }
}
