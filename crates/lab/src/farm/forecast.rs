//! How long it will still take.

use std::collections::BTreeMap;

use wakescope_core::units::SpanNs;

/// What cells of each load took so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Forecast {
    loads: BTreeMap<String, Taken>,
    all: Taken,
}

#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    ns: u64,
    cells: u64,
}

impl Taken {
    fn add(&mut self, span: SpanNs) {
        self.ns = self.ns.saturating_add(span.0);
        self.cells += 1;
    }

    fn mean(self) -> Option<u64> {
        self.ns.checked_div(self.cells)
    }
}

impl Forecast {
    /// A cell of `load` took `span`.
    pub(super) fn learn(&mut self, load: &str, span: SpanNs) {
        self.loads.entry(load.into()).or_default().add(span);
        self.all.add(span);
    }

    /// The time until the last cell ends: `cells` are those not yet done, each with its load and how
    /// long it has been running. `None` as long as nothing is known of any cell.
    pub(super) fn left<'a>(
        &self,
        cells: impl Iterator<Item = (&'a str, SpanNs)>,
        workers: usize,
    ) -> Option<SpanNs> {
        let (mut total, mut count, mut longest) = (0_u64, 0_u64, 0_u64);
        for (load, elapsed) in cells {
            let left = self.expected(load)?.saturating_sub(elapsed.0);
            total = total.saturating_add(left);
            longest = longest.max(left);
            count += 1;
        }
        let workers = count.min(workers as u64).max(1);
        // A cell is not divided between workers.
        Some(SpanNs((total / workers).max(longest)))
    }

    /// As others of its load; as long as there is none, as any other.
    fn expected(&self, load: &str) -> Option<u64> {
        self.loads.get(load).copied().unwrap_or_default().mean().or_else(|| self.all.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(known: &[(&str, u64)], cells: &[(&str, u64)], workers: usize, want: Option<u64>) {
        let mut forecast = Forecast::default();
        known.iter().for_each(|&(load, span)| forecast.learn(load, SpanNs(span)));
        let cells = cells.iter().map(|&(load, elapsed)| (load, SpanNs(elapsed)));
        assert_eq!(forecast.left(cells, workers), want.map(SpanNs));
    }

    #[test]
    fn each_load_has_its_own_time() {
        let known = [("find", 10), ("find", 20), ("launch", 100)];
        check(&[], &[("find", 0)], 1, None);
        check(&[], &[], 1, Some(0));
        check(&known, &[], 2, Some(0));
        check(&known, &[("find", 0), ("find", 0), ("launch", 0)], 1, Some(130));
        check(&known, &[("find", 5), ("launch", 0)], 1, Some(110));
        check(&known, &[("find", 900)], 1, Some(0));
        // Not seen yet: the mean of all.
        check(&known, &[("cpu", 0)], 1, Some(130 / 3));
        check(&known, &[("launch", 0); 4], 2, Some(200));
        check(&known, &[("launch", 0)], 8, Some(100));
        check(&known, &[("launch", 0), ("find", 0)], 2, Some(100));
        check(&[("a", u64::MAX)], &[("a", 0), ("a", 0)], 1, Some(u64::MAX));
    }
}
