//! The record of a lab, whose cells are runs.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use wakescope_core::lab::{Cell, Lab, LabError, SCHEMA, Status};
use wakescope_core::redact::{redact, redact_lab};
use wakescope_core::run::Run;
use wakescope_lab::cache::Cache;
use wakescope_lab::plan::Plan;
use wakescope_report::lab::model;
use wakescope_report::run_set::{Entry, MOST_CURVES, RunSet, merged};
use wakescope_report::style::clean;
use wakescope_store::RECORD;

use crate::input::{not_a_run, read_whole, regular};
use crate::{Failure, output, runs};

/// The largest record that is read.
const LARGEST: u64 = 256 << 20;

/// A lab, and where it lies.
pub(super) struct Found {
    pub(super) lab: Lab,
    path: PathBuf,
    /// Where the run of each cell is, as the record says.
    runs: Vec<Option<String>>,
    /// Whether the record and the runs are to be such as can be published.
    redacts: bool,
}

/// Reads the lab that the only path names; `None` if that is something else.
pub(super) fn read(paths: &[PathBuf]) -> Result<Option<Found>, Failure> {
    let Some((path, text)) = paths.iter().find_map(|path| Some((path, text_of_lab(path)?))) else {
        return Ok(None);
    };
    if paths.len() > 1 {
        return Err(Failure::new(format!(
            "{} is a lab, which can only be shown alone",
            path.display()
        ))
        .try_this("name only the lab, or only runs of its cells"));
    }
    let lab = Lab::from_json(&text).map_err(|e| {
        let message = clean(&e.to_string(), 300);
        let failure = Failure::new(format!("cannot use {}: {message}", path.display()));
        match e {
            LabError::Exceeded(_) => failure
                .because("its table has a row per kernel and load, and a column per model")
                .try_this("run the lab in parts, with fewer kernels, loads or models in each"),
            _ => failure,
        }
    })?;
    let runs = lab.cells.iter().map(|cell| cell.run.clone()).collect();
    Ok(Some(Found { lab, path: path.clone(), runs, redacts: false }))
}

/// The text of a file that calls itself the record of a lab. Whatever is wrong with others is told by
/// who reads them as runs.
fn text_of_lab(path: &Path) -> Option<Vec<u8>> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let mut file = regular(path).ok()?;
    let mut first = [0];
    file.read_exact(&mut first).ok().filter(|()| first == *b"{")?;
    let mut text = first.to_vec();
    text.append(&mut read_whole(file, LARGEST).ok()?);
    let head: Head = serde_json::from_slice(&text).ok()?;
    // Of any version: Lab says which it reads.
    head.schema.starts_with(SCHEMA.trim_end_matches(char::is_numeric)).then_some(text)
}

/// Cells that differ by their seed only.
#[derive(PartialEq)]
struct Kind<'a> {
    kernel: &'a str,
    asked: &'a str,
    load: &'a str,
}

impl Found {
    /// The same, such as can be published.
    pub(super) fn redacted(mut self) -> Self {
        redact_lab(&mut self.lab, &Plan::shipped_published());
        self.redacts = true;
        self
    }

    /// Whether its kernels, models and loads can have a curve each: nobody tells more of them apart.
    pub(super) fn has_room_for_curves(&self) -> bool {
        let measured = self.lab.cells.iter().filter(|cell| cell.status == Status::Ok);
        let kinds: BTreeSet<_> = measured.map(|c| (&c.kernel, &c.asked, &c.load)).collect();
        kinds.len() <= MOST_CURVES
    }

    /// The runs of the cells, those of a kernel, model and load as one. What cannot be read is told
    /// and left out.
    pub(super) fn run_set(&self) -> Result<RunSet<'static>, Failure> {
        let mut kinds: Vec<(Kind<'_>, Vec<Run>)> = Vec::new();
        let mut missing = 0_usize;
        let mut first_failure = None;
        let cells = self.lab.cells.iter().zip(&self.runs);
        for (cell, run) in cells.filter(|(cell, _)| cell.status == Status::Ok) {
            let Some(run) = run else { continue };
            match self.place(run).and_then(|place| runs::read(&place)) {
                Ok(mut run) => {
                    if self.redacts {
                        redact(&mut run);
                    }
                    add(&mut kinds, cell, run);
                }
                Err(failure) => {
                    missing += 1;
                    first_failure.get_or_insert(failure);
                }
            }
        }
        if let Some(failure) = first_failure {
            if kinds.is_empty() {
                return Err(failure);
            }
            output::tell(&format!("wakescope: {missing} of the lab's runs are omitted: {failure}"));
        }
        let entries = kinds.iter().filter_map(|(kind, runs)| {
            let run = merged(&runs.iter().collect::<Vec<_>>())?;
            Some(Entry { label: label(kind, &kinds), run: Cow::Owned(run), runs: runs.len() })
        });
        Ok(RunSet::of(entries.collect()))
    }

    /// The run that a cell names: among this user's own cells, or beside the lab's record. A record
    /// may be anybody's, and must not choose what else is read.
    fn place(&self, run: &str) -> Result<PathBuf, Failure> {
        let beside = self.path.parent().unwrap_or(Path::new("")).join(run);
        let named = if beside.exists() { beside } else { PathBuf::from(run) };
        // The record of a run, too, may be a link.
        let file = if named.is_dir() { named.join(RECORD) } else { named.clone() };
        let found = file.canonicalize().map_err(|e| not_a_run(&named, &file, &e))?;
        if self.allowed_folders().iter().any(|home| found.starts_with(home)) {
            return Ok(found);
        }
        Err(Failure::new(format!("cannot read the lab's run {}", named.display()))
            .because("it is neither beside the lab's record nor in this user's cache")
            .try_this("copy it beside the record, or show it alone: wakescope report FOLDER"))
    }

    /// Where runs of this lab may lie, without links.
    fn allowed_folders(&self) -> Vec<PathBuf> {
        let own = self.path.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned()));
        let cells = Cache::locate().ok().and_then(|cache| cache.cells().canonicalize().ok());
        own.into_iter().chain(cells).collect()
    }
}

fn add<'a>(kinds: &mut Vec<(Kind<'a>, Vec<Run>)>, cell: &'a Cell, run: Run) {
    let kind = Kind { kernel: &cell.kernel, asked: &cell.asked, load: &cell.load };
    match kinds.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, runs)) => runs.push(run),
        None => kinds.push((kind, vec![run])),
    }
}

/// What sets a kind apart from the others: `6.1-cloud none find`, or only `none`.
fn label(kind: &Kind<'_>, all: &[(Kind<'_>, Vec<Run>)]) -> String {
    let parts: [fn(&Kind<'_>) -> String; 3] =
        [|k| k.kernel.into(), |k| model(k.asked), |k| k.load.into()];
    let differs = |part: &fn(&Kind<'_>) -> String| all.iter().any(|(k, _)| part(k) != part(kind));
    let shown: Vec<String> = parts.iter().filter(|p| differs(p)).map(|part| part(kind)).collect();
    if shown.is_empty() { parts.map(|part| part(kind)).join(" ") } else { shown.join(" ") }
}
