use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use wakescope_sys::file::Room;
use wakescope_testing::Folder;

use super::cell::{ENDING, RECIPE};
use super::removal::MARKER;
use super::sums::{META, SUMS};
use super::*;
use crate::cache::Cache;
use crate::leftovers::leftovers;

fn recipe(seed: u32) -> Recipe {
    let (kernel, guest) = ("1".repeat(64), "2".repeat(64));
    let line = format!("preempt=full -- --seed {seed}");
    Recipe::new(&Ingredients {
        kernel_sha256: &kernel,
        guest_sha256: &guest,
        emulator: "QEMU 10.0.13",
        arguments: &["-icount".into(), "shift=0,sleep=off".into()],
        command_line: &line,
    })
}

fn slot(store: &CellStore, recipe: &Recipe) -> Slot {
    match store.begin(recipe).unwrap() {
        Claim::Free(slot) => *slot,
        other => panic!("{other:?}"),
    }
}

fn fill(store: &CellStore, seed: u32) -> StoredCell {
    let slot = slot(store, &recipe(seed));
    fs::write(slot.folder().join("run.json"), format!("{{\"seed\": {seed}}}")).unwrap();
    fs::write(slot.folder().join(CONSOLE), "booting").unwrap();
    let label = Label { kernel: "6.1".into(), seed: Some(u64::from(seed)), ..Label::default() };
    let meta =
        Meta { label, host_ns: 5, host: "here".into(), ended: "now".into(), ..Meta::default() };
    slot.commit(Ending::Measured, &meta).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_committed_is_found_and_nothing_else_stays() {
    let folder = Folder::new("store-commit");
    let store = CellStore::open(folder.path()).unwrap();
    assert_eq!(store.lookup(&recipe(1).key()), Lookup::Absent);
    let cell = fill(&store, 1);
    assert_eq!(store.lookup(&cell.key), Lookup::Stored(Box::new(cell.clone())));
    assert_eq!(cell.recipe, recipe(1));
    assert_eq!(cell.results().collect::<Vec<_>>(), ["run.json"]);
    assert_eq!(cell.read("run.json", 100).unwrap(), b"{\"seed\": 1}");
    assert!(cell.read("run.json", 3).is_err(), "more than asked for was read");
    assert_eq!((cell.meta.host_ns, cell.meta.label.seed), (5, Some(1)));
    assert_eq!(names(store.folder()), [cell.key.as_str()]);
    let files = [CONSOLE, ENDING, META, RECIPE, "run.json", SUMS, MARKER];
    assert_eq!(names(&cell.folder), files);
    assert!(matches!(store.begin(&recipe(1)).unwrap(), Claim::Stored(_)));
}

#[test]
fn what_is_not_committed_leaves_nothing() {
    let folder = Folder::new("store-drop");
    let store = CellStore::open(folder.path()).unwrap();
    let slot = slot(&store, &recipe(1));
    fs::write(slot.folder().join("run.json"), "half").unwrap();
    assert_eq!(store.lookup(&recipe(1).key()), Lookup::Absent);
    assert!(matches!(store.begin(&recipe(1)).unwrap(), Claim::Busy));
    // Another lab that starts meanwhile leaves alone what somebody works on.
    let other = CellStore::open(folder.path()).unwrap();
    assert!(slot.folder().join("run.json").exists());
    assert!(matches!(other.begin(&recipe(1)).unwrap(), Claim::Busy));
    drop(slot);
    assert_eq!(names(store.folder()), [""; 0]);
}

#[test]
fn a_cell_committed_before_the_lock_was_had_is_not_run_again() {
    let folder = Folder::new("store-late");
    let store = CellStore::open(folder.path()).unwrap();
    let cell = fill(&store, 1);
    let lock = store.lock(cell.key.as_str()).unwrap().unwrap();
    let claim = store.begin_locked(&cell.recipe, lock).unwrap();
    assert!(matches!(claim, Claim::Stored(_)), "{claim:?}");
    assert_eq!(names(store.folder()), [cell.key.as_str()]);
}

#[test]
fn leftovers_of_the_dead_are_removed() {
    let folder = Folder::new("store-leftovers");
    let key = recipe(1).key();
    for name in [format!("{key}.new"), format!("{key}.old"), "scratch-1.new".into()] {
        fs::create_dir(folder.path().join(&name)).unwrap();
        mark(&folder.path().join(&name)).unwrap();
        fs::write(folder.path().join(&name).join("run.json"), "half").unwrap();
    }
    for name in [format!("{key}.lock"), "scratch-1.lock".into()] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let store = CellStore::open(folder.path()).unwrap();
    assert_eq!(names(store.folder()), [""; 0]);
    fill(&store, 1);
}

#[test]
fn what_only_has_the_name_of_a_leftover_or_a_cell_is_kept() {
    let folder = Folder::new("store-foreign");
    let (one, two, three) = (recipe(1).key(), recipe(2).key(), recipe(3).key());
    let elsewhere = Folder::new("store-elsewhere");
    fs::write(elsewhere.path().join("treasure"), "x").unwrap();
    mark(elsewhere.path()).unwrap();
    let by_name = ["thesis.old", "thesis.new", "scratch-mine.new", "1.old"].map(String::from);
    let unmarked = [format!("{one}.old"), "scratch-7.new".into(), two.to_string()];
    for name in by_name.iter().chain(&unmarked) {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("treasure"), "x").unwrap();
    }
    // Even with a marker, a name of another form is not the store's.
    by_name.iter().for_each(|name| mark(&folder.path().join(name)).unwrap());
    for name in [format!("{three}.old"), three.to_string()] {
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(name)).unwrap();
    }
    let before = names(folder.path());
    let store = CellStore::open(folder.path()).unwrap();
    store.prune(0).unwrap();
    assert_eq!(names(folder.path()), before);
    for name in by_name.iter().chain(&unmarked) {
        assert!(folder.path().join(name).join("treasure").exists(), "{name}");
    }
    assert!(elsewhere.path().join("treasure").exists());
    // A file in the place of a cell is an error, and stays.
    let store = CellStore::open(folder.path()).unwrap();
    let refused = || {
        let Ok(Claim::Free(slot)) = store.begin(&recipe(1)) else { panic!("no slot") };
        slot.commit(Ending::Measured, &Meta::default()).unwrap_err().to_string()
    };
    let why = refused();
    assert!(why.contains("wakescope did not create this folder"), "{why}");
    let old = folder.path().join(format!("{one}.old"));
    assert!(old.join("treasure").exists());
    // What it is is said, and where.
    fs::remove_dir_all(&old).unwrap();
    fs::write(&old, "x").unwrap();
    let why = refused();
    let want = format!("{one}.old is a file, which wakescope did not create; move it away");
    assert!(why.contains(&want), "{why}");
    fs::remove_file(&old).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &old).unwrap();
    let why = refused();
    let want = format!("{one}.old is a symbolic link, which wakescope did not create");
    assert!(why.contains(&want), "{why}");
}

