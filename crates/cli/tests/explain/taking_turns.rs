//! Wakeups that wait beside threads that take so many turns that these fill the tracer's ring.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use wakescope_core::explain::{Cause, Culprit, Share, StepEvent};
use wakescope_core::run::Episode;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::Schedule;

use crate::common::bench::Test;
use crate::common::following::{cpus_alone, explained, other_cpu, sum_ns};
use crate::common::threads::Threads;

const TAKES: &str = "takes-turns";

/// For so long the thread runs that waits, until it is no longer owed the CPU, and sleeps.
const RUNS: SpanNs = SpanNs(3_000_000);
const SLEEPS: SpanNs = SpanNs(1_000_000);

/// Two threads that wake each other, and one that has less right to their CPU, with its number.
fn crowd(cpu: u32) -> (Threads, u32) {
    let mut threads = Threads::default();
    let (one, other) = UnixStream::pair().unwrap();
    for mut pipe in [one, other] {
        // The other one has ended if nothing can be written or read.
        threads.start(TAKES, &[cpu], Schedule::Other { nice: 0 }, move |ends: &AtomicBool| {
            while !ends.load(Ordering::Relaxed)
                && pipe.write_all(&[1]).is_ok()
                && pipe.read_exact(&mut [0]).is_ok()
            {}
        });
    }
    let waits = threads.repeat("waits", &[cpu], Schedule::Other { nice: 10 }, || {
        let end = clock::now().after(RUNS);
        while clock::now() < end {}
        clock::sleep_until(clock::now().after(SLEEPS)).unwrap();
    });
    (threads, waits)
}

#[test]
fn who_took_hundreds_of_turns_is_named() {
    const NAME: &str = "who_took_hundreds_of_turns_is_named";
    let Some(cpu) = other_cpu(NAME) else { return };
    let test = Test::new("turns");
    let lost = |episode: &Episode| {
        episode.timeline.iter().any(|step| match step.event {
            StepEvent::Missing { count } => count > 100,
            _ => false,
        })
    };
    // On a machine that is busy otherwise the two take few turns.
    let followed = (0..4).map(|i| {
        let _alone = cpus_alone();
        let (threads, waits) = crowd(cpu);
        let (pid, out) = (waits.to_string(), format!("run-{i}"));
        let asked = ["--pid", &pid, "--duration", "3s", "--above", "1ms", "--worst", "50"];
        let (run, text) = explained(&test, &[&asked[..], &["--out", &out]].concat());
        threads.end();
        let mut lossy = run.worst;
        lossy.retain(lost);
        (lossy, text)
    });
    let found = followed.into_iter().find(|(lossy, _)| !lossy.is_empty());
    let (lossy, text) = found.expect("no wait was too long for the ring");
    let is_named = |share: &Share| {
        let by_task = matches!(&share.culprit, Culprit::Task(task) if task.comm == TAKES);
        share.cause == Cause::EqualOrLowerTask && by_task
    };
    let named_ns = sum_ns(&lossy, is_named);
    let unexplained_ns = sum_ns(&lossy, |share| share.cause == Cause::Unexplained);
    // Tests that run beside this one take their turns as well.
    assert!(named_ns > 3 * unexplained_ns && named_ns > 0, "{named_ns} {unexplained_ns}: {text}");
}
