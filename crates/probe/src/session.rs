//! A measurement by probes of this process, one for each CPU.

use std::io;
use std::path::Path;

use wakescope_core::audio::Audio;
use wakescope_core::finding::{Finding, Severity};
use wakescope_core::host::Host;
use wakescope_core::line::{GpioLines, Line};
use wakescope_core::plan::{Between, GAP_FROM_NS, IdleStates, LinePlan, Plan, ProbePolicy};
use wakescope_core::random::Random;
use wakescope_core::recorder::Snapshot;
use wakescope_core::ring::{Ring, Sample};
use wakescope_core::run::{Run, State};
use wakescope_core::sound_card::SoundCard;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::validity::{LeftOut, Observed, findings};
use wakescope_sys::memory::SteadyPages;
use wakescope_sys::pm_qos::WakeLimit;
use wakescope_sys::sched::Schedule;
use wakescope_sys::{clock, memory};

use crate::admission::{self, Refusal};
use crate::card::{Card, CardError};
use crate::driver::Waited;
use crate::edges::{AnyLine, EdgeLine};
use crate::line::{LineError, Port};
use crate::load::{Load, SetUp, abandon_all, await_set_up, finish_all, name_in};
use crate::measured_cpus::{MeasuredCpus, announce};
use crate::measurement::{
    CpuProgress, Identity, Measurement, Progress, Request, SampleSink, SavedSample,
};
use crate::observer::Observer;
use crate::prober::{ProbePlan, Prober, Ready, Times};
use crate::schedule::{same, schedule_of, schedule_of_waker, settle_schedule, words};
use crate::stimulus::availability;
use crate::stimulus::channel::sysv_semaphore::remove_leftovers;
use crate::stimulus::line::LineSeen;
use crate::stimulus::waker::WakerPlace;
use crate::surroundings::Surroundings;

mod error;
mod following;
mod record;

pub use error::MeasureError;
pub(crate) use following::Following;
pub use record::outcome;
use record::{Ended, judge};

/// Probes that measure.
pub(crate) struct Session {
    identity: Identity,
    plan: Plan,
    host: Host,
    host_findings: Vec<Finding>,
    schedule: Schedule,
    policy_refused: Option<String>,
    memory_refused: Option<String>,
    loads: Vec<Load>,
    left_out: Vec<LeftOut>,
    probes: Vec<Probe>,
    origin: MonoNs,
    before: Surroundings,
    line: Option<Line>,
    card: Option<SoundCard>,
    measured_cpus: MeasuredCpus,
    abandons_loads: bool,
    /// How often this process was stopped, and how long in all, at most.
    stops: (u64, SpanNs),
    _idle: Option<WakeLimit>,
    _pages: Option<SteadyPages>,
}

/// A prober and what is known of it so far.
struct Probe {
    prober: Prober,
    ready: Ready,
    phase: SpanNs,
    /// The last copy of its statistics.
    seen: Snapshot,
    /// That of its sound card, if it has one.
    audio: Option<Audio>,
    /// Another schedule than the one asked for, if it was ever found under one.
    other_schedule: Option<String>,
    /// The same of its waker.
    other_waker_schedule: Option<String>,
}

/// Time for all probe threads to reach their first sleep after they are told when to begin.
const SETTLE: SpanNs = SpanNs(20_000_000);

/// Samples that a probe may be ahead of the file they are saved to: at 20,000 a second, 3 s.
const RING_SLOTS: usize = 1 << 16;

/// Hands over what waits in `ring`.
fn drain(cpu: u32, ring: Option<&Ring>, sink: &mut dyn SampleSink) {
    let Some(ring) = ring else { return };
    // No more than there is room for: a probe that fills the queue faster than it is emptied
    // cannot hold the caller here.
    for sample in std::iter::from_fn(|| ring.pop()).take(RING_SLOTS) {
        let Sample { due_ns: expiry_ns, late_ns: wakeup_latency_ns } = sample;
        sink.add(SavedSample { cpu, expiry_ns, wakeup_latency_ns });
    }
}

