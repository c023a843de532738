//! How long a load did nothing, as far as its readings tell.

use wakescope_core::starvation::Stall;
use wakescope_core::units::{MonoNs, SpanNs};

use super::pulse::BEAT;
use super::report::Reading;

/// The readings of the measured window.
#[derive(Debug)]
pub(super) struct Progress {
    begin: Reading,
    /// The first reading with as much work as the last.
    grown: Reading,
    last: Reading,
    longest: SpanNs,
    held_up: SpanNs,
}

impl Progress {
    /// The window was to begin at `asked`, and `first` is the answer. A keeper that answers later was held
    /// up, and the load with it.
    pub(super) fn begin(asked: MonoNs, first: Reading) -> Self {
        let mut progress = Self::from(Reading { at: asked.min(first.at), work: first.work });
        progress.note_growth(first);
        progress
    }

    /// The window begins with `first`.
    pub(super) fn from(first: Reading) -> Self {
        Self { begin: first, grown: first, last: first, longest: SpanNs(0), held_up: SpanNs(0) }
    }

    /// Takes into account that the keeper says that it was stopped for so long.
    pub(super) fn add_held_up(&mut self, span: SpanNs) {
        self.held_up = SpanNs(self.held_up.0.saturating_add(span.0));
    }

    /// Takes a reading into account.
    pub(super) fn add(&mut self, reading: Reading) {
        if reading.work > self.last.work {
            self.note_growth(reading);
        } else {
            self.last = reading;
            self.note(reading.at.since(self.grown.at));
        }
    }

    /// Something was done between the last reading and this one. It may have been all the time from one
    /// beat to the next; but where a beat is missing, nobody saw work.
    fn note_growth(&mut self, reading: Reading) {
        let idle = self.last.at.since(self.grown.at);
        let unseen = reading.at.since(self.last.at).0.saturating_sub(BEAT.0);
        self.note(SpanNs(idle.0.saturating_add(unseen)));
        (self.grown, self.last) = (reading, reading);
    }

    fn note(&mut self, idle: SpanNs) {
        self.longest = self.longest.max(idle);
    }

    /// The longest time without work. `before` is the least speed of the load before the window, per
    /// second, if it was at work there; otherwise its speed is that of the window, without the stall. It
    /// may do up to `at_once` units at once.
    pub(super) fn stall(&self, before: Option<f64>, at_once: u64) -> Stall {
        let (longest_ns, of_ns) = (self.longest.0, self.last.at.since(self.begin.at).0);
        // The first time may have begun before the window.
        let held_up_ns = self.held_up.0.min(of_ns);
        let work = self.last.work.saturating_sub(self.begin.work);
        // It is known only from beat to beat when it worked.
        let busy_ns = of_ns.saturating_sub(longest_ns.max(held_up_ns)).max(BEAT.0);
        let rate = before.unwrap_or(work as f64 * 1e9 / busy_ns as f64);
        Stall { longest_ns, held_up_ns, of_ns, pieces_per_second: rate / at_once as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stall of a window that was asked for at 0, in ms, from readings (ms, work).
    #[track_caller]
    fn check(readings: &[(u64, u64)], longest_ms: u64, of_ms: u64) {
        let reading = |&(ms, work): &(u64, u64)| Reading { at: MonoNs(ms * 1_000_000), work };
        let mut all = readings.iter().map(reading);
        let mut progress = Progress::begin(MonoNs(0), all.next().unwrap());
        all.for_each(|reading| progress.add(reading));
        let stall = progress.stall(None, 1);
        let got = (stall.longest_ns / 1_000_000, stall.of_ns / 1_000_000);
        assert_eq!(got, (longest_ms, of_ms), "{readings:?}");
    }

    #[test]
    fn a_stall_is_where_no_work_was_seen_and_no_longer() {
        // At work from beat to beat.
        check(&[(0, 9), (400, 10), (900, 11), (1_400, 12), (1_500, 13)], 0, 1_500);
        // Beats without work: at least from the first to the last of them.
        check(&[(0, 9), (400, 10), (900, 10), (1_400, 10), (1_900, 11)], 1_000, 1_900);
        // The keeper was stopped from 600 ms to 3,500 ms. It had beaten at 400 ms.
        check(&[(0, 9), (400, 10), (3_500, 11), (4_000, 12)], 2_600, 4_000);
        // Both: no work at first, then not even a beat.
        check(&[(0, 9), (500, 9), (1_000, 9), (3_500, 10), (4_000, 11)], 3_000, 4_000);
        // It goes on to the end mark.
        check(&[(0, 9), (400, 10), (900, 10), (1_400, 10), (1_450, 10)], 1_050, 1_450);
        // The keeper was stopped when the window began, or when it ended.
        check(&[(2_900, 9), (3_400, 10), (4_000, 11)], 2_400, 4_000);
        check(&[(0, 9), (400, 10), (4_900, 11)], 4_000, 4_900);
        // A run that is shorter than a beat, with nothing done in it, and with something.
        check(&[(0, 9), (100, 9)], 100, 100);
        check(&[(0, 9), (100, 10)], 0, 100);
        check(&[(0, 9)], 0, 0);
        // A load that counts a piece of work every 2 s.
        check(&[(0, 0), (500, 0), (1_000, 0), (1_500, 0), (2_000, 1), (2_500, 1)], 1_500, 2_500);
    }

    #[test]
    fn how_fast_a_load_is_otherwise_follows_from_its_least_speed() {
        let at = |s: u64, work| Reading { at: MonoNs(s * 1_000_000_000), work };
        let mut progress = Progress::from(at(10, 100));
        for reading in [at(11, 200), at(13, 200), at(14, 300)] {
            progress.add(reading);
        }
        // 2 s without work, and half a second that a beat may be late; 200 in the remaining 1.5 s.
        for (before, at_once, want) in
            [(Some(1_000.0), 1, 1_000.0), (Some(1_000.0), 100, 10.0), (None, 1, 200.0 / 1.5)]
        {
            let stall = progress.stall(before, at_once);
            assert_eq!((stall.longest_ns, stall.of_ns), (2_500_000_000, 4_000_000_000));
            assert_eq!(stall.pieces_per_second, want, "{before:?} {at_once}");
        }
    }

    #[test]
    fn times_in_which_the_keeper_was_held_up_add_up() {
        let at = |s: u64, work| Reading { at: MonoNs(s * 1_000_000_000), work };
        let mut progress = Progress::from(at(10, 100));
        for s in 11..=20 {
            progress.add_held_up(SpanNs(750_000_000));
            progress.add(at(s, s * 100));
        }
        let stall = progress.stall(None, 1);
        assert_eq!((stall.held_up_ns, stall.longest_ns), (7_500_000_000, 500_000_000));
        // 1,900 in the time in which it was not held up.
        assert_eq!(stall.pieces_per_second, 1_900.0 / 2.5);
        progress.add_held_up(SpanNs(u64::MAX));
        assert_eq!(progress.stall(None, 1).held_up_ns, 10_000_000_000);
    }
}
