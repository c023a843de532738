//! Wakeups by a timer on an absolute grid.

use std::sync::atomic::{AtomicBool, Ordering};

use wakescope_core::recorder::Recorder;
use wakescope_core::ring::{Ring, Sample};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::sched::{self, CpuReader};
use wakescope_sys::shared::Answers;
use wakescope_sys::timer_file::TimerFile;

/// Sleeps, and tells where and when it woke: the machine, or a simulation of one in tests.
pub trait Alarm {
    /// Sleeps until `expiry` and returns the time read first thing after; `None` when the sleep
    /// was broken off because the run is to end.
    fn sleep_until(&mut self, expiry: MonoNs) -> Option<MonoNs>;
    /// Whether the thread is on the CPU that it belongs on.
    fn at_home(&mut self) -> bool;
    /// Brings the thread back to the CPU that it belongs on; false if that CPU is gone.
    fn go_home(&mut self) -> bool;
}

/// The expiries to wait for: `first`, and from there every `interval`.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The first expiry, from the start of the run.
    pub first: SpanNs,
    /// From one to the next.
    pub interval: SpanNs,
    /// How many expiries there are.
    pub expiries: u64,
    /// After how many wakeups to stop, whatever expiries are left.
    pub wakeups: u64,
}

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The grid is done.
    Done,
    /// It was told to stop.
    Stopped,
    /// The CPU went away before the wakeup for the expiry due then, from the start of the run.
    CpuLost(SpanNs),
}

/// Waits for each expiry of `grid` and records how late the wakeup came, times from `origin`.
///
/// Nothing here allocates, locks, prints or fails, and the only system call is the sleep, with that
/// before it which arms a watchdog, if somebody looks on. The grid
/// is absolute: a late wakeup does not move the expiries after it. Expiries that have passed
/// by the time of a wakeup, itself apart, are recorded with it as missed.
#[inline]
pub fn sample(
    alarm: &mut impl Alarm,
    grid: Grid,
    origin: MonoNs,
    recorder: &Recorder,
    samples: Option<&Ring>,
    stop: &AtomicBool,
) -> Ending {
    let interval_ns = grid.interval.0;
    let mut due_ns = grid.first.0;
    let mut left = grid.expiries;
    let mut wakeups_left = grid.wakeups;
    while left > 0 && wakeups_left > 0 {
        let expiry = MonoNs(origin.0 + due_ns);
        let Some(woken) = alarm.sleep_until(expiry) else { return Ending::Stopped };
        if stop.load(Ordering::Relaxed) {
            return Ending::Stopped;
        }
        if !alarm.at_home() {
            if !alarm.go_home() {
                return Ending::CpuLost(SpanNs(due_ns));
            }
            recorder.count_migration();
        }
        let late_ns = woken.0.checked_sub(expiry.0).unwrap_or_else(|| {
            recorder.count_early();
            0
        });
        // A division costs as much as the rest of this; almost every wakeup does without.
        let missed = if late_ns < interval_ns { 0 } else { (late_ns / interval_ns).min(left - 1) };
        recorder.record(due_ns, late_ns, missed, interval_ns);
        if let Some(ring) = samples {
            ring.push(Sample { due_ns, late_ns });
        }
        wakeups_left -= 1;
        left -= missed + 1;
        // At most one interval beyond the present.
        due_ns += (missed + 1) * interval_ns;
    }
    Ending::Done
}

/// The machine's own timer.
pub struct KernelTimer<'a> {
    /// The CPU that the thread is bound to; `None` if to none.
    pub home: Option<u32>,
    /// Tells where it is.
    pub cpu: CpuReader,
    /// Set when the run is to end.
    pub stop: &'a AtomicBool,
    /// Where answers go, for whoever follows the thread from the kernel.
    pub answers: Option<Answers>,
    /// Expires if a wakeup is late enough to be looked at: then whoever follows sees what runs.
    pub watchdog: Option<TimerFile>,
}

