//! The edges that the plugin writes, each in two words, many to a record.

use std::collections::BTreeMap;

use wakescope_core::explain::Task;
use wakescope_core::scope::edges::{
    ARM64_TIMER as TIMER, Edge, EdgeKind, Edges, FunctionId, State, TaskId, WayIn,
};

use super::kernel::{Kernel, ask_kind};
use super::preempt_count::Division;
use super::{ScopeError, word};
use crate::kernel::policy_of;

/// What interrupts and exceptions of arm64 are called, whose ways into the kernel are the same.
const NAMES: [&str; 4] = [TIMER, "IPI", "device", "page_fault"];
const IPI: usize = 1;
const DEVICE: usize = 2;
const PAGE_FAULT: usize = 3;

/// What the number of an interrupt is called (the GIC's): the CPU's own timers have 26 to 30.
fn name_of_interrupt(number: u32) -> usize {
    match number {
        0..=15 => IPI,
        26..=30 => 0,
        _ => DEVICE,
    }
}

/// Classes of exceptions that are page faults (`ESR_EL1.EC`): of code and of data, of programs and of the kernel.
const PAGE_FAULTS: [u32; 4] = [0x20, 0x21, 0x24, 0x25];

/// While the CPU is halted, time passes and no instruction does: one count has two times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// When it halts.
    BeforeIdle,
    /// When an interrupt ends that; of every other count the only one.
    AfterIdle,
}

/// The kind of an edge that says which interrupt has come in.
const INTERRUPT_IS: u64 = 17;

/// Kinds of edges of locks.
const LOCKS: std::ops::RangeInclusive<u64> = 18..=21;

/// Words of the record of what the CPU is at when the first edge comes.
const START: usize = 5;

/// What was written, before counts of instructions become times.
#[derive(Default)]
pub(super) struct Written<'a> {
    pub(super) start: Option<[u64; START]>,
    pub(super) tasks: Vec<Task>,
    /// Records of edges, as they were written: there are millions of edges.
    batches: Vec<&'a [u8]>,
    /// How many edges these are, and the count of the last one.
    edges: u64,
    last_count: u64,
    /// Locks, by their numbers: the address, and where the CPU has what is its own.
    pub(super) locks: Vec<(u64, u64)>,
}

/// An edge: after how many instructions, and its two words.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub(super) count: u64,
    pub(super) words: [u64; 2],
}

/// The edges of a record.
fn edges_of(record: &[u8]) -> impl Iterator<Item = Counted> {
    let mut words = record.chunks_exact(8).map_while(|bytes| word(bytes, 0));
    let mut count = words.next().unwrap_or(0);
    std::iter::from_fn(move || {
        let words = [words.next()?, words.next()?];
        count = count.saturating_add(after(words[0]));
        Some(Counted { count, words })
    })
}

/// How many instructions an edge is behind the one before, by its first word.
fn after(word: u64) -> u64 {
    u64::from(low(word) >> 8)
}

impl<'a> Written<'a> {
    pub(super) fn start(&mut self, words: &[u64]) -> Result<(), ScopeError> {
        let words = words.try_into().map_err(|_| ScopeError::Foreign)?;
        match self.start.replace(words) {
            None => Ok(()),
            Some(_) => Err(ScopeError::Foreign),
        }
    }

    pub(super) fn task(&mut self, words: &[u64]) -> Result<(), ScopeError> {
        let [pid, scheduled, name @ ..] = words else { return Err(ScopeError::Foreign) };
        let name: [u64; 2] = name.try_into().map_err(|_| ScopeError::Foreign)?;
        let name: Vec<u8> = name.into_iter().flat_map(u64::to_le_bytes).collect();
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let comm = String::from_utf8_lossy(&name[..end]).into_owned();
        let prio = i32::from_le_bytes(low(*scheduled).to_le_bytes());
        self.tasks.push(Task { pid: low(*pid), comm, policy: policy_of(high(*scheduled)), prio });
        Ok(())
    }

    pub(super) fn lock(&mut self, address: u64, own: u64) {
        self.locks.push((address, own));
    }

