//! The largest lateness over the course of a run, so that a single bad moment is seen where it was.

use wakescope_core::maxima::Maxima;
use wakescope_core::run::Run;

use super::axis::Axis;
use super::frame::{self, Side};
use super::scene::{SMALL, Scene, Shape};
use super::width::fitting;
use super::{Room, curve};
use crate::quantity;
use crate::run_set::{Line, RunSet};
use crate::style::clean;

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let courses: Vec<Option<Maxima>> = run_set.entries.iter().map(|e| maxima(&e.run)).collect();
    let (low, high, until) = extent(&courses)?;
    let value = quantity::words_of(run_set).value;
    let description = format!(
        "The largest {value} of each moment from the beginning of the run to its end. {}",
        frame::description(run_set)
    );
    let title = format!("Largest {value} over the course of the run");
    let (mut scene, top) = frame::begin(run_set, room, &title, description);
    let height = if room.is_narrow() { 260.0 } else { 300.0 };
    let field = frame::field(room, top, height, 20.0);
    let x = Axis::linear(until, field.across());
    let y = Axis::logarithmic(low, high, field.up());
    let kind = run_set.domain().before_unit();
    let (across, up) =
        (format!("{kind}time from the start of the run"), format!("largest {kind}{value}"));
    frame::draw_across(&mut scene, field, Side { ticks: x.times(), title: &across });
    frame::draw_up(&mut scene, field, Side { ticks: y.times(), title: &up });
    draw_limits(&mut scene, field, run_set, &y);
    for (at, course) in courses.iter().enumerate() {
        let Some(course) = course else { continue };
        let drawn = curve::course(course, &x, &y);
        let (ink, dash) = frame::look(at);
        scene.begin("series", Some(at));
        scene.lines(drawn.lines, ink, 1.5, dash);
        if let Some(end) = drawn.end {
            scene.dot(end, Shape::of(at), ink);
        }
        scene.end();
    }
    frame::note(&mut scene, "course", field, &x, &y);
    let end = frame::end_with(&mut scene, top + height, outside(run_set, room, &y));
    frame::end(&mut scene, run_set, room, (field.left, end));
    Some(scene)
}

/// Limits lie across here.
#[allow(clippy::cast_precision_loss)]
fn draw_limits(scene: &mut Scene, field: frame::Field, run_set: &RunSet, y: &Axis) {
    scene.begin("limits", None);
    for line in run_set.lines.iter().filter(|line| is_inside(line, y)) {
        let at = y.at(line.at_ns as f64);
        let line = vec![(field.left, at), (field.right, at)];
        scene.lines(vec![line], super::scene::Ink::Limit, 1.5, &[6.0, 4.0]);
    }
    scene.end();
}

#[allow(clippy::cast_precision_loss)]
fn is_inside(line: &Line, y: &Axis) -> bool {
    let at_ns = line.at_ns as f64;
    at_ns > y.low && at_ns < y.high
}

/// The limits that the picture does not reach, if there are any.
fn outside(run_set: &RunSet, room: Room, y: &Axis) -> Option<String> {
    let outside = run_set.lines.iter().filter(|line| !is_inside(line, y));
    let labels: Vec<String> = outside.map(|line| clean(&line.label, 60)).collect();
    let sentence = format!("Limits outside of the picture: {}", labels.join(", "));
    (!labels.is_empty()).then(|| fitting(&sentence, SMALL, room.width - 30.0))
}

/// The maxima of all threads together; `None` if they are not known.
pub(crate) fn maxima(run: &Run) -> Option<Maxima> {
    let known = run.threads.iter().filter_map(|t| t.maxima.clone());
    known.reduce(|all, one| all.merged(&one)).filter(|all| all.largest().is_some())
}

/// The least and the largest of all, with some room, and when the last one ends.
#[allow(clippy::cast_precision_loss)]
fn extent(courses: &[Option<Maxima>]) -> Option<(f64, f64, f64)> {
    let known = || courses.iter().flatten();
    let values = || known().flat_map(|c| c.max_ns.iter().flatten().copied());
    let (low, high) = (values().min()?.max(1) as f64, values().max()?.max(1) as f64);
    let until = known().map(|c| c.slot_ns as f64 * c.max_ns.len() as f64).fold(0.0, f64::max);
    let margin = (high / low).max(4.0).powf(0.08);
    Some((low / margin, high * margin, until))
}
