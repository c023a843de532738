use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::sync::Barrier;

use wakescope_sys::file::effective_user;
use wakescope_testing::{Disk, Folder};

use super::*;
use crate::contents::check_runs_folder;

/// A user that is neither root nor the one that runs the test.
const SOMEBODY: u32 = 65_533;

/// A record, as far as this module knows any.
fn record_of(text: &str) -> Vec<u8> {
    format!("{{\"schema\": {MARKER}2\", \"id\": \"{text}\"}}").into_bytes()
}

fn read(folder: &Path) -> String {
    fs::read_to_string(folder.join(RECORD)).unwrap()
}

/// Makes a run, or says why not, which can be known before.
fn create(path: &Path) -> Result<RunFiles, RunFolderError> {
    let checked = check_run_folders([path.to_path_buf()]);
    let made = RunFiles::create(Some(path), "", b"first");
    let refused = made.as_ref().err();
    assert_eq!(format!("{:?}", checked.err()), format!("{refused:?}"), "{}", path.display());
    made
}

#[test]
fn a_disk_that_others_fill_has_room_for_a_version_of_twice_the_length() {
    let scratch = Folder::new("room");
    let name = "a_disk_that_others_fill_has_room_for_a_version_of_twice_the_length";
    let Some(_disk) = Disk::mount(&scratch, "size=16m", name) else { return };
    let folder = scratch.join("run");
    let mut files = create(&folder).unwrap();
    let mut length = 256 << 10;
    for _ in 0..3 {
        files.write(&vec![b'1'; length]).unwrap();
        length *= 2;
    }
    let mut filler = File::create(scratch.join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    // In turn into the one file and the other.
    files.write(&vec![b'2'; length]).unwrap();
    files.write(&vec![b'3'; length + 1]).unwrap_err();
    files.write(&vec![b'3'; length / 2]).unwrap();
    assert_eq!(read(&folder), "3".repeat(length / 2));
    let last = vec![b'4'; length];
    files.finish(&last).unwrap();
    assert_eq!(fs::read(folder.join(RECORD)).unwrap(), last);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "only the record is left");
    let taken = fs::metadata(folder.join(RECORD)).unwrap().blocks() * 512;
    assert!(taken < length as u64 + (16 << 10), "{taken} bytes for {length}");
}

#[test]
fn a_folder_that_is_renamed_meanwhile_is_named_as_it_is() {
    let scratch = Folder::new("renamed");
    let (named, renamed) = (scratch.join("run"), scratch.join("other"));
    let files = create(&named).unwrap();
    fs::rename(&named, &renamed).unwrap();
    // What has the old name by now is something else.
    fs::create_dir(&named).unwrap();
    let path = files.finish(&record_of("x")).unwrap();
    assert_eq!(path, fs::canonicalize(&renamed).unwrap());
    assert_eq!(read(&renamed).into_bytes(), record_of("x"));
    // One that stays is named as the user did.
    let link = scratch.join("link");
    symlink(&named, &link).unwrap();
    let files = create(&link).unwrap();
    assert_eq!(files.finish(&record_of("y")).unwrap(), link);
}

#[test]
fn each_version_replaces_the_last_whole() {
    for exchanges in [true, false] {
        let scratch = Folder::new("versions");
        let mut files = create(&scratch).unwrap();
        files.exchanges = exchanges;
        for version in ["a longer second", "3rd", "the fourth one"] {
            files.write(version.as_bytes()).unwrap();
            assert_eq!(read(&scratch), version);
        }
        files.finish(b"end").unwrap();
        assert_eq!(read(&scratch), "end");
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 1, "only the record is left");
    }
}

#[test]
fn a_run_is_not_overwritten() {
    let scratch = Folder::new("overwrite");
    let first = create(&scratch).unwrap();
    let taken = |path: &Path| matches!(create(path), Err(RunFolderError::HoldsRun(_)));
    assert!(taken(&scratch), "a run is written there");
    first.finish(b"end").unwrap();
    assert!(taken(&scratch));
    assert_eq!(read(&scratch), "end");
}

