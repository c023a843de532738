//! A scene as PNG, for who cannot take SVG: two pixels for each unit of the scene.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::font;
use super::raster::{Pixels, dashed};
use super::scene::{Anchor, Mark, Point, Scene};
use super::width::text_width;

/// Pixels per unit: 192 to the inch.
const FINE: f64 = 2.0;
/// The most pixels of a side; larger scenes have fewer per unit.
const MOST: f64 = 8_000.0;

/// Draws the scene on white paper.
pub(super) fn draw(scene: &Scene) -> Vec<u8> {
    let per_unit = pixels_per_unit(scene);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 1 to 8,000.
    let side = |units: f64| (units * per_unit).round().clamp(1.0, MOST) as usize;
    let mut pixels = Pixels::new(side(scene.width), side(scene.height));
    scene.marks.iter().for_each(|mark| draw_mark(&mut pixels, mark, per_unit));
    encoded(&pixels, per_unit)
}

/// As fine as there is room for.
fn pixels_per_unit(scene: &Scene) -> f64 {
    FINE.min(MOST / scene.width.max(1.0)).min(MOST / scene.height.max(1.0))
}

fn draw_mark(pixels: &mut Pixels, mark: &Mark, per_unit: f64) {
    let fine = |points: Vec<Point>| -> Vec<Point> {
        points.into_iter().map(|(x, y)| (x * per_unit, y * per_unit)).collect()
    };
    match mark {
        Mark::Begin { .. } | Mark::End => {}
        Mark::Lines { lines, ink, width, dash } => {
            let lines: Vec<Vec<Point>> = dashed(lines, dash).into_iter().map(fine).collect();
            pixels.stroke(&lines, width * per_unit, ink.colour());
        }
        Mark::Bar { at: (x, y), width, height, ink } => {
            let corners =
                vec![(*x, *y), (x + width, *y), (x + width, y + height), (*x, y + height)];
            pixels.fill(&[fine(corners)], ink.colour());
        }
        Mark::Dot { at, shape, radius, ink } => {
            pixels.fill(&[fine(shape.corners(*at, *radius))], ink.colour());
        }
        Mark::Text { at, text, size, anchor, ink, strong } => {
            let width = text_width(text, *size) / 1.03;
            let x = match anchor {
                Anchor::Start => at.0,
                Anchor::Middle => at.0 - width / 2.0,
                Anchor::End => at.0 - width,
            };
            let outlines = font::outlines(text, (x, at.1), *size).into_iter().map(fine);
            let outlines: Vec<Vec<Point>> = outlines.collect();
            pixels.fill(&outlines, ink.colour());
            if *strong {
                // The font has one weight; a little beside itself it is bold.
                let beside = |p: Vec<Point>| p.into_iter().map(|(x, y)| (x + 0.7, y)).collect();
                let outlines: Vec<Vec<Point>> = outlines.into_iter().map(beside).collect();
                pixels.fill(&outlines, ink.colour());
            }
        }
    }
}

/// The file, as "Portable Network Graphics (PNG) Specification", third edition, has it.
fn encoded(pixels: &Pixels, per_unit: f64) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes();
    // 8 bits each of red, green and blue, not interlaced.
    let head = [&side(pixels.width)[..], &side(pixels.height), &[8, 2, 0, 0, 0]].concat();
    push_chunk(&mut file, *b"IHDR", &head);
    // Units are 96 to the inch; 192 dots per inch are 7,559 per metre.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Up to 7,559.
    let density = ((per_unit * 96.0 / 0.0254).round() as u32).to_be_bytes();
    push_chunk(&mut file, *b"pHYs", &[&density[..], &density, &[1]].concat());
    push_chunk(&mut file, *b"IDAT", &compressed(pixels));
    push_chunk(&mut file, *b"IEND", &[]);
    file
}

/// The lines of pixels, each as its difference from the one above where that is smaller.
fn compressed(pixels: &Pixels) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    let length = pixels.width * 3;
    let mut above = vec![0_u8; length];
    for line in pixels.rgb.chunks_exact(length) {
        let differences = line.iter().zip(&above).map(|(own, above)| own.wrapping_sub(*above));
        let line_out: Vec<u8> = std::iter::once(2).chain(differences).collect();
        // Writing into memory does not fail.
        let _ = encoder.write_all(&line_out);
        above.copy_from_slice(line);
    }
    encoder.finish().unwrap_or_default()
}

fn push_chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    file.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&kind);
    crc.update(data);
    file.extend(kind);
    file.extend(data);
    file.extend(crc.sum().to_be_bytes());
}
