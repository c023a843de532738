//! Why a comparison came out no clearer, in sentences.

use super::words::{count_of, factor};
use super::{Effect, Figure, OfQuantity, Options, Verdict, percent, probability};
use crate::equal_count::LEAST;
use crate::permutation::MOST_COUNTED;
use crate::unpaired::{can_decide, figures_needed, smallest_p};
use wakescope_core::units::{grouped, one_or_many};

/// Why the verdict on one quantity is no clearer. `figures` is the number of all that decide.
pub(super) fn of(quantity: &OfQuantity, figures: usize, options: &Options) -> Vec<String> {
    let mut reasons = of_missing(quantity);
    if quantity.verdict == Verdict::Inconclusive {
        reasons.extend(of_undecided(quantity, figures, options));
    }
    reasons
}

/// Those of all quantities, each with its quantity where there are several.
pub(super) fn of_all(quantities: &[OfQuantity]) -> Vec<String> {
    let several = quantities.len() > 1;
    let text = |q: &OfQuantity| -> Vec<String> {
        let name = q.quantity.to_string();
        let with = |reason: &String| match several {
            true => format!("{name}: {reason}"),
            false => reason.clone(),
        };
        q.reasons.iter().map(with).collect()
    };
    quantities.iter().flat_map(text).collect()
}

/// Figures that runs do not carry, or of which their files tell only bounds.
fn of_missing(quantity: &OfQuantity) -> Vec<String> {
    let all: usize = quantity.runs.iter().sum();
    let missing = |name: &str, figure: Option<&Figure>, bounded: usize, needs: &str| {
        let having = figure.map_or(0, |figure| figure.effect.runs.iter().sum());
        let have = format!(
            "{} {} only bounds of it",
            count_of(bounded, "run"),
            one_or_many(bounded as u64, "has", "have")
        );
        let unknown = match (having, bounded) {
            (0, 0) => Some(format!("{name} is unknown: it needs {needs}.")),
            (0, _) => Some(format!("{name} is unknown: {have}.")),
            _ => (having < all).then(|| {
                let without = count_of(all - having, "run");
                format!("{name} is unknown for {without}: it needs {needs}.")
            }),
        };
        let open = (having > 0 && bounded > 0).then(|| {
            format!(
                "{name}: {have}, because it lies beyond the histogram of the file, or in a step or a bucket \
                 wider than 6.25 % of it. The verdict on it holds for every value within these bounds."
            )
        });
        unknown.into_iter().chain(open)
    };
    let p999 = missing("p99.9", quantity.p999.as_ref(), quantity.bounded[0], "2,000 samples");
    let max = match quantity.max {
        None => "max".into(),
        Some(_) => format!("max of {} samples", grouped(quantity.count)),
    };
    let needs = format!(
        "{LEAST} samples, and more than half as many as the median run of the side with shorter runs"
    );
    p999.chain(missing(&max, quantity.max.as_ref(), quantity.bounded[1], &needs)).collect()
}

fn of_undecided(quantity: &OfQuantity, figures: usize, options: &Options) -> Vec<String> {
    if let Some(reason) = contradiction(quantity) {
        return vec![reason];
    }
    let [new, old] = quantity.runs;
    let takes = match figures_needed(quantity.runs, figures, options.alpha) {
        Some(needed) if needed > new.max(old) => format!("It takes {needed} a side."),
        Some(needed) => format!("It takes {needed} {}.", fewer(quantity.runs)),
        None => format!(
            "At so small a level (--alpha) no number of runs can: no more than {} splits are counted.",
            grouped(MOST_COUNTED)
        ),
    };
    if new == 1 && old == 1 {
        return vec![format!(
            "One run a side gives no verdict: the variation between runs is unknown. {takes}"
        )];
    }
    let undecided = quantity.deciding().into_iter().filter_map(|(name, figure)| {
        let effect = &figure?.effect;
        (effect.verdict == Verdict::Inconclusive).then_some((name, effect))
    });
    let mut reasons = Vec::new();
    if new.min(old) == 1 {
        let [one, several] = if new == 1 { ["new", "old"] } else { ["old", "new"] };
        reasons.push(format!(
            "One {one} run does not show how much {one} runs vary, so it decides nothing, however many {several} \
             ones there are. {takes}"
        ));
    } else if !can_decide(new, old, figures, options.alpha) {
        reasons.push(format!(
            "{} against {old} cannot show a difference of any size: {} at best, times {figures} for the number of figures. {takes}",
            count_of(new, "run"),
            probability(smallest_p(new, old, figures, options.alpha)),
        ));
    }
    reasons
        .extend(undecided.map(|(name, effect)| undecided_figure(name, effect, figures, options)));
    reasons
}

fn contradiction(quantity: &OfQuantity) -> Option<String> {
    let one = |verdict: Verdict| {
        let mut figures = quantity.deciding().into_iter();
        figures.find(|(_, f)| f.is_some_and(|f| f.effect.verdict == verdict)).map(|(name, _)| name)
    };
    let (better, worse) = (one(Verdict::Better)?, one(Verdict::Worse)?);
    Some(format!("{better} is better and {worse} is worse."))
}

/// `p99.9 is undecided: 1.08 × (0.92–1.27), p = 0.21. About 14 runs a side would decide it, if …`
fn undecided_figure(name: &str, effect: &Effect, figures: usize, options: &Options) -> String {
    let what = match (effect.low, effect.high) {
        (Some(low), Some(high)) => {
            format!("{} ({}–{})", effect.ratio_in_words(), factor(low), factor(high))
        }
        _ => effect.ratio_in_words(),
    };
    let p = probability(effect.p_adjusted);
    let open = if effect.p_adjusted <= options.alpha {
        format!(
            "{name} differs: {what}, {p}; whether by more than {} is undecided.",
            percent(options.margin)
        )
    } else {
        format!("{name} is undecided: {what}, {p}.")
    };
    let is_estimated = effect.only_bounded.is_none()
        && effect.runs.iter().sum::<usize>() > 2
        && figures_needed(effect.runs, figures, options.alpha).is_some();
    match effect.runs_needed {
        Some(runs) => format!(
            "{open} About {} would probably decide it, if their variation is the same.",
            runs_in_words(runs, effect.runs)
        ),
        None if is_estimated => {
            format!(
                "{open} A decision would need more than 1,000 runs a side, because the difference \
                 is too close to the margin."
            )
        }
        None => open,
    }
}

/// `14 runs a side (9 more)`, `14 runs a side (9 more new, 4 more old)`; where only one side needs
/// more, `5 new runs (2 more)`.
fn runs_in_words(needed: usize, have: [usize; 2]) -> String {
    let number = |count: usize| grouped(count as u64);
    let [new, old] = have.map(|have| number(needed.saturating_sub(have)));
    match have {
        [a, b] if a == b => format!("{} runs a side ({new} more)", number(needed)),
        [a, b] if needed > a.max(b) => {
            format!("{} runs a side ({new} more new, {old} more old)", number(needed))
        }
        [a, b] => {
            let more = if a < b { new } else { old };
            format!("{} {} ({more} more)", number(needed), fewer(have))
        }
    }
}

/// The runs of the side that has fewer.
fn fewer([new, old]: [usize; 2]) -> &'static str {
    if new < old { "new runs" } else { "old runs" }
}
