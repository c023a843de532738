//! The record of a lab: kernels × preemption models × loads × seeds in virtual time.
//! Documented by docs/reference/lab.schema.json.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Entry, Exceeded};
use crate::explain::{Share, Unsound};
use crate::finding::Finding;
use crate::plan::{Between, ProbePolicy, Stimulus};
use crate::preemption::Model;
use crate::scope::{Kind, Place, Scope};
use crate::unknown::{Unknown, keep_unknown};

mod asked;
mod faults;
mod standing;

pub use asked::Asked;
pub use standing::Standing;

/// The schema that this version writes.
pub const SCHEMA: &str = "wakescope.lab/1";

/// How likely a lab may be to call alike kernels better or worse, over all that it compares.
pub const ALPHA: f64 = 0.05;

/// Everything that a lab found out. It holds nothing that differs between repetitions, but for
/// [`Cell::cached`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Lab {
    /// [`SCHEMA`].
    pub schema: String,
    /// The plan's name, empty if there is none.
    #[serde(default)]
    pub plan: String,
    /// The command that repeats it.
    pub repeat: String,
    /// What all cells have in common.
    pub settings: Settings,
    /// The kernels, in the order asked for.
    pub kernels: Vec<LabKernel>,
    /// One per kernel, model, load and seed, in the order asked for.
    pub cells: Vec<Cell>,
    /// The verdicts asked for.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// How cells stand to the limits that were asked for.
    #[serde(default)]
    pub limits: Vec<CellLimit>,
    /// What was published about the same question, a line each, to stand beside the table.
    #[serde(default)]
    pub published: Vec<String>,
    /// Keys that this version does not know. They are kept.
    #[serde(skip)]
    pub other: Unknown,
}

keep_unknown!(Lab);

/// Why a text is not the record of a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// It is no JSON, or lacks what every record has.
    #[error("this is not a complete lab record: {0}{}", remedy_of(.0))]
    Malformed(serde_json::Error),
    /// It has another schema.
    #[error("its schema is `{0}`; this version reads {SCHEMA}")]
    Schema(String),
    /// Its table has too many places.
    #[error(transparent)]
    Exceeded(Exceeded),
    /// Figures of a cell contradict each other.
    #[error("it contradicts itself: {0}")]
    Inconsistent(String),
}

fn remedy_of(e: &serde_json::Error) -> &'static str {
    if e.is_data() { "; if an earlier version wrote it, run the lab again" } else { "" }
}

impl Lab {
    /// Reads a record.
    ///
    /// # Errors
    /// If it is no whole record, has another schema, contradicts itself, or its table exceeds the budget of
    /// its length.
    pub fn from_json(text: &[u8]) -> Result<Self, LabError> {
        /// Read first, on its own: a newer record need not have the shape that we know.
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_slice(text).map_err(LabError::Malformed)?;
        if head.schema != SCHEMA {
            return Err(LabError::Schema(head.schema.chars().take(80).collect()));
        }
        let lab: Self = serde_json::from_slice(text).map_err(LabError::Malformed)?;
        let budget = Budget::of(text.len() as u64);
        budget.keep(lab.places(), Entry::PLACE).map_err(LabError::Exceeded)?;
        match lab.fault() {
            None => Ok(lab),
            Some(fault) => Err(LabError::Inconsistent(fault)),
        }
    }

    /// How many places its table has: a row per kernel and load, a column per model asked for. Cells
    /// that have none of these in common make it as large as the square of their number.
    fn places(&self) -> u64 {
        let rows: BTreeSet<(&str, &str)> =
            self.cells.iter().map(|cell| (&*cell.kernel, &*cell.load)).collect();
        let columns: BTreeSet<&str> = self.cells.iter().map(|cell| &*cell.asked).collect();
        (rows.len() as u64).saturating_mul(columns.len() as u64)
    }

    /// The places of the cells with the latest wakeup of each kernel and model asked for, in the order of
    /// the cells.
    pub fn worst_cells(&self) -> Vec<usize> {
        let mut of_arms: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (place, cell) in self.cells.iter().enumerate() {
            of_arms.entry((&cell.kernel, &cell.asked)).or_default().push(place);
        }
        let worst = |places: Vec<usize>| worst(places, |&place| &self.cells[place]);
        let mut places: Vec<usize> = of_arms.into_values().filter_map(worst).collect();
        places.sort_unstable();
        places
    }

