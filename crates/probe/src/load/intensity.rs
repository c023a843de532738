//! How much of the time a load works, and the pauses that make it so.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use wakescope_core::random::Random;
use wakescope_core::units::{MonoNs, SpanNs};

/// Work and pause take so long together, on average. Many wakeups of a probe fall into each, and a
/// second has enough of them that the work of a second is the share asked for.
const PERIOD: SpanNs = SpanNs(20_000_000);

/// The share of the time that a load works: 1 % to 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intensity(u8);

impl Intensity {
    /// Works all the time.
    pub(super) const FULL: Self = Self(100);
}

impl FromStr for Intensity {
    type Err = ();

    /// Reads `25%`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_suffix('%').ok_or(())?;
        let is_plain = digits.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit());
        let percent = digits.parse().ok().filter(|_| is_plain && !digits.starts_with('0'));
        percent.filter(|percent| (1..=100).contains(percent)).map(Self).ok_or(())
    }
}

impl fmt::Display for Intensity {
    /// What follows the name of a load: `@25%`, and nothing if it works all the time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FULL { Ok(()) } else { write!(f, "@{}%", self.0) }
    }
}

/// When one thread of a load works and when it pauses.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    intensity: Intensity,
    random: Random,
    /// When the thread began to work, or went on to.
    since: MonoNs,
    /// How long it works before its next pause.
    stretch: SpanNs,
    /// How much the last pause was longer than it should have been.
    overslept: SpanNs,
}

impl Pace {
    /// Work begins `now`. Lengths vary with `seed`.
    pub(super) fn new(intensity: Intensity, seed: u64, now: MonoNs) -> Self {
        let mut random = Random::new(seed);
        let stretch = stretch(intensity, &mut random);
        Self { intensity, random, since: now, stretch, overslept: SpanNs(0) }
    }

    /// How long to pause `now`, if at all. The pause follows from how long the work really took, so a
    /// piece of work that takes longer than it may is followed by a pause that is longer in
    /// proportion.
    pub(super) fn pause(&mut self, now: MonoNs) -> Option<SpanNs> {
        let worked = now.since(self.since);
        if worked < self.stretch {
            return None;
        }
        let share = u64::from(self.intensity.0);
        let pause = worked.0.saturating_mul(100 - share) / share;
        Some(SpanNs(pause.saturating_sub(self.overslept.0)))
    }

    /// Work goes on `now`, after it paused at `begin` for what should have been `pause`.
    pub(super) fn resume(&mut self, begin: MonoNs, pause: SpanNs, now: MonoNs) {
        // What is made up for has a bound: after a machine was asleep, a load would not pause for long.
        let overslept = now.since(begin).0.saturating_sub(pause.0).min(PERIOD.0);
        self.overslept = SpanNs(overslept);
        self.since = now;
        self.stretch = stretch(self.intensity, &mut self.random);
    }
}

/// Half to one and a half times the work of a period: work that began at regular times could fall
/// into step with the expiries of a probe.
fn stretch(intensity: Intensity, random: &mut Random) -> SpanNs {
    let mean = PERIOD.0 * u64::from(intensity.0) / 100;
    SpanNs(mean / 2 + random.number() % mean)
}

thread_local! {
    /// That of this thread, from its first piece of work on.
    static PACE: Cell<Option<Pace>> = const { Cell::new(None) };
}

/// Calls `work` with the pace of the calling thread, which `begin` makes at its first call.
pub(super) fn with_pace(begin: impl FnOnce() -> Pace, work: impl FnOnce(&mut Pace)) {
    let mut pace = PACE.take().unwrap_or_else(begin);
    work(&mut pace);
    PACE.set(Some(pace));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intensities_are_read() {
        for (text, want) in [
            ("1%", Some("@1%")),
            ("25%", Some("@25%")),
            ("99%", Some("@99%")),
            // As without it.
            ("100%", Some("")),
            ("0%", None),
            ("101%", None),
            ("200%", None),
            ("025%", None),
            ("1000%", None),
            ("+25%", None),
            ("-1%", None),
            ("12.5%", None),
            ("25", None),
            ("x", None),
            ("%", None),
            ("", None),
            ("25%%", None),
            (" 25%", None),
        ] {
            let got = text.parse::<Intensity>().ok().map(|intensity| intensity.to_string());
            assert_eq!(got.as_deref(), want, "{text:?}");
        }
    }

    /// The share of 10 s that is worked, in pieces of `piece`, where each pause is `late` too long.
    fn share(percent: u8, piece: u64, late: u64) -> f64 {
        const END: u64 = 10_000_000_000;
        let (mut now, mut worked) = (MonoNs(7), 0);
        let mut pace = Pace::new(Intensity(percent), 1, now);
        while now.0 < END {
            worked += piece;
            now = now.after(SpanNs(piece));
            if let Some(pause) = pace.pause(now) {
                let begin = now;
                now = now.after(SpanNs(pause.0 + late));
                pace.resume(begin, pause, now);
            }
        }
        worked as f64 / now.0 as f64
    }

    #[test]
    fn the_share_of_work_is_that_asked_for() {
        for percent in [1, 5, 25, 50, 75, 99] {
            // From pieces that are short beside a stretch to those that take several periods.
            for piece in [1_000, 100_000, 3_000_000, 70_000_000] {
                for late in [0, 60_000] {
                    let got = share(percent, piece, late) * 100.0;
                    let want = f64::from(percent);
                    // Where a pause is shorter than it is late, not all of that can be made up for.
                    let slack = if percent == 99 && late > 0 { 1.0 } else { want * 0.08 };
                    assert!((got - want).abs() <= slack, "{percent} % in {piece} ns: {got}");
                }
            }
        }
    }

    #[test]
    fn work_does_not_begin_at_regular_times() {
        let mut pace = Pace::new(Intensity(50), 1, MonoNs(0));
        let mut stretches: Vec<u64> = Vec::new();
        for _ in 0..100 {
            stretches.push(pace.stretch.0);
            pace.resume(MonoNs(0), SpanNs(0), MonoNs(0));
        }
        assert!(stretches.iter().all(|s| (5_000_000..15_000_000).contains(s)), "{stretches:?}");
        stretches.sort_unstable();
        stretches.dedup();
        assert_eq!(stretches.len(), 100);
    }
}
