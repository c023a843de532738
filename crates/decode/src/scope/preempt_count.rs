//! How a kernel divides its preempt count among what turns preemption off.

use wakescope_core::scope::edges::PreemptCount;

/// By include/linux/preempt.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// Up to 7.2: 8 bits of depth, 8 of softirqs, 4 of interrupts, 4 of NMIs.
    FourParts,
    /// From 7.3 on, between softirqs and interrupts, 8 bits that count how often interrupts were turned off by
    /// `local_interrupt_disable`. That keeps the flag of interrupts in [`Self::MARK`].
    FiveParts,
}

impl Division {
    /// The variable of each CPU that only kernels with five parts have.
    pub(super) const MARK: &str = "local_interrupt_disable_state";

    pub(super) fn of(has_mark: bool) -> Self {
        if has_mark { Self::FiveParts } else { Self::FourParts }
    }

    /// As it is kept.
    pub(super) fn parts(self) -> u32 {
        match self {
            Self::FourParts => 4,
            Self::FiveParts => 5,
        }
    }

    pub(super) fn of_parts(parts: &str) -> Option<Self> {
        [Self::FourParts, Self::FiveParts]
            .into_iter()
            .find(|division| division.parts().to_string() == parts)
    }

    /// What the plugin wrote, divided as kernels up to 7.2 do: the lower 31 bits are the kernel's, and the highest says
    /// that the CPU need not be given up.
    pub(super) fn read(self, word: u32) -> PreemptCount {
        match self {
            Self::FourParts => PreemptCount(word),
            Self::FiveParts => {
                let (flag, softirqs) = (word & 0x8000_0000, word & 0xff00);
                let interrupts = word >> 24 & 0xf;
                // Of its four bits the plugin keeps three: eight NMIs do not lie in each other.
                let nmi = u32::from(word & 0x7000_0000 != 0);
                // Whoever turns interrupts off so has preemption off as well.
                let depth = (word & 0xff).saturating_add(word >> 16 & 0xff).min(0xff);
                PreemptCount(flag | nmi << 20 | interrupts << 16 | softirqs | depth)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_each_division() {
        let parts = |division: Division, word| {
            let count = division.read(word);
            let (off, resched, depth) = (count.is_off(), count.need_resched(), count.depth());
            (off, resched, depth, [count.softirqs_off(), count.in_interrupt(), count.in_nmi()])
        };
        use Division::{FiveParts, FourParts};
        for (division, word, want) in [
            (FourParts, 0x8000_0000, (false, false, 0, [false, false, false])),
            (FiveParts, 0x8000_0000, (false, false, 0, [false, false, false])),
            (FiveParts, 0, (false, true, 0, [false, false, false])),
            (FourParts, 0x8000_0201, (true, false, 1, [true, false, false])),
            (FiveParts, 0x8000_0201, (true, false, 1, [true, false, false])),
            // The same bits are an interrupt here, and interrupts that were turned off twice there.
            (FourParts, 0x8002_0000, (true, false, 0, [false, true, false])),
            (FiveParts, 0x8002_0000, (true, false, 2, [false, false, false])),
            (FourParts, 0x8010_0000, (true, false, 0, [false, false, true])),
            (FiveParts, 0x8010_0000, (true, false, 16, [false, false, false])),
            (FiveParts, 0x8100_0000, (true, false, 0, [false, true, false])),
            (FiveParts, 0x7100_0003, (true, true, 3, [false, true, true])),
            // More than a byte holds.
            (FiveParts, 0x80ff_00ff, (true, false, 255, [false, false, false])),
        ] {
            assert_eq!(parts(division, word), want, "{division:?} {word:#x}");
        }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        for division in [Division::FourParts, Division::FiveParts] {
            assert_eq!(Division::of_parts(&division.parts().to_string()), Some(division));
        }
        assert_eq!(Division::of_parts("6"), None);
    }
}
