//! The median of each pair of CPUs: a field of cells, wakers in rows, probes in columns.
//!
//! The colour of a cell repeats the figure that is written into it.

use wakescope_core::percentile::Percentile;
use wakescope_core::stated::Quantile;
use wakescope_core::units::grouped;

use super::Room;
use super::axis::{Tick, above_each_other, beside_each_other};
use super::scene::{Anchor, HEATS, Ink, SMALL, Scene};
use super::width::{fitting, text_width};
use super::{bars, frame};
use crate::domain;
use crate::matrix::{Matrix, Pair};
use crate::quantity;
use crate::run_set::RunSet;

/// The most that a cell takes.
const CELL: (f64, f64) = (96.0, 32.0);

/// The most that the number of a CPU takes: four digits. A record may name any.
const WIDEST_NAME: f64 = 32.0;

/// Where the cells lie, and the spans of time that their colours stand for.
struct Cells {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    low: f64,
    high: f64,
    has_figures: bool,
}

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let matrix = Matrix::of(run_set)?;
    let (low, high) = extent(&matrix)?;
    let value = quantity::words_of(run_set).value;
    let kind = run_set.domain().before_unit();
    let title = format!("Median {value} by CPU of waker and probe, in {kind}µs");
    let (mut scene, top) =
        frame::begin(run_set, room, &title, description(run_set, &matrix, (low, high)));
    let cells = Cells::new(&matrix, room, top + 44.0, (low, high));
    let axes = format!("rows: CPU of the waker, columns: CPU of the probe; median, {kind}µs");
    let axes = fitting(&axes, SMALL, room.width - 24.0);
    scene.text((12.0, top + 14.0), &axes, Anchor::Start, Ink::Text);
    draw_names(&mut scene, &matrix, &cells);
    scene.begin("cells", None);
    matrix.pairs().enumerate().for_each(|(at, pair)| cells.draw(&mut scene, &matrix, at, pair));
    scene.end();
    let mut end = cells.top + cells.height * count(&matrix) + 14.0;
    end = draw_scale(&mut scene, &cells, room, end);
    let mut message = matrix.caveats();
    if !cells.has_figures {
        message.push("the cells have no room for figures: the report of each run has them".into());
    }
    // In a page, they and a table stand beside it.
    for sentence in message.iter().filter(|_| !room.bare) {
        let sentence = fitting(sentence, SMALL, room.width - 24.0);
        scene.text((12.0, end + 12.0), &sentence, Anchor::Start, Ink::Faint);
        end += 18.0;
    }
    scene.height = end + 8.0;
    Some(scene)
}

#[allow(clippy::cast_precision_loss)] // At most 64.
fn count(matrix: &Matrix) -> f64 {
    matrix.cpus.len() as f64
}

fn median(matrix: &Matrix, pair: Pair) -> Option<Quantile> {
    matrix.run(pair)?.expiries().quantile(Percentile::SHOWN[0])
}

fn ns_of(quantile: Quantile) -> u64 {
    match quantile {
        Quantile::Known(ns) | Quantile::AtMost(ns) => ns,
    }
}

/// The least and the largest median in ns; `None` if there is none. At least a factor of two apart, so
/// that a small difference has no strong colour.
#[allow(clippy::cast_precision_loss)]
fn extent(matrix: &Matrix) -> Option<(f64, f64)> {
    let all = || matrix.pairs().filter_map(|pair| Some(ns_of(median(matrix, pair)?)));
    let (low, high) = (all().min()?.max(1) as f64, all().max()?.max(1) as f64);
    Some((low, high.max(low * 2.0)))
}

/// Three digits, or all before the decimal point: `1.25`, `12.5`, `1,250`.
#[allow(clippy::cast_precision_loss)]
fn micros(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    match us {
        us if us < 9.995 => format!("{us:.2}"),
        us if us < 99.95 => format!("{us:.1}"),
        _ => grouped(ns / 1_000 + u64::from(ns % 1_000 >= 500)),
    }
}

/// What is written into a cell.
fn figure(quantile: Option<Quantile>) -> String {
    match quantile {
        Some(Quantile::Known(ns)) => micros(ns),
        Some(Quantile::AtMost(ns)) => format!("≤ {}", micros(ns)),
        None => "–".into(),
    }
}

impl Cells {
    fn new(matrix: &Matrix, room: Room, top: f64, (low, high): (f64, f64)) -> Self {
        let left = if room.is_narrow() { 44.0 } else { 56.0 };
        let width = ((room.width - left - 18.0) / count(matrix)).min(CELL.0);
        let height = width.min(CELL.1);
        let widest = matrix.pairs().map(|pair| text_width(&figure(median(matrix, pair)), SMALL));
        let has_figures = height >= 18.0 && widest.fold(0.0, f64::max) + 4.0 <= width;
        Self { left, top, width, height, low, high, has_figures }
    }

