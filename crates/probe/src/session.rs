//! A measurement from beginning to end: `begin`, look at it while it lasts, `end`.

use std::fmt;
use std::io;

use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::host::Host;
use wakescope_core::limit::{Limit, Outcome};
use wakescope_core::plan::{IdleStates, Plan, Policy};
use wakescope_core::recorder::Snapshot;
use wakescope_core::run::{Episode, Run, SCHEMA, State, Thread, TimeDomain};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::validity::{Observed, ThreadObserved, findings};
use wakescope_sys::pm_qos::WakeLimit;
use wakescope_sys::sched::{self, Schedule};
use wakescope_sys::{clock, memory};

use crate::claim::{Claim, claim};
use crate::load::{Load, LoadError, finish_all};
use crate::prober::{Prober, Ready, Report, Task, Times};
use crate::stimulus::timer::Ending;
use crate::surroundings::Surroundings;

/// Why a measurement could not begin.
#[derive(Debug)]
pub enum MeasureError {
    /// The schedule asked for is refused.
    Schedule(Schedule, io::Error),
    /// A probe could not be started on a CPU.
    Cpu(u32, io::Error),
    /// The interval is shorter than one wakeup takes: interval and that time.
    Interval(SpanNs, SpanNs),
    /// Idle states cannot be limited.
    IdleStates(io::Error),
    /// A load could not be started.
    Load(LoadError),
    /// The user ended it before it began.
    Ended,
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule(schedule, e) => {
                write!(f, "cannot run the probe under {}: {e}", words(*schedule))
            }
            Self::Cpu(cpu, e) => write!(f, "cannot run a probe on CPU {cpu}: {e}"),
            Self::Interval(interval, turnaround) => write!(
                f,
                "an interval of {interval} cannot be kept: one sleep and wakeup takes {turnaround} here"
            ),
            Self::IdleStates(e) => write!(f, "cannot limit idle states: /dev/cpu_dma_latency: {e}"),
            Self::Load(e) => e.fmt(f),
            Self::Ended => write!(f, "ended before the first wakeup was measured"),
        }
    }
}

impl std::error::Error for MeasureError {}

/// A name for the run that is to be made.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// A name that no other run has.
    pub id: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Of everything left to chance.
    pub seed: u64,
}

/// A measurement that goes on.
pub struct Session {
    identity: Identity,
    plan: Plan,
    host: Host,
    host_findings: Vec<Finding>,
    schedule: Schedule,
    policy_refused: Option<String>,
    memory_refused: Option<String>,
    loads: Vec<Running>,
    probes: Vec<Probe>,
    origin: MonoNs,
    before: Surroundings,
    claim: Claim,
    _idle: Option<WakeLimit>,
}

/// A prober and what is known of it so far.
struct Probe {
    prober: Prober,
    ready: Ready,
    phase: SpanNs,
    /// The last consistent copy of its statistics.
    seen: Snapshot,
    /// Another schedule than the one asked for, if it was ever found under one.
    other_schedule: Option<String>,
}

/// A load that runs beside the measurement.
struct Running {
    load: Load,
    /// The longest time without work, so far.
    stalled: SpanNs,
}

/// How a measurement stands, for display.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Time since the first expiry was due.
    pub elapsed: SpanNs,
    /// Time that it will take in all, if nothing is late.
    pub total: SpanNs,
    /// One entry per probe.
    pub cpus: Vec<CpuProgress>,
}

/// How one probe stands.
#[derive(Clone, Debug)]
pub struct CpuProgress {
    /// Its CPU.
    pub cpu: u32,
    /// The last wakeup's lateness.
    pub now_ns: u64,
    /// The largest lateness since the last look.
    pub recent_max_ns: u64,
    /// The statistics so far.
    pub seen: Snapshot,
}

/// Time for all probe threads to reach their first sleep after they are told when to begin.
const SETTLE: SpanNs = SpanNs(20_000_000);

/// Samples that a probe may be ahead of the file they are saved to: at 20,000 a second, 3 s.
const RING_SLOTS: usize = 1 << 16;

/// How long loads may take to be set up: making their files takes a slow flash disk a while.
const LOAD_PATIENCE: SpanNs = SpanNs(120_000_000_000);

/// A load that did nothing for so long has been starved. It reports twice a second.
const STALL: SpanNs = SpanNs(2_000_000_000);

