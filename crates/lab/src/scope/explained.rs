//! What `explain` said in a guest, against the sections that the emulator's plugin saw there.
//!
//! The tracer's times are the guest's `CLOCK_MONOTONIC`, the plugin's count from when the machine was
//! turned on. Both count the same nanoseconds, so one distance leads from the ones to the others. It is
//! looked for, not assumed: each time of the tracer must be, to the nanosecond, a reading of the clock that
//! the plugin saw, and exactly one distance may do so.

use std::cmp::Reverse;
use std::ops::Range;

use wakescope_attribution::{blame, placed_blame};
use wakescope_core::budget::Exceeded;
use wakescope_core::episodes;
use wakescope_core::explain::{Cause, Culprit, Known, Marks, Phase, Share, Wakeup, What};
use wakescope_core::run::{Episode, Run};
use wakescope_core::scope::explained::{ComparedShare, Explained, Held, SharesOfKind};
use wakescope_core::scope::{Kind, Section};
use wakescope_core::units::grouped;
use wakescope_decode::scope::Looked;

use super::distance::{BEHIND_NS, FIRST_READING_NS, distance, possible};

/// Shares that are listed.
const LISTED: usize = 1_000;

/// The late wakeups of a cell, as its run recorded them.
pub(super) struct Late {
    origin_ns: u64,
    /// `CLOCK_MONOTONIC` when the first process began.
    began_ns: u64,
    count: u64,
    wakeups: Vec<(Wakeup, Known)>,
}

impl Late {
    /// Of a `run` whose first process began then, with its episodes; `None` if it explained nothing.
    pub(super) fn of(run: &Run, began_ns: u64, stored: &[u8]) -> Option<Self> {
        let explanation = run.explanation.as_ref()?;
        let mut wakeups = Vec::new();
        // From memory all can be read. What is damaged is not compared, and missing from the count.
        let _ = episodes::read(stored, |_, line| {
            if let Ok((head, episode)) = line {
                if episode.wakeup_latency_ns() >= explanation.above_ns {
                    let known = head.known.completed(run.components.as_ref());
                    wakeups.push((episode.wakeup, known));
                }
            }
            Ok::<(), Exceeded>(())
        });
        Some(Self { origin_ns: run.origin_ns, began_ns, count: explanation.late, wakeups })
    }

    /// Blames those of the `worst` wakeups of the run that are stored by today's rules, and no longer by those of
    /// the version that measured.
    pub(super) fn blame_anew(&self, worst: &mut [Episode]) {
        for (wakeup, known) in &self.wakeups {
            let Marks { due, response, .. } = wakeup.marks;
            let own = (due.0.saturating_sub(self.origin_ns), response.since(due).0);
            let of = |episode: &Episode| (episode.expiry_ns, episode.wakeup_latency_ns);
            if let Some(episode) = worst.iter_mut().find(|episode| of(episode) == own) {
                episode.blame = blame(wakeup, known);
            }
        }
    }

    /// The times to look at, since the first process began, ns: in order, without overlap.
    pub(super) fn looks(&self) -> Vec<(u64, u64)> {
        let look = |(wakeup, _): &(Wakeup, Known)| {
            let Marks { due, response, .. } = wakeup.marks;
            let since = |at: u64| at.saturating_sub(self.began_ns);
            let (from, to) = (since(due.0), since(response.0));
            (from.saturating_sub(BEHIND_NS), to.saturating_add(FIRST_READING_NS + BEHIND_NS))
        };
        let mut all: Vec<(u64, u64)> = self.wakeups.iter().map(look).collect();
        all.sort_unstable();
        let mut looks: Vec<(u64, u64)> = Vec::new();
        for (from, to) in all {
            match looks.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => looks.push((from, to)),
            }
        }
        looks
    }

    /// What leads from the tracer's times to those of the plugin, and how many times say so.
    ///
    /// # Errors
    /// Why nothing of it is certain.
    pub(super) fn distance(&self, looked: &Looked) -> Result<(u64, u64), String> {
        if looked.lost > 0 {
            return Err(format!(
                "too much happened in them: {} sections and readings of the clock are missing",
                grouped(looked.lost)
            ));
        }
        let mut times: Vec<u64> = self.wakeups.iter().flat_map(|(w, _)| times_of(w)).collect();
        times.sort_unstable();
        times.dedup();
        if self.wakeups.is_empty() {
            return Err("no events of them are stored".into());
        }
        let possible = possible(looked.process_ns, self.began_ns);
        let found = distance("the tracer", &times, &looked.readings, possible)?;
        Ok((found, times.len() as u64))
    }

    /// What was said of them, against what was seen. `interrupts`: those of the timer, from when it fired until the
    /// CPU took them; empty if that was not seen.
    ///
    /// # Errors
    /// Why nothing of it is certain.
    pub(super) fn compare(
        &self,
        looked: &Looked,
        interrupts: &[Range<u64>],
    ) -> Result<Explained, String> {
        let (distance_ns, matched_times) = self.distance(looked)?;
        let sections = Kind::ALL.map(|kind| {
            let mut own: Vec<&Section> =
                looked.sections.iter().filter(|section| section.kind == kind).collect();
            own.sort_by_key(|section| section.begin_ns);
            own
        });
        let mut explained = Explained {
            late: self.count,
            compared: self.wakeups.len() as u64,
            matched_times,
            ..Explained::default()
        };
        for (wakeup, known) in &self.wakeups {
            let seen = Seen { wakeup, distance_ns, sections: &sections, interrupts };
            seen.compare(known, self.origin_ns, &mut explained);
        }
        explained.kinds = Kind::ALL.map(|kind| SharesOfKind::of(kind, &explained.shares)).into();
        explained
            .shares
            .sort_by_key(|share| Reverse(share.longer_ns().map_or(share.ns, i64::unsigned_abs)));
        explained.shares_unlisted = explained.shares.len().saturating_sub(LISTED) as u64;
        explained.shares.truncate(LISTED);
        Ok(explained)
    }
}

