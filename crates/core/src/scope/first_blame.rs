//! What `explain` blamed first for late wakeups, against what the emulator saw.

use serde::{Deserialize, Serialize};

use super::explained::Spread;
use crate::explain::{Answer, Cause};
use crate::faults::{first, more_than_whole, wrong_sum};

/// The latest wakeups of a cell that explained them, compared by the largest share of what held them up: without
/// handler, scheduler and tracer, which are in each wakeup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstBlame {
    /// Wakeups that were compared.
    pub wakeups: u64,
    /// Wakeups beside these of which both say that nothing held them up: less than one in a hundred of the lateness.
    #[serde(default)]
    pub held_by_nothing: u64,
    /// Of these, blamed on the same cause first.
    pub same_cause: u64,
    /// Of those with the same cause, on the same culprit; of sections, on a function that the emulator saw at
    /// one of their ends or calling that.
    pub same_culprit: u64,
    /// By how much all that explain blamed on that cause is longer than all that the emulator saw of it, of those
    /// with the same cause, ns; below zero if shorter.
    pub longer_ns: Option<Spread>,
    /// The same by the cause that explain blamed first, the most frequent one first.
    #[serde(default)]
    pub causes: Vec<BlamedOnCause>,
    /// Those with another cause or culprit.
    pub others: Vec<OtherBlame>,
}

/// Wakeups that explain blamed on one cause first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlamedOnCause {
    /// The cause.
    pub cause: Cause,
    /// How many wakeups.
    pub wakeups: u64,
    /// Of these, those of which the emulator saw most of the same cause.
    pub same_cause: u64,
    /// Of those with the same cause, with the same culprit.
    pub same_culprit: u64,
    /// By how much all that explain blamed on it is longer, of those with the same cause, ns; below zero if shorter.
    pub longer_ns: Option<Spread>,
}

/// A wakeup that was blamed on something else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherBlame {
    /// When it was due, since the start of the run, ns.
    pub expiry_ns: u64,
    /// How late it was, ns.
    pub wakeup_latency_ns: u64,
    /// What explain blamed first.
    pub said: Answer,
    /// How long that was, ns.
    pub said_ns: u64,
    /// What the emulator saw most of.
    pub seen: Answer,
    /// How long that was, ns.
    pub seen_ns: u64,
}

impl FirstBlame {
    /// What contradicts itself in it, if anything does.
    pub(super) fn fault(&self) -> Option<String> {
        let Self { wakeups, same_cause, same_culprit, longer_ns, .. } = *self;
        let all =
            BlamedOnCause { cause: Cause::default(), wakeups, same_cause, same_culprit, longer_ns };
        all.fault()
            .or_else(|| {
                let listed = same_culprit.saturating_add(self.others.len() as u64);
                (listed != wakeups).then(|| {
                    format!(
                        "wakeups is {wakeups}, but same_culprit is {same_culprit} and others are {}",
                        self.others.len()
                    )
                })
            })
            .or_else(|| self.fault_of_causes())
            .or_else(|| first("others", &self.others, OtherBlame::fault))
    }

    /// Records of earlier versions have none.
    fn fault_of_causes(&self) -> Option<String> {
        if self.causes.is_empty() {
            return None;
        }
        let sum = |key, stated, of: fn(&BlamedOnCause) -> u64| {
            wrong_sum(key, stated, "those of causes", self.causes.iter().map(of))
        };
        first("causes", &self.causes, BlamedOnCause::fault)
            .or_else(|| sum("wakeups", self.wakeups, |cause| cause.wakeups))
            .or_else(|| sum("same_cause", self.same_cause, |cause| cause.same_cause))
            .or_else(|| sum("same_culprit", self.same_culprit, |cause| cause.same_culprit))
            .or_else(|| {
                let spreads = || self.causes.iter().filter_map(|cause| cause.longer_ns);
                let ends = self.longer_ns.map(|all| (Some(all.min), Some(all.max)));
                let of_causes = (
                    spreads().map(|spread| spread.min).min(),
                    spreads().map(|spread| spread.max).max(),
                );
                let (min, max) = ends.filter(|ends| *ends != of_causes)?;
                Some(format!(
                    "longer_ns goes from {min:?} to {max:?}, but those of causes from {of_causes:?}"
                ))
            })
    }
}

impl BlamedOnCause {
    fn fault(&self) -> Option<String> {
        let same_cause = ("same_cause", self.same_cause);
        more_than_whole([
            (same_cause, ("wakeups", self.wakeups)),
            (("same_culprit", self.same_culprit), same_cause),
        ])
        .or_else(|| Spread::fault(self.longer_ns, self.same_cause))
    }
}

impl OtherBlame {
    fn fault(&self) -> Option<String> {
        let late = ("wakeup_latency_ns", self.wakeup_latency_ns);
        more_than_whole([(("said_ns", self.said_ns), late), (("seen_ns", self.seen_ns), late)])
    }
}
