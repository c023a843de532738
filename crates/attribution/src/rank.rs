//! What made wakeups late, over all of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::group::{Group, Key, subject};
use wakescope_core::explain::{By, CauseRow, RankingRow, Share, Subject};

/// The most rows that have a group of their own.
const MOST_ROWS: usize = 1_000;

/// What is ranked: late wakeups that are alike, by whose their time was.
#[derive(Clone, Debug)]
pub struct Part<'a, K: Key = Group> {
    /// How many wakeups.
    weight: u64,
    /// Of each, nanoseconds by what they are grouped by. Together they are its wakeup latency.
    shares: BTreeMap<Cow<'a, K>, u64>,
}

impl<'a, K: Key> Part<'a, K> {
    /// `weight` wakeups that were `late_ns` late, with groups and nanoseconds of their shares. What
    /// these leave is unexplained.
    pub(crate) fn new(
        weight: u64,
        late_ns: u64,
        shares: impl IntoIterator<Item = (Cow<'a, K>, u64)>,
    ) -> Self {
        let mut sums: BTreeMap<Cow<'a, K>, u64> = BTreeMap::new();
        let mut text = 0_u64;
        for (group, ns) in shares.into_iter().filter(|(_, ns)| *ns > 0) {
            let sum = sums.entry(group).or_default();
            *sum = sum.saturating_add(ns);
            text = text.saturating_add(ns);
        }
        if late_ns > text {
            let rest = sums.entry(Cow::Owned(K::unexplained())).or_default();
            *rest = rest.saturating_add(late_ns - text);
        }
        Self { weight, shares: sums }
    }
}

impl Part<'_> {
    /// A wakeup that was `late_ns` late, with its shares.
    pub fn of(late_ns: u64, blame: &[Share]) -> Self {
        let share = |share: &Share| (Cow::Owned(Group::of(share.blamed())), share.ns);
        Self::new(1, late_ns, blame.iter().map(share))
    }
}

impl Part<'_, Subject> {
    /// The same, by subjects.
    pub(crate) fn by(by: By, late_ns: u64, blame: &[Share]) -> Self {
        let share = |share: &Share| (Cow::Owned(subject(share, by)), share.ns);
        Self::new(1, late_ns, blame.iter().map(share))
    }
}

/// Ranks the causes of late wakeups: the largest together first, what is unexplained last. All
/// rows' shares make 1, unless nothing was late. Tasks are grouped by name, policy and priority.
///
/// At most 1,000 rows have a culprit of their own, those with the largest; the rest of each cause
/// is one row, `others`.
pub fn rank<'a>(late: impl IntoIterator<Item = Part<'a>>) -> Vec<CauseRow> {
    ranked(late).into_iter().map(cause_row).collect()
}

/// Ranks subjects of late time in the same way.
pub(crate) fn rank_subjects<'a>(
    late: impl IntoIterator<Item = Part<'a, Subject>>,
) -> Vec<RankingRow> {
    ranked(late).into_iter().map(subject_row).collect()
}

fn cause_row((group, sum): (Group, Sum)) -> CauseRow {
    let Group { cause, others, phase, from_cpu, culprit } = group;
    let Sum { episodes, total_ns, worst_ns, share } = sum;
    let total_ns = u64::try_from(total_ns).unwrap_or(u64::MAX);
    CauseRow { cause, culprit, phase, from_cpu, others, episodes, total_ns, worst_ns, share }
}

fn subject_row((subject, sum): (Subject, Sum)) -> RankingRow {
    let Sum { episodes, total_ns, worst_ns, share } = sum;
    let total_ns = u64::try_from(total_ns).unwrap_or(u64::MAX);
    RankingRow { subject, episodes, total_ns, worst_ns, share }
}

