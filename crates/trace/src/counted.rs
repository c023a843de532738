//! What was counted in the kernel.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::ComponentTable;
use wakescope_core::histogram::Histogram;
use wakescope_sys::shared::Words;

use crate::shared::{
    BUCKETS, COMPONENTS, FIGURES_HEAD, FIGURES_WORDS, NET_OF_STEAL, WAKEUP_LATENCY,
};

/// All wakeups that were followed from stimulus to response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Their components. Times of maxima are `CLOCK_MONOTONIC`.
    pub(crate) components: ComponentTable,
    /// Their lateness.
    pub(crate) wakeup_latency: Distribution,
    /// The same without stolen time; empty without a clock of it.
    pub(crate) net_of_steal: Distribution,
}

impl Counted {
    /// Adds up what was counted in each of `places`, which have their components one behind the
    /// other.
    pub(crate) fn of(figures: &Words, places: usize) -> Self {
        let sum = |component| of_component(figures, places, component);
        let sched_duration = sum(3);
        let components = ComponentTable {
            irq_latency: sum(0),
            handler_duration: sum(1),
            sched_latency: sum(2),
            sched_duration: (sched_duration.count > 0).then_some(sched_duration),
        };
        Self { components, wakeup_latency: sum(WAKEUP_LATENCY), net_of_steal: sum(NET_OF_STEAL) }
    }
}

/// One component in all of `places`, which can be read while programs count; empty if that is the one without stolen
/// time, and there is no clock of it.
pub(crate) fn of_component(figures: &Words, places: usize, component: usize) -> Distribution {
    let part = |place| distribution(figures, (place * COMPONENTS + component) * FIGURES_WORDS);
    (0..places).map(part).fold(Distribution::default(), |sum, part| sum.merged(&part))
}

/// How many wakeups `places` counted, by the counters alone.
pub(crate) fn wakeups(figures: &Words, places: usize) -> u64 {
    let count = |place| figures.load((place * COMPONENTS + WAKEUP_LATENCY) * FIGURES_WORDS);
    (0..places).map(count).sum()
}

/// What a `struct figures` holds.
pub(crate) struct Figures {
    /// Samples by their own counter.
    pub(crate) count: u64,
    min: u64,
    max: u64,
    max_due: u64,
    /// The sum of all samples, nanoseconds.
    pub(crate) sum_ns: u64,
    /// Numbers of the buckets that hold samples, each with how many.
    pub(crate) buckets: Vec<(usize, u64)>,
}

/// Reads those that begin at the word `at`.
pub(crate) fn figures(words: &Words, at: usize) -> Figures {
    let [count, min, max, max_due, sum_ns] = [0, 1, 2, 3, 4].map(|word| words.load(at + word));
    let buckets = (0..BUCKETS).map(|bucket| (bucket, words.load(at + FIGURES_HEAD + bucket)));
    let buckets = buckets.filter(|bucket| bucket.1 > 0).collect();
    Figures { count, min, max, max_due, sum_ns, buckets }
}

