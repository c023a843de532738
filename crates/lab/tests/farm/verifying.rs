//! Cells of the cache, run once more.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use wakescope_core::run::{Run, SCHEMA};
use wakescope_lab::farm::{Continue, End, Event, Job, Repeated, Runner, verify};
use wakescope_lab::store::{
    CONSOLE, CellStore, Ending, Failed, FailureKind, Ingredients, Key, Label, Recipe, StoredCell,
};
use wakescope_testing::Folder;

use crate::bench::{eventually, names, store_in};

/// What a guest gives on this host, which may not be what it gave before.
#[derive(Clone, Debug)]
struct Gives {
    max_ns: u32,
    ending: Ending,
    /// In place of a record that holds `max_ns`.
    record: Option<String>,
    extra: bool,
    console: &'static str,
    hangs: bool,
}

impl Default for Gives {
    fn default() -> Self {
        let ending = Ending::Measured;
        Self { max_ns: 113, ending, record: None, extra: false, console: "booting", hangs: false }
    }
}

struct Guest;

impl Runner<Gives> for Guest {
    fn run(&self, job: &Job<Gives>, folder: &Path, cancel: &AtomicBool) -> Ending {
        if job.work.hangs {
            eventually("it is cancelled", || cancel.load(Ordering::SeqCst));
            return Failed::new(FailureKind::Cancelled, "cancelled").into();
        }
        let of_max = || format!("{{\"threads\": [{{\"max_ns\": {}}}]}}", job.work.max_ns);
        let record = job.work.record.clone().unwrap_or_else(of_max);
        fs::write(folder.join("run.json"), record).unwrap();
        fs::write(folder.join("kernel.log"), format!("took {}", job.work.max_ns)).unwrap();
        fs::write(folder.join("guest.json"), job.work.max_ns.to_string()).unwrap();
        fs::write(folder.join(CONSOLE), job.work.console).unwrap();
        if job.work.extra {
            fs::write(folder.join("check.json"), "{}").unwrap();
        }
        job.work.ending.clone()
    }
}

fn job(seed: u64, gives: Gives) -> Job<Gives> {
    let recipe = Recipe::new(&Ingredients {
        kernel_sha256: "11",
        guest_sha256: "22",
        emulator: "none",
        arguments: &[],
        command_line: &format!("--seed {seed}"),
    });
    let label = Label { kernel: "6.1".into(), seed: Some(seed), ..Label::default() };
    Job { recipe, label, work: gives }
}

fn failed(kind: FailureKind, reason: &str) -> Gives {
    Gives { ending: Failed::new(kind, reason).into(), ..Gives::default() }
}

