//! `wakescope predict`

use std::path::{Path, PathBuf};

use wakescope_core::units::SpanNs;
use wakescope_lab::kernel::Arch;
use wakescope_lab::scope::{Detail, Seen, Subject};
use wakescope_lab::similar::similar;
use wakescope_model::replay::predict::{CannotPredict, Cell, Predictor, Question, Unpredictable};
use wakescope_report::predict as shown;
use wakescope_report::style::clean;

use super::scope::{AgainArgs, Cells, FUNCTIONS};
use super::{parse_positive, with_similar};
use crate::ending::{Endings, format_for};
use crate::{Failure, Outcome, output};

/// Predict how late wakeups of a guest would be under other preemption models, and what to break up
/// next
///
/// Runs a cell of the lab once more, as `wakescope scope` does, with a plugin in the emulator that sees
/// every change of what the CPU is at, and replays that under the rules of each model: how late would a
/// wakeup be that is due at any moment? Nothing is shown unless the guest's result is the stored one, to
/// the bit. The output lists what a replay cannot know. For x86-64 guests with one CPU.
/// From several cells that differ in their seeds only, it makes one prediction: its ranges have what any of
/// their courses had.
/// Exit codes: 0 done; 2 an error.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab run --kernel 6.1-cloud --preempt none --load file-move --seeds 1 --json
  wakescope predict 3f6ef534
  wakescope predict 3f6ef534 90c1e2ab 7d02aa31
  wakescope predict 3f6ef534 --break free_pcppages_bulk=100us
  wakescope predict 3f6ef534 --limit-sections 500us
  wakescope predict 3f6ef534 -o prediction.json")]
pub(crate) struct PredictArgs {
    /// The cell: its folder, its key, or the key's first digits. The key is the name of the cell's
    /// folder in the lab's cache. Up to 8, which differ in their seeds only
    #[arg(value_name = "CELL", required = true, num_args = 1..)]
    cells: Vec<PathBuf>,

    /// As if a function let go of the CPU after this time: where its sections with interrupts or
    /// preemption off last longer, and where it could ask whether somebody else is to run
    #[arg(long = "break", value_name = "FUNCTION=TIME", value_parser = parse_break)]
    breaks: Vec<(String, SpanNs)>,

    /// As if no section with interrupts or preemption off lasted longer
    #[arg(long, value_name = "TIME", value_parser = parse_positive)]
    limit_sections: Option<SpanNs>,

    /// The longest that a function keeps the CPU once it is broken up, for the ranking
    #[arg(long, value_name = "TIME", default_value = "10us", value_parser = parse_positive)]
    every: SpanNs,

    /// Print JSON: the record of the prediction
    #[arg(long)]
    json: bool,

    /// Write to a file instead of standard output; the record to .json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    again: AgainArgs,
}

