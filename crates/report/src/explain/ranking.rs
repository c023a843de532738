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

/// A row of the table: a subject, several that have no row of their own, or unexplained time.
pub(crate) struct Line {
    /// The subject that took the time. Names of tasks come from a record, so they may hold any text.
    pub(crate) name: String,
    /// Late wakeups that it delayed; `None` of several subjects, which may share some.
    pub(crate) episodes: Option<u64>,
    /// The most that it took of one, ns; `None` if it took nothing.
    pub(crate) worst_ns: Option<u64>,
    /// Its share of the latency of all.
    pub(crate) share: String,
    /// Whether it is one subject, which has a number.
    pub(crate) is_ranked: bool,
}

/// A row per subject, the largest share first; one for what is left of them, and unexplained time last.
pub(crate) fn lines(ranking: &Ranking) -> Vec<Line> {
    let (unexplained, known): (Vec<&RankingRow>, Vec<&RankingRow>) =
        ranking.rows.iter().partition(|row| is_unexplained(&row.subject));
    let own = if known.len() == MOST + 1 { MOST + 1 } else { MOST.min(known.len()) };
    let (own, others) = known.split_at(own);
    let sum = |rows: &[&RankingRow]| rows.iter().fold(0, |n: u64, r| n.saturating_add(r.total_ns));
    let mut totals: Vec<u64> = own.iter().map(|row| row.total_ns).collect();
    totals.extend([sum(others), sum(&unexplained)]);
    let shares = percent::of(&totals);
    let subject = |row: &&RankingRow| clean(&subject(&row.subject, ranking.by), LONGEST_NAME);
    let ranked = own.iter().zip(&shares).map(|(row, share)| Line {
        name: subject(row),
        episodes: Some(row.episodes),
        worst_ns: Some(row.worst_ns),
        share: share.clone(),
        is_ranked: true,
    });
    let together = |name: String, of: &[&RankingRow], share: &String| Line {
        name,
        episodes: if let [one] = of { Some(one.episodes) } else { None },
        worst_ns: of.iter().map(|row| row.worst_ns).max(),
        share: share.clone(),
        is_ranked: false,
    };
    let name = format!("{} others", grouped(others.len() as u64));
    let others = (!others.is_empty()).then(|| together(name, others, &shares[own.len()]));
    let name = Cause::Unexplained.name().into();
    let unexplained = together(name, &unexplained, &shares[own.len() + 1]);
    ranked.chain(others).chain([unexplained]).collect()
}

/// The table, as text.
pub(super) fn table(ranking: &Ranking, explanation: &Explanation) -> String {
    let mut rows = vec![
        [&title(ranking, explanation), "episodes", "worst", "share"].map(String::from).to_vec(),
    ];
    for (number, line) in (1..).zip(lines(ranking)) {
        let number = if line.is_ranked { format!("{number:>2}") } else { "  ".into() };
        rows.push(vec![
            format!("{number}  {}", line.name),
            line.episodes.map(grouped).unwrap_or_default(),
            line.worst_ns.map(|ns| SpanNs(ns).to_string()).unwrap_or_default(),
            line.share,
        ]);
    }
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

/// The same where it stands alone.
pub(crate) fn heading(ranking: &Ranking, explanation: &Explanation) -> String {
    title(ranking, explanation).replacen('l', "L", 1)
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
