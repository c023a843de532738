//! Runs as one page: a file of its own that needs no network, and no script to be read.
//!
//! The answer comes first, then what it rests on. Every picture is in the page as SVG, for wide and
//! for narrow screens, with a table beside it. A script adds what a page can do that paper cannot:
//! exact values under the pointer, zoom, and curves that can be switched off.

use wakescope_core::lab::Lab;

use crate::audio;
use crate::matrix::Matrix;
use crate::model::{Drawn, Simulated};
use crate::picture::{Picture, Room, Scene, draw_svg, scene};
use crate::quantity;
use crate::run_set::{Entry, MOST_CURVES, RunSet};
use crate::tail;

pub(crate) mod answer;
mod cpus;
mod data;
pub(crate) mod element;
pub(crate) mod episode;
mod explained;
mod load;
mod machine;
mod matrix;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use element::{section, text};

/// How the page looks, on a screen and on paper.
const STYLE: &str = include_str!("../assets/page.css");
/// What it can do besides being read: the arithmetic of curves, and what shows them.
const SCRIPT: &str =
    concat!(include_str!("../assets/curves.js"), include_str!("../assets/page.js"));
/// The script's SHA-256: nothing else may run in the page, whatever was smuggled into it.
const SCRIPT_SHA256: &str = include_str!("../assets/page.js.sha256");

/// The most pairs of CPUs with a curve each, where there are more pairs than curves can be told apart.
const LATEST_PAIRS: usize = 12;

/// The page of some runs.
///
/// Of more pairs of CPUs than curves can be told apart, all are in the heat map, and the latest have curves.
pub fn page(run_set: &RunSet) -> String {
    match Matrix::of(run_set) {
        Some(matrix) if run_set.entries.len() > MOST_CURVES => page_of_pairs(run_set, &matrix),
        _ => {
            let title = answer::title(run_set);
            assembled(run_set, &title, &answer::of_runs(run_set), &matrix::section(run_set))
        }
    }
}

/// Whether runs can be in one page.
pub fn has_room(run_set: &RunSet) -> bool {
    run_set.entries.len() <= MOST_CURVES || Matrix::of(run_set).is_some()
}

fn page_of_pairs(run_set: &RunSet, matrix: &Matrix) -> String {
    let latest = matrix.latest(LATEST_PAIRS);
    let entries = latest.iter().map(|&(pair, run)| Entry::of(&matrix::name(pair), run));
    // Above the answer, which is of these only.
    let shown = format!(
        "the {} of {} pairs of CPUs with the latest wakeups",
        latest.len(),
        run_set.entries.len()
    );
    let title = match run_set.title.as_str() {
        "" => quantity::capital(&shown),
        title => format!("{title}: {shown}"),
    };
    let latest = RunSet { title, entries: entries.collect(), lines: run_set.lines.clone() };
    let title = answer::title(&latest);
    assembled(&latest, &title, &answer::of_runs(&latest), &matrix::section(run_set))
}

/// The page of a lab: its answer, heat map, table and causes, then the runs of its cells, of which
/// those of a kernel, model and load are one curve. Without runs, it is made of the record alone.
pub fn lab_page(lab: &Lab, run_set: &RunSet) -> String {
    let title = match run_set.title.as_str() {
        "" => crate::lab::html::title(lab),
        _ => answer::title(run_set),
    };
    let answer = crate::lab::html::answer(lab, run_set);
    let results = crate::lab::html::results(lab, !run_set.entries.is_empty());
    assembled(run_set, &title, &answer, &results)
}

/// The page of simulations: the runs of all models, the wakeups that were drawn, and what was published.
pub fn model_page(simulated: &Simulated, run_set: &RunSet, drawn: &[Drawn<'_>]) -> String {
    let title = answer::title(run_set);
    let answer = crate::model::html::answer(simulated, run_set);
    let results = crate::model::html::results(simulated, drawn);
    assembled(run_set, &title, &answer, &results)
}

fn assembled(run_set: &RunSet, title: &str, answer: &str, results: &str) -> String {
    let runs = if run_set.entries.is_empty() { String::new() } else { of_runs(run_set) };
    let body = format!("<header>\n{answer}</header>\n<main>\n{results}{runs}</main>\n");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'sha256-{}'\">\n\
         <meta name=\"generator\" content=\"wakescope\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        SCRIPT_SHA256.trim(),
        text(title),
        data::json(run_set)
    )
}

