//! The bounds that guests composed, where that was asked for, beside what they observed.

use wakescope_core::explain::Unsound;
use wakescope_core::lab::{Arm, Cell, CellBound, Lab};
use wakescope_core::run::TimeDomain;

use super::names;
use crate::domain;
use crate::explain::unsound;

/// More than anybody reads: places of the table, and reasons.
const MOST: usize = 200;
const MOST_REASONS: usize = 16;

/// All cells of one place in the table that have a bound.
struct Place<'a> {
    cells: Vec<(&'a Cell, &'a CellBound)>,
}

/// A line for each place of the table, in its order: of all seeds the largest bound and the latest
/// wakeup, each. Then why bounds do not hold.
pub(super) fn lines(lab: &Lab) -> Vec<String> {
    let places = places(lab);
    let mut lines: Vec<String> = places.iter().take(MOST).map(line).collect();
    if places.len() > MOST {
        lines.push(format!("and {} more: --json has them", places.len() - MOST));
    }
    lines.extend(reasons(lab));
    lines
}

fn places(lab: &Lab) -> Vec<Place<'_>> {
    let mut places: Vec<Place> = Vec::new();
    let with_bound = lab.cells.iter().filter_map(|cell| Some((cell, cell.bound.as_ref()?)));
    for (cell, bound) in with_bound {
        match places.iter_mut().find(|place| cell.is_same_place(place.cells[0].0)) {
            Some(place) => place.cells.push((cell, bound)),
            None => places.push(Place { cells: vec![(cell, bound)] }),
        }
    }
    places
}

/// `6.1-cloud/full, find: bound (unsound) 346 virtual µs; observed 238 virtual µs`
fn line(place: &Place) -> String {
    let (first, _) = place.cells[0];
    let arm = Arm { kernel: first.kernel.clone(), asked: first.asked.clone() };
    let sound = place.cells.iter().all(|(_, bound)| bound.unsound.is_empty());
    let name = if sound { "bound" } else { "bound (unsound)" };
    let bounds: Option<Vec<u64>> = place.cells.iter().map(|(_, bound)| bound.bound_ns).collect();
    // Without one of a single seed there is none of all.
    let bound = match bounds.and_then(|bounds| bounds.into_iter().max()) {
        Some(ns) => domain::span(ns, TimeDomain::Virtual),
        None => "none below a virtual second".into(),
    };
    let observed = match place.cells.iter().filter_map(|(cell, _)| cell.max_ns).max() {
        Some(ns) => format!("; observed {}", domain::span(ns, TimeDomain::Virtual)),
        None => String::new(),
    };
    let load = names::load(&first.load);
    let seeds = match place.cells.len() {
        1 => String::new(),
        count => format!(" (the largest of {count} seeds)"),
    };
    format!("{}, {load}: {name} {bound}{observed}{seeds}", names::arm(&arm))
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

    fn cell(load: &str, max_ns: u64, bound_ns: Option<u64>, unsound: &[Unsound]) -> Cell {
        let unsound = unsound.to_vec();
        Cell {
            kernel: "6.1-cloud".into(),
            asked: "full".into(),
            load: load.into(),
            max_ns: Some(max_ns),
            bound: Some(CellBound { bound_ns, unsound }),
            ..Cell::default()
        }
    }

    #[track_caller]
    fn check(cells: Vec<Cell>, want: &Expect) {
        want.assert_eq(&lines(&Lab { cells, ..Lab::default() }).join("\n"));
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
