//! Raw samples, counted as they come, in memory that does not grow with them.

use wakescope_core::budget::{Budget, Entry, Exceeded};
use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::{bucket_of, edges_of};

use super::counts::Counts;

/// Neighbouring buckets whose counters are allocated together: few threads have samples in all of
/// the 448 pages, and many threads must not take memory for all of them.
const PAGE: usize = 64;

/// Samples of one thread, in whole units.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pages: Vec<Option<Box<[u64; PAGE]>>>,
    pub(super) count: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    sum: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { pages: Vec::new(), count: 0, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Tally {
    /// Counts a sample. Whether it is the largest so far.
    #[inline]
    pub(super) fn add(&mut self, value: u64, budget: &Budget) -> Result<bool, Exceeded> {
        let bucket = bucket_of(value);
        let page = match self.pages.get_mut(bucket / PAGE) {
            Some(Some(page)) => page,
            _ => self.add_page(bucket / PAGE, budget)?,
        };
        page[bucket % PAGE] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = self.min.min(value);
        let larger = value > self.max || self.count == 1;
        self.max = self.max.max(value);
        Ok(larger)
    }

    #[cold]
    fn add_page(&mut self, at: usize, budget: &Budget) -> Result<&mut [u64; PAGE], Exceeded> {
        budget.keep(1, Entry::COUNTERS)?;
        if at >= self.pages.len() {
            self.pages.resize(at + 1, None);
        }
        Ok(self.pages[at].insert(Box::new([0; PAGE])))
    }

    fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let pages = self.pages.iter().enumerate();
        let held = pages.filter_map(|(at, page)| Some((at * PAGE, page.as_ref()?)));
        held.flat_map(|(first, page)| {
            let counts = page.iter().enumerate().filter(|(_, count)| **count > 0);
            counts.map(move |(i, &count)| (first + i, count))
        })
    }

    /// The distribution in ns. A sample of a unit may be anything up to the next.
    pub(super) fn finish(&self, unit_ns: u64) -> Result<Distribution, String> {
        let ns = |value: u64| super::counts::in_ns(value, unit_ns);
        let mut counts = Counts::default();
        for (index, count) in self.counts() {
            let (lower, upper) = edges_of(index);
            counts.push(ns(lower)?, ns(upper)?, count)?;
        }
        if self.count == 0 {
            return Ok(Distribution::default());
        }
        counts.finish(ns(self.min)?, ns(self.max)?, self.sum.saturating_mul(unit_ns))
    }
}
