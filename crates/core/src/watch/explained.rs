//! Late waits of one series that a tracer followed for a few seconds (`watch --explain`), and what it cost.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::explain::{Cause, CauseRow, Share, WaitRow};
use crate::run;

/// The most explanations of a window, and of several together.
pub(crate) const MOST_EXPLAINED: usize = 8;

/// Less than that is not enough to see anything: the records are read every 50 ms.
const LEAST_FOLLOWED_NS: u64 = 50_000_000;

/// The most causes of each with a row of their own; shares of the latest wakeup, and functions of a stack.
const MOST_CAUSES: usize = 16;
const MOST_SHARES: usize = 32;
const MOST_FRAMES: usize = 64;

/// What was followed in a window, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanations {
    /// Waits of this time and longer were late, ns; the least of several watches.
    pub above_ns: u64,
    /// The share of all CPU time that watching and following may take; the least of several watches.
    pub budget: f64,
    /// What was followed, the latest wakeup first. Each is of the window in which it ended.
    pub explained: Vec<Explained>,
    /// Further ones that have no place in a sum of windows.
    pub not_listed: u64,
    /// How often a series was late repeatedly and was not followed.
    pub suppressed: Suppressed,
}

/// How often, once for each window and series, a series was late repeatedly and was not followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppressed {
    /// It would have taken more than the budget allows, or the budget was used up before anything was seen.
    pub budget: u64,
    /// It had been followed shortly before.
    pub cooling: u64,
    /// Another one was followed.
    pub busy: u64,
    /// The tracer could not follow it.
    pub failed: u64,
}

/// Why a series was late, as far as a tracer saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The name of the tasks.
    pub comm: String,
    /// Their cgroup, as in series.
    pub cgroup_id: u64,
    /// The path of that.
    pub cgroup: Option<String>,
    /// When the tracer began to follow them, from the start of the watch, ns.
    pub begin_ns: u64,
    /// For how long it did, ns.
    pub followed_ns: u64,
    /// Whether it ended before its time, because the budget was used up.
    pub is_cut: bool,
    /// Wakeups that were followed.
    pub wakeups: u64,
    /// Of these, late ones.
    pub late: u64,
    /// Wakeups as late as this or later counted as late, ns. Windows of earlier versions say it of all only:
    /// [`Explanations::above_ns`].
    #[serde(default)]
    pub above_ns: Option<u64>,
    /// Of these, those with an explanation.
    pub explained: u64,
    /// Records of late wakeups that were lost, and wakeups that could not be followed.
    pub lost: u64,
    /// What the time of late wakeups was blamed on, the largest first; behind them, for each cause, its culprits
    /// without a place.
    pub causes: Vec<CauseRow>,
    /// The latest wakeup, with its blame and without its steps.
    pub worst: Option<run::Episode>,
    /// All waits, those after a preemption and behind a quota, too, by kind.
    pub waits: Vec<WaitRow>,
    /// The run time of the tracer's programs, ns; `None` where it is not known.
    pub program_ns: Option<u64>,
    /// The CPU time in which `wakescope` loaded the tracer, took its records, and removed it, ns.
    pub agent_ns: u64,
}

impl Explained {
    /// How late the latest wakeup was, or how long the longest wait, ns.
    pub fn worst_ns(&self) -> u64 {
        let waits = self.waits.iter().filter_map(|row| Some(row.worst.as_ref()?.ns));
        waits.chain(self.worst.as_ref().map(|worst| worst.wakeup_latency_ns)).max().unwrap_or(0)
    }

    /// Whether the budget was used up before anything could be seen.
    pub fn is_in_vain(&self) -> bool {
        self.is_cut && self.followed_ns < LEAST_FOLLOWED_NS
    }

