//! The longest sections with interrupts or preemption off of the cells that the emulator looked into.

use wakescope_core::lab::{Arm, Cell, CellScope, CellSections, Lab};
use wakescope_core::run::TimeDomain;
use wakescope_core::scope::Kind;

use super::names;
use crate::domain;
use crate::scope;
use crate::style::clean;

/// More than anybody reads.
const MOST: usize = 200;

/// For each cell a line of each kind, or why there is none.
pub(super) fn lines(lab: &Lab) -> Vec<String> {
    let seen = lab.cells.iter().filter_map(|cell| Some((cell, cell.scope.as_ref()?)));
    let mut lines: Vec<String> = seen.flat_map(|(cell, seen)| of_cell(cell, seen)).collect();
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("and {more} more: --json has them"));
    }
    lines
}

/// `6.1-cloud/full, file-move (seed 1): interrupts off 3.73 virtual ms, free_pcppages_bulk …`
fn of_cell(cell: &Cell, seen: &CellScope) -> Vec<String> {
    let arm = Arm { kernel: cell.kernel.clone(), asked: cell.asked.clone() };
    let place = format!("{}, {} (seed {})", names::arm(&arm), names::load(&cell.load), cell.seed);
    if !seen.failed.is_empty() {
        return vec![format!("{place}: not known: {}", clean(&seen.failed, 300))];
    }
    let longest = |kind: Kind| seen.sections.iter().find(move |section| section.kind == kind);
    let found = Kind::ALL.into_iter().filter_map(|kind| {
        let CellSections { began, ended, longest_ns, .. } = longest(kind)?;
        let length = domain::span(*longest_ns, TimeDomain::Virtual);
        let ends = format!("{} … {}", scope::place(began), scope::place(ended));
        Some(format!("{place}: {} {length}, {ends}", scope::name(kind)))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use wakescope_core::scope::Place;

    use super::*;

    #[test]
    fn the_longest_of_each_kind_is_shown_or_why_it_is_not() {
        let place = |function: &str, caller: Option<&str>| Place {
            function: Some(function.into()),
            caller: caller.map(Into::into),
        };
        let section = |kind, longest_ns| CellSections {
            kind,
            began: place("lock", Some("free")),
            ended: place("unlock", None),
            count: 3,
            longest_ns,
            total_ns: 9_000_000,
        };
        let sections = vec![
            section(Kind::IrqsOff, 3_730_000),
            section(Kind::IrqsOff, 9_000),
            section(Kind::PreemptOff, 4_000),
        ];
        let cell = |scope| Cell {
            kernel: "6.1-cloud".into(),
            asked: "full".into(),
            load: "find".into(),
            seed: 1,
            scope,
            ..Cell::default()
        };
        let cells = vec![
            cell(Some(CellScope { failed: String::new(), sections })),
            cell(None),
            cell(Some(CellScope::failed("there is no C compiler".into()))),
            cell(Some(CellScope::failed("a\n\n# b".into()))),
        ];
        expect_test::expect![[r#"
            6.1-cloud/full, find (seed 1): interrupts off 3.73 virtual ms, lock, called by free … unlock
            6.1-cloud/full, find (seed 1): preemption off 4.00 virtual µs, lock, called by free … unlock
            6.1-cloud/full, find (seed 1): not known: there is no C compiler
            6.1-cloud/full, find (seed 1): not known: a��# b
        "#]]
            .assert_eq(&(lines(&Lab { cells, ..Lab::default() }).join("\n") + "\n"));
    }
}
