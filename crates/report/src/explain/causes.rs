//! What makes wakeups late, over all of them, the worst first.

use wakescope_core::explain::{Blamed, Cause, CauseRow, Explanation};
use wakescope_core::run::Run;
use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};

use super::percent::{self, Share};
use super::{late_wakeups, phrases};
use crate::style::clean;
use crate::table::columns;

/// The most causes with a row of their own in the table.
const MOST: usize = 10;
/// The longest name of a culprit.
const LONGEST_CULPRIT: usize = 40;

/// A line of a ranking: a cause, all causes that have no line of their own, or what is unexplained.
pub(crate) struct Line<'a> {
    /// Its place among the causes; `None` of several causes, and of what is unexplained.
    rank: Option<usize>,
    /// None if nothing is unexplained.
    causes: Vec<&'a CauseRow>,
    share: Share,
}

impl<'a> Line<'a> {
    /// The cause, if it is one.
    pub(crate) fn single(&self) -> Option<&'a CauseRow> {
        self.causes.iter().copied().next().filter(|_| self.causes.len() == 1)
    }

    /// Its cause in the words of `name`, or how many others these are.
    pub(crate) fn cause(&self, name: impl Fn(Cause) -> &'static str) -> String {
        match (self.single(), self.causes.first()) {
            (Some(row), _) => name(row.cause).into(),
            (None, Some(row)) if row.cause != Cause::Unexplained => {
                format!("{} others", grouped(self.causes.len() as u64))
            }
            _ => name(Cause::Unexplained).into(),
        }
    }

    /// Who caused it, in the words of `name`; empty of several causes.
    pub(crate) fn culprit(&self, name: impl Fn(Blamed) -> String) -> String {
        self.single().map(|row| name(row.blamed())).unwrap_or_default()
    }

    /// The late wakeups that it delayed; `None` of several causes: one wakeup may be in each.
    pub(crate) fn episodes(&self) -> Option<u64> {
        self.single().map(|row| row.episodes)
    }

    /// The most that it took of one wakeup, ns.
    pub(crate) fn worst_ns(&self) -> u64 {
        self.causes.iter().map(|row| row.worst_ns).max().unwrap_or(0)
    }

    /// Its share of the lateness of all: `12.3 %`.
    pub(crate) fn share(&self) -> String {
        self.share.to_string()
    }

    /// The part of the lateness of all that it is, from 0 to 1.
    pub(crate) fn part(&self) -> f64 {
        self.causes.iter().map(|row| row.share).sum()
    }
}

/// A ranking in lines: `most` causes, or one more if that is the last, the largest first; one for all other
/// causes; and one for what is unexplained, if anything is. A cause has the same share in long rankings and
/// in short ones, and the shares add up.
pub(crate) fn lines(causes: &[CauseRow], most: usize) -> Vec<Line<'_>> {
    let mut lines = all_lines(causes, most);
    lines.retain(|line| !line.causes.is_empty());
    lines
}

/// The same with a line for what is unexplained, even if that is nothing.
fn all_lines(causes: &[CauseRow], most: usize) -> Vec<Line<'_>> {
    let (known, unexplained) = ranked(causes);
    let (own, others) = split(&known, MOST);
    let mut totals: Vec<Vec<u64>> = own.iter().map(|row| vec![row.total_ns]).collect();
    totals.push(others.iter().map(|row| row.total_ns).collect());
    let total = unexplained.iter().fold(0, |sum: u64, row| sum.saturating_add(row.total_ns));
    totals.push(vec![total]);
    let mut shares = percent::of_groups(&totals);
    let sum = |shares: &[Share]| shares.iter().copied().fold(Share::default(), Share::with);
    let of_unexplained = sum(&shares.pop().unwrap_or_default());
    let shares: Vec<Share> = shares.concat();
    let (own, others) = split(&known, most);
    let (of_own, of_others) = shares.split_at(own.len());
    let mut lines: Vec<Line> = (1..)
        .zip(own.iter().zip(of_own))
        .map(|(rank, (&row, &share))| Line { rank: Some(rank), causes: vec![row], share })
        .collect();
    let together = |causes: &[_], share| Line { rank: None, causes: causes.to_vec(), share };
    lines.extend((!others.is_empty()).then(|| together(others, sum(of_others))));
    lines.push(together(&unexplained, of_unexplained));
    lines
}

