//! A lab from its plan to its record: finds out what each kernel runs, then runs the cells.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use wakescope_core::behaviour::Agreement;
use wakescope_core::finding::Severity;
use wakescope_core::host::Host;
use wakescope_core::lab::{Asked, Cell, CellBound, Lab, LabKernel, SCHEMA, Settings, Status};
use wakescope_core::preemption::Model;
use wakescope_core::run::Run;
use wakescope_report::style::clean;
use wakescope_stats::cells::{compare, limits};

use crate::cache::{Cache, CacheError};
use crate::cell::{Emulation, GuestTask, Measurement, Work, Workshop};
use crate::farm::{self, Continue, End, Event, FarmError, Job, Outcome, Standing};
use crate::guest::modules::ModulesError;
use crate::guest::root::RootImage;
use crate::guest::{CHECK, GuestError, RUN};
use crate::kernel::{Arch, Kernel};
use crate::plan::{CellSpec, Plan, PlanError};
use crate::store::{CellStore, StoreError, StoredCell};
use crate::sum::{self, Memo};

mod booted;

use booted::{Booted, make_guests};

/// Corrected p-values up to this count as no chance.
const ALPHA: f64 = 0.05;

/// No file of a cell that is read is larger, in bytes.
const LARGEST: u64 = 16 << 20;

/// The most characters of what a guest says about its kernel: it can say anything.
const LONGEST: usize = 400;

/// What a lab has to work with.
#[derive(Debug)]
pub struct Equipment {
    /// The lab's folder.
    pub cache: Cache,
    /// What has been run.
    pub store: CellStore,
    /// How machines are made, by architecture.
    pub workshops: BTreeMap<Arch, Workshop>,
    /// The guest's program, by architecture: a static wakescope.
    pub programs: BTreeMap<Arch, PathBuf>,
    /// Modules that guests load first.
    pub modules: Vec<String>,
    /// The project's own module, by the release of its kernel, where the plan's stimulus is its device.
    pub own_modules: BTreeMap<String, PathBuf>,
    /// The kernel's modules that loads need, if any: guests load them, too.
    pub load_modules: Option<LoadModules>,
    /// Root images of guests, by architecture.
    pub roots: BTreeMap<Arch, RootImage>,
    /// Guests at a time.
    pub parallel: usize,
}

/// Modules of the kernel that loads need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadModules {
    /// Their names.
    pub names: Vec<String>,
    /// Whether there is no lab without them. A load of a group is left out where it cannot run.
    pub required: bool,
}

/// Why there is no lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The guest's image cannot be made.
    #[error(transparent)]
    Guest(GuestError),
    /// Modules that are to be loaded cannot be had.
    #[error(transparent)]
    Modules(ModulesError),
    /// Modules are to be loaded, and this kernel is here without any.
    #[error("the modules of {0} are not here")]
    NoModules(String),
    /// The lab's folder cannot be used.
    #[error(transparent)]
    Cache(CacheError),
    /// The cache of cells cannot be used.
    #[error(transparent)]
    Store(StoreError),
    /// The farm cannot go on.
    #[error(transparent)]
    Farm(FarmError),
    /// The plan compares what is not in it.
    #[error(transparent)]
    Plan(PlanError),
    /// There is no machine, or no program, for an architecture.
    #[error("there is no machine for kernels of {0}")]
    NoMachine(Arch),
}

/// What a lab is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Guests tell what their kernels run.
    Checking,
    /// Guests measure.
    Measuring,
    /// Cells are run once more.
    Repeating,
    /// The worst cells are looked into from outside.
    Looking,
}

/// Who watches a lab.
pub type Watcher<'a> = dyn FnMut(Phase, Event<'_>, &Standing) -> Continue + 'a;

/// A lab that is done, or was ended.
#[derive(Debug)]
pub struct Done {
    /// What it found out.
    pub lab: Lab,
    /// Whether the watcher ended it.
    pub stopped: bool,
}

