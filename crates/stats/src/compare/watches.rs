//! Watches against watches: what is compared beside all their waits together.
//!
//! The unit is the watch. Its windows share machine, boot, time of day and load, so they are no runs of
//! their own: taken as such, an ordinary week would differ from the next one with certainty.
//!
//! Groups of tasks are many, and each that is tested makes the correction for all the harder. So only as
//! many are tested as the runs can decide, and which these are does not depend on the sides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bounded::Ranges;
use super::effect::{figure, figures_within, geometric_mean};
use super::measured::{Measured, P50, P99, P999};
use super::results::{Results, of_quantity};
use super::words::word;
use super::{Compare, judged, times};
use super::{Effect, FIGURES, Figure, Labelled, OfQuantity, Options, Refusal, Verdict, effect};
use crate::equal_count::{equal_count, mean_maximum_range};
use crate::equal_share::Share;
use crate::unpaired::can_decide;
use wakescope_core::distribution::Distribution;
use wakescope_core::source::Quantity;
use wakescope_core::watch::observed::{Group, Grouping, Observed};
use wakescope_core::watch::scale::RESOLUTION;

mod boots;
mod notes;

/// The most groups that are listed.
const MOST_LISTED: usize = 256;

/// The most groups that are tested: more would make the correction so hard that only a large fleet
/// decides any.
const MOST_TESTED: usize = 200;

/// Of the groups that one side has not, so many are named.
const MOST_NAMED: usize = 16;

/// A watch and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// A short name.
    pub label: &'a str,
    /// All its windows.
    pub watch: &'a Observed,
}

/// What watches say of groups of tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfWatches {
    /// By what waits are matched.
    pub grouping: Grouping,
    /// How long all tasks together waited in each second that was watched, ns, to look at: it decides
    /// nothing.
    pub waited: Option<Figure>,
    /// Groups that both sides have, those with the most waiting first.
    pub groups: Vec<OfGroup>,
    /// Further groups that both sides have.
    pub not_listed: usize,
    /// Groups that only new watches have.
    pub only_new: OneSided,
    /// Groups that only old watches have.
    pub only_old: OneSided,
}

/// A group of tasks that both sides have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfGroup {
    /// The tasks that waited.
    #[serde(flatten)]
    pub group: Group,
    /// New and old watches that have it.
    pub runs: [usize; 2],
    /// Its 99.9th percentile tested; `None` if it is not tested.
    pub tested: Option<Effect>,
    /// The medians, in ns; `None`, as the others, if the watches of a side have too few waits, or only bounds are
    /// known of one.
    pub p50_ns: Option<Means>,
    /// The 99th percentiles, in ns.
    pub p99_ns: Option<Means>,
    /// The 99.9th percentiles, in ns.
    pub p999_ns: Option<Means>,
    /// The maxima, at equal count, in ns, of watches with enough waits ([`equal_count`]).
    pub max_ns: Option<Means>,
    /// How long it waited in each second that was watched, in ns.
    pub waited_ns: Option<Means>,
    /// How many waits it had in each second that was watched.
    pub waits_per_second: Option<Means>,
}

/// A figure that is shown and not tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// Geometric mean over the new watches that have it.
    pub new: f64,
    /// The same of the old ones.
    pub old: f64,
    /// New / old.
    pub ratio: f64,
}

/// Groups that only one side has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneSided {
    /// How many.
    pub count: usize,
    /// Those with the most waiting.
    pub named: Vec<Group>,
}

/// Holds `new` against `old`, as [`compare`](super::compare()) does, and groups of their tasks as well.
///
/// Of each group that is tested the 99.9th percentile decides, too. The p-values of all figures that decide
/// are corrected together. Where switches per second are shown to differ by more than the margin, nothing is
/// worse, better or the same, unless forced: longer waits may be those of more load.
///
/// # Errors
/// As those of [`compare`](super::compare()).
pub fn compare_watches(
    new: &[Watched],
    old: &[Watched],
    grouping: Grouping,
    options: &Options,
) -> Result<Compare, Box<Refusal>> {
    let (new_runs, old_runs) = (labelled(new), labelled(old));
    judged(&new_runs, &old_runs, Some(&Watches { new, old, grouping }), options)
}

/// All waits of each watch, as runs.
pub(crate) fn labelled<'a>(side: &[Watched<'a>]) -> Vec<Labelled<'a>> {
    side.iter().map(|w| Labelled { label: w.label, run: &w.watch.run }).collect()
}

/// Both sides of a comparison of watches.
pub(crate) struct Watches<'a> {
    new: &'a [Watched<'a>],
    old: &'a [Watched<'a>],
    /// By what their groups are matched.
    grouping: Grouping,
}

