//! Windows on disk: several intervals as one, and what becomes of them when the disk is full.

use std::path::{Path, PathBuf};

use wakescope_core::redact::redact_window;
use wakescope_core::units::SpanNs;
use wakescope_core::watch::Window;
use wakescope_core::watch::packed;
use wakescope_core::watch::sum::Sum;
use wakescope_store::{RunFolderError, WindowFolder};

use crate::{Failure, folder};

/// A window with so many series is stored before its time, so that none takes much memory.
const MOST_SERIES: usize = 16_384;

/// Stores windows. One that cannot be written is added to the next: its waits are late, not lost.
pub(super) struct Storage {
    folder: WindowFolder,
    path: PathBuf,
    merge: SpanNs,
    redacts: bool,
    /// What is not written yet.
    sum: Sum,
    /// How much of it there is to be when it is written next, ns.
    next_ns: u64,
    /// Why it could not be written last time.
    failure: Option<String>,
}

impl Storage {
    /// Stores windows of the length `merge` in the folder at `path`, of at most `keep` bytes.
    pub(super) fn open(
        path: &Path,
        keep: u64,
        merge: SpanNs,
        redacts: bool,
    ) -> Result<Self, Failure> {
        let folder = WindowFolder::open(path, keep).map_err(|e| match e {
            RunFolderError::InUse(_) => {
                Failure::new(format!("another watch writes to {}", path.display()))
                    .try_this("name another folder: --out DIR")
            }
            other => folder::failure(other),
        })?;
        let (path, next_ns) = (path.into(), merge.0);
        Ok(Self { folder, path, merge, redacts, sum: Sum::default(), next_ns, failure: None })
    }

    /// Takes a window. What the user should know now.
    pub(super) fn add(&mut self, window: &Window) -> Option<String> {
        let mut window = window.clone();
        if self.redacts {
            redact_window(&mut window);
        }
        self.sum.add(window);
        let is_large = self.sum.series() >= MOST_SERIES && self.failure.is_none();
        if is_large || self.sum.window_ns() >= self.next_ns { self.store() } else { None }
    }

    /// Stores what is left; fails if that cannot be written.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.store();
        let Some(why) = self.failure else { return Ok(()) };
        let (path, lost) = (self.path.display(), SpanNs(self.sum.window_ns()));
        Err(Failure::new(format!("cannot write to {path}: {why}"))
            .because(format!("the last {lost} are not stored; all before are"))
            .try_this("make room, or name another folder: --out DIR"))
    }

    fn store(&mut self) -> Option<String> {
        let window = self.sum.window()?;
        let line = packed::line(&window).map_err(std::io::Error::other);
        let written = line.and_then(|line| self.folder.append(&window.started, line.as_bytes()));
        let path = self.path.display();
        match written {
            Ok(_) => {
                let span = SpanNs(std::mem::take(&mut self.sum).window_ns());
                self.next_ns = self.merge.0;
                self.failure.take().map(|_| {
                    format!("{path} can be written again: all of the last {span} is one window")
                })
            }
            Err(e) => {
                self.next_ns = self.sum.window_ns().saturating_add(self.merge.0);
                let is_new = self.failure.replace(e.to_string()).is_none();
                is_new.then(|| {
                    format!(
                        "cannot write to {path}: {e}\n  windows are kept in memory and added up \
                         until that is possible\n  → make room"
                    )
                })
            }
        }
    }
}
