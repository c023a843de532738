use super::*;
use crate::stimulus::Ending;
use crate::stimulus::Loss;
use crate::stimulus::channel::futex::Futex;
use crate::stimulus::channel::{ForChannel, for_channel};
use crate::stimulus::place::{Cpu, Place};
use crate::stimulus::sample;
use wakescope_core::plan;
use wakescope_core::recorder::Recorder;
use wakescope_sys::sched;
use wakescope_sys::signal::allow_interrupts;

fn place(between: Between) -> WakerPlace {
    let cpu = sched::affinity().unwrap()[0];
    WakerPlace { cpu, schedule: crate::schedule::ordinary(), between }
}

/// Every stimulus by a waker, and whether the waker is a process.
fn all() -> impl Iterator<Item = (plan::Stimulus, Between)> {
    let wakers = plan::Stimulus::OF_PROBES.iter().copied().filter(|s| s.needs_waker());
    wakers.flat_map(|stimulus| [Between::Threads, Between::Processes].map(|b| (stimulus, b)))
}

/// Measures one grid after the other.
struct Measured(plan::Stimulus, Between);

impl ForChannel for Measured {
    type Output = ();

    fn with<C: Channel>(self) {
        const POINTS: u64 = 200;
        let case = format!("{} between {}", self.0, self.1);
        let stop = Stop::default();
        let started = WakerWakeups::<C>::start(place(self.1), &stop, Followed::default());
        let mut wakeups = match started {
            Err(e) if e.raw_os_error() == Some(38) => {
                return wakescope_testing::skip(&case, "this kernel is built without it");
            }
            other => other.unwrap_or_else(|e| panic!("{case}: {e}")),
        };
        // Twice at least: what one grid leaves behind must not disturb the next. A machine that stands
        // still for all of a grid leaves out every call.
        let (mut grids, mut woken) = (0, 0);
        while grids < 2 || (woken == 0 && grids < 50) {
            grids += 1;
            let (recorder, origin) = (Recorder::new(4), clock::now());
            wakeups.begin(Grid { start: origin, interval: SpanNs(200_000), points: POINTS });
            let (mut home, forever) = (Cpu::new(None), u64::MAX);
            let ended = sample(&mut wakeups, &mut home, forever, origin, &recorder, None, &stop);
            let seen = recorder.snapshot();
            assert_eq!(ended, Ending::Done, "{case}");
            assert!(seen.woken.count <= POINTS, "{case}: {seen:?}");
            woken += seen.woken.count;
            assert_eq!(seen.early, 0, "{case}");
            // A wakeup takes time: no stimulus without a sleep is a sample of 0 ns.
            assert!(seen.woken.min_ns != Some(0), "{case}: {seen:?}");
            let beside = wakeups.beside();
            let calls = seen.woken.count + seen.not_asleep + beside.awake + beside.skipped;
            assert!(calls <= POINTS, "{case}: {seen:?} {beside:?}");
            // None is lost; one that is called late may be missed as well.
            assert!(calls + seen.missed >= POINTS, "{case}: {seen:?} {beside:?}");
        }
        assert!(woken > 0, "{case}: no call of {grids} grids woke the probe");
    }
}

#[test]
fn points_at_which_the_probe_is_busy_are_not_lost() {
    const POINTS: u64 = 100;
    allow_interrupts().unwrap();
    in_a_thread(|| {
        let stop = Stop::default();
        let place = place(Between::Threads);
        let followed = Followed::default();
        let mut wakeups = WakerWakeups::<Futex>::start(place, &stop, followed).unwrap();
        let interval = SpanNs(500_000);
        wakeups.begin(Grid { start: clock::now(), interval, points: POINTS });
        let mut books = [0; 3];
        loop {
            match wakeups.wait() {
                Waited::Woken(wakeup) => {
                    books[0] += 1;
                    books[1] += wakeup.missed;
                }
                Waited::NotAsleep => books[2] += 1,
                other => break assert_eq!(other, Waited::Done),
            }
            // Three points of the grid at least go by, and the waker looks at them: it has the CPU.
            clock::sleep_until(clock::now().after(SpanNs(4 * interval.0))).unwrap();
        }
        let beside = wakeups.beside();
        assert!(beside.awake + beside.skipped > 0, "{books:?} {beside:?}");
        let all = books.iter().sum::<u64>() + beside.awake + beside.skipped;
        assert!((POINTS..=POINTS + books[1]).contains(&all), "{books:?} {beside:?}");
    });
}

/// In a thread of its own, as every probe is.
fn in_a_thread(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap());
}

#[test]
fn each_point_of_the_grid_wakes_the_probe_or_is_accounted_for() {
    allow_interrupts().unwrap();
    for (stimulus, between) in all() {
        in_a_thread(|| for_channel(stimulus, Measured(stimulus, between)).unwrap());
    }
}

