//! Why wakeups were late: causes, the latest wakeups one by one, and the components of all.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{CauseRow, TrueShare};
use wakescope_core::percentile::Percentile;
use wakescope_core::run::{Episode, Run};
use wakescope_core::units::{SpanNs, counted, grouped};

use super::element::{Column, folded, name, paragraph, section, table, text};
use super::{figure, values};
use crate::explain::ranking::{Line, heading, lines};
use crate::explain::{
    Latest, NET_TITLE, WaitLine, because, beside, cause, kernel_frame, known, latest,
    not_explained, percents, place, rest_of_steal, shares, shown_causes, step as step_words,
    wait_lines, wait_notes,
};
use crate::picture::Picture;
use crate::run_set::{Entry, RunSet};

/// The most causes of a run in the table, of one of several runs, steps of a timeline, functions of a stack,
/// and shares of what a wakeup truly was.
const MOST_CAUSES: usize = 24;
const MOST_CAUSES_OF_SEVERAL: usize = 6;
const MOST_STEPS: usize = 60;
const MOST_FRAMES: usize = 24;
const MOST_TRUE: usize = 24;

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
    table(&values::caption("Waits of the followed threads", run_set), &head, &rows) + &notes
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
    let shown = table(&values::caption("Components of all wakeups", run_set), &head, &rows);
    if run_set.entries.len() > 1 { folded("The components as a table", &shown) } else { shown }
}

fn figures(d: &Distribution) -> Vec<String> {
    // Nobody has checked these, and a histogram that makes no sense has no percentiles.
    let is_sound = d.fault().is_none();
    let at = |p: Percentile| if is_sound { values::time(d.percentile(p)) } else { "–".into() };
    let mut cells = vec![values::count(d.count), values::time(d.min_ns)];
    cells.extend(Percentile::SHOWN[..3].iter().map(|&p| at(p)));
    cells.push(values::time(d.max_ns));
    cells
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
        for (row, share) in shown_causes(of(&entry.run), most) {
            let mut cells = if is_several { vec![name(&entry.name(), 80)] } else { vec![] };
            cells.extend([text(cause(row.cause)), name(&beside(row.blamed()), 80)]);
            cells.extend([
                values::count(row.episodes),
                values::time(Some(row.worst_ns)),
                text(&share),
            ]);
            rows.push(cells);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = if is_several { vec![("run", Column::Words)] } else { vec![] };
    head.extend([("cause", Column::Words), ("culprit", Column::Words)]);
    head.extend(["wakeups", "worst", "share"].map(|n| (n, Column::Number)));
    table(&values::caption(title, run_set), &head, &rows)
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
        let table = table(&values::caption(&heading, run_set), &head, &rows);
        Some(folded(&(of_run + &text(&heading)), &table))
    };
    run_set.entries.iter().filter_map(table_of).collect()
}

fn episodes(run_set: &RunSet) -> String {
    let mut out = String::new();
    for Latest { entry, explained, not_explained: others } in latest(run_set) {
        for (rank, episode) in explained {
            out.push_str(&tell(run_set, entry, rank, episode));
        }
        let others = not_explained(others.into_iter(), run_set.domain());
        let of_run =
            if run_set.entries.len() > 1 { name(&entry.name(), 80) + " " } else { String::new() };
        out.push_str(&match others.is_empty() {
            true => String::new(),
            false => paragraph("hint", &format!("{of_run}{}", text(&others))),
        });
    }
    out
}

fn tell(run_set: &RunSet, entry: &Entry, rank: usize, episode: &Episode) -> String {
    let domain = run_set.domain();
    let shares = shares(episode);
    let of_run = if run_set.entries.len() > 1 {
        format!("{} ", name(&entry.name(), 80))
    } else {
        String::new()
    };
    let cpu = episode.cpu.map(|cpu| format!("CPU {cpu}, ")).unwrap_or_default();
    let late = crate::domain::span(episode.wakeup_latency_ns, domain);
    let why = because(episode, domain);
    let summary = format!(
        "{of_run}#{rank} {}",
        text(&format!("{cpu}{} in, {late} late: {why}", SpanNs(episode.expiry_ns)))
    );
    let percents = percents(&shares.iter().map(|s| s.ns).collect::<Vec<_>>());
    let row = |(share, percent): (&wakescope_core::explain::Share, String)| {
        let who = [name(&beside(share.blamed()), 96), name(&place(share), 160)];
        let who: Vec<String> = who.into_iter().filter(|w| w != "<bdi></bdi>").collect();
        let frames = share
            .frames
            .iter()
            .take(MOST_FRAMES)
            .map(|f| format!("<li>{}</li>", name(&kernel_frame(f), 160)));
        let stack: String = frames.collect();
        let stack =
            if stack.is_empty() { stack } else { format!("<ol class=\"stack\">{stack}</ol>") };
        vec![
            text(cause(share.cause)),
            values::time(Some(share.ns)),
            text(&percent),
            format!("{}{stack}", who.join(" in ")),
            text(known(share)),
        ]
    };
    let rows: Vec<Vec<String>> = shares.iter().zip(percents).map(row).collect();
    let head = [
        ("cause", Column::Words),
        ("time", Column::Number),
        ("share", Column::Number),
        ("culprit and location", Column::Words),
        ("evidence", Column::Words),
    ];
    let blame = table(&values::caption("Attribution", run_set), &head, &rows);
    folded(&summary, &(blame + &truth(run_set, episode) + &timeline(run_set, episode)))
}

/// What a simulation knows of it; empty of other runs.
fn truth(run_set: &RunSet, episode: &Episode) -> String {
    if episode.truth.is_empty() {
        return String::new();
    }
    let percents = percents(&episode.truth.iter().map(|share| share.ns).collect::<Vec<_>>());
    let row = |(share, percent): (&TrueShare, String)| {
        let who = name(&beside(share.blamed()), 96);
        vec![text(cause(share.cause)), values::time(Some(share.ns)), text(&percent), who]
    };
    let shown = episode.truth.iter().zip(percents).take(MOST_TRUE);
    let rows: Vec<Vec<String>> = shown.map(row).collect();
    let head = [
        ("true cause", Column::Words),
        ("time", Column::Number),
        ("share", Column::Number),
        ("culprit", Column::Words),
    ];
    table(&values::caption("Truth", run_set), &head, &rows)
}

fn timeline(run_set: &RunSet, episode: &Episode) -> String {
    if episode.timeline.is_empty() {
        return String::new();
    }
    let row = |step: &wakescope_core::explain::Step| {
        let micros = format!("{}.{:03} µs", grouped(step.at_ns / 1_000), step.at_ns % 1_000);
        let indent = "<span class=\"deeper\"></span>".repeat(step.depth.min(8) as usize);
        vec![micros, format!("{indent}{}", name(&step_words(step), 200))]
    };
    let mut rows: Vec<Vec<String>> = episode.timeline.iter().take(MOST_STEPS).map(row).collect();
    if episode.timeline.len() > MOST_STEPS {
        rows.push(vec![
            "…".into(),
            format!(
                "{} more in the record",
                counted((episode.timeline.len() - MOST_STEPS) as u64, "step")
            ),
        ]);
    }
    let head = [("time since due", Column::Number), ("event", Column::Words)];
    table(&values::caption("Timeline", run_set), &head, &rows)
}
