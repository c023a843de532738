//! A watch as comparisons use it: one observation of all its windows, like a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::date::Date;
use crate::distribution::Distribution;
use crate::observation::{Observation, Sums, ThreadSums};
use crate::redact::REDACTED;
use crate::run::LoadResult;
use crate::source::{Omission, Quantity, Source};
use crate::stated::Stated;
use crate::watch::boot::{Boot, host_of};
use crate::watch::cgroup::Cgroup;
use crate::watch::{LeftOut, Series, Waits, Window};

/// The program, as comparisons name it.
pub(crate) const TOOL: &str = "wakescope watch";

/// The name and the unit of what stands for the load of a machine: a watch counts nothing else of it.
pub const SWITCHES: &str = "switches";

/// By what waits of several watches are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grouping {
    /// Tasks of one name in one cgroup.
    #[default]
    Series,
    /// Tasks of one name.
    Comm,
    /// Tasks of one cgroup.
    Cgroup,
    /// By nothing: only all waits together are compared.
    None,
}

/// Tasks whose waits are compared together. They are known by names, since a number is another one's on the
/// next machine and after the next boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Group {
    /// The path of the cgroup; `None` if cgroups do not matter, or the machine has none.
    pub cgroup: Option<String>,
    /// The name of the tasks; `None` if names do not matter.
    pub comm: Option<String>,
}

/// A watch as one observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// All waits together, as a run.
    pub run: Observation,
    /// How long all windows are together, ns.
    pub covered_ns: u64,
    /// CPUs that switched from one task to another.
    pub cpus: u32,
    /// What is not in the waits.
    pub left_out: LeftOut,
    /// Tasks whose waits differ from the kernel's own counts (`--audit`).
    pub differing: u64,
    /// Waits that belong to no group, because whose they are is not known by name.
    pub unnamed: u64,
    /// On which machines, and under which kernels, it was counted. What they have in common is in `run`.
    pub boots: Vec<Boot>,
    /// The waits of each group.
    pub groups: BTreeMap<Group, Distribution>,
}

impl Group {
    /// The group of a series; `None` if its name is not known.
    fn of(series: &Series, by: Grouping) -> Option<Self> {
        let comm = || (series.comm != REDACTED).then(|| Some(series.comm.clone()));
        let cgroup = || match Cgroup::of(series) {
            Cgroup::Path(path) => Some(Some(path)),
            Cgroup::None => Some(None),
            // The next boot gives the number to another one.
            Cgroup::Id(_) => None,
        };
        Some(match by {
            Grouping::Series => Self { cgroup: cgroup()?, comm: comm()? },
            Grouping::Comm => Self { cgroup: None, comm: comm()? },
            Grouping::Cgroup => Self { cgroup: cgroup()?, comm: None },
            Grouping::None => return None,
        })
    }
}

impl Observed {
    /// All windows of a watch, added up in `total`, of which the first began at `first` and the last ended at
    /// `end`.
    pub fn of(total: &Window, first: Date, end: Date, by: Grouping) -> Self {
        let mut groups: BTreeMap<Group, Waits> = BTreeMap::new();
        let mut all = total.others.clone();
        let mut unnamed = if by == Grouping::None { 0 } else { total.others.count };
        for series in &total.series {
            all = all.merged(&series.waits);
            match Group::of(series, by) {
                Some(group) => {
                    let waits = groups.entry(group).or_default();
                    *waits = waits.merged(&series.waits);
                }
                None if by == Grouping::None => {}
                None => unnamed = unnamed.saturating_add(series.waits.count),
            }
        }
        let switches = total.cpus.iter().fold(0_u64, |sum, cpu| sum.saturating_add(cpu.switches));
        let extent = end.seconds().saturating_sub(first.seconds());
        let load = LoadResult {
            name: SWITCHES.into(),
            work: switches,
            unit: SWITCHES.into(),
            per_second: switches as f64 * 1e9 / total.window_ns.max(1) as f64,
            alive: true,
            ..LoadResult::default()
        };
        let run = Observation {
            started: total.started.clone(),
            duration_ns: u64::try_from(extent).unwrap_or(0).saturating_mul(1_000_000_000),
            source: Some(Source {
                tool: TOOL.into(),
                format: "windows".into(),
                quantity: Quantity::RunqueueDelay,
                omission: Omission::None,
                ..Source::default()
            }),
            host: host_of(&total.boots),
            load: vec![load],
            threads: total.cpus.iter().map(|cpu| sums_of(cpu.cpu, &cpu.waits)).collect(),
            expiries: distribution_of(&all),
            ..Observation::default()
        };
        Self {
            run,
            covered_ns: total.window_ns,
            cpus: total.own_cost.cpus,
            left_out: total.left_out,
            differing: total.audit.map_or(0, |audit| audit.differing),
            unnamed,
            boots: total.boots.clone(),
            groups: groups.into_iter().map(|(group, w)| (group, distribution_of(&w))).collect(),
        }
    }

