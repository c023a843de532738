//! `wakescope lab verify`

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use wakescope_core::units::{SpanNs, counted, grouped};
use wakescope_lab::cell::{Again, Emulation};
use wakescope_lab::farm::{Event, Repeated, Standing, Verified, verify};
use wakescope_lab::kernel::Arch;
use wakescope_lab::matrix::Phase;
use wakescope_lab::qemu::Qemu;
use wakescope_lab::store::{CellStore, Key};
use wakescope_lab::sum::Memo;
use wakescope_report::style::clean;

use super::showing::Showing;
use super::waiting::Waiting;
use super::{cache, failure_of_store, parallel};
use crate::{Failure, Outcome, output};

/// Run cells that are kept once more, and fail if a bit differs
///
/// Exit: 0 if all repeat to the bit, 1 if one does not, 2 if a kept cell is damaged or cannot be run
/// again, 3 if there is none, or it was ended before the last.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab verify
  wakescope lab verify --at-most 10")]
pub(super) struct VerifyArgs {
    /// Cells by their key, or its first digits: the names of their folders (default: all)
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    /// Run no more than that many, spread evenly over all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_most: Option<u32>,

    /// Guests to run side by side (default: one per CPU)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// The emulator (default: the lab's own, or the machine's)
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,

    /// The most time of this machine that a guest may take
    #[arg(long, value_name = "TIME", default_value = "30min")]
    timeout: SpanNs,
}

/// Runs `wakescope lab verify`.
pub(super) fn run(args: &VerifyArgs) -> Result<Outcome, Failure> {
    let cache = cache()?;
    let store = CellStore::open(&cache.cells()).map_err(|e| failure_of_store(&e))?;
    let keys = store.keys().map_err(|e| failure_of_store(&e))?;
    let keys = spread(named(&args.keys, keys)?, args.at_most);
    let mut memo = Memo::open(&cache);
    let find = |arch| Qemu::find(arch, args.qemu.as_deref(), &cache, &mut memo).ok();
    let emulators: Vec<_> = Arch::ALL.into_iter().filter_map(find).map(Arc::new).collect();
    let again = Again::new(&cache, emulators, args.timeout);
    let mut showing = Showing::new(Waiting::new()?);
    let mut watch = |event: Event<'_>, standing: &Standing| {
        if showing.attend(Phase::Repeating, &event, standing) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let prepare = |cell: &_| again.job(cell);
    let done = verify(&keys, parallel(args.jobs), &store, &prepare, &Emulation, &mut watch);
    drop(showing);
    let cells = done.map_err(|e| failure_of_store(&e))?.cells;
    output::print(&report(&cells))?;
    Ok(outcome(&cells))
}

/// Those of `all` that `texts` name; all, if none is named.
fn named(texts: &[String], all: Vec<Key>) -> Result<Vec<Key>, Failure> {
    if texts.is_empty() {
        return Ok(all);
    }
    let find = |text: &String| {
        let mut found = all.iter().filter(|key| key.as_str().starts_with(text.as_str()));
        match (found.next(), found.next()) {
            (Some(key), None) => Ok(key.clone()),
            (None, _) => Err(Failure::new(format!("no cell is called {}", clean(text, 80)))
                .try_this("their keys are the names of folders in the cache; leave them out to verify all")),
            _ => Err(Failure::new(format!("several cells begin with {}", clean(text, 80)))
                .try_this("give more digits")),
        }
    };
    texts.iter().map(find).collect()
}

fn spread(keys: Vec<Key>, at_most: Option<u32>) -> Vec<Key> {
    let most = at_most.map_or(keys.len(), |most| usize::try_from(most).unwrap_or(usize::MAX));
    let step = keys.len().div_ceil(most.max(1)).max(1);
    keys.into_iter().step_by(step).collect()
}

fn report(cells: &[Verified]) -> String {
    let count = |is: fn(&Repeated) -> bool| cells.iter().filter(|c| is(&c.repeated)).count() as u64;
    let same = count(|r| matches!(r, Repeated::Same));
    let differ = count(|r| matches!(r, Repeated::Differs(_)));
    let mut text = match (same, differ) {
        (0, 0) => "No cell was repeated.\n".to_string(),
        (_, 0) => format!("{} repeated to the bit.\n", cells_in_words(same)),
        (_, _) => format!(
            "{} of {} did not repeat to the bit.\n",
            grouped(differ),
            cells_in_words(same + differ)
        ),
    };
    for cell in cells {
        let what = match &cell.repeated {
            Repeated::Same => continue,
            Repeated::Differs(difference) => format!("differs: {difference}"),
            Repeated::Damaged(why) => {
                format!("is damaged, and is run again when it is needed: {why}")
            }
            Repeated::CannotRun(why) => format!("cannot be run again: {why}"),
            Repeated::NotRun => "was not run".into(),
        };
        let label = clean(&cell.label.to_string(), 120);
        let key = cell.key.as_str().get(..12).unwrap_or_default();
        let _ = writeln!(text, " {key} {label} {}", clean(&what, 300));
    }
    text
}

fn cells_in_words(count: u64) -> String {
    counted(count, "cell")
}

fn outcome(cells: &[Verified]) -> Outcome {
    let any = |is: fn(&Repeated) -> bool| cells.iter().any(|cell| is(&cell.repeated));
    if any(|r| matches!(r, Repeated::Differs(_))) {
        Outcome::Failed
    } else if any(|r| matches!(r, Repeated::Damaged(_) | Repeated::CannotRun(_))) {
        Outcome::Undone
    } else if cells.is_empty() || any(|r| matches!(r, Repeated::NotRun)) {
        Outcome::Inconclusive
    } else {
        Outcome::Done
    }
}
