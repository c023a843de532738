use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::measurement::{Identity, SavedSample, Unsaved};
use crate::observer::{ObserverError, Unobserved};
use wakescope_core::distribution::Distribution;
use wakescope_core::host::Host;
use wakescope_core::plan::Target;
use wakescope_core::run::State;

/// What was called, in order.
type Calls = Rc<RefCell<Vec<&'static str>>>;

/// Everything that a measurement meets, simulated: the request to end comes after some waits.
#[derive(Clone, Default)]
struct Simulated {
    calls: Calls,
    plan: Plan,
    waits: u32,
    /// Whether it is finished after that many waits, rather than asked to end.
    finishes: bool,
    waited: Rc<RefCell<u32>>,
    /// Which of them is broken off by a stop, counted from 1; none if 0.
    stopped_in: u32,
    /// When the observer prepared.
    prepared: Option<MonoNs>,
    /// From when on wakeups count for it.
    origin: Option<MonoNs>,
}

impl Simulated {
    fn called(&self, what: &'static str) {
        self.calls.borrow_mut().push(what);
    }
}

impl Measurement for Simulated {
    fn plan(&self) -> &Plan {
        &self.plan
    }
    fn is_finished(&mut self) -> bool {
        self.finishes && *self.waited.borrow() >= self.waits
    }
    fn planned_end(&self) -> MonoNs {
        clock::now()
    }
    fn verify(&mut self) {
        self.called("verify");
    }
    fn was_stopped(&mut self, _: SpanNs) {
        self.called("was stopped");
    }
    fn drain(&self, sink: &mut dyn SampleSink) {
        sink.add(SavedSample { cpu: 0, expiry_ns: 0, wakeup_latency_ns: 0 });
    }
    fn progress(&mut self, observer: &dyn Observer) -> Progress {
        let followed = Some(observer.lateness());
        Progress { elapsed: SpanNs(0), total: SpanNs(0), cpus: Vec::new(), followed }
    }
    fn checkpoint(&mut self) -> Run {
        self.called("measurement's checkpoint");
        Run { state: State::Running, ..Run::default() }
    }
    fn end(self: Box<Self>, ended_by: Option<String>, sink: &mut dyn SampleSink) -> Run {
        self.called("end");
        sink.close();
        Run { id: ended_by.unwrap_or_default(), ..Run::default() }
    }
}

impl Observer for Simulated {
    fn prepare(&mut self) {
        self.prepared = Some(clock::now());
    }
    fn begin(&mut self, origin: MonoNs) -> Result<(), ObserverError> {
        self.origin = Some(origin);
        Err(ObserverError::Begin("no".into()))
    }
    fn look(&mut self, _: MonoNs) {
        self.called("look");
    }
    fn lateness(&self) -> Distribution {
        Distribution { count: 7, ..Distribution::default() }
    }
    fn complete_checkpoint(&self, run: &mut Run) {
        run.seed = 1;
    }
    fn complete(&mut self, run: &mut Run) {
        self.called("complete");
        run.seed = 2;
    }
}

impl Signals for Simulated {
    fn wait(&mut self, span: SpanNs) -> Waited {
        assert_eq!(span, SHORTEST, "near the planned end, it looks often");
        *self.waited.borrow_mut() += 1;
        self.called("wait");
        let is_over = *self.waited.borrow() >= self.waits && !self.finishes;
        match is_over {
            true => Waited::Asked("SIGINT".into()),
            false if *self.waited.borrow() == self.stopped_in => Waited::Stopped,
            false => Waited::InVain,
        }
    }
}

impl Screen for Simulated {
    fn wait(&mut self, _: SpanNs) {}
    fn begin(&mut self, _: &Plan) {
        self.called("begin");
    }
    fn pace(&self) -> Option<SpanNs> {
        Some(SpanNs(0))
    }
    fn show(&mut self, progress: &Progress) {
        assert_eq!(progress.followed.as_ref().map(|followed| followed.count), Some(7));
        self.called("show");
    }
    fn clear(&mut self) {
        self.called("clear");
    }
}

impl SampleSink for Simulated {
    fn add(&mut self, _: SavedSample) {
        self.called("sample");
    }
    fn close(&mut self) -> Unsaved {
        self.called("close");
        Unsaved::default()
    }
}

impl Storage for Simulated {
    fn pace(&self) -> Option<SpanNs> {
        Some(SpanNs(0))
    }
    fn checkpoint(&mut self, run: Run) {
        assert_eq!((run.state, run.seed), (State::Running, 1), "the observer has completed it");
        self.called("checkpoint");
    }
}

#[track_caller]
fn check(waits: u32, finishes: bool, want_ended_by: &str) {
    let all = Simulated { waits, finishes, ..Simulated::default() };
    let [mut observer, mut signals, mut screen, mut storage] = [0; 4].map(|_| all.clone());
    let measurement = Box::new(all.clone());
    let run = carry_out(measurement, &mut observer, &mut signals, &mut screen, &mut storage);
    assert_eq!((run.id.as_str(), run.seed), (want_ended_by, 2));
    let round = ["wait", "sample", "look", "show", "measurement's checkpoint", "checkpoint"];
    let rounds = (0..waits).flat_map(|_| round);
    let last = ["clear", "end", "close", "complete"];
    let want: Vec<_> = ["begin"].into_iter().chain(rounds).chain(last).collect();
    assert_eq!(*all.calls.borrow(), want);
}

#[test]
fn a_measurement_is_looked_after_until_it_is_over() {
    check(0, true, "");
    check(3, true, "");
    check(1, false, "SIGINT");
    check(3, false, "SIGINT");
}

