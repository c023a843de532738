//! Wakeups by the periodic interrupt of a real-time clock.
//!
//! Since Linux 2.6.38 that interrupt is not the device's: the kernel's RTC code makes it with an hrtimer
//! of `CLOCK_MONOTONIC` whose period is 10^9 / rate in whole nanoseconds, and which begins when it is
//! switched on. So its grid is absolute and does not drift. Its phase is known as well as the time of
//! that call is, between two readings of the clock.

use std::io;

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::rtc::{Interrupts, Rtc};

use super::watch::Watch;
use super::{Beside, Grid, Loss, WaitForStimulus, Waited, Wakeup};
use crate::stop::Stop;

/// Calls to find one that takes little time.
const ATTEMPTS: u32 = 50;

/// A clock with a periodic interrupt: the machine's, or a simulation of one in tests.
pub trait Ticks {
    /// Starts interrupts, the first of which comes one period from now, and returns the clock before
    /// and after. Those of before are forgotten.
    fn start(&mut self) -> io::Result<(MonoNs, MonoNs)>;
    /// Waits for the next interrupts; with them, the clock read first thing after. `Interrupted` broke the
    /// wait off.
    fn wait(&mut self) -> io::Result<(Interrupts, MonoNs)>;
    /// Sleeps until about `at`.
    fn pause_until(&mut self, at: MonoNs);
}

impl Ticks for Rtc {
    fn start(&mut self) -> io::Result<(MonoNs, MonoNs)> {
        self.stop()?;
        self.forget()?;
        let before = clock::now();
        Rtc::start(self)?;
        Ok((before, clock::now()))
    }

    #[inline]
    fn wait(&mut self) -> io::Result<(Interrupts, MonoNs)> {
        let interrupts = Rtc::wait(self)?;
        Ok((interrupts, clock::now()))
    }

    fn pause_until(&mut self, at: MonoNs) {
        let _ = clock::sleep_until(at);
    }
}

/// The wakeups by a clock's interrupts.
pub struct RtcTicks<'a, T> {
    ticks: T,
    stop: &'a Stop,
    watch: Watch,
    /// When the next interrupt is due, at the earliest.
    next: MonoNs,
    interval: SpanNs,
    left: u64,
    uncertainty: SpanNs,
    /// Why the interrupts could not be started.
    failed: Option<Loss>,
}

impl<'a, T: Ticks> RtcTicks<'a, T> {
    /// Waits for `ticks` until `stop` is set. Whoever follows the thread does so by `watch`.
    pub fn new(ticks: T, stop: &'a Stop, watch: Watch) -> Self {
        let (next, interval, uncertainty) = (MonoNs(0), SpanNs(0), SpanNs(0));
        Self { ticks, stop, watch, next, interval, left: 0, uncertainty, failed: None }
    }

    /// Starts the interrupts, again and again until the clock was read little time before and after.
    fn synchronise(&mut self) -> io::Result<()> {
        let mut least = u64::MAX;
        for attempt in 1.. {
            let (before, after) = self.ticks.start()?;
            let width = after.since(before);
            least = least.min(width.0);
            // Some of them are for learning how little that can be.
            if (attempt > ATTEMPTS / 5 && width.0 <= least + least / 4) || attempt == ATTEMPTS {
                // No wakeup is taken for less late than it was.
                self.next = before.after(self.interval);
                self.uncertainty = width;
                break;
            }
        }
        Ok(())
    }

    /// A wakeup by `count` interrupts.
    #[inline]
    fn woken(&mut self, count: u64, woken: MonoNs) -> Wakeup {
        let (due, interval_ns) = (self.next, self.interval.0);
        let others = count - 1;
        self.next = MonoNs(due.0 + count * interval_ns);
        let last = MonoNs(due.0 + others * interval_ns);
        if last > woken {
            // The kernel has counted one that is still to come: the grid is not where it is thought
            // to be. That is an early wakeup, which spoils the run.
            self.left = self.left.saturating_sub(count);
            return Wakeup { due: last, woken, missed: 0 };
        }
        let missed = others.min(self.left - 1);
        self.left -= missed + 1;
        Wakeup { due, woken, missed }
    }
}

