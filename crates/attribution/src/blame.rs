//! Whose every nanosecond of a late wakeup was.
//!
//! The wakeup is walked along its marks and events. Beneath lies what the marks part: the wait for
//! the interrupt, its handler, what was interrupted and goes on, other tasks, the scheduler, the
//! task itself. On top come interrupts and softirqs as events tell of them, the innermost first;
//! over all of that NMIs and the tracer itself, whose length is known, and stolen time, of which only
//! the amount is.
//!
//! A missing event must not become a wrong certainty. An end without a beginning, a beginning
//! without an end, a switch from a task that did not run: what rests on them is unexplained. If
//! events were lost, or are out of order, all is that rests on events rather than on marks.

mod case;
mod cover;
mod nesting;
mod piece;
mod rules;
mod standstill;
mod sweep;
#[cfg(test)]
mod tests;

use super::rule::Rule;
use super::tuning::Tuning;
use case::Case;
use piece::Pieces;
use wakescope_core::explain::{Known, Share, Wakeup};

/// Whose every nanosecond of `wakeup` was, the largest share first. The shares add up to the time
/// from `due` to `response`, exactly; none is zero. Equal cause, culprit and place make one share,
/// which is known as well as the least known part of it.
pub fn blame(wakeup: &Wakeup, known: &Known) -> Vec<Share> {
    blame_with(&Tuning::default(), wakeup, known)
}

/// The same by rules with these thresholds.
pub fn blame_with(tuning: &Tuning, wakeup: &Wakeup, known: &Known) -> Vec<Share> {
    decide(tuning, wakeup, known).into_iter().map(|decision| decision.share).collect()
}

/// A share of blame, and what it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The share.
    pub share: Share,
    /// The rule that gave it: of several the one that gave most.
    pub rule: Rule,
    /// The stretches of time that it is made of, by `CLOCK_MONOTONIC`, nanoseconds. What was taken at an
    /// unknown time within a longer one, as stolen time, is placed anywhere in that.
    pub stretches: Vec<(u64, u64)>,
}

/// The shares of [`blame_with`], each with its rule and where it lies.
pub fn decide(tuning: &Tuning, wakeup: &Wakeup, known: &Known) -> Vec<Decision> {
    pieces(tuning, wakeup, known).decisions()
}

/// The shares of [`blame`], each with where it lies: see [`Decision::stretches`].
pub fn placed_blame(wakeup: &Wakeup, known: &Known) -> Vec<(Share, Vec<(u64, u64)>)> {
    let decisions = decide(&Tuning::default(), wakeup, known);
    decisions.into_iter().map(|decision| (decision.share, decision.stretches)).collect()
}

fn pieces(tuning: &Tuning, wakeup: &Wakeup, known: &Known) -> Pieces {
    let case = Case::of(tuning, wakeup, known);
    let mut pieces = sweep::pieces(&case);
    cover::cover_with_nmis_and_tracer(&mut pieces, &case);
    cover::cover_with_stolen_time(&mut pieces, &case);
    cover::cover_with_quota(&mut pieces, &case);
    cover::cover_with_taken(&mut pieces, &case);
    cover::cover_with_runners(&mut pieces, &case);
    cover::cover_with_arrivals(&mut pieces, &case);
    standstill::cover_with_standstills(&mut pieces, &case);
    if case.may_have_been_stopped_unseen() {
        pieces.are_bounds();
    }
    if case.doubtful {
        pieces.lack_events();
    }
    pieces
}
