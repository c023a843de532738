//! `wakescope check`

use crate::{Failure, Outcome};

/// What kernel and machine is this: preemption model with evidence, and what can be measured here
#[derive(clap::Args)]
pub(crate) struct CheckArgs {}

/// Runs `wakescope check`.
pub(crate) fn run(_args: &CheckArgs) -> Result<Outcome, Failure> {
    Ok(Outcome::Done)
}
