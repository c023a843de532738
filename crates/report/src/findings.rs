//! Findings: what makes a number doubtful, and what to do about it.

use std::collections::BTreeMap;
use std::fmt::Write;

use wakescope_core::finding::{Finding, Severity};

use crate::list;
use crate::run_set::{Entry, RunSet};
use crate::style::{Style, clean};

/// The widest line, in characters.
const LONGEST_LINE: usize = 100;

/// Notes that are named; a record from elsewhere may have any number.
const MOST_NAMED: usize = 40;

/// How findings that leave the numbers as they are appear.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notes {
    /// As the others.
    InFull,
    /// All on one line, without what they say.
    ByName,
}

/// A line per finding with what to do about it, after an empty line; empty if there are none.
pub(crate) fn list(findings: &[Finding], style: Style, notes: Notes) -> String {
    let mut out = String::new();
    let by_name = |f: &&Finding| f.severity == Severity::Note && notes == Notes::ByName;
    let (named, all): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(by_name);
    let width = all.iter().map(|f| f.code.chars().count()).max().unwrap_or(0).min(24);
    for finding in all {
        let (mark, dress): (&str, fn(Style, &str) -> String) = match finding.severity {
            Severity::Note => ("·", Style::faint),
            Severity::Warning => ("!", Style::warn),
            Severity::Error => ("✗", Style::bad),
        };
        let code = format!("{mark} {:<width$}", clean(&finding.code, 24));
        let indent = " ".repeat(width + 5);
        let room = LONGEST_LINE - indent.len();
        let message = wrapped(&clean(&finding.message, 400), room, &indent);
        let _ = writeln!(out, " {}  {message}", dress(style, &code));
        if !finding.hint.is_empty() {
            let hint = wrapped(&clean(&finding.hint, 400), room - 2, &format!("{indent}  "));
            let _ = writeln!(out, "{indent}→ {hint}");
        }
    }
    if !named.is_empty() {
        let (shown, more) = list::first(&named, MOST_NAMED);
        let names: Vec<String> = shown.iter().map(|f| clean(&f.code, 24)).collect();
        let more = more.map_or_else(String::new, |more| format!(" {more}"));
        let text = format!("notes, see `wakescope report`: {}{more}", names.join(", "));
        let text = format!(" · {}", wrapped(&text, LONGEST_LINE - 3, "   "));
        text.lines().for_each(|line| out.push_str(&(style.faint(line) + "\n")));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

/// The findings of runs that are at least so grave, the gravest first, each once with the runs that it is true
/// of.
pub(crate) fn grouped<'a>(
    run_set: &'a RunSet,
    least: Severity,
) -> Vec<(&'a Finding, Vec<&'a Entry<'a>>)> {
    let mut found: Vec<(&Finding, Vec<&Entry>)> = Vec::new();
    // A record from elsewhere may have very many.
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for entry in &run_set.entries {
        for finding in entry.run.validity.findings.iter().filter(|f| f.severity >= least) {
            let place = *places.entry((&finding.code, &finding.message)).or_insert(found.len());
            if place == found.len() {
                found.push((finding, Vec::new()));
            }
            // A finding can stand in one run more than once.
            let entries = &mut found[place].1;
            if entries.last().is_none_or(|&last| !std::ptr::eq(last, entry)) {
                entries.push(entry);
            }
        }
    }
    found.sort_by_key(|(f, _)| std::cmp::Reverse(f.severity));
    found
}

/// Breaks `text` at spaces, and words that are longer than a line anywhere, so that no line is longer
/// than `width`.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    // Without blanks, and as long as is allowed, only a name from elsewhere can be.
    for word in text.split(' ').flat_map(|word| pieces(word, width)) {
        let line = lines.len() - 1;
        if !lines[line].is_empty() && lines[line].chars().count() + 1 + word.chars().count() > width
        {
            lines.push(word);
        } else {
            if !lines[line].is_empty() {
                lines[line].push(' ');
            }
            lines[line].push_str(&word);
        }
    }
    lines.join(&format!("\n{indent}"))
}

/// `word` in pieces of at most `width` characters.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let all: Vec<char> = word.chars().collect();
    match all.len() {
        0 => vec![String::new()],
        _ => all.chunks(width.max(1)).map(|piece| piece.iter().collect()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::run_of;

    #[test]
    fn no_line_is_longer_than_a_hundred_characters() {
        for letters in 1..30 {
            let text = "abcdef ".repeat(60);
            let mut finding = Finding::new("lost-samples", Severity::Warning, text.clone(), &text);
            finding.code = "x".repeat(letters);
            let shown = list(&[finding], Style::default(), Notes::InFull);
            let longest = shown.lines().map(|line| line.chars().count()).max();
            assert!(longest.is_some_and(|longest| (90..=100).contains(&longest)), "{shown}");
        }
    }

    #[test]
    fn notes_by_name_keep_to_the_width_and_end() {
        let note = |i: usize| {
            let mut note = Finding::new("lost-samples", Severity::Note, String::new(), "");
            note.code = format!("a-note-of-some-length-{i}");
            note
        };
        let notes = |count: usize| (0..count).map(note).collect::<Vec<_>>();
        let shown = list(&notes(2_000), Style::default(), Notes::ByName);
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
        assert!(shown.ends_with("-39 and 1,960 more\n"), "{shown}");
        assert!(!list(&notes(40), Style::default(), Notes::ByName).contains("more"));
    }

    #[test]
    fn a_finding_of_several_runs_is_listed_once() {
        let finding = |severity, text: String| Finding::new("lost-samples", severity, text, "");
        let mut runs = [run_of(&[&[1_000]]), run_of(&[&[1_000]])];
        for run in &mut runs {
            let many = (0..3_000).map(|i| finding(Severity::Warning, format!("message {i}")));
            let grave = finding(Severity::Error, "grave".into());
            let others = [finding(Severity::Note, "a note".into()), grave.clone(), grave];
            run.validity.findings = many.chain(others).collect();
        }
        runs[1].validity.findings[7].message = "of the second".into();
        let run_set = RunSet::of(runs.iter().map(|run| Entry::of("run", run)).collect());
        let found = super::grouped(&run_set, Severity::Warning);
        assert_eq!(found.len(), 3_002);
        let shown = |at: usize| (found[at].0.message.as_str(), found[at].1.len());
        assert_eq!([0, 1, 8].map(shown), [("grave", 2), ("message 0", 2), ("message 7", 1)]);
        assert_eq!(found.last().unwrap().0.message, "of the second");
    }

    #[test]
    fn long_text_is_broken_at_spaces() {
        assert_eq!(wrapped("aa bb cc ddddd e", 5, "  "), "aa bb\n  cc\n  ddddd\n  e");
        assert_eq!(wrapped("aa bbbbbbb c", 5, "  "), "aa\n  bbbbb\n  bb c");
    }
}