impl KernelTimer<'_> {
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

    #[inline]
    fn at_home(&mut self) -> bool {
        self.home.is_none() || self.cpu.read() == self.home
    }

    #[cold]
    fn go_home(&mut self) -> bool {
        // Binding to a CPU that is offline fails with EINVAL.
        self.home.is_none_or(|cpu| sched::set_affinity(&[cpu]).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use wakescope_sys::record_lock::nameless_file;
    use wakescope_sys::shared::Words;

    /// A machine that wakes each sleeper `lateness` late, in turn, and is away from home when told.
    struct Simulated<'a> {
        now: u64,
        lateness: &'a [u64],
        turn: usize,
        away_at: Option<usize>,
        home_exists: bool,
    }

    impl Alarm for Simulated<'_> {
        fn sleep_until(&mut self, expiry: MonoNs) -> Option<MonoNs> {
            let late = self.lateness[self.turn % self.lateness.len()];
            self.turn += 1;
            self.now = self.now.max(expiry.0) + late;
            Some(MonoNs(self.now))
        }
        fn at_home(&mut self) -> bool {
            self.away_at != Some(self.turn)
        }
        fn go_home(&mut self) -> bool {
            self.home_exists
        }
    }

    fn machine(lateness: &[u64]) -> Simulated<'_> {
        Simulated { now: 0, lateness, turn: 0, away_at: None, home_exists: true }
    }

    fn grid(interval: u64, expiries: u64) -> Grid {
        Grid { first: SpanNs(0), interval: SpanNs(interval), expiries, wakeups: u64::MAX }
    }

    #[test]
    fn the_watchdog_expires_only_after_the_patience_of_who_looks_on() {
        let file = nameless_file().unwrap();
        file.set_len((Answers::WORDS * size_of::<u64>()) as u64).unwrap();
        let words = Words::map(file.as_fd(), Answers::WORDS).unwrap();
        let answers = || words.answers(0).unwrap();
        let stop = AtomicBool::new(false);
        let mut timer = KernelTimer {
            home: None,
            cpu: CpuReader::new(),
            stop: &stop,
            answers: Some(answers()),
            watchdog: Some(TimerFile::new().unwrap()),
        };
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

    #[track_caller]
    fn check(lateness: &[u64], interval: u64, expiries: u64, want_woken: u64) {
        let recorder = Recorder::new(4);
        let stop = AtomicBool::new(false);
        let end = sample(
            &mut machine(lateness),
            grid(interval, expiries),
            MonoNs(1_000),
            &recorder,
            None,
            &stop,
        );
        let seen = recorder.snapshot();
        assert_eq!(end, Ending::Done);
        assert_eq!(seen.expiries.count, expiries, "every expiry of the grid counts once");
        assert_eq!(seen.woken.count, want_woken);
        assert_eq!(seen.missed, expiries - want_woken);
    }

    #[test]
    fn each_expiry_counts_once_whatever_the_stalls() {
        check(&[5], 1_000, 100, 100);
        check(&[999], 1_000, 100, 100);
        check(&[1_000], 1_000, 100, 50); // Just at the next expiry: that one has passed.
        check(&[100_300, 5, 5, 5], 1_000, 500, 17); // One wakeup in four takes 101 expiries.
        check(&[1 << 40], 1_000, 500, 1); // A stall beyond the end takes what is left, no more.
    }

    #[test]
    fn a_number_of_wakeups_ends_the_run_too() {
        let (recorder, stop) = (Recorder::new(0), AtomicBool::new(false));
        let grid = Grid { wakeups: 10, ..grid(1_000, u64::MAX) };
        let ring = Ring::new(64);
        let end =
            sample(&mut machine(&[3_500, 1]), grid, MonoNs(1_000), &recorder, Some(&ring), &stop);
        assert_eq!((end, recorder.snapshot().woken.count), (Ending::Done, 10));
        assert_eq!(ring.pop(), Some(Sample { due_ns: 0, late_ns: 3_500 }));
        assert_eq!(ring.pop(), Some(Sample { due_ns: 4_000, late_ns: 1 }));
    }

    #[test]
    fn a_cpu_that_is_gone_ends_the_loop_and_one_that_is_not_counts_a_migration() {
        for (home_exists, want_woken) in [(false, 4), (true, 20)] {
            let (recorder, stop) = (Recorder::new(0), AtomicBool::new(false));
            let mut machine = Simulated { away_at: Some(5), home_exists, ..machine(&[1]) };
            let end = sample(&mut machine, grid(1_000, 20), MonoNs(0), &recorder, None, &stop);
            let seen = recorder.snapshot();
            assert_eq!(seen.woken.count, want_woken);
            assert_eq!(seen.migrated, u64::from(home_exists));
            assert_eq!(end == Ending::Done, home_exists, "{end:?}");
        }
    }

    #[test]
    fn a_stopped_loop_takes_no_further_sample() {
        let (recorder, stop) = (Recorder::new(0), AtomicBool::new(true));
        let end = sample(&mut machine(&[1]), grid(1_000, 20), MonoNs(0), &recorder, None, &stop);
        assert_eq!((end, recorder.snapshot().woken.count), (Ending::Stopped, 0));
    }
}