    /// The record as JSON, on one line.
    pub fn to_json(&self) -> String {
        // Only a map with keys that are no text, or a failing writer, could make this fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What all cells of a lab have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// What wakes the probes.
    #[serde(default)]
    pub stimulus: Stimulus,
    /// Whether threads that wake probes are of their process.
    #[serde(default, skip_serializing_if = "Between::is_threads")]
    pub between: Between,
    /// Period of the grid of wakeups, virtual ns.
    pub interval_ns: u64,
    /// Wakeups per cell.
    pub samples: u64,
    /// How long the load runs alone, and then the probe unrecorded, before the measurement, virtual ns.
    #[serde(default)]
    pub warmup_ns: u64,
    /// The probe's scheduling policy.
    #[serde(default)]
    pub policy: ProbePolicy,
    /// Its priority, for policies that have one.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Instructions per virtual second, in millions.
    pub cpu_mips: u32,
    /// CPUs of the guest.
    pub cpus: u32,
    /// The emulator: `QEMU 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)`.
    pub emulator: String,
    /// SHA-256 of the guest's program.
    pub guest_sha256: String,
    /// Whether guests explained their wakeups: then the tracer's time is in all figures.
    #[serde(default)]
    pub explained: bool,
}

/// A kernel of the lab.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabKernel {
    /// How the cells name it.
    pub name: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `amd64` or `arm64`.
    pub arch: String,
    /// SHA-256 of its image.
    pub sha256: String,
    /// The package it came from, with its version.
    #[serde(default)]
    pub package: Option<String>,
}

/// What became of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It measured what was asked.
    Ok,
    /// The kernel runs another model than the one asked for: not run, or not to be used.
    Ignored,
    /// The guest panicked, hung, rebooted, or its result is not valid.
    Failed,
    /// The lab was ended before it came to it.
    #[default]
    NotRun,
}

/// One guest's run: a kernel with a preemption model, a load and a seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Cell {
    /// [`LabKernel::name`].
    pub kernel: String,
    /// The model asked for, as [`Asked`] is written: `none`, `voluntary`, `full`, `lazy`, `rt`, or
    /// `default` for what the kernel does when not told.
    pub asked: String,
    /// The model that it ran; `null` if the guest did not come so far.
    pub model: Option<Model>,
    /// The load; several at once are joined by `+`; `idle` for none.
    pub load: String,
    /// The seed.
    pub seed: u64,
    /// What became of it.
    pub status: Status,
    /// Why it is not `ok`, in a sentence; empty otherwise.
    #[serde(default)]
    pub reason: String,
    /// The log's decisive lines, where it failed.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// Lateness per expiry, virtual ns: least of a wakeup, and percentiles where the samples carry them.
    pub min_ns: Option<u64>,
    /// Half of the expiries were not later.
    pub p50_ns: Option<u64>,
    /// 99 % of the expiries were not later.
    pub p99_ns: Option<u64>,
    /// 99.9 % of the expiries were not later.
    pub p999_ns: Option<u64>,
    /// The latest.
    pub max_ns: Option<u64>,
    /// Expiries.
    #[serde(default)]
    pub count: u64,
    /// Work of the load per virtual second; `null` where there is no load, it counts nothing, or there
    /// are several, whose units of work do not add up.
    pub throughput: Option<f64>,
    /// What a unit of work is: `files`, `programs`, `bytes`.
    #[serde(default)]
    pub unit: String,
    /// Why its run is degraded: the warnings among its findings, the gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The largest share of the latest wakeup's lateness; `null` where it was not explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<Share>,
    /// The bound on the wakeup latency; `null` where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<CellBound>,
    /// The longest sections with interrupts or preemption off; `null` where the emulator did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<CellScope>,
    /// Of the histogram of lateness per expiry, as it stands in the run record.
    pub histogram_sha256: Option<String>,
    /// The run's folder.
    pub run: Option<String>,
    /// Whether it was there already.
    pub cached: bool,
    /// Keys that this version does not know. They are kept.
    #[serde(skip)]
    pub other: Unknown,
}

keep_unknown!(Cell);

