//! What the CPUs were at around one wakeup.

use crate::image::{CpuId, Image, LockId, TaskId};
use crate::kernel::{FrameKind, Running};
use crate::simulation::{Broken, Sample, Simulation, Until, Watch};
use crate::trace::{LockUser, Transition};

/// No more stretches and events than this are kept: of what is longer, the rest is left out, and counted.
const MOST: usize = 100_000;

/// All that happened between two points of time. Times are nanoseconds from the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Where it begins.
    pub from_ns: u64,
    /// Where it ends.
    pub to_ns: u64,
    /// When the wakeup was due.
    pub expiry_ns: u64,
    /// When the probe responded.
    pub response_ns: u64,
    /// What the CPUs were at, in the order in which it ended.
    pub stretches: Vec<Stretch>,
    /// What happened, in the order of time.
    pub events: Vec<(CpuId, u64, Transition)>,
    /// Who held locks, and who waited for them, in the order in which that began.
    pub locks: Vec<LockSpan>,
    /// What there was no room for.
    pub left_out: u64,
}

/// A CPU was at this all the time between two points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Which CPU.
    pub cpu: CpuId,
    /// From when.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// What it was at.
    pub at: Running,
}

/// Somebody held a lock, or waited for it, all the time between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSpan {
    /// Which lock.
    pub lock: LockId,
    /// Who.
    pub by: LockUser,
    /// Whether it waited; else it held the lock.
    pub waits: bool,
    /// From when; may lie before the timeline.
    pub from_ns: u64,
    /// Until when; `u64::MAX` if it did not end before the timeline did.
    pub to_ns: u64,
}

impl LockSpan {
    fn is_open(&self) -> bool {
        self.to_ns == u64::MAX
    }
}

impl Timeline {
    /// Simulates once more what a seed gives, up to a wakeup that was due at `expiry_ns` and is `late_ns`
    /// late, and writes down what happens from a tenth of that before it to a tenth after.
    ///
    /// # Errors
    /// If the kernel broke a rule before.
    pub fn of(image: &Image, seed: u64, expiry_ns: u64, late_ns: u64) -> Result<Self, Broken> {
        let response_ns = expiry_ns.saturating_add(late_ns);
        let margin = late_ns / 10 + 100;
        let timeline = Self {
            from_ns: expiry_ns.saturating_sub(margin),
            to_ns: response_ns.saturating_add(margin),
            expiry_ns,
            response_ns,
            ..Self::default()
        };
        let to_ns = timeline.to_ns;
        let mut simulation = Simulation::new(image, seed, timeline);
        // A CPU tells what it did only when it begins something else, which each does within a tick or a
        // sleep.
        let mut end = to_ns;
        for _ in 0..8 {
            simulation.run_until(Until { samples: u64::MAX, ns: end })?;
            end = end.saturating_add(late_ns.max(1_000_000));
        }
        Ok(simulation.into_watch())
    }

    /// What a CPU was at in each of `count` columns of equal length: what had most of it. An interrupt or
    /// the scheduler stands before a task, for they are short.
    pub fn columns(&self, cpu: CpuId, count: usize) -> Vec<Option<&Stretch>> {
        let mut columns: Vec<Option<(&Stretch, (bool, u64))>> = vec![None; count];
        for stretch in self.stretches.iter().filter(|stretch| stretch.cpu == cpu) {
            for column in self.columns_of(stretch.from_ns, stretch.to_ns, count) {
                let (from_ns, to_ns) = self.column(column, count);
                let length = stretch.to_ns.min(to_ns).saturating_sub(stretch.from_ns.max(from_ns));
                let rank = (stretch.at.kind != FrameKind::Task, length);
                // Of two that have as much, the later one.
                if length > 0 && columns[column].is_none_or(|(_, best)| rank >= best) {
                    columns[column] = Some((stretch, rank));
                }
            }
        }
        columns.into_iter().map(|column| Some(column?.0)).collect()
    }

    /// Where a column of `count` begins and ends; it has at least a nanosecond.
    pub fn column(&self, column: usize, count: usize) -> (u64, u64) {
        let edge = |column: usize| {
            let span = u128::from(self.to_ns - self.from_ns) * column as u128;
            self.from_ns + u64::try_from(span / count.max(1) as u128).unwrap_or(0)
        };
        (edge(column), edge(column + 1).max(edge(column) + 1))
    }

    /// The columns of `count` that a span touches, and perhaps one more at each end.
    pub(crate) fn columns_of(
        &self,
        from_ns: u64,
        to_ns: u64,
        count: usize,
    ) -> std::ops::Range<usize> {
        let span = u128::from((self.to_ns - self.from_ns).max(1));
        let of = |ns: u64| {
            let since = u128::from(ns.clamp(self.from_ns, self.to_ns) - self.from_ns);
            usize::try_from(since * count as u128 / span).unwrap_or(count)
        };
        let first = of(from_ns).saturating_sub(1);
        first..(of(to_ns) + 1).clamp(first, count)
    }

    /// On which CPU the probe responded; `None` if that was left out.
    pub fn cpu(&self) -> Option<CpuId> {
        self.response().map(|(cpu, _)| cpu)
    }

