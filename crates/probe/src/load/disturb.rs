//! The loads `disturb-KIND-TIME`: delays of a known cause and length.
//!
//! On each allowed CPU a thread is bound that disturbs it for a while, again and again, at times
//! that nobody can foresee but for the seed. Whoever explains late wakeups should find just that.

mod calibrate;
mod correction;
mod disturbance;
mod disturber;
mod fifo;
mod files;
mod gap;
mod injected;
mod softirq;
mod syscall;
mod throttle;
mod timers;

use std::env;
use std::fmt::Write as _;
use std::path::PathBuf;

use wakescope_core::units::{SpanNs, counted, grouped};
use wakescope_sys::clock;
use wakescope_sys::sched::set_affinity;
use wakescope_sys::time_namespace::{Shifted, check_clock};

use super::crew::{Crew, allowed_cpus, work_together};
use super::desk::{Desk, fault};
use super::kinds::{Job, WriteFile};
use super::random::Random;
use super::report::Report;
use super::value_of;
use disturbance::Kind;
pub(super) use disturbance::is_meant;
pub use disturbance::{Disturbance, DisturbanceError};
use disturber::{Burst, Disturber, Turns};

/// How often there is one, or, if they are long, how many times as long that is.
const PERIOD: SpanNs = SpanNs(20_000_000);
const PERIOD_BY_LENGTH: u64 = 10;

/// Names a file into which goes, at the end, when there was a disturbance: the CPU, the begin and
/// the end on the monotonic clock in nanoseconds, one to a line; for sections of kernel code also how
/// many turns they made, and how many of these had not been made before. A pair of sections has a line
/// for each of the two, one after the other.
const LOG: &str = "WAKESCOPE_DISTURBANCES";

/// How many lines are kept for it, per CPU.
const LOGGED: usize = 1 << 18;

/// What is kept of the disturbances of a CPU.
#[derive(Debug)]
struct Kept {
    room: usize,
    bursts: Vec<Burst>,
    /// How many lines found no place.
    missing: u64,
}

impl Kept {
    fn new(room: usize) -> Self {
        Self { room, bursts: Vec::with_capacity(room), missing: 0 }
    }

    /// Keeps a disturbance: that has two lines if it is a `second` section's, too, and both are kept, or none.
    fn keep(&mut self, burst: Burst, second: Option<Burst>) {
        let lines = [Some(burst), second].into_iter().flatten();
        let count = lines.clone().count();
        match self.bursts.len() + count <= self.room {
            true => self.bursts.extend(lines),
            false => self.missing += count as u64,
        }
    }
}

fn disturber(what: &Disturbance, cpus: usize) -> Result<Box<dyn Disturber>, String> {
    let length = what.length;
    Ok(match what.kind {
        Kind::Fifo => Box::new(fifo::Fifo::new(length)?),
        Kind::Timers => Box::new(timers::Timers::new(length, cpus)?),
        Kind::Syscall => Box::new(syscall::Syscall::new(length)?),
        Kind::Softirq => Box::new(softirq::Softirq::new(length, cpus)?),
        Kind::Throttle => Box::new(throttle::Throttle::new(length)?),
        Kind::Injected(section) => Box::new(injected::Injected::new(section, None, what)?),
        Kind::Pair(first, pairing, second) => {
            Box::new(injected::Injected::new(first, Some((pairing, second)), what)?)
        }
    })
}

/// The file that `WAKESCOPE_DISTURBANCES` names, if it names one.
pub fn path_of_log() -> Option<PathBuf> {
    value_of(env::var_os(LOG)).map(PathBuf::from)
}

/// Disturbs every allowed CPU until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { name, seed, desk, write_file, .. } = job;
    let what: &Disturbance = &name.parse().map_err(|e: DisturbanceError| e.to_string())?;
    if what.is_injected() {
        // The module gives the times of its sections by the kernel's clock, and the log holds these.
        check_clock().map_err(|e| {
            desk.advise(Shifted::REMEDY);
            format!("{e}: {}", Shifted::CAUSE)
        })?;
    }
    // What cannot be written at the end is known before anything is disturbed.
    let log = path_of_log().map(|path| Log::create(path, write_file, desk)).transpose()?;
    let cpus = allowed_cpus()?;
    let logs = work_together(&what.thread_name(), cpus.clone(), desk, |cpu, crew| {
        disturb_cpu(what, (cpu, cpus.len()), seed, desk, crew)
    })?;
    let Some(log) = log else { return Ok(()) };
    let missing = logs.iter().map(|log| log.missing).sum();
    // No fault: the work was done.
    if let Err(why) = log.write(&text_of(&cpus, &logs)).and_then(|()| all_kept(missing)) {
        desk.say(&Report::NotSaved(format!("{why} ({LOG})")));
    }
    Ok(())
}

