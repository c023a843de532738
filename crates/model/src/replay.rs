//! A recorded course of a CPU, replayed under other preemption rules: how late would a wakeup be that
//! is due at each moment of it?
//!
//! What is replayed is what one CPU did, nanosecond by nanosecond. The rules decide where it could have
//! been given up. What other rules would have changed besides, the order of tasks, the size of
//! batches, is not known, and is left as it was.

mod cell;
mod cut;
pub mod edges;
mod grid;
mod idle;
mod interrupts;
mod own;
pub mod predict;
mod rank;
mod resample;
mod section;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use cut::{Breaks, Cut, cuts};
pub use grid::{Figures, Grid};
pub use idle::SlowExit;
pub use interrupts::Interrupt;
pub use rank::{Latest, Mention, Recorded, Step, ranking};
pub use section::Section;

use crate::rules::Rules;

/// The course of a CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// What it was at, in order, without gaps: each lasts until the next begins.
    pub stretches: Vec<Stretch>,
    /// Where the last of them ends, ns.
    pub end_ns: u64,
}

/// What a CPU is at for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins, ns.
    pub from_ns: u64,
    /// Whether interrupts are off.
    pub irqs_off: bool,
    /// Whether the preempt count is above zero.
    pub preempt_off: bool,
    /// Where the CPU is.
    pub at: At,
    /// A number of the task that has the CPU.
    pub task: u32,
    /// What happens at its beginning.
    pub point: Point,
    /// Whether wakeups that are due here count: not where the probe itself is being woken or runs.
    pub counts: bool,
    /// Whether the handler of the probe's own wakeup runs. Another wakeup has a handler of its own, and none of this
    /// one's time.
    pub is_own: bool,
}

/// Where a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// In a task's kernel code.
    Kernel,
    /// In a program.
    User,
    /// In the idle task, which gives up the CPU wherever interrupts are on.
    Idle,
    /// In a task that is not less urgent than the probe.
    Urgent,
}

/// What happens at the beginning of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Nothing at which the CPU can be given up.
    None,
    /// The task asks whether somebody else is to run (`cond_resched`), or would under another model.
    Asks,
    /// The same where it might sleep: a preemption point of the voluntary model only.
    MightSleep,
    /// A loop of this function looks by itself whether the CPU is to be given up (`need_resched`), and ends early if
    /// so, under all rules.
    EndsEarly(u32),
    /// The task gives up the CPU by itself, or goes back to its program, or gets the CPU: then the
    /// kernel looks whether somebody else is to run, under all rules.
    Looks,
    /// The task was preempted here. Under rules that do not preempt it would have gone on, to where it
    /// had the CPU again.
    Preempted,
    /// A task that was preempted has the CPU again.
    Resumed,
}

impl Course {
    /// How long it is, ns.
    fn length_ns(&self) -> u64 {
        self.stretches.first().map_or(0, |first| self.end_ns.saturating_sub(first.from_ns))
    }

    /// Whether the last stretch goes on in `next`, for nothing changes there.
    fn goes_on_in(&self, next: &Stretch) -> bool {
        let Some(last) = self.stretches.last() else { return false };
        let alike = Stretch { from_ns: last.from_ns, point: last.point, ..*next };
        next.point == Point::None && alike == *last
    }

    /// The stretch that is at this moment, ns.
    fn at(&self, at_ns: u64) -> Option<&Stretch> {
        let next = self.stretches.partition_point(|stretch| stretch.from_ns <= at_ns);
        self.stretches.get(next.checked_sub(1)?)
    }

    /// The stretches, each with its end.
    fn bounded(&self) -> impl DoubleEndedIterator<Item = (&Stretch, u64)> {
        let ends = self.stretches.iter().skip(1).map(|next| next.from_ns);
        let ends: Vec<u64> = ends.chain([self.end_ns]).collect();
        self.stretches.iter().zip(ends)
    }
}

/// How long a wakeup waits that is due in a part of the course.
///
/// Within a part the wait either is zero or falls, by a nanosecond each nanosecond; or it stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The part, ns.
    pub from_ns: u64,
    /// Its end, ns.
    pub to_ns: u64,
    /// How one waits that is due at [`Self::from_ns`]; `None` if that is until after the end of the course.
    pub longest: Option<Waited>,
    /// Whether it counts.
    pub counts: bool,
    /// Whether its time is no wait: that of the probe's own handler.
    pub is_own: bool,
}

