//! The scenario that a command is given: one that comes with wakescope, or a file.

use std::path::{Path, PathBuf};

use wakescope_model::Scenario;
use wakescope_model::scenario::{ReadError, SHIPPED, Shipped, limits};
use wakescope_report::style::clean;

use super::lengths;
use crate::Failure;
use crate::input::{read_whole, regular_or_pipe};

/// Reads the scenario that the user named.
pub(super) fn read(named: &str) -> Result<Scenario, Failure> {
    let (file, text) = text_of(named)?;
    Scenario::read(&file, &text, &lengths::of_run).map_err(|e| failure_of_scenario(&e))
}

/// The file of a scenario, as errors name it, and its text.
pub(super) fn text_of(named: &str) -> Result<(String, String), Failure> {
    if let Some(shipped) = Shipped::named(named) {
        return Ok((format!("{named}.toml"), shipped.text.to_owned()));
    }
    let path = PathBuf::from(named);
    let opened = regular_or_pipe(&path).map_err(|e| missing(named, &path, &e))?;
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
    if named.is_empty() {
        return Failure::new("the name of the scenario is empty")
            .try_this("name a file, or a scenario of `wakescope model list`");
    }
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
