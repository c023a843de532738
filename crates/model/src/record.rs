//! The run record of a simulation: the same record as that of a measurement, in simulated time.

mod findings;

use wakescope_core::finding::Validity;
use wakescope_core::host::{Clock, Host, Idle, IdleState};
use wakescope_core::plan::{Plan, ProbePolicy, Rate, ScenarioPlan, Stimulus, WORST};
use wakescope_core::preemption::{Evidence, Model, Preemption};
use wakescope_core::recorder::{Recorder, Snapshot};
use wakescope_core::run::{Episode, LoadResult, Run, SCHEMA, State, Thread, TimeDomain};
use wakescope_core::units::SpanNs;

use crate::image::{Image, Op, TaskId};
use crate::rules::Rules;
use crate::scenario::{Scenario, TaskPolicy};
use crate::simulation::{Broken, Sample, Simulation, Until, Watch};

/// When the clock of a simulation starts. A record holds nothing that differs between repetitions.
const START: &str = "1970-01-01T00:00:00Z";

/// Writes the samples of each probe down.
pub struct Recording {
    /// Of each task of the image that is a probe, with the nanoseconds from expiry to expiry.
    recorders: Vec<Option<(Recorder, u64)>>,
}

impl Recording {
    /// Room for the samples of all probes.
    pub fn new(image: &Image) -> Self {
        let recorder = |period_ps: u64| (Recorder::new(WORST.into()), period_ps / 1_000);
        let recorders = image.tasks.iter().map(|task| task.period_ps.map(recorder)).collect();
        Self { recorders }
    }
}

impl Watch for Recording {
    const FOLLOWS: bool = false;

    fn sample(&mut self, sample: Sample) {
        if let Some((recorder, interval_ns)) = &self.recorders[sample.task.index()] {
            let (due, late) = (sample.expiry_ns, sample.latency_ns());
            recorder.record(due, late, sample.missed, *interval_ns);
        }
    }
}

impl Simulation<'_, Recording> {
    /// [`Self::run_until`], compiled in this crate: code of generic types is compiled where it is used,
    /// and the command is built for size.
    ///
    /// # Errors
    ///
    /// If the kernel broke a rule.
    #[inline(never)]
    pub fn record_until(&mut self, until: Until) -> Result<(), Broken> {
        self.run_until(until)
    }
}

/// A scenario that is simulated under one model from one seed.
#[derive(Clone, Copy, Debug)]
pub struct Experiment<'a> {
    /// What is simulated.
    pub scenario: &'a Scenario,
    /// The same, compiled for a model.
    pub image: &'a Image,
    /// Of everything left to chance.
    pub seed: u64,
    /// How many wakeups of all probes together are wanted.
    pub samples: u64,
}

/// How a simulation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All samples are there.
    Complete,
    /// The user ended it.
    Interrupted,
    /// The probes woke so seldom that there were too few samples after
    /// [`Experiment::longest_ns`].
    TooLong,
    /// No probe woke for [`MOST_STEPS`].
    TooManySteps,
}

impl Ending {
    /// Whether the simulation was ended for what it took, and not by the user.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::TooLong | Self::TooManySteps)
    }
}

/// So many steps of a simulation without a sample end it. The simplest ones take 1.2 s of CPU time, in a program that
/// is not optimised as a whole. Those of a task that does something else every microsecond are 40 simulated seconds,
/// in which even a slow probe has many periods.
pub const MOST_STEPS: u64 = 100_000_000;

