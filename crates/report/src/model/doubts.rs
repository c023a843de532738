//! Why there are no figures, or why they cannot be trusted.

use std::cmp::Reverse;

use wakescope_core::finding::{Finding, Severity};
use wakescope_core::units::one_or_many;

use super::{Ending, Figures, Simulated, Simulation};
use crate::style::clean;

/// The most messages of one kind that are shown of a simulation.
const MESSAGES: usize = 3;

/// The most ranges of seeds that are named.
const RANGES: usize = 8;

/// How much a doubt weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Note,
    Degraded,
    Invalid,
    Broken,
}

impl Weight {
    /// What stands before the reason.
    fn word(self) -> &'static str {
        match self {
            Self::Note => "",
            Self::Degraded => "degraded: ",
            Self::Invalid => "invalid: ",
            Self::Broken => "broke a rule: ",
        }
    }
}

/// A reason of one simulation.
struct Reason {
    seed: u64,
    /// The share of expiries without a wakeup of their own: the higher, the worse.
    lost: f64,
    message: String,
}

/// The reasons of one kind, of all simulations of a model.
struct Kind<'a> {
    weight: Weight,
    /// The finding's code.
    code: &'a str,
    /// By seed; at least one.
    reasons: Vec<Reason>,
}

/// A sentence for each kind, the gravest of a model first, with the seeds that it is true of.
pub(super) fn sentences(simulated: &Simulated) -> Vec<String> {
    let by_model = simulated.runs.chunk_by(|a, b| a.preempt == b.preempt);
    let mut out: Vec<String> = by_model.flat_map(of_model).collect();
    let left = simulated.runs.iter().filter(|run| matches!(run.ending, Ending::NotRun)).count();
    if left > 0 {
        let were = one_or_many(left as u64, "was", "were");
        out.push(format!("ended early: {left} of {} {were} not begun", simulated.runs.len()));
    }
    out
}

/// `runs`: those of one model.
fn of_model(runs: &[Simulation]) -> Vec<String> {
    let mut kinds: Vec<Kind> = Vec::new();
    for run in runs {
        for (weight, code, message) in reasons(run) {
            let lost = match &run.ending {
                Ending::Ok(figures) => lost(figures),
                Ending::Broken { .. } | Ending::NotRun => 0.0,
            };
            let reason = Reason { seed: run.seed, lost, message: clean(message, 300) };
            match kinds.iter_mut().find(|kind| (kind.weight, kind.code) == (weight, code)) {
                Some(kind) => kind.reasons.push(reason),
                None => kinds.push(Kind { weight, code, reasons: vec![reason] }),
            }
        }
    }
    kinds.sort_by_key(|kind| Reverse(kind.weight));
    let rules = clean(&runs[0].preempt, 20);
    kinds.iter().map(|kind| format!("{rules}, {}", kind.sentence(runs.len()))).collect()
}

/// How much each reason of a simulation weighs, its code and its message.
fn reasons(run: &Simulation) -> Vec<(Weight, &str, &str)> {
    let of = |finding: &Finding| match finding.severity {
        Severity::Note => Weight::Note,
        Severity::Warning => Weight::Degraded,
        Severity::Error => Weight::Invalid,
    };
    match &run.ending {
        Ending::Broken { reason } => vec![(Weight::Broken, "", reason)],
        Ending::Ok(figures) => {
            figures.findings.iter().map(|f| (of(f), f.code.as_str(), f.message.as_str())).collect()
        }
        Ending::NotRun => Vec::new(),
    }
}

/// Without any expiry, no wakeup came at all.
fn lost(figures: &Figures) -> f64 {
    match figures.count {
        0 => 1.0,
        count => figures.missed as f64 / count as f64,
    }
}

impl Kind<'_> {
    /// `5 of 8 seeds (5 to 9): invalid: …`, with the messages of the worst seed. `all`: the number of
    /// simulations of the model.
    fn sentence(&self, all: usize) -> String {
        // Of equal ones the first.
        let worst = self.reasons.iter().reduce(|a, b| if b.lost > a.lost { b } else { a });
        let Some(worst) = worst.map(|reason| reason.seed) else { return String::new() };
        let of_worst = self.reasons.iter().filter(|reason| reason.seed == worst);
        let told: Vec<&str> = of_worst.take(MESSAGES).map(|r| r.message.as_str()).collect();
        let mut seeds: Vec<u64> = self.reasons.iter().map(|reason| reason.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let who = match seeds.as_slice() {
            [seed] => format!("seed {seed}"),
            several => format!("{} of {all} seeds ({})", several.len(), ranges(several)),
        };
        let is_told = |reason: &Reason| told.contains(&reason.message.as_str());
        let which = match self.weight {
            _ if self.reasons.iter().all(is_told) => String::new(),
            _ if seeds.len() == 1 => format!("; and {} more", self.reasons.len() - told.len()),
            // Nothing says that one broken rule is worse than another.
            Weight::Note | Weight::Broken => format!(" (first: seed {worst})"),
            Weight::Degraded | Weight::Invalid => format!(" (worst: seed {worst})"),
        };
        format!("{who}: {}{}{which}", self.weight.word(), told.join("; "))
    }
}

/// `1, 5 to 9`; of two, `1, 2`. `seeds`: in order, each once.
fn ranges(seeds: &[u64]) -> String {
    let together = |a: &u64, b: &u64| a.checked_add(1) == Some(*b);
    let all: Vec<&[u64]> = seeds.chunk_by(together).collect();
    let text = |range: &&[u64]| match **range {
        [first, last] => format!("{first}, {last}"),
        [first, .., last] => format!("{first} to {last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    let mut out = all.iter().take(RANGES).map(text).collect::<Vec<_>>().join(", ");
    if all.len() > RANGES {
        out.push_str(", …");
    }
    out
}
