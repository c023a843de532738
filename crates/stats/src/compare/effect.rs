//! One figure over the runs of both sides.

use serde::{Deserialize, Serialize};

use super::bounded::{Between, Bounded, Ranges, between};
use super::measured::Measured;
use super::power::{Margins, runs_needed};
use super::{Options, Verdict, times};
use crate::paired::holm;
use crate::unpaired::{Apart, Asked, apart, each_apart, variance};
use wakescope_core::limit::Outcome;

/// An end of an interval is none if it is this many times as large, or as small.
const FARTHEST: f64 = 1e9;

/// How one figure of the new runs stands to that of the old ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// New and old runs that have this figure.
    pub runs: [usize; 2],
    /// New / old, of the geometric means over the runs. Where files of other programs tell figures only to
    /// a step, or bounds of them, or runs of one side are longer, this and the rest hold for every value within
    /// these, and the ratio is the one closest to 1.
    pub ratio: f64,
    /// At the confidence 1 - alpha, the ratio is not below this: the test, inverted. `null` if there are
    /// too few runs.
    pub low: Option<f64>,
    /// With as much, it is not above this.
    pub high: Option<f64>,
    /// How likely a difference so large is if both sides are alike (permutation of the mean log
    /// ratio over the runs, two-sided). Of sides of different numbers of runs, the larger of this and of
    /// Welch's p-value.
    pub p_value: f64,
    /// The same, corrected for all figures that decide (Holm).
    pub p_adjusted: f64,
    /// Ways to split the runs in two sides that were counted.
    pub splits: u64,
    /// Whether these were all there are.
    pub exact: bool,
    /// What this figure alone says.
    pub verdict: Verdict,
    /// Whether it is shown to be worse by more than is allowed; `null` if nothing was said about that.
    pub regression: Option<Outcome>,
    /// How many runs each side needs to decide it with a probability of 80 %, if they vary as these do: a
    /// side that has as many needs no more. `null` if it is decided, if they cannot tell, or if it would take
    /// more than 1,000.
    pub runs_needed: Option<usize>,
    /// What bounds, and runs of one side that are longer, leave open; `None` if the figure of each run is known, at
    /// least to 6.25 %, and if it is one of the tail, the sides are equally long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_bounded: Option<Bounded>,
    /// How likely so large a ratio is, or a larger one, if the true one is what is allowed, or below
    /// (the same tests, one-sided).
    #[serde(skip)]
    pub(super) p_regression: f64,
    /// The variances of the logarithms of the new and of the old runs.
    #[serde(skip)]
    variances: Option<[f64; 2]>,
    /// By what share the figures of runs may be above their true values.
    #[serde(skip)]
    resolution: f64,
}

/// A figure in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Geometric mean over the new runs, in nanoseconds.
    pub new_ns: f64,
    /// Geometric mean over the old runs.
    pub old_ns: f64,
    /// How they stand to each other.
    #[serde(flatten)]
    pub effect: Effect,
}

/// What a load got done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Its name.
    pub load: String,
    /// What a unit of work is.
    pub unit: String,
    /// Units per second, geometric mean over the new runs.
    pub new_per_second: f64,
    /// The same of the old runs.
    pub old_per_second: f64,
    /// How they stand to each other. Here more is better.
    #[serde(flatten)]
    pub effect: Effect,
}

/// A load that did no work in some runs, or of which these record none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleLoad {
    /// Its name.
    pub load: String,
    /// New and old runs without work of it.
    pub runs: [usize; 2],
}

/// A figure of a run.
pub(super) struct Of<'a> {
    /// The least and the largest value in ns that it can have; `None` if the run does not have it.
    pub(super) range: &'a dyn Fn(&Measured) -> Option<(u64, u64)>,
    /// Whether bursts of late wakeups make it larger in longer runs.
    pub(super) is_of_tail: bool,
}

