//! The process that a load runs in.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wakescope_core::units::SpanNs;
use wakescope_sys::process::{set_nonblocking, wait_readable, wait_writable};
use wakescope_sys::sched::{Schedule, set_schedule, set_timer_slack};
use wakescope_sys::{clock, signal::EndSignals};

use super::report::{Reading, Report};
use super::scratch::Scratch;
use super::{Spec, cpu, disturb, exec, file_move, find, launch};

/// The command of the program that makes it a keeper.
pub const KEEPER_VERB: &str = "load-keeper";

/// The request for a reading.
pub(super) const MARK: u8 = b'm';

/// Twice a second: often enough to tell a dead load from a slow one, and rare enough to add
/// nothing to what the load itself does to wakeups.
const BEAT: SpanNs = SpanNs(500_000_000);

/// How long work may take to stop. It looks whether it should at least every few milliseconds of
/// its own time; the rest is for disks that do not answer.
const STOP_PATIENCE: SpanNs = SpanNs(10_000_000_000);

/// How long a report may wait for its parent to read earlier ones.
const REPORT_PATIENCE: SpanNs = SpanNs(10_000_000_000);

/// Runs the load `spec` until standard input ends, with reports to standard output. Its files are
/// made in `dir`, their names and content from `seed`.
pub fn keep(spec: &Spec, dir: &Path, seed: u64) -> io::Result<()> {
    become_ordinary();
    let requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let reports = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // Else a parent that hangs would hang the load, and the load would outlive it.
    set_nonblocking(&reports)?;
    let desk = Arc::new(Desk::new(reports));
    // Dropped, and so removed, at the end.
    let scratch = match spec.needs_directory().then(|| Scratch::create(dir)).transpose() {
        Ok(scratch) => scratch,
        Err(e) => {
            desk.say(&Report::Fault(format!("cannot make a directory in {}: {e}", dir.display())));
            return Ok(());
        }
    };
    let dir = scratch.as_ref().map_or_else(PathBuf::new, |s| s.path().into());
    let worker = employ(spec.clone(), dir, seed, Arc::clone(&desk))?;
    serve(&requests, &desk, &worker)?;
    desk.stopping.store(true, Ordering::Relaxed);
    let deadline = clock::now().after(STOP_PATIENCE);
    while !worker.is_finished() && clock::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Makes this process one like any other, whatever it was started by: a real-time thread with
/// signals blocked, say. What is refused is as before, and that is no fault of the load's.
fn become_ordinary() {
    // Ctrl-C and a service manager's SIGTERM mean the parent, which then ends the load in order.
    let _ = EndSignals::block();
    let _ = set_schedule(Schedule::Other { nice: 0 });
    // What every process has that did not ask for another.
    let _ = set_timer_slack(SpanNs(50_000));
    // When memory runs short, a load goes before anything that people need.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Starts the thread that does the work.
fn employ(spec: Spec, dir: PathBuf, seed: u64, desk: Arc<Desk>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(spec.thread_name().into()).spawn(move || {
        let result = match &spec {
            Spec::Find => find::run(&dir, seed, &desk),
            Spec::Launch => launch::run(&desk),
            Spec::FileMove => file_move::run(&dir, seed, &desk),
            Spec::Cpu => cpu::run(&desk),
            Spec::Disturb(what) => disturb::run(what, seed, &desk),
            Spec::Exec(command) => exec::run(command, &desk),
        };
        match result {
            // What breaks because everything is being taken away is no fault.
            Err(fault) if !desk.stopping() => desk.say(&Report::Fault(fault)),
            _ => {}
        }
    })
}

/// Answers requests and shows signs of life until the requests end or the work does.
fn serve(requests: &File, desk: &Desk, worker: &JoinHandle<()>) -> io::Result<()> {
    let mut requests = requests;
    let mut marks = 0_u32;
    let mut next_beat = clock::now().after(BEAT);
    while !worker.is_finished() {
        if wait_readable(requests, next_beat.since(clock::now()))? {
            let mut request = [0];
            match requests.read(&mut request) {
                Ok(0) => break,
                Ok(_) if request[0] == MARK => {
                    marks = marks.wrapping_add(1);
                    desk.say(&Report::Mark(marks, desk.reading()));
                }
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
        let now = clock::now();
        if now >= next_beat {
            desk.beat();
            next_beat = now.after(BEAT);
        }
    }
    Ok(())
}

/// Where the work is counted, and where it learns that it should stop.
#[derive(Debug)]
pub(super) struct Desk {
    work: AtomicU64,
    stopping: AtomicBool,
    reports: Mutex<File>,
}

impl Desk {
    fn new(reports: File) -> Self {
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

    fn reading(&self) -> Reading {
        Reading { at: clock::now(), work: self.work.load(Ordering::Relaxed) }
    }

    /// Shows a sign of life. When nobody reads them, there is no point in more.
    fn beat(&self) {
        let line = format!("{}\n", Report::Beat(self.reading()));
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = reports.write(line.as_bytes());
    }

    /// Reports what must not get lost.
    fn say(&self, report: &Report) {
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
