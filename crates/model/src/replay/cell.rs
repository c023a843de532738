//! What was seen of one cell's run, replayed under rules: how late its wakeups would be, and those of cells like it.

use std::borrow::Cow;
use std::ops::Range;

use wakescope_core::percentile::Percentile;
use wakescope_core::predict::{Measured, Path};
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;

use super::edges::Seen;
use super::idle::longer_ns;
use super::interrupts::{Interrupt, interrupted, let_go, on_way};
use super::own::{Way, arrivals, ways};
use super::predict::Unpredictable;
use super::resample::Resampler;
use super::{Breaks, Grid, Recorded, SlowExit, Wait, Waited, waits};
use crate::rules::Rules;

/// Phases of the grid that are replayed.
pub(super) const PHASES: u32 = 256;

/// The most wakeups of a phase: in all phases they take 6 kB each.
pub(super) const MOST_WAKEUPS: u64 = 1 << 18;

/// How often each phase is drawn anew.
const DRAWS: usize = 4;

/// What the draws begin with: each prediction of a cell is the same.
const SEED: u64 = 1;

/// What figures are shown, in this order: p50, p99, p99.9 and the maximum; each `None` if too few wakeups carry it, ns.
pub(super) type FiguresOfPhase = [Option<u64>; 4];

/// The figures of each phase of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// As it was recorded.
    pub(super) phases: Vec<FiguresOfPhase>,
    /// Drawn anew, which is what other cells may measure.
    pub(super) drawn: Vec<FiguresOfPhase>,
    /// The latest wakeup that could be due at any moment, ns.
    pub(super) longest_ns: u64,
}

/// A cell's course, and what its wakeups take that nothing holds up.
pub(super) struct Replay {
    pub(super) seen: Seen,
    grid: Grid,
    pub(super) wakeups: u64,
    /// Ways of wakeups, one at least.
    ways: Vec<Way>,
    /// Of the cell's own wakeups: when the interrupt would have come that nothing held up, ns, and the way.
    own: Vec<(u64, Way)>,
}

/// What delays wakeups of a cell under rules, with some of it broken up.
pub(super) struct Delays<'a> {
    /// How long they wait.
    parts: Vec<Wait>,
    /// What comes on their ways.
    interrupts: Cow<'a, [Interrupt]>,
    /// Where these begin in a sleep whose way out is longer.
    slow_exits: &'a [SlowExit],
}

/// The latest wakeup of all moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatestWakeup {
    /// In which it is due.
    part: Wait,
    /// How it waits.
    wait: Waited,
    /// How late it is, ns.
    pub(super) ns: u64,
}

impl Replay {
    pub(super) fn of(seen: Seen, run: &Run, own_rules: &Rules) -> Result<Self, Unpredictable> {
        let (interval_ns, window_ns) = (run.plan.interval_ns, seen.course.length_ns());
        if window_ns.checked_div(interval_ns).is_none_or(|wakeups| wakeups > MOST_WAKEUPS) {
            let (interval, window) = (SpanNs(interval_ns), SpanNs(window_ns));
            return Err(Unpredictable::Interval { interval, window });
        }
        let own = arrivals(&seen.own, interval_ns).into_iter().zip(ways(&seen.own));
        let own: Vec<(u64, Way)> = own.filter_map(|(at, way)| Some((at, way?))).collect();
        let ways: Vec<Way> = own.iter().map(|(_, way)| *way).collect();
        let (known, all) = (ways.len() as u64, run.woken().count);
        if known < all.div_ceil(2).max(1) {
            return Err(Unpredictable::Wakeups { seen: known, all });
        }
        let grid = Grid { interval_ns, phases: PHASES };
        let wakeups = run.expiries().count;
        let mut replay = Self { seen, grid, wakeups, ways, own };
        let delivery_ns = replay.delivery_ns(own_rules, run.woken().min_ns);
        replay.delivered_after(delivery_ns);
        Ok(replay)
    }