#[test]
fn of_many_that_are_told_a_new_folder_one_gets_it() {
    const RUNS: usize = 8;
    for round in 0..50 {
        let scratch = Folder::new(&format!("race-{round}"));
        let folder = scratch.join("a/b");
        let barrier = Barrier::new(RUNS);
        let run = |number: usize| {
            let own = format!("run {number}");
            barrier.wait();
            let files = RunFiles::create(Some(&folder), "", own.as_bytes());
            // Nobody ends before all have begun.
            barrier.wait();
            files.and_then(|files| files.finish(own.as_bytes())).is_ok().then_some(own)
        };
        let winners: Vec<String> = std::thread::scope(|scope| {
            let run = &run;
            let runs: Vec<_> = (0..RUNS).map(|number| scope.spawn(move || run(number))).collect();
            runs.into_iter().filter_map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(winners, [read(&folder)], "round {round}");
    }
}

#[test]
fn a_folder_of_runs_does_not_become_one() {
    let runs = Folder::new("folder-of-runs");
    create(&runs.join("first")).unwrap().finish(b"{}").unwrap();
    let refused = create(&runs).err();
    assert!(matches!(refused, Some(RunFolderError::HoldsRuns(_))), "{refused:?}");
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 1);
    create(&runs.join("second")).unwrap().finish(b"{}").unwrap();
    // Several do not become folders of one, nor anything that of a watch.
    let several = |path: &Path| check_runs_folder(path, ["third".into()]);
    several(&runs).unwrap();
    let in_run = several(&runs.join("first"));
    assert!(matches!(in_run, Err(RunFolderError::HoldsRun(_))), "{in_run:?}");
    let watch = Folder::new("folder-of-windows");
    fs::write(watch.join("2026-11-21T01-00-00.jsonl"), "").unwrap();
    for refused in [create(&watch).map(drop), several(&watch)] {
        assert!(matches!(refused, Err(RunFolderError::HoldsWatch(_))), "{refused:?}");
    }
    assert_eq!(fs::read_dir(&watch).unwrap().count(), 1);
    // Other things may lie in a run's folder.
    let own = Folder::new("folder-of-others");
    fs::create_dir(own.join("notes")).unwrap();
    create(&own).unwrap().finish(b"{}").unwrap();
}

#[test]
fn a_run_that_does_not_begin_leaves_nothing_that_it_made() {
    let scratch = Folder::new("discard");
    for out in ["", "a", "a/b/c", "a/../b"] {
        let mut files = create(&scratch.join(out)).unwrap();
        files.add(SAMPLES).unwrap();
        files.discard();
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "{out}");
    }
}

#[test]
fn a_folder_is_checked_without_a_trace() {
    let scratch = Folder::new("checked");
    fs::create_dir(scratch.join("there")).unwrap();
    fs::write(scratch.join("file"), "").unwrap();
    for out in ["", "there", "there/a", "a", "a/b/c", "a/../b"] {
        check_run_folders([scratch.join(out)]).unwrap();
    }
    for out in ["file", "file/a", "/dev/full/a", "/proc/a", "/proc/self/a/b"] {
        let refused = check_run_folders([scratch.join(out)]).err();
        assert!(matches!(refused, Some(RunFolderError::Folder(..))), "{out}: {refused:?}");
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 2);
    assert_eq!(fs::read_dir(scratch.join("there")).unwrap().count(), 0);
}

/// Puts something of the name of a run's file there.
type Put = fn(&Path);

const KINDS: [(&str, Put); 6] = [
    ("a file", |path| fs::write(path, "treasure").unwrap()),
    ("a symbolic link", |path| symlink("../treasure", path).unwrap()),
    ("a symbolic link", |path| symlink("../nowhere", path).unwrap()),
    ("a FIFO", |path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }),
    ("a folder", |path| fs::create_dir(path).unwrap()),
    ("a file", |path| {
        fs::write(path, "treasure").unwrap();
        if effective_user() == 0 {
            chown(path, Some(SOMEBODY), None).unwrap();
        }
    }),
];

