//! A scenario, simulated, traced, explained and compared with the truth.

use wakescope_attribution::{Machine, Tuning, calibrate, decide};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{ComponentTable, Components, Known};
use wakescope_model::image::{CpuId, SourceKind, TaskId};
use wakescope_model::kernel::Running;
use wakescope_model::simulation::{Broken, Sample, Until, Watch};
use wakescope_model::trace::Transition;
use wakescope_model::{Image, Simulation};

use crate::score::{Score, score};
use crate::tracepoints::{Followed, Shown, Tracepoints};
use crate::truth::{Truth, Witness};

/// Wakeups before it is known which are late.
const FIRST: u64 = 64;
/// A probe that hardly ever runs is not waited for, nanoseconds.
const LONGEST_NS: u64 = 1_000_000_000;

/// How a scenario is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Decides all that is random.
    pub seed: u64,
    /// Wakeups of all probes together.
    pub wakeups: u64,
    /// What the kernel shows.
    pub shown: Shown,
    /// Whose wakeups are followed.
    pub followed: Followed,
    /// No wakeup is late below this, nanoseconds.
    pub least_late_ns: u64,
}

/// Watches with both eyes.
struct Both<'i> {
    tracer: Tracepoints<'i>,
    witness: Witness<'i>,
    followed: Followed,
    latencies: Vec<u64>,
    least_late_ns: u64,
}

impl Watch for Both<'_> {
    const FOLLOWS: bool = true;

    fn sample(&mut self, sample: Sample) {
        self.tracer.responded(sample);
        self.witness.responded(sample);
        if self.followed == Followed::Probes {
            self.ended(sample.latency_ns());
        }
    }

    fn armed(&mut self, task: TaskId, cpu: CpuId, expiry_ns: u64) {
        self.tracer.armed(task, expiry_ns);
        self.witness.armed(task, cpu, expiry_ns);
    }

    fn ran(&mut self, cpu: CpuId, from_ns: u64, to_ns: u64, at: Running) {
        self.tracer.ran(cpu, from_ns, to_ns, at);
        self.witness.ran(cpu, from_ns, to_ns, at);
    }

    fn place(&mut self, cpu: CpuId, at_ns: u64, at: Running) {
        self.tracer.place(cpu, at);
        self.witness.place(cpu, at_ns, at);
    }

    fn wakes(&mut self, cpu: CpuId, at_ns: u64, task: TaskId, at: Running) {
        self.tracer.wakes(cpu, at_ns, task, at);
        self.witness.wakes(cpu, at_ns, task, at);
    }

    fn happened(&mut self, cpu: CpuId, at_ns: u64, what: Transition) {
        let before = self.tracer.components.len();
        self.tracer.happened(cpu, at_ns, what);
        self.witness.happened(cpu, at_ns, what);
        if self.followed == Followed::Threads {
            if let Some(components) = self.tracer.components.get(before) {
                self.ended(components.total_ns());
            }
        }
    }
}

impl Both<'_> {
    /// A wakeup has taken so long. The first ones tell which are late.
    fn ended(&mut self, latency_ns: u64) {
        if self.latencies.len() as u64 >= FIRST {
            return;
        }
        self.latencies.push(latency_ns);
        if self.latencies.len() as u64 == FIRST {
            self.latencies.sort_unstable();
            let late = self.latencies[self.latencies.len() * 9 / 10].max(self.least_late_ns);
            (self.tracer.keep_ns, self.witness.keep_ns) = (late, late);
            self.tracer.late.clear();
            // The tracer hears of the end of some only now.
            let tracer = &self.tracer;
            self.witness.retain(|truth| tracer.is_open(truth.task, truth.due));
        }
    }
}

/// Simulates `image`, and scores how attribution explains its late wakeups.
///
/// # Errors
///
/// If the kernel broke a rule, which means that the scenario does.
pub fn trial(image: &Image, trial: &Trial) -> Result<Score, Broken> {
    let both = Both {
        tracer: Tracepoints::new(image, trial.shown, trial.followed),
        witness: Witness::new(image, trial.shown.sched_entry, trial.followed),
        followed: trial.followed,
        latencies: Vec::new(),
        least_late_ns: trial.least_late_ns,
    };
    let mut simulation = Simulation::new(image, trial.seed, both);
    simulation.run_until(Until { samples: trial.wakeups, ns: LONGEST_NS })?;
    let Both { tracer, mut witness, .. } = simulation.into_watch();
    let wakeups = tracer.components.len() as u64;
    // Too few say nothing of what is usual.
    let enough = tracer.components.len() as u64 >= FIRST;
    let known = calibrated(image, trial, &tracer.components);
    let mut total = Score { wakeups, faults: witness.faults, ..Score::default() };
    tracer.with_decoder(|decoder| {
        for seen in tracer.late.iter().filter(|_| enough) {
            let due = seen.marks.due.0;
            let at = witness
                .truths
                .iter()
                .position(|truth| truth.due == due && truth.pid() == seen.task.pid);
            let Some(at) = at else {
                total.unmatched += 1;
                continue;
            };
            let truth = witness.truths.swap_remove(at);
            let wakeup = decoder.wakeup(seen);
            let decisions = decide(&Tuning::default(), &wakeup, &known);
            let one = score(image, &truth, &decisions);
            total.add(one, seen.lost > 0, trial.seed, image.rules.name);
        }
    });
    total.not_followed += tracer.not_followed.len() as u64;
    if enough {
        let is_accounted_for = |truth: &Truth| {
            truth.latency_ns() < tracer.keep_ns
                || tracer.is_open(truth.task, truth.due)
                || tracer.not_followed.contains(&(truth.task, truth.due))
        };
        let missing = witness.truths.iter().filter(|truth| !is_accounted_for(truth));
        total.unmatched += missing.count() as u64;
    }
    Ok(total)
}

/// What all wakeups of the run teach about each.
fn calibrated(image: &Image, trial: &Trial, components: &[Components]) -> Known {
    let of = |part: &dyn Fn(&Components) -> Option<u64>| {
        Distribution::of(components.iter().filter_map(part))
    };
    let shows = trial.shown.sched_entry;
    let table = ComponentTable {
        irq_latency: of(&|c| Some(c.irq_latency_ns)),
        handler_duration: of(&|c| Some(c.handler_duration_ns)),
        sched_latency: of(&|c| Some(c.sched_latency_ns)),
        sched_duration: shows.then(|| of(&|c| c.sched_duration_ns)),
    };
    let machine = Machine {
        idle_exit_ns: image.idle_states.iter().map(|state| state.exit_ns).max().unwrap_or(0),
        guest: image.sources.iter().any(|source| source.kind == SourceKind::Steal),
        ticks: image.tick_ns != 0,
    };
    calibrate(&table, machine, trial.followed == Followed::Probes)
}
