//! Why the latest wakeups of a cell were late, from all that the emulator saw change.
//!
//! The guest's times are its `CLOCK_MONOTONIC`, the plugin's count from when the machine was turned on. As for
//! sections, one distance leads from the ones to the others: each late task must have read the clock, to the
//! nanosecond, when the guest says that it ran.

use std::ops::RangeInclusive;

use wakescope_attribution::{Late, Outside, outside};
use wakescope_core::run::{Episode, Run};
use wakescope_core::scope::edges::{Edge, EdgeKind, Edges};
use wakescope_core::scope::first_blame::FirstBlame;
use wakescope_core::scope::signals::Signals;
use wakescope_core::units::grouped;

use super::distance::{distance, possible};
use super::first_blame::{SeenBlame, first_blame};

/// What was seen of the latest wakeups.
#[derive(Debug, Default)]
pub(super) struct Latest {
    /// Explained, the latest first.
    pub(super) episodes: Vec<Episode>,
    /// Of each, what the CPU was at.
    pub(super) signals: Vec<Signals>,
    /// What explain blamed first, of those that it explained.
    pub(super) first_blame: Option<FirstBlame>,
    /// From the guest's times to those of the edges, ns.
    pub(super) distance_ns: u64,
}

impl Latest {
    /// The latest wakeups of a `run` whose first process began then; the `most` latest ones are kept. The
    /// distance is the `known` one, if there is one.
    ///
    /// # Errors
    /// Why nothing of it is certain.
    pub(super) fn of(
        run: &Run,
        began_ns: u64,
        known: Option<u64>,
        edges: &Edges,
        most: usize,
    ) -> Result<Self, String> {
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
        let possible = known.map_or_else(|| possible(edges.process_ns, began_ns), |d| d..=d);
        let distance_ns = Readings::of(&edges.edges).distance(&times, &possible)?;
        let mut latest: Vec<&Episode> = run.worst.iter().collect();
        latest.sort_by_key(|episode| std::cmp::Reverse(episode.wakeup_latency_ns));
        let late = |episode: &&Episode| Late {
            due_ns: due_of(episode).saturating_add(distance_ns),
            response_ns: ran(episode).saturating_add(distance_ns),
        };
        let late: Vec<Late> = latest.iter().map(late).collect();
        let seen = latest.iter().zip(outside(edges, &late));
        let seen = seen.map(|(episode, seen)| explained(episode, seen));
        let (mut episodes, mut signals, mut blames) = (Vec::new(), Vec::new(), Vec::new());
        for seen in seen {
            let (episode, of_episode, blame) = seen?;
            episodes.push(episode);
            signals.push(of_episode);
            blames.push(blame);
        }
        let first_blame = first_blame(&latest, &blames, run.host.preemption.model);
        episodes.truncate(most);
        signals.truncate(most);
        Ok(Self { episodes, signals, first_blame, distance_ns })
    }
}

/// When programs read the clock, in order.
struct Readings {
    all: Vec<u64>,
    /// Those before which a task had read none since it got the CPU. A probe that was woken first reads when that
    /// was. It reads the clock again, and from the one reading to the other always takes as long, so by all
    /// readings two distances can fit.
    first: Vec<u64>,
}

impl Readings {
    fn of(edges: &[Edge]) -> Self {
        let (mut all, mut first, mut has_read) = (Vec::new(), Vec::new(), true);
        for edge in edges {
            match edge.what {
                EdgeKind::Switch(_) => has_read = false,
                EdgeKind::UserClock => {
                    all.push(edge.at_ns);
                    if !has_read {
                        first.push(edge.at_ns);
                    }
                    has_read = true;
                }
                _ => {}
            }
        }
        Self { all, first }
    }

    /// The only distance at which a task read the clock at each of `times`.
    fn distance(&self, times: &[u64], possible: &RangeInclusive<u64>) -> Result<u64, String> {
        let of = |readings: &[u64]| distance("the guest", times, readings, possible.clone());
        // A probe that was still awake when it was due did not begin to run with a reading.
        of(&self.first).or_else(|_| of(&self.all))
    }
}

/// An episode with what was seen of it, whose parts add up to its lateness.
fn explained(
    episode: &Episode,
    seen: Option<Outside>,
) -> Result<(Episode, Signals, SeenBlame), String> {
    let late =
        || format!("the wakeup that was due {} ns after the start", grouped(episode.expiry_ns));
    let Outside { components, blame, irqs_off_when_ready, timeline, slices, ends } =
        seen.ok_or_else(|| format!("{} was not seen from beginning to end", late()))?;
    let sums = [components.total_ns(), blame.iter().map(|share| share.ns).sum()];
    if sums != [episode.wakeup_latency_ns; 2] {
        return Err(format!("the causes of {} do not add up to its lateness", late()));
    }
    let Episode { cpu, expiry_ns, wakeup_latency_ns, .. } = *episode;
    let its_blame = SeenBlame { blame: blame.clone(), irqs_off_when_ready, ends };
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
    Ok((episode, Signals { expiry_ns, wakeup_latency_ns, slices }, its_blame))
}

#[cfg(test)]
mod tests {
    use wakescope_core::explain::Task;
    use wakescope_core::scope::edges::{State, TaskId};

    use super::*;

    const PROBE: TaskId = TaskId(0);
    const OTHER: TaskId = TaskId(1);

    /// The probe reads the clock at each of these times, and 40 ns later; in between somebody else runs, and reads
    /// it as well.
    fn edges(read: &[u64]) -> Edges {
        let edge = |at_ns, what| Edge { at_ns, function: None, caller: None, what };
        let turn = |&at: &u64| {
            [
                edge(at - 500, EdgeKind::Switch(PROBE)),
                edge(at, EdgeKind::UserClock),
                edge(at + 40, EdgeKind::UserClock),
                edge(at + 300, EdgeKind::Switch(OTHER)),
                edge(at + 300 + at % 7, EdgeKind::UserClock),
            ]
        };
        Edges {
            process_ns: 1_000,
            window_ns: 2_000..100_000,
            measured_until_ns: 90_000,
            start: State::default(),
            edges: read.iter().flat_map(turn).collect(),
            functions: Vec::new(),
            tasks: vec![Task::default(), Task::default()],
            knows_asks: true,
        }
    }

    #[test]
    fn the_first_reading_of_a_turn_tells_the_distance() {
        let read = [10_000, 23_456, 60_001];
        let readings = Readings::of(&edges(&read).edges);
        let found = |times: &[u64]| readings.distance(times, &(0..=50_000));
        let times = read.map(|at| at - 3_000);
        let any = distance("the guest", &times, &readings.all, 0..=50_000).unwrap_err();
        assert!(any.contains("more than one way"), "{any}");
        assert_eq!(found(&times), Ok(3_000));
        // One was awake when it was due, and had read the clock before.
        let mut awake = times;
        awake[1] += 40;
        assert_eq!(found(&awake), Ok(3_000));
        // What no reading fits is refused.
        awake[1] += 1;
        assert!(found(&awake).unwrap_err().contains("at most 2 of its 3"));
    }
}