/// Nothing is in a link, so that it need not be kept; what it leads to is.
#[test]
fn a_link_in_the_place_of_a_cell_goes_when_the_cell_is_run() {
    let folder = Folder::new("store-link");
    let elsewhere = Folder::new("store-link-elsewhere");
    let store = CellStore::open(folder.path()).unwrap();
    let key = recipe(1).key();
    fs::write(elsewhere.path().join("treasure"), "x").unwrap();
    for _ in 0..2 {
        let _ = fs::remove_dir_all(folder.path().join(key.as_str()));
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(key.as_str())).unwrap();
        fill(&store, 1);
        assert_eq!(names(store.folder()), [key.as_str()]);
    }
    assert!(elsewhere.path().join("treasure").exists());
}

#[track_caller]
fn check_damage(name: &str, damage: fn(&Path), want: &str) -> Folder {
    let folder = Folder::new(&format!("store-damage-{name}"));
    let store = CellStore::open(folder.path()).unwrap();
    let cell = fill(&store, 1);
    damage(&cell.folder);
    match store.lookup(&cell.key) {
        Lookup::Damaged(why) => assert!(why.contains(want), "{name}: {why}"),
        other => panic!("{name}: {other:?}"),
    }
    let slot = slot(&store, &recipe(1));
    assert!(slot.damaged().is_some_and(|why| why.contains(want)));
    drop(slot);
    assert!(matches!(store.lookup(&cell.key), Lookup::Damaged(_)), "{name}: found again");
    fill(&store, 1);
    assert!(matches!(store.lookup(&cell.key), Lookup::Stored(_)), "{name}: mended");
    let is_own = name != "file";
    assert!(!is_own || names(store.folder()) == [cell.key.as_str()], "{name}");
    folder
}

