//! What all plots have: a field with axes, a title above it and a legend below it.

use wakescope_core::source::Quantity;
use wakescope_core::units::SpanNs;

use super::Room;
use super::axis::{Axis, Scale, Tick, above_each_other, beside_each_other};
use super::scene::{Anchor, DASHES, Ink, LARGE, NORMAL, Point, SMALL, Scene, Shape};
use super::width::{fitting, text_width};
use crate::domain;
use crate::run_set::{Line, RunSet};
use crate::style::clean;

/// Where a plot lies in its picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// The height of a line of a legend.
const LEGEND_LINE: f64 = 20.0;
/// What an entry of a legend takes besides its text.
const SWATCH: f64 = 42.0;

impl Field {
    pub(super) fn across(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    pub(super) fn up(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }
}

/// Begins a picture: its title, where that does not stand beside it. Returns where what it shows can
/// begin.
pub(super) fn begin(
    run_set: &RunSet,
    room: Room,
    title: &str,
    description: String,
) -> (Scene, f64) {
    let mut scene = Scene {
        width: room.width,
        title: match clean(&run_set.title, 120) {
            own if own.is_empty() => title.into(),
            own => format!("{own}: {title}"),
        },
        description,
        ..Scene::default()
    };
    if room.bare {
        return (scene, 4.0);
    }
    let shown = fitting(&scene.title.clone(), LARGE, room.width - 24.0);
    scene.text_of(LARGE, (12.0, 28.0), &shown, Anchor::Start, Ink::Text, true);
    (scene, 40.0)
}

/// Where a plot has its place below `top`, with `height` for all of it.
pub(super) fn field(room: Room, top: f64, height: f64, right: f64) -> Field {
    let left = if room.is_narrow() { 58.0 } else { 72.0 };
    Field { left, right: room.width - right, top: top + 24.0, bottom: top + height - 44.0 }
}

/// An axis's marks, and what it is.
pub(super) struct Side<'a> {
    pub(super) ticks: Vec<Tick>,
    pub(super) title: &'a str,
}

/// Draws the horizontal axis below the field, with lines through it.
pub(super) fn draw_across(scene: &mut Scene, field: Field, side: Side<'_>) {
    scene.begin("x-axis", None);
    let ticks = beside_each_other(side.ticks, SMALL);
    for strong in [false, true] {
        let shown = ticks.iter().filter(|t| t.label.is_empty() != strong);
        let lines: Vec<Vec<Point>> =
            shown.map(|t| vec![(t.at, field.top), (t.at, field.bottom)]).collect();
        if !lines.is_empty() {
            let ink = if strong { Ink::Grid } else { Ink::FineGrid };
            scene.lines(lines, ink, 1.0, &[]);
        }
    }
    for tick in ticks.iter().filter(|t| !t.label.is_empty()) {
        // One that would leave the picture at its end is moved back into it.
        let half = text_width(&tick.label, SMALL) / 2.0;
        let at = tick.at.min(scene.width - half - 2.0).max(half + 2.0);
        scene.text((at, field.bottom + 17.0), &tick.label, Anchor::Middle, Ink::Faint);
    }
    scene.end();
    scene.line((field.left, field.bottom), (field.right, field.bottom), Ink::Text, 1.0);
    let title = fitting(side.title, SMALL, field.right - 8.0);
    scene.text((field.right, field.bottom + 36.0), &title, Anchor::End, Ink::Text);
}

/// Draws the vertical axis to the left of the field, with lines through it.
pub(super) fn draw_up(scene: &mut Scene, field: Field, side: Side<'_>) {
    scene.begin("y-axis", None);
    for tick in above_each_other(side.ticks, SMALL) {
        let ink = if tick.label.is_empty() { Ink::FineGrid } else { Ink::Grid };
        scene.line((field.left, tick.at), (field.right, tick.at), ink, 1.0);
        if !tick.label.is_empty() {
            let at = (field.left - 8.0, tick.at + 4.0);
            scene.text(at, &tick.label, Anchor::End, Ink::Faint);
        }
    }
    scene.end();
    let room = field.right - 8.0;
    scene.text(
        (6.0, field.top - 11.0),
        &fitting(side.title, SMALL, room),
        Anchor::Start,
        Ink::Text,
    );
}

/// Labels to the right of the field.
pub(super) fn draw_right(scene: &mut Scene, field: Field, ticks: Vec<Tick>) {
    scene.begin("right-axis", None);
    for tick in above_each_other(ticks, SMALL).iter().filter(|t| !t.label.is_empty()) {
        scene.text((field.right + 8.0, tick.at + 4.0), &tick.label, Anchor::Start, Ink::Faint);
    }
    scene.end();
}

/// A curve's look: its ink, and its dashes.
pub(super) fn look(at: usize) -> (Ink, &'static [f64]) {
    (Ink::Series(at), DASHES[at % DASHES.len()])
}

