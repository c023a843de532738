//! A series of runs: a dot for each, and where it changed.

use wakescope_core::run::TimeDomain;
use wakescope_stats::compare::RunFigures;
use wakescope_stats::trend::{Series, Step, Trend, Unclear};

use super::Room;
use super::axis::{Axis, Tick};
use super::frame::{self, Field, Named, Side, Taken};
use super::scene::{Anchor, Ink, SMALL, Scene, Shape};
use super::width::{fitting, text_width};
use crate::compare::name_of_max;
use crate::quantity;
use crate::style::clean;
use crate::trend::perhaps;

/// How wide the name of a run may be below the picture.
const WIDEST_NAME: f64 = 140.0;

/// One figure of all runs.
struct Figure<'a> {
    name: String,
    /// The least and the largest value in ns that each run can have; `None` where it does not carry it.
    values: Vec<Option<[u64; 2]>>,
    /// `None` where nothing can be said of its changes.
    steps: Option<&'a [Step]>,
    unclear: &'a [Unclear],
}

impl Figure<'_> {
    /// Where it changed, also if that is unclear.
    fn changes(&self) -> impl DoubleEndedIterator<Item = usize> {
        let certain = self.steps.unwrap_or_default().iter().map(|step| step.at);
        let mut all: Vec<usize> = certain.chain(self.unclear.iter().map(|it| it.at)).collect();
        all.sort_unstable();
        all.into_iter()
    }
}

/// The picture of a series; `None` where no run carries a figure.
pub(super) fn scene(trend: &Trend, series: &Series) -> Option<Scene> {
    let room = Room::ALONE;
    let figures = figures(series);
    let (low, high) = extent(&figures)?;
    let mut scene = begin(trend, series, &figures);
    let field = frame::field(room, 40.0, 340.0, 20.0);
    let y = Axis::logarithmic(low, high, field.up());
    let across = places(series, field);
    draw_axes(&mut scene, field, &y, series, &across, trend.time_domain);
    let mut taken = Vec::new();
    for (at, figure) in figures.iter().enumerate() {
        draw(&mut scene, at, figure, &across, &y);
        draw_steps(&mut scene, field, at, figure, &across, (&y, &mut taken));
    }
    let named: Vec<Named> = figures
        .iter()
        .enumerate()
        .map(|(series, figure)| Named { name: figure.name.clone(), series, is_bar: false })
        .collect();
    scene.height = frame::draw_legend(&mut scene, &named, field.left, 380.0);
    Some(scene)
}

fn figures(series: &Series) -> Vec<Figure<'_>> {
    let of = |range: fn(&RunFigures) -> Option<[u64; 2]>| series.runs.iter().map(range).collect();
    let p999 = Figure {
        name: "p99.9".into(),
        values: of(RunFigures::p999_range_ns),
        steps: series.p999.as_deref(),
        unclear: &series.p999_unclear,
    };
    let max = Figure {
        name: name_of_max(series.count, &series.runs),
        values: of(RunFigures::max_of_count_range_ns),
        steps: series.max.as_deref(),
        unclear: &series.max_unclear,
    };
    [p999, max].into_iter().filter(|f| f.values.iter().any(Option::is_some)).collect()
}

