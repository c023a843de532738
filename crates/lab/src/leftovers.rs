//! Images that no kept cell was run with any more: each build of wakescope makes new ones.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use wakescope_sys::clock::{self, Clock};
use wakescope_sys::machine::open_without_waiting;

use crate::cache::Cache;
use crate::kernel::image::identify;
use crate::store::{CellStore, Lookup, StoreError};
use crate::sum::Memo;

/// A lab that has just begun has no cell yet that names what it boots.
const YOUNG_S: u64 = 3600;

/// What an image of a guest begins with.
const MAGIC: &[u8; 6] = b"070701";

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
    let guests = files_in(&cache.guests(), is_guest);
    let built = files_in(&cache.built(), is_built_kernel);
    Ok(guests
        .into_iter()
        .chain(built)
        .filter(|file| memo.sum(&file.path).is_ok_and(|sum| !needed.contains(&Some(sum))))
        .collect())
}

/// The old files in `folder` that are what the lab puts there. Of a link to a folder none is: nobody
/// knows what else is where that leads.
fn files_in(folder: &Path, is_own: fn(&Path, &str) -> bool) -> Vec<Leftover> {
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let old = entries.filter_map(|entry| old_file(&entry.path()));
    let own = |file: &Leftover| {
        let name = file.path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| is_own(&file.path, name))
    };
    old.filter(own).collect()
}

/// Whether a file has the name that [`crate::matrix`] gives to guests, and their format.
fn is_guest(path: &Path, name: &str) -> bool {
    let is_named = name.strip_suffix(".cpio").is_some_and(|sum| is_hex(sum, 64));
    let mut magic = [0; MAGIC.len()];
    let read = open_without_waiting(path).and_then(|mut file| file.read_exact(&mut magic));
    is_named && read.is_ok() && magic == *MAGIC
}

/// Whether a file has the name that builds of a bisection get, and is a kernel.
fn is_built_kernel(path: &Path, name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, key)| is_hex(key, 12)) && identify(path).is_ok()
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
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
    use crate::testing::{Folder, bzimage};

    /// Writes a file that was changed so long ago.
    fn put(path: &Path, bytes: &[u8], age_s: u64) {
        Cache::write(path, bytes).unwrap();
        let now = clock::read(Clock::Realtime) / 1_000_000_000;
        let time = UNIX_EPOCH + Duration::from_secs(now - age_s);
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }

    fn names(found: &[Leftover]) -> Vec<&str> {
        found.iter().filter_map(|l| l.path.file_name()?.to_str()).collect()
    }

    #[test]
    fn old_images_that_no_cell_names_are_left_over_and_nothing_else() {
        const OLD: u64 = YOUNG_S + 60;
        let folder = Folder::new("leftovers");
        let cache = Cache::at(folder.path());
        let store = CellStore::open(&cache.cells()).unwrap();
        let guest = format!("{}.cpio", "0a".repeat(32));
        let young = format!("{}.cpio", "0b".repeat(32));
        let text = format!("{}.cpio", "0c".repeat(32));
        let built = "v6.1-0123456789ab";
        for (name, bytes, age_s) in [
            (guest.as_str(), "0707010…", OLD),
            (&young, "0707010…", 0),
            (&text, "a diary", OLD),
            ("photos.cpio", "0707010…", OLD),
            ("holidays", "0707010…", OLD),
        ] {
            put(&cache.guests().join(name), bytes.as_bytes(), age_s);
        }
        put(&cache.built().join(built), &bzimage("6.1.0"), OLD);
        put(&cache.built().join("notes-0123456789ab"), b"a diary", OLD);
        put(&cache.built().join("bzImage"), &bzimage("6.1.0"), OLD);
        let found = leftovers(&cache, &store).unwrap();
        assert_eq!(names(&found), [guest.as_str(), built]);
        assert_eq!(found[0].bytes, "0707010…".len() as u64);
        // Behind a link lies what is somebody else's.
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(cache.guests(), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, cache.guests()).unwrap();
        assert_eq!(names(&leftovers(&cache, &store).unwrap()), [built]);
    }
}
