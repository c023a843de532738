//! The largest wakeup latencies of a lab as heat maps: one per load, kernels in rows, models in
//! columns. The colour of a place repeats the figure that stands in it.

use std::fmt::Write;

use wakescope_core::lab::Lab;

use super::causes::Causes;
use crate::html::element::{self, name, paragraph, text};
use crate::lab::figures::micros;
use crate::lab::matrix::{Figure, Kernel, Matrix, Place, Row, Shown};
use crate::lab::{matrix_figures, names, title};
use crate::picture::scene::HEATS;

/// The most loads with a map each. The table below has all.
const MOST_MAPS: usize = 24;

/// From which figure to which the colours go, ns. At least a factor of two apart, so that a small
/// difference has no strong colour.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// `None` if there are not two figures to tell apart.
    fn of(figures: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        figures.clone().nth(1)?;
        let low = figures.clone().fold(f64::INFINITY, f64::min).max(1.0);
        let high = figures.fold(low * 2.0, f64::max);
        Some(Self { low, high })
    }

    /// Which colour a figure has: the steps are equal ratios.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn step(self, ns: f64) -> usize {
        let share = (ns.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        ((share * HEATS.len() as f64) as usize).min(HEATS.len() - 1)
    }

    /// Where a colour begins, ns.
    fn edge(self, step: usize) -> f64 {
        self.low * (self.high / self.low).powf(step as f64 / HEATS.len() as f64)
    }
}

/// The maps of all loads; nothing where there is nothing to compare.
pub(super) fn section(lab: &Lab, matrix: &Matrix, causes: &Causes) -> String {
    let [(of, figure, _), ..] = matrix_figures(&lab.settings);
    let figures: Vec<f64> = matrix.places().filter_map(|place| place.median(figure)).collect();
    let Some(scale) = Scale::of(figures.iter().copied()) else { return String::new() };
    let links = match causes.is_empty() {
        false => "Each figure links to the cause of the latest wakeup.",
        true => "The causes of the latest wakeups are not known: --explain and --scope find them.",
    };
    let lead = format!(
        "{}. Darker is later, with one scale for all loads. {links}",
        crate::quantity::capital(&title(matrix, &of, false))
    );
    let maps =
        matrix.loads(MOST_MAPS).into_iter().map(|load| map(matrix, load, figure, scale, causes));
    let html = [
        paragraph("lead", &text(&lead)),
        legend(scale),
        format!("<div class=\"heats\">\n{}</div>\n", maps.collect::<String>()),
    ];
    element::section("heat", "Heat map", &html.concat())
}

/// The figures between which each colour lies.
fn legend(scale: Scale) -> String {
    let step = |step: usize| {
        let (from, to) = (micros(scale.edge(step)), micros(scale.edge(step + 1)));
        format!("<li class=\"h{step}\">{}</li>", text(&format!("{from} to {to}")))
    };
    let steps: String = (0..HEATS.len()).map(step).collect();
    format!("<ol class=\"heat\" aria-label=\"Colours, in virtual µs\">{steps}</ol>\n")
}

/// The map of one load, with those of its kernels and models that have it.
fn map(matrix: &Matrix, load: &str, figure: Figure, scale: Scale, causes: &Causes) -> String {
    let rows: Vec<(&Kernel, &Row)> = matrix
        .kernels
        .iter()
        .filter_map(|kernel| Some((kernel, kernel.rows.iter().find(|row| row.load == load)?)))
        .collect();
    let is_used =
        |&column: &usize| rows.iter().any(|(_, row)| !row.places[column].cells.is_empty());
    let columns: Vec<usize> = (0..matrix.columns.len()).filter(is_used).collect();
    let mut out = format!(
        "<div class=\"scroll\"><table class=\"heat\"><caption>{}</caption><thead><tr><th scope=\"col\">kernel</th>",
        name(&names::load(load), 98)
    );
    for &column in &columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", text(&matrix.columns[column]));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (kernel, row) in rows {
        let _ =
            write!(out, "<tr><th scope=\"row\">{}</th>", name(&names::kernel(kernel.name, 40), 40));
        out.extend(columns.iter().map(|&column| cell(&row.places[column], figure, scale, causes)));
        out.push_str("</tr>\n");
    }
    out + "</tbody></table></div>\n"
}

fn cell(place: &Place, figure: Figure, scale: Scale, causes: &Causes) -> String {
    let Some(ns) = place.median(figure) else {
        return match place.without_number() {
            Shown::Words(words) => format!("<td class=\"without\">{}</td>", text(&words)),
            _ => "<td></td>".into(),
        };
    };
    let shown = text(&micros(ns));
    let shown = match causes.of_place(place) {
        Some(cause) => format!(
            "<a href=\"#{}\" title=\"{}\">{shown}</a>",
            cause.anchor(),
            text(&cause.in_short())
        ),
        None => shown,
    };
    format!("<td class=\"h{}\">{shown}</td>", scale.step(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_equal_ratios_from_the_least_to_the_largest() {
        let figures = [1_000.0, 64_000.0];
        let scale = Scale::of(figures.iter().copied()).unwrap();
        for (ns, step) in [
            (0.0, 0),
            (1_000.0, 0),
            (1_999.0, 0),
            (2_001.0, 1),
            (15_000.0, 3),
            (33_000.0, 5),
            (64_000.0, 5),
            (1e12, 5),
        ] {
            assert_eq!(scale.step(ns), step, "{ns} ns");
        }
        assert!((scale.edge(0) - 1_000.0).abs() < 1e-6 && (scale.edge(6) - 64_000.0).abs() < 1e-6);
    }

    #[test]
    fn alike_figures_have_no_strong_colour_and_one_is_no_map() {
        let scale = Scale::of([5_000.0, 5_100.0].into_iter()).unwrap();
        assert_eq!((scale.step(5_000.0), scale.step(5_100.0)), (0, 0));
        assert_eq!(Scale::of([5_000.0].into_iter()), None);
        assert_eq!(Scale::of([0.0, 0.0].into_iter()), Some(Scale { low: 1.0, high: 2.0 }));
    }
}
