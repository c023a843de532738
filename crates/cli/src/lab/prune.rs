//! `wakescope lab prune`

use wakescope_core::units::counted;
use wakescope_lab::leftovers::{Kind, leftovers};
use wakescope_lab::store::CellStore;

use super::waiting::megabytes;
use super::{cache, failure_of_store};
use crate::size::size;
use crate::{Failure, Outcome, output};

/// Shrink the cache: remove the least recently used cells
///
/// Also removes guest images, root images, saved machines and symbols of kernels that no remaining cell uses, modules and
/// plugins of other versions of wakescope, and what modules were built with. Kernels and the emulator stay. Nothing else
/// removes anything from the cache, except saved machines that exceed 2 GiB. What is removed is run, built or
/// downloaded again when it is needed.
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
    let mut found = leftovers(&cache, &store).map_err(|e| failure_of_store(&e))?;
    // What cannot be removed is not said to be.
    found.retain(|leftover| leftover.remove(&cache).is_ok());
    let (removed, kept) = (pruned.removed, pruned.kept);
    let of = |kind, word| {
        let of_kind = || found.iter().filter(move |leftover| leftover.kind == kind);
        let count = of_kind().count() as u64;
        format!("{} ({})", counted(count, word), megabytes(of_kind().map(|l| l.bytes).sum()))
    };
    output::print(&format!(
        "Removed: {} ({}), {}, {}, {}, {}, {}, {}, {}. Kept: {} ({}).\n",
        counted(removed.cells as u64, "cell"),
        megabytes(removed.bytes),
        of(Kind::Image, "image"),
        of(Kind::Root, "root image"),
        of(Kind::Symbols, "symbol table"),
        of(Kind::State, "saved machine"),
        of(Kind::Module, "module"),
        of(Kind::Plugin, "plugin"),
        of(Kind::Headers, "header folder"),
        counted(kept.cells as u64, "cell"),
        megabytes(kept.bytes)
    ))?;
    Ok(Outcome::Done)
}