impl Wait {
    /// How one waits that is due at `at_ns` in this part.
    pub fn at(&self, at_ns: u64) -> Option<Waited> {
        let longest = self.longest?;
        if self.is_own {
            return Some(Waited { is_handled: true, ..longest });
        }
        let ns = longest.ns.saturating_sub(at_ns.saturating_sub(self.from_ns));
        let ends_ns = if longest.ns == 0 { at_ns } else { longest.ends_ns };
        Some(Waited { ns, ends_ns, ..longest })
    }
}

/// How long a wakeup waits, and where that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waited {
    /// How long, ns.
    pub ns: u64,
    /// When its wait is over, ns. That is not always so long after the time that it was due: what the recorded rules
    /// did in between is left out, and so is the time of the probe's own handlers.
    pub ends_ns: u64,
    /// Whether its interrupt is handled before that, so that only the switch is left.
    pub is_handled: bool,
}

impl Waited {
    fn nothing(at_ns: u64) -> Option<Self> {
        Some(Self { ns: 0, ends_ns: at_ns, is_handled: false })
    }

    /// The same wait for the switch, of one whose interrupt comes then.
    fn handled(self, at_ns: u64) -> Self {
        Self { is_handled: at_ns < self.ends_ns, ..self }
    }

    fn longer(self, ns: u64) -> Option<Self> {
        Some(Self { ns: self.ns.checked_add(ns)?, ..self })
    }
}

/// How long wakeups wait that are due in each part of `course`, under `rules` and with `cuts`, in order.
///
/// It goes backwards, and keeps two lengths: how long one waits whose interrupt is still to come, and how
/// long one waits whose interrupt has come.
pub fn waits(course: &Course, rules: &Rules, cuts: &[Cut]) -> Vec<Wait> {
    let mut replay = Backwards {
        rules,
        until_interrupt: None,
        until_switch: None,
        resumed: HashMap::new(),
        loops: HashMap::new(),
        backs: HashMap::new(),
        parts: Vec::new(),
    };
    let mut cuts = cuts.iter().rev().peekable();
    for (stretch, end_ns) in course.bounded().rev() {
        let mut to_ns = end_ns;
        while let Some(cut) = cuts.next_if(|cut| cut.at_ns >= stretch.from_ns) {
            if cut.at_ns < to_ns {
                replay.pass(stretch, cut.at_ns, to_ns);
                to_ns = cut.at_ns;
            }
            if cut.at_ns < end_ns {
                replay.cut(stretch, cut);
            }
        }
        replay.pass(stretch, stretch.from_ns, to_ns);
        replay.point(stretch);
    }
    replay.parts.reverse();
    replay.parts
}

struct Backwards<'a> {
    rules: &'a Rules,
    /// From here on, until the CPU is given up, for one whose interrupt is pending.
    until_interrupt: Option<Waited>,
    /// The same for one whose interrupt was handled, so that only the switch is to come.
    until_switch: Option<Waited>,
    /// The second, where a preempted task has the CPU again, by its number.
    resumed: HashMap<u32, Option<Waited>>,
    /// The second, where the loop of a function looked for the last time in the section that is passed, by the
    /// function.
    loops: HashMap<u32, Option<Waited>>,
    /// The second, where what came into a section goes back to it, by the time.
    backs: HashMap<u64, Option<Waited>>,
    /// From the last to the first.
    parts: Vec<Wait>,
}

