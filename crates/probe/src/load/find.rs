//! The load `find`: walks a tree of files again and again, as find(1) does.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::budget::Budget;
use super::desk::{Desk, fault};
use super::kinds::Job;
use super::random::Random;

/// Entries of the tree where there is room for all of them.
const ENTRIES: u64 = 12_000;

/// With fewer, most of the time would go into other things than walking.
const FEWEST_ENTRIES: u64 = 300;

/// Files in each of the nested directories.
const FILES_PER_DIR: u64 = 10;

/// Subdirectories in each of them, as long as there are more to place.
const FAN_OUT: usize = 4;

/// Makes the tree in the current directory, which is called `dir`, and walks it until the desk says
/// stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { dir, seed, desk, .. } = job;
    let here = Path::new(".");
    let budget = Budget::here(dir)?;
    let entries = budget.files.min(ENTRIES);
    if entries < FEWEST_ENTRIES {
        return Err(format!(
            "{dir} has space for a tree of only {entries} files; find needs {FEWEST_ENTRIES}",
        ));
    }
    let placed = |fault| format!("{fault}, in {dir}");
    plant(here, entries, seed, desk).map_err(placed)?;
    desk.ready();
    let mut paths = Vec::new();
    let mut whole = 0;
    while !desk.stopping() {
        let found = walk(here, &mut paths, desk).map_err(placed)?;
        whole = all_found(found, whole, desk).map_err(placed)?;
    }
    Ok(())
}

/// How many entries the tree has: as many as the first walk `found`, where `whole` is 0. Fails if another walk found
/// fewer: a directory that was removed reads as an empty one.
fn all_found(found: u64, whole: u64, desk: &Desk) -> Result<u64, String> {
    if found < whole.max(1) && !desk.stopping() {
        return Err("files of the tree were removed".into());
    }
    Ok(if whole == 0 { found } else { whole })
}

/// Makes a tree of `entries` files and directories: two thirds in one long directory, where the
/// kernel scans for long without a break, the rest nested, where it looks up path after path.
fn plant(root: &Path, entries: u64, seed: u64, desk: &Desk) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut number = 0;
    let mut name = || {
        number += 1;
        let length = random.below(24);
        let letter = |_| char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0));
        // The number keeps names apart, the letters let their lengths and hashes differ.
        format!("{}{number}", (0..length).map(letter).collect::<String>())
    };
    let long = root.join("long");
    fs::create_dir(&long).map_err(|e| fault("make", &long, &e))?;
    for _ in 0..entries * 2 / 3 {
        if desk.stopping() {
            return Ok(());
        }
        touch(&long.join(name()))?;
    }
    let mut dirs = vec![root.to_path_buf()];
    for i in 0..usize::try_from(entries / 3 / (FILES_PER_DIR + 1)).unwrap_or(0) {
        if desk.stopping() {
            return Ok(());
        }
        let dir = dirs[i / FAN_OUT].join(name());
        fs::create_dir(&dir).map_err(|e| fault("make", &dir, &e))?;
        for _ in 0..FILES_PER_DIR {
            touch(&dir.join(name()))?;
        }
        dirs.push(dir);
    }
    Ok(())
}

fn touch(path: &Path) -> Result<(), String> {
    File::create_new(path).map(drop).map_err(|e| fault("make", path, &e))
}

/// Walks the tree once: reads every directory and asks for the attributes of every entry. Tells how many
/// there are. `paths` is memory to use again.
fn walk(root: &Path, paths: &mut Vec<PathBuf>, desk: &Desk) -> Result<u64, String> {
    let mut found = 0;
    paths.clear();
    paths.push(root.to_path_buf());
    while let Some(dir) = paths.pop() {
        for entry in fs::read_dir(&dir).map_err(|e| fault("read", &dir, &e))? {
            if desk.stopping() {
                return Ok(found);
            }
            let entry = entry.map_err(|e| fault("read", &dir, &e))?;
            // Does not follow links, as lstat(2).
            let about = entry.metadata().map_err(|e| fault("look at", &entry.path(), &e))?;
            if about.is_dir() {
                paths.push(entry.path());
            }
            found += 1;
            desk.done(1);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    /// Paths below `root`, sorted.
    fn list(root: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![root.to_path_buf()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path.clone());
                }
                found.push(path.strip_prefix(root).unwrap().to_path_buf());
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_tree_has_its_size_and_a_walk_sees_all_of_it() {
        let base = wakescope_testing::Folder::new("find");
        let mut trees = Vec::new();
        for (name, entries, seed) in [("a", 3_000, 1), ("b", 3_000, 1), ("c", 300, 2)] {
            let root = base.join(name);
            fs::create_dir_all(&root).unwrap();
            let desk = test_desk();
            plant(&root, entries, seed, &desk).unwrap();
            let tree = list(&root);
            let count = u64::try_from(tree.len()).unwrap();
            assert!(count <= entries && count > entries * 9 / 10, "{count} of {entries}");
            assert_eq!(walk(&root, &mut Vec::new(), &desk), Ok(count));
            assert_eq!(desk.work(), count);
            trees.push(tree);
        }
        assert_eq!(trees[0], trees[1], "the same seed makes another tree");
        assert!(trees[0].iter().any(|p| p.components().count() > 3), "not nested");
    }

    #[test]
    fn a_tree_that_lacks_files_is_a_fault() {
        let desk = test_desk();
        for (found, whole, want) in [
            (0, 0, None),
            (9, 0, Some(9)),
            (9, 9, Some(9)),
            (12, 9, Some(9)),
            (8, 9, None),
            (0, 9, None),
        ] {
            assert_eq!(all_found(found, whole, &desk).ok(), want, "{found} {whole}");
        }
        // The last walk is cut short.
        desk.stop();
        assert_eq!(all_found(3, 9, &desk), Ok(9));
    }

    #[test]
    fn a_tree_that_vanishes_is_a_fault() {
        let gone = Path::new("/does/not/exist");
        let fault = walk(gone, &mut Vec::new(), &test_desk()).unwrap_err();
        assert!(fault.starts_with("cannot read /does/not/exist"), "{fault}");
    }
}
