//! What the measuring loop writes and everybody else reads.
//!
//! One thread records, any thread may look. All memory is allocated at the start and never grows:
//! 10^8 samples take what 10^5 take. Recording does not allocate, lock, fail or make a system
//! call; it is plain loads and stores (no locked instruction) under a version counter that lets
//! readers notice that they looked in the middle of a change.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use Ordering::{Acquire, Relaxed, Release};

use crate::distribution::Distribution;
use crate::histogram::{Histogram, SCALE_BUCKETS, bucket_of, edges_of};

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
    /// The latest wakeups, worst first.
    pub worst: Vec<Late>,
}

/// The statistics of one measuring thread.
pub struct Recorder {
    /// Odd while a sample is being written.
    version: AtomicU64,
    woken: Tally,
    /// Expiries that a late wakeup swallowed. Kept apart so that a wakeup in time costs one count.
    swallowed: Tally,
    migrated: AtomicU64,
    early: AtomicU64,
    worst: Worst,
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
            migrated: AtomicU64::new(0),
            early: AtomicU64::new(0),
            worst: Worst::new(worst),
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
        if missed > 0 {
            self.swallowed.count_steps(late_ns, due_ns, missed, interval_ns);
        }
        if late_ns > self.worst.threshold.load(Relaxed) {
            self.worst.insert(Late { late_ns, due_ns, missed });
        }
        self.now.store(late_ns, Relaxed);
        if late_ns > self.recent_max.load(Relaxed) {
            self.recent_max.store(late_ns, Relaxed);
        }
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
        self.worst.reset();
        for cell in [&self.migrated, &self.early, &self.now, &self.recent_max] {
            cell.store(0, Relaxed);
        }
        self.version.store(version + 2, Release);
    }

    /// Counts a wakeup before its time, beside its record as 0 ns late. Only the recording thread may.
    #[cold]
    pub fn count_early(&self) {
        add(&self.early, 1);
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

    /// A consistent copy, or `None` if the recording thread wrote each time we looked; then ask
    /// again later.
    pub fn snapshot(&self) -> Option<Snapshot> {
        const LOOKS: usize = 64;
        (0..LOOKS).find_map(|_| {
            let before = self.version.load(Acquire);
            let seen = (before % 2 == 0).then(|| self.copy())?;
            fence(Acquire);
            (self.version.load(Relaxed) == before).then(|| seen.into_snapshot())
        })
    }

    fn copy(&self) -> Copied {
        Copied {
            woken: self.woken.copy(),
            swallowed: self.swallowed.copy(),
            migrated: self.migrated.load(Relaxed),
            early: self.early.load(Relaxed),
            worst: self.worst.copy(),
        }
    }
}

/// What is read under the version counter: copies only, the arithmetic comes after.
struct Copied {
    woken: TallyCopy,
    swallowed: TallyCopy,
    migrated: u64,
    early: u64,
    worst: Vec<Late>,
}

impl Copied {
    fn into_snapshot(self) -> Snapshot {
        let missed = self.swallowed.total();
        let woken = self.woken.distribution();
        let expiries = match missed {
            0 => woken.clone(),
            _ => self.woken.with(&self.swallowed).distribution(),
        };
        let mut worst = self.worst;
        worst.sort_by_key(|w| (std::cmp::Reverse(w.late_ns), w.due_ns));
        Snapshot { missed, expiries, woken, migrated: self.migrated, early: self.early, worst }
    }
}

/// Adds without a locked instruction: there is one writer. At one count per nanosecond it would
/// take 584 years to wrap around.
#[inline]
fn add(cell: &AtomicU64, amount: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(amount), Relaxed);
}

/// Counts on the scale, with exact extremes.
struct Tally {
    counts: Box<[AtomicU64; SCALE_BUCKETS]>,
    min: AtomicU64,
    max: AtomicU64,
    max_at: AtomicU64,
    sum: AtomicU64,
}

