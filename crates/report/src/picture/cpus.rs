//! A small picture for each CPU, all on the same axes, so that one that differs is seen at once.

use std::collections::BTreeMap;

use wakescope_core::distribution::Distribution;

use super::axis::Axis;
use super::frame::{self, Field};
use super::scene::{Anchor, Ink, NORMAL, Point, SMALL, Scene};
use super::width::{fitting, text_width};
use super::{Room, curve, exceedance};
use crate::quantity;
use crate::run_set::RunSet;
use wakescope_core::units::{counted, one_or_many};

/// The most CPUs with a picture of their own: the worst of them.
const MOST: usize = 24;
/// A panel's height, with what stands above and below its field.
const HEIGHT: f64 = 158.0;

/// The threads of a CPU: of each run, by its place, its samples.
type Panel<'a> = Vec<(usize, &'a Distribution)>;

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let (low, high) = frame::extent(run_set)?;
    let (panels, left_out) = panels(run_set);
    if panels.is_empty() {
        return None;
    }
    let words = quantity::words_of(run_set);
    let title = format!("Each CPU: exceedance of {}", words.value);
    let description = format!(
        "For each CPU the share of {} {} than x, on the same axes{}. {}",
        words.many,
        words.more,
        all_cpus(run_set).map_or("", |_| "; all CPUs together in grey"),
        frame::description(run_set)
    );
    let (mut scene, top) = frame::begin(run_set, room, &title, description);
    let columns = columns(room, panels.len());
    #[allow(clippy::cast_precision_loss)]
    let width = (room.width - 8.0) / columns as f64;
    let least = exceedance::least_share(run_set);
    for (i, (cpu, panel)) in panels.iter().enumerate() {
        #[allow(clippy::cast_precision_loss)]
        let (column, row) = ((i % columns) as f64, (i / columns) as f64);
        let (left, above) = (4.0 + width * column, top + HEIGHT * row);
        let field = Field {
            left: left + 46.0,
            right: left + width - 10.0,
            top: above + 26.0,
            bottom: above + HEIGHT - 24.0,
        };
        let x = Axis::logarithmic(low, high, field.across());
        let y = Axis::logarithmic(least, 1.0, field.up());
        draw_axes(&mut scene, field, &x, &y);
        draw_panel(&mut scene, run_set, panel, (field, &x, &y));
        let max = panel.iter().filter_map(|(_, d)| d.max_ns).max();
        let max = max
            .map_or_else(|| "no samples".into(), |ns| format!("max {}", frame::span(run_set, ns)));
        draw_title(&mut scene, field, cpu, &max);
    }
    #[allow(clippy::cast_precision_loss)]
    let mut end = top + HEIGHT * panels.len().div_ceil(columns) as f64 + 6.0;
    if left_out > 0 {
        let count = left_out as u64;
        let (more, have) = (counted(count, "more CPU"), one_or_many(count, "has", "have"));
        let text = format!("{more} {have} smaller maxima.");
        scene.text((46.0, end + 8.0), &text, Anchor::Start, Ink::Faint);
        end += 20.0;
    }
    if !room.bare {
        end = frame::draw_legend(&mut scene, &frame::names(run_set), 50.0, end);
    }
    scene.height = end;
    Some(scene)
}

/// As many columns as have room, and no more than leave the rows about even.
fn columns(room: Room, panels: usize) -> usize {
    let most = if room.is_narrow() { 1 } else { 4 };
    let rows = panels.div_ceil(most).max(1);
    panels.div_ceil(rows).clamp(1, most).max(if room.is_narrow() { 1 } else { 2 })
}

/// The CPUs with the largest maxima, in order of their numbers, and how many are left out.
fn panels<'a>(run_set: &'a RunSet) -> (Vec<(String, Panel<'a>)>, usize) {
    let mut of_cpu: BTreeMap<u32, Panel<'a>> = BTreeMap::new();
    for (at, entry) in run_set.entries.iter().enumerate() {
        for thread in &entry.run.threads {
            if let Some(cpu) = thread.cpu {
                of_cpu.entry(cpu).or_default().push((at, &thread.expiries));
            }
        }
    }
    // With one, it would be the picture of all.
    if of_cpu.len() < 2 {
        return (Vec::new(), 0);
    }
    let mut panels: Vec<(u32, Panel<'a>)> = of_cpu.into_iter().collect();
    let all = panels.len();
    panels.sort_by_key(|(_, panel)| {
        std::cmp::Reverse(panel.iter().filter_map(|(_, d)| d.max_ns).max())
    });
    panels.truncate(MOST);
    panels.sort_by_key(|&(cpu, _)| cpu);
    let left_out = all - panels.len();
    (panels.into_iter().map(|(cpu, panel)| (format!("CPU {cpu}"), panel)).collect(), left_out)
}

/// The samples of all CPUs together, which lie behind those of each where there is one run.
fn all_cpus(run_set: &RunSet) -> Option<Distribution> {
    match run_set.entries.as_slice() {
        [entry] => Some(entry.run.expiries()),
        _ => None,
    }
}

fn draw_panel(
    scene: &mut Scene,
    run_set: &RunSet,
    panel: &Panel<'_>,
    (_, x, y): (Field, &Axis, &Axis),
) {
    if let Some(all) = all_cpus(run_set) {
        let all = curve::exceedance(&all, x, y);
        scene.lines(all.lines, Ink::Behind, 1.5, &[]);
    }
    for (at, samples) in panel {
        let drawn = curve::exceedance(samples, x, y);
        let (ink, dash) = frame::look(*at);
        scene.begin("series", Some(*at));
        scene.lines(drawn.lines, ink, 1.5, dash);
        scene.end();
    }
}

fn draw_title(scene: &mut Scene, field: Field, cpu: &str, max: &str) {
    let y = field.top - 9.0;
    scene.text_of(NORMAL, (field.left, y), cpu, Anchor::Start, Ink::Text, true);
    let room = field.right - field.left - text_width(cpu, NORMAL) * 1.1 - 10.0;
    let max = fitting(max, SMALL, room);
    scene.text((field.right, y), &max, Anchor::End, Ink::Faint);
}

/// Lines through the field at each decade, with few labels.
fn draw_axes(scene: &mut Scene, field: Field, x: &Axis, y: &Axis) {
    let decades = |ticks: Vec<super::axis::Tick>| ticks.into_iter().filter(|t| !t.label.is_empty());
    let mut lines: Vec<Vec<Point>> = Vec::new();
    let across = super::axis::beside_each_other(decades(x.times()).collect(), SMALL);
    for tick in &across {
        lines.push(vec![(tick.at, field.top), (tick.at, field.bottom)]);
    }
    let up = super::axis::above_each_other(decades(y.shares()).collect(), SMALL * 1.4);
    for tick in &up {
        lines.push(vec![(field.left, tick.at), (field.right, tick.at)]);
    }
    scene.lines(lines, Ink::Grid, 1.0, &[]);
    for tick in across.iter().filter(|t| !t.label.is_empty()) {
        // Panels stand beside each other: a label at a field's end would touch its neighbour's.
        let half = text_width(&tick.label, SMALL) / 2.0;
        if tick.at - half >= field.left - 40.0 && tick.at + half <= field.right + 8.0 {
            scene.text((tick.at, field.bottom + 16.0), &tick.label, Anchor::Middle, Ink::Faint);
        }
    }
    for tick in up.iter().filter(|t| !t.label.is_empty()) {
        let text = fitting(&tick.label, SMALL, 44.0);
        scene.text((field.left - 5.0, tick.at + 4.0), &text, Anchor::End, Ink::Faint);
    }
}
