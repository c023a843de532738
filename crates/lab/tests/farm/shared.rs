//! Labs that share a cache, and labs that are killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wakescope_lab::farm::{Continue, End, Event, Standing, run};
use wakescope_lab::store::CellStore;
use wakescope_testing::Folder;

use crate::bench::{Act, Fake, cached, eventually, farm, job, jobs, names, results, store_in};

/// Tells this program, started as a test's child, in which folder to be another lab.
const CHILD: &str = "WAKESCOPE_LAB_CHILD";

/// A lab in another process, ended with the test.
struct OtherLab(Child);

impl OtherLab {
    fn start(folder: &Path) -> Self {
        let mut this = Command::new(std::env::current_exe().unwrap());
        this.args(["--exact", "shared::another_lab", "--nocapture", "--test-threads=1"]);
        this.env(CHILD, folder).stdout(Stdio::null()).stderr(Stdio::inherit());
        Self(this.spawn().unwrap())
    }

    fn kill(&mut self) {
        // The signal that cannot be handled.
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for OtherLab {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What both labs run. The guest of the first job ends when it is released.
fn shared_jobs() -> Vec<wakescope_lab::farm::Job<Act>> {
    let mut jobs = jobs(6);
    jobs[0].work = Act::HangUntil("release");
    jobs
}

/// Does nothing but as a child of the tests below: then it is another lab.
#[test]
fn another_lab() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let store = CellStore::open(&folder.join("cells")).unwrap();
    let harvest = farm(&shared_jobs(), 1, &store, &Fake::new(&folder));
    assert!(matches!(harvest.end, End::Complete));
    let text = results(&harvest.outcomes).join("\n");
    fs::write(folder.join("results"), text).unwrap();
}

fn half_a_cell(folder: &Path, job: usize) -> PathBuf {
    let key = jobs(job + 1)[job].recipe.key();
    folder.join("cells").join(format!("{key}.new")).join("run.json")
}

#[test]
fn two_processes_run_each_cell_once() {
    let folder = Folder::new("processes");
    let mut other = OtherLab::start(folder.path());
    let half = half_a_cell(folder.path(), 0);
    eventually("the other lab runs the first cell", || half.exists());

    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    let mut order = Vec::new();
    let harvest = run(&shared_jobs(), 1, &store, &fake, &mut |event, standing: &Standing| {
        match event {
            Event::Waits { job } => order.push(format!("waits {job}")),
            Event::Finished { job, .. } => order.push(format!("finished {job}")),
            _ => {}
        }
        // Everything else is done first.
        if standing.done == 5 {
            assert_eq!(standing.waiting, 1);
            fs::write(folder.path().join("release"), "").unwrap();
        }
        Continue::Continue(())
    });
    assert!(matches!(harvest.end, End::Complete));
    let want = ["waits 0", "finished 1", "finished 2", "finished 3", "finished 4", "finished 5"];
    assert_eq!(order[..6], want);
    assert_eq!(order[6..], ["finished 0"], "it is text once that it waits");
    let (mine, theirs) = (Some(false), Some(true));
    assert_eq!(cached(&harvest.outcomes), [theirs, mine, mine, mine, mine, mine]);
    assert!(!fake.runs().contains_key(&jobs(1)[0].recipe.key()), "both ran it");
    assert!(other.0.wait().unwrap().success());
    let theirs = fs::read_to_string(folder.path().join("results")).unwrap();
    assert_eq!(theirs, results(&harvest.outcomes).join("\n"));
    assert_eq!(names(store.folder()).len(), 6, "{:?}", names(store.folder()));
}

#[test]
fn two_farms_of_a_process_run_each_cell_once() {
    let folder = Folder::new("threads");
    let fake = Fake::new(folder.path());
    let forwards = jobs(40);
    let backwards: Vec<_> = forwards.iter().rev().cloned().collect();
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| farm(&forwards, 2, &store_in(&folder), &fake));
        let other = scope.spawn(|| farm(&backwards, 2, &store_in(&folder), &fake));
        (one.join().unwrap(), other.join().unwrap())
    });
    let times: BTreeMap<_, _> = fake.runs();
    assert!(times.len() == 40 && times.values().all(|&n| n == 1), "{times:?}");
    let mut other = results(&other.outcomes);
    other.reverse();
    assert_eq!(results(&one.outcomes), other);
}

#[test]
fn a_lab_killed_in_mid_cell_leaves_nothing_that_the_next_does_not_clean() {
    let folder = Folder::new("killed");
    let mut other = OtherLab::start(folder.path());
    let half = half_a_cell(folder.path(), 0);
    eventually("the other lab runs the first cell", || half.exists());
    other.kill();
    assert!(half.exists(), "it was killed too late to leave anything");

    let store = store_in(&folder);
    assert_eq!(names(store.folder()), [""; 0]);
    let harvest = farm(&[job(0, Act::Measure)], 1, &store, &Fake::new(folder.path()));
    assert_eq!(cached(&harvest.outcomes), [Some(false)]);
}

#[test]
fn a_lab_goes_on_with_the_cell_of_one_that_is_killed() {
    let folder = Folder::new("orphaned");
    let mut other = OtherLab::start(folder.path());
    let half = half_a_cell(folder.path(), 0);
    eventually("the other lab runs the first cell", || half.exists());
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    let harvest = run(&jobs(1), 1, &store, &fake, &mut |event, _| {
        if let Event::Waits { .. } = event {
            other.kill();
        }
        Continue::Continue(())
    });
    assert!(matches!(harvest.end, End::Complete));
    assert_eq!(cached(&harvest.outcomes), [Some(false)]);
    assert_eq!(names(store.folder()).len(), 1);
}
