//! How late a wakeup must be to be worth handing over, and when that is decided anew.

use wakescope_core::distribution::Distribution;
use wakescope_core::units::{MonoNs, SpanNs};

/// How often it is decided anew at the least, while wakeups come.
const EVERY: SpanNs = SpanNs(500_000_000);

/// And so it is whenever their number has grown by one part in so many.
const GROWTH: u64 = 4;

/// Which wakeups will be asked for in the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Which part of all.
    pub(crate) tail: f64,
    /// How many that will be, as far as it is known; or 0.
    pub(crate) late: u64,
}

impl Asked {
    /// How many of so many wakeups are worth handing over. Those are at least as many as will be asked for in the
    /// end: whichever wakeup is not among them then has so many before it already. And some more, for the share of
    /// late ones changes while a run lasts.
    fn wanted(self, wakeups: u64) -> u64 {
        /// So many are always worth it.
        const LEAST: u64 = 64;
        /// How many times as many as will be asked for.
        const MORE: f64 = 4.0;
        /// Beyond so many late ones in the end, those that come first are not all worth it: a probe of 1 ms would
        /// hand over each of its wakeups for more than half a second.
        const MOST_LATE: u64 = 512;
        // Of a large share so many times as many are more than there are: then half of the others, too.
        let share = (self.tail * MORE).min(f64::midpoint(1.0, self.tail));
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let wanted = (wakeups as f64 * share) as u64;
        wanted + LEAST + self.late.min(MOST_LATE)
    }
}

/// How late a wakeup must be for that; `None` as long as all are worth it.
pub(crate) fn worth_keeping(all: &Distribution, asked: Asked) -> Option<u64> {
    let wanted = asked.wanted(all.count);
    let mut above = 0;
    all.histogram.buckets().iter().rev().find_map(|bucket| {
        above += bucket.count;
        (above >= wanted).then_some(bucket.lower)
    })
}

/// When it was decided last.
///
/// A decision of few wakeups lets too many leave the kernel soon, and one that is too late does the same. Each takes
/// a look at all histograms, 16,000 words for each probe or CPU, so where nothing happens none is made.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    at: MonoNs,
    wakeups: u64,
}

