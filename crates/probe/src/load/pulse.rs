//! When a keeper shows a sign of life, and whether something held it up.

use std::fs;

use wakescope_core::units::{MonoNs, SpanNs};

use super::random::Random;

/// The longest time from one sign of life to the next, unless the keeper is held up. Some two or three a second
/// are enough to tell a dead load from a slow one, and add nothing to what the load itself does to wakeups.
pub(super) const BEAT: SpanNs = SpanNs(500_000_000);

/// A keeper that is so late, and waited for no CPU, was stopped: page faults and timers take less.
const HELD_UP: SpanNs = SpanNs(100_000_000);

/// One that was stopped may be stopped again. For so long it looks often, so that little of a stop is missed.
const WATCHFUL: SpanNs = SpanNs(5_000_000_000);
const WATCHFUL_BEAT: SpanNs = SpanNs(50_000_000);

/// The signs of life of a keeper.
#[derive(Debug)]
pub(super) struct Pulse {
    random: Random,
    next: MonoNs,
    watchful_until: MonoNs,
    waited: Option<SpanNs>,
}

impl Pulse {
    /// The first is due soon after `now`; `waited` is as for [`Self::beat`]. `seed` decides when those are due
    /// that follow.
    pub(super) fn new(seed: u64, now: MonoNs, waited: Option<SpanNs>) -> Self {
        let mut pulse = Self { random: Random::new(seed), next: now, watchful_until: now, waited };
        pulse.plan(now);
        pulse
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> MonoNs {
        self.next
    }

    /// Takes note of the one that was due, at `now`. Returns how long, at least, the keeper was stopped before it: 0
    /// if it was not, or if nobody knows. `waited` is how long it has waited for a CPU in its life, if that is known:
    /// its threads may have worked meanwhile.
    pub(super) fn beat(&mut self, now: MonoNs, waited: Option<SpanNs>) -> SpanNs {
        let before = std::mem::replace(&mut self.waited, waited);
        let newly_waited =
            waited.zip(before).map_or(u64::MAX, |(now, before)| now.0.saturating_sub(before.0));
        let stopped = SpanNs(now.since(self.next).0.saturating_sub(newly_waited));
        let held_up = if stopped >= HELD_UP { stopped } else { SpanNs(0) };
        if held_up.0 > 0 {
            self.watchful_until = now.after(WATCHFUL);
        }
        self.plan(now);
        held_up
    }

    /// Times that follow no rhythm, so that no rhythm of stops falls between them.
    fn plan(&mut self, now: MonoNs) {
        let span = match now < self.watchful_until {
            true => WATCHFUL_BEAT,
            false => SpanNs(BEAT.0 / 2 + self.random.below(BEAT.0 / 2)),
        };
        self.next = now.after(span);
    }
}

/// How long the first thread of this process has waited for a CPU; `None` where the kernel does not tell.
pub(super) fn waited_for_cpu() -> Option<SpanNs> {
    let text = fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(SpanNs(text.split(' ').nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// It never waits for a CPU.
    const NEVER: Option<SpanNs> = Some(SpanNs(0));

    /// A keeper that is stopped for the first `stopped_ms` of each `of_ms`, for two minutes: how long it knows that
    /// it was, in parts of the time in which it was, and how many signs of life it shows per second.
    fn seen(stopped_ms: u64, of_ms: u64, seed: u64) -> (f64, f64) {
        let end = 120_000 * MS;
        let runs_from = |at: u64| match at % (of_ms * MS) {
            phase if phase < stopped_ms * MS => at - phase + stopped_ms * MS,
            _ => at,
        };
        let mut pulse = Pulse::new(seed, MonoNs(0), NEVER);
        let (mut held_up, mut beats) = (0, 0);
        while pulse.next().0 < end {
            let now = MonoNs(runs_from(pulse.next().0));
            held_up += pulse.beat(now, NEVER).0;
            beats += 1;
        }
        let stopped = (end / of_ms * stopped_ms) as f64;
        (held_up as f64 / stopped, f64::from(beats) / 120.0)
    }

    #[test]
    fn short_stops_that_come_again_and_again_are_seen_for_most_of_their_time() {
        for seed in 0..100 {
            for (stopped_ms, of_ms) in
                [(400, 500), (450, 500), (200, 250), (800, 1_000), (300, 600)]
            {
                let (part, _) = seen(stopped_ms, of_ms, seed);
                let told = (stopped_ms, of_ms, seed);
                assert!((0.75..=1.0).contains(&part), "{part} {told:?}");
            }
        }
    }

    #[test]
    fn a_keeper_that_runs_shows_a_sign_of_life_some_times_a_second_and_was_never_held_up() {
        for seed in 0..100 {
            for late_ms in [0, 20, 99] {
                let mut pulse = Pulse::new(seed, MonoNs(0), NEVER);
                let mut now = MonoNs(0);
                for _ in 0..100 {
                    let next = pulse.next();
                    assert!((250 * MS..=500 * MS).contains(&next.since(now).0), "{seed}");
                    now = next.after(SpanNs(late_ms * MS));
                    assert_eq!(pulse.beat(now, NEVER), SpanNs(0), "{seed}");
                }
            }
        }
    }

    #[test]
    fn one_that_waits_for_a_cpu_is_not_stopped() {
        for (late_ms, before_ms, after_ms, want_ms) in [
            (300, Some(1_000), Some(1_000), 300),
            (300, Some(1_000), Some(1_200), 100),
            (300, Some(1_000), Some(1_201), 0),
            (300, Some(1_000), Some(1_300), 0),
            (300, Some(1_000), Some(9_000), 0),
            (300, None, Some(0), 0),
            (300, Some(0), None, 0),
        ] {
            let [before, after] =
                [before_ms, after_ms].map(|ms: Option<u64>| Some(SpanNs(ms? * MS)));
            let mut pulse = Pulse::new(1, MonoNs(0), before);
            let now = pulse.next().after(SpanNs(late_ms * MS));
            let told = (late_ms, before_ms, after_ms);
            assert_eq!(pulse.beat(now, after), SpanNs(want_ms * MS), "{told:?}");
        }
    }

    #[test]
    fn one_that_was_stopped_looks_often_for_a_while() {
        let mut pulse = Pulse::new(1, MonoNs(0), NEVER);
        let stopped = pulse.next().after(HELD_UP);
        assert_eq!(pulse.beat(stopped, NEVER), HELD_UP);
        let mut beats = 0;
        while pulse.next() < stopped.after(WATCHFUL) {
            assert_eq!(pulse.beat(pulse.next(), NEVER), SpanNs(0));
            beats += 1;
        }
        assert_eq!(beats, 99);
        assert_eq!(pulse.beat(pulse.next(), NEVER), SpanNs(0));
        assert!(pulse.next().since(stopped) > SpanNs(WATCHFUL.0 + 2 * WATCHFUL_BEAT.0));
    }
}
