//! Rules about what has to happen some time, which only all states together can show.
//!
//! A task *gets on* where it does a unit of work, responds, goes to sleep, or comes to the end of its
//! path. Two rules:
//!
//! - A task that is *owed* progress can get on: from each such state there is at least one schedule in
//!   which it does. It is owed to a task that is ready while a less urgent one runs, to one that waits
//!   for a lock whose owner sleeps until an event, and to one that waits for an event where all tasks
//!   that could announce it wait for an event or a lock themselves. (Not to a task that a more urgent
//!   one keeps from running: fixed priorities are meant so.)
//! - A task that drops a lock in a loop, so that another can run, gets on in any case: there is no
//!   cycle of states in which it drops its lock again and again, and never gets on. Endless wakeups
//!   are assumed here, since the kernel promises to work under any.

use super::Failure;
use super::choice::{Choice, possible};
use super::graph::Graph;
use super::machine::{Nobody, advance, choose};
use super::script::Script;
use super::state::State;
use crate::image::{Code, CodeId, EventId, Image, Op, TaskId};
use crate::kernel::{Kernel, TaskState, Violation};

/// Tasks beyond these are not followed: a bit for each.
pub(super) const MOST_TASKS: usize = 64;

/// To which tasks progress is owed in this state.
pub(super) fn owed(image: &Image, kernel: &Kernel) -> u64 {
    let tasks = kernel.tasks().iter().enumerate().take(MOST_TASKS);
    let is_owed =
        |&(index, _): &(usize, _)| what_is_owed(image, kernel, TaskId::at(index)).is_some();
    tasks.filter(is_owed).fold(0, |mask, (index, _)| mask | 1 << index)
}

/// What is broken if this task never gets on from here.
fn what_is_owed(image: &Image, kernel: &Kernel, task: TaskId) -> Option<Violation> {
    let state = &kernel.tasks()[task.index()];
    match state.state {
        TaskState::Running if state.is_queued => {
            let on = &kernel.cpus()[state.cpu.index()];
            let current = on.current?;
            let is_behind = on.ready.contains(&task)
                && state.prio < 100
                && kernel.may_run(image, state.cpu, task)
                && kernel.tasks()[current.index()].prio > state.prio;
            is_behind.then_some(Violation::LostNeedResched(task))
        }
        TaskState::Blocked(_) if !state.is_queued => {
            waits_for_event(kernel, task).then_some(Violation::Deadlock)
        }
        TaskState::Sleeping(Some(event)) if !state.is_queued => {
            let mut wakers =
                image.tasks.iter().enumerate().filter(|(_, t)| wakes(image, t.code, event));
            let only_tasks = !handlers_wake(image, event);
            let all_wait = only_tasks
                && wakers.clone().next().is_some()
                && wakers.all(|(index, _)| waits_for_event(kernel, TaskId::at(index)));
            all_wait.then_some(Violation::Deadlock)
        }
        _ => None,
    }
}

/// Whether a task sleeps until an event, or waits for a lock of one that does.
fn waits_for_event(kernel: &Kernel, task: TaskId) -> bool {
    let mut at = task;
    for _ in kernel.tasks() {
        let state = &kernel.tasks()[at.index()];
        match state.state {
            TaskState::Sleeping(Some(_)) => return !state.is_queued,
            TaskState::Blocked(lock) => match kernel.locks()[lock.index()].owner {
                Some(owner) => at = owner,
                None => return false,
            },
            _ => return false,
        }
    }
    true
}

fn wakes(image: &Image, code: CodeId, event: EventId) -> bool {
    let Code { ops, .. } = &image.codes[code.index()];
    ops.contains(&Op::Wake(event))
}

fn handlers_wake(image: &Image, event: EventId) -> bool {
    let softirqs = image.softirqs.iter().flatten().copied();
    let mut codes = image.sources.iter().map(|source| source.code).chain(softirqs);
    image.softirq_work.contains(&event) || codes.any(|code| wakes(image, code, event))
}

/// Looks for what breaks these rules, in the graph of all states.
pub(super) fn stuck(image: &Image, graph: &Graph) -> Option<Failure> {
    let tasks = || (0..image.tasks.len().min(MOST_TASKS)).map(TaskId::at);
    let never = tasks().filter_map(|task| Some((never_gets_on(graph, task)?, task))).min();
    if let Some((state, task)) = never {
        let schedule = graph.schedule(state);
        let kernel = reached(image, &schedule).kernel;
        let violation = what_is_owed(image, &kernel, task).unwrap_or(Violation::Deadlock);
        let cpu = kernel.tasks()[task.index()].cpu;
        return Some(Failure { violation, cpu, schedule, cycle: Vec::new() });
    }
    tasks().find_map(|task| livelock(image, graph, task))
}

