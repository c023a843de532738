//! A late wakeup with what was computed of it.

use crate::net_of_steal::{Lateness, without_stolen};
use crate::{Known, Part, blame, components, timeline};
use wakescope_core::explain::{Components, Share, Wakeup};
use wakescope_core::run::Episode;

/// A wakeup, accounted for.
pub(crate) struct Account<'a> {
    wakeup: &'a Wakeup,
    pub(crate) components: Components,
    pub(crate) blame: Vec<Share>,
}

impl<'a> Account<'a> {
    pub(crate) fn of(wakeup: &'a Wakeup, known: &Known) -> Self {
        Self { wakeup, components: components(&wakeup.marks), blame: blame(wakeup, known) }
    }

    /// How late it was, nanoseconds.
    pub(crate) fn ns(&self, lateness: Lateness) -> u64 {
        lateness.of(self.components.total_ns(), self.stolen_ns())
    }

    /// What the clock of its CPU says was stolen of that, nanoseconds.
    pub(crate) fn stolen_ns(&self) -> u64 {
        self.wakeup.stolen_ns.min(self.components.total_ns())
    }

    /// When it was due, from the start of the run, nanoseconds.
    pub(crate) fn expiry_ns(&self, origin_ns: u64) -> u64 {
        self.wakeup.marks.due.0.saturating_sub(origin_ns)
    }

    /// To be ranked.
    pub(crate) fn part(&self, lateness: Lateness) -> Part<'_> {
        let blame = without_stolen(&self.blame, lateness.left_out(self.stolen_ns()));
        Part::of(self.ns(lateness), &blame)
    }

    /// As a record lists it.
    pub(crate) fn episode(&self, origin_ns: u64) -> Episode {
        let mut episode = Episode {
            cpu: Some(self.wakeup.cpu),
            expiry_ns: self.expiry_ns(origin_ns),
            wakeup_latency_ns: self.components.total_ns(),
            ..Episode::default()
        };
        self.explain(&mut episode);
        episode
    }

    /// Whether it is the wakeup of `episode`.
    pub(crate) fn is(&self, episode: &Episode, origin_ns: u64) -> bool {
        self.expiry_ns(origin_ns) == episode.expiry_ns
            && self.components.total_ns() == episode.wakeup_latency_ns
            && episode.cpu.is_none_or(|cpu| cpu == self.wakeup.cpu)
    }

    /// Puts into the `episode` that it is what is known of it.
    pub(crate) fn explain(&self, episode: &mut Episode) {
        episode.components = Some(self.components);
        episode.blame.clone_from(&self.blame);
        episode.stolen_ns = Some(self.stolen_ns()).filter(|&ns| ns > 0);
        episode.timeline = timeline(self.wakeup);
    }
}
