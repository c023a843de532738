//! What can keep the cache from working.

use std::io;
use std::path::{Path, PathBuf};

use wakescope_core::units::grouped;
use wakescope_store::is_full;
use wakescope_sys::file::Room;

/// Why the cache cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no room.
    #[error("no space left for cells in {}: {lack}", .folder.display())]
    Full {
        /// The cache.
        folder: PathBuf,
        /// For what there is no room.
        lack: Lack,
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

/// For what there is too little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    /// For the bytes of a cell.
    #[error("{} bytes are free, {} are needed", grouped(*.free), grouped(super::LEAST_ROOM))]
    Bytes {
        /// How many can still be written, less than [`LEAST_ROOM`](super::LEAST_ROOM).
        free: u64,
    },
    /// For its files, of which a file system may hold no more than a number.
    #[error("{} more files can be made, {} are needed", grouped(*.free), grouped(super::LEAST_FILES))]
    Files {
        /// How many can still be made, less than 100.
        free: u64,
    },
    /// For what was to be written: the operating system does not say how much is free.
    #[error("the disk is full, or a quota is used up")]
    Unmeasured,
}

impl Lack {
    /// What is lacking where there is so much room; `None` if a cell can be run.
    pub(super) fn of(room: &Room) -> Option<Self> {
        if room.bytes < super::LEAST_ROOM {
            Some(Self::Bytes { free: room.bytes })
        } else if room.files < super::LEAST_FILES {
            Some(Self::Files { free: room.files })
        } else {
            None
        }
    }
}

impl StoreError {
    /// What went wrong with `path`, which lies in the cache `folder`.
    pub(super) fn new(task: &'static str, path: &Path, folder: &Path, cause: io::Error) -> Self {
        if is_full(&cause) {
            return Self::Full { folder: folder.into(), lack: Lack::Unmeasured };
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
