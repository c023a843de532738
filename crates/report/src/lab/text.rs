//! The table for a terminal.

use wakescope_core::lab::{Lab, Verdict};

use super::figures::raised;
use super::matrix::{Figure, Line, Matrix, Rank, Shown};
use super::{
    Extent, WIDTH, caveats, explained, glued, headline, limits, names, published, repeat, settings,
    uncapitalized, verdicts,
};
use crate::style::Style;

/// Blanks between columns.
const GAP: usize = 3;

/// Blanks before a load's name.
const INDENT: usize = 3;

/// What the blocks of figures may take of a screen, in lines.
const SCREEN: usize = 24;

/// What is said where only the first block is shown.
const MORE: &str = "p99.9 and p50: --all-figures";

pub(super) fn render(lab: &Lab, extent: Extent, style: Style) -> String {
    let matrix = Matrix::of(lab);
    let (blocks, is_cut) = blocks(lab, &matrix, extent, style);
    let mut parts = vec![headline_text(lab, style), blocks, notes(lab, &matrix, is_cut, style)];
    parts.push(verdicts_text(lab, style));
    parts.push(limits_text(lab, style));
    parts.push(explained_text(lab, &matrix, style));
    parts.push(basis_text(lab, style));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// What guests explained, where that was asked for.
fn explained_text(lab: &Lab, matrix: &Matrix, style: Style) -> String {
    let list = |(_, title, lines): (&str, &str, Vec<String>)| {
        let body: String = lines.iter().map(|line| wrapped(line, 2, 5)).collect();
        format!(" {}\n{body}", style.strong(&uncapitalized(title)))
    };
    let lists: Vec<String> = explained(lab, matrix).into_iter().map(list).collect();
    lists.join("\n")
}

fn headline_text(lab: &Lab, style: Style) -> String {
    match headline::headline(lab).as_str() {
        "" => String::new(),
        answer => wrapped(&style.strong(answer), 1, 1),
    }
}

/// The blocks of figures, each with its title; and whether some are left out for want of room.
fn blocks(lab: &Lab, matrix: &Matrix, extent: Extent, style: Style) -> (String, bool) {
    if matrix.kernels.is_empty() {
        return (" There are no cells.\n".into(), false);
    }
    let mut out = Vec::new();
    for (title, figure, with_work) in super::matrix_figures(&lab.settings) {
        if with_work || matrix.has(figure) {
            out.push(block(matrix, &title, figure, with_work, style));
        }
    }
    let all = out.join("\n");
    if extent == Extent::Screen && out.len() > 1 && all.lines().count() > SCREEN {
        return (out.swap_remove(0), true);
    }
    (all, false)
}

/// One figure of every cell, in as many parts as its width takes.
fn block(matrix: &Matrix, title: &str, figure: Figure, with_work: bool, style: Style) -> String {
    let (lines, has_work) = matrix.lines(figure, with_work);
    let columns: Vec<Column> = (0..matrix.columns.len())
        .map(|at| Column::of(&matrix.columns[at], lines.iter().map(|line| &line.shown[at])))
        .collect();
    let loads = lines.iter().map(|line| names::load(line.load).chars().count()).max().unwrap_or(0);
    let mut out = format!(" {}\n", style.strong(&super::title(matrix, title, has_work)));
    for part in parts(&columns, INDENT + loads) {
        let mut header = " ".repeat(INDENT + loads);
        for column in &columns[part.clone()] {
            header.push_str(&format!("{}{:<2$}", " ".repeat(GAP), column.title, column.width()));
        }
        push_line(&mut out, &header);
        let mut kernel_before = None;
        for Line { kernel, load, shown } in &lines {
            let shown = &shown[part.clone()];
            if shown.iter().all(|s| *s == Shown::Nothing) {
                continue;
            }
            if kernel_before.replace(kernel) != Some(kernel) {
                push_line(&mut out, &format!(" {}", names::kernel(kernel, WIDTH - 1)));
            }
            let mut line = format!("{}{:<loads$}", " ".repeat(INDENT), names::load(load));
            for (column, shown) in columns[part.clone()].iter().zip(shown) {
                line.push_str(&" ".repeat(GAP));
                line.push_str(&column.laid_out(shown, style));
            }
            push_line(&mut out, &line);
        }
    }
    out
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Columns side by side, as many as fit; at least one.
fn parts(columns: &[Column], indent: usize) -> Vec<std::ops::Range<usize>> {
    let mut parts = Vec::new();
    let (mut begin, mut width) = (0, indent);
    for (at, column) in columns.iter().enumerate() {
        let more = GAP + column.width();
        if at > begin && width + more > WIDTH {
            parts.push(begin..at);
            (begin, width) = (at, indent);
        }
        width += more;
    }
    parts.push(begin..columns.len());
    parts
}

/// A column's title and the widths of what stands in it.
#[derive(Default)]
struct Column<'a> {
    title: &'a str,
    median: usize,
    range: usize,
    work: usize,
    words: usize,
}

impl<'a> Column<'a> {
    fn of<'b>(title: &'a str, shown: impl Iterator<Item = &'b Shown>) -> Self {
        let mut column = Self { title, ..Self::default() };
        let chars = |text: &str| text.chars().count();
        for shown in shown {
            match shown {
                Shown::Nothing => {}
                Shown::Words(words) => column.words = column.words.max(chars(words)),
                Shown::Figure { rank, median, range, work } => {
                    column.median = column.median.max(chars(rank.mark()) + chars(median));
                    column.range = column.range.max(chars(range));
                    column.work = column.work.max(chars(work));
                }
            }
        }
        column
    }

    /// The widths of a figure's parts with the blanks between them.
    fn figure(&self) -> usize {
        let range = if self.range > 0 { 1 + self.range } else { 0 };
        let work = if self.work > 0 { 1 + self.work } else { 0 };
        self.median + range + work
    }

    fn width(&self) -> usize {
        self.figure().max(self.words).max(self.title.chars().count())
    }

    fn laid_out(&self, shown: &Shown, style: Style) -> String {
        let width = self.width();
        match shown {
            Shown::Nothing => " ".repeat(width),
            Shown::Words(words) => {
                let blanks = " ".repeat(width - words.chars().count());
                let is_failure = words.starts_with("failed");
                let text = if is_failure { style.bad(words) } else { style.faint(words) };
                text + &blanks
            }
            Shown::Figure { rank, median, range, work } => {
                let padded = format!("{:>1$}", format!("{}{median}", rank.mark()), self.median);
                let mut text = match rank {
                    Rank::Least => style.good(&padded),
                    Rank::Between => padded,
                    Rank::Largest => style.warn(&padded),
                };
                if self.range > 0 {
                    text.push_str(&format!(" {range:<0$}", self.range));
                }
                if self.work > 0 {
                    text.push_str(&format!(" {work:>0$}", self.work));
                }
                text.push_str(&" ".repeat(width - self.figure()));
                text
            }
        }
    }
}

