//! Whether the rows that late time is ranked in fit one another.

use super::ranking::RankingRow;
use super::record::CauseRow;

/// By how much a share may differ from what its row's time makes: it may have been written by another program.
const ROUNDED: f64 = 1e-6;

/// The time of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowTime {
    total_ns: u64,
    worst_ns: u64,
    share: f64,
}

impl From<&CauseRow> for RowTime {
    fn from(row: &CauseRow) -> Self {
        let CauseRow { total_ns, worst_ns, share, .. } = *row;
        Self { total_ns, worst_ns, share }
    }
}

impl From<&RankingRow> for RowTime {
    fn from(row: &RankingRow) -> Self {
        let RankingRow { total_ns, worst_ns, share, .. } = *row;
        Self { total_ns, worst_ns, share }
    }
}

/// The first of these rows that contradicts itself or the others, and how. Together they are all late time.
pub(crate) fn fault<'a, R>(rows: &'a [R]) -> Option<(usize, String)>
where
    RowTime: From<&'a R>,
{
    let rows: Vec<RowTime> = rows.iter().map(RowTime::from).collect();
    let all: u128 = rows.iter().map(|row| u128::from(row.total_ns)).sum();
    let fault = |row: &RowTime| {
        let RowTime { total_ns, worst_ns, share } = *row;
        // A total that has no room for its time says less than its share does.
        let fits = all < u128::from(u64::MAX);
        let makes = total_ns as f64 / all as f64;
        match () {
            () if !(0.0..=1.0).contains(&share) => {
                Some(format!("a share of {share} is not from 0 to 1"))
            }
            () if worst_ns > total_ns => {
                Some(format!("the largest share is {worst_ns} ns, but all are {total_ns} ns"))
            }
            () if fits && all > 0 && (share - makes).abs() > ROUNDED => {
                Some(format!("a share of {share}, but {total_ns} of {all} ns are {makes}"))
            }
            () => None,
        }
    };
    rows.iter().enumerate().find_map(|(i, row)| Some((i, fault(row)?)))
}

/// The first of these rows whose largest share of a wakeup is more than any wakeup was late: `max_ns`.
pub(crate) fn later_than<'a, R>(rows: &'a [R], max_ns: u64) -> Option<(usize, u64)>
where
    RowTime: From<&'a R>,
{
    let mut worst = rows.iter().map(|row| RowTime::from(row).worst_ns).enumerate();
    worst.find(|(_, worst_ns)| *worst_ns > max_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(total_ns: u64, worst_ns: u64, share: f64) -> CauseRow {
        CauseRow { episodes: 1, total_ns, worst_ns, share, ..CauseRow::default() }
    }

    #[test]
    fn rows_that_contradict_each_other_are_found() {
        let said = |rows: &[CauseRow]| fault(rows).map(|(i, why)| format!("{i}: {why}"));
        let check = |rows: &[CauseRow], want: &str| assert_eq!(said(rows).as_deref(), Some(want));
        assert_eq!(said(&[]), None);
        assert_eq!(said(&[row(2, 2, 2.0 / 3.0), row(1, 1, 1.0 / 3.0)]), None);
        // Nothing was late.
        assert_eq!(said(&[row(0, 0, 0.0)]), None);
        check(&[row(2, 1, 1.5)], "0: a share of 1.5 is not from 0 to 1");
        check(&[row(2, 3, 1.0)], "0: the largest share is 3 ns, but all are 2 ns");
        check(&[row(2, 2, 0.5), row(2, 2, 0.75)], "1: a share of 0.75, but 2 of 4 ns are 0.5");
        // Totals that have no room are cut.
        assert_eq!(said(&[row(u64::MAX, 1, 0.9), row(u64::MAX, 1, 0.1)]), None);
    }

    #[test]
    fn no_share_of_a_wakeup_is_larger_than_its_lateness() {
        let rows = [row(9, 4, 0.9), row(1, 1, 0.1)];
        assert_eq!(later_than(&rows, 4), None);
        assert_eq!(later_than(&rows, 3), Some((0, 4)));
    }
}
