//! The table as Markdown.

use wakescope_core::lab::Lab;

use super::figures::raised;
use super::matrix::{Figure, Matrix, Shown};
use super::{
    caveats, explained, headline, limits, names, published, repeat, settings, uncapitalized,
    verdicts,
};
use crate::markdown::escaped;

pub(super) fn render(lab: &Lab) -> String {
    let matrix = Matrix::of(lab);
    let mut parts = vec![headline_text(lab)];
    if matrix.kernels.is_empty() {
        parts.push("There are no cells.\n".to_owned());
    }
    for (title, figure, with_work) in super::matrix_figures(&lab.settings) {
        if !matrix.kernels.is_empty() && (with_work || matrix.has(figure)) {
            parts.push(block(&matrix, &title, figure, with_work));
        }
    }
    parts.push(notes(lab, &matrix));
    parts.push(verdicts_text(lab));
    parts.push(limits::lines(lab).iter().map(|l| format!("- {}\n", escaped(&l.text))).collect());
    parts.push(explained_text(lab, &matrix));
    parts.push(match &published(lab)[..] {
        [] => String::new(),
        lines => fenced("text", &lines.join("\n")),
    });
    parts.push(basis(lab));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn explained_text(lab: &Lab, matrix: &Matrix) -> String {
    let list = |(_, title, lines): (&str, &str, Vec<String>)| {
        let body: String = lines.iter().map(|line| format!("- {}\n", escaped(line))).collect();
        format!("**{}**\n\n{body}", uncapitalized(title))
    };
    let lists: Vec<String> = explained(lab, matrix).into_iter().map(list).collect();
    lists.join("\n")
}

fn headline_text(lab: &Lab) -> String {
    match headline::headline(lab).as_str() {
        "" => String::new(),
        answer => format!("**{}**\n", escaped(answer)),
    }
}

fn block(matrix: &Matrix, title: &str, figure: Figure, with_work: bool) -> String {
    let (lines, has_work) = matrix.lines(figure, with_work);
    let mut rows = String::new();
    for line in &lines {
        let cells: Vec<String> = line.shown.iter().map(cell).collect();
        let name = escaped(&names::kernel(line.kernel, 98));
        let load = escaped(&names::load(line.load));
        rows.push_str(&format!("| {name} | {load} | {} |\n", cells.join(" | ")));
    }
    let columns: Vec<String> = matrix.columns.iter().map(|title| escaped(title)).collect();
    let title = super::title(matrix, title, has_work);
    format!(
        "**{title}**\n\n| kernel | load | {} |\n|---|---|{}\n{rows}",
        columns.join(" | "),
        "---|".repeat(columns.len()),
    )
}

fn cell(shown: &Shown) -> String {
    match shown {
        Shown::Words(words) => escaped(words),
        figure_or_nothing => figure_or_nothing.text(),
    }
}

fn notes(lab: &Lab, matrix: &Matrix) -> String {
    let mut out: String =
        super::legend(lab, matrix).iter().map(|line| format!("- {}\n", escaped(line))).collect();
    for note in matrix.notes.shown() {
        out.push_str(&format!("- {} {}\n", raised(note.number), escaped(&note.text)));
        if !note.log.is_empty() {
            let log = fenced("text", &note.log.join("\n"));
            out.extend(log.lines().map(|line| format!("  {line}\n")));
        }
    }
    out
}

fn verdicts_text(lab: &Lab) -> String {
    let mut out = String::new();
    let (lines, shared) = verdicts::lines(lab);
    for line in lines {
        let figures = match line.figures.as_str() {
            "" => String::new(),
            figures => format!(": {}", escaped(&super::unglued(figures))),
        };
        let (load, sentence) = (escaped(&line.load), escaped(&line.sentence));
        out.push_str(&format!("- {load}: **{sentence}**{figures}\n"));
        out.extend(line.reasons.iter().map(|reason| format!("  - {}\n", escaped(reason))));
    }
    for reason in shared {
        out.push_str(&format!("\n{}\n", escaped(&reason)));
    }
    match verdicts::rule(lab).as_str() {
        "" => out,
        rule => format!("{out}\n{}\n", escaped(rule)),
    }
}

fn basis(lab: &Lab) -> String {
    let mut out = format!("{}\n\n{}\n", caveats(lab).join(" "), escaped(&settings(lab)));
    if !lab.repeat.is_empty() {
        out.push_str(&format!("\nTo repeat it:\n\n{}", fenced("sh", &repeat(lab))));
    }
    out
}

/// `text` between fences that it does not contain.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}{language}\n{text}\n{fence}\n")
}
