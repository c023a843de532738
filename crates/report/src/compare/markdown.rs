//! The comparison as Markdown, for a pull request.

use std::fmt::Write;

use wakescope_core::limit::Outcome;
use wakescope_core::source::Quantity;
use wakescope_stats::compare::{Compare, OfQuantity, times};

use super::{
    basis, capital, figures, headline, interval, limits, notes, regression, span, throughput,
    within, word,
};
use crate::domain;
use crate::load::rate;
use crate::markdown::escaped;
use crate::style::clean;

/// The comparison as Markdown.
pub fn markdown(compare: &Compare) -> String {
    let mut out = String::new();
    for of in &compare.quantities {
        let _ = writeln!(out, "**{}**", escaped(&headline(of, compare)));
        for sentence in throughput(of) {
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
        if compare.quantities.len() > 1 || of.quantity != Quantity::WakeupLatency {
            let _ = writeln!(out, "**{}**\n", escaped(&capital(&of.quantity.to_string())));
        }
        match domain::caption(compare.time_domain).trim() {
            "" => {}
            caption => out.push_str(&format!("{}\n\n", capital(caption))),
        }
        out.push_str(&table(of));
        out.push('\n');
    }
    let reasons = compare.reasons.iter().map(|reason| clean(reason, 600));
    let within = compare.quantities.iter().flat_map(within);
    let lines: Vec<String> = reasons.chain(within).chain(notes(compare)).collect();
    for line in &lines {
        let _ = writeln!(out, "- {}", escaped(line));
    }
    if !lines.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", escaped(&basis(compare).join(" ")));
    out
}

fn table(of: &OfQuantity) -> String {
    let mut out =
        String::from("| | new | old | new / old | interval | |\n|---|---:|---:|---:|---|---|\n");
    for (name, figure, decides) in figures(of) {
        let effect = &figure.effect;
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} | {} | {} |",
            span(figure.new_ns),
            span(figure.old_ns),
            times(effect.ratio),
            interval(effect).unwrap_or_default(),
            if decides { word(effect.verdict) } else { "" },
        );
    }
    for t in &of.throughput {
        let unit = clean(&t.unit, 16);
        let _ = writeln!(
            out,
            "| {} | {}/s | {}/s | {} | {} | |",
            escaped(&clean(&t.load, 40)),
            escaped(&rate(t.new_per_second, &unit)),
            escaped(&rate(t.old_per_second, &unit)),
            times(t.effect.ratio),
            interval(&t.effect).unwrap_or_default(),
        );
    }
    out
}
