//! Runs cells side by side, and none that was run before.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

use crate::store::{CellStore, Ending, Failed, Label, Recipe, StoreError, StoredCell};

mod difference;
mod forecast;
pub(crate) mod queue;
mod standing;
mod verify;
mod worker;

pub use difference::Difference;
pub use standing::{Running, Standing};
pub use verify::{Repeated, Verification, Verified, verify};

use queue::Queue;
use worker::{Message, Worker};

/// How often the watcher is asked, at least, whether to go on.
const TICK: Duration = Duration::from_millis(100);

/// A cell to be run.
#[derive(Clone, Debug)]
pub struct Job<W> {
    /// What determines its result.
    pub recipe: Recipe,
    /// How it is called.
    pub label: Label,
    /// What the runner needs beside the recipe to do it: where files are.
    pub work: W,
}

/// Runs guests. Tests have one that needs no emulator.
pub trait Runner<W>: Sync {
    /// Runs the guest of `job`, and writes what it gives into `folder`: a few plain files. Ends
    /// soon after `cancel` is set; what it returns then counts only if it is [`Ending::Measured`].
    fn run(&self, job: &Job<W>, folder: &Path, cancel: &AtomicBool) -> Ending;

    /// What kept the guest of `job`, which was run, from doing harm to the host.
    fn confinement(&self, _job: &Job<W>) -> Vec<String> {
        Vec::new()
    }

    /// The SHA-256 of the state that the guest of `job` resumed from, once it has run, if it did not boot.
    fn state(&self, _job: &Job<W>) -> Option<String> {
        None
    }
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the cache: with a result, or with a failure that would repeat itself.
    Kept {
        /// The cell.
        cell: Box<StoredCell>,
        /// Whether it was there already.
        cached: bool,
    },
    /// It failed for a reason of the host's, and is to be run again.
    Failed(Failed),
    /// The farm ended before.
    NotRun,
}

impl Outcome {
    /// Why there is no result, if it was run.
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Self::Kept { cell, .. } => cell.ending.failed(),
            Self::Failed(failed) => Some(failed),
            Self::NotRun => None,
        }
    }
}

/// What the watcher is told. Jobs are named by their place in the list.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A guest starts.
    Started {
        /// Which.
        job: usize,
        /// Why the cell that was there is not to be trusted, if there was one.
        damaged: Option<&'a str>,
    },
    /// Another lab runs this cell; its result will be taken.
    Waits {
        /// Which.
        job: usize,
    },
    /// A job is done. Jobs that are not run are not told of.
    Finished {
        /// Which.
        job: usize,
        /// What became of it.
        outcome: &'a Outcome,
    },
    /// Time has passed.
    Tick,
}

impl Event<'_> {
    /// The event, its job known by another place: that which `places` has for it.
    fn at(self, places: &[usize]) -> Self {
        match self {
            Self::Started { job, damaged } => Self::Started { job: places[job], damaged },
            Self::Waits { job } => Self::Waits { job: places[job] },
            Self::Finished { job, outcome } => Self::Finished { job: places[job], outcome },
            Self::Tick => Self::Tick,
        }
    }
}

/// What the watcher says to each event: `Break` ends the farm.
pub type Continue = ControlFlow<()>;

/// Everything that a farm brought in.
#[derive(Debug)]
pub struct Harvest {
    /// What became of each job, in the order of the jobs.
    pub outcomes: Vec<Outcome>,
    /// Whether that is all.
    pub end: End,
}

/// How a farm ended.
#[derive(Debug)]
pub enum End {
    /// All jobs are done.
    Complete,
    /// The watcher ended it. What was done is kept.
    Stopped,
    /// It cannot go on. What was done is kept.
    Broken(FarmError),
}

/// Why a farm cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FarmError {
    /// The cache fails.
    #[error(transparent)]
    Store(StoreError),
    /// There is not one thread to work.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Does `jobs`, `parallel` of them at a time, in their order as far as other labs do not work on
