//! Why the latest wakeups of a cell were late, from all that the emulator saw change.
//!
//! The guest's times are its `CLOCK_MONOTONIC`, the plugin's count from when the machine was turned on. As for
//! sections, one distance leads from the ones to the others: each late task must have read the clock, to the
//! nanosecond, when the guest says that it ran.

use wakescope_attribution::{Late, Outside, outside};
use wakescope_core::run::{Episode, Run};
use wakescope_core::scope::edges::{Edge, EdgeKind, Edges};
use wakescope_core::scope::signals::Signals;
use wakescope_core::units::grouped;

use super::distance::{ROOM_NS, distance};

/// The `most` latest wakeups of a `run` whose first process began then, explained.
///
/// # Errors
/// Why nothing of it is certain.
pub(super) fn episodes(
    run: &Run,
    began_ns: u64,
    edges: &Edges,
    most: usize,
) -> Result<(Vec<Episode>, Vec<Signals>), String> {
    let due_of = |episode: &Episode| run.origin_ns.saturating_add(episode.expiry_ns);
    let ran = |episode: &Episode| due_of(episode).saturating_add(episode.wakeup_latency_ns);
    let mut times: Vec<u64> = run.worst.iter().map(ran).collect();
    if times.is_empty() {
        return Ok(Default::default());
    }
    times.sort_unstable();
    times.dedup();
    let is_reading = |edge: &&Edge| edge.what == EdgeKind::UserClock;
    let readings: Vec<u64> =
        edges.edges.iter().filter(is_reading).map(|edge| edge.at_ns).collect();
    let least = edges.process_ns.saturating_sub(began_ns);
    let distance_ns = distance("the guest", &times, &readings, least..=least.saturating_add(ROOM_NS))?;
    let mut latest: Vec<&Episode> = run.worst.iter().collect();
    latest.sort_by_key(|episode| std::cmp::Reverse(episode.wakeup_latency_ns));
    latest.truncate(most);
    let late: Vec<Late> = latest
        .iter()
        .map(|episode| Late {
            due_ns: due_of(episode).saturating_add(distance_ns),
            response_ns: ran(episode).saturating_add(distance_ns),
        })
        .collect();
    let seen = outside(edges, &late);
    latest.into_iter().zip(seen).map(|(episode, seen)| explained(episode, seen)).collect()
}

/// An episode with what was seen of it, whose parts add up to its lateness.
fn explained(episode: &Episode, seen: Option<Outside>) -> Result<(Episode, Signals), String> {
    let late = || format!("the wakeup that was due {} ns after the start", grouped(episode.expiry_ns));
    let Outside { components, blame, timeline, slices } =
        seen.ok_or_else(|| format!("{} was not seen from beginning to end", late()))?;
    let sums = [components.total_ns(), blame.iter().map(|share| share.ns).sum()];
    if sums != [episode.wakeup_latency_ns; 2] {
        return Err(format!("what was seen of {} does not add up to its lateness", late()));
    }
    let Episode { cpu, expiry_ns, wakeup_latency_ns, .. } = *episode;
    let episode = Episode {
        cpu,
        expiry_ns,
        wakeup_latency_ns,
        missed: episode.missed,
        components: Some(components),
        blame,
        timeline,
        ..Episode::default()
    };
    Ok((episode, Signals { expiry_ns, wakeup_latency_ns, slices }))
}
