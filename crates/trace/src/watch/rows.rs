//! The program's counters, and how they are read while it counts.

use aya::Ebpf;
use wakescope_core::watch::meter::Reading;
use wakescope_core::watch::scale::BUCKETS;
use wakescope_sys::shared::Words;

use super::layout::{cpu, extremes, row};
use super::{Limits, mapped};
use crate::error::TraceError;

/// The program's counters.
pub(super) struct Rows {
    /// Of each series: [`row`].
    pub(super) rows: Words,
    /// Of each series on each CPU: [`extremes`].
    extremes: Words,
    /// Of each CPU: [`cpu`].
    pub(super) cpus: Words,
    cpu_count: usize,
}

impl Rows {
    pub(super) fn map(programs: &mut Ebpf, limits: Limits, cpus: u32) -> Result<Self, TraceError> {
        let (series, cpu_count) = (limits.series as usize + 1, cpus as usize);
        Ok(Self {
            rows: mapped(programs, "rows", series * row::WORDS)?,
            extremes: mapped(programs, "row_extremes", series * cpu_count * extremes::WORDS)?,
            cpus: mapped(programs, "cpu_rows", cpu_count * cpu::WORDS)?,
            cpu_count,
        })
    }

    /// How many runs of the program each CPU has begun: one for each switch.
    pub(super) fn runs(&self) -> Vec<u64> {
        let cpus = 0..self.cpu_count;
        cpus.map(|cpu| self.cpus.load(cpu * cpu::WORDS + cpu::SWITCHES)).collect()
    }

    /// What the row at `index` shows. Its extremes begin anew.
    pub(super) fn series(&self, index: usize) -> Reading {
        let at = index * row::WORDS;
        let extremes = || {
            let of_cpus = self.extremes_of(index).map(|at| extremes_at(&self.extremes, at));
            of_cpus.fold(NO_WAIT, further)
        };
        reading(
            extremes,
            || self.rows.load(at + row::SUM),
            || buckets(&self.rows, at + row::BUCKETS),
        )
    }

    /// Whether the row at `index` counts waits of a series.
    pub(super) fn is_used(&self, index: usize) -> bool {
        self.generation(index) % 2 == 1
    }

    /// The series whose waits the row at `index` counts, as the program knows it: cgroup and name.
    pub(super) fn key(&self, index: usize) -> [u64; 3] {
        let at = index * row::WORDS;
        [row::CGROUP, row::COMM, row::COMM + 1].map(|word| self.rows.load(at + word))
    }

    /// The same by `tenure`: a row in the lower half, and its generation in the upper. `None` once the row is empty.
    pub(super) fn key_in(&self, tenure: u64) -> Option<[u64; 3]> {
        let index = usize::try_from(tenure & u64::from(u32::MAX)).ok()?;
        // A row that rests has its generation without the lowest bit.
        let last = (self.generation(index) | 1) << 32;
        (last == tenure & !u64::from(u32::MAX)).then(|| self.key(index))
    }

    /// Has the program count no more in the row at `index`. Tasks that were counted there before have to look for
    /// another.
    pub(super) fn retire(&self, index: usize) -> [u64; 3] {
        self.set_generation(index, self.generation(index) & !1);
        self.key(index)
    }

    fn generation(&self, index: usize) -> u64 {
        self.rows.load(index * row::WORDS + row::GENERATION)
    }

    fn set_generation(&self, index: usize, generation: u64) {
        self.rows.store(index * row::WORDS + row::GENERATION, generation);
    }

    /// Empties a row, in which the program counts no more. From now on it counts in another generation.
    pub(super) fn clear(&self, index: usize) {
        let at = index * row::WORDS;
        self.set_generation(index, self.generation(index).wrapping_add(2));
        for word in std::iter::once(row::SUM).chain(row::BUCKETS..row::WORDS) {
            self.rows.store(at + word, 0);
        }
        for at in self.extremes_of(index) {
            (at..at + extremes::WORDS).for_each(|word| self.extremes.store(word, 0));
        }
    }

    /// Where those of the row at `index` begin, one pair for each CPU.
    fn extremes_of(&self, index: usize) -> impl Iterator<Item = usize> + use<> {
        let first = index * self.cpu_count;
        (first..first + self.cpu_count).map(|pair| pair * extremes::WORDS)
    }

    /// The same of the CPU whose words begin at `at`.
    pub(super) fn cpu(&self, at: usize) -> Reading {
        let extremes = || extremes_at(&self.cpus, at + cpu::EXTREMES);
        reading(
            extremes,
            || self.cpus.load(at + cpu::SUM),
            || buckets(&self.cpus, at + cpu::BUCKETS),
        )
    }
}

/// How often counters are read anew that changed meanwhile. Each time takes about a microsecond, so only a reader
/// that loses its CPU, or a series with hundreds of thousands of waits a second, needs that more than once.
const MOST_READINGS: usize = 4;

/// What counters show. The program adds a wait to the sum, then to its bucket, then notes whether it is an extreme
/// one. So nothing was counted in the midst of a reading in which the sum did not change. Otherwise the sum is of a
/// later moment than the buckets: a wait that it is ahead by is in its bucket at the next reading, while one that it
/// lacked would never be found if no other came.
fn reading(
    mut extremes: impl FnMut() -> (u64, u64),
    mut sum: impl FnMut() -> u64,
    mut buckets: impl FnMut() -> Vec<(usize, u64)>,
) -> Reading {
    let mut now =
        Reading { sum_ns: sum(), max_ns: NO_WAIT.0, min_ns: NO_WAIT.1, buckets: Vec::new() };
    for _ in 0..MOST_READINGS {
        (now.max_ns, now.min_ns) = further((now.max_ns, now.min_ns), extremes());
        now.buckets = buckets();
        let before = std::mem::replace(&mut now.sum_ns, sum());
        if before == now.sum_ns {
            break;
        }
    }
    now
}

