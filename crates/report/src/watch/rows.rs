//! The rows of a table: waits put together by what is asked for.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, VecDeque};

use wakescope_core::percentile::Percentile;
use wakescope_core::watch::{Series, Waits, Window};

use crate::style::clean;

/// The longest name of a task, and of a cgroup, in a table of 80 columns.
const COMM: usize = 15;
const CGROUP: usize = 16;
/// Windows that a row's picture shows, with the last one.
const SLICES: usize = 8;

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
    /// The head of a table: whose waits a row has, and these figures.
    pub(super) fn head(self, figures: &[&str]) -> Vec<String> {
        let first = match self {
            Self::Series => pair("task", "cgroup"),
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
    pub(super) fn order(self, a: &Waits, b: &Waits) -> Ordering {
        let key = |waits: &Waits| {
            let nines: Option<Percentile> = "p99.9".parse().ok();
            match self {
                Self::Max => (waits.max_ns, waits.sum_ns),
                Self::Percentile => (nines.and_then(|p| waits.percentile(p)), waits.sum_ns),
                Self::Time => (Some(waits.sum_ns), waits.count),
            }
        };
        Reverse(key(a)).cmp(&Reverse(key(b)))
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

/// A cgroup by its path, where that is known: one that is made anew gets another number, as all do after a
/// boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cgroup {
    None,
    Path(String),
    Id(u64),
}

impl Cgroup {
    fn of(series: &Series) -> Self {
        match (series.cgroup_id, &series.cgroup) {
            (0, _) => Self::None,
            (_, Some(path)) => Self::Path(path.clone()),
            (id, None) => Self::Id(id),
        }
    }

    /// In a sentence.
    fn whole(&self) -> String {
        const MOST: usize = 80;
        match self {
            Self::None => "no cgroup".into(),
            Self::Path(path) => clean(path, MOST),
            Self::Id(id) => format!("cgroup {id}"),
        }
    }

    /// In a table: the end of a path says most.
    fn cell(&self) -> String {
        match self {
            Self::None => "–".into(),
            Self::Id(id) => format!("(id {id})"),
            Self::Path(path) => {
                let path = clean(path, usize::MAX);
                let length = path.chars().count();
                match length <= CGROUP {
                    true => path,
                    false => {
                        let end = path.chars().skip(length + 1 - CGROUP);
                        std::iter::once('…').chain(end).collect()
                    }
                }
            }
        }
    }
}

/// Waits of one row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) waits: Waits,
}

impl Row {
    /// Its cells: whose waits these are, and `figures`.
    pub(super) fn cells(&self, figures: &[String]) -> Vec<String> {
        let first = match &self.key {
            Key::Series { comm, cgroup } => pair(&clean(comm, COMM), &cgroup.cell()),
            Key::Comm(comm) => clean(comm, COMM),
            Key::Cgroup(cgroup) => cgroup.cell(),
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
                format!("{} in {}", clean(comm, COMM), cgroup.whole())
            }
            Key::Cgroup(cgroup) => cgroup.whole(),
            Key::Cpu(cpu) => format!("CPU {cpu}"),
            Key::Others => "beyond the series".into(),
        }
    }
}

/// The name of tasks and that of their cgroup in one cell, below each other in all rows.
fn pair(comm: &str, cgroup: &str) -> String {
    format!("{comm:<COMM$} {cgroup:<CGROUP$}")
}

/// The rows of a window.
pub(super) fn rows(window: &Window, by: By) -> Vec<Row> {
    let mut found: BTreeMap<Key, Waits> = BTreeMap::new();
    let mut add = |key: Key, waits: &Waits| {
        let sum = found.entry(key).or_default();
        *sum = sum.merged(waits);
    };
    for series in &window.series {
        let cgroup = || Cgroup::of(series);
        let key = match by {
            By::Comm => Key::Comm(series.comm.clone()),
            By::Cgroup => Key::Cgroup(cgroup()),
            By::Series => Key::Series { comm: series.comm.clone(), cgroup: cgroup() },
            By::Cpu => break,
        };
        add(key, &series.waits);
    }
    match by {
        By::Cpu => window.cpus.iter().for_each(|cpu| add(Key::Cpu(cpu.cpu), &cpu.waits)),
        _ if window.others.count > 0 => add(Key::Others, &window.others),
        _ => {}
    }
    found.into_iter().map(|(key, waits)| Row { key, waits }).collect()
}

/// The longest wait of each row in the windows before the last.
#[derive(Debug, Default)]
pub struct History(VecDeque<BTreeMap<Key, u64>>);

impl History {
    /// Remembers a window that was shown, and forgets the oldest.
    pub fn add(&mut self, window: &Window, by: By) {
        let maxima = rows(window, by).into_iter();
        self.0.push_back(maxima.map(|row| (row.key, row.waits.max_ns.unwrap_or(0))).collect());
        while self.0.len() >= SLICES {
            self.0.pop_front();
        }
    }

    /// The longest waits of a row, the last one behind those before it; 0 for windows without any.
    pub(super) fn of(&self, key: &Key, last: Option<u64>) -> Vec<u64> {
        let before = self.0.iter().map(|maxima| maxima.get(key).copied().unwrap_or(0));
        before.chain([last.unwrap_or(0)]).collect()
    }
}
