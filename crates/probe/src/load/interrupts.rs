//! The load `interrupts`: timers at a high rate on every CPU, and interrupts from CPU to CPU.
//!
//! Two threads are bound to each allowed CPU. One sleeps for 50 µs again and again: each expiry is
//! an interrupt of the timer. The others pass a token around, from each CPU to the next. To wake a
//! sleeper on another CPU, the kernel sends that CPU a reschedule interrupt (or, where it is idle and
//! polls, only sets a flag). Whoever has passed the token on then asks for a memory barrier on all CPUs
//! that run a thread of this process: the kernel sends each of them a function call interrupt. With
//! one allowed CPU there are only timers.

use std::sync::atomic::{AtomicU32, Ordering};

use wakescope_core::units::SpanNs;
use wakescope_sys::sched::{set_affinity, set_timer_slack};
use wakescope_sys::{barrier, clock, futex};

use super::crew::{Crew, allowed_cpus, work_together};
use super::kinds::Job;

/// How long a timer takes to expire.
const INTERVAL: SpanNs = SpanNs(50_000);

/// How long to wait for the token before looking whether to stop.
const LOOK: SpanNs = SpanNs(100_000_000);

/// What a thread does, and the CPU that it is bound to.
#[derive(Clone, Copy)]
enum Part {
    Timer(u32),
    /// Also its place in the ring of those that pass the token.
    Ring(u32, usize),
}

/// Causes interrupts until the desk says stop. Counts what was asked for: timers that expired,
/// wakeups of another CPU, and barriers. Each is one interrupt at least if the CPU concerned is busy.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    let cpus = allowed_cpus()?;
    barrier::register().map_err(|e| format!("this kernel has no membarrier(2): {e}"))?;
    let mut members: Vec<Part> = cpus.iter().map(|&cpu| Part::Timer(cpu)).collect();
    if cpus.len() > 1 {
        members.extend(cpus.iter().zip(0..).map(|(&cpu, place)| Part::Ring(cpu, place)));
    } else {
        desk.omit("inter-processor-interrupts", "only one CPU is allowed");
    }
    // The first has the token.
    let ring = Ring((0..cpus.len()).map(|place| AtomicU32::new(u32::from(place == 0))).collect());
    work_together("load-interrupts", members, desk, |part, crew| {
        let (Part::Timer(cpu) | Part::Ring(cpu, _)) = part;
        set_affinity(&[cpu]).map_err(|e| format!("cannot stay on CPU {cpu}: {e}"))?;
        crew.ready();
        match part {
            Part::Timer(_) => expire(crew),
            Part::Ring(_, place) => ring.pass(place, crew),
        }
    })
    .map(drop)
}

/// Sleeps from point to point of a grid.
fn expire(crew: &Crew<'_>) -> Result<(), String> {
    // Else the kernel expires timers of an ordinary task up to 50 µs late, several at once.
    set_timer_slack(SpanNs(1)).map_err(|e| format!("cannot set the timer slack: {e}"))?;
    let mut expiry = clock::now().after(INTERVAL);
    while !crew.stopping() {
        // One that is over already needs no interrupt.
        if clock::now() < expiry {
            let _ = clock::sleep_until(expiry);
            crew.done(1);
        }
        expiry = expiry.after(INTERVAL).max(clock::now());
    }
    Ok(())
}

/// A word per CPU: 1 where the token is.
struct Ring(Vec<AtomicU32>);

impl Ring {
    /// Passes the token on whenever it comes to `place`.
    fn pass(&self, place: usize, crew: &Crew<'_>) -> Result<(), String> {
        let (own, next) = (&self.0[place], &self.0[(place + 1) % self.0.len()]);
        while !crew.stopping() {
            if own.swap(0, Ordering::AcqRel) == 0 {
                // Not for ever: the others may have ended.
                futex::wait_at_most(own, 0, LOOK);
                continue;
            }
            next.store(1, Ordering::Release);
            futex::wake_one(next, futex::Scope::Private)
                .map_err(|e| format!("cannot wake a thread: {e}"))?;
            barrier::interrupt_others().map_err(|e| format!("cannot use membarrier(2): {e}"))?;
            crew.done(2);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn the_token_goes_around_and_is_not_lost() {
        let desk = test_desk();
        barrier::register().unwrap();
        let ring = Ring([1, 0, 0].map(AtomicU32::new).into());
        work_together("test", vec![0, 1, 2], &desk, |place, crew| {
            let watch = |crew: &Crew<'_>| {
                while desk.work() < 600 && !crew.stopping() {
                    std::thread::yield_now();
                }
                desk.stop();
            };
            if place == 2 {
                std::thread::scope(|scope| {
                    scope.spawn(|| watch(crew));
                    ring.pass(place, crew)
                })
            } else {
                ring.pass(place, crew)
            }
        })
        .unwrap();
        assert!(desk.work() >= 600);
        let tokens: u32 = ring.0.iter().map(|word| word.load(Ordering::Relaxed)).sum();
        assert_eq!(tokens, 1);
    }
}
