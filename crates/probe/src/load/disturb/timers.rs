//! Many timers that expire at once: one interrupt sees to all of them.

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::sched::preemptions;
use wakescope_sys::timer_file::TimerFile;

use super::super::desk::Desk;
use super::correction::Correction;
use super::disturber::{Burst, Disturber};
use super::fifo::become_fifo;
use super::{calibrate, files, gap};

/// Below everybody's who has a real-time policy.
const PRIORITY: u8 = 1;

/// How often it is tried to arm all in time. The first time it is not known how long that takes.
const TRIES: u32 = 10;

/// How long before and after the expiry this thread has to be there.
const MARGIN: SpanNs = SpanNs(100_000);

/// How long before the expiry it is noted who has had the CPU so far, which is a system call: 2 µs
/// at most on an emulated CPU.
const NEAR: SpanNs = SpanNs(10_000);

/// What no timer takes less than: some hundred instructions.
const LEAST_EACH: SpanNs = SpanNs(20);

pub(super) struct Timers {
    timers: Vec<TimerFile>,
    /// A tracer that looks at timers makes each take longer, and may come and go.
    correction: Correction,
    arming: Arming,
}

/// How long arming one of them may take.
struct Arming(SpanNs);

impl Arming {
    /// As long as it is not known.
    const UNKNOWN: Self = Self(SpanNs(3_000));

    /// More is taken for a stall: the next ones would be waited for as long.
    const MOST: SpanNs = SpanNs(30_000);

    /// When `count` of them expire that are armed from `begin` on.
    fn expiry(&self, begin: MonoNs, count: u64) -> MonoNs {
        begin.after(SpanNs(self.0.0.saturating_mul(count))).after(MARGIN)
    }

    /// Arming `count` of them `took` so long. As much again is left for what may come between.
    fn learn(&mut self, took: SpanNs, count: u64) {
        self.0 = SpanNs(took.0 / count.max(1) * 2).min(Self::MOST);
    }
}

impl Timers {
    pub(super) fn new(length: SpanNs, cpus: usize) -> Result<Self, String> {
        // Else whoever gets the CPU in the meantime would be taken for the interrupt.
        become_fifo(PRIORITY)?;
        let most = files::for_each_of(cpus)?;
        let correction = Correction::new(length, 0, most);
        let mut this = Self { timers: Vec::new(), correction, arming: Arming::UNKNOWN };
        let count = calibrate::amount(length, most, |count| {
            this.resize(count)?;
            let Expired { burst, .. } = in_time(count, || this.expire())?;
            let took = burst.end.since(burst.begin);
            // Else there would be more and more of them, until no memory is left.
            if is_too_short(count, took) {
                return Err(format!(
                    "{count} timers at once take {took}: one interrupt does not handle them all, \
                     for example because a real-time kernel handles timers in a thread"
                ));
            }
            Ok(took)
        })?;
        this.resize(count)?;
        this.correction = Correction::new(length, count, most);
        Ok(this)
    }

    fn resize(&mut self, count: usize) -> Result<(), String> {
        self.timers.truncate(count);
        while self.timers.len() < count {
            self.timers.push(TimerFile::new().map_err(|e| format!("cannot make a timer: {e}"))?);
        }
        Ok(())
    }

    /// Lets all of them expire at one time, and tells what that took from this thread, which runs
    /// meanwhile. `None` if they could not be armed in time.
    fn expire(&mut self) -> Result<Option<Expired>, String> {
        let count = u64::try_from(self.timers.len()).unwrap_or(u64::MAX);
        let begin = clock::now();
        let expiry = self.arming.expiry(begin, count);
        for timer in &self.timers {
            timer.arm(expiry).map_err(|e| format!("cannot arm a timer: {e}"))?;
        }
        let armed = clock::now();
        self.arming.learn(armed.since(begin), count);
        let near = MonoNs(expiry.0.saturating_sub(NEAR.0));
        let mut before = None;
        let note = || before = preemptions().ok().filter(|_| clock::now() < expiry);
        let burst = gap::longest_noting(expiry, expiry.after(MARGIN), near, note);
        // Whoever waited for the interrupt's end took the CPU then, and what that took is not known.
        let alone = before.is_some() && preemptions().ok() == before;
        Ok((armed < expiry).then_some(Expired { burst, alone }))
    }
}

/// What came of timers that expired.
struct Expired {
    burst: Burst,
    /// Whether nobody but interrupts had the CPU meanwhile, as far as that is known.
    alone: bool,
}

/// What comes of `count` timers once they could be armed in time.
fn in_time(
    count: usize,
    mut expire: impl FnMut() -> Result<Option<Expired>, String>,
) -> Result<Expired, String> {
    let expired = (0..TRIES).find_map(|_| expire().transpose());
    expired.unwrap_or_else(|| {
        Err(format!(
            "{count} timers could not be armed before they expired, in {TRIES} tries: arming one \
             takes more than {}, or other tasks take the CPU",
            SpanNs(Arming::MOST.0 / 2)
        ))
    })
}

/// Whether the interrupt that took so long cannot have seen to `count` timers.
fn is_too_short(count: usize, took: SpanNs) -> bool {
    u128::from(took.0) < count as u128 * u128::from(LEAST_EACH.0)
}

impl Disturber for Timers {
    fn disturb(&mut self, _desk: &Desk) -> Result<Option<Burst>, String> {
        let Some(Expired { burst, alone }) = self.expire()? else { return Ok(None) };
        if alone {
            let took = burst.end.since(burst.begin);
            let count = self.correction.next(self.timers.len(), took);
            // Where there are not as many files by now, fewer timers must do.
            let _ = self.resize(count);
        }
        Ok(Some(burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_armed_in_time_however_long_that_takes() {
        // No more than 3 µs for each were ever waited for, so that slower ones disturbed nothing.
        for each in [100, 2_900, 3_100, 10_000, 15_000, 15_001, 100_000] {
            for count in [64, 900, 16_384] {
                let (mut arming, begin) = (Arming::UNKNOWN, MonoNs(1_000_000));
                let mut tries = 0;
                let expired = in_time(usize::try_from(count).unwrap(), || {
                    tries += 1;
                    let expiry = arming.expiry(begin, count);
                    let armed = begin.after(SpanNs(each * count));
                    arming.learn(armed.since(begin), count);
                    let burst = Burst { begin, end: armed, turns: None };
                    Ok((armed < expiry).then_some(Expired { burst, alone: true }))
                });
                let slow = "in 10 tries: arming one takes more than 15.0 µs";
                match expired {
                    Ok(_) => assert!(tries <= 2, "{each} ns for each of {count}: {tries}"),
                    Err(e) => assert!(each > 15_000 && e.contains(slow), "{each} ns: {e}"),
                }
            }
        }
    }

    #[test]
    fn timers_that_take_no_time_are_elsewhere() {
        // An interrupt that sees to one timer, and takes 3 µs by itself; and one that sees to all.
        for count in [64, 1_024, 16_384] {
            assert_eq!(is_too_short(count, SpanNs(3_200)), count > 64, "{count}");
            let took = SpanNs(3_000 + 50 * u64::try_from(count).unwrap());
            assert!(!is_too_short(count, took), "{count}");
        }
    }
}