/// The first state from which a task that is owed progress never gets on.
fn never_gets_on(graph: &Graph, task: TaskId) -> Option<u32> {
    let count = u32::try_from(graph.states()).unwrap_or(u32::MAX);
    let bit = 1 << task.0;
    if (0..count).all(|state| graph.owed(state) & bit == 0) {
        return None;
    }
    let mut gets_on = vec![false; count as usize];
    // Against the order in which states were found, most successors come before. The rounds end as soon
    // as one finds nothing new.
    loop {
        let mut is_new = false;
        for state in (0..count).rev() {
            let any = !gets_on[state as usize]
                && graph
                    .edges(state)
                    .iter()
                    .any(|edge| edge.is_progress_of(task) || gets_on[edge.to as usize]);
            if any {
                gets_on[state as usize] = true;
                is_new = true;
            }
        }
        if !is_new {
            break;
        }
    }
    (0..count).find(|&state| graph.owed(state) & bit != 0 && !gets_on[state as usize])
}

/// A cycle in which a task drops its lock and never gets on.
fn livelock(image: &Image, graph: &Graph, task: TaskId) -> Option<Failure> {
    let count = u32::try_from(graph.states()).unwrap_or(u32::MAX);
    let breaks = |state: u32| graph.edges(state).iter().any(|edge| edge.breaks_lock_of(task));
    if !(0..count).any(breaks) {
        return None;
    }
    let components = components(graph, |edge| !edge.is_progress_of(task));
    let (from, to) = (0..count).find_map(|state| {
        let inside = graph.edges(state).iter().find(|edge| {
            edge.breaks_lock_of(task)
                && !edge.is_progress_of(task)
                && components[edge.to as usize] == components[state as usize]
        });
        Some((state, inside?.to))
    })?;
    let way = way(graph, from, to, task, &components);
    let schedule = graph.schedule(from);
    let state = reached(image, &schedule);
    let cpu = state.kernel.tasks()[task.index()].cpu;
    let cycle = choices(image, graph, state, &way);
    Some(Failure { violation: Violation::Livelock(task), cpu, schedule, cycle })
}

/// States of a shortest cycle: `from`, then `to`, and back within the component.
fn way(graph: &Graph, from: u32, to: u32, task: TaskId, components: &[u32]) -> Vec<u32> {
    let mut before = std::collections::BTreeMap::from([(to, to)]);
    let mut queue = std::collections::VecDeque::from([to]);
    while let Some(at) = queue.pop_front() {
        if at == from {
            break;
        }
        for edge in graph.edges(at) {
            let inside = components[edge.to as usize] == components[from as usize];
            if inside && !edge.is_progress_of(task) && !before.contains_key(&edge.to) {
                before.insert(edge.to, at);
                queue.push_back(edge.to);
            }
        }
    }
    let mut way = vec![from];
    let mut at = from;
    while at != to {
        at = before.get(&at).copied().unwrap_or(to);
        way.push(at);
    }
    way.reverse();
    way
}

/// The choices that lead along these states.
fn choices(image: &Image, graph: &Graph, mut state: State, way: &[u32]) -> Vec<Choice> {
    let mut script = Script::new(image);
    let mut steps = Vec::new();
    let mut found = Vec::new();
    for &wanted in way {
        possible(image, &state, &mut steps);
        let next = steps.iter().find_map(|&step| {
            script.begin(&[]);
            loop {
                let mut next = state.clone();
                advance(image, &mut next, step, &mut script, &mut Nobody);
                if graph.number(next.fingerprint()) == Some(wanted) {
                    return Some((next, Choice { step, answers: script.answers() }));
                }
                if !script.begin_next() {
                    return None;
                }
            }
        });
        let Some((next, choice)) = next else { break };
        found.push(choice);
        state = next;
    }
    found
}

/// The state that a schedule leads to.
fn reached(image: &Image, schedule: &[Choice]) -> State {
    let mut state = State::first(image);
    let mut script = Script::new(image);
    for choice in schedule {
        choose(image, &mut state, choice, &mut script, &mut Nobody);
    }
    state
}

/// The strongly connected component of each state, by the edges that are `wanted`: Tarjan's algorithm
/// with a stack of its own, since schedules are longer than a thread's stack.
fn components(graph: &Graph, wanted: impl Fn(&super::graph::Edge) -> bool) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let count = graph.states();
    let mut order = vec![NONE; count];
    let mut low = vec![NONE; count];
    let mut component = vec![NONE; count];
    let (mut next, mut found) = (0, 0);
    let mut open: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, usize)> = Vec::new();
    for root in 0..u32::try_from(count).unwrap_or(u32::MAX) {
        if order[root as usize] != NONE {
            continue;
        }
        calls.push((root, 0));
        while let Some((state, edge)) = calls.pop() {
            let at = state as usize;
            if edge == 0 {
                (order[at], low[at]) = (next, next);
                next += 1;
                open.push(state);
            }
            let edges = graph.edges(state);
            if let Some(taken) = edges.get(edge) {
                calls.push((state, edge + 1));
                let to = taken.to as usize;
                if !wanted(taken) {
                } else if order[to] == NONE {
                    calls.push((taken.to, 0));
                } else if component[to] == NONE {
                    low[at] = low[at].min(order[to]);
                }
                continue;
            }
            if low[at] == order[at] {
                while let Some(member) = open.pop() {
                    component[member as usize] = found;
                    if member == state {
                        break;
                    }
                }
                found += 1;
            }
            if let Some(&(caller, _)) = calls.last() {
                let caller = caller as usize;
                low[caller] = low[caller].min(low[at]);
            }
        }
    }
    component
}