impl Session {
    /// Begins a measurement under the loads of `request`. `pause` waits for a time. It says whether the
    /// user ended it meanwhile, and whether this process was stopped when the time was over. `observer`
    /// gets to know each probe before anything is measured.
    pub(crate) fn begin(
        request: Request,
        observer: &mut dyn Observer,
        pause: &mut dyn FnMut(SpanNs) -> Waited,
    ) -> Result<Self, MeasureError> {
        let Request { identity, mut plan, host, host_findings, loads, abandons_loads } = request;
        remove_leftovers();
        availability::check(&plan).map_err(|e| MeasureError::Stimulus(plan.stimulus, e))?;
        admission::check(&plan, &host)
            .map_err(|refusal| MeasureError::Deadline(schedule_of(&plan), refusal))?;
        let port = take_line(&plan).map_err(MeasureError::Line)?;
        let line = port.as_ref().map(|port| port.line().clone());
        let played_on = take_card(&mut plan).map_err(MeasureError::Card)?;
        let card = played_on.as_ref().map(|card| card.about.clone());
        let (mut loads, left_out) = settle_loads(loads, SpanNs(plan.warmup_ns), pause)?;
        name_in(&mut plan, loads.iter().map(Load::spec));
        let measured_cpus = announce(&plan.cpus);
        let idle = match plan.idle_states {
            IdleStates::AsIs => None,
            IdleStates::Shallow => Some(WakeLimit::request(0).map_err(MeasureError::IdleStates)?),
        };
        let (schedule, policy_refused) =
            settle_schedule(&mut plan).map_err(|(wanted, e)| MeasureError::Schedule(wanted, e))?;
        // Loads run by now, and keep the huge pages that they would have without being measured.
        let pages = SteadyPages::keep().ok();
        let probes = start_probes(&plan, &host, schedule, (port, played_on), observer)?;
        // All that the loop touches is there by now: code, stacks, recorders.
        let memory_refused = memory::lock_present().err().map(|e| e.to_string());
        let before = Surroundings::now();
        let warmup = clock::now().after(SETTLE);
        let seed_phase = SpanNs(Random::new(identity.seed).number() % plan.interval_ns.max(1));
        let origin = warmup.after(SpanNs(plan.warmup_ns)).after(seed_phase);
        observer.begin(origin).map_err(MeasureError::Observer)?;
        // Where there is no grid, time itself is the finest.
        let interval = SpanNs(plan.interval_ns.max(1));
        for probe in &probes {
            probe.prober.go(Times {
                warmup,
                origin,
                phase: probe.phase,
                interval,
                expiries: plan.duration_ns.map_or(u64::MAX, |d| plan.points_in(SpanNs(d))),
                wakeups: plan.samples.unwrap_or(u64::MAX),
            });
        }
        // The loads' window begins with the run's.
        let stops = match pause(origin.since(clock::now())) {
            Waited::InVain => (0, SpanNs(0)),
            // The probes were to begin meanwhile.
            Waited::Stopped => (1, clock::now().since(origin)),
            Waited::Asked(_) => return Err(MeasureError::Ended),
        };
        loads.iter_mut().for_each(Load::mark);
        Ok(Self {
            identity,
            plan,
            host,
            host_findings,
            schedule,
            policy_refused,
            memory_refused,
            loads,
            left_out,
            probes,
            origin,
            before,
            line,
            card,
            measured_cpus,
            abandons_loads,
            stops,
            _idle: idle,
            _pages: pages,
        })
    }

    fn total(&self) -> SpanNs {
        let samples = self.plan.samples.unwrap_or(0);
        SpanNs(self.plan.duration_ns.unwrap_or(samples.saturating_mul(self.plan.interval_ns)))
    }

    fn look(&mut self) {
        for probe in &mut self.probes {
            probe.seen = probe.prober.snapshot();
            probe.audio = probe.prober.audio();
        }
    }

    /// Adds to what is known of the line what its probe saw, and returns why it was lost, if it was.
    fn finish_line(&mut self, ended: &[Ended]) -> Option<String> {
        let line = self.line.as_mut()?;
        let seen = ended.iter().find_map(Ended::line)?;
        let LineSeen { unanswered, stray, left_out, own_wakeup, fault } = seen;
        (line.unanswered, line.stray, line.left_out) = (*unanswered, *stray, *left_out);
        line.own_wakeup = *own_wakeup;
        fault.clone()
    }

    fn record(&self, ended: Vec<Ended>, state: State, all: Vec<Finding>) -> Run {
        let times = (self.origin, clock::now().since(self.origin));
        let mut run = record::run(&self.identity, &self.plan, &self.host, times, ended, state, all);
        run.line.clone_from(&self.line);
        run.card.clone_from(&self.card);
        run
    }
}

