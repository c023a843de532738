//! What a cell of the lab would have measured under other rules, with what is broken up.

use wakescope_core::percentile::Percentile;
use wakescope_core::predict::{
    Break, Latencies, Measured, NotRepeated, Path, Predicted, Prediction, Range, Ranking, Reach,
    SCHEMA, Step,
};
use wakescope_core::preemption::Model;
use wakescope_core::run::Run;
use wakescope_core::scope::edges::Edges;

use super::edges::{Probe, Seen};
use super::interrupts::interrupted;
use super::own::{Way, arrivals, ways};
use super::resample::Resampler;
use super::{Breaks, Figures, Grid, Interrupt, Recorded, Wait, Waited};
use crate::rules::Rules;

/// Phases of the grid that are replayed.
const PHASES: u32 = 256;

/// How often each phase is drawn anew.
const DRAWS: usize = 4;

/// What the draws begin with: each prediction of a cell is the same.
const SEED: u64 = 1;

/// How far the replay of the wakeups that a cell measured was off from that, at most, in percent: what is meant to be
/// within a range may be that far outside. (Of 48 cells of five kernels, p99, p99.9 and the maximum.)
const ERROR_PERCENT: u64 = 1;

/// Steps of a ranking.
const STEPS: usize = 3;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Functions by name, and how long each keeps the CPU at most, ns.
    pub breaks: Vec<(String, u64)>,
    /// The longest section, ns.
    pub limit_sections_ns: Option<u64>,
    /// How long what the ranking proposes keeps the CPU at most, ns.
    pub every_ns: u64,
}

/// Why nothing can be predicted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpredictable {
    /// The probe is no real-time task.
    #[error(
        "the probe's policy is {0}, so the scheduler decides when it runs, which no replay knows"
    )]
    Policy(String),
    /// The model that ran is not known.
    #[error("it is not known which preemption model the cell ran")]
    Model,
    /// No such function was seen.
    #[error("no section or switch of {0} was seen, so it cannot be broken up")]
    Function(String),
    /// There is nothing to replay.
    #[error("the emulator saw nothing of the time in which the cell measured")]
    Nothing,
    /// How long a wakeup takes that nothing holds up is known of too few wakeups, or of none.
    #[error("the emulator recognised only {seen} of the probe's {all} wakeups")]
    Wakeups {
        /// Wakeups of which each step was seen.
        seen: u64,
        /// Wakeups of the cell.
        all: u64,
    },
}

/// The rules of a model.
fn rules(model: Model) -> Option<Rules> {
    Rules::named(match model {
        Model::None => "none",
        Model::Voluntary => "voluntary",
        Model::Full => "full",
        Model::Lazy => "lazy",
        Model::Rt => "rt",
        Model::Unknown => return None,
    })
}

/// How far the prediction of `model` goes from what was seen of a kernel that ran `recorded`.
fn reach(recorded: Model, model: Model, seen: &Seen) -> Reach {
    use Model::{Full, Lazy, None, Rt, Voluntary};
    match (recorded, model) {
        (Rt, Rt) => Reach::Whole,
        (Rt, _) => Reach::OtherKernel,
        (_, Rt) => Reach::SpinLocks,
        (_, Full | Lazy) => Reach::Whole,
        _ if seen.knows_asks => Reach::Whole,
        // Kernels that preempt do not ask, or nobody sees it.
        (Full | Lazy, None | Voluntary) => Reach::AtMost,
        (None | Voluntary, None | Voluntary) if !seen.asks => Reach::AtMost,
        // Only voluntary asks wherever it might sleep, too.
        (None, Voluntary) => Reach::AtMost,
        (Voluntary, None) => Reach::AtLeast,
        _ => Reach::Whole,
    }
}

