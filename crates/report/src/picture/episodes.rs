//! The latest wakeups as bars, divided by whose their time was.

use wakescope_core::explain::Cause;
use wakescope_core::run::{Episode, TimeDomain};
use wakescope_core::units::SpanNs;

use super::Room;
use super::axis::{Axis, beside_each_other};
use super::bars::{Part, stacked};
use super::causes::number;
use super::frame::{self, Named};
use super::scene::{Anchor, Ink, NORMAL, SMALL, Scene};
use super::width::fitting;
use crate::explain::{self, Latest, ORDER, because, latest, shares};
use crate::run_set::RunSet;

const BAR: f64 = 20.0;
const ROW: f64 = 46.0;

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let (shown, left_out) = latest(run_set);
    let episodes = || shown.iter().flat_map(|l| l.explained.iter().map(|&(_, episode)| episode));
    let longest = episodes().map(|e| e.wakeup_latency_ns).max()?;
    let description = format!(
        "One bar per wakeup: its length is the lateness, its parts are the causes. {}",
        frame::description(run_set)
    );
    let (mut scene, top) =
        frame::begin(run_set, room, "Worst wakeups, with attribution", description);
    let mut y = frame::draw_legend(&mut scene, &legend(episodes), 12.0, top) + 8.0;
    let first = y;
    #[allow(clippy::cast_precision_loss)]
    let x = Axis::linear(longest as f64, (12.0, room.width - 12.0));
    let grid = scene.marks.len();
    for Latest { entry, explained, .. } in &shown {
        if run_set.entries.len() > 1 {
            let name = fitting(&entry.name(), NORMAL, room.width - 24.0);
            scene.text_of(NORMAL, (12.0, y + 12.0), &name, Anchor::Start, Ink::Text, true);
            y += 24.0;
        }
        for &(rank, episode) in explained {
            draw(&mut scene, run_set, room, (y, rank, episode), &x);
            y += ROW;
        }
    }
    draw_axis(&mut scene, run_set, room, (first, y, grid), &x);
    scene.height = frame::end_with(&mut scene, y + 46.0, left_out);
    Some(scene)
}

/// The causes that occur, in the usual order.
fn legend<'a, Episodes>(episodes: impl Fn() -> Episodes) -> Vec<Named>
where
    Episodes: Iterator<Item = &'a Episode>,
{
    let occurs =
        |cause: &Cause| episodes().any(|e| shares(e).iter().any(|share| share.cause == *cause));
    let named = |cause: Cause| Named {
        name: explain::cause(cause).into(),
        series: number(cause),
        is_bar: true,
    };
    ORDER.into_iter().filter(occurs).map(named).collect()
}

#[allow(clippy::cast_precision_loss)]
fn draw(
    scene: &mut Scene,
    run_set: &RunSet,
    room: Room,
    (y, rank, episode): (f64, usize, &Episode),
    x: &Axis,
) {
    let cpu = episode.cpu.map(|cpu| format!("CPU {cpu} · ")).unwrap_or_default();
    let [at, late] =
        [episode.expiry_ns, episode.wakeup_latency_ns].map(|ns| frame::span(run_set, ns));
    let mut text = format!("#{rank}  {cpu}{late} late · {at} in");
    if !room.is_narrow() {
        text.push_str(&format!(" · {}", because(episode, run_set.domain())));
    }
    let text = fitting(&text, SMALL, room.width - 24.0);
    scene.text((12.0, y + 12.0), &text, Anchor::Start, Ink::Text);
    let mut shares = shares(episode);
    shares.sort_by_key(|share| ORDER.iter().position(|&cause| cause == share.cause));
    let part = |share: &wakescope_core::explain::Share| Part {
        number: number(share.cause),
        value: share.ns as f64,
        label: SpanNs(share.ns).to_string(),
    };
    let parts: Vec<Part> = shares.iter().map(part).collect();
    stacked(scene, (x.from, y + 18.0), (x.to - x.from, BAR), &parts, x.high);
}

/// The axis below all bars, and lines through them, which lie behind.
fn draw_axis(
    scene: &mut Scene,
    run_set: &RunSet,
    room: Room,
    (top, bottom, behind): (f64, f64, usize),
    x: &Axis,
) {
    let ticks = beside_each_other(x.times(), SMALL);
    let lines = ticks.iter().map(|t| vec![(t.at, top), (t.at, bottom)]).collect();
    let grid = super::scene::Mark::Lines { lines, ink: Ink::FineGrid, width: 1.0, dash: &[] };
    scene.marks.insert(behind, grid);
    for tick in ticks.iter().filter(|t| !t.label.is_empty()) {
        let anchor = if tick.at <= x.from { Anchor::Start } else { Anchor::Middle };
        let half = super::width::text_width(&tick.label, SMALL) / 2.0;
        let at =
            if anchor == Anchor::Middle { tick.at.min(room.width - half - 2.0) } else { tick.at };
        scene.text((at, bottom + 16.0), &tick.label, anchor, Ink::Faint);
    }
    let kind = match run_set.domain() {
        TimeDomain::Real => "time since the wakeup was due".into(),
        domain => format!("{}time since the wakeup was due", domain.before_unit()),
    };
    scene.text((room.width - 12.0, bottom + 36.0), &kind, Anchor::End, Ink::Text);
}
