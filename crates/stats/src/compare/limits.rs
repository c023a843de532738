//! New runs and the limits that they are held to.

use serde::{Deserialize, Serialize};

use super::Labelled;
use wakescope_core::limit::{Limit, Outcome};
use wakescope_core::run::State;
use wakescope_core::source::Quantity;

/// A limit, and the new run that stands worst to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimit {
    /// What the run's values are.
    pub quantity: Quantity,
    /// The limit in words: `p99.9 ≤ 100 µs`.
    pub limit: String,
    /// The limit's value.
    pub limit_ns: u64,
    /// The run's label.
    pub run: String,
    /// Its value; `null` if its samples do not carry it.
    pub observed_ns: Option<u64>,
    /// Whether all runs keep the limit: by the run that stands worst.
    pub outcome: Outcome,
    /// Why that cannot be said; empty otherwise.
    pub reason: String,
}

/// Judges all `runs` by all `limits`, and keeps per quantity and limit the worst.
pub(super) fn judge(runs: &[Labelled], limits: &[Limit]) -> Vec<RunLimit> {
    let mut worst: Vec<RunLimit> = Vec::new();
    for limit in limits {
        let begin = worst.len();
        for labelled in runs {
            let run = judged(labelled, limit);
            match worst[begin..].iter_mut().find(|other| other.quantity == run.quantity) {
                Some(other) => {
                    let grave = |r: &RunLimit| (r.outcome, r.observed_ns);
                    if grave(&run) > grave(other) {
                        *other = run;
                    }
                }
                None => worst.push(run),
            }
        }
    }
    worst
}

fn judged(labelled: &Labelled, limit: &Limit) -> RunLimit {
    let run = labelled.run;
    let complete = run.state == State::Complete;
    let by = run.plan.measured_by(run.source.as_ref());
    let judgement = limit.judge(&run.expiries, &run.validity, by, complete);
    RunLimit {
        quantity: run.quantity(),
        limit: judgement.limit,
        limit_ns: judgement.limit_ns,
        run: labelled.label.into(),
        observed_ns: judgement.observed_ns,
        outcome: judgement.outcome,
        reason: judgement.reason,
    }
}
