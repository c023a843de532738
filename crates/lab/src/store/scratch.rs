//! A folder that is gone when it is no longer needed.

use std::fs;
use std::path::{Path, PathBuf};

use super::lock::NameLock;

/// A folder for what nobody keeps. What a killed lab leaves of it is removed by the next one.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Dropped after the folder is gone.
    _lock: NameLock,
}

impl Scratch {
    pub(super) fn new(path: PathBuf, lock: NameLock) -> Self {
        Self { path, _lock: lock }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
