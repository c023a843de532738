//! Runs that are stopped in the middle of a stall, for each kind of stimulus: what was due by then counts.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use wakescope_core::audio::{AudioPlan, AudioRecorder};
use wakescope_core::line::AnsweredBy;
use wakescope_core::recorder::Snapshot;
use wakescope_sys::rtc::Interrupts;
use wakescope_sys::wakeup_device::Stamps;

use super::place::Home;
use super::*;

const MS: u64 = 1_000_000;
const START: MonoNs = MonoNs(1_000 * MS);
const INTERVAL: SpanNs = SpanNs(MS);

/// A machine that stands still for 700 ms from 10.2 ms after the start on. The run is stopped after 500 ms of
/// them.
struct Machine {
    now: Cell<u64>,
    stop: Stop,
}

const STALL: std::ops::Range<u64> = START.0 + 10 * MS + 200_000..START.0 + 710 * MS + 200_000;
const STOPPED: MonoNs = MonoNs(STALL.start + 500 * MS);

impl Machine {
    fn new() -> Self {
        Self { now: Cell::new(START.0 - 100 * MS), stop: Stop::default() }
    }

    fn now(&self) -> MonoNs {
        MonoNs(self.now.get())
    }

    /// The time when whoever waits until `at` runs, 5 µs after that.
    fn run_at(&self, at: MonoNs) -> MonoNs {
        let awake = self.now.get().max(at.0 + 5_000);
        if STALL.contains(&awake) {
            self.stop.at(STOPPED);
        }
        self.now.set(if STALL.contains(&awake) { STALL.end } else { awake });
        self.now()
    }

    fn measure(&self, stimulus: &mut impl WaitForStimulus) -> (Ending, Snapshot) {
        let recorder = Recorder::new(1);
        stimulus.begin(Grid { start: START, interval: INTERVAL, points: 10_000 });
        let stop = &self.stop;
        let ending = sample(stimulus, &mut Home, u64::MAX, START, &recorder, None, stop);
        (ending, recorder.snapshot())
    }
}

impl timer::Alarm for &Machine {
    fn sleep_until(&mut self, expiry: MonoNs) -> Result<MonoNs, Waited> {
        Ok(self.run_at(expiry))
    }
}

impl spin::Watch for &Machine {
    fn now(&mut self) -> MonoNs {
        self.run_at(Machine::now(self))
    }
}

impl audio::Work for &Machine {
    fn now(&mut self) -> MonoNs {
        Machine::now(self)
    }
    fn compute(&mut self) {}
}

/// What counts its expiries from `first` on: a real-time clock, or the module's device.
struct Counting<'a> {
    machine: &'a Machine,
    first: MonoNs,
    read: u64,
}

impl Counting<'_> {
    /// When the next expiry was due, how many there were, and when the reader ran.
    fn next(&mut self) -> (MonoNs, u64, MonoNs) {
        let due = self.first.after(SpanNs(self.read * INTERVAL.0));
        let woken = self.machine.run_at(due);
        let count = woken.since(due).0 / INTERVAL.0 + 1;
        self.read += count;
        (due, count, woken)
    }
}

impl rtc::Ticks for Counting<'_> {
    fn start(&mut self) -> io::Result<(MonoNs, MonoNs)> {
        let now = self.machine.now();
        self.first = now.after(INTERVAL);
        Ok((now, now))
    }
    fn wait(&mut self) -> io::Result<(Interrupts, MonoNs)> {
        let (_, count, woken) = self.next();
        Ok((Interrupts { count, periodic: true, alarm: false, update: false }, woken))
    }
    fn pause_until(&mut self, at: MonoNs) {
        self.machine.now.set(at.0);
    }
}

impl device::Device for Counting<'_> {
    fn start(&mut self, first: MonoNs, _: SpanNs) -> io::Result<()> {
        self.first = first;
        Ok(())
    }
    fn wait(&mut self) -> io::Result<(Stamps, MonoNs)> {
        let (due, expiries, woken) = self.next();
        Ok((Stamps { due, function: due, awake: woken, expiries }, woken))
    }
}

/// A line whose other end is the machine that stands still.
struct Far<'a> {
    machine: &'a Machine,
    now: u64,
    coming: std::collections::VecDeque<(u64, u8)>,
}

