//! Pieces of a wakeup: intervals without gap or overlap, each with its label.

use std::collections::HashMap;
use std::rc::Rc;

use wakescope_core::explain::{Cause, Culprit, Evidence, Frame, Phase, Share, Within};

/// A share whose length is not known yet.
pub(super) type Label = Rc<Share>;

/// The longest stack that a share keeps.
const DEEPEST_STACK: usize = 64;

/// A label without a stack.
pub(super) fn label(cause: Cause, culprit: Culprit, evidence: Evidence) -> Label {
    Rc::new(Share { cause, culprit, evidence, ..Share::default() })
}

/// A label of a part of the way to the task, without a stack.
pub(super) fn of_phase(cause: Cause, phase: Phase, evidence: Evidence) -> Label {
    Rc::new(Share { cause, phase: Some(phase), evidence, ..Share::default() })
}

/// The same label, with what the culprit was in.
pub(super) fn in_place(label: &Label, within: Within) -> Label {
    Rc::new(Share { within, ..(**label).clone() })
}

/// The same label, while the CPU waits for a lock.
pub(super) fn while_locked_out(label: &Label) -> Label {
    Rc::new(Share { waiting_for_lock: true, ..(**label).clone() })
}

/// A label that a stack speaks for.
pub(super) fn with_stack(label: &Label, stack: &[Frame]) -> Label {
    let frames = stack.iter().take(DEEPEST_STACK).cloned().collect();
    Rc::new(Share { frames, ..(**label).clone() })
}

/// The same label, with where the culprit gave up the CPU in the end.
pub(super) fn with_given_up_at(label: &Label, stack: &[Frame]) -> Label {
    let given_up_at = stack.iter().take(DEEPEST_STACK).cloned().collect();
    Rc::new(Share { given_up_at, ..(**label).clone() })
}

/// The same of the culprit's own program; without one the label as it is.
pub(super) fn with_user_stack(label: &Label, stack: &[Frame]) -> Label {
    if stack.is_empty() {
        return Rc::clone(label);
    }
    let user_stack = stack.iter().take(DEEPEST_STACK).cloned().collect();
    Rc::new(Share { user_stack, ..(**label).clone() })
}

/// The same label, known in another way.
pub(super) fn known_by(label: &Label, evidence: Evidence) -> Label {
    Rc::new(Share { evidence, ..(**label).clone() })
}

/// The label of what nobody knows.
pub(super) fn unexplained() -> Label {
    Rc::new(Share::default())
}

/// An interval and whose it is.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Where it begins, nanoseconds.
    pub(super) from: u64,
    /// Where the next one begins.
    pub(super) to: u64,
    /// Whose it is.
    pub(super) label: Label,
}

impl Piece {
    fn ns(&self) -> u64 {
        self.to - self.from
    }
}

/// Pieces in order of time, each beginning where the one before ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Vec<Piece>);

impl Pieces {
    /// Pieces that are in order already.
    pub(super) fn of(pieces: Vec<Piece>) -> Self {
        debug_assert!(pieces.windows(2).all(|pair| pair[0].to == pair[1].from));
        Self(pieces)
    }

    /// Gives `label` to all between `from` and `to`.
    pub(super) fn cover(&mut self, from: u64, to: u64, label: &Label) {
        for i in self.between(from, to) {
            self.0[i].label = Rc::clone(label);
        }
    }

    /// Gives `label` to `ns` of what lies between `from` and `to`, or to all if that is less:
    /// first of what nobody could explain, then of the longest pieces, where it is likeliest to
    /// have been. What `spared` holds of is left out.
    pub(super) fn take(
        &mut self,
        (from, to): (u64, u64),
        mut ns: u64,
        label: &Label,
        spared: impl Fn(&Share) -> bool,
    ) {
        let mut order: Vec<Piece> = self.between(from, to).map(|i| self.0[i].clone()).collect();
        order.retain(|piece| !spared(&piece.label));
        order.sort_by_key(|piece| {
            (piece.label.cause != Cause::Unexplained, std::cmp::Reverse(piece.ns()), piece.from)
        });
        for piece in order {
            let taken = piece.ns().min(ns);
            self.cover(piece.from, piece.from + taken, label);
            ns -= taken;
        }
    }

    /// Where those of `which` begin and end that are longer than `ns`.
    pub(super) fn longer_than(&self, ns: u64, which: impl Fn(&Share) -> bool) -> Vec<(u64, u64)> {
        let long = self.0.iter().filter(|piece| piece.ns() > ns && which(&piece.label));
        long.map(|piece| (piece.from, piece.to)).collect()
    }

    /// Where each piece begins and ends.
    #[cfg(test)]
    pub(super) fn borders(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|piece| (piece.from, piece.to)).collect()
    }

    /// The pieces between two points, after cutting those that reach beyond.
    fn between(&mut self, from: u64, to: u64) -> std::ops::Range<usize> {
        let first = self.cut(from);
        let last = self.cut(to);
        first..last.max(first)
    }

    /// Makes `at` a border if it lies inside, and tells which piece begins there.
    fn cut(&mut self, at: u64) -> usize {
        let i = self.0.partition_point(|piece| piece.to <= at);
        match self.0.get_mut(i) {
            Some(piece) if piece.from < at => {
                let mut rest = piece.clone();
                piece.to = at;
                rest.from = at;
                self.0.insert(i + 1, rest);
                i + 1
            }
            _ => i,
        }
    }

    /// The shares: pieces with the same cause, culprit and place as one, the largest first. A share
    /// is known as well as the least known of its pieces.
    pub(super) fn shares(self) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        let mut places = HashMap::new();
        for piece in self.0.iter().filter(|piece| piece.from < piece.to) {
            let label = &*piece.label;
            let place = *places.entry(identity(label)).or_insert_with(|| {
                shares.push(Share { ns: 0, ..label.clone() });
                shares.len() - 1
            });
            let share = &mut shares[place];
            share.ns += piece.ns();
            share.evidence = share.evidence.max(label.evidence);
            if share.frames.is_empty() {
                share.frames.clone_from(&label.frames);
            }
            if share.given_up_at.is_empty() {
                share.given_up_at.clone_from(&label.given_up_at);
            }
            if share.user_stack.is_empty() {
                share.user_stack.clone_from(&label.user_stack);
            }
        }
        shares.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| identity(a).cmp(&identity(b))));
        shares
    }
}

/// What makes two pieces one share.
fn identity(share: &Share) -> (Cause, &Culprit, Option<Phase>, Option<u32>, &Within, bool) {
    let Share { cause, culprit, phase, from_cpu, within, waiting_for_lock, .. } = share;
    (*cause, culprit, *phase, *from_cpu, within, *waiting_for_lock)
}