/// Groups in order, each with its sum over all wakeups.
fn ranked<'a, K: Key + 'a>(late: impl IntoIterator<Item = Part<'a, K>>) -> Vec<(K, Sum)> {
    let late: Vec<Part<K>> = late.into_iter().collect();
    let own = with_own_row(&late);
    let mut rows: BTreeMap<Cow<K>, Sum> = BTreeMap::new();
    for part in &late {
        let mut mine: BTreeMap<Cow<K>, u64> = BTreeMap::new();
        for (group, &ns) in &part.shares {
            let key = match own.contains(&**group) {
                true => Cow::Borrowed(&**group),
                false => Cow::Owned(group.others()),
            };
            let sum = mine.entry(key).or_default();
            *sum = sum.saturating_add(ns);
        }
        for (key, ns) in mine {
            rows.entry(key).or_default().add(part.weight, ns);
        }
    }
    in_order(rows.into_iter().map(|(key, sum)| (key.into_owned(), sum)).collect())
}

/// Ranks causes that are added up already: each with how many wakeups have a share of it, these shares
/// together, and the largest, nanoseconds. Equal causes are one.
pub(crate) fn rank_sums(causes: impl IntoIterator<Item = (Group, u64, u64, u64)>) -> Vec<CauseRow> {
    in_order(added_up(causes)).into_iter().map(cause_row).collect()
}

/// Ranks subjects that are added up already.
pub(crate) fn rank_subject_sums(
    subjects: impl IntoIterator<Item = (Subject, u64, u64, u64)>,
) -> Vec<RankingRow> {
    in_order(added_up(subjects)).into_iter().map(subject_row).collect()
}

fn added_up<K: Key>(sums: impl IntoIterator<Item = (K, u64, u64, u64)>) -> BTreeMap<K, Sum> {
    let sum = |(key, episodes, total_ns, worst_ns): (K, u64, u64, u64)| {
        (key, Sum { episodes, total_ns: total_ns.into(), worst_ns, share: 0.0 })
    };
    let mut all: Vec<(K, Sum)> = sums.into_iter().map(sum).collect();
    all.sort_by_key(|(key, sum)| (!key.is_unexplained(), std::cmp::Reverse(sum.total_ns)));
    let mut rows: BTreeMap<K, Sum> = BTreeMap::new();
    for (key, sum) in all {
        let has_room = rows.len() < MOST_ROWS;
        let key = if has_room { key } else { key.others() };
        let row = rows.entry(key).or_default();
        row.episodes = row.episodes.saturating_add(sum.episodes);
        row.total_ns += sum.total_ns;
        row.worst_ns = row.worst_ns.max(sum.worst_ns);
    }
    rows
}

fn in_order<K: Key>(rows: BTreeMap<K, Sum>) -> Vec<(K, Sum)> {
    let all: u128 = rows.values().map(|sum| sum.total_ns).sum();
    let mut rows: Vec<(K, Sum)> = rows.into_iter().map(|(key, sum)| (key, sum.of(all))).collect();
    // Equal ones stay in the order of their groups.
    rows.sort_by_key(|(key, sum)| (key.is_unexplained(), std::cmp::Reverse(sum.total_ns)));
    rows
}

/// Those that get a row of their own.
fn with_own_row<'p, K: Key>(late: &'p [Part<K>]) -> HashSet<&'p K> {
    let mut totals: HashMap<&K, u128> = HashMap::new();
    for part in late {
        for (group, &ns) in &part.shares {
            *totals.entry(&**group).or_default() += u128::from(ns) * u128::from(part.weight);
        }
    }
    let mut largest: Vec<(&K, u128)> = totals.into_iter().collect();
    largest.sort_by_key(|&(key, ns)| (!key.is_unexplained(), std::cmp::Reverse(ns), key));
    largest.into_iter().take(MOST_ROWS).map(|(key, _)| key).collect()
}

#[derive(Default)]
struct Sum {
    episodes: u64,
    total_ns: u128,
    worst_ns: u64,
    share: f64,
}

