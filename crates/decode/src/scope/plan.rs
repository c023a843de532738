//! The plan that the plugin reads: which kernel, and which sections.

use super::FORMAT;
use super::kernel::{Followed, Kernel, Tasks, What, number_of};
use super::lock_functions::FUNCTIONS;

const MAGIC: u64 = u64::from_le_bytes(*b"copeplan");

/// Which sections to look at, of which kernel.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// An instruction takes two to this power ns.
    pub shift: u32,
    /// Sections count that begin this long after the first process did, and before `to_ns`, ns.
    pub from_ns: u64,
    /// The end of that time, ns.
    pub to_ns: u64,
    /// From which length on single sections are kept, ns.
    pub above_ns: u64,
    /// Times of which each section and each reading of the clock is written: from and to, since the first
    /// process began, ns. In order, without overlap.
    pub looks: &'a [(u64, u64)],
    /// Whether to follow in which functions the time of the single sections goes that are kept.
    pub functions: bool,
    /// Whether to write each edge in the time in which sections count.
    pub edges: bool,
    /// Whether to follow locks, too. Needs edges.
    pub locks: bool,
}

impl Plan<'_> {
    /// As the plugin reads it.
    pub fn bytes(&self) -> Vec<u8> {
        let Self { kernel, shift, from_ns, to_ns, above_ns, looks, functions, edges, locks } =
            *self;
        let start = kernel.unwinds.first().map_or(0, |unwind| unwind.from);
        let near = |from: u64| u32::try_from(from.wrapping_sub(start)).ok();
        let unwinds: Vec<[u8; 8]> = kernel
            .unwinds
            .iter()
            .map_while(|unwind| {
                let [a, b, c, d] = near(unwind.from)?.to_le_bytes();
                let [e, f] = unwind.offset.to_le_bytes();
                Some([a, b, c, d, e, f, unwind.base.number(), 0])
            })
            .collect();
        let tasks = kernel.tasks.map(|tasks| {
            let Tasks { current, pid, comm, prio, policy } = tasks;
            [current, pid, comm, prio, policy]
        });
        let of_locks = if locks { kernel.locks().0 } else { Vec::new() };
        let followed: Vec<[u64; 4]> = kernel
            .followed
            .iter()
            .filter_map(|&Followed { start, end, what, value }| {
                let value = match what {
                    What::Take | What::Release if !of_locks.contains(&value) => return None,
                    What::Take | What::Release => FUNCTIONS[usize::from(value)].act.number(),
                    _ => value,
                };
                Some([start, end, what.number(), value.into()])
            })
            .collect();
        let head = [
            MAGIC,
            FORMAT,
            kernel.preempt_count,
            shift.into(),
            from_ns,
            to_ns,
            above_ns,
            followed.len() as u64,
            unwinds.len() as u64,
            start,
            looks.len() as u64,
            functions.into(),
            edges.into(),
        ];
        let functions = if functions { kernel.starts().collect() } else { Vec::new() };
        let asks = if edges { kernel.asks.as_slice() } else { &[] };
        let of_functions = [functions.len() as u64, kernel.end, asks.len() as u64, locks.into()];
        let head = head.into_iter().chain(tasks.unwrap_or_default()).chain(of_functions);
        let words = head.chain(followed.into_iter().flatten()).flat_map(u64::to_le_bytes);
        let looks = looks.iter().flat_map(|&(from, to)| [from, to]).flat_map(u64::to_le_bytes);
        let starts = functions.into_iter().flat_map(u64::to_le_bytes);
        let asks = asks.iter().flat_map(|&(place, kind)| [place, number_of(kind)]);
        let asks = asks.flat_map(u64::to_le_bytes);
        words.chain(unwinds.into_iter().flatten()).chain(looks).chain(starts).chain(asks).collect()
    }
}
