//! How often what has left the kernel is taken.

use wakescope_core::plan::Plan;
use wakescope_core::units::SpanNs;
use wakescope_trace::WAKEUPS_HELD;

/// How often what has left the kernel is taken: the buffer holds more late wakeups than come in
/// that time.
const PACE: SpanNs = SpanNs(50_000_000);

/// At first it is taken more often: as long as it is not known what is late, all wakeups are handed over. For that
/// long.
const AT_FIRST: SpanNs = SpanNs(1_000_000_000);

/// So many wakeups of each probe come between two looks then, if that is less than the usual time: a
/// third of what the buffer holds, so that a look may come late. With one look per 50 ms, 60 to 500
/// of the first thousand records were lost at 100 us beside other work.
const WAKEUPS_AT_FIRST: u64 = WAKEUPS_HELD / 3;

/// So many wakeups of all probes come before the first look: they tell what is late, and on a machine of many CPUs
/// each further one would be handed over for nothing.
const WAKEUPS_THAT_TELL: u64 = 64;

/// How often to look at first where it is not known how often wakeups come.
const PACE_OF_OTHERS: SpanNs = SpanNs(5_000_000);

/// How often to take what has left the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// At first.
    least: SpanNs,
    /// And later on in that time.
    most: SpanNs,
}

impl Pace {
    pub(super) fn of(plan: &Plan) -> Self {
        if plan.is_of_others() {
            return Self { least: PACE_OF_OTHERS, most: PACE_OF_OTHERS };
        }
        let probes = u64::try_from(plan.cpus.len()).unwrap_or(u64::MAX).max(1);
        let takes = |wakeups| SpanNs(plan.interval_ns.saturating_mul(wakeups));
        let most = takes(WAKEUPS_AT_FIRST).min(PACE);
        Self { least: SpanNs(takes(WAKEUPS_THAT_TELL).0 / probes).min(most), most }
    }

    /// When that much of the run is over. What is late is decided anew when there are more wakeups by a part
    /// of what there were.
    pub(super) fn after(self, elapsed: SpanNs) -> SpanNs {
        if elapsed > AT_FIRST {
            return PACE;
        }
        SpanNs(elapsed.0 / 2).clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: SpanNs = SpanNs(1_000_000_000);

    fn pace(interval: SpanNs, cpus: u32, elapsed: SpanNs) -> SpanNs {
        let plan = Plan { interval_ns: interval.0, cpus: (0..cpus).collect(), ..Plan::default() };
        Pace::of(&plan).after(elapsed)
    }

    #[test]
    fn a_look_that_comes_three_times_as_late_still_finds_all_in_the_buffer() {
        for interval in [10_000, 50_000, 100_000, 1_000_000, 3_600_000_000_000].map(SpanNs) {
            for (cpus, elapsed) in [(0, SpanNs(0)), (1, SpanNs(0)), (1, SECOND), (64, SECOND)] {
                let pace = pace(interval, cpus, elapsed);
                assert!(pace <= PACE, "{interval}");
                assert!(3 * pace.0 / interval.0 <= WAKEUPS_HELD, "{interval}");
            }
        }
        assert_eq!(pace(SpanNs(u64::MAX), 1, SpanNs(0)), PACE);
    }

    #[test]
    fn the_first_looks_of_many_probes_come_before_there_are_many_wakeups() {
        let ms = |ms: u64| SpanNs(ms * 1_000_000);
        assert_eq!(pace(ms(1), 8, SpanNs(0)), ms(8));
        assert_eq!(
            [8, 16, 24, 60, 1_000].map(|at| pace(ms(1), 8, ms(at))),
            [8, 8, 12, 30, 50].map(ms)
        );
        // One probe has none to spare.
        assert_eq!([0, 100].map(|at| pace(ms(1), 1, ms(at))), [PACE; 2]);
    }
}
