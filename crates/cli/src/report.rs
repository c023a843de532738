//! `wakescope report`

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use wakescope_core::units::SpanNs;
use wakescope_report::{realfeel, text};

use crate::{Failure, Outcome, output, runs};

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
    let run = runs::read(&args.run)?;
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

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", path.display()))
            .try_this("name a file that you may write: -o FILE")
    })
}