/// All that is shown of runs.
fn of_runs(run_set: &RunSet) -> String {
    [
        // Why wakeups were late is what somebody explained the run for.
        explained::sections(run_set),
        legend(run_set),
        exceedance(run_set),
        histogram(run_set),
        values::intervals(run_set),
        cpus::section(run_set),
        course(run_set),
        of_audio(run_set),
        tail(run_set),
        load::section(run_set),
        machine::section(run_set),
    ]
    .concat()
}

/// A page that moves nowhere: without a script.
pub(crate) fn still_page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\">\n\
         <meta name=\"generator\" content=\"wakescope\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        text(title),
    )
}

/// Which curve is which; each can be switched off.
fn legend(run_set: &RunSet) -> String {
    if run_set.entries.len() < 2 {
        return String::new();
    }
    let entry = |(at, entry): (usize, &crate::run_set::Entry)| {
        format!(
            "<li><button type=\"button\" aria-pressed=\"true\" data-run=\"{at}\">{}<span>{}</span></button></li>\n",
            values::swatch(at),
            element::name(&entry.name(), 120)
        )
    };
    let entries: String = run_set.entries.iter().enumerate().map(entry).collect();
    format!(
        "<nav class=\"legend\" aria-label=\"Runs: switch curves on and off\"><ul>\n{entries}</ul></nav>\n"
    )
}

fn exceedance(run_set: &RunSet) -> String {
    let figure = figure(Picture::Exceedance, run_set, true);
    let title = format!("Exceedance of {}", quantity::words_of(run_set).value);
    section("exceedance", &title, &(figure + &values::percentiles(run_set)))
}

fn histogram(run_set: &RunSet) -> String {
    let figure = figure(Picture::Histogram, run_set, true);
    let title = quantity::by_value(quantity::words_of(run_set));
    section("histogram", &title, &(figure + &values::bands(run_set)))
}

fn course(run_set: &RunSet) -> String {
    let figure = figure(Picture::Course, run_set, true);
    if figure.is_empty() {
        return String::new();
    }
    section(
        "course",
        &format!("Largest {} over the course of the run", quantity::words_of(run_set).value),
        &(figure + &values::course(run_set)),
    )
}

/// What came of a virtual sound card.
fn of_audio(run_set: &RunSet) -> String {
    let figure = figure(Picture::Audio, run_set, false);
    if figure.is_empty() {
        return String::new();
    }
    let said = run_set.entries.iter().flat_map(|entry| {
        let of_run = audio::sentences(&entry.run);
        let lead =
            if run_set.entries.len() > 1 { format!("{}: ", entry.name()) } else { String::new() };
        (!of_run.is_empty()).then(|| element::paragraph("lead", &text(&(lead + &of_run.join(" ")))))
    });
    section("audio", "Fragments over the course of the run", &(said.collect::<String>() + &figure))
}

/// What a run proves about wakeups later than its latest.
fn tail(run_set: &RunSet) -> String {
    // Of several, each would need a page of its own. Those shown as one prove nothing together.
    let [entry @ Entry { runs: 1, .. }] = run_set.entries.as_slice() else {
        return String::new();
    };
    let said = tail::sentences(&entry.run);
    let said: String = said.iter().map(|s| element::paragraph("lead", &text(s))).collect();
    section("tail", "How long is long enough", &said)
}

/// Room for a picture on a wide screen and on paper, and on a narrow one.
pub(crate) const WIDE: Room = Room { width: 880.0, bare: true };
pub(crate) const NARROW: Room = Room { width: 400.0, bare: true };

/// A picture for wide and narrow screens; nothing if no run has what it shows.
fn figure(picture: Picture, run_set: &RunSet, can_zoom: bool) -> String {
    let (Some(wide), Some(narrow)) =
        (scene(picture, run_set, WIDE), scene(picture, run_set, NARROW))
    else {
        return String::new();
    };
    figure_of(picture.name(), (&wide, &narrow), can_zoom)
}

/// A picture that was made for wide and for narrow screens; `id` sets it apart in the page.
pub(crate) fn figure_of(id: &str, (wide, narrow): (&Scene, &Scene), can_zoom: bool) -> String {
    let class = if can_zoom { "plot" } else { "bars" };
    let readout = match can_zoom {
        true => "<p class=\"help\"></p><p class=\"readout\" aria-live=\"polite\"></p>",
        false => "",
    };
    format!(
        "<figure class=\"{class}\" data-picture=\"{id}\">\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n{readout}</figure>\n",
        draw_svg(wide, &format!("{id}-w"), false),
        draw_svg(narrow, &format!("{id}-n"), false)
    )
}
