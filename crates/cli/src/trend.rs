//! `wakescope trend`

use std::path::{Path, PathBuf};

use wakescope_core::date::Date;
use wakescope_core::observation::Observation;
use wakescope_report::{picture, trend as shown};
use wakescope_stats::compare::{Refusal, Watched};
use wakescope_stats::trend::{ALPHA, MOST, Options, Trend, trend, trend_of_watches};

use crate::compare::{
    differing, failure, labelled, parse_alpha, read_ungrouped, refuse_repetitions, repeated,
    watches_of,
};
use crate::ending::{Endings, format_for};
use crate::runs;
use crate::unit::UnitArgs;
use crate::{Failure, Outcome, output};

/// Find where p99.9 or the maximum changed in a series of runs
///
/// The order of the arguments is the order of the series, for example kernel versions or nights.
/// Exit codes: 0 whether or not a change was found; 2 an error.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope trend runs/v6.1 runs/v6.6 runs/v6.12 runs/v6.18
  wakescope trend --by-time runs/*
  wakescope trend --by-time runs/* -o trend.svg
  wakescope trend --by-time week-*    # folders of watches")]
pub(crate) struct TrendArgs {
    /// The runs in order: run folders, a folder of run folders (sorted by name), or files; or folders of
    /// watches
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Order the runs by their start time
    #[arg(long)]
    by_time: bool,

    /// Significance level: the accepted probability of a false change [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = parse_alpha)]
    alpha: Option<f64>,

    /// Accept runs although they differ in load, stimulus or another essential property
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    units: UnitArgs,

    /// Seed for the random permutations of the test
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Print JSON: the record of the series
    #[arg(long)]
    json: bool,

    /// Write to a file instead of standard output: a picture to .svg or .png, the record to .json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs `wakescope trend`.
pub(crate) fn run(args: &TrendArgs) -> Result<Outcome, Failure> {
    let format = args.format()?;
    let options =
        Options { alpha: args.alpha.unwrap_or(ALPHA), force: args.force, seed: args.seed };
    let found = match watches_of([&args.runs])? {
        Some([watches]) => of_watches(args, &watches, &options)?,
        None => of_runs(args, &options)?,
    };
    let mut trend = found.map_err(|refusal| match *refusal {
        Refusal::Differences(differences) => differing("follow", &differences),
        Refusal::Repeated(one, other) => repeated("follow", &one, &other),
        other => failure(&other),
    })?;
    trend.repeat = args.repeat();
    if let (Some(path), Format::Svg | Format::Png) = (&args.output, format) {
        return draw(&trend, path, format);
    }
    let style = if args.output.is_none() { output::style() } else { Default::default() };
    let text = if format == Format::Json { trend.to_json() } else { shown::text(&trend, style) };
    output::result_text(args.output.as_deref(), &text)?;
    Ok(Outcome::Done)
}

/// What was found in a series, or why it is none.
type Found = Result<Trend, Box<Refusal>>;

fn of_runs(args: &TrendArgs, options: &Options) -> Result<Found, Failure> {
    let paths = runs::expand(&args.runs)?;
    refuse_too_many(&paths)?;
    let mut runs = runs::read_all(&paths, &args.units, Observation::from)?;
    refuse_repetitions("follow", &runs)?;
    if args.by_time {
        let times = runs.iter().map(|named| (&*named.label, &*named.run.started));
        refuse_unknown_times(times)?;
        runs.sort_by_key(|named| Date::parse(&named.run.started).map(Date::seconds));
    }
    Ok(trend(&labelled(&runs), options))
}

fn of_watches(args: &TrendArgs, paths: &[PathBuf], options: &Options) -> Result<Found, Failure> {
    refuse_too_many(paths)?;
    if args.units.unit().is_some() {
        return Err(
            Failure::new("--unit does not apply to watches: a watch is in ns").try_this("omit it")
        );
    }
    let (labels, watches) = (runs::labels(paths), read_ungrouped(paths)?);
    let each = labels.iter().zip(&watches);
    let mut all: Vec<Watched> = each.map(|(label, watch)| Watched { label, watch }).collect();
    if args.by_time {
        all.sort_by(|a, b| a.watch.run.started.cmp(&b.watch.run.started));
    }
    Ok(trend_of_watches(&all, options))
}

fn refuse_too_many(paths: &[PathBuf]) -> Result<(), Failure> {
    if paths.len() <= MOST {
        return Ok(());
    }
    Err(Failure::new(format!("{} runs are too many", paths.len()))
        .because(format!(
            "computing time grows with the square of their number; the limit is {MOST}"
        ))
        .try_this("name only the latest runs, or every tenth"))
}

/// Writes the picture of a series.
fn draw(trend: &Trend, path: &Path, format: Format) -> Result<Outcome, Failure> {
    let series = match &trend.series[..] {
        [only] => only,
        _ => {
            return Err(Failure::new(
                "these runs measure several quantities, and a picture shows one",
            )
            .try_this("name one quantity of each file: FILE#irq, FILE#thread or FILE#user"));
        }
    };
    let drawn = match format {
        Format::Png => picture::trend_png(trend, series),
        _ => picture::trend_svg(trend, series).map(String::into_bytes),
    };
    let drawn = drawn.ok_or_else(|| Failure::new("there is nothing to draw in these runs"))?;
    output::write_file(path, &drawn)?;
    Ok(Outcome::Done)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
    Svg,
    Png,
}

/// What the endings of files say.
const ENDINGS: Endings<'static, Format> = &[
    ("txt", &[Format::Text]),
    ("text", &[Format::Text]),
    ("log", &[Format::Text]),
    ("json", &[Format::Json]),
    ("svg", &[Format::Svg]),
    ("png", &[Format::Png]),
];

/// Refuses to order by time what does not tell its own.
fn refuse_unknown_times<'a>(
    mut times: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<(), Failure> {
    match times.find(|(_, started)| Date::parse(started).is_none()) {
        Some((label, _)) => Err(Failure::new(format!("cannot order {label} by time"))
            .because("it has no start time")
            .try_this("name the runs in order, without --by-time")),
        None => Ok(()),
    }
}

impl TrendArgs {
    fn format(&self) -> Result<Format, Failure> {
        let asked = self.json.then_some(Format::Json);
        format_for(self.output.as_deref(), asked, Format::Text, ENDINGS)
    }

    /// The command that asks the same.
    fn repeat(&self) -> String {
        let mut words = vec!["wakescope trend".to_owned()];
        words.extend(self.by_time.then(|| "--by-time".into()));
        words.extend(self.alpha.map(|alpha| format!("--alpha={alpha}")));
        words.extend(self.force.then(|| "--force".into()));
        words.extend(self.units.argument());
        words.push(format!("--seed={}", self.seed));
        words.extend(self.runs.iter().map(|path| output::path_argument(path)));
        words.join(" ")
    }
}
