//! What a lab is to do: kernels × preemption models × loads × seeds, and what to make of them.

use std::collections::BTreeMap;

use wakescope_core::explain::Above;
use wakescope_core::lab::{Arm, Asked};
use wakescope_core::limit::Limit;
use wakescope_core::plan::{Between, ProbePolicy, Stimulus};
use wakescope_core::units::SpanNs;

mod bounds;
mod error;
mod file;
mod overrides;
mod own;
mod pairs;
mod repeat;
mod shipped;
mod words;

pub use error::PlanError;
pub use file::LARGEST_FILE;
pub use overrides::Overrides;
pub use own::OwnKeys;
pub use repeat::{repeat, shell_quoted};
pub use words::{CpuSpeed, LoadSet, Seeds, margin_as_argument, parse_margin};

/// What a lab is to do.
///
/// ```
/// use wakescope_lab::plan::Plan;
/// let plan = Plan::parse(r#"
///     kernels = ["6.1-cloud"]
///     preempt = ["none", "full"]
///     loads = ["find", "find+launch"]
///     seeds = 3
///     compare = ["none:full"]
/// "#).unwrap();
/// assert_eq!(plan.cells().len(), 12);
/// assert_eq!(plan.pairs().unwrap()[0].1.asked, "full");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How it is called; empty if it came from the command line alone.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Which kernels.
    pub kernels: Kernels,
    /// The models that each kernel is asked for, but for those of `preempt_of`.
    pub preempt: Vec<Asked>,
    /// The models of kernels that are not asked for `preempt`.
    pub preempt_of: BTreeMap<String, Vec<Asked>>,
    /// The loads.
    pub loads: Vec<LoadSet>,
    /// The seeds.
    pub seeds: Seeds,
    /// Wakeups per cell.
    pub samples: u64,
    /// What wakes the probe.
    pub stimulus: Stimulus,
    /// Whether a thread that wakes the probe is one of its own process.
    pub between: Between,
    /// Period of the grid of wakeups, in virtual time.
    pub interval: SpanNs,
    /// How long the load runs alone, and then the probe unrecorded, in virtual time.
    pub warmup: SpanNs,
    /// How fast the guest's CPU is.
    pub cpu: CpuSpeed,
    /// The probe's scheduling policy.
    pub policy: ProbePolicy,
    /// Its priority, for policies that have one.
    pub priority: Option<u8>,
    /// What belongs to one stimulus or policy.
    pub own: OwnKeys,
    /// What to compare, as written: `none:full`.
    pub compare: Vec<String>,
    /// By what share a figure must differ to count.
    pub margin: f64,
    /// What was published about the same question, a line each.
    pub published: Vec<String>,
    /// Limits that every cell is held to.
    pub fail_above: Vec<Limit>,
    /// Whether each guest explains its late wakeups. That takes instructions, so its figures are
    /// not those of guests that do not.
    pub explain: bool,
    /// Whether the worst cell of each kernel and model is run once more and looked into from outside.
    pub scope: bool,
    /// Which wakeups are late, where late ones are explained, if it is not to be the usual ones.
    pub above: Option<Above>,
    /// Whether guests that explain measure every section with interrupts or preemption off.
    pub sections: bool,
    /// Whether guests that explain compose a bound on the wakeup latency.
    pub bound: bool,
    /// How many of the most delayed wakeups each record lists, if it is not to be the usual number.
    pub worst: Option<u16>,
}

/// Which kernels a plan is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// These: names of the catalogue, or paths. None, if they are still to come.
    Named(Vec<String>),
    /// Every kernel that can be had: `kernels = ["*"]`. [`Plan::expand`] makes them named.
    Every,
}

/// A kernel that can be had, and the models that it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// As the lab names it.
    pub name: String,
    /// What it can be asked for.
    pub preempt: Vec<Asked>,
}

/// A cell that is to be run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellSpec {
    /// The kernel.
    pub kernel: String,
    /// The model to ask for.
    pub asked: Asked,
    /// The load.
    pub load: LoadSet,
    /// The seed.
    pub seed: u64,
}

