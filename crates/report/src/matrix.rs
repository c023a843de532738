//! Runs of pairs of CPUs: the waker on one, the probe on the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use wakescope_core::finding::Verdict;
use wakescope_core::plan::{Placement, Plan, Waker};
use wakescope_core::run::Run;

use crate::run_set::{Entry, RunSet};

/// The most CPUs whose pairs are shown together.
const MOST: usize = 64;
/// The most pairs that a list names.
const MOST_NAMED: usize = 12;

/// A CPU of a waker, and that of its probe.
pub(crate) type Pair = (u32, u32);

/// Runs that differ only in the CPUs of waker and probe.
pub(crate) struct Matrix<'a> {
    /// All CPUs of wakers and probes, in order.
    pub(crate) cpus: Vec<u32>,
    runs: BTreeMap<Pair, &'a Run>,
}

impl<'a> Matrix<'a> {
    /// That of these runs; `None` if they differ in more than the pair, if two are of the same pair, or
    /// if no waker is on another CPU than its probe.
    pub(crate) fn of(run_set: &'a RunSet) -> Option<Self> {
        let kind = |run: &'a Run| (without_places(&run.plan), &run.host.release, run.time_domain);
        let first = kind(&run_set.entries.first()?.run);
        let mut runs = BTreeMap::new();
        for entry in &run_set.entries {
            let is_second = runs.insert(pair(entry)?, &*entry.run).is_some();
            if is_second || kind(&entry.run) != first {
                return None;
            }
        }
        let cpus: BTreeSet<u32> = runs.keys().flat_map(|&(waker, probe)| [waker, probe]).collect();
        let is_matrix = cpus.len() <= MOST && runs.keys().any(|(waker, probe)| waker != probe);
        is_matrix.then(|| Self { cpus: cpus.into_iter().collect(), runs })
    }

    /// The run of a pair; `None` if it was not measured.
    pub(crate) fn run(&self, pair: Pair) -> Option<&'a Run> {
        self.runs.get(&pair).copied()
    }

    /// All pairs, row by row: the probes of the first waker first.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        self.cpus.iter().flat_map(|&waker| self.cpus.iter().map(move |&probe| (waker, probe)))
    }

    /// The runs with so many of the largest maxima, the largest first.
    pub(crate) fn latest(&self, count: usize) -> Vec<(Pair, &'a Run)> {
        let mut all: Vec<(Pair, &Run)> =
            self.runs.iter().map(|(&pair, &run)| (pair, run)).collect();
        all.sort_by_key(|(_, run)| Reverse(run.expiries().max_ns));
        all.truncate(count);
        all
    }

    /// What keeps some of the figures from being trusted, or from being there: a sentence each.
    pub(crate) fn caveats(&self) -> Vec<String> {
        let of = |verdict| {
            let is_so = move |run: &Run| run.validity.verdict == verdict;
            self.listed(move |run| run.is_some_and(is_so))
        };
        let parts = [
            ("not measured", self.listed(|run| run.is_none())),
            ("invalid", of(Verdict::Invalid)),
            ("degraded", of(Verdict::Degraded)),
        ];
        let text = parts.into_iter().filter_map(|(what, list)| Some(format!("{what}: {}", list?)));
        text.collect()
    }

    /// `0:1, 2:1 (waker:probe)`; `None` if there is no such pair.
    fn listed(&self, is_so: impl Fn(Option<&Run>) -> bool) -> Option<String> {
        let all: Vec<Pair> = self.pairs().filter(|&pair| is_so(self.run(pair))).collect();
        let names: Vec<String> =
            all.iter().take(MOST_NAMED).map(|(waker, probe)| format!("{waker}:{probe}")).collect();
        let more = match all.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let of = self.cpus.len() * self.cpus.len();
        let count = format!("{} of {of} pairs (waker:probe)", all.len());
        (!all.is_empty()).then(|| format!("{count}: {}{more}", names.join(", ")))
    }
}

/// The CPUs of a run's only probe and of who wakes it.
fn pair(entry: &Entry) -> Option<Pair> {
    let waker = entry.run.plan.waker.as_ref()?;
    match (entry.run.threads.as_slice(), entry.runs) {
        ([thread], 1) => Some((waker.cpu(0, thread.cpu?), thread.cpu?)),
        _ => None,
    }
}