impl Backwards<'_> {
    fn preempts(&self) -> bool {
        self.rules.interrupt_return_schedules && self.rules.preempt_enable_schedules
    }

    /// Time passes in a stretch.
    fn pass(&mut self, stretch: &Stretch, from_ns: u64, to_ns: u64) {
        let length = to_ns.saturating_sub(from_ns);
        if length == 0 {
            return;
        }
        if stretch.is_own {
            self.part(stretch, from_ns, to_ns, self.until_interrupt);
            return;
        }
        let takes_interrupts = !stretch.irqs_off;
        let gives_up = match stretch.at {
            At::User | At::Idle => true,
            At::Kernel => self.preempts() && !stretch.preempt_off,
            At::Urgent => false,
        };
        let later = |wait: Option<Waited>| wait.and_then(|wait| wait.longer(length));
        if takes_interrupts && gives_up {
            let nothing = Waited::nothing(from_ns);
            (self.until_interrupt, self.until_switch) = (nothing, nothing);
            self.part(stretch, from_ns, to_ns, nothing);
            return;
        }
        self.until_switch = later(self.until_switch);
        self.until_interrupt = match takes_interrupts {
            true => self.until_switch.map(|wait| wait.handled(from_ns)),
            false => later(self.until_interrupt),
        };
        self.part(stretch, from_ns, to_ns, self.until_interrupt);
    }

    /// What holds up wakeups lets go for a moment; or what came into a section goes back to it before its end, if it
    /// finds a wakeup waiting.
    fn cut(&mut self, stretch: &Stretch, cut: &Cut) {
        if cut.back_ns == Some(cut.at_ns) {
            self.backs.insert(cut.at_ns, self.until_switch);
            return;
        }
        if !cut.takes_interrupts(stretch) {
            return;
        }
        if cut.gives_up(stretch) {
            self.until_switch = Waited::nothing(cut.at_ns);
        }
        if let Some(&back) = cut.back_ns.and_then(|ns| self.backs.get(&ns)) {
            self.go_on_as(back);
        }
        self.until_interrupt = self.until_switch.map(|wait| wait.handled(cut.at_ns));
    }

    /// What happens at the beginning of a stretch.
    fn point(&mut self, stretch: &Stretch) {
        if stretch.point == Point::Resumed {
            self.resumed.insert(stretch.task, self.until_switch);
        }
        match stretch.point {
            Point::EndsEarly(function) if stretch.preempt_off && stretch.at != At::Urgent => {
                self.end_early(function);
            }
            Point::None | Point::EndsEarly(_) if stretch.preempt_off => {}
            _ => self.loops.clear(),
        }
        // Asked with preemption off, the kernel goes on.
        let can_ask = stretch.at != At::Urgent && !stretch.preempt_off;
        let looks = match stretch.point {
            Point::None | Point::EndsEarly(_) => false,
            Point::Asks => self.rules.cond_resched_schedules && can_ask,
            Point::MightSleep => self.rules.preemption_points_schedule && can_ask,
            Point::Looks | Point::Resumed => stretch.at != At::Urgent,
            Point::Preempted if self.preempts() => true,
            Point::Preempted => {
                self.until_switch = self.resumed.get(&stretch.task).copied().flatten();
                false
            }
        };
        if looks {
            self.until_switch = Waited::nothing(stretch.from_ns);
        }
    }

    /// A loop looks whether the CPU is to be given up. If so, it goes from here the way that it went where it looked
    /// for the last time: how long it takes to let go of its section is not known otherwise.
    fn end_early(&mut self, function: u32) {
        let last = *self.loops.entry(function).or_insert(self.until_switch);
        self.go_on_as(last);
    }

    /// From here it takes as long as from another place, if it would take longer.
    fn go_on_as(&mut self, there: Option<Waited>) {
        self.until_switch = match (self.until_switch, there) {
            (Some(own), Some(there)) => Some(own.min(there)),
            (own, there) => own.or(there),
        };
    }

    fn part(&mut self, stretch: &Stretch, from_ns: u64, to_ns: u64, longest: Option<Waited>) {
        let Stretch { counts, is_own, .. } = *stretch;
        let part = Wait { from_ns, to_ns, longest, counts, is_own };
        match self.parts.last_mut() {
            Some(next) if next.goes_on_from(&part) => *next = Wait { to_ns: next.to_ns, ..part },
            _ => self.parts.push(part),
        }
    }
}

impl Wait {
    /// Whether this part and the one before are one.
    fn goes_on_from(&self, before: &Self) -> bool {
        let is_alike = before.counts == self.counts && !before.is_own && !self.is_own;
        let is_next = before.to_ns == self.from_ns && is_alike;
        let length = before.to_ns - before.from_ns;
        is_next
            && match (before.longest, self.longest) {
                (None, None) => true,
                (Some(Waited { ns: 0, .. }), Some(Waited { ns: 0, .. })) => true,
                (Some(longest), Some(own)) => own.ns > 0 && own.longer(length) == Some(longest),
                _ => false,
            }
    }
}
