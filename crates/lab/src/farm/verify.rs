//! Runs cells of the cache once more, and says where a bit differs.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use serde_json::Value;
use wakescope_core::run::Run;

use super::difference::{self, Difference};
use super::{Continue, End, Event, Job, Outcome, Runner, Standing, run};
use crate::cell::with_head;
use crate::guest::{EPISODES, RUN};
use crate::store::{
    CONSOLE, CellStore, Ending, Failed, Key, Label, Lookup, StoreError, StoredCell,
};

/// The largest file that is looked into for where it differs, in bytes.
const LARGEST: u64 = 64 << 20;

/// How a cell stands to its repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// Every file that a cell keeps has the same bits.
    Same,
    /// The cell failed, and failed again with the same kind of failure. Nothing else is compared.
    FailedAgain,
    /// Not the same.
    Differs(Difference),
    /// The stored cell does not match its checksum, for this reason.
    Damaged(String),
    /// It cannot be run again, for this reason: its kernel was removed, or the host does not let
    /// it.
    CannotRun(String),
    /// Its bits need not repeat, for this reason, so it is not run again.
    NotPromised(String),
    /// The farm ended before.
    NotRun,
}

/// A cell and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The cell.
    pub key: Key,
    /// What it was called when it was run; empty if that is not known.
    pub label: Label,
    /// How it stands to its repetition.
    pub repeated: Repeated,
}

/// What a verification found.
#[derive(Debug)]
pub struct Verification {
    /// One for each key that was given, in the order in which they were first given.
    pub cells: Vec<Verified>,
    /// Whether that is all.
    pub end: End,
}

/// Runs the cells `keys` of `store` once more, beside it, and compares the files whose bits must
/// repeat. The store stays as it is. A key that is given more than once is run once.
///
/// `prepare` says how a cell is run, or why it is not. `watch` is called as by [`run`], with
/// places in `keys`.
pub fn verify<W: Sync>(
    keys: &[Key],
    parallel: usize,
    store: &CellStore,
    prepare: &dyn Fn(&StoredCell) -> Result<Job<W>, Repeated>,
    runner: &dyn Runner<W>,
    watch: &mut dyn FnMut(Event<'_>, &Standing) -> Continue,
) -> Result<Verification, StoreError> {
    let scratch = store.scratch()?;
    let repetitions = CellStore::open(scratch.path())?;
    let mut cells: Vec<Verified> = Vec::new();
    let (mut jobs, mut places, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for (place, key) in keys.iter().enumerate().filter(|(_, key)| seen.insert(*key)) {
        let (label, ready) = ready(key, store, prepare);
        let repeated = match ready {
            Ok((cell, job)) => {
                waiting.push((cells.len(), cell));
                jobs.push(job);
                places.push(place);
                Repeated::NotRun
            }
            Err(repeated) => repeated,
        };
        cells.push(Verified { key: key.clone(), label, repeated });
    }
    let harvest = run(&jobs, parallel, &repetitions, runner, &mut |event, standing| {
        if let Event::Finished { job, outcome } = event {
            let (place, stored) = &waiting[job];
            cells[*place].repeated = judge(stored, outcome);
        }
        watch(event.at(&places), standing)
    });
    Ok(Verification { cells, end: harvest.end })
}

/// The stored cell and how to run it again, or why not.
fn ready<W>(
    key: &Key,
    store: &CellStore,
    prepare: &dyn Fn(&StoredCell) -> Result<Job<W>, Repeated>,
) -> (Label, Result<(StoredCell, Job<W>), Repeated>) {
    let cell = match store.lookup(key) {
        Lookup::Stored(cell) => *cell,
        Lookup::Damaged(why) => return (Label::default(), Err(Repeated::Damaged(why))),
        Lookup::Absent => {
            let why = "there is no such cell in the cache".into();
            return (Label::default(), Err(Repeated::CannotRun(why)));
        }
    };
    let label = cell.meta.label.clone();
    let ready = match prepare(&cell) {
        Err(repeated) => Err(repeated),
        Ok(job) if job.recipe != cell.recipe => {
            let why = "its guest image, emulator or kernel has changed";
            Err(Repeated::CannotRun(why.into()))
        }
        Ok(job) => Ok((cell, job)),
    };
    (label, ready)
}

/// How `stored` stands to its repetition, which is removed: thousands of them would need room.
fn judge(stored: &StoredCell, outcome: &Outcome) -> Repeated {
    match outcome {
        // Nothing was run that could be compared.
        Outcome::Kept { cached: true, .. } => Repeated::NotRun,
        Outcome::Kept { cell, cached: false } => {
            let difference = compare(stored, cell);
            // What stays goes with the whole folder.
            let _ = fs::remove_dir_all(&cell.folder);
            match difference {
                Ok(None) if cell.ending.failed().is_some() => Repeated::FailedAgain,
                Ok(None) => Repeated::Same,
                Ok(Some(difference)) => Repeated::Differs(difference),
                Err(e) => Repeated::CannotRun(format!("its result cannot be read: {e}")),
            }
        }
        Outcome::Failed(failed) => Repeated::CannotRun(failed.reason.clone()),
        Outcome::NotRun => Repeated::NotRun,
    }
}

fn compare(stored: &StoredCell, repeated: &StoredCell) -> io::Result<Option<Difference>> {
    match (&stored.ending, &repeated.ending) {
        (Ending::Measured, Ending::Measured) => compare_files(stored, repeated),
        // How much a guest wrote before it was taken away depends on the host.
        (Ending::Failed(a), Ending::Failed(b)) if a.kind == b.kind => Ok(None),
        (a, b) => Ok(Some(Difference::of_endings(&in_words(a), &in_words(b)))),
    }
}

fn in_words(ending: &Ending) -> String {
    let why = |failed: &Failed| format!("{}: {}", failed.kind, failed.reason);
    ending.failed().map_or_else(|| "with a result".into(), why)
}

fn compare_files(stored: &StoredCell, repeated: &StoredCell) -> io::Result<Option<Difference>> {
    let mut names: Vec<&str> = stored.results().chain(repeated.results()).collect();
    // The run says most, and a record more than a log.
    names.sort_unstable_by_key(|name| (*name != RUN, !name.ends_with(".json"), *name));
    for name in names {
        match (stored.sum(name), repeated.sum(name)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), Some(_)) => {
                let a = as_written_today(name, stored.read(name, LARGEST)?);
                let b = repeated.read(name, LARGEST)?;
                if let Some(difference) = difference::between(name, &a, &b) {
                    return Ok(Some(difference));
                }
            }
            (a, b) => {
                return Ok(Some(Difference::of_presence(name, a.is_some(), b.is_some())));
            }
        }
    }
    // Of a failed cell it need not repeat, so it has no checksum.
    let console = |cell: &StoredCell| cell.read(CONSOLE, LARGEST);
    Ok(difference::between(CONSOLE, &console(stored)?, &console(repeated)?))
}

/// Records of a guest are written anew by the version of wakescope that stores them. One before may have lacked
/// keys that this one writes empty; no guest did anything else for that. Where it lacks none, each byte counts.
fn as_written_today(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    let written = match name {
        RUN => Run::from_json(&bytes).ok().map(|run| run.to_json().into_bytes()),
        EPISODES => with_head(&bytes, |_| ()),
        _ => None,
    };
    written.filter(|written| first_value(written) != first_value(&bytes)).unwrap_or(bytes)
}

fn first_value(text: &[u8]) -> Option<Value> {
    serde_json::Deserializer::from_slice(text).into_iter().next()?.ok()
}