/// Runs a cell that gives `before`, then verifies it on a host where it gives `now`.
#[track_caller]
fn check(before: Gives, now: &Result<Gives, String>, want: &str) {
    let folder = Folder::new("verify");
    let store = store_in(&folder);
    let first = job(1, before);
    run(&store, std::slice::from_ref(&first));
    let prepare = |cell: &StoredCell| {
        let work = now.clone().map_err(Repeated::CannotRun)?;
        Ok(Job { recipe: cell.recipe.clone(), label: cell.meta.label.clone(), work })
    };
    let key = first.recipe.key();
    let found =
        verify(std::slice::from_ref(&key), 2, &store, &prepare, &Guest, &mut go_on).unwrap();
    assert!(matches!(found.end, End::Complete));
    let cell = &found.cells[0];
    assert_eq!((&cell.key, cell.label.seed), (&key, Some(1)));
    let text = match &cell.repeated {
        Repeated::Differs(difference) => difference.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(text, want);
    assert_eq!(names(store.folder()), [key.as_str()], "nothing of it stays");
}

fn run(store: &CellStore, jobs: &[Job<Gives>]) {
    wakescope_lab::farm::run(jobs, 1, store, &Guest, &mut go_on);
}

fn go_on(_: Event<'_>, _: &wakescope_lab::farm::Standing) -> Continue {
    Continue::Continue(())
}

#[test]
fn each_way_in_which_a_repetition_can_come_out() {
    use FailureKind::{Emulator, Oops, Panic};
    let usual = Gives::default;
    check(usual(), &Ok(usual()), "Same");
    check(
        usual(),
        &Ok(Gives { max_ns: 114, ..usual() }),
        "run.json, threads[0].max_ns: 113, repeated 114",
    );
    check(
        usual(),
        &Ok(Gives { extra: true, ..usual() }),
        "check.json, the whole of it: nothing, repeated a file",
    );
    let cut = Gives { console: "boot", ..usual() };
    check(usual(), &Ok(cut), "console.log, line 1: booting, repeated boot");
    let cut = Gives { console: "boot", ..failed(Panic, "at 1") };
    check(failed(Panic, "at 1"), &Ok(cut), "FailedAgain");
    check(
        usual(),
        &Ok(failed(Panic, "it panicked")),
        "ending.json, how it ended: with a result, repeated panic: it panicked",
    );
    check(failed(Panic, "at 1"), &Ok(failed(Panic, "at 2")), "FailedAgain");
    check(
        failed(Panic, "at 1"),
        &Ok(failed(Oops, "at 1")),
        "ending.json, how it ended: panic: at 1, repeated oops: at 1",
    );
    check(usual(), &Ok(failed(Emulator, "killed")), "CannotRun(\"killed\")");
    check(usual(), &Err("its kernel was removed".into()), "CannotRun(\"its kernel was removed\")");
}

/// The host writes what a guest sent, and so did the version that stored it.
#[test]
fn a_record_that_lacks_an_empty_key_of_today_is_the_same() {
    let sent = Run { schema: SCHEMA.into(), ..Run::default() };
    let today = Run::from_json(sent.to_json().as_bytes()).unwrap();
    let gives = |record: String| Gives { record: Some(record), ..Gives::default() };
    let mut before: serde_json::Value = serde_json::from_str(&today.to_json()).unwrap();
    assert!(before["host"].as_object_mut().unwrap().remove("sched_ext").unwrap().is_null());
    check(gives(before.to_string()), &Ok(gives(today.to_json())), "Same");
    let mut other = today;
    other.host.sched_ext = Some("scx".into());
    let want = "run.json, host.sched_ext: null, repeated \"scx\"";
    check(gives(before.to_string()), &Ok(gives(other.to_json())), want);
}

#[test]
fn damaged_and_unknown_cells_and_other_recipes_are_said() {
    let folder = Folder::new("verify-odd");
    let store = store_in(&folder);
    let jobs: Vec<_> = (0..3).map(|seed| job(seed, Gives::default())).collect();
    run(&store, &jobs);
    let mut keys: Vec<Key> = jobs.iter().map(|job| job.recipe.key()).collect();
    keys.push(job(9, Gives::default()).recipe.key());
    fs::write(store.folder().join(keys[0].as_str()).join("run.json"), "{}").unwrap();
    let prepare = |cell: &StoredCell| {
        // As after an update of the emulator.
        let changed = cell.meta.label.seed == Some(1);
        let recipe =
            if changed { cell.recipe.clone().with("more", "") } else { cell.recipe.clone() };
        Ok(Job { recipe, label: cell.meta.label.clone(), work: Gives::default() })
    };
    let mut text = Vec::new();
    let found = verify(&keys, 1, &store, &prepare, &Guest, &mut |event, standing| {
        if let Event::Finished { job, .. } = event {
            text.push((job, standing.total));
        }
        Continue::Continue(())
    });
    let repeated: Vec<Repeated> = found.unwrap().cells.into_iter().map(|c| c.repeated).collect();
    let cannot = |why: &str| Repeated::CannotRun(why.into());
    let want = [
        Repeated::Damaged("run.json does not match its checksum".into()),
        cannot("its guest image, emulator or kernel has changed"),
        Repeated::Same,
        cannot("there is no such cell in the cache"),
    ];
    assert_eq!(repeated, want);
    assert_eq!(text, [(2, 1)], "the watcher is text the place in the list that was given");
}

#[test]
fn a_key_that_is_given_more_than_once_is_run_once() {
    let folder = Folder::new("verify-more-than-once");
    let store = store_in(&folder);
    let jobs: Vec<_> = (0..2).map(|seed| job(seed, Gives::default())).collect();
    run(&store, &jobs);
    let [one, other] = [0, 1].map(|at: usize| jobs[at].recipe.key());
    let keys = [&one, &one, &other, &one, &other].map(Key::clone);
    let prepare = |cell: &StoredCell| {
        let (recipe, label) = (cell.recipe.clone(), cell.meta.label.clone());
        Ok(Job { recipe, label, work: Gives::default() })
    };
    let mut text = Vec::new();
    let found = verify(&keys, 1, &store, &prepare, &Guest, &mut |event, standing| {
        if let Event::Started { job, .. } = event {
            text.push((job, standing.total));
        }
        Continue::Continue(())
    });
    let found = found.unwrap().cells;
    let repeated: Vec<_> = found.iter().map(|cell| (&cell.key, &cell.repeated)).collect();
    assert_eq!(repeated, [(&one, &Repeated::Same), (&other, &Repeated::Same)]);
    assert_eq!(text, [(0, 2), (2, 2)], "each guest is run once");
}

#[test]
fn a_verification_can_be_ended() {
    let folder = Folder::new("verify-end");
    let store = store_in(&folder);
    let jobs: Vec<_> = (0..3).map(|seed| job(seed, Gives::default())).collect();
    run(&store, &jobs);
    let keys = store.keys().unwrap();
    let prepare = |cell: &StoredCell| {
        let (recipe, label) = (cell.recipe.clone(), cell.meta.label.clone());
        Ok(Job { recipe, label, work: Gives { hangs: true, ..Gives::default() } })
    };
    let found =
        verify(&keys, 1, &store, &prepare, &Guest, &mut |_, _| Continue::Break(())).unwrap();
    assert!(found.cells.iter().all(|cell| cell.repeated == Repeated::NotRun), "{found:?}");
    assert!(matches!(found.end, End::Stopped));
    assert_eq!(store.keys().unwrap(), keys);
}