/// What the longest of all that can hold off a wakeup add up to in a cell. What it is made of
/// stands in the cell's run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellBound {
    /// Virtual ns; `null` if there is no bound below a second.
    pub bound_ns: Option<u64>,
    /// Why a longer latency is possible all the same; empty if the bound is sound as far as what was
    /// seen is the worst.
    #[serde(default)]
    pub unsound: Vec<Unsound>,
}

/// What the emulator saw of a cell's kernel when it ran the cell once more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellScope {
    /// Why nothing is known; empty otherwise.
    #[serde(default)]
    pub failed: String,
    /// Of each kind, at most [`Self::MOST`], the longest first.
    #[serde(default)]
    pub sections: Vec<CellSections>,
}

/// All sections between two places, as in the record of `scope`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSections {
    /// What was off.
    pub kind: Kind,
    /// Where they began.
    pub began: Place,
    /// Where they ended.
    pub ended: Place,
    /// How many.
    pub count: u64,
    /// The longest, virtual ns.
    pub longest_ns: u64,
    /// All of them, virtual ns.
    pub total_ns: u64,
}

/// The one with the latest wakeup, of those whose cell measured one; of several that are as late, the
/// first.
pub fn worst<'a, T>(all: impl IntoIterator<Item = T>, cell: impl Fn(&T) -> &'a Cell) -> Option<T> {
    let latest_ns = |one: &T| cell(one).max_ns;
    let measured = |one: &T| cell(one).status == Status::Ok && latest_ns(one).is_some();
    all.into_iter().filter(measured).reduce(|worst, one| {
        match latest_ns(&one) > latest_ns(&worst) {
            true => one,
            false => worst,
        }
    })
}

impl Cell {
    /// Whether both have one place in the table: the same kernel, model asked for, and load.
    pub fn is_same_place(&self, other: &Self) -> bool {
        (&self.kernel, &self.asked, &self.load) == (&other.kernel, &other.asked, &other.load)
    }
}

impl CellScope {
    /// Sections of each kind.
    pub const MOST: usize = 10;

    /// The longest sections of a record.
    pub fn of(scope: &Scope) -> Self {
        let longest = |kind| scope.rows.iter().filter(move |row| row.kind == kind).take(Self::MOST);
        let sections = Kind::ALL.into_iter().flat_map(longest).map(|row| CellSections {
            kind: row.kind,
            began: row.began.clone(),
            ended: row.ended.clone(),
            count: row.lengths.count,
            longest_ns: row.lengths.max_ns.unwrap_or(0),
            total_ns: row.lengths.sum_ns,
        });
        Self { failed: String::new(), sections: sections.collect() }
    }

    /// Of a cell that could not be looked into.
    pub fn failed(why: String) -> Self {
        Self { failed: why, sections: Vec::new() }
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Arm {
    /// [`Cell::kernel`].
    pub kernel: String,
    /// [`Cell::asked`].
    pub asked: String,
}

/// What can be said of B against A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is less late than A, by more than the margin.
    Better,
    /// B is later than A, by more than the margin.
    Worse,
    /// They differ by no more than the margin.
    NoDifference,
    /// The seeds do not tell.
    #[default]
    Inconclusive,
}

/// How one figure of B stands to that of A, paired by seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Seeds that have this figure on both sides.
    pub seeds: u32,
    /// Median over the seeds of B / A.
    pub ratio: f64,
    /// The least ratio of a seed.
    pub low: f64,
    /// The largest ratio of a seed.
    pub high: f64,
    /// With 95 %, the median ratio of all seeds that there could be is not below this; `null` if
    /// there are too few seeds to say so.
    pub interval_low: Option<f64>,
    /// With 95 %, it is not above this.
    pub interval_high: Option<f64>,
    /// Seeds in which B is less late.
    pub better: u32,
    /// Seeds in which B is later. In the rest it is as late.
    pub worse: u32,
    /// That a difference so large comes by chance (exact sign-flip permutation of log ratios, two-sided).
    pub p_value: f64,
    /// The same, corrected for the number of figures that were compared (Holm).
    pub p_adjusted: f64,
    /// What this figure alone says.
    pub verdict: Verdict,
}