    /// When `need_resched` was first set on the probe's CPU after the wakeup was due.
    pub fn need_resched_ns(&self) -> Option<u64> {
        let is_set = |event: &&(CpuId, u64, Transition)| {
            event.1 >= self.expiry_ns && matches!(event.2, Transition::NeedResched { .. })
        };
        self.before_response().find(is_set).map(|event| event.1)
    }

    /// When the scheduler was entered that switched to the probe; `None` if that was before the wakeup was
    /// due, or if the probe had the CPU all the time.
    pub fn sched_entry_ns(&self) -> Option<u64> {
        let (_, probe) = self.response()?;
        let is_switch = |event: &&(CpuId, u64, Transition)| matches!(event.2, Transition::Switch { to, .. } if to == Some(probe));
        let mut backwards = self.before_response().rev().skip_while(|event| !is_switch(event));
        let entry = backwards.find(|event| event.2 == Transition::SchedEntry)?;
        (entry.1 >= self.expiry_ns).then_some(entry.1)
    }

    /// Where and who responded.
    fn response(&self) -> Option<(CpuId, TaskId)> {
        self.events.iter().find_map(|&(cpu, at_ns, what)| match what {
            Transition::Response(task) if at_ns == self.response_ns => Some((cpu, task)),
            _ => None,
        })
    }

    /// What happened on the probe's CPU before it responded. At the same nanosecond it may enter the
    /// scheduler again, to sleep.
    fn before_response(&self) -> impl DoubleEndedIterator<Item = &(CpuId, u64, Transition)> {
        let response = self.response();
        let is_response = move |&(cpu, at_ns, what): &(CpuId, u64, Transition)| {
            let own = |(of, task)| of == cpu && what == Transition::Response(task);
            at_ns == self.response_ns && response.is_some_and(own)
        };
        let end = self.events.iter().position(is_response).unwrap_or(0);
        let cpu = self.cpu();
        self.events[..end].iter().filter(move |event| Some(event.0) == cpu)
    }

    /// The spans in which `need_resched` was set on a CPU.
    pub fn need_resched(&self, cpu: CpuId) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        let mut since = None;
        for &(_, at, what) in self.events.iter().filter(|event| event.0 == cpu) {
            match what {
                Transition::NeedResched { .. } => {
                    since.get_or_insert(at);
                }
                Transition::Switch { .. } => spans.extend(since.take().map(|since| (since, at))),
                _ => {}
            }
        }
        spans.extend(since.map(|since| (since, self.to_ns)));
        spans
    }

    /// Notes who holds locks and who waits. Spans that end before the timeline begins are forgotten.
    fn follow_locks(&mut self, at_ns: u64, what: Transition) {
        let begun = |lock, by, waits| LockSpan { lock, by, waits, from_ns: at_ns, to_ns: u64::MAX };
        match what {
            Transition::LockTaken { lock, by } => {
                self.end_lock(at_ns, |span| span.waits && span.lock == lock && span.by == by);
                self.begin_lock(begun(lock, by, false));
            }
            Transition::LockAwaited { lock, by } => self.begin_lock(begun(lock, by, true)),
            Transition::LockReleased(lock) => {
                self.end_lock(at_ns, |span| !span.waits && span.lock == lock);
            }
            _ => {}
        }
    }

    fn begin_lock(&mut self, span: LockSpan) {
        if span.from_ns < self.to_ns && self.has_room() {
            self.locks.push(span);
        }
    }

    fn end_lock(&mut self, at_ns: u64, is_meant: impl Fn(&LockSpan) -> bool) {
        let Some(place) = self.locks.iter().rposition(|span| span.is_open() && is_meant(span))
        else {
            return;
        };
        match at_ns > self.from_ns {
            true => self.locks[place].to_ns = at_ns,
            false => drop(self.locks.remove(place)),
        }
    }

    fn has_room(&mut self) -> bool {
        let kept = self.stretches.len() + self.events.len() + self.locks.len();
        let has_room = kept < MOST;
        self.left_out += u64::from(!has_room);
        has_room
    }

    /// Tasks that had a CPU, in the order in which they first had one.
    pub fn tasks(&self) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        for task in self.stretches.iter().filter_map(|stretch| stretch.at.task) {
            if !tasks.contains(&task) {
                tasks.push(task);
            }
        }
        tasks
    }
}

impl Watch for Timeline {
    const FOLLOWS: bool = true;

    fn sample(&mut self, _: Sample) {}

    fn ran(&mut self, cpu: CpuId, from_ns: u64, to_ns: u64, at: Running) {
        if to_ns > self.from_ns && from_ns < self.to_ns && self.has_room() {
            self.stretches.push(Stretch { cpu, from_ns, to_ns, at });
        }
    }

    fn happened(&mut self, cpu: CpuId, at_ns: u64, what: Transition) {
        self.follow_locks(at_ns, what);
        if (self.from_ns..=self.to_ns).contains(&at_ns) && self.has_room() {
            self.events.push((cpu, at_ns, what));
        }
    }
}

#[cfg(test)]
mod tests;