impl Session {
    /// Begins a measurement under `loads`. `pause` waits for a time and says whether the user ended
    /// it meanwhile.
    ///
    /// Every CPU of the plan must be one that this process may use.
    pub fn begin(
        identity: Identity,
        mut plan: Plan,
        host: Host,
        host_findings: Vec<Finding>,
        loads: Vec<Load>,
        pause: &mut dyn FnMut(SpanNs) -> bool,
    ) -> Result<Self, MeasureError> {
        let mut loads = settle_loads(loads, SpanNs(plan.warmup_ns), pause)?;
        let claim = claim(&plan.cpus);
        let idle = match plan.idle_states {
            IdleStates::AsIs => None,
            IdleStates::Shallow => Some(WakeLimit::request(0).map_err(MeasureError::IdleStates)?),
        };
        let memory_refused = memory::lock_all().err().map(|e| e.to_string());
        let (schedule, policy_refused) = settle_schedule(&mut plan)?;
        let probes = start_probes(&plan, schedule)?;
        let before = Surroundings::now();
        let warmup = clock::now().after(SETTLE);
        let seed_phase = SpanNs(scatter(identity.seed) % plan.interval_ns);
        let origin = warmup.after(SpanNs(plan.warmup_ns)).after(seed_phase);
        for probe in &probes {
            probe.prober.go(Times {
                warmup,
                origin,
                phase: probe.phase,
                interval: SpanNs(plan.interval_ns),
                expiries: plan.duration_ns.map_or(u64::MAX, |d| d.div_ceil(plan.interval_ns)),
                wakeups: plan.samples.unwrap_or(u64::MAX),
            });
        }
        // The loads' window begins with the run's.
        if pause(origin.since(clock::now())) {
            return Err(MeasureError::Ended);
        }
        loads.iter_mut().for_each(|running| running.load.mark());
        Ok(Self {
            identity,
            plan,
            host,
            host_findings,
            schedule,
            policy_refused,
            memory_refused,
            loads,
            probes,
            origin,
            before,
            claim,
            _idle: idle,
        })
    }

    /// The plan as it is carried out: where a default could not be had, with what is done instead.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether every probe has done what was asked.
    pub fn is_finished(&self) -> bool {
        self.probes.iter().all(|p| p.prober.is_finished())
    }

    /// When the measurement will be over, if nothing is late.
    pub fn planned_end(&self) -> MonoNs {
        self.origin.after(self.total())
    }

    fn total(&self) -> SpanNs {
        let samples = self.plan.samples.unwrap_or(0);
        SpanNs(self.plan.duration_ns.unwrap_or(samples.saturating_mul(self.plan.interval_ns)))
    }

    /// Looks whether everything is as it should be. To be called about once a second.
    pub fn watch(&mut self) {
        let wanted = self.schedule;
        for probe in &mut self.probes {
            let odd = probe.prober.schedule().filter(|&s| !same(s, wanted));
            probe.other_schedule = probe.other_schedule.take().or(odd.map(words));
        }
        for running in &mut self.loads {
            let status = running.load.status();
            let idle = status.work_grew_at.map_or(SpanNs(0), |at| clock::now().since(at));
            if status.alive && running.load.spec().counts_work() {
                running.stalled = running.stalled.max(idle);
            }
        }
    }

    /// How the measurement stands.
    pub fn progress(&mut self) -> Progress {
        self.look();
        let cpus = self.probes.iter().map(|p| {
            let (now_ns, recent_max_ns) = p.prober.recent();
            CpuProgress { cpu: p.prober.cpu, now_ns, recent_max_ns, seen: p.seen.clone() }
        });
        Progress {
            elapsed: clock::now().since(self.origin),
            total: self.total(),
            cpus: cpus.collect(),
        }
    }

    /// The run so far, as a record that stands by itself should this process be killed.
    pub fn checkpoint(&mut self) -> Run {
        self.look();
        let mut all = self.host_findings.clone();
        all.push(Finding::new(
            "unfinished",
            Severity::Warning,
            "the run was not finished when this was written; its end, and what was seen then, is missing".into(),
            "measure again if it was killed; otherwise wait",
        ));
        let mut run = self.run(State::Running, all);
        run.duration_ns =
            run.duration_ns.max(clock::now().since(self.origin).0.min(self.total().0));
        run
    }

    /// Hands the samples taken since the last call to `take`: CPU, when due, how late.
    pub fn drain(&self, take: &mut dyn FnMut(u32, u64, u64)) {
        for probe in &self.probes {
            // As many as there is room for: a probe that fills the queue faster than it is
            // emptied cannot hold the caller here.
            let Some(ring) = probe.prober.ring() else { continue };
            for sample in std::iter::from_fn(|| ring.pop()).take(RING_SLOTS) {
                take(probe.prober.cpu, sample.due_ns, sample.late_ns);
            }
        }
    }

