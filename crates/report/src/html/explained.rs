//! Why wakeups were late: causes, the latest wakeups one by one, and the components of all.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::CauseRow;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::Run;

use super::element::{Column, folded, name, paragraph, section, table, text};
use super::{episode, figure, values};
use crate::explain::ranking::{Line, heading, lines};
use crate::explain::{
    Latest, NET_TITLE, WaitLine, beside, cause, cause_lines, latest, not_explained, rest_of_steal,
    wait_lines, wait_notes,
};
use crate::picture::Picture;
use crate::run_set::{Entry, RunSet};
use crate::sound::Sound;

/// The most causes of a run in the table, and of one of several runs.
const MOST_CAUSES: usize = 24;
const MOST_CAUSES_OF_SEVERAL: usize = 6;

pub(super) fn sections(run_set: &RunSet) -> String {
    let components = figure(Picture::Components, run_set, false) + &components(run_set);
    let causes = figure(Picture::Causes, run_set, false)
        + &causes(run_set)
        + &causes_net_of_steal(run_set)
        + &subjects(run_set);
    let episodes = figure(Picture::Episodes, run_set, false) + &episodes(run_set);
    [
        section("waits", "Waits", &waits(run_set)),
        section("causes", "Causes of late wakeups", &causes),
        section("episodes", "Worst wakeups", &episodes),
        section("components", "Components of wakeup latency", &components),
    ]
    .concat()
}

fn waits(run_set: &RunSet) -> String {
    let is_several = run_set.entries.len() > 1;
    let (mut rows, mut notes) = (Vec::new(), String::new());
    for entry in &run_set.entries {
        let Some(waits) = entry.run.explanation.as_ref().and_then(|e| e.waits.as_ref()) else {
            continue;
        };
        for WaitLine { kind, count, sum_ns, worst_ns, cause, culprit } in wait_lines(waits) {
            let mut cells = if is_several { vec![name(&entry.name(), 80)] } else { vec![] };
            cells.push(text(kind));
            cells.extend([values::count(count), values::time(Some(sum_ns))]);
            cells.extend([values::time(worst_ns), text(cause), name(&culprit, 80)]);
            rows.push(cells);
        }
        let of_run = if is_several { name(&entry.name(), 80) + ": " } else { String::new() };
        for note in wait_notes(waits, run_set.domain()) {
            notes.push_str(&paragraph("hint", &format!("{of_run}{}", text(&note))));
        }
    }
    if rows.is_empty() {
        return notes;
    }
    let mut head = if is_several { vec![("run", Column::Words)] } else { vec![] };
    head.push(("kind", Column::Words));
    head.extend(["waits", "sum", "longest"].map(|n| (n, Column::Number)));
    head.extend(["cause of the longest", "culprit"].map(|n| (n, Column::Words)));
    table(&values::caption("Waits of the followed threads", run_set.domain()), &head, &rows)
        + &notes
}