#[test]
fn damage_is_found_and_can_be_mended() {
    let flip = |folder: &Path| fs::write(folder.join("run.json"), "{\"seed\": 2}").unwrap();
    check_damage("flip", flip, "run.json does not match its checksum");
    let lose = |folder: &Path| fs::remove_file(folder.join("run.json")).unwrap();
    check_damage("lose", lose, "run.json is missing");
    let cut = |folder: &Path| fs::write(folder.join(ENDING), "").unwrap();
    check_damage("cut", cut, "ending.json does not match its checksum");
    let unsummed = |folder: &Path| fs::remove_file(folder.join(SUMS)).unwrap();
    check_damage("unsummed", unsummed, "sums: ");
    let emptied = |folder: &Path| fs::write(folder.join(SUMS), "").unwrap();
    check_damage("emptied", emptied, "does not match its checksum");
    let added = |folder: &Path| fs::write(folder.join("more"), "").unwrap();
    check_damage("added", added, "more does not match its checksum");
    let nested = |folder: &Path| fs::create_dir(folder.join("deep")).unwrap();
    check_damage("nested", nested, "is not a plain file that a cell contains");
    let linked = |folder: &Path| {
        fs::remove_file(folder.join("run.json")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.join("run.json")).unwrap();
    };
    check_damage("linked", linked, "is not a plain file that a cell contains");
    let file = |folder: &Path| {
        fs::remove_dir_all(folder).unwrap();
        fs::write(folder, "").unwrap();
    };
    let folder = check_damage("file", file, "sums: ");
    // Nobody knows what that was.
    assert_eq!(names(folder.path())[1..], [format!("{}.old", recipe(1).key())]);
}

#[test]
fn a_cell_under_another_name_is_not_taken_for_it() {
    let folder = Folder::new("store-renamed");
    let store = CellStore::open(folder.path()).unwrap();
    let cell = fill(&store, 1);
    let other = recipe(2).key();
    fs::rename(&cell.folder, store.folder().join(other.as_str())).unwrap();
    let want = "recipe.json belongs to another cell";
    assert_eq!(store.lookup(&other), Lookup::Damaged(want.into()));
}

#[test]
fn a_cell_of_another_version_is_not_read_as_one_of_this() {
    let folder = Folder::new("store-version");
    let store = CellStore::open(folder.path()).unwrap();
    let text = serde_json::to_string(&recipe(1)).unwrap();
    let other = text.replacen("wakescope.cell/1", "wakescope.cell/2", 1);
    let cell = slot(&store, &serde_json::from_str(&other).unwrap());
    let key = serde_json::from_str::<Recipe>(&other).unwrap().key();
    cell.commit(Ending::Measured, &Meta::default()).unwrap_err();
    let Lookup::Damaged(why) = store.lookup(&key) else { panic!("it was read") };
    assert!(why.contains("wakescope.cell/2, and this version reads wakescope.cell/1"), "{why}");
}

#[test]
fn what_differs_between_repetitions_may_change_or_be_lost() {
    let folder = Folder::new("store-meta");
    let store = CellStore::open(folder.path()).unwrap();
    let cell = fill(&store, 1);
    fs::write(cell.folder.join(CONSOLE), "other").unwrap();
    fs::remove_file(cell.folder.join(META)).unwrap();
    let Lookup::Stored(found) = store.lookup(&cell.key) else { panic!("it is whole") };
    assert_eq!(found.meta, Meta::default());
}

/// `scope` and `lab run` call a cell by its label, which is no part of its recipe.
#[test]
fn a_cell_that_is_called_otherwise_than_when_it_was_run_is_damaged() {
    let folder = Folder::new("store-label");
    let store = CellStore::open(folder.path()).unwrap();
    let cell = fill(&store, 1);
    let place = cell.folder.join(META);
    let text = fs::read_to_string(&place).unwrap();
    let mut meta: Meta = serde_json::from_str(&text).unwrap();
    let want = "the label in meta.json does not match its checksum";
    let check = |meta: &Meta, is_whole: bool| {
        fs::write(&place, serde_json::to_string(meta).unwrap()).unwrap();
        match store.lookup(&cell.key) {
            Lookup::Stored(_) => assert!(is_whole, "{meta:?}"),
            Lookup::Damaged(why) => assert_eq!((is_whole, &*why), (false, want), "{meta:?}"),
            Lookup::Absent => panic!("{meta:?}"),
        }
    };
    // What else differs between repetitions may be anything.
    meta.host = "elsewhere".into();
    check(&meta, true);
    let renamed = Label { kernel: "7.2-cloud".into(), ..meta.label.clone() };
    check(&Meta { label: renamed, ..meta.clone() }, false);
    let seeded = Label { seed: Some(3), ..meta.label.clone() };
    check(&Meta { label: seeded.clone(), ..meta.clone() }, false);
    // Earlier versions wrote none.
    check(&Meta { label_sha256: String::new(), ..meta.clone() }, true);
    // Nor is the meta.json of another cell taken for its own.
    let other = fill(&store, 2);
    fs::copy(other.folder.join(META), &place).unwrap();
    assert_eq!(store.lookup(&cell.key), Lookup::Damaged(want.into()));
}

