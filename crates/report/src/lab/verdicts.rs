//! Comparisons in sentences.

use wakescope_core::lab::{ALPHA, Comparison, Effect, Lab, Verdict};
use wakescope_core::units::one_or_many;
use wakescope_stats::compare::probability;
use wakescope_stats::paired::pairs_needed;

use super::figures::times;
use super::glued;
use super::names::{self, Sides};
use crate::style::clean;

/// A comparison in words.
pub(super) struct VerdictLine {
    pub(super) load: String,
    /// `full better than none`
    pub(super) sentence: String,
    /// What that rests on.
    pub(super) figures: String,
    /// Why it is not clearer, or what else one must know.
    pub(super) reasons: Vec<String>,
    pub(super) verdict: Verdict,
}

/// Every comparison of a lab in words, and the reasons that all of them have, which are lines once.
pub(super) fn lines(lab: &Lab) -> (Vec<VerdictLine>, Vec<String>) {
    let sides = Sides::of(&lab.comparisons);
    let mut lines: Vec<VerdictLine> = lab.comparisons.iter().map(|c| line_of(c, sides)).collect();
    let [first, _, ..] = &lines[..] else { return (lines, Vec::new()) };
    let is_shared = |reason: &&String| lines.iter().all(|line| line.reasons.contains(reason));
    let shared: Vec<String> = first.reasons.iter().filter(is_shared).cloned().collect();
    for one in &mut lines {
        one.reasons.retain(|reason| !shared.contains(reason));
    }
    (lines, shared)
}

fn line_of(comparison: &Comparison, sides: Sides) -> VerdictLine {
    let (a, b) = (sides.name(&comparison.a), sides.name(&comparison.b));
    let sentence = match comparison.verdict {
        Verdict::Better => format!("{b} better than {a}"),
        Verdict::Worse => format!("{b} worse than {a}"),
        Verdict::NoDifference => format!("{b} no different from {a}"),
        Verdict::Inconclusive => format!("{b} against {a} inconclusive"),
    };
    let mut parts = figures(comparison);
    if let Some(ratio) = comparison.throughput_ratio {
        parts.push(glued(&format!("work {} ×", times(ratio))));
    }
    VerdictLine {
        load: names::load(&comparison.load),
        sentence,
        figures: parts.join(", "),
        reasons: comparison.reasons.iter().map(|reason| clean(reason, 400)).collect(),
        verdict: comparison.verdict,
    }
}

/// `max 0.10 ×, p99.9 0.12 × (10 of 10 seeds, p = 0.012)`, or each with its own parentheses where
/// they rest on something else.
fn figures(comparison: &Comparison) -> Vec<String> {
    let named = [("max", &comparison.max), ("p99.9", &comparison.p999)];
    let known: Vec<(String, String)> = named
        .iter()
        .filter_map(|(name, effect)| Some((name, effect.as_ref()?)))
        .map(|(name, e)| (glued(&format!("{name} {} ×", times(e.ratio))), basis(e)))
        .collect();
    match &known[..] {
        [(max, basis), (p999, same)] if basis == same => {
            vec![max.clone(), format!("{p999} {same}")]
        }
        _ => known.iter().map(|(figure, basis)| format!("{figure} {basis}")).collect(),
    }
}

/// What a figure rests on: `(10 of 10 seeds, p = 0.012)`.
fn basis(effect: &Effect) -> String {
    let Effect { seeds, ratio, low, high, better, worse, p_adjusted, verdict, .. } = effect;
    let seeds_word = one_or_many(*seeds as u64, "seed", "seeds");
    match verdict {
        Verdict::NoDifference => {
            let range = format!("{}–{}", times(*low), times(*high));
            format!("({range} {})", glued(&format!("over {seeds} {seeds_word}")))
        }
        _ => {
            let agree = if *ratio < 1.0 { better } else { worse };
            let counted = glued(&format!("({agree} of {seeds} {seeds_word}"));
            match tells(effect) {
                true => format!("{counted}, {})", glued(&probability(*p_adjusted))),
                false => format!("{counted})"),
            }
        }
    }
}

/// Whether a p-value of so few seeds can be small enough to say anything.
fn tells(effect: &Effect) -> bool {
    effect.seeds >= pairs_needed(1, ALPHA)
}

/// How verdicts are found; empty if no figure could have one.
pub(super) fn rule(lab: &Lab) -> String {
    let figures = || lab.comparisons.iter().flat_map(|c| c.max.iter().chain(&c.p999));
    let Some(first) = lab.comparisons.first().filter(|_| figures().any(tells)) else {
        return String::new();
    };
    let corrected = match figures().count() {
        0 | 1 => String::new(),
        figures => format!(" corrected for {figures} figures,"),
    };
    let percent = format!("{:.2}", first.margin * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    format!(
        "Better or worse: p ≤ {ALPHA},{corrected} more than the margin of {percent} %, and the 95 % interval of \
         the median leaves 1 out."
    )
}
