//! The font of pictures made of pixels, which also tells how wide a text is in others.
//!
//! It comes along, so that a picture looks the same on a machine that has no fonts.

use std::sync::OnceLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::scene::Point;

/// Noto Sans, reduced to Latin, Greek and signs; licence: assets/NotoSans-LICENSE.txt.
const FILE: &[u8] = include_bytes!("../../assets/NotoSans-subset.ttf");

fn face() -> Option<&'static Face<'static>> {
    static FACE: OnceLock<Option<Face<'static>>> = OnceLock::new();
    FACE.get_or_init(|| Face::parse(FILE, 0).ok()).as_ref()
}

/// The glyph of a character; that of no character if the font lacks it.
fn glyph(face: &Face<'_>, c: char) -> GlyphId {
    face.glyph_index(c).unwrap_or(GlyphId(0))
}

/// How far a character moves the next one, in parts of the font's size.
pub(super) fn advance(c: char) -> f64 {
    let drawn = match c {
        '≤' => '<',
        '≥' => '>',
        c => c,
    };
    let advance = face().and_then(|f| {
        let index = f.glyph_index(drawn)?;
        Some(f64::from(f.glyph_hor_advance(index)?) / f64::from(f.units_per_em()))
    });
    // What the font lacks may be as wide as it is high, as Chinese is.
    advance.unwrap_or(if c.is_ascii() { 0.6 } else { 1.0 })
}

/// The outlines of a text that begins at `at`, on its baseline: closed polygons.
pub(super) fn outlines(text: &str, (mut x, y): Point, size: f64) -> Vec<Vec<Point>> {
    let Some(face) = face() else { return Vec::new() };
    let scale = size / f64::from(face.units_per_em());
    let mut found = Vec::new();
    for c in text.chars() {
        let c = match c {
            '≤' | '≥' => {
                found.push(underline((x, y), size));
                if c == '≤' { '<' } else { '>' }
            }
            c => c,
        };
        let mut pen = Pen { origin: (x, y), scale, polygons: Vec::new() };
        face.outline_glyph(glyph(face, c), &mut pen);
        found.append(&mut pen.polygons);
        x += advance(c) * size;
    }
    found
}

/// The lower line of `≤`, which the font does not have.
fn underline((x, y): Point, size: f64) -> Vec<Point> {
    let (left, right) = (x + 0.05 * size, x + 0.52 * size);
    let (top, bottom) = (y + 0.02 * size, y + 0.09 * size);
    vec![(left, top), (right, top), (right, bottom), (left, bottom)]
}

/// Turns curves into polygons.
struct Pen {
    origin: Point,
    scale: f64,
    polygons: Vec<Vec<Point>>,
}

/// Straight pieces that a curve of a glyph is made of.
const PIECES: u8 = 5;

impl Pen {
    fn place(&self, x: f32, y: f32) -> Point {
        (self.origin.0 + f64::from(x) * self.scale, self.origin.1 - f64::from(y) * self.scale)
    }

    fn last(&self) -> Point {
        self.polygons.last().and_then(|p| p.last()).copied().unwrap_or(self.origin)
    }

    fn push(&mut self, point: Point) {
        if let Some(polygon) = self.polygons.last_mut() {
            polygon.push(point);
        }
    }

    /// A Bézier curve through its control points.
    fn curve(&mut self, controls: &[Point]) {
        let points: Vec<Point> =
            std::iter::once(self.last()).chain(controls.iter().copied()).collect();
        for piece in 1..=PIECES {
            let t = f64::from(piece) / f64::from(PIECES);
            let mut level = points.clone();
            while level.len() > 1 {
                level = level
                    .windows(2)
                    .map(|w| (w[0].0 + t * (w[1].0 - w[0].0), w[0].1 + t * (w[1].1 - w[0].1)))
                    .collect();
            }
            self.push(level[0]);
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let start = self.place(x, y);
        self.polygons.push(vec![start]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let point = self.place(x, y);
        self.push(point);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let controls = [self.place(x1, y1), self.place(x, y)];
        self.curve(&controls);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let controls = [self.place(x1, y1), self.place(x2, y2), self.place(x, y)];
        self.curve(&controls);
    }

    fn close(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_pictures_use_has_an_outline() {
        for c in "0123456789,.%µ×–—…ABCxyzäöüß#·<>".chars() {
            assert!(face().unwrap().glyph_index(c).is_some(), "{c}");
            assert!(c == ' ' || !outlines(&c.to_string(), (0.0, 0.0), 12.0).is_empty(), "{c}");
        }
        assert!(!outlines("漢", (0.0, 0.0), 12.0).is_empty(), "a box stands for what is not there");
    }
}
