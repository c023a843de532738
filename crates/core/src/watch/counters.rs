//! Counters over all windows of a watch, for programs that read them from time to time.
//!
//! A counter never decreases while the watch runs: not when its row in the kernel is given to another
//! series, and not when it was left out of what is exposed and comes back, unless it was forgotten since.

use std::collections::{BTreeMap, BTreeSet};

use crate::date::Date;
use crate::explain::Cause;
use crate::harmless::clean;
use crate::units::SpanNs;
use crate::watch::cgroup::Cgroup;
use crate::watch::explained::Suppressed;
use crate::watch::{Audit, LeftOut, Moved, Series, WaitBegin, Waits, Window};

/// A series without waits for so long may be left out in favour of others: Prometheus itself looks back 5
/// minutes.
const IDLE_NS: u64 = 600_000_000_000;

/// Series that are left out, and kept in case they come back: 1 KB each. Paths of sessions and containers never do.
const MOST_RETIRED: usize = 4_096;

/// How long the longest wait is kept at least, ns: longer than from one scrape to the next.
const PEAK_NS: u64 = 60_000_000_000;

/// The cgroups that were gone before their paths could be looked up, and what there is in place of one where
/// the kernel has none. No path is like these.
const GONE: &str = "(gone)";
const NONE: &str = "(none)";

/// Whose waits a counter counts. Names hold no control or format characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The whole path of the cgroup, or what is known in its place: names that are cut would be those of
    /// several. The kernel shows no path of more than 4,095 bytes.
    pub cgroup: String,
    /// The name of the tasks, where each name is counted apart.
    pub comm: Option<String>,
}

/// What a counter is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Each cgroup.
    Cgroup,
    /// Tasks of one name in one cgroup.
    Series,
}

/// Waits so far, and the longest of the last one to two minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// All waits so far.
    pub waits: Waits,
    /// The longest wait, ns, of this minute and of the minute before.
    peaks: [u64; 2],
    /// The last time that there were waits, in time that was watched, ns.
    active_ns: u64,
}

impl Counter {
    fn add(&mut self, waits: &Waits, watched_ns: u64) {
        if waits.count == 0 {
            return;
        }
        self.waits = self.waits.merged(waits);
        self.peaks[0] = self.peaks[0].max(waits.max_ns.unwrap_or(0));
        self.active_ns = watched_ns;
    }

    /// The longest wait that ended in the last minute, ns; it may be up to two minutes old, or two windows
    /// where these are longer than a minute.
    pub fn peak_ns(&self) -> u64 {
        self.peaks[0].max(self.peaks[1])
    }
}

/// Counters over all windows so far.
#[derive(Clone, Debug)]
pub struct Counters {
    split: Split,
    limit: usize,
    series: BTreeMap<Key, Counter>,
    /// Waits of series that are not exposed now, and the last time that there were any, ns. They go on from here.
    retired: BTreeMap<Key, (Waits, u64)>,
    others: Counter,
    cpus: BTreeMap<u32, (u64, Counter)>,
    watched_ns: u64,
    /// When the minute of the first peaks began.
    peaks_since_ns: u64,
    totals: Totals,
}

/// What is counted once for the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Where waits begin; `None` before the first window.
    pub from: Option<WaitBegin>,
    /// When the last window ended.
    pub end: Option<Date>,
    /// What is not in the waits.
    pub left_out: LeftOut,
    /// Waits that were moved.
    pub moved: Moved,
    /// CPU time of `wakescope` itself, ns.
    pub agent_ns: u64,
    /// Run time of its program, of windows in which it is known, ns.
    pub program_ns: u64,
    /// Run time of the programs of the tracer that followed late series, ns.
    pub tracer_ns: u64,
    /// How long the windows are in which that of its own program is not known, ns.
    pub cost_unknown_ns: u64,
    /// Rows of the program that are used now, and those that there are.
    pub rows: (u64, u64),
    /// The last comparison with the kernel's counts.
    pub audit: Option<Audit>,
    /// Waits that were long, as [`Episodes::long_waits`](crate::watch::episode::Episodes::long_waits) counts them.
    pub long_waits: u64,
    /// How many of them are episodes, by cause.
    pub episodes: BTreeMap<Cause, u64>,
    /// What was followed by a tracer; `None` if nothing is to be.
    pub followed: Option<Followed>,
}

/// Late series that a tracer followed, and those that it did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// How many were.
    pub series: u64,
    /// Why others were not.
    pub suppressed: Suppressed,
}

impl Counters {
    /// None so far. At most `limit` series have counters of their own at once.
    pub fn new(split: Split, limit: usize) -> Self {
        Self {
            split,
            limit,
            series: BTreeMap::new(),
            retired: BTreeMap::new(),
            others: Counter::default(),
            cpus: BTreeMap::new(),
            watched_ns: 0,
            peaks_since_ns: 0,
            totals: Totals::default(),
        }
    }

