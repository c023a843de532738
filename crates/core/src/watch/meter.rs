//! From counters that only grow to what came between two readings.

use crate::histogram::{Bucket, Histogram};
use crate::watch::Waits;
use crate::watch::scale::edges_of;

/// What counters show at one moment. Programs count on meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The sum of all waits so far, ns.
    pub sum_ns: u64,
    /// The longest wait since the last reading; 0 if there was none.
    pub max_ns: u64,
    /// The shortest; [`u64::MAX`] if there was none.
    pub min_ns: u64,
    /// Buckets that are not empty, with their counts so far, ascending.
    pub buckets: Vec<(usize, u64)>,
}

/// What was read of counters so far.
#[derive(Clone, Debug)]
pub struct Meter {
    sum_ns: u64,
    max_ns: u64,
    min_ns: u64,
    buckets: Vec<(usize, u64)>,
}

impl Default for Meter {
    fn default() -> Self {
        Self { sum_ns: 0, max_ns: 0, min_ns: u64::MAX, buckets: Vec::new() }
    }
}

impl Meter {
    /// The sum when the counters were read last, ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// What the first bucket, that of the shortest waits, held then.
    pub fn shortest(&self) -> u64 {
        self.buckets.first().filter(|bucket| bucket.0 == 0).map_or(0, |bucket| bucket.1)
    }

    /// The waits since the last reading.
    ///
    /// Maximum and minimum must be read before the buckets: the program counts a wait in its bucket first.
    /// Where it was between the two, the bucket is in this window and the maximum in the next. Then this one
    /// has an edge of the bucket in its place, and says so. The sum must be read after the buckets, as the
    /// program adds to it first: one that grows without any bucket is part of the next window.
    pub fn read(&mut self, now: Reading) -> Waits {
        // Both ascend.
        let mut before = self.buckets.iter().peekable();
        let grown = now.buckets.iter().filter_map(|&(index, count)| {
            while before.next_if(|known| known.0 < index).is_some() {}
            let known = before.next_if(|known| known.0 == index).map_or(0, |known| known.1);
            let count = count.checked_sub(known).filter(|&count| count > 0)?;
            let (lower, upper) = edges_of(index);
            Some(Bucket { lower, upper, count })
        });
        let grown: Vec<Bucket> = grown.collect();
        self.max_ns = self.max_ns.max(now.max_ns);
        self.min_ns = self.min_ns.min(now.min_ns);
        // Without buckets, the maximum belongs to the window before, and the sum to the next, which has the bucket.
        let Some(waits) =
            waits_in(grown, now.sum_ns.saturating_sub(self.sum_ns), (now.min_ns, now.max_ns))
        else {
            return Waits::default();
        };
        self.sum_ns = now.sum_ns;
        self.buckets = now.buckets;
        waits
    }

    /// All waits so far.
    pub fn total(&self) -> Waits {
        let edged = self.buckets.iter().map(|&(index, count)| {
            let (lower, upper) = edges_of(index);
            Bucket { lower, upper, count }
        });
        let edged: Vec<Bucket> = edged.filter(|bucket| bucket.count > 0).collect();
        waits_in(edged, self.sum_ns, (self.min_ns, self.max_ns)).unwrap_or_default()
    }
}

/// The waits of these buckets, which ascend, with the shortest and the longest that were read; `None` without any.
fn waits_in(buckets: Vec<Bucket>, sum_ns: u64, (min, max): (u64, u64)) -> Option<Waits> {
    let (&first, &last) = (buckets.first()?, buckets.last()?);
    let (max_ns, max_is_exact) = max_in(last, max);
    // That none was read lies in the bucket without an end, too.
    let min_is_exact = min != u64::MAX && lies_in(first, min);
    let min_ns = if min_is_exact { min } else { first.lower };
    let histogram = Histogram::from_unordered(buckets);
    Some(Waits {
        count: histogram.count(),
        sum_ns,
        max_ns: Some(max_ns),
        max_is_exact,
        min_ns: Some(min_ns),
        min_is_exact,
        histogram,
    })
}

