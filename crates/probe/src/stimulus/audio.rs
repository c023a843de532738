//! Wakeups by a virtual sound card, whose buffer the thread keeps filled as an audio program does.
//!
//! The card plays a fragment per fragment time, on an absolute grid, from a buffer of several. The
//! thread waits until there is room for a fragment, computes for a share of its time, and writes it.
//! What is late only once is made up for by the buffer; a buffer that runs empty is an overrun.

use std::sync::Arc;

use wakescope_core::audio::{AudioPlan, AudioRecorder};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;

use super::timer::Alarm;
use super::{Grid, WaitForStimulus, Waited, Wakeup};
use crate::stop::Stop;

/// Computes a fragment, and knows the time: the machine, or a simulation of one in tests.
pub trait Work {
    /// The time now.
    fn now(&mut self) -> MonoNs;
    /// Computes a fragment.
    fn compute(&mut self);
}

/// A program that keeps the buffer of a card filled.
pub struct Audio<'a, A, W> {
    alarm: A,
    work: W,
    recorder: Arc<AudioRecorder>,
    stop: &'a Stop,
    card: Card,
    /// The number of the fragment that is written next, from 0.
    next: u64,
    points: u64,
    /// Whether there is room for it.
    has_room: bool,
    /// When the last fragment was written.
    written: Option<MonoNs>,
}

/// When a card plays what. Its buffer is full at the start.
#[derive(Clone, Copy)]
struct Card {
    start: MonoNs,
    plan: AudioPlan,
}

impl Card {
    /// When there is room for the fragment `number`: when it has played that which was in its place.
    #[inline]
    fn room_at(&self, number: u64) -> MonoNs {
        self.start.after(SpanNs((number + 1).saturating_mul(self.plan.fragment_ns)))
    }

    /// When it begins to play the fragment `number`, which must be there by then.
    #[inline]
    fn plays_at(&self, number: u64) -> MonoNs {
        let before = number + self.plan.fragments;
        self.start.after(SpanNs(before.saturating_mul(self.plan.fragment_ns)))
    }
}

impl<'a, A: Alarm, W: Work> Audio<'a, A, W> {
    /// A program that sleeps by `alarm`, computes by `work`, and ends once `stop` is set.
    pub fn new(alarm: A, work: W, recorder: Arc<AudioRecorder>, stop: &'a Stop) -> Self {
        let card = Card { start: MonoNs(0), plan: recorder.plan() };
        Self {
            alarm,
            work,
            recorder,
            stop,
            card,
            next: 0,
            points: 0,
            has_room: false,
            written: None,
        }
    }

    /// Computes the fragment that there is room for, and writes it.
    #[inline]
    fn fill(&mut self) {
        let began = self.work.now();
        self.work.compute();
        let now = self.work.now();
        let cycle_ns = self.written.map(|last| now.since(last).0);
        let at_ns = now.since(self.card.start).0;
        self.recorder.record(at_ns, cycle_ns, now.since(began).0);
        let must_be_there = self.card.plays_at(self.next);
        // What the card plays after the end of the run is no part of it, whether that was planned or asked for.
        let now_or_end = self.stop.cut(now);
        if now_or_end > must_be_there {
            // The card has played silence, and begins with this fragment at its next point.
            let silent = now_or_end.since(must_be_there).0 / self.card.plan.fragment_ns.max(1) + 1;
            let silent = silent.min(self.points - self.next);
            self.recorder.count_overrun(silent);
            self.next += silent;
        }
        self.written = Some(now);
        self.next += 1;
        self.has_room = false;
    }
}

impl<A: Alarm, W: Work> WaitForStimulus for Audio<'_, A, W> {
    fn begin(&mut self, grid: Grid) {
        self.recorder.reset();
        // The first room is at the first point.
        let before = grid.start.0.saturating_sub(self.card.plan.fragment_ns);
        self.card.start = MonoNs(before);
        (self.next, self.points) = (0, grid.points);
        (self.has_room, self.written) = (false, None);
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        if self.has_room {
            self.fill();
        }
        if self.next >= self.points {
            return Waited::Done;
        }
        let due = self.card.room_at(self.next);
        // A program that never catches up never sleeps.
        if self.stop.is_before(due) {
            return Waited::Stopped;
        }
        self.has_room = true;
        if self.work.now() >= due {
            return Waited::NotAsleep;
        }
        match self.alarm.sleep_until(due) {
            Ok(woken) => Waited::Woken(Wakeup { due, woken, missed: 0 }),
            Err(waited) => waited,
        }
    }

    fn period(&self) -> SpanNs {
        SpanNs(self.card.plan.fragment_ns)
    }
}

/// A loop of arithmetic that takes a given time on a CPU that nobody else uses.
pub struct Arithmetic {
    turns: u64,
}

impl Arithmetic {
    /// Counts how many turns take `span` on the CPU of the calling thread. It takes 30 ms, so that
    /// the CPU has the frequency that it computes at.
    pub fn calibrated(span: SpanNs) -> Self {
        const TURNS: u64 = 50_000;
        const PATIENCE: SpanNs = SpanNs(30_000_000);
        let began = clock::now();
        let mut least_ns = u64::MAX;
        while clock::now().since(began) < PATIENCE {
            let before = clock::now();
            turn(TURNS);
            // The least: anything else that ran meanwhile only makes it longer.
            least_ns = least_ns.min(clock::now().since(before).0);
        }
        let turns = u128::from(span.0) * u128::from(TURNS) / u128::from(least_ns.max(1));
        Self { turns: u64::try_from(turns).unwrap_or(u64::MAX) }
    }
}

