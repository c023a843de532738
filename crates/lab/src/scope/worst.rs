//! Looks into the cells with the latest wakeups, some at a time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use wakescope_core::lab::{Cell, CellScope, Lab};
use wakescope_report::style::clean;
use wakescope_sys::clock;

use super::{Detail, ScopeFailure, Subject, scope};
use crate::cell::Again;
use crate::farm::queue::Queue;
use crate::farm::{Event, FarmError, Standing};
use crate::matrix::{Equipment, LabError, Phase, Watcher};
use crate::store::{Key, Label};
use crate::watch::{Step, Watch};

/// How often the watcher is asked, at least, whether to go on.
const TICK: Duration = Duration::from_millis(100);

/// Looks into the cell with the latest wakeup of each kernel and model, as many at a time as guests are run, and
/// puts into the record what was seen, or why nothing was. Returns whether the watcher ended it.
///
/// # Errors
/// If the store's cells cannot be listed, or no thread can be started.
pub fn look_into_worst(
    lab: &mut Lab,
    equipment: &Equipment,
    watch: &mut Watcher<'_>,
) -> Result<bool, LabError> {
    let keys = equipment.store.keys().map_err(LabError::Store)?;
    let known: BTreeMap<String, Key> = keys.into_iter().map(|key| (key.to_string(), key)).collect();
    let places = lab.worst_cells();
    let labels: Vec<Label> = places.iter().map(|&place| label(&lab.cells[place])).collect();
    let keys: Vec<Option<&Key>> =
        places.iter().map(|&place| known.get(folder(&lab.cells[place])?)).collect();
    let look = |number: usize, ended: &AtomicBool| match keys[number] {
        Some(key) => look_into(key, equipment, ended),
        None => Err(ScopeFailure::Cell("there is no such cell".into())),
    };
    let seen = side_by_side(&labels, equipment.parallel, &look, watch)?;
    let stopped = seen.iter().any(Option::is_none);
    for (place, seen) in places.into_iter().zip(seen) {
        let failed = |e: ScopeFailure| CellScope::failed(clean(&e.to_string(), 300));
        lab.cells[place].scope = seen.map(|seen| seen.unwrap_or_else(failed));
    }
    Ok(stopped)
}

fn label(cell: &Cell) -> Label {
    Label {
        kernel: cell.kernel.clone(),
        kernel_file: None,
        model: cell.asked.to_string(),
        load: cell.load.clone(),
        seed: Some(cell.seed),
    }
}

/// The name of the folder that the cell lies in, which is its key.
fn folder(cell: &Cell) -> Option<&str> {
    Path::new(cell.run.as_deref()?).file_name()?.to_str()
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

/// What one look gives.
type Look = Result<CellScope, ScopeFailure>;

/// Does a look for each of `labels`, by its place, `parallel` of them at a time. `look` ends soon after
/// its flag is set. What was ended by the watcher, or not begun, is `None`.
fn side_by_side(
    labels: &[Label],
    parallel: usize,
    look: &(dyn Fn(usize, &AtomicBool) -> Look + Sync),
    watch: &mut Watcher<'_>,
) -> Result<Vec<Option<Look>>, LabError> {
    let workers = parallel.clamp(1, labels.len().max(1));
    let mut standing = Standing::of(labels.iter().cloned(), workers);
    let mut looks: Vec<Option<Look>> = labels.iter().map(|_| None).collect();
    let (queue, ended) = (&Queue::new(labels.len()), &AtomicBool::new(false));
    let (sender, messages) = mpsc::channel();
    thread::scope(|scope| {
        // However this ends, the workers are not left to go on.
        let _switch = Switch(ended);
        for _ in 0..workers {
            let sender = sender.clone();
            let thread = thread::Builder::new().name("look".into());
            let started = thread.spawn_scoped(scope, move || work(queue, ended, look, &sender));
            started.map_err(|e| LabError::Farm(FarmError::Thread(e)))?;
        }
        // When the last worker ends, there will be no further message.
        drop(sender);
        loop {
            match messages.recv_timeout(TICK) {
                Ok(Message::Begins(number)) => standing.started(number, clock::now()),
                Ok(Message::Ends(_, Err(ScopeFailure::Stopped))) => {}
                Ok(Message::Ends(number, seen)) => {
                    standing.looked_into(number, seen.is_err(), clock::now());
                    looks[number] = Some(seen);
                }
                Err(RecvTimeoutError::Timeout) => standing.update(clock::now()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if watch(Phase::Looking, Event::Tick, &standing).is_break() {
                ended.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    Ok(looks)
}

/// What a thread tells of the looks that it takes; each is named by its place among all.
enum Message {
    Begins(usize),
    Ends(usize, Look),
}

/// Does one look after the other, until there are no more or the watcher ends it.
fn work(
    queue: &Queue,
    ended: &AtomicBool,
    look: &dyn Fn(usize, &AtomicBool) -> Look,
    sender: &Sender<Message>,
) {
    while !ended.load(Ordering::Relaxed) {
        let Some(number) = queue.next() else { return };
        // Nobody listens any more only if the lab ends for another reason.
        let _ = sender.send(Message::Begins(number));
        let _ = sender.send(Message::Ends(number, look(number, ended)));
    }
}

/// Ends all looks when it goes.
struct Switch<'a>(&'a AtomicBool);

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(count: usize) -> Vec<Label> {
        (0..count).map(|_| Label { load: "idle".into(), ..Label::default() }).collect()
    }

    fn seen(number: usize) -> Look {
        match number {
            2 => Err(ScopeFailure::Check),
            number => Ok(CellScope::failed(number.to_string())),
        }
    }

    #[test]
    fn each_look_is_done_once_and_those_that_failed_are_counted() {
        let mut last = None;
        let mut watch = |phase, _: Event<'_>, standing: &Standing| {
            assert_eq!(phase, Phase::Looking);
            assert!(standing.running.len() <= 2);
            last = Some((standing.total, standing.done, standing.failed));
            ControlFlow::Continue(())
        };
        let looks = side_by_side(&labels(5), 2, &|number, _| seen(number), &mut watch).unwrap();
        for (number, look) in looks.iter().enumerate() {
            match (look, seen(number)) {
                (Some(Ok(look)), Ok(wanted)) => assert_eq!(*look, wanted),
                (Some(Err(look)), Err(wanted)) => assert_eq!(look.to_string(), wanted.to_string()),
                (look, _) => panic!("{number}: {look:?}"),
            }
        }
        assert_eq!(last, Some((5, 5, 1)));
    }

    #[test]
    fn what_is_done_when_the_watcher_ends_it_is_kept() {
        let wait = |number: usize, ended: &AtomicBool| {
            while number > 0 && !ended.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            if number == 0 { seen(0) } else { Err(ScopeFailure::Stopped) }
        };
        let mut watch = |_, _: Event<'_>, standing: &Standing| match standing.done {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let looks = side_by_side(&labels(4), 1, &wait, &mut watch).unwrap();
        assert!(matches!(looks[..], [Some(Ok(_)), None, None, None]), "{looks:?}");
    }

    #[test]
    fn nothing_to_look_into_is_no_fault() {
        let mut watch = |_, _: Event<'_>, _: &Standing| ControlFlow::Continue(());
        assert!(side_by_side(&[], 2, &|_, _| panic!(), &mut watch).unwrap().is_empty());
    }
}