fn lies_in(bucket: Bucket, ns: u64) -> bool {
    ns >= bucket.lower && (ns < bucket.upper || bucket.upper == u64::MAX)
}

/// The maximum of waits of which the longest lie in `last`, where `read` was read: exact if it lies there.
fn max_in(last: Bucket, read: u64) -> (u64, bool) {
    match read {
        _ if lies_in(last, read) => (read, true),
        _ if last.upper == u64::MAX => (last.lower, false),
        _ => (last.upper - 1, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Known;
    use crate::watch::scale::BUCKETS;
    use proptest::prelude::*;

    fn bucket_of(ns: u64) -> usize {
        (0..BUCKETS).rfind(|&index| edges_of(index).0 <= ns).unwrap()
    }

    /// What counters show after these waits, of which `new` came since the last reading.
    fn reading(waits: &[u64], new: &[u64]) -> Reading {
        let mut counts = std::collections::BTreeMap::new();
        for &ns in waits {
            *counts.entry(bucket_of(ns)).or_insert(0) += 1;
        }
        Reading {
            sum_ns: waits.iter().sum(),
            max_ns: new.iter().max().copied().unwrap_or(0),
            min_ns: new.iter().min().copied().unwrap_or(u64::MAX),
            buckets: counts.into_iter().collect(),
        }
    }

    #[test]
    fn a_maximum_that_comes_late_is_no_figure_of_its_window() {
        let mut meter = Meter::default();
        // The longest wait is in its bucket, and not yet the maximum.
        let first = meter.read(Reading { max_ns: 100, ..reading(&[100, 5_000], &[]) });
        assert_eq!((first.count, first.max_ns, first.max_is_exact), (2, Some(5_119), false));
        assert_eq!(first.fault(), None);
        // It comes with the next reading, whose own longest wait it hides.
        let second = meter.read(Reading { max_ns: 5_000, ..reading(&[100, 5_000, 300], &[]) });
        assert_eq!((second.count, second.max_ns, second.max_is_exact), (1, Some(303), false));
        let total = meter.total();
        assert_eq!((total.count, total.max_ns, total.max_is_exact), (3, Some(5_000), true));
        // Nobody has read a minimum.
        assert_eq!((first.min_ns, first.min_is_exact), (Some(0), false));
        assert_eq!((second.min_ns, second.min_is_exact), (Some(288), false));
        assert_eq!(meter.read(reading(&[100, 5_000, 300], &[])), Waits::default());
    }

    #[test]
    fn beyond_the_scale_the_maximum_is_what_was_read() {
        let mut meter = Meter::default();
        let long = 60_000_000_000;
        let waits = meter.read(reading(&[long], &[long]));
        assert_eq!((waits.longest(), waits.fault()), (Some(Known::Exactly(long)), None));
        // The next one is in its bucket, and not yet the maximum.
        let waits = meter.read(reading(&[long, 2 * long], &[]));
        assert_eq!((waits.longest(), waits.fault()), (Some(Known::AtLeast(1 << 34)), None));
    }

    proptest! {
        #[test]
        fn windows_add_up_to_the_total(
            windows in prop::collection::vec(prop::collection::vec(0_u64..1 << 36, 0..20), 0..8),
        ) {
            let mut meter = Meter::default();
            let mut all = Vec::new();
            let mut sum = Waits::default();
            for new in &windows {
                all.extend(new);
                let waits = meter.read(reading(&all, new));
                prop_assert_eq!(waits.fault(), None);
                prop_assert_eq!(waits.count, new.len() as u64);
                prop_assert_eq!(waits.sum_ns, new.iter().sum::<u64>());
                prop_assert_eq!(waits.max_ns, new.iter().max().copied());
                prop_assert_eq!(waits.min_ns, new.iter().min().copied());
                prop_assert!((waits.max_is_exact && waits.min_is_exact) || new.is_empty());
                sum = sum.merged(&waits);
            }
            let total = meter.total();
            prop_assert_eq!(total.fault(), None);
            prop_assert_eq!(&sum, &total);
            prop_assert_eq!((total.max_is_exact, total.min_is_exact), (!all.is_empty(), !all.is_empty()));
        }
    }
}
