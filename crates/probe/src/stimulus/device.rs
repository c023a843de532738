//! Wakeups by the device of the project's kernel module.
//!
//! The module's timer keeps the probe's own grid, and the kernel says for each wakeup when the timer
//! was due, when its function ran, and when the probe ran again, still in the kernel. So the wakeup
//! latency is divided by stamps that were taken where it happened, and nothing is traced.

use std::io;

use wakescope_core::run::{KernelStamps, StampedPart};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::wakeup_device::{Stamps, WakeupDevice};

use super::watch::Watch;
use super::{Beside, Grid, Loss, WaitForStimulus, Waited, Wakeup};
use crate::stop::Stop;

/// A device that wakes its reader: the machine's, or a simulation of one in tests.
pub trait Device {
    /// Starts expiries at `first`, and from there every `period`, in place of those before.
    fn start(&mut self, first: MonoNs, period: SpanNs) -> io::Result<()>;
    /// Waits for an expiry; with its stamps, the clock read first thing after. An error broke the wait
    /// off.
    fn wait(&mut self) -> io::Result<(Stamps, MonoNs)>;
}

impl Device for WakeupDevice {
    fn start(&mut self, first: MonoNs, period: SpanNs) -> io::Result<()> {
        Self::start(self, first, period)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<(Stamps, MonoNs)> {
        let stamps = Self::wait(self)?;
        Ok((stamps, clock::now()))
    }
}

/// The wakeups by a device.
pub struct DeviceWakeups<'a, D> {
    device: D,
    stop: &'a Stop,
    watch: Watch,
    /// When the next expiry is due, at the earliest.
    next: MonoNs,
    interval: SpanNs,
    left: u64,
    seen: KernelStamps,
    /// Why the timer could not be started.
    failed: Option<Loss>,
}

impl<'a, D: Device> DeviceWakeups<'a, D> {
    /// Waits for `device` until `stop` is set. Whoever follows the thread does so by `watch`.
    pub fn new(device: D, stop: &'a Stop, watch: Watch) -> Self {
        let (next, interval) = (MonoNs(0), SpanNs(0));
        let seen = KernelStamps::default();
        Self { device, stop, watch, next, interval, left: 0, seen, failed: None }
    }
}

impl<D: Device> WaitForStimulus for DeviceWakeups<'_, D> {
    const HAS_INTERVAL: bool = true;

    fn begin(&mut self, grid: Grid) {
        (self.next, self.interval, self.left) = (grid.start, grid.interval, grid.points);
        self.seen = KernelStamps::default();
        self.failed = self.device.start(grid.start, grid.interval).err().map(Loss::from);
    }

    #[inline]
    fn wait(&mut self) -> Waited {
        if self.left == 0 {
            return Waited::Done;
        }
        if let Some(loss) = self.failed {
            return Waited::Lost(loss);
        }
        let expected = self.next;
        self.watch.before(expected);
        let (stamps, woken) = loop {
            match self.device.wait() {
                Ok(seen) => break seen,
                Err(_) if self.stop.is_set() => return Waited::Stopped,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Waited::Lost(e.into()),
            }
        };
        self.watch.after(expected, woken);
        // The loop would leave it out, and its parts would be without a whole.
        if self.stop.is_before(stamps.due) {
            return Waited::Stopped;
        }
        self.next = stamps.due.after(SpanNs(stamps.expiries.saturating_mul(self.interval.0)));
        let missed = stamps.expiries.saturating_sub(1).min(self.left - 1);
        self.left -= missed + 1;
        add(&mut self.seen, &stamps, woken);
        Waited::Woken(Wakeup { due: stamps.due, woken, missed })
    }

    #[inline]
    fn period(&self) -> SpanNs {
        self.interval
    }

    fn beside(&self) -> Beside {
        Beside { kernel_stamps: Some(self.seen), ..Beside::default() }
    }
}

