//! The farm, with a runner that needs no emulator.

mod bench;
mod disk;
mod shared;
mod verifying;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wakescope_lab::farm::{Continue, End, Event, Outcome, Standing, run};
use wakescope_lab::store::{CellStore, Ending, FailureKind};
use wakescope_testing::Folder;

use bench::{Act, Fake, cached, farm, job, jobs, names, results, store_in};

#[test]
fn what_was_run_is_not_run_again() {
    let folder = Folder::new("again");
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    let jobs = jobs(5);
    let first = farm(&jobs, 2, &store, &fake);
    assert!(matches!(first.end, End::Complete), "{:?}", first.end);
    assert_eq!(cached(&first.outcomes), [Some(false); 5]);
    assert!(first.outcomes.iter().all(|o| o.failed().is_none()));
    let second = farm(&jobs, 2, &store, &fake);
    assert_eq!(cached(&second.outcomes), [Some(true); 5]);
    assert_eq!(results(&first.outcomes), results(&second.outcomes));
    assert!(fake.runs().values().all(|&n| n == 1));
}

#[test]
fn the_number_of_workers_does_not_change_the_results() {
    let mut all = BTreeSet::new();
    let jobs =
        [jobs(8), vec![job(8, Act::Fail(FailureKind::Panic)), job(3, Act::Measure)]].concat();
    for parallel in [0, 1, 2, 5, 100] {
        let folder = Folder::new(&format!("parallel-{parallel}"));
        let fake = Fake::new(folder.path());
        let harvest = farm(&jobs, parallel, &store_in(&folder), &fake);
        assert!(matches!(harvest.end, End::Complete));
        // The same cell twice in a list is run once.
        assert!(fake.runs().values().all(|&n| n == 1), "{parallel}: {:?}", fake.runs());
        all.insert(results(&harvest.outcomes));
    }
    assert_eq!(all.len(), 1, "{all:?}");
}

#[test]
fn cells_run_side_by_side() {
    let folder = Folder::new("side");
    let fake = Fake::new(folder.path());
    let jobs: Vec<_> = (0..3).map(|seed| job(seed, Act::HangUntil("go"))).collect();
    let harvest = run(&jobs, 3, &store_in(&folder), &fake, &mut |_, _| {
        // None would end if they ran one after the other.
        if fake.most_at_once() == 3 {
            std::fs::write(folder.path().join("go"), "").unwrap();
        }
        Continue::Continue(())
    });
    assert!(matches!(harvest.end, End::Complete));
    assert_eq!(fake.most_at_once(), 3);
}

#[test]
fn an_interrupted_farm_goes_on_where_it_ended() {
    let folder = Folder::new("resume");
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    let mut jobs = jobs(8);
    (jobs[3].work, jobs[4].work) = (Act::HangUntil("never"), Act::HangAndMisjudge);
    let stopped = run(&jobs, 2, &store, &fake, &mut |_, standing: &Standing| match (
        standing.done,
        standing.running.len(),
    ) {
        (3, 2) => Continue::Break(()),
        _ => Continue::Continue(()),
    });
    assert!(matches!(stopped.end, End::Stopped), "{:?}", stopped.end);
    let (done, not) = (Some(false), None);
    assert_eq!(cached(&stopped.outcomes), [done, done, done, not, not, not, not, not]);
    assert!(stopped.outcomes[3..].iter().all(|o| *o == Outcome::NotRun), "{stopped:?}");
    assert_eq!(names(store.folder()).len(), 3, "{:?}", names(store.folder()));

    let jobs = bench::jobs(8);
    let resumed = farm(&jobs, 2, &store, &fake);
    let (there, new) = (Some(true), Some(false));
    assert_eq!(cached(&resumed.outcomes), [there, there, there, new, new, new, new, new]);
    let fresh = Folder::new("resume-fresh");
    let whole = farm(&jobs, 1, &store_in(&fresh), &Fake::new(folder.path()));
    assert_eq!(results(&resumed.outcomes), results(&whole.outcomes));
}

#[test]
fn failures_of_the_guest_are_kept_and_those_of_the_host_are_not() {
    use FailureKind::*;
    for (kind, kept) in [
        (Panic, true),
        (Oops, true),
        (Reboot, true),
        (VirtualTimeLimit, true),
        (Refused, true),
        (NoResult, true),
        (HostTimeLimit, false),
        (Emulator, false),
        (Lab, false),
    ] {
        let folder = Folder::new(&format!("failures-{kind:?}"));
        let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
        for repetition in 0..2 {
            let harvest = farm(&[job(1, Act::Fail(kind))], 1, &store, &fake);
            assert!(matches!(harvest.end, End::Complete));
            let outcome = &harvest.outcomes[0];
            let failed = outcome.failed().unwrap();
            assert_eq!((failed.kind, failed.evidence.len()), (kind, 1));
            let want = kept.then_some(repetition == 1);
            assert_eq!(cached(&harvest.outcomes), [want], "{kind:?}");
        }
        assert_eq!(fake.runs().into_values().sum::<u32>(), if kept { 1 } else { 2 });
        assert_eq!(names(store.folder()).len(), usize::from(kept));
    }
}