/// Draws vertical lines at limits, as far as they lie within the field; those of shares end where the
/// share begins. Their names stand at the top, and of those that would touch only the first. Of a limit
/// beyond the axis the name has an arrow.
pub(super) fn draw_limits(
    scene: &mut Scene,
    field: Field,
    lines: &[Line],
    x: &Axis,
    share_at: impl Fn(f64) -> f64,
) -> Vec<Taken> {
    let mut taken = Vec::new();
    if lines.is_empty() {
        return taken;
    }
    scene.begin("limits", None);
    for line in lines {
        #[allow(clippy::cast_precision_loss)] // A place in a picture.
        let at_ns = line.at_ns as f64;
        let (at, is_below, is_above) = (x.at(at_ns), at_ns < x.low, at_ns > x.high);
        let corner = line.share.map_or(field.bottom, &share_at);
        let down = (!is_below).then_some((at, field.top));
        let across = line.share.map(|_| (field.right, corner));
        let path: Vec<Point> = down.into_iter().chain([(at, corner)]).chain(across).collect();
        if !is_above && path.len() > 1 {
            scene.lines(vec![path], Ink::Limit, 1.5, &[6.0, 4.0]);
        }
        let room = field.right - field.left - 12.0 - text_width("← ", SMALL);
        let label = fitting(&clean(&line.label, 60), SMALL, room);
        let text = match (is_below, is_above) {
            (true, _) => format!("← {label}"),
            (_, true) => format!("{label} →"),
            _ => label,
        };
        let width = text_width(&text, SMALL);
        let (anchor, from) = if at + 6.0 + width <= field.right {
            (Anchor::Start, at + 6.0)
        } else {
            (Anchor::End, at - 6.0 - width)
        };
        let place = (0..4).map(|row| field.top + 14.0 + 16.0 * f64::from(row)).find(|&y| {
            let own = Taken { left: from, right: from + width, y };
            from >= field.left && !taken.iter().any(|other| own.touches(other))
        });
        if let Some(y) = place {
            taken.push(Taken { left: from, right: from + width, y });
            let x = if anchor == Anchor::Start { from } else { from + width };
            scene.text((x, y), &text, anchor, Ink::Limit);
        }
    }
    scene.end();
    taken
}

/// Where a text stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) left: f64,
    pub(super) right: f64,
    /// Its baseline.
    pub(super) y: f64,
}

impl Taken {
    /// Whether two texts are too near to each other.
    pub(super) fn touches(&self, other: &Self) -> bool {
        let is_beside = self.left < other.right + 6.0 && other.left < self.right + 6.0;
        is_beside && (self.y - other.y).abs() < 15.0
    }
}

/// One entry of a legend.
pub(super) struct Named {
    pub(super) name: String,
    /// The curve that it names, or a bar's colour.
    pub(super) series: usize,
    pub(super) is_bar: bool,
}

/// The legend of a picture's curves: their names, and the largest value of each.
pub(super) fn names(run_set: &RunSet) -> Vec<Named> {
    let domain = run_set.domain();
    let name = |(series, entry): (usize, &crate::run_set::Entry)| {
        let max = entry.run.summary.max_ns.or_else(|| entry.run.expiries().max_ns);
        let name = match max {
            Some(ns) => format!("{} · max {}", entry.name(), domain::span(ns, domain)),
            None => format!("{} · no samples", entry.name()),
        };
        Named { name, series, is_bar: false }
    };
    run_set.entries.iter().enumerate().map(name).collect()
}

