//! What can keep the cache from working.

use std::io;
use std::path::{Path, PathBuf};

use wakescope_core::units::grouped;
use wakescope_store::is_full;

/// Why the cache cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no room.
    #[error("no space left for cells in {}: {} bytes are free, {} are needed", .folder.display(), grouped(*.free), grouped(*.needed))]
    Full {
        /// The cache.
        folder: PathBuf,
        /// Bytes that can still be written.
        free: u64,
        /// Bytes that a cell must find free.
        needed: u64,
    },
    /// Anything else.
    #[error("cannot {task} {}: {cause}", .path.display())]
    Io {
        /// What was to be done: `write`, `lock`.
        task: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

impl StoreError {
    /// What went wrong with `path`, which lies in the cache `folder`.
    pub(super) fn new(task: &'static str, path: &Path, folder: &Path, cause: io::Error) -> Self {
        if is_full(&cause) {
            return Self::Full { folder: folder.into(), free: 0, needed: super::LEAST_ROOM };
        }
        Self::Io { task, path: path.into(), cause }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Full { .. } => {
                "free space there (wakescope lab prune --keep 100MB), or use another cache \
             (WAKESCOPE_CACHE=DIR), and run the same command again to resume: finished cells are kept"
            }
            Self::Io { .. } => "use a cache in a folder that you can write to",
        }
    }
}
