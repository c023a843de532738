//! The share of wakeups later than x: how often what happens, down to the single worst case.

use super::axis::Axis;
use super::frame::{self, Field, Side, Taken};
use super::scene::{Anchor, Ink, Point, SMALL, Scene, Shape};
use super::width::text_width;
use super::{Room, curve};
use crate::overlay::Overlay;
use crate::quantity;

pub(super) fn scene(overlay: &Overlay, room: Room) -> Option<Scene> {
    let (low, high) = frame::extent(overlay)?;
    let words = quantity::words_of(overlay);
    let title = format!("Exceedance of {}", words.value);
    let description = format!(
        "Curves that fall from all {} at the upper left to the {} one at the lower right, \
         both scales logarithmic. {}",
        words.many,
        words.most,
        frame::description(overlay)
    );
    let (mut scene, top) = frame::begin(overlay, room, &title, description);
    let height = if room.is_narrow() { 330.0 } else { 420.0 };
    let field = frame::field(room, top, height, if room.is_narrow() { 62.0 } else { 76.0 });
    let x = Axis::logarithmic(low, high, field.across());
    let y = Axis::logarithmic(least_share(overlay), 1.0, field.up());
    let lateness = frame::lateness(overlay);
    frame::draw_across(&mut scene, field, Side { ticks: x.times(), title: &lateness });
    let share = format!("share of {} {} than x", words.many, words.more);
    frame::draw_up(&mut scene, field, Side { ticks: y.shares(), title: &share });
    frame::draw_right(&mut scene, field, y.nines());
    let taken = frame::draw_limits(&mut scene, field, &overlay.lines, &x, |share| y.at(share));
    for (at, entry) in overlay.entries.iter().enumerate() {
        let all = entry.run.expiries();
        let drawn = curve::exceedance(&all, &x, &y);
        let (ink, dash) = frame::look(at);
        scene.begin("series", Some(at));
        scene.lines(drawn.lines, ink, 2.0, dash);
        if let Some(end) = drawn.end {
            scene.dot(end, Shape::of(at), ink);
            if let (1, Some(max)) = (overlay.entries.len(), all.max_ns) {
                let text = format!("max {}", frame::span(overlay, max));
                draw_max(&mut scene, field, end, &text, &taken);
            }
        }
        scene.end();
    }
    frame::note(&mut scene, "exceedance", field, &x, &y);
    frame::end(&mut scene, overlay, room, (field.left, top + height));
    Some(scene)
}

/// Tells the largest value beside its dot: to the left, where the curve is not, as it comes from above.
fn draw_max(scene: &mut Scene, field: Field, end: Point, text: &str, taken: &[Taken]) {
    let width = text_width(text, SMALL);
    let is_room = end.0 - width - 12.0 > field.left;
    let left = if is_room { end.0 - 9.0 - width } else { end.0 + 9.0 };
    let own = Taken { left, right: left + width, y: (end.1 + 16.0).min(field.bottom - 6.0) };
    // The table has it, too.
    if own.right < scene.width && !taken.iter().any(|other| own.touches(other)) {
        scene.text((left, own.y), text, Anchor::Start, Ink::Text);
    }
}

/// A little less than the share of a single wakeup in the longest run.
#[allow(clippy::cast_precision_loss)]
pub(super) fn least_share(overlay: &Overlay) -> f64 {
    let most = overlay
        .entries
        .iter()
        .map(|e| e.run.threads.iter().fold(0_u64, |sum, t| sum.saturating_add(t.expiries.count)));
    let most = most.max().unwrap_or(1).max(10);
    0.45 / most as f64
}
