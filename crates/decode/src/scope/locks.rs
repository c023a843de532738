//! Who held which lock for how long, put together of calls, returns and releases.
//!
//! A hold belongs to the lock's address. Locks that spin are the CPU's: another task may release what one has taken,
//! as the scheduler does. Locks that sleep are their task's.

use std::collections::BTreeMap;

use wakescope_core::budget::{Budget, Entry, Exceeded};
use wakescope_core::distribution::Distribution;
use wakescope_core::scope::locks::{Doubts, Hold, InSection, LockKind, LockRow, Locks};
use wakescope_core::scope::{Kind, Place};

use super::lock_functions::{Act, FUNCTIONS, LockFunction};

const ENTRY: Entry = Entry { name: "locks", bytes: 160 };

/// What is looked through, as a message names it.
const CALLS: &str = "calls that have not returned";
const HOLDS: &str = "holds of locks";

/// Single holds that are listed.
const LONGEST: usize = 1_000;

/// A place among the kernel's functions.
pub(super) type Function = Option<u32>;

/// Where something began or ended: a function and its caller.
pub(super) type Where = (Function, Function);

/// A lock: its address, and the variable that it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lock<'a> {
    pub(super) address: u64,
    pub(super) name: Option<&'a str>,
}

/// A function for locks, by its place among all of these, and what called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) function: u8,
    pub(super) caller: Function,
}

