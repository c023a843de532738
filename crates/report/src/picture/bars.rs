//! Stacked bars, whose parts differ by colour and by hatching.

use super::scene::{Anchor, COLOURS, Ink, Point, SMALL, Scene};
use super::width::text_width;

/// How a part is filled, by its number: a colour, and one of three ways to hatch it.
fn fill(number: usize) -> (Ink, Hatch) {
    let hatch = match number / COLOURS.len() {
        0 => Hatch::None,
        1 => Hatch::Rising,
        _ => Hatch::Upright,
    };
    (Ink::Series(number), hatch)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hatch {
    None,
    Rising,
    Upright,
}

/// Between lines of a hatching.
const SPACING: f64 = 6.0;

/// One part of a bar.
pub(super) struct Part {
    pub(super) number: usize,
    pub(super) value: f64,
    /// Written into it where there is room; may be empty.
    pub(super) label: String,
}

/// Draws `parts` one after the other from `at` on, `width` for `whole`.
pub(super) fn stacked(
    scene: &mut Scene,
    at: Point,
    (width, height): (f64, f64),
    parts: &[Part],
    whole: f64,
) {
    let mut done = 0.0;
    for part in parts.iter().filter(|p| p.value > 0.0) {
        let place =
            |value: f64| at.0 + (value / whole.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * width;
        let (from, to) = (place(done), place(done + part.value));
        done += part.value;
        // A gap between neighbours, unless it would be all there is.
        let gap = if to - from > 3.0 { 1.0 } else { 0.0 };
        // What is there is seen.
        let wide = (to - from - gap).max(0.75);
        filled(scene, (from, at.1), (wide, height), part.number);
        let (_, hatch) = fill(part.number);
        let fits = text_width(&part.label, SMALL) + 10.0 < wide;
        if fits && hatch == Hatch::None && !part.label.is_empty() {
            let place = (from + 5.0, at.1 + height / 2.0 + 4.5);
            scene.text(place, &part.label, Anchor::Start, Ink::On(part.number));
        }
    }
}

/// A part's colour in a legend.
pub(super) fn swatch(scene: &mut Scene, at: Point, number: usize) {
    filled(scene, at, (24.0, 13.0), number);
}

/// A bar of a kind's look.
pub(super) fn filled(scene: &mut Scene, at: Point, (width, height): (f64, f64), number: usize) {
    let (ink, hatch) = fill(number);
    scene.bar(at, width, height, ink);
    let lines = hatching(hatch, at, width, height);
    if !lines.is_empty() {
        scene.lines(lines, Ink::On(number), 1.5, &[]);
    }
}

/// Draws the place of a bar that there is not.
pub(super) fn hatched(scene: &mut Scene, at: Point, (width, height): (f64, f64), ink: Ink) {
    scene.lines(hatching(Hatch::Rising, at, width, height), ink, 1.0, &[]);
}

/// Lines within the bar.
fn hatching(hatch: Hatch, (x, y): Point, width: f64, height: f64) -> Vec<Vec<Point>> {
    let (right, bottom) = (x + width, y + height);
    let mut lines = Vec::new();
    let mut offset = SPACING / 2.0;
    match hatch {
        Hatch::None => {}
        Hatch::Upright => {
            while offset < width {
                lines.push(vec![(x + offset, y), (x + offset, bottom)]);
                offset += SPACING;
            }
        }
        Hatch::Rising => {
            // From the lower edge to the upper one at 45°, cut where the bar ends.
            while offset < width + height {
                let (from, to) = (x + offset - height, x + offset);
                let start = if from < x { (x, bottom - (x - from)) } else { (from, bottom) };
                let end = if to > right { (right, y + (to - right)) } else { (to, y) };
                lines.push(vec![start, end]);
                offset += SPACING;
            }
        }
    }
    lines
}