/// Replays what was seen of a cell's run.
///
/// # Errors
/// If nothing can be predicted of it.
pub fn predict(edges: &Edges, run: &Run, question: &Question) -> Result<Prediction, Unpredictable> {
    let priority = run.plan.priority.filter(|_| run.plan.policy.has_priority());
    let prio = match (run.plan.policy.to_string().as_str(), priority) {
        ("deadline", _) => -1,
        (_, Some(priority)) => 99 - i32::from(priority),
        (policy, None) => return Err(Unpredictable::Policy(policy.into())),
    };
    let recorded = run.host.preemption.model;
    let own_rules = rules(recorded).ok_or(Unpredictable::Model)?;
    if edges.edges.is_empty() {
        return Err(Unpredictable::Nothing);
    }
    let seen = Seen::of(edges, Probe { prio }, own_rules.preempt_enable_schedules);
    let breaks = breaks(edges, question)?;
    let replay = Replay::of(&seen, run, &own_rules)?;
    let has_breaks = !breaks.functions.is_empty() || breaks.limit_ns.is_some();
    let models = [Model::None, Model::Voluntary, Model::Full, Model::Lazy, Model::Rt];
    let predicted = models.map(|model| {
        let reach = reach(recorded, model, &seen);
        let rules =
            rules(model).filter(|_| !matches!(reach, Reach::SpinLocks | Reach::OtherKernel));
        let latencies = |breaks: &Breaks| rules.and_then(|rules| replay.latencies(&rules, breaks));
        let as_recorded = latencies(&Breaks::default());
        let broken = has_breaks.then(|| latencies(&breaks)).flatten();
        Predicted { model, reach, as_recorded, broken }
    });
    let sections_of = |name: &String, every: u64| {
        let id = edges
            .functions
            .iter()
            .position(|known| known == name)
            .and_then(|id| u32::try_from(id).ok());
        let is_own = |section: &&super::Section| section.functions.contains(&id) && id.is_some();
        let is_longer =
            |section: &&super::Section| section.to_ns.saturating_sub(section.from_ns) > every;
        seen.sections.iter().filter(is_own).filter(is_longer).count() as u64
    };
    let broken = question.breaks.iter().map(|(function, every_ns)| Break {
        function: function.clone(),
        every_ns: *every_ns,
        sections: sections_of(function, *every_ns),
    });
    let measured = measured(run);
    let replayed = replay.at_its_own(&own_rules);
    let of_recorded = predicted.iter().find(|of| of.model == recorded);
    let phases = of_recorded.and_then(|of| of.as_recorded).unwrap_or_default();
    Ok(Prediction {
        schema: SCHEMA.into(),
        recorded,
        window_ns: edges.measured_until_ns.saturating_sub(edges.window_ns.start),
        interval_ns: run.plan.interval_ns,
        phases: PHASES,
        wakeups: replay.wakeups,
        path: replay.path(),
        not_repeated: NotRepeated::of(&measured, &replayed, &phases),
        measured,
        replayed,
        breaks: broken.collect(),
        limit_sections_ns: question.limit_sections_ns,
        models: predicted.into(),
        next: Some(replay.ranking(recorded, &own_rules, &breaks, question.every_ns, edges)),
        ..Prediction::default()
    })
}

fn breaks(edges: &Edges, question: &Question) -> Result<Breaks, Unpredictable> {
    let of = |(name, every_ns): &(String, u64)| {
        let id = edges.functions.iter().position(|known| known == name);
        let id = id.and_then(|id| u32::try_from(id).ok());
        Ok((id.ok_or_else(|| Unpredictable::Function(name.clone()))?, *every_ns))
    };
    let functions = question.breaks.iter().map(of).collect::<Result<_, _>>()?;
    Ok(Breaks { functions, limit_ns: question.limit_sections_ns })
}

fn measured(run: &Run) -> Measured {
    let all = run.expiries();
    let at = |place: usize| all.percentile(Percentile::SHOWN[place]);
    Measured { p50_ns: at(0), p99_ns: at(1), p999_ns: at(2), max_ns: all.max_ns }
}

struct Replay<'a> {
    recorded: Recorded<'a>,
    interrupts: &'a [Interrupt],
    grid: Grid,
    wakeups: u64,
    /// Ways of wakeups, one at least.
    ways: Vec<Way>,
    /// Of the cell's own wakeups: when the interrupt would have come that nothing held up, ns, and the way.
    own: Vec<(u64, Way)>,
}

