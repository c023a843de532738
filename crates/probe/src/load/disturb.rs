//! The loads `disturb-KIND-TIME`: delays of a known cause and length.
//!
//! On each allowed CPU a thread is bound that disturbs it for a while, again and again, at times
//! that nobody can foresee but for the seed. Whoever explains late wakeups should find just that.

mod calibrate;
mod correction;
mod fifo;
mod gap;
mod softirq;
mod syscall;
mod throttle;
mod timers;

use std::env;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::sched::{affinity, set_affinity};

use super::keeper::{Desk, fault};
use super::random::Random;

/// What disturbs, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbance {
    pub(super) kind: Kind,
    length: SpanNs,
}

/// What disturbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A task of a higher priority runs.
    Fifo,
    /// Many timers expire in one interrupt.
    Timers,
    /// An ordinary task is in the kernel, where it could only be preempted.
    Syscall,
    /// A packet of the network is handed to many sockets.
    Softirq,
    /// Real-time tasks have used up their time.
    Throttle,
}

const PREFIX: &str = "disturb-";

const KINDS: [(Kind, &str); 5] = [
    (Kind::Fifo, "fifo"),
    (Kind::Timers, "timers"),
    (Kind::Syscall, "syscall"),
    (Kind::Softirq, "softirq"),
    (Kind::Throttle, "throttle"),
];

/// Shorter ones are lost among what a wakeup takes anyway; longer ones would hold the machine up.
const LENGTHS: [SpanNs; 2] = [SpanNs(20_000), SpanNs(50_000_000)];

/// How often there is one, or, if they are long, how many times as long that is.
const PERIOD: SpanNs = SpanNs(20_000_000);
const PERIOD_BY_LENGTH: u64 = 10;

/// Names a file into which goes, at the end, when there was a disturbance: the CPU, the begin and
/// the end on the monotonic clock in nanoseconds, one to a line.
const LOG: &str = "WAKESCOPE_DISTURBANCES";

/// How many of them are kept for it, per CPU.
const LOGGED: usize = 1 << 18;

impl Kind {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amount, unit) = match self.length.0 {
            ns if ns % 1_000_000 == 0 => (ns / 1_000_000, "ms"),
            ns if ns % 1_000 == 0 => (ns / 1_000, "us"),
            ns => (ns, "ns"),
        };
        f.pad(&format!("{PREFIX}{}-{amount}{unit}", self.kind.name()))
    }
}

impl FromStr for Disturbance {
    type Err = DisturbanceError;

    /// Reads `disturb-fifo-300us`.
    fn from_str(text: &str) -> Result<Self, DisturbanceError> {
        let words = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let (kind, length) = words.ok_or(DisturbanceError::Form)?;
        let kind = KINDS.iter().find(|(_, name)| *name == kind);
        let &(kind, _) = kind.ok_or(DisturbanceError::Form)?;
        let length: SpanNs = length.parse().map_err(|_| DisturbanceError::Form)?;
        let [least, most] = LENGTHS;
        if length < least || length > most {
            return Err(DisturbanceError::Length);
        }
        Ok(Self { kind, length })
    }
}

/// Whether `text` is meant to be a disturbance.
pub(super) fn is_meant(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Why a text is no disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisturbanceError {
    /// It does not name a kind and a time.
    Form,
    /// It is too short or too long to be one.
    Length,
}

impl fmt::Display for DisturbanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = KINDS.iter().map(|(_, name)| *name).collect();
        match self {
            Self::Form => write!(
                f,
                "a disturbance is written `{PREFIX}KIND-TIME`, as in {PREFIX}fifo-300us; the kinds are {}",
                names.join(", ")
            ),
            Self::Length => {
                let [least, most] = LENGTHS;
                write!(f, "a disturbance takes from {least} to {most}")
            }
        }
    }
}

/// When the machine was disturbed.
#[derive(Clone, Copy, Debug)]
struct Burst {
    begin: MonoNs,
    end: MonoNs,
}

/// What disturbs the CPU that it was made on.
trait Disturber {
    /// Disturbs it, now or in a moment. `None` if it did not come to that.
    fn disturb(&mut self, desk: &Desk) -> Result<Option<Burst>, String>;
}

fn disturber(what: &Disturbance, cpus: usize) -> Result<Box<dyn Disturber>, String> {
    let length = what.length;
    Ok(match what.kind {
        Kind::Fifo => Box::new(fifo::Fifo::new(length)?),
        Kind::Timers => Box::new(timers::Timers::new(length, cpus)?),
        Kind::Syscall => Box::new(syscall::Syscall::new(length)?),
        Kind::Softirq => Box::new(softirq::Softirq::new(length, cpus)?),
        Kind::Throttle => Box::new(throttle::Throttle::new(length)?),
    })
}