/// An error if some lines found no place.
fn all_kept(missing: u64) -> Result<(), String> {
    let most = grouped(LOGGED as u64);
    match missing {
        0 => Ok(()),
        _ => Err(format!("{} beyond the first {most} of a CPU", counted(missing, "line"))),
    }
}

/// Disturbs one CPU, and tells when it did.
fn disturb_cpu(
    what: &Disturbance,
    (cpu, cpus): (u32, usize),
    seed: u64,
    desk: &Desk,
    crew: &Crew<'_>,
) -> Result<Kept, String> {
    set_affinity(&[cpu]).map_err(|e| format!("cannot stay on CPU {cpu}: {e}"))?;
    let mut disturber = disturber(what, cpus)?;
    let mut random = Random::new(seed.wrapping_add(cpu.into()));
    let mut log = Kept::new(if path_of_log().is_some() { LOGGED } else { 0 });
    crew.ready();
    let period = PERIOD.0.max(what.length.0 * PERIOD_BY_LENGTH);
    let mut begin = clock::now();
    while !crew.stopping() {
        // Jitter lets them fall anywhere between two wakeups of whoever sleeps by a grid.
        let _ = clock::sleep_until(begin.after(SpanNs(random.below(period / 2))));
        if let Some(burst) = disturber.disturb(desk)? {
            crew.done(1);
            log.keep(burst, disturber.second());
        }
        begin = begin.after(SpanNs(period)).max(clock::now());
        let _ = clock::sleep_until(begin);
    }
    Ok(log)
}

/// The file of the log.
struct Log {
    path: PathBuf,
    write_file: WriteFile,
}

impl Log {
    /// Makes the file, empty: what an earlier load left there is not to be taken for this one's.
    fn create(path: PathBuf, write_file: WriteFile, desk: &Desk) -> Result<Self, String> {
        match write_file(&path, "") {
            Ok(()) => Ok(Self { path, write_file }),
            Err(e) => {
                desk.advise(&format!("name a file that you can write to: {LOG}=FILE"));
                Err(format!("cannot write {} ({LOG}): {e}", path.display()))
            }
        }
    }

    fn write(&self, text: &str) -> Result<(), String> {
        (self.write_file)(&self.path, text).map_err(|e| fault("write", &self.path, &e))
    }
}

fn text_of(cpus: &[u32], logs: &[Kept]) -> String {
    let mut text = String::new();
    for (cpu, log) in cpus.iter().zip(logs) {
        for Burst { begin, end, turns } in &log.bursts {
            let turns = turns.map_or(String::new(), |Turns { all, work }| format!(" {all} {work}"));
            let _ = writeln!(text, "{cpu} {} {}{turns}", begin.0, end.0);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wakescope_core::units::MonoNs;

    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn a_log_that_cannot_be_written_is_refused_before_anything_is_disturbed() {
        let write: WriteFile = |path, text| fs::write(path, text);
        let folder = wakescope_testing::Folder::new("disturbances");
        let path = folder.join("log");
        for wrong in [folder.join("missing/log"), folder.join(".")] {
            let fault = Log::create(wrong.clone(), write, &test_desk()).err().unwrap();
            let want = format!("cannot write {} (WAKESCOPE_DISTURBANCES): ", wrong.display());
            assert!(fault.starts_with(&want), "{fault}");
        }
        fs::write(&path, "0 1 2\n of an earlier load").unwrap();
        let log = Log::create(path.clone(), write, &test_desk()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        log.write("0 10 20\n1 30 40\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "0 10 20\n1 30 40\n");
    }

    /// From the 262,145th on, nothing was logged, and nothing said so.
    #[test]
    fn lines_that_find_no_place_are_counted() {
        let burst = |ns| Burst { begin: MonoNs(ns), end: MonoNs(ns + 1), turns: None };
        let mut log = Kept::new(3);
        log.keep(burst(1), Some(burst(2)));
        // A pair has both of its lines, or none.
        log.keep(burst(3), Some(burst(4)));
        log.keep(burst(5), None);
        log.keep(burst(6), None);
        assert_eq!(log.missing, 3);
        assert_eq!(text_of(&[7], &[log]), "7 1 2\n7 2 3\n7 5 6\n");
        assert_eq!(all_kept(0), Ok(()));
        assert_eq!(all_kept(3), Err("3 lines beyond the first 262,144 of a CPU".into()));
    }
}
