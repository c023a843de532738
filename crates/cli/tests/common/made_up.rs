//! Runs that nobody measured, written as records.

use std::fs;

use wakescope_core::distribution::Distribution;
use wakescope_core::plan::Plan;
use wakescope_core::run::{LoadResult, Run, SCHEMA, Thread};

use super::bench::Test;
use super::measured::{RECORD, histogram_of};

/// A run of 4,000 samples: most up to `us` µs late, 20 ten times that, one a hundred times; with a
/// load that is as fast as the run is late.
pub(crate) fn run(us: u64) -> Run {
    let ns = us * 1_000;
    let ordinary = (0..3_979).map(|i| ns / 2 + i % 3 * ns / 4);
    let samples: Vec<u64> = ordinary.chain([ns * 10; 20]).chain([ns * 100]).collect();
    let d = Distribution {
        count: samples.len() as u64,
        min_ns: samples.iter().min().copied(),
        max_ns: samples.iter().max().copied(),
        max_at_ns: Some(0),
        sum_ns: samples.iter().sum(),
        histogram: histogram_of(&samples),
        stated: None,
    };
    let load = LoadResult {
        name: "find".into(),
        unit: "files".into(),
        per_second: 40_000.0 + us as f64,
        alive: true,
        ..LoadResult::default()
    };
    Run {
        schema: SCHEMA.into(),
        id: format!("{us}"),
        started: "2026-11-21T01:00:00Z".into(),
        duration_ns: 4_000_000_000,
        plan: Plan { interval_ns: 1_000_000, load: vec!["find".into()], ..Plan::default() },
        threads: vec![Thread { cpu: Some(0), woken: d.clone(), expiries: d, ..Thread::default() }],
        load: vec![load],
        ..Run::default()
    }
}

impl Test {
    /// Writes a run's record, and gives the path of its folder.
    pub(crate) fn write_run(&self, name: &str, run: &Run) -> String {
        let mut run = run.clone();
        run.summarize();
        let folder = self.dir.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(RECORD), run.to_json()).unwrap();
        name.into()
    }

    /// Writes runs around so many µs each, and gives the paths of their folders.
    pub(crate) fn write_runs(&self, side: &str, us: &[u64]) -> Vec<String> {
        let write = |(i, &us): (usize, &u64)| {
            let name = format!("{side}/{i}");
            self.write_run(&name, &Run { id: name.clone(), ..run(us) })
        };
        us.iter().enumerate().map(write).collect()
    }
}
