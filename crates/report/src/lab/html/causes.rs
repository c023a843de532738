//! What held up the latest wakeup of each place of a lab, as far as it is known: the guest's own
//! explanation, and the longest sections that were seen from outside.

use wakescope_core::explain::Share;
use wakescope_core::lab::{Arm, Cell, CellScope};
use wakescope_core::run::TimeDomain;
use wakescope_core::scope::Kind;
use wakescope_core::units::counted;

use crate::domain;
use crate::explain::because_of;
use crate::html::element::{self, Column, name, paragraph, table, text};
use crate::lab::matrix::{Matrix, Place};
use crate::lab::names;
use crate::scope;

/// More rows than anybody reads.
const MOST: usize = 1_000;

/// Sections of each kind that are shown for a cell.
const SECTIONS: usize = 3;

/// The causes of all places that have measured, if any cause of any place is known.
pub(super) struct Causes<'a> {
    rows: Vec<Cause<'a>>,
    /// Places that found no room.
    left_out: usize,
}

/// What is known of a place.
pub(super) struct Cause<'a> {
    number: usize,
    /// The cell with the latest wakeup.
    worst: &'a Cell,
    /// What took the largest share of that wakeup.
    share: Option<&'a Share>,
    /// What was seen of this place from outside.
    scope: Option<(&'a Cell, &'a CellScope)>,
    /// Where else this kernel and model was looked into.
    elsewhere: Option<(usize, &'a str)>,
}

impl<'a> Causes<'a> {
    pub(super) fn of(matrix: &Matrix<'a>) -> Self {
        let measured = |place: &&Place<'a>| place.measured().next().is_some();
        let known = |cell: &Cell| cell.culprit.is_some() || cell.scope.is_some();
        if !matrix.places().flat_map(Place::measured).any(known) {
            return Self { rows: Vec::new(), left_out: 0 };
        }
        let places = matrix.places().filter(measured);
        let mut rows: Vec<Cause> =
            places.enumerate().filter_map(|(at, place)| cause(at, place)).collect();
        let left_out = rows.len().saturating_sub(MOST);
        rows.truncate(MOST);
        let looked_into: Vec<(&Cell, usize)> = rows
            .iter()
            .filter(|row| row.scope.is_some())
            .map(|row| (row.worst, row.number))
            .collect();
        for row in rows.iter_mut().filter(|row| row.scope.is_none()) {
            let arm = |cell: &'a Cell| (&cell.kernel, &cell.asked);
            let other = looked_into.iter().find(|(other, _)| arm(other) == arm(row.worst));
            row.elsewhere = other.map(|(other, number)| (*number, &*other.load));
        }
        Self { rows, left_out }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn of_place(&self, place: &Place) -> Option<&Cause<'a>> {
        let cell = place.cells.first()?;
        self.rows.iter().find(|row| row.worst.is_same_place(cell))
    }

    /// A row per place; nothing if no cause is known.
    pub(super) fn section(&self) -> String {
        let head = [
            ("kernel and model", Column::Words),
            ("load", Column::Words),
            ("latest", Column::Number),
            ("held up by", Column::Words),
            ("longest sections", Column::Words),
        ];
        let rows: Vec<Vec<String>> = self.rows.iter().map(Cause::row).collect();
        if rows.is_empty() {
            return String::new();
        }
        let caption = "The latest wakeup of each place of the table, in virtual time";
        let more = match self.left_out {
            0 => String::new(),
            count => format!(
                "{} left out: the record (--json) has them.",
                counted(count as u64, "place")
            ),
        };
        let html = [
            paragraph("lead", &text(LEAD)),
            table(caption, &head, &rows),
            paragraph("", &text(&more)),
        ];
        element::section("causes", "Causes of the latest wakeups", &html.concat())
    }
}

const LEAD: &str = "Held up by: the largest share of the latest wakeup, as the guest itself explains it. \
    Longest sections: with interrupts or preemption off, as the emulator saw them, in the cell with \
    the latest wakeup of that kernel and model. The models none and voluntary preempt the kernel \
    nowhere, so with them the wait can be longer than any section.";

fn cause<'a>(number: usize, place: &Place<'a>) -> Option<Cause<'a>> {
    let worst = place.worst()?;
    let scope = place.measured().find_map(|cell| Some((cell, cell.scope.as_ref()?)));
    Some(Cause { number, worst, share: worst.culprit.as_ref(), scope, elsewhere: None })
}

fn virtual_time(ns: u64) -> String {
    domain::span(ns, TimeDomain::Virtual)
}

impl Cause<'_> {
    /// What leads to it within the page.
    pub(super) fn anchor(&self) -> String {
        anchor(self.number)
    }

    /// One line, for who points at a figure.
    pub(super) fn in_short(&self) -> String {
        let arm = names::arm(&arm(self.worst));
        let late = self.worst.max_ns.map(virtual_time).unwrap_or_default();
        let why = match (self.share, self.scope) {
            (None, Some((_, seen))) => longest(seen, 1).into_iter().next().unwrap_or_default(),
            (share, _) => because_of(share, TimeDomain::Virtual),
        };
        format!("{arm}, {}: {late} late, {why}", names::load(&self.worst.load))
    }

    fn row(&self) -> Vec<String> {
        let late = self.worst.max_ns.map(virtual_time).unwrap_or_default();
        let why = because_of(self.share, TimeDomain::Virtual);
        vec![
            format!(
                "<span id=\"{}\">{}</span>",
                self.anchor(),
                name(&names::arm(&arm(self.worst)), 60)
            ),
            name(&names::load(&self.worst.load), 98),
            text(&format!("{late} (seed {})", self.worst.seed)),
            text(&why),
            self.sections(),
        ]
    }

    fn sections(&self) -> String {
        match (self.scope, self.elsewhere) {
            (Some((_, seen)), _) if !seen.failed.is_empty() => {
                format!("not known: {}", name(&seen.failed, 300))
            }
            (Some((cell, seen)), _) => {
                let mut lines = longest(seen, SECTIONS);
                if cell.seed != self.worst.seed {
                    lines.push(format!("(seed {})", cell.seed));
                }
                lines.iter().map(|line| text(line)).collect::<Vec<_>>().join("<br>")
            }
            (None, Some((number, load))) => {
                let load = name(&names::load(load), 98);
                format!("looked into <a href=\"#{}\">under {load}</a>", anchor(number))
            }
            (None, None) => "not looked into".into(),
        }
    }
}

fn anchor(number: usize) -> String {
    format!("cause-{}", number + 1)
}

fn arm(cell: &Cell) -> Arm {
    Arm { kernel: cell.kernel.clone(), asked: cell.asked.clone() }
}

/// `interrupts off 3.73 virtual ms, lock, called by free … unlock`: of each kind the longest.
fn longest(seen: &CellScope, most: usize) -> Vec<String> {
    let of = |kind: Kind| seen.sections.iter().filter(move |s| s.kind == kind).take(most);
    let line = |section: &wakescope_core::lab::CellSections| {
        format!(
            "{} {}, {} … {}",
            scope::name(section.kind),
            virtual_time(section.longest_ns),
            scope::place(&section.began),
            scope::place(&section.ended)
        )
    };
    Kind::ALL.into_iter().flat_map(of).map(line).collect()
}
