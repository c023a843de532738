//! Wakeups that wait for so long that ticks or softirqs fill the tracer's ring.

use std::net::UdpSocket;

use wakescope_core::explain::{Cause, Culprit, Evidence, StepEvent};
use wakescope_core::run::Episode;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::Schedule;

use crate::common::bench::Test;
use crate::common::following::{cpus_alone, explained, other_cpu, sum_ns};
use crate::common::threads::Threads;

const HOG: &str = "keeps-the-cpu";

/// As long as the kernel lets real-time tasks run in each second, less what others take.
const KEPT: SpanNs = SpanNs(900_000_000);
const FREE: SpanNs = SpanNs(300_000_000);
const PERIOD: SpanNs = SpanNs(5_000_000);

/// A thread that keeps a CPU for long and repeats `act` meanwhile, and an ordinary one that is due there, with its
/// number.
fn pair(cpu: u32, act: impl Fn() + Send + 'static) -> (Threads, u32) {
    let mut threads = Threads::default();
    let sleep = |span| clock::sleep_until(clock::now().after(span)).unwrap();
    let ordinary = Schedule::Other { nice: 0 };
    let waits = threads.repeat("waits", &[cpu], ordinary, move || sleep(PERIOD));
    threads.repeat(HOG, &[cpu], Schedule::Fifo { priority: 7 }, move || {
        sleep(FREE);
        let end = clock::now().after(KEPT);
        while clock::now() < end {
            act();
        }
    });
    (threads, waits)
}

/// The waits for such a thread that had more events than the tracer keeps, and the text.
fn too_long_for_the_ring(
    test: &Test,
    pair: impl FnOnce() -> (Threads, u32),
) -> (Vec<Episode>, String) {
    let _alone = cpus_alone();
    let (threads, waits) = pair();
    let pid = waits.to_string();
    let asked = ["--pid", &pid, "--duration", "5s", "--above", "100ms", "--out", "run"];
    let (run, text) = explained(test, &asked);
    threads.end();
    let lost = |episode: &Episode| {
        episode.timeline.iter().any(|step| matches!(step.event, StepEvent::Missing { .. }))
    };
    // On a busy machine other tasks keep the CPU as well, and for less.
    let is_long = |episode: &Episode| episode.wakeup_latency_ns > KEPT.0 / 2;
    let mut lossy = run.worst;
    lossy.retain(|episode| lost(episode) && is_long(episode));
    assert!(!lossy.is_empty(), "no wait was too long for the ring: {text}");
    (lossy, text)
}

/// Ticks during such a wait are more events than the tracer keeps, and came to push out the switch that says
/// who had the CPU.
#[test]
fn who_kept_the_cpu_for_nearly_a_second_is_named() {
    const NAME: &str = "who_kept_the_cpu_for_nearly_a_second_is_named";
    let Some(cpu) = other_cpu(NAME) else { return };
    let test = Test::new("hogged");
    let (lossy, _) = too_long_for_the_ring(&test, || pair(cpu, || ()));
    let is_named = |episode: &&Episode| {
        let first = &episode.blame[0];
        let is_hog = matches!(&first.culprit, Culprit::Task(task) if task.comm == HOG);
        first.cause == Cause::HigherPriorityTask && is_hog
    };
    // The other way to lose events is to be moved between CPUs, which this thread is not.
    let named = lossy.iter().filter(is_named).count();
    assert_eq!(named, lossy.len(), "{lossy:#?}");
}

/// Each datagram to oneself is a softirq: hundreds of thousands during such a wait. Their time was unexplained once.
#[test]
fn softirqs_that_filled_the_ring_are_told_as_a_bound() {
    const NAME: &str = "softirqs_that_filled_the_ring_are_told_as_a_bound";
    let Some(cpu) = other_cpu(NAME) else { return };
    let test = Test::new("flooded");
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    // It does not matter if a datagram finds no room, or has not come yet.
    let flood = move || {
        let _ = socket.send(&[1]);
        let _ = socket.recv(&mut [0]);
    };
    let (lossy, text) = too_long_for_the_ring(&test, || pair(cpu, flood));
    let bound_ns = sum_ns(&lossy, |share| {
        let is_summed_up = share.culprit == Culprit::None && share.evidence == Evidence::Bound;
        share.cause == Cause::Softirq && is_summed_up
    });
    let unexplained_ns = sum_ns(&lossy, |share| share.cause == Cause::Unexplained);
    assert!(bound_ns > unexplained_ns, "{bound_ns} {unexplained_ns}: {text}");
}
