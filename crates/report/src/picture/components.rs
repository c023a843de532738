//! What wakeups are made of: all of them, the late ones, and the latest.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::Components;
use wakescope_core::run::Run;
use wakescope_core::units::{counted, one_or_many};

use super::Room;
use super::bars::{Part, stacked};
use super::frame::{self, Named};
use super::scene::{Anchor, Ink, NORMAL, SMALL, Scene};
use super::width::fitting;
use crate::explain::percents;
use crate::run_set::{Entry, RunSet};

/// The components in order of time. The last stands for the two before it where a kernel does not tell them
/// apart.
const NAMES: [&str; 5] = [
    "interrupt latency",
    "handler duration",
    "scheduler latency",
    "scheduling duration",
    "scheduler latency and duration",
];

const BAR: f64 = 26.0;
const ROW: f64 = 58.0;

pub(super) fn scene(run_set: &RunSet, room: Room) -> Option<Scene> {
    let explained: Vec<&Entry> =
        run_set.entries.iter().filter(|e| e.run.components.is_some()).collect();
    if explained.is_empty() {
        return None;
    }
    let title = "Components of wakeup latency";
    let description = format!(
        "Bars of the same length, divided by the shares of the components. {}",
        frame::description(run_set)
    );
    let (mut scene, top) = frame::begin(run_set, room, title, description);
    let is_shown = |number: &usize| match number {
        2 | 3 => explained.iter().any(|e| has_duration(&e.run)),
        4 => explained.iter().any(|e| !has_duration(&e.run)),
        _ => true,
    };
    let named: Vec<Named> = (0..NAMES.len())
        .filter(is_shown)
        .map(|series| Named { name: NAMES[series].into(), series, is_bar: true })
        .collect();
    let mut y = frame::draw_legend(&mut scene, &named, 12.0, top) + 8.0;
    for entry in &explained {
        if run_set.entries.len() > 1 {
            let name = fitting(&entry.name(), NORMAL, room.width - 24.0);
            scene.text_of(NORMAL, (12.0, y + 10.0), &name, Anchor::Start, Ink::Text, true);
            y += 24.0;
        }
        for row in rows(run_set, &entry.run) {
            let text = fitting(&row.name, SMALL, room.width - 24.0);
            scene.text((12.0, y + 12.0), &text, Anchor::Start, Ink::Text);
            draw_row(&mut scene, room, y + 20.0, &row);
            y += ROW;
        }
    }
    scene.height = y + 4.0;
    Some(scene)
}

fn has_duration(run: &Run) -> bool {
    run.components.as_ref().is_some_and(|c| c.sched_duration.is_some())
}

/// One bar.
struct Row {
    name: String,
    parts: [f64; 5],
}

fn draw_row(scene: &mut Scene, room: Room, y: f64, row: &Row) {
    let whole: f64 = row.parts.iter().sum();
    let part = |(number, (&value, label)): (usize, (&f64, String))| Part { number, value, label };
    let parts: Vec<Part> = row.parts.iter().zip(labels(row)).enumerate().map(part).collect();
    stacked(scene, (12.0, y), (room.width - 24.0, BAR), &parts, whole);
}

/// The share of each part.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
fn labels(row: &Row) -> Vec<String> {
    // Shares do not depend on the unit, and a mean may be less than a ns.
    percents(&row.parts.map(|ns| (ns * 1e3) as u64))
}

