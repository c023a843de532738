//! The fragments of a virtual sound card over the course of the run: how long each took from write to
//! write, how long its computing, and how long the buffer lasts.

use wakescope_core::audio::{Audio, AudioPlan};
use wakescope_core::units::SpanNs;

use super::axis::Axis;
use super::frame::{self, Named, Side};
use super::scene::{Anchor, Ink, Scene};
use super::{Room, curve};
use crate::audio;
use crate::run_set::RunSet;

/// What one run has: its place among the runs, its set-up and its fragments.
type Drawn = (usize, AudioPlan, Audio);

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let runs: Vec<Drawn> = run_set.entries.iter().enumerate().filter_map(drawn).collect();
    let (high, until) = extent(&runs)?;
    let title = "Fragments over the course of the run";
    let description = format!(
        "The longest cycle and the longest computing of each moment, and how long the buffer lasts. {}",
        frame::description(run_set)
    );
    let (mut scene, top) = frame::begin(run_set, room, title, description);
    let height = if room.is_narrow() { 260.0 } else { 300.0 };
    let field = frame::field(room, top, height, 20.0);
    let (x, y) = (Axis::linear(until, field.across()), Axis::linear(high, field.up()));
    let kind = run_set.domain().before_unit();
    let across = format!("{kind}time from the start of the run");
    let up = format!("longest {kind}time of a fragment");
    frame::draw_across(&mut scene, field, Side { ticks: x.times(), title: &across });
    frame::draw_up(&mut scene, field, Side { ticks: y.times(), title: &up });
    draw_lines(&mut scene, field, &runs, &y);
    let mut named = Vec::new();
    for (at, _, of) in &runs {
        let name = run_set.entries[*at].name();
        let curves = [("from write to write", &of.cycle_maxima), ("computing", &of.compute_maxima)];
        for (i, (what, maxima)) in curves.into_iter().enumerate() {
            let series = 2 * at + i;
            let (ink, dash) = frame::look(series);
            scene.begin("series", Some(*at));
            scene.lines(curve::course(maxima, &x, &y).lines, ink, 1.5, dash);
            scene.end();
            let name = match runs.len() {
                1 => what.to_owned(),
                _ => format!("{name}: {what}"),
            };
            named.push(Named { name, series, is_bar: false });
        }
    }
    // No list of runs can stand for it: each run has two curves.
    scene.height = frame::draw_legend(&mut scene, &named, field.left, top + height);
    Some(scene)
}

fn drawn((at, entry): (usize, &crate::run_set::Entry)) -> Option<Drawn> {
    let of = audio::of(&entry.run).filter(|of| of.cycle_maxima.largest().is_some())?;
    Some((at, entry.run.plan.audio?, of))
}

/// How long a fragment is, and how long the buffer lasts: what is longer than that is heard.
#[allow(clippy::cast_precision_loss)] // Places in a picture.
fn draw_lines(scene: &mut Scene, field: frame::Field, runs: &[Drawn], y: &Axis) {
    let mut lines: Vec<(u64, &str, Ink)> = Vec::new();
    for (_, plan, _) in runs {
        for line in
            [(plan.fragment_ns, "fragment", Ink::Faint), (plan.buffer_ns(), "buffer", Ink::Limit)]
        {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    scene.begin("limits", None);
    for (ns, name, ink) in lines {
        let at = y.at(ns as f64);
        scene.lines(vec![vec![(field.left, at), (field.right, at)]], ink, 1.5, &[6.0, 4.0]);
        let name = format!("{name} {}", SpanNs(ns));
        // Cycles are about as long as a fragment, and computing is shorter: between them there is room.
        let below = if ink == Ink::Limit { -5.0 } else { 14.0 };
        scene.text((field.right - 4.0, at + below), &name, Anchor::End, ink);
    }
    scene.end();
}

/// The longest time of all with some room, which holds the buffers, and when the last run ends.
#[allow(clippy::cast_precision_loss)]
fn extent(runs: &[Drawn]) -> Option<(f64, f64)> {
    let longest = |(_, plan, of): &Drawn| {
        let most = of.cycle_maxima.largest().max(of.compute_maxima.largest());
        most.unwrap_or(0).max(plan.buffer_ns())
    };
    let until =
        |(_, _, of): &Drawn| of.cycle_maxima.slot_ns as f64 * of.cycle_maxima.max_ns.len() as f64;
    let high = runs.iter().map(longest).max()? as f64 * 1.1;
    Some((high, runs.iter().map(until).fold(0.0, f64::max)))
}

#[cfg(test)]
mod tests {
    use crate::audio::tests::run;
    use crate::picture::{Picture, svg};
    use crate::run_set::{Entry, RunSet};
    use crate::text::tests::run_of;

    #[test]
    fn the_limit_is_drawn_in_red_beside_cycles_and_computing() {
        let (run, other) = (run(), run_of(&[&[1_000; 9]]));
        let drawn = svg(Picture::Audio, &RunSet::of(vec![Entry::of("a", &run)])).unwrap();
        for want in
            ["buffer 8.70 ms", "fragment 2.90 ms", "from write to write", "computing", "b00020"]
        {
            assert!(drawn.contains(want), "{want}: {drawn}");
        }
        assert!(svg(Picture::Audio, &RunSet::of(vec![Entry::of("a", &other)])).is_none());
    }
}
