//! From what the probes hold to the run record.

use wakescope_core::audio::Audio;
use wakescope_core::finding::{Finding, Validity, Verdict};
use wakescope_core::host::Host;
use wakescope_core::limit::{Judgement, Limit, MeasuredBy, Outcome, doubt};
use wakescope_core::percentile::Percentile;
use wakescope_core::plan::Plan;
use wakescope_core::recorder::Snapshot;
use wakescope_core::run::{Episode, Run, SCHEMA, Spin, State, Thread};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::validity::{StimulusLost, ThreadObserved};

use crate::measurement::Identity;
use crate::prober::{Ready, Report};
use crate::stimulus::Ending;
use crate::stimulus::line::LineSeen;

/// A probe that has ended, or is looked at as if it had.
pub(super) struct Ended {
    pub(super) cpu: u32,
    pub(super) ready: Ready,
    pub(super) phase: SpanNs,
    pub(super) seen: Snapshot,
    pub(super) audio: Option<Audio>,
    pub(super) lost: u64,
    pub(super) report: Option<Report>,
    pub(super) other_schedule: Option<String>,
    pub(super) other_waker_schedule: Option<String>,
}

/// The record of what `ended` holds, of a run that began at `origin` and has lasted for `elapsed`.
pub(super) fn run(
    identity: &Identity,
    plan: &Plan,
    host: &Host,
    (origin, elapsed): (MonoNs, SpanNs),
    ended: Vec<Ended>,
    state: State,
    all: Vec<Finding>,
) -> Run {
    let interval_ns = plan.interval_ns;
    let measured = |e: &Ended| {
        if plan.stimulus.is_busy() {
            return e.spin().map_or(elapsed.0, |spin| spin.observed_ns);
        }
        let silent = e.audio.as_ref().map_or(0, |audio| audio.silent);
        let line = e.line().map_or(0, |line| line.unanswered + line.left_out);
        let points = e.seen.expiries.count + e.not_asleep() + e.skipped() + silent + line;
        e.phase.0 + points.saturating_mul(interval_ns)
    };
    let measured_ns = ended.iter().map(measured).max().unwrap_or(0);
    let worst = worst(&ended, plan.worst);
    let mut run = Run {
        schema: SCHEMA.into(),
        id: identity.id.clone(),
        started: identity.started.clone(),
        duration_ns: plan.duration_ns.map_or(measured_ns, |planned| measured_ns.min(planned)),
        origin_ns: origin.0,
        time_domain: identity.time_domain,
        seed: identity.seed,
        state,
        host: host.clone(),
        plan: plan.clone(),
        validity: Validity::of(all),
        limits: Vec::new(),
        threads: ended.into_iter().map(Ended::into_thread).collect(),
        load: Vec::new(),
        worst,
        ..Default::default()
    };
    run.summarize();
    run
}

impl Ended {
    fn home(&self) -> Option<u32> {
        self.ready.pinned.then_some(self.cpu)
    }

    fn page_faults(&self) -> u64 {
        self.report.as_ref().map_or(0, |r| r.faults.minor + r.faults.major)
    }

    fn skipped(&self) -> u64 {
        self.report.as_ref().map_or(0, |report| report.beside.skipped)
    }

    /// Points of the grid at which it was awake, so that it could not be woken.
    fn not_asleep(&self) -> u64 {
        self.seen.not_asleep + self.report.as_ref().map_or(0, |report| report.beside.awake)
    }

    /// What it saw on its line beside answers.
    pub(super) fn line(&self) -> Option<&LineSeen> {
        self.report.as_ref()?.beside.line.as_ref()
    }

    fn due_uncertainty_ns(&self) -> u64 {
        self.report.as_ref().map_or(0, |report| report.beside.due_uncertainty.0)
    }

    fn spin(&self) -> Option<Spin> {
        self.report.as_ref()?.beside.spin
    }

    /// When its CPU went away, from the start of the run.
    pub(super) fn cpu_lost_at_ns(&self) -> Option<u64> {
        match self.report.as_ref()?.ending {
            Ending::CpuLost(due) => Some(due.0),
            Ending::Done | Ending::Stopped | Ending::StimulusLost(..) => None,
        }
    }

