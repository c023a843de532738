//! The explanation of a stored run by today's rules: what its recorded episodes had is taken out of the
//! ranking, and what they get now is put in.

use std::collections::{BTreeMap, HashMap};

use crate::group::{Group, subject};
use crate::late::{Late, attribute};
use crate::net_of_steal::Lateness::{NetOfSteal, Whole};
use crate::net_of_steal::without_stolen;
use crate::rank::{rank_subject_sums, rank_sums};
use crate::timeline;
use wakescope_core::budget::{Budget, Entry, Exceeded};
use wakescope_core::episodes::{Attributed, without_stacks};
use wakescope_core::explain::{
    Anew, Answer, By, Cause, CauseRow, Change, Components, Frame, Known, Ranking, Sections, Share,
    SourceLine, Subject, stacks_mut,
};
use wakescope_core::run::{Episode, Run};

/// The most changes that the record lists.
const MOST_CHANGES: usize = 100;

/// Attributes the episodes of a run anew, one after the other.
///
/// Late wakeups that are not among them keep their part of the ranking: from the recorded rows the
/// recorded shares of the episodes are subtracted, to the nanosecond, and the new ones are added.
#[derive(Debug)]
pub struct Reattribution {
    anew: Anew,
    /// The least latency of a late wakeup, nanoseconds.
    above_ns: u64,
    causes: Exchange,
    /// The same of the ranking without stolen time, with the least latency that is late there.
    net: Option<(u64, Exchange, Listed)>,
    /// The late time by subjects, if that is asked for.
    subjects: Option<(By, BTreeMap<Subject, Sum>)>,
    changes: HashMap<(Answer, Answer), (u64, u64)>,
    components_before: Components,
    components_after: Components,
    sections: LongestSections,
    listed: Listed,
    origin_ns: u64,
}

/// A list of the worst wakeups.
#[derive(Debug)]
struct Listed {
    /// Their places, by expiry and latency.
    places: HashMap<(u64, u64), usize>,
    worst: Vec<Episode>,
}

/// The causes whose shares are exchanged in a ranking.
#[derive(Debug, Default)]
struct Exchange {
    /// The recorded ranking.
    rows: BTreeMap<Group, Sum>,
    /// By the rows that the shares are part of.
    moved: BTreeMap<Group, Moved>,
}

/// The shares of a cause, before and after.
#[derive(Debug, Default)]
struct Moved {
    before: Sum,
    after: Sum,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    episodes: u64,
    total_ns: u64,
    worst_ns: u64,
}

impl Sum {
    fn add(&mut self, ns: u64) {
        self.episodes = self.episodes.saturating_add(1);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.worst_ns = self.worst_ns.max(ns);
    }
}

/// The longest sections: those of the record, and those of the episodes by today's rules.
#[derive(Debug, Default)]
struct LongestSections {
    recorded: [Option<Share>; 2],
    /// Whether the recorded one is of an episode, so that it is attributed anew.
    is_stored: [bool; 2],
    found: [Option<Share>; 2],
}

impl Reattribution {
    /// Of `run`, which is an explained one. `by`: what else its late time is to be ranked by.
    pub fn of(run: &Run, by: Option<By>) -> Self {
        let recorded = run.explanation.as_ref().and_then(|explained| explained.sections.as_ref());
        let recorded = recorded.filter(|sections| !sections.exact).map(|sections| {
            let Sections { irq_off, preempt_off, .. } = sections;
            [irq_off.clone(), preempt_off.clone()]
        });
        let net = run.net_of_steal.as_ref();
        Self {
            anew: Anew::default(),
            above_ns: run.explanation.as_ref().map_or(0, |explanation| explanation.above_ns),
            causes: Exchange::of(&run.causes),
            net: net.map(|net| (net.above_ns, Exchange::of(&net.causes), Listed::of(&net.worst))),
            subjects: by.map(|by| (by, BTreeMap::new())),
            changes: HashMap::new(),
            components_before: Components::default(),
            components_after: Components::default(),
            sections: LongestSections {
                recorded: recorded.unwrap_or_default(),
                ..LongestSections::default()
            },
            listed: Listed::of(&run.worst),
            origin_ns: run.origin_ns,
        }
    }

