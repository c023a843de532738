//! `wakescope load`

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::builder::StringValueParser;
use serde_json::json;
use wakescope_core::run::LoadResult;
use wakescope_core::units::{MonoNs, SpanNs, grouped};
use wakescope_core::validity::LeftOut;
use wakescope_probe::load::{
    Load, LoadError, Options, SetUp, Spec, await_set_up, clean_up_leftovers, default_dir,
    finish_all, keep, parse_list, start_all, this_program,
};
use wakescope_report::load::{rate, table};
use wakescope_report::style::clean;
use wakescope_store::create_output;
use wakescope_sys::clock;
use wakescope_sys::signal::EndSignals;

use crate::failure::lacks_threads;
use crate::offering::{load_names, offering};
use crate::screen::ProgressLine;
use crate::signals::block_end_signals;
use crate::{Failure, Outcome, output};

/// How often to look whether the loads are well.
const LOOK: SpanNs = SpanNs(250_000_000);

/// How often progress is redrawn.
const REDRAW_EVERY: SpanNs = SpanNs(1_000_000_000);

/// The widest line that no terminal wraps.
const WIDTH: usize = 79;

/// Run loads without measuring, and print how much work they did
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope load find launch file-move --duration 10s
  wakescope load find@25% cpu@50%
  wakescope load exec:'while :; do make clean all; done'")]
pub(crate) struct LoadArgs {
    /// Loads to run, which --list lists; also as a list, find,launch. `find@25%` works for 25 % of
    /// the time
    #[arg(value_name = "NAME", value_parser = offering(load_names(), StringValueParser::new()), hide_possible_values = true)]
    names: Vec<String>,

    /// How long to run, as in 10s or 5min (default: until Ctrl-C)
    #[arg(long, value_name = "TIME")]
    duration: Option<SpanNs>,

    /// Directory for the loads' files, which are removed at the end (default: $TMPDIR, or /tmp)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Seed for the names and contents of the files
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    /// List the loads
    #[arg(long, conflicts_with_all = ["names", "duration", "dir", "seed", "json"])]
    list: bool,
}

/// Runs `wakescope load`.
pub(crate) fn run(args: &LoadArgs) -> Result<Outcome, Failure> {
    if args.list {
        return output::print(&list()).map(|()| Outcome::Done);
    }
    let specs = specs(args)?;
    if args.duration == Some(SpanNs(0)) {
        return Err(Failure::new("cannot run loads for a duration of 0")
            .try_this("set a longer --duration, or none to run until Ctrl-C"));
    }
    // Before any load exists, so that Ctrl-C finds somebody who ends them in order.
    let signals = block_end_signals()?;
    let dir = args.dir.clone().unwrap_or_else(default_dir);
    clean_up(&dir);
    let options = Options { program: this_program(), dir, seed: args.seed };
    let loads = start_all(&specs, &options).map_err(failure_of)?;
    let has_ended = || signals.wait(SpanNs(0)).is_some();
    let Some(set_up) = await_set_up(loads, has_ended).map_err(failure_of)? else {
        return Err(Failure::new("interrupted before the loads were set up")
            .try_this("do not interrupt it before it shows what is running"));
    };
    tell(&set_up);
    let SetUp { mut loads, left_out } = set_up;
    for load in &mut loads {
        load.mark();
    }
    let begin = clock::now();
    watch(&mut loads, &signals, begin, args.duration);
    let duration = clock::now().since(begin);
    let remedies: Vec<Option<String>> = loads.iter_mut().map(Load::remedy).collect();
    let have_rates: Vec<bool> = loads.iter().map(|load| load.spec().counts_work()).collect();
    let results = finish_all(loads);
    drop(signals);
    if args.json {
        let loads = results.iter().zip(have_rates).map(|(load, has_rate)| json_of(load, has_rate));
        let result = json!({
            "schema": "wakescope.load/1",
            "seed": args.seed,
            "duration_ns": duration.0,
            "load": loads.collect::<Vec<_>>(),
            "left_out": left_out.iter().map(json_of_left_out).collect::<Vec<_>>(),
        });
        output::print(&format!("{result}\n"))?;
    } else {
        output::print(&table(&results))?;
    }
    outcome(&results, remedies)
}