/// All waits together. Their samples say nothing of one watch a side: they are far from independent.
pub(super) fn all_waits(
    quantity: Quantity,
    new: &[&Measured],
    old: &[&Measured],
    figures: usize,
    options: &Options,
) -> OfQuantity {
    OfQuantity {
        within: Vec::new(),
        ..of_quantity(quantity, new, old, RESOLUTION, figures, options)
    }
}

impl<'a> Watches<'a> {
    /// A series of watches, all on one side.
    pub(crate) fn series(all: &'a [Watched<'a>]) -> Self {
        Self { new: all, old: &[], grouping: Grouping::None }
    }

    /// All waits of each watch of both sides.
    pub(crate) fn measured(&self) -> [Vec<Measured<'a>>; 2] {
        let measured = |w: &Watched<'a>| {
            Measured::of(&Labelled { label: w.label, run: &w.watch.run }).of_length(log_length(w))
        };
        [self.new, self.old].map(|side| side.iter().map(measured).collect())
    }

    fn all(&self) -> impl Iterator<Item = &'a Watched<'a>> + Clone {
        self.new.iter().chain(self.old)
    }

    /// What is compared beside all waits together. Which groups are tested is found before any is.
    pub(super) fn figures(&self, options: &Options) -> OfWatches {
        let waited = [self.new, self.old].map(|side| {
            let waited = |w: &Watched| per_second(w, w.watch.run.expiries.sum_ns);
            side.iter().map(waited).collect::<Vec<f64>>()
        });
        let [new, old] = &waited;
        let mut sums: BTreeMap<&Group, ([usize; 2], f64)> = BTreeMap::new();
        for (side, watches) in [self.new, self.old].into_iter().enumerate() {
            for watch in watches {
                for (group, waits) in &watch.watch.groups {
                    let (runs, waited) = sums.entry(group).or_default();
                    runs[side] += 1;
                    *waited += per_second(watch, waits.sum_ns);
                }
            }
        }
        let mut sums: Vec<(&Group, [usize; 2], f64)> =
            sums.into_iter().map(|(group, (runs, waited))| (group, runs, waited)).collect();
        // The names make the order of equal ones the same each time.
        sums.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(b.0)));
        let one_sided = |absent: usize| {
            let groups = || sums.iter().filter(|(_, runs, _)| runs[absent] == 0);
            OneSided {
                count: groups().count(),
                named: groups().take(MOST_NAMED).map(|(group, ..)| (*group).clone()).collect(),
            }
        };
        let both: Vec<&Group> =
            sums.iter().filter(|(_, runs, _)| runs.iter().all(|&n| n > 0)).map(|s| s.0).collect();
        let most = self.most_deciding(options.alpha);
        let mut places = most - FIGURES;
        let asked = |resolution| effect::asked(most, resolution, options);
        let groups = both.iter().take(MOST_LISTED).map(|group| {
            let sides = [self.new, self.old].map(|side| {
                let waits = side.iter().filter_map(|w| Some((w, w.watch.groups.get(*group)?)));
                waits.collect::<Vec<_>>()
            });
            let mut found = of_group(group, &sides);
            let [new, old] = counts(&sides);
            let share = Share::of(P999, [&new, &old]);
            let tails = sides.each_ref().map(|side| {
                let of = side.iter().filter_map(|(watch, waits)| {
                    Some((log_length(watch), *waits, share?.range(waits)?))
                });
                Ranges::of_distributions(of, RESOLUTION)
            });
            let [new, old] = tails.each_ref().map(|tails| tails.least.len());
            if places > 0 && can_decide(new, old, most, options.alpha) {
                places -= 1;
                let tails = Ranges::at_equal_length(tails);
                let [tested] = figures_within(&[tails], RESOLUTION, &asked(RESOLUTION));
                found.tested = tested.map(|figure| figure.effect);
            }
            found
        });
        OfWatches {
            grouping: self.grouping,
            groups: groups.collect(),
            waited: figure(
                &logs(new.iter().copied()),
                &logs(old.iter().copied()),
                0.0,
                &asked(0.0),
            ),
            not_listed: both.len().saturating_sub(MOST_LISTED),
            only_new: one_sided(1),
            only_old: one_sided(0),
        }
    }

    /// How many figures decide at most: those of all waits together, and as many groups as can be tested so
    /// that even the smallest p-value of these watches survives the correction.
    pub(super) fn most_deciding(&self, alpha: f64) -> usize {
        let [new, old] = [self.new.len(), self.old.len()];
        let decidable = |figures: &usize| can_decide(new, old, *figures, alpha);
        (FIGURES + 1..=FIGURES + MOST_TESTED).rev().find(decidable).unwrap_or(FIGURES)
    }
}

