//! Programs that the machine has installed.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wakescope_sys::file::effective_user;

use super::desk::Desk;

/// Whoever may write to a file beside its owner.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// The bit of a folder in which everybody can remove only what is theirs.
const STICKY: u32 = 0o1000;

const ANYBODY_MAY_EXECUTE: u32 = 0o111;

/// The program `name` of the package `package`, from the folders of `PATH`. Fails, with a remedy for
/// the desk to tell, if there is none that only root and this user can change: a load may run as root.
pub(super) fn find(name: &str, package: &str, desk: &Desk) -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    match find_in(&path, name, effective_user()) {
        Found::Program(path) => Ok(path),
        Found::Unsafe(path) => {
            desk.advise("let only root change the program and the folders above it: chmod go-w");
            Err(format!("another user can change {}, so it is not run", path.display()))
        }
        Found::Nothing => {
            desk.advise(&format!("install it: apt-get install {package}"));
            Err(format!("the program {name} is not installed: no folder in PATH has it"))
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Program(PathBuf),
    /// The first that others can change; there is no other.
    Unsafe(PathBuf),
    Nothing,
}

/// Looks only into folders with an absolute path: what another one is depends on where the user is.
fn find_in(path: &OsStr, name: &str, user: u32) -> Found {
    let mut changeable = None;
    for folder in env::split_paths(path).filter(|folder| folder.is_absolute()) {
        // What is executed is what the links lead to.
        let Ok(program) = fs::canonicalize(folder.join(name)) else { continue };
        let Ok(about) = fs::metadata(&program) else { continue };
        if !about.is_file() || about.mode() & ANYBODY_MAY_EXECUTE == 0 {
            continue;
        }
        if program.ancestors().all(|part| is_safe(part, user)) {
            return Found::Program(program);
        }
        changeable.get_or_insert(program);
    }
    changeable.map_or(Found::Nothing, Found::Unsafe)
}

/// Whether only root and `user` can change the file, or exchange what is in the folder.
fn is_safe(path: &Path, user: u32) -> bool {
    let Ok(about) = fs::metadata(path) else { return false };
    let is_shared = about.mode() & OTHERS_MAY_WRITE != 0;
    let is_sticky = about.is_dir() && about.mode() & STICKY != 0;
    [0, user].contains(&about.uid()) && (!is_shared || is_sticky)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_programs_that_nobody_else_can_change_are_found() {
        let folder = wakescope_testing::Folder::new("installed");
        let dir = fs::canonicalize(&folder).unwrap();
        let make = |folder: &str, mode: u32, folder_mode: u32| {
            let folder = dir.join(folder);
            fs::create_dir_all(&folder).unwrap();
            let program = folder.join("prog");
            fs::write(&program, "").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(folder_mode)).unwrap();
            program
        };
        let good = make("good", 0o755, 0o755);
        let writable = make("writable", 0o757, 0o755);
        make("plain", 0o644, 0o755);
        let open = make("open", 0o755, 0o777);
        let sticky = make("sticky", 0o755, 0o1777);
        fs::create_dir_all(dir.join("folder/prog")).unwrap();
        fs::create_dir(dir.join("link")).unwrap();
        symlink(&good, dir.join("link/prog")).unwrap();
        for (folders, want) in [
            (&["good"][..], Found::Program(good.clone())),
            (&["missing", "plain", "folder", "good"], Found::Program(good.clone())),
            (&["writable", "open", "good"], Found::Program(good.clone())),
            (&["writable", "open"], Found::Unsafe(writable)),
            (&["open"], Found::Unsafe(open)),
            (&["sticky"], Found::Program(sticky)),
            (&["link"], Found::Program(good)),
            (&["missing", "plain", "folder"], Found::Nothing),
            (&[], Found::Nothing),
        ] {
            let path = env::join_paths(folders.iter().map(|folder| dir.join(folder))).unwrap();
            assert_eq!(find_in(&path, "prog", effective_user()), want, "{folders:?}");
        }
        // Wherever the user is.
        assert_eq!(find_in(&OsString::from(":.:good"), "sh", effective_user()), Found::Nothing);
    }
}