impl<T: Ticks> WaitForStimulus for RtcTicks<'_, T> {
    const HAS_INTERVAL: bool = true;

    fn begin(&mut self, grid: Grid) {
        (self.interval, self.left) = (grid.interval, grid.points);
        // The first interrupt comes about where the grid is to start.
        self.ticks.pause_until(MonoNs(grid.start.0.saturating_sub(grid.interval.0)));
        self.failed = self.synchronise().err().map(Loss::from);
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        if self.left == 0 {
            return Waited::Done;
        }
        match self.failed {
            // The end of the run breaks off the calls that start interrupts, too.
            Some(_) if self.stop.is_set() => return Waited::Stopped,
            Some(loss) => return Waited::Lost(loss),
            None => {}
        }
        let due = self.next;
        self.watch.before(due);
        let (count, woken) = loop {
            match self.ticks.wait() {
                Ok((seen, woken)) if seen.periodic => {
                    let others = u64::from(seen.alarm) + u64::from(seen.update);
                    break (seen.count.saturating_sub(others).max(1), woken);
                }
                // Another program's alarm.
                Ok(_) => {}
                // A PREEMPT_RT kernel counts interrupts in a thread, which may be late itself.
                Err(_) if self.stop.is_set() => match self.stop.overtaken(due) {
                    Some(now) => break (now.since(due).0 / self.interval.0.max(1) + 1, now),
                    None => return Waited::Stopped,
                },
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Waited::Lost(e.into()),
            }
        };
        let wakeup = self.woken(count, woken);
        self.watch.after(due, woken);
        Waited::Woken(wakeup)
    }

    #[inline]
    fn period(&self) -> SpanNs {
        self.interval
    }

    fn beside(&self) -> Beside {
        Beside { due_uncertainty: self.uncertainty, ..Beside::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::place::Home;
    use crate::stimulus::{Ending, sample};
    use wakescope_core::recorder::Recorder;

    const PERIOD: u64 = 488_281;

    /// A clock whose interrupts come `lateness` late, in turn, as the kernel makes them.
    struct Simulated<'a> {
        now: u64,
        started: u64,
        /// Interrupts that were counted so far.
        counted: u64,
        lateness: &'a [u64],
        turn: usize,
        /// How long the calls take that start it.
        calls: &'a [u64],
        /// Whether alarms come in between.
        alarms: bool,
        broken: bool,
        /// In which turn a wait fails, and in which it is broken off.
        fails_at: usize,
        broken_off_at: usize,
    }

    impl Ticks for Simulated<'_> {
        fn start(&mut self) -> io::Result<(MonoNs, MonoNs)> {
            if self.broken {
                return Err(io::Error::from_raw_os_error(13));
            }
            let before = self.now;
            let took = self.calls[self.turn % self.calls.len()];
            self.turn += 1;
            // The kernel starts the timer in the midst of the call.
            self.started = before + took / 2;
            self.counted = 0;
            self.now = before + took;
            Ok((MonoNs(before), MonoNs(self.now)))
        }

        fn wait(&mut self) -> io::Result<(Interrupts, MonoNs)> {
            self.turn += 1;
            if self.fails_at == self.turn {
                return Err(io::Error::from_raw_os_error(5));
            }
            if self.broken_off_at == self.turn {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if self.alarms && self.turn % 5 == 0 {
                let alarm = Interrupts { count: 1, periodic: false, alarm: true, update: false };
                return Ok((alarm, MonoNs(self.now)));
            }
            let late = self.lateness[self.turn % self.lateness.len()];
            let expiry = self.started + (self.counted + 1) * PERIOD;
            self.now = self.now.max(expiry) + late;
            let passed = (self.now - self.started) / PERIOD;
            let count = passed - self.counted;
            self.counted = passed;
            let both = u64::from(self.alarms && self.turn % 3 == 0);
            let seen =
                Interrupts { count: count + both, periodic: true, alarm: both > 0, update: false };
            Ok((seen, MonoNs(self.now)))
        }

        fn pause_until(&mut self, at: MonoNs) {
            self.now = self.now.max(at.0);
        }
    }

    fn clock<'a>(lateness: &'a [u64], calls: &'a [u64]) -> Simulated<'a> {
        Simulated {
            now: 0,
            started: 0,
            counted: 0,
            lateness,
            turn: 0,
            calls,
            alarms: false,
            broken: false,
            fails_at: usize::MAX,
            broken_off_at: usize::MAX,
        }
    }

    const ORIGIN: MonoNs = MonoNs(10_000_000);

    fn measure(ticks: Simulated<'_>, points: u64, recorder: &Recorder) -> (Ending, SpanNs) {
        let stop = Stop::default();
        let mut rtc = RtcTicks::new(ticks, &stop, Watch::none());
        rtc.begin(Grid { start: ORIGIN, interval: SpanNs(PERIOD), points });
        let ending = sample(&mut rtc, &mut Home, u64::MAX, ORIGIN, recorder, None, &stop);
        (ending, rtc.beside().due_uncertainty)
    }

    #[test]
    fn each_interrupt_counts_once_whatever_comes_late_or_in_between() {
        for (lateness, alarms, points, want_woken) in [
            (&[3_000][..], false, 100, 100),
            (&[3_000], true, 100, 100),
            (&[PERIOD + 10, 5, 5], false, 100, 75),
            (&[200 * PERIOD], false, 100, 1),
        ] {
            let recorder = Recorder::new(0);
            let ticks = Simulated { alarms, ..clock(lateness, &[800]) };
            let (ending, uncertainty) = measure(ticks, points, &recorder);
            let seen = recorder.snapshot();
            assert_eq!((ending, seen.expiries.count, seen.early), (Ending::Done, points, 0));
            assert_eq!(seen.missed, points - seen.woken.count);
            assert!(seen.woken.count.abs_diff(want_woken) <= 1, "{lateness:?}: {seen:?}");
            // It is known to 0.8 µs, and taken for later than it was by half of that.
            assert_eq!(uncertainty, SpanNs(800));
            assert!(seen.woken.min_ns >= lateness.iter().min().map(|least| least + 400));
        }
        let recorder = Recorder::new(0);
        measure(clock(&[3_000], &[800]), 100, &recorder);
        let deviation = recorder.snapshot().deviation.figures().unwrap();
        assert_eq!((deviation.count, deviation.min_ns, deviation.max_ns), (99, 0, 0));
    }

    #[test]
    fn the_phase_is_taken_from_a_call_that_was_quick() {
        let recorder = Recorder::new(0);
        let calls = [90_000, 2_000, 700_000, 800, 12_000];
        let (_, uncertainty) = measure(clock(&[3_000], &calls), 20, &recorder);
        assert_eq!(uncertainty, SpanNs(800));
        assert_eq!(recorder.snapshot().woken.max_ns, Some(3_400));
    }

    #[test]
    fn interrupts_before_their_time_spoil_the_run_and_none_end_it() {
        /// A device whose interrupts are not where the kernel's timer would have them.
        struct Fast<'a>(Simulated<'a>);
        impl Ticks for Fast<'_> {
            fn start(&mut self) -> io::Result<(MonoNs, MonoNs)> {
                self.0.start()
            }
            fn wait(&mut self) -> io::Result<(Interrupts, MonoNs)> {
                let (mut seen, woken) = self.0.wait()?;
                seen.count += 1;
                Ok((seen, woken))
            }
            fn pause_until(&mut self, at: MonoNs) {
                self.0.pause_until(at);
            }
        }
        let (recorder, stop) = (Recorder::new(0), Stop::default());
        let mut rtc = RtcTicks::new(Fast(clock(&[5], &[800])), &stop, Watch::none());
        rtc.begin(Grid { start: ORIGIN, interval: SpanNs(PERIOD), points: 40 });
        sample(&mut rtc, &mut Home, u64::MAX, ORIGIN, &recorder, None, &stop);
        let seen = recorder.snapshot();
        assert_eq!((seen.early, seen.woken.count), (20, 20));
        let broken = Simulated { broken: true, ..clock(&[5], &[800]) };
        let Ending::StimulusLost(_, why) = measure(broken, 40, &Recorder::new(0)).0 else {
            panic!()
        };
        assert_eq!(why, Loss::Failed(13));
    }

    #[test]
    fn interrupts_that_the_kernel_had_not_counted_when_the_run_was_stopped_are_late() {
        /// A clock that was started at a time, and whose reader is interrupted by the end of the run.
        struct HeldUp<'a>(MonoNs, &'a Stop, MonoNs);
        impl Ticks for HeldUp<'_> {
            fn start(&mut self) -> io::Result<(MonoNs, MonoNs)> {
                Ok((self.0, self.0))
            }
            fn wait(&mut self) -> io::Result<(Interrupts, MonoNs)> {
                self.1.at(self.2);
                Err(io::ErrorKind::Interrupted.into())
            }
            fn pause_until(&mut self, _: MonoNs) {}
        }
        let started = MonoNs(clock::now().0 - 700_000_000);
        let after = |periods: u64| started.after(SpanNs(periods * PERIOD));
        for (stopped_at, points, want_woken, want_missed) in [
            (after(501), 10_000, 1, 500),
            (after(501), 100, 1, 99),
            (after(1), 100, 1, 0),
            // The first one comes a period after the start.
            (MonoNs(after(1).0 - 1), 100, 0, 0),
        ] {
            let (stop, recorder) = (Stop::default(), Recorder::new(0));
            let mut rtc = RtcTicks::new(HeldUp(started, &stop, stopped_at), &stop, Watch::none());
            rtc.begin(Grid { start: after(1), interval: SpanNs(PERIOD), points });
            sample(&mut rtc, &mut Home, u64::MAX, after(1), &recorder, None, &stop);
            let seen = recorder.snapshot();
            let got = (seen.woken.count, seen.missed, seen.early);
            assert_eq!(got, (want_woken, want_missed, 0), "{stopped_at:?}, {points} points");
            assert!(want_woken == 0 || seen.woken.max_ns > Some(699_000_000), "{seen:?}");
        }
    }

    #[test]
    fn a_wait_that_fails_ends_the_run_and_one_that_is_broken_off_does_not() {
        let broken_off = Simulated { broken_off_at: 20, ..clock(&[5], &[800]) };
        assert_eq!(measure(broken_off, 40, &Recorder::new(0)).0, Ending::Done);
        let recorder = Recorder::new(0);
        let failing = Simulated { fails_at: 20, ..clock(&[5], &[800]) };
        let ending = measure(failing, 40, &recorder).0;
        assert!(matches!(ending, Ending::StimulusLost(_, Loss::Failed(5))), "{ending:?}");
        assert!(recorder.snapshot().woken.count > 0);
    }
}
