//! Arguments, wiring, progress and exit codes of the `wakescope` command.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use wakescope_probe::load::{launched_output, play_part};
use wakescope_sys::{process, signal};

mod check;
mod cleaner;
mod compare;
mod ending;
mod explain;
mod failure;
mod folder;
mod foreign_json;
mod guest;
mod http;
mod import;
mod input;
mod lab;
mod line;
mod live;
mod load;
mod measure;
mod model;
mod offering;
mod output;
mod parallel;
mod report;
mod respond;
mod runs;
mod samples;
mod screen;
mod signals;
mod size;
mod stimuli;
mod terminal;
mod trace_failure;
mod trend;
mod unit;
mod watch;

pub use failure::Failure;

/// Measure how late Linux wakes a task, and whether the number can be trusted.
#[derive(Parser)]
#[command(name = "wakescope", version)]
#[command(
    after_help = "Exit codes: 0 success, all limits kept; 1 a limit was exceeded; 2 an error; 3 \
         inconclusive."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Check(check::CheckArgs),
    Measure(Box<measure::MeasureArgs>),
    Explain(Box<explain::ExplainArgs>),
    Watch(watch::WatchArgs),
    Load(load::LoadArgs),
    Respond(respond::RespondArgs),
    Report(report::ReportArgs),
    Import(import::ImportArgs),
    Compare(compare::CompareArgs),
    Trend(trend::TrendArgs),
    Lab(lab::LabArgs),
    Scope(lab::scope::ScopeArgs),
    Predict(lab::predict::PredictArgs),
    Model(model::ModelArgs),
    #[command(hide = true)]
    LoadKeeper(load::KeeperArgs),
    #[command(hide = true)]
    LabGuest(guest::GuestArgs),
}

/// How a command ended, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, and within every limit.
    Done,
    /// A limit or comparison failed.
    Failed,
    /// No judgement is possible.
    Inconclusive,
    /// Part of what was asked could not be done; what could is shown.
    Undone,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Failed => Self::from(1),
            Outcome::Undone => Self::from(2),
            Outcome::Inconclusive => Self::from(3),
        }
    }
}

/// The definition of all arguments, from which man pages and completions are made.
pub fn command() -> clap::Command {
    // Pages and completions would have every verb once more below `help`.
    Cli::command().disable_help_subcommand(true)
}

/// The part of the command that guests of the lab run.
#[derive(Parser)]
#[command(name = "wakescope-guest", version, disable_help_subcommand = true)]
struct GuestCli {
    #[command(subcommand)]
    verb: GuestVerb,
}

#[derive(Subcommand)]
enum GuestVerb {
    LoadKeeper(load::KeeperArgs),
    LabGuest(guest::GuestArgs),
}

/// The least stack, bytes: to parse arguments takes more than 128 KiB of it (release build).
const LEAST_STACK: u64 = 1 << 20;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    // The kernel ends a process whose stack has no room, whatever it has to put back.
    if let Some(limit) = process::stack_limit().ok().filter(|&limit| limit < LEAST_STACK) {
        let least = LEAST_STACK >> 10;
        let what = format!("cannot run with a stack of {} KiB: {least} are needed", limit >> 10);
        let remedy = format!("raise the limit of the stack: ulimit -s {least}");
        output::complain(&Failure::new(what).try_this(remedy));
        return ExitCode::from(2);
    }
    run(|cli: Cli| match cli.verb {
        Verb::Check(args) => check::run(&args),
        Verb::Measure(args) => measure::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Watch(args) => watch::run(&args),
        Verb::Load(args) => load::run(&args),
        Verb::Respond(args) => respond::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Trend(args) => trend::run(&args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Scope(args) => lab::scope::run(&args),
        Verb::Predict(args) => lab::predict::run(&args),
        Verb::Model(args) => model::run(&args),
        Verb::LoadKeeper(args) => load::run_keeper(&args),
        Verb::LabGuest(args) => guest::run(&args),
    })
}

/// Runs what the arguments name, in a guest.
pub fn guest_main() -> ExitCode {
    run(|cli: GuestCli| match cli.verb {
        GuestVerb::LoadKeeper(args) => load::run_keeper(&args),
        GuestVerb::LabGuest(args) => guest::run(&args),
    })
}

/// A call of its own: what it takes of the stack is not taken before `main` has looked how much there is.
#[inline(never)]
fn run<C: Parser>(carry_out: impl FnOnce(C) -> Result<Outcome, Failure>) -> ExitCode {
    // A load starts this program hundreds of times per second to do just that.
    if let Some(text) = launched_output(std::env::args_os().nth(1).as_deref()) {
        let printed = output::print_own(text);
        return ExitCode::from(u8::from(printed.is_err()));
    }
    if let Some(played) = play_part(std::env::args_os().skip(1)) {
        if let Err(fault) = &played {
            output::tell(fault);
        }
        return ExitCode::from(u8::from(played.is_err()));
    }
    signal::fail_beyond_file_size();
    let cli = match C::try_parse_from(guest::arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version, with code 0, or an error that quotes arguments, with code 2.
            let text = e.to_string();
            if e.use_stderr() {
                output::tell(text.trim_end_matches('\n'));
            } else if let Err(failure) = output::print(&text) {
                output::complain(&failure);
                return ExitCode::from(2);
            }
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    match carry_out(cli) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            output::complain(&failure);
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn help_is_a_verb_too() {
        let text = |words: &[&str]| Cli::try_parse_from(words).err().unwrap().to_string();
        for verb in ["measure", "lab"] {
            let [own, of_help] = [["wakescope", verb, "--help"], ["wakescope", "help", verb]];
            assert_eq!(text(&of_help), text(&own));
        }
        assert_eq!(
            text(&["wakescope", "help", "lab", "run"]),
            text(&["wakescope", "lab", "run", "--help"])
        );
    }

    /// In each mode of a verb clap refuses each other argument that is not listed here. What is listed has a meaning
    /// there, or is refused later, with a reason.
    #[test]
    fn no_argument_is_taken_and_ignored() {
        // Of these three one is given, as they are a group; and the last one only with a run.
        let of_others = "pid comm cgroup as_recorded above bound vmlinux sections by episodes duration samples load \
                         worst out json redact seed";
        let command = command();
        for (verb, mode, taken) in [
            ("explain", "run", "vmlinux as_recorded by episodes json redact"),
            ("explain", "pid", of_others),
            ("explain", "comm", of_others),
            ("explain", "cgroup", of_others),
            ("compare", "interleave_plan", "seed output"),
        ] {
            let verb = command.find_subcommand(verb).unwrap();
            let mode = verb.get_arguments().find(|arg| arg.get_id() == mode).unwrap();
            let refuses = |one: &Arg, other: &Arg| {
                verb.get_arg_conflicts_with(one).iter().any(|it| it.get_id() == other.get_id())
            };
            let others = verb.get_arguments().filter(|arg| arg.get_id() != mode.get_id());
            for arg in others {
                let is_refused = refuses(mode, arg) || refuses(arg, mode);
                let is_taken = taken.split(' ').any(|it| arg.get_id() == it);
                let names = [verb.get_name(), mode.get_id().as_str(), arg.get_id().as_str()];
                assert_ne!(is_taken, is_refused, "{names:?}");
            }
        }
    }
}
