//! The points of curves, from distributions.

use wakescope_core::distribution::Distribution;
use wakescope_core::maxima::Maxima;

use super::axis::Axis;
use super::scene::Point;
use crate::bands::{self, Band};

/// Two points nearer than this cannot be told apart on a screen.
const NEAR: f64 = 0.6;

/// A curve by its points, and where it ends.
pub(super) struct Curve {
    pub(super) lines: Vec<Vec<Point>>,
    /// Where a dot marks the largest value.
    pub(super) end: Option<Point>,
}

/// The share of samples later than x, in steps at the upper edges of buckets. It ends at the exact
/// maximum: no sample is later.
#[allow(clippy::cast_precision_loss)] // Places in a picture.
pub(super) fn exceedance(d: &Distribution, x: &Axis, y: &Axis) -> Curve {
    let (buckets, Some(max)) = (d.histogram.buckets(), d.max_ns) else {
        return Curve { lines: Vec::new(), end: None };
    };
    let mut left = d.count;
    let share = |left: u64| left as f64 / d.count.max(1) as f64;
    let mut points = vec![(x.at(x.low), y.at(1.0))];
    let mut level = y.at(1.0);
    let mut drawn = f64::NEG_INFINITY;
    // Where the curve was last, if that is not drawn yet.
    let mut put_off: Option<Point> = None;
    for (i, bucket) in buckets.iter().enumerate() {
        let is_last = i + 1 == buckets.len();
        let at = x.at(if is_last { max } else { bucket.upper } as f64);
        left = left.saturating_sub(bucket.count);
        // From there on it is level, perhaps for long: at its own height, not at that of before.
        if let Some((put_off_at, height)) = put_off.filter(|p| at - p.0 >= NEAR || is_last) {
            points.extend([(put_off_at, level), (put_off_at, height)]);
            level = height;
        }
        if is_last {
            points.push((at, level));
            break;
        }
        let next = y.at(share(left));
        // Steps that fall into one dot of a screen are drawn as one.
        if at - drawn >= NEAR || (next - level).abs() >= 8.0 {
            points.push((at, level));
            points.push((at, next));
            (drawn, level, put_off) = (at, next, None);
        } else {
            put_off = Some((at, next));
        }
    }
    // The level in front of the last step, whatever was drawn as one.
    let last = buckets.last().map_or(0, |b| b.count);
    let end = (x.at(max as f64), y.at(share(last)));
    points.push(end);
    Curve { lines: vec![points], end: Some(end) }
}

/// The bands of a picture, eight to each doubling.
pub(crate) fn bands(d: &Distribution) -> Vec<Band> {
    bands::of(d.ranges(), bands::eight_to_a_doubling)
}

/// The outline of a histogram's bands, whose counts are divided by `whole`.
#[allow(clippy::cast_precision_loss)]
pub(super) fn histogram(d: &Distribution, whole: f64, x: &Axis, y: &Axis) -> Curve {
    let bottom = y.at(y.low);
    let mut lines: Vec<Vec<Point>> = Vec::new();
    let mut end_of_last = None;
    for band in bands(d) {
        let (from, to) = (x.at(band.lower as f64), x.at(band.upper as f64));
        let top = y.at(band.count as f64 / whole);
        match lines.last_mut() {
            Some(line) if end_of_last == Some(band.lower) => {
                // Without going down to the ground between neighbours.
                line.pop();
                line.extend([(from, top), (to, top), (to, bottom)]);
            }
            _ => lines.push(vec![(from, bottom), (from, top), (to, top), (to, bottom)]),
        }
        end_of_last = Some(band.upper);
    }
    let end = d.max_ns.map(|max| {
        let count = bands(d).last().map_or(1, |b| b.count);
        (x.at(max as f64), y.at(count as f64 / whole))
    });
    Curve { lines, end }
}

