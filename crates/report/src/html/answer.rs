//! What comes first: the answer in a sentence, whether it holds, and what speaks against it.

use wakescope_core::finding::{Finding, Severity, Verdict};
use wakescope_core::limit::Outcome;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::{Run, State, TimeDomain};
use wakescope_core::units::counted;

use super::element::{Column, headline, key_table, name, paragraph, prose, text};
use super::values;
use crate::domain;
use crate::headline::Headline;
use crate::run_set::{Entry, RunSet};
use crate::style::clean;
use crate::{explain, findings, list, observed, quantity, text as run_text};

/// The most entries of a list.
const MOST: usize = 60;

/// The name of the page.
pub(super) fn title(run_set: &RunSet) -> String {
    match (clean(&run_set.title, 120), run_set.entries.as_slice()) {
        (title, _) if !title.is_empty() => title,
        (_, [entry]) => format!("wakescope: {}", entry.name()),
        (_, entries) => format!("wakescope: {} runs", entries.len()),
    }
}

pub(super) fn of_runs(run_set: &RunSet) -> String {
    of_runs_beside(run_set, &[])
}

/// The same of runs that belong together, some of which can be missing. `doubts` says why, or what
/// speaks against the others. With any, no verdict of one run stands for all.
pub(crate) fn of_runs_beside(run_set: &RunSet, doubts: &[String]) -> String {
    let above = match clean(&run_set.title, 200) {
        title if title.is_empty() => match run_set.entries.as_slice() {
            [entry] => format!(
                "{} <span class=\"where\">{}</span>",
                name(&entry.name(), 120),
                place(entry)
            ),
            entries => text(&format!("{} runs", entries.len())),
        },
        title => name(&title, 200),
    };
    let mut out = paragraph("above", &above);
    match run_set.entries.as_slice() {
        [entry] if doubts.is_empty() => out.push_str(&of_one(entry)),
        _ => out.push_str(&of_several(run_set)),
    }
    let doubts: String =
        doubts.iter().map(|doubt| format!("<li>{}</li>\n", prose(doubt, 2_000))).collect();
    if !doubts.is_empty() {
        out.push_str(&format!("<ul class=\"findings\">\n{doubts}</ul>\n"));
    }
    out.push_str(&caveats(run_set));
    out.push_str(&run_set.entries.iter().filter_map(source).collect::<String>());
    out.push_str(&findings(run_set));
    out
}

/// Where it was measured, in a few words.
fn place(entry: &Entry) -> String {
    let run = &entry.run;
    let release = match run.host.release.as_str() {
        "" => String::new(),
        release => format!("kernel {} · ", name(release, 60)),
    };
    match run.source {
        None => format!("{release}{}", text(&run_text::plan(&run.plan, run.time_domain))),
        Some(_) => release.trim_end_matches(" · ").into(),
    }
}

/// What is to be known of the time of all runs.
fn caveats(run_set: &RunSet) -> String {
    let domain = run_set.domain();
    let simulated = (domain == TimeDomain::Simulated).then_some("All times are simulated.");
    let caveats = simulated.into_iter().chain(domain::caveats(domain, run_set.is_explained()));
    caveats.map(|caveat| paragraph("caveat", &text(caveat))).collect()
}

fn of_one(entry: &Entry) -> String {
    let run = &entry.run;
    let measured = run_text::sentence(run).unwrap_or_else(|| run_text::none_measured(run));
    let (heading, second) = match explain::sentence(run) {
        // Both begin with the worst wakeup: the one that says why comes first.
        Some(why) => {
            (why, Headline::of(run).map(|said| said.place_and_share()).unwrap_or_default())
        }
        None => (measured, String::new()),
    };
    let mut out = headline(&heading);
    out.push_str(&verdict(run));
    let lead: String = run_text::what_it_proves_of(entry).lines().collect::<Vec<_>>().join(" ");
    let lead = [second, lead].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" ");
    out.push_str(&paragraph("lead", &text(&lead)));
    out.push_str(&limits(run));
    out
}