    /// The colour of a time.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn heat(&self, ns: u64) -> usize {
        let share = ((ns.max(1) as f64) / self.low).ln() / (self.high / self.low).ln();
        ((share * HEATS.len() as f64) as usize).min(HEATS.len() - 1)
    }

    /// Draws the pair at a place, row by row.
    #[allow(clippy::cast_precision_loss)]
    fn draw(&self, scene: &mut Scene, matrix: &Matrix, at: usize, pair: Pair) {
        let (row, column) = (at / matrix.cpus.len(), at % matrix.cpus.len());
        let at = (self.left + self.width * column as f64, self.top + self.height * row as f64);
        let gap = if self.height > 8.0 { 1.0 } else { 0.0 };
        let size = (self.width - gap, self.height - gap);
        if matrix.run(pair).is_none() {
            bars::hatched(scene, at, size, Ink::Behind);
            return;
        }
        let median = median(matrix, pair);
        let (ink, on) = match median.map(|quantile| self.heat(ns_of(quantile))) {
            Some(heat) => (Ink::Heat(heat), Ink::OnHeat(heat)),
            None => (Ink::FineGrid, Ink::Text),
        };
        scene.bar(at, size.0, size.1, ink);
        if self.has_figures {
            let middle = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0 + 4.5);
            scene.text(middle, &figure(median), Anchor::Middle, on);
        }
    }
}

/// The numbers of the CPUs, as many as have room.
fn draw_names(scene: &mut Scene, matrix: &Matrix, cells: &Cells) {
    let ticks = |from: f64, step: f64| -> Vec<Tick> {
        let places = std::iter::successors(Some(from + step / 2.0), |at| Some(at + step));
        let named = matrix.cpus.iter().zip(places);
        named
            .map(|(cpu, at)| Tick { at, label: fitting(&cpu.to_string(), SMALL, WIDEST_NAME) })
            .collect()
    };
    let across = beside_each_other(ticks(cells.left, cells.width), SMALL);
    for tick in across.into_iter().filter(|tick| !tick.label.is_empty()) {
        let at = (tick.at, cells.top - 8.0);
        scene.text(at, &tick.label, Anchor::Middle, Ink::Faint);
    }
    let down = above_each_other(ticks(cells.top, cells.height), SMALL);
    for tick in down.into_iter().filter(|tick| !tick.label.is_empty()) {
        let at = (cells.left - 8.0, tick.at + 4.0);
        scene.text(at, &tick.label, Anchor::End, Ink::Faint);
    }
}

/// What the colours stand for, with the times between them. Returns where it ends.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn draw_scale(scene: &mut Scene, cells: &Cells, room: Room, top: f64) -> f64 {
    let steps = HEATS.len() as f64;
    let width = ((room.width - cells.left - 30.0) / steps).min(72.0);
    let edge = |at: usize| cells.left + width * at as f64;
    for heat in 0..HEATS.len() {
        scene.bar((edge(heat), top), width, 13.0, Ink::Heat(heat));
    }
    let ticks = (0..=HEATS.len()).map(|at| {
        let ns = cells.low * (cells.high / cells.low).powf(at as f64 / steps);
        Tick { at: edge(at), label: micros(ns.round() as u64) }
    });
    let ticks = beside_each_other(ticks.collect(), SMALL);
    for tick in ticks.into_iter().filter(|tick| !tick.label.is_empty()) {
        scene.text((tick.at, top + 28.0), &tick.label, Anchor::Middle, Ink::Faint);
    }
    top + 36.0
}

/// The picture in words.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn description(run_set: &RunSet, matrix: &Matrix, (low, _): (f64, f64)) -> String {
    let all = matrix.pairs().filter_map(|pair| Some((ns_of(median(matrix, pair)?), pair)));
    let worst = all.max_by_key(|&(ns, _)| ns).map_or_else(String::new, |(ns, (waker, probe))| {
        let (low, high) =
            (domain::span(low as u64, run_set.domain()), domain::span(ns, run_set.domain()));
        format!("from {low} to {high}, with the waker on CPU {waker} and the probe on CPU {probe}")
    });
    let value = quantity::words_of(run_set).value;
    let caveats: String =
        matrix.caveats().iter().map(|c| format!(" {}.", quantity::capital(c))).collect();
    format!(
        "The median {value} for each CPU of the waker, in rows, and of the probe, in columns: {worst}.{caveats}"
    )
}

#[cfg(test)]
mod tests;
