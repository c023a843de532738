//! How many wakeups were how late, both scales logarithmic, as in the texts of 2002.

use super::axis::Axis;
use super::frame::{self, Side};
use super::scene::{Scene, Shape};
use super::{Room, curve};
use crate::overlay::Overlay;
use crate::quantity;

pub(super) fn scene(overlay: &Overlay, room: Room) -> Option<Scene> {
    let (low, high) = frame::extent(overlay)?;
    let words = quantity::words_of(overlay);
    let description = format!(
        "Outlines of histograms, both scales logarithmic, eight bands to each doubling. {}",
        frame::told(overlay)
    );
    let (mut scene, top) = frame::begin(overlay, room, &quantity::by_value(words), description);
    let height = if room.is_narrow() { 300.0 } else { 360.0 };
    let field = frame::field(room, top, height, 20.0);
    let x = Axis::logarithmic(low, high, field.across());
    let y = Axis::logarithmic(0.6, most(overlay) * 1.5, field.up());
    let lateness = frame::lateness(overlay);
    frame::draw_across(&mut scene, field, Side { ticks: x.times(), title: &lateness });
    let counts = format!("{}, 8 bands to each doubling", words.many);
    frame::draw_up(&mut scene, field, Side { ticks: y.counts(), title: &counts });
    frame::draw_limits(&mut scene, field, &without_shares(overlay), &x, |_| field.bottom);
    for (at, entry) in overlay.entries.iter().enumerate() {
        let drawn = curve::histogram(&entry.run.expiries(), &x, &y);
        let (ink, dash) = frame::look(at);
        scene.begin("series", Some(at));
        scene.lines(drawn.lines, ink, 1.75, dash);
        if let Some(end) = drawn.end {
            scene.dot(end, Shape::of(at), ink);
        }
        scene.end();
    }
    frame::note(&mut scene, "histogram", field, &x, &y);
    frame::end(&mut scene, overlay, room, (field.left, top + height));
    Some(scene)
}

/// Limits where there are no shares to draw them at.
fn without_shares(overlay: &Overlay) -> Vec<crate::overlay::Line> {
    overlay.lines.iter().map(|l| crate::overlay::Line { share: None, ..l.clone() }).collect()
}

/// The largest count of a band.
#[allow(clippy::cast_precision_loss)]
fn most(overlay: &Overlay) -> f64 {
    let most =
        overlay.entries.iter().flat_map(|e| curve::bands(&e.run.expiries())).map(|b| b.count);
    most.max().unwrap_or(1) as f64
}
