//! A test of threads that sleep to the same expiries on one CPU: one interrupt wakes them all.

use std::sync::atomic::{AtomicBool, Ordering};

use wakescope_core::units::SpanNs;
use wakescope_sys::sched::{Schedule, affinity, set_affinity, set_schedule, set_timer_slack};
use wakescope_testing::skip;

use super::one_probe::options;
use super::*;

/// Their name.
const NAME: &str = "one-expiry";

/// How far apart expiries are: enough time for all threads to sleep again.
const INTERVAL: u64 = 10_000_000;

/// Wakeups of one interrupt that are followed: `MOST_WOKEN` of bpf/state.h.
const MOST_WOKEN: usize = 64;

fn sleep_to_expiries(cpu: u32, stop: &AtomicBool) {
    set_affinity(&[cpu]).unwrap();
    set_timer_slack(SpanNs(1)).unwrap();
    // Where that is allowed, other work keeps none of them from sleeping to the same expiry as the others.
    let _ = set_schedule(Schedule::Fifo { priority: 1 });
    while !stop.load(Ordering::Relaxed) {
        let next = clock::now().0 / INTERVAL + 1;
        clock::sleep_until(MonoNs(next * INTERVAL)).unwrap();
    }
}

/// What is seen of so many threads at some expiries.
fn seen_of(threads: usize) -> Result<Seen, TraceError> {
    let cpu = *affinity().unwrap().last().unwrap();
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            let thread = thread::Builder::new().name(NAME.into());
            thread.spawn_scoped(scope, move || sleep_to_expiries(cpu, stop)).unwrap();
        }
        let target = Target::Comm { comm: NAME.into() };
        let tracer = Tracer::start(Options { target, probes: 0, ..options(Some(1), 16) });
        let seen = tracer.map(|mut tracer| {
            tracer.begin(clock::now()).unwrap();
            clock::sleep_until(clock::now().after(SpanNs(25 * INTERVAL))).unwrap();
            tracer.finish().0
        });
        stop.store(true, Ordering::Relaxed);
        seen
    })
}

/// Whatever of an interrupt comes after a wakeup is the handler's time, and not the scheduler's.
#[test]
fn all_wakeups_of_an_interrupt_have_its_end() {
    let name = "all_wakeups_of_an_interrupt_have_its_end";
    for threads in [12, MOST_WOKEN + 16] {
        let seen = match seen_of(threads) {
            Ok(seen) => seen,
            Err(why) => return skip(name, &why.to_string()),
        };
        assert_eq!(seen.tally.unwrap().contradictions(), [""; 0]);
        let handler = seen.components.handler_duration;
        let without = handler.histogram.buckets().iter().find(|bucket| bucket.lower == 0);
        let without = without.map_or(0, |bucket| bucket.count);
        // Not every kernel reports each end: a guest of 6.18 omits up to one event in a hundred.
        assert!(handler.count > 10 * without, "{threads}: {without} of {handler:?}");
        assert!(handler.count > 5 * threads as u64, "{threads}: {handler:?}");
        // Those that nobody would know the end of are not followed, and that is said.
        let has_room = threads <= MOST_WOKEN;
        assert!(has_room == (seen.no_room == 0), "{threads}: {}", seen.no_room);
    }
}