/// What a plan says besides on which CPUs.
fn without_places(plan: &Plan) -> Plan {
    let anywhere =
        |waker: Waker| Waker { placement: Placement::SameCpu, cpus: Vec::new(), ..waker };
    Plan { cpus: Vec::new(), waker: plan.waker.clone().map(anywhere), ..plan.clone() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::text::tests::run_of;

    /// The run of a pair with samples around so many ns.
    pub(crate) fn run((waker, probe): Pair, ns: u64) -> Run {
        let samples: Vec<u64> = (0..100).map(|i| ns + i % 3).collect();
        let mut run = run_of(&[&samples]);
        run.threads[0].cpu = Some(probe);
        let (placement, cpus) = match waker == probe {
            true => (Placement::SameCpu, Vec::new()),
            false => (Placement::CrossCpu, vec![waker]),
        };
        run.plan.cpus = vec![probe];
        run.plan.waker = Some(Waker { placement, cpus, ..Waker::of_probe(Some(90)) });
        run.plan.stimulus = wakescope_core::plan::Stimulus::Futex;
        run
    }

    /// Runs of all pairs of so many CPUs, each later than the one before.
    pub(crate) fn runs(cpus: u32) -> Vec<Run> {
        let pairs = (0..cpus).flat_map(|waker| (0..cpus).map(move |probe| (waker, probe)));
        (1..).zip(pairs).map(|(i, pair)| run(pair, 1_000 * i)).collect()
    }

    pub(crate) fn run_set(runs: &[Run]) -> RunSet<'_> {
        RunSet::of(runs.iter().map(|run| Entry::of("run", run)).collect())
    }

    type Change = dyn Fn(&mut Vec<Run>);

    #[test]
    fn runs_that_differ_in_more_than_the_pair_are_no_matrix() {
        let change = |change: &Change| {
            let mut runs = runs(2);
            change(&mut runs);
            Matrix::of(&run_set(&runs)).map(|matrix| matrix.cpus)
        };
        assert_eq!(change(&|_| ()), Some(vec![0, 1]));
        assert_eq!(change(&|runs| runs.truncate(2)), Some(vec![0, 1]));
        assert_eq!(change(&|runs| runs.reverse()), Some(vec![0, 1]));
        let no: [&Change; 8] = [
            &Vec::clear,
            &|runs| runs.truncate(1),
            &|runs| runs.push(run((0, 1), 5_000)),
            &|runs| runs.push(run_of(&[&[1_000]])),
            &|runs| runs[1].plan.stimulus = wakescope_core::plan::Stimulus::Pipe,
            &|runs| runs[1].host.release = "6.1".into(),
            &|runs| runs[3].threads.push(Default::default()),
            &|runs| runs[2].plan.waker.as_mut().unwrap().priority = Some(1),
        ];
        for (at, no) in no.iter().enumerate() {
            assert_eq!(change(no), None, "{at}");
        }
        assert!(
            Matrix::of(&run_set(&(0..66).map(|i| run((i, 0), 1)).collect::<Vec<_>>())).is_none()
        );
    }

    #[test]
    fn the_latest_are_those_with_the_largest_maxima() {
        let mut runs = runs(3);
        runs[4] = run((1, 1), 20_000);
        let latest = |count| -> Vec<Pair> {
            Matrix::of(&run_set(&runs))
                .unwrap()
                .latest(count)
                .iter()
                .map(|(pair, _)| *pair)
                .collect()
        };
        assert_eq!(latest(3), [(1, 1), (2, 2), (2, 1)]);
        assert_eq!(latest(100).len(), 9);
    }

    #[test]
    fn what_is_missing_or_not_trusted_is_named() {
        let mut runs = runs(3);
        runs[1].validity.verdict = Verdict::Invalid;
        runs.remove(5);
        runs.iter_mut().skip(5).for_each(|run| run.validity.verdict = Verdict::Degraded);
        let want = [
            "not measured: 1 of 9 pairs (waker:probe): 1:2",
            "invalid: 1 of 9 pairs (waker:probe): 0:1",
            "degraded: 3 of 9 pairs (waker:probe): 2:0, 2:1, 2:2",
        ];
        assert_eq!(Matrix::of(&run_set(&runs)).unwrap().caveats(), want);
        let diagonal: Vec<Run> = (0..5).map(|i| run((i, 0), 1_000)).collect();
        let text = Matrix::of(&run_set(&diagonal)).unwrap().caveats().remove(0);
        assert!(
            text.starts_with("not measured: 20 of 25") && text.ends_with(" and 8 more"),
            "{text}"
        );
    }
}
