//! The cache of cells: what has been run is not run again.
//!
//! A cell is a folder named by its [`Key`]. Beside the files that the guest gave stand its
//! `recipe.json`, its `ending.json`, `meta.json` with what differs between repetitions, and `sums`
//! with the checksums of all files whose bits must repeat. While a cell is run, its folder is
//! called `<key>.new` and the file `<key>.lock` is locked; so labs of several processes can share a
//! cache, and what a killed one leaves is known by its free lock.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wakescope_store::{create_folder, make_own_folder};
use wakescope_sys::file::room;

mod cell;
mod ending;
mod error;
mod lock;
mod prune;
mod recipe;
mod removal;
mod scratch;
mod slot;
mod sums;
#[cfg(test)]
mod tests;

pub(crate) use cell::note_use;
pub use cell::{Label, Lookup, Meta, RECIPE, StoredCell};
pub use ending::{Ending, Failed, FailureKind};
pub use error::{Lack, StoreError};
pub use prune::{Pruned, Size};
pub use recipe::{Ingredients, Key, Recipe};
pub(crate) use recipe::{ORDER, ROOT};
pub use scratch::Scratch;
pub use slot::Slot;
pub use sums::CONSOLE;

use lock::{LOCK, NameLock};
use removal::{make_way, mark, remove_own};
use slot::{NEW, OLD};

/// Bytes that must be free for a cell to be run, and to be believed when it says that it has no
/// result. A cell takes some hundred kB.
pub const LEAST_ROOM: u64 = 4 << 20;

/// Files that must be free for the same. A cell has some ten.
const LEAST_FILES: u64 = 100;

/// The cache of cells.
#[derive(Debug)]
pub struct CellStore {
    folder: PathBuf,
}

/// What the names of folders begin with that nobody keeps.
const SCRATCH: &str = "scratch-";

/// The number in the name of such a folder.
fn scratch_number(stem: &str) -> Option<u32> {
    stem.strip_prefix(SCRATCH)?.parse().ok()
}

/// What one gets who wants to run a cell.
#[derive(Debug)]
pub enum Claim {
    /// It was run already.
    Stored(Box<StoredCell>),
    /// It is to be run, here.
    Free(Box<Slot>),
    /// Somebody runs it at this moment.
    Busy,
}

impl CellStore {
    /// The cache in `folder`, which is made if need be. What killed labs left there is removed.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let store = Self { folder: folder.into() };
        let made = std::path::absolute(folder).map(|path| make_own_folder(&path));
        let made = made.and_then(|made| made.map_err(io::Error::other));
        made.map_err(|e| store.error("create", folder, e))?;
        store.clean_up()?;
        Ok(store)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether there is a cell of this name, be it damaged. Much cheaper than [`Self::lookup`].
    pub fn has(&self, key: &Key) -> bool {
        fs::symlink_metadata(self.place(key)).is_ok()
    }

    /// What is known of `key`. Each file whose bits matter is read and held against its checksum.
    pub fn lookup(&self, key: &Key) -> Lookup {
        let found = self.peek(key);
        if let Lookup::Stored(cell) = &found {
            cell.touch();
        }
        found
    }

    /// The same, but does not count as a use of the cell.
    pub(crate) fn peek(&self, key: &Key) -> Lookup {
        cell::look(&self.place(key), key)
    }

    /// The cell if it was run, else the right to run it, unless somebody else has that.
    pub fn begin(&self, recipe: &Recipe) -> Result<Claim, StoreError> {
        let key = recipe.key();
        if let Lookup::Stored(cell) = self.lookup(&key) {
            return Ok(Claim::Stored(cell));
        }
        match self.lock(key.as_str())? {
            Some(lock) => self.begin_locked(recipe, lock),
            None => Ok(Claim::Busy),
        }
    }

    /// Somebody may have run it between the look and the lock.
    fn begin_locked(&self, recipe: &Recipe, lock: NameLock) -> Result<Claim, StoreError> {
        let damaged = match self.lookup(&recipe.key()) {
            Lookup::Stored(cell) => return Ok(Claim::Stored(cell)),
            Lookup::Damaged(why) => Some(why),
            Lookup::Absent => None,
        };
        self.check_room()?;
        Ok(Claim::Free(Box::new(Slot::new(&self.folder, recipe, damaged, lock)?)))
    }

    /// Fails if there is too little room to run a cell.
    pub fn check_room(&self) -> Result<(), StoreError> {
        // If the room is not known, a full disk is found when the cell is written.
        match room(&self.folder).ok().and_then(|room| Lack::of(&room)) {
            Some(lack) => Err(StoreError::Full { folder: self.folder.clone(), lack }),
            None => Ok(()),
        }
    }

    /// That there is no room.
    pub(crate) fn full(&self) -> StoreError {
        let unknown = || self.error("write", &self.folder, io::ErrorKind::StorageFull.into());
        self.check_room().err().unwrap_or_else(unknown)
    }

    /// The names of all cells, in order.
    pub fn keys(&self) -> Result<Vec<Key>, StoreError> {
        let names = self.names()?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// A folder beside the cells, for what nobody keeps.
    pub fn scratch(&self) -> Result<Scratch, StoreError> {
        for number in 1_u32.. {
            let name = format!("{SCRATCH}{number}");
            if let Some(lock) = self.lock(&name)? {
                let path = self.folder.join(format!("{name}.{NEW}"));
                make_way(&path)
                    .and_then(|()| create_folder(&path))
                    .and_then(|()| mark(&path))
                    .map_err(|e| self.error("create", &path, e))?;
                return Ok(Scratch::new(path, lock));
            }
        }
        Err(self.error("create", &self.folder, io::ErrorKind::AlreadyExists.into()))
    }

    /// Removes what killed labs left: what is in the making, but by nobody. Only what has a name and
    /// a marker as the store gives them.
    fn clean_up(&self) -> Result<(), StoreError> {
        let in_the_making = |name: &String| {
            let (stem, kind) = name.rsplit_once('.')?;
            let is_own_form = stem.parse::<Key>().is_ok() || scratch_number(stem).is_some();
            (is_own_form && [NEW, OLD, LOCK].contains(&kind)).then(|| stem.to_string())
        };
        let stems: BTreeSet<String> = self.names()?.iter().filter_map(in_the_making).collect();
        for stem in stems {
            let Some(_lock) = self.lock(&stem)? else { continue };
            for kind in [NEW, OLD] {
                let path = self.folder.join(format!("{stem}.{kind}"));
                remove_own(&path).map_err(|e| self.error("remove", &path, e))?;
            }
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, StoreError> {
        let read = || -> io::Result<Vec<String>> {
            let entries = fs::read_dir(&self.folder)?.collect::<io::Result<Vec<_>>>()?;
            Ok(entries.iter().filter_map(|e| e.file_name().into_string().ok()).collect())
        };
        let mut names = read().map_err(|e| self.error("read", &self.folder, e))?;
        names.sort_unstable();
        Ok(names)
    }

    fn lock(&self, name: &str) -> Result<Option<NameLock>, StoreError> {
        let path = || self.folder.join(format!("{name}.{LOCK}"));
        NameLock::take(&self.folder, name).map_err(|e| self.error("lock", &path(), e))
    }

    fn place(&self, key: &Key) -> PathBuf {
        self.folder.join(key.as_str())
    }

    fn error(&self, task: &'static str, path: &Path, cause: io::Error) -> StoreError {
        StoreError::new(task, path, &self.folder, cause)
    }
}