impl Experiment<'_> {
    /// After so long, in simulated nanoseconds, an experiment ends whatever it has seen: ten times what
    /// its samples take if none is late, and a second.
    pub fn longest_ns(&self) -> u64 {
        let periods = self.probes().filter_map(|task| self.image.tasks[task.index()].period_ps);
        // Expiries in a picosecond, times 2^80: whole numbers, so that it is the same everywhere.
        let rate: u128 = periods.map(|period| (1_u128 << 80) / u128::from(period.max(1))).sum();
        let span_ps = (u128::from(self.samples) << 80).checked_div(rate).unwrap_or(0);
        u64::try_from(span_ps / 100).unwrap_or(u64::MAX).saturating_add(1_000_000_000)
    }

    /// The probes.
    pub fn probes(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.image.probes()
    }

    /// The first expiry to which a probe has not responded, though it was due before `end_ns`.
    pub fn unanswered<W: Watch>(&self, simulation: &Simulation<'_, W>, end_ns: u64) -> Option<u64> {
        let due = self.probes().filter_map(|probe| simulation.unanswered_ns(probe));
        due.min().filter(|&due| due < end_ns)
    }

    /// The record of a simulation that ended so.
    pub fn record(&self, simulation: &Simulation<'_, Recording>, ending: Ending) -> Run {
        let seen: Vec<(TaskId, Snapshot)> = self
            .probes()
            .filter_map(|task| {
                let (recorder, _) = simulation.watch().recorders[task.index()].as_ref()?;
                Some((task, recorder.snapshot()))
            })
            .collect();
        let plan = self.plan();
        let checksum = plan.scenario.as_ref().map_or("", |scenario| &scenario.checksum);
        let findings = findings::findings(self, simulation, &seen, ending);
        let mut run = Run {
            schema: SCHEMA.into(),
            id: format!("model-{checksum}-{}-{}", self.image.rules.name, self.seed),
            started: START.into(),
            duration_ns: simulation.now_ns(),
            time_domain: TimeDomain::Simulated,
            seed: self.seed,
            state: if ending == Ending::Complete { State::Complete } else { State::Interrupted },
            host: self.host(),
            validity: Validity::of(findings),
            load: self.loads(simulation),
            worst: self.worst(&seen),
            threads: seen.into_iter().map(|(task, seen)| self.thread(task, seen)).collect(),
            plan,
            ..Default::default()
        };
        run.summarize();
        run
    }

    /// Where a probe runs, if that is always the same CPU.
    fn cpu(&self, probe: TaskId) -> Option<u32> {
        let only = (self.image.cpus == 1).then_some(0);
        self.image.tasks[probe.index()].cpu.map(|cpu| u32::from(cpu.0)).or(only)
    }

    fn thread(&self, probe: TaskId, seen: Snapshot) -> Thread {
        Thread {
            cpu: self.cpu(probe),
            missed: seen.missed,
            woken: seen.woken,
            expiries: seen.expiries,
            maxima: Some(seen.maxima),
            ..Default::default()
        }
    }

    /// The latest wakeups of all probes, worst first.
    fn worst(&self, seen: &[(TaskId, Snapshot)]) -> Vec<Episode> {
        let of_probe = |&(probe, ref seen): &(TaskId, Snapshot)| {
            let cpu = self.cpu(probe);
            let episode = move |late: &wakescope_core::recorder::Late| Episode {
                cpu,
                expiry_ns: late.due_ns,
                wakeup_latency_ns: late.late_ns,
                missed: late.missed,
                ..Default::default()
            };
            seen.worst.iter().map(episode).collect::<Vec<_>>()
        };
        let mut all: Vec<Episode> = seen.iter().flat_map(of_probe).collect();
        all.sort_by_key(|e| (std::cmp::Reverse(e.wakeup_latency_ns), e.expiry_ns));
        all.truncate(WORST.into());
        all
    }

    /// The work of each task that counts it.
    fn loads<W: Watch>(&self, simulation: &Simulation<'_, W>) -> Vec<LoadResult> {
        let seconds = simulation.now_ns() as f64 / 1e9;
        let load = |(task, name): (TaskId, &str)| {
            let work = simulation.work(task);
            LoadResult {
                name: name.into(),
                work,
                unit: "units".into(),
                per_second: if seconds > 0.0 { work as f64 / seconds } else { 0.0 },
                alive: true,
                ..Default::default()
            }
        };
        self.working().map(load).collect()
    }

    /// Tasks that count units of work.
    fn working(&self) -> impl Iterator<Item = (TaskId, &str)> {
        self.image.tasks.iter().enumerate().filter_map(|(index, task)| {
            let works = self.image.codes[task.code.index()].ops.contains(&Op::Work);
            works.then(|| (TaskId::at(index), task.name.as_str()))
        })
    }

    fn plan(&self) -> Plan {
        let all = || (0..u32::from(self.image.cpus)).collect();
        let mut cpus: Vec<u32> =
            self.probes().map(|probe| self.cpu(probe)).collect::<Option<_>>().unwrap_or_else(all);
        cpus.sort_unstable();
        cpus.dedup();
        let count = (self.probes().count() as u64).max(1);
        let probe = self.probes().next().map(|probe| &self.image.tasks[probe.index()]);
        let (policy, priority) = schedule(probe.map_or(TaskPolicy::default(), |task| task.policy));
        let period_ps = probe.and_then(|task| task.period_ps).unwrap_or(0);
        let interval = SpanNs(period_ps / 1_000);
        // Its grid has no whole number of nanoseconds.
        let is_rtc = period_ps % 1_000 != 0 && Rate::of(interval).is_some();
        Plan {
            stimulus: if is_rtc { Stimulus::RtcGrid } else { Stimulus::Timer },
            interval_ns: interval.0,
            samples: Some(self.samples.div_ceil(count)),
            policy,
            priority,
            policy_required: true,
            cpus,
            load: self.scenario.loads().map(str::to_owned).collect(),
            scenario: Some(ScenarioPlan {
                name: self.scenario.name.clone(),
                checksum: self.scenario.checksum(),
                rules: self.image.rules.name.into(),
            }),
            worst: WORST.into(),
            ..Default::default()
        }
    }

    /// The simulated machine. It has no release: what a kernel has beside its rules is not modelled.
    fn host(&self) -> Host {
        let cpus: Vec<u32> = (0..u32::from(self.image.cpus)).collect();
        let state = |state: &crate::scenario::IdleState| IdleState {
            name: state.name.clone(),
            exit_latency_ns: state.exit_ns,
            disabled: false,
        };
        Host {
            release: "simulated".into(),
            version: format!("rules {}", self.image.rules.name),
            arch: "simulated".into(),
            preemption: preemption(self.image.rules),
            cpus_online: cpus.clone(),
            cpus_allowed: cpus,
            clock: Clock { resolution_ns: 1, ..Clock::default() },
            idle: Idle {
                states: self.image.idle_states.iter().map(state).collect(),
                ..Idle::default()
            },
            ..Host::default()
        }
    }
}