    /// Tells the probes to end; [`Session::end`] waits for them.
    pub fn stop(&self) {
        self.probes.iter().for_each(|p| p.prober.stop());
    }

    /// Ends the measurement, now if need be: then `ended_by` says why.
    /// `not_saved` says why files beside the record are not whole, if so.
    pub fn end(mut self, ended_by: Option<String>, not_saved: Option<String>) -> Run {
        self.watch();
        self.stop();
        let change = Surroundings::now();
        let clocksource = (self.before.clocksource.clone(), change.clocksource.clone());
        let change = change.since(&self.before, &self.plan.cpus);

        let mut ended = Vec::new();
        for probe in std::mem::take(&mut self.probes) {
            let lost = probe.prober.ring().map_or(0, |r| r.lost());
            let cpu = probe.prober.cpu;
            let (seen, report) = probe.prober.end();
            ended.push(Ended {
                cpu,
                ready: probe.ready,
                phase: probe.phase,
                seen,
                lost,
                report,
                other_schedule: probe.other_schedule,
            });
        }
        let stalled = |r: &Running| (r.load.spec().to_string(), r.stalled.0);
        let stalls = self.loads.iter().filter(|r| r.stalled > STALL).map(stalled).collect();
        let loads = std::mem::take(&mut self.loads).into_iter().map(|running| running.load);
        let loads = finish_all(loads.collect());
        let observed = Observed {
            threads: ended.iter().map(|e| e.observed(self.schedule)).collect(),
            policy_refused: self.policy_refused.take(),
            memory_refused: self.memory_refused.take(),
            steal_ns: change.steal.0,
            slept_ns: change.slept.0,
            clock_drift_ppm: change.clock_drift_ppm,
            clocksource,
            quota_stops: change.quota_stops,
            quota_stopped_ns: change.quota_stopped.0,
            also_measured: self.claim.contested(),
            loads,
            stalls,
            ended_by,
            not_saved,
            rt_share_ppm: rt_share_ppm(&self.host),
        };
        let mut all = findings(&self.plan, &observed);
        all.append(&mut self.host_findings);
        let lost = ended.iter().filter(|e| e.cpu_lost_at_ns().is_some()).count();
        let early = observed.ended_by.is_some() || lost == ended.len();
        let mut run =
            self.run_of(&ended, if early { State::Interrupted } else { State::Complete }, all);
        run.load = observed.loads;
        // What a CPU would have shown after it went away is not known.
        run.limits = judge(&run, !early && lost == 0);
        run
    }

    fn look(&mut self) {
        for probe in &mut self.probes {
            if let Some(seen) = probe.prober.snapshot() {
                probe.seen = seen;
            }
        }
    }

    fn run(&self, state: State, all: Vec<Finding>) -> Run {
        let so_far: Vec<Ended> = self.probes.iter().map(Probe::so_far).collect();
        self.run_of(&so_far, state, all)
    }

    fn run_of(&self, ended: &[Ended], state: State, all: Vec<Finding>) -> Run {
        let interval_ns = self.plan.interval_ns;
        let measured = |e: &Ended| e.phase.0 + e.seen.expiries.count.saturating_mul(interval_ns);
        let mut run = Run {
            schema: SCHEMA.into(),
            id: self.identity.id.clone(),
            started: self.identity.started.clone(),
            duration_ns: ended.iter().map(measured).max().unwrap_or(0).min(self.total().0),
            origin_ns: self.origin.0,
            time_domain: TimeDomain::Real,
            seed: self.identity.seed,
            state,
            host: self.host.clone(),
            plan: self.plan.clone(),
            validity: Validity::of(all),
            limits: Vec::new(),
            threads: ended.iter().map(Ended::thread).collect(),
            load: Vec::new(),
            worst: worst(ended, self.plan.worst),
            summary: Default::default(),
            other: Default::default(),
        };
        run.summarize();
        run
    }
}

/// A probe that has ended, or is looked at as if it had.
struct Ended {
    cpu: u32,
    ready: Ready,
    phase: SpanNs,
    seen: Snapshot,
    lost: u64,
    report: Option<Report>,
    other_schedule: Option<String>,
}

impl Probe {
    fn so_far(&self) -> Ended {
        Ended {
            cpu: self.prober.cpu,
            ready: self.ready,
            phase: self.phase,
            seen: self.seen.clone(),
            lost: self.prober.ring().map_or(0, |r| r.lost()),
            report: None,
            other_schedule: None,
        }
    }
}

