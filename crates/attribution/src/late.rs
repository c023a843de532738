//! A late wakeup with what was computed of it.

use crate::net_of_steal::{Lateness, without_stolen};
use crate::{Part, blame, components, timeline};
use wakescope_core::episodes::Attributed;
use wakescope_core::explain::{Known, Wakeup};
use wakescope_core::run::Episode;

/// A wakeup with its answer.
pub(crate) fn attribute(wakeup: Wakeup, known: &Known) -> Attributed {
    let (components, blame) = (components(&wakeup.marks), blame(&wakeup, known));
    Attributed { wakeup, components, blame }
}

/// What rankings and records need of a wakeup that has its answer.
pub(crate) trait Late {
    /// How late it was, nanoseconds.
    fn ns(&self, lateness: Lateness) -> u64;
    /// What the clock of its CPU says was stolen of that, nanoseconds.
    fn stolen_ns(&self) -> u64;
    /// When it was due, from the start of the run, nanoseconds.
    fn expiry_ns(&self, origin_ns: u64) -> u64;
    /// To be ranked.
    fn part(&self, lateness: Lateness) -> Part<'_>;
    /// As a record lists it.
    fn episode(&self, origin_ns: u64) -> Episode;
    /// Whether it is the wakeup of `episode`.
    fn is(&self, episode: &Episode, origin_ns: u64) -> bool;
    /// Puts into the `episode` that it is what is known of it.
    fn explain(&self, episode: &mut Episode);
}

impl Late for Attributed {
    fn ns(&self, lateness: Lateness) -> u64 {
        lateness.of(self.wakeup_latency_ns(), self.stolen_ns())
    }

    fn stolen_ns(&self) -> u64 {
        self.wakeup.stolen_ns.min(self.wakeup_latency_ns())
    }

    fn expiry_ns(&self, origin_ns: u64) -> u64 {
        self.wakeup.marks.due.0.saturating_sub(origin_ns)
    }

    fn part(&self, lateness: Lateness) -> Part<'_> {
        let blame = without_stolen(&self.blame, lateness.left_out(self.stolen_ns()));
        Part::of(self.ns(lateness), &blame)
    }

    fn episode(&self, origin_ns: u64) -> Episode {
        let mut episode = Episode {
            cpu: Some(self.wakeup.cpu),
            expiry_ns: self.expiry_ns(origin_ns),
            wakeup_latency_ns: self.wakeup_latency_ns(),
            ..Episode::default()
        };
        self.explain(&mut episode);
        episode
    }

    fn is(&self, episode: &Episode, origin_ns: u64) -> bool {
        self.expiry_ns(origin_ns) == episode.expiry_ns
            && self.wakeup_latency_ns() == episode.wakeup_latency_ns
            && episode.cpu.is_none_or(|cpu| cpu == self.wakeup.cpu)
    }

    fn explain(&self, episode: &mut Episode) {
        episode.components = Some(self.components);
        episode.blame.clone_from(&self.blame);
        episode.stolen_ns = Some(self.stolen_ns()).filter(|&ns| ns > 0);
        episode.timeline = timeline(&self.wakeup);
    }
}
