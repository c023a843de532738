//! A scenario, simulated, traced, explained and compared with the truth.

use wakescope_attribution::{Machine, Tuning, calibrate, components, decide, irq_latency_ns};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{ComponentTable, Components, Known, Marks};
use wakescope_model::image::SourceKind;
use wakescope_model::simulation::{Broken, Sample, Until};
use wakescope_model::{Image, Simulation};

use crate::both::{Both, Listener};
use crate::score::{Score, score};
use crate::tracepoints::{Followed, Shown};
use crate::truth::Truth;

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

/// Finds out from the first wakeups which are late.
struct Threshold {
    followed: Followed,
    latencies: Vec<u64>,
    least_late_ns: u64,
}

impl Listener for Threshold {
    fn sample(both: &mut Both<'_, Self>, sample: Sample) {
        if both.listener.followed == Followed::Probes {
            both.ended(sample.latency_ns());
        }
    }

    fn happened(both: &mut Both<'_, Self>, known: usize) {
        if both.listener.followed == Followed::Threads {
            if let Some(marks) = both.tracer.ended.get(known) {
                both.ended(components(marks).total_ns());
            }
        }
    }
}

impl Both<'_, Threshold> {
    /// A wakeup has taken so long.
    fn ended(&mut self, latency_ns: u64) {
        let Threshold { latencies, least_late_ns, .. } = &mut self.listener;
        if latencies.len() as u64 >= FIRST {
            return;
        }
        latencies.push(latency_ns);
        if latencies.len() as u64 == FIRST {
            latencies.sort_unstable();
            let late_ns = latencies[latencies.len() * 9 / 10].max(*least_late_ns);
            self.keep(late_ns);
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
    let Trial { followed, least_late_ns, .. } = *trial;
    let threshold = Threshold { followed, latencies: Vec::new(), least_late_ns };
    let both = Both::new(image, trial.shown, followed, threshold);
    let mut simulation = Simulation::new(image, trial.seed, both);
    simulation.run_until(Until { samples: trial.wakeups, ns: LONGEST_NS })?;
    let Both { tracer, mut witness, .. } = simulation.into_watch();
    let wakeups = tracer.ended.len() as u64;
    // Too few say nothing of what is usual.
    let enough = tracer.ended.len() as u64 >= FIRST;
    let known = calibrated(image, trial, &tracer.ended);
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
fn calibrated(image: &Image, trial: &Trial, ended: &[Marks]) -> Known {
    let parts: Vec<Components> = ended.iter().map(components).collect();
    let of =
        |part: &dyn Fn(&Components) -> Option<u64>| Distribution::of(parts.iter().filter_map(part));
    let shows = trial.shown.sched_entry;
    let table = ComponentTable {
        irq_latency: Distribution::of(ended.iter().filter_map(irq_latency_ns)),
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
