//! Wakeups by a sound card of the machine, whose buffer the thread keeps filled.
//!
//! The card interrupts when it has played a fragment, and the kernel ends the thread's wait. A wakeup is
//! due at the kernel's stamp of that interrupt: the card has a clock of its own, so nobody can tell when
//! the interrupt should have come. How late that was is in the cycles, which are from write to write.

use std::io;
use std::sync::Arc;

use wakescope_core::audio::AudioRecorder;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::pcm::{Position, State, is_interruption};
use wakescope_sys::{clock, sched};

use super::audio::Work;
use super::{Grid, Loss, NO_DEVICE, WaitForStimulus, Waited, Wakeup};
use crate::card::{Card, length_of};
use crate::stop::Stop;

/// A card that plays what is written: the machine's, or a simulation of one in tests.
pub trait Playback {
    /// Stops, and makes ready with an empty buffer.
    fn prepare(&mut self) -> io::Result<()>;
    /// Starts with what is in the buffer.
    fn start(&mut self) -> io::Result<()>;
    /// Writes so many frames, or fewer, and returns how many. An error where the stream has stopped.
    fn write(&mut self, frames: u64) -> io::Result<u64>;
    /// See [`wakescope_sys::pcm::Pcm::position`].
    fn position(&mut self, asks_card: bool) -> io::Result<Position>;
    /// Waits until there is room for a fragment or the stream has stopped, and returns the clock read
    /// first thing after; `None` where `patience` has passed.
    fn wait(&mut self, patience: SpanNs) -> io::Result<Option<MonoNs>>;
    /// Whether the thread has slept since this was last asked.
    fn has_slept(&mut self) -> bool;
    /// Sleeps until about `at`.
    fn pause_until(&mut self, at: MonoNs);
}

/// What a card was set up with, in frames.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Of a fragment.
    pub fragment: u64,
    /// Of the buffer.
    pub buffer: u64,
    /// Of a second, as a fraction.
    pub rate: (u32, u32),
}

/// Waits that end without room, before the card is taken for one that does not work.
const SPURIOUS: u32 = 1_000;

/// A program that keeps the buffer of a card filled.
pub struct CardAudio<'a, P, W> {
    playback: P,
    work: W,
    frames: Frames,
    recorder: Arc<AudioRecorder>,
    stop: &'a Stop,
    /// Frames that were written since the stream was prepared.
    written: u64,
    /// Where the stream was when it was prepared.
    base: u64,
    started: MonoNs,
    next: u64,
    points: u64,
    has_room: bool,
    /// When the last fragment was written.
    last_write: Option<MonoNs>,
    lost: Option<Loss>,
}

impl<'a, P: Playback, W: Work> CardAudio<'a, P, W> {
    /// A program that writes to `playback`, computes by `work`, and ends once `stop` is set.
    pub fn new(
        playback: P,
        work: W,
        frames: Frames,
        recorder: Arc<AudioRecorder>,
        stop: &'a Stop,
    ) -> Self {
        let started = MonoNs(0);
        Self {
            playback,
            work,
            frames,
            recorder,
            stop,
            written: 0,
            base: 0,
            started,
            next: 0,
            points: 0,
            has_room: false,
            last_write: None,
            lost: None,
        }
    }

    fn fragment(&self) -> SpanNs {
        length_of(self.frames.fragment, self.frames.rate)
    }

    /// How many frames may be written at that position.
    fn room(&self, position: Position) -> u64 {
        let left = self.written.saturating_sub(position.played.saturating_sub(self.base));
        let played_beyond = position.played.saturating_sub(self.base).saturating_sub(self.written);
        (self.frames.buffer + played_beyond).saturating_sub(left)
    }

    /// Makes the card ready with a full buffer.
    fn fill_up(&mut self) -> io::Result<()> {
        self.playback.prepare()?;
        self.base = self.playback.position(false)?.played;
        self.written = 0;
        self.write(self.frames.buffer)
    }

