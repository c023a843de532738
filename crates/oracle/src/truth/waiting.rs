//! What is kept of a wakeup while it waits.

use std::collections::BTreeSet;

use wakescope_model::image::{CpuId, SourceKind, StackId};

use super::{Answer, Stretch};

/// How many stretches and places are kept. A wakeup that needs more room loses its truth, and is missing
/// in [`super::Witness::truths`]: a probe that hardly ever runs waits through any number of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Of one wakeup.
    pub(super) most_of_one: usize,
    /// How many more can be kept, of all wakeups together.
    pub(super) left: usize,
}

impl Default for Room {
    /// A stretch takes about 80 bytes, so all of them take some 340 MB.
    fn default() -> Self {
        Self { most_of_one: 100_000, left: 1 << 22 }
    }
}

/// A probe that sleeps, or has not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) due: u64,
    pub(super) on: CpuId,
    /// Since when it waits for that CPU.
    pub(super) since: u64,
    /// How often it was moved.
    pub(super) moves: u32,
    /// Its timer's function has begun.
    pub(super) is_woken: bool,
    /// It was woken by another CPU.
    pub(super) call: Call,
    /// It was stopped for its budget, and may run again.
    pub(super) runs_again: bool,
    /// What woke it, if that was at its CPU.
    pub(super) opening: Vec<Answer>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) places: BTreeSet<StackId>,
    /// There was no room for all of them, and none is kept.
    pub(super) is_lost: bool,
}

impl Waiting {
    /// A probe that is to wake up on this CPU.
    pub(super) fn new(due: u64, on: CpuId) -> Self {
        Self {
            due,
            on,
            since: 0,
            moves: 0,
            is_woken: false,
            call: Call::None,
            runs_again: false,
            opening: Vec::new(),
            stretches: Vec::new(),
            places: BTreeSet::new(),
            is_lost: false,
        }
    }

    /// How much room it takes.
    pub(super) fn kept(&self) -> usize {
        self.stretches.len() + self.places.len()
    }

    /// Its CPU was at this.
    pub(super) fn ran(&mut self, next: Stretch, room: &mut Room) {
        if let Some(last) = self.stretches.last_mut().filter(|last| last.goes_on_in(&next)) {
            last.ns += next.ns;
        } else if self.may_grow(room) {
            self.stretches.push(next);
        }
    }

    /// Its CPU was there when it took an interrupt.
    pub(super) fn seen_at(&mut self, place: StackId, room: &mut Room) {
        if !self.places.contains(&place) && self.may_grow(room) {
            self.places.insert(place);
        }
    }

    /// It is woken by a CPU that was there. The interrupt may have been taken before the wakeup was due.
    pub(super) fn woken_at(&mut self, places: Places, room: &mut Room) {
        self.seen_at(places.beneath, room);
        if let Some(place) = places.broken_into {
            self.seen_at(place, room);
        }
    }

    /// Takes room for one more. Where there is none, it gives up what it has.
    fn may_grow(&mut self, room: &mut Room) -> bool {
        self.is_lost |= room.left == 0 || self.kept() >= room.most_of_one;
        if self.is_lost {
            room.left += self.kept();
            (self.stretches, self.places) = (Vec::new(), BTreeSet::new());
        } else {
            room.left -= 1;
        }
        !self.is_lost
    }
}

/// Where a CPU was last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    /// In a task.
    pub(super) beneath: StackId,
    /// Before an interrupt or a switch, or where it let interrupts in.
    pub(super) last: StackId,
    /// When it let interrupts in last, nanoseconds, and where.
    let_in: Option<(u64, StackId)>,
    /// Where it let in the interrupt that it took last, if that had waited for it. The code goes on behind that, so
    /// that it is already elsewhere when the interrupt is taken. `None` once the task goes on.
    broken_into: Option<StackId>,
}

impl Places {
    pub(super) fn task_goes_on(&mut self, place: StackId) {
        (self.beneath, self.broken_into) = (place, None);
    }

    pub(super) fn let_interrupts_in(&mut self, now: u64) {
        self.let_in = Some((now, self.last));
    }

    pub(super) fn interrupted(&mut self, kind: SourceKind, now: u64) {
        if !matches!(kind, SourceKind::Nmi | SourceKind::Steal) {
            self.broken_into = self.let_in.filter(|&(at, _)| at == now).map(|(_, place)| place);
        }
    }
}

/// The interrupt from the CPU of the timer to that of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    None,
    /// It was put into the other's queue then: that one is called if it is to reschedule.
    IfNeeded(u64),
    OnItsWay,
    Arrived,
}
