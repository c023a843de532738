//! What one must know of watches that are compared, in sentences.

use super::super::guard::{difference, grouped_by_value};
use super::super::words::{count_of, listed, percent};
use super::super::{Difference, Value, Verdict};
use super::{MOST_LISTED, OfGroup, OfWatches, OneSided, Watched, Watches};
use crate::unpaired::can_decide;
use wakescope_core::units::{counted, grouped};
use wakescope_core::watch::observed::{Group, Grouping};

/// A watch that has lost this part of its waits may have lost all beyond p99.9.
const TOO_MANY_LOST: f64 = 0.001;

/// A watch that covers less than this part of the time from its first to its last window is pointed out.
const MOSTLY: f64 = 0.9;

/// Windows state the second in which they begin, so gaps below this may be none, ns.
const ROUNDING_NS: u64 = 2_000_000_000;

/// How many of a side are named in a sentence.
const NAMED: usize = 3;

impl Watches<'_> {
    /// In what the watches are not alike.
    pub(crate) fn differences(&self) -> Vec<Difference> {
        let lost = |w: &Watched| {
            let share = w.watch.lost_share();
            (share >= TOO_MANY_LOST).then(|| format!("{} of the waits", percent_or_less(share)))
        };
        let differing =
            |w: &Watched| (w.watch.differing > 0).then(|| counted(w.watch.differing, "task"));
        let cpus = self.by_value(|w| Some(counted(w.watch.cpus.into(), "CPU")));
        let lost = self.by_value(lost);
        let differing = self.by_value(differing);
        let mut found = Vec::new();
        if !lost.is_empty() {
            let message =
                format!("Watches lost waits, or counted them in part: {}.", in_words(&lost));
            found.push(Difference {
                what: "lost waits".into(),
                message,
                values: lost,
                matters: true,
            });
        }
        if !differing.is_empty() {
            let message = format!(
                "The audit of watches found tasks whose waits the kernel counted differently: {}.",
                in_words(&differing)
            );
            found.push(Difference {
                what: "audit".into(),
                message,
                values: differing,
                matters: true,
            });
        }
        if cpus.len() > 1 {
            found.push(difference("number of CPUs", cpus, false));
        }
        found.extend(self.of_boots());
        found
    }

    /// Which watches have which value, in the order in which they come first. Those without one are left out.
    pub(super) fn by_value(&self, of: impl Fn(&Watched) -> Option<String>) -> Vec<Value> {
        grouped_by_value(self.all().map(|watch| (watch.label, of(watch))))
    }

    /// What else one must know of them.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut tell = |share: &dyn Fn(&Watched) -> f64, text: &dyn Fn(&str, &str) -> String| {
            let shares: Vec<(f64, String)> =
                self.all().map(|w| (share(w), w.label.to_owned())).filter(|s| s.0 > 0.0).collect();
            let most = shares.iter().map(|s| s.0).fold(0.0, f64::max);
            if most > 0.0 {
                let labels: Vec<String> = shares.into_iter().map(|s| s.1).collect();
                notes.push(text(&percent_or_less(most), &listed(&labels)));
            }
        };
        tell(
            &|w| Some(w.watch.lost_share()).filter(|&share| share < TOO_MANY_LOST).unwrap_or(0.0),
            &|share, labels| {
                format!(
                    "Up to {share} of the waits are lost, or counted in part: {labels}. The longest may be among them."
                )
            },
        );
        tell(
            &|w| w.watch.unnamed as f64 / w.watch.run.expiries.count.max(1) as f64,
            &|share, labels| {
                format!(
                    "Up to {share} of the waits are in no group, because their cgroup or task is not known by name: {labels}."
                )
            },
        );
        tell(
            &|w| {
                let (covered, extent) = (w.watch.covered_ns, w.watch.run.duration_ns);
                let share = covered as f64 / extent.max(1) as f64;
                let is_gap = extent.saturating_sub(covered) > ROUNDING_NS && share < MOSTLY;
                if is_gap { 1.0 - share } else { 0.0 }
            },
            &|share, labels| {
                format!(
                    "Up to {share} of the time from the first window to the last was not watched: {labels}. The rest may be another time of day, or another load."
                )
            },
        );
        notes
    }
}