    /// When, from the start of the run, and why nothing could wake the probe any more.
    fn stimulus_lost(&self) -> Option<StimulusLost> {
        match self.report.as_ref()?.ending {
            Ending::StimulusLost(last_due, loss) => {
                Some(StimulusLost { code: loss.code(), at_ns: last_due.0, why: loss.to_string() })
            }
            Ending::Done | Ending::Stopped | Ending::CpuLost(_) => None,
        }
    }

    /// Whether it ended before the run did.
    pub(super) fn is_lost(&self) -> bool {
        self.cpu_lost_at_ns().is_some() || self.stimulus_lost().is_some()
    }

    fn into_thread(self) -> Thread {
        Thread {
            cpu: self.home(),
            missed: self.seen.missed,
            lost: self.lost,
            migrated: self.seen.migrated,
            not_asleep: self.not_asleep(),
            skipped: self.skipped(),
            due_uncertainty_ns: self.due_uncertainty_ns(),
            page_faults: self.page_faults(),
            spin: self.spin(),
            kernel_stamps: self.report.as_ref().and_then(|report| report.beside.kernel_stamps),
            woken: self.seen.woken,
            expiries: self.seen.expiries,
            interval_deviation: Some(self.seen.deviation).filter(|d| d.count() > 0),
            maxima: Some(self.seen.maxima),
            audio: self.audio,
            overflow: None,
        }
    }

    pub(super) fn observed(&self) -> ThreadObserved {
        let report = self.report.as_ref();
        let share = |r: &Report| r.cpu_time.0.saturating_mul(1_000_000).checked_div(r.wall_time.0);
        ThreadObserved {
            cpu: self.cpu,
            pinned: self.ready.pinned,
            woken: self.seen.woken.count,
            missed: self.seen.missed,
            migrated: self.seen.migrated,
            early: self.seen.early,
            not_asleep: self.not_asleep(),
            skipped: self.skipped(),
            due_uncertainty_ns: self.due_uncertainty_ns(),
            loops: self.spin().map_or(0, |spin| spin.loops),
            observed_ns: self.spin().map_or(0, |spin| spin.observed_ns),
            compute_ns: self
                .audio
                .as_ref()
                .and_then(|a| a.compute.percentile(Percentile::SHOWN[0])),
            gaps_ns: self.seen.woken.sum_ns,
            lost: self.lost,
            minor_faults: report.map_or(0, |r| r.faults.minor),
            major_faults: report.map_or(0, |r| r.faults.major),
            other_schedule: self.other_schedule.clone(),
            other_waker_schedule: self.other_waker_schedule.clone(),
            waker_moved: report.map_or(0, |r| r.beside.waker_moved),
            slack_ns: report.and_then(|r| r.slack.as_ref().ok()).map_or(0, |s| s.0),
            preempted: report.map_or(0, |r| r.preempted),
            cpu_ns: report.map_or(0, |r| r.cpu_time.0),
            cpu_share_ppm: report.and_then(share).unwrap_or(0),
            cpu_lost_at_ns: self.cpu_lost_at_ns(),
            stimulus_lost: self.stimulus_lost(),
            failure: report.is_none().then(|| "its thread died".into()),
        }
    }
}

/// The latest wakeups of all probes, worst first.
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

/// How the run stands to each of its limits.
pub(super) fn judge(run: &Run) -> Vec<Judgement> {
    let expiries = run.expiries();
    let complete = run.state == State::Complete;
    // A loop that ran to the end and was never interrupted has kept every limit on its gaps.
    let is_spotless = run.plan.stimulus.is_busy()
        && doubt(&run.validity, MeasuredBy::Probes, complete).is_none()
        && expiries.count == 0
        && run.validity.verdict != Verdict::Invalid;
    let judge = |limit: Limit| match is_spotless && limit.percentile.is_none() {
        true => Judgement {
            limit: limit.to_string(),
            limit_ns: limit.above.0,
            observed_ns: None,
            outcome: Outcome::Pass,
            reason: String::new(),
        },
        false => limit.judge(&expiries, &run.validity, MeasuredBy::Probes, complete),
    };
    let limits = run.plan.fail_above.iter().filter_map(|text| text.parse().ok());
    limits.map(judge).collect()
}

/// How the run stands to all of its limits: the worst of the judgements.
pub fn outcome(run: &Run) -> Outcome {
    run.limits.iter().map(|j| j.outcome).max().unwrap_or(Outcome::Pass)
}