impl<'a> Replay<'a> {
    fn of(seen: &'a Seen, run: &Run, own_rules: &Rules) -> Result<Self, Unpredictable> {
        let recorded =
            Recorded { course: &seen.course, sections: &seen.sections, mentions: &seen.mentions };
        let own = arrivals(&seen.own, run.plan.interval_ns).into_iter().zip(ways(&seen.own));
        let own: Vec<(u64, Way)> = own.filter_map(|(at, way)| Some((at, way?))).collect();
        let ways: Vec<Way> = own.iter().map(|(_, way)| *way).collect();
        let (known, all) = (ways.len() as u64, run.woken().count);
        if known < all.div_ceil(2).max(1) {
            return Err(Unpredictable::Wakeups { seen: known, all });
        }
        let grid = Grid { interval_ns: run.plan.interval_ns, phases: PHASES };
        let (interrupts, wakeups) = (&seen.interrupts[..], run.expiries().count);
        let mut replay = Self { recorded, interrupts, grid, wakeups, ways, own };
        let delivery_ns = replay.delivery_ns(own_rules, run.woken().min_ns);
        replay.delivered_after(delivery_ns);
        Ok(replay)
    }

    /// From the expiry to the interrupt, ns: what the earliest wakeup that the cell measured took longer than the
    /// earliest one here. That is not always the one with the shortest way. (6.16, launch: one of 2,000 had a way that
    /// was 0.4 us shorter than all others, and had waited before.)
    fn delivery_ns(&self, own_rules: &Rules, measured_ns: Option<u64>) -> u64 {
        let parts = self.recorded.waits(own_rules, &Breaks::default());
        let earliest_ns = self.own_latencies(&parts).first().copied();
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

    fn path(&self) -> Path {
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

    fn latencies(&self, rules: &Rules, breaks: &Breaks) -> Option<Latencies> {
        let parts = self.recorded.waits(rules, breaks);
        let waits = self.phases(&parts);
        let phases: Vec<Vec<u64>> = waits.iter().map(|phase| self.in_turn(phase)).collect();
        let mut resampler = Resampler::new(SEED);
        let drawn: Vec<Vec<u64>> = std::iter::repeat_n(&waits, DRAWS)
            .flatten()
            .map(|phase| self.drawn(phase, &mut resampler))
            .collect();
        let figure = |of: &dyn Fn(&[u64]) -> Option<u64>| {
            let all = |of_each: &[Vec<u64>]| {
                Figures::of(of_each.iter().filter_map(|sorted| of(sorted)).collect())
            };
            Some(range(all(&phases)?, all(&drawn)?))
        };
        let at =
            |place: usize| figure(&|sorted: &[u64]| percentile(sorted, Percentile::SHOWN[place]));
        let max = figure(&|sorted: &[u64]| sorted.last().copied());
        max?;
        // No phase may be later, nor the cell's own wakeups: some ways are longer than the median.
        let latest = phases.iter().chain(&drawn).filter_map(|sorted| sorted.last().copied()).max();
        let own = self.own_latencies(&parts).last().copied();
        let of_any_phase = self.latest(&parts).map(|(_, ns)| ns);
        let longest_ns = [of_any_phase, latest, own].into_iter().flatten().max().unwrap_or(0);
        Some(Latencies { p50: at(0), p99: at(1), p999: at(2), max, longest_ns })
    }

    /// How late a wakeup is that waits like this: with its way to the program, and the interrupts that come on it.
    fn latency_ns(&self, wait: Waited, way: Way) -> u64 {
        // One whose interrupt was handled before the wait was over goes to the scheduler at once.
        let Way { to_scheduler_ns, to_program_ns } = way;
        let (before_ns, on_way_ns) = match wait.is_handled {
            true => (to_scheduler_ns, to_program_ns),
            false => (0, way.ns()),
        };
        let on_way_ns = interrupted(self.interrupts, wait.ends_ns, on_way_ns);
        wait.ns.saturating_add(before_ns).saturating_add(on_way_ns)
    }

    /// The part in which the latest wakeup of all moments is due, and how late that is, ns, if its way is as long as
    /// half of them; of two, the first. `None` if none counts.
    fn latest(&self, parts: &[Wait]) -> Option<(Wait, u64)> {
        let way = self.median_way();
        let at = |part: &Wait, due_ns: u64| part.at(due_ns).map(|wait| self.latency_ns(wait, way));
        let latest = |part: &Wait| {
            // Where nobody waits, those are latest who are due just before an interrupt.
            let nobody_waits = part.longest.is_some_and(|wait| wait.ns == 0) && !part.is_own;
            let begin = self.interrupts.partition_point(|other| other.from_ns < part.from_ns);
            let within = self.interrupts[begin..].iter().map(|other| other.from_ns);
            let within = within.take_while(|at_ns| nobody_waits && *at_ns < part.to_ns);
            let last_ns = part.to_ns.saturating_sub(1).max(part.from_ns);
            let due = within.chain([part.from_ns, last_ns]);
            Some((*part, due.filter_map(|due_ns| at(part, due_ns)).max()?))
        };
        let counted = parts.iter().filter(|part| part.counts).filter_map(latest);
        counted.rev().max_by_key(|(_, ns)| *ns)
    }

    /// What the cell would have measured if the replay were right: of each expiry, also those that came while the probe
    /// was late for one before.
    fn at_its_own(&self, rules: &Rules) -> Measured {
        let woken = self.own_latencies(&self.recorded.waits(rules, &Breaks::default()));
        let interval_ns = self.grid.interval_ns.max(1);
        let expiries =
            |late_ns: u64| (0..=late_ns / interval_ns).map(move |n| late_ns - n * interval_ns);
        let all = sorted(woken.into_iter().flat_map(expiries));
        let at = |place: usize| percentile(&all, Percentile::SHOWN[place]);
        Measured { p50_ns: at(0), p99_ns: at(1), p999_ns: at(2), max_ns: all.last().copied() }
    }

    /// How late the cell's own wakeups are, sorted.
    fn own_latencies(&self, parts: &[Wait]) -> Vec<u64> {
        let latency = |&(at_ns, way): &(u64, Way)| {
            let part = parts.get(parts.partition_point(|part| part.to_ns <= at_ns))?;
            Some(self.latency_ns(part.at(at_ns)?, way))
        };
        sorted(self.own.iter().filter_map(latency))
    }

    /// How wakeups wait, for each phase of the grid that has about as many of them as others.
    fn phases(&self, parts: &[Wait]) -> Vec<Vec<Waited>> {
        let mut waits = self.grid.waits(parts);
        let most = waits.iter().map(Vec::len).max().unwrap_or(0);
        waits.retain(|phase| phase.len() * 2 > most);
        waits
    }

    /// The latencies of a phase, sorted; the ways of the probe's own wakeups in turn.
    fn in_turn(&self, phase: &[Waited]) -> Vec<u64> {
        let ways = self.ways.iter().cycle();
        sorted(phase.iter().zip(ways).map(|(wait, way)| self.latency_ns(*wait, *way)))
    }

    /// Latencies of a phase that is drawn anew, sorted.
    fn drawn(&self, phase: &[Waited], resampler: &mut Resampler) -> Vec<u64> {
        let waits: Vec<Waited> = resampler.blocks(phase).copied().collect();
        let latency = |wait: Waited| {
            let way = resampler.one(&self.ways).unwrap_or_default();
            self.latency_ns(wait, way)
        };
        sorted(waits.into_iter().map(latency))
    }

    fn ranking(
        &self,
        model: Model,
        rules: &Rules,
        breaks: &Breaks,
        every_ns: u64,
        edges: &Edges,
    ) -> Ranking {
        let latest = |parts: &[Wait]| self.latest(parts);
        let steps = self.recorded.ranking(rules, breaks, every_ns, STEPS, &latest);
        let name = |id: u32| edges.functions.get(id as usize).cloned().unwrap_or_default();
        let steps = steps.into_iter().map(|step| Step {
            functions: step.functions.into_iter().map(name).collect(),
            before_ns: step.before_ns,
            after_ns: step.after_ns,
        });
        Ranking { model, every_ns, steps: steps.collect() }
    }
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

/// The median of a figure over the phases, and between what other cells are meant to measure it.
fn range(phases: Figures, drawn: Figures) -> Range {
    let error = |ns: u64| ns.saturating_mul(ERROR_PERCENT) / 100;
    let Figures { low_ns, high_ns, .. } = drawn;
    let (low_ns, high_ns) = (low_ns - error(low_ns), high_ns.saturating_add(error(high_ns)));
    let median_ns = phases.median_ns;
    Range { median_ns, low_ns: low_ns.min(median_ns), high_ns: high_ns.max(median_ns) }
}

/// The value at `percentile` of values in order, if there are enough.
fn percentile(sorted: &[u64], percentile: Percentile) -> Option<u64> {
    let count = sorted.len() as u64;
    let place = usize::try_from(percentile.rank(count)).ok()?.checked_sub(1)?;
    sorted.get(place).copied().filter(|_| percentile.is_carried_by(count))
}

#[cfg(test)]
mod tests;