impl Ended {
    fn home(&self) -> Option<u32> {
        self.ready.pinned.then_some(self.cpu)
    }

    fn page_faults(&self) -> u64 {
        self.report.as_ref().map_or(0, |r| r.faults.minor + r.faults.major)
    }

    fn cpu_lost_at_ns(&self) -> Option<u64> {
        match self.report.as_ref()?.ending {
            Ending::CpuLost(due) => Some(due.0),
            Ending::Done | Ending::Stopped => None,
        }
    }

    fn thread(&self) -> Thread {
        Thread {
            cpu: self.home(),
            missed: self.seen.missed,
            lost: self.lost,
            migrated: self.seen.migrated,
            page_faults: self.page_faults(),
            woken: self.seen.woken.clone(),
            expiries: self.seen.expiries.clone(),
        }
    }

    fn observed(&self, wanted: Schedule) -> ThreadObserved {
        let report = self.report.as_ref();
        let at_end = report.and_then(|r| r.schedule.as_ref().ok().copied());
        let share = |r: &Report| r.cpu_time.0.saturating_mul(1_000_000).checked_div(r.wall_time.0);
        ThreadObserved {
            cpu: self.cpu,
            pinned: self.ready.pinned,
            woken: self.seen.woken.count,
            missed: self.seen.missed,
            migrated: self.seen.migrated,
            early: self.seen.early,
            lost: self.lost,
            minor_faults: report.map_or(0, |r| r.faults.minor),
            major_faults: report.map_or(0, |r| r.faults.major),
            other_schedule: self
                .other_schedule
                .clone()
                .or(at_end.filter(|&s| !same(s, wanted)).map(words)),
            slack_ns: report.and_then(|r| r.slack.as_ref().ok()).map_or(0, |s| s.0),
            cpu_share_ppm: report.and_then(share).unwrap_or(0),
            cpu_lost_at_ns: self.cpu_lost_at_ns(),
            failure: report.is_none().then(|| "its thread died".into()),
        }
    }
}

/// Waits until the loads are set up, and lets them run alone for a while.
fn settle_loads(
    mut loads: Vec<Load>,
    alone: SpanNs,
    pause: &mut dyn FnMut(SpanNs) -> bool,
) -> Result<Vec<Running>, MeasureError> {
    let deadline = clock::now().after(LOAD_PATIENCE);
    for load in &mut loads {
        // In short waits, so that the user can end it meanwhile.
        while let Err(e) = load.wait_ready(SpanNs(50_000_000)) {
            let waiting = matches!(e, LoadError::NotReady { .. }) && clock::now() < deadline;
            if !waiting {
                return Err(MeasureError::Load(e));
            }
            if pause(SpanNs(0)) {
                return Err(MeasureError::Ended);
            }
        }
    }
    if !loads.is_empty() && pause(alone) {
        return Err(MeasureError::Ended);
    }
    Ok(loads.into_iter().map(|load| Running { load, stalled: SpanNs(0) }).collect())
}

/// The schedule that the plan asks for, or the best that this user may have where the plan only
/// states a default; then the plan is changed to say so. With it, why the default was refused.
fn settle_schedule(plan: &mut Plan) -> Result<(Schedule, Option<String>), MeasureError> {
    let wanted = schedule_of(plan);
    let Err(refusal) = try_schedule(wanted) else { return Ok((wanted, None)) };
    if plan.policy_required {
        return Err(MeasureError::Schedule(wanted, refusal));
    }
    // Audio users, for one, are often allowed real-time priorities up to some limit.
    let limit = sched::rt_priority_limit().unwrap_or(0);
    if let Some(priority) = u8::try_from(limit).ok().filter(|p| (1..=99).contains(p)) {
        let lower = Schedule::Fifo { priority };
        if try_schedule(lower).is_ok() {
            plan.priority = Some(priority);
            return Ok((lower, None));
        }
    }
    (plan.policy, plan.priority) = (Policy::Other, None);
    Ok((schedule_of(plan), Some(format!("{}: {refusal}", words(wanted)))))
}

/// Whether this process may use `schedule`, tried on a thread that ends at once.
fn try_schedule(schedule: Schedule) -> io::Result<()> {
    std::thread::scope(|scope| scope.spawn(|| sched::set_schedule(schedule)).join())
        .unwrap_or_else(|_| Err(io::Error::other("the thread that tried it died")))
}