fn parse_break(text: &str) -> Result<(String, SpanNs), String> {
    match text.split_once('=') {
        Some((function, time)) if !function.is_empty() => {
            Ok((function.into(), parse_positive(time)?))
        }
        _ => Err("write a function and a time, as in free_pcppages_bulk=100us".into()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Json,
}

/// What the endings of files say.
const ENDINGS: Endings<'static, Format> = &[("txt", &[Format::Text]), ("json", &[Format::Json])];

/// Their courses are in memory at once: 60 MB each, of 2,000 wakeups on 6.16 under `launch`.
const MOST_CELLS: usize = 8;

/// Runs `wakescope predict`.
pub(crate) fn run(args: &PredictArgs) -> Result<Outcome, Failure> {
    let asked = args.json.then_some(Format::Json);
    let format = format_for(args.output.as_deref(), asked, Format::Text, ENDINGS)?;
    if args.cells.len() > MOST_CELLS {
        let message = format!("{} cells are too many to predict from", args.cells.len());
        return Err(Failure::new(message).try_this(format!("give {MOST_CELLS} at most")));
    }
    let question = Question {
        breaks: args.breaks.iter().map(|(name, span)| (name.clone(), span.0)).collect(),
        limit_sections_ns: args.limit_sections.map(|span| span.0),
        every_ns: args.every.0,
    };
    let cells = Cells::open(&args.again)?;
    // Before a guest is run for nothing.
    let subjects: Vec<Subject> =
        args.cells.iter().map(|cell| subject(&cells, cell)).collect::<Result<_, _>>()?;
    let known = subjects.iter().map(known).collect();
    let mut predictor =
        Predictor::new(question, known).map_err(|e| failure(&e, std::iter::empty()))?;
    let needs: Vec<String> = args.breaks.iter().map(|(name, _)| name.clone()).collect();
    for subject in subjects {
        // Single sections are not listed.
        let detail = Detail { above_ns: u64::MAX, edges: true, needs: &needs, ..Detail::default() };
        let Seen { edges, .. } = cells.look(subject, detail)?;
        let added = predictor.add(&edges.unwrap_or_default());
        added.map_err(|e| failure(&e, predictor.functions()))?;
    }
    let prediction = predictor.predict().map_err(|e| failure(&e, predictor.functions()))?;
    let style = if args.output.is_none() { output::style() } else { Default::default() };
    let text = match format {
        Format::Json => prediction.to_json(),
        Format::Text => shown::text(&prediction, style),
    };
    output::result_text(args.output.as_deref(), &text)?;
    Ok(Outcome::Done)
}

/// The cell that an argument means, if it is one whose kernel can be replayed.
fn subject(cells: &Cells, cell: &Path) -> Result<Subject, Failure> {
    let subject = cells.subject(cell)?;
    if subject.arch() == Arch::Amd64 {
        return Ok(subject);
    }
    let message =
        format!("cannot predict from {}: it is a cell of {}", subject.label(), subject.arch());
    Err(Failure::new(clean(&message, 400))
        .because(
            "the places where a kernel asks whether to give up the CPU are known for x86-64 only",
        )
        .try_this("run the lab for x86-64: --arch amd64")
        .try_this("or look at its sections: wakescope scope CELL"))
}

/// What is known of a cell before it is run once more.
fn known(subject: &Subject) -> Cell {
    Cell { key: subject.key().to_string(), label: subject.label(), run: subject.run().clone() }
}

/// `functions`: those that were seen.
fn failure<'a>(e: &CannotPredict, functions: impl Iterator<Item = &'a str>) -> Failure {
    let failure = Failure::new(clean(&e.to_string(), 400));
    match &e.why {
        Unpredictable::Policy(_) => {
            failure.try_this("run the lab with a real-time probe: --policy fifo")
        }
        Unpredictable::Model => failure
            .try_this("give the kernel's configuration: wakescope lab run --config FILE")
            .try_this("or look at its sections: wakescope scope CELL"),
        Unpredictable::Function(name) => {
            let seen = similar(name, functions);
            with_similar(failure, &seen).try_this(FUNCTIONS)
        }
        Unpredictable::Wakeups { .. } => failure
            .because("they give the length of a wakeup that nothing holds up")
            .try_this("look at its latest wakeups: wakescope scope CELL")
            .try_this("or predict from a cell of another kernel"),
        Unpredictable::Differs { .. } => failure
            .try_this("predict from each of them by itself")
            .try_this("or run the lab with several seeds: --seeds 1,2,3"),
        Unpredictable::Cuts(_) => failure
            .because("each time is replayed, and takes memory")
            .try_this("give longer times to --break, --limit-sections and --every"),
        Unpredictable::Interval { .. } => failure
            .because("each wakeup is replayed in each phase of the timer, and takes memory")
            .try_this("run the lab with fewer wakeups: --samples 2000"),
        Unpredictable::Twice => failure
            .because("a course that is given twice would count twice")
            .try_this("leave it out once"),
        Unpredictable::Nothing => failure.try_this("look at its sections: wakescope scope CELL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_times() {
        assert_eq!(parse_break("f=100us"), Ok(("f".into(), SpanNs(100_000))));
        for wrong in ["f", "=100us", "f=", "f=0", "f=x", "f=-1us"] {
            assert!(parse_break(wrong).is_err(), "{wrong}");
        }
        assert!(parse_positive("0s").is_err() && parse_positive("1ns").is_ok());
    }
}
