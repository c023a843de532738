//! How many wakeups were how late, both scales logarithmic, as in the texts of 2002. Of runs with
//! different numbers of wakeups, shares: a longer run is not a worse one.

use super::axis::Axis;
use super::frame::{self, Field, Side};
use super::scene::{Scene, Shape};
use super::{Room, curve};
use crate::quantity;
use crate::run_set::{Entry, RunSet};

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let (low, high) = frame::extent(run_set)?;
    let scale = Scale::of(run_set);
    let words = quantity::words_of(run_set);
    let of_what = match scale {
        Scale::Counts => String::new(),
        Scale::Shares => format!(" as shares of each run's {}", words.many),
    };
    let description = format!(
        "Outlines of histograms{of_what}, both scales logarithmic, eight bands to each doubling. {}",
        frame::description(run_set)
    );
    let (mut scene, top) = frame::begin(run_set, room, &quantity::by_value(words), description);
    let height = if room.is_narrow() { 300.0 } else { 360.0 };
    let field = frame::field(room, top, height, 20.0);
    let x = Axis::logarithmic(low, high, field.across());
    let y = scale.axis(run_set, field);
    let lateness = frame::lateness(run_set);
    frame::draw_across(&mut scene, field, Side { ticks: x.times(), title: &lateness });
    let bands = "8 bands to each doubling";
    let counts = format!("{}, {bands}", words.many);
    let shares = format!("share of a run's {}, {bands}", words.many);
    let up = match scale {
        Scale::Counts => Side { ticks: y.counts(), title: &counts },
        Scale::Shares => Side { ticks: y.shares(), title: &shares },
    };
    frame::draw_up(&mut scene, field, up);
    frame::draw_limits(&mut scene, field, &without_shares(run_set), &x, |_| field.bottom);
    for (at, entry) in run_set.entries.iter().enumerate() {
        let drawn = curve::histogram(&entry.run.expiries(), scale.whole(entry), &x, &y);
        let (ink, dash) = frame::look(at);
        scene.begin("series", Some(at));
        scene.lines(drawn.lines, ink, 1.75, dash);
        if let Some(end) = drawn.end {
            scene.dot(end, Shape::of(at), ink);
        }
        scene.end();
    }
    frame::note(&mut scene, "histogram", field, &x, &y);
    if scale == Scale::Shares {
        scene.notes.push(("shares", String::new()));
    }
    frame::end(&mut scene, run_set, room, (field.left, top + height));
    Some(scene)
}

/// Limits where there are no shares to draw them at.
fn without_shares(run_set: &RunSet) -> Vec<crate::run_set::Line> {
    run_set.lines.iter().map(|l| crate::run_set::Line { share: None, ..l.clone() }).collect()
}

/// What the height of a band is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// How many wakeups.
    Counts,
    /// Which share of its run's wakeups.
    Shares,
}

impl Scale {
    fn of(run_set: &RunSet) -> Self {
        let mut counts = run_set.entries.iter().map(|e| e.run.expiries().count);
        let first = counts.next();
        if counts.all(|count| Some(count) == first) { Self::Counts } else { Self::Shares }
    }

    /// What a count of a run's wakeups is divided by.
    #[allow(clippy::cast_precision_loss)] // Heights in a picture.
    fn whole(self, entry: &Entry) -> f64 {
        match self {
            Self::Counts => 1.0,
            Self::Shares => entry.run.expiries().count.max(1) as f64,
        }
    }

    /// From a little less than a single wakeup to a little more than the highest band.
    #[allow(clippy::cast_precision_loss)]
    fn axis(self, run_set: &RunSet, field: Field) -> Axis {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for entry in &run_set.entries {
            let whole = self.whole(entry);
            for band in curve::bands(&entry.run.expiries()) {
                least = least.min(1.0 / whole);
                most = most.max(band.count as f64 / whole);
            }
        }
        Axis::logarithmic(0.6 * least, 1.5 * most.max(least), field.up())
    }
}
