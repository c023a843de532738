//! The scenario that a command is given: one that comes with wakescope, or a file.

use std::path::{Path, PathBuf};

use wakescope_core::distribution::Distribution;
use wakescope_core::run::Run;
use wakescope_model::Scenario;
use wakescope_model::scenario::length::Bucket;
use wakescope_model::scenario::{ReadError, SHIPPED, Shipped, limits};
use wakescope_report::style::clean;
use wakescope_sys::input::open_input_or_pipe;

use crate::input::read_whole;
use crate::{Failure, runs};

/// Reads the scenario that the user named.
pub(super) fn read(named: &str) -> Result<Scenario, Failure> {
    let (file, text) = text_of(named)?;
    Scenario::read(&file, &text, &lengths_of_run).map_err(|e| failure_of_scenario(&e))
}

/// The file of a scenario, as errors name it, and its text.
pub(super) fn text_of(named: &str) -> Result<(String, String), Failure> {
    if let Some(shipped) = Shipped::named(named) {
        return Ok((format!("{named}.toml"), shipped.text.to_owned()));
    }
    let path = PathBuf::from(named);
    let opened = open_input_or_pipe(&path).map_err(|e| missing(named, &path, &e))?;
    let cannot_read = |e: std::io::Error| Failure::new(format!("cannot read {named}: {e}"));
    // The reader refuses what is larger, with its place.
    let largest = limits::FILE as u64 + 1;
    let bytes = read_whole(opened, largest).map_err(cannot_read)?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Failure::new(format!("cannot read {named}: byte {at} begins no character of UTF-8"))
            .try_this("write the scenario as UTF-8; docs/model/scenarios.md describes it")
    })?;
    Ok((named.to_owned(), text))
}

fn missing(named: &str, path: &Path, e: &std::io::Error) -> Failure {
    let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
    let is_name = path.extension().is_none() && path.components().count() == 1;
    if is_name && e.kind() == std::io::ErrorKind::NotFound {
        Failure::new(format!("there is no scenario named {named}, and no such file"))
            .because(format!("wakescope comes with {}", names.join(", ")))
            .try_this("list the scenarios: wakescope model list")
    } else {
        Failure::new(format!("cannot read the scenario {named}: {e}"))
            .try_this("name a file, or a scenario of `wakescope model list`")
    }
}

/// Why a file is no scenario: file, line, column, what was found and what was expected.
pub(super) fn failure_of_scenario(e: &ReadError) -> Failure {
    Failure::new(clean(&e.to_string(), 600)).try_this(e.remedy())
}

/// What a scenario takes of a run: the lengths of one of its histograms.
fn lengths_of_run(run: &str, of: &str) -> Result<Vec<Bucket>, String> {
    let run = runs::read(Path::new(run)).map_err(|failure| {
        let text = failure.to_string();
        let first = text.lines().next().unwrap_or_default();
        first.strip_prefix("wakescope: ").unwrap_or(first).to_owned()
    })?;
    let histogram = distribution(&run, of)?.histogram;
    let bucket = |of: &wakescope_core::histogram::Bucket| Bucket {
        lower: of.lower,
        upper: of.upper,
        count: of.count,
    };
    Ok(histogram.buckets().iter().map(bucket).collect())
}

/// The lengths of this name in a run.
fn distribution(run: &Run, of: &str) -> Result<Distribution, String> {
    if of == "wakeup_latency" {
        return Ok(run.woken());
    }
    let parts = run.components.as_ref();
    let part = match of {
        "irq_latency" => parts.map(|parts| &parts.irq_latency),
        "handler_duration" => parts.map(|parts| &parts.handler_duration),
        "sched_latency" => parts.map(|parts| &parts.sched_latency),
        "sched_duration" => parts.and_then(|parts| parts.sched_duration.as_ref()),
        _ => {
            return Err(
                "expected wakeup_latency, irq_latency, handler_duration, sched_latency or \
                 sched_duration"
                    .into(),
            );
        }
    };
    part.cloned().ok_or_else(|| "the run was not explained, so it has no components".into())
}