    /// The part of the waits that the kernel has counted and the watch has not, or has not whole: 1 at most. A wait
    /// that is untracked and asleep counts twice.
    pub fn lost_share(&self) -> f64 {
        let LeftOut { missed, asleep, .. } = self.left_out;
        let all = [missed, asleep].into_iter().fold(self.run.expiries.count, u64::saturating_add);
        // A damaged window may have lost more than there is.
        (self.left_out.lost() as f64 / all.max(1) as f64).min(1.0)
    }
}

/// Waits as comparisons take them. Buckets are wide at both ends of the scale, and bound a percentile there
/// without telling it.
fn distribution_of(waits: &Waits) -> Distribution {
    let mut histogram = waits.histogram.clone();
    histogram.shrink_to_fit();
    Distribution {
        count: waits.count,
        max_ns: waits.longest_at_most(),
        sum_ns: waits.sum_ns,
        histogram,
        stated: Some(Stated {
            resolution_ns: 1,
            extremes_are_edges: !waits.max_is_exact,
            ..Stated::default()
        }),
        ..Distribution::default()
    }
}

fn sums_of(cpu: u32, waits: &Waits) -> ThreadSums {
    let sums =
        Sums { count: waits.count, sum_ns: waits.sum_ns, max_ns: waits.max_ns, ..Sums::default() };
    ThreadSums { cpu: Some(cpu), expiries: sums, ..ThreadSums::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Cpu, OwnCost, SCHEMA};

    fn series(id: u64, path: Option<&str>, comm: &str, of: &[u64]) -> Series {
        let cgroup = path.map(str::to_owned);
        Series { cgroup_id: id, cgroup, comm: comm.into(), waits: Waits::exactly(of) }
    }

    fn total() -> Window {
        Window {
            schema: SCHEMA.into(),
            started: "2026-11-21T01:00:00Z".into(),
            window_ns: 2_000_000_000,
            series: vec![
                series(1, Some("/a"), "x", &[300, 400]),
                series(1, Some("/a"), "y", &[500]),
                series(2, Some("/b"), "x", &[600]),
                series(3, None, "x", &[700]),
                series(0, None, "z", &[800]),
                series(4, None, REDACTED, &[900]),
            ],
            others: Waits::exactly(&[50, 60, 70]),
            cpus: vec![
                Cpu { cpu: 0, switches: 30, waits: Waits::exactly(&[300]) },
                Cpu { cpu: 1, switches: 10, waits: Waits::default() },
            ],
            left_out: LeftOut { missed: 10, ..LeftOut::default() },
            series_used: 5,
            series_limit: 9,
            own_cost: OwnCost { agent_ns: 1, program_runs: 9, cpus: 2, ..OwnCost::default() },
            ..Window::default()
        }
    }

    fn observed(by: Grouping) -> Observed {
        let first = Date::parse("2026-11-21T01:00:00Z").unwrap();
        let end = Date::parse("2026-11-21T02:00:00Z").unwrap();
        Observed::of(&total(), first, end, by)
    }

    #[test]
    fn a_watch_is_one_observation_of_all_its_waits() {
        let Observed { run, covered_ns, cpus, .. } = observed(Grouping::None);
        assert_eq!((run.quantity(), run.duration_ns), (Quantity::RunqueueDelay, 3_600_000_000_000));
        let all = &run.expiries;
        assert_eq!((all.count, all.sum_ns, all.max_ns), (10, 4_380, Some(900)));
        assert_eq!((covered_ns, cpus, run.threads.len()), (2_000_000_000, 2, 2));
        assert_eq!((run.load[0].work, run.load[0].per_second), (40, 20.0));
        assert_eq!(observed(Grouping::None).lost_share(), 0.5);
    }

    #[test]
    fn a_maximum_that_is_not_exact_lies_anywhere_in_its_bucket() {
        let waits = Waits { histogram: scaled(&Waits::exactly(&[900])), ..Waits::exactly(&[900]) };
        assert_eq!(distribution_of(&waits).max_range(), Some((900, 900)));
        let waits = Waits { max_ns: Some(927), max_is_exact: false, ..waits };
        assert_eq!(distribution_of(&waits).max_range(), Some((896, 927)));
    }

    /// The first bucket ends at 128 ns: that a median lies in it is no number.
    #[test]
    fn a_percentile_at_the_end_of_the_scale_is_not_known() {
        let short = Waits::exactly(&[5; 10]);
        let short = Waits { histogram: scaled(&short), ..short };
        let d = distribution_of(&short);
        assert_eq!(d.percentile("p50".parse().unwrap()), None);
        let both = short.merged(&Waits {
            histogram: scaled(&Waits::exactly(&[900])),
            ..Waits::exactly(&[900])
        });
        let d = distribution_of(&both);
        assert_eq!(d.percentile("p50".parse().unwrap()), None);
    }

    /// On the scale of the kernel's program.
    fn scaled(waits: &Waits) -> crate::histogram::Histogram {
        use crate::histogram::{Bucket, Histogram};
        use crate::watch::scale::{BUCKETS, edges_of};
        let buckets = waits.histogram.buckets().iter().map(|bucket| {
            let index = (0..BUCKETS).rfind(|&index| edges_of(index).0 <= bucket.lower).unwrap();
            let (lower, upper) = edges_of(index);
            Bucket { lower, upper, count: bucket.count }
        });
        Histogram::from_unordered(buckets.collect())
    }

    #[track_caller]
    fn check(by: Grouping, want: &[(Option<&str>, Option<&str>, u64)], unnamed: u64) {
        let seen = observed(by);
        let own = |text: Option<&str>| text.map(str::to_owned);
        let want: Vec<_> = want
            .iter()
            .map(|&(cgroup, comm, count)| (Group { cgroup: own(cgroup), comm: own(comm) }, count))
            .collect();
        let got = seen.groups.iter().map(|(group, d)| (group.clone(), d.count));
        assert_eq!((got.collect::<Vec<_>>(), seen.unnamed), (want, unnamed), "{by:?}");
    }

    #[test]
    fn waits_are_matched_by_names_and_never_by_numbers() {
        let series = [
            (None, Some("z"), 1),
            (Some("/a"), Some("x"), 2),
            (Some("/a"), Some("y"), 1),
            (Some("/b"), Some("x"), 1),
        ];
        check(Grouping::Series, &series, 5);
        check(
            Grouping::Comm,
            &[(None, Some("x"), 4), (None, Some("y"), 1), (None, Some("z"), 1)],
            4,
        );
        check(
            Grouping::Cgroup,
            &[(None, None, 1), (Some("/a"), None, 3), (Some("/b"), None, 1)],
            5,
        );
        check(Grouping::None, &[], 0);
    }
}