    /// Attributes an episode anew, with what the run taught about its wakeups.
    ///
    /// # Errors
    /// If there are more causes than the budget has room for.
    pub fn add(
        &mut self,
        episode: Attributed,
        known: &Known,
        budget: &Budget,
    ) -> Result<(), Exceeded> {
        let Attributed { wakeup, components: components_before, blame: mut before } = episode;
        let new = attribute(wakeup, known);
        before.iter_mut().for_each(reduce_to_answer);
        let mut after = new.blame.clone();
        after.iter_mut().for_each(reduce_to_answer);
        let is_changed = before != after || components_before != new.components;
        let mut is_late_net = false;
        if let Some((above_ns, causes, listed)) = &mut self.net {
            is_late_net = new.ns(NetOfSteal) >= *above_ns;
            if is_late_net {
                let stolen_ns = new.stolen_ns();
                let net = |blame: &[Share]| without_stolen(blame, stolen_ns);
                causes.add(&net(&before), &net(&after), budget)?;
            }
            listed.update(&new, is_changed, self.origin_ns);
        }
        let is_late = new.ns(Whole) >= self.above_ns;
        if is_changed && (is_late || is_late_net) {
            match is_late {
                true => self.anew.changed += 1,
                false => self.anew.changed_net_of_steal += 1,
            }
            self.change(&grouped(&before, &after, |group| group), budget)?;
        }
        // Some are late only without stolen time, because others lost more to that.
        if !is_late {
            return Ok(());
        }
        self.anew.episodes += 1;
        self.components_before = self.components_before.plus(&components_before);
        self.components_after = self.components_after.plus(&new.components);
        self.sections.see(&before, &new.blame);
        self.causes.add(&before, &after, budget)?;
        self.add_subjects(&after, budget)?;
        self.listed.update(&new, is_changed, self.origin_ns);
        Ok(())
    }

    fn add_subjects(&mut self, blame: &[Share], budget: &Budget) -> Result<(), Exceeded> {
        let Some((by, sums)) = &mut self.subjects else { return Ok(()) };
        let mut own: BTreeMap<Subject, u64> = BTreeMap::new();
        for share in blame.iter().filter(|share| share.ns > 0) {
            let sum = own.entry(subject(share, *by)).or_default();
            *sum = sum.saturating_add(share.ns);
        }
        for (subject, ns) in own {
            if !sums.contains_key(&subject) {
                budget.keep(1, Entry::CAUSE)?;
            }
            sums.entry(subject).or_default().add(ns);
        }
        Ok(())
    }

    /// Notes what lost and what got the most time of an episode.
    fn change(&mut self, moved: &Moves, budget: &Budget) -> Result<(), Exceeded> {
        let more =
            |[less, more]: &[Option<u64>; 2]| more.unwrap_or(0).saturating_sub(less.unwrap_or(0));
        let less = |&[was, is]: &[Option<u64>; 2]| more(&[is, was]);
        let largest = || moved.iter().max_by_key(|(_, [was, _])| *was).map(|(group, _)| group);
        let most = |by: &dyn Fn(&[Option<u64>; 2]) -> u64| {
            let most = moved.iter().max_by_key(|(_, sums)| by(sums));
            most.filter(|(_, sums)| by(sums) > 0).map(|(group, _)| group).or_else(largest)
        };
        let answer = |group: Option<&Group>| group.map(Group::answer).unwrap_or_default();
        let key = (answer(most(&less)), answer(most(&more)));
        let ns = moved.values().map(more).fold(0, u64::saturating_add);
        if !self.changes.contains_key(&key) {
            budget.keep(1, Entry::CAUSE)?;
        }
        let (episodes, sum) = self.changes.entry(key).or_default();
        *episodes += 1;
        *sum = sum.saturating_add(ns);
        Ok(())
    }

    /// Puts the new answers into `run`. So many lines of its episodes were damaged.
    pub fn finish(self, run: &mut Run, damaged_lines: u64) {
        let lines = lines_of(run);
        let mut anew = self.anew;
        let mut ranked = |exchange: Exchange, recorded: &mut Vec<CauseRow>| {
            let (rows, excess_ns) = exchange.ranked();
            anew.excess_ns = anew.excess_ns.saturating_add(excess_ns);
            *recorded = rows;
        };
        ranked(self.causes, &mut run.causes);
        run.worst = self.listed.worst;
        if let (Some((_, exchange, listed)), Some(net)) = (self.net, &mut run.net_of_steal) {
            ranked(exchange, &mut net.causes);
            net.worst = listed.worst;
        }
        let late = run.explanation.as_ref().map_or(0, |explanation| explanation.late);
        let is_own = |own: &Ranking, by| own.by == by && own.complete && anew.changed == 0;
        // The recorded one is of wakeups that are not stored, too; it holds as long as no answer changed.
        let subjects = self
            .subjects
            .filter(|(by, _)| run.ranking.as_ref().is_none_or(|own| !is_own(own, *by)));
        if let Some((by, sums)) = subjects {
            let sums = sums.into_iter().map(|(subject, sum)| sum.of(subject));
            let (wakeups, complete) = (anew.episodes, anew.episodes == late);
            run.ranking = Some(Ranking { by, wakeups, complete, rows: rank_subject_sums(sums) });
        }
        anew.damaged_lines = damaged_lines;
        anew.changes = changes(self.changes);
        if let Some(explanation) = &mut run.explanation {
            let late = explanation.late_components.unwrap_or_default();
            let late = late.minus(&self.components_before).plus(&self.components_after);
            explanation.late_components = Some(late);
            if let Some(sections) = explanation.sections.as_mut().filter(|s| !s.exact) {
                [sections.irq_off, sections.preempt_off] = self.sections.longest();
            }
            explanation.anew = Some(anew);
        }
        put_lines(run, &lines);
    }
}

