//! What a folder is: one thing only, or one of two in it would hide the other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::run_folder::{RECORD, RunFolderError, check_run_folders};
use crate::window_folder::file_time;

/// The most folders in a folder that are looked into.
const MOST: usize = 10_000;

/// What a folder is to all verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A run: its record is there.
    Run,
    /// A watch: windows are there, or what has their names.
    Watch,
    /// Runs: folders that hold one each, as far as can be seen at once.
    Runs,
    /// None of these, or no folder at all.
    Other,
}

impl Contents {
    /// Of the folder at `path`.
    ///
    /// # Errors
    /// If this user may not look into it.
    pub fn of(path: &Path) -> io::Result<Self> {
        if is_there(&path.join(RECORD))? {
            return Ok(Self::Run);
        }
        let entries = match fs::read_dir(path) {
            Err(e) if is_none(&e) => return Ok(Self::Other),
            entries => entries?,
        };
        let (mut looked_into, mut holds_runs) = (0, false);
        for entry in entries {
            let entry = entry?;
            if file_time(&entry.file_name()).is_some() {
                return Ok(Self::Watch);
            }
            if !holds_runs && looked_into < MOST {
                looked_into += 1;
                // What cannot be looked into is left to whoever reads it.
                holds_runs = is_there(&entry.path().join(RECORD)).unwrap_or(false);
            }
        }
        Ok(if holds_runs { Self::Runs } else { Self::Other })
    }
}

/// Fails if several runs could not be written to folders in the one at `path`, with these names: as
/// [`check_run_folders`], and if it is that of a run or of a watch, which would hide them.
pub fn check_runs_folder(
    path: &Path,
    names: impl IntoIterator<Item = PathBuf>,
) -> Result<(), RunFolderError> {
    match Contents::of(path).map_err(|e| RunFolderError::Folder(path.into(), e))? {
        Contents::Run => Err(RunFolderError::HoldsRun(path.into())),
        Contents::Watch => Err(RunFolderError::HoldsWatch(path.into())),
        Contents::Runs | Contents::Other => {
            check_run_folders(names.into_iter().map(|name| path.join(name)))
        }
    }
}

fn is_there(file: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(file) {
        Ok(_) => Ok(true),
        Err(e) if is_none(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

fn is_none(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    #[test]
    fn a_folder_is_one_thing() {
        let scratch = Folder::new("contents");
        let of = |files: &[&str]| {
            let folder = scratch.join(files.join("+").replace('/', "_"));
            for file in files {
                let file = folder.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
            Contents::of(&folder).unwrap()
        };
        let windows = "2026-11-21T01-00-00.jsonl";
        for (files, want) in [
            (&["notes"][..], Contents::Other),
            (&["run.json"], Contents::Run),
            (&["run.json", windows, "a/run.json"], Contents::Run),
            (&[windows, "lock"], Contents::Watch),
            (&["a/run.json", windows], Contents::Watch),
            (&["a/run.json", "b/notes", "notes"], Contents::Runs),
            (&["a/b/run.json"], Contents::Other),
        ] {
            assert_eq!(of(files), want, "{files:?}");
        }
        assert_eq!(Contents::of(&scratch.join("none")).unwrap(), Contents::Other);
        assert_eq!(Contents::of(&scratch.join("notes/notes")).unwrap(), Contents::Other);
    }
}
