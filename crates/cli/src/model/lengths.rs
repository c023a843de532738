//! Lengths that a scenario takes of a run: those of a histogram, or of what made wakeups late.

use std::collections::BTreeMap;
use std::path::Path;

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Cause, Share};
use wakescope_core::run::Run;
use wakescope_model::scenario::length::Bucket;
use wakescope_model::scenario::limits;

use crate::explain::each_stored;
use crate::runs;

/// The lengths that a scenario calls `of` in the run at this path.
///
/// # Errors
/// Why there are none, to stand behind the place in the scenario.
pub(super) fn of_run(path: &str, of: &str) -> Result<Vec<Bucket>, String> {
    let path = Path::new(path);
    let run = runs::read(path).map_err(|failure| {
        let text = failure.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("wakescope: ").unwrap_or(first).to_owned()
    })?;
    if let Some(distribution) = histogram(&run, of) {
        let bucket = |of: &wakescope_core::histogram::Bucket| Bucket {
            lower: of.lower,
            upper: of.upper,
            count: of.count,
        };
        return Ok(distribution?.histogram.buckets().iter().map(bucket).collect());
    }
    let (cause, culprit) = match of.split_once(' ') {
        Some((cause, culprit)) => (cause, Some(culprit)),
        None => (of, None),
    };
    match Cause::ALL.into_iter().find(|known| known.name() == cause) {
        Some(cause) => of_episodes(&run, path, cause, culprit),
        None => Err("expected wakeup_latency, irq_latency, handler_duration, sched_latency, \
                     sched_duration, or a cause, as in irq_off or irq_off free_pcppages_bulk"
            .into()),
    }
}

/// The histogram of this name; `None` if there is none of that name in any run.
fn histogram(run: &Run, of: &str) -> Option<Result<Distribution, String>> {
    if of == "wakeup_latency" {
        return Some(Ok(run.woken()));
    }
    let parts = run.components.as_ref();
    let part = match of {
        "irq_latency" => parts.map(|parts| &parts.irq_latency),
        "handler_duration" => parts.map(|parts| &parts.handler_duration),
        "sched_latency" => parts.map(|parts| &parts.sched_latency),
        "sched_duration" => parts.and_then(|parts| parts.sched_duration.as_ref()),
        _ => return None,
    };
    let lacks = || "the run was not explained, so it has no components".to_owned();
    Some(part.cloned().ok_or_else(lacks))
}

/// The lengths of all shares with this cause, and this culprit if one is named, of the late wakeups that
/// are stored; of those that the record lists, if none are.
fn of_episodes(
    run: &Run,
    path: &Path,
    cause: Cause,
    culprit: Option<&str>,
) -> Result<Vec<Bucket>, String> {
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    let mut add = |blame: &[Share]| {
        let is_it = |share: &&Share| {
            let is_named = culprit.is_none_or(|name| share.culprit.name() == name);
            share.cause == cause && is_named && share.ns > 0
        };
        for share in blame.iter().filter(is_it) {
            // Whoever reads these refuses more, and they are bounded before.
            if lengths.len() <= limits::BUCKETS {
                *lengths.entry(share.ns).or_default() += 1;
            }
        }
    };
    if each_stored(run, path, |episode| add(&episode.blame))? == 0 {
        run.worst.iter().for_each(|episode| add(&episode.blame));
    }
    if lengths.is_empty() {
        let of = culprit.map(|name| format!(" of {name}")).unwrap_or_default();
        return Err(format!("no late wakeup that is stored has a share {cause}{of}"));
    }
    let bucket = |(ns, count): (u64, u64)| Bucket { lower: ns, upper: ns + 1, count };
    Ok(lengths.into_iter().map(bucket).collect())
}
