//! Runs as one page: a file of its own that needs no network, and no script to be read.
//!
//! The answer comes first, then what it rests on. Every picture is in the page as SVG, for wide and
//! for narrow screens, with a table beside it. A script adds what a page can do that paper cannot:
//! exact values under the pointer, zoom, and curves that can be switched off.

use wakescope_core::lab::Lab;

use crate::audio;
use crate::matrix::Matrix;
use crate::model::{Drawn, Simulated};
use crate::overlay::{Entry, MOST_CURVES, Overlay};
use crate::picture::{Picture, Room, Scene, draw_svg, scene};
use crate::quantity;
use crate::tail;

pub(crate) mod answer;
mod cpus;
mod data;
pub(crate) mod element;
mod explained;
mod load;
mod machine;
mod matrix;
#[cfg(test)]
mod tests;
mod values;

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
pub fn page(overlay: &Overlay) -> String {
    match Matrix::of(overlay) {
        Some(matrix) if overlay.entries.len() > MOST_CURVES => page_of_pairs(overlay, &matrix),
        _ => assembled(overlay, &answer::of_runs(overlay), &matrix::section(overlay)),
    }
}

/// Whether runs can be in one page.
pub fn has_room(overlay: &Overlay) -> bool {
    overlay.entries.len() <= MOST_CURVES || Matrix::of(overlay).is_some()
}

fn page_of_pairs(overlay: &Overlay, matrix: &Matrix) -> String {
    let latest = matrix.latest(LATEST_PAIRS);
    let entries = latest.iter().map(|&(pair, run)| Entry::of(&matrix::name(pair), run));
    // Above the answer, which is of these only.
    let shown = format!(
        "the {} of {} pairs of CPUs with the latest wakeups",
        latest.len(),
        overlay.entries.len()
    );
    let title = match overlay.title.as_str() {
        "" => quantity::capital(&shown),
        title => format!("{title}: {shown}"),
    };
    let latest = Overlay { title, entries: entries.collect(), lines: overlay.lines.clone() };
    assembled(&latest, &answer::of_runs(&latest), &matrix::section(overlay))
}

/// The page of a lab: its answer and table, then the runs of its cells, of which those of a kernel,
/// model and load are one curve.
pub fn lab_page(lab: &Lab, overlay: &Overlay) -> String {
    assembled(overlay, &crate::lab::html::answer(lab, overlay), &crate::lab::html::results(lab))
}

/// The page of simulations: the runs of all models, the wakeups that were drawn, and what was published.
pub fn model_page(simulated: &Simulated, overlay: &Overlay, drawn: &[Drawn<'_>]) -> String {
    assembled(overlay, &answer::of_runs(overlay), &crate::model::html::results(simulated, drawn))
}

fn assembled(overlay: &Overlay, answer: &str, results: &str) -> String {
    let title = answer::title(overlay);
    let body = [
        format!("<header>\n{answer}</header>\n<main>\n{results}"),
        // Why wakeups were late is what somebody explained the run for.
        explained::sections(overlay),
        legend(overlay),
        exceedance(overlay),
        histogram(overlay),
        values::intervals(overlay),
        cpus::section(overlay),
        course(overlay),
        of_audio(overlay),
        tail(overlay),
        load::section(overlay),
        machine::section(overlay),
        "</main>\n".into(),
    ]
    .concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'sha256-{}'\">\n\
         <meta name=\"generator\" content=\"wakescope\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        SCRIPT_SHA256.trim(),
        text(&title),
        data::json(overlay)
    )
}

/// Which curve is which; each can be switched off.
fn legend(overlay: &Overlay) -> String {
    if overlay.entries.len() < 2 {
        return String::new();
    }
    let entry = |(at, entry): (usize, &crate::overlay::Entry)| {
        format!(
            "<li><button type=\"button\" aria-pressed=\"true\" data-run=\"{at}\">{}<span>{}</span></button></li>\n",
            values::swatch(at),
            element::name(&entry.name(), 120)
        )
    };
    let entries: String = overlay.entries.iter().enumerate().map(entry).collect();
    format!(
        "<nav class=\"legend\" aria-label=\"Runs: switch curves on and off\"><ul>\n{entries}</ul></nav>\n"
    )
}

fn exceedance(overlay: &Overlay) -> String {
    let figure = figure(Picture::Exceedance, overlay, true);
    let title = format!("Exceedance of {}", quantity::words_of(overlay).value);
    section("exceedance", &title, &(figure + &values::percentiles(overlay)))
}

fn histogram(overlay: &Overlay) -> String {
    let figure = figure(Picture::Histogram, overlay, true);
    let title = quantity::by_value(quantity::words_of(overlay));
    section("histogram", &title, &(figure + &values::bands(overlay)))
}

fn course(overlay: &Overlay) -> String {
    let figure = figure(Picture::Course, overlay, true);
    if figure.is_empty() {
        return String::new();
    }
    section(
        "course",
        &format!("Largest {} over the course of the run", quantity::words_of(overlay).value),
        &(figure + &values::course(overlay)),
    )
}

/// What came of a virtual sound card.
fn of_audio(overlay: &Overlay) -> String {
    let figure = figure(Picture::Audio, overlay, false);
    if figure.is_empty() {
        return String::new();
    }
    let said = overlay.entries.iter().flat_map(|entry| {
        let of_run = audio::sentences(&entry.run);
        let lead =
            if overlay.entries.len() > 1 { format!("{}: ", entry.name()) } else { String::new() };
        (!of_run.is_empty()).then(|| element::paragraph("lead", &text(&(lead + &of_run.join(" ")))))
    });
    section("audio", "Fragments over the course of the run", &(said.collect::<String>() + &figure))
}

/// What a run proves about wakeups later than its latest.
fn tail(overlay: &Overlay) -> String {
    // Of several, each would need a page of its own.
    let [entry] = overlay.entries.as_slice() else { return String::new() };
    let said = tail::sentences(&entry.run);
    let said: String = said.iter().map(|s| element::paragraph("lead", &text(s))).collect();
    section("tail", "How long is long enough", &said)
}

/// Room for a picture on a wide screen and on paper, and on a narrow one.
pub(crate) const WIDE: Room = Room { width: 880.0, bare: true };
pub(crate) const NARROW: Room = Room { width: 400.0, bare: true };

/// A picture for wide and narrow screens; nothing if no run has what it shows.
fn figure(picture: Picture, overlay: &Overlay, can_zoom: bool) -> String {
    let (Some(wide), Some(narrow)) =
        (scene(picture, overlay, WIDE), scene(picture, overlay, NARROW))
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