    /// Leaves out what takes more room than a window has. Shares still add up.
    pub fn shorten(&mut self) {
        if self.causes.len() > MOST_CAUSES {
            for row in self.causes.split_off(MOST_CAUSES) {
                add_to_others(&mut self.causes, &row);
            }
        }
        let Some(worst) = &mut self.worst else { return };
        worst.timeline.clear();
        worst.blame.sort_by_key(|share| Reverse(share.ns));
        if worst.blame.len() > MOST_SHARES {
            let rest = worst.blame.split_off(MOST_SHARES - 1);
            let ns = rest.iter().fold(0_u64, |sum, share| sum.saturating_add(share.ns));
            worst.blame.push(Share { cause: Cause::Unexplained, ns, ..Share::default() });
        }
        for Share { frames, given_up_at, user_stack, .. } in &mut worst.blame {
            for stack in [frames, given_up_at, user_stack] {
                stack.truncate(MOST_FRAMES);
            }
        }
    }
}

/// Adds a row to that of all other culprits of its cause.
fn add_to_others(rows: &mut Vec<CauseRow>, row: &CauseRow) {
    // Unexplained time has one row: it names no culprits that others could be parted from.
    let others = row.cause != Cause::Unexplained;
    let is_it = |known: &CauseRow| (known.cause, known.others) == (row.cause, others);
    if !rows.iter().any(is_it) {
        rows.push(CauseRow { cause: row.cause, others, ..CauseRow::default() });
    }
    if let Some(others) = rows.iter_mut().find(|known| is_it(known)) {
        // One wakeup may be in several.
        others.episodes = others.episodes.max(row.episodes);
        others.total_ns = others.total_ns.saturating_add(row.total_ns);
        others.worst_ns = others.worst_ns.max(row.worst_ns);
        others.share += row.share;
    }
}

