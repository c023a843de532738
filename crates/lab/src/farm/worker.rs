//! A thread that does one job after the other.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use wakescope_core::date::Date;
use wakescope_core::units::SpanNs;
use wakescope_report::style::clean;
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::machine::host_name;

use super::queue::Queue;
use super::{Job, Outcome, Runner};
use crate::store::{CellStore, Claim, Ending, Failed, FailureKind, Meta, Slot, StoreError};

/// What a worker tells.
pub(super) enum Message {
    Started { job: usize, damaged: Option<String> },
    Waits { job: usize },
    Finished { job: usize, outcome: Outcome, host: Option<SpanNs> },
    Broken(StoreError),
}

pub(super) struct Worker<'a, W> {
    pub(super) jobs: &'a [Job<W>],
    pub(super) store: &'a CellStore,
    pub(super) runner: &'a dyn Runner<W>,
    pub(super) queue: &'a Queue,
    pub(super) cancel: &'a AtomicBool,
    pub(super) out: Sender<Message>,
}

impl<W> Worker<'_, W> {
    pub(super) fn work(&self) {
        while let Some(job) = self.queue.next() {
            if let Err(error) = self.attempt(job) {
                // What runs may still come to its end; nothing new is begun.
                self.queue.close();
                self.tell(Message::Broken(error));
            }
        }
    }

    fn attempt(&self, job: usize) -> Result<(), StoreError> {
        match self.store.begin(&self.jobs[job].recipe)? {
            Claim::Stored(cell) => {
                let outcome = Outcome::Kept { cell, cached: true };
                self.tell(Message::Finished { job, outcome, host: None });
                Ok(())
            }
            Claim::Busy => {
                self.queue.postpone(job);
                self.tell(Message::Waits { job });
                Ok(())
            }
            Claim::Free(slot) => self.run(job, *slot),
        }
    }

    fn run(&self, job: usize, slot: Slot) -> Result<(), StoreError> {
        self.tell(Message::Started { job, damaged: slot.damaged().map(Into::into) });
        let start = clock::now();
        let ending = self.guarded(&self.jobs[job], &slot);
        let host = clock::now().since(start);
        let ending = self.believed(ending, &slot);
        let outcome = match ending {
            Ending::Failed(failed) if failed.kind == FailureKind::Cancelled => Ok(Outcome::NotRun),
            Ending::Failed(failed) if !failed.kind.repeats() => Ok(Outcome::Failed(failed)),
            ending => {
                let meta = self.meta(job, host);
                let kept = slot.commit(ending, &meta);
                kept.map(|cell| Outcome::Kept { cell: Box::new(cell), cached: false })
            }
        };
        let (outcome, error) = match outcome {
            Ok(outcome) => (outcome, None),
            Err(error) => (Outcome::NotRun, Some(error)),
        };
        let out_of_room = matches!(&outcome, Outcome::Failed(f) if f.kind == FailureKind::DiskFull);
        let host = matches!(outcome, Outcome::Kept { .. }).then_some(host);
        self.tell(Message::Finished { job, outcome, host });
        match error {
            Some(error) => Err(error),
            // The next cell would find no room either.
            None if out_of_room => Err(self.store.full()),
            None => Ok(()),
        }
    }

    /// Runs the guest. A fault in the runner is a failure of this cell alone.
    fn guarded(&self, job: &Job<W>, slot: &Slot) -> Ending {
        let run = || self.runner.run(job, slot.folder(), self.cancel);
        // The runner is not used for anything that a panic could have left half done: each run
        // has its own folder.
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let why = format!("a bug in the lab: {}", message_of(panic.as_ref()));
            Failed::new(FailureKind::Lab, why).into()
        })
    }

    /// What can be believed of `ending`: the host's troubles look like the guest's to a runner.
    fn believed(&self, ending: Ending, slot: &Slot) -> Ending {
        let at_fault = |why: String| {
            let why = format!("a bug in the lab: {why}");
            Failed::new(FailureKind::Lab, why).into()
        };
        let believed = match (ending, slot.results()) {
            // A guest that was cancelled has no result, whatever it looks like.
            (Ending::Failed(_), _) if self.cancel.load(Ordering::SeqCst) => {
                Failed::new(FailureKind::Cancelled, "the lab was interrupted").into()
            }
            // A guest whose words find no room on the disk seems to say nothing.
            (Ending::Failed(failed), _)
                if failed.kind.repeats() && self.store.check_room().is_err() =>
            {
                Failed::new(FailureKind::DiskFull, self.store.full().to_string()).into()
            }
            (Ending::Measured, Ok(0)) => at_fault("the result has no files".into()),
            (Ending::Measured, Err(e)) => at_fault(e.to_string()),
            (Ending::Failed(failed), Err(e)) if failed.kind.repeats() => at_fault(e.to_string()),
            (ending, _) => ending,
        };
        believed.bounded()
    }

    fn meta(&self, job: usize, host: SpanNs) -> Meta {
        Meta {
            label: self.jobs[job].label.clone(),
            host_ns: host.0,
            host: clean(&host_name(), 64),
            ended: Date::from_realtime(clock::read(Clock::Realtime)).to_string(),
            confinement: self.runner.confinement(&self.jobs[job]),
            state: self.runner.state(&self.jobs[job]),
            ..Meta::default()
        }
    }

    fn tell(&self, message: Message) {
        // Nobody listens any more only if the watcher panicked.
        let _ = self.out.send(message);
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    clean(text.unwrap_or("it gives no reason"), 300)
}
