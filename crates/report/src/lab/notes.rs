//! Notes below a table: why a cell has no number or fewer seeds than others, or what weakens it.

use wakescope_core::lab::{Cell, Status};
use wakescope_core::units::counted;

use super::{figures, names};
use crate::style::clean;

/// How much of a reason, of a line of a log, and how many lines of it are shown.
const LONGEST_REASON: usize = 240;
const LONGEST_LINE: usize = 160;
const MOST_LINES: usize = 6;

/// How many seeds, and how many places of the table, with the same fate are named.
const MOST_NAMED: usize = 4;

/// Why seeds are missing of a lab that was ended early.
const NOT_RUN: &str = "not run, because the lab was ended before";

/// A note, and the cells that it is about.
#[derive(Debug)]
struct Note {
    reason: String,
    evidence: Vec<String>,
    /// Kernel, model and load, with the seeds.
    places: Vec<(String, Vec<u64>)>,
}

/// Notes by number, from 1.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<Note>);

/// A note as it is shown.
pub(super) struct Shown {
    /// Its number.
    pub(super) number: usize,
    /// What it says.
    pub(super) text: String,
    /// Lines of a log, as they were.
    pub(super) log: Vec<String>,
}

impl Notes {
    /// The number of the note on `cells`, which differ in their seeds only; `None` if there is
    /// nothing to note. Cells with the same fate share a note.
    pub(super) fn on(&mut self, cells: &[&Cell]) -> Option<usize> {
        let mut number = None;
        let any_measured = cells.iter().any(|cell| cell.status == Status::Ok);
        for cell in cells {
            let (reasons, place) = match cell.status {
                // Where there is a number, it is of fewer seeds than others.
                Status::NotRun if any_measured => (vec![NOT_RUN.into()], Some(place(cell))),
                Status::NotRun => continue,
                Status::Ok => (doubts(cell), Some(place(cell))),
                // All seeds and loads of a model share this fate, so they need not be named.
                Status::Ignored => (vec![ignored(cell)], None),
                Status::Failed => (vec![failed(cell)], Some(place(cell))),
            };
            for reason in reasons {
                let at = self.place_of(reason, cell);
                if let Some(place) = &place {
                    self.0[at].add(place, cell.seed);
                }
                number = number.or(Some(at + 1));
            }
        }
        number
    }

    /// Where the note with this reason and the evidence of `cell` stands.
    fn place_of(&mut self, reason: String, cell: &Cell) -> usize {
        let evidence: Vec<String> =
            cell.evidence.iter().take(MOST_LINES).map(|l| clean(l, LONGEST_LINE)).collect();
        let same = |note: &Note| note.reason == reason && note.evidence == evidence;
        self.0.iter().position(same).unwrap_or_else(|| {
            self.0.push(Note { reason, evidence, places: Vec::new() });
            self.0.len() - 1
        })
    }

    /// Every note, in the order of its number.
    pub(super) fn shown(&self) -> impl Iterator<Item = Shown> + '_ {
        (1..).zip(&self.0).map(|(number, note)| Shown {
            number,
            text: note.text(),
            log: note.evidence.clone(),
        })
    }
}

impl Note {
    fn add(&mut self, place: &str, seed: u64) {
        match self.places.iter_mut().find(|(known, _)| known == place) {
            Some((_, seeds)) => seeds.push(seed),
            None => self.places.push((place.into(), vec![seed])),
        }
    }

    /// `6.1-cloud/full find, seed 3; 6.1-cloud/full launch, 2 seeds (1, 4): the kernel panicked`
    fn text(&self) -> String {
        let mut places: Vec<String> = self
            .places
            .iter()
            .take(MOST_NAMED)
            .map(|(place, seeds)| format!("{place}, {}", named(seeds)))
            .collect();
        if self.places.len() > MOST_NAMED {
            places.push(format!("{} more", self.places.len() - MOST_NAMED));
        }
        let colon = if places.is_empty() { "" } else { ": " };
        format!("{}{colon}{}", places.join("; "), self.reason)
    }
}

fn named(seeds: &[u64]) -> String {
    if let [seed] = seeds {
        return format!("seed {seed}");
    }
    let mut list: Vec<String> = seeds.iter().take(MOST_NAMED).map(u64::to_string).collect();
    if seeds.len() > MOST_NAMED {
        list.push("…".into());
    }
    format!("{} ({})", counted(seeds.len() as u64, "seed"), list.join(", "))
}

/// `6.1-cloud/full find`
fn place(cell: &Cell) -> String {
    let arm = wakescope_core::lab::Arm { kernel: cell.kernel.clone(), asked: cell.asked.clone() };
    format!("{} {}", names::arm(&arm), names::load(&cell.load))
}

/// Why the run of a cell that measured is degraded.
fn doubts(cell: &Cell) -> Vec<String> {
    cell.findings.iter().map(|finding| clean(&finding.message, LONGEST_REASON)).collect()
}

fn failed(cell: &Cell) -> String {
    match clean(&cell.reason, LONGEST_REASON) {
        reason if reason.is_empty() => "failed, reason unknown".into(),
        reason => reason,
    }
}

fn ignored(cell: &Cell) -> String {
    let kernel = names::kernel(&cell.kernel, 60);
    let asked = names::model(&cell.asked);
    let runs = match cell.model {
        Some(model) => format!("{kernel}, asked for {asked}, runs {model}"),
        None => format!("{kernel} does not run {asked}"),
    };
    match clean(&cell.reason, LONGEST_REASON) {
        reason if reason.is_empty() => runs,
        reason => format!("{runs}: {reason}"),
    }
}

/// A number with its note's raised.
pub(super) fn mark(note: Option<usize>) -> String {
    note.map(figures::raised).unwrap_or_default()
}
