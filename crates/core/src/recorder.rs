//! What the measuring loop writes and everybody else reads.
//!
//! One thread records, any thread may look. All memory is allocated at the start and never grows:
//! 10^8 samples take what 10^5 take. Recording does not allocate, lock, fail or make a system
//! call; it is plain loads and stores (no locked instruction) under a version counter that lets
//! readers notice that they looked in the middle of a change.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use Ordering::{Acquire, Relaxed, Release};

use crate::distribution::Distribution;
use crate::interval_deviation::IntervalDeviation;
use crate::maxima::Maxima;

mod course;
mod deviations;
mod tally;
mod worst;

use course::Course;
use deviations::{Deviations, FarExtremes};
use tally::{Counts, Extremes, Tally, add};
use worst::Worst;

/// One late wakeup. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Late {
    /// How late it was.
    pub late_ns: u64,
    /// When it was due, from the start of the run.
    pub due_ns: u64,
    /// Expiries that passed before it and had no wakeup of their own.
    pub missed: u64,
}

/// Everything a recorder knew at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// One value per wakeup.
    pub woken: Distribution,
    /// One value per expiry: `woken` and the expiries that a late wakeup swallowed.
    pub expiries: Distribution,
    /// Expiries without a wakeup of their own; `expiries.count - woken.count`.
    pub missed: u64,
    /// Wakeups on another CPU than the one asked for.
    pub migrated: u64,
    /// Wakeups before their time, counted as 0 ns late. The clock went backwards, or the kernel erred.
    pub early: u64,
    /// Stimuli that came before the thread slept. They are no wakeups.
    pub not_asleep: u64,
    /// How the times between wakeups deviate from the interval, where that is recorded.
    pub deviation: IntervalDeviation,
    /// The latest wakeups, worst first.
    pub worst: Vec<Late>,
    /// The largest lateness over the course of the run, per expiry.
    pub maxima: Maxima,
}

/// The statistics of one measuring thread.
pub struct Recorder {
    /// Odd while a sample is being written.
    version: AtomicU64,
    woken: Tally,
    /// Expiries that a late wakeup swallowed. Kept apart so that a wakeup in time costs one count.
    swallowed: Tally,
    /// Times between wakeups, without the interval.
    deviations: Deviations,
    migrated: AtomicU64,
    early: AtomicU64,
    not_asleep: AtomicU64,
    worst: Worst,
    course: Course,
    now: AtomicU64,
    recent_max: AtomicU64,
}

impl Recorder {
    /// A recorder that keeps the `worst` latest wakeups.
    pub fn new(worst: usize) -> Self {
        Self {
            version: AtomicU64::new(0),
            woken: Tally::new(),
            swallowed: Tally::new(),
            deviations: Deviations::new(),
            migrated: AtomicU64::new(0),
            early: AtomicU64::new(0),
            not_asleep: AtomicU64::new(0),
            worst: Worst::new(worst),
            course: Course::new(),
            now: AtomicU64::new(0),
            recent_max: AtomicU64::new(0),
        }
    }

    /// Records a wakeup `late_ns` late for the expiry due at `due_ns` from the start of the run,
    /// after which `missed` further expiries of the grid, `interval_ns` apart, have passed too.
    /// Only one thread may record.
    #[inline]
    pub fn record(&self, due_ns: u64, late_ns: u64, missed: u64, interval_ns: u64) {
        let version = self.version.load(Relaxed);
        self.version.store(version + 1, Relaxed);
        fence(Release);
        self.woken.count(late_ns, due_ns);
        self.course.raise(due_ns, late_ns);
        if missed > 0 {
            self.swallowed.count_steps(late_ns, due_ns, missed, interval_ns);
            self.course.raise_steps(due_ns, late_ns, missed, interval_ns);
        }
        if self.worst.takes(late_ns) {
            self.worst.insert(Late { late_ns, due_ns, missed });
        }
        self.now.store(late_ns, Relaxed);
        if late_ns > self.recent_max.load(Relaxed) {
            self.recent_max.store(late_ns, Relaxed);
        }
        self.version.store(version + 2, Release);
    }

