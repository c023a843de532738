//! Wakeups by a timer on an absolute grid.

use std::sync::atomic::{AtomicBool, Ordering};

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::shared::Answers;
use wakescope_sys::timer_file::TimerFile;

use super::{Grid, Stimulus, Waited, Wakeup};

/// Sleeps, and tells when it woke: the machine, or a simulation of one in tests.
pub trait Alarm {
    /// Sleeps until `expiry` and returns the time read first thing after; `None` when the sleep
    /// was broken off because the run is to end.
    fn sleep_until(&mut self, expiry: MonoNs) -> Option<MonoNs>;
}

/// The expiries of a timer. The grid is absolute: a late wakeup does not move the expiries after it.
/// Expiries that have passed by the time of a wakeup, itself apart, are missed with it.
pub struct Timer<A> {
    alarm: A,
    next: MonoNs,
    interval: SpanNs,
    left: u64,
}

impl<A> Timer<A> {
    /// A timer without expiries yet, which `alarm` waits for.
    pub fn new(alarm: A) -> Self {
        Self { alarm, next: MonoNs(0), interval: SpanNs(0), left: 0 }
    }
}

impl<A: Alarm> Stimulus for Timer<A> {
    fn begin(&mut self, grid: Grid) {
        (self.next, self.interval, self.left) = (grid.start, grid.interval, grid.points);
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        if self.left == 0 {
            return Waited::Done;
        }
        let (due, interval_ns) = (self.next, self.interval.0);
        let Some(woken) = self.alarm.sleep_until(due) else { return Waited::Stopped };
        self.left -= 1;
        self.next = MonoNs(due.0 + interval_ns);
        let mut missed = 0;
        // A division costs as much as the rest of this; almost every wakeup does without.
        if woken >= self.next {
            missed = (woken.since(due).0 / interval_ns).min(self.left);
            self.left -= missed;
            // At most one interval beyond the present.
            self.next = MonoNs(self.next.0 + missed * interval_ns);
        }
        Waited::Woken(Wakeup { due, woken, missed })
    }

    #[inline]
    fn period(&self) -> SpanNs {
        self.interval
    }

    fn skipped(&self) -> u64 {
        0
    }
}

/// The machine's own timer.
pub struct KernelTimer<'a> {
    stop: &'a AtomicBool,
    /// Where answers go, for whoever follows the thread from the kernel.
    answers: Option<Answers>,
    /// Expires if a wakeup is late enough to be looked at: then whoever follows sees what runs.
    watchdog: Option<TimerFile>,
}

impl<'a> KernelTimer<'a> {
    /// A timer whose sleeps end once `stop` is set. Whoever follows the thread gets its answers.
    pub fn new(stop: &'a AtomicBool, answers: Option<Answers>) -> Self {
        // Only whoever follows the thread has a use for it.
        let watchdog = answers.as_ref().and_then(|_| TimerFile::new().ok());
        Self { stop, answers, watchdog }
    }

    /// Lets the watchdog expire some time after `expiry`. Before the sleep, so that it delays nothing
    /// that is measured.
    #[inline]
    fn watch(&self, expiry: MonoNs) {
        let (Some(watchdog), Some(answers)) = (&self.watchdog, &self.answers) else { return };
        let patience = answers.patience();
        if patience > 0 {
            // Without it less is seen, and the wakeup is as late.
            let _ = watchdog.arm(expiry.after(SpanNs(patience)));
        }
    }
}

impl Alarm for KernelTimer<'_> {
    #[inline]
    fn sleep_until(&mut self, expiry: MonoNs) -> Option<MonoNs> {
        self.watch(expiry);
        // A sleep is broken off by the signal that ends the run, and by nothing else here: all
        // other signals are blocked, and after SIGSTOP and SIGCONT the kernel sleeps on by itself.
        while clock::sleep_until(expiry).is_err() {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
        }
        let now = clock::now();
        if let Some(answers) = &mut self.answers {
            answers.put(expiry.0, now.0);
        }
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use wakescope_sys::record_lock::nameless_file;
    use wakescope_sys::shared::Words;

    #[test]
    fn the_watchdog_expires_only_after_the_patience_of_who_looks_on() {
        let file = nameless_file().unwrap();
        file.set_len((Answers::WORDS * size_of::<u64>()) as u64).unwrap();
        let words = Words::map(file.as_fd(), Answers::WORDS).unwrap();
        let answers = || words.answers(0).unwrap();
        let stop = AtomicBool::new(false);
        let mut timer = KernelTimer::new(&stop, Some(answers()));
        let mut sleep = |patience| {
            answers().set_patience(patience);
            let expiry = clock::now().after(SpanNs(1_000_000));
            timer.sleep_until(expiry).unwrap();
            timer.watchdog.as_ref().unwrap().due().unwrap().map(|due| due.since(expiry).0)
        };
        let hour = 3_600_000_000_000;
        // Told as what is left of it, which the kernel reads a moment later.
        let left = sleep(hour).expect("it is armed");
        assert!(left <= hour && left > hour - 60_000_000_000, "{left}");
        // Anew before each sleep; and as it was, where nobody wants to know.
        assert!(sleep(2 * hour).unwrap() > hour);
        assert!(sleep(0).unwrap() > hour);
    }
}
