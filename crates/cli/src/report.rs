//! `wakescope report`

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use wakescope_core::redact::redact;
use wakescope_core::units::SpanNs;
use wakescope_report::picture::{self, Picture};
use wakescope_report::run_set::{Line, RunSet};
use wakescope_report::{html, markdown, realfeel, text};

use crate::ending::format_for;
use crate::offering::offering;
use crate::unit::UnitArgs;
use crate::{Failure, Outcome, output, runs};

mod export;
mod format;
mod lab;
mod overlaid;
mod watched;

use format::Format;

/// Show runs as text, an HTML page, a picture or Markdown, or export them to other programs'
/// formats
#[derive(Clone, clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope report runs/2026-11-21T01-35-07\n  wakescope report runs/2026-11-21T01-35-07 -o report.html\n  wakescope report old new --format svg --picture exceedance --line 100us -o paper.svg\n  wakescope report lab.json -o lab.html\n  wakescope report runs/2026-11-21T01-35-07 --format realfeel --thresholds 50us,100us,1ms\n  wakescope report runs/2026-11-21T01-35-07 --format cyclictest --rows 400 -o histogram.txt"
)]
pub(crate) struct ReportArgs {
    /// Runs to show together: run folders, their run.json, or a folder of run folders; or one
    /// lab.json, or one folder of a watch
    #[arg(required = true)]
    run: Vec<PathBuf>,

    /// Output format [default: by the ending of -o FILE, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// The picture for --format svg or png: exceedance, histogram, cpus, course, audio, components, causes, episodes, matrix [default: exceedance]
    #[arg(long, value_name = "NAME", value_parser = pictures(), hide_possible_values = true)]
    picture: Option<Picture>,

    /// Draw lines at these times, in addition to the runs' limits
    #[arg(long, value_delimiter = ',', value_name = "TIME,…")]
    line: Vec<SpanNs>,

    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Thresholds for --format realfeel [default: those of 2002, 0.1 ms to 100 ms]
    #[arg(long, value_delimiter = ',', value_name = "TIME,…")]
    thresholds: Vec<SpanNs>,

    /// Leave out names of tasks, programs, files and cgroups, so that the result can be published
    ///
    /// Removes names of tasks, programs, commands, files and cgroups, and kernel parameters that do
    /// not matter for latency. docs/privacy.md lists what stays, such as process IDs. With -o
    /// run.json the result is a record that can be published.
    #[arg(long)]
    redact: bool,

    /// Show different quantities together, such as gaps in a busy loop and wakeup latencies
    #[arg(long)]
    mix_quantities: bool,

    #[command(flatten)]
    units: UnitArgs,

    #[command(flatten)]
    export: export::ExportArgs,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What `--picture` takes.
fn pictures() -> impl TypedValueParser<Value = Picture> {
    offering(Picture::ALL.map(Picture::name), |name: &str| name.parse::<Picture>())
}

/// Runs `wakescope report`.
pub(crate) fn run(args: &ReportArgs) -> Result<Outcome, Failure> {
    if let Some(outcome) = watched::run(args)? {
        return Ok(outcome);
    }
    let args = &ReportArgs { run: runs::expand(&args.run)?, ..args.clone() };
    let format = format_of(args)?;
    refuse_what_means_nothing(args, format)?;
    if let Some(exported) = format.exported() {
        return export_run(args, format, exported);
    }
    let shown = match lab::read(&args.run)? {
        Some(found) => {
            refuse_options_of_runs(args, "a lab's record")?;
            show_lab(args, format, &if args.redact { found.redacted() } else { found })?
        }
        None => show_runs(args, format)?,
    };
    output::result(args.output.as_deref(), |out| out.write_all(&shown))?;
    Ok(Outcome::Done)
}

fn format_of(args: &ReportArgs) -> Result<Format, Failure> {
    format_for(args.output.as_deref(), args.format, Format::Text, Format::ENDINGS)
}

fn refuse_what_means_nothing(args: &ReportArgs, format: Format) -> Result<(), Failure> {
    let refused = |option: &str, formats: &str| {
        Err(Failure::new(format!("{option} does not apply to this format"))
            .try_this(format!("add --format {formats}, or omit it")))
    };
    if !args.thresholds.is_empty() && format != Format::Realfeel {
        return refused("--thresholds", "realfeel");
    }
    if args.picture.is_some() && !format.is_picture() {
        return refused("--picture", "svg");
    }
    if !args.line.is_empty() && !format.has_pictures() {
        return refused("--line", "html");
    }
    if args.title.is_some() && !format.has_title() {
        return refused("--title", "html");
    }
    args.export.check(format.exported())?;
    if format == Format::Png && args.output.is_none() && output::is_terminal() {
        return Err(Failure::new("cannot write a PNG to a terminal")
            .try_this("name a file: -o picture.png"));
    }
    Ok(())
}

/// Refuses options that say how runs are read and shown, of `what` is none.
fn refuse_options_of_runs(args: &ReportArgs, what: &str) -> Result<(), Failure> {
    let refused = [
        ("--unit", args.units.unit().is_some(), "which is in ns"),
        ("--mix-quantities", args.mix_quantities, "which is shown alone"),
    ];
    match refused.iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(()),
        Some((option, _, why)) => {
            Err(Failure::new(format!("{option} does not apply to {what}, {why}"))
                .try_this("omit it"))
        }
    }
}