/// What a kernel was found to run when it was asked for a model.
#[derive(Clone, Debug, Default)]
struct Found {
    model: Option<Model>,
    status: Status,
    reason: String,
    evidence: Vec<String>,
}

/// Does what `plan` says with `kernels`, which are all that it names, in its order.
///
/// First every kernel is booted once per model that it is asked for, and tells what it runs; cells
/// of models that it does not run are not measured.
pub fn run(
    plan: &Plan,
    kernels: &[Kernel],
    repeat: String,
    equipment: &Equipment,
    watch: &mut Watcher<'_>,
) -> Result<Done, LabError> {
    let pairs = plan.pairs().map_err(LabError::Plan)?;
    let booted = make_guests(kernels, equipment)?;
    let (found, stopped) = check(plan, &booted, equipment, watch)?;
    let (cells, stopped) = if stopped {
        (plan.cells().iter().map(|spec| blank(spec, &Found::default())).collect(), true)
    } else {
        measure(plan, &booted, &found, equipment, watch)?
    };
    let comparisons = compare(&cells, &pairs, plan.margin, ALPHA);
    let limits = limits(&cells, &plan.fail_above);
    let lab = Lab {
        schema: SCHEMA.into(),
        plan: plan.name.clone(),
        repeat,
        settings: settings(plan, &booted, equipment),
        kernels: kernels.iter().map(described).collect(),
        cells,
        comparisons,
        limits,
        published: plan.published.clone(),
        ..Lab::default()
    };
    Ok(Done { lab, stopped })
}

fn settings(plan: &Plan, booted: &[Booted], equipment: &Equipment) -> Settings {
    let first = booted.first().map(|b| b.workshop);
    let mut memo = Memo::open(&equipment.cache);
    let program = booted.first().and_then(|b| equipment.programs.get(&b.kernel.arch));
    Settings {
        stimulus: plan.stimulus,
        between: plan.between,
        interval_ns: plan.interval.0,
        samples: plan.samples,
        warmup_ns: plan.warmup.0,
        policy: plan.policy,
        priority: plan.priority,
        cpu_mips: plan.cpu.mips(),
        cpus: first.map_or(1, |w| w.machine.cpus),
        emulator: first.map(|w| w.qemu.banner.clone()).unwrap_or_default(),
        guest_sha256: program.and_then(|p| memo.sum(p).ok()).unwrap_or_default(),
        explained: plan.explain,
    }
}

fn described(kernel: &Kernel) -> LabKernel {
    LabKernel {
        name: kernel.name.clone(),
        release: kernel.release.clone(),
        version: kernel.version.clone(),
        arch: kernel.arch.to_string(),
        sha256: kernel.sha256.clone(),
        package: kernel.package.clone(),
    }
}

/// Kernels by the name that cells have for them, and models.
type Arms = BTreeMap<(String, Asked), Found>;

/// What each kernel runs when it is asked for each of its models; and whether the watcher stopped.
fn check(
    plan: &Plan,
    booted: &[Booted],
    equipment: &Equipment,
    watch: &mut Watcher<'_>,
) -> Result<(Arms, bool), LabError> {
    let mut jobs = Vec::new();
    let mut arms = Vec::new();
    for Booted { kernel, checker, workshop, .. } in booted {
        for &asked in plan.preempt_of(&kernel.name) {
            jobs.push(workshop.job(kernel, checker, asked, GuestTask::Check));
            arms.push((kernel.name.clone(), asked));
        }
    }
    let (outcomes, stopped) = harvest(&jobs, equipment, Phase::Checking, watch)?;
    let found =
        arms.iter().zip(outcomes).map(|(arm, outcome)| (arm.clone(), found_of(arm.1, &outcome)));
    Ok((found.collect(), stopped))
}

