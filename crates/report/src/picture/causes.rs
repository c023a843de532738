//! What makes wakeups late, the largest share first.

use wakescope_core::explain::Cause;
use wakescope_core::units::counted;

use super::Room;
use super::bars::{Part, stacked};
use super::frame;
use super::scene::{Anchor, Ink, NORMAL, SMALL, Scene};
use super::width::{fitting, text_width};
use crate::explain::{self, CauseLine as Line, cause_lines};
use crate::run_set::{Entry, RunSet};

/// The most causes of a run that have a bar, of one of several runs, and of all of them.
const MOST: usize = 10;
const MOST_OF_SEVERAL: usize = 5;
const MOST_OF_ALL: usize = 40;
const BAR: f64 = 12.0;
const ROW: f64 = 40.0;

/// The number of several causes together.
const OTHERS: usize = 20;

/// The number of a cause's colour and hatching: causes of a kind have similar ones.
pub(super) fn number(cause: Cause) -> usize {
    match cause {
        Cause::IrqOff => 1,
        Cause::NoPreemptionPoint => 0,
        Cause::PreemptOff => 7,
        Cause::Irq => 2,
        Cause::Softirq => 9,
        Cause::Nmi => 16,
        Cause::HigherPriorityTask => 3,
        Cause::EqualOrLowerTask => 10,
        Cause::Scheduler => 5,
        Cause::RemoteWakeup => 12,
        Cause::IdleExit => 4,
        Cause::Throttled => 11,
        Cause::Steal => 8,
        Cause::PageFault => 19,
        Cause::Tracer => 13,
        Cause::Unexplained => 6,
    }
}

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let explained: Vec<&Entry> =
        run_set.entries.iter().filter(|e| !e.run.causes.is_empty()).collect();
    if explained.is_empty() {
        return None;
    }
    let description = format!(
        "One bar per cause: its length is the share of the total lateness of late wakeups. {}",
        description(&explained)
    );
    let (mut scene, mut y) = frame::begin(run_set, room, "Causes of late wakeups", description);
    let most = if run_set.entries.len() > 1 { MOST_OF_SEVERAL } else { MOST };
    let (shown, others) = explained.split_at(explained.len().min(MOST_OF_ALL / most));
    for entry in shown {
        if run_set.entries.len() > 1 {
            let name = fitting(&entry.name(), NORMAL, room.width - 24.0);
            scene.text_of(NORMAL, (12.0, y + 14.0), &name, Anchor::Start, Ink::Text, true);
            y += 24.0;
        }
        for line in cause_lines(&entry.run.causes, most) {
            draw(&mut scene, run_set, room, y, &line);
            y += ROW;
        }
    }
    let left_out = explain::left_out_runs(others.len());
    scene.height = frame::end_with(&mut scene, y + 4.0, left_out);
    Some(scene)
}

/// A line with its share, in the words of the text.
fn draw(scene: &mut Scene, run_set: &RunSet, room: Room, y: f64, line: &Line) {
    let wide = room.width - 24.0;
    let beside = if room.is_narrow() {
        line.share()
    } else {
        let wakeups = line.episodes().map(|count| counted(count, "wakeup"));
        let worst = format!("worst {}", frame::span(run_set, line.worst_ns()));
        [Some(line.share()), wakeups, Some(worst)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" · ")
    };
    scene.text((room.width - 12.0, y + 12.0), &beside, Anchor::End, Ink::Faint);
    let name = match line.culprit(explain::beside) {
        culprit if culprit.is_empty() => line.cause(explain::cause),
        culprit => format!("{} · {culprit}", line.cause(explain::cause)),
    };
    let name = fitting(&name, SMALL, wide - text_width(&beside, SMALL) - 12.0);
    scene.text((12.0, y + 12.0), &name, Anchor::Start, Ink::Text);
    scene.bar((12.0, y + 18.0), wide, BAR, Ink::FineGrid);
    let number = line.single().map_or(OTHERS, |row| number(row.cause));
    let part = Part { number, value: line.part(), label: String::new() };
    stacked(scene, (12.0, y + 18.0), (wide, BAR), &[part], 1.0);
}

fn description(explained: &[&Entry]) -> String {
    let first = explained.iter().filter_map(|entry| {
        let first = cause_lines(&entry.run.causes, 1).into_iter().next()?;
        let what = explain::named(first.single()?.blamed());
        Some(format!("{}: {what} {}.", entry.name(), first.share()))
    });
    first.collect::<Vec<_>>().join(" ")
}
