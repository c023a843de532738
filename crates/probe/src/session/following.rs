//! A measurement of wakeups of other threads: nobody probes, an observer follows them.

use wakescope_core::finding::{Finding, Severity};
use wakescope_core::plan::{Plan, Target};
use wakescope_core::run::{Run, State};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::validity::{Observed, findings};
use wakescope_sys::clock;
use wakescope_sys::proc_files::{began, status, status_line};

use super::{MeasureError, record};
use crate::measurement::{Measurement, Progress, Request, SampleSink};
use crate::observer::Observer;
use crate::surroundings::Surroundings;

/// Threads of others, followed for as long as the plan says or as long as they are there.
pub(crate) struct Following {
    request: Request,
    origin: MonoNs,
    before: Surroundings,
    /// Who is followed, if by a number.
    numbered: Option<Numbered>,
    /// Why nothing is left to follow, if so.
    gone: Option<String>,
}

impl Following {
    /// Time to tell the observer when to begin: from then on no wakeup may be missed.
    pub(crate) const LEAD: SpanNs = SpanNs(50_000_000);

    pub(crate) fn begin(
        request: Request,
        observer: &mut dyn Observer,
    ) -> Result<Self, MeasureError> {
        // While the observer prepares, it may end, and another one may get its number.
        let numbered = match request.plan.target {
            Target::Process { pid: id } | Target::Thread { tid: id } => Some(Numbered::of(id)),
            _ => None,
        };
        observer.prepare();
        let before = Surroundings::now();
        let origin = clock::now().after(Self::LEAD);
        observer.begin(origin).map_err(MeasureError::Observer)?;
        Ok(Self { request, origin, before, numbered, gone: None })
    }

    fn record(&self, state: State, all: Vec<Finding>) -> Run {
        let Request { identity, plan, host, .. } = &self.request;
        let elapsed = clock::now().since(self.origin);
        let times = (self.origin, elapsed);
        let mut run = record::run(identity, plan, host, times, Vec::new(), state, all);
        run.duration_ns = elapsed.0;
        run
    }

    fn total(&self) -> SpanNs {
        SpanNs(self.request.plan.duration_ns.unwrap_or_default())
    }
}

impl Measurement for Following {
    fn plan(&self) -> &Plan {
        &self.request.plan
    }

    fn is_finished(&mut self) -> bool {
        let has_ended = self.numbered.as_ref().is_some_and(Numbered::has_ended);
        if has_ended && clock::now() < self.planned_end() {
            self.gone = Some("the followed process has ended".into());
        }
        self.gone.is_some() || clock::now() >= self.planned_end()
    }

    fn planned_end(&self) -> MonoNs {
        self.origin.after(self.total())
    }

    fn verify(&mut self) {}

    /// Whoever is followed goes on meanwhile.
    fn was_stopped(&mut self, _: SpanNs) {}

    fn drain(&self, _: &mut dyn SampleSink) {}

    fn progress(&mut self, observer: &dyn Observer) -> Progress {
        Progress {
            elapsed: clock::now().since(self.origin),
            total: self.total(),
            cpus: Vec::new(),
            followed: Some(observer.lateness()),
        }
    }

    fn checkpoint(&mut self) -> Run {
        // All that is there of a run that is killed.
        let unfinished = Finding::new(
            "unfinished",
            Severity::Error,
            "the run was killed, or is still going on: its latencies are recorded, their causes \
             are not"
                .into(),
            "follow them again",
        );
        self.record(State::Running, vec![unfinished])
    }

    fn end(mut self: Box<Self>, ended_by: Option<String>, sink: &mut dyn SampleSink) -> Run {
        let after = Surroundings::now();
        let change = after.since(&self.before, &[]);
        let ended_by = self.gone.take().or(ended_by);
        let state = if ended_by.is_some() { State::Interrupted } else { State::Complete };
        let observed = Observed {
            slept_ns: change.slept.0,
            clock_drift_ppm: change.clock_drift_ppm,
            clocksource: (self.before.clocksource.clone(), after.clocksource),
            ended_by,
            not_saved: sink.close().cause,
            ..Observed::default()
        };
        let mut all = findings(&self.request.plan, &observed);
        all.append(&mut self.request.host_findings);
        self.record(state, all)
    }
}

/// A process or thread that is known by its number. Once it has ended, another one may get that.
struct Numbered {
    id: u32,
    /// When it began, ticks since the boot; `None` if it had ended already.
    began: Option<u64>,
}

impl Numbered {
    fn of(id: u32) -> Self {
        Self { id, began: began(id.into()) }
    }

    fn has_ended(&self) -> bool {
        !is_alive(self.id) || began(self.id.into()) != self.began
    }
}

/// Whether anything of the process or thread is left to follow. One that nobody has waited for keeps
/// its ID, and so does a first thread that ended before the others.
fn is_alive(id: u32) -> bool {
    let Some(status) = status(id) else { return false };
    let value = |key| status_line(&status, key);
    let has_ended = value("State:").is_some_and(|state| state.starts_with(['Z', 'X']));
    let is_first = value("Tgid:") == Some(&id.to_string());
    let is_alone = !is_first || value("Threads:") == Some("1");
    !(has_ended && is_alone)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use wakescope_core::host::Host;
    use wakescope_sys::sched;

    use super::*;
    use crate::measurement::Identity;

    #[test]
    fn another_process_with_the_same_number_is_not_the_one_that_is_followed() {
        let own = Numbered::of(std::process::id());
        assert!(own.began.is_some() && !own.has_ended());
        let earlier = Numbered { began: own.began.map(|ticks| ticks - 1), ..own };
        assert!(earlier.has_ended());
    }

    /// While it prepares, this process ends.
    struct Slow(Child);

    impl Observer for Slow {
        fn prepare(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn it_is_known_from_before_the_observer_prepares() {
        let mut slow = Slow(Command::new("sleep").arg("600").spawn().unwrap());
        let plan = Plan { target: Target::Process { pid: slow.0.id() }, ..Plan::default() };
        let request = Request {
            identity: Identity::default(),
            plan,
            host: Host::default(),
            host_findings: Vec::new(),
            loads: Vec::new(),
            abandons_loads: false,
        };
        let following = Following::begin(request, &mut slow).unwrap();
        assert!(following.numbered.unwrap().began.is_some());
    }

    #[test]
    fn one_that_is_not_named_in_utf8_has_not_ended() {
        let named = std::thread::spawn(|| {
            std::fs::write("/proc/thread-self/comm", b"\xc3").unwrap();
            let own = Numbered::of(sched::this_thread().number());
            (own.began, own.has_ended())
        });
        let (began, has_ended) = named.join().unwrap();
        assert!(began.is_some() && !has_ended);
    }
}
