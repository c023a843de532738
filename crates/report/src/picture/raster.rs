//! Polygons as pixels, with soft edges.

use super::scene::Point;

/// Lines of samples per line of pixels.
const LINES: usize = 4;

/// A picture of red, green and blue, from the upper left.
pub(super) struct Pixels {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) rgb: Vec<u8>,
    /// How much of each pixel the shape in the making covers, 0 to 1.
    cover: Vec<f32>,
}

impl Pixels {
    /// White paper.
    pub(super) fn new(width: usize, height: usize) -> Self {
        let cover = vec![0.0; width * height];
        Self { width, height, rgb: vec![255; width * height * 3], cover }
    }

    /// Fills what lies within polygons that wind around it.
    pub(super) fn fill(&mut self, polygons: &[Vec<Point>], colour: u32) {
        let Some(area) = self.cover_with(polygons) else { return };
        self.paint(area, colour);
    }

    /// Draws lines `width` wide. Where they meet, they do not become darker.
    pub(super) fn stroke(&mut self, lines: &[Vec<Point>], width: f64, colour: u32) {
        let mut all: Option<Area> = None;
        for line in lines {
            for (i, pair) in line.windows(2).enumerate() {
                // They are longer where they meet, and not at a line's ends: dashes keep their gaps.
                let ends = (i > 0, i + 2 < line.len());
                if let Some(area) = self.cover_with(&[segment(pair[0], pair[1], width / 2.0, ends)])
                {
                    all = Some(all.map_or(area, |all| all.with(area)));
                }
            }
        }
        if let Some(area) = all {
            self.paint(area, colour);
        }
    }

    /// Notes how much of each pixel polygons cover, where that is more than is noted already.
    fn cover_with(&mut self, polygons: &[Vec<Point>]) -> Option<Area> {
        let area = self.area(polygons)?;
        let mut row = vec![0.0_f32; area.right - area.left + 1];
        let mut crossings: Vec<(f64, i32)> = Vec::new();
        for y in area.top..area.bottom {
            row.fill(0.0);
            for line in 0..LINES {
                #[allow(clippy::cast_precision_loss)]
                let at = y as f64 + (line as f64 + 0.5) / LINES as f64;
                find_crossings(polygons, at, &mut crossings);
                add_spans(&crossings, area, &mut row);
            }
            for (x, &share) in (area.left..area.right).zip(&row) {
                let cover = &mut self.cover[y * self.width + x];
                *cover = cover.max(share.min(1.0));
            }
        }
        Some(area)
    }

    /// Paints what is covered, and forgets that.
    fn paint(&mut self, area: Area, colour: u32) {
        let [_, red, green, blue] = colour.to_be_bytes();
        for y in area.top..area.bottom {
            for x in area.left..area.right {
                let at = y * self.width + x;
                let share = std::mem::take(&mut self.cover[at]);
                if share <= 0.0 {
                    continue;
                }
                for (channel, ink) in
                    self.rgb[at * 3..at * 3 + 3].iter_mut().zip([red, green, blue])
                {
                    let mixed = f32::from(*channel) * (1.0 - share) + f32::from(ink) * share;
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 255.
                    let mixed = mixed.round() as u8;
                    *channel = mixed;
                }
            }
        }
    }

    /// The pixels that polygons may touch; `None` if they lie outside.
    fn area(&self, polygons: &[Vec<Point>]) -> Option<Area> {
        let points =
            || polygons.iter().flatten().copied().filter(|p| p.0.is_finite() && p.1.is_finite());
        let least = |part: fn(Point) -> f64| points().map(part).fold(f64::INFINITY, f64::min);
        let most = |part: fn(Point) -> f64| points().map(part).fold(f64::NEG_INFINITY, f64::max);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Cut to the picture.
        let cut = |value: f64, limit: usize| (value.max(0.0) as usize).min(limit);
        let area = Area {
            left: cut(least(|p| p.0).floor(), self.width),
            right: cut(most(|p| p.0).ceil(), self.width),
            top: cut(least(|p| p.1).floor(), self.height),
            bottom: cut(most(|p| p.1).ceil(), self.height),
        };
        (area.left < area.right && area.top < area.bottom).then_some(area)
    }
}

/// A part of a picture, in pixels.
#[derive(Clone, Copy)]
struct Area {
    left: usize,
    right: usize,
    top: usize,
    bottom: usize,
}

