//! The comparison as Markdown, for a pull request.

use std::fmt::Write;

use wakescope_core::limit::Outcome;
use wakescope_core::source::Quantity;
use wakescope_stats::compare::{Compare, OfQuantity, OfWatches, times};

use super::{
    basis, capital, figures, headline, interval, limits, means, notes, of_runs, regression,
    throughput, watches, within, word,
};
use crate::domain;
use crate::load::rate;
use crate::markdown::escaped;
use crate::style::clean;

/// The comparison as Markdown.
pub fn markdown(compare: &Compare) -> String {
    let mut out = String::new();
    if let Some(sentence) = watches::headline(compare) {
        let _ = writeln!(out, "**{}**\n", escaped(&sentence));
    }
    for of in &compare.quantities {
        let _ = writeln!(out, "**{}**", escaped(&headline(of, compare)));
        for sentence in throughput(of, compare) {
            let _ = writeln!(out, "{}", escaped(&sentence));
        }
        out.push('\n');
    }
    let judged: Vec<_> = regression(compare).into_iter().chain(limits(compare)).collect();
    for (outcome, sentence) in &judged {
        let mark = match outcome {
            Outcome::Pass => "✓",
            Outcome::Fail => "✗",
            Outcome::Inconclusive => "?",
        };
        let _ = writeln!(out, "- {mark} {}", escaped(sentence));
    }
    if !judged.is_empty() {
        out.push('\n');
    }
    for of in &compare.quantities {
        let is_said = compare.watches.is_some() || of.quantity == Quantity::WakeupLatency;
        if compare.quantities.len() > 1 || !is_said {
            let _ = writeln!(out, "**{}**\n", escaped(&capital(&of.quantity.to_string())));
        }
        match domain::caption(compare.time_domain).trim() {
            "" => {}
            caption => out.push_str(&format!("{}\n\n", capital(caption))),
        }
        out.push_str(&table(of, compare));
        out.push('\n');
    }
    out.extend(compare.watches.iter().map(|watches| groups(watches, compare.runs)));
    let reasons = compare.reasons.iter().map(|reason| clean(reason, 600));
    let lines: Vec<String> = reasons.chain(within(compare)).chain(notes(compare)).collect();
    for line in &lines {
        let _ = writeln!(out, "- {}", escaped(line));
    }
    if !lines.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", escaped(&basis(compare).join(" ")));
    out
}

fn groups(watches: &OfWatches, runs: [usize; 2]) -> String {
    let Some((head, rows)) = watches::rows(watches, runs) else { return String::new() };
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let aligned = ["---", "---:", "---:", "---:", "---", "---", "---:", "---:", "---"];
    let mut out = line(&head) + &format!("|{}|\n", aligned[..head.len()].join("|"));
    out.extend(rows.iter().map(|row| line(row)));
    out.extend(watches::more(watches, rows.len()).map(|more| format!("\n{}\n", escaped(&more))));
    out + "\n"
}

fn table(of: &OfQuantity, compare: &Compare) -> String {
    let mut out =
        String::from("| | new | old | new / old | interval | |\n|---|---:|---:|---:|---|---|\n");
    for (name, figure, decides) in figures(of, compare) {
        let (effect, [new, old]) = (&figure.effect, means(figure));
        let _ = writeln!(
            out,
            "| {name} | {new} | {old} | {} | {} | {} |",
            effect.ratio_in_words(),
            interval(effect).unwrap_or_default(),
            if decides { word(effect.verdict) } else { "" },
        );
    }
    if let Some(cells) = watches::waited(compare) {
        let _ = writeln!(out, "| {} | |", cells.join(" | "));
    }
    for t in &of.throughput {
        let unit = clean(&t.unit, 16);
        let _ = writeln!(
            out,
            "| {} | {}/s | {}/s | {} | {} |{} |",
            escaped(&clean(&t.load, 40)),
            escaped(&rate(t.new_per_second, &unit)),
            escaped(&rate(t.old_per_second, &unit)),
            times(t.effect.ratio),
            interval(&t.effect).unwrap_or_default(),
            of_runs(&t.effect, of.runs).map_or_else(String::new, |runs| format!(" {runs}")),
        );
    }
    out
}
