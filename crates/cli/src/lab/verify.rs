//! `wakescope lab verify`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};
use wakescope_lab::cell::{Again, Emulation};
use wakescope_lab::farm::{End, Event, Repeated, Standing, Verification, Verified, verify};
use wakescope_lab::matrix::{LabError, Phase};
use wakescope_lab::store::{CellStore, Key};
use wakescope_report::style::clean;

use super::emulators::emulators;
use super::run::failure_of_lab;
use super::showing::Showing;
use super::waiting::Waiting;
use super::{cache, failure_of_store, parallel, parse_positive};
use crate::{Failure, Outcome, output};

/// Repeat cached cells, and fail if a bit differs
///
/// Exit codes: 0 all cells repeat to the bit; 1 a cell differs; 2 a cached cell is damaged or
/// cannot be run again, or the host cannot go on (a full disk); 3 there are no cells that must
/// repeat, or the command was interrupted.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  wakescope lab verify
  wakescope lab verify --at-most 10")]
pub(super) struct VerifyArgs {
    /// Keys of cells, or their first digits (default: all). The key is the name of the cell's
    /// folder. A cell named twice is run once
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    /// Run at most this many cells, spread evenly over all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_most: Option<u32>,

    /// Number of guests to run in parallel (default: one per CPU)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// The emulator, QEMU 8 or newer (default: the fetched one, else the installed one)
    #[arg(long, value_name = "PROGRAM")]
    qemu: Option<PathBuf>,

    /// Host time after which a guest is stopped
    #[arg(long, value_name = "TIME", default_value = "30min", value_parser = parse_positive)]
    timeout: SpanNs,
}

/// Runs `wakescope lab verify`.
pub(super) fn run(args: &VerifyArgs) -> Result<Outcome, Failure> {
    let cache = cache()?;
    let store = CellStore::open(&cache.cells()).map_err(|e| failure_of_store(&e))?;
    let keys = store.keys().map_err(|e| failure_of_store(&e))?;
    let keys = spread(distinct(named(&args.keys, keys)?), args.at_most);
    let again = Again::new(&cache, emulators(args.qemu.as_deref(), &cache)?, args.timeout);
    let mut showing = Showing::new(Waiting::new()?);
    let mut watch =
        |event: Event<'_>, standing: &Standing| showing.attend(Phase::Repeating, &event, standing);
    let prepare = |cell: &_| again.job(cell).map_err(Repeated::from);
    let runner = Emulation::new(&cache);
    let done = verify(&keys, parallel(args.jobs), &store, &prepare, &runner, &mut watch);
    drop(showing);
    let Verification { cells, end } = done.map_err(|e| failure_of_store(&e))?;
    output::print(&report(&cells))?;
    let outcome = outcome(&cells, &end);
    if let End::Broken(e) = end {
        output::complain(&failure_of_lab(&LabError::Farm(e)));
    }
    Ok(outcome)
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
            (None, _) => Err(Failure::new(format!("no cell has the key {}", clean(text, 80)))
                .try_this(
                    "a key is the name of a cell's folder in the cache; omit all keys to verify \
                     every cell",
                )),
            _ => Err(Failure::new(format!("several keys begin with {}", clean(text, 80)))
                .try_this("give more digits")),
        }
    };
    texts.iter().map(find).collect()
}

/// Each of `keys` once, in the order in which they first stand there.
fn distinct(keys: Vec<Key>) -> Vec<Key> {
    let mut seen = BTreeSet::new();
    keys.into_iter().filter(|key| seen.insert(key.clone())).collect()
}

fn spread(keys: Vec<Key>, at_most: Option<u32>) -> Vec<Key> {
    let most = at_most.map_or(keys.len(), |most| usize::try_from(most).unwrap_or(usize::MAX));
    let step = keys.len().div_ceil(most.max(1)).max(1);
    keys.into_iter().step_by(step).collect()
}