impl Sum {
    fn add(&mut self, weight: u64, ns: u64) {
        self.episodes = self.episodes.saturating_add(weight);
        self.total_ns += u128::from(ns) * u128::from(weight);
        self.worst_ns = self.worst_ns.max(ns);
    }

    /// As a part of `all` nanoseconds.
    fn of(self, all: u128) -> Self {
        Self { share: self.total_ns as f64 / all as f64, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{function, who};
    use proptest::prelude::*;
    use wakescope_core::explain::{Cause, Culprit, Function, Policy, Task, Within};

    fn share(cause: Cause, culprit: &str, within: &str, ns: u64) -> Share {
        let within = Within { syscall: Some(within.to_owned()), ..Within::default() };
        Share { cause, culprit: function(culprit), within, ns, ..Share::default() }
    }

    /// Checks the rows, as `cause culprit episodes total worst share`.
    #[track_caller]
    fn check(late: &[(u64, Vec<Share>)], want: &[&str]) {
        let rows = rank(late.iter().map(|(ns, shares)| Part::of(*ns, shares)));
        let line = |r: &CauseRow| {
            let CauseRow { cause, episodes, total_ns, worst_ns, share, .. } = r;
            let culprit = who(r.blamed());
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
    fn a_program_that_forks_is_one_cause() {
        let runs = |pid, comm: &str, policy, prio| {
            let task = Task { pid, comm: comm.into(), policy, prio }.named();
            let culprit = Culprit::Task(task);
            Share { cause: Cause::EqualOrLowerTask, culprit, ns: 100, ..Share::default() }
        };
        let (other, fifo) = (Policy::Other, Policy::Fifo);
        let all = [
            runs(7, "sh", other, 120),
            runs(8, "sh", other, 120),
            // Its niceness is no part of what it is.
            runs(9, "sh", other, 139),
            runs(9, "sh", Policy::Batch, 120),
            runs(9, "sh", fifo, 98),
            runs(10, "sh", fifo, 98),
            runs(9, "sh", fifo, 97),
            runs(7, "make", other, 120),
        ];
        check(
            &all.map(|share| (100, vec![share])),
            &[
                "equal_or_lower_task sh other 3 300 100 0.375",
                "equal_or_lower_task sh fifo 1 2 200 100 0.25",
                "equal_or_lower_task make other 1 100 100 0.125",
                "equal_or_lower_task sh fifo 2 1 100 100 0.125",
                "equal_or_lower_task sh batch 1 100 100 0.125",
            ],
        );
        // In one wakeup as well: both of its shares are of the same program.
        let forked = vec![runs(7, "sh", other, 120), runs(8, "sh", other, 120)];
        check(&[(200, forked)], &["equal_or_lower_task sh other 1 200 200 1"]);
    }

    #[test]
    fn functions_of_one_name_in_two_modules_are_two_causes() {
        let of = |module: Option<&str>| {
            let module = module.map(str::to_owned);
            let culprit = Culprit::Function(Function { name: "probe".into(), module });
            Share { cause: Cause::IrqOff, culprit, ns: 10, ..Share::default() }
        };
        let late = [of(None), of(Some("a")), of(Some("b")), of(Some("b"))].map(|s| vec![s]);
        let rows = rank(late.iter().map(|shares| Part::of(10, shares)));
        assert_eq!(rows.iter().map(|row| row.episodes).collect::<Vec<_>>(), [2, 1, 1]);
    }

    #[test]
    fn small_culprits_of_a_cause_become_one_row() {
        let late: Vec<(u64, Vec<Share>)> = (1..=1_200)
            .map(|n: u64| (n, vec![share(Cause::Irq, &format!("irq{n}"), "", n)]))
            .collect();
        let rows = rank(late.iter().map(|(ns, shares)| Part::of(*ns, shares)));
        assert_eq!(rows.len(), 1_001);
        let others = rows.iter().find(|row| row.others).unwrap();
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
