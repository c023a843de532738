//! `wakescope lab prune`

use wakescope_core::units::counted;
use wakescope_lab::leftovers::{Kind, Leftover, leftovers};
use wakescope_lab::store::{CellStore, Pruned};

use super::waiting::megabytes;
use super::{cache, failure_of_store};
use crate::size::size;
use crate::{Failure, Outcome, output};

/// What each kind of leftover is called.
const KINDS: [(Kind, &str); 8] = [
    (Kind::Image, "image"),
    (Kind::Root, "root image"),
    (Kind::Symbols, "symbol table"),
    (Kind::State, "saved machine"),
    (Kind::Module, "module"),
    (Kind::Plugin, "plugin"),
    (Kind::Headers, "header folder"),
    (Kind::Note, "build note"),
];

/// Shrink the cache: remove the least recently used cells
///
/// Also removes guest images, root images, saved machines and symbols of kernels that no remaining cell uses, modules and
/// plugins of other versions of wakescope, and what modules were built with. Those younger than an hour stay,
/// since a lab that has just begun may need them; --keep 0 also removes young saved machines. Kernels and the emulator
/// stay. Nothing else removes anything from the cache, except saved machines that exceed 2 GiB. A removed entry is run,
/// built or downloaded again when it is needed.
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
    let found = leftovers(&cache, &store).map_err(|e| failure_of_store(&e))?;
    let (mut removed, young): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|leftover| is_to_go(leftover, args.keep));
    // What cannot be removed is not said to be.
    removed.retain(|leftover| leftover.remove(&cache).is_ok());
    output::print(&message(&pruned, &removed, &young))?;
    Ok(Outcome::Done)
}

/// Whether a leftover is to be removed where cells may take `keep` bytes. A lab at work does without a saved machine:
/// it has read it already, or boots.
fn is_to_go(leftover: &Leftover, keep: u64) -> bool {
    !leftover.is_young || (keep == 0 && leftover.kind == Kind::State)
}

/// What became of cells and leftovers, in sentences.
fn message(pruned: &Pruned, removed: &[Leftover], young: &[Leftover]) -> String {
    let of = |found: &[Leftover], (kind, word): (Kind, &str)| {
        let of_kind: Vec<u64> =
            found.iter().filter(|leftover| leftover.kind == kind).map(|l| l.bytes).collect();
        let count = counted(of_kind.len() as u64, word);
        format!("{count} ({})", megabytes(of_kind.iter().sum()))
    };
    let cells = |cells: u64, bytes| format!("{} ({})", counted(cells, "cell"), megabytes(bytes));
    let Pruned { removed: gone, kept } = pruned;
    let of_removed: Vec<String> = KINDS.map(|kind| of(removed, kind)).into();
    let mut text = format!(
        "Removed: {}, {}. Kept: {}.",
        cells(gone.cells as u64, gone.bytes),
        of_removed.join(", "),
        cells(kept.cells as u64, kept.bytes)
    );
    let is_there = |(kind, _): &(Kind, &str)| young.iter().any(|leftover| leftover.kind == *kind);
    let of_young = KINDS.into_iter().filter(is_there).map(|kind| of(young, kind));
    let of_young: Vec<String> = of_young.collect();
    if !of_young.is_empty() {
        text += &format!(" Kept, since younger than an hour: {}.", of_young.join(", "));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use wakescope_lab::store::Size;

    use super::*;

    fn leftover(kind: Kind, is_young: bool) -> Leftover {
        Leftover { kind, path: "x".into(), bytes: 119_000_000, is_young }
    }

    #[test]
    fn young_leftovers_stay_but_for_saved_machines_where_nothing_is_to_be_kept() {
        for (kind, is_young, keep, want) in [
            (Kind::State, false, 1, true),
            (Kind::State, true, 1, false),
            (Kind::State, true, 0, true),
            (Kind::Image, true, 0, false),
            (Kind::Image, false, 0, true),
        ] {
            assert_eq!(is_to_go(&leftover(kind, is_young), keep), want, "{kind:?} {keep}");
        }
    }

    #[test]
    fn what_is_kept_for_its_age_is_said() {
        let pruned = Pruned { removed: Size { cells: 1, bytes: 50_000 }, kept: Size::default() };
        let removed = [leftover(Kind::State, true), leftover(Kind::State, true)];
        let text = message(&pruned, &removed, &[]);
        assert_eq!(
            text,
            "Removed: 1 cell (0.1 MB), 0 images (0.0 MB), 0 root images (0.0 MB), 0 symbol tables (0.0 MB), \
             2 saved machines (238 MB), 0 modules (0.0 MB), 0 plugins (0.0 MB), 0 header folders (0.0 MB), \
             0 build notes (0.0 MB). \
             Kept: 0 cells (0.0 MB).\n"
        );
        let text =
            message(&pruned, &[], &[leftover(Kind::State, true), leftover(Kind::Image, true)]);
        let young =
            " Kept, since younger than an hour: 1 image (119 MB), 1 saved machine (119 MB).\n";
        assert!(text.ends_with(young), "{text}");
    }
}
