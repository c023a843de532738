//! `wakescope compare`

use std::path::PathBuf;

use clap::ValueEnum;
use wakescope_core::limit::{Limit, Outcome as Judged};
use wakescope_core::observation::Observation;
use wakescope_core::watch::observed::Grouping;
use wakescope_lab::plan::{margin_as_argument, parse_margin, shell_quoted};
use wakescope_report::compare as shown;
use wakescope_stats::compare::{ALPHA, Compare, Labelled, MARGIN, Options, compare, interleaved};

use crate::ending::{Endings, format_for};
use crate::runs::{self, Observed};
use crate::unit::UnitArgs;
use crate::{Failure, Outcome, output};

mod refused;
mod same;
mod watches;

pub(crate) use refused::{differing, failure};
pub(crate) use same::{refuse_repetitions, repeated};
pub(crate) use watches::{read_ungrouped, watches_of};

/// What means nothing to a plan.
const NOT_OF_A_PLAN: [&str; 13] = [
    "runs",
    "by",
    "against",
    "accept_blocks",
    "margin",
    "alpha",
    "max_regression",
    "fail_above",
    "force",
    "mix_quantities",
    "unit",
    "format",
    "json",
];

/// Test whether one set of runs is worse than another
///
/// A run counts as one observation: give at least five runs a side, measured alternately. Exit
/// codes: 0 better or no difference; 1 worse, or a limit was exceeded; 2 the runs cannot be
/// compared; 3 inconclusive.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope compare new/* --against old/*
  wakescope compare --interleave-plan 5 -o plan.sh
  wakescope compare new/* --against old/* --max-regression 10% --format junit -o compare.xml
  wakescope compare new/* --against old/* --fail-above p99.9=100us --format markdown
  wakescope compare new-kernel/* --against old-kernel/* --by cgroup    # folders of watches")]
pub(crate) struct CompareArgs {
    /// The new runs: run folders, a folder of run folders, or files; or folders of watches
    #[arg(required_unless_present = "interleave_plan", value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// The old runs
    #[arg(long, required_unless_present = "interleave_plan", num_args = 1.., value_name = "RUN")]
    against: Vec<PathBuf>,

    /// Instead of comparing, print a script that measures N runs a side alternately
    ///
    /// A machine drifts over time. The script mirrors each pair of runs in the next pair (old new
    /// new old), so that a steady drift affects both sides equally. --seed decides which side comes
    /// first.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000), conflicts_with_all = NOT_OF_A_PLAN)]
    interleave_plan: Option<u16>,

    /// Give a verdict even if one side was measured entirely after the other
    ///
    /// A drift of the machine can then look like a difference, or hide one. Without this option the
    /// comparison is inconclusive (exit code 3). Limits are judged in either case.
    #[arg(long)]
    accept_blocks: bool,

    /// Smallest relative difference that counts [default: 10%]
    #[arg(long, value_name = "SHARE", value_parser = parse_margin)]
    margin: Option<f64>,

    /// Significance level: the accepted probability of a false "better", "worse" or failed
    /// --max-regression [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = parse_alpha)]
    alpha: Option<f64>,

    /// Exit with 1 only if a figure is significantly worse by more than this, as in 10%, with 3 if
    /// that is inconclusive
    #[arg(long, value_name = "SHARE", value_parser = parse_margin)]
    max_regression: Option<f64>,

    /// Exit with 1 if a new run's maximum (100us) or percentile (p99.9=50us) is above this time
    #[arg(long, value_name = "[pN=]TIME", allow_hyphen_values = true)]
    fail_above: Vec<Limit>,

    /// Compare runs although they differ in load, stimulus or another essential property
    #[arg(long)]
    force: bool,

    /// Compare different quantities, such as gaps in a busy loop with wakeup latencies
    #[arg(long)]
    mix_quantities: bool,

    /// Of watches: how waits of both sides are matched [default: series]
    #[arg(long, value_enum)]
    by: Option<ByArg>,

    #[command(flatten)]
    units: UnitArgs,

    /// Seed for the random permutations of the test, or for --interleave-plan
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Output format [default: by the ending of -o FILE, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ByArg {
    /// Tasks of one name in one cgroup
    Series,
    /// Tasks of one name
    Comm,
    /// Tasks of one cgroup
    Cgroup,
    /// Only all waits together
    None,
}

impl From<ByArg> for Grouping {
    fn from(by: ByArg) -> Self {
        match by {
            ByArg::Series => Self::Series,
            ByArg::Comm => Self::Comm,
            ByArg::Cgroup => Self::Cgroup,
            ByArg::None => Self::None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people: verdict, table, reasons
    Text,
    /// The record of the comparison
    Json,
    /// For CI systems: one test case per figure and per limit
    Junit,
    /// For pull requests
    Markdown,
}

/// What the endings of files say.
const ENDINGS: Endings<'static, Format> = &[
    ("txt", &[Format::Text, Format::Markdown]),
    ("text", &[Format::Text, Format::Markdown]),
    ("log", &[Format::Text]),
    ("json", &[Format::Json]),
    ("xml", &[Format::Junit]),
    ("md", &[Format::Markdown]),
    ("markdown", &[Format::Markdown]),
];

/// Runs `wakescope compare`.
pub(crate) fn run(args: &CompareArgs) -> Result<Outcome, Failure> {
    if let Some(runs) = args.interleave_plan {
        let plan = shown::plan(&interleaved(runs.into(), args.seed), args.seed);
        return output::result_text(args.output.as_deref(), &plan).map(|()| Outcome::Done);
    }
    let format = args.format()?;
    let mut compared = match watches::run(args)? {
        Some(compared) => compared,
        None => {
            let (new, old) = sides(args)?;
            let compared = compare(&labelled(&new), &labelled(&old), &args.options());
            compared.map_err(|refusal| failure(&refusal))?
        }
    };
    compared.settings.repeat = args.repeat();
    show(&compared, format, args)?;
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
            accept_blocks: self.accept_blocks,
            mix_quantities: self.mix_quantities,
            seed: self.seed,
        }
    }

    fn format(&self) -> Result<Format, Failure> {
        let asked = self.format.or(self.json.then_some(Format::Json));
        format_for(self.output.as_deref(), asked, Format::Text, ENDINGS)
    }

    /// The command that asks the same.
    fn repeat(&self) -> String {
        let paths = |paths: &[PathBuf]| -> String {
            paths.iter().map(|path| format!(" {}", output::path_argument(path))).collect()
        };
        let (new, old) = (paths(&self.runs), paths(&self.against));
        let mut command = format!("wakescope compare{new} --against{old}");
        let mut add = |word: &str| {
            command.push(' ');
            command.push_str(&shell_quoted(word));
        };
        for (name, share) in [
            ("--margin", self.margin),
            ("--alpha", self.alpha),
            ("--max-regression", self.max_regression),
        ] {
            if let Some(share) = share {
                add(&format!("{name}={}", margin_as_argument(share)));
            }
        }
        for limit in &self.fail_above {
            add(&format!("--fail-above={}", limit.as_argument()));
        }
        for (option, is_asked) in [("--force", self.force), ("--accept-blocks", self.accept_blocks)]
        {
            if is_asked {
                add(option);
            }
        }
        if self.mix_quantities {
            add("--mix-quantities");
        }
        if let Some(by) = self.by.and_then(|by| by.to_possible_value()) {
            add(&format!("--by={}", by.get_name()));
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
fn sides(args: &CompareArgs) -> Result<(Vec<Observed>, Vec<Observed>), Failure> {
    let (new_paths, old) = (runs::expand(&args.runs)?, runs::expand(&args.against)?);
    let paths: Vec<PathBuf> = new_paths.iter().chain(&old).cloned().collect();
    let mut all = runs::read_all(&paths, &args.units, Observation::from)?;
    refuse_repetitions("compare", &all)?;
    // A file may hold several runs.
    let new = all.iter().filter(|named| named.given < new_paths.len()).count();
    let old = all.split_off(new);
    Ok((all, old))
}

/// Runs as the comparison takes them.
pub(crate) fn labelled(runs: &[Observed]) -> Vec<Labelled<'_>> {
    runs.iter().map(|named| Labelled { label: &named.label, run: &named.run }).collect()
}

fn show(compared: &Compare, format: Format, args: &CompareArgs) -> Result<(), Failure> {
    let style = if args.output.is_none() { output::style() } else { Default::default() };
    let text = match format {
        Format::Text => shown::text(compared, style),
        Format::Json => compared.to_json(),
        Format::Junit => shown::junit(compared),
        Format::Markdown => shown::markdown(compared),
    };
    output::result_text(args.output.as_deref(), &text)
}

/// Reads a chance: `5%` or `0.05`, above 0 and at most one half.
pub(crate) fn parse_alpha(text: &str) -> Result<f64, String> {
    let chance = parse_margin(text).ok().filter(|&chance| chance > 0.0 && chance <= 0.5);
    chance.ok_or_else(|| "write a probability above 0 and up to 50%, as in 5% or 0.05".into())
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