#[test]
fn whatever_has_the_name_of_a_file_stays_as_it_is() {
    for name in [RECORD, NEXT, FRESH, SAMPLES] {
        for (kind, put) in KINDS {
            let scratch = Folder::new("names");
            fs::write(scratch.join("treasure"), "treasure").unwrap();
            let folder = scratch.join("run");
            fs::create_dir(&folder).unwrap();
            put(&folder.join(name));
            let refused = create(&folder).unwrap_err();
            let what = format!("{name} as {kind}: {refused:?}");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "{what}");
            assert_eq!(fs::read_to_string(scratch.join("treasure")).unwrap(), "treasure", "{what}");
            assert!(!scratch.join("nowhere").exists(), "{what}");
            match refused {
                RunFolderError::HoldsRun(_) => assert!([RECORD, SAMPLES].contains(&name), "{what}"),
                RunFolderError::InUse(_) => assert_eq!(name, NEXT, "{what}"),
                RunFolderError::File(path, why) => {
                    assert_eq!(path, folder.join(name), "{what}");
                    assert_eq!(why.to_string(), format!("{kind} of that name already exists"));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_folder_in_which_others_can_exchange_files_is_refused() {
    for (mode, is_safe) in [(0o755, true), (0o1777, true), (0o777, false), (0o757, false)] {
        let scratch = Folder::new("modes");
        let folder = scratch.join("run");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        match create(&folder) {
            Ok(files) => {
                assert!(is_safe, "{mode:o}");
                files.discard();
            }
            Err(RunFolderError::Folder(_, why)) => assert!(!is_safe, "{mode:o}: {why}"),
            Err(other) => panic!("{mode:o}: {other:?}"),
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
}

#[test]
fn a_folder_or_link_of_another_user_is_refused() {
    let scratch = Folder::new("owners");
    let (own, link) = (scratch.join("own"), scratch.join("link"));
    fs::create_dir(&own).unwrap();
    symlink("own", &link).unwrap();
    create(&link).unwrap().discard();
    if effective_user() != 0 {
        wakescope_testing::skip(
            "a_folder_or_link_of_another_user_is_refused",
            "only root can give files away",
        );
        return;
    }
    std::os::unix::fs::lchown(&link, Some(SOMEBODY), None).unwrap();
    let refused = create(&link).unwrap_err();
    assert!(format!("{refused:?}").contains("ForeignLink(65533)"), "{refused:?}");
    chown(&own, Some(SOMEBODY), None).unwrap();
    let refused = create(&own).unwrap_err();
    assert!(format!("{refused:?}").contains("ForeignFolder(65533)"), "{refused:?}");
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
}

#[test]
fn spare_files_of_the_dead_are_removed_and_of_the_living_kept() {
    let scratch = Folder::new("spare");
    let runs = wakescope_sys::folder::Folder::open(&scratch).unwrap();
    let record = record_of("a");
    let alive = RunFiles::create(Some(&scratch.join("alive")), "", &record).unwrap();
    let dead = scratch.join("dead");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join(NEXT), "half").unwrap();
    clean_up(&runs);
    assert!(dead.join(NEXT).exists(), "this may be a run that begins");
    fs::write(dead.join(RECORD), &record).unwrap();
    clean_up(&runs);
    assert!(alive.place.path.join(NEXT).exists());
    assert!(!dead.join(NEXT).exists());
}

#[test]
fn what_only_looks_like_a_dead_run_is_kept() {
    let scratch = Folder::new("looks");
    let record = record_of("a");
    let put = |folder: &str, record: &[u8]| {
        let folder = scratch.join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(RECORD), record).unwrap();
        fs::write(folder.join(NEXT), "treasure").unwrap();
        folder
    };
    let no_marker = put("runs/no-marker", b"{\"schema\": \"other/1\"}");
    let elsewhere = put("elsewhere", &record);
    symlink("../elsewhere", scratch.join("runs/link")).unwrap();
    let open = put("runs/open", &record);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let linked = put("runs/linked", &record);
    fs::remove_file(linked.join(NEXT)).unwrap();
    symlink("../../elsewhere/run.json.next", linked.join(NEXT)).unwrap();
    clean_up(&wakescope_sys::folder::Folder::open(&scratch.join("runs")).unwrap());
    for kept in [no_marker, elsewhere, open, linked] {
        assert!(fs::symlink_metadata(kept.join(NEXT)).is_ok(), "{}", kept.display());
    }
}
