//! Cells compared, seed by seed.

use std::collections::BTreeMap;

use crate::paired::{Paired, holm};
use wakescope_core::lab::{Arm, Cell, Comparison, Effect, Status, Verdict};

mod limits;
mod reasons;
#[cfg(test)]
mod testing;

pub use limits::{limits, parse_limit};

/// Holds B against A for each of `pairs` (A, B), under each load that either has cells for, in the
/// order of the cells.
///
/// Seeds pair the cells: a seed has the same phase and the same work on both sides. The largest
/// lateness and the 99.9th percentile are compared, and their p-values corrected for the number of
/// figures of this call.
///
/// A figure is worse if its corrected p-value is at most `alpha`, its median ratio above 1 + `margin`, and
/// the 95 % interval of that above 1; better accordingly. The p-value is of the mean: without the interval,
/// a few seeds that are far worse would make worse what is better in most. A figure does not differ if
/// the interval lies within the margin. Otherwise, and where there are too few seeds for an interval, the
/// seeds do not tell.
///
/// B is worse if one figure is and none is better; better accordingly; no different if neither
/// figure differs.
///
/// Two names can stand for one cell, as where a kernel has two names, or two images are the same to the byte. Such
/// sides are no different, have no figures, and count in no correction.
pub fn compare(cells: &[Cell], pairs: &[(Arm, Arm)], margin: f64, alpha: f64) -> Vec<Comparison> {
    let sides = Sides::of(cells);
    let mut comparisons = Vec::new();
    for (a, b) in pairs {
        for load in &sides.loads {
            let (cells_a, cells_b) = (sides.get(a, load), sides.get(b, load));
            if cells_a.is_empty() && cells_b.is_empty() {
                continue;
            }
            comparisons.push(Draft { a: cells_a, b: cells_b }.comparison(a, b, load, margin));
        }
    }
    correct(&mut comparisons);
    let figures = comparisons.iter().map(|c| effects(c).count()).sum();
    for comparison in comparisons.iter_mut().filter(|c| c.verdict == Verdict::Inconclusive) {
        decide(comparison, alpha);
        comparison.reasons.extend(reasons::of_the_verdict(comparison, figures, alpha));
    }
    comparisons
}

/// The cells of each kernel and model, by load and seed.
struct Sides<'a> {
    loads: Vec<&'a str>,
    cells: BTreeMap<(&'a str, &'a str, &'a str), Side<'a>>,
}

/// Cells by seed.
type Side<'a> = BTreeMap<u64, &'a Cell>;

impl<'a> Sides<'a> {
    fn of(cells: &'a [Cell]) -> Self {
        let mut sides = Self { loads: Vec::new(), cells: BTreeMap::new() };
        for cell in cells {
            if !sides.loads.contains(&&*cell.load) {
                sides.loads.push(&cell.load);
            }
            let side = sides.cells.entry((&cell.kernel, &cell.asked, &cell.load)).or_default();
            side.entry(cell.seed).or_insert(cell);
        }
        sides
    }

    fn get(&self, arm: &Arm, load: &str) -> Side<'a> {
        self.cells.get(&(&*arm.kernel, &*arm.asked, load)).cloned().unwrap_or_default()
    }
}

/// Two sides before they are compared.
struct Draft<'a> {
    a: Side<'a>,
    b: Side<'a>,
}