impl Work for Arithmetic {
    #[inline]
    fn now(&mut self) -> MonoNs {
        clock::now()
    }

    #[inline]
    fn compute(&mut self) {
        turn(self.turns);
    }
}

/// Turns that depend on each other, so that none can be left out or done ahead.
fn turn(turns: u64) {
    let mut state = std::hint::black_box(1_u64);
    for _ in 0..turns {
        state = std::hint::black_box(state.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    std::hint::black_box(state);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::place::Home;
    use crate::stimulus::{Ending, sample};
    use std::cell::Cell;
    use wakescope_core::recorder::{Recorder, Snapshot};

    const MS: u64 = 1_000_000;
    const START: MonoNs = MonoNs(1_000 * MS);

    /// A machine whose wakeups are so late, and whose computing takes so long, one after the other:
    /// nothing and 2 ms where no more are listed.
    struct Simulated<'a> {
        now: &'a Cell<u64>,
        late: std::slice::Iter<'a, u64>,
        compute: std::slice::Iter<'a, u64>,
    }

    impl Alarm for Simulated<'_> {
        fn sleep_until(&mut self, expiry: MonoNs) -> Result<MonoNs, Waited> {
            assert!(expiry.0 > self.now.get(), "nobody sleeps for what has passed");
            self.now.set(expiry.0 + self.late.next().unwrap_or(&0));
            Ok(MonoNs(self.now.get()))
        }
    }

    impl Work for Simulated<'_> {
        fn now(&mut self) -> MonoNs {
            MonoNs(self.now.get())
        }

        fn compute(&mut self) {
            self.now.set(self.now.get() + self.compute.next().unwrap_or(&(2 * MS)));
        }
    }

    /// What comes of ten fragments of 3 ms, with three of them in the buffer.
    fn played(late: &[u64], compute: &[u64]) -> (Snapshot, wakescope_core::audio::Audio) {
        let plan = AudioPlan { fragment_ns: 3 * MS, fragments: 3, share_ppm: 666_667, pcm: None };
        let (now, stop) = (Cell::new(START.0 - MS), Stop::default());
        let of = || Simulated { now: &now, late: late.iter(), compute: compute.iter() };
        let of_card = Arc::new(AudioRecorder::new(plan));
        let mut audio = Audio::new(of(), of(), Arc::clone(&of_card), &stop);
        audio.begin(Grid { start: START, interval: SpanNs(3 * MS), points: 10 });
        let recorder = Recorder::new(10);
        let ending = sample(&mut audio, &mut Home, u64::MAX, START, &recorder, None, &stop);
        assert_eq!(ending, Ending::Done);
        (recorder.snapshot(), of_card.snapshot())
    }

    #[test]
    fn a_program_in_time_waits_for_each_fragment() {
        let (woken, audio) = played(&[], &[]);
        assert_eq!((woken.woken.count, woken.not_asleep, woken.missed), (10, 0, 0));
        assert_eq!(woken.woken.max_ns, Some(0));
        assert_eq!((audio.overruns, audio.silent), (0, 0));
        assert_eq!(
            (audio.cycles.count, audio.cycles.min_ns, audio.cycles.max_ns),
            (9, Some(3 * MS), Some(3 * MS))
        );
        assert_eq!((audio.compute.count, audio.compute.max_ns), (10, Some(2 * MS)));
        assert_eq!((audio.cycles_within_1ms, audio.compute_within_100us), (9, 10));
    }

    #[test]
    fn the_buffer_makes_up_for_what_is_late_once() {
        // Fragment 2 may be there 6 ms after there is room for it: woken 4 ms late, it just is.
        let (woken, audio) = played(&[0, 0, 4 * MS], &[]);
        assert_eq!((audio.overruns, audio.silent), (0, 0));
        assert_eq!(audio.cycles.max_ns, Some(7 * MS));
        // It is behind then, and catches up by 1 ms per fragment: these have room at once.
        assert_eq!(woken.woken.max_ns, Some(4 * MS));
        assert_eq!((woken.woken.count, woken.not_asleep), (6, 4));
    }

    #[test]
    fn a_buffer_that_runs_empty_is_an_overrun() {
        let (_, audio) = played(&[0, 0, 4 * MS + 1], &[]);
        assert_eq!((audio.overruns, audio.silent), (1, 1));
        // And by computing: 13 ms instead of 2 is 7 ms too late, for which the card plays 3 fragments
        // of silence. Then it goes on from where the card is.
        let (woken, audio) = played(&[], &[2 * MS, 13 * MS]);
        assert_eq!((audio.overruns, audio.silent), (1, 3));
        assert_eq!((audio.compute.count, audio.compute.max_ns), (7, Some(13 * MS)));
        assert_eq!(audio.cycles.max_ns, Some(14 * MS));
        assert!(woken.not_asleep > 0);
    }

    #[test]
    fn a_stall_plays_as_much_silence_as_it_lasts() {
        let (woken, audio) = played(&[0, 20 * MS], &[]);
        assert_eq!(audio.overruns, 1);
        // 22 ms after its room, less the 6 ms that were in the buffer. Two fragments follow.
        assert_eq!(audio.silent, 16 / 3 + 1);
        assert_eq!((audio.compute.count, woken.missed), (4, 0));
    }

    /// A stall at the end of 690 fragments counted as 329 of silence, beside 602 that were played.
    #[test]
    fn silence_ends_where_the_run_does() {
        let (woken, audio) = played(&[0, 300 * MS], &[]);
        // All places from the second on, of ten.
        assert_eq!((audio.overruns, audio.silent), (1, 9));
        assert_eq!((woken.woken.count, woken.missed), (2, 0));
    }
}
