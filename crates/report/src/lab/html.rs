//! The table of a lab as parts of a page.

use wakescope_core::lab::{Lab, Verdict};

use self::causes::Causes;
use super::figures::raised;
use super::matrix::{Figure, Line, Matrix};
use super::{
    caveats, explained, headline, limits, names, published, repeat, settings, unglued, verdicts,
};
use crate::html::answer::span_of_maxima;
use crate::html::element::{self, Column, key_table, name, paragraph, section, text};
use crate::run_set::RunSet;
use crate::style::clean;

mod causes;
mod heat;

/// The name of the page.
pub(crate) fn title(lab: &Lab) -> String {
    match clean(&lab.plan, 80) {
        plan if plan.is_empty() => "wakescope lab".into(),
        plan => format!("wakescope lab: {plan}"),
    }
}

/// The answer in a sentence, and what virtual time leaves out.
pub(crate) fn answer(lab: &Lab, run_set: &RunSet) -> String {
    let above = match lab.plan.as_str() {
        "" => "lab".into(),
        plan => format!("lab: {}", name(plan, 80)),
    };
    let heading = match headline::answer(lab) {
        answer if !answer.is_empty() => answer,
        // A page without curves has no runs.
        _ if run_set.entries.is_empty() => headline::span_of_cells(lab),
        _ => span_of_maxima(run_set),
    };
    let heading = headline::with_ignored(lab, heading);
    [
        paragraph("above", &above),
        element::headline(&unglued(&heading)),
        paragraph("caveat", &text(&caveats(lab).join(" "))),
    ]
    .concat()
}

/// The table, the verdicts, limits, what guests explained, and what was published.
pub(crate) fn results(lab: &Lab, has_curves: bool) -> String {
    let matrix = Matrix::of(lab);
    let causes = Causes::of(&matrix);
    let mut blocks = String::new();
    for (title, figure, with_work) in super::matrix_figures(&lab.settings) {
        if !matrix.kernels.is_empty() && (with_work || matrix.has(figure)) {
            blocks.push_str(&block(&matrix, &title, figure, with_work));
        }
    }
    blocks.push_str(&notes(lab, &matrix));
    [
        heat::section(lab, &matrix, &causes),
        section("lab", "Kernels, models and loads", &blocks),
        section("verdicts", "Comparisons", &verdicts(lab)),
        section("limits", "Limits", &list(limits::lines(lab).iter().map(|l| text(&l.text)))),
        causes.section(),
        explained(lab, &matrix)
            .iter()
            // The table of causes has them.
            .filter(|(name, ..)| !matches!(*name, "culprits" | "sections"))
            .map(|(name, title, lines)| {
                section(name, title, &list(lines.iter().map(|l| text(&unglued(l)))))
            })
            .collect(),
        section(
            "published",
            "Published figures",
            &list(published(lab).iter().map(|l| name(l, 500))),
        ),
        section("repeat", "How it was run", &(basis(lab) + &without_curves(has_curves))),
    ]
    .concat()
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{item}</li>\n")).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

fn block(matrix: &Matrix, title: &str, figure: Figure, with_work: bool) -> String {
    let (lines, has_work) = matrix.lines(figure, with_work);
    let mut head: Vec<(&str, Column)> = vec![("kernel", Column::Words), ("load", Column::Words)];
    head.extend(matrix.columns.iter().map(|title| (title.as_str(), Column::Number)));
    let row = |line: &Line| {
        let names = [names::kernel(line.kernel, 98), names::load(line.load)];
        let names = names.iter().map(|of| name(of, 98));
        names.chain(line.shown.iter().map(|shown| text(&shown.text()))).collect()
    };
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    key_table(&super::title(matrix, title, has_work), &head, &rows)
}

fn notes(lab: &Lab, matrix: &Matrix) -> String {
    let legend = super::legend(lab, matrix).into_iter().map(|line| text(&unglued(&line)));
    let notes = matrix.notes.shown().map(|note| {
        let log: Vec<String> = note.log.iter().map(|line| text(line)).collect();
        let log =
            if log.is_empty() { String::new() } else { format!("<pre>{}</pre>", log.join("\n")) };
        format!("{} {}{log}", raised(note.number), text(&note.text))
    });
    list(legend.chain(notes))
}

fn verdicts(lab: &Lab) -> String {
    let (lines, shared) = verdicts::lines(lab);
    let items = lines.iter().map(|line| {
        let class = match line.verdict {
            Verdict::Better => "good",
            Verdict::Worse => "bad",
            Verdict::NoDifference => "note",
            Verdict::Inconclusive => "warn",
        };
        let reasons: Vec<String> = line.reasons.iter().map(|r| text(r)).collect();
        let reasons = if reasons.is_empty() {
            String::new()
        } else {
            format!("<br><span class=\"hint\">{}</span>", reasons.join(" "))
        };
        let figures = if line.figures.is_empty() {
            String::new()
        } else {
            format!(": {}", text(&unglued(&line.figures)))
        };
        format!(
            "<span class=\"badge {class}\">{}</span> {}{figures}{reasons}",
            text(&line.load),
            text(&unglued(&line.sentence))
        )
    });
    let mut out = list(items);
    out.push_str(&shared.iter().map(|reason| paragraph("", &text(reason))).collect::<String>());
    out + &paragraph("", &text(&verdicts::rule(lab)))
}

/// Why the page ends here, where it does.
fn without_curves(has_curves: bool) -> String {
    let why = "Curves of single runs are left out, because nobody could tell so many apart. The record \
        names the folder of each run: wakescope report FOLDER.";
    if has_curves { String::new() } else { paragraph("", &text(why)) }
}

fn basis(lab: &Lab) -> String {
    let command = match repeat(lab) {
        command if command.is_empty() => command,
        command => format!("<pre>{}</pre>\n", text(&command)),
    };
    paragraph("", &text(&settings(lab))) + &command
}

#[cfg(test)]
mod tests;
