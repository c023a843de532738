//! Why a comparison came out as it did, in sentences.

use super::{Arm, Cell, Comparison, Effect, Side, Status, Verdict};
use crate::compare::{P999, percent, times};
use crate::paired::pairs_needed;
use wakescope_core::units::{counted, grouped, one_or_many};

/// How many seeds are named before the rest is counted.
const SEEDS_NAMED: usize = 5;

/// That two sides have the same cells.
pub(super) const SAME_CELLS: &str =
    "Both names stand for the same cells: the same kernel image, booted alike.";

/// What is missing on either side.
pub(super) fn of_missing_seeds(a: &Arm, cells_a: &Side, b: &Arm, cells_b: &Side) -> Vec<String> {
    let mut reasons = Vec::new();
    for (arm, own, others) in [(a, cells_a, cells_b), (b, cells_b, cells_a)] {
        let name = format!("{}/{}", arm.kernel, arm.asked);
        if own.is_empty() {
            reasons.push(format!("There are no cells of {name} under this load."));
            continue;
        }
        if let Some(cell) = own.values().find(|cell| cell.status == Status::Ignored) {
            reasons.push(ignored(&name, cell));
        }
        for (status, what) in [(Status::Failed, "failed"), (Status::NotRun, "was not run")] {
            let seeds: Vec<u64> =
                own.values().filter(|cell| cell.status == status).map(|cell| cell.seed).collect();
            if !seeds.is_empty() {
                reasons.push(format!("{name} {what} with {}.", named(&seeds, own.len())));
            }
        }
        let unpaired: Vec<u64> =
            others.keys().filter(|seed| !own.contains_key(seed)).copied().collect();
        if !unpaired.is_empty() {
            reasons.push(format!("{name} has no cell with {}.", named(&unpaired, others.len())));
        }
    }
    reasons
}

fn ignored(name: &str, cell: &Cell) -> String {
    match cell.model {
        Some(model) => format!("{name} has no result: this kernel runs {model} instead."),
        None => format!("{name} has no result: this kernel does not run this model."),
    }
}

/// `seed 3`, `3 of 10 seeds (2, 4, 5)`.
fn named(seeds: &[u64], of: usize) -> String {
    if let [seed] = seeds {
        return format!("seed {seed}");
    }
    let mut list: Vec<String> = seeds.iter().take(SEEDS_NAMED).map(u64::to_string).collect();
    if seeds.len() > SEEDS_NAMED {
        list.push("…".into());
    }
    format!("{} of {} ({})", seeds.len(), counted(of as u64, "seed"), list.join(", "))
}

/// Of `lacking` of `seeds` seeds without a 99.9th percentile.
pub(super) fn of_few_samples(lacking: usize, seeds: usize) -> Option<String> {
    let takes = || format!("it needs {} samples", grouped(P999.samples_needed()));
    match lacking {
        0 => None,
        all if all == seeds => Some(format!("p99.9 is unknown: {}.", takes())),
        some => Some(format!("p99.9 is unknown with {some} of {seeds} seeds: {}.", takes())),
    }
}

/// Why the verdict is no clearer, where it is not clear. `figures` is the number of all that were
/// compared together.
pub(super) fn of_the_verdict(comparison: &Comparison, figures: usize, alpha: f64) -> Vec<String> {
    let named = [("the maximum", &comparison.max), ("p99.9", &comparison.p999)];
    let named = named.map(|(name, effect)| (name, effect.as_ref()));
    match comparison.verdict {
        Verdict::Better | Verdict::Worse | Verdict::NoDifference => Vec::new(),
        Verdict::Inconclusive => match contradiction(&named) {
            Some(reason) => vec![reason],
            None => {
                let known = named.iter().filter_map(|&(name, effect)| Some((name, effect?)));
                let mut reasons: Vec<String> = known
                    .filter(|(_, effect)| effect.verdict == Verdict::Inconclusive)
                    .map(|(name, effect)| {
                        of_few_seeds(name, effect, comparison, figures, alpha)
                            .unwrap_or_else(|| undecided_figure(name, effect, comparison, alpha))
                    })
                    .collect();
                reasons.dedup();
                reasons
            }
        },
    }
}

fn contradiction(named: &[(&str, Option<&Effect>)]) -> Option<String> {
    let one = |verdict: Verdict| {
        named.iter().find(|(_, e)| e.is_some_and(|e| e.verdict == verdict)).map(|(name, _)| *name)
    };
    let (better, worse) = (one(Verdict::Better)?, one(Verdict::Worse)?);
    Some(sentence(&format!("{better} is better and {worse} is worse.")))
}

/// That chance alone could have brought this, whatever the seeds say that have the figure.
fn of_few_seeds(
    name: &str,
    effect: &Effect,
    comparison: &Comparison,
    figures: usize,
    alpha: f64,
) -> Option<String> {
    let needed = pairs_needed(figures, alpha);
    let have = counted(effect.seeds as u64, "seed");
    let figures = match figures {
        1 => "a figure".into(),
        _ => format!("{figures} figures compared together"),
    };
    let text = match effect.seeds == comparison.seeds {
        true => format!(
            "{have} {} too few to decide {figures}",
            one_or_many(effect.seeds as u64, "is", "are")
        ),
        false => sentence(&format!("{name} is known with {have}, too few to decide {figures}")),
    };
    (effect.seeds < needed).then(|| format!("{text}: {needed} are needed."))
}

fn undecided_figure(name: &str, effect: &Effect, comparison: &Comparison, alpha: f64) -> String {
    let Effect { ratio, low, high, p_adjusted, interval_low, interval_high, .. } = effect;
    let margin = percent(comparison.margin);
    let around_1 =
        interval_low.zip(*interval_high).filter(|(low, high)| *low <= 1.0 && *high >= 1.0);
    sentence(&match around_1 {
        _ if *p_adjusted > alpha => {
            let (low, high) = (times(*low), times(*high));
            format!("the seeds disagree on {name}: {low} to {high}, p = {p_adjusted:.2}.")
        }
        Some((low, high)) => format!(
            "{name} differs in the mean (p = {p_adjusted:.3}), but the median may not: its 95 % interval, \
             {} to {}, holds 1 ×.",
            times(low),
            times(high)
        ),
        None => format!(
            "{name} differs ({}), but it is inconclusive whether by more than {margin}.",
            times(*ratio)
        ),
    })
}

/// With a capital at its beginning, unless that is the name of a figure.
fn sentence(text: &str) -> String {
    match text.strip_prefix('t') {
        Some(rest) => format!("T{rest}"),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_named_or_counted() {
        for (seeds, want) in [
            (vec![3], "seed 3"),
            (vec![2, 4], "2 of 10 seeds (2, 4)"),
            ((1..=7).collect(), "7 of 10 seeds (1, 2, 3, 4, 5, …)"),
        ] {
            assert_eq!(named(&seeds, 10), want);
        }
    }
}