/// Removes what loads of a killed wakescope left in `dir`, and says so.
pub(crate) fn clean_up(dir: &Path) {
    match clean_up_leftovers(dir) {
        0 => {}
        1 => output::tell("removed a directory left by an earlier load"),
        n => output::tell(&format!("removed {n} directories left by earlier loads")),
    }
}

/// What was asked for, at least one.
fn specs(args: &LoadArgs) -> Result<Vec<Spec>, Failure> {
    let lists = args.names.iter().map(|names| parse_list(names));
    let specs = lists.collect::<Result<Vec<_>, _>>().map_err(|e| {
        // The text may be anything; the message is one line.
        Failure::new(clean(&e.to_string(), 300)).try_this("list the loads: wakescope load --list")
    })?;
    let specs = specs.concat();
    if specs.is_empty() {
        let names: Vec<_> = Spec::list().map(|(name, _)| name).collect();
        return Err(Failure::new("no load is named")
            .try_this(format!("name one or more of {}", names.join(", ")))
            .try_this("list the loads: wakescope load --list"));
    }
    Ok(specs)
}

fn list() -> String {
    let width = Spec::list().map(|(name, _)| name.len()).max().unwrap_or(0);
    Spec::list().map(|(name, about)| format!(" {name:width$}  {about}\n")).collect()
}

/// Says what runs now, and what does not.
fn tell(SetUp { loads, left_out }: &SetUp) {
    for LeftOut { part, of, reason } in left_out {
        output::tell(&clean(&format!("left {part} out of {of}: {reason}"), 300));
    }
    let names: Vec<_> = loads.iter().map(|load| clean(&load.spec().to_string(), 40)).collect();
    output::tell(&format!("running: {}", names.join(", ")));
}

/// Shows progress until the user ends it, the time is over or a load has died.
fn watch(loads: &mut [Load], signals: &EndSignals, begin: MonoNs, duration: Option<SpanNs>) {
    let mut line = ProgressLine::redrawn(REDRAW_EVERY);
    let end = duration.map(|d| begin.after(d));
    let start: Vec<u64> = loads.iter_mut().map(|load| load.status().work).collect();
    loop {
        let now = clock::now();
        let left = end.map_or(LOOK, |end| end.since(now));
        if left.0 == 0 || loads.iter_mut().any(|load| !load.status().alive) {
            break;
        }
        line.show(|| progress(loads, &start, now.since(begin), duration));
        if signals.wait(left.min(LOOK)).is_some() {
            break;
        }
    }
    line.clear();
}

/// One line: `0:07 / 0:10  find 412,233 files 41,200/s · launch …`.
fn progress(
    loads: &mut [Load],
    start: &[u64],
    elapsed: SpanNs,
    duration: Option<SpanNs>,
) -> String {
    let mut line = minutes(elapsed);
    if let Some(duration) = duration {
        let _ = write!(line, " / {}", minutes(duration));
    }
    for (i, (load, start)) in loads.iter_mut().zip(start).enumerate() {
        let done = load.status().work.saturating_sub(*start);
        let unit = load.spec().unit();
        let name = clean(&load.spec().to_string(), 20);
        line += if i == 0 { "  " } else { " · " };
        line += &name;
        if load.spec().counts_work() {
            let per_second = done as f64 * 1e9 / elapsed.0.max(1) as f64;
            let _ = write!(line, " {}/s", rate(per_second, unit));
        }
    }
    clean(&line, WIDTH)
}

/// `0:07`, `75:00`.
fn minutes(span: SpanNs) -> String {
    let seconds = span.0 / 1_000_000_000;
    format!("{}:{:02}", grouped(seconds / 60), seconds % 60)
}

