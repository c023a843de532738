//! How far a farm has come.

use wakescope_core::units::{MonoNs, SpanNs};

use super::forecast::Forecast;
use super::{Job, Outcome};
use crate::store::{CellStore, Label};

/// How far a farm has come.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Jobs in all.
    pub total: usize,
    /// Jobs that are done.
    pub done: usize,
    /// Of these, how many were in the cache.
    pub cached: usize,
    /// Of these, how many have no result.
    pub failed: usize,
    /// Jobs that another lab works on.
    pub waiting: usize,
    /// Guests that run, in the order they started.
    pub running: Vec<Running>,
    /// The time until the last job is done; `None` if nothing is known yet.
    pub left: Option<SpanNs>,
    cells: Vec<Cell>,
    forecast: Forecast,
    workers: usize,
}

/// A guest that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The job's place in the list.
    pub job: usize,
    /// How it is called.
    pub label: Label,
    /// Since when.
    pub since: MonoNs,
}

#[derive(Clone, Debug)]
struct Cell {
    label: Label,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is in the cache, or so it seems, and costs no time.
    Known,
    New,
    /// Another lab works on it.
    Elsewhere,
    Running,
    Done,
}

impl Standing {
    pub(super) fn new<W>(jobs: &[Job<W>], store: &CellStore, workers: usize) -> Self {
        let mut standing = Self::of(jobs.iter().map(|job| job.label.clone()), workers);
        for (cell, job) in standing.cells.iter_mut().zip(jobs) {
            if store.has(&job.recipe.key()) {
                cell.state = State::Known;
            }
        }
        standing
    }

    /// Of cells that are called so, which are all to be run.
    pub(crate) fn of(labels: impl Iterator<Item = Label>, workers: usize) -> Self {
        let cells: Vec<Cell> = labels.map(|label| Cell { label, state: State::New }).collect();
        Self {
            total: cells.len(),
            done: 0,
            cached: 0,
            failed: 0,
            waiting: 0,
            running: Vec::new(),
            left: None,
            cells,
            forecast: Forecast::default(),
            workers,
        }
    }

    pub(crate) fn started(&mut self, job: usize, now: MonoNs) {
        self.cells[job].state = State::Running;
        let label = self.cells[job].label.clone();
        self.running.push(Running { job, label, since: now });
        self.update(now);
    }

    /// Returns whether that is new.
    pub(super) fn waits(&mut self, job: usize, now: MonoNs) -> bool {
        let before = std::mem::replace(&mut self.cells[job].state, State::Elsewhere);
        self.update(now);
        before != State::Elsewhere
    }

    /// `host` is what it took, where it was run to its end here.
    pub(super) fn finished(
        &mut self,
        job: usize,
        outcome: &Outcome,
        host: Option<SpanNs>,
        now: MonoNs,
    ) {
        self.done += usize::from(*outcome != Outcome::NotRun);
        self.cached += usize::from(matches!(outcome, Outcome::Kept { cached: true, .. }));
        self.failed += usize::from(outcome.failed().is_some());
        self.over(job, host, now);
    }

    /// It was looked into at `now`, or that failed.
    pub(crate) fn looked_into(&mut self, job: usize, failed: bool, now: MonoNs) {
        let since = self.running.iter().find(|running| running.job == job).map(|it| it.since);
        let took = since.filter(|_| !failed).map(|since| now.since(since));
        self.done += 1;
        self.failed += usize::from(failed);
        self.over(job, took, now);
    }

    fn over(&mut self, job: usize, host: Option<SpanNs>, now: MonoNs) {
        self.cells[job].state = State::Done;
        self.running.retain(|running| running.job != job);
        if let Some(host) = host {
            self.forecast.learn(&self.cells[job].label.load, host);
        }
        self.update(now);
    }

    pub(crate) fn update(&mut self, now: MonoNs) {
        self.waiting = self.cells.iter().filter(|cell| cell.state == State::Elsewhere).count();
        let new = self.cells.iter().filter(|c| matches!(c.state, State::New | State::Elsewhere));
        let new = new.map(|cell| (cell.label.load.as_str(), SpanNs(0)));
        let running = self.running.iter().map(|r| (r.label.load.as_str(), now.since(r.since)));
        self.left = self.forecast.left(new.chain(running), self.workers);
    }
}
