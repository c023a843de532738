//! What is asked of a lab: a plan, and what the command line says instead.

use std::io::Read;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use wakescope_core::explain::Above;
use wakescope_core::lab::Asked;
use wakescope_core::limit::Limit;
use wakescope_core::plan::{Between, ProbePolicy, Rate, Stimulus};
use wakescope_core::units::SpanNs;
use wakescope_lab::plan::{
    CpuSpeed, LARGEST_FILE, LoadSet, Overrides, Plan, PlanError, Seeds, parse_margin, repeat,
};
use wakescope_probe::load::{Need, Spec, SpecError, parse_list};
use wakescope_report::style::clean;
use wakescope_stats::cells::parse_limit;

use super::shown;
use crate::Failure;
use crate::input::regular_or_pipe;
use crate::offering::{load_names, offering};
use crate::stimuli::stimuli_of_guests;

/// The arguments that make a plan.
#[derive(clap::Args)]
pub(super) struct Asking {
    /// A built-in plan (williams, linux-journal, debian-atlas), or a plan file
    #[arg(long, value_name = "NAME|FILE")]
    plan: Option<String>,

    /// Kernels by name, as in 6.1-cloud (see `wakescope lab kernels`), or by file, as in
    /// old/bzImage
    #[arg(long, value_name = "NAME|FILE,…", value_delimiter = ',')]
    kernel: Vec<String>,

    /// Preemption models to boot each kernel with: none, voluntary, full, lazy, rt, default
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',', value_parser = models(), hide_possible_values = true)]
    preempt: Vec<Asked>,

    /// Loads: idle, or names that `wakescope load --list` lists; a combination as find+launch
    #[arg(long, value_name = "LOAD,…", value_delimiter = ',', value_parser = load_sets(), hide_possible_values = true)]
    load: Vec<LoadSet>,

    /// Number of seeds, as in 10, or a list, as in 3,7,11. A seed sets the probe's phase and the
    /// loads' contents
    #[arg(long, value_name = "N|LIST")]
    seeds: Option<Seeds>,

    /// Wakeups per cell
    #[arg(long, value_name = "N")]
    samples: Option<u64>,

    /// Source of the wakeups
    #[arg(long, value_parser = stimuli_of_guests(), value_name = "STIMULUS")]
    stimulus: Option<Stimulus>,

    /// Waker of the probe, for stimuli with one: another thread of the probe's process, or another process
    #[arg(long, value_parser = offering(["threads", "processes"], between), hide_possible_values = true, value_name = "threads|processes")]
    between: Option<Between>,

    /// Time from one timer expiry to the next, in virtual time
    #[arg(long, value_name = "TIME")]
    interval: Option<SpanNs>,

    /// Wakeups per virtual second with --stimulus rtc and rtc-grid, a power of two [default: 2048]
    #[arg(long, value_name = "HZ", conflicts_with = "interval")]
    rtc_hz: Option<Rate>,

    /// Warm-up in virtual time: the load runs alone for this time, then the probe runs unrecorded
    /// for the same time
    #[arg(long, value_name = "TIME")]
    warmup: Option<SpanNs>,

    /// Speed of the guest's CPU, in million instructions per virtual second: 1000, 500, 250, 125
    #[arg(long, value_name = "MIPS", value_parser = speeds(), hide_possible_values = true)]
    cpu_mips: Option<CpuSpeed>,

    /// Scheduling policy of the probe
    #[arg(long, value_parser = offering(["fifo", "rr", "other", "deadline"], policy), hide_possible_values = true, value_name = "POLICY")]
    policy: Option<ProbePolicy>,

    /// Real-time priority of the probe, 1 to 99
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// Test whether B is worse than A: kernels, models or both, as in none:full or
    /// old/bzImage:new/bzImage
    #[arg(long, value_name = "A:B")]
    compare: Vec<String>,

    /// Smallest relative difference that counts: 10% or 0.1
    #[arg(long, value_name = "SHARE", value_parser = parse_margin)]
    margin: Option<f64>,

    /// Exit with 1 if the maximum (100us) or a percentile (p99.9=50us) of any cell is above this
    /// time
    #[arg(long, value_name = "[pN=]TIME", value_parser = parse_limit)]
    fail_above: Vec<Limit>,

    /// Let each guest explain its late wakeups. Tracing takes virtual time: do not compare the
    /// figures with those of guests without --explain
    #[arg(long)]
    explain: bool,

    /// With --explain, wakeups count as late from this time or percentile on
    #[arg(long, value_name = "TIME|pN", requires = "explain")]
    above: Option<Above>,

    /// With --explain, also measure every section with interrupts or preemption off, on kernels
    /// with preemptirq tracepoints
    #[arg(long, requires = "explain")]
    sections: bool,

    /// With --explain, also compute an upper bound on the wakeup latency, shown beside the maximum
    #[arg(long, requires = "explain")]
    bound: bool,

    /// Number of the most delayed wakeups to list in each record
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    worst: Option<u16>,
}

fn policy(text: &str) -> Result<ProbePolicy, String> {
    match text {
        "fifo" => Ok(ProbePolicy::Fifo),
        "rr" => Ok(ProbePolicy::Rr),
        "other" => Ok(ProbePolicy::Other),
        "deadline" => Ok(ProbePolicy::Deadline),
        _ => Err("the policies are fifo, rr, other and deadline".into()),
    }
}

