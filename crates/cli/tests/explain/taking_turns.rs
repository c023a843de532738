//! Wakeups that wait beside threads that take so many turns that these fill the tracer's ring.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use wakescope_core::explain::{Cause, Culprit, Share, StepEvent};
use wakescope_core::run::Episode;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, explained};
use crate::common::measured::allowed_cpus;

const TAKES: &str = "takes-turns";

/// Two threads that wake each other, and one that has less right to their CPU.
struct Crowd {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    waits: u32,
}

impl Crowd {
    /// For so long the third one runs, until it is no longer owed the CPU, and sleeps.
    const RUNS: SpanNs = SpanNs(3_000_000);
    const SLEEPS: SpanNs = SpanNs(1_000_000);

    fn start(cpu: u32) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let start = |name: &str, nice, act: Box<dyn FnOnce(&AtomicBool) + Send>| {
            let ends = Arc::clone(&ends);
            let begin = move || {
                set_affinity(&[cpu]).unwrap();
                set_schedule(Schedule::Other { nice }).unwrap();
                act(&ends);
            };
            Builder::new().name(name.into()).spawn(begin).unwrap()
        };
        let answer = |mut pipe: UnixStream| {
            // The other one has ended if nothing can be written or read.
            move |ends: &AtomicBool| {
                while !ends.load(Ordering::Relaxed)
                    && pipe.write_all(&[1]).is_ok()
                    && pipe.read_exact(&mut [0]).is_ok()
                {}
            }
        };
        let (one, other) = UnixStream::pair().unwrap();
        let mut threads: Vec<_> =
            [one, other].map(|pipe| start(TAKES, 0, Box::new(answer(pipe)))).into();
        let (tell, text) = channel();
        let wait = move |ends: &AtomicBool| {
            tell.send(this_thread().number()).unwrap();
            while !ends.load(Ordering::Relaxed) {
                let end = clock::now().after(Self::RUNS);
                while clock::now() < end {}
                clock::sleep_until(clock::now().after(Self::SLEEPS)).unwrap();
            }
        };
        threads.push(start("waits", 10, Box::new(wait)));
        Self { waits: text.recv().unwrap(), ends, threads }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn who_took_hundreds_of_turns_is_named() {
    const NAME: &str = "who_took_hundreds_of_turns_is_named";
    if !can_follow(NAME) {
        return;
    }
    let cpus = allowed_cpus();
    let [_, .., cpu] = cpus[..] else {
        return skip(NAME, "only one CPU is usable, which this command needs itself");
    };
    let test = Test::new("turns");
    let crowd = Crowd::start(cpu);
    let pid = crowd.waits.to_string();
    let asked = ["--pid", &pid, "--duration", "3s", "--above", "1ms", "--worst", "50"];
    let (run, text) = explained(&test, &[&asked[..], &["--out", "run"]].concat());
    crowd.end();
    let lost = |episode: &&Episode| {
        episode.timeline.iter().any(|step| match step.event {
            StepEvent::Missing { count } => count > 100,
            _ => false,
        })
    };
    let lossy: Vec<&Episode> = run.worst.iter().filter(lost).collect();
    assert!(!lossy.is_empty(), "no wait was too long for the ring: {text}");
    let sum_ns = |which: &dyn Fn(&Share) -> bool| -> u64 {
        let shares = lossy.iter().flat_map(|episode| &episode.blame);
        shares.filter(|share| which(share)).map(|share| share.ns).sum()
    };
    let is_named = |share: &Share| {
        let by_task = matches!(&share.culprit, Culprit::Task(task) if task.comm == TAKES);
        share.cause == Cause::EqualOrLowerTask && by_task
    };
    let named_ns = sum_ns(&is_named);
    let unexplained_ns = sum_ns(&|share| share.cause == Cause::Unexplained);
    // Tests that run beside this one take their turns as well.
    assert!(named_ns > 3 * unexplained_ns && named_ns > 0, "{named_ns} {unexplained_ns}: {text}");
}
