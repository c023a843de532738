//! `wakescope lab run --scope`: the sections of the worst cells.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use wakescope_core::lab::{CellScope, Lab};
use wakescope_lab::cell::Again;
use wakescope_lab::farm::{Event, Standing};
use wakescope_lab::matrix::{Equipment, Phase};
use wakescope_lab::scope::{Detail, ScopeFailure, scope};
use wakescope_lab::store::Key;
use wakescope_lab::watch::{Step, Watch};
use wakescope_report::style::clean;

use super::showing::Showing;
use super::waiting::Waiting;
use crate::Failure;

/// Looks into the cell with the latest wakeup of each kernel and model, and puts into the record what was
/// seen, or why nothing was. Returns whether the user ended it.
pub(super) fn look(lab: &mut Lab, equipment: &Equipment) -> Result<bool, Failure> {
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
    mut waiting: Waiting,
) -> Result<Result<CellScope, ScopeFailure>, Failure> {
    let Equipment { cache, store, workshops, .. } = equipment;
    let emulators = workshops.values().map(|workshop| Arc::clone(&workshop.qemu)).collect();
    let limit = workshops.values().map(|workshop| workshop.limit).max().unwrap_or_default();
    let again = Again::new(cache, emulators, limit);
    let mut showing = Showing::new(Waiting::new()?);
    let mut running = |event: Event<'_>, standing: &Standing| {
        if showing.attend(Phase::Repeating, &event, standing) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    // Single sections are not kept.
    let detail = Detail { above_ns: u64::MAX, ..Detail::default() };
    let seen = scope(key, detail, store, &again, cache, &mut waiting, &mut running);
    // Each gives back the signals that it found blocked, the last one first.
    drop(showing);
    drop(waiting);
    Ok(seen.map(|seen| CellScope::of(&seen.scope)))
}
