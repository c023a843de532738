//! The late wakeups for which there is no room: of them only whose their time was is kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::compose::{is_section, is_switch, is_tracer, is_way_to_scheduler};
use super::rank::Part;
use crate::group::{Group, Key, subject};
use crate::net_of_steal::{Lateness, take_off};
use wakescope_core::explain::{By, Cause, Components, Share, Subject};
use wakescope_core::histogram::{bucket_of, edges_of};
use wakescope_core::random::Random;

/// The most wakeups that are kept: with 8 shares each, 6 MB. Then every other one goes, and each
/// that stays stands for twice as many.
const MOST: usize = 32_768;

/// The most culprits with a group of their own. All others of a cause share one group.
const MOST_CULPRITS: usize = 16_384;

/// A length that the longest is asked for, in nanoseconds.
type Measure = fn(&[Share]) -> u64;

/// What sections and bounds are made of: a section is one share, and a bound has all shares of a wakeup together.
const MEASURES: [Measure; 6] = [
    |blame| of(blame, |share| share.cause == Cause::IrqOff).max().unwrap_or(0),
    |blame| of(blame, holds_off_switch).max().unwrap_or(0),
    |blame| of(blame, is_section).fold(0, u64::saturating_add),
    |blame| of(blame, is_way_to_scheduler).fold(0, u64::saturating_add),
    |blame| of(blame, is_switch).fold(0, u64::saturating_add),
    |blame| of(blame, is_tracer).fold(0, u64::saturating_add),
];

/// Late wakeups of which only their components and shares are kept, in bounded memory: all of them as
/// long as there is room, then a sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Abridged {
    wakeups: Vec<Brief>,
    /// How many late wakeups each of them stands for, less one.
    also: u64,
    /// How late all of them were, and the same without stolen time.
    lengths: Lengths,
    net_lengths: Lengths,
    groups: Interned<Group>,
    /// What the time is to be ranked by beside its causes, with the subjects of it.
    by: Option<By>,
    subjects: Interned<Subject>,
    /// For each measure the blame of the wakeup that has the longest.
    longest: [Vec<Share>; MEASURES.len()],
    /// Of as many successive wakeups as one stands for, how many have come, and which is taken.
    come: u64,
    taken: u64,
    random: Random,
}

#[derive(Clone, Debug, PartialEq)]
struct Brief {
    components: Components,
    /// What the clock of its CPU says was stolen of it, nanoseconds.
    stolen_ns: u64,
    /// By the places of their groups, nanoseconds.
    shares: Box<[(u32, u64)]>,
    /// The same by the places of their subjects; empty if nobody asks.
    by_subject: Box<[(u32, u64)]>,
}

impl Brief {
    fn ns(&self, lateness: Lateness) -> u64 {
        lateness.of(self.components.total_ns(), self.stolen_ns)
    }
}

/// How late wakeups were.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lengths {
    /// How many there were of all lengths, by buckets of the histograms' scale.
    counts: BTreeMap<usize, u64>,
    /// How late the least late of them was, nanoseconds.
    least_ns: u64,
}

impl Lengths {
    fn add(&mut self, ns: u64) {
        self.least_ns = if self.counts.is_empty() { ns } else { self.least_ns.min(ns) };
        *self.counts.entry(bucket_of(ns)).or_default() += 1;
    }
}

/// Groups that are kept once.
#[derive(Clone, Debug, PartialEq)]
struct Interned<K: Key> {
    all: Vec<K>,
    places: HashMap<K, u32>,
}

impl<K: Key> Default for Interned<K> {
    fn default() -> Self {
        Self { all: Vec::new(), places: HashMap::new() }
    }
}

impl<K: Key> Interned<K> {
    /// The place of `key`, or, where there are too many, of all others.
    fn place(&mut self, mut key: K) -> u32 {
        if self.all.len() >= MOST_CULPRITS && !self.places.contains_key(&key) {
            key = key.others();
        }
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let place = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(key.clone());
        self.places.insert(key, place);
        place
    }

    fn at(&self, place: u32) -> &K {
        &self.all[place as usize]
    }
}

