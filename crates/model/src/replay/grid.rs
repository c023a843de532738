//! Wakeups on a grid of time, in all its phases.

use super::{Wait, Waited};

/// A grid of wakeups, as a probe's timer has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The time between two, ns.
    pub interval_ns: u64,
    /// How many phases of it are tried, evenly spaced over the interval.
    pub phases: u32,
}

/// What a figure is over all phases of a grid, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The median over the phases.
    pub median_ns: u64,
    /// In one phase of twenty it is less than this.
    pub low_ns: u64,
    /// In one phase of twenty it is more than this.
    pub high_ns: u64,
}

impl Grid {
    /// For each phase, in order: how its wakeups wait, those that are known and count.
    pub fn waits(&self, parts: &[Wait]) -> Vec<Vec<Waited>> {
        let phases = u64::from(self.phases.max(1));
        let interval_ns = self.interval_ns.max(1);
        let Some(first) = parts.first() else { return Vec::new() };
        let of_phase = |phase: u64| {
            let begin = u128::from(interval_ns) * u128::from(phase) / u128::from(phases);
            let mut due = first.from_ns.saturating_add(u64::try_from(begin).unwrap_or(u64::MAX));
            let mut waits = Vec::new();
            let mut at = 0;
            loop {
                let ahead = parts[at..].partition_point(|part| part.to_ns <= due);
                at += ahead;
                let Some(part) = parts.get(at) else { return waits };
                waits.extend(part.at(due).filter(|_| part.counts));
                due = due.saturating_add(interval_ns);
            }
        };
        (0..phases).map(of_phase).collect()
    }
}

impl Figures {
    /// Of a figure's values, one for each phase. `None` without one.
    pub fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let last = values.len().checked_sub(1)?;
        let share = |of: usize| values[last * of / 20];
        Some(Self { median_ns: share(10), low_ns: share(1), high_ns: share(19) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_wakeups() {
        let part = |from_ns, to_ns, longest: Option<u64>, counts| Wait {
            from_ns,
            to_ns,
            longest: longest.map(|ns| Waited { ns, ends_ns: to_ns, is_handled: false }),
            counts,
            is_own: false,
        };
        let parts = [
            part(1_000, 1_250, Some(250), true),
            part(1_250, 1_450, Some(0), true),
            part(1_450, 1_500, Some(50), false),
            part(1_500, 2_000, None, true),
        ];
        let grid = Grid { interval_ns: 200, phases: 2 };
        // Due at 1000, 1200, 1400, and at 1100, 1300; others are not known or do not count.
        let waits = |parts: &[Wait]| -> Vec<Vec<(u64, u64)>> {
            let of_phase = |phase: Vec<Waited>| phase.iter().map(|w| (w.ns, w.ends_ns)).collect();
            grid.waits(parts).into_iter().map(of_phase).collect()
        };
        let first = vec![(250, 1_250), (50, 1_250), (0, 1_400)];
        assert_eq!(waits(&parts), [first, vec![(150, 1_250), (0, 1_300)]]);
        assert!(waits(&[]).is_empty());
    }

    #[test]
    fn figures_of_phases() {
        assert_eq!(Figures::of(Vec::new()), None);
        let want = Figures { median_ns: 50, low_ns: 5, high_ns: 95 };
        assert_eq!(Figures::of((0..=100).rev().collect()), Some(want));
    }
}