/// An exchange and a channel without a waker, and the probe's side of them.
fn without_waker<C: Channel>(stop: &Stop) -> WakerWakeups<'_, C> {
    let exchange = Exchange::of_this_thread(Between::Threads).unwrap();
    exchange.become_waker();
    let channel = Arc::new(C::open(&exchange).unwrap());
    let (_, grids) = pipe().unwrap();
    let grid = Grid { interval: SpanNs(1_000), points: u64::MAX, ..NO_GRID };
    let (accounted, sleeps) = (0, sched::sleeps().unwrap());
    let (answers, awake, waker) = (None, Awake::default(), None);
    let waker_id = sched::this_thread();
    WakerWakeups {
        exchange,
        channel,
        stop,
        answers,
        grid,
        accounted,
        sleeps,
        awake,
        grids,
        waker_id,
        waker,
    }
}

/// The waker's side of it.
fn waking<C: Channel>(probe: &WakerWakeups<'_, C>) -> waking::Waking<C> {
    let (exchange, channel) = (probe.exchange.clone(), Arc::clone(&probe.channel));
    let (orders, _) = pipe().unwrap();
    waking::Waking { exchange, channel, orders, announcements: None, watches: false, cpu: 7 }
}

/// What is to be done with a channel of the type `C`: a closure would be of one type only.
macro_rules! of_channel {
    (|$channel:ident| $body:block) => {{
        #[derive(Clone, Copy)]
        struct OfChannel;
        impl ForChannel for OfChannel {
            type Output = ();
            fn with<$channel: Channel>(self) $body
        }
        OfChannel
    }};
}

/// Does something with each channel, but for those that this kernel has not.
fn with_each(what: impl ForChannel<Output = ()> + Copy + Send + Sync) {
    allow_interrupts().unwrap();
    for (stimulus, between) in all() {
        let exists = crate::stimulus::channel::check(stimulus, between, 1).is_ok();
        if exists && between == Between::Threads {
            in_a_thread(|| for_channel(stimulus, what).unwrap());
        }
    }
}

#[test]
fn a_probe_that_did_not_sleep_yet_has_no_sample() {
    with_each(of_channel!(|C| {
        let stop = Stop::default();
        let mut probe = without_waker::<C>(&stop);
        // The waker comes between the probe's word and its sleep, which may be long.
        probe.exchange.offer();
        waking(&probe).wake(clock::now()).unwrap();
        let due = probe.exchange.due();
        while clock::now().since(due) < SpanNs(1_000_000) {}
        // It wakes nobody a second time before the probe has returned.
        assert_eq!(probe.exchange.state(), State::Woken);
        assert_eq!(probe.sleep(), Waited::NotAsleep);
        // Nothing of it is left for the next sleep.
        std::thread::scope(|scope| {
            let exchange = probe.exchange.clone();
            scope.spawn(move || exchange.end(|| ()));
            assert_eq!(probe.wait(), Waited::Done);
        });
    }));
}

#[test]
fn a_wakeup_for_which_there_is_no_room_is_left_out() {
    use crate::stimulus::channel::Slept;
    use std::io::ErrorKind;
    /// A channel that is full.
    struct Full;
    impl Channel for Full {
        const KEEPS_WAKEUPS: bool = true;
        fn open(_: &Exchange) -> io::Result<Self> {
            Ok(Self)
        }
        fn sleep(&self, _: &Exchange) -> Slept {
            Slept::Interrupted
        }
        fn wake(&self, _: &Exchange) -> io::Result<()> {
            Err(ErrorKind::WouldBlock.into())
        }
    }
    let stop = Stop::default();
    let probe = without_waker::<Full>(&stop);
    probe.exchange.offer();
    waking(&probe).wake(clock::now()).unwrap();
    assert_eq!((probe.exchange.state(), probe.beside().skipped), (State::Waiting, 1));
}

#[test]
fn a_point_at_which_nobody_is_woken_counts_once() {
    let mut awake = Awake::default();
    let mut told = |found, missed| {
        awake.tell(found, missed);
        (awake.unmissed, awake.missed_unseen)
    };
    // Found awake while the probe was late, which is why it missed them.
    assert_eq!(told(3, 3), (0, 0));
    // Between two wakeups, or before it slept at all.
    assert_eq!(told(5, 0), (2, 0));
    // The waker was held up together with the probe, and skips afterwards what both missed.
    assert_eq!(told(6, 4), (2, 3));
    assert_eq!(told(8, 1), (3, 3));
}

#[test]
fn expiries_that_pass_while_a_wakeup_is_late_are_missed_with_it() {
    with_each(of_channel!(|C| {
        let stop = Stop::default();
        let mut probe = without_waker::<C>(&stop);
        let due = MonoNs(7_000);
        for (late_ns, want) in [(0, 0), (999, 0), (1_000, 1), (5_400, 5)] {
            probe.exchange.set_woken(due);
            let wakeup = probe.woken_at(due.after(SpanNs(late_ns)));
            assert_eq!((wakeup.due, wakeup.missed), (due, want), "{late_ns}");
        }
    }));
}