impl Draft<'_> {
    fn comparison(&self, a: &Arm, b: &Arm, load: &str, margin: f64) -> Comparison {
        let seeds = self.pairs(|_| Some(1.0)).len();
        let mut comparison = Comparison {
            a: a.clone(),
            b: b.clone(),
            load: load.into(),
            margin,
            seeds: u32::try_from(seeds).unwrap_or(u32::MAX),
            verdict: Verdict::Inconclusive,
            reasons: reasons::of_missing_seeds(a, &self.a, b, &self.b),
            ..Comparison::default()
        };
        if self.are_the_same() {
            comparison.verdict = Verdict::NoDifference;
            comparison.reasons.push(reasons::SAME_CELLS.into());
            return comparison;
        }
        let late = |figure: fn(&Cell) -> Option<u64>| {
            // A wakeup is never on time to the nanosecond; where a record says so, what it means
            // is that it was not later than the clock can tell.
            self.pairs(|cell| figure(cell).map(|ns| ns.max(1) as f64))
        };
        let p999 = late(|cell| cell.p999_ns);
        comparison.reasons.extend(reasons::of_few_samples(seeds - p999.len(), seeds));
        comparison.max = effect(&late(|cell| cell.max_ns));
        comparison.p999 = effect(&p999);
        comparison.throughput_ratio =
            Paired::of(&self.pairs(|c| c.throughput.filter(|&t| t > 0.0)))
                .map(|paired| paired.median);
        comparison
    }

    /// Whether both sides are the same cells under two names. A cell's folder has the name of its recipe.
    fn are_the_same(&self) -> bool {
        let mut pairs =
            self.a.iter().filter_map(|(seed, a)| Some((a, self.b.get(seed)?))).peekable();
        pairs.peek().is_some() && pairs.all(|(a, b)| a.run.is_some() && a.run == b.run)
    }

    /// A figure of A and of B for each seed that has it on both sides.
    fn pairs(&self, figure: impl Fn(&Cell) -> Option<f64>) -> Vec<(f64, f64)> {
        let measured = |cell: &&Cell| if cell.status == Status::Ok { figure(cell) } else { None };
        let both = self.a.iter().filter_map(|(seed, a)| Some((a, self.b.get(seed)?)));
        both.filter_map(|(a, b)| measured(a).zip(measured(b))).collect()
    }
}

fn effect(pairs: &[(f64, f64)]) -> Option<Effect> {
    let paired = Paired::of(pairs)?;
    Some(Effect {
        seeds: paired.count,
        ratio: paired.median,
        low: paired.low,
        high: paired.high,
        interval_low: paired.interval.map(|i| i.0),
        interval_high: paired.interval.map(|i| i.1),
        better: paired.smaller,
        worse: paired.larger,
        p_value: paired.p_value,
        p_adjusted: paired.p_value,
        verdict: Verdict::Inconclusive,
    })
}

fn effects(comparison: &Comparison) -> impl Iterator<Item = &Effect> {
    comparison.max.iter().chain(&comparison.p999)
}

fn effects_mut(comparison: &mut Comparison) -> impl Iterator<Item = &mut Effect> {
    comparison.max.iter_mut().chain(&mut comparison.p999)
}

/// Corrects all p-values for their number.
fn correct(comparisons: &mut [Comparison]) {
    let raw: Vec<f64> = comparisons.iter().flat_map(effects).map(|e| e.p_value).collect();
    let effects = comparisons.iter_mut().flat_map(effects_mut);
    for (effect, p_adjusted) in effects.zip(holm(&raw)) {
        effect.p_adjusted = p_adjusted;
    }
}

/// Finds the verdicts, of each figure and of both.
fn decide(comparison: &mut Comparison, alpha: f64) {
    let margin = comparison.margin;
    for effect in effects_mut(comparison) {
        effect.verdict = verdict(effect, margin, alpha);
    }
    let any = |verdict| effects(comparison).any(|e| e.verdict == verdict);
    let neither_differs = [&comparison.max, &comparison.p999]
        .iter()
        .all(|e| e.as_ref().is_some_and(|e| e.verdict == Verdict::NoDifference));
    comparison.verdict = match (any(Verdict::Worse), any(Verdict::Better)) {
        (true, false) => Verdict::Worse,
        (false, true) => Verdict::Better,
        (false, false) if neither_differs => Verdict::NoDifference,
        _ => Verdict::Inconclusive,
    };
}

fn verdict(effect: &Effect, margin: f64, alpha: f64) -> Verdict {
    let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
    let certain = effect.p_adjusted <= alpha;
    let (Some(low), Some(high)) = (effect.interval_low, effect.interval_high) else {
        return Verdict::Inconclusive;
    };
    if certain && effect.ratio > most && low > 1.0 {
        Verdict::Worse
    } else if certain && effect.ratio < least && high < 1.0 {
        Verdict::Better
    } else if low >= least && high <= most {
        Verdict::NoDifference
    } else {
        Verdict::Inconclusive
    }
}

#[cfg(test)]
mod tests;