/// The largest lateness of each slot of a run, with gaps where nothing was due.
#[allow(clippy::cast_precision_loss)]
pub(super) fn course(maxima: &Maxima, x: &Axis, y: &Axis) -> Curve {
    let mut lines: Vec<Vec<Point>> = Vec::new();
    let mut is_open = false;
    let slot = maxima.slot_ns as f64;
    let mut worst: Option<(u64, Point)> = None;
    let mut drawn = f64::NEG_INFINITY;
    for (i, max) in maxima.max_ns.iter().enumerate() {
        let Some(max) = *max else {
            is_open = false;
            continue;
        };
        let (from, to) = (x.at(slot * i as f64), x.at(slot * (i + 1) as f64));
        let at = y.at(max as f64);
        if worst.is_none_or(|(most, _)| max > most) {
            worst = Some((max, ((from + to) / 2.0, at)));
        }
        match lines.last_mut() {
            // Of slots that are one dot on a screen, the largest is what is seen.
            Some(line) if is_open && to - drawn < NEAR => {
                if let [.., a, b] = line.as_mut_slice() {
                    (a.1, b.1) = (a.1.min(at), b.1.min(at));
                    b.0 = to;
                }
            }
            Some(line) if is_open => {
                line.extend([(from, at), (to, at)]);
                drawn = to;
            }
            _ => {
                lines.push(vec![(from, at), (to, at)]);
                drawn = to;
            }
        }
        is_open = true;
    }
    Curve { lines, end: worst.map(|(_, at)| at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::axis::Axis;
    use crate::text::tests::run_of;
    use proptest::prelude::*;

    /// How high a curve of steps is at a place: the lowest point drawn there.
    fn height_at(points: &[Point], x: f64) -> f64 {
        let pairs = points.windows(2).filter(|p| p[0].0 <= x && x <= p[1].0);
        pairs.map(|p| p[0].1.max(if x >= p[1].0 { p[1].1 } else { p[0].1 })).fold(0.0, f64::max)
    }

    proptest! {
        /// Where no step is near, the curve is as high as the share of later samples, however many
        /// steps were drawn as one before.
        #[test]
        fn what_is_drawn_is_the_share_of_later_samples(
            near in prop::collection::vec(1_000_000_u64..1_020_000, 20..200),
            far in prop::collection::vec(1_u64..1 << 40, 1..6),
        ) {
            let samples = [near, far].concat();
            let d = run_of(&[&samples]).expiries();
            let x = Axis::logarithmic(0.5, 2e12, (0.0, 700.0));
            let y = Axis::logarithmic(1e-3, 1.0, (400.0, 0.0));
            let drawn = exceedance(&d, &x, &y);
            let (points, end) = (&drawn.lines[0], drawn.end.unwrap());
            let steps: Vec<f64> = d.histogram.buckets().iter().map(|b| x.at(b.upper as f64)).collect();
            for place in (0..7_000).map(|tenth| f64::from(tenth) / 10.0).filter(|&p| p < end.0) {
                if steps.iter().any(|step| (step - place).abs() < 2.0 * NEAR) {
                    continue;
                }
                let value = x.low * (x.high / x.low).powf(place / 700.0);
                let later: u64 =
                    d.histogram.buckets().iter().filter(|b| b.upper as f64 > value).map(|b| b.count).sum();
                let want = y.at(later as f64 / d.count as f64);
                let got = height_at(points, place);
                prop_assert!((got - want).abs() < 0.01, "at {value} ns: {got} instead of {want}");
            }
        }

        #[test]
        fn bands_hold_every_sample_between_ascending_edges(samples in prop::collection::vec(0_u64..1 << 44, 1..200)) {
            let d = run_of(&[&samples]).expiries();
            let bands = bands(&d);
            prop_assert_eq!(bands.iter().map(|b| b.count).sum::<u64>(), samples.len() as u64);
            prop_assert!(bands.windows(2).all(|w| w[0].upper <= w[1].lower));
            for band in &bands {
                let inside = samples.iter().filter(|&&s| s >= band.lower && s < band.upper).count();
                prop_assert_eq!(inside as u64, band.count, "{:?}", band);
            }
        }

        #[test]
        fn shares_only_fall(samples in prop::collection::vec(1_u64..1 << 50, 1..300)) {
            let d = run_of(&[&samples]).expiries();
            let x = Axis::logarithmic(1.0, 1e16, (0.0, 700.0));
            let y = Axis::logarithmic(1e-6, 1.0, (400.0, 0.0));
            let curve = exceedance(&d, &x, &y);
            let points = &curve.lines[0];
            prop_assert!(points.windows(2).all(|w| w[0].0 <= w[1].0 + 1e-9 && w[0].1 <= w[1].1 + 1e-9));
            prop_assert!(points.iter().all(|p| p.0.is_finite() && p.1.is_finite()));
        }
    }
}
