//! Runs as Markdown, for a pull request or a ticket.

use wakescope_core::explain::CauseRow;
use wakescope_core::finding::Severity;
use wakescope_core::limit::Outcome;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::Run;
use wakescope_core::units::grouped;

use crate::audio;
use crate::domain;
use crate::explain;
use crate::explain::ranking::{Line, heading, lines};
use crate::findings;
use crate::list;
use crate::observed;
use crate::quantity;
use crate::run_set::{Entry, RunSet};
use crate::style::clean;
use crate::text::{self, plan};

/// The most limits of a run and findings that are listed, and causes of a run.
const MOST: usize = 40;
const MOST_CAUSES: usize = 5;

/// The answer, a table of the runs, how they stand to their limits, and what speaks against them.
pub fn report(run_set: &RunSet) -> String {
    let mut parts = Vec::new();
    if !run_set.title.is_empty() {
        parts.push(format!("### {}\n", escaped(&clean(&run_set.title, 200))));
    }
    parts.push(answer(run_set));
    parts.push(table(run_set));
    parts.push(limits(run_set));
    parts.push(waits(run_set));
    parts.push(causes(run_set));
    parts.push(subjects(run_set));
    parts.push(findings(run_set));
    parts.push(basis(run_set));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn answer(run_set: &RunSet) -> String {
    let [entry] = run_set.entries.as_slice() else { return String::new() };
    let run = &entry.run;
    let measured = text::sentence(run).unwrap_or_else(|| text::none_measured(run));
    let said = explain::sentence(run).unwrap_or(measured);
    let proven = text::what_it_proves_of(entry);
    let others: Vec<String> =
        audio::sentences(run).into_iter().chain(crate::stamps::sentence(run)).collect();
    let message = proven.lines().chain(others.iter().flat_map(|text| text.lines()));
    let proven = message.collect::<Vec<_>>().join(" ");
    format!("**{}**\n\n{}\n", escaped(&said), escaped(&proven))
}

fn table(run_set: &RunSet) -> String {
    let mut head = vec!["run".to_owned(), "count".into(), "missed".into()];
    head.extend(Percentile::SHOWN.iter().map(ToString::to_string));
    head.extend(["max".into(), "verdict".into()]);
    let mut out =
        format!("| {} |\n|---|{}\n", head.join(" | "), "--:|".repeat(head.len() - 2) + "---|");
    for entry in &run_set.entries {
        let all = entry.run.expiries();
        let mut cells = vec![
            escaped(&entry.name()),
            grouped(all.count),
            quantity::count(quantity::missed_of_all(&entry.run)),
        ];
        cells.extend(Percentile::SHOWN.iter().map(|&p| quantity::quantile(&all, p)));
        cells.extend([quantity::maximum(&all), entry.run.validity.verdict.to_string()]);
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    match run_set.domain().before_unit() {
        "" => out,
        word => format!("Times are {}.\n\n{out}", word.trim()),
    }
}

fn limits(run_set: &RunSet) -> String {
    let mut out = String::new();
    for entry in &run_set.entries {
        let (judgements, more) = observed::failed_first(&entry.run, MOST);
        for judgement in judgements {
            let (limit, observed) = observed::of(judgement, entry.run.time_domain);
            let limit = escaped(&limit) + text::judged(&entry.run);
            let message = match judgement.outcome {
                Outcome::Pass => format!("within the limit {limit}: {observed}"),
                Outcome::Fail => format!("**above the limit {limit}: {observed}**"),
                Outcome::Inconclusive => {
                    format!(
                        "inconclusive on the limit {limit}: {}",
                        escaped(&clean(&judgement.reason, 200))
                    )
                }
            };
            out.push_str(&format!("- {}{message}\n", of_run(run_set, entry)));
        }
        out.extend(more.map(|more| format!("- {}{more}\n", of_run(run_set, entry))));
    }
    out
}

/// `6.1 none: `, where there are several.
fn of_run(run_set: &RunSet, entry: &Entry) -> String {
    if run_set.entries.len() > 1 { format!("{}: ", escaped(&entry.name())) } else { String::new() }
}

fn waits(run_set: &RunSet) -> String {
    let mut out = String::new();
    for entry in &run_set.entries {
        let waits = entry.run.explanation.as_ref().and_then(|e| e.waits.as_ref());
        for line in waits.map(explain::wait_lines).unwrap_or_default() {
            let explain::WaitLine { kind, count, sum_ns, worst_ns, cause, culprit } = line;
            let span = |ns| domain::span(ns, run_set.domain());
            let worst = match (worst_ns, culprit.is_empty()) {
                (None, _) => String::new(),
                (Some(ns), true) => format!(", longest {} ({cause})", span(ns)),
                (Some(ns), false) => {
                    format!(", longest {} ({cause} `{}`)", span(ns), culprit.replace('`', "'"))
                }
            };
            let times = grouped(count);
            let of_run = of_run(run_set, entry);
            out.push_str(&format!("- {of_run}{kind} {}, {times} ×{worst}\n", span(sum_ns)));
        }
    }
    if out.is_empty() { out } else { format!("Waits of the followed threads:\n\n{out}") }
}

fn causes(run_set: &RunSet) -> String {
    let of_net = |run: &Run| run.net_of_steal.as_ref().map(|net| net.causes.clone());
    let net = ranked(run_set, |run| of_net(run).unwrap_or_default());
    let with = |title: &str, rows: String| match rows.as_str() {
        "" => rows,
        _ => format!("{title}:\n\n{rows}"),
    };
    let notes = run_set.entries.iter().filter_map(|e| e.run.net_of_steal.as_ref());
    let note = match notes.map(explain::rest_of_steal).find(|note| !note.is_empty()) {
        Some(note) => format!("\nNote: {note}.\n"),
        None => String::new(),
    };
    let all = with("Causes of late wakeups", ranked(run_set, |run| run.causes.clone()));
    let separator = if net.is_empty() { "" } else { "\n" };
    all + separator + &with(explain::NET_TITLE, net) + &note
}

fn ranked(run_set: &RunSet, of: impl Fn(&Run) -> Vec<CauseRow>) -> String {
    let mut out = String::new();
    for entry in &run_set.entries {
        for line in explain::cause_lines(&of(&entry.run), MOST_CAUSES) {
            let culprit = match line.culprit(explain::beside) {
                none if none.is_empty() => none,
                culprit => format!(" `{}`", culprit.replace('`', "'")),
            };
            out.push_str(&format!(
                "- {}{} {}{culprit}, worst {}\n",
                of_run(run_set, entry),
                line.share(),
                line.cause(explain::cause),
                domain::span(line.worst_ns(), run_set.domain())
            ));
        }
    }
    out
}

/// Late time by tasks or code, of runs that were asked for it.
fn subjects(run_set: &RunSet) -> String {
    let of_run = |entry: &Entry| {
        let (ranking, explanation) = (entry.run.ranking.as_ref()?, entry.run.explanation.as_ref()?);
        let of_run = of_run(run_set, entry);
        let line = |line: Line| {
            let worst = line.worst_ns.map(|ns| domain::span(ns, run_set.domain()));
            let worst = worst.map(|worst| format!(", worst {worst}")).unwrap_or_default();
            format!("- {of_run}{} `{}`{worst}\n", line.share, line.name.replace('`', "'"))
        };
        let lines: String = lines(ranking).into_iter().map(line).collect();
        Some(format!("{}:\n\n{lines}", heading(ranking, explanation)))
    };
    let tables: Vec<String> = run_set.entries.iter().filter_map(of_run).collect();
    tables.join("\n")
}

fn findings(run_set: &RunSet) -> String {
    let found = findings::grouped(run_set, Severity::Warning);
    let (found, more) = list::first(&found, MOST);
    let text = found.iter().map(|(finding, entries)| {
        let mark = if finding.severity == Severity::Error { "✗" } else { "!" };
        let of = match entries.as_slice() {
            [entry] => of_run(run_set, entry),
            entries if entries.len() == run_set.entries.len() => String::new(),
            entries => format!("{} runs: ", entries.len()),
        };
        format!(
            "- {mark} {}: {of}{}\n",
            escaped(&clean(&finding.code, 40)),
            escaped(&clean(&finding.message, 400))
        )
    });
    text.chain(more.map(|more| format!("- {more}\n"))).collect()
}

fn basis(run_set: &RunSet) -> String {
    let mut lines: Vec<String> = Vec::new();
    for run in run_set.entries.iter().map(|e| &e.run) {
        let line = match &run.source {
            None => machine(run),
            Some(source) => format!(
                "measured by {} ({}), {}; {}",
                clean(&source.tool, 40),
                clean(&source.format, 60),
                source.quantity,
                source.omission
            ),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.extend(domain::caveats(run_set.domain(), run_set.is_explained()).map(Into::into));
    lines.iter().map(|line| format!("{}\n", escaped(line))).collect::<Vec<_>>().join("\n")
}

fn machine(run: &Run) -> String {
    let release = clean(&run.host.release, 60);
    format!(
        "kernel {release} · preemption {} · {}",
        run.host.preemption.model,
        plan(&run.plan, run.time_domain)
    )
}

/// `text` as it is, where Markdown and HTML would read more into it, and GitHub and GitLab links and
/// mentions of users.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let next = &text[at + c.len_utf8()..];
        let begins_link =
            (c == ':' && next.starts_with("//")) || (c == '.' && text[..at].ends_with("www"));
        if begins_link || "\\`*_{}[]<>|#~&!".contains(c) {
            out.push('\\');
        }
        out.push(c);
        // Mentions are looked for when escapes are gone, but not across a comment.
        if c == '@' && next.starts_with(|c: char| c.is_alphanumeric()) {
            out.push_str("<!-- -->");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::text::tests::run_of;

    #[test]
    fn runs_are_rows() {
        let (a, b) = (run_of(&[&[12_000; 3_000]]), run_of(&[&[9_000, 4_310_000]]));
        let mut run_set = RunSet::of(vec![Entry::of("old", &a), Entry::of("new|<b>", &b)]);
        run_set.title = "nightly".into();
        expect![[r#"
            ### nightly

            | run | count | missed | p50 | p99 | p99.9 | p99.99 | p99.999 | max | verdict |
            |---|--:|--:|--:|--:|--:|--:|--:|--:|---|
            | old | 3,000 | 0 | 12.0 µs | 12.0 µs | 12.0 µs | – | – | 12.0 µs | valid |
            | new\|\<b\> | 2 | 0 | – | – | – | – | – | 4.31 ms | valid |

            kernel 6.12.95 · preemption voluntary · timer 1.00 ms · fifo 90 · CPU 0
        "#]]
        .assert_eq(&report(&run_set));
    }

    #[test]
    fn names_of_others_are_neither_links_nor_mentions() {
        for (text, want) in [
            ("@user and me@host", "@<!-- -->user and me@<!-- -->host"),
            ("a @ b, 3 @", "a @ b, 3 @"),
            ("http://host: www.host", "http\\://host: www\\.host"),
            ("[a](b) #1", "\\[a\\](b) \\#1"),
        ] {
            assert_eq!(escaped(text), want);
        }
    }

    #[test]
    fn shares_of_causes_are_those_of_the_text_and_little_is_not_nothing() {
        use wakescope_core::explain::{Cause, CauseRow};
        let row = |cause, total_ns| {
            let share = total_ns as f64 / 1_000_001.0;
            CauseRow { cause, total_ns, worst_ns: total_ns, share, ..CauseRow::default() }
        };
        let mut run = run_of(&[&[12_000; 3_000]]);
        run.causes = vec![row(Cause::Steal, 1_000_000), row(Cause::Softirq, 1)];
        let run_set = RunSet::of(vec![Entry::of("run", &run)]);
        let listed = causes(&run_set);
        assert!(listed.contains("- >99.9 % ") && listed.contains("- <0.1 % "), "{listed}");
        run.explanation = Some(wakescope_core::explain::Explanation::default());
        let run_set = RunSet::of(vec![Entry::of("run", &run)]);
        let drawn = crate::picture::svg(crate::picture::Picture::Causes, &run_set).unwrap();
        assert!(drawn.contains("&gt;99.9 % ·") && drawn.contains("&lt;0.1 % ·"), "{drawn}");
        assert!(drawn.contains("stolen by the hypervisor &gt;99.9 %."), "{drawn}");
    }

    #[test]
    fn waits_of_threads_are_listed_with_their_causes() {
        let mut run = run_of(&[&[12_000; 3_000]]);
        let mut waits = crate::explain::tests::hostile::waits("spin");
        let [preempted, throttled] = &mut waits.kinds[..] else { panic!() };
        (preempted.count, preempted.sum_ns) = (12, 240_000_000);
        preempted.worst.as_mut().unwrap().ns = 20_000_000;
        (throttled.count, throttled.sum_ns, throttled.worst) = (63, 6_300_000_000, None);
        run.explanation =
            Some(wakescope_core::explain::Explanation { waits: Some(waits), ..Default::default() });
        let shown = waits_of(&run);
        expect![[r#"
            Waits of the followed threads:

            - throttled 6.30 s, 63 ×
            - preempted 240 ms, 12 ×, longest 20.0 ms (higher_priority_task `spin[4294967295] other -2147483648`)
        "#]].assert_eq(&shown);
    }

    fn waits_of(run: &wakescope_core::run::Run) -> String {
        waits(&RunSet::of(vec![Entry::of("run", run)]))
    }
}
