//! The thread that stops a CPU for work of the kernel.

use wakescope_core::explain::{Cause, Culprit};
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity};

use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow_real_time, explained};
use crate::common::measured::allowed_cpus;
use crate::common::threads::Threads;

const PAUSE: SpanNs = SpanNs(50_000);

/// The kernel moves a thread that runs by the stopper of its CPU. This shows the same priority as the most urgent
/// thread of SCHED_FIFO, and comes before it all the same.
#[test]
fn a_stopper_comes_before_the_most_urgent_thread() {
    const NAME: &str = "a_stopper_comes_before_the_most_urgent_thread";
    if !can_follow_real_time(NAME) {
        return;
    }
    let [other, .., cpu] = allowed_cpus()[..] else {
        return skip(NAME, "it needs two CPUs");
    };
    let test = Test::new("stopper");
    let mut threads = Threads::default();
    threads.repeat("is-moved", &[other], Schedule::Other { nice: 0 }, move || {
        set_affinity(&[cpu]).unwrap();
        set_affinity(&[other]).unwrap();
    });
    let pid = threads.repeat("waits", &[cpu], Schedule::Fifo { priority: 99 }, || {
        clock::sleep_until(clock::now().after(PAUSE)).unwrap();
    });
    let pid = pid.to_string();
    let how = ["--duration", "2s", "--above", "1us", "--out", "run"];
    let (run, text) = explained(&test, &[&["--pid", &pid][..], &how].concat());
    threads.end();
    let is_stopper = |culprit: &Culprit| matches!(culprit, Culprit::Task(task) if task.comm.starts_with("migration/"));
    let waits = run.explanation.iter().filter_map(|explained| explained.waits.as_ref());
    let longest = waits.flat_map(|waits| &waits.kinds).filter_map(|row| row.worst.as_ref());
    let of_waits = longest.map(|worst| (&worst.culprit, worst.cause));
    let of_wakeups = run.causes.iter().map(|row| (&row.culprit, row.cause));
    let stopped = of_wakeups.chain(of_waits).filter(|(culprit, _)| is_stopper(culprit));
    let causes: Vec<Cause> = stopped.map(|(_, cause)| cause).collect();
    assert!(causes.contains(&Cause::HigherPriorityTask), "no thread was moved meanwhile: {text}");
    assert!(!causes.contains(&Cause::EqualOrLowerTask), "{text}");
}
