//! A test of threads that are moved to another CPU while they wait: what held them up on the first one is told.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use wakescope_core::explain::{Cause, What};
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{self, Schedule, this_thread};
use wakescope_testing::skip;

use super::one_probe::options;
use super::*;

/// As often as the thread is moved to the other CPU, at the most.
const MOVES: u32 = 400;

/// Late wakeups with a move in them that are enough.
const ENOUGH: usize = 5;

fn hog(cpu: u32, stop: &AtomicBool) {
    sched::set_affinity(&[cpu]).unwrap();
    while !stop.load(Ordering::Relaxed) {}
}

/// Sleeps again and again, and waits for its CPU behind whoever has it.
fn sleep_politely(cpu: u32, stop: &AtomicBool) {
    sched::set_affinity(&[cpu]).unwrap();
    sched::set_schedule(Schedule::Other { nice: 19 }).unwrap();
    while !stop.load(Ordering::Relaxed) {
        clock::sleep_until(clock::now().after(SpanNs(2_000_000))).unwrap();
    }
}

fn put_on(cpu: u32, thread: u32) {
    let words = ["-pc", &cpu.to_string(), &thread.to_string()];
    let done = Command::new("taskset").args(words).output().expect("util-linux has taskset");
    assert!(done.status.success(), "{done:?}");
}

/// Stops the others also where a check fails: they would run for ever.
struct StopsThem<'a>(&'a AtomicBool);

impl Drop for StopsThem<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn has_moved(wakeup: &Wakeup) -> bool {
    wakeup.events.iter().any(|event| matches!(event.what, What::Moved { .. }))
}

/// What is seen of the thread until enough of its wakeups were moved.
fn seen_while_moved(tracer: &mut Tracer, thread: u32, cpus: [u32; 2]) {
    tracer.prepare_to_store();
    tracer.begin(clock::now()).unwrap();
    let mut moved = 0;
    for number in 0..MOVES {
        put_on(cpus[number as usize % 2], thread);
        clock::sleep_until(clock::now().after(SpanNs(5_000_000))).unwrap();
        tracer.poll();
        tracer.decode_latest(64);
        moved += tracer
            .decoded()
            .map_or(0, |(wakeups, _)| wakeups.iter().filter(|w| has_moved(w)).count());
        if moved >= ENOUGH {
            break;
        }
    }
}

#[test]
fn what_held_a_thread_up_before_it_was_moved_is_known() {
    const NAME: &str = "what_held_a_thread_up_before_it_was_moved_is_known";
    let allowed = sched::affinity().unwrap();
    let &[first, second, ..] = &allowed[..] else {
        return skip(NAME, "a thread cannot be moved on a single CPU");
    };
    let stop = &AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let _stops_them = StopsThem(stop);
        let (known, thread) = channel();
        scope.spawn(move || hog(first, stop));
        scope.spawn(move || hog(second, stop));
        scope.spawn(move || {
            known.send(this_thread().number()).unwrap();
            sleep_politely(first, stop);
        });
        let tid = thread.recv().unwrap();
        let target = Target::Thread { tid };
        let tracer = Tracer::start(Options { target, probes: 0, ..options(None, 256) });
        tracer.map(|mut tracer| {
            seen_while_moved(&mut tracer, tid, [second, first]);
            tracer.finish().0
        })
    });
    let seen = match seen {
        Ok(seen) => seen,
        Err(why) => return skip(NAME, &why.to_string()),
    };
    assert_eq!(seen.tally.as_ref().unwrap().contradictions(), [""; 0]);
    let known = seen.known.unwrap();
    let moved: Vec<&Wakeup> = seen.wakeups.iter().filter(|wakeup| has_moved(wakeup)).collect();
    assert!(moved.len() >= ENOUGH, "{} wakeups were moved of {}", moved.len(), seen.wakeups.len());
    let mut explained = 0;
    for wakeup in &moved {
        let mut cpu = wakeup.first_cpu();
        for pair in wakeup.events.windows(2) {
            if let What::Moved { from, to } = pair[0].what {
                assert_eq!(from, cpu, "{wakeup:?}");
                assert!(matches!(pair[1].what, What::Switch { .. }), "{wakeup:?}");
                cpu = to;
            }
        }
        assert_eq!(cpu, wakeup.cpu, "{wakeup:?}");
        let shares = wakescope_attribution::blame(wakeup, &known);
        let ns = |of: &dyn Fn(Cause) -> bool| -> u64 {
            shares.iter().filter(|share| of(share.cause)).map(|share| share.ns).sum()
        };
        let all = ns(&|_| true);
        assert_eq!(all, wakeup.marks.response.since(wakeup.marks.due).0, "{shares:?}");
        explained += usize::from(ns(&|cause| cause == Cause::Unexplained) < all / 2);
    }
    assert!(explained * 2 > moved.len(), "{explained} of {} are explained", moved.len());
}
