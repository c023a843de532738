//! The load `cpu`: every allowed CPU is busy.

use std::hint::black_box;

use super::crew::{allowed_cpus, work_together};
use super::kinds::Job;
use super::random::Random;

/// Steps of a loop, which is the unit of work: tens of microseconds, so that counting them costs
/// nothing.
const STEPS: u64 = 1 << 16;

/// Keeps one thread per allowed CPU busy until the desk says stop. They are not bound: the scheduler balances
/// them, as it does with anybody's work.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let cpus = allowed_cpus()?;
    work_together("load-cpu", cpus, job.desk, |_, crew| {
        let mut random = Random::new(0);
        crew.ready();
        while !crew.stopping() {
            for _ in 0..STEPS {
                black_box(random.number());
            }
            crew.done(1);
        }
        Ok(())
    })
    .map(drop)
}