impl Abridged {
    /// Of wakeups whose time is to be ranked by this, too.
    pub fn by(by: Option<By>) -> Self {
        Self { by, ..Self::default() }
    }

    /// How many late wakeups each one that is kept stands for: a power of two, 1 as long as all are
    /// kept.
    pub fn weight(&self) -> u64 {
        self.also + 1
    }

    /// Adds a late wakeup, of which `stolen_ns` were stolen by the clock of its CPU.
    pub fn add(&mut self, components: Components, stolen_ns: u64, blame: Vec<Share>) {
        let late_ns = components.total_ns();
        self.lengths.add(late_ns);
        self.net_lengths.add(Lateness::NetOfSteal.of(late_ns, stolen_ns));
        if self.is_drawn() {
            let shares = blame.iter();
            let shares =
                shares.map(|share| (self.groups.place(Group::of(share.blamed())), share.ns));
            let shares = shares.collect();
            let by_subject = blame.iter().filter_map(|share| {
                Some((self.subjects.place(subject(share, self.by?)), share.ns))
            });
            let by_subject = by_subject.collect();
            self.wakeups.push(Brief { components, stolen_ns, shares, by_subject });
        }
        for (measure, longest) in MEASURES.iter().zip(&mut self.longest) {
            if measure(&blame) > measure(longest) {
                longest.clone_from(&blame);
            }
        }
        if self.wakeups.len() >= MOST {
            self.thin_out();
        }
    }

    /// How many were added, kept or not.
    pub(crate) fn added(&self) -> u64 {
        self.lengths.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether the next wakeup is taken: one of each `weight` of them, drawn at random, for what comes
    /// at an interval must not be hit by another.
    fn is_drawn(&mut self) -> bool {
        if self.come == 0 {
            let weight = usize::try_from(self.weight()).unwrap_or(usize::MAX);
            self.taken = self.random.below(weight) as u64;
        }
        let is_drawn = self.come == self.taken;
        self.come = (self.come + 1) % self.weight();
        is_drawn
    }

    /// Lets half of them go, drawn at random.
    fn thin_out(&mut self) {
        let half = self.wakeups.len() / 2;
        self.random.draw(&mut self.wakeups, half);
        self.wakeups.truncate(half);
        self.also = self.weight() * 2 - 1;
        self.come = 0;
    }

    fn above(&self, above_ns: u64, lateness: Lateness) -> impl Iterator<Item = &Brief> {
        self.wakeups.iter().filter(move |brief| brief.ns(lateness) >= above_ns)
    }

    /// How many wakeups at least so late there were, by buckets. Of a sample, those that are certain:
    /// without the bucket that `above_ns` lies in, unless that is where it begins, or no wakeup was
    /// less late.
    pub(crate) fn counts(&self, above_ns: u64, lateness: Lateness) -> BTreeMap<usize, u64> {
        let mut counts = BTreeMap::new();
        if self.weight() == 1 {
            for brief in self.above(above_ns, lateness) {
                *counts.entry(bucket_of(brief.ns(lateness))).or_default() += 1;
            }
            return counts;
        }
        let lengths = match lateness {
            Lateness::Whole => &self.lengths,
            Lateness::NetOfSteal => &self.net_lengths,
        };
        counts.clone_from(&lengths.counts);
        if lengths.least_ns < above_ns {
            counts.retain(|&bucket, _| edges_of(bucket).0 >= above_ns);
        }
        counts
    }

    /// The shares of each wakeup that is at least so late, to be ranked.
    pub(crate) fn parts(
        &self,
        above_ns: u64,
        lateness: Lateness,
    ) -> impl Iterator<Item = Part<'_>> {
        self.above(above_ns, lateness).map(move |brief| {
            let mut shares = brief.shares.clone();
            let causes = shares.iter_mut();
            let causes = causes.map(|(place, ns)| (self.groups.at(*place).cause, ns));
            take_off(causes, lateness.left_out(brief.stolen_ns));
            let share = |&(place, ns): &(u32, u64)| (Cow::Borrowed(self.groups.at(place)), ns);
            Part::new(self.weight(), brief.ns(lateness), shares.iter().map(share))
        })
    }