/// How many waits each watch has.
fn counts(sides: &[Vec<(&Watched, &Distribution)>; 2]) -> [Vec<u64>; 2] {
    sides.each_ref().map(|side| side.iter().map(|(_, waits)| waits.count).collect())
}

/// What is shown of a group.
fn of_group(group: &Group, sides: &[Vec<(&Watched, &Distribution)>; 2]) -> OfGroup {
    let means = |of: &dyn Fn(&Watched, &Distribution) -> Option<f64>| {
        let [new, old] = sides
            .each_ref()
            .map(|side| logs(side.iter().filter_map(|(watch, waits)| of(watch, waits))));
        if new.is_empty() || old.is_empty() {
            return None;
        }
        let (new, old) = (geometric_mean(&new), geometric_mean(&old));
        Some(Means { new, old, ratio: new / old })
    };
    let [new, old] = counts(sides);
    let count = equal_count([&new, &old]);
    // The watches of which only bounds are known may be the worst, so the others do not stand for all.
    let if_known = |range: &dyn Fn(&Distribution) -> Option<(u64, u64)>| {
        let is_open = |waits: &Distribution| range(waits).is_some_and(|of| !waits.is_narrow(of));
        if sides.iter().flatten().any(|(_, waits)| is_open(waits)) {
            return None;
        }
        means(&|_, waits| Some(range(waits)?.1.min(waits.max_ns?) as f64))
    };
    let percentile = |p| {
        let share = Share::of(p, [&new, &old]);
        if_known(&|waits| share?.range(waits))
    };
    OfGroup {
        group: group.clone(),
        runs: sides.each_ref().map(Vec::len),
        tested: None,
        p50_ns: percentile(P50),
        p99_ns: percentile(P99),
        p999_ns: percentile(P999),
        max_ns: if_known(&|waits| mean_maximum_range(waits, count)),
        waited_ns: means(&|watch, waits| Some(per_second(watch, waits.sum_ns))),
        waits_per_second: means(&|watch, waits| Some(per_second(watch, waits.count))),
    }
}

/// The logarithm of the time in ns that a watch covers. Bursts of late wakeups come in time, however often a task
/// waits.
fn log_length(watch: &Watched) -> f64 {
    (watch.watch.covered_ns.max(1) as f64).ln()
}

/// So much of all that a watch covers, in each second of it.
fn per_second(watch: &Watched, all: u64) -> f64 {
    all as f64 * 1e9 / watch.watch.covered_ns.max(1) as f64
}

/// The logarithms of figures above 0.
fn logs(values: impl Iterator<Item = f64>) -> Vec<f64> {
    values.filter(|&value| value > 0.0).map(f64::ln).collect()
}

impl OfWatches {
    /// The figures of groups that decide.
    pub fn deciding(&self) -> impl Iterator<Item = &Effect> + Clone {
        self.groups.iter().filter_map(|group| group.tested.as_ref())
    }

    pub(super) fn deciding_mut(&mut self) -> impl Iterator<Item = &mut Effect> {
        self.groups.iter_mut().filter_map(|group| group.tested.as_mut())
    }

    /// The groups that are tested, those with the most waiting first.
    pub(super) fn tested(&self) -> impl Iterator<Item = (&OfGroup, &Effect)> {
        self.groups.iter().filter_map(|group| Some((group, group.tested.as_ref()?)))
    }

    /// Those of them with this verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = (&OfGroup, &Effect)> {
        self.tested().filter(move |(_, effect)| effect.verdict == verdict)
    }
}

/// Takes back what watches of different load cannot show, and says why. `None` if the load is not shown to
/// differ, if that is accepted, or if there was no verdict.
pub(super) fn lower(found: &mut Results, verdict: Verdict, options: &Options) -> Option<String> {
    let load = load_that_differs(&found.quantities)?;
    if options.force || !found.take_back() {
        return None;
    }
    Some(format!(
        "{load} Waits may be others because of the load. If they were not, the verdict would be: {}. Watch \
         machines of the same load, or accept the risk: --force.",
        word(verdict)
    ))
}

/// That the load differs, where it was compared all the same.
pub(super) fn accepted_load(found: &Results, options: &Options) -> Option<String> {
    let load = load_that_differs(&found.quantities).filter(|_| options.force)?;
    Some(format!("{load} This was accepted (--force): waits may be others because of the load."))
}

/// That there are more switches per second on a side, or fewer, if that is shown.
fn load_that_differs(quantities: &[OfQuantity]) -> Option<String> {
    let load = quantities.iter().flat_map(|q| &q.throughput).next()?;
    match load.effect.verdict {
        Verdict::Better | Verdict::Worse => Some(format!(
            "The load differs: {} as many switches per second.",
            times(load.effect.ratio)
        )),
        Verdict::NoDifference | Verdict::Inconclusive => None,
    }
}

#[cfg(test)]
mod tests;
