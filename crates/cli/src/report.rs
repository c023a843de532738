//! `wakescope report`

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_report::style::clean;
use wakescope_report::{realfeel, text};

use crate::folder::RECORD;
use crate::{Failure, Outcome, output};

/// Show a run: as text, JSON, or the statistics block of realfeel
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope report runs/2026-11-21T01-35-07\n  wakescope report runs/2026-11-21T01-35-07 --format realfeel --thresholds 50us,100us,1ms"
)]
pub(crate) struct ReportArgs {
    /// The run: its folder, or the run.json in it
    run: PathBuf,

    /// What to show it as
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Thresholds for --format realfeel [default: those of 2002, 0.1 ms to 100 ms]
    #[arg(long, value_delimiter = ',', value_name = "TIME,…")]
    thresholds: Vec<SpanNs>,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// For people: verdict, table, findings, histogram
    Text,
    /// The run record
    Json,
    /// The block of Clark Williams' paper of 2002: statistics, shares below thresholds, five nines
    Realfeel,
}

/// Runs `wakescope report`.
pub(crate) fn run(args: &ReportArgs) -> Result<Outcome, Failure> {
    if !args.thresholds.is_empty() && !matches!(args.format, Format::Realfeel) {
        return Err(Failure::new("--thresholds means nothing to this format")
            .try_this("add --format realfeel, or leave it out"));
    }
    let run = read(&args.run)?;
    let style = if args.output.is_none() { output::style() } else { Default::default() };
    let shown = match args.format {
        Format::Text => text::report(&run, style),
        Format::Json => run.to_json() + "\n",
        Format::Realfeel if args.thresholds.is_empty() => {
            realfeel::block(&run, &realfeel::THRESHOLDS_NS.map(SpanNs))
        }
        Format::Realfeel => {
            let mut thresholds = args.thresholds.clone();
            thresholds.sort_unstable();
            realfeel::block(&run, &thresholds)
        }
    };
    match &args.output {
        Some(path) => write(path, &shown)?,
        None => output::print(&shown)?,
    }
    Ok(Outcome::Done)
}

/// The largest record that is read: that of 8,192 CPUs takes less.
const LARGEST: u64 = 2 << 30;

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

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", path.display()))
            .try_this("name a file that you may write: -o FILE")
    })
}