#[test]
fn a_fault_of_the_runner_is_a_failed_cell_and_the_others_go_on() {
    for (act, want) in [
        (Act::Panic, "a bug in the lab: the runner has a bug"),
        (Act::Empty, "a bug in the lab: the result has no files"),
        (Act::Nest, "a bug in the lab: \"deep\" is not a plain file that a cell contains"),
    ] {
        let folder = Folder::new("fault");
        let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
        let mut jobs = jobs(4);
        jobs[1].work = act;
        let harvest = farm(&jobs, 1, &store, &fake);
        assert!(matches!(harvest.end, End::Complete));
        let Outcome::Failed(failed) = &harvest.outcomes[1] else { panic!("{harvest:?}") };
        assert_eq!(failed.kind, FailureKind::Lab);
        assert!(failed.reason.starts_with(want), "{}", failed.reason);
        let new = Some(false);
        assert_eq!(cached(&harvest.outcomes), [new, None, new, new]);
        assert_eq!(names(store.folder()).len(), 3);
    }
}

#[test]
fn a_damaged_cell_is_run_again_and_said_so() {
    let folder = Folder::new("damaged");
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    let jobs = jobs(3);
    let first = farm(&jobs, 1, &store, &fake);
    let record = store.folder().join(jobs[1].recipe.key().as_str()).join("run.json");
    std::fs::write(&record, "{\"of\": \"somebody else\"}").unwrap();
    let mut text = Vec::new();
    let second = run(&jobs, 1, &store, &fake, &mut |event, _| {
        if let Event::Started { job, damaged } = event {
            text.push((job, damaged.map(String::from)));
        }
        Continue::Continue(())
    });
    assert_eq!(text, [(1, Some("run.json does not match its checksum".to_string()))]);
    assert_eq!(cached(&second.outcomes), [Some(true), Some(false), Some(true)]);
    assert_eq!(results(&first.outcomes), results(&second.outcomes));
}

#[test]
fn the_watcher_sees_how_far_it_is() {
    let folder = Folder::new("watcher");
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    farm(&jobs(2), 1, &store, &fake);
    let mut jobs = jobs(4);
    jobs[3].work = Act::Fail(FailureKind::Oops);
    let mut seen = Vec::new();
    run(&jobs, 1, &store, &fake, &mut |event, s| {
        let what = match event {
            Event::Started { job, .. } => format!("started {job}"),
            Event::Finished { job, .. } => format!("finished {job}"),
            Event::Waits { job } => format!("waits {job}"),
            Event::Tick => return Continue::Continue(()),
        };
        assert_eq!(s.total, 4);
        let left = s.left.is_some();
        seen.push(format!("{what}: {} {} {} {left}", s.done, s.cached, s.failed));
        if let [running] = &s.running[..] {
            assert_eq!(
                running.label.to_string(),
                format!("6.1-cloud full find seed {}", running.job)
            );
        }
        Continue::Continue(())
    });
    let want = [
        "finished 0: 1 1 0 false",
        "finished 1: 2 2 0 false",
        "started 2: 2 2 0 false",
        "finished 2: 3 2 0 true",
        "started 3: 3 2 0 true",
        "finished 3: 4 2 1 true",
    ];
    assert_eq!(seen, want);
}

#[test]
fn a_panic_of_the_watcher_does_not_leave_guests_behind() {
    let folder = Folder::new("panic");
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    let jobs = [job(1, Act::HangUntil("never")), job(2, Act::Measure)];
    let farm = || run(&jobs, 1, &store, &fake, &mut |_, _| panic!("no room on the screen"));
    assert!(catch_unwind(AssertUnwindSafe(farm)).is_err());
    assert_eq!(names(store.folder()), [""; 0]);
    assert_eq!(fake.runs().len(), 1, "it went on to the next");
}

#[test]
fn nothing_to_do_is_done_at_once() {
    let folder = Folder::new("nothing");
    let harvest = farm(&[], 2, &store_in(&folder), &Fake::new(folder.path()));
    assert!(matches!(harvest.end, End::Complete));
    assert!(harvest.outcomes.is_empty());
}

#[test]
fn meta_says_what_differs_between_repetitions() {
    let folder = Folder::new("meta");
    let store = store_in(&folder);
    let harvest = farm(&jobs(1), 1, &store, &Fake::new(folder.path()));
    let Outcome::Kept { cell, .. } = &harvest.outcomes[0] else { panic!("{harvest:?}") };
    assert_eq!(cell.ending, Ending::Measured);
    assert_eq!(cell.meta.label, jobs(1)[0].label);
    assert!(cell.meta.host_ns > 0);
    assert!(wakescope_core::date::Date::parse(&cell.meta.ended).is_some(), "{}", cell.meta.ended);
    drop(CellStore::open(store.folder()).unwrap());
}