impl Suppressed {
    /// How often in all.
    pub fn count(&self) -> u64 {
        let Self { budget, cooling, busy, failed } = *self;
        [budget, cooling, busy, failed].into_iter().fold(0, u64::saturating_add)
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            budget: self.budget.saturating_add(other.budget),
            cooling: self.cooling.saturating_add(other.cooling),
            busy: self.busy.saturating_add(other.busy),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

impl Explanations {
    /// Both together. They may be of watches with different thresholds and budgets.
    #[must_use]
    pub fn plus(mut self, mut later: Self) -> Self {
        for all in [&mut self, &mut later] {
            let above_ns = all.above_ns;
            all.explained.iter_mut().for_each(|one| one.above_ns = one.above_ns.or(Some(above_ns)));
        }
        // What was beyond either budget was beyond the smaller one.
        self.above_ns = self.above_ns.min(later.above_ns);
        self.budget = self.budget.min(later.budget);
        self.not_listed = self.not_listed.saturating_add(later.not_listed);
        self.suppressed = self.suppressed.plus(&later.suppressed);
        self.explained.extend(later.explained);
        self.explained.sort_by_key(|explained| Reverse(explained.worst_ns()));
        let more = self.explained.len().saturating_sub(MOST_EXPLAINED) as u64;
        self.explained.truncate(MOST_EXPLAINED);
        self.not_listed = self.not_listed.saturating_add(more);
        self
    }

    /// Has them begin later by so many ns.
    pub(super) fn shift(&mut self, ns: u64) {
        for explained in &mut self.explained {
            explained.begin_ns = explained.begin_ns.saturating_add(ns);
        }
    }

    /// What is wrong with these, if anything.
    pub(super) fn fault(&self) -> Option<String> {
        if self.explained.len() > MOST_EXPLAINED {
            return Some(format!("more than {MOST_EXPLAINED} are there"));
        }
        let is_long = |one: &Explained| {
            let shares = one.worst.iter().flat_map(|worst| &worst.blame);
            let stacks = shares.flat_map(|s| [&s.frames, &s.given_up_at, &s.user_stack]);
            one.causes.len() > MOST_CAUSES + Cause::ALL.len()
                || one.waits.len() > 4
                || one.worst.as_ref().is_some_and(|worst| worst.blame.len() > MOST_SHARES)
                || one.worst.as_ref().is_some_and(|worst| !worst.timeline.is_empty())
                || stacks.into_iter().any(|stack| stack.len() > MOST_FRAMES)
        };
        self.explained.iter().any(is_long).then(|| "one has too many causes or frames".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Frame;

    fn explained(ns: u64) -> Explained {
        let worst = run::Episode { wakeup_latency_ns: ns, ..run::Episode::default() };
        Explained { worst: Some(worst), ..Explained::default() }
    }

    /// "followed for 83 µs" was said of a series whose tracer took the whole budget to load.
    #[test]
    fn what_was_cut_before_anything_was_seen_is_in_vain() {
        for (followed_ns, is_cut, want) in [
            (83_000, true, true),
            (49_999_999, true, true),
            (50_000_000, true, false),
            // The watch ended.
            (83_000, false, false),
        ] {
            let explained = Explained { followed_ns, is_cut, ..Explained::default() };
            assert_eq!(explained.is_in_vain(), want, "{followed_ns} {is_cut}");
        }
    }

    #[test]
    fn the_latest_are_kept_and_the_others_counted() {
        let of = |all: std::ops::Range<u64>| Explanations {
            explained: all.map(explained).collect(),
            suppressed: Suppressed { budget: 2, ..Suppressed::default() },
            ..Explanations::default()
        };
        let all = of(0..6).plus(of(6..12)).plus(Explanations::default());
        let kept: Vec<u64> = all.explained.iter().map(Explained::worst_ns).collect();
        assert_eq!(kept, [11, 10, 9, 8, 7, 6, 5, 4]);
        assert_eq!((all.not_listed, all.suppressed.budget), (4, 4));
        assert_eq!((all.suppressed.count(), all.fault()), (4, None));
    }

    #[test]
    fn watches_of_other_thresholds_keep_their_own() {
        let of = |above_ns, budget, own| Explanations {
            above_ns,
            budget,
            explained: vec![Explained { above_ns: own, ..explained(above_ns) }],
            ..Explanations::default()
        };
        // The first window is of an earlier version.
        let all = of(1_000, 0.05, None).plus(of(9_000, 0.01, Some(9_000)));
        let thresholds: Vec<_> = all.explained.iter().map(|one| one.above_ns).collect();
        assert_eq!(thresholds, [Some(9_000), Some(1_000)]);
        assert_eq!((all.above_ns, all.budget), (1_000, 0.01));
    }

    #[test]
    fn what_is_shortened_still_adds_up() {
        let share = |ns| Share { ns, frames: vec![Frame::default(); 99], ..Share::default() };
        let mut long = explained(40 * 41 / 2);
        long.worst.as_mut().unwrap().blame = (1..=40).map(share).collect();
        let row = |total_ns| CauseRow {
            cause: if total_ns < 38 { Cause::Irq } else { Cause::Unexplained },
            total_ns,
            share: 0.01,
            ..CauseRow::default()
        };
        long.causes = (0..40).map(row).collect();
        let list = |one| Explanations { explained: vec![one], ..Explanations::default() };
        assert!(list(long.clone()).fault().is_some());
        long.shorten();
        let blame = &long.worst.as_ref().unwrap().blame;
        assert_eq!(blame.iter().map(|share| share.ns).sum::<u64>(), 40 * 41 / 2);
        assert_eq!(long.causes.iter().map(|row| row.total_ns).sum::<u64>(), 39 * 40 / 2);
        assert_eq!((blame[0].ns, long.causes.len()), (40, MOST_CAUSES + 2));
        let others = long.causes.iter().map(|row| (row.cause, row.others));
        let others: Vec<_> = others.skip(MOST_CAUSES).collect();
        assert_eq!(others, [(Cause::Irq, true), (Cause::Unexplained, false)]);
        assert_eq!(list(long).fault(), None);
    }
}
