//! Observes how the kernel treats a wakeup that falls into a long system call.
//!
//! What the observations mean is judged in `wakescope_core::behaviour`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wakescope_core::behaviour::{
    CallTimes, Observations, Prober, Series, WAKEUPS_NEEDED, WAKEUPS_NEEDED_VIRTUALLY, Wakeup,
    series,
};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::sched::{self, Schedule};

use crate::schedule::ordinary;
use crate::trial::in_own_thread;

mod victim;

use victim::{Locks, Pipes, Work};

/// How long to observe.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many wakeups per kind of call to aim at; twice as many where too few of them are evidence.
    pub wakeups: usize,
    /// When to give up aiming, for each of at most three stages.
    pub patience: SpanNs,
    /// Whether nothing disturbs this machine, as in virtual time: then calls that are long against a
    /// wakeup will do, and as few wakeups as decide. Else calls are long against whatever else may hold a
    /// wakeup up.
    pub undisturbed: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { wakeups: 120, patience: SpanNs(3_000_000_000), undisturbed: false }
    }
}

/// Observes wakeups on `cpu`. Takes at most as many times the patience as there are stages; nothing outlives it. Where
/// something cannot be observed, the observations say so.
///
/// It needs no privilege, but without real-time priority it can only use ordinary priorities.
pub fn observe(cpu: u32, options: &Options) -> Observations {
    let mut observations = Observations { cpu, ..Observations::default() };
    let limit = longest_call(options);
    let pipes = move || Pipes::new(limit);
    match may_use_fifo() {
        Ok(()) => {
            add(&mut observations, Prober::Realtime, options, pipes);
            add(&mut observations, Prober::Realtime, options, Locks::new);
        }
        Err(e) => observations.obstacles.push(format!("no real-time prober: {e}")),
    }
    add(&mut observations, Prober::Fair, options, pipes);
    observations
}

/// How long a call may be.
fn longest_call(options: &Options) -> SpanNs {
    const LONGEST: SpanNs = SpanNs(2_000_000);
    /// A wakeup then takes about a twentieth of what is left of a call: far from the quarter that
    /// decides.
    const WAKEUPS: u64 = 60;
    if !options.undisturbed {
        return LONGEST;
    }
    // In a thread of its own, so that the caller's timers stay what they are.
    match in_own_thread(usual_lateness) {
        Ok(lateness) => SpanNs(lateness.0.saturating_mul(WAKEUPS)).min(LONGEST),
        _ => LONGEST,
    }
}

/// How late a wakeup usually is when the CPU is idle.
fn usual_lateness() -> io::Result<SpanNs> {
    sched::set_timer_slack(SpanNs(1))?;
    let mut all = [SpanNs(0); 21];
    for lateness in &mut all {
        let expiry = clock::now().after(SpanNs(1_000_000));
        clock::sleep_until(expiry)?;
        *lateness = clock::now().since(expiry);
    }
    all.sort_unstable();
    Ok(all[all.len() / 2])
}

/// Far above the victim, and below what handles interrupts on RT kernels.
const PROBER: Schedule = Schedule::Fifo { priority: 40 };

/// Above every ordinary task: one that ran after the prober would make the call look longer.
const VICTIM: Schedule = Schedule::Fifo { priority: 1 };

/// Tries it in a thread of its own, so that the caller's policy stays what it is.
fn may_use_fifo() -> io::Result<()> {
    in_own_thread(|| sched::set_schedule(PROBER))
}

/// Lets `prober` disturb a victim that does `work`, and adds what was seen. If too few of the wakeups are evidence of
/// some call, there are as many once more, as far as patience goes. If nothing disturbs them, half of them are mostly
/// enough.
fn add<W: Work>(
    observations: &mut Observations,
    prober: Prober,
    options: &Options,
    work: impl Fn() -> io::Result<W> + Send + Copy,
) {
    let all = options.wakeups.saturating_mul(W::CALLS.len());
    let (wakeups, needed) = match options.undisturbed {
        true => (all / 2, WAKEUPS_NEEDED_VIRTUALLY),
        false => (all, WAKEUPS_NEEDED),
    };
    let deadline = clock::now().after(options.patience);
    let observe = || -> io::Result<Vec<Series>> {
        let (calls, wakeups) = disturb(observations.cpu, prober, wakeups, deadline, work)?;
        Ok(W::CALLS.iter().map(|&call| series(call, prober, &calls, &wakeups)).collect())
    };
    let observed = observe().and_then(|mut seen| {
        let is_enough = |series: &Series| series.shares.len() >= needed;
        if !seen.iter().all(is_enough) && clock::now() < deadline {
            for (series, more) in seen.iter_mut().zip(observe()?) {
                series.shares.extend(more.shares);
                series.disturbed += more.disturbed;
            }
        }
        Ok(seen)
    });
    match observed {
        Ok(seen) => observations.series.extend(seen),
        Err(e) => observations.obstacles.push(format!("{}: {e}", W::NAME)),
    }
}

