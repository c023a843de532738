//! `wakescope lab run --scope`: the sections of the worst cells.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wakescope_core::lab::{CellScope, Lab};
use wakescope_lab::cell::Again;
use wakescope_lab::matrix::Equipment;
use wakescope_lab::scope::{Detail, ScopeFailure, Subject};
use wakescope_lab::store::Key;
use wakescope_lab::watch::{Step, Watch};
use wakescope_report::style::clean;

use super::scope::look;
use super::waiting::Waiting;
use crate::Failure;

/// Looks into the cell with the latest wakeup of each kernel and model, and puts into the record what was
/// seen, or why nothing was. Returns whether the user ended it.
pub(super) fn look_into_worst(lab: &mut Lab, equipment: &Equipment) -> Result<bool, Failure> {
    let places = lab.worst_cells();
    let count = places.len();
    let known: BTreeMap<String, Key> = equipment
        .store
        .keys()
        .map_err(|e| super::failure_of_store(&e))?
        .into_iter()
        .map(|key| (key.to_string(), key))
        .collect();
    for (number, place) in places.into_iter().enumerate() {
        let cell = &mut lab.cells[place];
        let mut waiting = Waiting::new()?;
        let name = format!("{} {} {} seed {}", cell.kernel, cell.asked, cell.load, cell.seed);
        let note = format!("looking into cell {} of {count}: {name}", number + 1);
        waiting.step(&Step::Note(&clean(&note, 200)));
        let folder = cell.run.as_deref().and_then(|run| Path::new(run).file_name());
        let key = folder.and_then(|name| known.get(name.to_str()?));
        let seen = match key {
            Some(key) => look_into(key, equipment, waiting)?,
            None => Err(ScopeFailure::Cell("there is no such cell".into())),
        };
        cell.scope = Some(match seen {
            Ok(seen) => seen,
            Err(ScopeFailure::Stopped) => return Ok(true),
            Err(e) => CellScope::failed(clean(&e.to_string(), 300)),
        });
    }
    Ok(false)
}

fn look_into(
    key: &Key,
    equipment: &Equipment,
    waiting: Waiting,
) -> Result<Result<CellScope, ScopeFailure>, Failure> {
    let Equipment { cache, store, workshops, .. } = equipment;
    let emulators = workshops.values().map(|workshop| Arc::clone(&workshop.qemu)).collect();
    let limit = workshops.values().map(|workshop| workshop.limit).max().unwrap_or_default();
    let again = Again::new(cache, emulators, limit);
    // Single sections are not kept.
    let detail = Detail { above_ns: u64::MAX, ..Detail::default() };
    let seen = match Subject::of(key, store, &again) {
        Ok(subject) => look(subject, detail, store, &again, cache, waiting)?,
        Err(e) => Err(e),
    };
    Ok(seen.map(|seen| CellScope::of(&seen.scope)))
}
