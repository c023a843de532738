//! Images that no kept cell was run with any more: each build of wakescope makes new ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use wakescope_sys::clock::{self, Clock};

use crate::cache::Cache;
use crate::store::{CellStore, Lookup, StoreError};
use crate::sum::Memo;

/// A lab that has just begun has no cell yet that names what it boots.
const YOUNG_S: u64 = 3600;

/// A file that no cell needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// Guest images, and kernels that were built for a bisection, that no cell of `store` was run with
/// and that are older than an hour.
pub fn leftovers(cache: &Cache, store: &CellStore) -> Result<Vec<Leftover>, StoreError> {
    let mut needed = BTreeSet::new();
    for key in store.keys()? {
        if let Lookup::Stored(cell) = store.lookup(&key) {
            needed.extend(["kernel", "guest"].map(|part| cell.recipe.part(part).map(String::from)));
        }
    }
    let mut memo = Memo::open(cache);
    let folders = [cache.guests(), cache.built()];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
    Ok(files
        .flatten()
        .filter_map(|entry| old_file(&entry.path()))
        .filter(|file| memo.sum(&file.path).is_ok_and(|sum| !needed.contains(&Some(sum))))
        .collect())
}

/// The file at `path`, if it is one and old.
fn old_file(path: &Path) -> Option<Leftover> {
    let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let written = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
    let now = clock::read(Clock::Realtime) / 1_000_000_000;
    (now.saturating_sub(written) > YOUNG_S)
        .then(|| Leftover { path: path.into(), bytes: meta.len() })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::testing::Folder;

    #[test]
    fn old_images_that_no_cell_names_are_left_over() {
        let folder = Folder::new("leftovers");
        let cache = Cache::at(folder.path());
        let store = CellStore::open(&cache.cells()).unwrap();
        for (name, age_s) in [("old.cpio", YOUNG_S + 60), ("new.cpio", 0)] {
            let path = cache.guests().join(name);
            Cache::write(&path, name.as_bytes()).unwrap();
            let now = clock::read(Clock::Realtime) / 1_000_000_000;
            let time = UNIX_EPOCH + Duration::from_secs(now - age_s);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
        let found = leftovers(&cache, &store).unwrap();
        let names: Vec<_> = found.iter().map(|l| l.path.file_name().unwrap()).collect();
        assert_eq!(names, ["old.cpio"]);
        assert_eq!(found[0].bytes, 8);
    }
}
