use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

use wakescope_testing::Folder as Scratch;

use super::*;
use crate::file::effective_user;

/// A user that is neither root nor the one that runs the test.
const SOMEBODY: u32 = 65_533;

/// Opens the folder at `path`, and the one that a file in it would lie in. Either must lead to `want`, or both
/// are refused for these reasons.
#[track_caller]
fn check(path: &Path, want: Result<&Path, [&str; 2]>) {
    let opened = [open_folder(path), open_parent(&path.join("file"))];
    for (number, got) in opened.into_iter().enumerate() {
        match (got, want) {
            (Ok(folder), Ok(place)) => {
                let place = Folder::open(place).unwrap().about().unwrap();
                assert_eq!(folder.about().unwrap(), place, "{}", path.display());
            }
            (Err(e), Err(why)) => assert_eq!(e.to_string(), why[number], "{}", path.display()),
            (got, _) => panic!("{}: {got:?}", path.display()),
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn links_of_ones_own_are_followed_as_the_kernel_does() {
    let scratch = Scratch::new("way-own");
    fs::create_dir_all(scratch.join("real/inner")).unwrap();
    symlink("real", scratch.join("link")).unwrap();
    symlink("../link/inner", scratch.join("real/through")).unwrap();
    symlink(scratch.join("link/through"), scratch.join("absolute")).unwrap();
    for (path, want) in [
        ("real", "real"),
        ("link", "real"),
        ("link/", "real"),
        ("link/.", "real"),
        ("link/inner/..", "real"),
        ("real/through", "real/inner"),
        ("absolute", "real/inner"),
        ("absolute/..", "real"),
    ] {
        check(&scratch.join(path), Ok(&scratch.join(want)));
    }
    symlink("circle", scratch.join("circle")).unwrap();
    check(&scratch.join("circle"), Err(["too many symbolic links"; 2]));
    fs::write(scratch.join("file"), "").unwrap();
    for (path, kind) in [("file", io::ErrorKind::NotADirectory), ("none", io::ErrorKind::NotFound)]
    {
        assert_eq!(open_folder(&scratch.join(path)).unwrap_err().kind(), kind, "{path}");
    }
}

#[test]
fn no_link_of_another_user_is_followed() {
    if effective_user() != 0 {
        let name = "no_link_of_another_user_is_followed";
        return wakescope_testing::skip(name, "only root can give files away");
    }
    let scratch = Scratch::new("way-foreign");
    fs::create_dir_all(scratch.join("own/inner")).unwrap();
    fs::create_dir_all(scratch.join("theirs/inner")).unwrap();
    chown(scratch.join("theirs"), Some(SOMEBODY), None).unwrap();
    symlink("own", scratch.join("foreign")).unwrap();
    lchown(scratch.join("foreign"), Some(SOMEBODY), None).unwrap();
    symlink("foreign/inner", scratch.join("through")).unwrap();
    // As if they had given another name to a link that they did not make.
    symlink("../own", scratch.join("theirs/moved")).unwrap();
    let way = format!("its path leads through a symbolic link that user {SOMEBODY} controls");
    let itself = format!("it is a symbolic link that user {SOMEBODY} controls");
    for (path, of_folder) in [
        ("foreign", &itself),
        ("foreign/", &itself),
        ("foreign/.", &itself),
        ("theirs/moved", &itself),
        ("foreign/inner", &way),
        ("foreign/../own", &way),
        ("through", &way),
        ("own/../foreign/inner", &way),
        ("theirs/moved/inner", &way),
    ] {
        check(&scratch.join(path), Err([of_folder, &way]));
    }
    // Folders of others are passed.
    for path in ["theirs", "theirs/inner"] {
        check(&scratch.join(path), Ok(&scratch.join(path)));
    }
    // Where others may exchange links, none counts.
    fs::create_dir(scratch.join("open")).unwrap();
    symlink("../own", scratch.join("open/link")).unwrap();
    set_mode(&scratch.join("open"), 0o777);
    let way = "its path leads through a symbolic link that user 0 controls";
    check(&scratch.join("open/link/inner"), Err([way; 2]));
    set_mode(&scratch.join("open"), 0o1777);
    check(&scratch.join("open/link/inner"), Ok(&scratch.join("own/inner")));
}

#[test]
fn what_the_kernel_reaches_elsewhere_is_refused() {
    let scratch = Scratch::new("way-elsewhere");
    let (old, new) = (scratch.join("old"), scratch.join("new"));
    fs::create_dir(&old).unwrap();
    let folder = open_parent(&old.join("file")).unwrap();
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    let refused = to_list(&folder, &old).unwrap_err();
    assert_eq!(refused.to_string(), Refused::Elsewhere.to_string());
    to_list(&folder, &new).unwrap();
}
