use super::*;
use crate::stimulus::place::Cpu;
use crate::stimulus::sample;
use wakescope_core::recorder::Recorder;

fn place() -> WakerPlace {
    let cpu = sched::affinity().unwrap()[0];
    WakerPlace { cpu, schedule: crate::schedule::ordinary() }
}

#[test]
fn each_point_of_the_grid_wakes_the_probe_or_is_accounted_for() {
    const POINTS: u64 = 200;
    let stop = AtomicBool::new(false);
    let mut wakeups = FutexWakeups::start(place(), &stop, None, None).unwrap();
    // Twice: what one grid leaves behind must not disturb the next.
    for _ in 0..2 {
        let (recorder, origin) = (Recorder::new(4), clock::now());
        wakeups.begin(Grid { start: origin, interval: SpanNs(200_000), points: POINTS });
        let ended = sample(
            &mut wakeups,
            &mut Cpu::new(None),
            u64::MAX,
            origin,
            &recorder,
            None,
            &AtomicBool::new(false),
        );
        let seen = recorder.snapshot();
        assert_eq!(ended, crate::stimulus::Ending::Done);
        assert!(seen.woken.count > 0 && seen.woken.count <= POINTS, "{seen:?}");
        assert_eq!(seen.early, 0);
        // A wakeup takes time: no stimulus without a sleep is a sample of 0 ns.
        assert!(seen.woken.min_ns > Some(0), "{seen:?}");
        assert!(seen.woken.count + seen.not_asleep + wakeups.skipped() <= POINTS, "{seen:?}");
    }
}

/// An exchange without a waker thread, and the probe's side of it.
fn without_waker(stop: &AtomicBool) -> FutexWakeups<'_> {
    let exchange = Arc::new(Exchange {
        word: AtomicU32::new(WOKEN),
        due: AtomicU64::new(0),
        skipped: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    FutexWakeups { exchange, stop, answers: None, interval: SpanNs(1_000), waker: None }
}

#[test]
fn a_probe_that_did_not_sleep_yet_has_no_sample() {
    let stop = AtomicBool::new(false);
    let mut probe = without_waker(&stop);
    let exchange = Arc::clone(&probe.exchange);
    // The waker comes between the probe's word and its sleep.
    exchange.offer();
    wake(&exchange, None);
    assert_eq!(probe.sleep(), Waited::NotAsleep);
    // It wakes nobody a second time before the probe has returned.
    assert_eq!(exchange.word.load(Ordering::Acquire), WOKEN);
    exchange.word.store(OVER, Ordering::Release);
    assert_eq!(probe.wait(), Waited::Done);
}

#[test]
fn expiries_that_pass_while_a_wakeup_is_late_are_missed_with_it() {
    let stop = AtomicBool::new(false);
    let mut probe = without_waker(&stop);
    for (late_ns, want) in [(0, 0), (999, 0), (1_000, 1), (5_400, 5)] {
        probe.exchange.due.store(7_000, Ordering::Release);
        let Waited::Woken(wakeup) = probe.woken_at(MonoNs(7_000 + late_ns)) else { panic!() };
        assert_eq!((wakeup.due, wakeup.missed), (MonoNs(7_000), want), "{late_ns}");
    }
}

#[test]
fn the_last_wakeup_is_not_lost_however_late_the_probe_is() {
    let stop = AtomicBool::new(false);
    let mut probe = without_waker(&stop);
    let exchange = Arc::clone(&probe.exchange);
    std::thread::scope(|scope| {
        // The probe has been woken, and has not returned yet: the end comes only once it waits again.
        let ending = scope.spawn(|| end(&exchange));
        assert_eq!(exchange.word.load(Ordering::Acquire), WOKEN);
        assert_eq!(probe.wait(), Waited::Done);
        ending.join().unwrap();
    });
}

#[test]
fn a_probe_that_waits_for_a_waker_is_stopped() {
    use wakescope_sys::signal::allow_interrupts;
    allow_interrupts().unwrap();
    let thread = std::thread::spawn(|| without_waker(&AtomicBool::new(true)).wait());
    assert_eq!(ThreadHandle::new(thread).end().unwrap(), Waited::Stopped);
}
