//! `wakescope model`

use clap::Subcommand;
use clap::builder::TypedValueParser;
use wakescope_model::Rules;

use crate::offering::offering;
use crate::{Failure, Outcome};

mod check;
mod drawing;
mod lengths;
mod list;
mod run;
mod scenario;
mod simulating;

/// Simulate a kernel's preemption rules, locks and interrupts
///
/// A scenario describes a machine, its tasks and the paths through its kernel. It is executed under
/// the rules of a preemption model, in simulated time: the same scenario, rules and seed give the same
/// figures on any machine. No privileges are needed.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  wakescope model list
  wakescope model run williams --preempt none,full
  wakescope model show williams > own.toml"
)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(Box<run::RunArgs>),
    Check(check::CheckArgs),
    List(list::ListArgs),
    Show(list::ShowArgs),
}

/// Runs `wakescope model`.
pub(crate) fn run(args: &ModelArgs) -> Result<Outcome, Failure> {
    match &args.verb {
        Verb::Run(args) => run::run(args),
        Verb::Check(args) => check::run(args),
        Verb::List(args) => list::list(args),
        Verb::Show(args) => list::show(args),
    }
}

/// What `--preempt` takes.
fn rules() -> impl TypedValueParser<Value = Rules> {
    let names = Rules::ALL.map(|rules| rules.name);
    offering(names, move |name: &str| {
        Rules::named(name).ok_or_else(|| format!("expected one of {}", names.join(", ")))
    })
}

/// The models that were asked for, each once; all of them if none was.
fn rules_or_all(asked: &[Rules]) -> Vec<Rules> {
    let mut rules: Vec<Rules> = Vec::new();
    let all = if asked.is_empty() { &Rules::ALL[..] } else { asked };
    for one in all {
        if !rules.contains(one) {
            rules.push(*one);
        }
    }
    rules
}