    fn recorded(&self) -> Recorded<'_> {
        let Seen { course, sections, mentions, .. } = &self.seen;
        Recorded { course, sections, mentions }
    }

    /// Under `rules`, with what `breaks` says broken up.
    pub(super) fn delays(&self, rules: &Rules, breaks: &Breaks) -> Delays<'_> {
        let Seen { course, interrupts, slow_exits, .. } = &self.seen;
        let cuts = self.recorded().cuts(breaks);
        let interrupts = let_go(interrupts, course, &cuts);
        Delays { parts: waits(course, rules, &cuts), interrupts, slow_exits }
    }

    /// From the expiry to the interrupt, ns: what the earliest wakeup that the cell measured took longer than the
    /// earliest one here. That is not always the one with the shortest way. (6.16, launch: one of 2,000 had a way that
    /// was 0.4 us shorter than all others, and had waited before.)
    fn delivery_ns(&self, own_rules: &Rules, measured_ns: Option<u64>) -> u64 {
        let delays = self.delays(own_rules, &Breaks::default());
        let earliest_ns = self.own_latencies(&delays).first().copied();
        let both = measured_ns.zip(earliest_ns);
        both.map_or(0, |(measured_ns, own_ns)| measured_ns.saturating_sub(own_ns))
    }

    /// Each wakeup takes longer by this.
    fn delivered_after(&mut self, delivery_ns: u64) {
        let own = self.own.iter_mut().map(|(_, way)| way);
        for way in self.ways.iter_mut().chain(own) {
            way.to_scheduler_ns += delivery_ns;
        }
    }

    pub(super) fn path(&self) -> Path {
        let ways = || self.ways.iter().map(|way| way.ns());
        Path {
            wakeups: self.ways.len() as u64,
            min_ns: ways().min().unwrap_or(0),
            median_ns: self.median_way().ns(),
            max_ns: ways().max().unwrap_or(0),
        }
    }

    /// The way that half of them are no longer than.
    fn median_way(&self) -> Way {
        let mut ways = self.ways.clone();
        ways.sort_unstable_by_key(|way| way.ns());
        ways.get(ways.len() / 2).copied().unwrap_or_default()
    }

    /// `None` if nobody is late under these rules, for no wakeup counts.
    pub(super) fn sample(&self, rules: &Rules, breaks: &Breaks) -> Option<Sample> {
        let delays = self.delays(rules, breaks);
        let waits = self.phases(&delays);
        let phases: Vec<_> =
            waits.iter().map(|phase| figures(&self.in_turn(&delays, phase))).collect();
        let mut resampler = Resampler::new(SEED);
        let drawn: Vec<_> = std::iter::repeat_n(&waits, DRAWS)
            .flatten()
            .map(|phase| figures(&self.drawn(&delays, phase, &mut resampler)))
            .collect();
        // No phase may be later, nor the cell's own wakeups: some ways are longer than the median.
        let latest = phases.iter().chain(&drawn).filter_map(|[.., max_ns]| *max_ns).max()?;
        let own = self.own_latencies(&delays).last().copied();
        let of_any_phase = self.latest(&delays).map(|latest| latest.ns);
        let longest_ns = [of_any_phase, own].into_iter().flatten().fold(latest, u64::max);
        Some(Sample { phases, drawn, longest_ns })
    }

    /// The latest wakeup of all moments, if its way is as long as half of them; of two, the first. `None` if none counts.
    pub(super) fn latest(&self, delays: &Delays) -> Option<LatestWakeup> {
        let way = self.median_way();
        let latest = |part: &Wait| {
            // Where nobody waits, those are latest who are due just before an interrupt, or in a sleep.
            let nobody_waits = part.longest.is_some_and(|wait| wait.ns == 0) && !part.is_own;
            let moments = nobody_waits.then(|| delays.late_moments(part.from_ns..part.to_ns));
            let last_ns = part.to_ns.saturating_sub(1).max(part.from_ns);
            let moments = moments.into_iter().flatten().chain([part.from_ns, last_ns]);
            let waits = moments.filter_map(|at_ns| part.at(at_ns));
            let late = |wait| LatestWakeup { part: *part, wait, ns: delays.latency_ns(wait, way) };
            waits.map(late).max_by_key(|latest| latest.ns)
        };
        let counted = delays.parts.iter().filter(|part| part.counts).filter_map(latest);
        counted.rev().max_by_key(|latest| latest.ns)
    }

    /// What is behind it and not broken yet: what keeps the CPU for longer than `every_ns` while it waits, or in
    /// interrupts that come on its way.
    pub(super) fn behind(
        &self,
        latest: &LatestWakeup,
        delays: &Delays,
        every_ns: u64,
        breaks: &Breaks,
    ) -> Vec<u32> {
        let recorded = self.recorded();
        let mut functions = recorded.behind(&latest.part, every_ns, breaks);
        for interrupt in delays.on_way(latest.wait, self.median_way()) {
            let to_ns = interrupt.from_ns.saturating_add(interrupt.length_ns);
            for id in recorded.keeping(interrupt.from_ns, to_ns, every_ns, breaks) {
                if !functions.contains(&id) {
                    functions.push(id);
                }
            }
        }
        functions
    }

    /// What the cell would have measured if the replay were right: of each expiry, also those that came while the probe
    /// was late for one before.
    pub(super) fn at_its_own(&self, rules: &Rules) -> Measured {
        let woken = self.own_latencies(&self.delays(rules, &Breaks::default()));
        let interval_ns = self.grid.interval_ns.max(1);
        let expiries =
            |late_ns: u64| (0..=late_ns / interval_ns).map(move |n| late_ns - n * interval_ns);
        let all = sorted(woken.into_iter().flat_map(expiries));
        let [p50_ns, p99_ns, p999_ns, max_ns] = figures(&all);
        Measured { p50_ns, p99_ns, p999_ns, max_ns }
    }

    /// How late the cell's own wakeups are, sorted.
    fn own_latencies(&self, delays: &Delays) -> Vec<u64> {
        let parts = &delays.parts;
        let latency = |&(at_ns, way): &(u64, Way)| {
            let part = parts.get(parts.partition_point(|part| part.to_ns <= at_ns))?;
            Some(delays.latency_ns(part.at(at_ns)?, way))
        };
        sorted(self.own.iter().filter_map(latency))
    }

    /// How wakeups wait, for each phase of the grid that has about as many of them as others.
    fn phases(&self, delays: &Delays) -> Vec<Vec<Waited>> {
        let mut waits = self.grid.waits(&delays.parts);
        let most = waits.iter().map(Vec::len).max().unwrap_or(0);
        waits.retain(|phase| phase.len() * 2 > most);
        waits
    }

    /// The latencies of a phase, sorted; the ways of the probe's own wakeups in turn.
    fn in_turn(&self, delays: &Delays, phase: &[Waited]) -> Vec<u64> {
        let ways = self.ways.iter().cycle();
        sorted(phase.iter().zip(ways).map(|(wait, way)| delays.latency_ns(*wait, *way)))
    }

    /// Latencies of a phase that is drawn anew, sorted.
    fn drawn(&self, delays: &Delays, phase: &[Waited], resampler: &mut Resampler) -> Vec<u64> {
        let waits: Vec<Waited> = resampler.blocks(phase).copied().collect();
        let latency = |wait: Waited| {
            let way = resampler.one(&self.ways).unwrap_or_default();
            delays.latency_ns(wait, way)
        };
        sorted(waits.into_iter().map(latency))
    }
}

