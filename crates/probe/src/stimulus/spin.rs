//! No wakeups: a loop that reads the clock, and is kept from running now and then.
//!
//! Every pair of readings next to each other is one interval, so nothing lies between two of them: an
//! interval that is long enough is a gap, and what the recording of a gap takes is part of the next one.

use wakescope_core::run;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

use super::{Beside, Grid, WaitForStimulus, Waited, Wakeup};
use crate::stop::Stop;

/// Reads a clock: the machine's, or a simulated one in tests.
pub trait Watch {
    /// The time now.
    fn now(&mut self) -> MonoNs;
}

/// The clock of this machine, through the vDSO: on x86-64 it reads the time stamp counter, as a loop
/// with a counter of its own would, and its rate needs no calibration.
pub struct MachineClock;

impl Watch for MachineClock {
    #[inline]
    fn now(&mut self) -> MonoNs {
        clock::now()
    }
}

/// A loop that never sleeps. A gap is due where the last reading before it was made, and its length is
/// what the recorder calls lateness.
pub struct Spin<'a, W> {
    watch: W,
    stop: &'a Stop,
    /// The length from which a gap counts.
    from_ns: u64,
    began: MonoNs,
    last: MonoNs,
    end: MonoNs,
    loops: u64,
}

impl<'a, W: Watch> Spin<'a, W> {
    /// A loop that has not begun, and ends once `stop` is set. Gaps count from `from` on.
    pub fn new(watch: W, stop: &'a Stop, from: SpanNs) -> Self {
        let zero = MonoNs(0);
        Self { watch, stop, from_ns: from.0.max(1), began: zero, last: zero, end: zero, loops: 0 }
    }
}

impl<W: Watch> WaitForStimulus for Spin<'_, W> {
    /// Waits for the start without sleeping, so that the loop is as warm there as later. The start
    /// counts as the first reading: a gap across it is part of the run from there on.
    fn begin(&mut self, grid: Grid) {
        let span = grid.interval.0.saturating_mul(grid.points);
        self.end = MonoNs(grid.start.0.saturating_add(span));
        while self.watch.now() < grid.start && !self.stop.is_set() {}
        (self.began, self.last, self.loops) = (grid.start, grid.start, 0);
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        loop {
            if self.last >= self.end {
                return Waited::Done;
            }
            // As at the planned end: a gap across the end is one.
            if self.stop.is_before(self.last) {
                return Waited::Stopped;
            }
            let (due, woken) = (self.last, self.watch.now());
            self.last = woken;
            self.loops += 1;
            // A clock that went backwards makes this huge, and is found out by whoever subtracts anew.
            if woken.0.wrapping_sub(due.0) >= self.from_ns {
                return Waited::Woken(Wakeup { due, woken, missed: 0 });
            }
        }
    }

    fn period(&self) -> SpanNs {
        SpanNs(0)
    }

    fn beside(&self) -> Beside {
        let spin = run::Spin { loops: self.loops, observed_ns: self.last.since(self.began).0 };
        Beside { spin: Some(spin), ..Beside::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::place::Home;
    use crate::stimulus::{Ending, sample};
    use wakescope_core::random::Random;
    use wakescope_core::recorder::Recorder;

    /// A clock whose readings are so far apart, and 50 ns where no more are listed.
    struct Listed<'a>(u64, std::slice::Iter<'a, i64>);

    impl Watch for Listed<'_> {
        fn now(&mut self) -> MonoNs {
            self.0 = self.0.wrapping_add_signed(*self.1.next().unwrap_or(&50));
            MonoNs(self.0)
        }
    }

    const START: u64 = 1_000_000;

    /// What is seen of a loop whose readings are so far apart, within 100 µs.
    fn seen(steps: &[i64]) -> (Recorder, run::Spin, Ending) {
        let stop = Stop::default();
        let mut spin = Spin::new(Listed(START, steps.iter()), &stop, SpanNs(1_000));
        let grid = Grid { start: MonoNs(START), interval: SpanNs(1), points: 100_000 };
        spin.begin(grid);
        let recorder = Recorder::new(10);
        let ending = sample(&mut spin, &mut Home, u64::MAX, grid.start, &recorder, None, &stop);
        (recorder, spin.beside().spin.unwrap(), ending)
    }

    #[test]
    fn gaps_next_to_each_other_are_told_apart() {
        let (recorder, spin, ending) = seen(&[0, 50, 2_000, 1_000, 999, 50, 70_000]);
        let gaps: Vec<_> =
            recorder.snapshot().worst.iter().map(|w| (w.due_ns, w.late_ns)).collect();
        // Each with its time; what is shorter than a microsecond is none.
        assert_eq!(gaps, [(4_099, 70_000), (50, 2_000), (2_050, 1_000)]);
        assert_eq!(ending, Ending::Done);
        assert_eq!(spin.observed_ns, 100_049);
        assert_eq!(spin.loops, 6 + (100_049 - 74_099) / 50);
    }

    #[test]
    fn a_gap_across_the_start_counts_from_there() {
        let stop = Stop::default();
        let steps = [-9_000, 8_000, 31_000, 50];
        let mut spin = Spin::new(Listed(START, steps.iter()), &stop, SpanNs(1_000));
        let grid = Grid { start: MonoNs(START), interval: SpanNs(1), points: 100_000 };
        spin.begin(grid);
        let recorder = Recorder::new(1);
        sample(&mut spin, &mut Home, u64::MAX, grid.start, &recorder, None, &stop);
        let seen = recorder.snapshot();
        assert_eq!((seen.woken.count, seen.worst[0].due_ns, seen.worst[0].late_ns), (1, 0, 30_050));
        assert!(spin.beside().spin.unwrap().observed_ns >= 100_000);
    }

    #[test]
    fn a_clock_that_goes_backwards_is_no_long_gap() {
        let (recorder, ..) = seen(&[0, 5_000, -3_000]);
        let seen = recorder.snapshot();
        assert_eq!((seen.early, seen.woken.count, seen.woken.max_ns), (1, 2, Some(5_000)));
    }

    #[test]
    fn a_loop_without_a_gap_has_looked_nevertheless() {
        let (recorder, spin, ending) = seen(&[0]);
        assert_eq!(recorder.snapshot().woken.count, 0);
        assert_eq!((spin.loops, spin.observed_ns, ending), (2_000, 100_000, Ending::Done));
    }

    #[test]
    fn all_time_is_observed() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let count = 1 + random.number() % 200;
            let steps: Vec<i64> =
                (0..count).map(|_| i64::try_from(1 + random.number() % 5_000).unwrap()).collect();
            let (recorder, spin, _) = seen(&steps);
            // The first reading comes when the loop has begun, so the one after it ends its first interval.
            let first = steps[0] + steps.get(1).copied().unwrap_or(50);
            let mut left = 100_000;
            let later = steps.iter().copied().skip(2);
            let within = std::iter::once(first).chain(later).take_while(|step| {
                let counts = left > 0;
                left -= step;
                counts
            });
            let long: Vec<u64> =
                within.map(i64::unsigned_abs).filter(|&step| step >= 1_000).collect();
            let woken = recorder.snapshot().woken;
            let want = (long.len() as u64, long.iter().sum::<u64>());
            assert_eq!((woken.count, woken.sum_ns), want, "seed {seed}");
            assert!(spin.observed_ns >= 100_000, "seed {seed}");
        }
    }
}
