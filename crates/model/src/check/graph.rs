//! States that were found, and how they follow from each other.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::choice::Choice;
use crate::image::TaskId;

/// States in the order in which they were found, the first one first. Of a state itself only its
/// fingerprint is kept: the schedule that led to it gives it back.
#[derive(Debug, Default)]
pub(super) struct Graph {
    numbers: HashMap<u128, u32, BuildHasherDefault<Folded>>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// For each state whose successors are known, where its edges begin.
    first_edges: Vec<u64>,
}

#[derive(Debug)]
struct Node {
    parent: u32,
    choice: Option<Choice>,
    /// See [`super::progress`]: tasks that have to get on from here, a bit for each.
    owed: u64,
}

/// A step from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) to: u32,
    /// One more than the number of the task that got on; 0 for none.
    progress: u16,
    /// The same for one that drops a lock in a loop.
    breaks_lock: u16,
}

impl Edge {
    pub(super) fn new(to: u32, progress: Option<TaskId>, breaks_lock: Option<TaskId>) -> Self {
        let number = |task: Option<TaskId>| task.map_or(0, |task| task.0.saturating_add(1));
        Self { to, progress: number(progress), breaks_lock: number(breaks_lock) }
    }

    pub(super) fn is_progress_of(self, task: TaskId) -> bool {
        usize::from(self.progress) == task.index() + 1
    }

    pub(super) fn breaks_lock_of(self, task: TaskId) -> bool {
        usize::from(self.breaks_lock) == task.index() + 1
    }
}

/// What a state and a step take, bytes: a place in the map that may be half empty, and the node.
const NODE_BYTES: usize = 2 * 33 + size_of::<Node>() + size_of::<u64>();

impl Graph {
    /// The number of the state with this fingerprint, if it is known.
    pub(super) fn number(&self, fingerprint: u128) -> Option<u32> {
        self.numbers.get(&fingerprint).copied()
    }

    /// Adds a state that was not known.
    pub(super) fn add(
        &mut self,
        fingerprint: u128,
        parent: u32,
        choice: Option<Choice>,
        owed: u64,
    ) {
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.numbers.insert(fingerprint, number);
        self.nodes.push(Node { parent, choice, owed });
    }

    /// The edges that are added next are those of the next state.
    pub(super) fn begin_edges(&mut self) {
        self.first_edges.push(self.edges.len() as u64);
    }

    pub(super) fn add_edge(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    pub(super) fn states(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn steps(&self) -> usize {
        self.edges.len()
    }

    pub(super) fn owed(&self, state: u32) -> u64 {
        self.nodes[state as usize].owed
    }

    pub(super) fn edges(&self, state: u32) -> &[Edge] {
        let at = |index: usize| {
            let end = self.edges.len() as u64;
            usize::try_from(self.first_edges.get(index).copied().unwrap_or(end)).unwrap_or(0)
        };
        &self.edges[at(state as usize)..at(state as usize + 1)]
    }

    /// The shortest schedule to a state.
    pub(super) fn schedule(&self, state: u32) -> Vec<Choice> {
        let mut schedule = Vec::new();
        let mut at = state;
        while let Some(choice) = &self.nodes[at as usize].choice {
            schedule.push(choice.clone());
            at = self.nodes[at as usize].parent;
        }
        schedule.reverse();
        schedule
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.len() * NODE_BYTES + self.edges.capacity() * size_of::<Edge>()
    }
}

/// A fingerprint is a hash already.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = u64::try_from(fingerprint & u128::from(u64::MAX)).unwrap_or(0);
    }
}
