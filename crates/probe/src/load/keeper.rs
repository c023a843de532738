//! The process that a load runs in.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wakescope_core::units::SpanNs;
use wakescope_sys::poll::wait_readable;
use wakescope_sys::process::set_nonblocking;
use wakescope_sys::sched::{Schedule, set_schedule, set_timer_slack};
use wakescope_sys::{clock, signal::EndSignals};

use super::desk::Desk;
use super::kinds::{Job, WriteFile};
use super::pulse::{Pulse, waited_for_cpu};
use super::random::Random;
use super::report::Report;
use super::scratch::Scratch;
use super::{Spec, TMPDIR, named};

/// The command of the program that makes it a keeper.
pub const KEEPER_VERB: &str = "load-keeper";

/// The request for a reading.
pub(super) const MARK: u8 = b'm';

/// How long work may take to stop. It looks whether it should at least every few milliseconds of
/// its own time; the rest is for disks that do not answer.
const STOP_PATIENCE: SpanNs = SpanNs(10_000_000_000);

/// Runs the load `spec` until standard input ends, with reports to standard output. Its files are
/// made in `dir`, their names and content from `seed`. A file that the user named is written by `write_file`.
pub fn keep(spec: &Spec, dir: &Path, seed: u64, write_file: WriteFile) -> io::Result<()> {
    become_ordinary();
    let requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let reports = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // Else a parent that hangs would hang the load, and the load would outlive it.
    set_nonblocking(&reports)?;
    let desk = Arc::new(Desk::new(reports, spec.intensity(), seed_of_pauses(seed, spec.name())));
    let named = named(dir, env::var_os(TMPDIR));
    // Dropped, and so removed, at the end.
    let scratch = match spec.needs_directory().then(|| Scratch::create(dir)).transpose() {
        Ok(scratch) => scratch,
        Err(e) => {
            desk.say(&Report::Fault(format!("cannot make a directory in {named}: {e}")));
            return Ok(());
        }
    };
    // From here on the work has no need of the path, which others might make lead elsewhere.
    if let Some(Err(e)) = scratch.as_ref().map(Scratch::enter) {
        desk.say(&Report::Fault(format!("cannot enter a directory in {named}: {e}")));
        return Ok(());
    }
    let worker = match employ(spec.clone(), named, seed, Arc::clone(&desk), write_file) {
        Ok(worker) => worker,
        Err(e) => {
            desk.say(&Report::Fault(desk.not_started("cannot start a thread", &e)));
            return Ok(());
        }
    };
    serve(&requests, &desk, &worker, Pulse::new(seed, clock::now(), waited_for_cpu()))?;
    desk.stop();
    let deadline = clock::now().after(STOP_PATIENCE);
    while !worker.is_finished() && clock::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The seed of the pauses of a load: those of two loads of one run do not fall into step.
fn seed_of_pauses(seed: u64, load: &str) -> u64 {
    load.bytes().fold(seed, |mixed, byte| Random::new(mixed ^ u64::from(byte)).number())
}

/// Makes this process one like any other, whatever it was started by: a real-time thread with
/// signals blocked, say. What is refused is as before, and that is no fault of the load's.
fn become_ordinary() {
    // Ctrl-C and a service manager's SIGTERM mean the parent, which then ends the load in order.
    let _ = EndSignals::block_for_good();
    let _ = set_schedule(Schedule::Other { nice: 0 });
    // What every process has that did not ask for another.
    let _ = set_timer_slack(SpanNs(50_000));
    // When memory runs short, a load goes before anything that people need.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// Starts the thread that does the work.
fn employ(
    spec: Spec,
    dir: String,
    seed: u64,
    desk: Arc<Desk>,
    write_file: WriteFile,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(spec.kind().thread_name.into()).spawn(move || {
        let job = Job { name: spec.name(), dir: &dir, seed, desk: &desk, write_file };
        match (spec.kind().run)(&job) {
            // What breaks because everything is being taken away is no fault.
            Err(fault) if !desk.stopping() => desk.say(&Report::Fault(fault)),
            _ => {}
        }
    })
}

/// Answers requests and shows signs of life until the requests end or the work does.
fn serve(
    requests: &File,
    desk: &Desk,
    worker: &JoinHandle<()>,
    mut pulse: Pulse,
) -> io::Result<()> {
    let mut requests = requests;
    let mut marks = 0_u32;
    while !worker.is_finished() {
        if wait_readable(requests, pulse.next().since(clock::now()))? {
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
        if now >= pulse.next() {
            desk.beat(pulse.beat(now, waited_for_cpu()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_those_of_the_seed_and_of_the_load() {
        assert_eq!(seed_of_pauses(1, "find"), seed_of_pauses(1, "find"));
        for (seed, load) in [(2, "find"), (1, "cpu"), (1, "fork")] {
            assert_ne!(seed_of_pauses(seed, load), seed_of_pauses(1, "find"), "{seed} {load}");
        }
    }
}