    /// A record: the count that its first edge counts from, and edges.
    pub(super) fn batch(&mut self, record: &'a [u8], words: &[u64]) -> Result<(), ScopeError> {
        let (&count, edges) = words.split_first().ok_or(ScopeError::Foreign)?;
        let pairs = edges.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(ScopeError::Foreign);
        }
        let mut count = count;
        for pair in pairs {
            count = count.checked_add(after(pair[0])).ok_or(ScopeError::Foreign)?;
            if self.edges > 0 && self.last_count > count {
                let what = "the emulator counted instructions backwards";
                return Err(ScopeError::Missed { what, count: 1 });
            }
            (self.edges, self.last_count) = (self.edges + 1, count);
        }
        self.batches.push(record);
        Ok(())
    }

    /// The edges, in order.
    pub(super) fn edges(&self) -> impl Iterator<Item = Counted> {
        self.batches.iter().flat_map(|record| edges_of(record))
    }

    /// The edges, with times and names; `None` if there are none.
    pub(super) fn read(
        &self,
        edges: u64,
        tasks: u64,
        ns_at: impl Fn(u64, Moment) -> u64,
        kernel: &Kernel,
    ) -> Result<Option<Edges>, ScopeError> {
        if self.edges != edges || self.tasks.len() as u64 != tasks {
            return Err(ScopeError::Cut);
        }
        let start = match self.start {
            Some(start) => start,
            None if self.edges == 0 => return Ok(None),
            None => return Err(ScopeError::Foreign),
        };
        let [_, irqs_off, preempt, in_user, task] = start;
        let start = State {
            irqs_off: irqs_off != 0,
            preempt: kernel.division.read(low(preempt)),
            in_user: in_user != 0,
            halted: false,
            task: if task == 0 { None } else { Some(self.task_of(low(task))?) },
        };
        let names: Vec<&str> = kernel.names().chain(NAMES).collect();
        let named = names.len() - NAMES.len();
        let mut known = BTreeMap::new();
        let mut id_of = |place: usize| {
            let next = u32::try_from(known.len()).ok()?;
            Some(FunctionId(*known.entry(place).or_insert(next)))
        };
        let image = kernel.end >> 32 << 32;
        let mut edges: Vec<Edge> = Vec::with_capacity(usize::try_from(self.edges).unwrap_or(0));
        let mut at_ns = 0;
        // The interrupt that has come in, until its number is known.
        let mut entered = None;
        for Counted { count, words: [first, second] } in self.edges() {
            if first & 0xff == INTERRUPT_IS {
                let name = named + name_of_interrupt(high(first));
                if let Some(entry) = entered.take().and_then(|place: usize| edges.get_mut(place)) {
                    entry.function = id_of(name);
                }
                continue;
            }
            if LOCKS.contains(&(first & 0xff)) && !self.locks.is_empty() {
                continue;
            }
            let mut function =
                |address: u32| id_of(kernel.place_of_function(image | u64::from(address))?);
            let what = self.kind(first, kernel.division)?;
            // Between idle time and the next reading of the clock, times are taken back from that.
            let moment =
                if what == EdgeKind::Halt { Moment::BeforeIdle } else { Moment::AfterIdle };
            at_ns = ns_at(count, moment).max(at_ns);
            let (address, caller) = (low(second), high(second));
            // What a call returns to may be behind the end of the function that made it. What an interrupt
            // returns to is what it came into.
            let is_call = !matches!(what, EdgeKind::Enter { .. });
            let caller = if is_call { caller.checked_sub(1) } else { Some(caller) };
            let caller = caller.filter(|&caller| caller != 0).and_then(&mut function);
            let function = match what {
                EdgeKind::UserClock => None,
                EdgeKind::Enter { way: WayIn::Exception, .. }
                    if PAGE_FAULTS.contains(&(high(first) >> 1)) =>
                {
                    id_of(named + PAGE_FAULT)
                }
                _ => function(address),
            };
            match what {
                EdgeKind::Enter { way: WayIn::Interrupt, .. } => entered = Some(edges.len()),
                EdgeKind::Leave { .. } | EdgeKind::Switch(_) => entered = None,
                _ => {}
            }
            edges.push(Edge { at_ns, function, caller, what });
        }
        let mut functions = vec![String::new(); known.len()];
        for (place, number) in known {
            functions[number as usize] = names[place].to_owned();
        }
        let (tasks, knows_asks) = (self.tasks.clone(), kernel.has_asks());
        let all = Edges { start, functions, tasks, knows_asks, ..Edges::default() };
        add_fires(&mut edges, all.timer_entry())?;
        Ok(Some(Edges { edges, ..all }))
    }

    fn kind(&self, word: u64, division: Division) -> Result<EdgeKind, ScopeError> {
        let value = high(word);
        let enter = |way| EdgeKind::Enter { way, from_user: value & 1 != 0 };
        Ok(match word & 0xff {
            1 => EdgeKind::IrqsOff,
            2 => EdgeKind::IrqsOn,
            3 => EdgeKind::PreemptCount(division.read(value)),
            4 => enter(WayIn::Interrupt),
            5 => enter(WayIn::Exception),
            6 => enter(WayIn::SystemCall),
            7 => EdgeKind::Leave { to_user: value != 0 },
            8 => EdgeKind::Softirq(u8::try_from(value).map_err(|_| ScopeError::Foreign)?),
            9 => EdgeKind::Wake(self.task_of(value)?),
            10 => EdgeKind::Schedule,
            11 => EdgeKind::Switch(self.task_of(value)?),
            12 => EdgeKind::Halt,
            13 => EdgeKind::UserClock,
            14 => EdgeKind::Ask(ask_kind(value.into()).ok_or(ScopeError::Foreign)?),
            15 => EdgeKind::TimerSet(Some(value).filter(|&ns| ns != 0)),
            16 => EdgeKind::Resume,
            _ => return Err(ScopeError::Foreign),
        })
    }

    /// The task with this number, which counts from 1.
    fn task_of(&self, number: u32) -> Result<TaskId, ScopeError> {
        let place = number.checked_sub(1).filter(|&place| (place as usize) < self.tasks.len());
        place.map(TaskId).ok_or(ScopeError::Foreign)
    }
}