    /// Adds a window. Of its cgroups without a path, `gone` has the IDs of those that were gone: there is no
    /// end of these, so they are one. Others are known by their IDs.
    pub fn add(&mut self, window: &Window, gone: &BTreeSet<u64>) {
        self.watched_ns = self.watched_ns.saturating_add(window.window_ns);
        self.rotate_peaks();
        self.make_room();
        let now = self.watched_ns;
        self.others.add(&window.others, now);
        // The most waits first: what is new and has many is not among the others.
        let mut series: Vec<&Series> = window.series.iter().collect();
        series.sort_by_key(|series| std::cmp::Reverse(series.waits.count));
        for series in series {
            let key = self.key(series, gone);
            self.counter(key).add(&series.waits, now);
        }
        for cpu in &window.cpus {
            let (switches, counter) = self.cpus.entry(cpu.cpu).or_default();
            *switches = switches.saturating_add(cpu.switches);
            counter.add(&cpu.waits, now);
        }
        self.totals.add(window);
    }

    /// Series that are exposed, in the order of their names.
    pub fn series(&self) -> impl Iterator<Item = (&Key, &Counter)> {
        self.series.iter()
    }

    /// What has counters of its own.
    pub fn split(&self) -> Split {
        self.split
    }

    /// How many series may be exposed.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many series are left out, because they had no waits for long, and keep their counts.
    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    /// Waits of all other series.
    pub fn others(&self) -> &Counter {
        &self.others
    }

    /// Switches and waits of each CPU.
    pub fn cpus(&self) -> impl Iterator<Item = (u32, u64, &Counter)> {
        self.cpus.iter().map(|(&cpu, (switches, counter))| (cpu, *switches, counter))
    }

    /// How long all windows are together, ns.
    pub fn watched_ns(&self) -> u64 {
        self.watched_ns
    }

    /// What is counted once.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Names are made harmless here, not when they are shown: two that look the same are one counter.
    fn key(&self, series: &Series, gone: &BTreeSet<u64>) -> Key {
        let cgroup = match Cgroup::of(series) {
            Cgroup::Path(path) => clean(&path, usize::MAX),
            Cgroup::Id(id) if gone.contains(&id) => GONE.into(),
            Cgroup::Id(id) => format!("(id {id})"),
            Cgroup::None => NONE.into(),
        };
        let comm = (self.split == Split::Series).then(|| clean(&series.comm, usize::MAX));
        Key { cgroup, comm }
    }

    /// The counter of this series, or that of all others.
    fn counter(&mut self, key: Key) -> &mut Counter {
        if !self.series.contains_key(&key) && self.series.len() >= self.limit {
            return &mut self.others;
        }
        let Self { series, retired, .. } = self;
        series.entry(key).or_insert_with_key(|key| {
            let (waits, _) = retired.remove(key).unwrap_or_default();
            Counter { waits, ..Counter::default() }
        })
    }

    /// Leaves out series that had no waits for long, if most places are taken.
    fn make_room(&mut self) {
        if self.series.len() <= self.limit - self.limit.div_ceil(4) {
            return;
        }
        let is_idle = |counter: &Counter| self.watched_ns - counter.active_ns >= IDLE_NS;
        let idle = self.series.iter().filter(|(_, counter)| is_idle(counter));
        let idle: Vec<Key> = idle.map(|(key, _)| key.clone()).collect();
        for key in idle {
            if let Some((key, Counter { waits, active_ns, .. })) = self.series.remove_entry(&key) {
                self.retired.insert(key, (waits, active_ns));
            }
        }
        self.forget_oldest();
    }

    /// Forgets those left out that had no waits for the longest time, beyond the number that is kept.
    fn forget_oldest(&mut self) {
        let more = self.retired.len().saturating_sub(MOST_RETIRED);
        if more == 0 {
            return;
        }
        let ages = self.retired.iter().map(|(key, &(_, active_ns))| (active_ns, key.clone()));
        let mut ages: Vec<(u64, Key)> = ages.collect();
        ages.sort_unstable();
        for (_, key) in ages.into_iter().take(more) {
            self.retired.remove(&key);
        }
    }

    /// Begins a new minute for the longest waits, if the last one is over.
    fn rotate_peaks(&mut self) {
        if self.watched_ns - self.peaks_since_ns <= PEAK_NS {
            return;
        }
        self.peaks_since_ns = self.watched_ns;
        let cpus = self.cpus.values_mut().map(|(_, counter)| counter);
        for counter in self.series.values_mut().chain(cpus).chain([&mut self.others]) {
            counter.peaks = [0, counter.peaks[0]];
        }
    }
}

