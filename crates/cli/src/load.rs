//! `wakescope load`

use crate::{Failure, Outcome};

/// Run a load by itself
#[derive(clap::Args)]
pub(crate) struct LoadArgs {}

/// Runs `wakescope load`.
pub(crate) fn run(_args: &LoadArgs) -> Result<Outcome, Failure> {
    Ok(Outcome::Done)
}
