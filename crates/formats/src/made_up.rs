//! Runs to export and import in tests.

use wakescope_core::distribution::Distribution;
use wakescope_core::host::Host;
use wakescope_core::plan::Plan;
use wakescope_core::run::{Run, SCHEMA, Thread};

/// A run with one CPU per list of samples, each list in order of its expiries.
pub(crate) fn run_of(cpus: &[&[u64]]) -> Run {
    let mut run = Run {
        schema: SCHEMA.into(),
        id: "x".into(),
        started: "2026-11-21T01:00:00Z".into(),
        duration_ns: 10_000_000_000,
        seed: 1,
        host: Host { release: "6.12.95".into(), ..Host::default() },
        plan: Plan {
            interval_ns: 1_000_000,
            cpus: (0..).zip(cpus).map(|(cpu, _)| cpu).collect(),
            priority: Some(90),
            ..Plan::default()
        },
        threads: (0..).zip(cpus).map(|(cpu, samples)| thread(cpu, samples)).collect(),
        ..Run::default()
    };
    run.summarize();
    run
}

fn thread(cpu: u32, samples: &[u64]) -> Thread {
    let max_ns = samples.iter().max().copied();
    let latest = samples.iter().position(|&sample| Some(sample) == max_ns);
    let d = Distribution {
        max_at_ns: latest.map(|at| at as u64 * 1_000_000),
        ..Distribution::of(samples.iter().copied())
    };
    Thread { cpu: Some(cpu), woken: d.clone(), expiries: d, ..Thread::default() }
}