/// B against A, under one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The reference.
    pub a: Arm,
    /// What is held against it.
    pub b: Arm,
    /// [`Cell::load`].
    pub load: String,
    /// By what share a figure must differ to count: 0.1 for 10 %.
    pub margin: f64,
    /// Seeds with a result on both sides.
    pub seeds: u32,
    /// The largest lateness.
    pub max: Option<Effect>,
    /// The 99.9th percentile.
    pub p999: Option<Effect>,
    /// Work of the load, where it counts: median over the seeds of B / A.
    pub throughput_ratio: Option<f64>,
    /// What both say together.
    pub verdict: Verdict,
    /// Why it is inconclusive, or what else one must know; a sentence each.
    pub reasons: Vec<String>,
}

/// A limit and the worst cell of a kernel, model and load that it was held against.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellLimit {
    /// The limit in words: `p99.9 ≤ 100 µs`.
    pub limit: String,
    /// The limit's value, virtual ns.
    pub limit_ns: u64,
    /// Kernel and model.
    pub arm: Arm,
    /// [`Cell::load`].
    pub load: String,
    /// The seed with the largest value; `null` if no seed has one.
    pub seed: Option<u64>,
    /// That value, virtual ns.
    pub observed_ns: Option<u64>,
    /// Whether it is within the limit; `null` if that cannot be said.
    pub within: Option<bool>,
    /// Why it cannot be said, in a sentence; empty otherwise.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_keep_what_they_do_not_know() {
        let text = r#"{"schema":"wakescope.lab/1","repeat":"wakescope lab run","settings":{
            "interval_ns":500000,"samples":400,"cpu_mips":1000,"cpus":1,"emulator":"QEMU",
            "guest_sha256":"00"},"kernels":[],"cells":[],"news":{"x":1}}"#;
        let lab = Lab::from_json(text.as_bytes()).unwrap();
        assert_eq!(lab.other.get("news"), Some(r#"{"x":1}"#));
        assert_eq!(Lab::from_json(lab.to_json().as_bytes()).unwrap(), lab);
    }

    #[test]
    fn the_worst_cell_of_each_kernel_and_model_is_found() {
        let cell = |kernel: &str, load: &str, max_ns, status| Cell {
            kernel: kernel.into(),
            load: load.into(),
            max_ns,
            status,
            ..Cell::default()
        };
        let cells = vec![
            cell("a", "find", Some(5), Status::Ok),
            cell("b", "find", Some(7), Status::Failed),
            cell("a", "idle", Some(9), Status::Ok),
            cell("a", "launch", Some(9), Status::Ok),
            cell("b", "idle", Some(1), Status::Ok),
            cell("c", "idle", None, Status::Ignored),
        ];
        assert_eq!(Lab { cells, ..Lab::default() }.worst_cells(), [2, 4]);
    }

    #[test]
    fn what_is_no_record_of_a_lab_is_refused_with_the_reason() {
        for (text, want) in [
            ("", "not a complete lab record"),
            ("{}", "missing field `schema`"),
            (r#"{"schema":"wakescope.lab/2"}"#, "its schema is `wakescope.lab/2`"),
            (r#"{"schema":"wakescope.lab/1"}"#, "missing field `repeat`"),
            (
                r#"{"schema":"wakescope.lab/1","cells":[{"culprit":{"culprit":"f"}}]}"#,
                "run the lab again",
            ),
        ] {
            let e = Lab::from_json(text.as_bytes()).unwrap_err().to_string();
            assert!(e.contains(want), "{text}: {e}");
        }
        let deep = format!(r#"{{"schema":"wakescope.lab/1","x":{}"#, "[".repeat(100_000));
        assert!(Lab::from_json(deep.as_bytes()).is_err(), "deep nesting is no crash");
    }

    #[test]
    fn a_table_may_not_grow_with_the_square_of_the_record() {
        let record = |count: usize, alike: bool| {
            let name = |i: usize| if alike { 0 } else { i };
            let cell = |i| Cell {
                kernel: format!("k{i}"),
                asked: format!("a{}", name(i)),
                load: format!("l{}", name(i)),
                ..Cell::default()
            };
            Lab { schema: SCHEMA.into(), cells: (0..count).map(cell).collect(), ..Lab::default() }
        };
        let refused = Lab::from_json(record(1_000, false).to_json().as_bytes()).unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("it needs more than 128 MB of memory for places of its table")
        );
        for whole in [record(1_000, true), record(100, false)] {
            assert_eq!(Lab::from_json(whole.to_json().as_bytes()).unwrap(), whole);
        }
    }
}
