//! `wakescope import`: results of other programs, made into runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use wakescope_core::finding::Severity;
use wakescope_core::redact::redact;
use wakescope_core::run::Run;
use wakescope_core::units::{SpanNs, counted};
use wakescope_formats::import::{
    About, Format, HEAD_BYTES, Head, ImportError, Imported, Unit, detect, unit_of_results,
};
use wakescope_report::style::clean;

use crate::folder::{RunFolder, RunsFolder};
use crate::foreign_json::why_no_run;
use crate::input::{not_a_run, read_whole, regular};
use crate::measure::time_now;
use crate::unit::UnitArgs;
use crate::{Failure, Outcome, output};

/// What jitterdebugger writes into a folder, the exact one first.
pub(crate) const JITTERDEBUGGER: [&str; 2] = ["results.json", "samples.raw"];

/// The largest record of a run that is looked at.
const LARGEST_RECORD: u64 = 256 << 20;

/// How much of a file is read at once.
const BLOCK: usize = 1 << 20;

/// Convert results of cyclictest, rtla, jitterdebugger and other programs into runs
#[derive(clap::Args)]
#[command(
    after_help = "docs/import.md lists what each format contains and lacks. A file that would need guessing is refused.\n\
                  `wakescope report` and `compare` read such files directly. Name one of several runs in a file as FILE#NAME.\n\n\
                  Examples:\n  wakescope import cyclictest.txt\n  wakescope import results/*.json --out imported\n  wakescope import hiccup.hlog --unit ns"
)]
pub(crate) struct ImportArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Format of the files, where it cannot be detected
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    from: Option<Format>,

    #[command(flatten)]
    units: UnitArgs,

    /// Leave names of tasks, programs, files and cgroups out of the runs, so that they can be published;
    /// see docs/privacy.md
    #[arg(long)]
    redact: bool,

    /// The run's folder; for several runs, the parent of their folders [default: under runs/]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    // Always refused, with the reason.
    let is_hidden = |format| format == Format::SchbenchJson;
    let values = Format::ALL.map(|(word, format)| PossibleValue::new(word).hide(is_hidden(format)));
    PossibleValuesParser::new(values).map(|word| {
        let found = Format::ALL.iter().find(|(known, _)| *known == word);
        // The parser lets none but these through.
        found.map_or(Format::CyclictestText, |(_, format)| *format)
    })
}

/// Runs `wakescope import`.
pub(crate) fn run(args: &ImportArgs) -> Result<Outcome, Failure> {
    // All are read before any is written: a file that cannot be read leaves nothing behind.
    let mut runs: Vec<(String, Run)> = Vec::new();
    for file in &args.files {
        let file = &file_of(file)?;
        let stem = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        for Imported { name, mut run } in of_file(args, file)? {
            if args.redact {
                redact(&mut run);
            }
            runs.push((if name.is_empty() { stem.clone() } else { format!("{stem}-{name}") }, run));
        }
    }
    let several = runs.len() > 1;
    let folders = folder_names(runs.iter().map(|(name, _)| name.as_str()));
    if several && args.out.is_some() {
        RunsFolder::check(args.out.as_deref(), &time_now(), folders.iter().map(PathBuf::from))?;
    }
    for ((_, run), folder) in runs.iter().zip(folders) {
        let out = args.out.as_ref().map(|dir| if several { dir.join(folder) } else { dir.clone() });
        let record = run.to_json();
        let folder = RunFolder::create(out.as_deref(), &time_now(), None, record.as_bytes())?;
        let path = folder.finish(record.as_bytes())?;
        output::print(&imported_text(run, &path))?;
    }
    Ok(Outcome::Done)
}

/// The file to import: of a folder that jitterdebugger wrote, the results in it.
fn file_of(path: &Path) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.into());
    }
    JITTERDEBUGGER.iter().map(|name| path.join(name)).find(|file| file.is_file()).ok_or_else(|| {
        Failure::new(format!("cannot import {}: it is a folder", path.display()))
            .because(format!(
                "the only folders that can be imported are jitterdebugger's, with {}",
                JITTERDEBUGGER.join(" or ")
            ))
            .try_this("name the result files in it")
    })
}

/// For each of these names one for a folder, each different from all others: of those that are alike, all but
/// the first have a number.
fn folder_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let keep = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let safe = |text: &str| -> String {
        text.chars().take(100).map(keep).collect::<String>().trim_start_matches('.').to_owned()
    };
    let mut given = BTreeSet::new();
    let name = |(number, name): (usize, &str)| {
        let own = safe(name);
        let numbered = (number..).map(|number| format!("{own}-{number}"));
        let candidates =
            Some(own.clone()).filter(|own| !own.is_empty()).into_iter().chain(numbered);
        let mut free = candidates.filter(|name| given.insert(name.clone()));
        free.next().unwrap_or_default()
    };
    (1..).zip(names).map(name).collect()
}

fn of_file(args: &ImportArgs, path: &Path) -> Result<Vec<Imported>, Failure> {
    let mut opened = regular(path).map_err(|e| {
        Failure::new(format!("cannot read {}: {e}", path.display()))
            .try_this("name a result file of another program")
    })?;
    let head = seen(&mut opened, path)?;
    let format = match (args.from, &head.0) {
        // What is packed is no better for being called something.
        (Some(format), Head::Known(_) | Head::Unknown) if !head.1.is_empty() => Some(format),
        _ => known(&head, path)?,
    };
    let format = match format {
        Some(format) => format,
        None => return Err(no_result(&mut opened, path)),
    };
    let about = about(format, path, args.units.unit())?;
    read(format, &opened, path, &about)
}