#[test]
fn the_points_of_a_grid_add_up_after_a_stall_across_its_end() {
    const POINTS: u64 = 10;
    // The stall begins with the wakeup at 7.1 µs. The point at 8 µs finds the probe awake, or the waker
    // is held up as well and wakes it afterwards; then it leaves out the one at 9 µs. It had left out one
    // before. The run may be stopped meanwhile.
    for (found, calls, skipped, stopped_at, want) in [
        (2, 0, 1, None, (1, 1)),
        (1, 0, 2, None, (2, 0)),
        (0, 1, 2, None, (1, 0)),
        (2, 0, 1, Some(8_300), (0, 1)),
    ] {
        in_a_thread(|| {
            let stop = Stop::default();
            let mut probe = without_waker::<Futex>(&stop);
            probe.grid.points = POINTS;
            probe.exchange.skip(skipped);
            let (mut woken, mut missed) = (0, 0);
            let dues = (0..=7).filter(|&at| at != 3).map(|at| at * 1_000 + 100);
            for due in dues.chain((0..calls).map(|_| 60_000)) {
                probe.exchange.set_woken(MonoNs(due));
                let is_late = due == 7_100;
                if is_late {
                    (0..found).for_each(|_| probe.exchange.find_awake());
                    stopped_at.into_iter().for_each(|at| stop.at(MonoNs(at)));
                }
                let late = SpanNs(if is_late { 50_000 } else { 5 });
                let wakeup = probe.woken_at(MonoNs(due).after(late));
                probe.enter(Waited::Woken(wakeup));
                woken += 1;
                missed += wakeup.missed;
            }
            let beside = probe.beside();
            let got = (beside.skipped, beside.awake);
            assert_eq!((missed, got), (1, want), "{found} {calls} {stopped_at:?}");
            if stopped_at.is_none() {
                assert_eq!(woken + missed + beside.skipped + beside.awake, POINTS);
            }
        });
    }
}

#[test]
fn the_last_wakeup_is_not_lost_however_late_the_probe_is() {
    with_each(of_channel!(|C| {
        let stop = Stop::default();
        let mut probe = without_waker::<C>(&stop);
        probe.exchange.offer();
        waking(&probe).wake(clock::now()).unwrap();
        std::thread::scope(|scope| {
            let exchange = probe.exchange.clone();
            // The probe has been woken, and has not returned yet.
            let ending = scope.spawn(move || exchange.end(|| ()));
            // To start a thread may take a sleep, for memory.
            probe.has_slept();
            let waited = [probe.sleep(), probe.wait()];
            // Whatever came of it, the other thread ends.
            probe.exchange.stop();
            ending.join().unwrap();
            assert_eq!(waited, [Waited::NotAsleep, Waited::Done]);
        });
    }));
}

#[test]
fn a_probe_that_can_no_longer_be_woken_ends() {
    with_each(of_channel!(|C| {
        let end = |lose: fn(&Exchange)| {
            let stop = Stop::default();
            let mut probe = without_waker::<C>(&stop);
            std::thread::scope(|scope| {
                let exchange = probe.exchange.clone();
                let waker = scope.spawn(move || lose(&exchange));
                let ended = probe.wait();
                // Whoever begins anew does not wait for ever either.
                probe.begin(Grid { start: MonoNs(0), interval: SpanNs(1), points: 1 });
                assert_eq!(probe.wait(), ended);
                probe.exchange.stop();
                waker.join().unwrap();
                ended
            })
        };
        assert_eq!(end(Exchange::lose_waker), Waited::Lost(Loss::WakerEnded));
        assert_eq!(end(|exchange| exchange.fail(43)), Waited::Lost(Loss::Failed(43)));
    }));
}

#[test]
fn a_wakeup_that_never_arrives_ends_the_measurement() {
    let never_arrives = of_channel!(|C| {
        let stop = Stop::default();
        let mut probe = without_waker::<C>(&stop);
        // It was sent, as the state says.
        probe.exchange.set_woken(MonoNs(1));
        std::thread::scope(|scope| {
            let exchange = probe.exchange.clone();
            let waker = scope.spawn(move || exchange.end(|| ()));
            assert_eq!(probe.sleep(), Waited::Lost(Loss::NeverArrived));
            waker.join().unwrap();
        });
    });
    allow_interrupts().unwrap();
    in_a_thread(|| for_channel(plan::Stimulus::Pipe, never_arrives).unwrap());
}