impl Tally {
    fn new() -> Self {
        Self {
            counts: zeroes(),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            max_at: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    fn reset(&self) {
        for cell in self.counts.iter() {
            cell.store(0, Relaxed);
        }
        self.min.store(u64::MAX, Relaxed);
        for cell in [&self.max, &self.max_at, &self.sum] {
            cell.store(0, Relaxed);
        }
    }

    #[inline]
    fn count(&self, value: u64, due_ns: u64) {
        add(&self.counts[bucket_of(value)], 1);
        add(&self.sum, value);
        self.extend(value, value, due_ns);
    }

    /// Counts the expiries that a wakeup `late_ns` late for `due_ns` swallowed: due `step_ns`,
    /// 2 × `step_ns`, … later, and each that much less late. Where a bucket is wider than a step
    /// it takes all of its expiries at once, so the cost grows with the logarithm of the stall.
    #[cold]
    fn count_steps(&self, late_ns: u64, due_ns: u64, steps: u64, step_ns: u64) {
        let value = |step: u64| late_ns.saturating_sub(step * step_ns);
        let mut step = 1;
        while step <= steps {
            let bucket = bucket_of(value(step));
            let (lower, _) = edges_of(bucket);
            // The last step whose value is still at or above the bucket's lower edge.
            let last = ((late_ns - lower) / step_ns).clamp(step, steps);
            add(&self.counts[bucket], last - step + 1);
            step = last + 1;
        }
        let sum = u128::from(late_ns) * u128::from(steps)
            - u128::from(step_ns) * (u128::from(steps) * (u128::from(steps) + 1) / 2);
        add(&self.sum, u64::try_from(sum).unwrap_or(u64::MAX));
        self.extend(value(steps), value(1), due_ns.saturating_add(step_ns));
    }

    #[inline]
    fn extend(&self, min: u64, max: u64, max_at: u64) {
        if min < self.min.load(Relaxed) {
            // The first sample comes by here, and leaves its time even if it is 0 ns late.
            if self.min.load(Relaxed) == u64::MAX {
                self.max_at.store(max_at, Relaxed);
            }
            self.min.store(min, Relaxed);
        }
        if max > self.max.load(Relaxed) {
            self.max.store(max, Relaxed);
            self.max_at.store(max_at, Relaxed);
        }
    }

    fn copy(&self) -> TallyCopy {
        // Without samples, the minimum lies above the maximum, and no bucket between them.
        let first = bucket_of(self.min.load(Relaxed));
        let used = self.counts.get(first..=bucket_of(self.max.load(Relaxed))).unwrap_or_default();
        TallyCopy {
            first,
            counts: used.iter().map(|c| c.load(Relaxed)).collect(),
            min: self.min.load(Relaxed),
            max: self.max.load(Relaxed),
            max_at: self.max_at.load(Relaxed),
            sum: self.sum.load(Relaxed),
        }
    }
}

/// On the heap from the start: on a stack, the array would be too large for a small one.
fn zeroes() -> Box<[AtomicU64; SCALE_BUCKETS]> {
    let cells: Box<[AtomicU64]> = (0..SCALE_BUCKETS).map(|_| AtomicU64::new(0)).collect();
    cells.try_into().unwrap_or_else(|_| unreachable!("the length is the array's"))
}

struct TallyCopy {
    first: usize,
    counts: Vec<u64>,
    min: u64,
    max: u64,
    max_at: u64,
    sum: u64,
}

impl TallyCopy {
    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// What both counted. Of two equal maxima the earlier one is kept.
    fn with(&self, other: &Self) -> Self {
        let end = |t: &Self| t.first + t.counts.len();
        let first = self.first.min(other.first);
        let mut counts = vec![0; end(self).max(end(other)) - first];
        for part in [self, other] {
            for (sum, count) in counts[part.first - first..].iter_mut().zip(&part.counts) {
                *sum += count;
            }
        }
        let latest = |t: &Self| (t.max, std::cmp::Reverse(t.max_at));
        let larger = if latest(other) > latest(self) { other } else { self };
        Self {
            first,
            counts,
            min: self.min.min(other.min),
            max: larger.max,
            max_at: larger.max_at,
            sum: self.sum.saturating_add(other.sum),
        }
    }

    fn distribution(&self) -> Distribution {
        let first = self.first;
        let counts = self.counts.iter().enumerate().map(|(i, &n)| (first + i, n));
        let histogram = Histogram::from_scale(counts);
        let count = histogram.count();
        let seen = |value| (count > 0).then_some(value);
        Distribution {
            count,
            min_ns: seen(self.min),
            max_ns: seen(self.max),
            max_at_ns: seen(self.max_at),
            sum_ns: self.sum,
            histogram,
        }
    }
}

/// The latest wakeups: a list of fixed length, unordered, with the least late one's lateness as
/// the price of entry.
struct Worst {
    threshold: AtomicU64,
    used: AtomicUsize,
    slots: Box<[[AtomicU64; 3]]>,
}

impl Worst {
    fn new(length: usize) -> Self {
        let slots = (0..length).map(|_| Default::default()).collect();
        let list = Self { threshold: AtomicU64::new(0), used: AtomicUsize::new(0), slots };
        list.reset();
        list
    }

    fn reset(&self) {
        self.used.store(0, Relaxed);
        // With no slot, no lateness is enough to enter.
        self.threshold.store(if self.slots.is_empty() { u64::MAX } else { 0 }, Relaxed);
    }

    #[cold]
    fn insert(&self, late: Late) {
        let used = self.used.load(Relaxed);
        let slot = if used < self.slots.len() {
            self.used.store(used + 1, Relaxed);
            used
        } else {
            self.least()
        };
        for (cell, value) in self.slots[slot].iter().zip([late.late_ns, late.due_ns, late.missed]) {
            cell.store(value, Relaxed);
        }
        if self.used.load(Relaxed) == self.slots.len() {
            self.threshold.store(self.slots[self.least()][0].load(Relaxed), Relaxed);
        }
    }

    fn least(&self) -> usize {
        (0..self.slots.len()).min_by_key(|&i| self.slots[i][0].load(Relaxed)).unwrap_or(0)
    }

    fn copy(&self) -> Vec<Late> {
        let used = self.used.load(Relaxed);
        let late = |[late_ns, due_ns, missed]: &[AtomicU64; 3]| Late {
            late_ns: late_ns.load(Relaxed),
            due_ns: due_ns.load(Relaxed),
            missed: missed.load(Relaxed),
        };
        self.slots[..used].iter().map(late).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_stall_counts_for_every_expiry_it_swallowed() {
        let r = Recorder::new(3);
        r.record(5 * MS, 10, 0, MS);
        // 100.3 ms late at 1 ms: the wakeup's own expiry and 100 more.
        r.record(6 * MS, 100 * MS + 300_000, 100, MS);
        let s = r.snapshot().unwrap();
        assert_eq!((s.woken.count, s.missed, s.expiries.count), (2, 100, 102));
        assert_eq!(s.expiries.max_ns, Some(100 * MS + 300_000));
        assert_eq!(s.expiries.max_at_ns, Some(6 * MS));
        assert_eq!(s.expiries.histogram.count_below(512 << 11), 2, "10 ns and 0.3 ms");
        let swallowed: u64 = (0..=100).map(|i| i * MS + 300_000).sum();
        assert_eq!(s.expiries.sum_ns, swallowed + 10);
        assert_eq!(s.worst[0], Late { late_ns: 100 * MS + 300_000, due_ns: 6 * MS, missed: 100 });
    }

    #[test]
    fn no_samples_are_no_numbers() {
        let s = Recorder::new(3).snapshot().unwrap();
        assert_eq!(s, Snapshot::default());
    }

    #[test]
    fn a_reset_recorder_is_as_new() {
        let r = Recorder::new(2);
        r.record(6 * MS, 100 * MS + 300_000, 100, MS);
        r.count_migration();
        r.reset();
        assert_eq!(r.snapshot().unwrap(), Snapshot::default());
        r.record(MS, 7, 0, MS);
        assert_eq!(r.snapshot().unwrap().woken.max_ns, Some(7));
    }

    #[test]
    fn an_early_wakeup_is_counted_as_such() {
        let r = Recorder::new(0);
        r.record(10, 0, 0, MS);
        r.count_early();
        let s = r.snapshot().unwrap();
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
                }
            });
            let mut seen = 0;
            while !writer.is_finished() {
                let Some(s) = r.snapshot() else { continue };
                assert_eq!(s.woken.fault(), None);
                assert_eq!(s.expiries.fault(), None);
                assert_eq!(s.expiries.count, s.woken.count + s.missed);
                assert!(s.woken.count >= seen, "time went back");
                seen = s.woken.count;
            }
        });
        assert_eq!(r.snapshot().unwrap().woken.count, 199_999);
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
            let s = r.snapshot().unwrap();
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
            let kept: Vec<u64> = r.snapshot().unwrap().worst.iter().map(|w| w.late_ns).collect();
            let mut want = lates;
            want.sort_unstable_by(|a, b| b.cmp(a));
            want.truncate(keep);
            prop_assert_eq!(kept, want);
        }
    }
}
