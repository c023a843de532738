//! What makes wakeups late, over all of them, the worst first.

use wakescope_core::explain::{Cause, CauseRow, Explanation};
use wakescope_core::run::Run;
use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};

use super::{late_wakeups, percent, phrases};
use crate::style::clean;
use crate::table::columns;

/// The most causes with a row of their own.
const MOST: usize = 10;
/// The longest name of a culprit.
const LONGEST_CULPRIT: usize = 40;

/// A line of the table.
struct Line {
    rank: String,
    cause: String,
    culprit: String,
    /// Not known of several rows together: one wakeup may be in each.
    episodes: Option<u64>,
    worst_ns: u64,
    total_ns: u64,
}

/// The causes that there is room for, each with its share of all of them, the largest first: the share
/// that [`table`] has. What is unexplained comes last, and has room whenever there is any.
pub(crate) fn shown(causes: &[CauseRow], most: usize) -> Vec<(&CauseRow, String)> {
    let groups = groups(causes);
    let totals = |rows: &Vec<&CauseRow>| rows.iter().map(|row| row.total_ns).collect::<Vec<_>>();
    let shares = percent::of_groups(&groups.iter().map(totals).collect::<Vec<_>>());
    let with_shares = |(rows, shares): (Vec<_>, Vec<_>)| rows.into_iter().zip(shares).collect();
    let mut groups: Vec<Vec<(&CauseRow, String)>> =
        groups.into_iter().zip(shares).map(with_shares).collect();
    let unexplained = groups.pop().unwrap_or_default();
    let mut known: Vec<_> = groups.into_iter().flatten().collect();
    known.truncate(if unexplained.is_empty() { most } else { most.saturating_sub(1) });
    let left = most - known.len();
    known.extend(unexplained.into_iter().take(left));
    known
}

/// The share of what is unexplained, as the table has it; `None` if nothing was late.
pub(super) fn unexplained(run: &Run) -> Option<String> {
    if run.causes.is_empty() {
        return None;
    }
    let lines = lines(&run.causes);
    percent::of(&lines.iter().map(|l| l.total_ns).collect::<Vec<_>>()).pop()
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
    let lines = lines(causes);
    let name_width = lines.iter().map(|l| l.cause.chars().count()).max().unwrap_or(0);
    let shares = percent::of(&lines.iter().map(|l| l.total_ns).collect::<Vec<_>>());
    let mut rows = vec![[&title, "episodes", "worst", "share"].map(String::from).to_vec()];
    rows.extend(lines.iter().zip(shares).map(|(line, share)| {
        let Line { rank, cause, culprit, .. } = line;
        let name = format!("{rank:>2}  {cause:<name_width$}  {culprit}");
        let worst =
            if line.worst_ns == 0 { String::new() } else { SpanNs(line.worst_ns).to_string() };
        vec![name, line.episodes.map(grouped).unwrap_or_default(), worst, share]
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

/// The lines of the table, in order.
fn lines(causes: &[CauseRow]) -> Vec<Line> {
    let mut groups = groups(causes);
    let unexplained = groups.pop().unwrap_or_default();
    let known = (1..).zip(groups).map(|(rank, rows)| match rows.as_slice() {
        [row] => Line::of(rank, row),
        others => Line::together(format!("{} others", grouped(others.len() as u64)), others),
    });
    let mut last = Line::together(Cause::Unexplained.name().into(), &unexplained);
    if let [row] = unexplained.as_slice() {
        last.episodes = Some(row.episodes);
    }
    known.chain([last]).collect()
}

/// The causes of each line of the table: first those with a line of their own, the largest first, then
/// all others together, if there are more, and last what is unexplained, even if that is nothing.
fn groups(causes: &[CauseRow]) -> Vec<Vec<&CauseRow>> {
    let mut ranked: Vec<&CauseRow> = causes.iter().collect();
    ranked.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    let (unexplained, mut own): (Vec<&CauseRow>, Vec<&CauseRow>) =
        ranked.into_iter().partition(|row| row.cause == Cause::Unexplained);
    // A line for one other would take the place of that one.
    let others = if own.len() > MOST + 1 { own.split_off(MOST) } else { Vec::new() };
    let mut groups: Vec<Vec<&CauseRow>> = own.into_iter().map(|row| vec![row]).collect();
    groups.extend((!others.is_empty()).then_some(others));
    groups.push(unexplained);
    groups
}

impl Line {
    fn of(rank: usize, row: &CauseRow) -> Self {
        Self {
            rank: rank.to_string(),
            cause: row.cause.name().into(),
            culprit: clean(&phrases::culprit(row.blamed()), LONGEST_CULPRIT),
            episodes: Some(row.episodes),
            worst_ns: row.worst_ns,
            total_ns: row.total_ns,
        }
    }

    fn together(cause: String, rows: &[&CauseRow]) -> Self {
        Self {
            rank: String::new(),
            cause,
            culprit: String::new(),
            episodes: None,
            worst_ns: rows.iter().map(|row| row.worst_ns).max().unwrap_or(0),
            total_ns: rows.iter().fold(0, |sum, row| sum.saturating_add(row.total_ns)),
        }
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
            let table = rows(&causes, String::new());
            let of_table: Vec<&str> =
                table.lines().skip(1).map(|line| line.rsplit("  ").next().unwrap()).collect();
            let shown = shown(&causes, most);
            for ((row, share), of_table) in shown.iter().zip(&of_table).take(MOST.min(totals.len())) {
                if row.cause != Cause::Unexplained {
                    prop_assert_eq!(share.trim(), of_table.trim(), "{}", table);
                }
            }
            if let ([(row, share)], [_]) = (&shown[shown.len() - 1..], &unexplained[..]) {
                prop_assert!(row.cause == Cause::Unexplained);
                prop_assert_eq!(share.as_str(), of_table[of_table.len() - 1].trim(), "{}", table);
            }
        }
    }
}
