//! `wakescope model check`

use wakescope_model::check::{Coverage, Limits, check, prepare};
use wakescope_model::{Image, Rules};
use wakescope_report::model::check as shown;
use wakescope_report::style::clean;

use super::{rules, rules_or_all, scenario};
use crate::{Failure, Outcome, output};

/// Try every order of events in a scenario, and look for a broken rule
///
/// Rules that every kernel has to keep: no scheduling in atomic context, no deadlock, no lost wakeup, no
/// variable of a CPU seen half-changed, and others. Exit codes: 0 all rules hold; 1 a rule was broken,
/// and the shortest schedule to that is shown; 2 an error; 3 there are more states than could be
/// looked at, and no broken rule among them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope model check catface --preempt none,full
  wakescope model check own.toml --states 10000000")]
pub(super) struct CheckArgs {
    /// A scenario of `wakescope model list`, or a file
    #[arg(value_name = "SCENARIO")]
    scenario: String,

    /// Preemption models: none, voluntary, full, both, lazy, rt [default: all of them]
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',', value_parser = rules(), hide_possible_values = true)]
    preempt: Vec<Rules>,

    /// The most states to look at; random schedules follow if there are more
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    states: u32,

    /// Seed of the random schedules
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs `wakescope model check`.
pub(super) fn run(args: &CheckArgs) -> Result<Outcome, Failure> {
    let scenario = scenario::read(&args.scenario)?;
    let limits = args.limits();
    let mut worst = Outcome::Done;
    for rules in rules_or_all(&args.preempt) {
        let image = Image::new(&scenario, rules).map_err(|e| {
            Failure::new(clean(&format!("cannot check {}: {e}", args.scenario), 400))
                .try_this("docs/model/scenarios.md describes what a scenario may hold")
        })?;
        let image = prepare(&image, &limits);
        let report = check(&image, &limits);
        output::print(&shown(&image, &limits, &report, output::style()))?;
        worst = match (report.failure.is_some(), report.coverage, worst) {
            (true, ..) | (_, _, Outcome::Failed) => Outcome::Failed,
            (_, Coverage::Part(_), _) => Outcome::Inconclusive,
            (_, _, other) => other,
        };
    }
    Ok(worst)
}

impl CheckArgs {
    fn limits(&self) -> Limits {
        let states = usize::try_from(self.states).unwrap_or(usize::MAX);
        Limits { states, seed: self.seed, ..Limits::default() }
    }
}