    /// The same by subjects.
    pub(crate) fn parts_by_subject(
        &self,
        above_ns: u64,
    ) -> impl Iterator<Item = Part<'_, Subject>> {
        let share = |&(place, ns): &(u32, u64)| (Cow::Borrowed(self.subjects.at(place)), ns);
        self.above(above_ns, Lateness::Whole).map(move |brief| {
            let late_ns = brief.ns(Lateness::Whole);
            Part::new(self.weight(), late_ns, brief.by_subject.iter().map(share))
        })
    }

    /// The components of those at least so late, together.
    pub(crate) fn components(&self, above_ns: u64) -> Components {
        let late = self.above(above_ns, Lateness::Whole);
        let all = late.map(|brief| brief.components.times(self.weight()));
        all.fold(Components::default(), |sum, components| sum.plus(&components))
    }

    /// Whether any of those at least so late was stolen from.
    pub(crate) fn any_stolen(&self, above_ns: u64) -> bool {
        self.above(above_ns, Lateness::Whole).any(|brief| brief.stolen_ns > 0)
    }

    /// The blame of those wakeups that held the longest sections and switches, and the tracer's longest time.
    pub fn longest(&self) -> impl Iterator<Item = &[Share]> + Clone {
        self.longest.iter().map(Vec::as_slice).filter(|blame| !blame.is_empty())
    }
}

/// The shares that `counts` holds for, nanoseconds.
fn of(blame: &[Share], counts: fn(&Share) -> bool) -> impl Iterator<Item = u64> {
    blame.iter().filter(move |share| counts(share)).map(|share| share.ns)
}

