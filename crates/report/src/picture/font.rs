//! The font of pictures made of pixels, which also tells how wide a text is in others.
//!
//! It comes along, so that a picture looks the same on a machine that has no fonts: outlines of
//! DejaVu Sans, taken out of it while this is built.

use super::scene::Point;

include!(concat!(env!("OUT_DIR"), "/glyphs.rs"));

/// Stands for what the font lacks.
const NOTHING: char = '\u{fffd}';

/// How far a character moves the next one in parts of an em, and its outline.
fn glyph(c: char) -> Option<(u16, &'static [i16])> {
    let at = GLYPHS.binary_search_by_key(&c, |glyph| glyph.0).ok()?;
    let (_, advance, from, to) = GLYPHS[at];
    Some((advance, &STROKES[from as usize..to as usize]))
}

/// How far a character moves the next one, in parts of the font's size.
pub(super) fn advance(c: char) -> f64 {
    // What the font lacks may be as wide as it is high, as Chinese is.
    let missing = if c.is_ascii() { 0.6 } else { 1.0 };
    glyph(c).map_or(missing, |(advance, _)| f64::from(advance) / EM)
}

/// The outlines of a text that begins at `at`, on its baseline: closed polygons.
pub(super) fn outlines(text: &str, (mut x, y): Point, size: f64) -> Vec<Vec<Point>> {
    let mut polygons = Vec::new();
    for c in text.chars() {
        if let Some((_, strokes)) = glyph(c).or_else(|| glyph(NOTHING)) {
            draw(strokes, (x, y), size / EM, &mut polygons);
        }
        x += advance(c) * size;
    }
    polygons
}

/// Adds the polygons of an outline to those that there are.
fn draw(mut strokes: &[i16], origin: Point, scale: f64, polygons: &mut Vec<Vec<Point>>) {
    let place = |x: i16, y: i16| (origin.0 + f64::from(x) * scale, origin.1 - f64::from(y) * scale);
    loop {
        strokes = match strokes {
            [0, x, y, rest @ ..] => {
                polygons.push(vec![place(*x, *y)]);
                rest
            }
            [1, x, y, rest @ ..] => {
                polygons.iter_mut().last().into_iter().for_each(|p| p.push(place(*x, *y)));
                rest
            }
            [_, x1, y1, x, y, rest @ ..] => {
                if let Some(polygon) = polygons.last_mut() {
                    curve(polygon, place(*x1, *y1), place(*x, *y));
                }
                rest
            }
            _ => return,
        }
    }
}

/// Goes on with a Bézier curve, in straight pieces.
fn curve(polygon: &mut Vec<Point>, control: Point, end: Point) {
    const PIECES: u8 = 5;
    let Some(&begin) = polygon.last() else { return };
    for piece in 1..=PIECES {
        let t = f64::from(piece) / f64::from(PIECES);
        let mix = |a: f64, b: f64, c: f64| {
            let u = 1.0 - t;
            u * u * a + 2.0 * u * t * b + t * t * c
        };
        polygon.push((mix(begin.0, control.0, end.0), mix(begin.1, control.1, end.1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_pictures_use_has_an_outline() {
        assert!(GLYPHS.is_sorted_by(|a, b| a.0 < b.0));
        for c in "0123456789,.%µ×–—…ABCxyzäöüß#·<>≤≥→ ".chars() {
            assert!(glyph(c).is_some(), "{c}");
            assert!(c == ' ' || !outlines(&c.to_string(), (0.0, 0.0), 12.0).is_empty(), "{c}");
        }
        assert!(
            !outlines("漢", (0.0, 0.0), 12.0).is_empty(),
            "a sign stands for what is not there"
        );
    }

    #[test]
    fn outlines_lie_above_the_baseline_and_within_the_advance() {
        for c in "AHn8".chars() {
            let points = outlines(&c.to_string(), (10.0, 50.0), 20.0).concat();
            let inside = |&(x, y): &Point| {
                (10.0..10.0 + 20.0 * advance(c)).contains(&x) && (30.0..50.5).contains(&y)
            };
            assert!(points.iter().all(inside), "{c}: {points:?}");
        }
    }
}