    /// Writes all of so many frames.
    fn write(&mut self, frames: u64) -> io::Result<()> {
        let mut left = frames;
        for _ in 0..SPURIOUS {
            match self.playback.write(left) {
                Ok(written) => {
                    left = left.saturating_sub(written);
                    self.written += written;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.playback.wait(self.patience())?;
                }
                Err(e) => return Err(e),
            }
            if left == 0 {
                return Ok(());
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// A card that has not played a fragment by then does not play.
    fn patience(&self) -> SpanNs {
        let buffer = length_of(self.frames.buffer, self.frames.rate);
        SpanNs(buffer.0.saturating_mul(2)).max(SpanNs(1_000_000_000))
    }

    /// Computes the fragment that there is room for, and writes it.
    fn fill(&mut self) -> io::Result<()> {
        let began = self.work.now();
        self.work.compute();
        let now = self.work.now();
        let cycle_ns = self.last_write.map(|last| now.since(last).0);
        let at_ns = now.since(self.started).0;
        self.recorder.record(at_ns, cycle_ns, now.since(began).0);
        match self.write(self.frames.fragment) {
            Err(e) if is_interruption(&e) => self.restart()?,
            other => other?,
        }
        self.last_write = Some(now);
        self.next += 1;
        self.has_room = false;
        Ok(())
    }

    /// The card has stopped, because its buffer ran empty: starts it again with this fragment, and
    /// silence before it in the rest of the buffer.
    #[cold]
    fn restart(&mut self) -> io::Result<()> {
        let position = self.playback.position(false)?;
        let beyond = self.room(position).saturating_sub(self.frames.buffer);
        let ran_empty = MonoNs(position.at.0.saturating_sub(length_of(beyond, self.frames.rate).0));
        self.fill_up()?;
        self.playback.start()?;
        let fragment_ns = self.fragment().0.max(1);
        let now_or_end = self.stop.cut(self.work.now());
        let gap = now_or_end.since(ran_empty).0 / fragment_ns + 1;
        let silent = gap + (self.frames.buffer / self.frames.fragment.max(1)).saturating_sub(1);
        // What the card plays after the end of the run is no part of it, whether that was planned or asked for.
        let silent = silent.min(self.points.saturating_sub(self.next));
        self.next += silent;
        if !self.stop.is_before(ran_empty) {
            self.recorder.count_overrun(silent);
        }
        Ok(())
    }

    /// Waits until there is room for a fragment.
    fn await_room(&mut self) -> io::Result<Waited> {
        let position = self.playback.position(true)?;
        if self.needs_no_wait(position)? {
            self.has_room = true;
            return Ok(Waited::NotAsleep);
        }
        self.playback.has_slept();
        for _ in 0..SPURIOUS {
            let woken = match self.playback.wait(self.patience()) {
                Ok(Some(woken)) => woken,
                Ok(None) => return Ok(Waited::Lost(Loss::CardStalled)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => match self.stop.is_set() {
                    true => return Ok(Waited::Stopped),
                    false => continue,
                },
                Err(e) => return Err(e),
            };
            let position = self.playback.position(false)?;
            if !self.needs_no_wait(position)? {
                continue;
            }
            self.has_room = true;
            let fragments = self.room(position) / self.frames.fragment.max(1);
            // A stream that stopped before there was room has no stamp of that.
            if fragments == 0 || !self.playback.has_slept() {
                return Ok(Waited::NotAsleep);
            }
            // The stamp is of the last interrupt; there was room since the first.
            let later = SpanNs(self.fragment().0.saturating_mul(fragments - 1));
            let due = MonoNs(position.at.0.saturating_sub(later.0));
            return Ok(Waited::Woken(Wakeup { due, woken, missed: 0 }));
        }
        Ok(Waited::Lost(Loss::CardStalled))
    }

    /// Whether a fragment can be written, or the stream must be started again to write one.
    fn needs_no_wait(&self, position: Position) -> io::Result<bool> {
        match position.state {
            State::Gone => Err(io::Error::from_raw_os_error(NO_DEVICE)),
            State::Running => Ok(self.room(position) >= self.frames.fragment),
            State::Interrupted | State::Stopped => Ok(true),
        }
    }

    fn lose(&mut self, e: &io::Error) -> Waited {
        let loss = match e.kind() {
            io::ErrorKind::TimedOut => Loss::CardStalled,
            _ => Loss::CardFailed(e.raw_os_error().unwrap_or(0)),
        };
        self.lost = Some(loss);
        Waited::Lost(loss)
    }
}

impl<P: Playback, W: Work> WaitForStimulus for CardAudio<'_, P, W> {
    fn begin(&mut self, grid: Grid) {
        self.recorder.reset();
        (self.next, self.points) = (0, grid.points);
        (self.has_room, self.last_write) = (false, None);
        let begun = self.fill_up().and_then(|()| {
            // The first room comes about where the grid is to start.
            let before = grid.start.0.saturating_sub(self.fragment().0);
            self.playback.pause_until(MonoNs(before));
            self.playback.start()
        });
        self.started = self.work.now();
        if let Err(e) = begun {
            self.lose(&e);
        }
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        if let Some(loss) = self.lost {
            return Waited::Lost(loss);
        }
        if self.has_room {
            if let Err(e) = self.fill() {
                return self.lose(&e);
            }
        }
        if self.next >= self.points {
            return Waited::Done;
        }
        // A program that never catches up never sleeps.
        if self.stop.is_set() {
            return Waited::Stopped;
        }
        self.await_room().unwrap_or_else(|e| self.lose(&e))
    }

    fn period(&self) -> SpanNs {
        self.fragment()
    }
}

/// A card of this machine, to which silence is written.
pub struct MachineCard {
    card: Card,
    /// As much as the buffer holds.
    silence: Vec<u8>,
    /// How often the thread had slept when it was last asked.
    sleeps: u64,
}

impl MachineCard {
    /// Plays silence on `card`.
    pub fn new(card: Card) -> Self {
        let bytes = card.about.buffer_frames.saturating_mul(card.frame_bytes);
        let silence = vec![0; usize::try_from(bytes).unwrap_or(0)];
        Self { card, silence, sleeps: 0 }
    }

    /// What it was set up with.
    pub fn frames(&self) -> Frames {
        let Card { about, rate, .. } = &self.card;
        Frames { fragment: about.fragment_frames, buffer: about.buffer_frames, rate: *rate }
    }
}

impl Playback for MachineCard {
    fn prepare(&mut self) -> io::Result<()> {
        // That fails where it was never started.
        let _ = self.card.pcm.stop();
        self.card.pcm.prepare()
    }

    fn start(&mut self) -> io::Result<()> {
        self.card.pcm.start()
    }

    #[inline]
    fn write(&mut self, frames: u64) -> io::Result<u64> {
        self.card.pcm.write(&self.silence, frames, self.card.frame_bytes)
    }

    #[inline]
    fn position(&mut self, asks_card: bool) -> io::Result<Position> {
        self.card.pcm.position(asks_card)
    }

    #[inline]
    fn wait(&mut self, patience: SpanNs) -> io::Result<Option<MonoNs>> {
        let is_ready = self.card.pcm.wait(patience)?;
        let woken = clock::now();
        Ok(is_ready.then_some(woken))
    }

    #[inline]
    fn has_slept(&mut self) -> bool {
        let Ok(sleeps) = sched::sleeps() else { return true };
        std::mem::replace(&mut self.sleeps, sleeps) != sleeps
    }

    fn pause_until(&mut self, at: MonoNs) {
        let _ = clock::sleep_until(at);
    }
}

#[cfg(test)]
mod tests;
