//! Which series is followed by a tracer, and when: one that is late repeatedly, as far as the budget allows.

use std::collections::BTreeMap;

use crate::units::SpanNs;
use crate::watch::explained::Suppressed;
use crate::watch::{Series, Waits, Window};

/// A series is late repeatedly if it had so many late waits in so many windows.
const LEAST_LATE: u64 = 3;
const WINDOWS: usize = 5;

/// How long a series is not followed again.
const COOL_DOWN: SpanNs = SpanNs(60_000_000_000);

/// So much time without use is saved up at most, and what one series needs: in any longer time no more is taken than
/// the budget allows.
const SAVED: SpanNs = SpanNs(60_000_000_000);

/// One part in so many of what following a series is expected to take is kept beside it, or the tracer would be removed
/// before it saw anything (6.18: after 0.05 s, of a series that was first followed as soon as 1.00 s were there). As
/// much again may be saved up.
const SPARE: u64 = 6;

/// The most series of which late waits are remembered.
const MOST_SERIES: usize = 65_536;

/// The longest time from which on waits can be late. All waits of 17.2 s and more are in one bucket, so a longer time
/// could not be recognised.
pub const LONGEST_ABOVE: SpanNs = SpanNs(17_000_000_000);

/// A cgroup by its ID, and the name of the tasks.
type Key = (u64, String);

/// Decides after each window.
#[derive(Debug)]
pub struct Arming {
    above_ns: u64,
    /// The name of tasks that are never followed.
    own: &'static str,
    series: BTreeMap<Key, Lateness>,
    budget: CpuBudget,
}

#[derive(Debug, Default)]
struct Lateness {
    /// Late waits of the last windows, the latest first.
    late: [u64; WINDOWS],
    /// Until when it is not followed again, from the start of the watch, ns.
    cools_until_ns: u64,
}

/// CPU time that may be taken.
#[derive(Clone, Copy, Debug)]
pub struct CpuBudget {
    share: f64,
    /// What may be taken now, ns: below 0 if more was taken. `None` until it is known of how many CPUs it is.
    left_ns: Option<f64>,
    /// So much may be saved up, however small the share is, ns.
    least_saved_ns: u64,
}

impl CpuBudget {
    /// A share of all CPU time. At the start there is what a minute allows.
    pub fn of(share: f64) -> Self {
        Self { share, left_ns: None, least_saved_ns: 0 }
    }

    /// Lets so much be saved up, however long that takes: on one CPU, a minute of 1 % is less than following one
    /// series takes.
    pub fn make_room_for(&mut self, ns: u64) {
        self.least_saved_ns = ns;
    }

    /// Time passed, in which so much was taken on a machine with so many CPUs.
    pub fn pass(&mut self, span: SpanNs, cpus: u32, taken_ns: u64) {
        let each = self.share * f64::from(cpus);
        let of_a_minute = each * SAVED.0 as f64;
        let most = of_a_minute.max(self.least_saved_ns as f64);
        let left_ns = self.left_ns.unwrap_or(of_a_minute) + each * span.0 as f64;
        self.left_ns = Some(left_ns.min(most) - taken_ns as f64);
    }

    /// Whether so much may be taken now.
    pub fn allows(&self, ns: u64) -> bool {
        self.left_ns.is_some_and(|left_ns| ns as f64 <= left_ns)
    }
}

impl Arming {
    /// Follows series with waits of `above_ns` and longer, as far as their buckets tell, within `budget`, a share of
    /// all CPU time. The thread that follows, by its `own` name, is none of them.
    pub fn new(above_ns: u64, budget: f64, own: &'static str) -> Self {
        Self { above_ns, own, series: BTreeMap::new(), budget: CpuBudget::of(budget) }
    }

    /// What may be taken.
    pub fn budget(&self) -> &CpuBudget {
        &self.budget
    }