impl Delays<'_> {
    /// How late a wakeup is that waits like this: with its way to the program, and what comes on it.
    fn latency_ns(&self, wait: Waited, way: Way) -> u64 {
        let (before_ns, way_ns) = divided(wait, way);
        let way_ns = way_ns.saturating_add(longer_ns(self.slow_exits, wait.ends_ns));
        let on_way_ns = interrupted(&self.interrupts, wait.ends_ns, way_ns);
        wait.ns.saturating_add(before_ns).saturating_add(on_way_ns)
    }

    /// Where something begins in this time that makes the ways of wakeups longer, ns.
    fn late_moments(&self, within: Range<u64>) -> impl Iterator<Item = u64> {
        let interrupts = self.interrupts.iter().map(|other| other.from_ns);
        let first = self.interrupts.partition_point(|other| other.from_ns < within.start);
        let exits = self.slow_exits.iter().map(|exit| exit.from_ns);
        let first_exit = self.slow_exits.partition_point(|exit| exit.from_ns < within.start);
        let end = within.end;
        let until = move |at_ns: &u64| *at_ns < end;
        interrupts.skip(first).take_while(until).chain(exits.skip(first_exit).take_while(until))
    }

    /// Interrupts that come on the way of such a wakeup.
    fn on_way(&self, wait: Waited, way: Way) -> &[Interrupt] {
        let way_ns = divided(wait, way).1;
        let way_ns = way_ns.saturating_add(longer_ns(self.slow_exits, wait.ends_ns));
        on_way(&self.interrupts, wait.ends_ns, way_ns)
    }
}

/// What of its way a wakeup went before its wait was over, and what is left then, ns: one whose interrupt was handled
/// before goes to the scheduler at once.
fn divided(wait: Waited, way: Way) -> (u64, u64) {
    match wait.is_handled {
        true => (way.to_scheduler_ns, way.to_program_ns),
        false => (0, way.ns()),
    }
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// The value at `percentile` of values in order, if there are enough.
fn percentile(sorted: &[u64], percentile: Percentile) -> Option<u64> {
    let count = sorted.len() as u64;
    let place = usize::try_from(percentile.rank(count)).ok()?.checked_sub(1)?;
    sorted.get(place).copied().filter(|_| percentile.is_carried_by(count))
}

/// What is shown of sorted latencies.
fn figures(sorted: &[u64]) -> FiguresOfPhase {
    let at = |place: usize| percentile(sorted, Percentile::SHOWN[place]);
    [at(0), at(1), at(2), sorted.last().copied()]
}

#[cfg(test)]
pub(super) mod tests;
