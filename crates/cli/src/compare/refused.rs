//! Why runs cannot be compared, and what to do.

use wakescope_core::source::Quantity;
use wakescope_report::style::clean;
use wakescope_stats::compare::{Difference, Refusal};

use super::same::repeated;
use crate::Failure;

/// What is said of a refusal.
pub(crate) fn failure(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::NoRuns => Failure::new("there is nothing to compare")
            .because("a side has no runs")
            .try_this("name runs on both sides: wakescope compare NEW… --against OLD…"),
        Refusal::NoSamples(label) => no_samples(label),
        Refusal::Quantities(new, old) => {
            Failure::new("cannot compare these runs: they measure different quantities")
                .because(format!("the new ones hold {}, the old ones {}", names(new), names(old)))
                .try_this("compare results of one tool, made with the same options")
                .try_this("if each side holds one quantity, compare them anyway: --mix-quantities")
        }
        Refusal::Repeated(one, other) => repeated("compare", one, other),
        Refusal::Differences(differences) => differing("compare", differences),
    }
}

/// A run without samples.
fn no_samples(label: &str) -> Failure {
    Failure::new(format!("cannot use {}: it has no samples", clean(label, 120)))
        .try_this("leave it out")
}

/// Runs that are not alike enough.
pub(crate) fn differing(what: &str, differences: &[Difference]) -> Failure {
    let failure = Failure::new(format!("cannot {what} these runs as they are"));
    differences
        .iter()
        .fold(failure, |failure, difference| failure.because(clean(&difference.message, 600)))
        .try_this("use different runs of the same plan; or ignore this: --force")
}

fn names(quantities: &[Quantity]) -> String {
    quantities.iter().map(Quantity::to_string).collect::<Vec<_>>().join(" and ")
}