#[test]
fn the_longest_unused_goes_first_and_only_as_many_as_need_be() {
    let folder = Folder::new("store-prune");
    let store = CellStore::open(folder.path()).unwrap();
    let cells: Vec<StoredCell> = (0..4).map(|seed| fill(&store, seed)).collect();
    // Used in the order 2, 0, 3; then 1, by a lookup.
    for (age, cell) in [(4, 2), (3, 0), (2, 3), (5, 1)] {
        let sums = fs::File::open(cells[cell].folder.join(SUMS)).unwrap();
        sums.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000 - age)).unwrap();
    }
    store.lookup(&cells[1].key);
    let size = store.size().unwrap();
    assert_eq!(size.cells, 4);
    assert!(size.bytes > 0);
    assert_eq!(store.prune(size.bytes).unwrap().removed, Size::default());
    // That of the oldest is at work, so the next one goes.
    fs::write(cells[2].folder.join("run.json"), "damaged").unwrap();
    let busy = slot(&store, &cells[2].recipe);
    let pruned = store.prune(size.bytes - 1).unwrap();
    assert_eq!((pruned.removed.cells, pruned.kept.cells), (1, 3));
    assert!(!store.has(&cells[0].key));
    drop(busy);
    assert_eq!(store.prune(pruned.kept.bytes / 3).unwrap().kept.cells, 1);
    assert_eq!(store.keys().unwrap(), [cells[1].key.clone()]);
    store.prune(0).unwrap();
    assert_eq!(names(store.folder()), [""; 0]);
}

#[test]
fn a_search_for_leftovers_uses_no_cell() {
    let folder = Folder::new("store-leftovers");
    let cache = Cache::at(folder.path());
    let store = CellStore::open(&cache.cells()).unwrap();
    let sums = fill(&store, 1).folder.join(SUMS);
    let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::File::open(&sums).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(leftovers(&cache, &store).unwrap(), []);
    assert_eq!(fs::metadata(&sums).unwrap().modified().unwrap(), long_ago);
}

#[test]
fn scratch_folders_do_not_meet_and_are_no_cells() {
    let folder = Folder::new("store-scratch");
    let store = CellStore::open(folder.path()).unwrap();
    let (a, b) = (store.scratch().unwrap(), store.scratch().unwrap());
    assert_ne!(a.path(), b.path());
    assert_eq!(store.keys().unwrap(), []);
    CellStore::open(folder.path()).unwrap();
    assert!(a.path().is_dir() && b.path().is_dir(), "they are in use");
    drop((a, b));
    assert_eq!(names(store.folder()), [""; 0]);
}

#[test]
fn errors_name_the_thing_and_the_cause() {
    let folder = Folder::new("store-errors");
    fs::write(folder.path().join("file"), "").unwrap();
    let error = CellStore::open(&folder.path().join("file/cells")).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot create ") && text.contains("file/cells: "), "{text}");
    let full = io::Error::from(io::ErrorKind::StorageFull);
    let error = StoreError::new("write", Path::new("/c/x/y"), Path::new("/c"), full);
    let want = "no space left for cells in /c: the disk is full, or a quota is used up";
    assert_eq!(error.to_string(), want);
    assert!(error.remedy().starts_with("free space there"));
    assert!(error.remedy().contains("wakescope lab prune --keep "));
}

#[test]
fn what_is_lacking_is_said_in_its_own_unit() {
    let (enough, many) = (LEAST_ROOM, LEAST_FILES);
    for (bytes, files, want) in [
        (enough, many, None),
        (enough - 1, 0, Some("4,194,303 bytes are free, 4,194,304 are needed")),
        (500_000_000_000, many - 1, Some("99 more files can be made, 100 are needed")),
    ] {
        let lack = Lack::of(&Room { bytes, files, in_memory: false });
        assert_eq!(lack.map(|lack| lack.to_string()).as_deref(), want);
    }
}