/// What the two threads tell each other.
struct Shared {
    /// The victim's shortest round so far; `u64::MAX` until it has made one.
    round_ns: AtomicU64,
    stop: AtomicBool,
}

fn disturb<W: Work>(
    cpu: u32,
    prober: Prober,
    wakeups: usize,
    deadline: MonoNs,
    work: impl FnOnce() -> io::Result<W> + Send,
) -> io::Result<(Vec<CallTimes>, Vec<Wakeup>)> {
    let (victim_schedule, prober_schedule) = match prober {
        Prober::Realtime => (VICTIM, PROBER),
        Prober::Fair => (Schedule::Idle, ordinary()),
    };
    let shared = &Shared { round_ns: AtomicU64::new(u64::MAX), stop: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new;
        let victim = thread().spawn_scoped(scope, move || {
            let calls = suffer(cpu, victim_schedule, work, shared);
            // The prober need not wait for a victim that failed.
            shared.stop.store(true, Ordering::Relaxed);
            calls
        })?;
        let prober = thread().spawn_scoped(scope, move || {
            let wakeups = probe(cpu, prober_schedule, wakeups, deadline, shared);
            shared.stop.store(true, Ordering::Relaxed);
            wakeups
        });
        // A victim whose prober could not be started would go on for ever.
        let prober = prober.inspect_err(|_| shared.stop.store(true, Ordering::Relaxed))?;
        let panicked = |_| io::Error::other("a thread panicked");
        let wakeups = prober.join();
        shared.stop.store(true, Ordering::Relaxed);
        let calls = victim.join().map_err(panicked)??;
        Ok((calls, wakeups.map_err(panicked)??))
    })
}

/// More calls than fit into any patience that makes sense.
const CALLS_LIMIT: usize = 50_000;

/// The victim: one call after the other until it is told to stop.
fn suffer<W: Work>(
    cpu: u32,
    schedule: Schedule,
    work: impl FnOnce() -> io::Result<W> + Send,
    shared: &Shared,
) -> io::Result<Vec<CallTimes>> {
    let mut work = work()?;
    let mut calls = Vec::with_capacity(CALLS_LIMIT);
    sched::set_affinity(&[cpu])?;
    sched::set_schedule(schedule)?;
    while !shared.stop.load(Ordering::Relaxed) && calls.len() + W::CALLS.len() <= CALLS_LIMIT {
        let begin = clock::now();
        work.round(&mut |call, act| {
            let used_ns = clock::read(Clock::ThreadCpu);
            let begin_ns = clock::now().0;
            let acted = act();
            let end_ns = clock::now().0;
            let cpu_ns = clock::read(Clock::ThreadCpu).saturating_sub(used_ns);
            calls.push(CallTimes { call, begin_ns, end_ns, cpu_ns });
            acted
        })?;
        let round = clock::now().since(begin);
        shared.round_ns.fetch_min(round.0, Ordering::Relaxed);
        if schedule == VICTIM {
            // A real-time task that never sleeps starves the others: leave them the CPU for a while.
            clock::sleep_until(clock::now().after(SpanNs(round.0 / 8)))?;
        }
    }
    // An idle task on a busy CPU would take long to clean up. Where it may not rise, it does.
    let _ = sched::set_schedule(Schedule::Other { nice: 0 });
    Ok(calls)
}