fn components(run_set: &RunSet) -> String {
    let mut rows = Vec::new();
    for entry in &run_set.entries {
        let Some(all) = &entry.run.components else { continue };
        let last = if all.sched_duration.is_some() {
            "scheduler latency"
        } else {
            "scheduler latency and duration"
        };
        let mut parts = vec![
            ("interrupt latency", &all.irq_latency),
            ("handler duration", &all.handler_duration),
        ];
        parts.push((last, &all.sched_latency));
        parts.extend(all.sched_duration.as_ref().map(|d| ("scheduling duration", d)));
        for (title, d) in parts {
            let mut row = vec![title.to_owned()];
            if run_set.entries.len() > 1 {
                row.insert(0, name(&entry.name(), 80));
            }
            row.extend(figures(d));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = if run_set.entries.len() > 1 { vec![("run", Column::Words)] } else { vec![] };
    head.push(("component", Column::Words));
    head.extend(["wakeups", "min", "p50", "p99", "p99.9", "max"].map(|n| (n, Column::Number)));
    let shown =
        table(&values::caption("Components of all wakeups", run_set.domain()), &head, &rows);
    if run_set.entries.len() > 1 { folded("The components as a table", &shown) } else { shown }
}

fn figures(d: &Distribution) -> Vec<String> {
    let sound = Sound::of(d);
    let [p50, p99, p999, ..] = Percentile::SHOWN.map(|p| sound.percentile(p));
    let times = [sound.min_ns(), p50, p99, p999, sound.max_ns()].map(values::time);
    std::iter::once(values::count(d.count)).chain(times).collect()
}

fn causes(run_set: &RunSet) -> String {
    let title = "Causes of late wakeups";
    folded_if_any("The causes as a table", &ranking(run_set, title, |run| &run.causes))
}

/// The second ranking, where anything was stolen.
fn causes_net_of_steal(run_set: &RunSet) -> String {
    let table = ranking(run_set, NET_TITLE, |run| match &run.net_of_steal {
        Some(net) => &net.causes,
        None => &[],
    });
    let nets = run_set.entries.iter().filter_map(|entry| entry.run.net_of_steal.as_ref());
    let note = match nets.map(rest_of_steal).find(|note| !note.is_empty()) {
        Some(note) => paragraph("hint", &text(note)),
        None => String::new(),
    };
    folded_if_any("The causes net of measured steal as a table", &(table + &note))
}

fn folded_if_any(title: &str, shown: &str) -> String {
    if shown.is_empty() { String::new() } else { folded(title, shown) }
}

fn ranking(run_set: &RunSet, title: &str, of: impl Fn(&Run) -> &[CauseRow]) -> String {
    let is_several = run_set.entries.len() > 1;
    let most = if is_several { MOST_CAUSES_OF_SEVERAL } else { MOST_CAUSES };
    let mut rows = Vec::new();
    for entry in &run_set.entries {
        for line in cause_lines(of(&entry.run), most) {
            let mut cells = if is_several { vec![name(&entry.name(), 80)] } else { vec![] };
            cells.extend([text(&line.cause(cause)), name(&line.culprit(beside), 80)]);
            cells.push(line.episodes().map_or_else(|| "–".into(), values::count));
            cells.extend([values::time(Some(line.worst_ns())), text(&line.share())]);
            rows.push(cells);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = if is_several { vec![("run", Column::Words)] } else { vec![] };
    head.extend([("cause", Column::Words), ("culprit", Column::Words)]);
    head.extend(["wakeups", "worst", "share"].map(|n| (n, Column::Number)));
    table(&values::caption(title, run_set.domain()), &head, &rows)
}

/// Late time by tasks or code, of runs that were asked for it.
fn subjects(run_set: &RunSet) -> String {
    let table_of = |entry: &Entry| {
        let (ranking, explanation) = (entry.run.ranking.as_ref()?, entry.run.explanation.as_ref()?);
        let row = |line: Line| {
            let episodes = line.episodes.map_or_else(|| "–".into(), values::count);
            vec![name(&line.name, 80), episodes, values::time(line.worst_ns), text(&line.share)]
        };
        let rows: Vec<Vec<String>> = lines(ranking).into_iter().map(row).collect();
        let mut head = vec![("whose time it was", Column::Words)];
        head.extend(["wakeups", "worst", "share"].map(|n| (n, Column::Number)));
        let heading = heading(ranking, explanation);
        let of_run = match run_set.entries.len() {
            0 | 1 => String::new(),
            _ => name(&entry.name(), 80) + ", ",
        };
        let table = table(&values::caption(&heading, run_set.domain()), &head, &rows);
        Some(folded(&(of_run + &text(&heading)), &table))
    };
    run_set.entries.iter().filter_map(table_of).collect()
}

fn episodes(run_set: &RunSet) -> String {
    let mut out = String::new();
    let (shown, left_out) = latest(run_set);
    for Latest { entry, explained, not_explained: others } in shown {
        let of_run =
            if run_set.entries.len() > 1 { name(&entry.name(), 80) + " " } else { String::new() };
        for (rank, of) in explained {
            out.push_str(&episode::tell(&of_run, run_set.domain(), rank, of));
        }
        let others = not_explained(others.into_iter(), run_set.domain());
        out.push_str(&match others.is_empty() {
            true => String::new(),
            false => paragraph("hint", &format!("{of_run}{}", text(&others))),
        });
    }
    let left_out = left_out.map(|said| paragraph("hint", &text(&format!("{said}."))));
    out + &left_out.unwrap_or_default()
}