impl Measurement for Session {
    /// Where a default of the plan could not be had, this says what is done instead.
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn is_finished(&mut self) -> bool {
        self.probes.iter().all(|p| p.prober.is_finished())
    }

    fn planned_end(&self) -> MonoNs {
        self.origin.after(self.total())
    }

    fn verify(&mut self) {
        let (wanted, of_waker) = (self.schedule, schedule_of_waker(&self.plan));
        for probe in &mut self.probes {
            let prober = &probe.prober;
            keep_other(&mut probe.other_schedule, prober.schedule(), wanted);
            keep_other(&mut probe.other_waker_schedule, prober.waker_schedule(), of_waker);
        }
        for load in &mut self.loads {
            // So that the pipe of its reports does not fill up.
            load.status();
        }
    }

    fn progress(&mut self, _: &dyn Observer) -> Progress {
        self.look();
        let cpus = self.probes.iter().map(|p| {
            let (now_ns, recent_max_ns) = p.prober.recent();
            CpuProgress { cpu: p.prober.cpu, now_ns, recent_max_ns, seen: p.seen.clone() }
        });
        Progress {
            elapsed: clock::now().since(self.origin),
            total: self.total(),
            cpus: cpus.collect(),
            followed: None,
        }
    }

    fn checkpoint(&mut self) -> Run {
        self.look();
        let mut all = self.host_findings.clone();
        all.push(Finding::new(
            "unfinished",
            Severity::Warning,
            "the run was unfinished when this record was written; its end, and findings made at \
             the end, are missing"
                .into(),
            "measure again if it was killed; otherwise wait until it ends",
        ));
        let so_far = self.probes.iter().map(Probe::so_far).collect();
        self.record(so_far, State::Running, all)
    }

    fn was_stopped(&mut self, span: SpanNs) {
        let (stops, in_all) = self.stops;
        self.stops = (stops + 1, SpanNs(in_all.0.saturating_add(span.0)));
    }

    fn drain(&self, sink: &mut dyn SampleSink) {
        for probe in &self.probes {
            drain(probe.prober.cpu, probe.prober.ring(), sink);
        }
    }

    fn end(mut self: Box<Self>, ended_by: Option<String>, sink: &mut dyn SampleSink) -> Run {
        self.verify();
        let now = clock::now();
        self.probes.iter().for_each(|p| p.prober.stop(now));
        let change = Surroundings::now();
        let clocksource = (self.before.clocksource.clone(), change.clocksource.clone());
        let change = change.since(&self.before, &self.plan.cpus);

        let wanted = (self.schedule, schedule_of_waker(&self.plan));
        let probes = std::mem::take(&mut self.probes);
        let mut ended: Vec<_> = probes.into_iter().map(|probe| probe.end(wanted, sink)).collect();
        let unsaved = sink.close();
        for probe in &mut ended {
            probe.lost += unsaved.lost.get(&probe.cpu).copied().unwrap_or(0);
        }
        let line_fault = self.finish_line(&ended);
        let end_loads = if self.abandons_loads { abandon_all } else { finish_all };
        let loads = end_loads(std::mem::take(&mut self.loads));
        let observed = Observed {
            threads: ended.iter().map(Ended::observed).collect(),
            policy_refused: self.policy_refused.take(),
            memory_refused: self.memory_refused.take(),
            steal_ns: change.steal.0,
            slept_ns: change.slept.0,
            stops: self.stops.0,
            stopped_ns: self.stops.1.0,
            clock_drift_ppm: change.clock_drift_ppm,
            clocksource,
            quota_stops: change.quota_stops,
            quota_stopped_ns: change.quota_stopped.0,
            also_measured: self.measured_cpus.shared(),
            unannounced: self.measured_cpus.unannounced(),
            loads,
            left_out: std::mem::take(&mut self.left_out),
            ended_by: ended_by.or_else(|| line_fault.clone()),
            line: self.line.clone(),
            line_fault,
            not_saved: unsaved.cause,
            rt_limit: self.host.rt.throttling(),
        };
        let mut all = findings(&self.plan, &observed);
        // What was seen in the run tells more than what was to be expected of the host.
        self.host_findings.retain(|expected| all.iter().all(|found| found.code != expected.code));
        all.append(&mut self.host_findings);
        let lost = ended.iter().filter(|e| e.is_lost()).count();
        let early = observed.ended_by.is_some() || lost == ended.len();
        let state = if early { State::Interrupted } else { State::Complete };
        let mut run = self.record(ended, state, all);
        run.load = observed.loads;
        run.limits = judge(&run);
        run
    }
}