#[allow(clippy::cast_precision_loss)] // Shares in a picture.
fn rows(run_set: &RunSet, run: &Run) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(all) = &run.components {
        // Of all wakeups: not all have each component, and means of parts of them would not add up.
        let wakeups = all.handler_duration.count;
        let mean = |d: &Distribution| d.sum_ns as f64 / wakeups.max(1) as f64;
        let parts = parts(
            [mean(&all.irq_latency), mean(&all.handler_duration), mean(&all.sched_latency)],
            all.sched_duration.as_ref().map(mean),
        );
        let count = counted(wakeups, "wakeup");
        rows.push(named(run_set, &format!("all {count}, on average"), parts));
    }
    if let Some(explanation) = &run.explanation {
        let explained = explanation.explained;
        if let (Some(late), true) = (explanation.late_components, explained > 0) {
            let parts = parts_of(&late).map(|ns| ns / explained as f64);
            let is_part = explained < explanation.late;
            let noun = if is_part { "explained late wakeup" } else { "late wakeup" };
            let late = counted(explained, noun);
            let mean = one_or_many(explained, "", ", on average");
            rows.push(named(run_set, &format!("the {late}{mean}"), parts));
        }
    }
    let worst =
        run.worst.iter().filter(|e| e.components.is_some()).max_by_key(|e| e.wakeup_latency_ns);
    if let Some(components) = worst.and_then(|e| e.components) {
        rows.push(named(run_set, "the worst explained wakeup", parts_of(&components)));
    }
    rows.retain(|row| row.parts.iter().sum::<f64>() > 0.0);
    rows
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // From u64s, so in their range.
fn named(run_set: &RunSet, name: &str, parts: [f64; 5]) -> Row {
    let whole = parts.iter().sum::<f64>().round().max(0.0) as u64;
    Row { name: format!("{name}: {}", frame::span(run_set, whole)), parts }
}

#[allow(clippy::cast_precision_loss)]
fn parts_of(c: &Components) -> [f64; 5] {
    let known = [c.irq_latency_ns, c.handler_duration_ns, c.sched_latency_ns].map(|ns| ns as f64);
    parts(known, c.sched_duration_ns.map(|ns| ns as f64))
}

/// The first three components, and the fourth if the kernel tells it apart from the third.
fn parts([irq, handler, sched]: [f64; 3], duration: Option<f64>) -> [f64; 5] {
    match duration {
        Some(duration) => [irq, handler, sched, duration, 0.0],
        None => [irq, handler, 0.0, 0.0, sched],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::runs::guest;
    use crate::picture::{Picture, draw_svg, scene};

    /// The numbers of the components in the legend and in the bars.
    fn drawn(runs: &[&Run]) -> (Vec<bool>, Vec<usize>) {
        let entries = runs.iter().map(|run| Entry::of("run", run)).collect();
        let run_set = RunSet::of(entries);
        let picture = scene(Picture::Components, &run_set, crate::html::WIDE).unwrap();
        let svg = draw_svg(&picture, "c", false);
        let named = NAMES.iter().map(|name| svg.contains(&format!(">{name}<"))).collect();
        let bars = runs.iter().flat_map(|run| rows(&run_set, run));
        let bars = bars.flat_map(|row| (0..NAMES.len()).filter(move |&i| row.parts[i] > 0.0));
        let mut bars: Vec<usize> = bars.collect();
        bars.sort_unstable();
        bars.dedup();
        (named, bars)
    }

    #[test]
    fn a_kernel_that_does_not_tell_two_apart_has_a_part_of_its_own() {
        let newer = guest();
        let mut older = guest();
        older.components.as_mut().unwrap().sched_duration = None;
        let of_all = older.explanation.as_mut().unwrap().late_components.as_mut();
        let of_each = older.worst.iter_mut().filter_map(|e| e.components.as_mut());
        of_all.into_iter().chain(of_each).for_each(|c| c.sched_duration_ns = None);
        for (runs, numbers) in [
            (&[&newer][..], &[0, 1, 2, 3][..]),
            (&[&older], &[0, 1, 4]),
            (&[&older, &newer], &[0, 1, 2, 3, 4]),
        ] {
            let (named, bars) = drawn(runs);
            assert_eq!(bars, numbers);
            assert_eq!(named, [0, 1, 2, 3, 4].map(|i| numbers.contains(&i)));
        }
    }

    /// Rounded alone, what was there was 0 %, and what lacked a little 100 %.
    #[test]
    fn shares_add_up_to_the_whole() {
        let labels = |parts| labels(&Row { name: String::new(), parts });
        assert_eq!(labels([5.0, 5.0, 990.0, 0.0, 0.0]), ["0.5 %", "0.5 %", "99.0 %", "0 %", "0 %"]);
        let most = [4_999_999.0, 1.0, 0.0, 0.0, 0.0];
        assert_eq!(labels(most), [">99.9 %", "<0.1 %", "0 %", "0 %", "0 %"]);
    }
}
