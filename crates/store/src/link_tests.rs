//! Whatever is written to: no link of another user leads there.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use wakescope_sys::file::effective_user;
use wakescope_testing::Folder as Scratch;

use crate::output::{check_output, create_output, open_lock};
use crate::run_folder::{RunFiles, RunFolderError};
use crate::window_folder::WindowFolder;

/// A user that is neither root nor the one that runs the test.
const SOMEBODY: u32 = 65_533;

fn cause(e: RunFolderError) -> io::Error {
    match e {
        RunFolderError::Folder(_, e) => e,
        other => panic!("{other:?}"),
    }
}

/// Tries to write to the folder at `path` in every way. Each must succeed, or be refused for `why`.
#[track_caller]
fn check(path: &Path, why: Option<&str>) {
    let result = path.join("result");
    let run = |path: &Path| RunFiles::create(Some(path), "", b"{}").map(RunFiles::discard);
    let watch = || {
        let opened = WindowFolder::open(path, 1 << 20);
        opened.map(|_| fs::remove_file(path.join("lock")).unwrap())
    };
    for (way, got) in [
        ("output", create_output(&result).map(drop)),
        ("check of an output", check_output(&result)),
        ("lock", open_lock(&result).and_then(|_| fs::remove_file(&result))),
        ("run", run(path).map_err(cause)),
        ("new run", run(&result).map_err(cause)),
        ("watch", watch().map_err(cause)),
    ] {
        match (got, why) {
            (Ok(()), None) => {}
            (Err(e), Some(why)) => {
                assert!(e.to_string().contains(why), "{way} at {}: {e}", path.display());
            }
            (got, _) => panic!("{way} at {}: {got:?}", path.display()),
        }
    }
}

/// Which links are followed is up to [`wakescope_sys::way`]. Here it is about who asks it.
#[test]
fn links_of_ones_own_lead_to_results() {
    let scratch = Scratch::new("way-own");
    fs::create_dir_all(scratch.join("real/inner")).unwrap();
    symlink("real", scratch.join("link")).unwrap();
    for path in ["real", "link", "link/", "link/inner", "link/inner/.."] {
        check(&scratch.join(path), None);
    }
    symlink("circle", scratch.join("circle")).unwrap();
    check(&scratch.join("circle"), Some("too many symbolic links"));
}

#[test]
fn no_link_of_another_user_leads_to_a_result() {
    if effective_user() != 0 {
        let name = "no_link_of_another_user_leads_to_a_result";
        return wakescope_testing::skip(name, "only root can give files away");
    }
    let scratch = Scratch::new("way-foreign");
    fs::create_dir_all(scratch.join("own/inner")).unwrap();
    fs::create_dir(scratch.join("theirs")).unwrap();
    chown(scratch.join("theirs"), Some(SOMEBODY), None).unwrap();
    symlink("own", scratch.join("foreign")).unwrap();
    lchown(scratch.join("foreign"), Some(SOMEBODY), None).unwrap();
    // As if they had given another name to a link that they did not make.
    symlink("../own", scratch.join("theirs/moved")).unwrap();
    let itself = format!("symbolic link that user {SOMEBODY} controls");
    let way = format!("its path leads through a {itself}");
    for (path, why) in [
        ("foreign", &itself),
        ("foreign/", &itself),
        ("foreign/.", &itself),
        ("foreign//", &itself),
        ("theirs/moved", &itself),
        ("foreign/inner", &way),
        ("foreign/../own", &way),
        ("theirs/moved/inner", &way),
    ] {
        check(&scratch.join(path), Some(why));
    }
    assert_eq!(fs::read_dir(scratch.join("own")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(scratch.join("own/inner")).unwrap().count(), 0);
    // Folders of others are passed, and what is made in them is one's own.
    let theirs = scratch.join("theirs/new");
    RunFiles::create(Some(&theirs), "", b"{}").unwrap().discard();
    // Where others may exchange links, none counts.
    fs::create_dir(scratch.join("open")).unwrap();
    symlink("../own", scratch.join("open/link")).unwrap();
    for (mode, why) in [(0o777, Some("symbolic link that user 0 controls")), (0o1777, None)] {
        fs::set_permissions(scratch.join("open"), fs::Permissions::from_mode(mode)).unwrap();
        check(&scratch.join("open/link/inner"), why);
    }
}
