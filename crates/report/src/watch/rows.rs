//! The rows of a table: waits put together by what is asked for.

use std::collections::{BTreeMap, VecDeque};

use wakescope_core::percentile::Percentile;
use wakescope_core::watch::cgroup::Cgroup;
use wakescope_core::watch::{Known, Series, Waits, Window};

use crate::style::{clean, clean_end};

/// The longest name of a task, and of a cgroup, in a table of 80 columns.
const COMM: usize = 15;
pub(super) const CGROUP: usize = 16;
/// Windows that a row's picture shows, with the last one.
const SLICES: usize = 8;
/// Windows of which the longest wait of each CPU is remembered.
const CPU_SLICES: usize = 120;

/// What each row of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Tasks of one name in one cgroup.
    Series,
    /// Tasks of one name.
    Comm,
    /// Tasks of one cgroup.
    Cgroup,
    /// The CPU on which the waits ended.
    Cpu,
}

impl By {
    /// The head of a table: whose waits a row has, and these figures. Cgroups have so many columns.
    pub(super) fn head(self, cgroup: usize, figures: &[&str]) -> Vec<String> {
        let first = match self {
            Self::Series => pair("task", "cgroup", cgroup),
            Self::Comm => "task".into(),
            Self::Cgroup => "cgroup".into(),
            Self::Cpu => "CPU".into(),
        };
        std::iter::once(first).chain(figures.iter().map(ToString::to_string)).collect()
    }
}

/// What comes first in a table: the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The longest wait.
    Max,
    /// The 99.9th percentile; rows with too few waits come last.
    Percentile,
    /// The sum of all waits.
    Time,
}

impl Sort {
    /// What rows are sorted by, the largest first.
    pub(super) fn key(self, waits: &Waits) -> (Option<u64>, u64) {
        match self {
            Self::Max => (waits.max_ns, waits.sum_ns),
            Self::Percentile => {
                let nines: Option<Percentile> = "p99.9".parse().ok();
                (nines.and_then(|p| waits.percentile(p)).map(Known::ns), waits.sum_ns)
            }
            Self::Time => (Some(waits.sum_ns), waits.count),
        }
    }
}

/// Whose waits a row has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Series { comm: String, cgroup: Cgroup },
    Comm(String),
    Cgroup(Cgroup),
    Cpu(u32),
    Others,
}

impl Key {
    /// The row of a series; `None` where rows are no series.
    fn of(series: &Series, by: By) -> Option<Self> {
        let cgroup = || Cgroup::of(series);
        match by {
            By::Comm => Some(Self::Comm(series.comm.clone())),
            By::Cgroup => Some(Self::Cgroup(cgroup())),
            By::Series => Some(Self::Series { comm: series.comm.clone(), cgroup: cgroup() }),
            By::Cpu => None,
        }
    }

    /// Whether this row has the waits of `part`, too.
    pub(super) fn has(&self, part: &Self) -> bool {
        match (self, part) {
            (Self::Comm(own), Self::Series { comm, .. }) => own == comm,
            (Self::Cgroup(own), Self::Series { cgroup, .. }) => own == cgroup,
            _ => self == part,
        }
    }
}

/// A cgroup in a sentence.
pub(super) fn cgroup_name(cgroup: &Cgroup) -> String {
    const MOST: usize = 80;
    match cgroup {
        Cgroup::None => "no cgroup".into(),
        Cgroup::Path(path) => clean_end(path, MOST),
        Cgroup::Id(id) => format!("cgroup {id}"),
    }
}

/// A cgroup in a table, in so many columns.
fn cgroup_cell(cgroup: &Cgroup, most: usize) -> String {
    match cgroup {
        Cgroup::None => "–".into(),
        Cgroup::Id(id) => format!("(id {id})"),
        Cgroup::Path(path) => clean_end(path, most),
    }
}

/// Waits of one row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) waits: Waits,
}

impl Row {
    /// Its cells: whose waits these are, and `figures`. Cgroups have so many columns.
    pub(super) fn cells(&self, most: usize, figures: &[String]) -> Vec<String> {
        let first = match &self.key {
            Key::Series { comm, cgroup } => {
                pair(&clean(comm, COMM), &cgroup_cell(cgroup, most), most)
            }
            Key::Comm(comm) => clean(comm, COMM),
            Key::Cgroup(cgroup) => cgroup_cell(cgroup, most),
            Key::Cpu(cpu) => cpu.to_string(),
            Key::Others => "(others)".into(),
        };
        std::iter::once(first).chain(figures.iter().cloned()).collect()
    }

    /// Its name in a sentence.
    pub(super) fn name(&self) -> String {
        match &self.key {
            Key::Series { comm, cgroup: Cgroup::None } | Key::Comm(comm) => clean(comm, COMM),
            Key::Series { comm, cgroup } => {
                format!("{} in {}", clean(comm, COMM), cgroup_name(cgroup))
            }
            Key::Cgroup(cgroup) => cgroup_name(cgroup),
            Key::Cpu(cpu) => format!("CPU {cpu}"),
            Key::Others => "beyond the series".into(),
        }
    }
}

