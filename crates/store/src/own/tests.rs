use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use wakescope_testing::Folder;

use super::*;

/// A folder of one test, with a cache in it.
fn with_cache(test: &str) -> Folder {
    let scratch = Folder::new(test);
    scratch.write("cache/kernels/image", "image");
    scratch
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn about(kind: Kind, owner: u32, group: u32, mode: u32) -> About {
    About { kind, owner, group, mode, names: 1, length: 0, identity: (0, 0) }
}

#[test]
fn only_what_this_user_and_root_alone_can_change_is_trusted() {
    for user in [0, 1000] {
        for kind in [Kind::File, Kind::Folder] {
            let check = |owner, group, mode, is_trusted| {
                let found = about(kind, owner, group, mode);
                assert_eq!(judge(&found, user).is_ok(), is_trusted, "{user}: {found:?}");
            };
            for owner in [0, user] {
                for mode in [0o400, 0o755, 0o644, 0o700] {
                    check(owner, 7, mode, true);
                }
                // A group of the owner's own.
                check(owner, owner, 0o775, true);
                check(owner, 7, 0o775, false);
                check(owner, owner, 0o757, false);
                // The sticky bit keeps others from nothing here: they could add files.
                check(owner, 7, 0o1777, false);
            }
            for mode in [0o400, 0o755, 0o777, 0o1777] {
                check(1001, 1000, mode, false);
            }
            // Unless it is the effective user's.
            check(1000, 7, 0o755, user == 1000);
        }
        for kind in [Kind::Link, Kind::Fifo, Kind::Socket, Kind::CharacterDevice, Kind::BlockDevice]
        {
            assert_eq!(judge(&about(kind, user, user, 0o600), user), Err(Refused::Kind(kind)));
        }
    }
}

/// The path that is refused, below the scratch folder, and why; empty if none is.
fn refused_in(scratch: &Path) -> String {
    let cache = scratch.join("cache");
    let opened = open_own_folder(&cache).map(drop);
    match opened.and_then(|()| check_own(&cache, &|name| name == "unused")) {
        Ok(()) => String::new(),
        Err(WayError::Refused { path, why }) => {
            let below = path.strip_prefix(scratch).unwrap_or(&path);
            format!("{}: {why}", below.display())
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn folders_and_files_of_every_mode_and_kind() {
    type Change = fn(&Path);
    let cases: [(&str, Change, &str); 14] = [
        ("nothing", |_| {}, ""),
        ("open root", |p| set_mode(&p.join("cache"), 0o757), "cache: other users may write"),
        ("sticky root", |p| set_mode(&p.join("cache"), 0o1777), "cache: other users may write"),
        ("open above", |p| set_mode(p, 0o777), ": other users may write"),
        ("sticky above", |p| set_mode(p, 0o1777), ""),
        ("open folder", |p| set_mode(&p.join("cache/kernels"), 0o757), "cache/kernels: other"),
        (
            "open file",
            |p| set_mode(&p.join("cache/kernels/image"), 0o646),
            "cache/kernels/image: other users may write to the file (mode 0646)",
        ),
        (
            "fifo",
            |p| {
                let made = std::process::Command::new("mkfifo").arg(p.join("cache/fifo")).status();
                assert!(made.unwrap().success());
            },
            "cache/fifo: it is a FIFO",
        ),
        (
            "link to a safe folder",
            |p| {
                fs::create_dir(p.join("disk")).unwrap();
                symlink(p.join("disk"), p.join("cache/qemu")).unwrap();
            },
            "",
        ),
        (
            "link to an open folder",
            |p| {
                fs::create_dir(p.join("disk")).unwrap();
                set_mode(&p.join("disk"), 0o777);
                symlink("../disk", p.join("cache/qemu")).unwrap();
            },
            "disk: other users may write to the folder",
        ),
        (
            "link through an open folder",
            |p| {
                fs::create_dir_all(p.join("disk/inner")).unwrap();
                set_mode(&p.join("disk"), 0o777);
                symlink("../disk/inner", p.join("cache/qemu")).unwrap();
            },
            "disk: other users may write to the folder",
        ),
        (
            "link to itself",
            |p| symlink("round", p.join("cache/round")).unwrap(),
            "cache/round: too",
        ),
        ("link to above", |p| symlink("..", p.join("cache/up")).unwrap(), ""),
        (
            "unused",
            |p| {
                fs::create_dir(p.join("cache/unused")).unwrap();
                set_mode(&p.join("cache/unused"), 0o777);
            },
            "",
        ),
    ];
    for (name, change, want) in cases {
        let scratch = with_cache("modes");
        change(&scratch);
        let got = refused_in(&scratch);
        assert_eq!(got.is_empty(), want.is_empty(), "{name}: {got}");
        assert!(got.starts_with(want), "{name}: {got}");
    }
}

#[test]
fn what_belongs_to_another_user_is_refused_wherever_it_is() {
    if effective_user() != 0 {
        return wakescope_testing::skip(
            "what_belongs_to_another_user_is_refused_wherever_it_is",
            "giving files away needs root",
        );
    }
    for name in ["", "cache", "cache/kernels", "cache/kernels/image"] {
        let scratch = with_cache("owners");
        chown(scratch.join(name), Some(1001), Some(1001)).unwrap();
        let got = refused_in(&scratch);
        assert!(got.contains("belongs to user 1001"), "{name}: {got}");
        assert!(got.starts_with(name), "{name}: {got}");
        assert_eq!(make_own_folder(&scratch.join("cache/new")).is_ok(), name.contains('/'));
    }
    let scratch = with_cache("owners");
    let link = scratch.join("cache/qemu");
    symlink("kernels", &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(1001), None).unwrap();
    let got = refused_in(&scratch);
    assert!(got.starts_with("cache/qemu: it is a symbolic link that user 1001"), "{got}");
}

#[test]
fn folders_are_made_for_their_owner_to_write_only() {
    let scratch = with_cache("made");
    let deep = scratch.join("cache/a/b");
    assert!(open_own_folder(&deep).unwrap().is_none());
    make_own_folder(&deep).unwrap();
    make_own_folder(&deep).unwrap();
    assert!(open_own_folder(&deep).unwrap().is_some());
    assert_eq!(fs::metadata(&deep).unwrap().permissions().mode() & 0o022, 0);
    for (path, why) in [
        ("cache/kernels/image", "it is a file, not a folder"),
        ("cache/kernels/image/below", "it is a file, not a folder"),
    ] {
        let got = make_own_folder(&scratch.join(path)).unwrap_err().to_string();
        assert!(got.contains(why), "{path}: {got}");
    }
    assert!(make_own_folder(Path::new("relative")).is_err());
}

#[test]
fn several_that_make_one_folder_at_once_all_get_it() {
    let scratch = with_cache("at-once");
    for round in 0..50 {
        let deep = scratch.join(format!("cache/{round}/a/b/c"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| make_own_folder(&deep).unwrap());
            }
        });
        assert!(open_own_folder(&deep).unwrap().is_some());
    }
}
