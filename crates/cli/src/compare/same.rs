//! Runs that are named twice.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wakescope_report::style::clean;

use crate::runs::Observed;
use crate::{Failure, parallel};
use wakescope_store::RECORD;

/// Refuses to do `what` with runs of which two are one, by what their paths lead to.
pub(crate) fn refuse_repetitions(what: &str, runs: &[Observed]) -> Result<(), Failure> {
    // To follow the links of all paths takes long; paths that lead to one run lead to one file.
    let files = parallel::each(runs, |named| Ok(file(&named.path)))?;
    let mut paths: HashMap<_, usize> = HashMap::new();
    files.iter().for_each(|file| *paths.entry(file).or_default() += 1);
    let mut seen: HashMap<PathBuf, &Observed> = HashMap::new();
    for (named, file) in runs.iter().zip(&files) {
        if file.is_some() && paths.get(file) == Some(&1) {
            continue;
        }
        let place = place(&named.path);
        if let Some(before) = seen.insert(place.clone(), named) {
            let [one, other] = [before, named].map(|n| n.path.display().to_string());
            return Err(repeated(what, &one, &other)
                .because(format!("both lead to {}", clean(&place.display().to_string(), 300))));
        }
    }
    Ok(())
}

/// A run that is given twice to do `what` with.
pub(crate) fn repeated(what: &str, one: &str, other: &str) -> Failure {
    let [one, other] = [one, other].map(|name| clean(name, 200));
    let why = match one == other {
        true => format!("{one} is given twice and would count as two runs"),
        false => format!("{one} and {other} are the same run and would count as two"),
    };
    Failure::new(format!("cannot {what}: {why}"))
        .try_this("name each run once; a copy of a run is not a second run")
}

/// The file that holds a run, by device and inode, which no other file has while it exists.
fn file(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path.join(RECORD)).or_else(|_| fs::metadata(path)).ok()?;
    Some((found.dev(), found.ino()))
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