/// Draws a legend from `top` on, in as many columns as have room. Returns where it ends.
pub(super) fn draw_legend(scene: &mut Scene, named: &[Named], left: f64, top: f64) -> f64 {
    let room = scene.width - left - 12.0;
    let widest = named.iter().map(|n| text_width(&n.name, NORMAL)).fold(0.0, f64::max);
    let column = (widest + SWATCH + 18.0).min(room).max(60.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A few, above 0.
    let columns = ((room / column).floor() as usize).clamp(1, named.len().max(1));
    let rows = named.len().div_ceil(columns);
    for (i, entry) in named.iter().enumerate() {
        #[allow(clippy::cast_precision_loss)]
        let (x, y) = (
            left + column * (i / rows.max(1)) as f64,
            top + LEGEND_LINE * ((i % rows.max(1)) as f64 + 1.0),
        );
        if entry.is_bar {
            super::bars::swatch(scene, (x + 8.0, y - 11.0), entry.series);
        } else {
            let (ink, dash) = look(entry.series);
            scene.lines(vec![vec![(x, y - 4.5), (x + 32.0, y - 4.5)]], ink, 2.0, dash);
            scene.dot((x + 16.0, y - 4.5), Shape::of(entry.series), ink);
        }
        let name = fitting(&entry.name, NORMAL, column - SWATCH - 6.0);
        scene.text_of(NORMAL, (x + SWATCH, y), &name, Anchor::Start, Ink::Text, false);
    }
    #[allow(clippy::cast_precision_loss)]
    let end = top + LEGEND_LINE * rows as f64 + 12.0;
    end
}

/// Writes below a picture that ends at a height, if there is anything to say, and tells where it ends then.
pub(super) fn end_with(scene: &mut Scene, height: f64, said: Option<String>) -> f64 {
    let Some(said) = said else { return height };
    scene.text((12.0, height + 12.0), &format!("{said}."), Anchor::Start, Ink::Faint);
    height + 24.0
}

/// Ends a picture of curves at a height, with the legend below unless that stands beside it.
pub(super) fn end(scene: &mut Scene, run_set: &RunSet, room: Room, (left, height): (f64, f64)) {
    scene.height =
        if room.bare { height } else { draw_legend(scene, &names(run_set), left, height) };
}

/// Tells a page's script where the plot lies and what its axes are.
pub(super) fn note(scene: &mut Scene, kind: &str, field: Field, x: &Axis, y: &Axis) {
    let axis = |a: &Axis| {
        let scale = if a.scale == Scale::Linear { "linear" } else { "log" };
        format!("{scale} {} {}", a.low, a.high)
    };
    let Field { left, right, top, bottom } = field;
    scene.notes = vec![
        ("kind", kind.into()),
        ("box", format!("{left:.1} {top:.1} {right:.1} {bottom:.1}")),
        ("x", axis(x)),
        ("y", axis(y)),
    ];
}

/// `lateness, virtual time`
pub(super) fn lateness(run_set: &RunSet) -> String {
    let kind = match run_set.domain().before_unit() {
        "" => String::new(),
        word => format!(" in {word}time"),
    };
    let mut quantities: Vec<String> = Vec::new();
    for entry in &run_set.entries {
        let name = match entry.run.quantity() {
            Quantity::WakeupLatency if entry.run.source.is_none() => "lateness of wakeups".into(),
            other => other.to_string(),
        };
        if !quantities.contains(&name) {
            quantities.push(name);
        }
    }
    format!("{}{kind}", quantities.join(" / "))
}

/// The span of values that plots of several runs have in common, a little wider than them; `None`
/// without samples.
pub(super) fn extent(run_set: &RunSet) -> Option<(f64, f64)> {
    let mut low = u64::MAX;
    let mut high = 0_u64;
    for run in run_set.entries.iter().map(|e| &e.run) {
        for thread in &run.threads {
            let buckets = thread.expiries.histogram.buckets();
            // What lies below a coarse bucket's upper edge is not known better than that.
            let first = buckets.iter().find(|b| b.upper > 1);
            if let (Some(first), Some(max)) = (first, thread.expiries.max_ns) {
                let least = thread.expiries.min_ns.unwrap_or(0).max(first.lower);
                low = low.min(if least == 0 { first.upper / 2 } else { least });
                high = high.max(max);
            }
        }
    }
    if low > high {
        return None;
    }
    // Limits are part of the picture, unless they would shrink the rest to a point.
    let limits = run_set.lines.iter().map(|l| l.at_ns);
    let limits = limits.filter(|&ns| ns >= low / 1_000 && ns / 1_000 <= high);
    let (low, high) = limits.fold((low, high), |(low, high), ns| (low.min(ns), high.max(ns)));
    #[allow(clippy::cast_precision_loss)]
    let (low, high) = (low.max(1) as f64, high.max(1) as f64);
    let margin = (high / low).max(2.0).powf(0.04);
    Some((low / margin, high * margin))
}

/// `4.31 ms late (CPU 0)` and the like, for descriptions.
pub(super) fn description(run_set: &RunSet) -> String {
    let domain = run_set.domain();
    let sentences = run_set.entries.iter().take(24).map(|entry| {
        let max = entry.run.expiries().max_ns;
        let max = max.map_or_else(
            || "no samples".into(),
            |ns| format!("largest {}", domain::span(ns, domain)),
        );
        format!("{}: {max}", entry.name())
    });
    let mut sentences: Vec<String> = sentences.collect();
    if run_set.entries.len() > sentences.len() {
        sentences.push(format!("and {} more", run_set.entries.len() - sentences.len()));
    }
    let limits = run_set.lines.iter().map(|l| format!("limit {}", clean(&l.label, 60)));
    sentences.extend(limits);
    sentences.join("; ") + "."
}

/// A time of a picture, with its domain.
pub(super) fn span(run_set: &RunSet, ns: u64) -> String {
    match run_set.domain() {
        wakescope_core::run::TimeDomain::Real => SpanNs(ns).to_string(),
        domain => domain::span(ns, domain),
    }
}
