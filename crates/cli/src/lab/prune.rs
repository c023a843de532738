//! `wakescope lab prune`

use std::fs;
use wakescope_core::units::counted;

use wakescope_lab::leftovers::leftovers;
use wakescope_lab::store::CellStore;

use super::waiting::megabytes;
use super::{cache, failure_of_store};
use crate::size::size;
use crate::{Failure, Outcome, output};

/// Shrink the cache: remove the least recently used cells
///
/// Also removes guest images that no remaining cell uses. Kernels and the emulator stay. Only this
/// command removes cells; a removed cell is run again when it is needed.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab prune --keep 200MB
  wakescope lab prune --keep 0")]
pub(super) struct PruneArgs {
    /// Disk space that cells may use: 500MB, 2GB; 0 removes all
    #[arg(long, value_name = "SIZE", value_parser = size)]
    keep: u64,
}

/// Runs `wakescope lab prune`.
pub(super) fn run(args: &PruneArgs) -> Result<Outcome, Failure> {
    let cache = cache()?;
    let store = CellStore::open(&cache.cells()).map_err(|e| failure_of_store(&e))?;
    let pruned = store.prune(args.keep).map_err(|e| failure_of_store(&e))?;
    let mut images = (0, 0);
    for file in leftovers(&cache, &store).map_err(|e| failure_of_store(&e))? {
        if fs::remove_file(&file.path).is_ok() {
            images = (images.0 + 1, images.1 + file.bytes);
        }
    }
    let (removed, kept) = (pruned.removed, pruned.kept);
    output::print(&format!(
        "Removed: {} ({}), {} ({}). Kept: {} ({}).\n",
        counted(removed.cells as u64, "cell"),
        megabytes(removed.bytes),
        counted(images.0, "image"),
        megabytes(images.1),
        counted(kept.cells as u64, "cell"),
        megabytes(kept.bytes)
    ))?;
    Ok(Outcome::Done)
}