/// Why JSON that no known program wrote is not imported.
fn no_result(file: &mut File, path: &Path) -> Failure {
    why_no_run(file, path).unwrap_or_else(|| {
        let text = read_whole(file, LARGEST_RECORD).map_err(|e| e.to_string());
        match text.and_then(|text| Run::from_json(&text).map_err(|e| e.to_string())) {
            Ok(_) => Failure::new(format!("{} is already a run", path.display()))
                .try_this(format!("show it: {}", output::command("report", path))),
            Err(e) => Failure::new(format!(
                "cannot import {}: it is JSON, but not the output of a supported program",
                path.display()
            ))
            .because(clean(&e, 300))
            .try_this("name the complete file that the program wrote"),
        }
    })
}

/// What an opened file is; `None` if it may be a run's record. It is read from its begin again.
pub(crate) fn format_of(file: &mut File, path: &Path) -> Result<Option<Format>, Failure> {
    known(&seen(file, path)?, path)
}

/// What a file seems to be, and how it begins.
type Seen = (Head, Vec<u8>);

fn seen(file: &mut File, path: &Path) -> Result<Seen, Failure> {
    let mut head = Vec::new();
    let read = file.take(HEAD_BYTES as u64).read_to_end(&mut head).and_then(|_| file.rewind());
    read.map_err(|e| not_a_run(path, path, &e))?;
    Ok((detect(&head), head))
}

fn known((what, head): &Seen, path: &Path) -> Result<Option<Format>, Failure> {
    match what {
        Head::Known(format) => Ok(Some(*format)),
        Head::Refused(what, remedy) => {
            let remedy = remedy.replace("FILE", &path.display().to_string());
            let why = (*what).to_owned();
            Err(refused(path, &ImportError { why, remedy, ..Default::default() }))
        }
        Head::Unknown if head.is_empty() => {
            let why = "it is empty (0 bytes)".into();
            Err(refused(path, &ImportError { why, ..Default::default() }))
        }
        Head::Unknown if head.trim_ascii_start().starts_with(b"{") => Ok(None),
        Head::Unknown => Err(Failure::new(format!(
            "cannot read {}: it is neither a run record nor the output of a supported program",
            path.display()
        ))
        .try_this("name a run folder, as printed at the end of `wakescope measure`")
        .try_this(
            "name a file in one of the formats in docs/import.md, and its format: wakescope \
             import FILE --from FORMAT",
        )),
    }
}

/// What is known of a file beside what is in it: its unit, as the user says or a file beside it.
pub(crate) fn about(format: Format, path: &Path, unit: Option<Unit>) -> Result<About, Failure> {
    let file = path.display().to_string();
    let beside = path.with_file_name("results.json");
    let stated = match regular(&beside) {
        Ok(opened) if format == Format::JitterdebuggerRaw => {
            unit_of_results(&mut BufReader::with_capacity(BLOCK, opened))
        }
        _ => None,
    };
    match (unit, stated) {
        (Some(asked), Some(stated)) if asked != stated => Err(Failure::new(format!(
            "cannot import {file}: --unit says {asked}, but {} states {stated}",
            beside.display()
        ))
        .try_this("omit --unit")),
        _ => Ok(About { file, unit: stated.or(unit), ..About::default() }),
    }
}

/// Reads all runs of an opened file.
pub(crate) fn read(
    format: Format,
    file: &File,
    path: &Path,
    about: &About,
) -> Result<Vec<Imported>, Failure> {
    let mut from = BufReader::with_capacity(BLOCK, file);
    wakescope_formats::import::read(format, &mut from, about).map_err(|e| refused(path, &e))
}

/// Why a file cannot be read, with the place.
fn refused(path: &Path, e: &ImportError) -> Failure {
    let failure =
        Failure::new(format!("cannot import {}: {}", path.display(), clean(&e.to_string(), 400)));
    if e.remedy.is_empty() { failure } else { failure.try_this(clean(&e.remedy, 400)) }
}

/// A line about a run, and below it what is unknown.
fn imported_text(run: &Run, path: &Path) -> String {
    let source = run.source.clone().unwrap_or_default();
    let max = run.summary.max_ns.map_or_else(|| "–".into(), |ns| SpanNs(ns).to_string());
    let mut out = format!(
        "{}: {}, {}: {}, max {max}; {}\n",
        path.display(),
        clean(&source.tool, 40),
        source.quantity,
        counted(run.summary.count, "sample"),
        run.validity.verdict
    );
    for finding in run.validity.findings.iter().filter(|f| f.severity > Severity::Note) {
        out.push_str(&format!("  {}: {}\n", finding.code, clean(&finding.message, 400)));
    }
    if !source.unknown.is_empty() {
        out.push_str(&format!("  unknown: {}\n", clean(&source.unknown.join(", "), 600)));
    }
    for what in &source.approximate {
        out.push_str(&format!("  approximate: {}\n", clean(what, 200)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_names_of_their_own() {
        for (names, want) in [
            (&["a", "b"][..], &["a", "b"][..]),
            (&["a", "a", "a"], &["a", "a-2", "a-3"]),
            // What the second is called without its own name is the name of the third.
            (&["a", "a", "a-2"], &["a", "a-2", "a-2-3"]),
            (&["a-2", "a", "a"], &["a-2", "a", "a-3"]),
            (&["a-3", "a", "a"], &["a-3", "a", "a-4"]),
            (&["a/b", "a b", "..", ""], &["a_b", "a_b-2", "-3", "-4"]),
        ] {
            assert_eq!(folder_names(names.iter().copied()), want, "{names:?}");
        }
    }
}