/// them at the same moment.
///
/// `watch` is called in this thread. When it breaks, guests are cancelled; what is finished stays in
/// `store`, and the next farm goes on from there. A runner that panics has failed with that cell,
/// unless panics end the whole process.
pub fn run<W: Sync>(
    jobs: &[Job<W>],
    parallel: usize,
    store: &CellStore,
    runner: &dyn Runner<W>,
    watch: &mut dyn FnMut(Event<'_>, &Standing) -> Continue,
) -> Harvest {
    let workers = parallel.clamp(1, jobs.len().max(1));
    let standing = Standing::new(jobs, store, workers);
    let (queue, cancel) = (Queue::new(jobs.len()), AtomicBool::new(false));
    thread::scope(|scope| {
        // However this ends, also by a panic of the watcher, the workers are not left to go on.
        let switch = Switch { cancel: &cancel, queue: &queue };
        let (sender, messages) = mpsc::channel();
        let mut failed_start = None;
        for _ in 0..workers {
            let worker =
                Worker { jobs, store, runner, queue: &queue, cancel: &cancel, out: sender.clone() };
            let thread = thread::Builder::new().name("lab".into());
            if let Err(e) = thread.spawn_scoped(scope, move || worker.work()) {
                failed_start = Some(e);
                break;
            }
        }
        // When the last worker ends, there will be no further message.
        drop(sender);
        let mut farm = Farm { standing, outcomes: vec![Outcome::NotRun; jobs.len()], error: None };
        let stopped = farm.attend(&messages, &switch, watch);
        farm.harvest(stopped, failed_start)
    })
}

/// Turns the workers off.
struct Switch<'a> {
    cancel: &'a AtomicBool,
    queue: &'a Queue,
}

impl Switch<'_> {
    fn stop(&self) {
        self.queue.close();
        self.cancel.store(true, Ordering::SeqCst);
    }
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the calling thread knows.
struct Farm {
    standing: Standing,
    outcomes: Vec<Outcome>,
    error: Option<FarmError>,
}

impl Farm {
    /// Passes on what the workers tell until they have ended. Returns whether the watcher ended it.
    fn attend(
        &mut self,
        messages: &Receiver<Message>,
        switch: &Switch<'_>,
        watch: &mut dyn FnMut(Event<'_>, &Standing) -> Continue,
    ) -> bool {
        let mut stopped = false;
        loop {
            let message = match messages.recv_timeout(TICK) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return stopped,
            };
            let verdict = match message {
                Some(message) => self.take(message, watch),
                None => {
                    self.standing.update(clock::now());
                    watch(Event::Tick, &self.standing)
                }
            };
            if verdict.is_break() && !stopped {
                stopped = true;
                switch.stop();
            }
        }
    }

    fn take(
        &mut self,
        message: Message,
        watch: &mut dyn FnMut(Event<'_>, &Standing) -> Continue,
    ) -> Continue {
        let now = clock::now();
        match message {
            Message::Started { job, damaged } => {
                self.standing.started(job, now);
                watch(Event::Started { job, damaged: damaged.as_deref() }, &self.standing)
            }
            Message::Waits { job } => {
                if self.standing.waits(job, now) {
                    watch(Event::Waits { job }, &self.standing)
                } else {
                    Continue::Continue(())
                }
            }
            Message::Finished { job, outcome, host } => {
                self.finished(job, outcome, host, now);
                match &self.outcomes[job] {
                    Outcome::NotRun => Continue::Continue(()),
                    outcome => watch(Event::Finished { job, outcome }, &self.standing),
                }
            }
            Message::Broken(error) => {
                self.error.get_or_insert(FarmError::Store(error));
                Continue::Continue(())
            }
        }
    }

    fn finished(&mut self, job: usize, outcome: Outcome, host: Option<SpanNs>, now: MonoNs) {
        self.standing.finished(job, &outcome, host, now);
        self.outcomes[job] = outcome;
    }

    fn harvest(self, stopped: bool, failed_start: Option<io::Error>) -> Harvest {
        let complete = !self.outcomes.contains(&Outcome::NotRun);
        let end = match (self.error, failed_start) {
            (Some(error), _) => End::Broken(error),
            _ if complete => End::Complete,
            (None, Some(e)) if !stopped => End::Broken(FarmError::Thread(e)),
            _ => End::Stopped,
        };
        Harvest { outcomes: self.outcomes, end }
    }
}
