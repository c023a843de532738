use super::*;
use crate::stimulus::place::Home;
use crate::stimulus::{Ending, sample};
use std::cell::Cell;
use wakescope_core::audio::{Audio, AudioPlan};
use wakescope_core::recorder::{Recorder, Snapshot};

const MS: u64 = 1_000_000;
const START: MonoNs = MonoNs(1_000 * MS);
/// 3 ms of 48 kHz.
const FRAMES: Frames = Frames { fragment: 144, buffer: 432, rate: (48_000, 1) };

/// What happens to a card at a time, from the start of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lives,
    /// It is unplugged.
    Unplugged(u64),
    /// It plays no further.
    Stalls(u64),
}

/// A card on a machine whose wakeups are so late, one after the other, and not at all where no more are
/// listed. It interrupts 10 µs after it has played a fragment, and knows then where it is.
struct Made<'a> {
    now: &'a Cell<u64>,
    late: std::slice::Iter<'a, u64>,
    fate: Fate,
    /// When it was started; `None` if it was not, or has stopped.
    started: Option<u64>,
    written: u64,
    position: Position,
    slept: bool,
    prepared: u32,
}

const INTERRUPT: u64 = 10_000;
const FRAGMENT_NS: u64 = 3 * MS;

impl<'a> Made<'a> {
    fn new(now: &'a Cell<u64>, late: &'a [u64], fate: Fate) -> Self {
        let position = Position::default();
        let late = late.iter();
        Self { now, late, fate, started: None, written: 0, position, slept: false, prepared: 0 }
    }

    fn is_gone(&self) -> bool {
        matches!(self.fate, Fate::Unplugged(at) if self.now.get() >= START.0 + at)
    }

    fn check(&self) -> io::Result<()> {
        match self.is_gone() {
            true => Err(io::Error::from_raw_os_error(NO_DEVICE)),
            false => Ok(()),
        }
    }

    /// When it interrupts for the fragment `number`, from 1.
    fn interrupt(&self, number: u64) -> u64 {
        self.started.unwrap_or(u64::MAX / 2) + number * FRAGMENT_NS + INTERRUPT
    }

    /// Has the kernel know what it knows from interrupts up to now.
    fn catch_up(&mut self) {
        if self.started.is_none() {
            return;
        }
        loop {
            let next = self.position.played / FRAMES.fragment + 1;
            let at = self.interrupt(next);
            let stalls = matches!(self.fate, Fate::Stalls(from) if at >= START.0 + from);
            if at > self.now.get() || stalls {
                return;
            }
            self.position.played = next * FRAMES.fragment;
            self.position.at = MonoNs(at);
            if self.position.played >= self.written {
                self.position.state = State::Interrupted;
                self.started = None;
                return;
            }
        }
    }

    fn has_room(&self) -> bool {
        let room = FRAMES.buffer - (self.written - self.position.played);
        room >= FRAMES.fragment || self.position.state == State::Interrupted
    }
}

impl Playback for Made<'_> {
    fn prepare(&mut self) -> io::Result<()> {
        self.check()?;
        (self.started, self.written) = (None, 0);
        self.prepared += 1;
        // As the kernel does: the stamp remains.
        (self.position.played, self.position.state) = (0, State::Stopped);
        Ok(())
    }

    fn start(&mut self) -> io::Result<()> {
        self.check()?;
        assert!(self.written > 0 && self.started.is_none());
        self.started = Some(self.now.get());
        self.position.state = State::Running;
        Ok(())
    }

    fn write(&mut self, frames: u64) -> io::Result<u64> {
        self.check()?;
        self.catch_up();
        if self.position.state == State::Interrupted {
            return Err(io::Error::from_raw_os_error(wakescope_sys::pcm::OVERRUN));
        }
        let room = FRAMES.buffer - (self.written - self.position.played);
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Not all at once, as a card need not take it.
        let taken = frames.min(room).min(100);
        self.written += taken;
        Ok(taken)
    }

    fn position(&mut self, _: bool) -> io::Result<Position> {
        self.check()?;
        self.catch_up();
        Ok(self.position)
    }

    fn wait(&mut self, patience: SpanNs) -> io::Result<Option<MonoNs>> {
        let began = self.now.get();
        self.catch_up();
        // In steps of interrupts, up to the one that makes room.
        while !self.has_room() {
            let before = self.position.played;
            let next = self.interrupt(self.position.played / FRAMES.fragment + 1);
            self.now.set(self.now.get().max(next));
            self.catch_up();
            self.slept = true;
            if self.position.played == before {
                self.now.set(began + patience.0);
                return Ok(None);
            }
        }
        if self.slept {
            self.now.set(self.now.get() + self.late.next().unwrap_or(&0));
        }
        Ok(Some(MonoNs(self.now.get())))
    }

    fn has_slept(&mut self) -> bool {
        std::mem::take(&mut self.slept)
    }

    fn pause_until(&mut self, at: MonoNs) {
        self.now.set(self.now.get().max(at.0));
    }
}

/// Computing that takes so long, one fragment after the other, and 2 ms where no more are listed.
struct Computing<'a> {
    now: &'a Cell<u64>,
    took: std::slice::Iter<'a, u64>,
}

