//! What was counted in the kernel.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::ComponentTable;
use wakescope_core::histogram::Histogram;
use wakescope_sys::shared::Words;

use crate::shared::{BUCKETS, COMPONENTS, FIGURES_WORDS};

/// All wakeups that were followed from stimulus to response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Their components. Times of maxima are `CLOCK_MONOTONIC`.
    pub(crate) components: ComponentTable,
    /// Their lateness.
    pub(crate) wakeup_latency: Distribution,
}

impl Counted {
    /// Adds up what was counted in each of `places`, which have their components one behind the
    /// other.
    pub(crate) fn of(figures: &Words, places: usize) -> Self {
        let sum = |component: usize| {
            let part =
                |place| distribution(figures, (place * COMPONENTS + component) * FIGURES_WORDS);
            (0..places).map(part).fold(Distribution::default(), |sum, part| sum.merged(&part))
        };
        let sched_duration = sum(3);
        let components = ComponentTable {
            irq_latency: sum(0),
            handler_duration: sum(1),
            sched_latency: sum(2),
            sched_duration: (sched_duration.count > 0).then_some(sched_duration),
        };
        Self { components, wakeup_latency: sum(4) }
    }

    /// How late wakeups were: the part of it all that is looked at while they go on.
    pub(crate) fn lateness(figures: &Words, places: usize) -> Distribution {
        let part = |place| distribution(figures, (place * COMPONENTS + 4) * FIGURES_WORDS);
        (0..places).map(part).fold(Distribution::default(), |sum, part| sum.merged(&part))
    }
}

/// What `struct figures` holds that begins at the word `at`.
fn distribution(figures: &Words, at: usize) -> Distribution {
    let [count, min, max, max_due, sum] = [0, 1, 2, 3, 4].map(|word| figures.load(at + word));
    if count == 0 {
        return Distribution::default();
    }
    let buckets = (0..BUCKETS / 2).flat_map(|pair| {
        let both = figures.load(at + 5 + pair).to_ne_bytes();
        let half =
            |from: usize| u32::from_ne_bytes(both[from..from + 4].try_into().expect("4 bytes"));
        [half(0), half(4)]
    });
    let counts: Vec<(usize, u64)> =
        buckets.map(u64::from).enumerate().filter(|c| c.1 > 0).collect();
    let histogram = Histogram::from_scale(counts);
    // Read while programs count: what is in a bucket already may be in no other figure yet.
    let count = histogram.count();
    Distribution {
        count,
        min_ns: Some(min),
        max_ns: Some(max),
        max_at_ns: Some(max_due),
        sum_ns: sum,
        histogram,
    }
}
