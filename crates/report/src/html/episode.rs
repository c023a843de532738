//! One wakeup in a page.

use wakescope_core::explain::TrueShare;
use wakescope_core::run::{Episode, TimeDomain};
use wakescope_core::units::{counted, grouped};

use super::element::{Column, folded, name, table, text};
use super::values;
use crate::explain::{
    Stack, Words, because, beside, cause, culprit_and_place, known, percents, shares, stacks,
    step as step_words,
};
use crate::list;

/// The most steps of a timeline, functions of a stack, and shares of what a wakeup truly was.
const MOST_STEPS: usize = 60;
const MOST_FRAMES: usize = 24;
const MOST_TRUE: usize = 24;

/// A wakeup, folded: what made it late with stacks, what a simulation knows of it, and its timeline. `of_run`
/// stands before its number, as HTML.
pub(crate) fn tell(of_run: &str, domain: TimeDomain, rank: usize, episode: &Episode) -> String {
    let shares = shares(episode);
    let cpu = episode.cpu.map(|cpu| format!("CPU {cpu}, ")).unwrap_or_default();
    let [at, late] =
        [episode.expiry_ns, episode.wakeup_latency_ns].map(|ns| crate::domain::span(ns, domain));
    let why = because(episode, domain);
    let summary = format!("{of_run}#{rank} {}", text(&format!("{cpu}{at} in, {late} late: {why}")));
    let percents = percents(&shares.iter().map(|s| s.ns).collect::<Vec<_>>());
    let row = |(share, percent): (&wakescope_core::explain::Share, String)| {
        let whose = culprit_and_place(share);
        let stacks: String = stacks(share, MOST_FRAMES).iter().map(stack).collect();
        vec![
            text(cause(share.cause)),
            values::time(Some(share.ns)),
            text(&percent),
            format!("{}{stacks}", if whose.is_empty() { whose } else { name(&whose, 260) }),
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
    let blame = table(&values::caption("Attribution", domain), &head, &rows);
    folded(&summary, &(blame + &truth(domain, episode) + &timeline(domain, episode)))
}

fn stack(stack: &Stack) -> String {
    let entry = |words: &Words| format!("<li>{}</li>", name(&words.join(" "), 240));
    let mut entries: String = stack.entries.iter().map(entry).collect();
    if stack.more > 0 {
        entries.push_str(&format!("<li>… {} more</li>", grouped(stack.more as u64)));
    }
    format!("<ol class=\"stack\">{entries}</ol>")
}

/// What a simulation knows of it; empty of other runs.
fn truth(domain: TimeDomain, episode: &Episode) -> String {
    if episode.truth.is_empty() {
        return String::new();
    }
    let percents = percents(&episode.truth.iter().map(|share| share.ns).collect::<Vec<_>>());
    let row = |(share, percent): (&TrueShare, String)| {
        let who = name(&beside(share.blamed()), 96);
        vec![text(cause(share.cause)), values::time(Some(share.ns)), text(&percent), who]
    };
    let (shown, more) = list::first(&episode.truth, MOST_TRUE);
    let mut rows: Vec<Vec<String>> = shown.iter().zip(percents).map(row).collect();
    rows.extend(more.map(|more| vec![more, String::new(), String::new(), String::new()]));
    let head = [
        ("true cause", Column::Words),
        ("time", Column::Number),
        ("share", Column::Number),
        ("culprit", Column::Words),
    ];
    table(&values::caption("Truth", domain), &head, &rows)
}

fn timeline(domain: TimeDomain, episode: &Episode) -> String {
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
    table(&values::caption("Timeline", domain), &head, &rows)
}