impl Listed {
    fn of(worst: &[Episode]) -> Self {
        let key = |(place, episode): (usize, &Episode)| {
            ((episode.expiry_ns, episode.wakeup_latency_ns), place)
        };
        Self { places: worst.iter().enumerate().map(key).collect(), worst: worst.to_vec() }
    }

    /// Puts a new answer into the list. One that is as recorded stays, with its lines of source.
    fn update(&mut self, new: &Attributed, is_changed: bool, origin_ns: u64) {
        let key = (new.expiry_ns(origin_ns), new.wakeup_latency_ns());
        let Some(&place) = self.places.get(&key) else { return };
        let listed = &mut self.worst[place];
        if listed.cpu.is_some_and(|cpu| cpu != new.wakeup.cpu) {
            return;
        }
        listed.timeline = timeline(&new.wakeup);
        if is_changed || listed.blame.is_empty() {
            listed.components = Some(new.components);
            listed.blame.clone_from(&new.blame);
        }
        let gap = new.blame.iter().find_map(|share| share.gap);
        let unexplained = listed.blame.iter_mut().filter(|one| one.cause == Cause::Unexplained);
        unexplained.for_each(|share| share.gap = gap);
    }
}

/// Reduces a share to its answer. The gap is no part of that: older versions gave the same answer without one.
fn reduce_to_answer(share: &mut Share) {
    without_stacks(share);
    share.gap = None;
}

impl Exchange {
    fn of(recorded: &[CauseRow]) -> Self {
        let mut rows: BTreeMap<Group, Sum> = BTreeMap::new();
        for row in recorded {
            let sum = rows.entry(Group::of(row.blamed())).or_default();
            sum.episodes = sum.episodes.saturating_add(row.episodes);
            sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
            sum.worst_ns = sum.worst_ns.max(row.worst_ns);
        }
        Self { rows, moved: BTreeMap::new() }
    }

    /// The row that a cause is part of: without one of its own, that of others, if there is one.
    fn row_of(&self, group: Group) -> Group {
        let others = Group::others(group.cause);
        let is_other = !self.rows.contains_key(&group) && self.rows.contains_key(&others);
        if is_other { others } else { group }
    }

    /// Adds the shares of an episode. Those in the same row count once, as in the recorded ranking.
    fn add(&mut self, before: &[Share], after: &[Share], budget: &Budget) -> Result<(), Exceeded> {
        for (group, [was, is]) in grouped(before, after, |group| self.row_of(group)) {
            if !self.moved.contains_key(&group) {
                budget.keep(1, Entry::CAUSE)?;
            }
            let row = self.moved.entry(group).or_default();
            was.iter().for_each(|&ns| row.before.add(ns));
            is.iter().for_each(|&ns| row.after.add(ns));
        }
        Ok(())
    }

    /// The recorded rows with the shares of the episodes exchanged, and by how much these exceeded what
    /// was recorded, nanoseconds.
    fn ranked(self) -> (Vec<CauseRow>, u64) {
        let Self { mut rows, moved } = self;
        let mut excess = 0_u64;
        for (group, Moved { before, after }) in moved {
            let row = rows.entry(group).or_default();
            excess = excess.saturating_add(before.total_ns.saturating_sub(row.total_ns));
            row.exchange(&before, &after);
        }
        rows.retain(|_, sum| sum.total_ns > 0);
        (rank_sums(rows.into_iter().map(|(group, sum)| sum.of(group))), excess)
    }
}

impl Sum {
    fn of<K>(self, key: K) -> (K, u64, u64, u64) {
        (key, self.episodes, self.total_ns, self.worst_ns)
    }

    fn plus(&mut self, other: &Self) {
        self.episodes = self.episodes.saturating_add(other.episodes);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.worst_ns = self.worst_ns.max(other.worst_ns);
    }

