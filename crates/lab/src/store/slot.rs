//! A cell in the making.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wakescope_store::{create_folder, write_new};

use super::cell::{ENDING, Lookup, Meta, RECIPE, StoredCell, look};
use super::ending::Ending;
use super::error::StoreError;
use super::lock::NameLock;
use super::recipe::{Key, Recipe};
use super::removal::{make_way, mark, remove_own};
use super::sums::{META, SUMS, sums_of, to_text};

/// What the folder of a cell in the making is called after the cell.
pub(crate) const NEW: &str = "new";
/// What a damaged cell is called while it is replaced.
pub(crate) const OLD: &str = "old";

/// The right to run a cell, and a folder to do it in. Without [`Slot::commit`], nothing of it stays.
#[derive(Debug)]
pub struct Slot {
    store: PathBuf,
    recipe: Recipe,
    key: Key,
    damaged: Option<String>,
    folder: PathBuf,
    /// Dropped after the folder is gone.
    _lock: NameLock,
}

impl Slot {
    pub(super) fn new(
        store: &Path,
        recipe: &Recipe,
        damaged: Option<String>,
        lock: NameLock,
    ) -> Result<Self, StoreError> {
        let key = recipe.key();
        let folder = store.join(format!("{key}.{NEW}"));
        let (store, recipe) = (store.to_path_buf(), recipe.clone());
        let slot = Self { store, recipe, key, damaged, folder, _lock: lock };
        // A killed lab may have left one.
        make_way(&slot.folder)
            .and_then(|()| create_folder(&slot.folder))
            .and_then(|()| mark(&slot.folder))
            .map_err(|e| slot.error("create", &slot.folder, e))?;
        Ok(slot)
    }

    /// Where the files of the cell are to be written: a few plain files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Why the cell that is there already is not to be trusted, if there is one.
    pub fn damaged(&self) -> Option<&str> {
        self.damaged.as_deref()
    }

    /// How many files there are whose bits must repeat. Fails if there is what no cell can hold.
    pub(crate) fn results(&self) -> io::Result<usize> {
        sums_of(&self.folder).map(|sums| sums.len())
    }

    /// Keeps the cell, all of it or nothing.
    ///
    /// Nothing is forced onto the disk: after a power cut, a file that is not whole is found out by
    /// its checksum, and the cell is run again.
    pub fn commit(self, ending: Ending, meta: &Meta) -> Result<StoredCell, StoreError> {
        self.write(RECIPE, &self.recipe)?;
        self.write(ENDING, &ending.bounded())?;
        self.write(META, &meta.summed(&self.key))?;
        let sums = sums_of(&self.folder).map_err(|e| self.error("read", &self.folder, e))?;
        self.write_text(SUMS, &to_text(&sums))?;
        let place = self.store.join(self.key.as_str());
        self.put_in_place(&place).map_err(|e| self.error("write", &place, e))?;
        match look(&place, &self.key) {
            Lookup::Stored(cell) => Ok(*cell),
            Lookup::Damaged(why) => {
                let cause = io::Error::new(io::ErrorKind::InvalidData, why);
                Err(self.error("read back", &place, cause))
            }
            Lookup::Absent => Err(self.error("read back", &place, io::ErrorKind::NotFound.into())),
        }
    }

    /// One name at a time is all that a directory can be given, so a damaged cell steps aside first.
    /// Whoever looks in between finds none, and waits for the lock.
    fn put_in_place(&self, place: &Path) -> io::Result<()> {
        let old = self.store.join(format!("{}.{OLD}", self.key));
        make_way(&old)?;
        // Nothing is in a link. What it leads to stays.
        if fs::symlink_metadata(place).is_ok_and(|found| found.is_symlink()) {
            fs::remove_file(place)?;
        }
        match fs::rename(place, &old) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        fs::rename(&self.folder, place)?;
        // What is not the store's own stays under that name.
        remove_own(&old).map(drop)
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|e| self.error("write", &self.folder.join(name), e.into()))?;
        self.write_text(name, &(text + "\n"))
    }

    fn write_text(&self, name: &str, text: &str) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        write_new(&path, text.as_bytes()).map_err(|e| self.error("write", &path, e))
    }

    fn error(&self, task: &'static str, path: &Path, cause: io::Error) -> StoreError {
        StoreError::new(task, path, &self.store, cause)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // After a commit there is none. What cannot be removed now, the next lab tries again.
        let _ = remove_own(&self.folder);
    }
}
