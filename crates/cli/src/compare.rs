//! `wakescope compare`

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use wakescope_core::compare::{ALPHA, Compare, Labelled, MARGIN, Options, compare};
use wakescope_core::limit::{Limit, Outcome as Judged};
use wakescope_lab::plan::{parse_margin, shell_quoted};
use wakescope_report::compare as shown;

use crate::runs::{self, Named};
use crate::unit::UnitArgs;
use crate::{Failure, Outcome, output};

mod refused;

pub(crate) use refused::{differing, failure};

/// Is one set of runs worse than another: verdict, size, certainty
///
/// The run is the unit: give several a side, at least five. Exit: 0 better or no difference, 1 worse
/// or a limit failed, 2 they cannot be compared, 3 the runs do not tell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope compare new/* --against old/*
  wakescope compare new/* --against old/* --max-regression 10% --format junit -o compare.xml
  wakescope compare new/* --against old/* --fail-above p99.9=100us --format markdown")]
pub(crate) struct CompareArgs {
    /// The new runs: their folders, or files
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// The old runs
    #[arg(long, required = true, num_args = 1.., value_name = "RUN")]
    against: Vec<PathBuf>,

    /// By what share a figure must differ to count [default: 10%]
    #[arg(long, value_name = "SHARE", value_parser = parse_margin)]
    margin: Option<f64>,

    /// How likely alike runs may be called better or worse [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = parse_alpha)]
    alpha: Option<f64>,

    /// Exit with 1 only if a figure is shown to be worse by more than this, with 3 if that is open
    #[arg(long, value_name = "SHARE", value_parser = parse_margin)]
    max_regression: Option<f64>,

    /// Exit with 1 if a new run's maximum, or a percentile, is above a time: 100us, p99.9=50us
    #[arg(long, value_name = "[pN=]TIME", allow_hyphen_values = true)]
    fail_above: Vec<Limit>,

    /// Compare also runs that are not alike in what matters
    #[arg(long)]
    force: bool,

    /// Compare also values of different kinds, such as gaps in a busy loop with wakeup latencies
    #[arg(long)]
    mix_quantities: bool,

    #[command(flatten)]
    units: UnitArgs,

    /// Seed of the splits that are drawn where there are too many to count
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// What to show it as
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people: verdict, table, reasons
    Text,
    /// The record of the comparison
    Json,
    /// For CI systems: a test case per figure and limit
    Junit,
    /// For pull requests
    Markdown,
}

/// Runs `wakescope compare`.
pub(crate) fn run(args: &CompareArgs) -> Result<Outcome, Failure> {
    let (new, old) = sides(args)?;
    let compared = compare(&labelled(&new), &labelled(&old), &args.options());
    let mut compared = compared.map_err(|refusal| failure(&refusal))?;
    compared.settings.repeat = args.repeat();
    show(&compared, args)?;
    Ok(match compared.outcome {
        Judged::Pass => Outcome::Done,
        Judged::Fail => Outcome::Failed,
        Judged::Inconclusive => Outcome::Inconclusive,
    })
}

impl CompareArgs {
    fn options(&self) -> Options {
        Options {
            margin: self.margin.unwrap_or(MARGIN),
            alpha: self.alpha.unwrap_or(ALPHA),
            max_regression: self.max_regression,
            limits: self.fail_above.clone(),
            force: self.force,
            mix_quantities: self.mix_quantities,
            seed: self.seed,
        }
    }

    /// The command that asks the same.
    fn repeat(&self) -> String {
        let mut command = String::from("wakescope compare");
        let mut add = |word: &str| {
            command.push(' ');
            command.push_str(&shell_quoted(word));
        };
        self.runs.iter().for_each(|path| add(&path.to_string_lossy()));
        add("--against");
        self.against.iter().for_each(|path| add(&path.to_string_lossy()));
        for (name, share) in [
            ("--margin", self.margin),
            ("--alpha", self.alpha),
            ("--max-regression", self.max_regression),
        ] {
            if let Some(share) = share {
                add(&format!("{name}={share}"));
            }
        }
        for limit in &self.fail_above {
            add(&format!("--fail-above={}", limit.as_argument()));
        }
        if self.force {
            add("--force");
        }
        if self.mix_quantities {
            add("--mix-quantities");
        }
        if let Some(unit) = self.units.argument() {
            add(&unit);
        }
        if self.seed != 1 {
            add(&format!("--seed={}", self.seed));
        }
        command
    }
}

/// Both sides, read at once so that no two runs get the same label.
fn sides(args: &CompareArgs) -> Result<(Vec<Named>, Vec<Named>), Failure> {
    let paths: Vec<PathBuf> = args.runs.iter().chain(&args.against).cloned().collect();
    let mut all = runs::read_all(&paths, &args.units)?;
    // A file may hold several runs.
    let new = all.iter().filter(|named| named.given < args.runs.len()).count();
    let old = all.split_off(new);
    Ok((all, old))
}

/// Runs as the comparison takes them.
pub(crate) fn labelled(runs: &[Named]) -> Vec<Labelled<'_>> {
    runs.iter().map(|named| Labelled { label: &named.label, run: &named.run }).collect()
}

fn show(compared: &Compare, args: &CompareArgs) -> Result<(), Failure> {
    let format = if args.json { Format::Json } else { args.format };
    let style = if args.output.is_none() { output::style() } else { Default::default() };
    let text = match format {
        Format::Text => shown::text(compared, style),
        Format::Json => compared.to_json(),
        Format::Junit => shown::junit(compared),
        Format::Markdown => shown::markdown(compared),
    };
    print_to(args.output.as_deref(), &text)
}

/// Prints to a file, or else to standard output.
pub(crate) fn print_to(file: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(path) = file else { return output::print(text) };
    File::create(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", path.display()))
            .try_this("name a file that you may write: -o FILE")
    })
}

/// Reads a chance: `5%` or `0.05`, above 0 and at most one half.
pub(crate) fn parse_alpha(text: &str) -> Result<f64, String> {
    let chance = parse_margin(text).ok().filter(|&chance| chance > 0.0 && chance <= 0.5);
    chance.ok_or_else(|| "write a chance above 0 and up to 50%, as in 5% or 0.05".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances() {
        for (text, want) in [
            ("5%", Some(0.05)),
            ("0.01", Some(0.01)),
            ("50%", Some(0.5)),
            ("0", None),
            ("51%", None),
            ("x", None),
        ] {
            assert_eq!(parse_alpha(text).ok(), want, "{text}");
        }
    }
}