/// Adds an edge for each time that the timer fires, whose interrupt enters the kernel at `entry`.
fn add_fires(edges: &mut Vec<Edge>, entry: Option<FunctionId>) -> Result<(), ScopeError> {
    // Before which edges, and when.
    let mut fires = Vec::new();
    let (mut fires_ns, mut too_early) = (None, 0);
    // Before the first of these edges it may have fired.
    let mut asks = true;
    for (place, edge) in edges.iter().enumerate() {
        if let Some(at_ns) = fires_ns.take_if(|at_ns| *at_ns <= edge.at_ns) {
            fires.push((place, at_ns));
            asks = true;
        }
        match edge.what {
            EdgeKind::TimerSet(after) => {
                fires_ns = after.map(|ns| edge.at_ns.saturating_add(ns.into()));
            }
            EdgeKind::Enter { way: WayIn::Interrupt, .. } if edge.function == entry => {
                too_early += u64::from(entry.is_some() && !asks);
                asks = false;
            }
            _ => {}
        }
    }
    if too_early > 0 {
        let what = "the timer's interrupt came before the timer fired";
        return Err(ScopeError::Missed { what, count: too_early });
    }
    insert(edges, &fires);
    Ok(())
}

/// Adds `fires`, each before the edge at its place. There are millions of edges, so they are moved, from the last on.
fn insert(edges: &mut Vec<Edge>, fires: &[(usize, u64)]) {
    let fire = |at_ns| Edge { at_ns, function: None, caller: None, what: EdgeKind::TimerFires };
    let mut end = edges.len();
    edges.reserve_exact(fires.len());
    edges.extend(fires.iter().map(|(_, at_ns)| fire(*at_ns)));
    for (before, &(place, at_ns)) in fires.iter().enumerate().rev() {
        edges.copy_within(place..end, place + before + 1);
        edges[place + before] = fire(at_ns);
        end = place;
    }
}

pub(super) fn low(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}

pub(super) fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Option<FunctionId> = Some(FunctionId(3));
    const INTERRUPT: EdgeKind = EdgeKind::Enter { way: WayIn::Interrupt, from_user: false };

    /// The same edges, all in the function of the timer's interrupt, and when the timer fires.
    fn fires(edges: &[(u64, EdgeKind)]) -> Result<Vec<u64>, ScopeError> {
        let edge = |&(at_ns, what)| Edge { at_ns, function: ENTRY, caller: None, what };
        let mut all: Vec<Edge> = edges.iter().map(edge).collect();
        add_fires(&mut all, ENTRY)?;
        let (fires, others): (Vec<Edge>, Vec<Edge>) =
            all.iter().partition(|edge| edge.what == EdgeKind::TimerFires);
        assert!(all.is_sorted_by_key(|edge| edge.at_ns));
        assert_eq!(others, edges.iter().map(edge).collect::<Vec<_>>());
        Ok(fires.iter().map(|edge| edge.at_ns).collect())
    }

    #[test]
    fn the_timer_fires_when_it_was_set_to_if_it_is_not_set_anew_before() {
        let set = |ns| EdgeKind::TimerSet(Some(ns));
        let stop = EdgeKind::TimerSet(None);
        assert_eq!(fires(&[(10, set(90)), (100, INTERRUPT)]), Ok(vec![100]));
        assert_eq!(fires(&[(10, set(90)), (50, set(90)), (141, INTERRUPT)]), Ok(vec![140]));
        assert_eq!(fires(&[(10, set(90)), (50, stop), (500, EdgeKind::Halt)]), Ok(vec![]));
        // It fires while interrupts are off, and is set anew before its interrupt is taken.
        let late = [(10, set(90)), (120, set(500)), (130, INTERRUPT), (620, INTERRUPT)];
        assert_eq!(fires(&late), Ok(vec![100, 620]));
        // What it was set to before the first edge is not known.
        assert_eq!(fires(&[(5, INTERRUPT), (10, set(90)), (100, INTERRUPT)]), Ok(vec![100]));
    }

    #[test]
    fn an_interrupt_of_a_timer_that_has_not_fired_is_refused() {
        let edges = [(5, INTERRUPT), (10, EdgeKind::TimerSet(Some(90))), (99, INTERRUPT)];
        assert!(matches!(fires(&edges), Err(ScopeError::Missed { count: 1, .. })));
    }
}