impl Decided {
    /// Whether it is time to decide anew, now that so many wakeups have come. It is then decided.
    pub(crate) fn is_due(&mut self, now: MonoNs, wakeups: u64, asked: Asked) -> bool {
        let more = wakeups.saturating_sub(self.wakeups);
        let has_changed = more > self.wakeups / GROWTH || more > 0 && now.since(self.at) >= EVERY;
        let is_due = has_changed && wakeups >= asked.wanted(wakeups);
        if is_due {
            *self = Self { at: now, wakeups };
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wakescope_core::histogram::Histogram;

    /// Where nobody knows how many will be late.
    fn of_tail(tail: f64) -> Asked {
        Asked { tail, late: 0 }
    }

    fn distribution(samples: impl Iterator<Item = u64>) -> Distribution {
        let histogram = Histogram::of(samples);
        Distribution { count: histogram.count(), histogram, ..Distribution::default() }
    }

    #[test]
    fn the_latest_are_worth_keeping_and_some_more() {
        // Buckets of 1 ns: each sample its own.
        let all = distribution(0..1_000);
        for (tail, kept) in [(0.0, 64), (0.001, 68), (0.01, 104), (0.1, 464), (0.5, 814)] {
            let keep_ns = worth_keeping(&all, of_tail(tail)).unwrap();
            assert_eq!(1_000 - keep_ns, kept, "{tail}");
        }
        // With fewer than that, all are.
        assert_eq!(worth_keeping(&all, of_tail(0.9)), None);
        assert_eq!(worth_keeping(&distribution(0..63), of_tail(0.001)), None);
        assert_eq!(worth_keeping(&distribution(0..64), of_tail(0.0)), Some(0));
        assert_eq!(worth_keeping(&Distribution::default(), of_tail(0.001)), None);
    }

    #[test]
    fn who_is_as_late_as_the_last_that_is_kept_is_kept_too() {
        let keep_ns =
            worth_keeping(&distribution([50_000; 1_000].into_iter()), of_tail(0.001)).unwrap();
        assert!(keep_ns <= 50_000, "{keep_ns}");
    }

    /// How many wakeups there were at each decision, of looks that are so far apart, with so many wakeups between
    /// two of them.
    fn decisions(tail: f64, apart: SpanNs, wakeups: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut decided = Decided::default();
        let mut now = MonoNs(1_000_000_000_000);
        let mut all = 0;
        let mut decisions = Vec::new();
        for more in wakeups {
            (now, all) = (now.after(apart), all + more);
            if decided.is_due(now, all, of_tail(tail)) {
                decisions.push(all);
            }
        }
        decisions
    }

    const LOOK: SpanNs = SpanNs(50_000_000);

    #[test]
    fn it_is_decided_as_soon_as_it_can_be_and_then_whenever_much_has_changed() {
        let second = decisions(0.001, LOOK, [50; 20]);
        assert_eq!(second, [100, 150, 200, 300, 400, 550, 700, 900]);
        // Then twice a second.
        let more = decisions(0.001, LOOK, [50; 100]);
        assert_eq!(more[8..12], [1_150, 1_450, 1_850, 2_350]);
        assert!(more[12..].windows(2).all(|two| two[1] - two[0] == 500), "{more:?}");
        // Where more wakeups are asked for, later.
        assert_eq!(decisions(0.04, LOOK, [7; 20])[0], 77);
        assert_eq!(decisions(0.5, LOOK, [50; 20])[0], 300);
    }

    #[test]
    fn a_decision_tells_something_and_none_is_missed() {
        for tail in [0.0, 0.001, 0.04, 0.1, 0.5, 0.9] {
            let first = decisions(tail, LOOK, [1; 2_000])[0];
            assert!(worth_keeping(&distribution(0..first), of_tail(tail)).is_some(), "{tail}");
            assert_eq!(worth_keeping(&distribution(0..first - 1), of_tail(tail)), None, "{tail}");
        }
    }

    #[test]
    fn nothing_is_decided_where_nothing_happens() {
        let idle = decisions(0.001, LOOK, [100].into_iter().chain([0; 1_000]));
        assert_eq!(idle, [100]);
        // A thread of others that begins late is met as soon as it does: not up to half a second later.
        let flood = [0; 1_000].into_iter().chain([5_000; 3]);
        assert_eq!(decisions(0.001, LOOK, flood), [5_000, 10_000, 15_000]);
    }

    /// Those of `lateness` that would be handed over, one wakeup after the other, of which 50 come between two looks.
    fn handed_over(lateness: &[u64], asked: Asked) -> Vec<u64> {
        let (mut decided, mut keep_ns, mut now) = (Decided::default(), 0, MonoNs(1_000_000_000));
        let mut handed_over = Vec::new();
        for (number, &late) in lateness.iter().enumerate() {
            if number % 50 == 0 {
                now = now.after(LOOK);
                if decided.is_due(now, number as u64, asked) {
                    let so_far = distribution(lateness[..number].iter().copied());
                    keep_ns = worth_keeping(&so_far, asked).unwrap_or(keep_ns);
                }
            }
            if late >= keep_ns {
                handed_over.push(late);
            }
        }
        handed_over
    }

    /// The `late` latest ones.
    fn latest(mut lateness: Vec<u64>, late: u64) -> Vec<u64> {
        lateness.sort_unstable_by(|a, b| b.cmp(a));
        lateness.truncate(usize::try_from(late).unwrap());
        lateness
    }

    #[test]
    fn what_is_late_in_the_end_is_kept_although_the_latest_all_came_first() {
        // Each is less late than the one before: as if the run began in a storm that calms down.
        let lateness: Vec<u64> = (0..20_000).map(|number| 1_000_000 - 40 * number).collect();
        let asked = Asked { tail: 0.01, late: 200 };
        let handed_over = handed_over(&lateness, asked);
        assert_eq!(latest(handed_over.clone(), 200), latest(lateness.clone(), 200));
        assert!(handed_over.len() < 1_000, "{}", handed_over.len());
        // Nobody can know that where nothing is said of the end.
        let unsaid = self::handed_over(&lateness, of_tail(0.01));
        assert_ne!(latest(unsaid, 200), latest(lateness, 200));
    }

    proptest! {
        #[test]
        fn whatever_comes_first_what_is_late_in_the_end_is_kept(
            lateness in prop::collection::vec(prop_oneof![3 => 5_000..20_000_u64, 1 => 0..400_000_u64], 1..2_000),
            tail in prop_oneof![Just(0.001), Just(0.04), Just(0.1), Just(0.5), 0.0..1.0],
        ) {
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let late = (lateness.len() as f64 * tail).ceil() as u64;
            prop_assume!(late <= 512);
            let handed_over = handed_over(&lateness, Asked { tail, late });
            prop_assert_eq!(latest(handed_over, late), latest(lateness, late));
        }
    }
}
