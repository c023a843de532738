//! Sections with interrupts or preemption off, between the edges that the kernel shows.

use std::collections::{BTreeMap, BTreeSet};

use aya::maps::{Array, MapData};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Edge, Longest, Measured, SectionKind, SectionPlace};
use wakescope_decode::is_tracing;
use wakescope_sys::shared::Words;

use crate::counted::distribution;
use crate::programs::{IRQ_EDGES, PREEMPT_EDGES};
use crate::record::{stack, task_of};
use crate::shared::{self, FIGURES_WORDS, SECTION_KINDS, SECTION_SLOTS};
use crate::symbols::Symbols;

/// Places that are told of each kind.
const TOLD: usize = 8;

/// Frames that tracing itself has at most.
const LONGEST_WAY: usize = 8;

/// Numbers of kinds: `enum section_kind`.
const IRQ_OFF: usize = 0;
const PREEMPT_OFF: usize = 1;
const SCHEDULING: usize = 2;
const HANDLER: usize = 3;

/// Which edges the kernel shows, of those that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shows {
    irq: bool,
    preempt: bool,
}

impl Shows {
    /// Of a kernel that has these tracepoints.
    pub(crate) fn of(options: &crate::Options, has: impl Fn(&str) -> bool) -> Self {
        let both = |edges: [&str; 2]| options.sections.is_some() && edges.into_iter().all(&has);
        Self { irq: both(IRQ_EDGES), preempt: both(PREEMPT_EDGES) }
    }

    /// Whether any.
    pub(crate) fn any(self) -> bool {
        self.irq || self.preempt
    }

    /// Whether those of interrupts.
    pub(crate) fn sees_irqs(self) -> bool {
        self.irq
    }

    /// Whether all.
    pub(crate) fn all(self) -> bool {
        self.irq && self.preempt
    }

    /// Whether what is to be seen takes the tracepoint, which is that of an edge.
    pub(crate) fn needs(self, tracepoint: &str) -> bool {
        if IRQ_EDGES.contains(&tracepoint) { self.irq } else { self.preempt }
    }

    /// What goes unseen, with a remedy if somebody asked for it.
    pub(crate) fn unseen(self, is_asked: bool) -> Option<String> {
        let off = match (self.irq, self.preempt) {
            (true, true) => return None,
            (true, false) => "preemption off",
            (false, true) => "interrupts off",
            (false, false) => "interrupts or preemption off",
        };
        let remedy = match is_asked {
            true => " (no PREEMPTIRQ_TRACEPOINTS)",
            false => "",
        };
        Some(format!("edges of sections with {off}{remedy}"))
    }
}

/// What was counted of one kind on all CPUs.
#[derive(Default)]
struct Kind {
    lengths: Distribution,
    /// Of the CPU with the longest.
    longest: Option<shared::Longest>,
    /// By where they began, and ended, with callers.
    places: BTreeMap<[u64; 4], shared::Section>,
}

/// What was counted.
pub(crate) struct Counted {
    shows: Shows,
    kinds: [Kind; SECTION_KINDS],
    /// What CPUs say of themselves, added up.
    edges: u64,
    unpaired: u64,
    nmis: u64,
    crowded: u64,
    /// The largest of all CPUs.
    either_worst: [u64; 2],
}

impl Counted {
    /// Reads what `cpus` counted; all if there are none.
    pub(crate) fn read(
        shows: Shows,
        cpus: &BTreeSet<u32>,
        figures: &Words,
        states: &Array<&MapData, shared::Sections>,
        places: &Array<&MapData, shared::Section>,
    ) -> Self {
        let mut counted = Self::none(shows);
        for cpu in (0..states.len()).filter(|cpu| cpus.is_empty() || cpus.contains(cpu)) {
            // What cannot be read is not there.
            let Ok(state) = states.get(&cpu, 0) else { continue };
            counted.add_state(&state);
            for kind in 0..SECTION_KINDS {
                let index = cpu as usize * SECTION_KINDS + kind;
                let lengths = distribution(figures, index * FIGURES_WORDS);
                if lengths.count == 0 {
                    continue;
                }
                let slots = (index * SECTION_SLOTS..(index + 1) * SECTION_SLOTS)
                    .filter_map(|slot| places.get(&u32::try_from(slot).ok()?, 0).ok());
                counted.kinds[kind].add(&lengths, &state.longest[kind], slots);
            }
        }
        counted
    }