/// The least and the largest value, with some room.
#[allow(clippy::cast_precision_loss)] // A place in a picture.
fn extent(figures: &[Figure<'_>]) -> Option<(f64, f64)> {
    let values = || figures.iter().flat_map(|f| f.values.iter().flatten().flatten().copied());
    let (low, high) = (values().min()?.max(1) as f64, values().max()?.max(1) as f64);
    let margin = (high / low).max(4.0).powf(0.1);
    Some((low / margin, high * margin))
}

fn begin(trend: &Trend, series: &Series, figures: &[Figure<'_>]) -> Scene {
    let title = format!("{} over {} runs", series.quantity, series.runs.len());
    let sentences = figures.iter().map(|figure| {
        let Some(steps) = figure.steps else {
            return format!("{}: whether it changed is not known", figure.name);
        };
        let steps = steps
            .iter()
            .map(|step| (step.ratio_in_words().replace(" ×", " times"), clean(&step.after, 80)))
            .map(|(ratio, run)| format!("{ratio} from {run} on"));
        let steps: Vec<String> = steps.collect();
        match steps.is_empty() {
            true => format!("{}: no change found", figure.name),
            false => {
                format!("{}: {}{}", figure.name, steps.join(", "), perhaps(figure.unclear))
            }
        }
    });
    let sentences: Vec<String> = sentences.collect();
    let kind = trend.time_domain.before_unit();
    let mut values = figures.iter().flat_map(|figure| figure.values.iter().flatten());
    let has_bounds = values.any(|[least, most]| least < most);
    let mut scene = Scene {
        width: Room::ALONE.width,
        description: format!(
            "{} in {kind}time, a dot for each run{}. {}.",
            quantity::capital(&series.quantity.to_string()),
            if has_bounds { ", or a line between its bounds" } else { "" },
            sentences.join("; ")
        ),
        title,
        ..Scene::default()
    };
    let shown = scene.title.clone();
    scene.text_of(super::scene::LARGE, (12.0, 28.0), &shown, Anchor::Start, Ink::Text, true);
    scene
}

/// Where each run has its place, with half a place on either side.
#[allow(clippy::cast_precision_loss)]
fn places(series: &Series, field: Field) -> Vec<f64> {
    let width = (field.right - field.left) / series.runs.len().max(1) as f64;
    (0..series.runs.len()).map(|at| field.left + width * (at as f64 + 0.5)).collect()
}

fn draw_axes(
    scene: &mut Scene,
    field: Field,
    y: &Axis,
    series: &Series,
    across: &[f64],
    time: TimeDomain,
) {
    // A name at an end has as much room as keeps it inside.
    let room = |at: f64| WIDEST_NAME.min(2.0 * (at.min(scene.width - at) - 4.0));
    let name = |label: &str, at| fitting(&clean(label, 60), SMALL, room(at));
    let runs = series.runs.iter().zip(across);
    let ticks = runs.map(|(run, &at)| Tick { at, label: name(&run.label, at) }).collect();
    frame::draw_across(scene, field, Side { ticks, title: "run" });
    let title = format!("{}{}", time.before_unit(), series.quantity);
    frame::draw_up(scene, field, Side { ticks: y.times(), title: &title });
}

/// A dot per run, and a thin line from dot to dot. Where only bounds are known, a line from one to the other.
#[allow(clippy::cast_precision_loss)]
fn draw(scene: &mut Scene, at: usize, figure: &Figure<'_>, across: &[f64], y: &Axis) {
    let (ink, dash) = frame::look(at);
    let place = |x: f64, ns: u64| (x, y.at(ns.max(1) as f64));
    let all = figure.values.iter().zip(across);
    let all = all.filter_map(|(range, &x)| range.map(|range| range.map(|ns| place(x, ns))));
    let (dots, bounds): (Vec<_>, Vec<_>) = all.partition(|[least, most]| least == most);
    let dots: Vec<_> = dots.into_iter().map(|[dot, _]| dot).collect();
    scene.begin("series", Some(at));
    scene.lines(vec![dots.clone()], ink, 1.0, dash);
    scene.lines(bounds.into_iter().map(Vec::from).collect(), ink, 3.0, &[]);
    for dot in dots {
        scene.dot(dot, Shape::of(at), ink);
    }
    scene.end();
}

/// A line between the runs where the figure changed, and how much, or `?` where that is unclear; and what it was on
/// either side.
fn draw_steps(
    scene: &mut Scene,
    field: Field,
    at: usize,
    figure: &Figure<'_>,
    across: &[f64],
    (y, taken): (&Axis, &mut Vec<Taken>),
) {
    let (ink, _) = frame::look(at);
    let border =
        |run: usize| match (run.checked_sub(1).and_then(|b| across.get(b)), across.get(run)) {
            (Some(before), Some(after)) => (before + after) / 2.0,
            (None, _) => field.left,
            (_, None) => field.right,
        };
    let steps = figure.steps.unwrap_or_default();
    scene.begin("steps", Some(at));
    for step in steps {
        let (begin, end) =
            (figure.changes().rfind(|&at| at < step.at), figure.changes().find(|&at| at > step.at));
        let x = border(step.at);
        let (before, after) = (y.at(step.before_ns), y.at(step.after_ns));
        let mut means = vec![vec![(x, after), (end.map_or(field.right, border), after)]];
        // The change before has drawn it.
        if !steps.iter().any(|other| Some(other.at) == begin) {
            means.push(vec![(begin.map_or(field.left, border), before), (x, before)]);
        }
        scene.lines(means, ink, 3.0, &[]);
        draw_change(scene, field, x, ink);
        write_ratio(scene, field, &format!("{} {}", figure.name, step.ratio_in_words()), x, taken);
    }
    for unclear in figure.unclear {
        let x = border(unclear.at);
        draw_change(scene, field, x, ink);
        write_ratio(scene, field, &format!("{} ?", figure.name), x, taken);
    }
    scene.end();
}

fn draw_change(scene: &mut Scene, field: Field, x: f64, ink: Ink) {
    scene.lines(vec![vec![(x, field.top), (x, field.bottom)]], ink, 1.0, &[3.0, 3.0]);
}

/// At the top, in the first line that has room; not at all where none has.
fn write_ratio(scene: &mut Scene, field: Field, text: &str, x: f64, taken: &mut Vec<Taken>) {
    let width = text_width(text, SMALL);
    let left = if x + 5.0 + width <= field.right { x + 5.0 } else { x - 5.0 - width };
    let place = (0..4).map(|row| field.top + 13.0 + 16.0 * f64::from(row)).find_map(|y| {
        let own = Taken { left, right: left + width, y };
        (left >= field.left && !taken.iter().any(|other| own.touches(other))).then_some(own)
    });
    if let Some(own) = place {
        scene.text((own.left, own.y), text, Anchor::Start, Ink::Text);
        taken.push(own);
    }
}

#[cfg(test)]
mod tests;