fn of_several(run_set: &RunSet) -> String {
    headline(&span_of_maxima(run_set)) + &runs(run_set)
}

/// From which run's worst wakeup to which one's, in a sentence.
pub(crate) fn span_of_maxima(run_set: &RunSet) -> String {
    let domain = run_set.domain();
    let mut ranked: Vec<(&Entry, u64)> =
        run_set.entries.iter().filter_map(|e| Some((e, e.run.expiries().max_ns?))).collect();
    ranked.sort_by_key(|&(_, max)| max);
    match ranked.as_slice() {
        [] => "No wakeup was measured.".into(),
        _ if !run_set.entries.iter().all(|e| quantity::is_wakeup(&e.run)) => {
            span_of_others(run_set, &ranked)
        }
        [(only, max)] => {
            format!("Worst wakeup {} late ({}).", domain::span(*max, domain), only.name())
        }
        [(first, least), .., (last, most)] => format!(
            "Worst wakeups from {} ({}) to {} late ({}).",
            domain::span(*least, domain),
            first.name(),
            domain::span(*most, domain),
            last.name()
        ),
    }
}

/// The same of values that are not all wakeup latencies.
fn span_of_others(run_set: &RunSet, ranked: &[(&Entry, u64)]) -> String {
    let words = quantity::words_of(run_set);
    let text = |at: Option<&(&Entry, u64)>| {
        at.map_or_else(String::new, |(entry, max)| {
            let quantity = quantity::of(&entry.run);
            format!("{} ({}, {quantity})", domain::span(*max, run_set.domain()), entry.name())
        })
    };
    match ranked {
        [only] => format!("Largest {}: {}.", words.one, text(Some(only))),
        all => {
            format!("Largest {} from {} to {}.", words.many, text(all.first()), text(all.last()))
        }
    }
}

/// A row per run.
fn runs(run_set: &RunSet) -> String {
    let head = [
        ("run", Column::Words),
        ("kernel", Column::Words),
        ("count", Column::Number),
        ("missed", Column::Number),
        ("p50", Column::Number),
        ("p99.9", Column::Number),
        ("max", Column::Number),
        ("", Column::Words),
    ];
    let rows: Vec<Vec<String>> = run_set
        .entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            let all = entry.run.expiries();
            vec![
                format!("{}{}", values::swatch(at), name(&entry.name(), 120)),
                match entry.run.host.release.as_str() {
                    "" => "–".into(),
                    release => name(release, 60),
                },
                values::count(all.count),
                quantity::count(quantity::missed_of_all(&entry.run)),
                values::quantile(&all, Percentile::SHOWN[0]),
                values::quantile(&all, Percentile::SHOWN[2]),
                values::maximum(&all),
                verdict_word(&entry.run),
            ]
        })
        .collect();
    key_table(&values::caption("Each run", run_set.domain()), &head, &rows)
}

fn verdict_word(run: &Run) -> String {
    let (class, word) = match run.validity.verdict {
        Verdict::Valid => ("good", "valid"),
        Verdict::Degraded => ("warn", "degraded"),
        Verdict::Invalid => ("bad", "invalid"),
    };
    format!("<span class=\"badge {class}\">{word}</span>")
}

fn verdict(run: &Run) -> String {
    let rest = match (run.validity.verdict, run.state) {
        (Verdict::Valid, State::Complete) => "Every assumption that could be verified held.",
        (Verdict::Valid, _) => "The run ended early; its data are complete up to that point.",
        (Verdict::Degraded, _) => "The numbers hold, with the limitations listed here.",
        (Verdict::Invalid, _) => "The run does not measure what was asked.",
    };
    paragraph("verdict", &format!("{} {}", verdict_word(run), text(rest)))
}

