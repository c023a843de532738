//! What was counted in the kernel.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::ComponentTable;
use wakescope_core::histogram::Histogram;

use crate::shared::{COMPONENTS, Figures};

/// All wakeups that were followed from stimulus to response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Their components. Times of maxima are `CLOCK_MONOTONIC`.
    pub(crate) components: ComponentTable,
    /// Their lateness.
    pub(crate) wakeup_latency: Distribution,
}

impl Counted {
    /// Adds up what was counted per CPU: for each, its components and their sum.
    pub(crate) fn of(cpus: &[[Box<Figures>; COMPONENTS]]) -> Self {
        let sum = |index: usize| {
            cpus.iter()
                .map(|cpu| distribution(&cpu[index]))
                .fold(Distribution::default(), |sum, part| sum.merged(&part))
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
}

fn distribution(figures: &Figures) -> Distribution {
    if figures.count == 0 {
        return Distribution::default();
    }
    let counts = figures.buckets.iter().map(|&count| u64::from(count)).enumerate();
    let histogram = Histogram::from_scale(counts);
    // Read while programs count: what is in a bucket already may be in no other figure yet.
    let count = histogram.count();
    Distribution {
        count,
        min_ns: Some(figures.min),
        max_ns: Some(figures.max),
        max_at_ns: Some(figures.max_due),
        sum_ns: figures.sum,
        histogram,
    }
}
