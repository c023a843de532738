//! Pieces of a wakeup: intervals without gap or overlap, each with its label.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::rc::Rc;

use super::Decision;
use crate::rule::Rule;
use wakescope_core::explain::{Cause, Culprit, Evidence, Frame, Phase, Share, Within};

/// A share whose length is not known yet, and the rule that gives it.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) rule: Rule,
    share: Rc<Share>,
}

impl Deref for Label {
    type Target = Share;

    fn deref(&self) -> &Share {
        &self.share
    }
}

impl Label {
    fn new(rule: Rule, share: Share) -> Self {
        Self { rule, share: Rc::new(share) }
    }

    /// By the same rule, with this change.
    fn with(&self, change: impl FnOnce(&mut Share)) -> Self {
        let mut share = Share::clone(self);
        change(&mut share);
        Self::new(self.rule, share)
    }
}

/// The longest stack that a share keeps.
const DEEPEST_STACK: usize = 64;

/// A label without a stack.
pub(super) fn label(rule: Rule, cause: Cause, culprit: Culprit, evidence: Evidence) -> Label {
    Label::new(rule, Share { cause, culprit, evidence, ..Share::default() })
}

/// A label of a part of the way to the task, without a stack.
pub(super) fn of_phase(rule: Rule, cause: Cause, phase: Phase, evidence: Evidence) -> Label {
    Label::new(rule, Share { cause, phase: Some(phase), evidence, ..Share::default() })
}

/// The label of the way from another CPU, whose ends are seen.
pub(super) fn from_afar(rule: Rule, culprit: Culprit, from_cpu: Option<u32>) -> Label {
    let (cause, evidence) = (Cause::RemoteWakeup, Evidence::Edge);
    Label::new(rule, Share { cause, culprit, from_cpu, evidence, ..Share::default() })
}

/// The same label, with what the culprit was in.
pub(super) fn in_place(label: &Label, within: Within) -> Label {
    label.with(|share| share.within = within)
}

/// The same label, while the CPU waits for a lock.
pub(super) fn while_locked_out(label: &Label) -> Label {
    label.with(|share| share.waiting_for_lock = true)
}

/// A label that a stack speaks for.
pub(super) fn with_stack(label: &Label, stack: &[Frame]) -> Label {
    label.with(|share| share.frames = shortened(stack))
}

/// The same label, with where the culprit gave up the CPU in the end.
pub(super) fn with_given_up_at(label: &Label, stack: &[Frame]) -> Label {
    label.with(|share| share.given_up_at = shortened(stack))
}

/// The same of the culprit's own program; without one the label as it is.
pub(super) fn with_user_stack(label: &Label, stack: &[Frame]) -> Label {
    if stack.is_empty() {
        return label.clone();
    }
    label.with(|share| share.user_stack = shortened(stack))
}

fn shortened(stack: &[Frame]) -> Vec<Frame> {
    stack.iter().take(DEEPEST_STACK).cloned().collect()
}

/// The same share by another rule, which knows it in this way.
pub(super) fn known_by(rule: Rule, label: &Label, evidence: Evidence) -> Label {
    Label { rule, ..label.with(|share| share.evidence = evidence) }
}

/// The label of what this rule finds that nobody knows.
pub(super) fn unexplained(rule: Rule) -> Label {
    Label::new(rule, Share::default())
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
            self.0[i].label = label.clone();
        }
    }

    /// How long each took is a bound.
    pub(super) fn are_bounds(&mut self) {
        self.are_bounds_where((0, u64::MAX), |_| true);
    }

    /// How long each of `which` took between two points is a bound.
    pub(super) fn are_bounds_where(
        &mut self,
        (from, to): (u64, u64),
        which: impl Fn(&Label) -> bool,
    ) {
        for i in self.between(from, to) {
            let label = &mut self.0[i].label;
            if which(label) {
                *label = known_by(label.rule, label, Evidence::Bound);
            }
        }
    }

    /// Gives `label` to `ns` of what lies between `from` and `to`, or to all if that is less:
    /// first of what nobody could explain, then of the longest pieces, where it is likeliest to
    /// have been. What `spared` holds of is left out. Returns how much of `ns` found no place.
    pub(super) fn take(
        &mut self,
        (from, to): (u64, u64),
        mut ns: u64,
        label: &Label,
        spared: impl Fn(&Label) -> bool,
    ) -> u64 {
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
        ns
    }

    /// Unexplained time is so because events are lost, or out of order.
    pub(super) fn lack_events(&mut self) {
        for piece in self.0.iter_mut().filter(|piece| piece.label.cause == Cause::Unexplained) {
            piece.label.rule = Rule::LostEvents;
        }
    }

    /// How long those of `which` are together, nanoseconds.
    pub(super) fn ns_of(&self, which: impl Fn(&Label) -> bool) -> u64 {
        self.0.iter().filter(|piece| which(&piece.label)).map(Piece::ns).sum()
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

    /// The rule of each piece.
    #[cfg(test)]
    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        self.0.iter().map(|piece| piece.label.rule)
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
    /// is known as well as the least known of its pieces, and has the rule that gave most of it.
    pub(super) fn decisions(self) -> Vec<Decision> {
        let mut shares: Vec<Gathered> = Vec::new();
        let mut places = HashMap::new();
        for piece in self.0.iter().filter(|piece| piece.from < piece.to) {
            let place = *places.entry(identity(&piece.label)).or_insert_with(|| {
                let share = Share { ns: 0, ..(*piece.label).clone() };
                shares.push(Gathered { share, rules: BTreeMap::new(), stretches: Vec::new() });
                shares.len() - 1
            });
            shares[place].add(piece);
        }
        shares.sort_by(|Gathered { share: a, .. }, Gathered { share: b, .. }| {
            b.ns.cmp(&a.ns).then_with(|| identity(a).cmp(&identity(b)))
        });
        shares.into_iter().filter_map(Gathered::decision).collect()
    }
}

/// Pieces of one share.
struct Gathered {
    share: Share,
    /// How much each rule gave, nanoseconds.
    rules: BTreeMap<Rule, u64>,
    stretches: Vec<(u64, u64)>,
}

impl Gathered {
    fn add(&mut self, piece: &Piece) {
        let (share, label) = (&mut self.share, &*piece.label);
        *self.rules.entry(piece.label.rule).or_default() += piece.ns();
        match self.stretches.last_mut().filter(|last| last.1 == piece.from) {
            Some(last) => last.1 = piece.to,
            None => self.stretches.push((piece.from, piece.to)),
        }
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

    fn decision(self) -> Option<Decision> {
        let Self { mut share, rules, stretches } = self;
        let (rule, _) = rules.into_iter().max_by_key(|&(_, ns)| ns)?;
        share.gap = rule.gap().filter(|_| share.cause == Cause::Unexplained);
        Some(Decision { share, rule, stretches })
    }
}

/// What makes two pieces one share.
fn identity(share: &Share) -> (Cause, &Culprit, Option<Phase>, Option<u32>, &Within, bool) {
    let Share { cause, culprit, phase, from_cpu, within, waiting_for_lock, .. } = share;
    (*cause, culprit, *phase, *from_cpu, within, *waiting_for_lock)
}