/// A policy as a plan holds it.
fn schedule(policy: TaskPolicy) -> (ProbePolicy, Option<u8>) {
    match policy {
        TaskPolicy::Other(_) => (ProbePolicy::Other, None),
        TaskPolicy::Fifo(priority) => (ProbePolicy::Fifo, Some(priority)),
        TaskPolicy::RoundRobin(priority) => (ProbePolicy::Rr, Some(priority)),
        TaskPolicy::Deadline(_) => (ProbePolicy::Deadline, None),
    }
}

/// The model of today's kernels whose rules these are. Lock breaking is no such model, so `both` is as
/// `full`.
fn preemption(rules: Rules) -> Preemption {
    let model = match rules.name {
        "none" => Model::None,
        "voluntary" => Model::Voluntary,
        "full" | "both" => Model::Full,
        "lazy" => Model::Lazy,
        "rt" => Model::Rt,
        _ => Model::Unknown,
    };
    Preemption {
        model,
        because: format!("the simulated kernel follows the rules `{}`", rules.name),
        evidence: vec![Evidence {
            source: format!("rules `{}`", rules.name),
            says: rules.about.into(),
        }],
        ..Preemption::default()
    }
}

impl Scenario {
    /// A checksum of all that the scenario holds (FNV-1a), 16 digits. It tells scenarios of good faith
    /// apart; comments, the order of keys in a file and published figures do not matter.
    pub fn checksum(&self) -> String {
        let simulated = Self { published: Vec::new(), measured: Vec::new(), ..self.clone() };
        let add = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        format!("{:016x}", simulated.to_toml().bytes().fold(0xcbf2_9ce4_8422_2325, add))
    }

    /// Names of the tasks that are no probes, each once.
    pub fn loads(&self) -> impl Iterator<Item = &str> {
        let is_load = |task: &&crate::scenario::ScenarioTask| {
            matches!(task.does, crate::scenario::Does::Path(_))
        };
        self.tasks.iter().filter(is_load).map(|task| task.name.as_str())
    }
}

#[cfg(test)]
mod tests;
