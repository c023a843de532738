//! What `explain` said of late wakeups, against the sections that truly held them up.

use serde::{Deserialize, Serialize};

use super::{Kind, Place};
use crate::faults::{first, more_than_whole, wrong_sum};

/// The late wakeups of a cell that were compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Late wakeups of the run.
    pub late: u64,
    /// Of these, compared: those with stored events.
    pub compared: u64,
    /// Times of the tracer in these wakeups. Each is, to the nanosecond, a reading of the clock that the
    /// emulator saw.
    pub matched_times: u64,
    /// For each kind of section, the shares that are blamed on one.
    pub kinds: Vec<SharesOfKind>,
    /// Wakeups of which a section took more than half, while another cause was blamed first.
    pub section_not_first: u64,
    /// Wakeups that were blamed on a section first, which took less than half of that share.
    pub first_not_section: u64,
    /// The shares, those that differ most first.
    pub shares: Vec<ComparedShare>,
    /// Shares that are not listed: there were too many.
    pub shares_unlisted: u64,
}

/// The shares that are blamed on sections of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharesOfKind {
    /// The kind.
    pub kind: Kind,
    /// How many.
    pub shares: u64,
    /// Of these, in a section of this kind.
    pub in_section: u64,
    /// The longest of the others, ns.
    pub longest_beside_ns: Option<u64>,
    /// Of those in a section, how many are blamed on a function at an end of the section, or its caller.
    pub named: u64,
    /// By how much those in a section are longer than it held the wakeup up, ns; below zero if shorter.
    pub longer_ns: Option<Spread>,
}

/// Differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest.
    pub min: i64,
    /// As many are below it as above; the lower one of two.
    pub p50: i64,
    /// The largest.
    pub max: i64,
}

impl Explained {
    /// What contradicts itself in it, if anything does.
    pub(super) fn fault(&self) -> Option<String> {
        let compared = ("compared", self.compared);
        more_than_whole([
            (compared, ("late", self.late)),
            (("section_not_first", self.section_not_first), compared),
            (("first_not_section", self.first_not_section), compared),
        ])
        .or_else(|| {
            let listed = self.shares_unlisted.saturating_add(self.shares.len() as u64);
            let of_kinds = self.kinds.iter().map(|kind| kind.shares);
            wrong_sum("the number of shares", listed, "those of kinds", of_kinds)
        })
        .or_else(|| first("kinds", &self.kinds, |kind| kind.fault(self)))
        .or_else(|| first("shares", &self.shares, ComparedShare::fault))
    }
}

impl SharesOfKind {
    /// What is said of this kind in `all` shares.
    pub fn of(kind: Kind, all: &[ComparedShare]) -> Self {
        let own = || all.iter().filter(move |share| share.kind == kind);
        let beside = own().filter(|share| share.section.is_none());
        Self {
            kind,
            shares: own().count() as u64,
            in_section: own().filter(|share| share.section.is_some()).count() as u64,
            longest_beside_ns: beside.map(|share| share.ns).max(),
            named: own().filter(|share| share.is_named()).count() as u64,
            longer_ns: Spread::of(own().filter_map(ComparedShare::longer_ns).collect()),
        }
    }

    fn fault(&self, explained: &Explained) -> Option<String> {
        let (shares, in_section) = (("shares", self.shares), ("in_section", self.in_section));
        let listed = Self::of(self.kind, &explained.shares);
        let is_whole = explained.shares_unlisted == 0;
        more_than_whole([
            (in_section, shares),
            (("named", self.named), in_section),
            (("the number of listed ones", listed.shares), shares),
            (("that of listed ones in a section", listed.in_section), in_section),
        ])
        .or_else(|| Spread::fault(self.longer_ns, self.in_section))
        .or_else(|| {
            let mut pairs = self.figures().into_iter().zip(listed.figures());
            let ((key, own), (_, made)) = pairs.find(|(own, made)| is_whole && own != made)?;
            Some(format!("{key} is {own}, but its shares make it {made}"))
        })
    }

    fn figures(&self) -> [(&'static str, String); 5] {
        let Self { kind: _, shares, in_section, longest_beside_ns, named, longer_ns } = self;
        [
            ("shares", shares.to_string()),
            ("in_section", in_section.to_string()),
            ("longest_beside_ns", format!("{longest_beside_ns:?}")),
            ("named", named.to_string()),
            ("longer_ns", format!("{longer_ns:?}")),
        ]
    }
}

impl ComparedShare {
    /// By how much it is longer than its section held the wakeup up, if it is in one, ns.
    pub fn longer_ns(&self) -> Option<i64> {
        let held_ns = self.section.as_ref()?.ns;
        let [said, held] = [self.ns, held_ns].map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        Some(said - held)
    }

    /// Whether it is blamed on a function at an end of its section, or its caller.
    fn is_named(&self) -> bool {
        let Some(Held { began, ended, .. }) = &self.section else { return false };
        let mut named = [began, ended].into_iter().flat_map(|at| [&at.function, &at.caller]);
        self.function.is_some() && named.any(|name| *name == self.function)
    }

    fn fault(&self) -> Option<String> {
        let Held { ns, length_ns, .. } = self.section.as_ref()?;
        more_than_whole([(("section.ns", *ns), ("section.length_ns", *length_ns))])
    }
}

impl Spread {
    /// Of these, if there are any.
    pub fn of(mut all: Vec<i64>) -> Option<Self> {
        all.sort_unstable();
        let middle = *all.get(all.len().checked_sub(1)? / 2)?;
        Some(Self { min: *all.first()?, p50: middle, max: *all.last()? })
    }

    /// What is wrong with that of `count` differences, if anything.
    pub(super) fn fault(spread: Option<Self>, count: u64) -> Option<String> {
        match spread {
            Some(Self { min, p50, max }) if min > p50 || p50 > max => {
                Some(format!("longer_ns goes from {min} by {p50} to {max}"))
            }
            _ if spread.is_some() != (count > 0) => Some(format!(
                "longer_ns is {}, of {count}",
                if count > 0 { "null" } else { "there" }
            )),
            _ => None,
        }
    }
}

/// A share that is blamed on a section, and the section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedShare {
    /// What was blamed.
    pub kind: Kind,
    /// When the wakeup was due, since the start of the run, ns.
    pub expiry_ns: u64,
    /// The length of the share, ns; with preemption off, the way to the scheduler is added.
    pub ns: u64,
    /// The function that is blamed, if one is.
    pub function: Option<String>,
    /// Whether it is what was blamed first.
    pub first: bool,
    /// The section that it is in, if it is in one.
    pub section: Option<Held>,
}

/// A section that held a wakeup up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Where it began.
    pub began: Place,
    /// Where it ended.
    pub ended: Place,
    /// How long it held the wakeup up, without interrupts that came meanwhile, ns.
    pub ns: u64,
    /// Its whole length, ns.
    pub length_ns: u64,
}