/// Until 1 s after the planned end, fixed waits of 2 ms made 500 looks.
#[test]
fn looks_are_frequent_only_around_the_planned_end() {
    let end = MonoNs(10_000_000_000);
    let looks_between = |from: u64, to: u64| {
        let next = |at: &u64| Some(at + until_next_look(end, MonoNs(*at)).max(SHORTEST).0);
        std::iter::successors(Some(from), next).take_while(|at| *at < to).count()
    };
    assert_eq!(until_next_look(end, MonoNs(4_000_000_000)), SpanNs(6_000_000_000));
    assert_eq!(until_next_look(end, end), SpanNs(0));
    assert_eq!(until_next_look(end, end.after(SpanNs(32_000_000))), SHORTEST);
    assert_eq!(until_next_look(end, MonoNs(26_000_000_000)), SpanNs(1_000_000_000));
    assert!(looks_between(end.0, 11_000_000_000) < 80);
}

#[test]
fn a_stop_is_told_to_the_measurement() {
    for (stopped_in, want) in [(0, 0), (2, 1)] {
        let all = Simulated { waits: 3, finishes: true, stopped_in, ..Simulated::default() };
        let [mut observer, mut signals, mut screen, mut storage] = [0; 4].map(|_| all.clone());
        let measurement = Box::new(all.clone());
        carry_out(measurement, &mut observer, &mut signals, &mut screen, &mut storage);
        let told = all.calls.borrow().iter().filter(|call| **call == "was stopped").count();
        assert_eq!(told, want);
    }
}

fn request(plan: Plan) -> Request {
    Request {
        identity: Identity::default(),
        plan,
        host: Host::default(),
        host_findings: Vec::new(),
        loads: Vec::new(),
        abandons_loads: false,
    }
}

#[test]
fn an_observer_that_cannot_begin_ends_the_measurement_with_its_own_error() {
    let plan = Plan { target: Target::Process { pid: 1 }, ..Plan::default() };
    let all = Simulated::default();
    let [mut observer, mut signals, mut screen, mut storage] = [0; 4].map(|_| all.clone());
    let refused = measure(request(plan), &mut observer, &mut signals, &mut screen, &mut storage);
    let Err(MeasureError::Observer(e)) = refused else { panic!("{refused:?}") };
    assert_eq!(e.to_string(), "cannot begin to follow wakeups: no");
    assert_eq!(e.cause().to_string(), "no");
    assert!(all.calls.borrow().is_empty(), "nothing was measured");
}

#[test]
fn the_origin_of_a_run_of_others_is_chosen_after_the_observer_has_prepared() {
    let target = Target::Comm { comm: "nobody".into() };
    let plan = Plan { target, duration_ns: Some(1), ..Plan::default() };
    let mut observer = Simulated::default();
    assert!(Following::begin(request(plan), &mut observer).is_err(), "it does not begin");
    let prepared = observer.prepared.expect("it has prepared");
    assert!(observer.origin.unwrap() >= prepared.after(Following::LEAD));
}

#[test]
fn threads_of_others_are_followed_for_as_long_as_planned_or_as_they_are_there() {
    let nobody = Target::Process { pid: 0x7fff_fff0 };
    let name = Target::Comm { comm: "nobody".into() };
    for (target, duration_ns, want) in [
        (name, 1, (State::Complete, None)),
        (nobody, u64::MAX / 2, (State::Interrupted, Some("interrupted"))),
    ] {
        let plan = Plan { target, duration_ns: Some(duration_ns), ..Plan::default() };
        let mut following = Following::begin(request(plan), &mut Unobserved).unwrap();
        while !following.is_finished() {
            std::thread::yield_now();
        }
        let run = Box::new(following).end(None, &mut Simulated::default());
        let found = run.validity.findings.first().map(|found| found.code.as_str());
        assert_eq!((run.state, found), want);
    }
}

#[test]
fn what_is_due_every_so_often_is_due_within_that_and_one_look() {
    const EVERY: SpanNs = SpanNs(800_000_000);
    for pace in [2_000_000, 100_000_000, 200_000_000] {
        let mut checkpoint = Periodic { every: Some(EVERY), next: MonoNs(EVERY.0) };
        let looks = (0..10_000_000_000 / pace).map(|look| look * pace);
        let written = looks.filter(|&now| checkpoint.is_due(MonoNs(now)));
        let times: Vec<u64> = std::iter::once(0).chain(written).collect();
        let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(gaps.len() >= 9 && gaps.iter().all(|&ns| ns <= 1_000_000_000), "{gaps:?}");
    }
    assert!(!Periodic::new(None).is_due(MonoNs(u64::MAX)));
}

/// Signals that come one after the other, a millisecond apart.
struct Scripted(Vec<Waited>);

impl Signals for Scripted {
    fn wait(&mut self, _: SpanNs) -> Waited {
        clock::sleep_until(clock::now().after(SpanNs(1_000_000))).unwrap();
        self.0.pop().unwrap_or(Waited::InVain)
    }
}

#[test]
fn a_wait_is_as_long_as_it_is_to_be_although_it_is_broken_off() {
    let asked = Waited::Asked("SIGINT".into());
    for (broken_off_by, span_ns, want) in [
        (vec![Waited::Stopped, Waited::InVain], 20_000_000, Waited::InVain),
        (vec![Waited::Stopped], 1, Waited::Stopped),
        (vec![Waited::InVain, Waited::Stopped], 1, Waited::Stopped),
        (vec![asked.clone(), Waited::Stopped], 60_000_000_000, asked),
    ] {
        let then = clock::now().after(SpanNs(span_ns));
        assert_eq!(wait_until(then, &mut Scripted(broken_off_by)), want);
        assert!(clock::now() >= then || matches!(want, Waited::Asked(_)));
    }
}