    /// Records by how much the time since the wakeup before was longer than the interval, or, if
    /// negative, shorter, beside the record of the wakeup due at `due_ns`. Only the recording thread
    /// may.
    #[inline]
    pub fn record_deviation(&self, due_ns: u64, deviation_ns: i64) {
        // Such counts stand by themselves, so readers need not notice the change.
        if !self.deviations.count_near(deviation_ns) {
            self.record_far_deviation(due_ns, deviation_ns);
        }
    }

    #[cold]
    fn record_far_deviation(&self, due_ns: u64, deviation_ns: i64) {
        let version = self.version.load(Relaxed);
        self.version.store(version + 1, Relaxed);
        fence(Release);
        self.deviations.count_far(due_ns, deviation_ns);
        self.version.store(version + 2, Release);
    }

    /// Forgets everything. Only the recording thread may.
    ///
    /// It also touches every page that recording will touch, so that none of them faults later.
    pub fn reset(&self) {
        let version = self.version.load(Relaxed);
        self.version.store(version + 1, Relaxed);
        fence(Release);
        self.woken.reset();
        self.swallowed.reset();
        self.deviations.reset();
        self.worst.reset();
        self.course.reset();
        for cell in [&self.migrated, &self.early, &self.not_asleep, &self.now, &self.recent_max] {
            cell.store(0, Relaxed);
        }
        self.version.store(version + 2, Release);
    }

    /// Counts a wakeup before its time, beside its record as 0 ns late. Only the recording thread may.
    #[cold]
    pub fn count_early(&self) {
        add(&self.early, 1);
    }

    /// Counts a stimulus that came before the thread slept. Only the recording thread may.
    #[cold]
    pub fn count_not_asleep(&self) {
        add(&self.not_asleep, 1);
    }

    /// Counts a wakeup on a CPU other than the one asked for. Only the recording thread may.
    pub fn count_migration(&self) {
        add(&self.migrated, 1);
    }

    /// The last wakeup's lateness, and the largest since this was last asked. For display: a
    /// maximum that comes at the very moment of asking may be shown in the next slice.
    pub fn recent(&self) -> (u64, u64) {
        (self.now.load(Relaxed), self.recent_max.swap(0, Relaxed))
    }

    /// A copy of everything at one moment.
    ///
    /// If the recording thread wrote each time we looked, as it can where copying the counts takes
    /// longer than its interval, the copy holds all samples from before a moment and some from after
    /// it. It is consistent all the same, but for the sum, which is that of the moment.
    pub fn snapshot(&self) -> Snapshot {
        let all = || {
            let figures = self.figures();
            let counts = self.counts(&figures);
            (figures, counts)
        };
        let (figures, (late, far)) = self.at_one_moment(LOOKS_AT_ALL, all).unwrap_or_else(|| {
            // A few loads, so this succeeds.
            let figures = self.at_one_moment(LOOKS_AT_FIGURES, || self.figures());
            let figures = figures.unwrap_or_else(|| self.figures());
            let counts = self.counts(&figures);
            (figures, counts)
        });
        let deviation = self.deviations.copy(&figures.far, &far);
        Snapshot { deviation, ..snapshot_of(figures, late) }
    }

    /// What `read` gives between two samples; `None` if one was written each of `looks` times.
    fn at_one_moment<T>(&self, looks: usize, read: impl Fn() -> T) -> Option<T> {
        (0..looks).find_map(|_| {
            let before = self.version.load(Acquire);
            let seen = (before % 2 == 0).then(&read);
            fence(Acquire);
            seen.filter(|_| self.version.load(Relaxed) == before)
        })
    }

    /// Everything but the counts.
    fn figures(&self) -> Figures {
        Figures {
            woken: self.woken.extremes(),
            swallowed: self.swallowed.extremes(),
            far: self.deviations.extremes(),
            migrated: self.migrated.load(Relaxed),
            early: self.early.load(Relaxed),
            not_asleep: self.not_asleep.load(Relaxed),
            worst: self.worst.copy(),
            maxima: self.course.copy(),
        }
    }

