//! The share of wakeups later than x: how often what happens, down to the single worst case.

use super::axis::Axis;
use super::frame::{self, Field, Side, Taken};
use super::scene::{Anchor, Ink, Point, SMALL, Scene, Shape};
use super::width::text_width;
use super::{Room, curve};
use crate::quantity;
use crate::run_set::RunSet;

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let (low, high) = frame::extent(run_set)?;
    let words = quantity::words_of(run_set);
    let title = format!("Exceedance of {}", words.value);
    let description = format!(
        "Curves that fall from all {} at the upper left to the {} one at the lower right, \
         both scales logarithmic. {}",
        words.many,
        words.most,
        frame::description(run_set)
    );
    let (mut scene, top) = frame::begin(run_set, room, &title, description);
    let height = if room.is_narrow() { 330.0 } else { 420.0 };
    let field = frame::field(room, top, height, if room.is_narrow() { 62.0 } else { 76.0 });
    let x = Axis::logarithmic(low, high, field.across());
    let y = Axis::logarithmic(least_share(run_set), 1.0, field.up());
    let lateness = frame::lateness(run_set);
    frame::draw_across(&mut scene, field, Side { ticks: x.times(), title: &lateness });
    let share = format!("share of {} {} than x", words.many, words.more);
    frame::draw_up(&mut scene, field, Side { ticks: y.shares(), title: &share });
    frame::draw_right(&mut scene, field, y.nines());
    let taken = frame::draw_limits(&mut scene, field, &run_set.lines, &x, |share| y.at(share));
    for (at, entry) in run_set.entries.iter().enumerate() {
        let all = entry.run.expiries();
        let drawn = curve::exceedance(&all, &x, &y);
        let (ink, dash) = frame::look(at);
        scene.begin("series", Some(at));
        scene.lines(drawn.lines, ink, 2.0, dash);
        if let Some(end) = drawn.end {
            scene.dot(end, Shape::of(at), ink);
            if let (1, Some(max)) = (run_set.entries.len(), all.max_ns) {
                let text = format!("max {}", frame::span(run_set, max));
                draw_max(&mut scene, field, end, &text, &taken);
            }
        }
        scene.end();
    }
    frame::note(&mut scene, "exceedance", field, &x, &y);
    frame::end(&mut scene, run_set, room, (field.left, top + height));
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
pub(super) fn least_share(run_set: &RunSet) -> f64 {
    let most = run_set
        .entries
        .iter()
        .map(|e| e.run.threads.iter().fold(0_u64, |sum, t| sum.saturating_add(t.expiries.count)));
    let most = most.max().unwrap_or(1).max(10);
    0.45 / most as f64
}