fn harvest(
    jobs: &[Job<Work>],
    equipment: &Equipment,
    phase: Phase,
    watch: &mut Watcher<'_>,
) -> Result<(Vec<Outcome>, bool), LabError> {
    let mut watch = |event: Event<'_>, standing: &Standing| watch(phase, event, standing);
    let parallel = equipment.parallel;
    let runner = Emulation::with_states(&equipment.cache);
    let harvest = farm::run(jobs, parallel, &equipment.store, &runner, &mut watch);
    match harvest.end {
        End::Complete => Ok((harvest.outcomes, false)),
        End::Stopped => Ok((harvest.outcomes, true)),
        End::Broken(e) => Err(LabError::Farm(e)),
    }
}

/// What a guest that was asked for a model told about it.
fn found_of(asked: Asked, outcome: &Outcome) -> Found {
    if let Some(failed) = outcome.failed() {
        return Found {
            status: Status::Failed,
            reason: failed.reason.clone(),
            evidence: failed.evidence.clone(),
            ..Found::default()
        };
    }
    let Outcome::Kept { cell, .. } = outcome else { return Found::default() };
    let failed = |reason: String| Found { status: Status::Failed, reason, ..Found::default() };
    let check =
        cell.read(CHECK, LARGEST).ok().and_then(|b| serde_json::from_slice::<Value>(&b).ok());
    let Some(check) = check else { return failed("the guest's check cannot be read".into()) };
    let behaviour = &check["behaviour"];
    let agreement = serde_json::from_value::<Agreement>(behaviour["agreement"].clone()).ok();
    let behaves_as = serde_json::from_value::<Vec<Model>>(behaviour["models"].clone());
    let Ok(host) = serde_json::from_value::<Host>(check.clone()) else {
        return failed("the guest's check cannot be read".into());
    };
    let model = host.preemption.model;
    if agreement == Some(Agreement::Contradict) {
        let models: Vec<String> =
            behaves_as.unwrap_or_default().iter().map(ToString::to_string).collect();
        return Found {
            model: Some(model),
            status: Status::Ignored,
            reason: clean(
                &format!(
                    "{} ({}), but its behaviour is that of {}",
                    says(model),
                    host.preemption.because,
                    models.join(" or ")
                ),
                LONGEST,
            ),
            ..Found::default()
        };
    }
    if runs(asked, model) {
        return Found { model: Some(model), status: Status::Ok, ..Found::default() };
    }
    let mut reason = format!("asked for {asked}, {}", says(model));
    if !host.preemption.because.is_empty() {
        reason += &format!(": {}", host.preemption.because);
    }
    for conflict in &host.preemption.conflicts {
        reason += &format!("; {conflict}");
    }
    let reason = clean(&reason, LONGEST);
    Found { model: Some(model), status: Status::Ignored, reason, ..Found::default() }
}

fn says(model: Model) -> String {
    match model {
        Model::Unknown => "the kernel does not show its preemption model".into(),
        model => format!("the kernel runs {model}"),
    }
}

/// Whether a kernel that runs `model` does what it was asked.
fn runs(asked: Asked, model: Model) -> bool {
    match asked {
        Asked::Default => model != Model::Unknown,
        Asked::None => model == Model::None,
        Asked::Voluntary => model == Model::Voluntary,
        Asked::Full => model == Model::Full,
        Asked::Lazy => model == Model::Lazy,
        Asked::Rt => model == Model::Rt,
    }
}