impl Probe {
    /// Ends it. `wanted` are the schedules that it and its waker were to have.
    fn end(self, wanted: (Schedule, Schedule), sink: &mut dyn SampleSink) -> Ended {
        let Self { prober, ready, phase, mut other_schedule, mut other_waker_schedule, .. } = self;
        let cpu = prober.cpu;
        let past = prober.end();
        drain(cpu, past.ring(), sink);
        let lost = past.ring().map_or(0, Ring::lost);
        let (seen, audio, report) = (past.seen, past.audio, past.report);
        if let Some(report) = &report {
            keep_other(&mut other_schedule, report.schedule.as_ref().ok().copied(), wanted.0);
            keep_other(&mut other_waker_schedule, report.waker_schedule, wanted.1);
        }
        Ended { cpu, ready, phase, seen, audio, lost, report, other_schedule, other_waker_schedule }
    }

    fn so_far(&self) -> Ended {
        Ended {
            cpu: self.prober.cpu,
            ready: self.ready,
            phase: self.phase,
            seen: self.seen.clone(),
            audio: self.audio.clone(),
            lost: self.prober.ring().map_or(0, |r| r.lost()),
            report: None,
            other_schedule: None,
            other_waker_schedule: None,
        }
    }
}

/// Remembers in `other` that a thread was found under another schedule than `wanted`, the first time.
fn keep_other(other: &mut Option<String>, found: Option<Schedule>, wanted: Schedule) {
    let odd = found.filter(|&found| !same(found, wanted)).map(words);
    *other = other.take().or(odd);
}

/// Waits until the loads are set up, and lets them run alone for a while. Also tells what of them was
/// left out.
fn settle_loads(
    loads: Vec<Load>,
    alone: SpanNs,
    pause: &mut dyn FnMut(SpanNs) -> Waited,
) -> Result<(Vec<Load>, Vec<LeftOut>), MeasureError> {
    let mut has_ended = || matches!(pause(SpanNs(0)), Waited::Asked(_));
    let ready = await_set_up(loads, &mut has_ended).map_err(MeasureError::Load)?;
    let Some(SetUp { mut loads, left_out }) = ready else { return Err(MeasureError::Ended) };
    if loads.is_empty() {
        return Ok((Vec::new(), left_out));
    }
    let mark = || loads.iter_mut().for_each(Load::mark_alone);
    run_alone(alone, mark, pause)?;
    Ok((loads, left_out))
}

/// Marks the begin, the middle and the end of the time in which loads run alone: only where both halves are
/// alike is it known how fast the loads are by themselves. The probes start after the end.
fn run_alone(
    alone: SpanNs,
    mut mark: impl FnMut(),
    pause: &mut dyn FnMut(SpanNs) -> Waited,
) -> Result<(), MeasureError> {
    mark();
    for half in [SpanNs(alone.0 / 2), SpanNs(alone.0 - alone.0 / 2)] {
        if let Waited::Asked(_) = pause(half) {
            return Err(MeasureError::Ended);
        }
        mark();
    }
    Ok(())
}

/// Takes the line of the plan, if it has one, and finds out what answers there.
fn take_line(plan: &Plan) -> Result<Option<AnyLine>, LineError> {
    let Some(LinePlan { device, baud, answers_on }) = &plan.line else { return Ok(None) };
    if let Some(lines) = GpioLines::parse(device) {
        let mut edges = EdgeLine::open(lines)?;
        edges.greet()?;
        return Ok(Some(AnyLine::Edges(edges)));
    }
    let device = Path::new(device);
    let mut port = match answers_on {
        None => Port::open(device, *baud)?,
        Some(other) => Port::open_loopback(device, Path::new(other), *baud)?,
    };
    let (interval, byte) = (SpanNs(plan.interval_ns), SpanNs(port.line.transmission_ns / 2));
    if interval < byte {
        return Err(LineError::Interval(port.path.clone(), interval, byte));
    }
    port.greet()?;
    Ok(Some(AnyLine::Bytes(port)))
}

