//! Following a series that is late repeatedly, for a few seconds: why it waits.

mod following;

use wakescope_core::host::Host;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::Window;
use wakescope_core::watch::arming::Arming;
use wakescope_core::watch::explained::{Explained, Explanations, Suppressed};
use wakescope_report::style::clean;
use wakescope_sys::clock::{self, Clock};
use wakescope_trace::watch::Watcher;

use following::{Followed, Following, NAME};

/// How often is looked at what following takes.
pub(super) const LOOK: SpanNs = SpanNs(100_000_000);

/// What following a series is taken to take before any was. It took 0.93 s and 0.98 s of CPU time, most of it to
/// load the tracer and to remove it: `watch --explain=2ms --budget 100% --json`, `agent_ns` and `program_ns` (6.18,
/// a virtual machine whose two CPUs were busy).
const EXPECTED: SpanNs = SpanNs(1_000_000_000);

/// One part in so many of what following takes is taken by its end.
const END_SHARE: u64 = 3;

/// Follows one series at a time, within a budget.
pub(super) struct Explainer {
    above_ns: u64,
    budget: f64,
    arming: Arming,
    host: Host,
    following: Option<Following>,
    /// What following a series took last, ns; more if that was not enough.
    expected_ns: u64,
    /// CPU time of this process when the last window ended, ns.
    agent_ns: u64,
    /// What the tracer's programs took since then, of series that are not followed any more, and what those
    /// of the one that is had taken by then, ns.
    tracer_ended_ns: u64,
    tracer_known_ns: u64,
    /// The same in all.
    tracer_total_ns: u64,
    ended: Vec<Explained>,
    suppressed: Suppressed,
    total: Explanations,
    /// Whether the user knows that series cannot be followed.
    has_told: bool,
    notes: Vec<String>,
}

impl Explainer {
    /// Follows series with waits of `above` and longer, on this machine.
    pub(super) fn new(above: SpanNs, budget: f64, host: Host) -> Self {
        Self {
            above_ns: above.0,
            budget,
            arming: Arming::new(above.0, budget, NAME),
            host,
            following: None,
            expected_ns: EXPECTED.0,
            agent_ns: clock::read(Clock::ProcessCpu),
            tracer_ended_ns: 0,
            tracer_known_ns: 0,
            tracer_total_ns: 0,
            ended: Vec::new(),
            suppressed: Suppressed::default(),
            total: Explanations { above_ns: above.0, budget, ..Explanations::default() },
            has_told: false,
            notes: Vec::new(),
        }
    }

    /// Whether a series is followed just now.
    pub(super) fn is_following(&self) -> bool {
        self.following.is_some()
    }

    /// What the tracer's programs took since the last window, ns: from now on the next one counts.
    pub(super) fn tracer_ns(&mut self) -> u64 {
        let now = self.following.as_ref().map_or(0, Following::program_ns);
        let ns = self.tracer_ended_ns + now.saturating_sub(self.tracer_known_ns);
        (self.tracer_ended_ns, self.tracer_known_ns) = (0, now);
        self.tracer_total_ns += ns;
        ns
    }

    /// The same in all windows.
    pub(super) fn tracer_total_ns(&self) -> u64 {
        self.tracer_total_ns
    }

    /// Ends what has been followed for long enough, and what would take more than the budget. `begin` is when
    /// the watch began.
    pub(super) fn look(&mut self, begin: MonoNs) {
        let Some(following) = &mut self.following else { return };
        let taken = clock::read(Clock::ProcessCpu).saturating_sub(self.agent_ns)
            + self.tracer_ended_ns
            + following.program_ns().saturating_sub(self.tracer_known_ns);
        if !self.arming.budget().allows(taken + self.expected_ns / END_SHARE) {
            following.cut();
        }
        if following.has_ended() {
            self.end(begin);
        }
    }

    /// Takes a window of this watch, with what was taken in it. From then on another series may be followed.
    pub(super) fn add(&mut self, window: &mut Window, begin: MonoNs, watcher: &Watcher) {
        self.agent_ns = clock::read(Clock::ProcessCpu);
        let is_followed = self.is_following();
        let expected = self.expected_ns;
        let next = self.arming.next(window, is_followed, expected, &mut self.suppressed);
        self.describe(window);
        if let Some(series) = next {
            let name = watcher.kept_name(&series);
            let found = Following::start(series, name, self.above_ns, &self.host);
            self.tracer_known_ns = 0;
            match found {
                Ok(following) => self.following = Some(following),
                Err(why) => self.fail(&why),
            }
        }
        self.look(begin);
    }

    /// Ends whatever is followed, and describes it in the last window.
    pub(super) fn finish(&mut self, begin: MonoNs) {
        if let Some(following) = &mut self.following {
            following.stop();
        }
        self.end(begin);
    }

    /// Puts what was explained since the last window into this one.
    pub(super) fn describe(&mut self, window: &mut Window) {
        let all = Explanations {
            above_ns: self.above_ns,
            budget: self.budget,
            explained: std::mem::take(&mut self.ended),
            not_listed: 0,
            suppressed: std::mem::take(&mut self.suppressed),
        };
        self.total = std::mem::take(&mut self.total).plus(all.clone());
        window.explanations = Some(all);
    }

    /// What was explained in all windows.
    pub(super) fn total(&self) -> Explanations {
        self.total.clone()
    }

    /// What the user should know now.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn end(&mut self, begin: MonoNs) {
        let Some(following) = self.following.take() else { return };
        let (series, is_cut) = (following.series().clone(), following.is_cut());
        let (program_ns, ended) = following.end();
        self.tracer_ended_ns += program_ns.saturating_sub(self.tracer_known_ns);
        self.tracer_known_ns = 0;
        match ended {
            Ok(Followed { mut explained, began }) => {
                let taken_ns = explained.agent_ns.saturating_add(program_ns);
                self.expected_ns = match is_cut {
                    true => self.expected_ns.max(taken_ns.saturating_add(taken_ns / END_SHARE)),
                    false => taken_ns,
                };
                explained.begin_ns = began.since(begin).0;
                explained.is_cut = is_cut;
                if explained.is_in_vain() {
                    self.suppressed.budget += 1;
                    return;
                }
                (explained.comm, explained.cgroup_id, explained.cgroup) =
                    (series.comm, series.cgroup_id, series.cgroup);
                explained.shorten();
                self.ended.push(explained);
            }
            Err(why) => self.fail(&why),
        }
    }

    fn fail(&mut self, why: &str) {
        self.suppressed.failed += 1;
        if !std::mem::replace(&mut self.has_told, true) {
            let why = clean(why, 300);
            self.notes.push(format!("--explain: cannot follow late waits: {why}"));
        }
    }
}