/// How several figures of the new runs stand to those of the old ones, over the runs that have them;
/// `None` for a figure that a side does not have. Each may be above its true value by the share
/// `resolution`. With each comes of how many runs only bounds are known.
pub(super) fn figures<const N: usize>(
    new: &[&Measured],
    old: &[&Measured],
    of: [Of<'_>; N],
    resolution: f64,
    asked: &Asked,
) -> [(Option<Figure>, usize); N] {
    let ranges = of.map(|figure| {
        let sides = [new, old].map(|side| Ranges::of(side, figure.range, resolution));
        if figure.is_of_tail { Ranges::at_equal_length(sides) } else { sides }
    });
    let mut found = figures_within(&ranges, resolution, asked).into_iter();
    ranges.map(|sides| (found.next().flatten(), sides.iter().map(|side| side.bounded).sum()))
}

/// The same of ranges of the figures of both sides.
pub(super) fn figures_within<const N: usize>(
    ranges: &[[Ranges; 2]; N],
    resolution: f64,
    asked: &Asked,
) -> [Option<Figure>; N] {
    let lowest = ranges.each_ref().map(|[new, old]| [in_order(&new.lowest()), in_order(&old.most)]);
    let mut aparts = lowest.iter().zip(each_apart(&lowest, asked));
    ranges.each_ref().map(|[new, old]| {
        let (values, lowest) = aparts.next()?;
        let (lowest, others) = (lowest?, [in_order(&new.most), in_order(&old.lowest())]);
        let highest = match others == *values {
            true => lowest.clone(),
            false => apart(&others[0], &others[1], asked)?,
        };
        let Between { values: [new_logs, old_logs], means_ns, apart, bounded } =
            between([new, old], lowest, highest, asked);
        let mut effect = effect(&new_logs, &old_logs, apart).known_to(resolution);
        if new.are_wide() || old.are_wide() {
            // How runs vary is not known, and more of them leave their bounds as they are.
            effect.variances = None;
            effect.only_bounded = Some(bounded);
        }
        Some(Figure { new_ns: means_ns[0], old_ns: means_ns[1], effect })
    })
}

/// How one figure of the new runs stands to that of the old ones, by its logarithms of each run; `None`
/// for a figure that a side does not have.
pub(super) fn figure(new: &[f64], old: &[f64], resolution: f64, asked: &Asked) -> Option<Figure> {
    let effect =
        effect(new, old, apart(&in_order(new), &in_order(old), asked)?).known_to(resolution);
    Some(Figure { new_ns: geometric_mean(new), old_ns: geometric_mean(old), effect })
}

/// What is asked of the logarithms of a figure, one of `figures` that are looked at together. Each may be
/// above its true value by the share `resolution`.
pub(super) fn asked(figures: usize, resolution: f64, options: &Options) -> Asked {
    let bar = options.max_regression.unwrap_or(0.0).ln_1p() + resolution.ln_1p();
    Asked { alpha: options.alpha, bar, figures, seed: options.seed }
}

/// Figures in order of size: which splits are drawn must not depend on the order in which runs are given.
fn in_order(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The work per second of each load that counts it on both sides, and the loads without work in some runs.
/// No ratio holds for a run without work, so the others decide nothing then.
pub(super) fn throughput(
    new: &[&Measured],
    old: &[&Measured],
    options: &Options,
) -> (Vec<Throughput>, Vec<IdleLoad>) {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for load in new.iter().chain(old).flat_map(|m| m.loads()) {
        if !names.contains(&(&load.name, &load.unit)) {
            names.push((&load.name, &load.unit));
        }
    }
    // So many loads at once are no plan of anybody's.
    names.truncate(64);
    let works = names.into_iter().map(|(load, unit)| Work {
        load,
        unit,
        logs: [new, old].map(|side| logs_of_work(side, load, unit)),
    });
    // A command that runs throughout has done nothing yet in any run.
    let works: Vec<Work> = works.filter(|work| !work.logs.concat().is_empty()).collect();
    let idle = works.iter().filter_map(|work| {
        let [new_logs, old_logs] = &work.logs;
        let runs = [new.len() - new_logs.len(), old.len() - old_logs.len()];
        (runs != [0, 0]).then(|| IdleLoad { load: work.load.into(), runs })
    });
    (compared_work(&works, [new.len(), old.len()], options), idle.collect())
}

/// What a load did in the runs in which it did something.
struct Work<'a> {
    load: &'a str,
    unit: &'a str,
    /// The logarithms of its work per second in new and old runs.
    logs: [Vec<f64>; 2],
}

fn logs_of_work(side: &[&Measured], load: &str, unit: &str) -> Vec<f64> {
    let of_run = |m: &&Measured| {
        let own = m.loads().iter().filter(|l| (&*l.name, &*l.unit) == (load, unit));
        let sum: f64 = own.map(|load| load.per_second).sum();
        (sum.is_finite() && sum > 0.0).then(|| sum.ln())
    };
    side.iter().filter_map(of_run).collect()
}

/// How the work of new runs stands to that of old ones, of `runs` of each.
fn compared_work(works: &[Work], runs: [usize; 2], options: &Options) -> Vec<Throughput> {
    let asked = asked(works.len(), 0.0, options);
    let compared = works.iter().filter_map(|Work { load, unit, logs: [new, old] }| {
        let apart = apart(&in_order(new), &in_order(old), &asked)?;
        Some(Throughput {
            load: (*load).into(),
            unit: (*unit).into(),
            new_per_second: geometric_mean(new),
            old_per_second: geometric_mean(old),
            effect: effect(new, old, apart),
        })
    });
    let mut found: Vec<Throughput> = compared.collect();
    let raw: Vec<f64> = found.iter().map(|t| t.effect.p_value).collect();
    let count = found.len();
    for (throughput, p_adjusted) in found.iter_mut().zip(holm(&raw)) {
        throughput.effect.p_adjusted = p_adjusted;
        decide(&mut throughput.effect, count, options);
        // Less is worse here.
        throughput.effect.verdict = match throughput.effect.verdict {
            _ if throughput.effect.runs != runs => Verdict::Inconclusive,
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
    }
    found
}

fn effect(new: &[f64], old: &[f64], apart: Apart) -> Effect {
    Effect {
        runs: [new.len(), old.len()],
        ratio: apart.difference.exp(),
        low: apart.interval.0.map(f64::exp).filter(|&low| low > 1.0 / FARTHEST),
        high: apart.interval.1.map(f64::exp).filter(|&high| high < FARTHEST),
        p_value: apart.p_value,
        p_adjusted: apart.p_value,
        p_regression: apart.p_above_bar,
        splits: apart.splits,
        exact: apart.exact,
        verdict: Verdict::Inconclusive,
        regression: None,
        runs_needed: None,
        only_bounded: None,
        variances: variances(new, old),
        resolution: 0.0,
    }
}

impl Effect {
    /// `1.31 ×`; where some runs have only bounds, `at least 1.04 ×`, `at most 0.85 ×` or
    /// `0.89 to 3.90 ×`.
    pub fn ratio_in_words(&self) -> String {
        self.only_bounded.as_ref().map_or_else(|| times(self.ratio), Bounded::ratio_in_words)
    }

    /// The same of figures that may be above their true values by this share: so the true ratio may lie
    /// beyond the interval by as much.
    #[must_use]
    fn known_to(self, resolution: f64) -> Self {
        let widest = 1.0 + resolution;
        let (low, high) = (self.low.map(|low| low / widest), self.high.map(|high| high * widest));
        Self { low, high, resolution, ..self }
    }
}

/// Finds the verdict on a figure, one of `figures` that are looked at together.
pub(super) fn decide(effect: &mut Effect, figures: usize, options: &Options) {
    let (least, most) = (1.0 / (1.0 + options.margin), 1.0 + options.margin);
    let certain = effect.p_adjusted <= options.alpha;
    let inside =
        effect.low.is_some_and(|low| low >= least) && effect.high.is_some_and(|high| high <= most);
    let widest = 1.0 + effect.resolution;
    effect.verdict = if certain && effect.ratio > most * widest {
        Verdict::Worse
    } else if certain && effect.ratio < least / widest {
        Verdict::Better
    } else if inside {
        Verdict::NoDifference
    } else {
        Verdict::Inconclusive
    };
    effect.runs_needed = match (effect.verdict, effect.variances) {
        (Verdict::Inconclusive, Some(variances)) => {
            let margins = Margins::of(options.margin, effect.resolution);
            runs_needed(effect.ratio.ln(), variances, effect.runs, figures, margins, options.alpha)
        }
        _ => None,
    };
}

/// Finds whether the ratio is shown to be above, or not above, what is allowed. `p_value` is that of its
/// regression, corrected for all figures that are held to it.
pub(super) fn decide_regression(effect: &mut Effect, p_value: f64, options: &Options) {
    effect.regression = options.max_regression.map(|allowed| {
        let allowed = 1.0 + allowed;
        if p_value <= options.alpha && effect.low.is_some_and(|low| low > allowed) {
            Outcome::Fail
        } else if effect.high.is_some_and(|high| high <= allowed) {
            Outcome::Pass
        } else {
            Outcome::Inconclusive
        }
    });
}

pub(crate) fn geometric_mean(logs: &[f64]) -> f64 {
    mean(logs).exp()
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The variance of each side. One run shows none, so it is taken to vary as the other side does; `None` with
/// one run a side.
fn variances(new: &[f64], old: &[f64]) -> Option<[f64; 2]> {
    let [new, old] = [new, old].map(variance);
    match (new.is_finite(), old.is_finite()) {
        (true, true) => Some([new, old]),
        (true, false) => Some([new, new]),
        (false, true) => Some([old, old]),
        (false, false) => None,
    }
}