impl Work for Computing<'_> {
    fn now(&mut self) -> MonoNs {
        MonoNs(self.now.get())
    }

    fn compute(&mut self) {
        self.now.set(self.now.get() + self.took.next().unwrap_or(&(2 * MS)));
    }
}

/// What comes of ten fragments of 3 ms, with three of them in the buffer.
fn played(late: &[u64], took: &[u64], fate: Fate) -> (Ending, Snapshot, Audio) {
    let pcm = Some("hw:0,0".parse().unwrap());
    let plan = AudioPlan { fragment_ns: FRAGMENT_NS, fragments: 3, share_ppm: 666_667, pcm };
    let (now, stop) = (Cell::new(START.0 - 20 * MS), Stop::default());
    let of_card = Arc::new(AudioRecorder::new(plan));
    let work = Computing { now: &now, took: took.iter() };
    let card = Made::new(&now, late, fate);
    let mut audio = CardAudio::new(card, work, FRAMES, Arc::clone(&of_card), &stop);
    audio.begin(Grid { start: START, interval: SpanNs(FRAGMENT_NS), points: 10 });
    let recorder = Recorder::new(10);
    let ending = sample(&mut audio, &mut Home, u64::MAX, START, &recorder, None, &stop);
    (ending, recorder.snapshot(), of_card.snapshot())
}

#[test]
fn a_program_in_time_is_woken_by_each_fragment_at_the_stamp_of_its_interrupt() {
    let (ending, woken, audio) = played(&[7_000; 10], &[], Fate::Lives);
    assert_eq!((ending, woken.early), (Ending::Done, 0));
    assert_eq!((woken.woken.count, woken.not_asleep, woken.missed), (10, 0, 0));
    assert_eq!((woken.woken.min_ns, woken.woken.max_ns), (Some(7_000), Some(7_000)));
    assert_eq!((audio.overruns, audio.silent), (0, 0));
    assert_eq!((audio.cycles.count, audio.cycles.max_ns), (9, Some(FRAGMENT_NS)));
    assert_eq!((audio.compute.count, audio.compute.max_ns), (10, Some(2 * MS)));
}

#[test]
fn a_wakeup_later_than_the_next_interrupt_is_due_at_the_first() {
    // Later than one further interrupt, and still in time for the buffer.
    let (_, woken, audio) = played(&[0, 0, 3 * MS + 500_000], &[], Fate::Lives);
    assert_eq!(woken.woken.max_ns, Some(3 * MS + 500_000));
    assert_eq!((audio.overruns, audio.silent), (0, 0));
    assert_eq!(audio.cycles.max_ns, Some(6 * MS + 500_000));
    // It catches up by 1 ms per fragment: these have room at once.
    assert!(woken.not_asleep > 0 && woken.woken.count + woken.not_asleep == 10, "{woken:?}");
}

#[test]
fn a_buffer_that_runs_empty_is_an_overrun_and_the_card_is_started_again() {
    // Woken 9 ms late, 2 ms to compute: the buffer ran empty 6 ms after it had room, 5 ms before.
    let (ending, woken, audio) = played(&[0, 9 * MS], &[], Fate::Lives);
    assert_eq!(ending, Ending::Done);
    assert_eq!(audio.overruns, 1);
    // A fragment and a part of one, and two of silence to fill the buffer.
    assert_eq!(audio.silent, 5 / 3 + 1 + 2);
    // Due at the first interrupt of the three that there were.
    assert_eq!(woken.woken.max_ns, Some(9 * MS));
    assert_eq!(audio.compute.count + audio.silent, 10);
    // Overruns by computing are the same.
    let (_, _, audio) = played(&[], &[2 * MS, 13 * MS], Fate::Lives);
    assert_eq!((audio.overruns, audio.compute.max_ns), (1, Some(13 * MS)));
}

#[test]
fn silence_ends_where_the_run_does() {
    let (ending, _, audio) = played(&[0, 300 * MS], &[], Fate::Lives);
    assert_eq!(ending, Ending::Done);
    // All places from the second on, of ten.
    assert_eq!((audio.overruns, audio.silent, audio.compute.count), (1, 9, 2));
}

#[test]
fn a_card_that_goes_away_ends_the_run_and_what_was_measured_is_kept() {
    for (fate, loss, count) in [
        (Fate::Unplugged(10 * MS), Loss::CardFailed(NO_DEVICE), 4),
        (Fate::Stalls(10 * MS), Loss::CardStalled, 4),
        (Fate::Unplugged(0), Loss::CardFailed(NO_DEVICE), 0),
    ] {
        let (ending, woken, audio) = played(&[], &[], fate);
        let Ending::StimulusLost(_, why) = ending else { panic!("{ending:?}") };
        assert_eq!((why, woken.woken.count), (loss, count));
        assert!(audio.compute.count >= count.saturating_sub(1), "{audio:?}");
        assert!(why.to_string().contains("sound card"));
    }
}

#[test]
fn a_card_that_cannot_be_started_is_lost_at_once() {
    let (ending, woken, _) = played(&[], &[], Fate::Unplugged(0));
    assert!(matches!(ending, Ending::StimulusLost(_, Loss::CardFailed(NO_DEVICE))));
    assert_eq!(woken.woken.count, 0);
}
