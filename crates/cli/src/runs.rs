//! The runs that a command is given: each a run's folder, or a file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use wakescope_core::run::Run;
use wakescope_report::style::clean;

use crate::Failure;
use crate::folder::RECORD;

/// The largest record that is read: that of 8,192 CPUs takes less.
const LARGEST: u64 = 2 << 30;

/// A run and what the user called it.
pub(crate) struct Named {
    /// A short name that no other of the runs beside it has, unless one is given twice.
    pub(crate) label: String,
    /// As it was given.
    pub(crate) path: PathBuf,
    pub(crate) run: Run,
}

/// Reads the runs that paths name, each with the shortest end of its path that sets it apart.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<Named>, Failure> {
    let labels = labels(paths);
    let named = |(path, label): (&PathBuf, String)| {
        Ok(Named { label, path: path.clone(), run: read(path)? })
    };
    paths.iter().zip(labels).map(named).collect()
}

/// Reads the run that a path names.
pub(crate) fn read(path: &Path) -> Result<Run, Failure> {
    let file = if path.is_dir() { path.join(RECORD) } else { path.into() };
    let mut text = Vec::new();
    regular(&file)
        .and_then(|opened| opened.take(LARGEST).read_to_end(&mut text))
        .map_err(|e| not_a_run(path, &file, &e))?;
    // The error may quote the record, which may be anybody's.
    Run::from_json(&text).map_err(|e| {
        Failure::new(format!("cannot use {}: {}", file.display(), clean(&e.to_string(), 300)))
    })
}

/// Opens a file that is nothing but that: one would wait for ever to read a pipe nobody writes to.
fn regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

fn not_a_run(path: &Path, file: &Path, e: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot read the run {}: {e}", file.display()));
    if path.is_dir() {
        failure.try_this(
            "name the folder of one run, with a run.json in it; they lie below runs/ by default",
        )
    } else {
        failure.try_this("name a run's folder, as printed at the end of `wakescope measure`")
    }
}

/// For each path as many of its last parts as set it apart from the others.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths.iter().map(|path| parts(path)).collect();
    let label = |own: &Vec<String>| {
        let end = |of: &Vec<String>, count: usize| of[of.len().saturating_sub(count)..].join("/");
        let alone = |count: &usize| {
            let same = |other: &&Vec<String>| end(other, *count) == end(own, *count);
            parts.iter().filter(same).count() == 1
        };
        let count = (1..=own.len()).find(alone).unwrap_or(own.len());
        clean(&end(own, count), 120)
    };
    parts.iter().map(label).collect()
}

/// The parts of a path that tell which run it is: not the record's name, which is always the same.
fn parts(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        path.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| last == RECORD) {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], want: &[&str]) {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        assert_eq!(labels(&paths), want, "{paths:?}");
    }

    #[test]
    fn labels_are_as_short_as_they_can_be() {
        check(&["runs/a"], &["a"]);
        check(&["runs/a/run.json"], &["a"]);
        check(&["old/1", "old/2", "new/1"], &["old/1", "2", "new/1"]);
        check(&["x", "x"], &["x", "x"]);
        check(&["run.json", "a/run.json"], &["run.json", "a"]);
        check(&[], &[]);
    }
}