/// What one must know to read the table, and why some places have no number.
fn notes(lab: &Lab, matrix: &Matrix, is_cut: bool, style: Style) -> String {
    let legend: Vec<String> =
        super::legend(lab, matrix).iter().map(|part| part_of_legend(part)).collect();
    let legend = legend.join(" · ");
    let mut out = String::new();
    for line in [legend.as_str(), if is_cut { MORE } else { "" }] {
        if !line.is_empty() {
            out.push_str(&wrapped(&style.faint(line), 1, 1));
        }
    }
    for note in matrix.notes.shown() {
        let number = raised(note.number);
        let indent = 2 + number.chars().count();
        out.push_str(&wrapped(&format!("{number} {}", note.text), 1, indent));
        for line in note.log {
            // A line of a log is shown as it was, so that it can be searched for.
            push_line(&mut out, &format!("{}│ {line}", " ".repeat(indent)));
        }
    }
    out
}

/// A short part of the legend, which is not to be broken, as one word; a long one as it is.
fn part_of_legend(part: &str) -> String {
    if part.chars().count() < WIDTH / 2 { glued(part) } else { part.into() }
}

fn verdicts_text(lab: &Lab, style: Style) -> String {
    let (lines, shared) = verdicts::lines(lab);
    let loads = lines.iter().map(|t| t.load.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for verdict in &lines {
        let sentence = match verdict.verdict {
            Verdict::Better => style.good(&verdict.sentence),
            Verdict::Worse => style.bad(&verdict.sentence),
            Verdict::NoDifference => verdict.sentence.clone(),
            Verdict::Inconclusive => style.warn(&verdict.sentence),
        };
        let figures = match verdict.figures.as_str() {
            "" => String::new(),
            figures => format!(": {figures}"),
        };
        let indent = 1 + loads + 2;
        out.push_str(&wrapped(
            &format!("{:<loads$}  {sentence}{figures}", verdict.load),
            1,
            indent + 2,
        ));
        for reason in &verdict.reasons {
            out.push_str(&wrapped(reason, indent + 2, indent + 2));
        }
    }
    for reason in &shared {
        out.push_str(&wrapped(reason, 1, 1));
    }
    let rule = verdicts::rule(lab);
    if !rule.is_empty() {
        out.push_str(&wrapped(&style.faint(&rule), 1, 1));
    }
    out
}

fn limits_text(lab: &Lab, style: Style) -> String {
    limits::lines(lab)
        .iter()
        .map(|limit| {
            let text = match limit.within {
                Some(true) => style.good(&limit.text),
                Some(false) => style.bad(&limit.text),
                None => style.warn(&limit.text),
            };
            wrapped(&text, 1, 3)
        })
        .collect()
}

/// What was published, how the cells were run, what virtual time leaves out, and how to repeat it.
fn basis_text(lab: &Lab, style: Style) -> String {
    let mut out = String::new();
    for line in published(lab) {
        // Lines that fit keep their blanks: some are tables.
        match line.chars().count() < WIDTH {
            true => push_line(&mut out, &format!(" {line}")),
            false => out.push_str(&wrapped(&line, 1, 3)),
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    for line in caveats(lab) {
        out.push_str(&wrapped(line, 1, 1));
    }
    out.push_str(&wrapped(&style.faint(&settings(lab)), 1, 1));
    if !lab.repeat.is_empty() {
        // On one line, however long: it is there to be copied.
        push_line(&mut out, &format!(" repeat: {}", repeat(lab)));
    }
    out
}

/// `text` in lines no wider than [`WIDTH`], broken at blanks but not at those that are to hold
/// words together, with `first` blanks before the first line and `others` before the rest. Colours
/// take no room.
fn wrapped(text: &str, first: usize, others: usize) -> String {
    let mut out = String::new();
    let mut line = " ".repeat(first);
    let (mut width, mut is_empty) = (first, true);
    for word in text.split(' ') {
        let more = visible(word);
        if !is_empty && width + 1 + more > WIDTH {
            push_line(&mut out, &line);
            line = " ".repeat(others);
            (width, is_empty) = (others, true);
        }
        if !is_empty {
            line.push(' ');
            width += 1;
        }
        line.push_str(&super::unglued(word));
        (width, is_empty) = (width + more, false);
    }
    if !text.is_empty() {
        push_line(&mut out, &line);
    }
    out
}

/// How many columns a word takes, escape sequences for colours left out.
fn visible(word: &str) -> usize {
    let mut in_escape = false;
    let is_seen = |c: &char| {
        let was = in_escape;
        in_escape = *c == '\x1b' || (in_escape && *c != 'm');
        !was && !in_escape
    };
    word.chars().filter(is_seen).count()
}
