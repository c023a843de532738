//! Wakeups by a timer on an absolute grid.

use std::io;

use wakescope_core::plan::Rate;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::shared::Answers;

use super::sleep::Sleep;
use super::watch::Watch;
use super::{Grid, WaitForStimulus, Waited, Wakeup};
use crate::stop::Stop;

/// Sleeps, and tells when it woke: the machine, or a simulation of one in tests.
pub trait Alarm {
    /// Sleeps until `expiry` and returns the time read first thing after. The error is how the wait ended
    /// instead: [`Waited::Stopped`] when the sleep was broken off because the run is to end, or
    /// [`Waited::Lost`].
    fn sleep_until(&mut self, expiry: MonoNs) -> Result<MonoNs, Waited>;
}

/// The expiries of a timer. The grid is absolute: a late wakeup does not move the expiries after it.
/// Expiries that have passed by the time of a wakeup, itself apart, are missed with it.
pub struct Timer<A> {
    alarm: A,
    next: MonoNs,
    /// What `next` lacks to the point of the grid, in 2^-32 ns.
    part: u32,
    interval: SpanNs,
    /// What the interval lacks to the grid's period, in 2^-32 ns.
    fraction: u32,
    left: u64,
    /// Whether the grid is that of a clock's rate.
    keeps_rate: bool,
}

impl<A> Timer<A> {
    /// A timer without expiries yet, which `alarm` waits for.
    pub fn new(alarm: A) -> Self {
        let (next, interval) = (MonoNs(0), SpanNs(0));
        Self { alarm, next, part: 0, interval, fraction: 0, left: 0, keeps_rate: false }
    }

    /// The same, for the grid of a real-time clock's rate: 2048 Hz is a period of 488,281.25 ns.
    pub(crate) fn of_rate(alarm: A) -> Self {
        Self { keeps_rate: true, ..Self::new(alarm) }
    }

    /// Goes on to the next point of the grid.
    #[inline]
    fn advance(&mut self) {
        let (part, carries) = self.part.overflowing_add(self.fraction);
        self.part = part;
        self.next = MonoNs(self.next.0 + self.interval.0 + u64::from(carries));
    }

    /// Goes on over the points that have passed at `now`, and returns how many.
    #[cold]
    fn skip_to(&mut self, now: MonoNs) -> u64 {
        let period = (u128::from(self.interval.0) << 32) + u128::from(self.fraction);
        let point = (u128::from(self.next.0) << 32) + u128::from(self.part);
        // In whole nanoseconds, as the alarm has it: that of `next` has come.
        let end = (u128::from(now.0) << 32) + u128::from(u32::MAX);
        let passed = (end - point) / period + 1;
        let passed = u64::try_from(passed).unwrap_or(u64::MAX).min(self.left);
        let next = point + period * u128::from(passed);
        // Its whole nanoseconds are at most an interval above `now`, and the rest is the part.
        #[allow(clippy::cast_possible_truncation)]
        {
            (self.next, self.part) = (MonoNs((next >> 32) as u64), next as u32);
        }
        passed
    }
}

impl<A: Alarm> WaitForStimulus for Timer<A> {
    const HAS_INTERVAL: bool = true;

    fn begin(&mut self, grid: Grid) {
        (self.next, self.interval, self.left) = (grid.start, grid.interval, grid.points);
        let rate = Rate::of(grid.interval).filter(|_| self.keeps_rate);
        (self.part, self.fraction) = (0, rate.map_or(0, Rate::fraction));
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        if self.left == 0 {
            return Waited::Done;
        }
        let due = self.next;
        let woken = match self.alarm.sleep_until(due) {
            Ok(woken) => woken,
            Err(waited) => return waited,
        };
        self.left -= 1;
        self.advance();
        let mut missed = 0;
        // A division costs as much as the rest of this; almost every wakeup does without.
        if woken >= self.next {
            // At most one interval beyond the present.
            missed = self.skip_to(woken);
            self.left -= missed;
        }
        Waited::Woken(Wakeup { due, woken, missed })
    }

    #[inline]
    fn period(&self) -> SpanNs {
        self.interval
    }
}

/// The machine's own timer, waited for by `S`.
pub struct KernelTimer<'a, S> {
    sleep: S,
    stop: &'a Stop,
    watch: Watch,
}

impl<'a, S: Sleep> KernelTimer<'a, S> {
    /// A timer whose sleeps end once `stop` is set. Whoever follows the thread gets its answers.
    pub fn new(sleep: S, stop: &'a Stop, answers: Option<Answers>) -> Self {
        Self { sleep, stop, watch: Watch::new(answers, !S::RECOGNISED) }
    }
}

impl<S: Sleep> Alarm for KernelTimer<'_, S> {
    #[inline]
    fn sleep_until(&mut self, expiry: MonoNs) -> Result<MonoNs, Waited> {
        self.watch.before(expiry);
        self.sleep.arm(expiry).map_err(lost)?;
        // A sleep is broken off by the signal that ends the run, and by nothing else here: all
        // other signals are blocked. After SIGSTOP and SIGCONT the kernel sleeps on by itself, or the
        // sleep is broken off as well.
        let now = loop {
            match self.sleep.until(expiry) {
                Ok(now) => break now,
                // A timer that had not expired in time.
                Err(_) if self.stop.is_set() => {
                    break self.stop.overtaken(expiry).ok_or(Waited::Stopped)?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(lost(e)),
            }
        };
        self.watch.after(expiry, now);
        Ok(now)
    }
}