impl OfWatches {
    /// Why the verdict at the level `alpha` is no clearer as far as groups are concerned.
    pub(in super::super) fn reasons(&self, runs: [usize; 2], alpha: f64) -> Vec<String> {
        let mut reasons = Vec::new();
        if !can_decide(runs[0], runs[1], 1, alpha) {
            reasons.push(
                "A watch counts as one run, however long it is: its windows share machine, boot and \
                 load. Name the watches of more machines, or of more boots."
                    .into(),
            );
        }
        let (worse, better) = (self.with(Verdict::Worse).next(), self.with(Verdict::Better).next());
        if let Some(((worse, _), (better, _))) = worse.zip(better) {
            reasons.push(format!(
                "{} waits longer, and {} shorter.",
                name(&worse.group),
                name(&better.group)
            ));
        }
        let tested = self.deciding().count();
        let undecided = self.with(Verdict::Inconclusive).count();
        if undecided > 0 {
            reasons.push(format!(
                "{} of {} undecided. With --by cgroup or --by none there are fewer to decide.",
                grouped(undecided as u64),
                match tested {
                    1 => format!("1 tested {} is", self.one()),
                    n => format!("{} tested {} are", grouped(n as u64), self.many()),
                }
            ));
        }
        reasons
    }

    /// Which groups are compared, and which are not.
    pub(in super::super) fn notes(&self, runs: [usize; 2]) -> Vec<String> {
        if self.grouping == Grouping::None {
            return Vec::new();
        }
        let mut notes = Vec::new();
        let (tested, there) = (self.deciding().count(), self.groups.len() + self.not_listed);
        if tested < there {
            let [new, old] = runs;
            let how = match tested {
                0 => "None is tested".into(),
                n => format!(
                    "Of these, {} tested, those with the most waiting",
                    match n {
                        1 => "1 is".into(),
                        n => format!("{} are", grouped(n as u64)),
                    }
                ),
            };
            notes.push(format!(
                "Both sides have {}. {how}: {} against {old} can decide no more at once, or too few runs \
                 have the 2,000 waits that p99.9 needs.",
                self.counted(there),
                count_of(new, "run"),
            ));
        }
        if self.not_listed > 0 {
            notes.push(format!(
                "{} of them are not listed: only the {} with the most waiting are.",
                grouped(self.not_listed as u64),
                grouped(MOST_LISTED as u64)
            ));
        }
        notes.extend(self.of_one_side("new", &self.only_new));
        notes.extend(self.of_one_side("old", &self.only_old));
        notes
    }

    fn of_one_side(&self, side: &str, groups: &OneSided) -> Option<String> {
        let names: Vec<String> = groups.named.iter().take(NAMED).map(name).collect();
        let more = match groups.count.saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {} more", grouped(more as u64)),
        };
        let (many, names) = (self.counted(groups.count), names.join(", "));
        (groups.count > 0).then(|| format!("Only {side} watches have {many}: {names}{more}."))
    }

    /// `1 series`, `5 cgroups`
    fn counted(&self, count: usize) -> String {
        format!("{} {}", grouped(count as u64), if count == 1 { self.one() } else { self.many() })
    }

    /// What a group is called.
    pub fn one(&self) -> &'static str {
        match self.grouping {
            Grouping::Series | Grouping::None => "series",
            Grouping::Comm => "name of tasks",
            Grouping::Cgroup => "cgroup",
        }
    }

    /// What several groups are called.
    pub fn many(&self) -> &'static str {
        match self.grouping {
            Grouping::Series | Grouping::None => "series",
            Grouping::Comm => "names of tasks",
            Grouping::Cgroup => "cgroups",
        }
    }
}

impl OfGroup {
    /// Its name in a sentence: `postgres in /system.slice/postgresql.service`.
    pub fn name(&self) -> String {
        name(&self.group)
    }
}

fn name(Group { cgroup, comm }: &Group) -> String {
    match (comm, cgroup) {
        (Some(comm), Some(cgroup)) => format!("{comm} in {cgroup}"),
        (Some(comm), None) => comm.clone(),
        (None, Some(cgroup)) => cgroup.clone(),
        (None, None) => "no cgroup".into(),
    }
}

/// `2 % (a, b); 4 % (c)`
fn in_words(values: &[Value]) -> String {
    values.iter().map(Value::with_runs).collect::<Vec<_>>().join("; ")
}

/// A share in percent, never 0 %.
fn percent_or_less(share: f64) -> String {
    if share < 0.000_1 { "0.01 %".into() } else { percent(share) }
}
