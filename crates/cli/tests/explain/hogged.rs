//! Wakeups that wait for so long that ticks fill the tracer's ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use wakescope_core::explain::{Cause, Culprit, StepEvent};
use wakescope_core::run::Episode;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, explained};
use crate::common::measured::allowed_cpus;

const HOG: &str = "keeps-the-cpu";

/// A thread that keeps a CPU for long, and an ordinary one that is due there meanwhile.
struct Pair {
    ends: Arc<AtomicBool>,
    threads: [JoinHandle<()>; 2],
    waits: u32,
}

impl Pair {
    /// As long as the kernel lets real-time tasks run in each second, less what others take.
    const KEPT: SpanNs = SpanNs(900_000_000);
    const FREE: SpanNs = SpanNs(300_000_000);
    const PERIOD: SpanNs = SpanNs(5_000_000);

    fn start(cpu: u32) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let start = |name: &str, begin: Box<dyn Fn() + Send>, act: Box<dyn Fn() + Send>| {
            let ends = Arc::clone(&ends);
            let again_and_again = move || {
                set_affinity(&[cpu]).unwrap();
                begin();
                while !ends.load(Ordering::Relaxed) {
                    act();
                }
            };
            Builder::new().name(name.into()).spawn(again_and_again).unwrap()
        };
        let keep = || {
            clock::sleep_until(clock::now().after(Self::FREE)).unwrap();
            let end = clock::now().after(Self::KEPT);
            while clock::now() < end {}
        };
        let is_urgent = || set_schedule(Schedule::Fifo { priority: 7 }).unwrap();
        let (tell, text) = channel();
        let waits = start(
            "waits",
            Box::new(move || tell.send(this_thread().number()).unwrap()),
            Box::new(|| clock::sleep_until(clock::now().after(Self::PERIOD)).unwrap()),
        );
        let threads = [waits, start(HOG, Box::new(is_urgent), Box::new(keep))];
        Self { waits: text.recv().unwrap(), ends, threads }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Ticks during such a wait are more events than the tracer keeps, and came to push out the switch that says
/// who had the CPU.
#[test]
fn who_kept_the_cpu_for_nearly_a_second_is_named() {
    const NAME: &str = "who_kept_the_cpu_for_nearly_a_second_is_named";
    if !can_follow(NAME) {
        return;
    }
    let cpus = allowed_cpus();
    let [_, .., cpu] = cpus[..] else {
        return skip(NAME, "only one CPU is usable, which this command needs itself");
    };
    let test = Test::new("hogged");
    let pair = Pair::start(cpu);
    let pid = pair.waits.to_string();
    let asked = ["--pid", &pid, "--duration", "5s", "--above", "100ms", "--out", "run"];
    let (run, text) = explained(&test, &asked);
    pair.end();
    let lost = |episode: &&Episode| {
        episode.timeline.iter().any(|step| matches!(step.event, StepEvent::Missing { .. }))
    };
    // On a busy machine other tasks keep the CPU as well, and for less.
    let is_long = |episode: &&Episode| episode.wakeup_latency_ns > Pair::KEPT.0 / 2;
    let lossy: Vec<&Episode> = run.worst.iter().filter(lost).filter(is_long).collect();
    assert!(!lossy.is_empty(), "no wait was too long for the ring: {text}");
    let is_named = |episode: &&&Episode| {
        let first = &episode.blame[0];
        let is_hog = matches!(&first.culprit, Culprit::Task(task) if task.comm == HOG);
        first.cause == Cause::HigherPriorityTask && is_hog
    };
    // The other way to lose events is to be moved between CPUs, which this thread is not.
    let named = lossy.iter().filter(is_named).count();
    assert_eq!(named, lossy.len(), "{lossy:#?}");
}
