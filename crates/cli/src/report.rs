//! `wakescope report`

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wakescope_core::units::SpanNs;
use wakescope_report::{realfeel, text};

use crate::{Failure, Outcome, output, runs};

mod export;

/// Show a run: as text, JSON, the statistics block of realfeel, or in the formats of other programs
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope report runs/2026-11-21T01-35-07\n  wakescope report runs/2026-11-21T01-35-07 --format realfeel --thresholds 50us,100us,1ms\n  wakescope report runs/2026-11-21T01-35-07 --format cyclictest --rows 400 -o histogram.txt"
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

    #[command(flatten)]
    export: export::ExportArgs,

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
    /// The histogram that cyclictest prints, in whole µs
    Cyclictest,
    /// The file that cyclictest writes with --json
    CyclictestJson,
    /// The histograms as comma-separated values; nothing is lost of them
    Csv,
    /// HdrHistogram's interval log, compressed, one tag per CPU
    Hlog,
    /// HdrHistogram's percentile distribution, of all CPUs together
    Hgrm,
    /// A classic histogram for Prometheus
    Prometheus,
    /// The same as OpenMetrics
    Openmetrics,
    /// Every sample as a JSON object on a line of its own, of runs measured with --save-samples
    Jsonl,
    /// The latest wakeups as a trace for Perfetto (ui.perfetto.dev) or about:tracing
    Trace,
}

impl Format {
    /// Those of other programs.
    fn exported(self) -> Option<export::Format> {
        Some(match self {
            Self::Text | Self::Json | Self::Realfeel => return None,
            Self::Cyclictest => export::Format::Cyclictest,
            Self::CyclictestJson => export::Format::CyclictestJson,
            Self::Csv => export::Format::Csv,
            Self::Hlog => export::Format::Hlog,
            Self::Hgrm => export::Format::Hgrm,
            Self::Prometheus => export::Format::Prometheus,
            Self::Openmetrics => export::Format::OpenMetrics,
            Self::Jsonl => export::Format::Jsonl,
            Self::Trace => export::Format::Trace,
        })
    }
}

/// Runs `wakescope report`.
pub(crate) fn run(args: &ReportArgs) -> Result<Outcome, Failure> {
    if !args.thresholds.is_empty() && !matches!(args.format, Format::Realfeel) {
        return Err(Failure::new("--thresholds means nothing to this format")
            .try_this("add --format realfeel, or leave it out"));
    }
    args.export.check(args.format.exported())?;
    let run = runs::read(&args.run)?;
    if let Some(format) = args.format.exported() {
        export::write(&run, &args.run, format, &args.export, args.output.as_deref())?;
        return Ok(Outcome::Done);
    }
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
        _ => return Ok(Outcome::Done), // Exported above.
    };
    match &args.output {
        Some(path) => write(path, &shown)?,
        None => output::print(&shown)?,
    }
    Ok(Outcome::Done)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| not_written(path, &e))
}

fn not_written(path: &Path, e: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {e}", path.display()))
        .try_this("name a file that you may write: -o FILE")
}
