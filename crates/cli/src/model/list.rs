//! `wakescope model list` and `wakescope model show`

use wakescope_model::scenario::SHIPPED;
use wakescope_report::table::columns;

use super::scenario::{failure_of_scenario, text_of};
use crate::{Failure, Outcome, output};

/// List the scenarios that come with wakescope
#[derive(clap::Args)]
pub(super) struct ListArgs {}

/// Print the file of a scenario, as a start for one of your own
#[derive(clap::Args)]
pub(super) struct ShowArgs {
    /// A scenario of `wakescope model list`, or a file
    #[arg(value_name = "SCENARIO")]
    scenario: String,
}

/// Runs `wakescope model list`.
pub(super) fn list(_: &ListArgs) -> Result<Outcome, Failure> {
    let mut rows = Vec::new();
    for shipped in SHIPPED {
        let scenario = shipped.read().map_err(|e| failure_of_scenario(&e))?;
        rows.push(vec![shipped.name.to_owned(), scenario.about]);
    }
    let width = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
    // Sentences are aligned to the left: all cells of the column are padded to one width.
    let lines = rows.iter().map(|row| vec![format!("{:width$}  {}", row[0], row[1])]);
    output::print(&columns(&lines.collect::<Vec<_>>(), true))?;
    Ok(Outcome::Done)
}

/// Runs `wakescope model show`.
pub(super) fn show(args: &ShowArgs) -> Result<Outcome, Failure> {
    output::print(&text_of(&args.scenario)?.1)?;
    Ok(Outcome::Done)
}
