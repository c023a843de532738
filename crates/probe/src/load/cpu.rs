//! The load `cpu`: every allowed CPU is busy.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use wakescope_core::units::counted;

use wakescope_sys::sched::affinity;

use super::desk::Desk;
use super::kinds::Job;
use super::random::Random;

/// Steps of a loop, which is the unit of work: tens of microseconds, so that counting them costs
/// nothing.
const STEPS: u64 = 1 << 16;

/// Keeps one thread per allowed CPU busy until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let cpus = affinity().map_err(|e| format!("cannot find out the allowed CPUs: {e}"))?;
    let too_few = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in &cpus {
            // Not bound: the scheduler balances them, as it does with anybody's work.
            let busy = thread::Builder::new().name("load-cpu".into());
            busy.spawn_scoped(scope, || spin(desk, &too_few)).map_err(|e| {
                too_few.store(true, Ordering::Relaxed);
                let what = format!("cannot start {}", counted(cpus.len() as u64, "thread"));
                desk.not_started(&what, &e)
            })?;
        }
        desk.ready();
        Ok(())
    })
}

fn spin(desk: &Desk, too_few: &AtomicBool) {
    let mut random = Random::new(0);
    while !desk.stopping() && !too_few.load(Ordering::Relaxed) {
        for _ in 0..STEPS {
            black_box(random.number());
        }
        desk.done(1);
    }
}
