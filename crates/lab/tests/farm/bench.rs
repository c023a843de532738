//! What the tests of the farm need: jobs, a runner without an emulator, folders, patience.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wakescope_core::units::SpanNs;
use wakescope_lab::farm::{Continue, Event, Harvest, Job, Outcome, Runner, Standing, run};
use wakescope_lab::store::{
    CONSOLE, CellStore, Ending, Failed, FailureKind, Ingredients, Key, Label, Recipe,
};
use wakescope_sys::clock;

/// Nothing here takes as long as this unless it hangs.
const PATIENCE: SpanNs = SpanNs(120_000_000_000);

/// What the fake guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Measure,
    /// Writes half a result, and goes on until it is cancelled or the file of this name is there.
    HangUntil(&'static str),
    /// Hangs until it is cancelled, and takes that for a panic of its guest.
    HangAndMisjudge,
    Fail(FailureKind),
    /// Panics itself.
    Panic,
    /// Says that it measured, but wrote nothing.
    Empty,
    /// Makes a folder.
    Nest,
    /// Takes all the room on the disk, then returns what a runner would that does not notice.
    FillAndFail(FailureKind),
    FillAndMeasure,
}

/// `count` jobs that measure.
pub(crate) fn jobs(count: usize) -> Vec<Job<Act>> {
    (0..count).map(|seed| job(seed, Act::Measure)).collect()
}

/// One job; its act is no part of its recipe.
pub(crate) fn job(seed: usize, act: Act) -> Job<Act> {
    let line = format!("-- --load find --seed {seed}");
    let recipe = Recipe::new(&Ingredients {
        kernel_sha256: "11",
        guest_sha256: "22",
        emulator: "none",
        arguments: &[],
        command_line: &line,
    });
    let label = Label {
        kernel: "6.1-cloud".into(),
        kernel_file: None,
        model: "full".into(),
        load: "find".into(),
        seed: Some(seed as u64),
    };
    Job { recipe, label, work: act }
}

/// Runs no guest: what it writes follows from the recipe alone.
pub(crate) struct Fake {
    /// Where files are looked for that end a hanging guest.
    releases: PathBuf,
    runs: Mutex<BTreeMap<Key, u32>>,
    most_at_once: Mutex<(u32, u32)>,
}

impl Fake {
    pub(crate) fn new(releases: &Path) -> Self {
        let (releases, runs) = (releases.into(), Mutex::default());
        Self { releases, runs, most_at_once: Mutex::default() }
    }

    /// How often each cell was run.
    pub(crate) fn runs(&self) -> BTreeMap<Key, u32> {
        self.runs.lock().unwrap().clone()
    }

    pub(crate) fn most_at_once(&self) -> u32 {
        self.most_at_once.lock().unwrap().1
    }

    fn act(&self, job: &Job<Act>, folder: &Path, cancel: &AtomicBool) -> Ending {
        let record = folder.join("run.json");
        match job.work {
            Act::Measure => measure(job, folder),
            Act::HangUntil(release) => {
                fs::write(&record, "{\"half\":").unwrap();
                if self.hang(release, cancel) {
                    return measure(job, folder);
                }
                Failed::new(FailureKind::Cancelled, "cancelled").into()
            }
            Act::HangAndMisjudge => {
                self.hang("never", cancel);
                Failed::new(FailureKind::Panic, "the guest is gone").into()
            }
            Act::Fail(kind) => {
                let failed = Failed::new(kind, "as it was text");
                failed.with_evidence(["Kernel panic - not syncing".to_string()]).into()
            }
            Act::Panic => panic!("the runner has a bug"),
            Act::Empty => Ending::Measured,
            Act::Nest => {
                fs::create_dir(folder.join("deep")).unwrap();
                Ending::Measured
            }
            Act::FillAndFail(kind) => {
                fill(&folder.join(CONSOLE));
                Failed::new(kind, "there is nothing").into()
            }
            Act::FillAndMeasure => {
                measure(job, folder);
                fill(&folder.join(CONSOLE));
                Ending::Measured
            }
        }
    }

    /// Returns whether it was released; if not, it was cancelled.
    fn hang(&self, release: &str, cancel: &AtomicBool) -> bool {
        let released = || self.releases.join(release).exists();
        eventually("the guest is released or cancelled", || {
            cancel.load(Ordering::SeqCst) || released()
        });
        !cancel.load(Ordering::SeqCst)
    }
}

impl Runner<Act> for Fake {
    fn run(&self, job: &Job<Act>, folder: &Path, cancel: &AtomicBool) -> Ending {
        *self.runs.lock().unwrap().entry(job.recipe.key()).or_default() += 1;
        {
            let mut at_once = self.most_at_once.lock().unwrap();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
        }
        fs::write(folder.join(CONSOLE), format!("booted at {:?}", clock::now())).unwrap();
        let ending = self.act(job, folder, cancel);
        self.most_at_once.lock().unwrap().0 -= 1;
        ending
    }
}

fn measure(job: &Job<Act>, folder: &Path) -> Ending {
    let text = format!("{{\"of\": \"{}\"}}\n", job.recipe.key());
    fs::write(folder.join("run.json"), text).unwrap();
    Ending::Measured
}

fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}

/// Runs `jobs` to their end.
pub(crate) fn farm(
    jobs: &[Job<Act>],
    parallel: usize,
    store: &CellStore,
    runner: &Fake,
) -> Harvest {
    run(jobs, parallel, store, runner, &mut |_: Event<'_>, _: &Standing| Continue::Continue(()))
}

/// For each outcome: the key, the sum of its result and how it ended, or that it is not kept.
pub(crate) fn results(outcomes: &[Outcome]) -> Vec<String> {
    let text = |outcome: &Outcome| match outcome {
        Outcome::Kept { cell, .. } => {
            format!("{} {:?} {:?}", cell.key, cell.sum("run.json"), cell.ending)
        }
        other => format!("{other:?}"),
    };
    outcomes.iter().map(text).collect()
}

/// For each outcome, whether it was in the cache; `None` if it is not kept.
pub(crate) fn cached(outcomes: &[Outcome]) -> Vec<Option<bool>> {
    let cached = |outcome: &Outcome| match outcome {
        Outcome::Kept { cached, .. } => Some(*cached),
        _ => None,
    };
    outcomes.iter().map(cached).collect()
}

/// What is in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The store of what is run in this folder.
pub(crate) fn store_in(folder: &Path) -> CellStore {
    CellStore::open(&folder.join("cells")).unwrap()
}

#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = clock::now().after(PATIENCE);
    while !condition() {
        assert!(clock::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
