//! All schedules: breadth first, so that the first that breaks a rule is a shortest one.

use std::collections::VecDeque;

use super::choice::{Choice, possible};
use super::graph::{Edge, Graph};
use super::machine::{Came, Nobody, advance};
use super::progress::owed;
use super::script::Script;
use super::state::State;
use super::{Failure, Limit, Limits};
use crate::image::Image;
use crate::kernel::{Cpu, Frame, Lock, SimulatedTask};

/// What a search has found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) graph: Graph,
    /// What stopped it before all states were found.
    pub(super) limit: Option<Limit>,
    /// The longest of all shortest schedules.
    pub(super) depth: u32,
    pub(super) failure: Option<Failure>,
}

/// Finds states until all are found, a rule is broken, or a limit is reached.
pub(super) fn search(image: &Image, limits: &Limits) -> Found {
    let mut search = Search {
        image,
        script: Script::new(image),
        graph: Graph::default(),
        frontier: VecDeque::new(),
    };
    let first = State::first(image);
    let state_bytes = bytes(&first);
    search.graph.add(first.fingerprint(), 0, None, owed(image, &first.kernel));
    search.frontier.push_back(first);
    let (mut depth, mut of_this_depth) = (0, 1);
    let mut steps = Vec::new();
    let mut from = 0;
    let (mut limit, mut failure) = (None, None);
    while let Some(state) = search.frontier.pop_front() {
        if of_this_depth == 0 {
            depth += 1;
            of_this_depth = search.frontier.len() + 1;
        }
        limit = search.reached(limits, depth, state_bytes);
        if limit.is_some() {
            break;
        }
        of_this_depth -= 1;
        possible(image, &state, &mut steps);
        failure = search.expand(from, &state, &steps);
        if failure.is_some() {
            break;
        }
        from += 1;
    }
    Found { graph: search.graph, limit, depth, failure }
}

struct Search<'i> {
    image: &'i Image,
    script: Script<'i>,
    graph: Graph,
    /// States whose successors are not known yet, in the order of their numbers.
    frontier: VecDeque<State>,
}

impl Search<'_> {
    fn reached(&self, limits: &Limits, depth: u32, state_bytes: usize) -> Option<Limit> {
        let bytes = self.graph.bytes() + self.frontier.len() * state_bytes;
        if self.graph.states() >= limits.states {
            Some(Limit::States)
        } else if depth >= limits.depth {
            Some(Limit::Depth)
        } else if bytes >= limits.bytes {
            Some(Limit::Memory)
        } else {
            None
        }
    }

    /// Makes each possible step with all that can come of it.
    fn expand(
        &mut self,
        from: u32,
        state: &State,
        steps: &[super::choice::Step],
    ) -> Option<Failure> {
        self.graph.begin_edges();
        for &step in steps {
            self.script.begin(&[]);
            loop {
                let mut next = state.clone();
                let came = advance(self.image, &mut next, step, &mut self.script, &mut Nobody);
                let choice = || Choice { step, answers: self.script.answers() };
                if let Some((violation, cpu)) = came.violation {
                    let mut schedule = self.graph.schedule(from);
                    schedule.push(choice());
                    return Some(Failure { violation, cpu, schedule, cycle: Vec::new() });
                }
                let choice = choice();
                self.add(from, next, choice, came);
                if !self.script.begin_next() {
                    break;
                }
            }
        }
        None
    }

    fn add(&mut self, from: u32, state: State, choice: Choice, came: Came) {
        let fingerprint = state.fingerprint();
        let to = self.graph.number(fingerprint).unwrap_or_else(|| {
            let number = u32::try_from(self.graph.states()).unwrap_or(u32::MAX);
            let owed = owed(self.image, &state.kernel);
            self.graph.add(fingerprint, from, Some(choice), owed);
            self.frontier.push_back(state);
            number
        });
        self.graph.add_edge(Edge::new(to, came.progress, came.breaks_lock));
    }
}

/// About what a state takes, bytes. It grows with interrupts in each other, of which two are reckoned.
fn bytes(state: &State) -> usize {
    let kernel = &state.kernel;
    let cpu = size_of::<Cpu>() + 4 * size_of::<Frame>() + 64;
    let task = size_of::<SimulatedTask>() + 32;
    size_of::<State>()
        + kernel.cpus().len() * cpu
        + kernel.tasks().len() * task
        + kernel.locks().len() * (size_of::<Lock>() + 32)
}