#[cold]
fn lost(e: io::Error) -> Waited {
    Waited::Lost(e.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::Loss;
    use crate::stimulus::sleep::Nanosleep;
    use std::os::fd::AsFd;
    use wakescope_sys::clock;
    use wakescope_sys::file::file_in_memory;
    use wakescope_sys::shared::Words;

    #[test]
    fn the_watchdog_expires_only_after_the_patience_of_who_looks_on() {
        let file = file_in_memory().unwrap();
        file.set_len((Answers::WORDS * size_of::<u64>()) as u64).unwrap();
        let words = Words::map(file.as_fd(), Answers::WORDS).unwrap();
        let answers = || words.answers(0).unwrap();
        let stop = Stop::default();
        let mut timer = KernelTimer::new(Nanosleep, &stop, Some(answers()));
        let mut sleep = |patience| {
            answers().set_patience(patience);
            let expiry = clock::now().after(SpanNs(1_000_000));
            timer.sleep_until(expiry).unwrap();
            timer.watch.expires().map(|due| due.since(expiry).0)
        };
        let hour = 3_600_000_000_000;
        // Told as what is left of it, which the kernel reads a moment later.
        let left = sleep(hour).expect("it is armed");
        assert!(left <= hour && left > hour - 60_000_000_000, "{left}");
        // Anew before each sleep; and as it was, where nobody wants to know.
        assert!(sleep(2 * hour).unwrap() > hour);
        assert!(sleep(0).unwrap() > hour);
    }

    /// A sleep during which a tracer would find the announcement.
    struct Looking<'a>(&'a Words, Vec<u64>);

    impl Sleep for Looking<'_> {
        fn until(&mut self, expiry: MonoNs) -> io::Result<MonoNs> {
            self.1.push(self.0.load(1));
            Ok(expiry)
        }
    }

    #[test]
    fn a_wakeup_that_no_tracer_recognises_is_announced_until_it_is_answered() {
        let file = file_in_memory().unwrap();
        file.set_len((Answers::WORDS * size_of::<u64>()) as u64).unwrap();
        let words = Words::map(file.as_fd(), Answers::WORDS).unwrap();
        let stop = Stop::default();
        let looking = Looking(&words, Vec::new());
        let mut timer = KernelTimer::new(looking, &stop, words.answers(0));
        for expiry in [500, 600] {
            assert_eq!(timer.sleep_until(MonoNs(expiry)), Ok(MonoNs(expiry)));
            assert_eq!(words.load(1), 0);
        }
        assert_eq!(timer.sleep.1, [500, 600]);
        let mut timer = KernelTimer::new(Nanosleep, &stop, words.answers(0));
        words.store(1, 7);
        assert!(timer.sleep_until(MonoNs(1)).is_ok());
        assert_eq!(words.load(1), 7, "it is recognised, and the word is somebody else's");
    }

    #[test]
    fn a_stopped_sleep_ends_and_one_that_was_only_broken_off_goes_on() {
        struct Broken(u32);
        impl Sleep for Broken {
            fn until(&mut self, expiry: MonoNs) -> io::Result<MonoNs> {
                self.0 += 1;
                if self.0 < 3 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(expiry) }
            }
        }
        let far = clock::now().after(SpanNs(3_600_000_000_000));
        for (expiry, stopped_at, want, times) in [
            (MonoNs(9), None, Ok(MonoNs(9)), 3),
            (MonoNs(9), Some(MonoNs(8)), Err(Waited::Stopped), 1),
            (far, Some(far), Err(Waited::Stopped), 1),
        ] {
            let stop = Stop::default();
            stopped_at.into_iter().for_each(|at| stop.at(at));
            let mut timer = KernelTimer::new(Broken(0), &stop, None);
            assert_eq!((timer.sleep_until(expiry), timer.sleep.0), (want, times));
        }
        // What had not expired in time is as late as the end of the run finds it.
        let (stop, before) = (Stop::default(), clock::now());
        stop.at(MonoNs(10));
        let woken = KernelTimer::new(Broken(0), &stop, None).sleep_until(MonoNs(9));
        assert!(woken.is_ok_and(|woken| woken >= before), "{woken:?}");
    }

    #[test]
    fn a_timer_that_fails_is_lost_with_the_cause() {
        /// A sleep that fails: the error of arming it, if that fails, and the error of waiting.
        struct Failing(Option<i32>, i32);
        impl Sleep for Failing {
            fn arm(&mut self, _: MonoNs) -> io::Result<()> {
                self.0.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
            }
            fn until(&mut self, _: MonoNs) -> io::Result<MonoNs> {
                Err(io::Error::from_raw_os_error(self.1))
            }
        }
        let stop = Stop::default();
        for (failing, errno) in [(Failing(Some(22), 9), 22), (Failing(None, 9), 9)] {
            let mut timer = KernelTimer::new(failing, &stop, None);
            assert_eq!(timer.sleep_until(MonoNs(9)), Err(Waited::Lost(Loss::Failed(errno))));
        }
    }
}
