//! `wakescope lab run --scope`: the sections of the worst cells.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use wakescope_core::lab::{CellScope, Lab};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_lab::cell::Again;
use wakescope_lab::farm::{Event, Standing};
use wakescope_lab::matrix::Equipment;
use wakescope_lab::scope::{Detail, ScopeFailure, Subject, scope};
use wakescope_lab::store::Key;
use wakescope_lab::watch::{Step, Watch};
use wakescope_report::lab_progress::{LabProgress, RunningCell};
use wakescope_report::style::clean;
use wakescope_sys::clock;

use super::showing::Showing;
use super::waiting::Waiting;
use crate::Failure;

/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

/// Looks into the cell with the latest wakeup of each kernel and model, some at a time, and puts into the
/// record what was seen, or why nothing was. Returns whether the user ended it.
pub(super) fn look_into_worst(lab: &mut Lab, equipment: &Equipment) -> Result<bool, Failure> {
    let looks = looks(lab, equipment)?;
    let queue = Queue { looks: &looks, next: AtomicUsize::new(0), ended: AtomicBool::new(false) };
    // From here on threads inherit that signals are blocked, and are fetched here.
    let mut showing = Showing::new(Waiting::new()?);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|threads| {
        for _ in 0..equipment.parallel.min(looks.len()) {
            let (queue, sender) = (&queue, sender.clone());
            let thread = thread::Builder::new().name("look".into());
            thread.spawn_scoped(threads, move || queue.work(equipment, &sender)).map_err(|e| {
                queue.ended.store(true, Ordering::Relaxed);
                Failure::new(format!("cannot start a thread: {e}"))
                    .try_this("look into fewer cells at a time: --jobs 1")
            })?;
        }
        drop(sender);
        let mut progress = Progress::of(&looks);
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(Message::Begins(look)) => progress.begins(look),
                Ok(Message::Ends(_, Err(ScopeFailure::Stopped))) => {}
                Ok(Message::Ends(look, seen)) => {
                    progress.ends(look, seen.is_err());
                    let failed = |e: ScopeFailure| CellScope::failed(clean(&e.to_string(), 300));
                    lab.cells[looks[look].place].scope = Some(seen.unwrap_or_else(failed));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if showing.shows("looking into the worst cells", || progress.now()) {
                queue.ended.store(true, Ordering::Relaxed);
            }
        }
        Ok(progress.done < looks.len())
    })
}

/// A cell to be looked into.
struct Look {
    /// Where in the record it stands.
    place: usize,
    shown: RunningCell,
    /// `None` if there is no such cell in the store.
    key: Option<Key>,
}

fn looks(lab: &Lab, equipment: &Equipment) -> Result<Vec<Look>, Failure> {
    let keys = equipment.store.keys().map_err(|e| super::failure_of_store(&e))?;
    let known: BTreeMap<String, Key> = keys.into_iter().map(|key| (key.to_string(), key)).collect();
    let look = |place: usize| {
        let cell = &lab.cells[place];
        let folder = cell.run.as_deref().and_then(|run| Path::new(run).file_name());
        let shown = RunningCell {
            kernel: cell.kernel.clone(),
            model: cell.asked.to_string(),
            load: cell.load.clone(),
            seed: Some(cell.seed),
            elapsed: SpanNs(0),
        };
        Look { place, shown, key: folder.and_then(|name| known.get(name.to_str()?)).cloned() }
    };
    Ok(lab.worst_cells().into_iter().map(look).collect())
}

/// What a thread tells of the looks that it takes; each is named by its place among all.
enum Message {
    Begins(usize),
    Ends(usize, Result<CellScope, ScopeFailure>),
}

/// What threads take their looks from.
struct Queue<'a> {
    looks: &'a [Look],
    next: AtomicUsize,
    ended: AtomicBool,
}

impl Queue<'_> {
    /// Looks into one cell after the other, until there are no more or the user ends it.
    fn work(&self, equipment: &Equipment, sender: &Sender<Message>) {
        while !self.ended.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(look) = self.looks.get(number) else { return };
            // Nobody listens any more only if the lab ends for another reason.
            let _ = sender.send(Message::Begins(number));
            let seen = match &look.key {
                Some(key) => look_into(key, equipment, &self.ended),
                None => Err(ScopeFailure::Cell("there is no such cell".into())),
            };
            let _ = sender.send(Message::Ends(number, seen));
        }
    }
}

fn look_into(
    key: &Key,
    equipment: &Equipment,
    ended: &AtomicBool,
) -> Result<CellScope, ScopeFailure> {
    let Equipment { cache, store, workshops, .. } = equipment;
    let emulators = workshops.values().map(|workshop| Arc::clone(&workshop.qemu)).collect();
    let limit = workshops.values().map(|workshop| workshop.limit).max().unwrap_or_default();
    let again = Again::new(cache, emulators, limit);
    // Single sections are not kept.
    let detail = Detail { above_ns: u64::MAX, ..Detail::default() };
    let subject = Subject::of(key, store, &again)?;
    let mut running = |_: Event<'_>, _: &Standing| match ended.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let silent = &mut Silent { ended };
    let seen = scope(subject, detail, store, &again, cache, silent, &mut running)?;
    Ok(CellScope::of(&seen.scope))
}

/// Hears of a look what its thread need not tell, and ends it with the others.
struct Silent<'a> {
    ended: &'a AtomicBool,
}

impl Watch for Silent<'_> {
    fn step(&mut self, _: &Step<'_>) {}

    fn stopped(&mut self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// How far the looks have come.
struct Progress<'a> {
    looks: &'a [Look],
    began: MonoNs,
    done: usize,
    /// Of these, how many could not be looked into.
    failed: usize,
    /// Each by its place, and since when.
    running: Vec<(usize, MonoNs)>,
}

impl<'a> Progress<'a> {
    fn of(looks: &'a [Look]) -> Self {
        Self { looks, began: clock::now(), done: 0, failed: 0, running: Vec::new() }
    }

    fn begins(&mut self, look: usize) {
        self.running.push((look, clock::now()));
    }

    fn ends(&mut self, look: usize, failed: bool) {
        self.running.retain(|&(running, _)| running != look);
        self.done += 1;
        self.failed += usize::from(failed);
    }

    fn now(&self) -> LabProgress {
        let now = clock::now();
        let elapsed = now.since(self.began);
        let left = self.looks.len() - self.done;
        let each = elapsed.0.checked_div(self.done as u64);
        let running = self.running.iter().map(|&(look, since)| RunningCell {
            elapsed: now.since(since),
            ..self.looks[look].shown.clone()
        });
        LabProgress {
            total: self.looks.len(),
            done: self.done,
            cached: 0,
            failed: self.failed,
            waiting: 0,
            elapsed,
            left: each.map(|each| SpanNs(each.saturating_mul(left as u64))),
            running: running.collect(),
        }
    }
}
