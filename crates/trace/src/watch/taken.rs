//! Whether the kernel counts what interrupts and the hypervisor take from tasks. Whether it could is decided
//! when it is built; whether it does shows only while it runs.

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::episode::NotMeasured;

/// No machine is without an interrupt for so long while a program runs that wakes by timers.
const SOME_INTERRUPT: SpanNs = SpanNs(1_000_000_000);

/// What a CPU showed last of the time that it lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// What interrupts took, at the first switch and at the last: ns.
    pub(super) irq: (u64, u64),
    /// What the hypervisor took since the boot, ns.
    pub(super) steal: u64,
}

/// What is known of all CPUs.
pub(super) struct TakenTime {
    lacks: NotMeasured,
    is_guest: bool,
    /// What interrupts had taken on each CPU, at this time.
    irq: Vec<Option<u64>>,
    since: MonoNs,
    has_irq: bool,
    has_steal: bool,
}

impl TakenTime {
    /// On a kernel that `lacks` these whatever it shows. Only in a guest there is a hypervisor.
    pub(super) fn of(lacks: NotMeasured, is_guest: bool) -> Self {
        let (irq, since) = (Vec::new(), MonoNs(0));
        Self { lacks, is_guest, irq, since, has_irq: false, has_steal: false }
    }

    /// What this kernel does not measure, by what each CPU shows `now`; `None` before its first switch.
    pub(super) fn judge(&mut self, cpus: &[Option<Taken>], now: MonoNs) -> NotMeasured {
        self.irq.resize(cpus.len(), None);
        // The kernel may stop counting: without a clock that is cheap to read, it does.
        let grows = cpus.iter().zip(&self.irq).any(|(taken, before)| {
            taken.is_some_and(|taken| taken.irq.1 != before.unwrap_or(taken.irq.0))
        });
        let is_time = now.since(self.since) >= SOME_INTERRUPT;
        if grows || is_time {
            self.has_irq = grows;
        }
        if is_time {
            self.irq = cpus.iter().map(|taken| taken.map(|taken| taken.irq.1)).collect();
            self.since = now;
        }
        self.has_steal |= cpus.iter().flatten().any(|taken| taken.steal > 0);
        NotMeasured {
            interrupts: self.lacks.interrupts || !self.has_irq,
            // Some hypervisors report nothing.
            steal: self.is_guest && (self.lacks.steal || !self.has_steal),
            quota: self.lacks.quota,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn taken(irq: (u64, u64), steal: u64) -> Option<Taken> {
        Some(Taken { irq, steal })
    }

    #[test]
    fn interrupts_are_measured_while_their_time_grows() {
        let mut found = TakenTime::of(NotMeasured::default(), false);
        for (at_ms, cpus, interrupts) in [
            // Counted up to some day before the watch, and no more.
            (200, [taken((700, 700), 0), None], true),
            (400, [taken((700, 700), 0), taken((5, 6), 0)], false),
            // Nothing new for less than a second says nothing.
            (1_100, [taken((700, 700), 0), taken((5, 6), 0)], false),
            (1_200, [taken((700, 700), 0), taken((5, 6), 0)], false),
            (2_200, [taken((700, 700), 0), taken((5, 6), 0)], true),
            (2_400, [taken((700, 3), 0), taken((5, 6), 0)], false),
        ] {
            let not_measured = found.judge(&cpus, MonoNs(at_ms * SECOND / 1_000));
            let want = NotMeasured { interrupts, ..NotMeasured::default() };
            assert_eq!(not_measured, want, "after {at_ms} ms");
        }
    }

    #[test]
    fn steal_is_measured_where_some_was_seen() {
        let steal = |lacks, is_guest, steals: &[u64]| {
            let lacks = NotMeasured { steal: lacks, ..NotMeasured::default() };
            let mut found = TakenTime::of(lacks, is_guest);
            let judged =
                steals.iter().map(|&steal| found.judge(&[taken((0, 1), steal)], MonoNs(0)).steal);
            judged.collect::<Vec<_>>()
        };
        // Nobody takes anything from a machine that is no guest.
        assert_eq!(steal(true, false, &[0]), [false]);
        assert_eq!(steal(true, true, &[0]), [true]);
        assert_eq!(steal(false, true, &[0, 5, 5]), [true, false, false]);
        let lacking = NotMeasured { interrupts: true, quota: true, ..NotMeasured::default() };
        let mut found = TakenTime::of(lacking, false);
        assert_eq!(found.judge(&[taken((0, 1), 0)], MonoNs(0)), lacking);
    }
}
