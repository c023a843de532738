//! What made wakeups late, over all of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::record::{Cause, CauseRow, Share};

/// The most rows that have a culprit of their own.
const MOST_ROWS: usize = 1_000;

/// The culprit of the rows of all others.
pub(super) const OTHERS: &str = "others";

type Key<'a> = (Cause, &'a str);

/// What is ranked: late wakeups that are alike, by whose their time was.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// How many wakeups.
    weight: u64,
    /// Of each, nanoseconds by cause and culprit. Together they are its wakeup latency.
    shares: BTreeMap<Key<'a>, u64>,
}

impl<'a> Part<'a> {
    /// `weight` wakeups that were `late_ns` late, with cause, culprit and nanoseconds of their shares.
    /// What these leave is unexplained.
    pub(super) fn new(
        weight: u64,
        late_ns: u64,
        shares: impl IntoIterator<Item = (Cause, &'a str, u64)>,
    ) -> Self {
        let mut sums: BTreeMap<Key, u64> = BTreeMap::new();
        let mut told = 0_u64;
        for (cause, culprit, ns) in shares.into_iter().filter(|(_, _, ns)| *ns > 0) {
            // Nobody is to blame for what nobody knows.
            let culprit = if cause == Cause::Unexplained { "" } else { culprit };
            let sum = sums.entry((cause, culprit)).or_default();
            *sum = sum.saturating_add(ns);
            told = told.saturating_add(ns);
        }
        if late_ns > told {
            let rest = sums.entry((Cause::Unexplained, "")).or_default();
            *rest = rest.saturating_add(late_ns - told);
        }
        Self { weight, shares: sums }
    }

    /// A wakeup that was `late_ns` late, with its shares.
    pub fn of(late_ns: u64, blame: &'a [Share]) -> Self {
        let share = |share: &'a Share| (share.cause, share.culprit.as_str(), share.ns);
        Self::new(1, late_ns, blame.iter().map(share))
    }
}

/// Ranks the causes of late wakeups: the largest together first, what is unexplained last. All
/// rows' shares make 1, unless nothing was late.
///
/// At most 1,000 rows have a culprit of their own, those with the largest; the rest of each cause
/// is one row, `others`.
pub fn rank<'a>(late: impl IntoIterator<Item = Part<'a>>) -> Vec<CauseRow> {
    let late: Vec<Part> = late.into_iter().collect();
    let own = with_own_row(&late);
    let mut rows: BTreeMap<Key, Sum> = BTreeMap::new();
    for part in &late {
        let mut mine: BTreeMap<Key, u64> = BTreeMap::new();
        for (&key, &ns) in &part.shares {
            let key = if own.contains(&key) { key } else { (key.0, OTHERS) };
            let sum = mine.entry(key).or_default();
            *sum = sum.saturating_add(ns);
        }
        for (key, ns) in mine {
            rows.entry(key).or_default().add(part.weight, ns);
        }
    }
    let all: u128 = rows.values().map(|sum| sum.total_ns).sum();
    let mut rows: Vec<CauseRow> = rows.into_iter().map(|(key, sum)| sum.row(key, all)).collect();
    // Equal ones stay in the order of their names.
    rows.sort_by_key(|row| (row.cause == Cause::Unexplained, std::cmp::Reverse(row.total_ns)));
    rows
}

/// Those that get a row of their own.
fn with_own_row<'a>(late: &[Part<'a>]) -> HashSet<Key<'a>> {
    let mut totals: HashMap<Key, u128> = HashMap::new();
    for part in late {
        for (&key, &ns) in &part.shares {
            *totals.entry(key).or_default() += u128::from(ns) * u128::from(part.weight);
        }
    }
    let mut largest: Vec<(Key, u128)> = totals.into_iter().collect();
    largest.sort_by_key(|&(key, ns)| (key.0 != Cause::Unexplained, std::cmp::Reverse(ns), key));
    largest.into_iter().take(MOST_ROWS).map(|(key, _)| key).collect()
}

#[derive(Default)]
struct Sum {
    episodes: u64,
    total_ns: u128,
    worst_ns: u64,
}

