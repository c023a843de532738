//! Measurements to look at.

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_core::finding::Finding;
use wakescope_core::histogram::Histogram;
use wakescope_core::run::Run;
use wakescope_sys::sched;

use super::assert_valid_run;
use super::bench::{Ended, Running, Test, eventually_some};

/// The record's name in the folder of a run, and that of its next version in the making.
pub(crate) const RECORD: &str = "run.json";
pub(crate) const NEXT: &str = "run.json.next";

impl Test {
    /// Runs `wakescope measure` with `args` to its end, whatever that is.
    pub(crate) fn measure(&self, args: &[&str]) -> Ended {
        self.start_measure(args).output()
    }

    /// Runs `wakescope measure` with `args`, which must end well, and reads what it wrote.
    #[track_caller]
    pub(crate) fn measured(&self, args: &[&str]) -> Run {
        let before = self.runs();
        let ended = self.measure(args);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        let fresh: Vec<PathBuf> =
            self.runs().into_iter().filter(|run| !before.contains(run)).collect();
        let [folder] = fresh.as_slice() else { panic!("not one new run: {fresh:?}") };
        record(folder)
    }

    /// Starts `wakescope measure` with `args`.
    pub(crate) fn start_measure(&self, args: &[&str]) -> Running {
        self.start_command(&[&["measure"], args].concat())
    }

    /// The folders of runs that were not given a name.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        names(&self.dir.join("runs")).iter().map(|n| self.dir.join("runs").join(n)).collect()
    }

    /// The folder of the only run.
    #[track_caller]
    pub(crate) fn run_folder(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.into_iter().next().unwrap()
    }

    /// Waits until the only run has come to samples on every CPU that it measures.
    #[track_caller]
    pub(crate) fn await_samples(&self) -> PathBuf {
        let folder = eventually_some("a run begins", || {
            self.runs().into_iter().find(|folder| folder.join(RECORD).exists())
        });
        await_samples_in(&folder);
        folder
    }
}

/// Waits until the run in `folder` has come to samples on every CPU that it measures.
#[track_caller]
pub(crate) fn await_samples_in(folder: &Path) {
    eventually_some("there are samples on every CPU", || {
        let run = Run::from_json(&fs::read(folder.join(RECORD)).ok()?).unwrap();
        let measures = run.threads.iter().all(|t| t.woken.count > 0);
        (measures && !run.threads.is_empty()).then_some(())
    });
}

/// The record in `folder`, which must fit the schema and not contradict itself.
#[track_caller]
pub(crate) fn record(folder: &Path) -> Run {
    let path = folder.join(RECORD);
    let json = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_valid_run(&json);
    let run = Run::from_json(json.as_bytes()).unwrap();
    assert_counts_agree(&run);
    run
}

/// Counted here once more, not to rely on what the reader checks.
#[track_caller]
fn assert_counts_agree(run: &Run) {
    for thread in &run.threads {
        for d in [&thread.woken, &thread.expiries] {
            let held: u64 = d.histogram.buckets().iter().map(|b| b.count).sum();
            assert_eq!(d.count, held, "{d:?}");
        }
        assert_eq!(thread.expiries.count, thread.woken.count + thread.missed);
    }
    let count: u64 = run.threads.iter().map(|t| t.expiries.count).sum();
    assert_eq!(run.summary.count, count);
}

/// The finding with this code, if there is one.
pub(crate) fn finding<'a>(run: &'a Run, code: &str) -> Option<&'a Finding> {
    run.validity.findings.iter().find(|f| f.code == code)
}

#[track_caller]
pub(crate) fn assert_found<'a>(run: &'a Run, code: &str) -> &'a Finding {
    finding(run, code).unwrap_or_else(|| panic!("no finding {code}: {:?}", run.validity))
}

#[track_caller]
pub(crate) fn assert_not_found(run: &Run, code: &str) {
    assert_eq!(finding(run, code), None);
}

/// The histogram of samples as one would make it from their list.
pub(crate) fn histogram_of(samples: &[u64]) -> Histogram {
    Histogram::of(samples.iter().copied())
}

/// The CPUs that tests may use.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    sched::affinity().unwrap()
}

/// What is in a folder, in order; nothing if it is not there.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