/// The known causes, the largest first, and what is unexplained.
fn ranked(causes: &[CauseRow]) -> (Vec<&CauseRow>, Vec<&CauseRow>) {
    let mut ranked: Vec<&CauseRow> = causes.iter().collect();
    ranked.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    ranked.into_iter().partition(|row| row.cause != Cause::Unexplained)
}

/// Those with lines of their own, and the others. A line for one other would take the place of that one.
fn split<'a, 'b>(
    known: &'b [&'a CauseRow],
    most: usize,
) -> (&'b [&'a CauseRow], &'b [&'a CauseRow]) {
    known.split_at(if known.len() <= most + 1 { known.len() } else { most })
}

/// The share of what is unexplained, as the table has it; `None` if nothing was late.
pub(super) fn unexplained(run: &Run) -> Option<String> {
    if run.causes.is_empty() {
        return None;
    }
    all_lines(&run.causes, MOST).pop().map(|line| line.share())
}

/// A row per cause, one for what is left of them, and always one for what nobody knows. Empty if
/// nothing was late.
pub(super) fn table(run: &Run, explanation: &Explanation) -> String {
    if explanation.late == 0 && run.causes.is_empty() {
        return String::new();
    }
    let above = (explanation.above_ns, &*explanation.above);
    let title = format!("causes of {}", late_wakeups(explanation.late, above, run.time_domain));
    rows(&run.causes, title) + &of_unknown_lateness(run, explanation)
}

/// The rows of a ranking, below its title.
pub(super) fn rows(causes: &[CauseRow], title: String) -> String {
    let lines = all_lines(causes, MOST);
    let names: Vec<String> = lines.iter().map(|line| line.cause(Cause::name)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut rows = vec![[&title, "episodes", "worst", "share"].map(String::from).to_vec()];
    rows.extend(lines.iter().zip(names).map(|(line, name)| {
        let rank = line.rank.map(|rank| rank.to_string()).unwrap_or_default();
        let culprit = match line.rank {
            Some(_) => clean(&line.culprit(phrases::culprit), LONGEST_CULPRIT),
            None => String::new(),
        };
        let name = format!("{rank:>2}  {name:<name_width$}  {culprit}");
        let worst = match line.worst_ns() {
            0 => String::new(),
            ns => SpanNs(ns).to_string(),
        };
        vec![name, line.episodes().map(grouped).unwrap_or_default(), worst, line.share()]
    }));
    columns(&rows, true)
}

/// Wakeups of which nobody knows whether they were late.
fn of_unknown_lateness(run: &Run, explanation: &Explanation) -> String {
    match (run.plan.is_of_others(), explanation.not_followed) {
        (false, _) | (_, 0) => String::new(),
        (true, count) => format!(
            " not counted here: {} that {} not followed, with unknown lateness\n",
            counted(count, "wakeup"),
            one_or_many(count, "was", "were"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Tables of a few causes and the one of all give a cause the same share.
        #[test]
        fn a_cause_has_one_share(
            totals in prop::collection::vec(1_u64..10_000_000, 1..30),
            unexplained in prop::collection::vec(1_u64..10_000_000, 0..3),
            most in 1_usize..12,
        ) {
            let row = |cause, total_ns: &u64| CauseRow { cause, total_ns: *total_ns, ..CauseRow::default() };
            let known = totals.iter().map(|ns| row(Cause::Irq, ns));
            let causes: Vec<CauseRow> =
                known.chain(unexplained.iter().map(|ns| row(Cause::Unexplained, ns))).collect();
            let whole = all_lines(&causes, MOST);
            let (lines, same) = (all_lines(&causes, most), most.min(MOST).min(totals.len()));
            for (line, of_table) in lines.iter().zip(&whole).take(same) {
                prop_assert_eq!(line.share(), of_table.share());
            }
            prop_assert_eq!(lines.last().map(Line::share), whole.last().map(Line::share));
            let all = lines.iter().flat_map(|line| &line.causes);
            prop_assert_eq!(all.count(), causes.len());
            let tenths = |line: &Line| match line.share().trim_end_matches(" %") {
                "<0.1" => 0.0,
                ">99.9" => 100.0,
                number => number.parse::<f64>().unwrap(),
            };
            let sum: f64 = lines.iter().map(tenths).sum();
            prop_assert!((sum - 100.0).abs() < 0.01, "{}", sum);
        }
    }
}