impl Call {
    fn function(self) -> Option<&'static LockFunction> {
        FUNCTIONS.get(usize::from(self.function))
    }
}

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step<'a> {
    /// The task with this pid runs from here on.
    Switch(u32),
    /// A section begins.
    Off(Kind, Where),
    /// It ends.
    On(Kind, Where),
    /// A lock is asked for.
    Asked(Call, Lock<'a>),
    /// The function that was asked has returned, and the lock is taken.
    Taken(Call, Lock<'a>),
    /// It has returned, and it is not.
    Refused(Call, Lock<'a>),
    /// A function that releases it begins.
    Released(Call, Lock<'a>),
}

/// A call that has not returned.
struct Asked {
    pid: u32,
    call: Call,
    lock: u64,
    at_ns: u64,
    /// Who had taken the lock, if another one held it.
    found: Option<Call>,
}

/// A lock that is held.
#[derive(Clone, Copy)]
struct Open {
    kind: LockKind,
    pid: u32,
    call: Call,
    from_ns: u64,
    /// How long it was waited for, and who had taken it before.
    waited: Option<(u64, Call)>,
    /// The sections that were open, by their places.
    sections: [Option<usize>; 2],
}

/// A hold that has ended.
struct Ended {
    row: usize,
    lock: u64,
    hold: Open,
    to_ns: u64,
}

struct Section {
    kind: Kind,
    began: Where,
    ended: Option<(u64, Where)>,
}

type Key<'a> = (LockKind, Option<&'a str>, Call, Call);

/// What is known so far.
pub(super) struct Books<'a, 'b> {
    budget: &'b Budget,
    /// Holds that begin from then on do not count, ns.
    until_ns: u64,
    /// Whether sections with preemption off are what the kernel counts, so that locks that spin lie in them.
    knows_sections: bool,
    pid: u32,
    asked: Vec<Asked>,
    held: BTreeMap<u64, Vec<Open>>,
    /// How many of these spin.
    spinning: usize,
    /// Locks that were seen, and who released each since it was last taken.
    known: BTreeMap<u64, Option<(u32, Call)>>,
    sections: Vec<Section>,
    open: [Option<usize>; 2],
    rows: BTreeMap<Key<'a>, usize>,
    ended: Vec<Ended>,
    doubts: Doubts,
}

fn place_of(kind: Kind) -> usize {
    usize::from(kind == Kind::PreemptOff)
}

impl<'a, 'b> Books<'a, 'b> {
    /// Before anything was seen but that this task runs.
    pub(super) fn new(until_ns: u64, knows_sections: bool, pid: u32, budget: &'b Budget) -> Self {
        Self {
            budget,
            until_ns,
            knows_sections,
            pid,
            asked: Vec::new(),
            held: BTreeMap::new(),
            spinning: 0,
            known: BTreeMap::new(),
            sections: Vec::new(),
            open: [None; 2],
            rows: BTreeMap::new(),
            ended: Vec::new(),
            doubts: Doubts::default(),
        }
    }

    /// What was seen next.
    pub(super) fn step(&mut self, at_ns: u64, step: Step<'a>) -> Result<(), Exceeded> {
        self.budget.take(1, "steps of locks")?;
        match step {
            Step::Switch(pid) => self.pid = pid,
            Step::Off(kind, began) => {
                self.open[place_of(kind)].get_or_insert(self.sections.len());
                if self.open[place_of(kind)] == Some(self.sections.len()) {
                    self.budget.keep(1, ENTRY)?;
                    self.sections.push(Section { kind, began, ended: None });
                }
            }
            Step::On(kind, ended) => self.end_section(kind, at_ns, ended)?,
            Step::Asked(call, lock) => self.ask(at_ns, call, lock.address)?,
            Step::Taken(call, lock) => self.take(at_ns, call, lock.address)?,
            Step::Refused(call, lock) => {
                self.answered(call, lock.address)?;
            }
            Step::Released(call, lock) => self.release(at_ns, call, lock)?,
        }
        Ok(())
    }

    fn end_section(&mut self, kind: Kind, at_ns: u64, ended: Where) -> Result<(), Exceeded> {
        let open = self.open[place_of(kind)].take();
        if let Some(section) = open.and_then(|place| self.sections.get_mut(place)) {
            section.ended = Some((at_ns, ended));
        }
        // Whatever spins is released before preemption is on: its end was missed.
        if kind == Kind::PreemptOff && self.knows_sections && self.spinning > 0 {
            for holds in self.held.values_mut() {
                self.budget.take(1 + holds.len() as u64, HOLDS)?;
                let before = holds.len();
                holds.retain(|hold| !hold.kind.spins());
                self.doubts.not_seen_released += (before - holds.len()) as u64;
            }
            self.spinning = 0;
        }
        Ok(())
    }

    fn ask(&mut self, at_ns: u64, call: Call, lock: u64) -> Result<(), Exceeded> {
        let Some(function) = call.function() else { return Ok(()) };
        let holds = self.held.get(&lock).map(Vec::as_slice).unwrap_or_default();
        self.budget.take(holds.len() as u64, HOLDS)?;
        let found = holds.iter().find(|hold| excludes(hold.kind, function.kind));
        let found = found.map(|hold| hold.call);
        self.budget.keep(1, ENTRY)?;
        self.asked.push(Asked { pid: self.pid, call, lock, at_ns, found });
        Ok(())
    }

    /// The call that has returned, if its beginning was seen.
    fn answered(&mut self, call: Call, lock: u64) -> Result<Option<Asked>, Exceeded> {
        self.budget.take(self.asked.len() as u64, CALLS)?;
        let is_it = |asked: &Asked| {
            asked.pid == self.pid && asked.lock == lock && asked.call.function == call.function
        };
        let place = self.asked.iter().rposition(is_it);
        Ok(place.map(|place| self.asked.remove(place)))
    }

    fn take(&mut self, at_ns: u64, call: Call, lock: u64) -> Result<(), Exceeded> {
        let Some(function) = call.function() else { return Ok(()) };
        let kind = function.kind;
        let asked = self.answered(call, lock)?;
        let since = asked.as_ref().map_or(at_ns, |asked| asked.at_ns);
        let pid = self.pid;
        let holds = self.held.entry(lock).or_default();
        self.budget.take(holds.len() as u64, HOLDS)?;
        // The function has called another one that is followed, which took it.
        let is_same = |hold: &Open| hold.kind == kind && hold.pid == pid && hold.from_ns >= since;
        if asked.is_some() && holds.iter().any(is_same) {
            return Ok(());
        }
        let before = holds.len();
        let mut spinning = 0;
        holds.retain(|hold| {
            let goes = excludes(hold.kind, kind);
            spinning += usize::from(goes && hold.kind.spins());
            !goes
        });
        self.doubts.not_seen_released += (before - holds.len()) as u64;
        self.spinning -= spinning;
        self.known.insert(lock, None);
        if kind.spins() {
            self.spinning += 1;
            let is_outside = self.knows_sections && self.open[place_of(Kind::PreemptOff)].is_none();
            self.doubts.outside_section += u64::from(is_outside);
        }
        let waited = asked.as_ref().and_then(|asked| Some((at_ns - asked.at_ns, asked.found?)));
        // Who asked is what called the function, also if its return was by way of another one.
        let call = asked.map_or(call, |asked| asked.call);
        self.budget.keep(1, ENTRY)?;
        let sections = self.open;
        holds.push(Open { kind, pid, call, from_ns: at_ns, waited, sections });
        Ok(())
    }

    fn release(&mut self, at_ns: u64, call: Call, lock: Lock<'a>) -> Result<(), Exceeded> {
        let Some(function) = call.function() else { return Ok(()) };
        let kind = function.kind;
        let before = self.known.insert(lock.address, Some((self.pid, call)));
        let holds = self.held.entry(lock.address).or_default();
        self.budget.take(holds.len() as u64, HOLDS)?;
        let own = holds.iter().rposition(|hold| hold.kind == kind && hold.pid == self.pid);
        let place = own.or_else(|| holds.iter().rposition(|hold| hold.kind == kind));
        let Some(place) = place else {
            // The function that released it has jumped into this one, as `mutex_unlock` into `rt_mutex_unlock`.
            let is_same = |(pid, by): (u32, Call)| {
                pid == self.pid && by.caller == call.caller && by.function != call.function
            };
            let is_counted = before.flatten().is_some_and(is_same);
            // It may have been taken before anything was seen, but once.
            self.doubts.taken_before += u64::from(before.is_none());
            self.doubts.not_seen_taken += u64::from(before.is_some() && !is_counted);
            return Ok(());
        };
        let hold = holds.remove(place);
        if kind.spins() {
            self.spinning -= 1;
        } else if own.is_none() {
            self.doubts.handed_over += 1;
        }
        if function.act == Act::Downgrade {
            holds.push(Open { kind: LockKind::RwsemRead, from_ns: at_ns, waited: None, ..hold });
        }
        // Whoever asked meanwhile has found it held.
        self.budget.take(self.asked.len() as u64, CALLS)?;
        for asked in &mut self.asked {
            let wants = asked.call.function().map(|function| function.kind);
            if asked.lock == lock.address && wants.is_some_and(|wants| excludes(kind, wants)) {
                asked.found.get_or_insert(hold.call);
            }
        }
        if hold.from_ns >= self.until_ns {
            return Ok(());
        }
        let rows = self.rows.len();
        let row = *self.rows.entry((kind, lock.name, hold.call, call)).or_insert(rows);
        self.budget.keep(1, ENTRY)?;
        self.ended.push(Ended { row, lock: lock.address, hold, to_ns: at_ns });
        Ok(())
    }

    /// All rows, held longest first, and each hold.
    pub(super) fn end(self, names: &[&str]) -> (Locks, Vec<Hold>) {
        let name = |function: Function| {
            let place = usize::try_from(function?).ok()?;
            names.get(place).map(|name| (*name).to_owned())
        };
        let place = |call: Call| Place {
            function: call.function().map(|function| function.name.to_owned()),
            caller: name(call.caller),
        };
        let between = |(function, caller)| Place { function: name(function), caller: name(caller) };
        let mut holds: Vec<Vec<&Ended>> = vec![Vec::new(); self.rows.len()];
        for ended in &self.ended {
            if let Some(of_row) = holds.get_mut(ended.row) {
                of_row.push(ended);
            }
        }
        let mut rows: Vec<(usize, LockRow)> = Vec::new();
        for (&(kind, lock, taken, released), &row) in &self.rows {
            let all = holds.get(row).map(Vec::as_slice).unwrap_or_default();
            let mut locks: Vec<u64> = all.iter().map(|ended| ended.lock).collect();
            locks.sort_unstable();
            locks.dedup();
            let waits = all.iter().filter_map(|ended| ended.hold.waited);
            let longest = waits.clone().max_by_key(|(ns, _)| *ns);
            let sections = self.in_sections(all).into_iter().map(|((kind, began, ended), sum)| {
                let (began, ended) = (between(began), between(ended));
                InSection { kind, began, ended, holds: sum.0, ns: sum.1 }
            });
            let mut sections: Vec<InSection> = sections.collect();
            sections.sort_by_key(|section| std::cmp::Reverse(section.ns));
            let longest_hold = all.iter().max_by_key(|ended| ended.to_ns - ended.hold.from_ns);
            let held = Distribution {
                max_at_ns: longest_hold.map(|ended| ended.hold.from_ns),
                ..Distribution::of(all.iter().map(|ended| ended.to_ns - ended.hold.from_ns))
            };
            rows.push((
                row,
                LockRow {
                    kind,
                    lock: lock.map(str::to_owned),
                    locks: locks.len() as u64,
                    taken: place(taken),
                    released: place(released),
                    held,
                    waited: Distribution::of(waits.map(|(ns, _)| ns)),
                    waited_for: longest.map(|(_, call)| place(call)),
                    sections,
                },
            ));
        }
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.held.max_ns));
        let mut places = vec![0_u64; rows.len()];
        for (place, (row, _)) in rows.iter().enumerate() {
            places[*row] = place as u64;
        }
        let held = self.ended.iter().map(|ended| Hold {
            row: places[ended.row],
            pid: ended.hold.pid,
            begin_ns: ended.hold.from_ns,
            length_ns: ended.to_ns - ended.hold.from_ns,
        });
        let held: Vec<Hold> = held.collect();
        let mut longest = held.clone();
        longest.sort_by_key(|hold| (std::cmp::Reverse(hold.length_ns), hold.begin_ns));
        longest.truncate(LONGEST);
        let left = self.held.values().flatten().filter(|hold| hold.from_ns < self.until_ns);
        let doubts = Doubts { held_at_end: left.count() as u64, ..self.doubts };
        let rows = rows.into_iter().map(|(_, row)| row).collect();
        (Locks { holds: held.len() as u64, rows, longest, doubts, ..Locks::default() }, held)
    }

    /// How often and how long locks were held in the sections that they were taken in.
    fn in_sections(&self, all: &[&Ended]) -> BTreeMap<(Kind, Where, Where), (u64, u64)> {
        let mut sums = BTreeMap::new();
        for ended in all.iter().filter(|ended| ended.hold.kind.spins()) {
            for place in ended.hold.sections.into_iter().flatten() {
                let Some(section) = self.sections.get(place) else { continue };
                let Some((end_ns, end)) = section.ended else { continue };
                let sum: &mut (u64, u64) =
                    sums.entry((section.kind, section.began, end)).or_default();
                sum.0 += 1;
                sum.1 += end_ns.min(ended.to_ns).saturating_sub(ended.hold.from_ns);
            }
        }
        sums
    }
}

/// Whether a lock that is held so cannot be held so, too. How many can hold a semaphore is not known. Semaphores, and
/// locks that sleep of `PREEMPT_RT`, begin with a lock that spins, which guards those who wait: two at one address.
fn excludes(held: LockKind, wanted: LockKind) -> bool {
    held.spins() == wanted.spins() && !(held.is_shared() && wanted.is_shared())
}

#[cfg(test)]
mod tests;