/// The name of tasks and that of their cgroup in one cell, below each other in all rows.
fn pair(comm: &str, cgroup: &str, most: usize) -> String {
    format!("{comm:<COMM$} {cgroup:<most$}")
}

/// The rows of a window.
pub(super) fn rows(window: &Window, by: By) -> Vec<Row> {
    let mut found: BTreeMap<Key, Waits> = BTreeMap::new();
    let mut add = |key: Key, waits: &Waits| {
        found.entry(key).or_default().add(waits);
    };
    for series in &window.series {
        let Some(key) = Key::of(series, by) else { break };
        add(key, &series.waits);
    }
    match by {
        By::Cpu => window.cpus.iter().for_each(|cpu| add(Key::Cpu(cpu.cpu), &cpu.waits)),
        _ if window.others.count > 0 => add(Key::Others, &window.others),
        _ => {}
    }
    found.into_iter().map(|(key, waits)| Row { key, waits }).collect()
}

/// The row with the longest wait, of the finest that there are; `None` if nobody waited.
pub(super) fn longest(window: &Window) -> Option<Row> {
    let key = |series: &Series| Key::of(series, By::Series);
    // Always the same one of two, and those beyond the series behind all others.
    let series = window
        .series
        .iter()
        .max_by(|a, b| a.waits.max_ns.cmp(&b.waits.max_ns).then_with(|| key(a).cmp(&key(b))));
    let row =
        series.and_then(|series| Some(Row { key: key(series)?, waits: series.waits.clone() }));
    let others = Row { key: Key::Others, waits: window.others.clone() };
    let longest = row.filter(|row| row.waits.max_ns > others.waits.max_ns).unwrap_or(others);
    longest.waits.max_ns.is_some().then_some(longest)
}

/// The longest waits in one window, by the finest rows that there are.
#[derive(Clone, Debug, Default)]
pub struct Past {
    series: BTreeMap<Key, u64>,
    cpus: BTreeMap<u32, u64>,
}

impl Past {
    /// Those of `window`.
    pub fn of(window: &Window) -> Self {
        let mut series: BTreeMap<Key, u64> = BTreeMap::new();
        let named =
            window.series.iter().filter_map(|one| Some((Key::of(one, By::Series)?, &one.waits)));
        for (key, waits) in named.chain([(Key::Others, &window.others)]) {
            let longest = series.entry(key).or_default();
            *longest = (*longest).max(waits.max_ns.unwrap_or(0));
        }
        Self {
            series,
            cpus: window.cpus.iter().map(|cpu| (cpu.cpu, cpu.waits.max_ns.unwrap_or(0))).collect(),
        }
    }

    /// The longest wait of a row; 0 if it had none.
    pub(super) fn longest(&self, key: &Key) -> u64 {
        match key {
            Key::Cpu(cpu) => self.cpus.get(cpu).copied().unwrap_or(0),
            Key::Comm(_) | Key::Cgroup(_) => {
                let parts = self.series.iter().filter(|(part, _)| key.has(part));
                parts.map(|part| *part.1).max().unwrap_or(0)
            }
            Key::Series { .. } | Key::Others => self.series.get(key).copied().unwrap_or(0),
        }
    }
}

/// The longest waits in the windows before the last.
#[derive(Clone, Debug, Default)]
pub struct History(VecDeque<Past>);

impl History {
    /// The most windows that are remembered.
    pub const MOST: usize = CPU_SLICES - 1;

    /// Remembers a window that was shown, and forgets the oldest.
    pub fn add(&mut self, past: Past) {
        self.0.push_back(past);
        if self.0.len() > Self::MOST {
            self.0.pop_front();
        }
        // Only CPUs are shown over a long time.
        if let Some(older) = self.0.len().checked_sub(SLICES) {
            self.0[older].series.clear();
        }
    }

    /// The longest waits of a row, the last one behind those before it; 0 for windows without any.
    pub(super) fn of(&self, key: &Key, last: Option<u64>) -> Vec<u64> {
        let before = self.0.iter().skip(self.0.len().saturating_sub(SLICES - 1));
        before.map(|past| past.longest(key)).chain([last.unwrap_or(0)]).collect()
    }

    /// The CPUs of these windows.
    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|past| past.cpus.keys().copied())
    }

    /// The longest waits of a CPU in no more than `most` windows, the newest last; 0 where it had
    /// none.
    pub(super) fn of_cpu(&self, cpu: u32, last: Option<u64>, most: usize) -> Vec<u64> {
        let before = self.0.iter().skip((self.0.len() + 1).saturating_sub(most));
        before.map(|past| past.longest(&Key::Cpu(cpu))).chain([last.unwrap_or(0)]).collect()
    }
}