fn holds_off_switch(share: &Share) -> bool {
    matches!(share.cause, Cause::PreemptOff | Cause::NoPreemptionPoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank;
    use crate::testing::{share, who};
    use wakescope_core::explain::Phase;

    fn count(abridged: &Abridged, above_ns: u64) -> u64 {
        abridged.counts(above_ns, Lateness::Whole).values().sum()
    }

    fn late(ns: u64) -> Components {
        Components { sched_latency_ns: ns, ..Components::default() }
    }

    #[test]
    fn as_long_as_there_is_room_all_are_ranked_as_they_were() {
        let mut abridged = Abridged::default();
        for ns in [100, 200, 300] {
            let half = share(Cause::Irq, "eth0", ns / 2);
            abridged.add(late(ns), 0, vec![half, share(Cause::IrqOff, "f", ns - ns / 2)]);
        }
        let text = |above_ns| {
            let rows = rank(abridged.parts(above_ns, Lateness::Whole));
            let text =
                rows.iter().map(|r| format!("{} {} {}", who(r.blamed()), r.episodes, r.total_ns));
            (
                count(&abridged, above_ns),
                text.collect::<Vec<_>>(),
                abridged.components(above_ns).total_ns(),
            )
        };
        assert_eq!(text(0), (3, vec!["eth0 3 300".into(), "f 3 300".into()], 600));
        assert_eq!(text(200), (2, vec!["eth0 2 250".into(), "f 2 250".into()], 500));
        assert_eq!(text(301), (0, vec![], 0));
    }

    #[test]
    fn what_is_too_much_becomes_a_sample_that_stands_for_all() {
        let mut abridged = Abridged::default();
        let all = 10 * MOST as u64;
        for n in 0..all {
            // A third of them is of another cause, at a regular interval.
            let cause = if n % 3 == 0 { Cause::Irq } else { Cause::IrqOff };
            abridged.add(late(1_000), 0, vec![share(cause, "who", 1_000)]);
        }
        assert!(abridged.wakeups.len() < MOST && abridged.weight() == 16, "{}", abridged.weight());
        // The sample is one by chance, but how many there were is known.
        assert_eq!([0, 1_000, 1_001].map(|above_ns| count(&abridged, above_ns)), [all, all, 0]);
        let rows = rank(abridged.parts(0, Lateness::Whole));
        let third = rows.iter().find(|row| row.cause == Cause::Irq).unwrap();
        // 20,480 are in the sample: a standard deviation of a share is 0.3 %.
        assert!((third.share - 1.0 / 3.0).abs() < 0.02, "{}", third.share);
        let total_ns = abridged.components(0).total_ns();
        assert!(total_ns.abs_diff(all * 1_000) <= abridged.weight() * 1_000, "{total_ns}");
    }

    #[test]
    fn what_comes_at_the_samples_own_interval_has_its_share_in_it() {
        for place in [0, 15] {
            let mut abridged = Abridged::default();
            for n in 0..20 * MOST as u64 {
                let cause = if n % 16 == place { Cause::Irq } else { Cause::IrqOff };
                abridged.add(late(1_000), 0, vec![share(cause, "who", 1_000)]);
            }
            assert!(abridged.weight() >= 16, "{}", abridged.weight());
            let rows = rank(abridged.parts(0, Lateness::Whole));
            let sixteenth = rows.iter().find(|row| row.cause == Cause::Irq).unwrap();
            // Of 16,384 at least: a standard deviation of 0.2 %.
            assert!((sixteenth.share - 1.0 / 16.0).abs() < 0.012, "{place}: {}", sixteenth.share);
        }
    }

    #[test]
    fn the_longest_sections_outlive_their_wakeups() {
        let mut abridged = Abridged::default();
        abridged.add(late(70), 0, vec![share(Cause::IrqOff, "long", 70)]);
        abridged.add(
            late(90),
            0,
            vec![share(Cause::PreemptOff, "a", 50), share(Cause::IrqOff, "b", 40)],
        );
        abridged.add(late(30), 0, vec![share(Cause::Tracer, "", 25), share(Cause::IrqOff, "b", 5)]);
        for _ in 0..4 * MOST {
            let switch = share(Cause::Scheduler, "", 20);
            abridged.add(late(20), 0, vec![Share { phase: Some(Phase::Switch), ..switch }]);
        }
        let longest = |counts| abridged.longest().map(|blame| of(blame, counts).sum::<u64>()).max();
        assert_eq!(longest(|share| share.cause == Cause::IrqOff), Some(70));
        assert_eq!(longest(|share| share.cause == Cause::PreemptOff), Some(50));
        assert_eq!((longest(is_section), longest(is_switch)), (Some(90), Some(20)));
        assert_eq!((longest(is_tracer), longest(is_way_to_scheduler)), (Some(25), Some(0)));
    }

    #[test]
    fn the_longest_section_is_one_share_and_not_what_several_are_together() {
        for (cause, name) in [(Cause::IrqOff, "irqs off"), (Cause::PreemptOff, "preemption off")] {
            let mut abridged = Abridged::default();
            let one = vec![share(cause, "long", 70)];
            let three = ["a", "b", "c"].map(|name| share(cause, name, 30)).to_vec();
            abridged.add(late(70), 0, one);
            abridged.add(late(90), 0, three);
            let sections = crate::sections(abridged.longest(), None);
            let longest = sections.irq_off.or(sections.preempt_off).map(|share| share.ns);
            assert_eq!(longest, Some(70), "{name}");
            // Together they are what a bound needs.
            let together = abridged.longest().map(|blame| of(blame, is_section).sum::<u64>());
            assert_eq!(together.max(), Some(90), "{name}");
        }
    }

    #[test]
    fn culprits_without_end_take_no_room_without_end() {
        let mut abridged = Abridged::default();
        for n in 0..2 * MOST_CULPRITS {
            abridged.add(late(5), 0, vec![share(Cause::EqualOrLowerTask, &format!("task{n}"), 5)]);
        }
        assert_eq!(abridged.groups.all.len(), MOST_CULPRITS + 1);
        let rows = rank(abridged.parts(0, Lateness::Whole));
        let sum: u64 = rows.iter().map(|row| row.total_ns).sum();
        assert_eq!(sum, count(&abridged, 0) * 5);
    }
}
