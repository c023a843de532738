//! The bounds that guests composed, where that was asked for, beside what they observed.

use wakescope_core::explain::Unsound;
use wakescope_core::lab::{Arm, CellBound, Lab};
use wakescope_core::run::TimeDomain;

use super::matrix::{Matrix, Place};
use super::names;
use crate::domain;
use crate::explain::unsound;

/// More than anybody reads: places of the table, and reasons.
const MOST: usize = 200;
const MOST_REASONS: usize = 16;

/// A line for each place of the table, in its order: of all seeds the largest bound and the latest
/// wakeup, each. Then why bounds do not hold.
pub(super) fn lines(lab: &Lab, matrix: &Matrix) -> Vec<String> {
    let mut lines: Vec<String> = matrix.places().filter_map(line).collect();
    if let Some(more @ 1..) = lines.len().checked_sub(MOST) {
        lines.truncate(MOST);
        lines.push(format!("and {more} more: --json has them"));
    }
    lines.extend(reasons(lab));
    lines
}

/// `6.1-cloud/full, find: bound (unsound) 346 virtual µs; observed 238 virtual µs`; `None` where no cell
/// has a bound.
fn line(place: &Place) -> Option<String> {
    let with_bound = || place.cells.iter().filter_map(|cell| Some((cell, cell.bound.as_ref()?)));
    let (first, _) = with_bound().next()?;
    let arm = Arm { kernel: first.kernel.clone(), asked: first.asked.clone() };
    let sound = with_bound().all(|(_, bound)| bound.unsound.is_empty());
    let name = if sound { "bound" } else { "bound (unsound)" };
    let bounds: Option<Vec<u64>> = with_bound().map(|(_, bound)| bound.bound_ns).collect();
    // Without one of a single seed there is none of all.
    let bound = match bounds.and_then(|bounds| bounds.into_iter().max()) {
        Some(ns) => domain::span(ns, TimeDomain::Virtual),
        None => "none below a virtual second".into(),
    };
    let observed = match place.worst().and_then(|worst| worst.max_ns) {
        Some(ns) => format!("; observed {}", domain::span(ns, TimeDomain::Virtual)),
        None => String::new(),
    };
    let load = names::load(&first.load);
    let seeds = match with_bound().count() {
        1 => String::new(),
        count => format!(" (the largest of {count} seeds)"),
    };
    Some(format!("{}, {load}: {name} {bound}{observed}{seeds}", names::arm(&arm)))
}

/// Each reason once, with the number of cells that have it where others do not.
fn reasons(lab: &Lab) -> Vec<String> {
    let bounds: Vec<&CellBound> = lab.cells.iter().filter_map(|cell| cell.bound.as_ref()).collect();
    let mut reasons: Vec<(Unsound, usize)> = Vec::new();
    for &reason in bounds.iter().flat_map(|bound| bound.unsound.iter().take(MOST_REASONS)) {
        let has_room = reasons.len() < MOST_REASONS;
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None if has_room => reasons.push((reason, 1)),
            None => {}
        }
    }
    let line = |(reason, count): (Unsound, usize)| {
        let cells = match count < bounds.len() {
            true => format!(", in {count} of {} cells", bounds.len()),
            false => String::new(),
        };
        format!("unsound{cells}: {}", unsound(reason))
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use wakescope_core::explain::Cause;
    use wakescope_core::lab::{Cell, Status};

    fn cell(load: &str, max_ns: u64, bound_ns: Option<u64>, unsound: &[Unsound]) -> Cell {
        let unsound = unsound.to_vec();
        Cell {
            kernel: "6.1-cloud".into(),
            asked: "full".into(),
            load: load.into(),
            status: Status::Ok,
            max_ns: Some(max_ns),
            bound: Some(CellBound { bound_ns, unsound }),
            ..Cell::default()
        }
    }

    #[track_caller]
    fn check(cells: Vec<Cell>, want: &Expect) {
        let lab = Lab { cells, ..Lab::default() };
        want.assert_eq(&lines(&lab, &Matrix::of(&lab)).join("\n"));
    }

    #[test]
    fn nobody_asked_for_a_bound() {
        check(vec![Cell::default()], &expect![""]);
    }

    #[test]
    fn a_bound_stands_beside_what_was_observed() {
        check(
            vec![
                cell("find", 238_000, Some(346_000), &[]),
                cell("find", 240_000, Some(341_000), &[]),
                cell("launch", 12_000, Some(90_000), &[]),
            ],
            &expect![[r#"
                6.1-cloud/full, find: bound 346 virtual µs; observed 240 virtual µs (the largest of 2 seeds)
                6.1-cloud/full, launch: bound 90.0 virtual µs; observed 12.0 virtual µs"#]],
        );
    }

    /// Of cells with a bound alone, the latest looked as if it were the latest of all.
    #[test]
    fn what_was_observed_is_of_all_seeds_that_measured() {
        let mut failed = cell("find", 900_000, Some(346_000), &[]);
        (failed.status, failed.bound) = (Status::Failed, None);
        let without_bound = Cell { bound: None, ..cell("find", 500_000, None, &[]) };
        check(
            vec![cell("find", 238_000, Some(346_000), &[]), without_bound, failed],
            &expect!["6.1-cloud/full, find: bound 346 virtual µs; observed 500 virtual µs"],
        );
    }

    #[test]
    fn no_bound_looks_better_than_it_is() {
        let edges = Unsound::SectionsOfLateWakeups;
        let late = Unsound::Exceeded { cause: Some(Cause::Steal) };
        check(
            vec![
                cell("find", 238_000, Some(346_000), &[edges]),
                cell("find", 240_000, None, &[edges]),
                cell("launch", 12_000, Some(9_000), &[edges, late]),
            ],
            &expect![[r#"
                6.1-cloud/full, find: bound (unsound) none below a virtual second; observed 240 virtual µs (the largest of 2 seeds)
                6.1-cloud/full, launch: bound (unsound) 9.00 virtual µs; observed 12.0 virtual µs
                unsound: sections with interrupts or preemption off are observed only where they delayed a late wakeup: longer ones may exist
                unsound, in 1 of 3 cells: a wakeup exceeded the bound, because of a cause that the bound does not include: stolen by the hypervisor"#]],
        );
    }
}
