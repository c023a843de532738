//! Takes the outlines of characters out of a font, so that pictures made of pixels need none: not on
//! the machine that draws them, nor in the program, of which a whole font would be a sixth.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use ttf_parser::{Face, OutlineBuilder};

/// Latin with accents, Greek, and the signs that our texts have.
fn characters() -> impl Iterator<Item = char> {
    let ranges = ['\u{20}'..='\u{7e}', '\u{a0}'..='\u{17f}', '\u{391}'..='\u{3c9}'];
    ranges.into_iter().flatten().chain("–—‘’“”…←→−≈≠≤≥∞√\u{fffd}".chars())
}

#[allow(clippy::print_stdout)] // That is how to talk to cargo.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let face = Face::parse(dejavu::sans::regular(), 0).expect("the font of the crate dejavu");
    let mut strokes = Strokes::default();
    let mut glyphs = String::new();
    for c in characters() {
        let Some(glyph) = face.glyph_index(c) else { continue };
        let from = strokes.0.len();
        face.outline_glyph(glyph, &mut strokes);
        let (advance, to) = (face.glyph_hor_advance(glyph).unwrap_or(0), strokes.0.len());
        let _ = writeln!(glyphs, "    ({c:?}, {advance}, {from}, {to}),");
    }
    let source = format!(
        "/// Parts of an em.\n\
         const EM: f64 = {}.0;\n\
         /// Each character, how far it moves the next one, and which strokes are its outline; ascending.\n\
         const GLYPHS: &[(char, u16, u32, u32)] = &[\n{}];\n\
         /// 0 begins a polygon, 1 goes on with a line, 2 with a curve by one control point; then x, y of each.\n\
         const STROKES: &[i16] = &{:?};\n",
        face.units_per_em(),
        sorted(&glyphs),
        strokes.0
    );
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("glyphs.rs"), source).expect("OUT_DIR can be written");
}

/// The lines in the order of their characters, which `characters` does not quite have.
fn sorted(glyphs: &str) -> String {
    let mut lines: Vec<(char, &str)> = characters()
        .filter_map(|c| Some((c, glyphs.lines().find(|l| l.starts_with(&format!("    ({c:?},")))?)))
        .collect();
    lines.sort_unstable();
    lines.iter().flat_map(|(_, line)| [line, "\n"]).collect()
}

#[derive(Default)]
struct Strokes(Vec<i16>);

impl Strokes {
    fn push(&mut self, kind: i16, points: &[f32]) {
        self.0.push(kind);
        // Coordinates of a font are whole numbers of 16 bits.
        #[allow(clippy::cast_possible_truncation)]
        self.0.extend(points.iter().map(|&x| x as i16));
    }
}

impl OutlineBuilder for Strokes {
    fn move_to(&mut self, x: f32, y: f32) {
        self.push(0, &[x, y]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push(1, &[x, y]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.push(2, &[x1, y1, x, y]);
    }

    fn curve_to(&mut self, _: f32, _: f32, _: f32, _: f32, _: f32, _: f32) {
        unreachable!("a TrueType font has curves by one control point only");
    }

    fn close(&mut self) {}
}