fn outcome(results: &[LoadResult], remedies: Vec<Option<String>>) -> Result<Outcome, Failure> {
    match results.iter().zip(remedies).find(|(result, _)| !result.alive) {
        None => all_saved(results).map(|()| Outcome::Done),
        Some((dead, remedy)) => {
            let (load, fault) = (dead.name.clone(), dead.fault_with_last_words());
            Err(failure_of(LoadError::Died { load, fault, remedy }))
        }
    }
}

/// What helps where a log is not whole.
const SAVE_MORE: &str = "free some space, name another file: WAKESCOPE_DISTURBANCES=FILE, or disturb for a shorter time";

fn all_saved(results: &[LoadResult]) -> Result<(), Failure> {
    let Some((load, cause)) =
        results.iter().find_map(|load| Some((load, load.not_saved.as_ref()?)))
    else {
        return Ok(());
    };
    let (name, cause) = (clean(&load.name, 80), clean(cause, 300));
    Err(Failure::new(format!(
        "the log of the load `{name}` could not be saved completely: {cause}"
    ))
    .try_this(SAVE_MORE))
}

/// What a load did. A record of a run has a rate of 0 where nothing is counted from which there could be one.
fn json_of(result: &LoadResult, has_rate: bool) -> serde_json::Value {
    let mut result = json!(result);
    if !has_rate {
        result["per_second"] = serde_json::Value::Null;
    }
    result
}

fn json_of_left_out(left_out: &LeftOut) -> serde_json::Value {
    let LeftOut { part, of, reason } = left_out;
    json!({ "part": part, "of": of, "reason": reason })
}

/// Whether no process could be started for a load. One that could start no threads tells the remedy itself.
pub(crate) fn load_lacks_threads(error: &LoadError) -> bool {
    matches!(error, LoadError::Start { source, .. } if lacks_threads(source))
}

fn failure_of(e: LoadError) -> Failure {
    let failure = Failure::new(clean(&e.to_string(), 400));
    if let Some(remedy) = e.remedy() {
        return failure.try_this(remedy);
    }
    if load_lacks_threads(&e) {
        return failure.lacking_threads(None);
    }
    let needs_directory = match &e {
        LoadError::Start { load, .. }
        | LoadError::Died { load, .. }
        | LoadError::NotReady { load, .. } => {
            load.parse().is_ok_and(|spec: Spec| spec.needs_directory())
        }
        LoadError::OneLog { .. } => false,
    };
    if needs_directory {
        return failure.try_this("use another directory: --dir DIR");
    }
    failure
}

/// Be the process that a load runs in
#[derive(clap::Args)]
pub(crate) struct KeeperArgs {
    spec: String,
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    seed: u64,
}

/// Runs the hidden verb `load-keeper`.
pub(crate) fn run_keeper(args: &KeeperArgs) -> Result<Outcome, Failure> {
    let spec = args.spec.parse::<Spec>().map_err(|e| Failure::new(clean(&e.to_string(), 300)))?;
    keep(&spec, &args.dir, args.seed, write_file)
        .map_err(|e| Failure::new(format!("cannot run the load `{spec}`: {e}")))?;
    Ok(Outcome::Done)
}

/// Writes `text` to a file that the user named.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let mut output = create_output(path)?;
    output.write_all(text.as_bytes())?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_in_minutes_and_seconds() {
        for (seconds, want) in [(0, "0:00"), (7, "0:07"), (4500, "75:00"), (180_000, "3,000:00")] {
            assert_eq!(minutes(SpanNs(seconds * 1_000_000_000)), want);
        }
    }

    #[test]
    fn the_keeper_has_the_name_that_its_parent_calls() {
        let command = crate::command();
        let verb = command.find_subcommand(wakescope_probe::load::KEEPER_VERB).unwrap();
        assert!(verb.is_hide_set());
    }
}
