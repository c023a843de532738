//! A run as comparisons use it: one observation, with the samples of its threads added up.
//!
//! Many runs are compared at once. What no comparison looks at, such as timelines, the course of
//! the run and a second histogram per thread, is most of a run, and would stay in memory.

use crate::distribution::Distribution;
use crate::finding::Validity;
use crate::host::Host;
use crate::line::Line;
use crate::plan::Plan;
use crate::run::{LoadResult, Run, State, Thread};
use crate::source::{Quantity, Source};
use crate::time_domain::TimeDomain;

/// The parts of a [`Run`] that comparisons use, under the same names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// See [`Run::id`].
    pub id: String,
    /// See [`Run::known_start`].
    pub started: String,
    /// See [`Run::duration_ns`].
    pub duration_ns: u64,
    /// See [`Run::time_domain`].
    pub time_domain: TimeDomain,
    /// See [`Run::seed`].
    pub seed: u64,
    /// See [`Run::state`].
    pub state: State,
    /// See [`Run::source`].
    pub source: Option<Source>,
    /// See [`Run::host`].
    pub host: Host,
    /// See [`Run::plan`].
    pub plan: Plan,
    /// See [`Run::validity`].
    pub validity: Validity,
    /// See [`Run::load`].
    pub load: Vec<LoadResult>,
    /// See [`Run::line`].
    pub line: Option<Line>,
    /// What followed the run's wakeups, which takes time itself.
    pub tracing: Tracing,
    /// What is exact of each thread.
    pub threads: Vec<ThreadSums>,
    /// Lateness per expiry, over all threads.
    pub expiries: Distribution,
}

/// How much the programs had to do that followed wakeups in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracing {
    /// The run was explained.
    pub explained: bool,
    /// Each section with interrupts or preemption off was measured, too.
    pub sections: bool,
    /// Interrupts were counted for a bound, too.
    pub bound: bool,
}

impl Tracing {
    fn of(run: &Run) -> Self {
        let explanation = run.explanation.as_ref();
        let sections = explanation.and_then(|of| of.sections.as_ref());
        Self {
            explained: explanation.is_some(),
            sections: sections.is_some_and(|sections| sections.exact),
            bound: explanation.is_some_and(|of| of.bound.is_some()),
        }
    }
}

/// What is exact of a thread, without its histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSums {
    /// See [`Thread::cpu`].
    pub cpu: Option<u32>,
    /// See [`Thread::missed`].
    pub missed: u64,
    /// Wakeups, their sum and their maximum, both in ns.
    pub woken: Sums,
    /// The same of expiries.
    pub expiries: Sums,
}

/// What is exact of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Samples.
    pub count: u64,
    /// The sum in ns.
    pub sum_ns: u64,
    /// The minimum in ns.
    pub min_ns: Option<u64>,
    /// The maximum in ns.
    pub max_ns: Option<u64>,
    /// When the sample of the maximum was due, from the start of the run.
    pub max_at_ns: Option<u64>,
}

impl From<Run> for Observation {
    fn from(run: Run) -> Self {
        let mut expiries = run.expiries();
        let tracing = Tracing::of(&run);
        expiries.histogram.shrink_to_fit();
        Self {
            expiries,
            threads: run.threads.iter().map(ThreadSums::of).collect(),
            started: run.known_start().to_owned(),
            id: run.id,
            duration_ns: run.duration_ns,
            time_domain: run.time_domain,
            seed: run.seed,
            state: run.state,
            source: run.source,
            host: run.host,
            plan: run.plan,
            validity: run.validity,
            load: run.load,
            line: run.line,
            tracing,
        }
    }
}

impl Observation {
    /// See [`Run::quantity`].
    pub fn quantity(&self) -> Quantity {
        self.plan.quantity(self.source.as_ref())
    }
}

impl ThreadSums {
    fn of(thread: &Thread) -> Self {
        Self {
            cpu: thread.cpu,
            missed: thread.missed,
            woken: Sums::of(&thread.woken),
            expiries: Sums::of(&thread.expiries),
        }
    }
}

impl Sums {
    fn of(d: &Distribution) -> Self {
        let Distribution { count, min_ns, max_ns, max_at_ns, sum_ns, .. } = *d;
        Self { count, sum_ns, min_ns, max_ns, max_at_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::run_with;

    #[test]
    fn samples_of_all_threads_are_added_up() {
        let run = run_with(&[vec![5_000, 7_000], vec![6_000, 9_000, 9_000]], "x");
        let seen = Observation::from(run.clone());
        assert_eq!(seen.expiries, run.expiries());
        assert_eq!((seen.expiries.count, seen.expiries.max_ns), (5, Some(9_000)));
        let counts: Vec<u64> = seen.threads.iter().map(|t| t.expiries.count).collect();
        assert_eq!(counts, [2, 3]);
        assert_eq!((&seen.id, &seen.host, &seen.plan), (&run.id, &run.host, &run.plan));
    }

    #[test]
    fn a_start_that_nobody_knows_is_none() {
        let began = "2026-11-21T01:00:00Z";
        let run = Run { started: began.into(), ..Run::default() };
        assert_eq!(Observation::from(run.clone()).started, began);
        for unknown in ["started", "plan"] {
            let source = Source { unknown: vec![unknown.into()], ..Source::default() };
            let seen = Observation::from(Run { source: Some(source), ..run.clone() });
            assert_eq!(seen.started, if unknown == "started" { "" } else { began });
        }
        for time_domain in [TimeDomain::Virtual, TimeDomain::Simulated] {
            assert_eq!(Observation::from(Run { time_domain, ..run.clone() }).started, "");
        }
    }
}