impl Sum {
    fn add(&mut self, weight: u64, ns: u64) {
        self.episodes = self.episodes.saturating_add(weight);
        self.total_ns += u128::from(ns) * u128::from(weight);
        self.worst_ns = self.worst_ns.max(ns);
    }

    fn row(self, (cause, culprit): Key, all: u128) -> CauseRow {
        CauseRow {
            cause,
            culprit: culprit.into(),
            episodes: self.episodes,
            total_ns: u64::try_from(self.total_ns).unwrap_or(u64::MAX),
            worst_ns: self.worst_ns,
            share: self.total_ns as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(cause: Cause, culprit: &str, within: &str, ns: u64) -> Share {
        let (culprit, within) = (culprit.to_owned(), within.to_owned());
        Share { cause, culprit, within, ns, ..Share::default() }
    }

    /// Checks the rows, as `cause culprit episodes total worst share`.
    #[track_caller]
    fn check(late: &[(u64, Vec<Share>)], want: &[&str]) {
        let rows = rank(late.iter().map(|(ns, shares)| Part::of(*ns, shares)));
        let line = |r: &CauseRow| {
            let CauseRow { cause, culprit, episodes, total_ns, worst_ns, share } = r;
            format!("{cause} {culprit} {episodes} {total_ns} {worst_ns} {share}")
        };
        assert_eq!(rows.iter().map(line).collect::<Vec<_>>(), want);
    }

    #[test]
    fn causes_are_added_up_over_all_wakeups() {
        use Cause::{Irq, IrqOff, Unexplained};
        check(
            &[
                (100, vec![share(IrqOff, "f", "a", 40), share(IrqOff, "f", "b", 20)]),
                (100, vec![share(Irq, "eth0", "", 20), share(Unexplained, "?", "", 80)]),
                (200, vec![share(IrqOff, "f", "a", 20), share(IrqOff, "g", "a", 180)]),
            ],
            &[
                "irq_off g 1 180 180 0.45",
                "irq_off f 2 80 60 0.2",
                "irq eth0 1 20 20 0.05",
                "unexplained  2 120 80 0.3",
            ],
        );
        check(&[], &[]);
        check(&[(0, vec![])], &[]);
    }

    #[test]
    fn small_culprits_of_a_cause_become_one_row() {
        let late: Vec<(u64, Vec<Share>)> = (1..=1_200)
            .map(|n: u64| (n, vec![share(Cause::Irq, &format!("irq{n}"), "", n)]))
            .collect();
        let rows = rank(late.iter().map(|(ns, shares)| Part::of(*ns, shares)));
        assert_eq!(rows.len(), 1_001);
        let others = rows.iter().find(|row| row.culprit == OTHERS).unwrap();
        assert_eq!((others.episodes, others.total_ns, others.worst_ns), (200, 20_100, 200));
    }

    proptest! {
        #[test]
        fn rows_make_the_whole_and_what_is_unexplained_comes_last(
            late in prop::collection::vec(
                (any::<u64>(), prop::collection::vec((0_usize..4, "[ab]?", any::<u64>()), 0..5)),
                1..20,
            ),
        ) {
            let causes = [Cause::Irq, Cause::IrqOff, Cause::Steal, Cause::Unexplained];
            let late: Vec<(u64, Vec<Share>)> = late
                .into_iter()
                .map(|(ns, shares)| {
                    let share = |(i, who, ns): (usize, String, u64)| share(causes[i], &who, "", ns);
                    (ns, shares.into_iter().map(share).collect())
                })
                .collect();
            prop_assume!(late.iter().any(|(ns, _)| *ns > 0));
            let rows = rank(late.iter().map(|(ns, shares)| Part::of(*ns, shares)));
            let whole: f64 = rows.iter().map(|row| row.share).sum();
            prop_assert!((whole - 1.0).abs() < 1e-9, "{whole}");
            let unknown = rows.iter().position(|row| row.cause == Cause::Unexplained);
            prop_assert!(unknown.is_none_or(|i| i == rows.len() - 1));
            let known = &rows[..unknown.unwrap_or(rows.len())];
            prop_assert!(known.windows(2).all(|pair| pair[0].total_ns >= pair[1].total_ns));
            prop_assert!(rows.iter().all(|row| row.worst_ns <= row.total_ns && row.episodes > 0));
        }
    }
}