impl line::Wire for Far<'_> {
    fn send(&mut self, byte: u8) -> io::Result<Option<MonoNs>> {
        let at = MonoNs(self.now);
        self.coming.push_back((self.machine.run_at(at).0, AnsweredBy::Responder.answer(byte)));
        Ok(Some(at))
    }
    fn receive(&mut self, until: MonoNs, into: &mut [u8]) -> io::Result<(MonoNs, usize)> {
        let next = self.coming.front().map_or(u64::MAX, |next| next.0);
        self.now = self.now.max(next.min(until.0));
        if next > self.now {
            return Ok((MonoNs(self.now), 0));
        }
        into[0] = self.coming.pop_front().map_or(0, |next| next.1);
        Ok((MonoNs(self.now), 1))
    }
}

/// A stall that `seen` holds: the wakeup that it hit, due at 11 ms or at the last reading before it, is
/// recorded as late as it came, with the expiries up to the stop and none after it.
#[track_caller]
fn check(name: &str, (ending, seen): &(Ending, Snapshot), latest: SpanNs, want: (u64, u64)) {
    assert_eq!(*ending, Ending::Stopped, "{name}");
    let worst = seen.worst[0].late_ns;
    assert!(worst.abs_diff(latest.0) < 10_000, "{name}: {worst}");
    assert_eq!((seen.woken.count, seen.missed), want, "{name}");
}

#[test]
fn a_stall_in_which_a_run_is_stopped_is_recorded() {
    // The point at 11 ms came 699.2 ms late; 499 points after it came before the stop at 510.2 ms.
    let on_grid = SpanNs(699 * MS + 200_000);
    let machine = Machine::new();
    check("timer", &machine.measure(&mut timer::Timer::new(&machine)), on_grid, (12, 499));
    let machine = Machine::new();
    check("rtc-grid", &machine.measure(&mut timer::Timer::of_rate(&machine)), on_grid, (12, 499));

    let machine = Machine::new();
    let clock = Counting { machine: &machine, first: START, read: 0 };
    let mut rtc = rtc::RtcTicks::new(clock, &machine.stop, watch::Watch::none());
    check("rtc", &machine.measure(&mut rtc), on_grid, (12, 499));

    let machine = Machine::new();
    let source = Counting { machine: &machine, first: START, read: 0 };
    let mut wakeups = device::DeviceWakeups::new(source, &machine.stop, watch::Watch::none());
    let got = machine.measure(&mut wakeups);
    check("device", &got, on_grid, (12, 499));
    assert_eq!(wakeups.beside().kernel_stamps.unwrap().wakeups, got.1.woken.count);
}

#[test]
fn a_gap_in_which_a_loop_is_stopped_is_recorded() {
    let machine = Machine::new();
    let mut spin = spin::Spin::new(&machine, &machine.stop, SpanNs(1_000_000));
    let got = machine.measure(&mut spin);
    check("spin", &got, SpanNs(700 * MS), (1, 0));
    // What it has observed has the gap in it.
    let observed_ns = spin.beside().spin.unwrap().observed_ns;
    assert_eq!(observed_ns, STALL.end - START.0);
}

#[test]
fn a_buffer_that_runs_empty_in_the_stall_in_which_a_run_is_stopped_is_an_overrun() {
    let machine = Machine::new();
    let plan = AudioPlan { fragment_ns: MS, fragments: 3, share_ppm: 1, pcm: None };
    let of_card = Arc::new(AudioRecorder::new(plan));
    let mut audio = audio::Audio::new(&machine, &machine, Arc::clone(&of_card), &machine.stop);
    let got = machine.measure(&mut audio);
    check("audio", &got, SpanNs(699 * MS + 200_000), (12, 0));
    // The buffer lasted until 13 ms; the card played silence from there to the stop at 510.2 ms.
    let seen = of_card.snapshot();
    assert_eq!((seen.overruns, seen.silent), (1, 498));
    assert!(seen.cycles.max_ns > Some(699 * MS), "{seen:?}");
}

#[test]
fn round_trips_that_are_under_way_when_a_run_is_stopped_are_waited_for() {
    let machine = Machine::new();
    let far = Far { machine: &machine, now: START.0, coming: std::collections::VecDeque::new() };
    let mut trips = line::RoundTrips::new(far, AnsweredBy::Responder, &machine.stop);
    let (ending, seen) = machine.measure(&mut trips);
    assert_eq!(ending, Ending::Stopped);
    assert!(seen.worst[0].late_ns > 699 * MS, "{seen:?}");
    let line = trips.beside().line.unwrap();
    assert_eq!((line.unanswered, line.stray, line.fault), (0, 0, None));
}