fn export_run(
    args: &ReportArgs,
    format: Format,
    exported: export::Format,
) -> Result<Outcome, Failure> {
    refuse_several(args, format)?;
    let path = &args.run[0];
    let mut run = runs::read_in(path, &args.units)?;
    if args.redact {
        redact(&mut run);
    }
    export::write(&run, path, exported, &args.export, args.output.as_deref())?;
    Ok(Outcome::Done)
}

fn refuse_several(args: &ReportArgs, format: Format) -> Result<(), Failure> {
    if args.run.len() > 1 && !format.takes_several() {
        return Err(Failure::new(format!("--format {} shows one run", format.name()))
            .try_this("name one, or choose another format: html, svg, png, md or text"));
    }
    Ok(())
}

fn show_runs(args: &ReportArgs, format: Format) -> Result<Vec<u8>, Failure> {
    refuse_several(args, format)?;
    let mut named = runs::read_all(&args.run, &args.units, |run| run)?;
    if matches!(format, Format::Html | Format::Svg | Format::Png | Format::Md) {
        // First, because runs of one file belong together, and a redacted run does not name its file.
        overlaid::refuse_mixtures(&named, args.mix_quantities)?;
    }
    if args.redact {
        overlaid::redact_all(&mut named);
    }
    let style = if args.output.is_none() { output::style() } else { Default::default() };
    Ok(match format {
        Format::Text => overlaid::one_after_the_other(&named, |run| text::report(run, style)),
        Format::Json => named.iter().map(|n| n.run.to_json() + "\n").collect(),
        Format::Realfeel => {
            let thresholds = thresholds(args);
            named.iter().map(|n| realfeel::block(&n.run, &thresholds)).collect()
        }
        Format::Html | Format::Svg | Format::Png | Format::Md => {
            return draw(args, format, overlaid::runs(&named), html::page);
        }
        _ => String::new(), // Exported before.
    }
    .into_bytes())
}

fn show_lab(args: &ReportArgs, format: Format, found: &lab::Found) -> Result<Vec<u8>, Failure> {
    let record = &found.lab;
    match format {
        Format::Text => {
            let style = if args.output.is_none() { output::style() } else { Default::default() };
            let extent = wakescope_report::lab::Extent::All;
            Ok(wakescope_report::lab::text(record, extent, style).into_bytes())
        }
        Format::Json => Ok((record.to_json() + "\n").into_bytes()),
        Format::Md => Ok(wakescope_report::lab::markdown(record).into_bytes()),
        Format::Realfeel => Err(Failure::new("--format realfeel shows one run, not a lab")
            .try_this("name the run of one cell, or choose another format")),
        Format::Html | Format::Svg | Format::Png => {
            let run_set = match format {
                // The record alone makes a page, too.
                Format::Html if !found.has_room_for_curves() => RunSet::default(),
                _ => found.run_set()?,
            };
            draw(args, format, run_set, |run_set| html::lab_page(record, run_set))
        }
        _ => Ok(Vec::new()), // Exported before.
    }
}

/// The page, the picture or the Markdown of runs that are shown together.
fn draw(
    args: &ReportArgs,
    format: Format,
    mut run_set: RunSet<'_>,
    page: impl Fn(&RunSet<'_>) -> String,
) -> Result<Vec<u8>, Failure> {
    run_set.title = args.title.clone().unwrap_or_default();
    args.line.iter().for_each(|&line| run_set.add(Line::at(line)));
    let picture = args.picture.unwrap_or_default();
    overlaid::check(&run_set, format, picture)?;
    let drawn = match format {
        Format::Svg => picture::svg(picture, &run_set).map(String::into_bytes),
        Format::Png => picture::png(picture, &run_set),
        Format::Md => Some(markdown::report(&run_set).into_bytes()),
        _ => Some(page(&run_set).into_bytes()),
    };
    drawn.ok_or_else(|| {
        Failure::new(format!("these runs have no data for the picture {picture}"))
            .try_this(format!("it needs {}", picture.needs()))
    })
}

fn thresholds(args: &ReportArgs) -> Vec<SpanNs> {
    if args.thresholds.is_empty() {
        return realfeel::THRESHOLDS_NS.map(SpanNs).to_vec();
    }
    let mut thresholds = args.thresholds.clone();
    thresholds.sort_unstable();
    thresholds
}