/// The cells of the plan; and whether the watcher stopped.
fn measure(
    plan: &Plan,
    booted: &[Booted],
    found: &Arms,
    equipment: &Equipment,
    watch: &mut Watcher<'_>,
) -> Result<(Vec<Cell>, bool), LabError> {
    let by_name: BTreeMap<&str, &Booted> =
        booted.iter().map(|b| (b.kernel.name.as_str(), b)).collect();
    let nothing = Found::default();
    let mut cells = Vec::new();
    let (mut jobs, mut places) = (Vec::new(), Vec::new());
    for spec in plan.cells() {
        let found = found.get(&(spec.kernel.clone(), spec.asked)).unwrap_or(&nothing);
        if let (Status::Ok, Some(booted)) = (found.status, by_name.get(spec.kernel.as_str())) {
            let Booted { kernel, guest, workshop, .. } = booted;
            let cpus = workshop.machine.cpus;
            let measurement = Measurement::of(plan, &spec.load, spec.seed, cpus);
            let task = GuestTask::Measure(Box::new(measurement));
            jobs.push(workshop.job(kernel, guest, spec.asked, task));
            places.push(cells.len());
        }
        cells.push(blank(&spec, found));
    }
    let (outcomes, stopped) = harvest(&jobs, equipment, Phase::Measuring, watch)?;
    for (place, outcome) in places.into_iter().zip(outcomes) {
        fill(&mut cells[place], &outcome);
    }
    Ok((cells, stopped))
}

/// A cell before it is run, or that is not.
fn blank(spec: &CellSpec, found: &Found) -> Cell {
    let status = match found.status {
        Status::Ok => Status::NotRun,
        other => other,
    };
    Cell {
        kernel: spec.kernel.clone(),
        asked: spec.asked.to_string(),
        model: found.model,
        load: spec.load.to_string(),
        seed: spec.seed,
        status,
        reason: found.reason.clone(),
        evidence: found.evidence.clone(),
        ..Cell::default()
    }
}

fn fill(cell: &mut Cell, outcome: &Outcome) {
    match outcome {
        Outcome::NotRun | Outcome::Failed(_) => {}
        Outcome::Kept { cell: stored, cached } => {
            cell.cached = *cached;
            cell.run = Some(stored.folder.display().to_string());
            if stored.ending.failed().is_none() {
                fill_in_run(cell, stored);
            }
        }
    }
    if let Some(failed) = outcome.failed() {
        cell.status = Status::Failed;
        cell.reason.clone_from(&failed.reason);
        cell.evidence.clone_from(&failed.evidence);
    }
}

fn fill_in_run(cell: &mut Cell, stored: &StoredCell) {
    let bytes = stored.read(RUN, LARGEST).map_err(|e| e.to_string());
    let run = match bytes.and_then(|bytes| Run::from_json(&bytes).map_err(|e| e.to_string())) {
        Ok(run) => run,
        Err(e) => {
            cell.status = Status::Failed;
            cell.reason = format!("its record cannot be read: {e}");
            return;
        }
    };
    let model = run.host.preemption.model;
    if cell.model.is_some_and(|checked| checked != model) {
        cell.status = Status::Ignored;
        cell.reason = format!("{} in this guest", says(model));
        return;
    }
    let percentile = |p: &str| run.summary.percentiles.get(p).copied().flatten();
    cell.status = Status::Ok;
    cell.model = Some(model);
    cell.min_ns = run.summary.min_ns;
    cell.p50_ns = percentile("p50");
    cell.p99_ns = percentile("p99");
    cell.p999_ns = percentile("p99.9");
    cell.max_ns = run.summary.max_ns;
    cell.count = run.summary.count;
    cell.histogram_sha256 = Some(histogram_sum(&run));
    cell.culprit = run.worst.first().and_then(|worst| worst.blame.first()).cloned();
    let bound = run.explanation.as_ref().and_then(|explanation| explanation.bound.as_ref());
    cell.bound =
        bound.map(|bound| CellBound { bound_ns: bound.bound_ns, unsound: bound.unsound.clone() });
    if let [load] = &run.load[..] {
        cell.throughput = (load.work > 0).then_some(load.per_second);
        cell.unit.clone_from(&load.unit);
    }
    cell.findings = run.validity.findings;
    cell.findings.retain(|finding| finding.severity == Severity::Warning);
}

/// SHA-256 over the histogram of lateness per expiry, as it stands in the record.
fn histogram_sum(run: &Run) -> String {
    let histogram = serde_json::to_vec(&run.expiries().histogram).unwrap_or_default();
    sum::of_bytes(&histogram)
}