fn schedule_of(plan: &Plan) -> Schedule {
    let priority = plan.priority.unwrap_or(1);
    match plan.policy {
        Policy::Other => Schedule::Other { nice: 0 },
        Policy::Fifo => Schedule::Fifo { priority },
        Policy::Rr => Schedule::Rr { priority },
        // Half of the CPU: far more than a wakeup takes, so that the budget is never what makes
        // one late, and little enough to be admitted beside other deadline tasks.
        Policy::Deadline => Schedule::Deadline {
            runtime: SpanNs((plan.interval_ns / 2).max(1_024)),
            period: SpanNs(plan.interval_ns),
        },
    }
}

fn same(a: Schedule, b: Schedule) -> bool {
    match (a, b) {
        // The nice value is whatever this process was started with.
        (Schedule::Other { .. }, Schedule::Other { .. }) => true,
        _ => a == b,
    }
}

/// A schedule as people say it.
pub fn words(schedule: Schedule) -> String {
    match schedule {
        Schedule::Other { .. } => "SCHED_OTHER".into(),
        Schedule::Idle => "SCHED_IDLE".into(),
        Schedule::Fifo { priority } => format!("SCHED_FIFO {priority}"),
        Schedule::Rr { priority } => format!("SCHED_RR {priority}"),
        Schedule::Deadline { runtime, period } => format!("SCHED_DEADLINE {runtime} of {period}"),
    }
}

/// Starts a probe per CPU, all prepared and waiting.
fn start_probes(plan: &Plan, schedule: Schedule) -> Result<Vec<Probe>, MeasureError> {
    let ring_slots = if plan.save_samples { RING_SLOTS } else { 0 };
    let task = |cpu| Task { cpu, schedule, worst: plan.worst, ring_slots };
    let started: Vec<(u32, io::Result<Prober>)> =
        plan.cpus.iter().map(|&cpu| (cpu, Prober::spawn(task(cpu)))).collect();
    let count = plan.cpus.len().max(1) as u64;
    let mut probes = Vec::new();
    for (rank, (cpu, prober)) in (0_u64..).zip(started) {
        let prober = prober.map_err(|e| MeasureError::Cpu(cpu, e))?;
        let ready = prober.wait_ready().map_err(|e| MeasureError::Cpu(cpu, e))?;
        // Expiries of different CPUs are spread over the interval: if all came at once they would
        // meet at the same locks, and the probes would measure each other.
        let phase = SpanNs(plan.interval_ns * rank / count);
        probes.push(Probe {
            prober,
            ready,
            phase,
            seen: Snapshot::default(),
            other_schedule: None,
        });
    }
    // Of the fastest CPU: one that is held up just now says nothing about what is possible.
    let turnaround = probes.iter().map(|p| p.ready.turnaround).min().unwrap_or_default();
    let interval = SpanNs(plan.interval_ns);
    if interval < turnaround {
        Err(MeasureError::Interval(interval, turnaround))
    } else {
        Ok(probes)
    }
}

/// Where real-time tasks are throttled, the share of each period that they get.
fn rt_share_ppm(host: &Host) -> Option<u64> {
    if host.rt.fair_server == Some(true) {
        return None;
    }
    let (runtime, period) = (host.rt.runtime_ns?, host.rt.period_ns?);
    runtime.saturating_mul(1_000_000).checked_div(period).filter(|&share| share < 1_000_000)
}

fn worst(ended: &[Ended], keep: usize) -> Vec<Episode> {
    let mut all: Vec<Episode> = ended
        .iter()
        .flat_map(|e| {
            e.seen.worst.iter().map(|w| Episode {
                cpu: e.home(),
                expiry_ns: w.due_ns,
                wakeup_latency_ns: w.late_ns,
                missed: w.missed,
                ..Default::default()
            })
        })
        .collect();
    all.sort_by_key(|e| (std::cmp::Reverse(e.wakeup_latency_ns), e.expiry_ns));
    all.truncate(keep);
    all
}

fn judge(run: &Run, complete: bool) -> Vec<wakescope_core::limit::Judgement> {
    let expiries = run.expiries();
    run.plan
        .fail_above
        .iter()
        .filter_map(|text| text.parse::<Limit>().ok())
        .map(|limit| limit.judge(&expiries, run.validity.verdict, complete))
        .collect()
}

/// How the run stands to all of its limits: the worst of the judgements.
pub fn outcome(run: &Run) -> Outcome {
    run.limits.iter().map(|j| j.outcome).max().unwrap_or(Outcome::Pass)
}

/// Spreads a seed over all 64 bits (the finalizer of SplitMix64, Steele et al., OOPSLA 2014).
fn scatter(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
