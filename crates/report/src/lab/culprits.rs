//! What held up the latest wakeup of each place in the table, where guests explained it.

use wakescope_core::lab::{Arm, Cell};
use wakescope_core::run::TimeDomain;

use super::matrix::{Matrix, Place};
use super::names;
use crate::domain;
use crate::explain::because_of;

/// More than a table has places that anybody reads.
const MOST: usize = 200;

/// A line for each place of the table of which a wakeup was explained: of all seeds, the one with the
/// latest wakeup, which may be another one.
pub(super) fn lines(matrix: &Matrix) -> Vec<String> {
    let explained = |place: &&Place| place.measured().any(|cell| cell.culprit.is_some());
    let worst: Vec<&Cell> = matrix.places().filter(explained).filter_map(Place::worst).collect();
    let mut lines: Vec<String> = worst.iter().copied().take(MOST).map(line).collect();
    if worst.len() > MOST {
        lines.push(format!("and {} more: --json has them", worst.len() - MOST));
    }
    lines
}

/// `6.1-cloud/full, find: 338 virtual µs late (seed 2): 331 virtual µs interrupts off in dir_scan`
fn line(worst: &Cell) -> String {
    let arm = Arm { kernel: worst.kernel.clone(), asked: worst.asked.clone() };
    let late = worst.max_ns.map(|ns| domain::span(ns, TimeDomain::Virtual)).unwrap_or_default();
    let why = because_of(worst.culprit.as_ref(), TimeDomain::Virtual);
    let place = format!("{}, {}", names::arm(&arm), names::load(&worst.load));
    format!("{place}: {late} late (seed {}): {why}", worst.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::explain::{Cause, Culprit, Evidence, Function, Share};
    use wakescope_core::lab::{Lab, Status};

    fn cell(load: &str, seed: u64, max_ns: u64, culprit: Option<&str>) -> Cell {
        let share = |culprit: &str| Share {
            cause: Cause::IrqOff,
            ns: max_ns - 7_000,
            culprit: Culprit::Function(Function { name: culprit.into(), module: None }),
            evidence: Evidence::Edge,
            ..Share::default()
        };
        Cell {
            kernel: "6.1-cloud".into(),
            asked: "full".into(),
            load: load.into(),
            seed,
            status: Status::Ok,
            max_ns: Some(max_ns),
            culprit: culprit.map(share),
            ..Cell::default()
        }
    }

    #[test]
    fn the_seed_with_the_latest_wakeup_tells() {
        let cells = vec![
            cell("find", 1, 238_000, Some("uart_drain_fifo")),
            cell("find", 2, 338_000, Some("\u{1b}[31mdir_scan")),
            cell("find", 3, 138_000, Some("x")),
            cell("launch", 1, 900_000, None),
        ];
        let lab = Lab { cells, ..Lab::default() };
        assert_eq!(
            lines(&Matrix::of(&lab)),
            [
                "6.1-cloud/full, find: 338 virtual µs late (seed 2): 331 virtual µs interrupts off in \
              �[31mdir_scan"
            ]
        );
    }

    /// The latest of those that were explained stood in its place.
    #[test]
    fn the_latest_wakeup_is_named_also_if_it_was_not_explained() {
        let mut failed = cell("find", 3, 900_000, None);
        failed.status = Status::Failed;
        let cells = vec![
            cell("find", 1, 238_000, Some("uart_drain_fifo")),
            cell("find", 2, 500_000, None),
            failed,
        ];
        let lab = Lab { cells, ..Lab::default() };
        let want = "6.1-cloud/full, find: 500 virtual µs late (seed 2): not explained";
        assert_eq!(lines(&Matrix::of(&lab)), [want]);
    }

    #[test]
    fn a_share_that_is_only_a_bound_is_called_so() {
        let mut bounded = cell("find", 1, 238_000, Some("uart_drain_fifo"));
        bounded.culprit.as_mut().unwrap().evidence = Evidence::Bound;
        let lab = Lab { cells: vec![bounded], ..Lab::default() };
        let want = "late (seed 1): at most 231 virtual µs interrupts off in uart_drain_fifo";
        let lines = lines(&Matrix::of(&lab));
        assert!(lines[0].ends_with(want), "{lines:?}");
        let page = crate::lab::html::results(&lab, true);
        assert_eq!(page.matches("at most 231 virtual µs").count(), 1, "{page}");
    }
}
