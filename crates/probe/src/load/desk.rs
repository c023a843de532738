//! Where a load's work and its keeper meet: the one counts there what it does, the other tells.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::process::wait_writable;

use super::report::{Reading, Report};

/// How long a report may wait for its parent to read earlier ones.
const REPORT_PATIENCE: SpanNs = SpanNs(10_000_000_000);

/// Where the work is counted, and where it learns that it should stop.
#[derive(Debug)]
pub(super) struct Desk {
    work: AtomicU64,
    stopping: AtomicBool,
    reports: Mutex<File>,
}

impl Desk {
    /// Reports go to `reports`, which must not block.
    pub(super) fn new(reports: File) -> Self {
        let (work, stopping) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { work, stopping, reports: Mutex::new(reports) }
    }

    /// Says that the set-up is done and work begins.
    pub(super) fn ready(&self) {
        self.say(&Report::Ready(self.reading()));
    }

    /// Counts work that was done.
    #[inline]
    pub(super) fn done(&self, units: u64) {
        self.work.fetch_add(units, Ordering::Relaxed);
    }

    /// Whether work should stop. To be asked at least every few milliseconds.
    #[inline]
    pub(super) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Tells the work to stop.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// How much was done, and when that was read.
    pub(super) fn reading(&self) -> Reading {
        Reading { at: clock::now(), work: self.work.load(Ordering::Relaxed) }
    }

    /// Shows a sign of life. When nobody reads them, there is no point in more.
    pub(super) fn beat(&self) {
        let line = format!("{}\n", Report::Beat(self.reading()));
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = reports.write(line.as_bytes());
    }

    /// Reports what must not get lost.
    pub(super) fn say(&self, report: &Report) {
        let line = format!("{report}\n");
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = clock::now().after(REPORT_PATIENCE);
        // Only a full pipe is worth waiting for: a parent that is gone is noticed elsewhere.
        while let Err(e) = reports.write(line.as_bytes()) {
            let left = deadline.since(clock::now());
            if e.kind() != io::ErrorKind::WouldBlock || left.0 == 0 {
                break;
            }
            let _ = wait_writable(&reports, left);
        }
    }
}

/// Standard streams of a program that a load starts: no input, and one output for both.
pub(super) fn streams<'a>(nothing: &'a File, output: &'a File) -> [BorrowedFd<'a>; 3] {
    [nothing.as_fd(), output.as_fd(), output.as_fd()]
}

/// The text of a fault: what could not be done to what, and why.
pub(super) fn fault(what: &str, path: &Path, e: &io::Error) -> String {
    format!("cannot {what} {}: {e}", path.display())
}

/// A desk that nobody reads the reports of.
#[cfg(test)]
pub(super) fn test_desk() -> Desk {
    let (_, reports) = wakescope_sys::process::pipe().expect("a pipe");
    Desk::new(reports)
}

#[cfg(test)]
impl Desk {
    /// The work that was counted.
    pub(super) fn work(&self) -> u64 {
        self.reading().work
    }
}
