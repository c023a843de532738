//! All stacks of a record, wherever they stand: what is learnt of functions goes to each.

use super::frame::Frame;
use super::record::{Explanation, Share};
use crate::run::Run;

/// Every kernel stack in the record of `run` that is not empty, innermost first.
pub fn stacks_mut(run: &mut Run) -> impl Iterator<Item = &mut [Frame]> {
    let stacks = shares_mut(run).flat_map(|s| [&mut s.frames[..], &mut s.given_up_at[..]]);
    stacks.filter(|stack| !stack.is_empty())
}

/// Every stack of a program in the record of `run`, innermost first.
pub fn user_stacks_mut(run: &mut Run) -> impl Iterator<Item = &mut [Frame]> {
    shares_mut(run).map(|share| &mut share.user_stack[..]).filter(|stack| !stack.is_empty())
}

fn shares_mut(run: &mut Run) -> impl Iterator<Item = &mut Share> {
    let of_net = run.net_of_steal.iter_mut().flat_map(|net| &mut net.worst);
    let of_episodes = run.worst.iter_mut().chain(of_net).flat_map(|episode| &mut episode.blame);
    of_episodes.chain(run.explanation.iter_mut().flat_map(shares_beside_episodes))
}

fn shares_beside_episodes(explanation: &mut Explanation) -> impl Iterator<Item = &mut Share> {
    let sections = explanation.sections.iter_mut();
    sections.flat_map(|s| [s.irq_off.as_mut(), s.preempt_off.as_mut()]).flatten()
}