impl Totals {
    fn add(&mut self, window: &Window) {
        self.from = Some(window.from);
        self.end = Date::parse(&window.started).map(|date| date.after(SpanNs(window.window_ns)));
        self.left_out = self.left_out.plus(&window.left_out);
        self.moved = Moved {
            count: self.moved.count.saturating_add(window.moved.count),
            before_ns: self.moved.before_ns.saturating_add(window.moved.before_ns),
        };
        let cost = &window.own_cost;
        self.agent_ns = self.agent_ns.saturating_add(cost.agent_ns);
        self.tracer_ns = self.tracer_ns.saturating_add(cost.tracer_ns);
        match cost.program_ns {
            Some(ns) => self.program_ns = self.program_ns.saturating_add(ns),
            None => self.cost_unknown_ns = self.cost_unknown_ns.saturating_add(window.window_ns),
        }
        self.rows = (window.series_used, window.series_limit);
        self.audit = window.audit;
        if let Some(episodes) = &window.episodes {
            self.long_waits = self.long_waits.saturating_add(episodes.long_waits);
            for episode in &episodes.longest {
                *self.episodes.entry(episode.cause).or_default() += 1;
            }
        }
        if let Some(explanations) = &window.explanations {
            let followed = self.followed.get_or_insert_default();
            followed.series += explanations.explained.len() as u64;
            followed.suppressed = followed.suppressed.plus(&explanations.suppressed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Cpu, OwnCost, SCHEMA};
    use proptest::prelude::*;

    fn window(seconds: u64, series: Vec<Series>) -> Window {
        let all = series.iter().fold(Waits::default(), |sum, one| sum.merged(&one.waits));
        Window {
            schema: SCHEMA.into(),
            started: "2026-11-21T01:00:00Z".into(),
            window_ns: seconds * 1_000_000_000,
            series,
            cpus: vec![Cpu { cpu: 3, switches: 7, waits: all }],
            left_out: LeftOut { missed: 2, ..LeftOut::default() },
            moved: Moved { count: 1, before_ns: 5 },
            series_used: 4,
            series_limit: 9,
            own_cost: OwnCost { agent_ns: 10, program_runs: 7, cpus: 2, ..OwnCost::default() },
            ..Window::default()
        }
    }

    fn series(path: &str, comm: &str, of: &[u64]) -> Series {
        Series {
            cgroup_id: 1,
            cgroup: Some(path.into()),
            comm: comm.into(),
            waits: Waits::exactly(of),
        }
    }

    fn counts(counters: &Counters) -> Vec<(String, u64)> {
        let each = counters.series().map(|(key, counter)| (key.cgroup.clone(), counter));
        let all = each.chain([("others".into(), counters.others())]);
        all.map(|(name, counter)| (name, counter.waits.count)).collect()
    }

    fn named(counts: &[(&str, u64)]) -> Vec<(String, u64)> {
        counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    }

    #[test]
    fn names_that_look_the_same_are_one_counter() {
        let mut counters = Counters::new(Split::Cgroup, 9);
        let all = vec![series("/a\n", "x", &[1]), series("/a\x1b", "y", &[2, 3])];
        counters.add(&window(2, all), &BTreeSet::new());
        assert_eq!(counts(&counters), named(&[("/a\u{fffd}", 3), ("others", 0)]));
        let totals = counters.totals();
        assert_eq!(totals.end.map(|end| end.to_string()), Some("2026-11-21T01:00:02Z".into()));
        assert_eq!(
            (totals.agent_ns, totals.program_ns, totals.cost_unknown_ns),
            (10, 0, 2_000_000_000)
        );
        let mut counters = Counters::new(Split::Series, 9);
        counters.add(
            &window(2, vec![series("/a", "x", &[1]), series("/a", "y", &[2, 3])]),
            &BTreeSet::new(),
        );
        assert_eq!(counters.series().count(), 2);
    }

    #[test]
    fn cgroups_that_differ_are_counted_apart() {
        // As those of a cluster in containers are: 320 characters, which differ at the end.
        let deep = |end: &str| format!("/{}/{end}", "kubelet-kubepods.slice/".repeat(14));
        let [one, other] = ["one", "other"].map(deep);
        let unnamed = |id| Series { cgroup_id: id, cgroup: None, ..series("", "x", &[4]) };
        let named_series = [series(&one, "x", &[1]), series(&other, "x", &[2, 3])];
        let all = named_series.into_iter().chain([5, 6, 7, 8, 0].map(unnamed)).collect();
        let mut counters = Counters::new(Split::Cgroup, 9);
        counters.add(&window(2, all), &BTreeSet::from([6, 7]));
        let want = [("(gone)", 2), ("(id 5)", 1), ("(id 8)", 1), ("(none)", 1)];
        let paths = [(&*one, 1), (&*other, 2), ("others", 0)];
        assert_eq!(counts(&counters), named(&[&want[..], &paths].concat()));
    }

    #[test]
    fn a_series_that_comes_back_goes_on_from_where_it_was() {
        let mut counters = Counters::new(Split::Cgroup, 2);
        counters.add(
            &window(2, vec![series("/a", "x", &[1, 5]), series("/b", "x", &[2])]),
            &BTreeSet::new(),
        );
        // There is no room, until one was idle for long.
        counters.add(&window(2, vec![series("/c", "x", &[7])]), &BTreeSet::new());
        assert_eq!(counts(&counters), named(&[("/a", 2), ("/b", 1), ("others", 1)]));
        counters.add(&window(590, vec![series("/b", "x", &[2])]), &BTreeSet::new());
        counters.add(&window(10, vec![series("/c", "x", &[7])]), &BTreeSet::new());
        assert_eq!(counts(&counters), named(&[("/b", 2), ("/c", 1), ("others", 1)]));
        assert_eq!(counters.retired(), 1);
        counters.add(&window(601, vec![series("/a", "x", &[9])]), &BTreeSet::new());
        assert_eq!(counts(&counters), named(&[("/a", 3), ("others", 1)]));
        let (_, a) = counters.series().next().unwrap();
        assert_eq!((a.waits.sum_ns, a.peak_ns()), (15, 9));
    }

    /// After 4,096 sessions, whose paths never come back, each new cgroup was among the others.
    #[test]
    fn there_is_always_room_for_new_series() {
        let mut counters = Counters::new(Split::Cgroup, 2);
        let path = |session| format!("/session-{session}.scope");
        let last = MOST_RETIRED as u64 + 10;
        for session in 0..=last {
            let all = vec![series(&path(session), "x", &[1, 2])];
            counters.add(&window(IDLE_NS / 1_000_000_000, all), &BTreeSet::new());
        }
        assert_eq!(counters.others().waits.count, 0);
        assert_eq!(counters.retired(), MOST_RETIRED);
        // One that is remembered goes on, and one that was forgotten begins anew.
        for (session, want) in [(last - 100, 3), (3, 1)] {
            let all = vec![series(&path(session), "x", &[7])];
            counters.add(&window(IDLE_NS / 1_000_000_000, all), &BTreeSet::new());
            let found = counters.series().find(|(key, _)| key.cgroup == path(session)).unwrap();
            assert_eq!(found.1.waits.count, want, "{session}");
        }
    }

    #[test]
    fn the_longest_wait_is_there_for_a_minute_at_least_and_two_at_most() {
        let mut counters = Counters::new(Split::Cgroup, 2);
        let mut peaks = Vec::new();
        for second in (0..150).step_by(10) {
            let long = if second == 50 { 900 } else { 3 };
            counters.add(&window(10, vec![series("/a", "x", &[long])]), &BTreeSet::new());
            let (_, a) = counters.series().next().unwrap();
            assert_eq!(counters.cpus().next().unwrap().2.peak_ns(), a.peak_ns());
            peaks.push(a.peak_ns());
        }
        let long = peaks.iter().filter(|&&peak| peak == 900).count();
        assert_eq!(peaks[..6], [3, 3, 3, 3, 3, 900]);
        assert!((6..=13).contains(&long) && peaks.ends_with(&[3]), "{peaks:?}");
    }

    proptest! {
        /// Whatever comes and goes: no counter decreases, and no wait is lost or counted twice.
        #[test]
        fn no_counter_ever_decreases(
            windows in prop::collection::vec(
                (1_u64..700, prop::collection::btree_map(0_u64..12, 1_u64..5, 0..6)),
                1..60,
            ),
        ) {
            let mut counters = Counters::new(Split::Cgroup, 4);
            let mut seen: BTreeMap<String, u64> = BTreeMap::new();
            let mut all = 0;
            for (seconds, names) in windows {
                let of = |(name, count): (u64, u64)| {
                    series(&format!("/{name}"), "x", &vec![5; usize::try_from(count).unwrap()])
                };
                all += names.values().sum::<u64>();
                counters.add(&window(seconds, names.into_iter().map(of).collect()), &BTreeSet::new());
                for (name, count) in counts(&counters) {
                    let before = seen.insert(name.clone(), count).unwrap_or(0);
                    prop_assert!(count >= before, "{}: {} after {}", name, count, before);
                }
                prop_assert!(counters.series().count() <= 4);
                let retired: u64 = counters.retired.values().map(|(waits, _)| waits.count).sum();
                let exposed: u64 = counts(&counters).iter().map(|(_, count)| count).sum();
                prop_assert_eq!(exposed + retired, all);
            }
        }
    }
}