#[test]
fn a_probe_that_waits_for_a_waker_is_stopped() {
    with_each(of_channel!(|C| {
        let stop = Stop::default();
        stop.at(clock::now());
        let thread = std::thread::spawn(move || without_waker::<C>(&stop).wait());
        assert_eq!(ThreadHandle::new(thread).end().unwrap(), Waited::Stopped);
    }));
}

#[test]
fn a_wakeup_that_was_due_before_the_stop_is_recorded() {
    with_each(of_channel!(|C| {
        const LATE: SpanNs = SpanNs(700_000_000);
        let stop = Stop::default();
        let mut probe = without_waker::<C>(&stop);
        let due = MonoNs(clock::now().0 - LATE.0);
        stop.at(due.after(SpanNs(500_500)));
        let recorder = Recorder::new(1);
        std::thread::scope(|scope| {
            let waking = waking(&probe);
            let exchange = probe.exchange.clone();
            let waker = scope.spawn(move || {
                // Again while it finds the probe awake.
                while !exchange.is_stopped() {
                    if exchange.state() == State::Waiting {
                        waking.wake(due).unwrap();
                    }
                    std::thread::yield_now();
                }
            });
            let mut home = Cpu::new(None);
            let ended = sample(&mut probe, &mut home, 1, due, &recorder, None, &stop);
            probe.exchange.stop();
            waker.join().unwrap();
            assert_eq!(ended, Ending::Done);
        });
        let seen = recorder.snapshot();
        // The interval is 1 µs.
        assert_eq!((seen.woken.count, seen.missed), (1, 500));
        assert!(seen.woken.max_ns >= Some(LATE.0), "{seen:?}");
    }));
}

#[test]
fn a_waker_that_is_held_up_in_its_call_when_the_run_is_stopped_makes_a_late_wakeup() {
    let held_up = of_channel!(|C| {
        for (stopped_at, is_part) in [(8, true), (6, false)] {
            let thread = std::thread::spawn(move || {
                let stop = Stop::default();
                stop.at(MonoNs(stopped_at));
                let mut probe = without_waker::<C>(&stop);
                // It has read the clock, and nothing was sent.
                probe.exchange.set_woken(MonoNs(7));
                let Waited::Woken(wakeup) = probe.sleep() else { panic!("it was not woken") };
                assert_eq!(wakeup.due, MonoNs(7));
                !stop.is_before(wakeup.due)
            });
            assert_eq!(ThreadHandle::new(thread).end().unwrap(), is_part);
        }
    });
    allow_interrupts().unwrap();
    for_channel(plan::Stimulus::Pipe, held_up).unwrap();
}

#[test]
fn points_that_a_waker_was_late_for_when_the_run_was_stopped_are_left_out() {
    in_a_thread(|| {
        let stop = Stop::default();
        let mut probe = without_waker::<Futex>(&stop);
        probe.grid.points = 1_000;
        probe.accounted = 10;
        probe.awake.tell(2, 0);
        // The waker has counted nothing of it yet.
        assert_eq!(probe.beside().skipped, 0);
        // The last one came less than an interval before.
        stop.at(MonoNs(600_500));
        assert_eq!((probe.beside().skipped, probe.beside().awake), (588, 2));
        stop.at(MonoNs(12_999));
        assert_eq!(probe.beside().skipped, 0);
    });
}

/// A CPU that a waker is found away from when it looks for the so-many-th time, and that it can go back to if it
/// `exists`.
struct Away {
    at: u32,
    exists: bool,
}

impl Place for Away {
    fn is_home(&mut self) -> bool {
        self.at = self.at.wrapping_sub(1);
        self.at != 0
    }
    fn go_home(&mut self) -> bool {
        self.exists
    }
}

#[test]
fn a_waker_that_was_moved_goes_home_and_is_told_of() {
    for (at, exists, want_end, want_moved) in [
        (u32::MAX, true, Waited::Done, 0),
        (1, true, Waited::Done, 1),
        // After the last call.
        (2, true, Waited::Done, 1),
        (1, false, Waited::Lost(Loss::WakerCpuLost(7)), 1),
    ] {
        in_a_thread(|| {
            let stop = Stop::default();
            let mut probe = without_waker::<Futex>(&stop);
            probe.exchange.begin();
            let start = clock::now();
            let grid = Grid { start, interval: SpanNs(1_000_000), points: 1 };
            let waking = waking(&probe);
            std::thread::scope(|scope| {
                let waker = scope.spawn(move || {
                    let mut place = Away { at, exists };
                    waking.wake_on(grid, None, &mut place);
                });
                let ended = loop {
                    match probe.wait() {
                        Waited::Woken(_) | Waited::NotAsleep => {}
                        ended => break ended,
                    }
                };
                probe.exchange.stop();
                waker.join().unwrap();
                assert_eq!((ended, probe.beside().waker_moved), (want_end, want_moved), "{at}");
            });
        });
    }
}