    fn none(shows: Shows) -> Self {
        let kinds = Default::default();
        Self { shows, kinds, edges: 0, unpaired: 0, nmis: 0, crowded: 0, either_worst: [0; 2] }
    }

    fn add_state(&mut self, state: &shared::Sections) {
        let sums = [
            (&mut self.edges, state.edges),
            (&mut self.unpaired, state.unpaired),
            (&mut self.nmis, state.nmis),
            (&mut self.crowded, state.crowded),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        let both = self.either_worst.iter_mut().zip(state.either_worst);
        both.for_each(|(worst, ns)| *worst = ns.max(*worst));
    }

    /// What it means.
    pub(crate) fn measured(&self, symbols: &Symbols) -> Measured {
        let kind =
            |number: usize, is_seen: bool| is_seen.then(|| self.kinds[number].measured(symbols));
        let Shows { irq, preempt } = self.shows;
        let worst = |ns: u64| Some(ns).filter(|&ns| ns > 0);
        Measured {
            irq_off: kind(IRQ_OFF, irq),
            preempt_off: kind(PREEMPT_OFF, preempt),
            scheduling: kind(SCHEDULING, preempt),
            handlers: kind(HANDLER, irq),
            either_ns: worst(self.either_worst[0]),
            either_scheduling_ns: worst(self.either_worst[1]),
            edges: self.edges,
            unpaired: self.unpaired,
            with_nmi: self.nmis,
            no_room: self.crowded,
        }
    }
}

impl Kind {
    fn add(
        &mut self,
        lengths: &Distribution,
        longest: &shared::Longest,
        slots: impl Iterator<Item = shared::Section>,
    ) {
        let longest_so_far = self.longest.as_ref().map_or(0, |known| known.section.worst);
        if self.longest.is_none() || longest.section.worst > longest_so_far {
            self.longest = Some(*longest);
        }
        self.lengths = self.lengths.merged(lengths);
        for slot in slots.filter(|slot| slot.count > 0) {
            let places = [slot.begin, slot.begin_parent, slot.end, slot.end_parent];
            let known = self.places.entry(places).or_default();
            known.count = known.count.saturating_add(slot.count);
            known.total = known.total.saturating_add(slot.total);
            known.worst = known.worst.max(slot.worst);
        }
    }

    /// The places with the longest sections, the longest first. Of those that are alike, the first by
    /// address.
    fn longest_places(&self) -> impl Iterator<Item = (&[u64; 4], &shared::Section)> {
        let mut all: Vec<_> = self.places.iter().collect();
        all.sort_by_key(|known| std::cmp::Reverse(known.1.worst));
        all.into_iter().take(TOLD)
    }

    fn measured(&self, symbols: &Symbols) -> SectionKind {
        let edge = |place: u64, caller: u64| Edge {
            place: symbols.frame_if_any(place),
            // Where nobody knows the caller, the kernel tells the place once more.
            caller: symbols.frame_if_any(if caller == place { 0 } else { caller }),
        };
        let places = self.longest_places().map(|(&[begin, from, end, to], known)| SectionPlace {
            begin: edge(begin, from),
            end: edge(end, to),
            count: known.count,
            total_ns: known.total,
            worst_ns: known.worst,
        });
        let longest = self.longest.as_ref().map(|longest| {
            let section = &longest.section;
            let frames = stack(&longest.stack, longest.stack_bytes);
            // The program, which may have no name, and the kernel's way to it come first.
            let way = frames.iter().take(LONGEST_WAY);
            let way = way.map(|&frame| is_own(&symbols.function(frame))).collect::<Vec<_>>();
            let own = way.iter().rposition(|&is_own| is_own).map_or(0, |last| last + 1);
            let frames = frames[own..].iter();
            Longest {
                begin: edge(section.begin, section.begin_parent),
                end: edge(section.end, section.end_parent),
                task: Some(task_of(&longest.task).decoded().named()),
                frames: frames.map(|&frame| symbols.frame(frame)).collect(),
            }
        });
        SectionKind { lengths: self.lengths.clone(), longest, places: places.collect() }
    }
}

/// Whether a function only tells of an edge.
fn is_own(function: &str) -> bool {
    let own = ["preempt_count_sub", "preempt_count_add", "tracer_"];
    is_tracing(function) || own.iter().any(|begin| function.starts_with(begin))
}

#[cfg(test)]
mod tests;