impl Default for Plan {
    /// A plan that only lacks kernels.
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            kernels: Kernels::Named(Vec::new()),
            preempt: vec![Asked::Default],
            preempt_of: BTreeMap::new(),
            loads: ["idle", "find", "launch", "file-move"].map(LoadSet::known).into(),
            seeds: Seeds::Count(10),
            samples: 4_000,
            stimulus: Stimulus::Timer,
            between: Between::Threads,
            interval: SpanNs(500_000),
            // A virtual second takes several of the host's: long enough that the load is under way.
            warmup: SpanNs(50_000_000),
            cpu: CpuSpeed::default(),
            policy: ProbePolicy::Fifo,
            priority: Some(90),
            own: OwnKeys::default(),
            compare: Vec::new(),
            margin: 0.1,
            published: Vec::new(),
            fail_above: Vec::new(),
            explain: false,
            scope: false,
            above: None,
            sections: false,
            bound: false,
            worst: None,
        }
    }
}

impl Plan {
    /// Reads a plan file (TOML, UTF-8). Kernels may be left out, to be named by [`Overrides`].
    ///
    /// # Errors
    /// What is wrong, in which line, and what to write instead.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, PlanError> {
        file::parse(text.as_ref())
    }

    /// A plan that comes with wakescope.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn shipped(name: &str) -> Result<Self, PlanError> {
        shipped::parse(name)
    }

    /// The names of the plans that come with wakescope, and what each is for.
    pub fn names() -> Vec<(String, String)> {
        shipped::names()
    }

    /// The lines of published figures that the plans have that come with wakescope.
    pub fn shipped_published() -> Vec<String> {
        shipped::published()
    }

    /// This plan, with `kernels = ["*"]` replaced by the kernels of `offers`: each is asked for
    /// those models of the plan that it knows, or for its default if it knows none of them.
    ///
    /// # Errors
    /// If the plan then has no kernel, too many cells, or compares what is not among them.
    pub fn expand(mut self, offers: &[Offer]) -> Result<Self, PlanError> {
        if self.kernels == Kernels::Every {
            for offer in offers {
                let mut asked = self.preempt.clone();
                asked.retain(|asked| offer.preempt.contains(asked));
                if asked.is_empty() {
                    asked.push(Asked::Default);
                }
                self.preempt_of.insert(offer.name.clone(), asked);
            }
            self.kernels = Kernels::Named(offers.iter().map(|offer| offer.name.clone()).collect());
        }
        if self.kernel_names().is_empty() {
            return Err(PlanError::value(
                "kernels",
                "there is no kernel to boot",
                "name kernels with --kernel, or with kernels = [\"6.1-cloud\"] in the plan",
            ));
        }
        self.checked()
    }

    /// The kernels by name; none as long as they are [`Kernels::Every`].
    pub fn kernel_names(&self) -> &[String] {
        match &self.kernels {
            Kernels::Named(names) => names,
            Kernels::Every => &[],
        }
    }

    /// The models that a kernel of this plan is asked for.
    pub fn preempt_of(&self, kernel: &str) -> &[Asked] {
        self.preempt_of.get(kernel).unwrap_or(&self.preempt)
    }

    /// The cells, in order: kernel by kernel, model by model, load by load, seed by seed.
    pub fn cells(&self) -> Vec<CellSpec> {
        let mut cells = Vec::with_capacity(self.cell_count());
        for kernel in self.kernel_names() {
            for &asked in self.preempt_of(kernel) {
                for load in &self.loads {
                    cells.extend(self.seeds.iter().map(|seed| CellSpec {
                        kernel: kernel.clone(),
                        asked,
                        load: load.clone(),
                        seed,
                    }));
                }
            }
        }
        cells
    }

    /// How many cells there are.
    pub(crate) fn cell_count(&self) -> usize {
        let models: usize = self.kernel_names().iter().map(|k| self.preempt_of(k).len()).sum();
        models.saturating_mul(self.loads.len()).saturating_mul(self.seeds.len())
    }

    /// The pairs to compare: the reference, and what is held against it.
    ///
    /// # Errors
    /// If the plan does not have both sides of each.
    pub fn pairs(&self) -> Result<Vec<(Arm, Arm)>, PlanError> {
        pairs::resolve(self)
    }
}

#[cfg(test)]
mod tests;
