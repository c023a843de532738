//! The comparison for people: the answer, what it rests on, detail.

use std::fmt::Write;

use wakescope_core::finding;
use wakescope_core::limit::Outcome;
use wakescope_core::source::Quantity;
use wakescope_core::units::grouped;
use wakescope_stats::compare::{Compare, OfQuantity, OfWatches, RunFigures, Verdict, times};

use super::{
    MOST_LISTED, basis, capital, figures, full_name, headline, interval, limits, means, notes,
    of_runs, regression, throughput, watches, within, word,
};
use crate::domain;
use crate::findings::wrapped;
use crate::load::rate;
use crate::quantity;
use crate::style::{Style, clean};
use crate::table::columns;

/// The widest line, in characters.
const WIDTH: usize = 100;

/// The comparison as text, 100 columns wide.
pub fn text(compare: &Compare, style: Style) -> String {
    let mut out = String::new();
    let head = |verdict: Verdict, sentence: &str| {
        let dress = match verdict {
            Verdict::Worse => Style::bad,
            Verdict::Better | Verdict::NoDifference => Style::good,
            Verdict::Inconclusive => Style::warn,
        };
        dress(style, &wrapped(sentence, WIDTH, "")) + "\n"
    };
    out.extend(watches::headline(compare).map(|sentence| head(compare.verdict, &sentence)));
    for of in &compare.quantities {
        out.push_str(&head(of.verdict, &headline(of, compare)));
        for sentence in throughput(of, compare) {
            let _ = writeln!(out, "{}", wrapped(&sentence, WIDTH, "  "));
        }
    }
    for (outcome, sentence) in regression(compare).into_iter().chain(limits(compare)) {
        let dress = match outcome {
            Outcome::Pass => Style::good,
            Outcome::Fail => Style::bad,
            Outcome::Inconclusive => Style::warn,
        };
        let _ = writeln!(out, "{}", dress(style, &wrapped(&sentence, WIDTH, "  ")));
    }
    for of in &compare.quantities {
        let (title, caption) = (title(of, compare), domain::caption(compare.time_domain));
        let _ = write!(out, "\n{title}{caption}{}", table(of, compare));
    }
    out.extend(compare.watches.iter().map(|watches| groups(watches, compare.runs)));
    out.push_str(&list(compare, style));
    out.push_str(&runs(compare));
    out.push('\n');
    for sentence in basis(compare) {
        let _ = writeln!(out, " {}", style.faint(&wrapped(&sentence, WIDTH - 2, " ")));
    }
    out
}

fn groups(watches: &OfWatches, runs: [usize; 2]) -> String {
    let Some((head, rows)) = watches::rows(watches, runs) else { return String::new() };
    let more = watches::more(watches, rows.len());
    let more = more.map_or_else(String::new, |more| format!(" {more}\n"));
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    format!("\n{}{more}", columns(&rows, true))
}

fn table(of: &OfQuantity, compare: &Compare) -> String {
    let row = |cells: [&str; 6]| cells.map(String::from).to_vec();
    let mut rows = vec![row(["", "new", "old", "new / old", "", ""])];
    for (name, figure, decides) in figures(of, compare) {
        let (effect, [new, old]) = (&figure.effect, means(figure));
        let judged = if decides { word(effect.verdict) } else { "" };
        rows.push(row([
            &name,
            &new,
            &old,
            &effect.ratio_in_words(),
            &interval(effect).unwrap_or_default(),
            judged,
        ]));
    }
    rows.extend(watches::waited(compare).map(|cells| cells.to_vec()));
    for t in &of.throughput {
        let unit = clean(&t.unit, 16);
        rows.push(row([
            &clean(&t.load, 40),
            &format!("{}/s", rate(t.new_per_second, &unit)),
            &format!("{}/s", rate(t.old_per_second, &unit)),
            &times(t.effect.ratio),
            &interval(&t.effect).unwrap_or_default(),
            &of_runs(&t.effect, of.runs).unwrap_or_default(),
        ]));
    }
    columns(&rows, true)
}

/// Reasons, what one run a side says, and what else one must know.
fn list(compare: &Compare, style: Style) -> String {
    let mut out = String::new();
    let mut tell = |mark: &str, sentence: &str| {
        let _ = writeln!(out, " {mark} {}", wrapped(sentence, WIDTH - 4, "   "));
    };
    compare.reasons.iter().for_each(|r| tell(&style.warn("?"), &clean(r, 600)));
    within(compare).iter().for_each(|s| tell("·", s));
    notes(compare).iter().for_each(|n| tell(&style.warn("!"), n));
    if out.is_empty() { out } else { format!("\n{out}") }
}

/// A line above what is of one quantity, unless that is clear.
fn title(of: &OfQuantity, compare: &Compare) -> String {
    match compare.quantities.len() {
        _ if compare.watches.is_some() => String::new(),
        1 if of.quantity == Quantity::WakeupLatency => String::new(),
        _ => format!(" {}\n", capital(&of.quantity.to_string())),
    }
}

/// The runs, where they are not too many to look at: a table for each quantity, since maxima of each are of
/// as many samples as its shortest run has.
fn runs(compare: &Compare) -> String {
    match compare.new.len() + compare.old.len() > MOST_LISTED {
        true => String::new(),
        false => compare.quantities.iter().map(|of| runs_of(of, compare)).collect(),
    }
}

fn runs_of(of: &OfQuantity, compare: &Compare) -> String {
    let all = [("new", &compare.new), ("old", &compare.old)].into_iter();
    let all = all.flat_map(|(side, runs)| runs.iter().map(move |run| (side, run)));
    let all: Vec<(&str, &RunFigures)> =
        all.filter(|(_, run)| run.quantity == of.quantity).collect();
    let mut head = ["", "run", "samples", "p99.9", "max"].map(String::from).to_vec();
    let of_count = Some(full_name("max", of, compare)).filter(|name| name != "max");
    let longer = of_count.is_some();
    head.extend(of_count);
    // Watches of earlier versions do not record it.
    let is_known = all.iter().any(|(_, run)| !run.release.is_empty());
    let has_kernel = compare.watches.is_none() || is_known;
    head.extend(has_kernel.then(|| "kernel".into()));
    head.push(String::new());
    let mut rows = vec![head];
    rows.extend(all.into_iter().map(|(side, run)| row(side, run, longer, has_kernel)));
    let title = if compare.quantities.len() > 1 { title(of, compare) } else { String::new() };
    format!("\n{title}{}", columns(&rows, true))
}

fn row(side: &str, run: &RunFigures, longer: bool, has_kernel: bool) -> Vec<String> {
    let mut cells = vec![
        side.into(),
        shortened(&run.label),
        grouped(run.count),
        quantity::within(run.p999_range_ns()),
        quantity::within(run.max_range_ns()),
    ];
    if longer {
        cells.push(quantity::within(run.max_of_count_range_ns()));
    }
    cells.extend(has_kernel.then(|| clean(&run.release, 24)));
    let doubtful = run.validity.filter(|&verdict| verdict != finding::Verdict::Valid);
    cells.push(doubtful.map_or_else(String::new, |verdict| verdict.to_string()));
    cells
}

/// The end of a label, which is what tells runs apart.
fn shortened(label: &str) -> String {
    const LONGEST: usize = 28;
    let cleaned = clean(label, 200);
    let count = cleaned.chars().count();
    match count > LONGEST {
        true => format!("…{}", cleaned.chars().skip(count + 1 - LONGEST).collect::<String>()),
        false => cleaned,
    }
}
