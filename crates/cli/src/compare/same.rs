//! Runs that are named twice.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use wakescope_report::style::clean;

use crate::runs::Observed;
use crate::{Failure, parallel};
use wakescope_store::RECORD;

/// Refuses runs of which two are one, by what their paths lead to.
pub(super) fn refuse_repetitions(runs: &[Observed]) -> Result<(), Failure> {
    let places = parallel::each(runs, |named| Ok(place(&named.path)))?;
    let mut seen: HashMap<PathBuf, &Observed> = HashMap::new();
    for (named, place) in runs.iter().zip(places) {
        if let Some(before) = seen.insert(place.clone(), named) {
            let [one, other] = [before, named].map(|n| n.path.display().to_string());
            return Err(repeated(&one, &other)
                .because(format!("both lead to {}", clean(&place.display().to_string(), 300))));
        }
    }
    Ok(())
}

/// A run that is given twice.
pub(super) fn repeated(one: &str, other: &str) -> Failure {
    let [one, other] = [one, other].map(|name| clean(name, 200));
    let what = match one == other {
        true => format!("cannot compare: {one} is given twice and would count as two runs"),
        false => {
            format!("cannot compare: {one} and {other} are the same run and would count as two")
        }
    };
    Failure::new(what).try_this("name each run once; a copy of a run is not a second run")
}

/// Where a run is, links followed: its folder, or its file, with what sets it apart there.
fn place(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let (file, name) = match text.rsplit_once('#') {
        Some((file, name)) if !path.exists() => (PathBuf::from(file), format!("#{name}")),
        _ => (path.to_owned(), String::new()),
    };
    let mut place = std::fs::canonicalize(&file).unwrap_or(file);
    if place.file_name().is_some_and(|name| name == RECORD) && place.is_file() {
        place.pop();
    }
    if name.is_empty() { place } else { format!("{}{name}", place.display()).into() }
}
