//! What held up the latest wakeup of each place in the table, where guests explained it.

use std::cmp::Reverse;

use wakescope_core::lab::{Arm, Cell, Lab};
use wakescope_core::run::TimeDomain;

use super::names;
use crate::domain;
use crate::explain::because_of;

/// More than a table has places that anybody reads.
const MOST: usize = 200;

/// A line for each place of the table, in its order: of all seeds, the one with the latest wakeup.
pub(super) fn lines(lab: &Lab) -> Vec<String> {
    let mut places: Vec<(&Cell, u64)> = Vec::new();
    for cell in lab.cells.iter().filter(|cell| cell.culprit.is_some()) {
        let Some(max_ns) = cell.max_ns else { continue };
        match places.iter_mut().find(|(other, _)| cell.is_same_place(other)) {
            Some(worst) if Reverse(max_ns) < Reverse(worst.1) => *worst = (cell, max_ns),
            Some(_) => {}
            None => places.push((cell, max_ns)),
        }
    }
    let line = |&(cell, max_ns): &(&Cell, u64)| {
        let arm = Arm { kernel: cell.kernel.clone(), asked: cell.asked.clone() };
        let share = because_of(cell.culprit.as_ref(), TimeDomain::Virtual);
        let whole = domain::span(max_ns, TimeDomain::Virtual);
        let place = format!("{}, {}", names::arm(&arm), names::load(&cell.load));
        Some(format!("{place}: {whole} late (seed {}): {share}", cell.seed))
    };
    let mut lines: Vec<String> = places.iter().filter_map(line).take(MOST).collect();
    if places.len() > MOST {
        lines.push(format!("and {} more: --json has them", places.len() - MOST));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::explain::{Cause, Culprit, Evidence, Function, Share};
    use wakescope_core::lab::Status;

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
            lines(&lab),
            [
                "6.1-cloud/full, find: 338 virtual µs late (seed 2): 331 virtual µs interrupts off in \
              �[31mdir_scan"
            ]
        );
    }

    #[test]
    fn a_share_that_is_only_a_bound_is_called_so() {
        let mut bounded = cell("find", 1, 238_000, Some("uart_drain_fifo"));
        bounded.culprit.as_mut().unwrap().evidence = Evidence::Bound;
        let lab = Lab { cells: vec![bounded], ..Lab::default() };
        let want = "late (seed 1): at most 231 virtual µs interrupts off in uart_drain_fifo";
        let lines = lines(&lab);
        assert!(lines[0].ends_with(want), "{lines:?}");
        let page = crate::lab::html::results(&lab, true);
        assert_eq!(page.matches("at most 231 virtual µs").count(), 1, "{page}");
    }
}