fn limits(run: &Run) -> String {
    let (judgements, more) = observed::failed_first(run, MOST);
    let mut out = String::new();
    for judgement in judgements {
        let (limit, observed) = observed::of(judgement, run.time_domain);
        let limit = name(&limit, 60) + run_text::judged(run);
        let (class, word, rest) = match judgement.outcome {
            Outcome::Pass => ("good", "within", text(&observed)),
            Outcome::Fail => ("bad", "above", text(&observed)),
            Outcome::Inconclusive => ("warn", "inconclusive", name(&judgement.reason, 200)),
        };
        out.push_str(&format!(
            "<li><span class=\"badge {class}\">{word}</span> the limit {limit}: {rest}</li>\n"
        ));
    }
    out.push_str(&last_item(more));
    if out.is_empty() { out } else { format!("<ul class=\"limits\">\n{out}</ul>\n") }
}

/// That a list goes on; empty if it does not.
fn last_item(more: Option<String>) -> String {
    more.map(|more| format!("<li>{}</li>\n", text(&more))).unwrap_or_default()
}

/// Where the figures come from, if another program measured them.
fn source(entry: &Entry) -> Option<String> {
    let source = entry.run.source.as_ref()?;
    let version =
        source.version.as_deref().map(|v| format!(" {}", name(v, 40))).unwrap_or_default();
    let mut out = format!(
        "{}: measured by {}{version} ({}), {}; {}.",
        name(&entry.name(), 120),
        name(&source.tool, 40),
        name(&source.format, 60),
        text(&source.quantity.to_string()),
        text(&source.omission.to_string())
    );
    let listed = |title: &str, items: &[String]| match items {
        [] => String::new(),
        items => {
            let (items, more) = list::first(items, MOST);
            let items: Vec<String> = items.iter().map(|i| name(i, 200)).collect();
            let more = more.map(|more| format!(" {more}")).unwrap_or_default();
            format!(" {title}: {}{more}.", items.join(", "))
        }
    };
    out.push_str(&listed("Unknown", &source.unknown));
    out.push_str(&listed("Approximate", &source.approximate));
    Some(paragraph("source", &out))
}

/// What speaks against the numbers, the gravest first, each once with the runs that it is true of.
fn findings(run_set: &RunSet) -> String {
    let found = findings::grouped(run_set, Severity::Note);
    let item = |(finding, runs): &(&Finding, Vec<&Entry>)| {
        let (class, word) = match finding.severity {
            Severity::Note => ("note", "note"),
            Severity::Warning => ("warn", "warning"),
            Severity::Error => ("bad", "error"),
        };
        let of_whom = match (run_set.entries.len(), runs.len()) {
            (1, _) => String::new(),
            (all, those) if all == those => " <em>(all runs)</em>".into(),
            _ => {
                let names: Vec<String> =
                    runs.iter().take(4).map(|run| name(&run.name(), 60)).collect();
                let more = runs.len().saturating_sub(4);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!(" <em>({}{more})</em>", names.join(", "))
            }
        };
        let hint = match finding.hint.as_str() {
            "" => String::new(),
            hint => format!("<br><span class=\"hint\">→ {}</span>", prose(hint, 400)),
        };
        format!(
            "<li><span class=\"badge {class}\">{word}</span> <code>{}</code> {}{of_whom}{hint}</li>\n",
            name(&finding.code, 40),
            prose(&finding.message, 400)
        )
    };
    let (notes, grave): (Vec<_>, Vec<_>) =
        found.iter().partition(|(f, _)| f.severity == Severity::Note);
    let listed = |of: &[&(&Finding, Vec<&Entry>)]| {
        let (shown, more) = list::first(of, MOST);
        let items: String = shown.iter().map(|f| item(f)).collect();
        format!("<ul class=\"findings\">\n{items}{}</ul>\n", last_item(more))
    };
    let mut out = String::new();
    if !grave.is_empty() {
        out.push_str(&listed(&grave));
    }
    if !notes.is_empty() {
        let summary = counted(notes.len() as u64, "note");
        out.push_str(&super::element::folded(&summary, &listed(&notes)));
    }
    out
}
