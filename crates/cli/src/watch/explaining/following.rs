//! A thread that follows one series with the tracer of `explain`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use wakescope_attribution::{Machine, account};
use wakescope_core::explain::{Above, user_stacks_mut};
use wakescope_core::host::Host;
use wakescope_core::plan::{Plan, Stimulus, Target};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::Series;
use wakescope_core::watch::explained::Explained;
use wakescope_sys::clock::{self, Clock};
use wakescope_trace::{Options, TraceError, Tracer, Users, functions_of_program};

/// The name of the thread.
pub(super) const NAME: &str = "wakescope-expl";

/// For how long a series is followed.
const FOLLOWED: SpanNs = SpanNs(3_000_000_000);

/// How often what has left the kernel is taken, and how often it is asked what the programs took.
const PACE: SpanNs = SpanNs(50_000_000);
const PACES_PER_COST: u32 = 5;

/// How many late wakeups are kept with all their events.
const ROOM: usize = 256;

/// How long files of programs are read for names of functions: the watch waits for this when it ends.
const MOST_TIME_FOR_FUNCTIONS: SpanNs = SpanNs(3_000_000_000);

/// A series that is followed. The tracer ends with this.
pub(super) struct Following {
    series: Series,
    shared: Arc<Shared>,
    is_cut: bool,
    thread: Option<JoinHandle<Result<Followed, String>>>,
}

/// What both threads know.
#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    /// What the tracer's programs took so far, ns.
    program_ns: AtomicU64,
}

/// What was seen of a series.
pub(super) struct Followed {
    pub(super) explained: Explained,
    pub(super) began: MonoNs,
}

impl Following {
    /// Begins to follow a series, whose tasks keep this `name`: waits of `above_ns` and longer are late.
    pub(super) fn start(
        series: Series,
        name: Option<[u64; 2]>,
        above_ns: u64,
        host: &Host,
    ) -> Result<Self, String> {
        let shared = Arc::new(Shared::default());
        let (of, host, known) = (series.clone(), host.clone(), Arc::clone(&shared));
        let follow = move || follow(&of, name, above_ns, &host, &known).map_err(|e| e.to_string());
        let thread = thread::Builder::new().name(NAME.into()).spawn(follow);
        let thread = thread.map_err(|e| format!("cannot start a thread: {e}"))?;
        Ok(Self { series, shared, is_cut: false, thread: Some(thread) })
    }

    pub(super) fn series(&self) -> &Series {
        &self.series
    }

    /// What the tracer's programs took so far, ns, as far as the kernel has measured it.
    pub(super) fn program_ns(&self) -> u64 {
        self.shared.program_ns.load(Ordering::Relaxed)
    }

    /// Has it end as soon as possible.
    pub(super) fn stop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
    }

    /// The same, for want of CPU time.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
        self.stop();
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end. What the programs took in all, and what was seen.
    pub(super) fn end(mut self) -> (u64, Result<Followed, String>) {
        let ended = self.thread.take().map(JoinHandle::join);
        let failed = || Err("the thread that follows has failed".into());
        let found = ended.map_or_else(failed, |ended| ended.unwrap_or_else(|_| failed()));
        (self.program_ns(), found)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // Its result is not wanted any more, and its failure changes nothing.
            let _ = thread.join();
        }
    }
}

fn follow(
    series: &Series,
    kept_name: Option<[u64; 2]>,
    above_ns: u64,
    host: &Host,
    shared: &Shared,
) -> Result<Followed, TraceError> {
    let before = clock::read(Clock::ThreadCpu);
    let target = Target::Comm { comm: series.comm.clone() };
    let options = Options {
        target: target.clone(),
        within_cgroup: Some(series.cgroup_id).filter(|&id| id > 0),
        kept_name,
        stimulus: Stimulus::Any,
        probes: 0,
        pinned: false,
        above_ns: Some(above_ns),
        tail: 0.0,
        late: 0,
        model: host.preemption.model,
        idle_states: host.idle.states.iter().map(|state| state.name.clone()).collect(),
        room: ROOM,
        machine: Machine::of(host, TimeDomain::Real),
        watch: None,
        sections: None,
        by: None,
    };
    let mut tracer = Tracer::start(options)?;
    tracer.name_programs(Users::read_by(functions_of_program));
    let began = clock::now();
    tracer.begin(began)?;
    let end = began.after(FOLLOWED);
    for pace in 1.. {
        let now = clock::now();
        if now >= end || shared.ends.load(Ordering::Relaxed) {
            break;
        }
        // A sleep that fails is one that ends early.
        let _ = clock::sleep_until(now.after(PACE).min(end));
        tracer.poll();
        if pace % PACES_PER_COST == 0 {
            shared.program_ns.store(tracer.run_time().0, Ordering::Relaxed);
        }
    }
    let program = tracer.run_time();
    shared.program_ns.store(program.0, Ordering::Relaxed);
    let followed = clock::now().since(began);
    let plan = Plan { target, stimulus: Stimulus::Any, worst: 1, ..Plan::default() };
    let mut run = Run {
        plan,
        host: host.clone(),
        origin_ns: began.0,
        duration_ns: followed.0,
        ..Run::default()
    };
    let (seen, files) = tracer.finish();
    account(&mut run, seen, Above::Time(SpanNs(above_ns)));
    let functions = files.functions_within(MOST_TIME_FOR_FUNCTIONS);
    user_stacks_mut(&mut run).flatten().for_each(|frame| functions.name(frame));
    let mut explained = explained(run);
    explained.followed_ns = followed.0;
    explained.program_ns = (program.0 > 0).then_some(program.0);
    let own_ns = clock::read(Clock::ThreadCpu).saturating_sub(before);
    explained.agent_ns = own_ns.saturating_add(functions.cpu_time.0);
    Ok(Followed { explained, began })
}

/// What a window has of a run.
fn explained(run: Run) -> Explained {
    let explanation = run.explanation.unwrap_or_default();
    Explained {
        wakeups: explanation.wakeups,
        late: explanation.late,
        above_ns: Some(explanation.above_ns),
        explained: explanation.explained,
        lost: explanation.lost_records.saturating_add(explanation.not_followed),
        causes: run.causes,
        worst: run.worst.into_iter().next(),
        waits: explanation.waits.map(|waits| waits.kinds).unwrap_or_default(),
        ..Explained::default()
    }
}
