//! Full disks.

use std::fs::{self, File};

use wakescope_lab::farm::{End, FarmError, Outcome};
use wakescope_lab::store::{CellStore, FailureKind, LEAST_ROOM, StoreError};
use wakescope_testing::{Disk, Folder};

use crate::bench::{Act, Fake, eventually, farm, job, jobs, names, store_in};

/// Fails unless the second of three cells finds the disk full and `outcome` comes of it, the farm
/// ends for that reason, the first is kept and the third not begun.
#[track_caller]
fn check(name: &str, act: Act, outcome: fn(&Outcome) -> bool) {
    let folder = Folder::new(name);
    let place = folder.path().join("cells");
    fs::create_dir(&place).unwrap();
    let Some(_disk) = Disk::mount(&place, "size=8m", name) else { return };
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    let mut jobs = jobs(3);
    jobs[1].work = act;
    let harvest = farm(&jobs, 1, &store, &fake);
    let End::Broken(FarmError::Store(full @ StoreError::Full { .. })) = &harvest.end else {
        panic!("{:?}", harvest.end)
    };
    let want = format!("no space left for cells in {}: ", place.display());
    assert!(full.to_string().starts_with(&want), "{full}");
    assert!(full.remedy().contains("free space"));
    assert!(matches!(harvest.outcomes[0], Outcome::Kept { cached: false, .. }));
    assert!(outcome(&harvest.outcomes[1]), "{:?}", harvest.outcomes[1]);
    assert_eq!(harvest.outcomes[2], Outcome::NotRun);
    assert_eq!(names(&place), [jobs[0].recipe.key().as_str()], "nothing half stays");
    // A process that another test starts at this moment may hold the removed file a little longer.
    eventually("there is room again", || store.check_room().is_ok());
    jobs[1].work = Act::Measure;
    let harvest = farm(&jobs, 1, &store, &fake);
    assert!(matches!(harvest.end, End::Complete), "{:?}", harvest.end);
}

fn is_full(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(failed) if failed.kind == FailureKind::DiskFull)
}

#[test]
fn a_runner_that_finds_the_disk_full() {
    check("a_runner_that_finds_the_disk_full", Act::FillAndFail(FailureKind::DiskFull), is_full);
}

#[test]
fn a_full_disk_is_not_taken_for_a_failure_of_the_guest() {
    check(
        "a_full_disk_is_not_taken_for_a_failure_of_the_guest",
        Act::FillAndFail(FailureKind::NoResult),
        is_full,
    );
}

#[test]
fn a_result_that_cannot_be_kept_is_no_result() {
    check("a_result_that_cannot_be_kept_is_no_result", Act::FillAndMeasure, |outcome| {
        *outcome == Outcome::NotRun
    });
}

#[test]
fn nothing_is_begun_on_a_full_disk() {
    let folder = Folder::new("disk-start");
    let place = folder.path().join("cells");
    fs::create_dir(&place).unwrap();
    let Some(_disk) = Disk::mount(&place, "size=8m", "nothing_is_begun_on_a_full_disk") else {
        return;
    };
    let (store, fake) = (store_in(&folder), Fake::new(folder.path()));
    farm(&jobs(1), 1, &store, &fake);
    let filler = vec![1; usize::try_from(8 * 1024 * 1024 - LEAST_ROOM).unwrap()];
    fs::write(place.join("filler"), filler).unwrap();
    let harvest = farm(&[job(0, Act::Measure), job(1, Act::Measure)], 1, &store, &fake);
    assert!(matches!(harvest.end, End::Broken(FarmError::Store(StoreError::Full { .. }))));
    assert_eq!(fake.runs().len(), 1, "it began one");
    // What is in the cache can be had all the same.
    assert!(matches!(harvest.outcomes[0], Outcome::Kept { cached: true, .. }));
    File::create(place.join("filler")).unwrap();
    assert!(CellStore::open(&place).is_ok());
}