    /// Takes a window, whose own cost includes what was taken by a tracer. The series to follow now; none if
    /// one `is_followed`, or if following one, which takes some `expected_ns`, is more than may be taken.
    /// Counts those that are not followed although they are late repeatedly.
    pub fn next(
        &mut self,
        window: &Window,
        is_followed: bool,
        expected_ns: u64,
        suppressed: &mut Suppressed,
    ) -> Option<Series> {
        let cost = &window.own_cost;
        let taken_ns = [cost.agent_ns, cost.program_ns.unwrap_or(0), cost.tracer_ns];
        let taken_ns = taken_ns.into_iter().fold(0, u64::saturating_add);
        let spare_ns = expected_ns / SPARE;
        let needed_ns = expected_ns.saturating_add(spare_ns);
        self.budget.make_room_for(needed_ns.saturating_add(spare_ns));
        self.budget.pass(SpanNs(window.window_ns), cost.cpus, taken_ns);
        let end_ns = window.begin_ns.saturating_add(window.window_ns);
        self.note_late(window, end_ns);
        let mut late: Vec<&Series> = window.series.iter().filter(|s| self.is_late(s)).collect();
        late.retain(|series| {
            let cools = self.series.get(&key(series)).is_some_and(|it| it.cools_until_ns > end_ns);
            suppressed.cooling += u64::from(cools);
            !cools
        });
        // Where several are, that with the longest wait, and always the same of two.
        late.sort_by_key(|series| (series.waits.max_ns, std::cmp::Reverse(key(series))));
        if is_followed {
            suppressed.busy += late.len() as u64;
            return None;
        }
        if !self.budget.allows(needed_ns) {
            suppressed.budget += late.len() as u64;
            return None;
        }
        let worst = late.pop()?;
        suppressed.busy += late.len() as u64;
        let lateness = self.series.entry(key(worst)).or_default();
        lateness.cools_until_ns = end_ns.saturating_add(COOL_DOWN.0);
        Some(Series { waits: Waits::default(), ..worst.clone() })
    }

    fn note_late(&mut self, window: &Window, end_ns: u64) {
        for lateness in self.series.values_mut() {
            lateness.late.rotate_right(1);
            lateness.late[0] = 0;
        }
        for series in &window.series {
            let is_own = series.comm == self.own;
            let late = if is_own { 0 } else { late_waits(&series.waits, self.above_ns) };
            let has_room = self.series.len() < MOST_SERIES;
            if late > 0 && (has_room || self.series.contains_key(&key(series))) {
                self.series.entry(key(series)).or_default().late[0] = late;
            }
        }
        self.series.retain(|_, it| it.late != [0; WINDOWS] || it.cools_until_ns > end_ns);
    }

    /// Whether a series is late again, and repeatedly.
    fn is_late(&self, series: &Series) -> bool {
        self.series.get(&key(series)).is_some_and(|it| {
            let all = it.late.iter().fold(0_u64, |sum, &late| sum.saturating_add(late));
            it.late[0] > 0 && all >= LEAST_LATE
        })
    }
}

fn key(series: &Series) -> Key {
    (series.cgroup_id, series.comm.clone())
}