fn report(cells: &[Verified]) -> String {
    let mut text = summary(cells);
    for cell in cells {
        let what = match &cell.repeated {
            Repeated::Same | Repeated::FailedAgain | Repeated::NotPromised(_) => continue,
            Repeated::Differs(difference) => format!("differs: {difference}"),
            Repeated::Damaged(why) => {
                format!("is damaged, and will be run again when it is needed: {why}")
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

/// How many cells were run again, and how many of these repeated.
fn summary(cells: &[Verified]) -> String {
    let count = |is: fn(&Repeated) -> bool| cells.iter().filter(|c| is(&c.repeated)).count() as u64;
    let same = count(|r| matches!(r, Repeated::Same));
    let failed = count(|r| matches!(r, Repeated::FailedAgain));
    let differ = count(|r| matches!(r, Repeated::Differs(_)));
    let mut text = String::new();
    if differ > 0 {
        let (differ, all) = (grouped(differ), cells_run_again(same + failed + differ));
        let _ = writeln!(text, "{all}, and {differ} did not repeat to the bit.");
    } else if same > 0 {
        let _ = writeln!(text, "{} and repeated to the bit.", cells_run_again(same));
    }
    if failed > 0 {
        let again = cells_run_again(failed);
        let _ = writeln!(
            text,
            "{again} and failed again in the same way; failed cells have no bits to compare."
        );
    }
    if text.is_empty() {
        text.push_str("No cell was run again.\n");
    }
    let several = count(|r| matches!(r, Repeated::NotPromised(_)));
    if several > 0 {
        let (have, were) =
            (one_or_many(several, "has", "have"), one_or_many(several, "was", "were"));
        let cells = counted(several, "cell");
        let _ = writeln!(
            text,
            "{cells} {have} several CPUs, whose bits need not repeat, and {were} not run again."
        );
    }
    text
}

fn cells_run_again(count: u64) -> String {
    format!("{} {} run again", counted(count, "cell"), one_or_many(count, "was", "were"))
}

/// A difference stays one, whatever kept other cells from being run.
fn outcome(cells: &[Verified], end: &End) -> Outcome {
    let any = |is: fn(&Repeated) -> bool| cells.iter().any(|cell| is(&cell.repeated));
    if any(|r| matches!(r, Repeated::Differs(_))) {
        Outcome::Failed
    } else if any(|r| matches!(r, Repeated::Damaged(_) | Repeated::CannotRun(_)))
        || matches!(end, End::Broken(_))
    {
        Outcome::Undone
    } else if any(|r| matches!(r, Repeated::NotRun))
        || !any(|r| matches!(r, Repeated::Same | Repeated::FailedAgain))
    {
        Outcome::Inconclusive
    } else {
        Outcome::Done
    }
}

#[cfg(test)]
mod tests {
    use wakescope_lab::farm::{Difference, FarmError};
    use wakescope_lab::store::Label;

    use super::*;

    fn key(digit: char) -> Key {
        digit.to_string().repeat(64).parse().expect("64 digits are a key")
    }

    #[track_caller]
    fn check(repeated: &[Repeated], want: &str) {
        let cells = repeated.iter().map(|repeated| Verified {
            key: key('1'),
            label: Label::default(),
            repeated: repeated.clone(),
        });
        assert_eq!(summary(&cells.collect::<Vec<_>>()), want);
    }

    #[test]
    fn a_host_that_cannot_go_on_is_an_error_unless_a_cell_differs() {
        let broken = || End::Broken(FarmError::Thread(std::io::ErrorKind::WouldBlock.into()));
        let difference = Difference {
            file: "run.json".into(),
            place: "seed".into(),
            stored: None,
            repeated: None,
        };
        for (repeated, end, want) in [
            (Repeated::NotRun, End::Stopped, Outcome::Inconclusive),
            (Repeated::NotRun, broken(), Outcome::Undone),
            (Repeated::Same, End::Complete, Outcome::Done),
            (Repeated::Same, broken(), Outcome::Undone),
            (Repeated::NotPromised("2 CPUs".into()), End::Complete, Outcome::Inconclusive),
            (Repeated::Differs(difference), broken(), Outcome::Failed),
        ] {
            let cell = Verified { key: key('1'), label: Label::default(), repeated };
            assert_eq!(outcome(std::slice::from_ref(&cell), &end), want, "{cell:?} {end:?}");
        }
    }

    #[test]
    fn only_what_was_run_again_is_counted() {
        use Repeated::{CannotRun, Differs, FailedAgain, NotPromised, NotRun, Same};
        let gone = || CannotRun("its kernel was removed".into());
        let differs = Differs(Difference {
            file: "run.json".into(),
            place: "threads[0].woken.max_ns".into(),
            stored: Some("1".into()),
            repeated: Some("2".into()),
        });
        check(&[], "No cell was run again.\n");
        check(&[NotRun, gone()], "No cell was run again.\n");
        check(&[NotRun, Same, gone()], "1 cell was run again and repeated to the bit.\n");
        check(&[Same, Same], "2 cells were run again and repeated to the bit.\n");
        let failed = "1 cell was run again and failed again in the same way; failed cells have no bits to compare.\n";
        check(&[FailedAgain], failed);
        check(
            &[Same, FailedAgain, Same],
            &format!("2 cells were run again and repeated to the bit.\n{failed}"),
        );
        let several = || NotPromised("its machine has 2 CPUs".into());
        let not = "1 cell has several CPUs, whose bits need not repeat, and was not run again.\n";
        check(&[several()], &format!("No cell was run again.\n{not}"));
        let not =
            "2 cells have several CPUs, whose bits need not repeat, and were not run again.\n";
        let same = "1 cell was run again and repeated to the bit.\n";
        check(&[several(), Same, several()], &format!("{same}{not}"));
        let text = "3 cells were run again, and 1 did not repeat to the bit.\n";
        check(&[Same, differs, Same, gone()], text);
    }

    #[test]
    fn a_cell_that_is_named_more_than_once_counts_once() {
        let all = vec![key('a'), key('b')];
        let named = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
            distinct(named(&texts, all.clone()).expect("each is one cell"))
        };
        assert_eq!(named(&["b", "b", "a", "bb", "a"]), [key('b'), key('a')]);
        assert_eq!(named(&[]), all);
        let spread = |most| spread(named(&["b", "bb", "bbb", "a"]), Some(most)).len();
        assert_eq!((spread(1), spread(2), spread(9)), (1, 2, 2));
    }
}
