//! Why the latest wakeups of a cell were late, from all that the emulator saw change.
//!
//! The guest's times are its `CLOCK_MONOTONIC`, the plugin's count from when the machine was turned on. As for
//! sections, one distance leads from the ones to the others: each late task must have read the clock, to the
//! nanosecond, when the guest says that it ran.

use wakescope_attribution::{Late, Outside, outside};
use wakescope_core::explain::{Answer, Culprit, Share};
use wakescope_core::run::{Episode, Run};
use wakescope_core::scope::edges::{Edge, EdgeKind, Edges};
use wakescope_core::scope::explained::Spread;
use wakescope_core::scope::first_blame::{FirstBlame, OtherBlame};
use wakescope_core::scope::signals::Signals;
use wakescope_core::units::grouped;

use super::distance::{MORE_ROOM_NS, distance};

/// What was seen of the latest wakeups.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// Explained, the latest first.
    pub(super) episodes: Vec<Episode>,
    /// Of each, what the CPU was at.
    pub(super) signals: Vec<Signals>,
    /// What explain blamed first, of those that it explained.
    pub(super) first_blame: Option<FirstBlame>,
}

impl Latest {
    /// The latest wakeups of a `run` whose first process began then; the `most` latest ones are kept.
    ///
    /// # Errors
    /// Why nothing of it is certain.
    pub(super) fn of(run: &Run, began_ns: u64, edges: &Edges, most: usize) -> Result<Self, String> {
        if edges.tasks.is_empty() {
            return Err("the kernel has no type information (CONFIG_DEBUG_INFO_BTF), which says \
                        where tasks have their names"
                .into());
        }
        let due_of = |episode: &Episode| run.origin_ns.saturating_add(episode.expiry_ns);
        let ran = |episode: &Episode| due_of(episode).saturating_add(episode.wakeup_latency_ns);
        let mut times: Vec<u64> = run.worst.iter().map(ran).collect();
        if times.is_empty() {
            return Ok(Self::default());
        }
        times.sort_unstable();
        times.dedup();
        let is_reading = |edge: &&Edge| edge.what == EdgeKind::UserClock;
        let readings: Vec<u64> =
            edges.edges.iter().filter(is_reading).map(|edge| edge.at_ns).collect();
        let least = edges.process_ns.saturating_sub(began_ns);
        let possible = least..=least.saturating_add(MORE_ROOM_NS);
        let distance_ns = distance("the guest", &times, &readings, possible)?;
        let mut latest: Vec<&Episode> = run.worst.iter().collect();
        latest.sort_by_key(|episode| std::cmp::Reverse(episode.wakeup_latency_ns));
        let late = |episode: &&Episode| Late {
            due_ns: due_of(episode).saturating_add(distance_ns),
            response_ns: ran(episode).saturating_add(distance_ns),
        };
        let late: Vec<Late> = latest.iter().map(late).collect();
        let seen = latest.iter().zip(outside(edges, &late));
        let seen = seen.map(|(episode, seen)| explained(episode, seen));
        let (mut episodes, mut signals): (Vec<Episode>, Vec<Signals>) =
            seen.collect::<Result<Vec<_>, String>>()?.into_iter().unzip();
        let first_blame = first_blame(&latest, &episodes);
        episodes.truncate(most);
        signals.truncate(most);
        Ok(Self { episodes, signals, first_blame })
    }
}

/// What explain blamed first, against what was seen; `None` if it explained none.
fn first_blame(said: &[&Episode], seen: &[Episode]) -> Option<FirstBlame> {
    let mut all = FirstBlame::default();
    let mut longer_ns = Vec::new();
    for (said_of, seen_of) in said.iter().zip(seen) {
        let (Some(said), Some(seen)) = (said_of.blame.first(), seen_of.blame.first()) else {
            continue;
        };
        all.wakeups += 1;
        let is_same = said.cause == seen.cause;
        let is_named = is_same && names(said, seen);
        all.same_cause += u64::from(is_same);
        all.same_culprit += u64::from(is_named);
        if is_same {
            let of_cause = seen_of.blame.iter().filter(|share| share.cause == said.cause);
            let seen_ns: u64 = of_cause.map(|share| share.ns).sum();
            let [one, other] = [said.ns, seen_ns].map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
            longer_ns.push(one - other);
        }
        if !is_named {
            all.others.push(OtherBlame {
                expiry_ns: said_of.expiry_ns,
                wakeup_latency_ns: said_of.wakeup_latency_ns,
                said: answer(said),
                said_ns: said.ns,
                seen: answer(seen),
                seen_ns: seen.ns,
            });
        }
    }
    all.longer_ns = Spread::of(longer_ns);
    (all.wakeups > 0).then_some(all)
}

/// Whether both blame the same, or explain a function that was seen at a section's beginning.
fn names(said: &Share, seen: &Share) -> bool {
    let is_frame = |name: &str| seen.frames.iter().any(|frame| frame.name() == name);
    let is_same = said.culprit.without_pid() == seen.culprit.without_pid();
    is_same || matches!(&said.culprit, Culprit::Function(function) if is_frame(&function.name))
}

fn answer(share: &Share) -> Answer {
    let Share { cause, culprit, phase, from_cpu, .. } = share.clone();
    Answer { cause, culprit, phase, from_cpu }
}

/// An episode with what was seen of it, whose parts add up to its lateness.
fn explained(episode: &Episode, seen: Option<Outside>) -> Result<(Episode, Signals), String> {
    let late =
        || format!("the wakeup that was due {} ns after the start", grouped(episode.expiry_ns));
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