/// The times within a wakeup at which the tracer read the clock. When it was due was set before, its
/// response is the program's own, and readings of stolen time are not events.
fn times_of(wakeup: &Wakeup) -> impl Iterator<Item = u64> + '_ {
    let Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response } = wakeup.marks;
    let marks = [irq_entry, irq_exit, sched_entry, switch_in].into_iter().flatten();
    let events = wakeup.events.iter().filter(|event| !matches!(event.what, What::Steal(_)));
    let all = marks.chain(events.map(|event| event.at));
    all.filter(move |at| (due..response).contains(at)).map(|at| at.0)
}

/// A wakeup, and all sections around it, by kind and in order.
struct Seen<'a> {
    wakeup: &'a Wakeup,
    distance_ns: u64,
    sections: &'a [Vec<&'a Section>; 2],
    interrupts: &'a [Range<u64>],
}

impl Seen<'_> {
    fn compare(&self, known: &Known, origin_ns: u64, into: &mut Explained) {
        let shares = placed_blame(self.wakeup, known);
        let above: Vec<Range<u64>> = shares
            .iter()
            .filter(|(share, _)| lies_above(share))
            .flat_map(|(_, places)| places.iter().map(|&(from, to)| from..to))
            .collect();
        let latency_ns = self.wakeup.marks.response.since(self.wakeup.marks.due).0;
        let mut longest_ns = [0; 2];
        for (longest_ns, kind) in longest_ns.iter_mut().zip(Kind::ALL) {
            let held = self.around(kind).map(|section| self.held_ns(section, &above));
            *longest_ns = held.max().unwrap_or(0);
        }
        let first = shares.first().map(|(share, _)| share);
        let kinds = Kind::ALL.into_iter().zip(longest_ns);
        let mut holders = kinds.filter(|(_, ns)| *ns > latency_ns / 2);
        if holders.any(|(kind, _)| first.is_none_or(|share| !speaks_of(share, kind))) {
            into.section_not_first += 1;
        }
        for (number, (share, _)) in shares.iter().enumerate() {
            let Some(kind) = kind_of(share.cause) else { continue };
            let stated_ns = share.ns.saturating_add(way_beside(kind, &shares));
            let own = self.own(kind);
            let held_ns = own.map_or(0, |section| self.held_ns(section, &above));
            if number == 0 && held_ns < share.ns / 2 {
                into.first_not_section += 1;
            }
            into.shares.push(ComparedShare {
                kind,
                expiry_ns: self.wakeup.marks.due.0.saturating_sub(origin_ns),
                ns: stated_ns,
                function: match &share.culprit {
                    Culprit::Function(function) => Some(function.name.clone()),
                    _ => None,
                },
                first: number == 0,
                section: own.map(|section| Held {
                    began: section.began.clone(),
                    ended: section.ended.clone(),
                    ns: held_ns,
                    length_ns: section.length_ns,
                }),
            });
        }
    }

    /// The time in which sections of this kind hold the wakeup up: interrupts off until its own interrupt
    /// comes, preemption off from then on until the scheduler runs.
    fn window(&self, kind: Kind) -> Range<u64> {
        let Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response } =
            self.wakeup.marks.consistent();
        match kind {
            Kind::IrqsOff => self.asked_ns(due.0)..irq_entry.unwrap_or(due).0,
            Kind::PreemptOff => {
                let from = irq_exit.or(irq_entry).unwrap_or(due);
                from.0..sched_entry.or(switch_in).unwrap_or(response).0
            }
        }
    }

    /// When the timer's hardware asked for the wakeup's interrupt, but not before it was due. Nothing holds off what
    /// was not asked for. When it was due if that was not seen.
    fn asked_ns(&self, due_ns: u64) -> u64 {
        let Some(entry) = self.wakeup.marks.consistent().irq_entry else { return due_ns };
        let on_our_clock = |at_ns: u64| at_ns.saturating_sub(self.distance_ns);
        let own = self.interrupts.partition_point(|taken| on_our_clock(taken.end) <= entry.0);
        let own = own.checked_sub(1).map(|last| &self.interrupts[last]);
        // The last one before may be another's: then no interrupt of the timer woke the task.
        let own = own.filter(|own| on_our_clock(own.end) >= due_ns);
        own.map_or(due_ns, |own| on_our_clock(own.start).max(due_ns))
    }

    /// The section of this kind that it waits for first: the one that was there when its interrupt was asked for, or
    /// came.
    fn own(&self, kind: Kind) -> Option<&Section> {
        let begin = self.window(kind).start;
        self.around(kind).find(|section| self.span(section).start <= begin)
    }

    /// The sections of this kind that hold it up. Those that its own interrupt begins do not.
    fn around(&self, kind: Kind) -> impl Iterator<Item = &Section> {
        let window = self.window(kind);
        // The interrupt can come right behind the instruction that turns preemption off.
        let own = u64::from(kind == Kind::PreemptOff);
        let from = self.taken().map_or(window.end, |taken| taken.saturating_add(own));
        let begins_in_interrupt = from..=window.start.max(from);
        self.between(kind, window)
            .filter(move |section| !begins_in_interrupt.contains(&self.span(section).start))
    }

    /// When the processor took its interrupt: it turned interrupts off then.
    fn taken(&self) -> Option<u64> {
        let entry = self.wakeup.marks.consistent().irq_entry?.0;
        let own = self.between(Kind::IrqsOff, entry..entry + 1).next();
        Some(own.map_or(entry, |section| self.span(section).start))
    }

    /// The sections of this kind that overlap a time, in order.
    fn between(&self, kind: Kind, time: Range<u64>) -> impl Iterator<Item = &Section> {
        let all = self.sections.iter().zip(Kind::ALL).find(|(_, of)| *of == kind);
        let all: &[&Section] = all.map_or(&[], |(sections, _)| sections);
        let first = all.partition_point(|section| self.span(section).end <= time.start);
        let near = all[first..].iter().copied();
        near.take_while(move |section| self.span(section).start < time.end)
    }

    /// When it was, on the tracer's clock.
    fn span(&self, section: &Section) -> Range<u64> {
        let begin = section.begin_ns.saturating_sub(self.distance_ns);
        begin..begin.saturating_add(section.length_ns)
    }

    /// How long it held the wakeup up, without what lies `above` it.
    fn held_ns(&self, section: &Section, above: &[Range<u64>]) -> u64 {
        let (span, window) = (self.span(section), self.window(section.kind));
        let held = span.start.max(window.start)..span.end.min(window.end);
        let taken = above.iter().map(|above| shared_ns(&held, above)).sum();
        (held.end.saturating_sub(held.start)).saturating_sub(taken)
    }
}