/// The prober: `wakeups` short awakenings at changing distances, until the deadline at most.
fn probe(
    cpu: u32,
    schedule: Schedule,
    wakeups: usize,
    deadline: MonoNs,
    shared: &Shared,
) -> io::Result<Vec<Wakeup>> {
    let mut all: Vec<Wakeup> = Vec::with_capacity(wakeups.min(CALLS_LIMIT));
    sched::set_affinity(&[cpu])?;
    sched::set_timer_slack(SpanNs(1))?;
    sched::set_schedule(schedule)?;
    await_first_round(shared, deadline)?;
    let mut phase = 0_u64;
    let mut asleep = clock::now();
    while all.len() < wakeups.min(CALLS_LIMIT) && !shared.stop.load(Ordering::Relaxed) {
        // Steps of the golden ratio spread the expiries over the rounds more evenly than chance.
        phase = phase.wrapping_add(GOLDEN_RATIO);
        let round_ns = shared.round_ns.load(Ordering::Relaxed).min(ROUND_LIMIT_NS);
        let expiry = asleep.after(SpanNs(round_ns / 2 + round_ns * (phase >> 54) / 1024));
        if expiry > deadline {
            break;
        }
        clock::sleep_until(expiry)?;
        let woken = clock::now();
        asleep = clock::now();
        all.push(Wakeup { expiry_ns: expiry.0, woken_ns: woken.0, asleep_ns: asleep.0 });
    }
    Ok(all)
}

/// The fractional part of the golden ratio, in units of 2^-64.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// A round so long is no measure: the victim made none yet, or was stalled.
const ROUND_LIMIT_NS: u64 = 50_000_000;

/// Waits for the victim's first round, until the deadline at most.
fn await_first_round(shared: &Shared, deadline: MonoNs) -> io::Result<()> {
    while shared.round_ns.load(Ordering::Relaxed) == u64::MAX
        && !shared.stop.load(Ordering::Relaxed)
        && clock::now() < deadline
    {
        clock::sleep_until(clock::now().after(SpanNs(1_000_000)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use wakescope_core::behaviour::{Agreement, judge};
    use wakescope_core::host::KernelVersion;
    use wakescope_core::run::TimeDomain;

    /// On the last CPU that this process may use, beside what `start` starts there.
    fn check_no_contradiction<T>(options: &Options, start: impl FnOnce(u32) -> T) {
        let host = crate::host::read(&[]);
        let cpu = *host.cpus_allowed.last().expect("a process may run somewhere");
        let _others = start(cpu);
        let judgement = judge(&observe(cpu, options), TimeDomain::Real)
            .of_version(KernelVersion::of(&host.release));
        let agreement = judgement.agreement(host.preemption.model);
        assert_ne!(agreement, Agreement::Contradict, "{judgement:#?} {:#?}", host.preemption);
    }

    #[test]
    fn the_behaviour_does_not_contradict_the_evidence() {
        check_no_contradiction(&Options::default(), |_| ());
    }

    /// A thread that takes its CPU again and again, until it is dropped.
    struct Taker(Arc<AtomicBool>);

    impl Taker {
        fn start(cpu: u32, schedule: Schedule, takes: SpanNs, leaves: SpanNs) -> Self {
            let ends = Arc::new(AtomicBool::new(false));
            let until = Arc::clone(&ends);
            std::thread::spawn(move || {
                sched::set_affinity(&[cpu]).unwrap();
                // Without the privilege it has the others' priority.
                let _ = sched::set_schedule(schedule);
                while !until.load(Ordering::Relaxed) {
                    clock::sleep_until(clock::now().after(leaves)).unwrap();
                    let end = clock::now().after(takes);
                    while clock::now() < end {}
                }
            });
            Self(ends)
        }
    }

    impl Drop for Taker {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// A real-time task of 20 ms in each 25 ms once had five of eight checks name models that this kernel did not run.
    #[test]
    fn a_busy_cpu_is_not_taken_for_a_behaviour() {
        let options = Options { patience: SpanNs(1_000_000_000), ..Options::default() };
        let ms = |count: u64| SpanNs(count * 1_000_000);
        for (schedule, takes, leaves) in [
            (Schedule::Fifo { priority: 50 }, ms(20), ms(5)),
            (Schedule::Fifo { priority: 50 }, ms(2), ms(1)),
            (Schedule::Other { nice: 0 }, ms(100), ms(0)),
        ] {
            check_no_contradiction(&options, |cpu| Taker::start(cpu, schedule, takes, leaves));
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_obstacle() {
        let observations = observe(8000, &Options::default());
        assert!(!observations.obstacles.is_empty());
        assert!(observations.series.is_empty(), "{:?}", observations.series);
    }

    #[test]
    fn patience_ends() {
        let options = Options {
            wakeups: usize::MAX >> 8,
            patience: SpanNs(20_000_000),
            ..Options::default()
        };
        let cpu = sched::affinity().unwrap()[0];
        let shares = observe(cpu, &options).series.iter().map(|s| s.shares.len()).sum::<usize>();
        assert!(shares < 100_000);
    }
}