    /// Takes `before` out of a recorded row and puts `after` in. The largest share of what was not
    /// attributed anew is known unless the recorded largest is among `before`; then it is at most that,
    /// and at most what is left.
    fn exchange(&mut self, before: &Self, after: &Self) {
        if before == after {
            return;
        }
        self.episodes = self.episodes.saturating_sub(before.episodes);
        self.total_ns = self.total_ns.saturating_sub(before.total_ns);
        self.worst_ns = self.worst_ns.min(self.total_ns);
        self.plus(after);
    }
}

/// The shares of an episode by what they are grouped by, before and after, nanoseconds.
type Moves = BTreeMap<Group, [Option<u64>; 2]>;

fn grouped(before: &[Share], after: &[Share], row_of: impl Fn(Group) -> Group) -> Moves {
    let mut sums = Moves::new();
    for (side, shares) in [before, after].into_iter().enumerate() {
        for share in shares.iter().filter(|share| share.ns > 0) {
            let sum = &mut sums.entry(row_of(Group::of(share.blamed()))).or_default()[side];
            *sum = Some(sum.unwrap_or(0).saturating_add(share.ns));
        }
    }
    sums
}

fn changes(all: HashMap<(Answer, Answer), (u64, u64)>) -> Vec<Change> {
    let change = |((before, after), (episodes, ns))| Change { before, after, episodes, ns };
    let mut all: Vec<Change> = all.into_iter().map(change).collect();
    all.sort_unstable_by(|a, b| {
        let key = |c: &Change| (c.episodes, c.ns);
        key(b).cmp(&key(a)).then_with(|| (&a.before, &a.after).cmp(&(&b.before, &b.after)))
    });
    all.truncate(MOST_CHANGES);
    all
}

impl LongestSections {
    const KINDS: [fn(Cause) -> bool; 2] = [
        |cause| cause == Cause::IrqOff,
        |cause| matches!(cause, Cause::PreemptOff | Cause::NoPreemptionPoint),
    ];

    fn see(&mut self, before: &[Share], after: &[Share]) {
        for (i, is_of_kind) in Self::KINDS.iter().enumerate() {
            if let Some(recorded) = self.recorded[i].as_ref().filter(|_| !self.is_stored[i]) {
                let same = |share: &Share| share.ns == recorded.ns && is_same(share, recorded);
                self.is_stored[i] = before.iter().any(same);
            }
            let sections = after.iter().filter(|share| is_of_kind(share.cause));
            // Of equal ones the first counts, as in the ranking.
            let longest = sections.reduce(|a, b| if b.ns > a.ns { b } else { a });
            let found = &mut self.found[i];
            if let Some(longest) = longest {
                if found.as_ref().is_none_or(|found| longest.ns > found.ns) {
                    *found = Some(longest.clone());
                }
            }
        }
    }

    fn longest(self) -> [Option<Share>; 2] {
        let Self { recorded, is_stored, found } = self;
        let mut longest = recorded;
        for ((longest, is_stored), found) in longest.iter_mut().zip(is_stored).zip(found) {
            let is_as_recorded = match (&*longest, &found) {
                (Some(recorded), Some(found)) => {
                    (found.ns == recorded.ns && is_same(found, recorded))
                        || (!is_stored && found.ns <= recorded.ns)
                }
                (Some(_), None) => !is_stored,
                (None, _) => false,
            };
            if !is_as_recorded {
                *longest = found;
            }
        }
        longest
    }
}

fn is_same(share: &Share, other: &Share) -> bool {
    (share.cause, &share.culprit, &share.within) == (other.cause, &other.culprit, &other.within)
}

/// A line of source, with those of inlined functions.
type Lines = (Option<String>, u32, Vec<SourceLine>);
type Place = (Option<String>, u64, Option<String>);

fn place_of(frame: &Frame) -> Place {
    (frame.function.clone(), frame.offset, frame.module.clone())
}

/// The lines of source that the record holds. Episodes have none: they were looked up for the record.
fn lines_of(run: &mut Run) -> HashMap<Place, Lines> {
    let frames = stacks_mut(run).flat_map(|stack| &*stack).filter(|frame| frame.file.is_some());
    let lines = |f: &Frame| (place_of(f), (f.file.clone(), f.line, f.inlined.clone()));
    frames.map(lines).collect()
}

fn put_lines(run: &mut Run, lines: &HashMap<Place, Lines>) {
    if lines.is_empty() {
        return;
    }
    for frame in stacks_mut(run).flatten().filter(|frame| frame.file.is_none()) {
        if let Some((file, line, inlined)) = lines.get(&place_of(frame)) {
            frame.file.clone_from(file);
            frame.line = *line;
            frame.inlined.clone_from(inlined);
        }
    }
}

#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod tests;
