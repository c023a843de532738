//! All kernel stacks of a record, wherever they stand: what is learnt of functions goes to each.

use super::record::{Explanation, Share, SourceLine};
use crate::run::Run;

/// A kernel stack of a record, innermost first.
pub struct StackMut<'r> {
    /// `function+0x10`.
    pub entries: &'r mut Vec<String>,
    /// See [`Share::lines`].
    pub lines: &'r mut Vec<Vec<SourceLine>>,
}

/// Every kernel stack in the record of `run` that is not empty.
pub fn stacks_mut(run: &mut Run) -> impl Iterator<Item = StackMut<'_>> {
    let of_episodes = run.worst.iter_mut().flat_map(|episode| &mut episode.blame);
    let shares = of_episodes.chain(run.explanation.iter_mut().flat_map(shares_beside_episodes));
    let stacks = shares.flat_map(|share| {
        [
            StackMut { entries: &mut share.stack, lines: &mut share.lines },
            StackMut { entries: &mut share.given_up_at, lines: &mut share.given_up_lines },
        ]
    });
    stacks.filter(|stack| !stack.entries.is_empty())
}

fn shares_beside_episodes(explanation: &mut Explanation) -> impl Iterator<Item = &mut Share> {
    let sections = explanation.sections.iter_mut();
    sections.flat_map(|s| [s.irq_off.as_mut(), s.preempt_off.as_mut()]).flatten()
}
