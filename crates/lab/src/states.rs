//! Machines that were saved when their guests were ready, so that others of the same kernel need not boot.
//!
//! A state is only a shortcut to what a boot gives, so no recipe names it. It is kept once a guest that resumed
//! from it has given the same bytes as the one that booted. Cells that are verified boot.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wakescope_sys::input::open_input;

use crate::cache::{Cache, CacheError};
use crate::machine::state::State;
use crate::store::{Key, note_use};

/// The most bytes of all states together. The least recently used is the first to be removed.
const ALL_MOST: u64 = 2 << 30;

/// The states of a cache, by the recipes of their boots.
#[derive(Debug)]
pub struct States {
    cache: Cache,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// States that this process makes or has made, and those that cannot be made.
    taken: BTreeSet<Key>,
    /// By a cell's recipe: the SHA-256 of the state that its guest resumed from.
    used: BTreeMap<Key, String>,
}

impl States {
    /// Those of `cache`.
    pub fn of(cache: &Cache) -> Self {
        Self { cache: cache.clone(), known: Mutex::default() }
    }

    /// The state of a boot, if there is one, for the cell `cell`.
    pub(crate) fn find(&self, boot: &Key, cell: &Key) -> Option<State> {
        let place = self.place(boot);
        let mut file = open_input(&place).ok()?;
        match State::read(&mut file) {
            Ok(Some((state, sum))) => {
                note_use(&place);
                self.known().used.insert(cell.clone(), sum);
                Some(state)
            }
            // What is damaged is of no use to anybody.
            _ => {
                self.discard(boot, cell);
                None
            }
        }
    }

    /// Whether the caller is to make the state of this boot. It is true once for each boot.
    pub(crate) fn is_wanted(&self, boot: &Key) -> bool {
        !self.place(boot).exists() && self.known().taken.insert(boot.clone())
    }

    /// Keeps a state that was proven to be good.
    pub(crate) fn keep(&self, boot: &Key, state: &State) -> Result<(), CacheError> {
        let place = self.place(boot);
        let bytes = state.stored().map_err(CacheError::io("read", &place))?;
        self.cache.write(&place, &bytes)?;
        self.make_room().map_err(CacheError::io("clear", &self.cache.states()))
    }

    /// Removes a state that the guest of `cell` could not resume from, so that no other guest tries.
    pub(crate) fn discard(&self, boot: &Key, cell: &Key) {
        let mut known = self.known();
        known.taken.insert(boot.clone());
        known.used.remove(cell);
        let _ = fs::remove_file(self.place(boot));
    }

    /// The SHA-256 of the state that the cell's guest resumed from, if it did.
    pub(crate) fn used_by(&self, cell: &Key) -> Option<String> {
        self.known().used.get(cell).cloned()
    }

    fn make_room(&self) -> io::Result<()> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.cache.states())? {
            let entry = entry?;
            let meta = entry.metadata()?;
            let is_state =
                entry.file_name().to_str().is_some_and(|name| name.parse::<Key>().is_ok());
            if is_state && meta.is_file() {
                all.push((meta.modified()?, meta.len(), entry.path()));
            }
        }
        all.sort();
        let mut bytes: u64 = all.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, size, path) in all {
            if bytes > ALL_MOST {
                fs::remove_file(path)?;
                bytes -= size;
            }
        }
        Ok(())
    }

    fn place(&self, boot: &Key) -> PathBuf {
        self.cache.states().join(boot.as_str())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::Folder;

    #[test]
    fn a_state_is_made_once_and_found_until_it_is_damaged() {
        let folder = Folder::new("states");
        let states = States::of(&Cache::at(folder.path()));
        let [boot, cell] = ["a", "b"].map(|digit| digit.repeat(64).parse::<Key>().unwrap());
        assert!(states.find(&boot, &cell).is_none() && states.is_wanted(&boot));
        assert!(!states.is_wanted(&boot), "somebody makes it");
        states.keep(&boot, &State::empty().unwrap()).unwrap();
        assert!(states.find(&boot, &cell).is_some());
        assert_eq!(states.used_by(&cell).map(|sum| sum.len()), Some(64));
        let other = States::of(&Cache::at(folder.path()));
        assert!(!other.is_wanted(&boot), "it is there");
        fs::write(states.place(&boot), "damaged").unwrap();
        assert!(states.find(&boot, &cell).is_none() && !states.place(&boot).exists());
        assert_eq!(states.used_by(&cell), None);
        assert!(!states.is_wanted(&boot), "it is not made twice");
        assert!(other.is_wanted(&boot), "the next lab tries again");
    }
}