/// Waits that are certainly so long: those of the bucket that `above_ns` lies in may be shorter.
fn late_waits(waits: &Waits, above_ns: u64) -> u64 {
    let buckets = waits.histogram.buckets().iter().rev();
    let late = buckets.take_while(|bucket| bucket.lower >= above_ns);
    late.fold(0, |sum, bucket| sum.saturating_add(bucket.count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::OwnCost;

    const SECOND: u64 = 1_000_000_000;

    /// A window of a second, in which each series had so many waits of so many ms.
    fn window(second: u64, series: &[(&str, usize, u64)], agent_ns: u64) -> Window {
        let series = series.iter().map(|&(comm, count, ms)| Series {
            cgroup_id: 7,
            cgroup: None,
            comm: comm.into(),
            waits: Waits::exactly(&vec![ms * 1_000_000; count]),
        });
        Window {
            begin_ns: second * SECOND,
            window_ns: SECOND,
            series: series.collect(),
            own_cost: OwnCost { agent_ns, cpus: 2, ..OwnCost::default() },
            ..Window::default()
        }
    }

    fn next(
        arming: &mut Arming,
        window: &Window,
        is_followed: bool,
    ) -> (Option<String>, Suppressed) {
        let mut suppressed = Suppressed::default();
        let found = arming.next(window, is_followed, SECOND, &mut suppressed);
        (found.map(|series| series.comm), suppressed)
    }

    fn arming() -> Arming {
        Arming::new(1_000_000, 0.1, "own")
    }

    #[test]
    fn a_series_is_followed_once_it_is_late_repeatedly() {
        let mut arming = arming();
        let quiet = Suppressed::default();
        // Who follows, short waits, however many, and a late one now and then.
        assert_eq!(next(&mut arming, &window(0, &[("own", 9, 5)], 0), false), (None, quiet));
        assert_eq!(
            next(&mut arming, &window(0, &[("a", 1, 5), ("b", 900, 0)], 0), false),
            (None, quiet)
        );
        for second in 1..5 {
            assert_eq!(next(&mut arming, &window(second, &[], 0), false), (None, quiet));
        }
        assert_eq!(next(&mut arming, &window(5, &[("a", 2, 5)], 0), false), (None, quiet));
        let found = next(&mut arming, &window(6, &[("a", 1, 5)], 0), false);
        assert_eq!(found, (Some("a".into()), quiet));
        // Then it cools down, and is counted while it would be followed.
        let cooling = Suppressed { cooling: 1, ..quiet };
        assert_eq!(next(&mut arming, &window(7, &[("a", 3, 5)], 0), false), (None, cooling));
        assert_eq!(next(&mut arming, &window(8, &[], 0), false), (None, quiet));
        assert_eq!(next(&mut arming, &window(66, &[("a", 3, 5)], 0), false).0, Some("a".into()));
    }

    #[test]
    fn no_time_that_may_be_asked_for_is_beyond_all_waits() {
        let mut arming = Arming::new(LONGEST_ABOVE.0, 1.0, "own");
        let found = next(&mut arming, &window(0, &[("a", 3, 60_000)], 0), false).0;
        assert_eq!(found, Some("a".into()));
    }

    #[test]
    fn of_several_the_longest_wait_comes_first_and_one_at_a_time() {
        let mut arming = arming();
        let both = |second| window(second, &[("a", 3, 5), ("b", 3, 9)], 0);
        let busy = |busy| Suppressed { busy, ..Suppressed::default() };
        // Where none is followed, none is left out for another.
        let spent = Suppressed { budget: 2, ..Suppressed::default() };
        let mut poor = Arming::new(1_000_000, 0.001, "own");
        assert_eq!(next(&mut poor, &both(0), false), (None, spent));
        assert_eq!(next(&mut arming, &both(0), true), (None, busy(2)));
        assert_eq!(next(&mut arming, &both(1), false), (Some("b".into()), busy(1)));
        let (found, suppressed) = next(&mut arming, &both(2), false);
        assert_eq!((found, suppressed.cooling), (Some("a".into()), 1));
    }

    #[test]
    fn nothing_is_followed_beyond_the_budget() {
        let mut arming = arming();
        let late = |second, agent_ns| window(second, &[("a", 3, 5)], agent_ns);
        // A minute of a tenth of two CPUs is allowed at once, and a fifth of a second more each second.
        let (found, suppressed) = next(&mut arming, &late(0, 12 * SECOND), false);
        assert_eq!((found, suppressed.budget), (None, 1));
        assert_eq!(next(&mut arming, &late(1, 0), false).1.budget, 1);
        let found: Vec<bool> =
            (2..8).map(|second| next(&mut arming, &late(second, 0), false).0.is_some()).collect();
        assert_eq!(found, [false, false, false, false, true, false]);
    }

    /// On two CPUs the share of a minute is enough at once. It was 0.6 s at the start however many there were, and
    /// nothing was followed for 41 s.
    #[test]
    fn the_share_of_a_minute_of_the_machine_is_there_at_the_start() {
        let mut arming = Arming::new(1_000_000, 0.01, "own");
        let late = |second| window(second, &[("a", 3, 5)], 20_000_000);
        assert_eq!(next(&mut arming, &late(0), false).0.as_deref(), Some("a"));
    }

    /// A minute of 1 % is 0.6 s there: less than following a series takes, so none was ever followed.
    #[test]
    fn a_series_is_followed_on_one_cpu_too_once_enough_is_saved() {
        let mut arming = Arming::new(1_000_000, 0.01, "own");
        let mut followed = Vec::new();
        let mut taken_ns = 0;
        for second in 0..600 {
            let mut window = window(second, &[("a", 3, 5)], 2_000_000 + taken_ns);
            window.own_cost.cpus = 1;
            let found = arming.next(&window, false, SECOND, &mut Suppressed::default());
            taken_ns = if found.is_some() { SECOND } else { 0 };
            followed.extend(found.map(|_| second));
        }
        // 8 ms are left of each second, and 0.6 s at the start.
        assert_eq!(followed, [70, 195, 320, 445, 570]);
    }

    #[test]
    fn in_any_longer_time_no_more_is_taken_than_the_budget_and_what_was_saved() {
        let mut budget = CpuBudget::of(0.01);
        budget.pass(SpanNs(0), 2, 0);
        let mut taken = 0;
        for _ in 0..3_600 {
            let takes = if budget.allows(SECOND) { SECOND } else { 0 };
            taken += takes;
            budget.pass(SpanNs(SECOND), 2, takes);
        }
        let allowed = 0.01 * 2.0 * (3_600.0 + 60.0);
        assert!(taken as f64 <= allowed * 1e9 && taken > 60 * SECOND, "{taken}");
    }

    #[test]
    fn series_without_end_take_no_memory_without_end() {
        let mut arming = arming();
        for second in 0..100 {
            let names: Vec<String> = (0..50).map(|i| format!("{second}-{i}")).collect();
            let all: Vec<_> = names.iter().map(|name| (name.as_str(), 1, 5)).collect();
            next(&mut arming, &window(second, &all, 0), false);
        }
        assert!(arming.series.len() <= 50 * WINDOWS, "{}", arming.series.len());
    }
}