fn between(text: &str) -> Result<Between, String> {
    match text {
        "threads" => Ok(Between::Threads),
        "processes" => Ok(Between::Processes),
        _ => Err("write threads or processes".into()),
    }
}

fn models() -> impl TypedValueParser<Value = Asked> {
    offering(Asked::ALL.map(Asked::word), |name: &str| name.parse::<Asked>())
}

fn speeds() -> impl TypedValueParser<Value = CpuSpeed> {
    offering(["1000", "500", "250", "125"], |text: &str| text.parse::<CpuSpeed>())
}

fn load_sets() -> impl TypedValueParser<Value = LoadSet> {
    let names = ["idle"].into_iter().chain(load_names());
    offering(names, |text: &str| text.parse::<LoadSet>())
}

impl Asking {
    /// The plan; its kernels may still be those of the whole catalogue.
    /// `has_programs`: guests have a root image.
    pub(super) fn plan(&self, has_programs: bool) -> Result<Plan, Failure> {
        let plan = match self.plan.as_deref() {
            None => Plan::default(),
            Some(name) => read(name)?,
        };
        let plan =
            plan.with(&self.overrides()).map_err(|e| failure_of_plan("the command line", &e))?;
        expect_known_loads(&plan, has_programs)?;
        Ok(plan)
    }

    /// The command that asks the same.
    pub(super) fn repeat(&self) -> String {
        repeat(self.plan.as_deref(), &self.overrides())
    }

    fn overrides(&self) -> Overrides {
        Overrides {
            kernels: said(&self.kernel),
            preempt: said(&self.preempt),
            loads: said(&self.load),
            seeds: self.seeds.clone(),
            samples: self.samples,
            stimulus: self.stimulus,
            between: self.between,
            interval: self.interval,
            rtc_hz: self.rtc_hz,
            warmup: self.warmup,
            cpu: self.cpu_mips,
            policy: self.policy,
            priority: self.priority,
            compare: said(&self.compare),
            margin: self.margin,
            fail_above: said(&self.fail_above),
            explain: self.explain.then_some(true),
            above: self.above,
            sections: self.sections.then_some(true),
            bound: self.bound.then_some(true),
            worst: self.worst,
        }
    }
}

fn said<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// The packages of a C compiler with a C library.
const COMPILER: &str = "gcc,libc6-dev";

/// A load that nobody knows is not to be found out by the guests, one after the other.
fn expect_known_loads(plan: &Plan, has_programs: bool) -> Result<(), Failure> {
    for name in plan.loads.iter().flat_map(LoadSet::names) {
        let specs = parse_list(name);
        let lacks_programs = |spec: &Spec| {
            let is_of_program = matches!(spec.need(), Some(Need::Program | Need::NfsServer));
            is_of_program && spec.group().is_none() && !has_programs
        };
        if specs.as_ref().is_ok_and(|specs| specs.iter().any(lacks_programs)) {
            let packages = if name.starts_with("dbench") { "dbench" } else { COMPILER };
            return Err(Failure::new(format!("a guest cannot run the load `{}`", clean(name, 40)))
                .because("it needs a program, and a guest has only wakescope")
                .try_this(format!("give it Debian's packages: --packages {packages}")));
        }
        let needs_machine =
            |spec: &Spec| spec.need() == Some(Need::Machine) && spec.group().is_none();
        if specs.as_ref().is_ok_and(|specs| specs.iter().any(needs_machine)) {
            return Err(Failure::new(format!("a guest cannot run the load `{}`", clean(name, 40)))
                .because("it needs a program of the machine, and a guest has only wakescope")
                .try_this("name loads that need none, as find, launch, file-move or hackbench"));
        }
        if let Err(e) = specs {
            let known: Vec<&str> =
                Spec::list().map(|load| load.0).filter(|name| !name.contains(':')).collect();
            let what = match e {
                SpecError::Unknown(name) => format!("there is no load `{name}`"),
                e => e.to_string(),
            };
            return Err(Failure::new(clean(&what, 200))
                .try_this(format!("the loads are idle, {}", known.join(", "))));
        }
    }
    Ok(())
}

/// The plan of this name, or in this file. What looks like a path is one.
fn read(name: &str) -> Result<Plan, Failure> {
    let path = PathBuf::from(name);
    if !name.contains('/') && !path.is_file() {
        return Plan::shipped(name).map_err(|e| failure_of_plan("--plan", &e));
    }
    let mut text = Vec::new();
    regular_or_pipe(&path)
        .and_then(|file| file.take(LARGEST_FILE as u64 + 1).read_to_end(&mut text))
        .map_err(|e| Failure::new(format!("cannot read the plan {}: {e}", shown(&path))))?;
    Plan::parse(text).map_err(|e| failure_of_plan(&shown(&path), &e))
}

/// `place` is where the plan comes from.
pub(super) fn failure_of_plan(place: &str, e: &PlanError) -> Failure {
    Failure::new(clean(&format!("{place}: {e}"), 400)).try_this(clean(&e.remedy(), 300))
}