/// Takes the sound card of the plan, if it has one, and has the plan say what it can do.
fn take_card(plan: &mut Plan) -> Result<Option<Card>, CardError> {
    let Some(audio) = &mut plan.audio else { return Ok(None) };
    let Some(name) = audio.pcm else { return Ok(None) };
    if plan.cpus.len() > 1 {
        return Err(CardError::OneProbe(plan.cpus.len()));
    }
    let card = Card::open(name, SpanNs(audio.fragment_ns), audio.fragments)?;
    (audio.fragment_ns, plan.interval_ns) = (card.fragment.0, card.fragment.0);
    Ok(Some(card))
}

/// Starts a probe per CPU, all prepared and waiting. The first gets the line or the sound card, if there
/// is one.
fn start_probes(
    plan: &Plan,
    host: &Host,
    schedule: Schedule,
    (mut line, mut card): (Option<AnyLine>, Option<Card>),
    observer: &mut dyn Observer,
) -> Result<Vec<Probe>, MeasureError> {
    let ring_slots = if plan.save_samples { RING_SLOTS } else { 0 };
    let mut task = |rank, cpu| {
        let (answers, announcements) = (observer.answers(rank), observer.answers(rank));
        ProbePlan {
            cpu,
            schedule,
            worst: plan.worst,
            ring_slots,
            stimulus: plan.stimulus,
            interval: SpanNs(plan.interval_ns),
            line: line.take(),
            waker: waker_place(plan, rank, cpu),
            audio: plan.audio,
            card: card.take(),
            gap_from: SpanNs(plan.gap_from_ns.unwrap_or(GAP_FROM_NS)),
            answers,
            announcements,
        }
    };
    let started: Vec<(u32, io::Result<Prober>)> =
        plan.cpus.iter().enumerate().map(|(i, &cpu)| (cpu, Prober::spawn(task(i, cpu)))).collect();
    let count = plan.cpus.len().max(1) as u64;
    let mut probes = Vec::new();
    for (rank, (cpu, prober)) in (0_u64..).zip(started) {
        let prober = prober.map_err(|e| MeasureError::Cpu(cpu, e))?;
        let ready = prober.wait_ready().map_err(|e| match plan.policy {
            ProbePolicy::Deadline => MeasureError::Deadline(schedule, Refusal::of(e, host)),
            ProbePolicy::Other | ProbePolicy::Fifo | ProbePolicy::Rr => MeasureError::Cpu(cpu, e),
        })?;
        observer.follow(ready.thread).map_err(MeasureError::Observer)?;
        // Expiries of different CPUs are spread over the interval: if all came at once they would
        // meet at the same locks, and the probes would measure each other.
        let phase = SpanNs(plan.interval_ns * rank / count);
        probes.push(Probe {
            prober,
            ready,
            phase,
            seen: Snapshot::default(),
            audio: None,
            other_schedule: None,
            other_waker_schedule: None,
        });
    }
    // Of the fastest CPU: one that is held up just now says nothing about what is possible.
    let turnaround = probes.iter().map(|p| p.ready.turnaround).min().unwrap_or_default();
    let interval = SpanNs(plan.interval_ns);
    if interval < turnaround && !plan.stimulus.is_busy() {
        Err(MeasureError::Interval(interval, turnaround))
    } else {
        Ok(probes)
    }
}

/// Where the thread is that wakes the probe of `cpu`, if one does.
fn waker_place(plan: &Plan, rank: usize, cpu: u32) -> WakerPlace {
    let waker = plan.waker.as_ref();
    WakerPlace {
        cpu: waker.map_or(cpu, |waker| waker.cpu(rank, cpu)),
        schedule: schedule_of_waker(plan),
        between: waker.map_or(Between::Threads, |waker| waker.between),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_time_in_which_loads_run_alone_has_a_mark_at_both_ends_and_in_its_middle() {
        let events = RefCell::new(Vec::new());
        let mark = || events.borrow_mut().push("mark".to_owned());
        let mut pause = |span: SpanNs| {
            events.borrow_mut().push(span.to_string());
            Waited::InVain
        };
        run_alone(SpanNs(2_000_000_001), mark, &mut pause).unwrap();
        let halves = [SpanNs(1_000_000_000), SpanNs(1_000_000_001)].map(|half| half.to_string());
        assert_eq!(events.into_inner(), ["mark", &halves[0], "mark", &halves[1], "mark"]);
    }
}