/// The same as a distribution, which can be read while programs count: of its samples, those that are
/// in buckets.
pub(crate) fn distribution(words: &Words, at: usize) -> Distribution {
    if words.load(at) == 0 {
        return Distribution::default();
    }
    let Figures { min, max, max_due, sum_ns, buckets, .. } = figures(words, at);
    let last_bucket = buckets.last().map(|bucket| bucket.0);
    let histogram = Histogram::from_scale(buckets);
    // What is in a bucket already may be in no other figure yet, and what came since may be in these,
    // and in no bucket. When programs count no more, the tally compares all of them.
    let count = histogram.count();
    let (Some(first), Some(last)) = (histogram.buckets().first(), histogram.buckets().last())
    else {
        return Distribution::default();
    };
    let min = min.clamp(first.lower, first.upper - 1);
    // What is longer than the scale is in its last bucket.
    let is_top = last_bucket == Some(BUCKETS - 1);
    let max = if is_top { max.max(last.lower) } else { max.clamp(last.lower, last.upper - 1) };
    Distribution {
        count,
        min_ns: Some(min),
        max_ns: Some(max),
        max_at_ns: Some(max_due),
        sum_ns,
        histogram,
        stated: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    /// Words of a file, of which these are not 0.
    fn words(places: usize, set: &[(usize, u64)]) -> Words {
        let folder = wakescope_testing::Folder::new("counted");
        let path = folder.join("words");
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        let count = places * COMPONENTS * FIGURES_WORDS;
        file.set_len((count * size_of::<u64>()) as u64).unwrap();
        for &(at, value) in set {
            file.write_all_at(&value.to_ne_bytes(), (at * size_of::<u64>()) as u64).unwrap();
        }
        Words::map(file.as_fd(), count).unwrap()
    }

    /// What a place counted of a component: one sample of 7 ns and two of 1,024.
    fn three(place: usize, component: usize) -> Vec<(usize, u64)> {
        let at = (place * COMPONENTS + component) * FIGURES_WORDS;
        let figures = [3, 7, 1_024, 99, 2_055].into_iter().enumerate();
        let figures = figures.map(|(word, value)| (at + word, value));
        figures.chain([(at + 5 + 7, 1), (at + 5 + 1_024, 2)]).collect()
    }

    #[test]
    fn what_each_place_counted_is_added_up() {
        let set: Vec<_> = [three(0, 0), three(1, 0), three(1, 4), three(0, 5)].concat();
        let Counted { components, wakeup_latency, net_of_steal } = Counted::of(&words(2, &set), 2);
        let both = &components.irq_latency;
        assert_eq!((both.count, both.sum_ns), (6, 4_110));
        assert_eq!((both.min_ns, both.max_ns, both.max_at_ns), (Some(7), Some(1_024), Some(99)));
        let buckets: Vec<_> = both.histogram.buckets().iter().map(|b| (b.lower, b.count)).collect();
        assert_eq!(buckets, [(7, 2), (1_024, 4)]);
        assert_eq!((wakeup_latency.count, wakeup_latency.sum_ns), (3, 2_055));
        assert_eq!(super::wakeups(&words(2, &set), 2), 3);
        assert_eq!(components.handler_duration, Distribution::default());
        // A kernel that does not show its scheduler's entry has no such component, rather than 0.
        assert_eq!(components.sched_duration, None);
        assert_eq!(of_component(&words(2, &set), 2, WAKEUP_LATENCY), wakeup_latency);
        assert_eq!((net_of_steal.count, net_of_steal.sum_ns), (3, 2_055));
        assert_eq!(of_component(&words(2, &set), 2, NET_OF_STEAL), net_of_steal);
    }

    #[test]
    fn what_no_place_is_asked_for_is_not_counted() {
        let counted = Counted::of(&words(2, &three(1, 4)), 1);
        assert_eq!(counted.wakeup_latency, Distribution::default());
    }

    #[test]
    fn a_count_never_contradicts_its_histogram() {
        // The count is behind, as where a program is just counting.
        let mut set = three(0, 4);
        set[0].1 = 1;
        let all = of_component(&words(1, &set), 1, WAKEUP_LATENCY);
        assert_eq!((all.count, all.histogram.count()), (3, 3));
    }

    #[test]
    fn extremes_are_those_of_what_is_in_the_buckets() {
        // A maximum, and a minimum, whose sample came when its bucket had been read already.
        let mut set = three(0, 4);
        (set[1].1, set[2].1) = (3, 5_000);
        let all = of_component(&words(1, &set), 1, WAKEUP_LATENCY);
        assert_eq!((all.min_ns, all.max_ns, all.fault()), (Some(7), Some(1_025), None));
    }

    #[test]
    fn the_last_bucket_is_one() {
        let at = 4 * FIGURES_WORDS;
        let last = at + FIGURES_WORDS - 1;
        let set = [(at, 1), (at + 1, 1 << 40), (at + 2, 1 << 40), (last, 1)];
        let all = of_component(&words(1, &set), 1, WAKEUP_LATENCY);
        assert_eq!(all.count, 1);
        assert!(all.histogram.buckets()[0].lower > 1 << 39, "{:?}", all.histogram);
    }
}
