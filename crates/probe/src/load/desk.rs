//! Where a load's work and its keeper meet: the one counts there what it does, the other tells.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::poll::wait_writable;

use super::intensity::{Intensity, Pace, with_pace};
use super::report::{Reading, Report};

/// What helps where no more processes or threads may be started.
const MORE_PROCESSES: &str = "raise the limit of processes and threads: of this user (ulimit -u), or of this cgroup (pids.max)";

/// How long a report may wait for its parent to read earlier ones.
const REPORT_PATIENCE: SpanNs = SpanNs(10_000_000_000);

/// Where the work is counted, and where it learns that it should pause or stop.
#[derive(Debug)]
pub(super) struct Desk {
    work: AtomicU64,
    stopping: AtomicBool,
    reports: Mutex<File>,
    pauses: Option<Pauses>,
}

/// Of a load that works only part of the time.
#[derive(Debug)]
struct Pauses {
    intensity: Intensity,
    /// Of the lengths.
    seed: u64,
    /// Of the threads that have worked so far; each has a pace of its own.
    threads: AtomicU64,
    /// Held only to wait for the end, which wakes those that pause.
    waiting: Mutex<()>,
    end: Condvar,
}

impl Desk {
    /// Reports go to `reports`, which must not block. Pauses are of lengths that follow from `seed`.
    pub(super) fn new(reports: File, intensity: Intensity, seed: u64) -> Self {
        let (work, stopping) = (AtomicU64::new(0), AtomicBool::new(false));
        let pauses = (intensity != Intensity::FULL).then(|| Pauses {
            intensity,
            seed,
            threads: AtomicU64::new(0),
            waiting: Mutex::new(()),
            end: Condvar::new(),
        });
        Self { work, stopping, reports: Mutex::new(reports), pauses }
    }

    /// Says that the set-up is done and work begins.
    pub(super) fn ready(&self) {
        self.say(&Report::Ready(self.reading()));
    }

    /// Says, before it is ready, that a part of the work is left out on this machine, and why. `part` is
    /// one word.
    pub(super) fn omit(&self, part: &str, reason: &str) {
        self.say(&Report::Omission(part.into(), reason.into()));
    }

    /// Counts work that was done. To be called by the thread that does the work, at least every few
    /// milliseconds: here it pauses if the load is to work only part of the time.
    #[inline]
    pub(super) fn done(&self, units: u64) {
        self.work.fetch_add(units, Ordering::Relaxed);
        if let Some(pauses) = &self.pauses {
            self.keep_pace(pauses);
        }
    }

    fn keep_pace(&self, pauses: &Pauses) {
        let now = clock::now();
        let begin = || {
            let thread = pauses.threads.fetch_add(1, Ordering::Relaxed);
            Pace::new(pauses.intensity, pauses.seed.wrapping_add(thread), now)
        };
        with_pace(begin, |pace| {
            if let Some(pause) = pace.pause(now) {
                self.wait_for_stop(pauses, pause);
                pace.resume(now, pause, clock::now());
            }
        });
    }

    /// Waits for `patience`, or until the desk says stop.
    fn wait_for_stop(&self, pauses: &Pauses, patience: SpanNs) {
        let guard = pauses.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = Duration::from_nanos(patience.0);
        // The end is announced under the same lock, so it cannot come between question and wait.
        let _ = pauses.end.wait_timeout_while(guard, patience, |()| !self.stopping());
    }

    /// Whether work should stop. To be asked at least every few milliseconds.
    #[inline]
    pub(super) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Tells the work to stop.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(pauses) = &self.pauses {
            drop(pauses.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            pauses.end.notify_all();
        }
    }

    /// How much was done, and when that was read.
    pub(super) fn reading(&self) -> Reading {
        Reading { at: clock::now(), work: self.work.load(Ordering::Relaxed) }
    }

    /// Shows a sign of life, after the keeper was `held_up` for so long. When nobody reads them, there is no
    /// point in more.
    pub(super) fn beat(&self, held_up: SpanNs) {
        let mut line = format!("{}\n", Report::Beat(self.reading()));
        if held_up.0 > 0 {
            line.insert_str(0, &format!("{}\n", Report::HeldUp(held_up)));
        }
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = reports.write(line.as_bytes());
    }

    /// Reports what the user can do about the fault that the work ends with next.
    pub(super) fn advise(&self, remedy: &str) {
        self.say(&Report::Remedy(remedy.into()));
    }

    /// The reason why a process or a thread could not be started: `what` and the error. Its remedy, if there is one, is
    /// reported.
    pub(super) fn not_started(&self, what: &str, e: &io::Error) -> String {
        if e.kind() == io::ErrorKind::WouldBlock {
            self.advise(MORE_PROCESSES);
        }
        format!("{what}: {e}")
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
    let (_, reports) = wakescope_sys::pipe::pipe().expect("a pipe");
    Desk::new(reports, Intensity::FULL, 1)
}

#[cfg(test)]
impl Desk {
    /// The work that was counted.
    pub(super) fn work(&self) -> u64 {
        self.reading().work
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;

    use super::*;

    #[test]
    fn pauses_end_when_the_desk_says_stop() {
        let (_, reports) = wakescope_sys::pipe::pipe().unwrap();
        let desk = Desk::new(reports, "1%".parse().unwrap(), 1);
        thread::scope(|scope| {
            let spin = || {
                while !desk.stopping() {
                    desk.done(1);
                }
            };
            let workers = [(); 3].map(|()| scope.spawn(spin));
            while desk.work() < 1000 {
                thread::yield_now();
            }
            desk.stop();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
        // Even a pause of an hour.
        desk.wait_for_stop(desk.pauses.as_ref().unwrap(), SpanNs(3_600_000_000_000));
    }

    #[test]
    fn a_limit_of_processes_is_named_by_whoever_runs_into_it() {
        for (error, want) in
            [(11, format!("{}\n", Report::Remedy(MORE_PROCESSES.into()))), (12, String::new())]
        {
            let (mut heard, reports) = wakescope_sys::pipe::pipe().unwrap();
            let desk = Desk::new(reports, Intensity::FULL, 1);
            let fault = desk.not_started("cannot start it", &io::Error::from_raw_os_error(error));
            assert!(fault.starts_with("cannot start it: "), "{fault}");
            drop(desk);
            let mut said = String::new();
            heard.read_to_string(&mut said).unwrap();
            assert_eq!(said, want);
        }
    }
}