/// Disturbs every allowed CPU until the desk says stop.
pub(super) fn run(what: &Disturbance, seed: u64, desk: &Desk) -> Result<(), String> {
    let cpus = affinity().map_err(|e| format!("cannot tell the allowed CPUs: {e}"))?;
    let failed = AtomicBool::new(false);
    let (ready, all_ready) = mpsc::channel();
    let logs = thread::scope(|scope| {
        let mut threads = Vec::new();
        for &cpu in &cpus {
            let (ready, failed, cpus) = (ready.clone(), &failed, &cpus);
            // By this name it is to be found.
            let thread = thread::Builder::new().name(format!("{PREFIX}{}", what.kind.name()));
            let work = move || {
                let log = disturb_cpu(what, (cpu, cpus.len()), seed, desk, failed, &ready);
                failed.fetch_or(log.is_err(), Ordering::Relaxed);
                log
            };
            let started = thread.spawn_scoped(scope, work);
            threads.push(started.map_err(|e| {
                failed.store(true, Ordering::Relaxed);
                format!("cannot start {} threads: {e}", cpus.len())
            })?);
        }
        drop(ready);
        // Ends early if one of them fails and lets go of its end.
        if all_ready.iter().take(cpus.len()).count() == cpus.len() {
            desk.ready();
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a thread that disturbs has panicked".into()))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, String>>()
    })?;
    write_log(&cpus, &logs)
}

/// Disturbs one CPU, and tells when it did.
fn disturb_cpu(
    what: &Disturbance,
    (cpu, cpus): (u32, usize),
    seed: u64,
    desk: &Desk,
    failed: &AtomicBool,
    ready: &mpsc::Sender<()>,
) -> Result<Vec<Burst>, String> {
    set_affinity(&[cpu]).map_err(|e| format!("cannot stay on CPU {cpu}: {e}"))?;
    let mut disturber = disturber(what, cpus)?;
    let mut random = Random::new(seed.wrapping_add(cpu.into()));
    let logged = if env::var_os(LOG).is_some() { LOGGED } else { 0 };
    let mut log = Vec::with_capacity(logged);
    // Nobody listens if others could not be started.
    let _ = ready.send(());
    let period = PERIOD.0.max(what.length.0 * PERIOD_BY_LENGTH);
    let mut begin = clock::now();
    while !desk.stopping() && !failed.load(Ordering::Relaxed) {
        // Jitter lets them fall anywhere between two wakeups of whoever sleeps by a grid.
        let _ = clock::sleep_until(begin.after(SpanNs(random.below(period / 2))));
        if let Some(burst) = disturber.disturb(desk)? {
            desk.done(1);
            if log.len() < logged {
                log.push(burst);
            }
        }
        begin = begin.after(SpanNs(period)).max(clock::now());
        let _ = clock::sleep_until(begin);
    }
    Ok(log)
}

fn write_log(cpus: &[u32], logs: &[Vec<Burst>]) -> Result<(), String> {
    let Some(path) = env::var_os(LOG) else { return Ok(()) };
    let mut text = String::new();
    for (cpu, log) in cpus.iter().zip(logs) {
        for Burst { begin, end } in log {
            let _ = writeln!(text, "{cpu} {} {}", begin.0, end.0);
        }
    }
    let path = Path::new(&path);
    fs::write(path, text).map_err(|e| fault("write", path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_are_read_and_written_alike() {
        for (text, want) in [
            ("disturb-fifo-300us", Ok("disturb-fifo-300us")),
            ("disturb-timers-1ms", Ok("disturb-timers-1ms")),
            ("disturb-syscall-1000us", Ok("disturb-syscall-1ms")),
            ("disturb-softirq-0.1ms", Ok("disturb-softirq-100us")),
            ("disturb-throttle-50ms", Ok("disturb-throttle-50ms")),
            ("disturb-fifo-19us", Err(DisturbanceError::Length)),
            ("disturb-fifo-51ms", Err(DisturbanceError::Length)),
            ("disturb-fifo-9999999999999h", Err(DisturbanceError::Form)),
            ("disturb-fifo-300", Err(DisturbanceError::Form)),
            ("disturb-fifo", Err(DisturbanceError::Form)),
            ("disturb-fofi-300us", Err(DisturbanceError::Form)),
            ("disturb-", Err(DisturbanceError::Form)),
        ] {
            let got = text.parse::<Disturbance>().map(|d| d.to_string());
            assert_eq!(got, want.map(str::to_owned), "{text}");
        }
    }
}
