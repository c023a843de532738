//! Late time by tasks or code, whatever the cause.

use wakescope_core::explain::{By, Cause, Explanation, Ranking, RankingRow, Subject};
use wakescope_core::units::{SpanNs, counted, grouped};

use super::{percent, phrases};
use crate::style::clean;
use crate::table::columns;

/// The most subjects with a row of their own.
const MOST: usize = 10;
/// The longest name of a subject.
const LONGEST_NAME: usize = 60;

/// A row per subject, the largest share first; one for what is left of them, and unexplained time last.
pub(super) fn table(ranking: &Ranking, explanation: &Explanation) -> String {
    let (unexplained, known): (Vec<&RankingRow>, Vec<&RankingRow>) =
        ranking.rows.iter().partition(|row| is_unexplained(&row.subject));
    let own = if known.len() == MOST + 1 { MOST + 1 } else { MOST.min(known.len()) };
    let (own, others) = known.split_at(own);
    let sum = |rows: &[&RankingRow]| rows.iter().fold(0, |n: u64, r| n.saturating_add(r.total_ns));
    let mut totals: Vec<u64> = own.iter().map(|row| row.total_ns).collect();
    totals.extend([sum(others), sum(&unexplained)]);
    let shares = percent::of(&totals);
    let mut rows = vec![
        [&title(ranking, explanation), "episodes", "worst", "share"].map(String::from).to_vec(),
    ];
    for ((number, row), share) in (1..).zip(own).zip(&shares) {
        let name = clean(&subject(&row.subject, ranking.by), LONGEST_NAME);
        let worst = SpanNs(row.worst_ns).to_string();
        rows.push(vec![
            format!("{number:>2}  {name}"),
            grouped(row.episodes),
            worst,
            share.clone(),
        ]);
    }
    let mut together = |name: String, of: &[&RankingRow], share: &String| {
        let worst = of.iter().map(|row| row.worst_ns).max().map(|ns| SpanNs(ns).to_string());
        let episodes = if let [one] = of { grouped(one.episodes) } else { String::new() };
        rows.push(vec![format!("    {name}"), episodes, worst.unwrap_or_default(), share.clone()]);
    };
    if !others.is_empty() {
        let name = format!("{} others", grouped(others.len() as u64));
        together(name, others, &shares[own.len()]);
    }
    together(Cause::Unexplained.name().into(), &unexplained, &shares[own.len() + 1]);
    columns(&rows, true)
}

/// Of which wakeups it is, and by what.
fn title(ranking: &Ranking, explanation: &Explanation) -> String {
    let Ranking { by, wakeups, complete, .. } = ranking;
    let of = match complete {
        true => format!("the {}", counted(*wakeups, "late wakeup")),
        false => format!(
            "of {} late wakeups only the worst {}",
            grouped(explanation.late),
            grouped(*wakeups)
        ),
    };
    format!("late time by {by}: {of}")
}

/// The name of a row: `rm[412] other`, `ext4_readdir [ext4]`.
fn subject(subject: &Subject, by: By) -> String {
    match subject {
        Subject::Function(function) => match &function.module {
            Some(module) => format!("{} [{module}]", function.name),
            None => function.name.clone(),
        },
        Subject::Module { name: Some(module) } => format!("[{module}]"),
        Subject::Module { name: None } => "the kernel itself".into(),
        Subject::Task(task) => phrases::task_with_policy(task),
        Subject::Cause { cause } => format!("no {by}: {}", phrases::cause(*cause)),
        Subject::Others => "others".into(),
    }
}

fn is_unexplained(subject: &Subject) -> bool {
    *subject == Subject::Cause { cause: Cause::Unexplained }
}
