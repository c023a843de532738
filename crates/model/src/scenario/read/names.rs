//! What steps name, and whether anything defines it.

use std::collections::BTreeMap;

use super::super::words::{LOCKS, SOFTIRQS};
use super::super::{Interrupt, InterruptKind, LockKind};
use super::at::At;
use super::error::Problem;
use super::limits;
use super::nearest::nearest;
use super::node::quoted;

/// What the steps of all paths name.
#[derive(Default)]
pub(super) struct Names {
    /// Locks with their family, where they are taken first.
    taken: BTreeMap<String, LockKind>,
    /// Locks that are given back or broken.
    given: Vec<(String, LockKind, Problem)>,
    woken: BTreeMap<String, ()>,
    awaited: Vec<(String, Problem)>,
    interrupts: Vec<(String, Problem)>,
    softirqs: Vec<(u8, Problem)>,
}

/// Locks of one family can be one lock.
fn family(kind: LockKind) -> LockKind {
    match kind {
        LockKind::Spin | LockKind::SpinIrq | LockKind::SpinBh => LockKind::Spin,
        LockKind::Raw | LockKind::RawIrq => LockKind::Raw,
        LockKind::Mutex => LockKind::Mutex,
    }
}

/// The function that takes such a lock.
pub(super) fn function(kind: LockKind) -> &'static str {
    LOCKS.iter().find(|(of, ..)| *of == kind).map_or("", |(_, take, _)| take)
}

/// That nothing defines the name at this place; completed once all names are known.
fn undefined(at: &At<'_>) -> Problem {
    at.problem(String::new())
}

impl Names {
    /// A lock is taken.
    pub(super) fn takes(&mut self, at: &At<'_>, kind: LockKind) -> Result<String, Problem> {
        let (name, kind) = (at.name(limits::NAME)?, family(kind));
        let first = *self.taken.entry(name.clone()).or_insert(kind);
        if first == kind { Ok(name) } else { Err(mixed(&name, first, kind, undefined(at))) }
    }

    /// A lock is given back, or broken.
    pub(super) fn gives(&mut self, at: &At<'_>, kind: LockKind) -> Result<String, Problem> {
        let name = at.name(limits::NAME)?;
        self.given.push((name.clone(), family(kind), undefined(at)));
        Ok(name)
    }

    /// An event is announced.
    pub(super) fn wakes(&mut self, at: &At<'_>) -> Result<String, Problem> {
        let name = at.name(limits::NAME)?;
        self.woken.insert(name.clone(), ());
        Ok(name)
    }

    /// An event is waited for, or asked about.
    pub(super) fn waits(&mut self, at: &At<'_>) -> Result<String, Problem> {
        let name = at.name(limits::NAME)?;
        self.awaited.push((name.clone(), undefined(at)));
        Ok(name)
    }

    /// An interrupt ends a sleep.
    pub(super) fn sleeps_until(&mut self, at: &At<'_>) -> Result<String, Problem> {
        let name = at.name(limits::NAME)?;
        self.interrupts.push((name.clone(), undefined(at)));
        Ok(name)
    }

    /// A softirq is raised.
    pub(super) fn raises(&mut self, at: &At<'_>, number: u8) -> u8 {
        self.softirqs.push((number, undefined(at)));
        number
    }

    /// Whether a step makes this interrupt come.
    pub(super) fn reports(&self, interrupt: &str) -> bool {
        self.interrupts.iter().any(|(name, _)| name == interrupt)
    }

    /// Refuses names that nothing defines.
    pub(super) fn check(self, interrupts: &[Interrupt]) -> Result<(), Problem> {
        for (name, kind, at) in self.given {
            match self.taken.get(&name) {
                Some(&first) if first == kind => {}
                Some(&first) => return Err(mixed(&name, first, kind, at)),
                None => {
                    let known = self.taken.keys().map(String::as_str);
                    return Err(nothing(&name, "a lock that a step takes", known, at));
                }
            }
        }
        for (name, at) in self.awaited {
            if !self.woken.contains_key(&name) {
                let known = self.woken.keys().map(String::as_str);
                return Err(nothing(&name, "an event that a step wakes", known, at));
            }
        }
        for (name, at) in self.interrupts {
            let known = || interrupts.iter().filter(|own| is_of_device(own.kind));
            if !known().any(|own| own.name == name) {
                let known = known().map(|own| own.name.as_str());
                return Err(nothing(&name, "an interrupt of a device", known, at));
            }
        }
        for (number, at) in self.softirqs {
            if !interrupts.iter().any(|own| own.kind == InterruptKind::Softirq(number)) {
                let name = SOFTIRQS[usize::from(number)];
                let what = format!("found `{name}`, expected an interrupt of kind softirq:{name}");
                return Err(Problem { what, ..at });
            }
        }
        Ok(())
    }
}

fn is_of_device(kind: InterruptKind) -> bool {
    matches!(kind, InterruptKind::Device | InterruptKind::Unthreaded)
}

fn mixed(name: &str, first: LockKind, kind: LockKind, at: Problem) -> Problem {
    let (first, kind) = (function(first), function(kind));
    let what = format!("found {} as a lock of {kind}, expected one of {first}", quoted(name));
    Problem { what, ..at }
}

/// That nothing defines a name.
pub(super) fn nothing<'a>(
    name: &str,
    expected: &str,
    known: impl Iterator<Item = &'a str>,
    at: Problem,
) -> Problem {
    let near = nearest(name, known).map(|near| format!("; the nearest is `{near}`"));
    let what = format!("found {}, expected {expected}{}", quoted(name), near.unwrap_or_default());
    Problem { what, ..at }
}
