//! How large the cache is, and making it smaller.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::recipe::Key;
use super::removal::{is_own_at, make_way, remove_own};
use super::slot::OLD;
use super::sums::SUMS;
use super::{CellStore, StoreError};

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Cells.
    pub cells: usize,
    /// Bytes on the disk, for their files.
    pub bytes: u64,
}

/// What was removed, and what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// What was removed.
    pub removed: Size,
    /// What is left.
    pub kept: Size,
}

impl CellStore {
    /// How much there is.
    pub fn size(&self) -> Result<Size, StoreError> {
        let keys = self.keys()?;
        let bytes = keys.iter().map(|key| bytes_of(&self.place(key))).sum();
        Ok(Size { cells: keys.len(), bytes })
    }

    /// Removes cells, the one that was not used for the longest time first, until the others take
    /// no more than `bytes`. Cells that a lab works on stay.
    pub fn prune(&self, bytes: u64) -> Result<Pruned, StoreError> {
        let mut cells: Vec<(SystemTime, Key, u64)> = self
            .keys()?
            .into_iter()
            .map(|key| (last_use(&self.place(&key)), bytes_of(&self.place(&key)), key))
            .map(|(used, bytes, key)| (used, key, bytes))
            .collect();
        cells.sort_unstable();
        let all = cells.iter().map(|(.., bytes)| bytes).sum();
        let mut pruned =
            Pruned { kept: Size { cells: cells.len(), bytes: all }, ..Pruned::default() };
        for (_, key, size) in cells {
            if pruned.kept.bytes <= bytes {
                break;
            }
            if self.remove_cell(&key)? {
                pruned.removed.cells += 1;
                pruned.removed.bytes += size;
                pruned.kept.cells -= 1;
                pruned.kept.bytes -= size;
            }
        }
        Ok(pruned)
    }

    /// Whether it is gone; one that somebody works on is not, nor is what only has a cell's name.
    fn remove_cell(&self, key: &Key) -> Result<bool, StoreError> {
        let Some(_lock) = self.lock(key.as_str())? else { return Ok(false) };
        let (place, old) = (self.place(key), self.folder.join(format!("{key}.{OLD}")));
        if !is_own_at(&place) {
            return Ok(!self.has(key));
        }
        // A cell is there with all its files or not at all, also when this is cut short.
        let removed = make_way(&old)
            .and_then(|()| fs::rename(&place, &old))
            .and_then(|()| remove_own(&old).map(drop));
        match removed {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.error("remove", &place, e)),
            // Where it is gone, another lab was asked to make room too.
            _ => Ok(true),
        }
    }
}

/// A cell without that note is the first to go.
fn last_use(cell: &Path) -> SystemTime {
    let noted = fs::symlink_metadata(cell.join(SUMS)).and_then(|file| file.modified());
    noted.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn bytes_of(cell: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let sum = || -> io::Result<u64> {
        fs::read_dir(cell)?.map(|entry| Ok(entry?.metadata()?.blocks() * 512)).sum()
    };
    sum().unwrap_or(0)
}
