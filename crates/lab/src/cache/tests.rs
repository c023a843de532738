use std::cell::Cell;

use super::*;
use wakescope_testing::Folder;

#[test]
fn the_folder_is_found() {
    let path = |s: &str| (!s.is_empty()).then(|| PathBuf::from(s));
    for (own, xdg, home, want) in [
        ("/a", "/x", "/h", "/a"),
        ("rel", "/x", "/h", "rel"),
        ("", "/x", "/h", "/x/wakescope"),
        ("", "x", "/h", "/h/.cache/wakescope"),
        ("", "", "/root", "/root/.cache/wakescope"),
        ("", "", "", ""),
    ] {
        assert_eq!(locate(path(own), path(xdg), path(home)), path(want), "{own} {xdg} {home}");
    }
}

#[test]
fn what_is_staged_appears_whole_or_not_at_all() {
    let folder = Folder::new("stage");
    let cache = Cache::at(folder.path());
    let place = folder.path().join("kernels/x");

    let stage = cache.stage(&place).unwrap();
    fs::write(stage.path().join("half"), "half").unwrap();
    let unfinished = stage.path().to_owned();
    drop(stage);
    assert!(!place.exists() && !unfinished.exists());

    for text in ["first", "second"] {
        let stage = cache.stage(&place).unwrap();
        fs::write(stage.path().join("file"), text).unwrap();
        stage.commit().unwrap();
        assert_eq!(fs::read_to_string(place.join("file")).unwrap(), text);
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1, "leftovers");
    }
}

#[test]
fn leftovers_of_the_dead_are_removed_but_not_the_work_of_the_living() {
    let folder = Folder::new("sweep");
    let cache = Cache::at(folder.path());
    let dead = folder.path().join(".new-1-0-dead");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("half"), "half").unwrap();
    let [left, held] =
        [".new-1-1-left", ".new-1-2-held"].map(|name| folder.write(name, "half of a file"));
    let writer = File::open(&held).unwrap();
    assert!(try_lock(&writer).unwrap());
    // What only begins like it, and a link, which is no file of a lab.
    let (photos, link) = (folder.path().join(".new-photos"), folder.path().join(".new-1-3-link"));
    fs::create_dir(&photos).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();

    let living = cache.stage(&folder.path().join("living")).unwrap();
    assert!(!dead.exists() && !left.exists() && held.exists());
    assert!(photos.exists() && link.exists());
    let other = cache.stage(&folder.path().join("other")).unwrap();
    assert!(living.path().exists() && other.path().exists());
    // A file is written beside them, and a file is as good as a folder.
    drop(writer);
    cache.write(&folder.path().join("file"), b"x").unwrap();
    assert!(!held.exists() && living.path().exists() && other.path().exists());
}

#[test]
fn all_that_killed_labs_left_is_swept_at_once() {
    let folder = Folder::new("sweep-all");
    let cache = Cache::at(folder.path());
    let name = ".new-1-0-half";
    let places = [
        folder.path().to_owned(),
        cache.states(),
        cache.guests(),
        cache.maps(),
        cache.built(),
        cache.qemu(),
        cache.plugins(),
        cache.kernels(Arch::Amd64),
        cache.modules().join("6.1"),
        cache.apt().join("kernels-amd64"),
    ];
    let left = places.map(|place| folder.write(place.join(name), "half"));
    let whole = folder.write(cache.states().join("whole"), "whole");
    cache.sweep().unwrap();
    assert_eq!(left.iter().find(|path| path.exists()), None);
    assert!(whole.exists());
}

#[test]
fn a_name_that_is_taken_keeps_nobody_from_writing() {
    let folder = Folder::new("taken");
    let cache = Cache::at(folder.path());
    // As processes of the same number in other containers have left them.
    for number in 0..200 {
        folder.write(format!(".new-{}-{number}-file", std::process::id()), "half");
    }
    cache.write(&folder.path().join("file"), b"whole").unwrap();
    let taken = Cell::new(3);
    let make = |path: &Path| {
        taken.set(taken.get() - 1);
        if taken.get() > 0 { Err(io::ErrorKind::AlreadyExists.into()) } else { create_new(path) }
    };
    assert!(cache.begin(&folder.path().join("other"), make).is_ok());
    assert_eq!(taken.get(), 0);
}

#[test]
fn files_are_replaced_as_a_whole() {
    let folder = Folder::new("write");
    let cache = Cache::at(folder.path().join("cache"));
    let place = folder.path().join("new/file");
    for text in ["one", "another"] {
        cache.write(&place, text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), text);
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1, "leftovers");
    }
    let blocked = folder.path().join("new/file/below");
    let e = cache.write(&blocked, b"x").unwrap_err();
    assert!(e.to_string().starts_with("cannot create "), "{e}");
}

#[test]
fn a_full_disk_is_told_from_other_causes() {
    let error = |kind: io::ErrorKind| CacheError::Io {
        action: "write",
        path: "x".into(),
        source: kind.into(),
    };
    assert!(error(io::ErrorKind::StorageFull).is_full());
    assert!(!error(io::ErrorKind::PermissionDenied).is_full());
    // A device that is always full.
    let e = File::options().write(true).open("/dev/full").and_then(|mut f| f.write_all(b"x"));
    let e = e.map_err(CacheError::io("write", Path::new("/dev/full"))).unwrap_err();
    assert!(e.is_full(), "{e}");
}

#[test]
fn who_waits_for_a_lock_can_give_up() {
    struct Impatient(u32);
    impl Watch for Impatient {
        fn step(&mut self, step: &Step<'_>) {
            assert_eq!(*step, Step::Waiting("x"));
            self.0 += 1;
        }
        fn stopped(&mut self) -> bool {
            self.0 == 2
        }
    }
    let folder = Folder::new("lock");
    let cache = Cache::at(folder.path());
    let held = cache.lock("x", &mut Unwatched).unwrap();
    let mut impatient = Impatient(0);
    assert!(matches!(cache.lock("x", &mut impatient), Err(CacheError::Stopped)));
    assert_eq!(impatient.0, 2);
    cache.lock("y", &mut Unwatched).unwrap();
    drop(held);
    cache.lock("x", &mut Unwatched).unwrap();
}

#[test]
fn only_files_are_read_and_not_without_end() {
    let folder = Folder::new("bounded");
    let path = folder.path().join("f");
    fs::write(&path, "1234").unwrap();
    assert_eq!(read_bounded(&path, 4).unwrap(), b"1234");
    assert!(read_bounded(&path, 3).is_err());
    assert!(read_bounded(Path::new("/dev/zero"), 4).is_err());
    assert!(read_bounded(folder.path(), 4).is_err());
}

#[test]
fn folders_that_apt_gives_to_another_user_are_left_out_and_no_others() {
    let is = |name: &str| is_never_used(OsStr::new(name));
    assert!(["partial", "auxfiles", ".new-1-2-kernel"].into_iter().all(is));
    for used in ["lists", "archives", "auxfile", "partial2", ".new-x", "image"] {
        assert!(!is(used), "{used}");
    }
}