fn shared_ns(one: &Range<u64>, other: &Range<u64>) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

/// What comes on top of a section, and has both its ends in the tracer's events.
fn lies_above(share: &Share) -> bool {
    match share.cause {
        Cause::Irq => share.phase.is_none(),
        Cause::Softirq | Cause::Nmi | Cause::Tracer => true,
        _ => false,
    }
}

/// The way to the scheduler that explain does not count as that of a section of this `kind`. A part of it, the
/// rest of the interrupt, lies within the section; where that ends, the tracer does not see.
fn way_beside(kind: Kind, shares: &[(Share, Vec<(u64, u64)>)]) -> u64 {
    let is_way = |share: &Share| share.phase == Some(Phase::ReturnFromInterrupt);
    match kind {
        Kind::IrqsOff => 0,
        Kind::PreemptOff => {
            shares.iter().filter(|(share, _)| is_way(share)).map(|(share, _)| share.ns).sum()
        }
    }
}

fn kind_of(cause: Cause) -> Option<Kind> {
    match cause {
        Cause::IrqOff => Some(Kind::IrqsOff),
        Cause::PreemptOff => Some(Kind::PreemptOff),
        _ => None,
    }
}

/// Whether a share says that a section of this kind held the wakeup up. Where kernel code is not left
/// anyway, it does not matter that preemption was off in it, and the scheduler turns it off itself.
fn speaks_of(share: &Share, kind: Kind) -> bool {
    let is_scheduler = share.cause == Cause::Scheduler && share.phase == Some(Phase::Switch);
    let is_same = kind_of(share.cause) == Some(kind);
    match kind {
        Kind::IrqsOff => is_same,
        Kind::PreemptOff => is_same || is_scheduler || share.cause == Cause::NoPreemptionPoint,
    }
}

#[cfg(test)]
mod tests;
