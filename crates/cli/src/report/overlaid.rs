//! Several runs together.

use wakescope_core::redact::redact;
use wakescope_core::run::Run;
use wakescope_core::source::Quantity;
use wakescope_report::html;
use wakescope_report::picture::Picture;
use wakescope_report::run_set::{Entry, MOST_CURVES, RunSet};
use wakescope_report::style::clean;

use crate::Failure;
use crate::runs::Named;

use super::format::Format;

/// The most runs in one picture of pairs of CPUs: those of 64 CPUs.
const MOST_PAIRS: usize = 64 * 64;

/// What runs show together, each under its label.
pub(super) fn runs(named: &[Named]) -> RunSet<'_> {
    RunSet::of(named.iter().map(|n| Entry::of(&n.label, &n.run)).collect())
}

/// Makes all of them such as can be published: numbered, because their folders have names.
pub(super) fn redact_all(named: &mut [Named]) {
    let is_alone = named.len() == 1;
    for (number, Named { label, path, given: _, run }) in (1..).zip(named) {
        redact(run);
        *label = if is_alone { "run".into() } else { format!("run {number}") };
        *path = label.as_str().into();
    }
}

/// Refuses what cannot be shown together in a picture, or in a page of many.
pub(super) fn check(run_set: &RunSet<'_>, format: Format, picture: Picture) -> Result<(), Failure> {
    if let Some(fault) = run_set.fault() {
        return Err(Failure::new(format!("these runs measure different quantities: {fault}"))
            .try_this("show only runs of one quantity together"));
    }
    let shows_pairs = match format {
        Format::Html => html::has_room(run_set),
        _ => format.is_picture() && picture == Picture::Matrix,
    };
    let (what, most) = match shows_pairs {
        true => ("runs are too many for a matrix", MOST_PAIRS),
        false => ("curves are too many to distinguish", MOST_CURVES),
    };
    let count = run_set.entries.len();
    if count > most {
        return Err(Failure::new(format!("{count} {what}"))
            .try_this(format!("show at most {most} together")));
    }
    Ok(())
}

/// Refuses wakeup latencies beside other quantities on the same axes, unless that is asked for.
///
/// What one file holds side by side belongs together: the latencies of schbench.
pub(super) fn refuse_mixtures(named: &[Named], mix: bool) -> Result<(), Failure> {
    let quantity = |n: &Named| n.run.quantity();
    let file = |n: &Named| n.run.source.as_ref().map(|s| s.file.clone()).unwrap_or_default();
    let Some(first) = named.first() else { return Ok(()) };
    let one_file = named.iter().all(|n| !file(n).is_empty() && file(n) == file(first));
    let is_wakeup = |n: &&Named| quantity(n) == Quantity::WakeupLatency;
    let other = named.iter().find(|n| !is_wakeup(n));
    let pair = named.iter().find(is_wakeup).zip(other).filter(|_| !mix && !one_file);
    match pair {
        None => Ok(()),
        Some((wakeup, other)) => Err(Failure::new("these runs measure different quantities")
            .because(format!(
                "{} holds {}, {} holds {}",
                wakeup.label,
                quantity(wakeup),
                other.label,
                quantity(other)
            ))
            .try_this("show only runs of one quantity together, or each by itself")
            .try_this("show them together anyway: --mix-quantities")),
    }
}

/// What is said of each run, below its name where there are several.
pub(super) fn one_after_the_other(named: &[Named], text: impl Fn(&Run) -> String) -> String {
    match named {
        [only] => text(&only.run),
        several => {
            let parts = several.iter().map(|n| {
                let path = clean(&n.path.display().to_string(), 200);
                format!("{path}\n\n{}", text(&n.run))
            });
            parts.collect::<Vec<_>>().join("\n\n")
        }
    }
}