impl Area {
    fn with(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            right: self.right.max(other.right),
            top: self.top.min(other.top),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// Where edges cross a line of samples, from the left, and in which direction.
fn find_crossings(polygons: &[Vec<Point>], y: f64, crossings: &mut Vec<(f64, i32)>) {
    crossings.clear();
    for polygon in polygons {
        let Some(&last) = polygon.last() else { continue };
        let mut from = last;
        for &to in polygon {
            if (from.1 <= y) != (to.1 <= y) {
                let x = from.0 + (y - from.1) / (to.1 - from.1) * (to.0 - from.0);
                crossings.push((x, if from.1 < to.1 { 1 } else { -1 }));
            }
            from = to;
        }
    }
    crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
}

/// Adds what lies between crossings to a row of pixels, with the shares of the pixels at its ends.
fn add_spans(crossings: &[(f64, i32)], area: Area, row: &mut [f32]) {
    let mut winding = 0;
    for pair in crossings.windows(2) {
        winding += pair[0].1;
        if winding == 0 {
            continue;
        }
        #[allow(clippy::cast_precision_loss)]
        let (left, right) = (area.left as f64, area.right as f64);
        let (from, to) = (pair[0].0.clamp(left, right) - left, pair[1].0.clamp(left, right) - left);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within the row.
        let (first, last) = (from as usize, (to.ceil() as usize).min(row.len()));
        for (x, share) in row.iter_mut().enumerate().take(last).skip(first) {
            #[allow(clippy::cast_precision_loss)]
            let (x, parts) = (x as f64, LINES as f64);
            let covered = (to.min(x + 1.0) - from.max(x)).max(0.0) / parts;
            #[allow(clippy::cast_possible_truncation)] // 0 to 1.
            let covered = covered as f32;
            *share += covered;
        }
    }
}

/// A line as a polygon, longer by half its width at those ends where it meets another.
fn segment(from: Point, to: Point, half: f64, meets: (bool, bool)) -> Vec<Point> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    let (ux, uy) = if length > 1e-9 { (dx / length, dy / length) } else { (1.0, 0.0) };
    let (ax, ay) = (ux * half, uy * half);
    let longer = |meets: bool| if meets { (ax, ay) } else { (0.0, 0.0) };
    let (before, after) = (longer(meets.0), longer(meets.1));
    let (from, to) = ((from.0 - before.0, from.1 - before.1), (to.0 + after.0, to.1 + after.1));
    vec![
        (from.0 - ay, from.1 + ax),
        (from.0 + ay, from.1 - ax),
        (to.0 + ay, to.1 - ax),
        (to.0 - ay, to.1 + ax),
    ]
}

/// The pieces of lines that dashes leave.
pub(super) fn dashed(lines: &[Vec<Point>], dash: &[f64]) -> Vec<Vec<Point>> {
    let whole: f64 = dash.iter().sum();
    if whole <= 0.1 {
        return lines.to_vec();
    }
    let mut pieces = Vec::new();
    for line in lines {
        let (mut at, mut left, mut is_drawn) = (0, dash[0], true);
        let mut piece = line.first().map(|&p| vec![p]).unwrap_or_default();
        for pair in line.windows(2) {
            let (mut from, to) = (pair[0], pair[1]);
            let mut rest = (to.0 - from.0).hypot(to.1 - from.1);
            while rest > left {
                let share = left / rest;
                from = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
                rest -= left;
                piece.push(from);
                if is_drawn {
                    pieces.push(std::mem::take(&mut piece));
                }
                piece = vec![from];
                at = (at + 1) % dash.len();
                left = dash[at].max(0.05);
                is_drawn = !is_drawn;
            }
            left -= rest;
            piece.push(to);
        }
        if is_drawn && piece.len() > 1 {
            pieces.push(piece);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(pixels: &Pixels, x: usize, y: usize) -> u8 {
        pixels.rgb[(y * pixels.width + x) * 3]
    }

    #[test]
    fn shares_of_pixels_are_shades() {
        let mut pixels = Pixels::new(4, 3);
        pixels.fill(&[vec![(1.0, 1.0), (2.5, 1.0), (2.5, 2.0), (1.0, 2.0)]], 0);
        assert_eq!([0, 1, 2, 3].map(|x| grey(&pixels, x, 1)), [255, 0, 128, 255]);
        assert_eq!([0, 1, 2, 3].map(|x| grey(&pixels, x, 0)), [255; 4]);
    }

    #[test]
    fn lines_that_meet_are_no_darker() {
        let mut pixels = Pixels::new(8, 8);
        pixels.stroke(&[vec![(1.0, 4.0), (4.0, 4.0), (7.0, 4.0)]], 1.0, 0);
        let row: Vec<u8> = (1..7).map(|x| grey(&pixels, x, 4)).collect();
        assert!(row.windows(2).all(|w| w[0] == w[1]), "{row:?}");
    }

    #[test]
    fn what_is_no_place_is_not_drawn() {
        let mut pixels = Pixels::new(4, 4);
        for bad in [f64::NAN, f64::INFINITY, -1e300, 1e300] {
            pixels.stroke(&[vec![(bad, 1.0), (2.0, bad)]], 1.0, 0);
            pixels.fill(&[vec![(bad, bad); 3]], 0);
        }
    }

    #[test]
    fn dashes_have_their_lengths() {
        let pieces = dashed(&[vec![(0.0, 0.0), (10.0, 0.0)]], &[3.0, 2.0]);
        let ends: Vec<(f64, f64)> = pieces.iter().map(|p| (p[0].0, p[p.len() - 1].0)).collect();
        assert_eq!(ends, [(0.0, 3.0), (5.0, 8.0)]);
    }
}