#[inline]
fn add(all: &mut KernelStamps, stamps: &Stamps, woken: MonoNs) {
    let Stamps { due, function, awake, .. } = *stamps;
    all.wakeups += 1;
    for (part, from, to) in [
        (&mut all.to_function, due, function),
        (&mut all.to_reader, function, awake),
        (&mut all.to_probe, awake, woken),
    ] {
        let ns = to.0.saturating_sub(from.0);
        let StampedPart { sum_ns, min_ns, max_ns } = part;
        *min_ns = if all.wakeups == 1 { ns } else { ns.min(*min_ns) };
        *max_ns = ns.max(*max_ns);
        *sum_ns += ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::place::Home;
    use crate::stimulus::{Ending, sample};
    use wakescope_core::recorder::Recorder;

    const PERIOD: u64 = 1_000_000;
    const ORIGIN: MonoNs = MonoNs(10_000_000);

    /// A device whose reader wakes so late, in turn.
    struct Simulated<'a> {
        now: u64,
        next: u64,
        lateness: &'a [u64],
        turn: usize,
        fails_at: usize,
    }

    impl Device for Simulated<'_> {
        fn start(&mut self, first: MonoNs, period: SpanNs) -> io::Result<()> {
            assert_eq!(period, SpanNs(PERIOD));
            self.next = first.0;
            Ok(())
        }

        fn wait(&mut self) -> io::Result<(Stamps, MonoNs)> {
            self.turn += 1;
            if self.turn == self.fails_at {
                return Err(io::Error::from_raw_os_error(5));
            }
            // A signal handler ran, and no expiry is lost.
            if self.turn % 7 == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let due = self.next;
            let function = self.now.max(due) + 300;
            let awake = function + self.lateness[self.turn % self.lateness.len()];
            let expiries = (awake - due) / PERIOD + 1;
            self.next = due + expiries * PERIOD;
            self.now = awake + 100;
            let (due, function, awake) = (MonoNs(due), MonoNs(function), MonoNs(awake));
            Ok((Stamps { due, function, awake, expiries }, MonoNs(self.now)))
        }
    }

    fn measure(lateness: &[u64], fails_at: usize) -> (Ending, Recorder, KernelStamps) {
        let (stop, recorder) = (Stop::default(), Recorder::new(0));
        let device = Simulated { now: 0, next: 0, lateness, turn: 0, fails_at };
        let mut wakeups = DeviceWakeups::new(device, &stop, Watch::none());
        wakeups.begin(Grid { start: ORIGIN, interval: SpanNs(PERIOD), points: 100 });
        let ending = sample(&mut wakeups, &mut Home, u64::MAX, ORIGIN, &recorder, None, &stop);
        let stamps = wakeups.beside().kernel_stamps.unwrap();
        (ending, recorder, stamps)
    }

    #[test]
    fn each_expiry_counts_once_and_the_parts_add_up() {
        for (lateness, woken) in
            [(&[2_000][..], 100), (&[2_000, 2 * PERIOD + 5], 50), (&[500 * PERIOD], 1)]
        {
            let (ending, recorder, stamps) = measure(lateness, 0);
            let seen = recorder.snapshot();
            assert_eq!((ending, seen.expiries.count, seen.early), (Ending::Done, 100, 0));
            assert_eq!(seen.missed, 100 - seen.woken.count);
            assert!(seen.woken.count.abs_diff(woken) <= 4, "{lateness:?}: {seen:?}");
            let KernelStamps { wakeups, to_function, to_reader, to_probe } = stamps;
            assert_eq!(wakeups, seen.woken.count);
            let all = to_function.sum_ns + to_reader.sum_ns + to_probe.sum_ns;
            assert_eq!(u128::from(all), u128::from(seen.woken.sum_ns));
            assert_eq!(to_probe, StampedPart { sum_ns: wakeups * 100, min_ns: 100, max_ns: 100 });
            assert_eq!(to_reader.max_ns, *lateness.iter().max().unwrap());
        }
    }

    #[test]
    fn a_device_that_fails_ends_the_run_and_keeps_what_was_seen() {
        let (ending, recorder, stamps) = measure(&[2_000], 20);
        assert!(matches!(ending, Ending::StimulusLost(_, Loss::Failed(5))), "{ending:?}");
        // Of 19 waits, two were broken off.
        assert_eq!((recorder.snapshot().woken.count, stamps.wakeups), (17, 17));
    }
}