    /// The counts of the values between the extremes. A sample is counted before it becomes an
    /// extreme, and one that came since and lies beyond them is left out: what is counted is a
    /// distribution with these extremes, whatever is written meanwhile.
    fn counts(&self, figures: &Figures) -> ([Counts; 2], [Counts; 2]) {
        let late = [self.woken.counts(&figures.woken), self.swallowed.counts(&figures.swallowed)];
        (late, self.deviations.counts(&figures.far))
    }
}

/// How often everything is copied until no sample was written meanwhile. Where a copy takes longer than the
/// interval, further ones only cost more.
const LOOKS_AT_ALL: usize = 4;
/// The same for what is a few loads.
const LOOKS_AT_FIGURES: usize = 64;

/// What a recorder holds beside its counts.
struct Figures {
    woken: Extremes,
    swallowed: Extremes,
    far: FarExtremes,
    migrated: u64,
    early: u64,
    not_asleep: u64,
    worst: Vec<Late>,
    maxima: Maxima,
}

fn snapshot_of(figures: Figures, [woken, swallowed]: [Counts; 2]) -> Snapshot {
    let missed = swallowed.total();
    let expiries = match missed {
        0 => woken.distribution(&figures.woken),
        _ => woken.with(&swallowed).distribution(&figures.woken.with(&figures.swallowed)),
    };
    let mut worst = figures.worst;
    worst.sort_by_key(|w| (std::cmp::Reverse(w.late_ns), w.due_ns));
    Snapshot {
        missed,
        expiries,
        woken: woken.distribution(&figures.woken),
        migrated: figures.migrated,
        early: figures.early,
        not_asleep: figures.not_asleep,
        deviation: IntervalDeviation::default(),
        worst,
        maxima: figures.maxima,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::maxima::FIRST_SLOT_NS;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn nothing() -> Snapshot {
        let maxima = Maxima { slot_ns: FIRST_SLOT_NS, max_ns: Vec::new() };
        Snapshot { maxima, ..Default::default() }
    }

    #[test]
    fn a_stall_counts_for_every_expiry_it_swallowed() {
        let r = Recorder::new(3);
        r.record(5 * MS, 10, 0, MS);
        // 100.3 ms late at 1 ms: the wakeup's own expiry and 100 more.
        r.record(6 * MS, 100 * MS + 300_000, 100, MS);
        let s = r.snapshot();
        assert_eq!((s.woken.count, s.missed, s.expiries.count), (2, 100, 102));
        assert_eq!(s.expiries.max_ns, Some(100 * MS + 300_000));
        assert_eq!(s.expiries.max_at_ns, Some(6 * MS));
        assert_eq!(s.expiries.histogram.count_below(512 << 11), 2, "10 ns and 0.3 ms");
        let swallowed: u64 = (0..=100).map(|i| i * MS + 300_000).sum();
        assert_eq!(s.expiries.sum_ns, swallowed + 10);
        assert_eq!(s.worst[0], Late { late_ns: 100 * MS + 300_000, due_ns: 6 * MS, missed: 100 });
    }

    #[test]
    fn sums_of_long_stalls_saturate() {
        let r = Recorder::new(1);
        // A debugger held the thread for two hours, twice.
        for due_ns in [5 * MS, 7_200_010 * MS] {
            r.record(due_ns, 7_200_000 * MS, 7_200_000, MS);
        }
        r.record(14_400_020 * MS, 10, 0, MS);
        let s = r.snapshot();
        assert_eq!((s.expiries.count, s.expiries.sum_ns), (14_400_003, u64::MAX));
        assert_eq!((s.expiries.fault(), s.expiries.fault_of_sum()), (None, None));
        assert_eq!(s.expiries.mean_ns(), None);
        assert_eq!(s.woken.sum_ns, 14_400_000 * MS + 10);
    }

    #[test]
    fn no_samples_are_no_numbers() {
        let s = Recorder::new(3).snapshot();
        assert_eq!(s, nothing());
    }

    #[test]
    fn a_reset_recorder_is_as_new() {
        let r = Recorder::new(2);
        r.record(6 * MS, 100 * MS + 300_000, 100, MS);
        r.count_migration();
        r.count_not_asleep();
        r.record_deviation(6 * MS, -5);
        r.record_deviation(6 * MS, 5);
        r.reset();
        assert_eq!(r.snapshot(), nothing());
        r.record(MS, 7, 0, MS);
        assert_eq!(r.snapshot().woken.max_ns, Some(7));
    }

    #[test]
    fn an_early_wakeup_is_counted_as_such() {
        let r = Recorder::new(0);
        r.record(10, 0, 0, MS);
        r.count_early();
        let s = r.snapshot();
        assert_eq!((s.early, s.woken.max_ns, s.woken.max_at_ns), (1, Some(0), Some(10)));
        assert!(s.worst.is_empty());
    }

    #[test]
    fn readers_never_see_half_a_sample() {
        let r = Recorder::new(4);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for i in 1..200_000_u64 {
                    r.record(i * MS, (i % 3_000) * 700 + 2, i % 3, 1);
                    r.record_deviation(i * MS, (i % 3_000) as i64 * 700 - 1_000_000);
                }
            });
            let mut seen = 0;
            while !writer.is_finished() {
                let s = r.snapshot();
                assert_eq!(s.woken.fault(), None);
                assert_eq!(s.expiries.fault(), None);
                assert_eq!(s.expiries.count, s.woken.count + s.missed);
                assert!(s.woken.count >= seen, "time went back");
                assert_eq!(s.deviation.fault(), None);
                seen = s.woken.count;
            }
        });
        assert_eq!(r.snapshot().woken.count, 199_999);
    }

    #[test]
    fn an_interval_that_is_too_short_is_as_exact_as_one_that_is_too_long() {
        let r = Recorder::new(0);
        for (i, deviation) in (1..).zip([300_700, -300_701, 0, i64::MAX, i64::MIN + 1]) {
            r.record_deviation(i * MS, deviation);
        }
        let s = r.snapshot().deviation;
        assert_eq!((s.longer.count, s.shorter.count, s.fault()), (3, 2, None));
        assert_eq!((s.longer.min_ns, s.longer.max_ns), (Some(0), Some(i64::MAX.unsigned_abs())));
        assert_eq!((s.shorter.min_ns, s.shorter.max_at_ns), (Some(300_701), Some(5 * MS)));
    }

    proptest! {
        #[test]
        fn stalls_equal_one_by_one_counting(
            late_ns in 0_u64..1 << 44,
            interval_ns in 1_000_u64..1 << 34,
            due_ns in 1_u64..1 << 50,
        ) {
            let missed = (late_ns / interval_ns).min(100_000);
            let r = Recorder::new(1);
            r.record(due_ns, late_ns, missed, interval_ns);
            let s = r.snapshot();
            let one_by_one = (0..=missed).map(|i| late_ns - i * interval_ns);
            prop_assert_eq!(s.expiries.histogram.clone(), Histogram::of(one_by_one.clone()));
            prop_assert_eq!(s.expiries.min_ns, one_by_one.clone().min());
            prop_assert_eq!(s.expiries.sum_ns, one_by_one.sum::<u64>());
            prop_assert_eq!(s.expiries.fault(), None);
        }

        #[test]
        fn the_worst_are_the_worst(lates in prop::collection::vec(1_u64..1_000, 0..100), keep in 0_usize..12) {
            let r = Recorder::new(keep);
            for (i, &late) in lates.iter().enumerate() {
                r.record(i as u64 + 1, late, 0, MS);
            }
            let kept: Vec<u64> = r.snapshot().worst.iter().map(|w| w.late_ns).collect();
            let mut want = lates;
            want.sort_unstable_by(|a, b| b.cmp(a));
            want.truncate(keep);
            prop_assert_eq!(kept, want);
        }
    }
}