/// The longest and the shortest of both.
fn further(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0.max(other.0), one.1.min(other.1))
}

/// The longest and the shortest of no waits, as [`Reading`] has them.
const NO_WAIT: (u64, u64) = (0, u64::MAX);

/// The longest and the shortest wait of the pair at `at`, which begins anew.
fn extremes_at(words: &Words, at: usize) -> (u64, u64) {
    (words.take(at + extremes::MAX), !words.take(at + extremes::INVERTED_MIN))
}

/// Buckets that are looked at together, and how many of a series are seldom exceeded.
const PART: usize = 8;
const MOST_OFTEN: usize = 64;

fn buckets(words: &Words, at: usize) -> Vec<(usize, u64)> {
    let mut counts = [0; BUCKETS];
    words.copy(at, &mut counts);
    let mut buckets = Vec::with_capacity(MOST_OFTEN);
    // Most are empty, and lie together.
    for (first, part) in (0..BUCKETS).step_by(PART).zip(counts.chunks(PART)) {
        if part.iter().fold(0, |all, count| all | count) > 0 {
            buckets.extend((first..).zip(part.iter().copied()).filter(|bucket| bucket.1 > 0));
        }
    }
    buckets.shrink_to_fit();
    buckets
}

#[cfg(test)]
impl Rows {
    /// Empty rows of so many series, on so many CPUs.
    pub(super) fn of(series: usize, cpu_count: usize) -> Self {
        Self {
            rows: super::words(series * row::WORDS),
            extremes: super::words(series * cpu_count * extremes::WORDS),
            cpus: super::words(cpu_count * cpu::WORDS),
            cpu_count,
        }
    }

    /// Gives a row to a series, as the program does. Its tenure.
    pub(super) fn give(&self, index: usize, key: [u64; 3]) -> u64 {
        for (word, value) in (row::CGROUP..).zip(key) {
            self.rows.store(index * row::WORDS + word, value);
        }
        self.set_generation(index, self.generation(index) + 1);
        self.generation(index) << 32 | index as u64
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use wakescope_core::watch::Waits;
    use wakescope_core::watch::meter::Meter;

    use super::*;

    /// Counters that a program changes whenever somebody has read the sum or the buckets: it is in the midst of a
    /// wait of 5 ns, and its next step comes then. So many waits end before it rests.
    struct Program {
        waits: u64,
        steps: Cell<u64>,
    }

    impl Program {
        fn step(&self) {
            self.steps.set((self.steps.get() + 1).min(2 * self.waits));
        }

        fn read(&self) -> Reading {
            let sum = || {
                let sum_ns = 5 * self.steps.get().div_ceil(2);
                self.step();
                sum_ns
            };
            let buckets = || {
                let counted = self.steps.get() / 2;
                self.step();
                if counted > 0 { vec![(0, counted)] } else { Vec::new() }
            };
            let counted = self.steps.get() / 2;
            reading(|| if counted > 0 { (5, 5) } else { NO_WAIT }, sum, buckets)
        }
    }

    /// Whenever a wait ends, no reading loses its length or its count.
    #[test]
    fn all_waits_are_in_some_reading() {
        for waits in 1..20 {
            let program = Program { waits, steps: Cell::new(0) };
            let (mut meter, mut all) = (Meter::default(), Waits::default());
            for _ in 0..10 {
                let waits = meter.read(program.read());
                assert!(waits.sum_ns >= 5 * waits.count || all.sum_ns > 5 * all.count);
                all.add(&waits);
            }
            assert_eq!((all.count, all.sum_ns), (waits, 5 * waits));
            assert_eq!((meter.total().count, meter.total().sum_ns), (waits, 5 * waits));
        }
    }

    #[test]
    fn counters_that_stand_still_are_read_once() {
        let readings = Cell::new(0);
        let buckets = || {
            readings.set(readings.get() + 1);
            vec![(0, 1)]
        };
        let read = reading(|| (7, 7), || 7, buckets);
        assert_eq!(read, Reading { sum_ns: 7, max_ns: 7, min_ns: 7, buckets: vec![(0, 1)] });
        assert_eq!(readings.get(), 1);
    }

    /// A row names its series until another may have it.
    #[test]
    fn a_row_names_nobody_of_an_earlier_generation() {
        let rows = Rows::of(4, 1);
        let [first, second] = [[7, 8, 9], [10, 11, 12]];
        let names =
            |tenures: &[u64]| tenures.iter().map(|&tenure| rows.key_in(tenure)).collect::<Vec<_>>();
        let was = rows.give(3, first);
        assert_eq!(names(&[0, 3, was]), [None, None, Some(first)]);
        assert!(rows.is_used(3));
        // It rests.
        assert_eq!(rows.retire(3), first);
        assert!(!rows.is_used(3));
        assert_eq!(names(&[0, 3, was]), [None, None, Some(first)]);
        // It is free.
        rows.clear(3);
        assert!(!rows.is_used(3));
        assert_eq!(names(&[0, 3, was]), [None; 3]);
        let is = rows.give(3, second);
        assert_eq!(names(&[0, 3, was, is]), [None, None, None, Some(second)]);
    }
}
