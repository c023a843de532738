//! Many timers that expire at once: one interrupt sees to all of them.

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::process::raise_open_files;
use wakescope_sys::timer_file::TimerFile;

use super::super::keeper::Desk;
use super::fifo::become_fifo;
use super::{Burst, Disturber, calibrate, gap};

/// Below everybody's who has a real-time policy.
const PRIORITY: u8 = 1;

/// Files that others of this process may need.
const SPARE: u64 = 256;

/// How long arming one may take as long as that is not known.
const ARMING: SpanNs = SpanNs(3_000);

/// How long before and after the expiry this thread has to be there.
const MARGIN: SpanNs = SpanNs(100_000);

/// What no timer takes less than: some hundred instructions.
const LEAST_EACH: SpanNs = SpanNs(20);

pub(super) struct Timers {
    timers: Vec<TimerFile>,
    /// How long arming one takes, and as much again for what may come between.
    arming: SpanNs,
}

impl Timers {
    pub(super) fn new(length: SpanNs, cpus: usize) -> Result<Self, String> {
        // Else whoever gets the CPU in the meantime would be taken for the interrupt.
        become_fifo(PRIORITY)?;
        let files = raise_open_files().map_err(|e| format!("cannot have more files: {e}"))?;
        // Each CPU has as many.
        let most = usize::try_from(files.saturating_sub(SPARE)).unwrap_or(usize::MAX) / cpus;
        let mut this = Self { timers: Vec::new(), arming: ARMING };
        let count = calibrate::amount(length, most, |count| {
            this.resize(count)?;
            // Those that could not be armed in time tell nothing.
            let Some(burst) = this.expire()? else { return Ok(SpanNs(u64::MAX)) };
            let took = burst.end.since(burst.begin);
            // Else there would be more and more of them, until no memory is left.
            if is_too_short(count, took) {
                return Err(format!(
                    "{count} timers at once take {took}: no interrupt sees to all of them, as \
                     where real-time preemption leaves them to a thread"
                ));
            }
            Ok(took)
        })?;
        this.resize(count)?;
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
    fn expire(&mut self) -> Result<Option<Burst>, String> {
        let count = u64::try_from(self.timers.len()).unwrap_or(u64::MAX).max(1);
        let begin = clock::now();
        let expiry = begin.after(SpanNs(self.arming.0 * count)).after(MARGIN);
        for timer in &self.timers {
            timer.arm(expiry).map_err(|e| format!("cannot arm a timer: {e}"))?;
        }
        let armed = clock::now();
        self.arming = SpanNs(armed.since(begin).0 / count * 2).min(ARMING);
        let burst = gap::longest(expiry, expiry.after(MARGIN));
        Ok((armed < expiry).then_some(burst))
    }
}

/// Whether the interrupt that took so long cannot have seen to `count` timers.
fn is_too_short(count: usize, took: SpanNs) -> bool {
    u128::from(took.0) < count as u128 * u128::from(LEAST_EACH.0)
}

impl Disturber for Timers {
    fn disturb(&mut self, _desk: &Desk) -> Result<Option<Burst>, String> {
        self.expire()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
